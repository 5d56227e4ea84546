package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func after(seq int64, more ...pgagui.AppendOptions) pgagui.AppendOptions {
	return merged(append(more, afterSeq(seq))...)
}

func statusOf(t testing.TB, store *pgagui.Store, threadID, runID string) *pgagui.RunStatus {
	t.Helper()
	status := must.Have(store.Status(context.Background(), pgagui.RunRef{ThreadID: threadID, RunID: runID}))(t)
	return status
}

// wantProblems checks what verify says of a thread, as "severity run: problem".
func wantProblems(t testing.TB, store *pgagui.Store, threadID string, want ...string) {
	t.Helper()
	problems := must.Have(store.Maintenance().Verify(context.Background(), threadID))(t)
	var got []string
	for _, problem := range problems {
		got = append(got, fmt.Sprintf("%s %s: %s", problem.Severity, problem.RunID, problem.Problem))
	}
	if !slices.Equal(got, want) {
		t.Errorf("verify says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEventsAfterTheEnd(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished)) // 1, 2
	mustAppend(t, store, "t", "r", rawEvents(started("r"), finished))       // 3, 4
	mustAppend(t, store, "t", "sibling", rawEvents(startedFrom("sibling", "root")), pgagui.AppendOptions{Parallel: true})
	for _, upkeep := range []string{`call agui.compact()`, `call agui.repack(older_than => '0')`} {
		testdb.Exec(t, pool, upkeep)
	}

	// Only a writer that knows of the end goes on.
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(1)), pgagui.AppendOptions{}); !errors.Is(err, pgagui.ErrRunEnded) {
		t.Errorf("without after_seq: %v", err)
	}
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(1)), after(3)); !errors.Is(err, pgagui.ErrConflictingRepeat) {
		t.Errorf("by a writer that does not know of the end: %v", err)
	}
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(1)), after(9)); !errors.Is(err, pgagui.ErrLogRewound) {
		t.Errorf("by a writer that knows of more: %v", err)
	}
	if seq := mustAppend(t, store, "t", "r", rawEvents(finished, token(1)), after(3)); seq != 6 {
		t.Errorf("the end once more, and an event: seq %d, want 6", seq)
	}
	var isCleared bool
	err := pool.QueryRow(ctx, `
		select n is null and log_bytes is null and repacked_at is null and status = 'finished' and last_seq = 6
			and ended_at = (select max(recorded_at) from agui.event where seq = 6)
		from agui.run where run_id = 'r'`).Scan(&isCleared)
	if err != nil || !isCleared {
		t.Errorf("the row of the run is not as it should be (%v)", err)
	}
	mustAppend(t, store, "t", "r", rawEvents(started("r"), failed), after(6))
	if status := statusOf(t, store, "t", "r"); status.Status != pgagui.Failed || status.LastSeq != 8 || !status.StopRequestedAt.IsZero() {
		t.Errorf("after RUN_ERROR the run is %+v", status)
	}
	mustAppend(t, store, "t", "r", rawEvents(token(2), finished, token(3)), after(8))
	if status := statusOf(t, store, "t", "r"); status.Status != pgagui.Failed || status.LastSeq != 11 {
		t.Errorf("after a RUN_FINISHED behind RUN_ERROR the run is %+v", status)
	}
	// The run has no lease, and the head is the same.
	if head, err := store.Head(ctx, "t"); err != nil || head != "sibling" {
		t.Errorf("the head is %q (%v)", head, err)
	}
	mustAppend(t, store, "t", "sibling", rawEvents(finished))
	mustAppend(t, store, "t", "child", rawEvents(startedFrom("child", "r"), finished))
	_, err = store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(4)), after(11))
	if !errors.Is(err, pgagui.ErrRunEnded) || !strings.Contains(err.Error(), `run "child" continues from it`) {
		t.Errorf("once a run went on from it: %v", err)
	}
	if seq := mustAppend(t, store, "t", "r", rawEvents(finished, token(3)), after(9)); seq != 11 {
		t.Errorf("a repeat: seq %d, want 11", seq)
	}
	wantProblems(t, store, "t",
		`note r: the run has a second RUN_STARTED, at seq 7`,
		`note r: the run goes on after the RUN_FINISHED at seq 4 that ended it, to seq 11`)

	// In the call that ends a run, anything goes.
	mustAppend(t, store, "once", "r", rawEvents(token(1), started("r"), finished, failed, token(2), started("r")), after(0))
	if status := statusOf(t, store, "once", "r"); status.Status != pgagui.Failed || status.LastSeq != 6 {
		t.Errorf("the run is %+v", status)
	}
	mustAppend(t, store, "twice", "r", rawEvents(started("r"), started("r"), finished))
	wantProblems(t, store, "once",
		`note r: the run does not begin with RUN_STARTED`,
		`note r: the run has a second RUN_STARTED, at seq 6`,
		`note r: the run goes on after the RUN_ERROR at seq 4 that ended it, to seq 6`)

	// A run that was cut off stays so.
	mustAppend(t, store, "gone", "r", rawEvents(started("r"), token(1)), after(0))
	var last int64
	for range 2 { // the second time as a caller that lost the answer
		if last, err = store.Abandon(ctx, pgagui.RunRef{ThreadID: "gone", RunID: "r"}, pgagui.AbandonOptions{Reason: "gone"}); err != nil || last != 3 {
			t.Fatalf("abandon: seq %d, error %v, want 3", last, err)
		}
	}
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "gone", RunID: "r"}, rawEvents(token(2)), after(last)); !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Errorf("after the run was cut off: %v", err)
	}
}

