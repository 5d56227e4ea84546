package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// mustSave saves a document whatever is there.
func mustSave(t testing.TB, store *pgagui.Store, threadID, runID, key, document string) int64 {
	t.Helper()
	version, err := store.Sessions().Save(context.Background(), pgagui.SessionKey{ThreadID: threadID, Key: key}, json.RawMessage(document), pgagui.SaveOptions{RunID: runID, Overwrite: true})
	if err != nil {
		t.Fatalf("save %s at run %q of thread %s: %v", key, runID, threadID, err)
	}
	return version
}

// saved are the documents that a run has, with their versions.
func saved(t testing.TB, store *pgagui.Store, threadID, runID string) map[string]string {
	t.Helper()
	states := must.Have(store.Sessions().List(context.Background(), pgagui.SessionRef{ThreadID: threadID, RunID: runID}))(t)
	documents := map[string]string{}
	for _, state := range states {
		documents[state.Key] = fmt.Sprint(state.Version, " ", string(state.JSON))
	}
	return documents
}

func wantSaved(t testing.TB, store *pgagui.Store, threadID, runID string, want map[string]string) {
	t.Helper()
	if got := saved(t, store, threadID, runID); !maps.Equal(got, want) {
		t.Errorf("run %q of thread %s has %v, want %v", runID, threadID, got, want)
	}
}

// wantStale checks that a save was refused because of the version that there is.
func wantStale(t testing.TB, err error, current int64) {
	t.Helper()
	if refusal, ok := errors.AsType[*pgagui.Error](err); !ok || !errors.Is(err, pgagui.ErrStaleVersion) || refusal.CurrentVersion != current {
		t.Errorf("error %v (%+v), want ErrStaleVersion with version %d", err, refusal, current)
	}
}

func endedRun(t testing.TB, store *pgagui.Store, threadID, runID, parentRunID string) {
	t.Helper()
	opening := started(runID)
	if parentRunID != "" {
		opening = startedFrom(runID, parentRunID)
	}
	mustAppend(t, store, threadID, runID, rawEvents(opening, finished))
}

// oddJSON makes documents with everything that JSON allows and parsers like to change.
type oddJSON struct{ *rand.Rand }

func (g oddJSON) document() string {
	return g.space() + g.value(4) + g.space()
}

func (g oddJSON) one(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g oddJSON) space() string { return g.one("", "", "", " ", "\n", "\t ", "\r\n") }

