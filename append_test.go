package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Whatever JSON allows comes back as it was given, and is found by type.
func TestEventsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	given := rawEvents(
		started("r"),
		`{"type":"CUSTOM","name":"nul","value":"a\u0000b"}`,
		`{"type":"CUSTOM","name":"half an emoji","value":"\ud83d"}`,
		`{"type":"CUSTOM","name":"other half","value":"\uDE00 and \ud83d\ude00"}`,
		`{"type":"CUSTOM","a":1,"a":2,"A":3}`,
		`{"type":"CUSTOM","value":[1e400,-0,1.0,1E+2,0.10000000000000000001]}`,
		"{ \"type\" :\t\"CUSTOM\" ,\n  \"value\" : { } }",
		`{"$type":"x","type":"NOT_OF_THE_PROTOCOL","z":1,"b":null}`,
		`{"value":"\\u0000 \\ \" \/ \b\f\n\r\t \u00e9 é 😀","type":"CUS\u0054OM"}`,
		finished,
	)
	mustAppend(t, store, "t", "r", given)
	got := payloads(t, store, "t", "r")
	for i := range given {
		if got[i] != string(given[i]) {
			t.Errorf("event %d came back as %s, want %s", i+1, got[i], given[i])
		}
	}

	const want = "RUN_STARTED CUSTOM CUSTOM CUSTOM CUSTOM CUSTOM CUSTOM NOT_OF_THE_PROTOCOL CUSTOM RUN_FINISHED"
	for _, source := range []string{`agui.events('t')`, `agui.event where thread_id = 't'`} {
		var types, bytes string
		err := pool.QueryRow(context.Background(),
			`select string_agg(type, ' ' order by seq), string_agg(payload::text, '' order by seq) from `+source).Scan(&types, &bytes)
		must.Do(t, err)
		if types != want {
			t.Errorf("%s: types %s, want %s", source, types, want)
		}
		if bytes != strings.Join(got, "") {
			t.Errorf("%s: payloads differ from those that were appended", source)
		}
	}
	var types []string
	for event, err := range store.Events(context.Background(), "t", pgagui.EventsOptions{}) {
		must.Do(t, err)
		types = append(types, event.Type)
	}
	if strings.Join(types, " ") != want {
		t.Errorf("Events: types %s, want %s", types, want)
	}
}

func TestAnEventMayBeLarge(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	large := `{"type":"STATE_SNAPSHOT","snapshot":{"text":"` + strings.Repeat("0123456789abcdef", 1<<20) + `"}}`
	mustAppend(t, store, "t", "r", rawEvents(started("r"), large, finished))
	if got := payloads(t, store, "t", "r"); got[1] != large {
		t.Errorf("an event of %d bytes came back as one of %d bytes", len(large), len(got[1]))
	}
	state := must.Have(store.State(context.Background(), "t", pgagui.At{}))(t)
	if want := large[len(`{"type":"STATE_SNAPSHOT","snapshot":`) : len(large)-1]; string(state) != want {
		t.Errorf("the state has %d bytes, want %d", len(state), len(want))
	}
}

func TestARepeatedCallIsStoredOnce(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	all := rawEvents(started("r"), token(1), token(2), token(3), token(4), finished)
	mustAppend(t, store, "t", "r", all[:3], afterSeq(0))
	mustAppend(t, store, "t", "r", all[3:5], afterSeq(3))

	repeats := []struct {
		name     string
		events   []json.RawMessage
		afterSeq int64
		want     int64
	}{
		{"the last call", all[3:5], 3, 5},
		{"the first call", all[:3], 0, 3},
		{"both in one", all[:5], 0, 5},
		{"from the middle of a batch to the middle of the next", all[1:4], 1, 4},
		{"a prefix, then what is new", all[2:], 2, 6},
		{"all of it, after the run has ended", all, 0, 6},
		{"the end alone", all[5:], 5, 6},
	}
	for _, repeat := range repeats {
		if seq := mustAppend(t, store, "t", "r", repeat.events, afterSeq(repeat.afterSeq)); seq != repeat.want {
			t.Errorf("%s: seq %d, want %d", repeat.name, seq, repeat.want)
		}
	}
	if got := payloads(t, store, "t", "r"); len(got) != len(all) {
		t.Errorf("the log has %d events, want %d: %s", len(got), len(all), got)
	}
	mustVerify(t, store, "t")
}

