package pgagui_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// A consumer of events gets all events of each thread in the order of seq, those of runs in parallel and late ones too, beside writers,
// jobs and erasures. If it stops anywhere, it gets events once more, but never leaves one out.
func TestAConsumerGetsAllEvents(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const threads = 8
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(w)))
			for i := range 30 {
				run := pgagui.RunRef{ThreadID: fmt.Sprint("t", random.IntN(threads)), RunID: fmt.Sprint("r", w, "-", i)}
				var last *int64
				for _, events := range [][]string{{`{"type":"RUN_STARTED"}`, custom(1)}, {custom(2), custom(3)}, {finished}, {custom(4)}} {
					if random.IntN(4) == 0 && events[0] == custom(4) {
						continue // not every run takes late events
					}
					seq, err := store.InScope(fmt.Sprint("s", w%2)).Append(t.Context(), run, rawEvents(events...), pgagui.AppendOptions{AfterSeq: last, Parallel: true})
					if errors.Is(err, pgagui.ErrRunEnded) || errors.Is(err, pgagui.ErrParentInProgress) {
						break // it has a child, or the head is in progress
					} else if err != nil {
						t.Error(err)
						return
					}
					last = &seq
				}
			}
		})
	}
	writing := make(chan struct{})
	go func() { writers.Wait(); close(writing) }()

	type thread struct{ scope, id string }
	random := rand.New(rand.NewPCG(8, 9))
	last, processed := map[thread]int64{}, map[thread][]string{}
	var erased []string
	read := func() (n int) {
		isFirst := map[thread]bool{}
		for event, err := range store.ConsumerOfAllScopes("warehouse").Events(t.Context()) {
			must.Do(t, err)
			key := thread{event.Scope, event.ThreadID}
			switch seq := event.Seq; {
			case event.IsErased:
				erased = append(erased, event.ThreadUID)
				continue
			case seq <= last[key] && !isFirst[key]: // once more, after a stop
			case seq == last[key]+1:
				last[key] = seq
				processed[key] = append(processed[key], string(event.JSON))
			default:
				t.Fatalf("event %d of %v comes after event %d", seq, key, last[key])
			}
			isFirst[key] = isFirst[key] || event.Seq == last[key]
			n++
			if random.IntN(50) == 0 {
				return n
			}
		}
		return n
	}
	for isWriting := true; isWriting; {
		select {
		case <-writing:
			isWriting = false
		default:
			read()
			if random.IntN(10) == 0 {
				testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
			}
		}
	}
	stored := map[thread]int{}
	rows := must.Have(pool.Query(t.Context(), `select scope, thread_id, count(*)::int from agui.event group by 1, 2`))(t)
	var key thread
	var n int
	must.Have(pgx.ForEachRow(rows, []any{&key.scope, &key.id, &n}, func() error { stored[key] = n; return nil }))(t)
	wait.For(t, "all events", func() bool {
		read()
		for key, n := range stored {
			if last[key] < int64(n) {
				return false
			}
		}
		return true
	})
	for key := range stored {
		var want []string
		rows, err := pool.Query(t.Context(), `select payload::text from agui.event where scope = $1 and thread_id = $2 order by seq`, key.scope, key.id)
		must.Do(t, err)
		if want, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
		if strings.Join(processed[key], "\n") != strings.Join(want, "\n") {
			t.Errorf("the events of %v differ", key)
		}
	}
	// A thread that is erased comes as such, and a new one with its events.
	uid := testdb.Ask[string](t, pool, `select thread_uid::text from agui.thread where scope = 's1' and thread_id = 't1'`)
	testdb.Exec(t, pool, `select agui.erase('t1', scope => 's1')`)
	mustAppend(t, store.InScope("s0"), "new", "r", rawEvents(`{"type":"RUN_STARTED"}`))
	wait.For(t, "the erasure and the new thread", func() bool {
		read()
		return last[thread{"s0", "new"}] == 1 && slices.Contains(erased, uid)
	})
}