func TestARunMayBeginWithAnyEvent(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "t", "before", rawEvents(started("before"), finished))
	for _, try := range []struct {
		options pgagui.AppendOptions
		want    error
	}{
		{pgagui.AppendOptions{}, pgagui.ErrUnknownRun},
		{after(7), pgagui.ErrLogRewound},
		{after(0, pgagui.AppendOptions{Strict: true}), pgagui.ErrUnknownRun},
	} {
		if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(1)), try.options); !errors.Is(err, try.want) {
			t.Errorf("%v, want %v", err, try.want)
		}
	}
	mustAppend(t, store, "t", "r", rawEvents(token(1)), after(0))
	mustAppend(t, store, "t", "r", rawEvents(token(1), startedFrom("r", "nobody"), token(2)), after(0))
	mustAppend(t, store, "t", "r", rawEvents(started("r"), finished), after(5))
	lineage, err := store.Lineage(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"})
	if err != nil || !slices.Equal(runIDs(lineage), []string{"before", "r"}) {
		t.Errorf("the lineage is %q (%v)", runIDs(lineage), err)
	}
	wantProblems(t, store, "t",
		`note r: the run does not begin with RUN_STARTED`,
		`note r: the run has a second RUN_STARTED, at seq 6`,
		`note r: the RUN_STARTED at seq 4 names the parent "nobody", the run follows "before"`)
}

func inputOf(t testing.TB, pool *pgxpool.Pool, threadID string) []string {
	t.Helper()
	return testdb.Ask[[]string](t, pool, `
		select array(select input::text from agui.input where thread_key = agui.thread_key('', $1) order by run_no)`, threadID)
}