func TestARepeatIsFoundAmongRunsSideBySide(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	mustAppend(t, store, "t", "a", rawEvents(startedFrom("a", "root")), pgagui.AppendOptions{Parallel: true}) // 3
	mustAppend(t, store, "t", "b", rawEvents(startedFrom("b", "root")), pgagui.AppendOptions{Parallel: true}) // 4
	mustAppend(t, store, "t", "a", rawEvents(token(1)), afterSeq(3))                                          // 5
	mustAppend(t, store, "t", "b", rawEvents(token(2)), afterSeq(4))                                          // 6
	if seq := mustAppend(t, store, "t", "a", rawEvents(token(1), token(3)), afterSeq(3)); seq != 7 {
		t.Errorf("repeat with more: seq %d, want 7", seq)
	}
	if seq := mustAppend(t, store, "t", "a", rawEvents(token(1)), afterSeq(3)); seq != 5 {
		t.Errorf("repeat: seq %d, want 5", seq)
	}
	if seq := mustAppend(t, store, "t", "b", rawEvents(token(4)), afterSeq(6)); seq != 8 {
		t.Errorf("next call of the other run: seq %d, want 8", seq)
	}
	mustVerify(t, store, "t")
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "other", "elsewhere", rawEvents(started("elsewhere"), finished))
	mustAppend(t, store, "t", "done", rawEvents(started("done"), token(1), finished))
	mustAppend(t, store, "t", "failed", rawEvents(started("failed"), failed))
	mustAppend(t, store, "t", "leaf", rawEvents(started("leaf"), token(1), token(4), finished)) // 6 to 9
	mustAppend(t, store, "t", "open", rawEvents(startedFrom("open", "failed")))

	deep := `{"type":"CUSTOM","value":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`
	wide := `{"type":"CUSTOM","value":[` + strings.Repeat("[],{},", 2000) + `1,"` + strings.Repeat("[", 5000) + `"]}`
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "open"}, rawEvents(wide), pgagui.AppendOptions{}); err != nil {
		t.Errorf("many brackets that are not deep: %v", err)
	}

	cases := []struct {
		name    string
		runID   string
		events  []json.RawMessage
		options pgagui.AppendOptions
		want    error
		says    string
	}{
		{"no event", "open", rawEvents(), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, "empty array"},
		{"an event that is no object", "open", rawEvents(token(1), `"text"`), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, "event 2 of the call is not a JSON object"},
		{"no type", "open", rawEvents(token(1), `{"Type":"CUSTOM"}`), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, `event 2 of the call has no "type"`},
		{"a type that is no string", "open", rawEvents(`{"type":7}`), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, `event 1 of the call has no "type"`},
		{"an array in place of an event", "open", rawEvents(`[{"type":"CUSTOM"}]`), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, "event 1 of the call is not a JSON object"},
		{"a type that is no string in the end", "open", rawEvents(`{"type":"CUSTOM","type":true}`), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, `event 1 of the call has no "type"`},
		{"the same among others", "open", rawEvents(token(1), `{"type":"CUSTOM","type":[]}`, token(2)), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, `event 2 of the call has no "type"`},
		{"no JSON", "open", rawEvents(`{"type":`), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, "not JSON"},
		{"too deep", "open", rawEvents(deep), pgagui.AppendOptions{}, pgagui.ErrLimitExceeded, "more than 1000 levels deep"},
		{"too deep among others", "open", rawEvents(token(1), deep, token(2)), pgagui.AppendOptions{}, pgagui.ErrLimitExceeded, "event 2 of the call is nested more than 1000 levels deep"},
		{"deeper than the server's stack", "open", rawEvents(`{"type":"CUSTOM","value":` + strings.Repeat("[", 200000) + strings.Repeat("]", 200000) + `}`), pgagui.AppendOptions{}, pgagui.ErrLimitExceeded, "levels deep"},
		{"no run id", "", rawEvents(started("")), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, "run id"},
		{"a run id that is too long", strings.Repeat("x", 1025), rawEvents(`{"type":"RUN_STARTED"}`), pgagui.AppendOptions{}, pgagui.ErrLimitExceeded, "1,024 bytes"},
		{"unknown run", "new", rawEvents(token(1)), pgagui.AppendOptions{}, pgagui.ErrUnknownRun, "its first event must be RUN_STARTED"},
		{"unknown run that finishes", "new", rawEvents(finished), pgagui.AppendOptions{}, pgagui.ErrUnknownRun, "its first event must be RUN_STARTED"},
		{"unknown run that the writer remembers", "new", rawEvents(token(1)), afterSeq(9), pgagui.ErrLogRewound, "after_seq is 9: a new run begins with 0"},
		{"the names of Python", "new", rawEvents(`{"type":"RUN_STARTED","thread_id":"t","run_id":"new"}`), pgagui.AppendOptions{}, pgagui.ErrInvalidEvents, "its first event has the names of Python"},
		{"the names of Python, from a writer that says that the run is new", "new", rawEvents(`{"type":"EventType.RUN_STARTED","run_id":"new"}`, token(1)), afterSeq(0), pgagui.ErrInvalidEvents, "its first event has the names of Python"},
		{"unknown parent", "new", rawEvents(startedFrom("new", "nobody")), parallel, pgagui.ErrUnknownParent, `parent "nobody"`},
		{"parent of another thread", "new", rawEvents(startedFrom("new", "elsewhere")), parallel, pgagui.ErrUnknownParent, `parent "elsewhere"`},
		{"itself as parent", "new", rawEvents(startedFrom("new", "new")), parallel, pgagui.ErrUnknownParent, `parent "new"`},
		{"parent in progress", "new", rawEvents(startedFrom("new", "open")), parallel, pgagui.ErrParentInProgress, `parent "open" is still in progress`},
		{"head in progress", "new", rawEvents(started("new")), parallel, pgagui.ErrParentInProgress, `parent "open" is still in progress`},
		{"another run in progress", "new", rawEvents(startedFrom("new", "done")), pgagui.AppendOptions{}, pgagui.ErrRunInProgress, `run "open" is in progress`},
		{"late event", "done", rawEvents(token(2)), pgagui.AppendOptions{}, pgagui.ErrRunEnded, "already finished"},
		{"late event after RUN_ERROR", "failed", rawEvents(token(2)), pgagui.AppendOptions{}, pgagui.ErrRunEnded, "already failed"},
		{"RUN_ERROR after RUN_ERROR", "failed", rawEvents(failed), pgagui.AppendOptions{}, pgagui.ErrRunEnded, "already failed"},
		{"RUN_ERROR once a run went on", "done", rawEvents(failed), pgagui.AppendOptions{}, pgagui.ErrRunEnded, "already finished"},
		{"event after the end in the same call, strictly", "open", rawEvents(finished, token(1)), strict, pgagui.ErrRunEnded, "event 2 of the call comes after the end"},
		{"event after RUN_ERROR after RUN_FINISHED, strictly", "open", rawEvents(finished, failed, failed), strict, pgagui.ErrRunEnded, "event 3 of the call comes after the end"},
		{"late event with after_seq once a run went on", "done", rawEvents(token(2)), afterSeq(3), pgagui.ErrRunEnded, `run "failed" continues from it`},
		{"late event with after_seq, strictly", "leaf", rawEvents(token(2)), merged(afterSeq(9), pgagui.AppendOptions{Strict: true}), pgagui.ErrRunEnded, "already finished"},
		{"late event behind what the log does not have", "leaf", rawEvents(token(2)), afterSeq(8), pgagui.ErrConflictingRepeat, "event 1 of the call differs"},
		{"run id used twice", "done", rawEvents(started("done")), pgagui.AppendOptions{}, pgagui.ErrRunIDInUse, "exists already"},
		{"second RUN_STARTED", "open", rawEvents(started("open")), pgagui.AppendOptions{}, pgagui.ErrRunIDInUse, "exists already"},
		{"RUN_STARTED in the middle", "open", rawEvents(token(1), started("open")), pgagui.AppendOptions{}, pgagui.ErrRunIDInUse, "event 2 of the call is a RUN_STARTED"},
		{"RUN_STARTED in the middle, strictly", "open", rawEvents(token(1), started("open")), merged(afterSeq(11), pgagui.AppendOptions{Strict: true}), pgagui.ErrRunIDInUse, "event 2 of the call is a RUN_STARTED"},
		{"second RUN_STARTED with after_seq, strictly", "open", rawEvents(started("open")), merged(afterSeq(11), pgagui.AppendOptions{Strict: true}), pgagui.ErrRunIDInUse, "exists already"},
		{"second RUN_STARTED of another run", "open", rawEvents(started("done")), afterSeq(11), pgagui.ErrRunIDInUse, `names another run, "done"`},
		{"a first event of another type, strictly", "new", rawEvents(token(1)), merged(afterSeq(0), pgagui.AppendOptions{Strict: true}), pgagui.ErrUnknownRun, "its first event must be RUN_STARTED"},
		{"another thread, strictly", "new", rawEvents(`{"type":"RUN_STARTED","threadId":"other"}`), strict, pgagui.ErrOtherThread, `another thread, "other"`},
		{"RUN_STARTED of another run", "new", rawEvents(started("newer")), pgagui.AppendOptions{}, pgagui.ErrRunIDInUse, `names another run, "newer"`},
		{"repeat that differs", "done", rawEvents(started("done"), token(2)), afterSeq(0), pgagui.ErrConflictingRepeat, "event 2 of the call differs"},
		{"repeat with other white space", "done", rawEvents(`{"type": "RUN_STARTED"}`), afterSeq(0), pgagui.ErrConflictingRepeat, "event 1 of the call differs"},
		{"a seq that the log does not have", "open", rawEvents(token(1)), afterSeq(99), pgagui.ErrLogRewound, "the writer has seen seq 99"},
	}
	before := payloads(t, store, "t", "open")
	for _, c := range cases {
		_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: c.runID}, c.events, c.options)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the message does not say %q: %s", c.name, c.says, err)
		}
		event := 0
		if refusal, ok := errors.AsType[*pgagui.Error](err); ok {
			event = refusal.Event
		}
		if named := regexp.MustCompile(`event (\d+) of the call`).FindStringSubmatch(err.Error()); (event > 0) != (named != nil) || event > 0 && fmt.Sprint(event) != named[1] {
			t.Errorf("%s: it is event %d: %s", c.name, event, err)
		}
		var refused *pgconn.PgError
		if !errors.As(err, &refused) {
			if c.name != "no JSON" && c.name != "deeper than the server's stack" { // which are not sent
				t.Errorf("%s: the error hides what the database said", c.name)
			}
			continue
		}
		if strings.HasPrefix(refused.Code, "UI") && c.runID != "" && len(c.runID) < 100 &&
			!strings.HasPrefix(err.Error(), fmt.Sprintf(`run "%s" of thread "t"`, c.runID)) {
			t.Errorf("%s: the message does not name run and thread: %s", c.name, err)
		}
	}
	if after := payloads(t, store, "t", "open"); !slices.Equal(before, after) {
		t.Error("a refused call left something in the log")
	}
	mustVerify(t, store, "t")
}