func (g oddJSON) text() string {
	var text strings.Builder
	for range g.IntN(6) {
		text.WriteString(g.one(
			`a`, `é`, `日本`, `😀`, `\u0000`, `\ud83d`, `\uDE00`, `\uD83D\uDE00`, `\ud83d\ud83d`, `\\`, `\\u0000`, `\\\u005c`, `\u005C`, `\\\\x`, `\\x`,
			`\"`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0041`, `\u001f`, "\u007f", `{`, `]`, `:`, `,`, ` `, `<`, `&`, "\u2028", `\u2028`,
		))
	}
	return `"` + text.String() + `"`
}

func (g oddJSON) value(depth int) string {
	kind := g.IntN(8)
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return g.one("true", "false", "null")
	case 1:
		return g.one("0", "-0", "-0.0", "1.0", "1e400", "-1E+400", "12345678901234567890.000", "1e-7", "0.10", strings.Repeat("9", 400), "1E5")
	case 2, 3:
		return g.text()
	case 4, 5:
		items := make([]string, g.IntN(4))
		for i := range items {
			items[i] = g.space() + g.value(depth-1) + g.space()
		}
		return "[" + strings.Join(items, ",") + "]"
	default:
		var members []string
		if g.IntN(2) == 0 {
			members = append(members, `"$type":"Memory, Example"`)
		}
		for range g.IntN(4) {
			name := g.one(g.text(), `"a"`, `"a"`, `"\u0061"`, `"$type"`, `""`)
			members = append(members, g.space()+name+g.space()+":"+g.space()+g.value(depth-1)+g.space())
		}
		return "{" + strings.Join(members, ",") + "}"
	}
}

func TestSessionStateComesBackByteForByte(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	g := oddJSON{rand.New(rand.NewPCG(1, 2))}
	documents := map[string]string{
		"deep":              strings.Repeat(`[{"a":`, 499) + `"\u0000"` + strings.Repeat(`}]`, 499),
		"$type":             `{"$type":"first","a":1}`,
		"\\u0000x":          `"\\u0000"`, // keys may hold what looks like an escape, quotes and more
		`"\ ` + "\n😀\u0001": `{"a":1}`,
	}
	for n := range 1000 {
		documents[fmt.Sprint("generated ", n)] = g.document()
	}

	session := []byte(`{"threadId":"whole","runId":null,"state":{`)
	for n, key := range slices.Sorted(maps.Keys(documents)) {
		if !json.Valid([]byte(documents[key])) {
			t.Fatalf("not JSON: %s", documents[key])
		}
		mustSave(t, store, "single", "", key, documents[key])
		name, _ := json.Marshal(key)
		if n > 0 {
			session = append(session, ',')
		}
		session = append(append(append(session, name...), ':'), documents[key]...)
	}
	session = append(session, "}}"...)
	first := must.Have(store.Sessions().SaveAll(ctx, session))(t)

	alone, err := store.Sessions().List(ctx, pgagui.SessionRef{ThreadID: "single"})
	if err != nil || len(alone) != len(documents) {
		t.Fatalf("%d documents, want %d: %v", len(alone), len(documents), err)
	}
	for _, state := range alone {
		if string(state.JSON) != documents[state.Key] {
			t.Errorf("saved\n%s\nloaded\n%s", documents[state.Key], state.JSON)
		}
	}
	// White space around a document is part of the session that it stands in.
	for _, threadID := range []string{"single", "whole"} {
		loaded := must.Have(store.Sessions().LoadAll(ctx, pgagui.SessionRef{ThreadID: threadID}))(t)
		var state []byte
		for name, value := range compaction.Members(loaded) {
			if name == "state" {
				state = value
			}
		}
		n := 0
		for key, document := range compaction.Members(state) {
			n++
			if string(document) != strings.Trim(documents[key], " \t\r\n") {
				t.Errorf("%s: saved\n%s\nloaded\n%s", threadID, documents[key], document)
			}
		}
		if n != len(documents) {
			t.Errorf("%s: %d documents, want %d", threadID, n, len(documents))
		}
		// Nothing has changed, so nothing is written.
		again, err := store.Sessions().SaveAll(ctx, loaded)
		if err != nil || !maps.Equal(again, first) {
			t.Errorf("%s: saved again %v, error %v", threadID, again, err)
		}
	}
}

func TestARunHasTheSessionStateOfItsLineage(t *testing.T) {
	t.Parallel()
	type entry struct {
		version  int64
		document string // empty: removed
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			store, pool := newStore(t)
			ctx := context.Background()
			random := rand.New(rand.NewPCG(seed, 7))

			parents := map[string]string{"": ""}
			runs := []string{""} // "" is the thread's own state, before all roots
			entries := map[string]map[string]entry{"": {}}
			last := map[string]int64{}
			at := func(runID, key string) entry {
				for ; ; runID = parents[runID] {
					if found, ok := entries[runID][key]; ok || runID == "" {
						return found
					}
				}
			}
			check := func() {
				t.Helper()
				for _, runID := range runs {
					want := map[string]string{}
					for key := range last {
						if e := at(runID, key); e.document != "" {
							want[key] = fmt.Sprint(e.version, " ", e.document)
						}
					}
					wantSaved(t, store, "t", runID, want)
				}
			}
			for step := range 150 {
				runID := runs[random.IntN(len(runs))]
				key := string(rune('a' + random.IntN(4)))
				before := at(runID, key)
				version := before.version
				if before.document == "" {
					version = 0
				}
				save := pgagui.SaveOptions{RunID: runID, ExpectedVersion: version, Overwrite: random.IntN(2) == 0}
				switch random.IntN(10) {
				case 0, 1:
					name := fmt.Sprint("r", len(runs))
					endedRun(t, store, "t", name, runID)
					if runID == "" && len(runs) > 1 {
						parents[name] = runs[len(runs)-1] // a run that names no parent follows the head
					} else {
						parents[name] = runID
					}
					runs, entries[name] = append(runs, name), map[string]entry{}
				case 2, 3:
					removed, err := store.Sessions().Remove(ctx, pgagui.SessionKey{ThreadID: "t", Key: key}, save)
					if before.document == "" {
						if !errors.Is(err, pgagui.ErrUnknownSessionState) {
							t.Errorf("removed version %d (%v) where there is none", removed, err)
						}
						break
					}
					must.Do(t, err)
					last[key]++
					entries[runID][key] = entry{version: last[key]}
					if removed != last[key] {
						t.Errorf("the removal has version %d, want %d", removed, last[key])
					}
				default:
					document := strconv.Itoa(step)
					got, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: key}, json.RawMessage(document), save)
					must.Do(t, err)
					last[key]++
					entries[runID][key] = entry{last[key], document}
					if got != last[key] {
						t.Errorf("version %d, want %d", got, last[key])
					}
					// Any other version is stale.
					wrong := save
					wrong.ExpectedVersion, wrong.Overwrite = got+1, false
					_, err = store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: key}, json.RawMessage(`"x"`), wrong)
					wantStale(t, err, got)
				}
				if step%30 == 29 {
					check()
				}
			}
			for _, runID := range runs {
				for key := range last {
					want := at(runID, key)
					got, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t", Key: key}, pgagui.LoadOptions{RunID: runID})
					if isThere := want.document != ""; isThere != (err == nil) || !isThere && !errors.Is(err, pgagui.ErrUnknownSessionState) ||
						string(got.JSON) != want.document || isThere && got.Version != want.version {
						t.Errorf("run %q has %s version %d %s, want %+v; error %v", runID, key, got.Version, got.JSON, want, err)
					}
				}
			}
			if len(runs) > 1 {
				mustVerify(t, store, "t")
			}
			if n := testdb.Ask[int64](t, pool, `select count(*) from agui.session_state where version > (select last_version from agui.session_key where session_key.key = session_state.key)`); n != 0 {
				t.Errorf("%d versions are not counted", n)
			}
		})
	}
}