// What was read of a thread says nothing of one that is begun again under its name, also if the thread is erased between a page and its
// events.
func TestAConsumerReadsAThreadThatIsBegunAgain(t *testing.T) {
	t.Parallel()
	for _, isOld := range []bool{false, true} {
		readsAThreadThatIsBegunAgain(t, testdb.Pool(t), isOld)
	}
}

// isOld: the thread is from before threads had random ids.
func readsAThreadThatIsBegunAgain(t *testing.T, pool *pgxpool.Pool, isOld bool) {
	t.Helper()
	store := pgagui.New(pool, nil)
	consumer := store.Consumer("copy")
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`, custom(1), finished))
	if isOld {
		testdb.Exec(t, pool, `update agui.thread set thread_uid = null`)
	}
	changes, err := consumer.Changes(t.Context(), 0)
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	before := changes[0]
	must.Do(t, consumer.MarkRead(t.Context(), before, 2))
	testdb.Exec(t, pool, `select agui.erase('t'), agui.lift_erasure('t')`)
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`, custom(2), custom(3), finished))
	must.Do(t, consumer.MarkRead(t.Context(), before, 3))
	if err := consumer.MarkRead(t.Context(), pgagui.Change{ThreadID: "t", ThreadUID: "nonsense"}, 3); !errors.Is(err, pgagui.ErrInvalidArgument) {
		t.Errorf("%v, want ErrInvalidArgument", err)
	}
	must.Do(t, consumer.Move(t.Context(), before.Position))
	erasures, copied := 0, map[int64]string{}
	wait.For(t, "the thread and its erasure", func() bool {
		for event, err := range consumer.Events(t.Context()) {
			switch {
			case err != nil:
				t.Fatal(err)
			case event.IsErased && event.ThreadUID == before.ThreadUID:
				erasures++
			case event.IsErased || event.ThreadUID == before.ThreadUID || copied[event.Seq] != "":
				t.Errorf("%+v", event)
			default:
				copied[event.Seq] = string(event.JSON)
			}
		}
		return erasures > 0 && len(copied) == 4
	})
	if copied[2] != custom(2) {
		t.Errorf("%v", copied)
	}
}

func custom(value int) string { return fmt.Sprintf(`{"type":"CUSTOM","name":"n","value":%d}`, value) }

// A damaged log stops a consumer, and says where, until MarkRead leaves out what is damaged.
func TestAConsumerGoesOnBehindDamage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	consumer := store.Consumer("warehouse")
	for _, damage := range []string{`events = '{}'`, `events = '[{},{}]', earlier_us = '{1}'`} {
		mustAppend(t, store, damage, "r", rawEvents(`{"type":"RUN_STARTED"}`, finished))
		testdb.Exec(t, pool, `alter table agui.batch disable trigger all`)
		testdb.Exec(t, pool, `update agui.batch set `+damage+` where thread_key = agui.thread_key('', $1)`, damage)
		last := func() (err error) {
			for _, err = range consumer.Events(t.Context()) {
			}
			return err
		}
		wait.For(t, "the run", func() bool { return last() != nil })
		if err := last(); !errors.Is(err, pgagui.ErrLogDamaged) || !strings.Contains(err.Error(), "batch at seq") {
			t.Errorf("%s: %v", damage, err)
		}
		must.Do(t, consumer.MarkRead(t.Context(), pgagui.Change{ThreadID: damage}, 2))
		if err := last(); err != nil {
			t.Errorf("%s, behind it: %v", damage, err)
		}
	}
}