var (
	parallel = pgagui.AppendOptions{Parallel: true}
	strict   = pgagui.AppendOptions{Strict: true}
)

func TestEventsMustBeAnArray(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	for _, argument := range []string{
		`'{}'`, `'{"0":{"type":"CUSTOM"}}'`, `'{"type":"CUSTOM"}'`, `'"x"'`, `'null'`, `null`, `'[["type"]]'`, `'[[{"type":"CUSTOM"}]]'`,
	} {
		_, err := pool.Exec(context.Background(), `select agui.append('t', 'r', `+argument+`)`)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "UI008" {
			t.Errorf("events %s: error %v, want UI008", argument, err)
		}
	}
}

// What ends a run is its last "type", however it is spelled, in a call of its own or after others.
func TestARunEndsHoweverItsEndIsSpelled(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ends := []string{
		finished,
		`{"type":"RUN_FINISHE\u0044"}`,
		`{"\u0074ype":"RUN_FINISHED"}`,
		`{"type":"CUSTOM","type":"RUN_FINISHED"}`,
		`{"type":"CUSTOM","\u0074ype":"RUN_FINISHED"}`,
		"{\n\t\"threadId\" : \"t\", \"type\"\r: \"RUN_FINISHED\" }",
		`{"runs":[{"type":"CUSTOM"}],"type":"RUN_FINISHED","value":"\\u0000\ud83d"}`,
	}
	noEnds := []string{
		`{"type":"run_finished"}`,
		`{"type":"CUSTOM","value":{"type":"RUN_FINISHED"}}`,
		`{"type":"RUN_FINISHED","type":"CUSTOM"}`,
		`{"type":"\\u0052UN_FINISHED"}`,
		`{"type":"CUSTOM","value":"type","runs":[{"type":"RUN_STARTED"},"RUN_FINISHED"]}`,
		`{"type":"RUN_FINISHED_NOT"}`,
		`{"type":""}`,
	}
	for i, end := range ends {
		for j, noEnd := range noEnds {
			alone, together := fmt.Sprintf("alone-%d-%d", i, j), fmt.Sprintf("together-%d-%d", i, j)
			mustAppend(t, store, "t", alone, rawEvents(started(alone)))
			mustAppend(t, store, "t", alone, rawEvents(noEnd))
			mustAppend(t, store, "t", alone, rawEvents(end))
			mustAppend(t, store, "t", together, rawEvents(started(together)))
			mustAppend(t, store, "t", together, rawEvents(token(1), noEnd))
			mustAppend(t, store, "t", together, rawEvents(token(1), noEnd, end))
		}
	}
	runs := must.Have(store.Runs(context.Background(), "t"))(t)
	for _, run := range runs {
		if run.Status != pgagui.Finished {
			t.Errorf("run %s is %s", run.ID, run.Status)
		}
	}
	mustVerify(t, store, "t")
}

