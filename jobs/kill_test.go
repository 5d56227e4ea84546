package jobs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

// kills is how often a job is killed.
func kills() int { return scaled(10, 3) }

// A process that is killed at any time leaves nothing half done and nothing lost, and the next one continues.
func TestKilledJobsLeaveNothingHalfDone(t *testing.T) {
	t.Parallel()
	waiting := map[string]string{
		"compact": `select count(*) from agui.run where log_bytes is null`,
		"repack":  `select count(*) from agui.run where repacked_at is null`,
		"erase":   `select count(*) from agui.thread`,
	}
	for job := range waiting {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			pool := testdb.Connect(t, url)
			store := pgagui.New(pool, nil)
			logs := map[string]string{} // what each thread's log must be
			for n := range kills() {
				if count(t, pool, waiting[job]) < 20 {
					for range 40 {
						thread := fmt.Sprint("t", len(logs))
						for _, run := range []string{"r1", "r2"} {
							appendInBatches(t, store, thread, run, "", 3, message("m"+run, 60)...)
						}
						logs[thread] = eventLog(t, pool, thread)
					}
					if job != "compact" {
						mustCompact(t, pool, jobs.CompactOptions{})
					}
				}
				killAtRandom(t, url, job)

				for thread, log := range logs {
					now := eventLog(t, pool, thread)
					if now == "" && job == "erase" {
						left := count(t, pool, `select
							(select count(*) from agui.run where thread_key = agui.thread_key('', $1))
							+ (select count(*) from agui.snapshot where thread_key = agui.thread_key('', $1))
							+ (select count(*) from agui.message where thread_key = agui.thread_key('', $1))
							+ (select count(*) from agui.erasure where erased_key = agui_internal.erasure_key(agui.thread_key('', $1))) * 100`, thread)
						if left != 100 {
							t.Errorf("thread %s is gone, but not all of it, or it was not noted: %d", thread, left)
						}
					} else if now != log {
						t.Errorf("the log of thread %s has changed", thread)
					}
				}
				checkSnapshots(t, pool, store)
				if t.Failed() {
					t.Fatalf("after %d kills", n+1)
				}
			}
		})
	}
}

// Each run is in progress as its writer left it, or has all of its end.
func TestAKilledReapLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	store := pgagui.New(pool, nil)
	threads := 0
	for n := range kills() {
		for ; inProgress(t, pool) < 20; threads++ {
			appendSilent(t, pool, "", fmt.Sprint("t", threads))
		}
		killAtRandom(t, url, "reap")
		if torn := count(t, pool, `
			select count(*) from agui.run
			where (select count(*) from agui.event where event.thread_key = run.thread_key) <> case status when 'running' then 6 else 9 end`); torn > 0 {
			t.Errorf("%d runs were closed in part", torn)
		}
		checkSnapshots(t, pool, store)
		if t.Failed() {
			t.Fatalf("after %d kills", n+1)
		}
	}
	if threads == 20 {
		t.Error("no run was closed")
	}
}

// killAtRandom starts a process that does a job and kills it after it has done a part, in the middle of the next.
func killAtRandom(t *testing.T, url, job string) {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), jobToDo+"="+job, jobDatabase+"="+url)
	process.Stderr = os.Stderr
	output := must.Have(process.StdoutPipe())(t)
	must.Do(t, process.Start())
	lines := bufio.NewScanner(output)
	for n := 1 + rand.IntN(5); n > 0 && lines.Scan(); n-- {
	}
	time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond) // anywhere in what it is doing
	must.Do(t, process.Process.Kill())
	process.Wait()
}

// eventLog is a digest of all events of a thread with their seqs and times; empty when it has none.
func eventLog(t *testing.T, pool *pgxpool.Pool, threadID string) string {
	t.Helper()
	var digest string
	err := pool.QueryRow(context.Background(), `
		select coalesce(md5(string_agg(seq || run_id || recorded_at || payload::text, ',' order by seq)), '')
		from agui.event where thread_key = agui.thread_key('', $1)`, threadID).Scan(&digest)
	must.Do(t, err)
	return digest
}

// Who kills a job says nothing of the run that it was at: reads fold the run, however often it was begun in vain. Jobs leave it for later.
func TestReadsGoOnAfterKills(t *testing.T) {
	t.Parallel()
	const times = 4
	for name, how := range map[string]struct{ language, kill string }{
		"a session of agui.compact":       {"SQL", "session"},
		"a session of pgagui compact":     {"Go", "session"},
		"the process of a pgagui compact": {"Go", "process"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := testdb.New(t)
			pool := testdb.Connect(t, address)
			store := pgagui.New(pool, nil)
			plantHanging(t, pool, store)
			appendRun(t, store, "poison", "child", "r1", message("n", 3)...)
			testdb.Exec(t, pool, `select agui.append('poison', 'running', '[{"type":"RUN_STARTED"},{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}]')`)
			for range times {
				// The time of the next attempt has come.
				testdb.Exec(t, pool, `update agui_internal.job_note set next_at = null`)
				call := beginCompaction(t, how.language, address, 512, new(atomic.Int64))
				waitForHanging(t, pool)
				if how.kill == "process" {
					must.Do(t, call.process.Kill())
				}
				// A job that learns why its session ended tries the thread once more.
				wait.For(t, "the call ends", func() bool {
					testdb.Exec(t, pool, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
					return len(call.ended) > 0
				})
				if err := <-call.ended; err == nil {
					t.Fatal("a call that was killed ended well")
				}
				checkReads(t, pool, "poison", "")
			}
			attempts := count(t, pool, `select coalesce(max(attempts), 0) from agui.quarantine where cause = 'interruption'`)
			failed := count(t, pool, `select count(*) from agui.quarantine where cause = 'run'`)
			// Such a job knows that the run has no part in it.
			if isTold := how.language == "Go" && how.kill == "session"; failed > 0 || (attempts >= 2) == isTold {
				t.Errorf("%d attempts at interrupted runs, %d runs failed", attempts, failed)
			}
			testdb.Exec(t, pool, `drop function hang() cascade`)
			if done := mustCompact(t, pool, jobs.CompactOptions{Retry: true}); done.Left != 0 || done.Quarantined != 0 {
				t.Errorf("done: %+v", done)
			}
			checkReads(t, pool, "poison", "")
			checkSnapshots(t, pool, store)
		})
	}
}

// checkReads checks that every read that folds a thread succeeds, or fails with an SQLSTATE.
func checkReads(t *testing.T, pool *pgxpool.Pool, threadID, code string) {
	t.Helper()
	for _, read := range []string{
		`agui.restore($1)`, `agui.messages($1)`, `agui.state($1)`, `agui.interrupts($1)`, `agui.tool_calls($1)`, `agui.activities($1)`,
		`agui.attachments($1)`, `agui.session_messages($1)`, `agui.replay($1)`, `agui.attach($1)`, `agui.attach($1, shape => 'stream')`,
	} {
		_, err := pool.Exec(t.Context(), `select * from `+read, threadID)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == code || err == nil && code == "" {
			continue
		}
		t.Errorf("%s of thread %s: error %v, want the code %q", read, threadID, err, code)
	}
}