func TestNoUpdateOfSessionStateIsLost(t *testing.T) { bothWays(t, noUpdateOfSessionStateIsLost) }

func noUpdateOfSessionStateIsLost(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	ctx := context.Background()
	endedRun(t, store, "t", "r", "")
	const writers, updates = 12, 10
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for done := 0; done < updates; {
				read, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t", Key: "counter"}, pgagui.LoadOptions{RunID: "r"})
				if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
					t.Error(err)
					return
				}
				count := 0
				if read.Version > 0 {
					if err := json.Unmarshal(read.JSON, &count); err != nil {
						t.Error(err)
						return
					}
				}
				// The same bytes as every other writer who got as far.
				next := json.RawMessage(strconv.Itoa(count + 1))
				version, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "counter"}, next, pgagui.SaveOptions{RunID: "r", ExpectedVersion: read.Version})
				var refusal *pgagui.Error
				switch {
				case err == nil:
					done++
					if version != read.Version+1 {
						t.Errorf("version %d was saved after version %d", version, read.Version)
					}
				case !errors.As(err, &refusal) || refusal.Kind != pgagui.ErrStaleVersion || refusal.CurrentVersion <= read.Version:
					t.Errorf("error %v (%+v)", err, refusal)
					return
				}
			}
		})
	}
	group.Wait()
	last, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t", Key: "counter"}, pgagui.LoadOptions{RunID: "r"})
	if err != nil || last.Version != writers*updates || string(last.JSON) != strconv.Itoa(writers*updates) {
		t.Errorf("version %d is %s, error %v; want a count of %d", last.Version, last.JSON, err, writers*updates)
	}
}

func TestWritersOnTwoBranchesBothWin(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	endedRun(t, store, "t", "root", "")
	endedRun(t, store, "t", "a", "root")
	endedRun(t, store, "t", "b", "root")
	version := mustSave(t, store, "t", "root", "k", `"root"`)

	// The second writer waits for the first one's transaction.
	first := testdb.Begin(t, pool)
	defer first.Rollback(ctx)
	must.Have(store.WithTx(first).Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`"a"`), pgagui.SaveOptions{RunID: "a", ExpectedVersion: version}))(t)
	second := make(chan error)
	go func() {
		_, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`"b"`), pgagui.SaveOptions{RunID: "b", ExpectedVersion: version})
		second <- err
	}()
	must.Do(t, first.Commit(ctx))
	must.Report(t, <-second)
	wantSaved(t, store, "t", "root", map[string]string{"k": `1 "root"`})
	wantSaved(t, store, "t", "a", map[string]string{"k": `2 "a"`})
	wantSaved(t, store, "t", "b", map[string]string{"k": `3 "b"`})

	// What is saved at the root later does not reach runs that have their own.
	mustSave(t, store, "t", "root", "k", `"new"`)
	wantSaved(t, store, "t", "b", map[string]string{"k": `3 "b"`})
}

// In SQL as in Go there must be no document where the writer names no version: a null often comes from a load that found none.
func TestWithoutAVersionThereMustBeNone(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	endedRun(t, store, "t", "a", "")
	mustSave(t, store, "t", "a", "k", `1`)
	for _, call := range []string{
		`agui.save_session_state('t', 'k', '2', 'a')`,
		`agui.save_session_state('t', 'k', '2', 'a', expected_version => null)`,
		`agui.save_session_state('t', 'k', '2', 'a', expected_version => 0, overwrite => null)`,
		`agui.remove_session_state('t', 'k', 'a')`,
		`agui.remove_session_state('t', 'k', 'a', expected_version => null)`,
	} {
		_, err := pool.Exec(t.Context(), `select `+call)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "UI018" || refused.Detail != `{"currentVersion": 1}` {
			t.Errorf("%s: %v", call, err)
		}
	}
	for _, saved := range []struct {
		call    string
		version int
	}{
		{`agui.save_session_state('t', 'new', '1', 'a', expected_version => null)`, 1},
		{`agui.save_session_state('t', 'k', '2', 'a', overwrite => true)`, 2},
		{`agui.remove_session_state('t', 'k', 'a', expected_version => 7, overwrite => true)`, 3},
	} {
		if got := testdb.Ask[int](t, pool, `select `+saved.call); got != saved.version {
			t.Errorf("%s: %d, want %d", saved.call, got, saved.version)
		}
	}
}

