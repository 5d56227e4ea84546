package jobs_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// A poison is a run that compaction cannot process, or not in its time or memory.
type poison struct {
	plant func(t *testing.T, pool *pgxpool.Pool, store *pgagui.Store)
	// kill ends a call that hangs there; nil: it ends by itself.
	kill func(t *testing.T, pool *pgxpool.Pool, call *compactCall)
	// mend takes away what makes it one; nil: nothing can.
	mend string
	// isLarge says that it is left to a larger scale.
	isLarge bool
	// runsOutOfTime says that what hangs is cancelled, as statement_timeout does.
	runsOutOfTime bool
	// crashes says that the server goes down with it.
	crashes bool
}

// A compactCall is one call of compaction that is under way.
type compactCall struct {
	process *os.Process // of the job in Go
	ended   chan error
}

var poisons = map[string]poison{
	"damaged": {plant: func(t *testing.T, pool *pgxpool.Pool, store *pgagui.Store) {
		appendInBatches(t, store, "poison", "r1", "", 2, message("m", 3)...)
		damage(t, pool, `delete from agui.batch where first_seq = 3`)
	}},
	// As large as appends allow it to become, and no patch is to blame.
	"over its limits": {isLarge: true, plant: func(t *testing.T, pool *pgxpool.Pool, _ *pgagui.Store) {
		appendLarge(t, pool, "poison", "r1", "", 2, `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || `+text(30)+` || '"}},'
			|| '{"type":"TEXT_MESSAGE_START","messageId":"m' || batch.first_seq || '"},'
			|| '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m' || batch.first_seq || '","delta":"' || `+text(20)+` || '"}]'`)
	}},
	"out of time": {plant: plantHanging, mend: `drop function hang() cascade`, runsOutOfTime: true},
	"kill -9 of the job": {plant: plantHanging, mend: `drop function hang() cascade`, kill: func(t *testing.T, pool *pgxpool.Pool, call *compactCall) {
		waitForHanging(t, pool)
		if call.process == nil {
			killHanging(t, pool)
			return
		}
		must.Report(t, call.process.Kill())
		killHanging(t, pool) // the server does not notice by itself that its client has gone
	}},
	"kill -9 of its session in the server": {plant: plantHanging, mend: `drop function hang() cascade`, crashes: true, kill: func(t *testing.T, pool *pgxpool.Pool, _ *compactCall) {
		waitForHanging(t, pool)
		// The note is committed without waiting for the disk.
		written := count(t, pool, `select pg_current_wal_insert_lsn() - '0/0'`)
		wait.For(t, "the note on the disk", func() bool { return count(t, pool, `select pg_current_wal_flush_lsn() - '0/0'`) >= written })
		testdb.KillBackend(t, pool, int(count(t, pool, `select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)))
	}},
}

// plantHanging makes every attempt to compact the thread "poison" take for ever.
func plantHanging(t *testing.T, pool *pgxpool.Pool, store *pgagui.Store) {
	t.Helper()
	appendRun(t, store, "poison", "r1", "", message("m", 3)...)
	testdb.Exec(t, pool, `
		create function hang() returns trigger language plpgsql as 'begin perform pg_sleep(600); return new; end';
		create trigger hang before insert on agui.snapshot for each row
			when (new.thread_key = agui.thread_key('', 'poison')) execute function hang()`)
}

// callTime is what a statement of compaction may take, as the role that runs it would have it. Nothing here takes as long.
const callTime = "2min"

// Whatever a run does to compaction, the threads behind it are done with the second call at the latest: by a process that may take 512 MB, and by
// agui.compact with a time limit for its statement.
func TestTwentyThreadsBehindAPoison(t *testing.T) {
	t.Parallel()
	const mostMegabytes = 512
	for name, poison := range poisons {
		if poison.isLarge && *scale < 2 {
			continue
		}
		for _, how := range []string{"Go", "SQL"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				address := testdb.New(t)
				if poison.crashes {
					address = ownServer(t)
				}
				pool := testdb.Connect(t, address)
				store := pgagui.New(pool, nil)
				poison.plant(t, pool, store)
				for thread := range 20 {
					appendRun(t, store, fmt.Sprint("t", thread), "r1", "", message("m", 3)...)
				}
				testdb.Exec(t, pool, `update agui.run set ended_at = ended_at - interval '1 minute' where thread_key = agui.thread_key('', 'poison')`)

				limited := must.Have(url.Parse(address))(t)
				query := limited.Query()
				query.Set("statement_timeout", callTime)
				limited.RawQuery = query.Encode()
				var peak atomic.Int64
				for range 2 {
					call := beginCompaction(t, how, limited.String(), mostMegabytes, &peak)
					if poison.kill != nil {
						poison.kill(t, pool, call)
					}
					if poison.runsOutOfTime {
						wait.For(t, "the call ends", func() bool {
							testdb.Exec(t, pool, `select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
							return len(call.ended) > 0
						})
					}
					if err := <-call.ended; err == nil && poison.kill != nil {
						t.Error("a call that was killed ended well")
					}
				}
				if waiting := waitingRuns(t, pool); waiting > 1 {
					t.Errorf("%d runs wait after two calls, want the poison at most", waiting)
				}
				if n := count(t, pool, `select count(*) from agui.snapshot join agui.thread using (thread_key) where thread_id <> 'poison'`); n != 20 {
					t.Errorf("%d of the threads have a snapshot", n)
				}
				if poison.mend != "" {
					// After two attempts at it the run waits for its time. Nothing speaks against the run itself, so it can be read. (The job in Go is
					// at the thread as a whole first, and may not know the run yet.)
					if how == "SQL" {
						if err := compactions[how](pool); err != nil {
							t.Errorf("a third call: %v, want nothing, for the run is in quarantine", err)
						}
					}
					checkReads(t, pool, "poison", "")
					testdb.Exec(t, pool, poison.mend)
					if done := mustCompact(t, pool, jobs.CompactOptions{Retry: true}); done.Runs != 1 || done.Quarantined != 0 {
						t.Errorf("done: %+v", done)
					}
					if n := count(t, pool, `select count(*) from agui_internal.job_note`); n != 0 {
						t.Errorf("%d notes are left", n)
					}
				}
				if how == "Go" {
					t.Logf("the job took %d MB", peak.Load()>>20)
				}
				if peak.Load()>>20 > mostMegabytes {
					t.Errorf("the job took %d MB, want %d at most", peak.Load()>>20, mostMegabytes)
				}
			})
		}
	}
}