func TestTheInputComesBesideTheEvents(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	const input = "{\"threadId\" : \"t\",\n\t\"messages\":[{\"id\":\"u\",\"role\":\"user\",\"content\":\"\\u0000 \\ud83d hi\"}],\"state\":{\"n\":1.0},\"state\":{\"n\":2.50}}"
	other := pgagui.AppendOptions{Input: json.RawMessage(`{"threadId":"t"}`)}
	given := pgagui.AppendOptions{Input: json.RawMessage(input)}
	const answer = `{"type":"TEXT_MESSAGE_START","messageId":"a"}`
	mustAppend(t, store, "t", "r", rawEvents(started("r"), answer), after(0, given))
	if got := inputOf(t, pool, "t"); !slices.Equal(got, []string{input}) {
		t.Errorf("the input is kept as %q", got)
	}
	messages, err := store.Messages(ctx, "t", pgagui.At{})
	if err != nil || len(messages) != 2 || messages[0].ID != "u" || messages[1].ID != "a" {
		t.Errorf("messages are %s (%v)", messages, err)
	}
	if state, err := store.State(ctx, "t", pgagui.At{}); err != nil || string(state) != `{"n":2.50}` {
		t.Errorf("the state is %s (%v)", state, err)
	}
	if got := payloads(t, store, "t", "r"); len(got) != 2 || got[0] != started("r") {
		t.Errorf("the log has %s", got)
	}

	for _, try := range []struct {
		name    string
		events  []json.RawMessage
		options pgagui.AppendOptions
		want    error
		says    string
	}{
		{"repeat", rawEvents(started("r"), answer), after(0, given), nil, ""},
		{"a smaller repeat", rawEvents(started("r")), after(0, given), nil, ""},
		{"repeat with another", rawEvents(started("r"), answer), after(0, other), pgagui.ErrConflictingRepeat, "input of the call differs"},
		{"repeat with other white space", rawEvents(started("r"), answer), after(0, pgagui.AppendOptions{Input: json.RawMessage(input + " ")}), pgagui.ErrConflictingRepeat, "input of the call differs"},
		{"repeat without", rawEvents(started("r"), answer), after(0), pgagui.ErrConflictingRepeat, "the call brings none"},
		{"the next call", rawEvents(token(1)), after(2, given), pgagui.ErrInvalidEvents, "with the call that begins a run"},
		{"the next call, not knowing", rawEvents(token(1)), given, pgagui.ErrInvalidEvents, "with the call that begins a run"},
		{"once more, not knowing", rawEvents(started("r")), given, pgagui.ErrRunIDInUse, "exists already"},
		{"repeat with more", rawEvents(started("r"), answer, finished), after(0, given), nil, ""},
	} {
		_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, try.events, try.options)
		if !errors.Is(err, try.want) || err != nil && !strings.Contains(err.Error(), try.says) {
			t.Errorf("%s: %v, want %v", try.name, err, try.want)
		}
	}
	mustAppend(t, store, "t", "without", rawEvents(started("without"), finished), after(0))
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "without"}, rawEvents(started("without")), after(0, given)); !errors.Is(err, pgagui.ErrConflictingRepeat) {
		t.Errorf("repeat with an input, of a run without: %v", err)
	}

	large := json.RawMessage(`{"x":"` + strings.Repeat("x", 33<<20) + `"}`)
	for name, try := range map[string]struct {
		input, event string
		want         error
	}{
		"no object": {`[]`, started("new"), pgagui.ErrInvalidEvents},
		"null":      {`null`, started("new"), pgagui.ErrInvalidEvents},
		"no JSON":   {`{`, started("new"), pgagui.ErrInvalidEvents},
		"nothing":   {` `, started("new"), pgagui.ErrInvalidEvents},
		"too deep":  {`{"x":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`, started("new"), pgagui.ErrLimitExceeded},
		"too large": {string(large), `{"type":"RUN_STARTED","x":"` + strings.Repeat("x", 33<<20) + `"}`, pgagui.ErrLimitExceeded},
	} {
		_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "new"}, rawEvents(try.event), pgagui.AppendOptions{Input: json.RawMessage(try.input)})
		if !errors.Is(err, try.want) {
			t.Errorf("%s: %v, want %v", name, err, try.want)
		}
	}
	if got := inputOf(t, pool, "t"); len(got) != 1 {
		t.Errorf("there are %d inputs", len(got))
	}

	// What RUN_STARTED carries counts alone; what is not an object counts as nothing.
	mustAppend(t, store, "carried", "r", rawEvents(`{"type":"RUN_STARTED","input":{"state":"own"}}`, finished), given)
	if state, err := store.State(ctx, "carried", pgagui.At{}); err != nil || string(state) != `"own"` {
		t.Errorf("the state is %s (%v)", state, err)
	}
	wantProblems(t, store, "carried", `note r: the RUN_STARTED at seq 1 carries another input than is stored beside the events: its own counts`)
	mustAppend(t, store, "null", "r", rawEvents(`{"type":"RUN_STARTED","input":null}`, finished), given)
	mustAppend(t, store, "odd", "r", rawEvents(`{"type":"RUN_STARTED","input":5}`, finished), given)
	for _, thread := range []string{"null", "odd"} {
		if state, err := store.State(ctx, thread, pgagui.At{}); err != nil || string(state) != `{"n":2.50}` {
			t.Errorf("%s: the state is %s (%v)", thread, state, err)
		}
		mustVerify(t, store, thread)
	}

	// Nothing of it is left when the thread is erased.
	must.Have(store.Erase(ctx, "t", pgagui.EraseOptions{Reason: "asked for"}))(t)
	if got := inputOf(t, pool, "t"); len(got) > 0 {
		t.Errorf("the erased thread has the inputs %s", got)
	}
}

