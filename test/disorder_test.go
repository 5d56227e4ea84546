package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

// A disorderlyRun is a run of an agent that breaks the protocol: it continues after its end, begins a second time, or begins with
// another event than RUN_STARTED. Its input may come beside the events.
type disorderlyRun struct {
	id, parent string // parent is empty for a root
	events     []json.RawMessage
	input      json.RawMessage

	// What its writer sends, and what the database has answered.
	parentIsGiven bool
	sent          int   // events whose seqs it knows
	seq           int64 // of the last of these

	// What the log holds.
	stored int
	seqs   []int64
}

// disorderlyRuns makes runs of a stream. RUN_FINISHED and RUN_ERROR stay where they are in it, RUN_STARTED names its run alone.
func disorderlyRuns(random *rand.Rand, stream []json.RawMessage) (runs []*disorderlyRun) {
	var inputs []json.RawMessage
	stream = slices.DeleteFunc(stream, func(event json.RawMessage) bool { return compaction.EventType(event) == "" })
	for i, event := range stream {
		if compaction.EventType(event) != "RUN_STARTED" {
			continue
		}
		stream[i] = json.RawMessage(`{"type":"RUN_STARTED"}`)
		for name, value := range compaction.Members(event) {
			if name == "input" {
				if value[0] == '{' {
					inputs = append(inputs, slices.Clone(value))
				}
				if random.IntN(2) == 0 {
					stream[i] = json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","input":%s}`, value))
				}
			}
		}
	}
	inputs = append(inputs,
		json.RawMessage(`{"messages":[{"id":"m1","role":"user","content":"from beside"},"plain",{"role":"user","content":"no id"}],"state":{"beside":1}}`),
		json.RawMessage("{\"threadId\":\"t\",\n \"messages\": [ {\"id\":\"m\\u0031\",\"role\":\"user\",\"content\":\"\\u0000 \\ud83d\"} ]}"),
		json.RawMessage(`{"messages":5,"state":{"odd":1}}`), json.RawMessage(`{}`), json.RawMessage(`{"state":null}`),
	)
	for len(stream) > 0 {
		run := &disorderlyRun{id: fmt.Sprint("run ", len(runs)+1)}
		n := min(1+random.IntN(15), len(stream))
		run.events = slices.Clone(stream[:n])
		stream = stream[n:]
		if random.IntN(3) > 0 {
			run.events = slices.Insert(run.events, random.IntN(2)*random.IntN(2)*random.IntN(len(run.events)), json.RawMessage(`{"type":"RUN_STARTED"}`))
		}
		for range 1 + random.IntN(2) {
			end := json.RawMessage(`{"type":"RUN_FINISHED"}`)
			if random.IntN(4) == 0 {
				end = json.RawMessage(`{"type":"RUN_ERROR"}`)
			}
			run.events = slices.Insert(run.events, len(run.events)-random.IntN(2)*random.IntN(len(run.events)), end)
		}
		for i, event := range run.events {
			if compaction.EventType(event) == "RUN_STARTED" {
				run.events[i] = bytes.Replace(event, []byte(`"RUN_STARTED"`), fmt.Appendf(nil, `"RUN_STARTED","runId":%q`, run.id), 1)
			}
		}
		if random.IntN(2) == 0 {
			run.input = inputs[random.IntN(len(inputs))]
		}
		if len(runs) > 0 {
			run.parent = runs[len(runs)-1].id
			switch random.IntN(4) {
			case 0:
				run.parent, run.parentIsGiven = runs[random.IntN(len(runs))].id, true
			case 1:
				run.parent, run.parentIsGiven = "", random.IntN(2) == 0
				if !run.parentIsGiven {
					run.parent = runs[len(runs)-1].id
				}
			}
		}
		runs = append(runs, run)
	}
	return runs
}