// A writer who lost the answer is refused like another one who came second with the same bytes; what is there tells the two apart.
func TestWhoSavesTwiceIsToldOfTheFirst(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	endedRun(t, store, "t", "a", "")
	endedRun(t, store, "t", "b", "a")
	at := pgagui.SaveOptions{RunID: "a"}
	if version, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`1`), at); version != 1 || err != nil {
		t.Errorf("version %d, error %v", version, err)
	}
	_, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`1`), at)
	wantStale(t, err, 1)
	mustSave(t, store, "t", "b", "k", `2`)
	_, err = store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`3`), pgagui.SaveOptions{RunID: "b", ExpectedVersion: 1})
	wantStale(t, err, 2)

	at.ExpectedVersion = 1
	if version, err := store.Sessions().Remove(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, at); version != 3 || err != nil {
		t.Errorf("removal: version %d, error %v", version, err)
	}
	for _, save := range []func() (int64, error){
		func() (int64, error) {
			return store.Sessions().Remove(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, at)
		},
		func() (int64, error) {
			return store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`4`), at)
		},
	} {
		_, err := save()
		wantStale(t, err, 0)
	}
	// Whoever finds none may say so, or name the removal.
	for _, none := range []int64{0, 5} {
		at.ExpectedVersion = none
		if _, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`4`), at); err != nil {
			t.Errorf("after a removal, with version %d: %v", none, err)
		}
		if none == 0 {
			if version, err := store.Sessions().Remove(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, pgagui.SaveOptions{RunID: "a", ExpectedVersion: 4}); version != 5 || err != nil {
				t.Errorf("version %d, error %v", version, err)
			}
		}
	}

	session := json.RawMessage(`{"threadId":"t","runId":"a","state":{"new":[],"x":1},"versions":{"k":6}}`)
	if versions, err := store.Sessions().SaveAll(ctx, session); err != nil || !maps.Equal(versions, map[string]int64{"new": 1, "x": 1}) {
		t.Errorf("versions %v, error %v", versions, err)
	}
	_, err = store.Sessions().SaveAll(ctx, session)
	if !errors.Is(err, pgagui.ErrStaleVersion) {
		t.Errorf("the same session again: %v", err)
	}
	wantSaved(t, store, "t", "a", map[string]string{"new": "1 []", "x": "1 1"})
}

func TestSessionStateAndEventsInOneTransaction(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	write := func(tx pgx.Tx) {
		t.Helper()
		inTx := store.WithTx(tx)
		mustAppend(t, inTx, "t", "r", rawEvents(started("r"), finished))
		mustSave(t, inTx, "t", "r", "k", `1`)
		if number, err := inTx.Checkpoints().Save(ctx, "t", pgagui.Checkpoint{ID: "c", JSON: json.RawMessage(`{}`)}); number != 1 || err != nil {
			t.Errorf("checkpoint %d, error %v", number, err)
		}
	}
	tx := testdb.Begin(t, pool)
	write(tx)
	must.Do(t, tx.Rollback(ctx))
	if n := testdb.Ask[int](t, pool, `select (select count(*) from agui.thread) + (select count(*) from agui.session_state) + (select count(*) from agui.checkpoint)`); n != 0 {
		t.Errorf("%d rows were left by a transaction that was undone", n)
	}
	must.Do(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { write(tx); return nil }))
	wantSaved(t, store, "t", "r", map[string]string{"k": "1 1"})
	mustVerify(t, store, "t")
}

// Numbers of versions that were pruned since the snapshot was taken must not be given again.
func TestSessionStateOfCallersWithAnOldSnapshot(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	ctx := context.Background()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		thread := string(level)
		endedRun(t, store, thread, "a", "")
		endedRun(t, store, thread, "b", "")
		mustSave(t, store, thread, "a", "old", `1`)
		for what, meanwhile := range map[string]func(){
			"thread made since":     func() { mustSave(t, store, thread+" new", "", "k", `1`) },
			"key made since":        func() { mustSave(t, store, thread, "", "new", `1`) },
			"saved since":           func() { mustSave(t, store, thread, "a", "old", `2`) },
			"saved at another run":  func() { mustSave(t, store, thread, "b", "old", `2`) },
			"saved and then pruned": func() { mustSaveKeeping(t, pool, 1, thread, "b", "old", 3) },
		} {
			tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
			must.Do(t, err)
			if _, err := tx.Exec(ctx, `select count(*) from agui.session_state`); err != nil { // takes the snapshot
				t.Fatal(err)
			}
			meanwhile()
			target, runID, key := thread, "a", "old"
			switch what {
			case "thread made since":
				target, runID, key = thread+" new", "", "k"
			case "key made since":
				runID, key = "", "new"
			}
			_, err = store.WithTx(tx).Sessions().Save(ctx, pgagui.SessionKey{ThreadID: target, Key: key}, json.RawMessage(`9`), pgagui.SaveOptions{RunID: runID, Overwrite: true})
			wantSerializationFailure(t, what, err)
			tx.Rollback(ctx)
		}
		mustVerify(t, store, thread)
	}
}

// mustSaveKeeping saves a document several times while so many versions are kept.
func mustSaveKeeping(t testing.TB, pool *pgxpool.Pool, versions int, threadID, runID, key string, times int) {
	t.Helper()
	err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), fmt.Sprint(`set local agui.session_versions = `, versions)); err != nil {
			return err
		}
		for n := range times {
			mustSave(t, pgagui.New(tx, nil), threadID, runID, key, strconv.Itoa(n))
		}
		return nil
	})
	must.Do(t, err)
}

