package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

// reapings are the two ways to close the runs that are stale; each returns its error.
var reapings = map[string]func(*pgxpool.Pool) error{
	"Go": func(pool *pgxpool.Pool) error {
		_, err := jobs.Reap(context.Background(), pool, jobs.ReapOptions{})
		return err
	},
	"SQL": func(pool *pgxpool.Pool) error {
		_, err := pool.Exec(context.Background(), `call agui.reap()`)
		return err
	},
}

func mustEndWell(t *testing.T, err error) {
	t.Helper()
	must.Do(t, err)
}

func mustReap(t *testing.T, pool *pgxpool.Pool, options jobs.ReapOptions) jobs.Reaped {
	t.Helper()
	done := must.Have(jobs.Reap(t.Context(), pool, options))(t)
	return done
}

// appendSilent appends a run that its writer leaves in the middle of a step and a message, with the last event an hour ago.
func appendSilent(t *testing.T, pool *pgxpool.Pool, scope, threadID string) {
	t.Helper()
	store := pgagui.New(pool, &pgagui.Config{Scope: scope})
	var events []json.RawMessage
	for _, event := range append([]string{`{"type":"RUN_STARTED"}`, `{"type":"STEP_STARTED","stepName":"answer"}`}, message("m", 3)[:4]...) {
		events = append(events, json.RawMessage(event))
	}
	must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: "r"}, events, pgagui.AppendOptions{}))(t)
	testdb.UpForEver(t, pool)
	makeOlder(t, pool, scope, threadID, time.Hour)
	testdb.Exec(t, pool, `update agui.run set started_at = started_at - interval '1 hour' where thread_key = agui.thread_key($1, $2)`, scope, threadID)
}

func inProgress(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	return count(t, pool, `select count(*) from agui.run where status = 'running'`)
}