// normalized are the events of the run as the protocol would have them, as far as their meaning goes: with the input in RUN_STARTED. The
// input of a run that has none comes first, in a RUN_STARTED of its own.
func (r *disorderlyRun) normalized(n int) []json.RawMessage {
	events := slices.Clone(r.events[:n])
	if r.input == nil || n == 0 {
		return events
	}
	for i, event := range events {
		if compaction.EventType(event) != "RUN_STARTED" {
			continue
		}
		if !bytes.Contains(event, []byte(`"input":{`)) {
			events[i] = json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","input":%s}`, r.input))
		}
		return events
	}
	return slices.Insert(events, 0, json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","input":%s}`, r.input)))
}

// write sends the next events of the run, in a call of any size that begins anywhere in what its writer knows to be stored, and may lose the answer.
func (r *disorderlyRun) write(t *testing.T, random *rand.Rand, store *pgagui.Store, thread string, logEnd int64) (newEnd int64) {
	t.Helper()
	from, after := r.sent, r.seq
	if random.IntN(4) == 0 {
		from = random.IntN(r.sent + 1)
		after = 0
		if from > 0 {
			after = r.seqs[from-1]
		}
	}
	to := min(from+1+random.IntN(6), len(r.events))
	options := pgagui.AppendOptions{AfterSeq: new(int64(after)), Parallel: true}
	if from == 0 {
		options.Input = r.input
		if r.parentIsGiven {
			options.ParentRunID, options.NoParent = r.parent, r.parent == ""
		}
	}
	seq, err := store.Append(context.Background(), pgagui.RunRef{ThreadID: thread, RunID: r.id}, r.events[from:to], options)
	if err != nil {
		t.Fatalf("%s, %s, events %d to %d of %d after seq %d: %v", thread, r.id, from, to, len(r.events), after, err)
	}
	for ; r.stored < to; r.stored++ {
		logEnd++
		r.seqs = append(r.seqs, logEnd)
	}
	if seq != r.seqs[to-1] {
		t.Fatalf("%s, %s: the events %d to %d were answered with seq %d, want %d", thread, r.id, from, to, seq, r.seqs[to-1])
	}
	if random.IntN(3) > 0 {
		r.sent, r.seq = to, seq
	}
	return logEnd
}

// meaningAt is what a run means up to a seq, by the reducer in Go.
func meaningAt(t *testing.T, runs map[string]*disorderlyRun, id string, seq int64) meaning {
	t.Helper()
	var lineage []*disorderlyRun
	for run := runs[id]; run != nil; run = runs[run.parent] {
		lineage = append(lineage, run)
	}
	fold := compaction.New()
	for _, run := range slices.Backward(lineage) {
		n := 0
		for n < run.stored && run.seqs[n] <= seq {
			n++
		}
		events := run.normalized(n)
		for i, event := range events {
			if i -= len(events) - n; i >= 0 { // the first may be inserted
				fold.Locate(run.id, run.seqs[i])
			}
			fold.Apply(event)
		}
		must.Do(t, fold.EndRun())
	}
	return meaningOf(t, fold)
}

// isContinued reports whether a run has a child.
func isContinued(runs map[string]*disorderlyRun, id string) bool {
	for _, run := range runs {
		if run.parent == id && run.stored > 0 {
			return true
		}
	}
	return false
}

// The log of such agents is what they said, however their calls were cut and repeated; and all that reads it says what the reducer says of it,
// whatever was compacted, and when.
func TestAgentsThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for i, kind := range kindsOfStreams {
		if isLeftOut(i) {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			for seed := *firstSeed; seed < *firstSeed+1; seed++ {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				stream := compactiontest.Stream(seed<<8+uint64(i), kind.options)
				checkDisorderlyThread(t, random, pool, fmt.Sprint(kind.name, " ", seed), disorderlyRuns(random, stream[:min(len(stream), 80)]))
				if t.Failed() {
					t.Fatalf("-seed %d", seed)
				}
			}
		})
	}
}

// An input that comes without RUN_STARTED ends the parent's streams of chunks, as RUN_STARTED would: replays and compacted exports have no other
// event that could carry it.
func TestAnInputEndsTheChunksOfTheParent(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	var runs []*disorderlyRun
	for n, events := range [][]string{
		{
			`{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"the parent's"}`,
			`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"gone","subagentRunId":"s","delta":"{"}`,
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"c","activityType":"PLAN","content":{}}`,
		},
		{
			`{"type":"TEXT_MESSAGE_CHUNK","delta":" and more"}`,
			`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"gone","subagentRunId":"s","delta":"}"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"the child's"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","delta":" and more"}`,
			`{"type":"RUN_FINISHED"}`,
		},
	} {
		run := &disorderlyRun{id: fmt.Sprint("run ", n+1), events: rawEvents(events...)}
		if n > 0 {
			run.parent = runs[n-1].id
			run.input = json.RawMessage(`{"messages":[{"id":"u","role":"user","content":"from beside"}],"state":{"a":1}}`)
		}
		runs = append(runs, run)
	}
	for seed := range uint64(8) {
		for _, run := range runs {
			run.sent, run.seq, run.stored, run.seqs = 0, 0, 0, nil
		}
		checkDisorderlyThread(t, rand.New(rand.NewPCG(seed, 0)), pool, fmt.Sprint("thread ", seed), runs)
	}
}