func TestTheLastVersionsOfSessionStateAreKept(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	endedRun(t, store, "t", "a", "")
	endedRun(t, store, "t", "b", "a")
	for n := range 13 {
		mustSave(t, store, "t", "a", "k", strconv.Itoa(n))
	}
	mustSave(t, store, "t", "b", "k", `"b"`)
	kept, err := store.Sessions().Versions(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, pgagui.VersionsOptions{RunID: "a"})
	if err != nil || len(kept) != 10 || kept[0].Version != 13 || kept[9].Version != 4 || string(kept[9].JSON) != "3" || kept[0].RunID != "a" {
		t.Errorf("kept %+v, error %v", kept, err)
	}
	for version, want := range map[int64]string{3: "", 4: "3", 13: "12", 14: `"b"`, 15: ""} {
		if state, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, pgagui.LoadOptions{Version: version}); (err == nil) != (want != "") ||
			err != nil && !errors.Is(err, pgagui.ErrUnknownSessionState) || string(state.JSON) != want {
			t.Errorf("version %d is %s, want %s; error %v", version, state.JSON, want, err)
		}
	}
	mustSaveKeeping(t, pool, 2, "t", "a", "k", 1)
	if kept, err = store.Sessions().Versions(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, pgagui.VersionsOptions{RunID: "a"}); err != nil || len(kept) != 2 || kept[0].Version != 15 || kept[1].Version != 13 {
		t.Errorf("kept %+v, error %v", kept, err)
	}
	if others, err := store.Sessions().Versions(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, pgagui.VersionsOptions{RunID: "b"}); err != nil || len(others) != 1 {
		t.Errorf("kept of another run %+v, error %v", others, err)
	}
	for _, wrong := range []string{"0", "-1", "ten", "1.5"} {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `select set_config('agui.session_versions', $1, true)`, wrong); err != nil {
				return err
			}
			_, err := store.WithTx(tx).Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`1`), pgagui.SaveOptions{Overwrite: true})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("agui.session_versions is %q", wrong)) {
			t.Errorf("agui.session_versions = %s: error %v", wrong, err)
		}
	}
	mustVerify(t, store, "t")
}