// Reap ends in the log the runs of all scopes whose writers are gone. A run with a sign of life continues.
func TestReapClosesRunsWithoutASignOfLife(t *testing.T) {
	t.Parallel()
	for name, reap := range reapings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			pool := testdb.Pool(t)
			store, other := pgagui.New(pool, nil), pgagui.New(pool, &pgagui.Config{Scope: "other"})
			appendSilent(t, pool, "", "silent")
			appendSilent(t, pool, "other", "silent")
			appendSilent(t, pool, "", "kept alive")
			testdb.Exec(t, pool, `select agui.keep_alive('{kept alive}', '{r}')`)
			appendSilent(t, pool, "", "busy")
			must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: "busy", RunID: "r"}, []json.RawMessage{json.RawMessage(`{"type":"CUSTOM"}`)}, pgagui.AppendOptions{}))(t)
			appendRun(t, store, "ended", "r", "", message("m", 3)...)
			makeOlder(t, pool, "", "ended", time.Hour)

			mustEndWell(t, reap(pool))
			for _, store := range []*pgagui.Store{store, other} {
				var closing []string
				for event, err := range store.Events(ctx, "silent", pgagui.EventsOptions{AfterSeq: 6}) {
					must.Do(t, err)
					closing = append(closing, string(event.JSON))
				}
				want := []string{
					`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
					`{"type":"STEP_FINISHED","stepName":"answer"}`,
					`{"type":"RUN_ERROR","message":"The run was cut off: no sign of life for 00:05:00","code":"RUN_CUT_OFF"}`,
				}
				if !slices.Equal(closing, want) {
					t.Errorf("the run was closed with\n%s\nwant\n%s", strings.Join(closing, "\n"), strings.Join(want, "\n"))
				}
				status, err := store.Status(ctx, pgagui.RunRef{ThreadID: "silent"})
				if err != nil || status.Status != pgagui.CutOff || status.LastSeq != 9 || status.Stale || status.CutOffReason != "no sign of life for 00:05:00" {
					t.Errorf("status %+v, error %v", status, err)
				}
				_, err = store.Append(ctx, pgagui.RunRef{ThreadID: "silent", RunID: "r"}, []json.RawMessage{json.RawMessage(`{"type":"CUSTOM"}`)}, pgagui.AppendOptions{})
				if !errors.Is(err, pgagui.ErrRunCutOff) {
					t.Errorf("the writer that comes back late: error %v", err)
				}
			}
			for _, thread := range []string{"kept alive", "busy"} {
				if status, err := store.Status(ctx, pgagui.RunRef{ThreadID: thread}); err != nil || status.Status != pgagui.Running || status.Stale {
					t.Errorf("%s: status %+v, error %v", thread, status, err)
				}
			}

			if waiting := waitingRuns(t, pool); waiting != 3 {
				t.Errorf("%d runs wait for compaction, want those that were closed and the one that had ended", waiting)
			}
			if done := mustCompact(t, pool, jobs.CompactOptions{}); done.Runs != 3 {
				t.Errorf("compaction took %d runs", done.Runs)
			}
			checkSnapshots(t, pool, store)
			checkSnapshots(t, pool, other)

			before := eventLog(t, pool, "silent")
			mustEndWell(t, reap(pool))
			if eventLog(t, pool, "silent") != before || inProgress(t, pool) != 2 {
				t.Error("a second time there was something to close")
			}
			appendRun(t, store, "silent", "next", "r", message("n", 3)...)
		})
	}
}

// The lock of a thread is its writer's: a writer that has it may be about to show a sign of life.
func TestReapPassesOverAThreadThatIsBeingWrittenTo(t *testing.T) {
	t.Parallel()
	for name, reap := range reapings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			for n := range 3 {
				appendSilent(t, pool, "", fmt.Sprint("t", n))
			}
			tx := must.Have(pool.Begin(t.Context()))(t)
			defer tx.Rollback(context.Background())
			must.Have(pgagui.New(pool, nil).WithTx(tx).Append(t.Context(), pgagui.RunRef{ThreadID: "t1", RunID: "r"}, []json.RawMessage{json.RawMessage(`{"type":"CUSTOM"}`)}, pgagui.AppendOptions{}))(t)
			mustEndWell(t, reap(pool))
			if left := inProgress(t, pool); left != 1 {
				t.Errorf("%d runs are left, want the one that is being written to", left)
			}
			must.Do(t, tx.Rollback(t.Context()))
			mustEndWell(t, reap(pool))
			if left := inProgress(t, pool); left != 0 {
				t.Errorf("%d runs are left once its writer has given up", left)
			}
		})
	}
}

func TestReapStopsInTime(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for n := range 4 {
		appendSilent(t, pool, "", fmt.Sprint("t", n))
	}
	testdb.Exec(t, pool, `call agui.reap(max_runs => 0)`)
	testdb.Exec(t, pool, `call agui.reap(max_time => '0')`)
	asked, ask := context.WithCancel(t.Context())
	ask()
	interrupted, cancel := jobs.WithGrace(asked, time.Hour)
	defer cancel()
	if done, err := jobs.Reap(interrupted, pool, jobs.ReapOptions{}); err != nil || done.Runs != 0 || done.Stopped != jobs.StoppedOnCall {
		t.Errorf("asked to stop: %+v, error %v", done, err)
	}
	if done := mustReap(t, pool, jobs.ReapOptions{MaxTime: time.Nanosecond}); done.Runs != 0 || done.Stopped != jobs.StoppedByTime || done.Duration <= 0 {
		t.Errorf("without time: %+v", done)
	}
	testdb.Exec(t, pool, `call agui.reap(max_runs => 1)`)
	if left := inProgress(t, pool); left != 3 {
		t.Fatalf("%d runs are left, want 3", left)
	}
	var seen []int
	progress := func(done jobs.Reaped) { seen = append(seen, done.Runs) }
	if done := mustReap(t, pool, jobs.ReapOptions{MaxRuns: 1, Progress: progress}); done.Runs != 1 || done.Stopped != jobs.StoppedAtLimit {
		t.Errorf("one run: %+v", done)
	}
	if done := mustReap(t, pool, jobs.ReapOptions{MaxRuns: 2, MaxTime: time.Hour, Progress: progress}); done.Runs != 2 || done.Stopped != "" {
		t.Errorf("the limit is what there is: %+v", done)
	}
	if !slices.Equal(seen, []int{1, 1, 2}) {
		t.Errorf("progress %v", seen)
	}
}

func TestReapersSideBySideCloseEachRunOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const runs = 40
	for n := range runs {
		appendSilent(t, pool, "", fmt.Sprint("t", n))
	}
	closed := make([]int, 3)
	var group errgroup.Group
	for i := range closed {
		group.Go(func() error {
			done, err := jobs.Reap(t.Context(), pool, jobs.ReapOptions{})
			closed[i] = done.Runs
			return err
		})
	}
	must.Do(t, group.Wait())
	if closed[0]+closed[1]+closed[2] != runs {
		t.Errorf("%d runs were closed, each says so of %v", runs, closed)
	}
	if ends := count(t, pool, `select count(*) from agui.event where payload ->> 'type' = 'RUN_ERROR'`); ends != runs {
		t.Errorf("%d ends of %d runs", ends, runs)
	}
	checkSnapshots(t, pool, pgagui.New(pool, nil))
}

func TestReapIsDoneByOneAtATime(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	appendSilent(t, pool, "", "t")
	busy := jobs.Job{Name: "reap", Work: func(context.Context) (any, error) {
		if said := notices(t, url, `call agui.reap()`); !strings.Contains(said, "another agui.reap is in progress") {
			t.Errorf("agui.reap meanwhile: notices %q", said)
		}
		return inProgress(t, pool), nil
	}}
	if report := mustRun(t, pool, busy); report.Result != int64(1) {
		t.Errorf("%v runs are left, want the one", report.Result)
	}
}

// A run that cannot be closed goes into quarantine, and holds up no other.
func TestADamagedRunDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	for name, reap := range reapings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			for n := range 6 {
				appendSilent(t, pool, "", fmt.Sprint("t", n))
			}
			// The first in the order of the keys. Closing a run reads the batches in which something begins or ends.
			damage(t, pool, `update agui.batch set events = '{"at": "_END"}' where thread_key = (select min(thread_key::text)::uuid from agui.run)`)
			var left *jobs.RunsLeftError
			if err := reap(pool); err == nil || !strings.Contains(err.Error(), "json_to_recordset") || name == "Go" && !errors.As(err, &left) {
				t.Errorf("error %v, want one that says what is wrong", err)
			}
			if left := inProgress(t, pool); left != 1 {
				t.Errorf("%d runs are left, want the damaged one", left)
			}
			if err := reap(pool); err != nil {
				t.Errorf("a second call: %v, want nothing, for the run is in quarantine", err)
			}
			if n := count(t, pool, `select count(*) from agui.quarantine where job = 'reap' and run_id = 'r' and attempts = 1 and error like '%json_to_recordset%'`); n != 1 {
				t.Errorf("the run is in quarantine %d times", n)
			}
			if stats, err := jobs.ReadStats(t.Context(), pool, jobs.StatsOptions{}); err != nil || stats.QuarantinedRuns != 1 || stats.StaleRuns != 1 {
				t.Errorf("stats: %+v, error %v", stats, err)
			}
			if done := mustReap(t, pool, jobs.ReapOptions{}); done.Quarantined != 1 || done.Runs != 0 {
				t.Errorf("done: %+v", done)
			}
			if n := count(t, pool, `select agui.retry('reap')`); n != 1 {
				t.Errorf("agui.retry took %d runs out of quarantine", n)
			}
			if err := reap(pool); err == nil {
				t.Error("after agui.retry the run was not tried")
			}
			if _, err := jobs.Reap(t.Context(), pool, jobs.ReapOptions{Retry: true}); err == nil {
				t.Error("with Retry the run was not tried")
			}
			// Its writer is back, and ends it.
			testdb.Exec(t, pool, `select agui.append(thread_id, 'r', '[{"type":"RUN_FINISHED"}]') from agui.thread
				where thread_key = (select min(thread_key::text)::uuid from agui.run)`)
			must.Report(t, reap(pool))
			if n := count(t, pool, `select count(*) from agui_internal.job_note`); n != 0 {
				t.Errorf("%d notes are left of a run that has ended", n)
			}
		})
	}
}

// poisonStale makes every attempt to close the first of twenty-one stale runs take for ever.
func poisonStale(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for n := range 21 {
		appendSilent(t, pool, "", fmt.Sprint("t", n))
	}
	testdb.Exec(t, pool, `create table poison as select min(thread_key::text)::uuid as thread_key from agui.run`)
	testdb.Exec(t, pool, `
		create function hang() returns trigger language plpgsql as 'begin
			if new.thread_key = (select thread_key from public.poison) then perform pg_sleep(600); end if;
			return new;
		end';
		grant select on poison to public;
		create trigger hang before insert on agui.batch for each row execute function hang()`)
}

// A run at which the reaper dies is in the way of the others once: it leaves its note, and the next one takes that run last.
func TestAReaperThatDiesLeavesItsRunForLast(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(t *testing.T, url string, pool *pgxpool.Pool){
		"SQL, time limit": func(t *testing.T, url string, pool *pgxpool.Pool) {
			connection, err := pool.Acquire(t.Context())
			must.Do(t, err)
			defer connection.Release()
			defer connection.Conn().Close(t.Context())
			if _, err = connection.Exec(t.Context(), `set statement_timeout = '3s'`); err == nil {
				_, err = connection.Exec(t.Context(), `call agui.reap()`)
			}
			if err == nil {
				t.Error("the call did not run out of time")
			}
		},
		"SQL, killed": func(t *testing.T, url string, pool *pgxpool.Pool) {
			ended := make(chan error, 1)
			go func() {
				_, err := pool.Exec(context.Background(), `call agui.reap()`)
				ended <- err
			}()
			killHanging(t, pool)
			if err := <-ended; err == nil {
				t.Error("the call ended well")
			}
		},
		"Go, killed": func(t *testing.T, url string, pool *pgxpool.Pool) {
			process := exec.Command(os.Args[0])
			process.Env = append(os.Environ(), jobToDo+"=reap", jobDatabase+"="+url)
			process.Stderr = os.Stderr
			must.Do(t, process.Start())
			waitForHanging(t, pool)
			must.Do(t, process.Process.Kill())
			process.Wait()
			killHanging(t, pool)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			pool := testdb.Connect(t, url)
			poisonStale(t, pool)
			for range 2 {
				die(t, url, pool)
			}
			if left := inProgress(t, pool); left != 1 {
				t.Errorf("%d runs are left after two calls, want the one that hangs", left)
			}
			// Two attempts: now it waits for its time.
			for name, reap := range reapings {
				if err := reap(pool); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if n := count(t, pool, `select count(*) from agui.quarantine where job = 'reap' and attempts = 2`); n != 1 {
				t.Errorf("the run is in quarantine %d times", n)
			}
			testdb.Exec(t, pool, `drop function hang() cascade`)
			if done := mustReap(t, pool, jobs.ReapOptions{Retry: true}); done.Runs != 1 || done.Quarantined != 0 {
				t.Errorf("done: %+v", done)
			}
		})
	}
}

func waitForHanging(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	wait.For(t, "a session that hangs", func() bool {
		return count(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`) > 0
	})
}

// killHanging ends the session that hangs.
func killHanging(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	waitForHanging(t, pool)
	testdb.Exec(t, pool, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
}
