package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// Compaction changes no answer: streams cut into runs anywhere, in the middle of messages and of chunks, as a tree with branches;
// each run restores as Go folds its lineage, before compaction, after part of it, after all of it, and with snapshots of runs
// made while they were in progress.
func TestCompactionChangesNoAnswer(t *testing.T) {
	t.Parallel()
	compactors := map[string]func(ctx context.Context, pool *pgxpool.Pool, maxRuns int) error{
		"Go": func(ctx context.Context, pool *pgxpool.Pool, maxRuns int) error {
			_, err := jobs.Compact(ctx, pool, jobs.CompactOptions{MaxRuns: maxRuns, Workers: 2})
			return err
		},
		"SQL": func(ctx context.Context, pool *pgxpool.Pool, maxRuns int) error {
			_, err := pool.Exec(ctx, `call agui.compact(nullif($1, 0))`, maxRuns)
			return err
		},
	}
	seeds := uint64(streamsOfAKind(30))
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			want := map[string][]meaning{} // by thread, then by run
			for kind := range kindsOfStreams {
				for seed := *firstSeed; seed < *firstSeed+seeds; seed++ {
					thread := fmt.Sprint(kindsOfStreams[kind].name, " ", seed)
					want[thread] = appendTree(t, pool, thread, startOf(compactiontest.Stream(seed, kindsOfStreams[kind].options)), seed)
				}
			}
			check := func(when string) {
				t.Helper()
				for thread, runs := range want {
					for run, meant := range runs {
						restored := must.Have(store.Restore(ctx, thread, pgagui.At{RunID: fmt.Sprint("run-", run+1)}))(t)
						got := meaning{Messages: restored.Messages, State: restored.State, Interrupts: restored.Interrupts}
						if difference := differences(got, meant); difference != "" {
							t.Fatalf("%s: %s, run %d: %s", when, thread, run+1, difference)
						}
					}
				}
			}
			// The runs begin with any event, which agui.verify would report: only its check of the snapshots counts here.
			checkStored := func(when string) {
				t.Helper()
				check(when)
				wrong := testdb.Ask[*string](t, pool, `
					select string_agg(thread_id || ', ' || problem.run_id || ': ' || problem.problem, E'\n')
					from agui.thread cross join lateral agui_internal.verify_snapshots(thread.thread_key) as problem`)
				if wrong != nil {
					t.Errorf("%s: %s", when, *wrong)
				}
			}
			check("before compaction")
			for _, maxRuns := range []int{14, 20} {
				must.Do(t, compact(ctx, pool, maxRuns))
			}
			checkStored("after part of it")
			// Runs that are still in progress, as far as the table says.
			testdb.Exec(t, pool, `update agui.run set status = 'running', last_seq = null, ended_at = null
				where log_bytes is null and run_no = (select max(run_no) from agui.run as r where r.thread_key = run.thread_key)`)
			testdb.Exec(t, pool, `call agui.compact_running(3)`)
			checkStored("with runs in progress")
			testdb.Exec(t, pool, `update agui.run set status = 'finished', ended_at = now(),
				last_seq = (select max(first_seq + n - 1) from agui.batch where batch.thread_key = run.thread_key and batch.run_no = run.run_no)
				where status = 'running'`)
			must.Do(t, compact(ctx, pool, 0))
			checkStored("after compaction")
			var waiting, kept int
			must.Do(t, pool.QueryRow(ctx, `select count(*) filter (where log_bytes is null), (select count(*) from agui.snapshot) from agui.run`).Scan(&waiting, &kept))
			if waiting != 0 || kept < len(want) {
				t.Errorf("%d runs wait for compaction, %d threads have %d snapshots", waiting, len(want), kept)
			}
		})
	}
}