func TestARunWithoutParentFollowsTheHead(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "a", rawEvents(started("a"), finished))
	mustAppend(t, store, "t", "b", rawEvents(started("b"), failed))
	mustAppend(t, store, "t", "c", rawEvents(`{"type":"RUN_STARTED","parentRunId":null}`, finished))
	mustAppend(t, store, "t", "d", rawEvents(startedFrom("d", "a"), finished))
	mustAppend(t, store, "t", "e", rawEvents(startedFrom("e", ""), finished))
	lineage, err := store.Lineage(context.Background(), pgagui.RunRef{ThreadID: "t", RunID: "c"})
	must.Do(t, err)
	if got := runIDs(lineage); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("lineage of c is %s", got)
	}
	lineage, err = store.Lineage(context.Background(), pgagui.RunRef{ThreadID: "t"})
	must.Do(t, err)
	if got := runIDs(lineage); !slices.Equal(got, []string{"a", "d", "e"}) {
		t.Errorf("lineage of the head is %s", got)
	}
}

func TestScopesDoNotMeet(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ann, bob := store.InScope("ann"), store.InScope("bob")
	mustAppend(t, ann, "t", "r", rawEvents(started("r"), token(1), finished))
	mustAppend(t, bob, "t", "r", rawEvents(started("r"), finished))
	if got := len(payloads(t, ann, "t", "r")); got != 3 {
		t.Errorf("ann's thread has %d events, want 3", got)
	}
	if got := len(payloads(t, bob, "t", "r")); got != 2 {
		t.Errorf("bob's thread has %d events, want 2", got)
	}
	if _, err := store.Head(context.Background(), "t"); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("the thread without a scope: error %v, want unknown thread", err)
	}
	page, err := ann.Threads(context.Background(), pgagui.ThreadsOptions{})
	if err != nil || len(page.Threads) != 1 || page.Threads[0].ID != "t" {
		t.Errorf("threads of ann: %v, %v", page, err)
	}
}