// An input counts before the first event of a run without RUN_STARTED, also if that event is read as another one.
func TestAnInputCountsBeforeThinking(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for name, events := range map[string][]json.RawMessage{
		"text": rawEvents(`{"type":"THINKING_TEXT_MESSAGE_START"}`, `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"Hm"}`, `{"type":"RUN_FINISHED"}`),
		"span": rawEvents(`{"type":"THINKING_START"}`, `{"type":"RUN_FINISHED"}`),
	} {
		parent := &disorderlyRun{id: "run 1", events: rawEvents(`{"type":"TEXT_MESSAGE_START","messageId":"a"}`, `{"type":"RUN_FINISHED"}`)}
		child := &disorderlyRun{id: "run 2", parent: parent.id, events: events, input: json.RawMessage(`{"messages":[{"id":"u","role":"user","content":"And?"}]}`)}
		checkDisorderlyThread(t, rand.New(rand.NewPCG(0, 0)), pool, name, []*disorderlyRun{parent, child})
	}
}

func checkDisorderlyThread(t *testing.T, random *rand.Rand, pool *pgxpool.Pool, thread string, all []*disorderlyRun) {
	t.Helper()
	ctx := context.Background()
	store := pgagui.New(pool, nil)
	runs := map[string]*disorderlyRun{}
	var logEnd int64
	check := func(id string) {
		t.Helper()
		at := pgagui.At{RunID: id} // its end, or any point of it
		if random.IntN(2) == 0 {
			at.Seq = max(int64(random.Uint64N(uint64(logEnd)))+1, runs[id].seqs[0])
		}
		restored := must.Have(store.Restore(ctx, thread, at))(t)
		if at.Seq == 0 {
			at.Seq = logEnd
		}
		got := meaning{Messages: restored.Messages, State: restored.State, Interrupts: restored.Interrupts}
		want := meaningAt(t, runs, id, at.Seq)
		if difference := differences(got, want); difference != "" {
			t.Errorf("%s, %s at seq %d: %s", thread, id, at.Seq, difference)
		}
		shape := []compaction.Shape{compaction.SnapshotShape, compaction.StreamShape}[random.IntN(2)]
		attached := must.Have(store.Attach(ctx, thread, pgagui.AttachOptions{At: at, Shape: shape}))(t)
		difference := differences(foldInGo(t, attached.Events), want)
		if difference != "" && shape == compaction.SnapshotShape && isContinued(runs, id) { // a question that is answered is not repeated
			answered := want
			answered.Interrupts = slices.DeleteFunc(slices.Clone(want.Interrupts), func(interrupt json.RawMessage) bool {
				return bytes.Contains(interrupt, []byte(`"source":`))
			})
			difference = differences(foldInGo(t, attached.Events), answered)
		}
		if difference != "" {
			t.Errorf("%s, %s attached to at seq %d in shape %s: %s\n%s", thread, id, at.Seq, shape, difference, lines(attached.Events))
		}
	}
	for _, run := range all {
		runs[run.id] = run
		for run.sent < len(run.events) {
			logEnd = run.write(t, random, store, thread, logEnd)
			switch random.IntN(6) {
			case 0:
				must.Have(jobs.Compact(ctx, pool, jobs.CompactOptions{RunningEvery: 1}))(t)
			case 1:
				testdb.Exec(t, pool, `call agui.compact()`)
			case 2:
				testdb.Exec(t, pool, `call agui.compact_running(1)`)
			case 3:
				testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
			default:
				continue
			}
			check(run.id)
		}
	}
	for name, options := range map[string]jobs.VerifyOptions{"in Go": {}, "in SQL": {InSQL: true}} {
		options.Threads = []string{thread}
		for _, report := range verifyThreads(t, pool, options) {
			for _, problem := range described(report.Problems) {
				t.Errorf("%s: %s", name, problem)
			}
		}
	}
	stored := must.Have(store.Runs(ctx, thread))(t)
	for i, run := range all {
		check(run.id)
		if stored[i].ParentRunID != run.parent || stored[i].LastSeq != run.seqs[len(run.seqs)-1] || stored[i].Status == pgagui.Running {
			t.Errorf("%s, %s, which follows %q, is stored as %+v", thread, run.id, run.parent, stored[i])
		}
		var got []json.RawMessage
		for event, err := range store.Events(ctx, thread, pgagui.EventsOptions{RunID: run.id, NoLineage: true}) {
			must.Do(t, err)
			got = append(got, event.JSON)
		}
		if !slices.EqualFunc(got, run.events, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("%s, %s: the log has\n%s\nwant\n%s", thread, run.id, got, run.events)
		}
	}
	var inputs []string
	for _, run := range all {
		if run.input != nil {
			inputs = append(inputs, string(run.input))
		}
	}
	rows := testdb.List[string](t, pool, `select input::text from agui.input where thread_key = agui.thread_key('', $1) order by run_no`, thread)
	if !slices.Equal(rows, inputs) {
		t.Errorf("%s: the inputs are %q, want %q", thread, rows, inputs)
	}
}