func TestTheParentComesBesideTheEvents(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "t", "a", rawEvents(started("a"), finished))
	mustAppend(t, store, "t", `b\`, rawEvents(started(`b\`), finished))
	for _, run := range []struct {
		id      string
		opening string
		option  pgagui.AppendOptions
		want    string
	}{
		{"given", started("given"), pgagui.AppendOptions{ParentRunID: "a"}, "a"},
		{"with a backslash", started("with a backslash"), pgagui.AppendOptions{ParentRunID: `b\`}, `b\`},
		{"a second root", started("a second root"), pgagui.AppendOptions{NoParent: true}, ""},
		{"wins", startedFrom("wins", "a"), pgagui.AppendOptions{ParentRunID: `b\`}, `b\`},
		{"wins over an unknown one", startedFrom("wins over an unknown one", "unknown"), pgagui.AppendOptions{NoParent: true}, ""},
		{"empty", startedFrom("empty", "a"), pgagui.AppendOptions{ParentRunID: ""}, "a"},
		{"the same", startedFrom("the same", "a"), pgagui.AppendOptions{ParentRunID: "a"}, "a"},
		{"by an error", failed, pgagui.AppendOptions{ParentRunID: "a"}, "a"},
	} {
		mustAppend(t, store, "t", run.id, rawEvents(run.opening), afterSeq(0), run.option)
		mustAppend(t, store, "t", run.id, rawEvents(run.opening, finished), afterSeq(0), run.option)
		if status := statusOf(t, store, "t", run.id); status.ParentRunID != run.want {
			t.Errorf("%s: the parent is %q, want %q", run.id, status.ParentRunID, run.want)
		}
	}
	for _, try := range []struct {
		run    string
		option pgagui.AppendOptions
		want   error
		says   string
	}{
		{"new", pgagui.AppendOptions{ParentRunID: "unknown"}, pgagui.ErrUnknownParent, `parent "unknown"`},
		{"new", pgagui.AppendOptions{ParentRunID: "new"}, pgagui.ErrUnknownParent, `parent "new"`},
		{"new", pgagui.AppendOptions{ParentRunID: `b\u005c`}, pgagui.ErrUnknownParent, `parent`},
		{"given", pgagui.AppendOptions{ParentRunID: `b\`}, pgagui.ErrConflictingRepeat, `names "b\" as its parent, it was begun with "a"`},
		{"given", pgagui.AppendOptions{NoParent: true}, pgagui.ErrConflictingRepeat, `names no run as its parent, it was begun with "a"`},
		{"a second root", pgagui.AppendOptions{ParentRunID: "a"}, pgagui.ErrConflictingRepeat, `names "a" as its parent, it was begun with none`},
		{"given", pgagui.AppendOptions{ParentRunID: "a"}, nil, ""},
		{"empty", pgagui.AppendOptions{ParentRunID: "a"}, nil, ""}, // no contradiction
	} {
		opening := started(try.run)
		if try.run == "empty" {
			opening = startedFrom("empty", "a")
		}
		_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: try.run}, rawEvents(opening), after(0, try.option))
		if !errors.Is(err, try.want) || err != nil && !strings.Contains(err.Error(), try.says) {
			t.Errorf("%s: %v, want %v that says %s", try.run, err, try.want, try.says)
		}
	}
	mustAppend(t, store, "t", "open", rawEvents(started("open")))
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "new"}, rawEvents(started("new")), pgagui.AppendOptions{Parallel: true, ParentRunID: "open"}); !errors.Is(err, pgagui.ErrParentInProgress) {
		t.Errorf("parent in progress: %v", err)
	}
	wantProblems(t, store, "t",
		`note wins: the RUN_STARTED at seq 11 names the parent "a", the run follows "b\"`,
		`note wins over an unknown one: the RUN_STARTED at seq 13 names the parent "unknown", the run is a root`,
		`note by an error: the run goes on after the RUN_ERROR at seq 19 that ended it, to seq 20`)
}