func TestIdsMayBeAnyText(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	for _, id := range []string{`back\slash`, `\u0041`, `quote"`, "new\nline", "😀", "'; drop table agui.batch; --", `\\x00`} {
		quoted := must.Have(json.Marshal(id))(t)
		mustAppend(t, store, id, id, rawEvents(fmt.Sprintf(`{"type":"RUN_STARTED","runId":%s}`, quoted), finished))
		mustAppend(t, store, id, "next", rawEvents(fmt.Sprintf(`{"type":"RUN_STARTED","parentRunId":%s}`, quoted), finished))
		lineage := must.Have(store.Lineage(context.Background(), pgagui.RunRef{ThreadID: id}))(t)
		if len(lineage) != 2 || lineage[0].ID != id {
			t.Errorf("id %q: lineage %+v", id, lineage)
		}
		mustVerify(t, store, id)
	}
}

func TestTheLogRefusesChanges(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustAppend(t, store, "t", "r", rawEvents(started("r"), finished), pgagui.AppendOptions{Input: json.RawMessage(`{}`)})
	for _, statement := range []string{
		`update agui.batch set n = n`,
		`delete from agui.batch`,
		`truncate agui.batch`,
		`update agui.run set run_id = 'x'`,
		`update agui.run set parent_no = null`,
		`delete from agui.run`,
		`truncate agui.run cascade`,
		`update agui.thread set thread_id = 'x'`,
		`delete from agui.thread`,
		`truncate agui.thread cascade`,
		`update agui.run_input set input = '[]'`,
		`delete from agui.run_input`,
		`truncate agui.run_input`,
		`update agui.run set parent_given = true`,
	} {
		_, err := pool.Exec(context.Background(), statement)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "UI010" || !strings.Contains(refused.Message, "append-only") {
			t.Errorf("%s: error %v, want UI010", statement, err)
		}
	}
	mustVerify(t, store, "t")
}