// What a writer appends behind the end of a run while that is being compacted is not lost for compaction, and the writer does not wait for it.
func TestACompactorLeavesToDoWhatIsAppendedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, compact := range map[string]func(ctx context.Context, pool *pgxpool.Pool) error{
		"in Go": func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := jobs.Compact(ctx, pool, jobs.CompactOptions{MaxRuns: 1})
			return err
		},
		"in SQL": func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, `call agui.compact(1)`)
			return err
		},
	} {
		for late, options := range map[string]pgagui.AppendOptions{
			`{"type":"RUN_ERROR","message":"late"}`:                                              {},
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"late"}`:                     {AfterSeq: new(int64(4))},
			`{"type":"STATE_SNAPSHOT","snapshot":"late"}, {"type":"RUN_STARTED"}`:                {AfterSeq: new(int64(4))},
			`{"type":"RUN_STARTED"}, {"type":"RUN_ERROR"}, {"type":"RUN_FINISHED"}`:              {AfterSeq: new(int64(4))},
			`{"type":"RUN_ERROR"}, {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"late"}`: {AfterSeq: new(int64(4))},
		} {
			t.Run(name+" "+late, func(t *testing.T) {
				t.Parallel()
				ctx := context.Background()
				pool := testdb.Pool(t)
				store := pgagui.New(pool, nil)
				if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
					`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"text"}`, `{"type":"RUN_FINISHED"}`), pgagui.AppendOptions{}); err != nil {
					t.Fatal(err)
				}
				// The compactor has folded the run, and waits until it may write. It does not wait for a lock: it would give up soon.
				testdb.Exec(t, pool, `
					create function hold() returns trigger language plpgsql as $$
					begin
						while not pg_try_advisory_xact_lock(28) loop
							perform pg_sleep(0.01);
						end loop;
						return null;
					end $$;
					create trigger hold before insert on agui.message_version execute function hold()`)
				blocker := testdb.Begin(t, pool)
				defer blocker.Rollback(ctx)
				testdb.Exec(t, blocker, `select pg_advisory_xact_lock(28)`)
				done := make(chan error, 1)
				go func() { done <- compact(ctx, pool) }()
				wait.For(t, "the compactor is held", func() bool {
					return testdb.List[string](t, pool, `select count(*)::text from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)[0] == "1"
				})

				var events []json.RawMessage
				must.Do(t, json.Unmarshal([]byte("["+late+"]"), &events))
				timed, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				if _, err := store.Append(timed, pgagui.RunRef{ThreadID: "t", RunID: "r"}, events, options); err != nil {
					t.Fatalf("append while the run is compacted: %v", err)
				}
				must.Do(t, blocker.Commit(ctx))
				must.Do(t, <-done)
				const unmarked = `select count(*)::text from agui.run where n is null and log_bytes is null`
				if got := testdb.List[string](t, pool, unmarked); got[0] != "1" {
					t.Error("the run is marked as compacted, although something was appended to it meanwhile")
				}
				all := append(rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
					`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"text"}`, `{"type":"RUN_FINISHED"}`), events...)
				check := func() {
					t.Helper()
					if problems := described(verifyThreads(t, pool, jobs.VerifyOptions{})[keyOf(t, pool, "t")].Problems); len(problems) > 0 {
						t.Error(problems)
					}
					restored := must.Have(store.Restore(ctx, "t", pgagui.At{}))(t)
					got := meaning{Messages: restored.Messages, State: restored.State, Interrupts: restored.Interrupts}
					if difference := differences(got, foldInGo(t, all)); difference != "" {
						t.Error(difference)
					}
				}
				check()
				must.Do(t, compact(ctx, pool))
				if got := testdb.List[string](t, pool, `select n::text from agui.run where log_bytes is not null`); !slices.Equal(got, []string{fmt.Sprint(len(all))}) {
					t.Errorf("the next compactor counted %s events, want %d", got, len(all))
				}
				check()
			})
		}
	}
}