// appendTree cuts a stream into runs, each a child of an older one (mostly the one before), and returns what each lineage means.
// The runs go into the log past agui.append, which would refuse most of them.
func appendTree(t *testing.T, pool *pgxpool.Pool, thread string, stream []json.RawMessage, seed uint64) []meaning {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 3))
	testdb.Exec(t, pool, `insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('', $1), '', $1)`, thread)
	var folds []*compaction.Fold
	var meanings []meaning
	for first := 0; first < len(stream); {
		n := min(1+random.IntN(15), len(stream)-first)
		run := len(folds) + 1
		var parent *int
		fold := compaction.New()
		if run > 1 {
			number := run - 1
			if random.IntN(4) == 0 {
				number = 1 + random.IntN(run-1)
			}
			parent = &number
			fold = folds[number-1].Clone()
			must.Do(t, fold.EndRun())
		}
		for i, event := range stream[first : first+n] {
			fold.Locate(fmt.Sprint("run-", run), int64(first+i+1))
			fold.Apply(event)
		}
		folds = append(folds, fold)
		meanings = append(meanings, meaningOf(t, fold))
		testdb.Exec(t, pool, `
			insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
			values (agui.thread_key('', $1), $2, $3, 'run-' || $2::int, 'finished', $4, $5, now(), now())`,
			thread, run, parent, first+1, first+n)
		for at := first; at < first+n; at += 4 {
			batch := stream[at:min(at+4, first+n)]
			testdb.Exec(t, pool, `
				insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
				values (agui.thread_key('', $1), $2, now(), $3, $4, $5)`,
				thread, at+1, len(batch), run, json.RawMessage(compactiontest.Batch(batch)))
		}
		first += n
	}
	return meanings
}

