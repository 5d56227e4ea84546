package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

func mustCompact(t *testing.T, pool *pgxpool.Pool, options jobs.CompactOptions) jobs.Compacted {
	t.Helper()
	done := must.Have(jobs.Compact(context.Background(), pool, options))(t)
	return done
}

func count(t *testing.T, pool *pgxpool.Pool, query string, arguments ...any) int64 {
	t.Helper()
	return testdb.Ask[int64](t, pool, query, arguments...)
}

// appendRun appends a whole run of raw events between RUN_STARTED and RUN_FINISHED.
func appendRun(t *testing.T, store *pgagui.Store, threadID, runID, parentID string, body ...string) {
	t.Helper()
	appendInBatches(t, store, threadID, runID, parentID, len(body)+2, body...)
}

// appendInBatches appends a run a few events at a time, as a live agent does.
func appendInBatches(t *testing.T, store *pgagui.Store, threadID, runID, parentID string, size int, body ...string) {
	t.Helper()
	opening := map[string]string{"type": "RUN_STARTED", "runId": runID}
	if parentID != "" {
		opening["parentRunId"] = parentID
	}
	first := must.Have(json.Marshal(opening))(t)
	events := []json.RawMessage{first}
	for _, event := range body {
		events = append(events, json.RawMessage(event))
	}
	events = append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`))
	for batch := range slices.Chunk(events, size) {
		must.Have(store.Append(context.Background(), pgagui.RunRef{ThreadID: threadID, RunID: runID}, batch, pgagui.AppendOptions{}))(t)
	}
}

// message is a streamed message of some words, a token at a time, as models write.
func message(id string, words int) []string {
	vocabulary := strings.Fields("the a of to and in that it is was for on with as by at from plan trip day book hotel train city sea walk")
	random := rand.New(rand.NewPCG(uint64(len(id)), uint64(id[len(id)-1])))
	events := []string{fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":%q}`, id)}
	for range words {
		word := vocabulary[random.IntN(len(vocabulary))]
		events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":" %s"}`, id, word))
	}
	return append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, id))
}

func restored(t *testing.T, store *pgagui.Store, threadID, runID string) string {
	t.Helper()
	r := must.Have(store.Restore(context.Background(), threadID, pgagui.At{RunID: runID}))(t)
	return string(r.JSON)
}

// checkSnapshots verifies every thread against its raw log, and that the message versions are just those that snapshots hold.
func checkSnapshots(t *testing.T, pool *pgxpool.Pool, store *pgagui.Store) {
	t.Helper()
	for thread, err := range store.ThreadIDs(context.Background()) {
		must.Do(t, err)
		problems := must.Have(store.Maintenance().Verify(context.Background(), thread))(t)
		for _, problem := range problems {
			t.Errorf("thread %s: run %q: %s", thread, problem.RunID, problem.Problem)
		}
	}
	orphans := count(t, pool, `
		select count(*) from agui.message
		where not exists (
			select from agui.snapshot cross join unnest(snapshot.message_nos) as part
			where snapshot.thread_key = message.thread_key and part @> message.message_no)`)
	if orphans != 0 {
		t.Errorf("%d message versions belong to no snapshot", orphans)
	}
	missing := count(t, pool, `
		select count(*) from agui.snapshot
		cross join unnest(snapshot.message_nos) as part
		cross join generate_series(lower(part), upper(part) - 1) as no
		where not exists (select from agui.message where message.thread_key = snapshot.thread_key and message.message_no = no)`)
	if missing != 0 {
		t.Errorf("snapshots point to %d message versions that do not exist", missing)
	}
	tips := count(t, pool, `
		select count(*) from (
			select thread_key, max(run_no) as run_no from agui.run where status <> 'running' group by thread_key) as tip
		join agui.run using (thread_key, run_no)
		where run.log_bytes is not null
			and not exists (select from agui.snapshot where snapshot.thread_key = tip.thread_key and snapshot.run_no = tip.run_no)`)
	if tips != 0 {
		t.Errorf("the tips of %d compacted threads have no snapshot", tips)
	}
}

// compactors are the two ways to compact; they must come to the same.
var compactors = map[string]func(t *testing.T, pool *pgxpool.Pool){
	"Go": func(t *testing.T, pool *pgxpool.Pool) { mustCompact(t, pool, jobs.CompactOptions{RunningEvery: 50}) },
	"SQL": func(t *testing.T, pool *pgxpool.Pool) {
		testdb.Exec(t, pool, `call agui.compact()`)
	},
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var left, right any
	must.Do(t, json.Unmarshal([]byte(a), &left))
	must.Do(t, json.Unmarshal([]byte(b), &right))
	x, _ := json.Marshal(left)
	y, _ := json.Marshal(right)
	return string(x) == string(y)
}

func TestWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const threads, runs = 40, 3
	for i := range threads {
		for r := range runs {
			appendRun(t, store, fmt.Sprint("t", i), fmt.Sprint("r", r), "", message(fmt.Sprint("m", r), 5)...)
		}
	}
	var group errgroup.Group
	results := make([]jobs.Compacted, 3)
	for i := range results {
		group.Go(func() (err error) {
			results[i], err = jobs.Compact(context.Background(), pool, jobs.CompactOptions{Workers: 2})
			return err
		})
	}
	group.Go(func() error {
		_, err := pool.Exec(context.Background(), `call agui.compact(20)`)
		return err
	})
	must.Do(t, group.Wait())
	done := 0
	for _, result := range results {
		done += result.Runs
	}
	if done > threads*runs || done < threads*runs-20 {
		t.Errorf("the jobs processed %d runs, the procedure up to 20, of %d in all", done, threads*runs)
	}
	if waiting := count(t, pool, `select count(*) from agui.run where log_bytes is null`); waiting != 0 {
		t.Errorf("%d runs still wait for compaction", waiting)
	}
	checkSnapshots(t, pool, store)
}

func TestMaxRunsEndsTheJob(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for i := range 10 {
		appendRun(t, store, fmt.Sprint("t", i%3), fmt.Sprint("r", i), "", message("m", 2)...)
	}
	var calls []int
	done := mustCompact(t, pool, jobs.CompactOptions{MaxRuns: 7, Workers: 2, Progress: func(c jobs.Compacted) { calls = append(calls, c.Runs) }})
	if done.Runs != 7 || done.Waiting != 10 {
		t.Errorf("done: %+v, want 7 of 10 runs", done)
	}
	if len(calls) == 0 || calls[len(calls)-1] != 7 {
		t.Errorf("progress said %v", calls)
	}
	if done = mustCompact(t, pool, jobs.CompactOptions{}); done.Runs != 3 {
		t.Errorf("the next call did %d runs, want 3", done.Runs)
	}
	if done = mustCompact(t, pool, jobs.CompactOptions{}); done.Runs != 0 || done.Snapshots != 0 {
		t.Errorf("with nothing to do: %+v", done)
	}
	checkSnapshots(t, pool, store)
}

// When the time is over within a thread, the runs that are done stay done; one is always finished.
func TestMaxTimeEndsTheJobWithinAThread(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const runs = 4
	for i := range runs {
		appendInBatches(t, store, "t", fmt.Sprint("r", i), "", 1, message(fmt.Sprint("m", i), 80)...) // so that the thread takes more than one page
	}
	want := restored(t, store, "t", "")
	// The time is over when the thread is begun.
	testdb.Exec(t, pool, `
		alter function agui_internal.begin_step() rename to begin_step_at_once;
		create function agui_internal.begin_step() returns void language sql as
			'select agui_internal.begin_step_at_once(); select pg_sleep(0.3)'`)
	for i := range runs {
		done := mustCompact(t, pool, jobs.CompactOptions{MaxTime: 250 * time.Millisecond})
		if left := int64(runs - 1 - i); done.Runs != 1 || done.Left != left || done.Stopped == "" && left > 0 {
			t.Fatalf("call %d: %+v, want one run and %d left", i+1, done, left)
		}
		checkSnapshots(t, pool, store)
		if got := restored(t, store, "t", ""); !sameJSON(t, got, want) {
			t.Fatalf("after call %d the thread restores as\n%s\nwant\n%s", i+1, got, want)
		}
	}
	if notes := count(t, pool, `select count(*) from agui_internal.job_note`); notes != 0 {
		t.Errorf("%d notes are left", notes)
	}
}

func TestRunsInProgressAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			ctx := context.Background()
			appendRun(t, store, "t", "root", "", message("m", 3)...)
			for _, id := range []string{"slow", "quick"} {
				start := json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q,"parentRunId":"root"}`, id))
				must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: id}, []json.RawMessage{start}, pgagui.AppendOptions{Parallel: true}))(t)
			}
			tail := append(message("n", 3), `{"type":"RUN_FINISHED"}`)
			appendEach := func(run string) {
				for _, event := range tail {
					must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: run}, []json.RawMessage{json.RawMessage(event)}, pgagui.AppendOptions{}))(t)
				}
			}
			appendEach("quick")
			compact(t, pool)
			if waiting := count(t, pool, `select count(*) from agui.run where log_bytes is null`); waiting != 1 {
				t.Errorf("%d runs are unprocessed, want the one in progress", waiting)
			}
			appendEach("slow")
			compact(t, pool)
			if waiting := count(t, pool, `select count(*) from agui.run where log_bytes is null`); waiting != 0 {
				t.Errorf("%d runs are unprocessed", waiting)
			}
			checkSnapshots(t, pool, store)
		})
	}
}

// A job whose connection is lost leaves nothing half done, and the next one continues.
func TestALostConnectionLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for i := range 10 {
		appendRun(t, store, fmt.Sprint("t", i), "r1", "", message("m1", 60)...)
	}
	// The server ends the session while it writes the snapshot of a thread in the middle.
	testdb.Exec(t, pool, `
		create function end_session() returns trigger language plpgsql as $$ begin
			perform pg_terminate_backend(pg_backend_pid());
			return new;
		end $$;
		create trigger end_session before insert on agui.snapshot for each row
			when (new.thread_key = agui.thread_key('', 't5')) execute function end_session()`)
	done, err := jobs.Compact(context.Background(), pool, jobs.CompactOptions{})
	if err == nil || done.Runs != 9 {
		t.Errorf("done: %+v, error %v, want 9 runs and the lost connection", done, err)
	}
	testdb.Exec(t, pool, `drop function end_session() cascade`)
	checkSnapshots(t, pool, store)
	if done := mustCompact(t, pool, jobs.CompactOptions{}); done.Runs != 1 {
		t.Errorf("the next call compacted %d runs, want the one that was left", done.Runs)
	}
	checkSnapshots(t, pool, store)
}

// All snapshots together stay below the log that they stand for, and no read has to fold much more than it returns.
func TestSnapshotsStaySmallerThanTheLog(t *testing.T) {
	t.Parallel()
	bigState := `{"type":"STATE_SNAPSHOT","snapshot":{"notes":"` + strings.Repeat("lorem ipsum dolor sit amet ", 800) + `","n":0}}`
	shapes := map[string]func(t *testing.T, store *pgagui.Store){
		"a growing thread": func(t *testing.T, store *pgagui.Store) {
			for i := range 60 {
				appendRun(t, store, "t", fmt.Sprint("r", i), "", append(message(fmt.Sprint("m", i), 120),
					fmt.Sprintf(`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/k%d","value":"%x"}]}`, i, i*i*7919))...)
			}
		},
		"branches with a large state": func(t *testing.T, store *pgagui.Store) {
			appendRun(t, store, "t", "root", "", append(message("m", 100), bigState)...)
			for i := range 100 {
				appendRun(t, store, "t", fmt.Sprint("again", i), "root", append(message(fmt.Sprint("m", i), 60),
					`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":1}]}`)...)
			}
		},
	}
	for shape, build := range shapes {
		for name, compact := range compactors {
			t.Run(shape+" in "+name, func(t *testing.T) {
				t.Parallel()
				pool := testdb.Pool(t)
				store := pgagui.New(pool, nil)
				build(t, store)
				compact(t, pool)
				checkSnapshots(t, pool, store)
				log := count(t, pool, `select sum(log_bytes)::bigint from agui.run`)
				snapshots := count(t, pool, `
					select (coalesce(sum(pg_column_size(state) + pg_column_size(message_nos) + 100), 0)
						+ (select coalesce(sum(pg_column_size(body) + 60), 0) from agui.message_version))::bigint
					from agui.snapshot`)
				if snapshots > log {
					t.Errorf("the snapshots take %d bytes, the log %d", snapshots, log)
				}
				// The youngest snapshot before a run is at most one run's log further away than the rule allows.
				farthest := count(t, pool, `
					select coalesce(max(agui_internal.log_bytes_since(thread_key, run_no, agui_internal.fold_base(thread_key, run_no, 9223372036854775807))), 0)
					from agui.run
					where agui_internal.fold_base(thread_key, run_no, 9223372036854775807) is distinct from run_no`)
				size := int64(len(restored(t, store, "t", "")))
				if farthest > 3*size+10000 {
					t.Errorf("a read folds up to %d stored bytes of log to return about %d", farthest, size)
				}
				t.Logf("log %d, snapshots %d in %d rows, farthest read %d, head %d", log, snapshots,
					count(t, pool, `select count(*) from agui.snapshot`), farthest, size)
			})
		}
	}
}

func TestAStuckThreadDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendRun(t, store, "broken", "r1", "", message("m", 3)...)
	mustCompact(t, pool, jobs.CompactOptions{})
	for _, thread := range []string{"broken", "sound"} {
		appendRun(t, store, thread, "r2", "", message("m", 3)...)
	}
	testdb.Exec(t, pool, `update agui.snapshot set lanes = '"no list"'`)
	done, err := jobs.Compact(context.Background(), pool, jobs.CompactOptions{})
	if err == nil || !strings.Contains(err.Error(), "snapshot of run number 1") {
		t.Errorf("error %v, want one that names the snapshot", err)
	}
	if done.Runs != 1 || done.Left != 1 || done.Stopped != "" {
		t.Errorf("done: %+v, want the run of the sound thread", done)
	}

	for _, thread := range []string{"sound", "other"} {
		appendRun(t, store, thread, "r3", "", message("m", 3)...)
	}
	testdb.Exec(t, pool, `
		create function refuse() returns trigger language plpgsql as 'begin raise exception ''not this one''; end';
		create trigger refuse before insert or update on agui.snapshot for each row
			when (new.thread_key = agui.thread_key('', 'broken')) execute function refuse()`)
	testdb.Exec(t, pool, `select agui.retry()`)
	_, err = pool.Exec(context.Background(), `call agui.compact()`)
	if err == nil || !strings.Contains(err.Error(), "compaction failed for 1 of the threads: not this one") {
		t.Errorf("agui.compact: error %v", err)
	}
	if waiting := waitingRuns(t, pool); waiting != 1 {
		t.Errorf("%d runs wait after agui.compact, want that of the broken thread", waiting)
	}
}

func TestCompactEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	if _, err := jobs.Compact(ctx, pool, jobs.CompactOptions{}); err == nil {
		t.Error("no error although the context had ended")
	}
}

// A long run in progress gets a snapshot now and then; when it has ended, compaction weighs it like any other.
func TestLongRunsInProgressGetSnapshots(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			ctx := context.Background()
			appendRun(t, store, "t", "root", "", message("m1", 20)...)
			appendRun(t, store, "t", "branch", "root", message("m2", 20)...)
			appendAll := func(events ...string) {
				t.Helper()
				for _, event := range events {
					must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "long"}, []json.RawMessage{json.RawMessage(event)}, pgagui.AppendOptions{}))(t)
				}
			}
			snapshots := func() int64 {
				return count(t, pool, `select count(*) from agui.snapshot join agui.run using (thread_key, run_no) where run_id = 'long'`)
			}
			compactRunning := func() {
				t.Helper()
				testdb.Exec(t, pool, `call agui.compact_running(50)`)
			}
			appendAll(`{"type":"RUN_STARTED","runId":"long","parentRunId":"root"}`)
			compactRunning()
			if snapshots() != 0 {
				t.Error("a run of one event has a snapshot")
			}
			// The stream of chunks is open when the snapshot is made.
			for i := range 130 {
				appendAll(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK"%s,"delta":"chunk %d "}`, map[bool]string{true: `,"messageId":"c"`}[i == 0], i))
				if i%20 == 0 {
					want := restored(t, store, "t", "long")
					compactRunning()
					if got := restored(t, store, "t", "long"); !sameJSON(t, got, want) {
						t.Errorf("after %d chunks, with a snapshot:\n%s\nwithout:\n%s", i+1, got, want)
					}
					checkSnapshots(t, pool, store)
				}
			}
			if snapshots() != 1 {
				t.Errorf("the run has %d snapshots, want 1", snapshots())
			}
			compact(t, pool)
			if snapshots() != 1 {
				t.Error("compaction of the other runs dropped the snapshot of the run in progress")
			}
			checkSnapshots(t, pool, store)
			want := restored(t, store, "t", "long")
			appendAll(`{"type":"TEXT_MESSAGE_CHUNK","delta":"the end"}`, `{"type":"RUN_FINISHED"}`)
			compact(t, pool)
			checkSnapshots(t, pool, store)
			if got := restored(t, store, "t", "long"); !strings.Contains(got, "the end") || len(got) < len(want) {
				t.Errorf("the ended run restores as %s", got)
			}
			appendRun(t, store, "t", "after", "root", message("m3", 20)...)
			compact(t, pool)
			checkSnapshots(t, pool, store)
		})
	}
}

// A thread whose runs take several transactions counts once.
func TestCompactCountsThreadsOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		select agui.append(case when n = 1 then 'short' else 'long' end, 'r' || n, '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')
		from generate_series(1, 2101) as n`)
	if done := mustCompact(t, pool, jobs.CompactOptions{Workers: 1}); done.Threads != 2 || done.Runs != 2101 {
		t.Errorf("%d runs of %d threads, want 2101 of 2", done.Runs, done.Threads)
	}
}
