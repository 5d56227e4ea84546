package jobs_test

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
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// reapers are the two ways to close the runs that are stale; they must come to the same.
var reapers = map[string]func(t *testing.T, pool *pgxpool.Pool){
	"Go":  func(t *testing.T, pool *pgxpool.Pool) { mustReap(t, pool, jobs.ReapOptions{}) },
	"SQL": func(t *testing.T, pool *pgxpool.Pool) { execute(t, pool, `call agui.reap()`) },
}

func mustReap(t *testing.T, pool *pgxpool.Pool, options jobs.ReapOptions) jobs.Reaped {
	t.Helper()
	done, err := jobs.Reap(t.Context(), pool, options)
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := store.Append(t.Context(), threadID, "r", events); err != nil {
		t.Fatal(err)
	}
	testdb.UpForEver(t, pool)
	makeOlder(t, pool, scope, threadID, time.Hour)
	execute(t, pool, `update agui.run set started_at = started_at - interval '1 hour' where thread_key = agui.thread_key($1, $2)`, scope, threadID)
}

func inProgress(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	return count(t, pool, `select count(*) from agui.run where status = 'running'`)
}

// A run whose writer is gone ends in the log, in whichever scope; one that shows that it is alive goes on.
func TestReapClosesRunsWithoutASignOfLife(t *testing.T) {
	t.Parallel()
	for name, reap := range reapers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			pool := testdb.Pool(t)
			store, other := pgagui.New(pool, nil), pgagui.New(pool, &pgagui.Config{Scope: "other"})
			appendSilent(t, pool, "", "silent")
			appendSilent(t, pool, "other", "silent")
			appendSilent(t, pool, "", "kept alive")
			execute(t, pool, `select agui.keep_alive('{kept alive}', '{r}')`)
			appendSilent(t, pool, "", "busy")
			if _, err := store.Append(ctx, "busy", "r", []json.RawMessage{json.RawMessage(`{"type":"CUSTOM"}`)}); err != nil {
				t.Fatal(err)
			}
			appendRun(t, store, "ended", "r", "", message("m", 3)...)
			makeOlder(t, pool, "", "ended", time.Hour)

			reap(t, pool)
			for _, store := range []*pgagui.Store{store, other} {
				var closing []string
				for event, err := range store.Events(ctx, "silent", pgagui.EventsOptions{AfterSeq: 6}) {
					if err != nil {
						t.Fatal(err)
					}
					closing = append(closing, string(event.Payload))
				}
				want := []string{
					`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
					`{"type":"STEP_FINISHED","stepName":"answer"}`,
					`{"type":"RUN_ERROR","message":"The run was cut off: no sign of life for 00:05:00","code":"RUN_CUT_OFF"}`,
				}
				if !slices.Equal(closing, want) {
					t.Errorf("the run was closed with\n%s\nwant\n%s", strings.Join(closing, "\n"), strings.Join(want, "\n"))
				}
				status, err := store.Status(ctx, "silent", "")
				if err != nil || status.Status != pgagui.Failed || status.LastSeq != 9 || status.Stale || status.CutOffReason != "no sign of life for 00:05:00" {
					t.Errorf("status %+v, error %v", status, err)
				}
				_, err = store.Append(ctx, "silent", "r", []json.RawMessage{json.RawMessage(`{"type":"CUSTOM"}`)})
				if !errors.Is(err, pgagui.ErrRunCutOff) {
					t.Errorf("the writer that comes back late: error %v", err)
				}
			}
			for _, thread := range []string{"kept alive", "busy"} {
				if status, err := store.Status(ctx, thread, ""); err != nil || status.Status != pgagui.Running || status.Stale {
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
			reap(t, pool)
			if eventLog(t, pool, "silent") != before || inProgress(t, pool) != 2 {
				t.Error("a second time there was something to close")
			}
			appendRun(t, store, "silent", "next", "r", message("n", 3)...)
		})
	}
}

// The lock of a thread is its writer's: whoever has it may be about to show a sign of life.
func TestReapPassesOverAThreadThatIsBeingWrittenTo(t *testing.T) {
	t.Parallel()
	for name, reap := range reapers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			for n := range 3 {
				appendSilent(t, pool, "", fmt.Sprint("t", n))
			}
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.Background())
			if _, err := pgagui.New(pool, nil).WithTx(tx).Append(t.Context(), "t1", "r", []json.RawMessage{json.RawMessage(`{"type":"CUSTOM"}`)}); err != nil {
				t.Fatal(err)
			}
			reap(t, pool)
			if left := inProgress(t, pool); left != 1 {
				t.Errorf("%d runs are left, want the one that is being written to", left)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			reap(t, pool)
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
	execute(t, pool, `call agui.reap(max_runs => 0)`)
	execute(t, pool, `call agui.reap(max_time => '0')`)
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
	execute(t, pool, `call agui.reap(max_runs => 1)`)
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
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
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
		if said := notices(t, url, `call agui.reap()`); !strings.Contains(said, "another one is at work") {
			t.Errorf("agui.reap meanwhile: notices %q", said)
		}
		return inProgress(t, pool), nil
	}}
	if report := mustRun(t, pool, busy); report.Result != int64(1) {
		t.Errorf("%v runs are left, want the one", report.Result)
	}
}

func TestADamagedRunDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	for name, reap := range map[string]func(pool *pgxpool.Pool) error{
		"Go": func(pool *pgxpool.Pool) error {
			_, err := jobs.Reap(t.Context(), pool, jobs.ReapOptions{})
			return err
		},
		"SQL": func(pool *pgxpool.Pool) error {
			_, err := pool.Exec(t.Context(), `call agui.reap()`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			for n := range 6 {
				appendSilent(t, pool, "", fmt.Sprint("t", n))
			}
			// The first in the order of the keys. Closing a run reads the batches in which something begins or ends.
			execute(t, pool, `alter table agui.batch disable trigger user`)
			execute(t, pool, `update agui.batch set events = '{"at": "_END"}' where thread_key = (select min(thread_key::text)::uuid from agui.run)`)
			err := reap(pool)
			if err == nil || !strings.Contains(err.Error(), "json_to_recordset") {
				t.Errorf("error %v, want one that says what is wrong", err)
			}
			if left := inProgress(t, pool); left != 1 {
				t.Errorf("%d runs are left, want the damaged one", left)
			}
		})
	}
}