func TestImportedEventsHaveTheirTimes(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	at := func(milliseconds int64) string {
		return fmt.Sprintf(`{"type":"CUSTOM","timestamp":%d}`, milliseconds)
	}
	const begin = 1_700_000_000_000
	hour := int64(time.Hour / time.Millisecond)
	future := time.Now().UnixMilli() + hour
	all := []json.RawMessage{}
	all = append(all, rawEvents(
		`{"type":"RUN_STARTED","runId":"r"}`, // no time before it: with the next
		at(begin), at(begin+1), `{"type":"CUSTOM"}`, at(begin+2), at(begin-5000),
		`{"type":"CUSTOM","timestamp":"2023-11-14T22:13:21.5Z"}`,
		at(begin+2*hour), `{"type":"CUSTOM","timestamp":"soon"}`, at(begin+10*hour), finished)...)
	want := []int64{begin, begin, begin + 1, begin + 1, begin + 2, begin + 2, begin + 1500, begin + 2*hour, begin + 2*hour, begin + 10*hour, begin + 10*hour}
	input := pgagui.AppendOptions{Input: json.RawMessage(`{"messages":[]}`)}
	// In one call, in several, and repeated.
	for size := 1; size <= len(all); size += 3 {
		thread := fmt.Sprint("t", size)
		seq := int64(0)
		for from := 0; from < len(all); from += size {
			for range 2 {
				options := after(seq)
				if seq == 0 {
					options = after(seq, input)
				}
				options.TimesFromEvents = true
				next := must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, all[from:min(from+size, len(all))], options))(t)
				if from+size >= len(all) || next != seq+int64(size) {
					if next != int64(len(all)) {
						t.Fatalf("%s: seq %d", thread, next)
					}
				}
				if status := statusOf(t, store, thread, "r"); status.Status == pgagui.Running && status.Stale {
					t.Errorf("%s: the run counts as stale", thread)
				}
			}
			seq += int64(size)
		}
		var got []int64
		for event, err := range store.Events(ctx, thread, pgagui.EventsOptions{RunID: "r"}) {
			must.Do(t, err)
			got = append(got, event.RecordedAt.UnixMilli())
		}
		if size == 1 {
			want[0] = got[0] // alone in its call it has no time
			if got[0] < time.Now().Add(-time.Minute).UnixMilli() {
				t.Errorf("%s: the first event is of %v", thread, time.UnixMilli(got[0]))
			}
			continue
		}
		want[0] = begin
		if !slices.Equal(got, want) {
			t.Errorf("%s: the times are\n%d\nwant\n%d", thread, got, want)
		}
		status := statusOf(t, store, thread, "r")
		if status.StartedAt.UnixMilli() != begin || status.EndedAt.UnixMilli() != begin+10*hour {
			t.Errorf("%s: the run lasted from %v to %v", thread, status.StartedAt, status.EndedAt)
		}
		mustVerify(t, store, thread)
	}

	// Times never fall along the log, and are never in the future.
	mustAppend(t, store, "now", "r1", rawEvents(started("r1"), finished))
	now := statusOf(t, store, "now", "r1").EndedAt
	mustAppend(t, store, "now", "r2", rawEvents(started("r2"), at(begin), at(future), at(begin+1)), pgagui.AppendOptions{TimesFromEvents: true})
	for event, err := range store.Events(ctx, "now", pgagui.EventsOptions{RunID: "r2"}) {
		if err != nil || event.RecordedAt.Before(now) || event.RecordedAt.After(time.Now().Add(time.Second)) {
			t.Errorf("event %d is of %v (%v)", event.Seq, event.RecordedAt, err)
		}
	}
	mustVerify(t, store, "now")
	if created := testdb.Ask[time.Time](t, pool, `select created_at from agui.thread where thread_id = 't4'`); created.UnixMilli() != begin {
		t.Errorf("the imported thread is of %v", created)
	}

	imported := func(afterSeq int64) pgagui.AppendOptions {
		return after(afterSeq, pgagui.AppendOptions{TimesFromEvents: true})
	}
	// A run of long ago that has not ended counts as alive: its thread is not to be closed behind it.
	mustAppend(t, store, "open", "r", rawEvents(at(begin), at(begin+1)), imported(0))
	if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "open", RunID: "next"}, rawEvents(started("next")), pgagui.AppendOptions{}); !errors.Is(err, pgagui.ErrRunInProgress) {
		t.Errorf("a run beside the imported one: %v", err)
	}
	mustAppend(t, store, "open", "r", rawEvents(at(begin+2*hour), finished), imported(2))
	if status := statusOf(t, store, "open", "r"); status.EndedAt.UnixMilli() != begin+2*hour {
		t.Errorf("the run ended at %v", status.EndedAt)
	}
	wantProblems(t, store, "open", `note r: the run does not begin with RUN_STARTED`)
}

func TestARecordingBringsInputAndParent(t *testing.T) {
	bothWays(t, aRecordingBringsInputAndParent)
}