func TestSavingRacesWithErasing(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	var group sync.WaitGroup
	saves := make(chan struct{}) // closed when all savers are done
	for saver := range 4 {
		group.Go(func() {
			for n := range 25 {
				key, document := fmt.Sprint("k", n%3), json.RawMessage(strconv.Itoa(n))
				var err error
				switch saver {
				case 0:
					_, err = store.Checkpoints().Save(ctx, "t", pgagui.Checkpoint{ID: fmt.Sprint(saver, n), JSON: document})
				case 1:
					_, err = store.Sessions().SaveMany(ctx, []json.RawMessage{
						json.RawMessage(fmt.Sprintf(`{"threadId":"t","state":{%q:%s}}`, key, document)),
						json.RawMessage(fmt.Sprintf(`{"threadId":"u","state":{%q:%s}}`, key, document)),
					})
				default:
					_, err = store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: key}, document, pgagui.SaveOptions{Overwrite: true})
				}
				if err != nil && !errors.Is(err, pgagui.ErrThreadErased) {
					t.Error(err)
				}
			}
		})
	}
	eraser := make(chan struct{})
	go func() {
		defer close(eraser)
		for {
			select {
			case <-saves:
				return
			default:
			}
			if _, err := store.Erase(ctx, "t", pgagui.EraseOptions{}); err != nil && !errors.Is(err, pgagui.ErrUnknownThread) {
				t.Error(err)
				return
			}
			if n := testdb.Ask[int](t, pool, `
				select count(*) from (
					select thread_key from agui.session_state union all select thread_key from agui.session_key union all select thread_key from agui.checkpoint
				) as row where not exists (select from agui.thread where thread.thread_key = row.thread_key)`); n != 0 {
				t.Errorf("%d rows have no thread", n)
			}
			if _, err := store.Maintenance().LiftErasure(ctx, "t"); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	group.Wait()
	close(saves)
	<-eraser
	mustSave(t, store, "t", "", "k", `1`)
	mustVerify(t, store, "t")
	if _, err := store.Erase(ctx, "t", pgagui.EraseOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, json.RawMessage(`1`), pgagui.SaveOptions{}); !errors.Is(err, pgagui.ErrThreadErased) {
		t.Errorf("error %v, want ErrThreadErased", err)
	}
	if n := testdb.Ask[int](t, pool, `select count(*) from agui.session_state where thread_key = agui.thread_key('', 't')`); n != 0 {
		t.Errorf("%d rows were left", n)
	}
}

func TestSeveralSessionsAtOnce(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	const threads, callers, rounds = 6, 6, 8
	for thread := range threads {
		endedRun(t, store, fmt.Sprint("t", thread), "a", "")
		endedRun(t, store, fmt.Sprint("t", thread), "b", "a")
	}
	// Each caller counts in all sessions at once, in an order of its own: none waits for another in a circle, and no count is lost.
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 3))
			for range rounds {
				sessions := make([]json.RawMessage, 0, 2*threads)
				for _, thread := range random.Perm(threads) {
					for _, run := range random.Perm(2) {
						keys := []string{"x", "y"}
						random.Shuffle(2, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
						sessions = append(sessions, json.RawMessage(fmt.Sprintf(`{"threadId":"t%d","runId":"%c","state":{%q:%d,%q:[]}}`,
							thread, 'a'+rune(run), keys[0], random.IntN(1e9), keys[1])))
					}
				}
				if versions, err := store.Sessions().SaveMany(ctx, sessions); err != nil || len(versions) != len(sessions) {
					t.Errorf("%d sessions saved: %v", len(versions), err)
				}
			}
		})
	}
	group.Wait()

	places := []pgagui.SessionRef{{ThreadID: "t3", RunID: "b"}, {ThreadID: "none"}, {ThreadID: "t0", RunID: "a"}}
	loaded, err := store.Sessions().LoadMany(ctx, places)
	if err != nil || len(loaded) != 3 {
		t.Fatalf("%d sessions, error %v", len(loaded), err)
	}
	for i, place := range places {
		alone, err := store.Sessions().LoadAll(ctx, pgagui.SessionRef{ThreadID: place.ThreadID, RunID: place.RunID})
		if err != nil || string(alone) != string(loaded[i]) {
			t.Errorf("%+v: %s among others, %s alone; error %v", place, loaded[i], alone, err)
		}
	}
	if string(loaded[1]) != `{"threadId":"none","runId":null,"state":{},"versions":{}}` {
		t.Errorf("a session that is not there: %s", loaded[1])
	}

	// One that is refused undoes all.
	_, err = store.Sessions().SaveMany(ctx, []json.RawMessage{
		json.RawMessage(`{"threadId":"t0","runId":"a","state":{"z":1}}`),
		json.RawMessage(`{"threadId":"t1","runId":"a","state":{"x":1},"versions":{"x":1000}}`),
	})
	if !errors.Is(err, pgagui.ErrStaleVersion) {
		t.Errorf("error %v, want ErrStaleVersion", err)
	}
	if state, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t0", Key: "z"}, pgagui.LoadOptions{RunID: "a"}); !errors.Is(err, pgagui.ErrNotFound) {
		t.Errorf("a call that was refused saved %+v, error %v", state, err)
	}
	for thread := range threads {
		mustVerify(t, store, fmt.Sprint("t", thread))
	}
}

func TestASavedSessionIsWhatItSays(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	endedRun(t, store, "t", "a", "")
	endedRun(t, store, "t", "b", "a")
	save := func(session string) map[string]int64 {
		t.Helper()
		versions := must.Have(store.Sessions().SaveAll(ctx, json.RawMessage(session)))(t)
		return versions
	}
	save(`{"threadId":"t","runId":"a","state":{"keep":1,"change":1,"drop":1}}`)
	mustSave(t, store, "t", "", "own", `1`)
	wantSaved(t, store, "t", "b", map[string]string{"keep": "1 1", "change": "1 1", "drop": "1 1", "own": "1 1"})

	// With versions: what others made meanwhile stays.
	mustSave(t, store, "t", "a", "made", `1`)
	versions := save(`{"threadId":"t","runId":"b","state":{"keep": 1,"change":2,"new":1},"versions":{"keep":1,"change":1,"drop":1,"own":1}}`)
	if !maps.Equal(versions, map[string]int64{"keep": 1, "change": 2, "new": 1}) {
		t.Errorf("versions %v", versions)
	}
	wantSaved(t, store, "t", "b", map[string]string{"keep": "1 1", "change": "2 2", "new": "1 1", "made": "1 1"})
	wantSaved(t, store, "t", "a", map[string]string{"keep": "1 1", "change": "1 1", "drop": "1 1", "own": "1 1", "made": "1 1"})
	_, err := store.Sessions().SaveAll(ctx, json.RawMessage(`{"threadId":"t","runId":"b","state":{"made":2},"versions":{}}`))
	wantStale(t, err, 1)

	// Without: the run has what it says, and nothing else.
	save(`{"threadId":"t","runId":"b","state":{"a":1,"\u0061":[2],"keep":{}}}`)
	wantSaved(t, store, "t", "b", map[string]string{"a": "1 [2]", "keep": "2 {}"})
	rows := testdb.Ask[int](t, pool, `select count(*) from agui.session_state`)
	save(`{"runId":"b","versions":null,"state": {"keep" : {} ,"a":[2]},"threadId":"t"}`)
	if now := testdb.Ask[int](t, pool, `select count(*) from agui.session_state`); now != rows {
		t.Errorf("%d rows became %d although nothing changed", rows, now)
	}

	// A thread is made for what is kept in it, not for nothing.
	save(`{"threadId":"empty","state":{},"versions":{"a":0}}`)
	if version, err := store.Sessions().Remove(ctx, pgagui.SessionKey{ThreadID: "empty", Key: "a"}, pgagui.SaveOptions{}); !errors.Is(err, pgagui.ErrUnknownSessionState) {
		t.Errorf("version %d, error %v", version, err)
	}
	if n := testdb.Ask[int](t, pool, `select count(*) from agui.thread where thread_id = 'empty'`); n != 0 {
		t.Error("a thread was made for an empty session")
	}
}