// What a consumer writes in the transaction that moves it is there exactly once.
func TestAConsumerMovesWithItsTransaction(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`, finished))
	testdb.Exec(t, pool, `create table copied (thread_id text, seq bigint)`)
	consume := func(fails bool) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			for event, err := range store.WithTx(tx).Consumer("copy").Events(t.Context()) {
				if err != nil {
					return err
				}
				if _, err := tx.Exec(t.Context(), `insert into copied values ($1, $2)`, event.ThreadID, event.Seq); err != nil {
					return err
				}
			}
			if fails {
				return errRolledBack
			}
			return nil
		})
	}
	if err := consume(true); !errors.Is(err, errRolledBack) {
		t.Fatal(err)
	}
	for range 2 {
		must.Do(t, consume(false))
	}
	var n, distinct int
	if err := pool.QueryRow(t.Context(), `select count(*), count(distinct seq) from copied`).Scan(&n, &distinct); err != nil || n != 2 || distinct != 2 {
		t.Errorf("%d rows of %d events, %v; want 2 of 2", n, distinct, err)
	}
}

func TestPlacesOfConsumers(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, &pgagui.Config{Scope: "a"})
	for i := range 3 {
		mustAppend(t, store, fmt.Sprint("t", i), "r", rawEvents(`{"type":"RUN_STARTED"}`))
	}
	mustAppend(t, store.InScope("b"), "t", "r", rawEvents(`{"type":"RUN_STARTED"}`))
	places := func() map[string]pgagui.ConsumerPlace {
		listed := must.Have(store.Consumers(t.Context()))(t)
		byName := map[string]pgagui.ConsumerPlace{}
		for _, place := range listed {
			byName[fmt.Sprint(place.AllScopes, " ", place.Scope, " ", place.Consumer)] = place
		}
		return byName
	}
	one, all := store.Consumer("c"), store.ConsumerOfAllScopes("c")
	changes, err := one.Changes(t.Context(), 0)
	if err != nil || len(changes) != 3 {
		t.Fatalf("%v, %v; want the runs of the scope", changes, err)
	}
	must.Do(t, one.Move(t.Context(), changes[1].Position))
	must.Do(t, all.Move(t.Context(), ""))
	listed := places()
	if len(listed) != 2 || listed["true  c"].Behind < 4 {
		t.Errorf("%+v", listed)
	}
	rest, err := one.Changes(t.Context(), 0)
	if err != nil || len(rest) == 0 || rest[0].ThreadID != changes[2].ThreadID {
		t.Errorf("behind the second: %v, %v", rest, err)
	}
	if behind := places()["false a c"].Behind; behind < int64(len(rest)) {
		t.Errorf("%d behind, want at least %d", behind, len(rest))
	}

	for _, wrong := range []error{one.Move(t.Context(), "tomorrow"), store.Consumer("").Move(t.Context(), ""), store.Consumer(strings.Repeat("x", 201)).Move(t.Context(), "")} {
		if !errors.Is(wrong, pgagui.ErrInvalidArgument) {
			t.Errorf("%v, want ErrInvalidArgument", wrong)
		}
	}
	if err := one.MarkRead(t.Context(), pgagui.Change{Scope: "b", ThreadID: "t"}, 1); !errors.Is(err, pgagui.ErrInvalidArgument) {
		t.Errorf("a thread of another scope: %v", err)
	}
	const elsewhere = "1/1 changed 5 00000000-0000-0000-0000-000000000000 0"
	if err := one.Move(t.Context(), elsewhere); !errors.Is(err, pgagui.ErrOtherHistory) {
		t.Errorf("a position of another history: %v", err)
	}
	// After a restore the stored one is such a position: the list says so, and reading it too.
	testdb.Exec(t, pool, `update agui.consumer set position = $1 where not is_all`, elsewhere)
	if _, err := one.Changes(t.Context(), 0); !errors.Is(err, pgagui.ErrOtherHistory) {
		t.Errorf("%v, want ErrOtherHistory", err)
	}
	if listed := places(); !listed["false a c"].IsLost || listed["true  c"].IsLost {
		t.Errorf("%+v", listed)
	}
	// To begin again also forgets how far threads were read.
	must.Do(t, one.MarkRead(t.Context(), pgagui.Change{Scope: "a", ThreadID: "t0"}, 1))
	must.Do(t, one.Move(t.Context(), ""))
	if again, err := one.Changes(t.Context(), 1); err != nil || len(again) != 1 || again[0].ReadSeq != 0 {
		t.Errorf("from the beginning: %+v, %v", again, err)
	}
	for _, want := range []bool{true, false} {
		if was, err := one.Remove(t.Context()); err != nil || was != want {
			t.Errorf("removed: %t, %v; want %t", was, err, want)
		}
	}
	if len(places()) != 1 {
		t.Error("the consumer of all scopes is another one")
	}
}