func aRecordingBringsInputAndParent(t *testing.T, address string) {
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, nil)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Linger: 20 * time.Millisecond})
	mustAppend(t, store, "t", "a", rawEvents(started("a"), finished))
	mustAppend(t, store, "t", "b", rawEvents(started("b"), finished))
	input := json.RawMessage(`{ "messages": [{"id":"u","role":"user","content":"hi"}] }`)
	options := map[string]pgagui.BeginOptions{
		"input":  {Input: input, ParentRunID: "b", Parallel: true},
		"parent": {ParentRunID: "a", Parallel: true},
		"root":   {NoParent: true, Input: input, Parallel: true},
		"plain":  {Parallel: true, ParentRunID: "b"},
	}
	var recordings []*pgagui.Recording
	for run, options := range options { // all of them in one call
		recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: run}, options)
		mustRecord(t, recording, started(run), token(1))
		recordings = append(recordings, recording)
	}
	// And one that breaks the protocol.
	other := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "other", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, other, token(0), started("r"), finished, token(1))
	mustFlush(t, other)
	mustRecord(t, other, finished)
	mustFlush(t, other)
	mustRecord(t, other, started("r"), token(2))
	must.Do(t, other.Close(t.Context()))
	if got := payloads(t, store, "other", "r"); len(got) != 7 {
		t.Errorf("the other run has the events %s", got)
	}
	for _, recording := range recordings {
		mustFlush(t, recording)
		mustRecord(t, recording, token(2), finished)
		must.Do(t, recording.Close(t.Context()))
	}
	if got := inputOf(t, pool, "t"); !slices.Equal(got, []string{string(input), string(input)}) {
		t.Errorf("the inputs are %q", got)
	}
	for run, want := range map[string]string{"parent": "a", "root": "", "plain": "b"} {
		if status := statusOf(t, store, "t", run); status.ParentRunID != want {
			t.Errorf("%s: the parent is %q, want %q", run, status.ParentRunID, want)
		}
	}
	messages, err := store.Messages(t.Context(), "t", pgagui.At{RunID: "root"})
	if err != nil || len(messages) != 1 || messages[0].ID != "u" {
		t.Errorf("messages are %s (%v)", messages, err)
	}

	odd := pgagui.RunRef{ThreadID: "t", RunID: "odd"}
	if _, err := recorder.Begin(t.Context(), odd, pgagui.BeginOptions{Input: json.RawMessage(`"x`)}); !errors.Is(err, pgagui.ErrInvalidEvents) {
		t.Errorf("an input that is no JSON: %v", err)
	}
}

// A follower ends when the run has ended by its row, with all that the log has then, whatever its events say.
func TestFollowersOfRunsThatGoOnAfterTheirEnd(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	store := pgagui.New(pool, &pgagui.Config{PollInterval: time.Millisecond})
	mustAppend(t, store, "t", "r", rawEvents(started("r")))
	type result struct {
		seen []pgagui.Event
		err  error
	}
	results := make(chan result, 3)
	for _, options := range []pgagui.FollowOptions{{}, {RunID: "r"}, {RunID: "r", Stay: true}} {
		begun := make(chan struct{})
		go func() {
			var r result
			for event, err := range store.Follow(t.Context(), "t", options) {
				if len(r.seen) == 0 {
					close(begun)
				}
				if r.err = err; err == nil {
					r.seen = append(r.seen, event)
				}
			}
			results <- r
		}()
		<-begun
	}
	mustAppend(t, store, "t", "r", rawEvents(finished, started("r"), token(1)), afterSeq(1))
	for range 3 {
		select {
		case r := <-results:
			if r.err != nil {
				t.Error(r.err)
			}
			wantSeqs(t, "follower", r.seen, 1, 4)
		case <-time.After(20 * time.Second):
			t.Fatal("a follower does not end")
		}
	}

	// One that stays sees what comes later, too; and a run that begins with any event is followed to its end.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var seen []pgagui.Event
	for event, err := range store.Follow(ctx, "t", pgagui.FollowOptions{Stay: true}) {
		if errors.Is(err, context.Canceled) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, event)
		switch event.Seq {
		case 4:
			mustAppend(t, store, "t", "r", rawEvents(started("r"), token(2)), afterSeq(4))
		case 6:
			mustAppend(t, store, "t", "next", rawEvents(token(3)), afterSeq(0))
		case 7:
			mustAppend(t, store, "t", "next", rawEvents(finished, token(4)), afterSeq(7))
		case 9:
			stop()
		}
	}
	wantSeqs(t, "staying follower", seen, 1, 9)
	again := must.Have(follow(t.Context(), store, "t", pgagui.FollowOptions{RunID: "next", NoLineage: true}))(t)
	wantSeqs(t, "late follower", again, 7, 9)
}