// Sessions of runs that go on from each other are saved as by one call after the other.
func TestSessionsOfOneLineageInOneCall(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	endedRun(t, store, "t", "a", "")
	endedRun(t, store, "t", "b", "a")
	if _, err := store.Sessions().SaveMany(context.Background(), []json.RawMessage{
		json.RawMessage(`{"threadId":"t","runId":"a","state":{"k":1,"m":1}}`),
		json.RawMessage(`{"threadId":"t","runId":"b","state":{"m":1}}`),
	}); err != nil {
		t.Fatal(err)
	}
	wantSaved(t, store, "t", "a", map[string]string{"k": "1 1", "m": "1 1"})
	wantSaved(t, store, "t", "b", map[string]string{"m": "1 1"})
}

// Of two that have no key in common one comes second all the same, and then nothing is left of the first.
func TestOfSessionsSavedAtTheSameTimeTheLastOneStays(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	endedRun(t, store, "t", "a", "")
	first := testdb.Begin(t, pool)
	defer first.Rollback(ctx)
	must.Have(store.WithTx(first).Sessions().SaveAll(ctx, json.RawMessage(`{"threadId":"t","state":{"first":1}}`)))(t)
	second := testdb.Acquire(t, pool)
	saved := make(chan error, 1)
	go func() {
		_, err := pgagui.New(second, nil).Sessions().SaveAll(ctx, json.RawMessage(`{"threadId":"t","state":{"second":1}}`))
		saved <- err
	}()
	pid := second.Conn().PgConn().PID()
	wait.For(t, "the second waits, or is done", func() bool {
		return len(saved) == 1 || testdb.Ask[bool](t, pool, fmt.Sprintf(`select cardinality(pg_blocking_pids(%d)) > 0`, pid))
	})
	must.Do(t, errors.Join(first.Commit(ctx), <-saved))
	wantSaved(t, store, "t", "", map[string]string{"second": "1 1"})
}

func TestSessionStateNeedsAThreadAndAScope(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	for _, call := range []string{
		`agui.load_session(null)`,
		`agui.load_session('t', scope => null)`,
		`agui.load_sessions(array['t', null])`,
		`agui.load_session_state(null, 'k')`,
		`agui.session_states('t', scope => null)`,
		`agui.session_versions(null, 'k')`,
		`agui.remove_session_state('t', 'k', scope => null)`,
		`agui.save_session('{"threadId": "t", "state": {}}', null)`,
		`agui.load_checkpoint(null)`,
		`agui.load_checkpoint('t', null, null)`,
		`agui.checkpoint_lineage('t', scope => null)`,
	} {
		_, err := pool.Exec(context.Background(), `select * from `+call)
		if testdb.State(err) != "UI008" {
			t.Errorf("%s: error %v, want UI008", call, err)
		}
	}
}