// agui_internal.compact_sequence continues from the fold of the parent, unless the thread has changed since: other transactions may change it between
// two commits.
func TestACarriedFoldIsUsedOnlyWhileItHolds(t *testing.T) {
	t.Parallel()
	run := func(id, parent, message string) string {
		return fmt.Sprintf(`[{"type":"RUN_STARTED","runId":%q,"parentRunId":%s},{"type":"TEXT_MESSAGE_START","messageId":%q},`+
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":%[3]q,"delta":%[3]q},{"type":"TEXT_MESSAGE_END","messageId":%[3]q},{"type":"RUN_FINISHED"}]`,
			id, parent, message)
	}
	for name, meanwhile := range map[string]string{
		"nothing happened":      `select`,
		"the log was rewritten": `do $$ begin perform agui_internal.repack_run(thread_key, 1) from agui.thread; end $$`,
		// The versions of its messages get other contents.
		"its snapshot went": `do $$ begin
			perform agui_internal.drop_snapshots(thread_key, '{1}') from agui.thread;
			perform agui_internal.write_snapshot(thread_key, 2, agui_internal.fold_run(thread_key, 2)) from agui.thread; end $$`,
		"its snapshot was made again": `select agui.rebuild_snapshots('t')`,
		"the thread was erased and written anew": `select agui.erase('t'); select agui.lift_erasure('t');
			select agui.append('t', 'r1', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"},{"type":"CUSTOM"},{"type":"CUSTOM"},{"type":"RUN_FINISHED"}]');
			select agui.append('t', 'r2', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]');
			select agui.append('t', 'r3', '[{"type":"RUN_STARTED","parentRunId":"r1"},{"type":"RUN_FINISHED"}]')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool := testdb.Pool(t)
			for _, call := range []struct{ run, events string }{
				{"r1", run("r1", "null", "a")},
				{"r2", `[{"type":"RUN_STARTED","runId":"r2"},{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"b","role":"user","content":"b"}]},{"type":"RUN_FINISHED"}]`},
				{"r3", run("r3", `"r1"`, "c")},
			} {
				testdb.Exec(t, pool, `select agui.append('t', $1, $2::json)`, call.run, call.events)
			}
			// Each is the youngest run that has ended when it is compacted, so that its snapshot is kept.
			testdb.Exec(t, pool, `
				update agui.run set status = 'running' where run_no in (2, 3);
				create table carried as select agui_internal.compact_sequence(thread_key, '{1}') as fold from agui.thread;
				update agui.run set status = 'finished' where run_no in (2, 3)`)
			testdb.Exec(t, pool, meanwhile)
			testdb.Exec(t, pool, `select agui_internal.compact_sequence(run.thread_key, '{3}', carried.fold) from carried, agui.run where run_no = 3`)
			var restored, folded string
			if err := pool.QueryRow(ctx, `
				select (agui_internal.load_snapshot(thread_key, 3)).bodies::text, (agui_internal.fold_run(thread_key, 3)).bodies::text from agui.thread`).
				Scan(&restored, &folded); err != nil {
				t.Fatal(err)
			}
			if restored != folded {
				t.Errorf("the snapshot holds the messages %s, the log means %s", restored, folded)
			}
		})
	}
}

// A run that makes many tool calls behind a long conversation means the same as ever, whether the fold looks for each call in the conversation's text
// or has listed all of them.
func TestManyToolCallsBehindASnapshot(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	random := rand.New(rand.NewPCG(*firstSeed, 7))
	whole := compaction.New()
	calls := 0
	for n := range 4 {
		stream := []json.RawMessage{fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_START","messageId":"m%d"}`, n)}
		for range 150 {
			known := random.IntN(calls + 1)
			switch random.IntN(6) {
			case 0, 1:
				parent := ""
				if random.IntN(3) == 0 {
					parent = fmt.Sprintf(`,"parentMessageId":"m%d"`, random.IntN(n+1))
				}
				stream = append(stream, fmt.Appendf(nil, `{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"f"%s}`, calls, parent))
				calls++
			case 2:
				stream = append(stream, fmt.Appendf(nil, `{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"renamed"}`, known))
			case 3, 4:
				stream = append(stream, fmt.Appendf(nil, `{"type":"TOOL_CALL_ARGS","toolCallId":"c%d","delta":"%d "}`, known, len(stream)))
			case 5:
				stream = append(stream, fmt.Appendf(nil, `{"type":"TOOL_CALL_RESULT","messageId":"r%d","toolCallId":"c%d","content":"x"}`, len(stream), known))
			}
		}
		events := run(fmt.Sprint("run-", n), stream)
		mustAppend(t, store, "t", fmt.Sprint("run-", n), events)
		for _, event := range events {
			whole.Apply(event)
		}
		restored := must.Have(store.Restore(t.Context(), "t", pgagui.At{}))(t)
		got := meaning{Messages: restored.Messages, State: restored.State, Interrupts: restored.Interrupts}
		if difference := differences(got, meaningOf(t, whole)); difference != "" {
			t.Fatalf("seed %d, run %d: %s", *firstSeed, n, difference)
		}
		testdb.Exec(t, pool, "call agui.compact()")
	}
}

// A log that compresses far better than its messages still has snapshots, so that a read in its middle folds a bounded part.
func TestSnapshotsOfALongThreadAreNotFarApart(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for number := range 80 {
		events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
		for piece := range 98 {
			events = append(events, json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d-%d","delta":"piece of a message"}`, number, piece/5)))
		}
		events = append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`))
		mustAppend(t, store, "t", fmt.Sprint("r", number), events)
		if number%5 == 4 {
			testdb.Exec(t, pool, `call agui.compact()`)
		}
	}
	testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
	if far := testdb.Ask[int](t, pool, `
		select max(through_seq - before)::int
		from (select through_seq, lag(through_seq, 1, 0) over (order by through_seq) as before from agui.snapshot) as kept`); far > 3000 {
		t.Errorf("two snapshots are %d events apart", far)
	}
	if kept := testdb.Ask[int](t, pool, `select count(*)::int from agui.snapshot`); kept > 4 {
		t.Errorf("%d snapshots of 8,000 events", kept)
	}
}