// ownServer makes a database on a server of its own.
func ownServer(t *testing.T) (address string) {
	t.Helper()
	address = testdb.Server(t, nil).URL("postgres")
	must.Do(t, schema.Up(t.Context(), address))
	return address
}

// beginCompaction begins a call, in a process or session of its own. peak becomes the most memory, in bytes, that such a process has taken.
func beginCompaction(t *testing.T, how, address string, megabytes int, peak *atomic.Int64) *compactCall {
	t.Helper()
	call := &compactCall{ended: make(chan error, 1)}
	if how == "SQL" {
		connection := must.Have(pgx.Connect(t.Context(), address))(t)
		go func() {
			_, err := connection.Exec(context.Background(), `call agui.compact()`)
			connection.Close(context.Background())
			call.ended <- err
		}()
		return call
	}
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), jobToDo+"=compact-alone", jobDatabase+"="+address, fmt.Sprintf("GOMEMLIMIT=%dMiB", megabytes*3/4))
	must.Do(t, process.Start())
	call.process = process.Process
	go func() {
		ended := make(chan error, 1)
		go func() { ended <- process.Wait() }()
		for {
			peak.Store(max(peak.Load(), memory.Peak(process.Process.Pid)))
			select {
			case err := <-ended:
				call.ended <- err
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return call
}