func TestSessionStateRefuses(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	endedRun(t, store, "t", "a", "")
	long := strings.Repeat("x", 1025)
	save := func(threadID, key, document, runID string) error {
		_, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: threadID, Key: key}, json.RawMessage(document), pgagui.SaveOptions{RunID: runID})
		return err
	}
	saveSession := func(session string) error {
		_, err := store.Sessions().SaveAll(ctx, json.RawMessage(session))
		return err
	}
	load := func(threadID, runID string) error {
		_, err := store.Sessions().LoadAll(ctx, pgagui.SessionRef{ThreadID: threadID, RunID: runID})
		return err
	}
	for what, test := range map[string]struct{ got, want error }{
		"no thread":                    {save("", "k", `1`, ""), pgagui.ErrInvalidEvents},
		"a thread id that is too long": {save(long, "k", `1`, ""), pgagui.ErrLimitExceeded},
		"no key":                       {save("t", "", `1`, ""), pgagui.ErrInvalidEvents},
		"a key that is too long":       {save("t", long, `1`, ""), pgagui.ErrLimitExceeded},
		"no JSON":                      {save("t", "k", `{`, ""), pgagui.ErrInvalidEvents},
		"no document": {func() error {
			_, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "k"}, nil, pgagui.SaveOptions{})
			return err
		}(), pgagui.ErrInvalidEvents},
		"too deep":                        {save("t", "k", strings.Repeat("[", 1001)+strings.Repeat("]", 1001), ""), pgagui.ErrLimitExceeded},
		"an unknown run":                  {save("t", "k", `1`, "x"), pgagui.ErrUnknownRun},
		"a run of an unknown thread":      {save("x", "k", `1`, "x"), pgagui.ErrUnknownThread},
		"an unknown run to load":          {load("t", "x"), pgagui.ErrUnknownRun},
		"an unknown thread to load":       {load("x", "x"), pgagui.ErrUnknownThread},
		"no session":                      {func() error { _, err := store.Sessions().SaveAll(ctx, nil); return err }(), pgagui.ErrInvalidEvents},
		"nothing among sessions":          {func() error { _, err := store.Sessions().SaveMany(ctx, []json.RawMessage{nil}); return err }(), pgagui.ErrInvalidEvents},
		"a list for a session":            {saveSession(`[]`), pgagui.ErrInvalidEvents},
		"a session without a thread":      {saveSession(`{"state":{}}`), pgagui.ErrInvalidEvents},
		"a session without state":         {saveSession(`{"threadId":"t"}`), pgagui.ErrInvalidEvents},
		"a session with a list of state":  {saveSession(`{"threadId":"t","state":[]}`), pgagui.ErrInvalidEvents},
		"a session with other members":    {saveSession(`{"threadId":"t","state":{},"more":1}`), pgagui.ErrInvalidEvents},
		"a session whose run is a number": {saveSession(`{"threadId":"t","runId":1,"state":{}}`), pgagui.ErrInvalidEvents},
		"versions that are no numbers":    {saveSession(`{"threadId":"t","state":{"a":1},"versions":{"a":1.5}}`), pgagui.ErrInvalidEvents},
		"a key that text cannot hold":     {saveSession(`{"threadId":"t","state":{"a\u0000":1}}`), pgagui.ErrInvalidEvents},
		"a key with half an emoji":        {saveSession(`{"threadId":"t","state":{"\ud83d":1}}`), pgagui.ErrInvalidEvents},
		"a thread that text cannot hold":  {saveSession(`{"threadId":"\u0000","state":{"a":1}}`), pgagui.ErrInvalidEvents},
		"an empty key in a session":       {saveSession(`{"threadId":"t","state":{"":1}}`), pgagui.ErrInvalidEvents},
		"an unknown run in a session":     {saveSession(`{"threadId":"t","runId":"x","state":{"a":1}}`), pgagui.ErrUnknownRun},
	} {
		if !errors.Is(test.got, test.want) {
			t.Errorf("%s: error %v, want %v", what, test.got, test.want)
		}
	}
	wantSaved(t, store, "t", "", map[string]string{})

	// What a refusal says: the thread, the run, the key and the version that there is.
	mustSave(t, store, "t", "a", "todo", `1`)
	_, err := store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "todo"}, json.RawMessage(`2`), pgagui.SaveOptions{RunID: "a", ExpectedVersion: 7})
	wantStale(t, err, 1)
	const want = `key "todo" of run "a" of thread "t": the writer has read version 7, but the current version is 1`
	if err == nil || !strings.HasPrefix(err.Error(), want+". ") {
		t.Errorf("error %v, want %s and a hint", err, want)
	}
	if failure, ok := errors.AsType[*pgconn.PgError](err); !ok || failure.Code != "UI018" || failure.Detail != `{"currentVersion": 1}` {
		t.Errorf("error of the server: %+v", failure)
	}
}

// A thread with nothing but session state is one like others to those who look after threads.
func TestAThreadWithSessionStateAlone(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	mustSave(t, store, "state", "", "k", `1`)
	must.Have(store.Checkpoints().Save(ctx, "checkpoint", pgagui.Checkpoint{ID: "c", JSON: json.RawMessage(`1`)}))(t)
	var threads []string
	for thread, err := range store.ThreadIDs(ctx) {
		must.Do(t, err)
		threads = append(threads, thread)
		mustVerify(t, store, thread)
	}
	slices.Sort(threads)
	if !slices.Equal(threads, []string{"checkpoint", "state"}) {
		t.Errorf("threads %v", threads)
	}
	// Saving is news.
	waiting := func(olderThan string) int {
		return testdb.Ask[int](t, pool, `select count(*) from agui_internal.inactive_threads('`+olderThan+`')`)
	}
	if recent, all := waiting("1 minute"), waiting("-1 minute"); recent != 0 || all != 2 {
		t.Errorf("%d threads are older than a minute, %d in all; want 0 and 2", recent, all)
	}
	if got := testdb.Ask[bool](t, pool, `select agui_internal.erase_thread(agui.thread_key('', 'state'), null, '1 minute') is null`); !got {
		t.Error("a thread was erased although something was saved in it a moment ago")
	}
	testdb.Exec(t, pool, `call agui.erase_older('-1 minute')`)
	if n := testdb.Ask[int](t, pool, `select count(*) from agui.thread`); n != 0 {
		t.Errorf("%d threads were left", n)
	}
	// A conversation may begin where state was kept before.
	mustSave(t, store, "later", "", "k", `1`)
	endedRun(t, store, "later", "r", "")
	wantSaved(t, store, "later", "r", map[string]string{"k": "1 1"})
	mustVerify(t, store, "later")
}