func rawEvents(texts ...string) []json.RawMessage {
	events := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		events[i] = json.RawMessage(text)
	}
	return events
}

// A TanStack agent ends each model answer with RUN_FINISHED and goes on in the same run, and when it resumes it begins with the
// result of a tool. The log keeps what it said, and all that reads the log follows it.
func TestAnAgentThatGoesOnAfterItsEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const thread = "release-checkout-2.4"
	recording := readRecording(t, filepath.Join("..", "testdata", "recordings", "release-approval.ndjson"))
	appendRecording(t, store, recording)
	appendRecording(t, store, recording) // once more, for the answers were lost
	want := []string{
		"note: run-1: the run goes on after the RUN_FINISHED at seq 15 that ended it, to seq 25",
		"note: run-3: the run does not begin with RUN_STARTED",
		"note: run-5: the run does not begin with RUN_STARTED",
	}
	if got := verifyInSQL(t, pool, thread); !slices.Equal(got, want) {
		t.Errorf("verify says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	client := startOracle(t)
	checkRecording(t, store, recording, client)
	compactInGo(t, pool)
	checkRecording(t, store, recording, client)
	must.Have(store.Maintenance().RebuildSnapshots(ctx, thread))(t)
	checkRecording(t, store, recording, client)
}

// Histories find what an input beside the events names, where RUN_STARTED would have named it.
func TestHistoriesReadTheInputBesideTheEvents(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const input = `{"messages":[{"id":"u","role":"user","content":"hi \u0000"},
		{"id":"a","role":"assistant","content":"","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"id":"v","role":"activity","activityType":"PLAN","content":{"x":1}}]}`
	result := `{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"done"}`
	for thread, try := range map[string]struct {
		first []string
		input string
	}{
		"carried":  {[]string{`{"type":"RUN_STARTED","input":` + input + `}`, result}, ""},
		"beside":   {[]string{`{"type":"RUN_STARTED"}`, result}, input},
		"no start": {[]string{result, `{"type":"CUSTOM"}`}, input},
	} {
		options := pgagui.AppendOptions{AfterSeq: new(int64(0))}
		if try.input != "" {
			options.Input = json.RawMessage(try.input)
		}
		events := append(try.first, `{"type":"TEXT_MESSAGE_START","messageId":"t"}`, `{"type":"RUN_FINISHED"}`)
		must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(events...), options))(t)
	}
	for _, query := range []string{
		`select concat_ws(' ', seq, type, message_id, run_id, payload) from agui.session_messages($1)`,
		`select concat_ws(' ', tool_call_id, name, parent_message_id, run_id, first_seq, last_seq, status) from agui.tool_calls($1)`,
		`select concat_ws(' ', message_id, activity_type, run_id, first_seq, last_seq) from agui.activities($1)`,
	} {
		want := testdb.List[string](t, pool, query, "carried")
		if got := testdb.List[string](t, pool, query, "beside"); len(got) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: beside the events\n%s\nin RUN_STARTED\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		// There the result is event 1, not 2.
		for i := range want {
			want[i] = strings.Replace(strings.Replace(want[i], " 1 2 ", " 1 1 ", 1), "2 tool_result", "1 tool_result", 1)
		}
		if got := testdb.List[string](t, pool, query, "no start"); !slices.Equal(got, want) {
			t.Errorf("%s: without RUN_STARTED\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