// A run whose writer fell silent is closed when the next one begins, with an end for whatever it left open.
func TestAStaleRunIsClosedByTheNext(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "t", "stale", rawEvents(
		started("stale"),
		`{"type":"STEP_STARTED","stepName":"plan","subagentRunId":"s"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"closed"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"closed"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m\u0000"}`,
		`{"type":"REASONING_START","messageId":"think"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"think"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"call","toolCallName":"f"}`,
	))
	tx := testdb.Begin(t, pool)
	defer tx.Rollback(ctx)
	testdb.Exec(t, tx, `select agui.set_setting('lease', '0')`)
	mustAppend(t, store.WithTx(tx), "t", "next", rawEvents(started("next")))
	must.Do(t, tx.Commit(ctx))
	got := payloads(t, store, "t", "stale")[8:]
	want := []string{
		`{"type":"TOOL_CALL_END","toolCallId":"call"}`,
		`{"type":"REASONING_MESSAGE_END","messageId":"think"}`,
		`{"type":"REASONING_END","messageId":"think"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m\u0000"}`,
		`{"type":"STEP_FINISHED","stepName":"plan","subagentRunId":"s"}`,
	}
	if len(got) != len(want)+1 || !slices.Equal(got[:len(want)], want) || !strings.HasPrefix(got[len(want)], `{"type":"RUN_ERROR","message":"The run was cut off`) {
		t.Errorf("the stale run was closed with %s", strings.Join(got, "\n"))
	}
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "stale"}, rawEvents(token(1)), pgagui.AppendOptions{}); !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Errorf("the writer that comes back late: error %v, want %v", err, pgagui.ErrRunCutOff)
	}
	mustVerify(t, store, "t")
}

func runIDs(runs []pgagui.Run) []string {
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = run.ID
	}
	return ids
}

func TestAppendManyAnswersEachCallAndCanBeRetried(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "taken", "r1", rawEvents(started("r1")))
	calls := []pgagui.AppendCall{
		{Run: pgagui.RunRef{ThreadID: "a", RunID: "r1"}, Events: rawEvents(started("r1"), token(1)), Input: json.RawMessage(`{"messages":[]}`)},
		{Run: pgagui.RunRef{ThreadID: "b", RunID: "r1"}, Events: rawEvents(started("r1"), finished)},
		{Run: pgagui.RunRef{ThreadID: "taken", RunID: "r2"}, Events: rawEvents(started("r2"))},
		{Run: pgagui.RunRef{ThreadID: "c", RunID: "r1"}, Events: rawEvents(`{"type":`)},
		{Run: pgagui.RunRef{ThreadID: "b", RunID: "r2"}, Events: rawEvents(started("r2"), finished), ParentRunID: "r1"},
		{Run: pgagui.RunRef{ThreadID: "b", RunID: "r3"}, Events: rawEvents(started("r3"), finished), NoParent: true},
		{Run: pgagui.RunRef{ThreadID: "a", RunID: "r1"}, Events: rawEvents(token(2)), AfterSeq: 2},
	}
	want := []struct {
		seq int64
		err error
	}{{2, nil}, {2, nil}, {0, pgagui.ErrRunInProgress}, {0, pgagui.ErrInvalidEvents}, {4, nil}, {6, nil}, {3, nil}}
	for range 2 { // the second time as a writer that lost the answer
		results, err := store.AppendMany(t.Context(), calls, pgagui.AppendManyOptions{})
		must.Do(t, err)
		for i, result := range results {
			if result.LastSeq != want[i].seq || !errors.Is(result.Err, want[i].err) {
				t.Errorf("call %d: seq %d, error %v, want %v", i, result.LastSeq, result.Err, want[i])
			}
		}
	}
	if branches, err := store.Branches(t.Context(), "b"); err != nil || len(branches) != 2 {
		t.Errorf("branches %v, %v, want 2", branches, err)
	}
	for _, thread := range []string{"a", "b"} {
		mustVerify(t, store, thread)
	}
	if results, err := store.AppendMany(t.Context(), nil, pgagui.AppendManyOptions{}); err != nil || len(results) != 0 {
		t.Errorf("no calls: %v, %v", results, err)
	}
	if _, err := store.AppendMany(t.Context(), make([]pgagui.AppendCall, 1001), pgagui.AppendManyOptions{}); !errors.Is(err, pgagui.ErrLimitExceeded) {
		t.Errorf("1,001 calls: %v, want ErrLimitExceeded", err)
	}
}
