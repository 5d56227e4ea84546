package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// notices runs a statement and returns the notices that came with it.
func notices(t *testing.T, databaseURL, statement string) string {
	t.Helper()
	config := must.Have(pgx.ParseConfig(databaseURL))(t)
	var said []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { said = append(said, notice.Message) }
	connection := must.Have(pgx.ConnectConfig(t.Context(), config))(t)
	defer connection.Close(context.Background())
	testdb.Exec(t, connection, statement)
	return strings.Join(said, "\n")
}

func waitingRuns(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	return count(t, pool, `select count(*) from agui.run where log_bytes is null and status <> 'running'`)
}

func compactJob(pool *pgxpool.Pool) jobs.Job {
	return jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
		return jobs.Compact(ctx, pool, jobs.CompactOptions{})
	}}
}

func mustRun(t *testing.T, pool *pgxpool.Pool, job jobs.Job) jobs.Report {
	t.Helper()
	report := must.Have(job.Run(t.Context(), pool, nil))(t)
	return report
}

// lockHolder finds the connection that holds a job's lock.
const lockHolder = `
	select activity.pid, activity.backend_xmin is null
	from pg_stat_activity as activity
	join pg_locks as lock using (pid)
	where lock.locktype = 'advisory' and lock.granted and lock.objsubid = 1
		and lock.database = (select oid from pg_database where datname = current_database())
		and (lock.classid::bigint << 32) | lock.objid::bigint = agui_internal.job_lock_id('compact')`

func TestAJobIsDoneByOneAtATime(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	appendRun(t, pgagui.New(pool, nil), "t", "r", "", message("m", 3)...)
	// Whatever the database sets, the lock stays, and holds up no vacuum.
	database := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
	testdb.Exec(t, pool, fmt.Sprintf(`
		alter database %[1]s set default_transaction_isolation = 'serializable';
		alter database %[1]s set idle_in_transaction_session_timeout = '300ms'`, database))
	pool.Reset()

	first := jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
		if report := mustRun(t, pool, compactJob(pool)); report.Skipped != jobs.SkippedBusy || report.Result != nil {
			t.Errorf("a second start meanwhile: %+v", report)
		}
		if said := notices(t, url, `call agui.compact()`); !strings.Contains(said, "another compaction is in progress") {
			t.Errorf("agui.compact meanwhile: notices %q", said)
		}
		if waitingRuns(t, pool) != 1 {
			t.Error("the run was compacted by one that should do nothing")
		}
		testdb.Exec(t, pool, `select pg_sleep(0.6)`) // longer than a transaction may be idle here
		var holder int
		var holdsNoSnapshot bool
		if err := pool.QueryRow(ctx, lockHolder).Scan(&holder, &holdsNoSnapshot); err != nil || !holdsNoSnapshot {
			t.Errorf("the holder of the lock has a snapshot, error %v", err)
		}
		return "did it", nil
	}}
	if report := mustRun(t, pool, first); report.Skipped != "" || report.Result != "did it" || report.Job != "compact" || report.Duration <= 0 {
		t.Errorf("the first: %+v", report)
	}
	testdb.Exec(t, pool, fmt.Sprintf(`alter database %s reset all`, database))
	pool.Reset()
	if report := mustRun(t, pool, compactJob(pool)); report.Skipped != "" || report.Result.(jobs.Compacted).Runs != 1 {
		t.Errorf("the next one: %+v", report)
	}
}

func TestDifferentJobsAreDoneSideBySide(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	outer := jobs.Job{Name: "other", Work: func(context.Context) (any, error) {
		return mustRun(t, pool, compactJob(pool)).Skipped, nil
	}}
	if report := mustRun(t, pool, outer); report.Result != jobs.SkipReason("") {
		t.Errorf("compact beside another job: %v", report.Result)
	}
}

func TestAJobEndsWhenItsLockIsLost(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	job := jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
		testdb.Exec(t, pool, `select pg_terminate_backend(pid) from (`+lockHolder+`) as holder`)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	_, err := job.Run(t.Context(), pool, nil)
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "57P01" || !strings.Contains(err.Error(), "its lock was lost") {
		t.Errorf("error %v, want the lost connection", err)
	}
	// The server says goodbye before it releases the lock.
	for count(t, pool, `select count(*) from (`+lockHolder+`) as holder`) > 0 {
	}
	if report := mustRun(t, pool, compactJob(pool)); report.Skipped != "" {
		t.Errorf("the next one: %+v", report)
	}
}

func TestAJobNeedsOneConnectionOfThePool(t *testing.T) {
	t.Parallel()
	config := must.Have(pgxpool.ParseConfig(testdb.New(t)))(t)
	config.MaxConns = 1
	pool := must.Have(pgxpool.NewWithConfig(t.Context(), config))(t)
	defer pool.Close()
	appendRun(t, pgagui.New(pool, nil), "t", "r", "", message("m", 3)...)
	if report := mustRun(t, pool, compactJob(pool)); report.Result.(jobs.Compacted).Runs != 1 {
		t.Errorf("%+v", report)
	}
}

func TestObserversSeeHowAJobWent(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	type key struct{}
	failure := errors.New("no luck")
	var seen []string
	observe := func(ctx context.Context, job string) (context.Context, func(jobs.Report, error)) {
		return context.WithValue(ctx, key{}, job), func(report jobs.Report, err error) {
			seen = append(seen, fmt.Sprintf("%s %s%v %v", report.Job, report.Skipped, report.Result, err))
		}
	}
	job := jobs.Job{Name: "a", Work: func(ctx context.Context) (any, error) { return ctx.Value(key{}), nil }}
	failing := jobs.Job{Name: "b", Work: func(ctx context.Context) (any, error) {
		job.Name = "b"
		_, err := job.Run(ctx, pool, observe)
		return 1, errors.Join(err, failure)
	}}
	if _, err := job.Run(t.Context(), pool, observe); err != nil {
		t.Error(err)
	}
	if _, err := failing.Run(t.Context(), pool, observe); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	want := []string{"a a <nil>", "b another is in progress<nil> <nil>", "b 1 no luck"}
	if strings.Join(seen, "; ") != strings.Join(want, "; ") {
		t.Errorf("seen: %q, want %q", seen, want)
	}
}

// A job on a standby does nothing. After a promotion it runs.
func TestNothingIsDoneOnAStandby(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, nil)
	url := server.URL("postgres")
	must.Do(t, schema.Up(t.Context(), url))
	pool := testdb.Connect(t, url)
	appendRun(t, pgagui.New(pool, nil), "t", "r", "", message("m", 3)...)
	testdb.Exec(t, pool, `
		do $$ begin
			execute format('copy (select 1) to %L', current_setting('data_directory') || '/standby.signal');
		end $$`)
	must.Do(t, server.Restart(t.Context()))
	pool.Reset()
	if report := mustRun(t, pool, compactJob(pool)); report.Skipped != jobs.SkippedStandby {
		t.Errorf("%+v", report)
	}
	for _, procedure := range []string{"compact", "compact_running", "reap"} {
		if said := notices(t, url, `call agui.`+procedure+`()`); said != "agui."+procedure+" does nothing on a standby" {
			t.Errorf("agui.%s: notices %q", procedure, said)
		}
	}
	testdb.Exec(t, pool, `select pg_promote()`)
	if report := mustRun(t, pool, compactJob(pool)); report.Result.(jobs.Compacted).Runs != 1 {
		t.Errorf("after the promotion: %+v", report)
	}
}

func TestCompactionStopsInTime(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for i := range 3 {
		appendRun(t, store, fmt.Sprint("t", i), "r", "", message("m", 3)...)
	}
	testdb.Exec(t, pool, `call agui.compact(max_time => '0')`)
	testdb.Exec(t, pool, `call agui.compact(max_runs => 0)`)
	done := mustCompact(t, pool, jobs.CompactOptions{MaxTime: time.Nanosecond})
	if done.Runs != 0 || done.Stopped != jobs.StoppedByTime || done.Left != 3 {
		t.Errorf("without time: %+v", done)
	}
	done = mustCompact(t, pool, jobs.CompactOptions{MaxRuns: 1, MaxTime: time.Hour})
	if done.Runs != 1 || done.Stopped != jobs.StoppedAtLimit || done.Left != 2 {
		t.Errorf("one run: %+v", done)
	}
	done = mustCompact(t, pool, jobs.CompactOptions{MaxRuns: 2})
	if done.Runs != 2 || done.Stopped != "" || done.Left != 0 {
		t.Errorf("the limit is what there is: %+v", done)
	}
}

// A job that is asked to stop finishes the thread at hand; what takes longer than the grace is cancelled.
func TestCompactionFinishesTheThreadAtHand(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for i := range 3 {
		appendRun(t, store, fmt.Sprint("t", i), "r", "", message("m", 3)...)
	}
	testdb.Exec(t, pool, `
		-- It waits until the test lets go: jobs have a lock_timeout.
		create function started() returns trigger language plpgsql set lock_timeout = 0 as $$ begin
			perform pg_advisory_xact_lock(1);
			return new;
		end $$;
		create trigger started before insert on agui.snapshot for each row execute function started()`)
	// compact starts the job, calls stop when it is in the middle of the first thread, and returns what it did.
	compact := func(grace time.Duration, letGo bool) (jobs.Compacted, error) {
		blocker, err := pool.Acquire(t.Context())
		must.Do(t, err)
		defer blocker.Release()
		testdb.Exec(t, blocker, `select pg_advisory_lock(1)`)
		asked, ask := context.WithCancel(t.Context())
		ctx, cancel := jobs.WithGrace(asked, grace)
		defer cancel()
		type outcome struct {
			done jobs.Compacted
			err  error
		}
		ended := make(chan outcome)
		go func() {
			done, err := jobs.Compact(ctx, pool, jobs.CompactOptions{})
			ended <- outcome{done, err}
		}()
		wait.For(t, "the first thread to wait", func() bool {
			return count(t, pool, `
				select count(*) from pg_locks
				where locktype = 'advisory' and not granted and objid = 1
					and database = (select oid from pg_database where datname = current_database())`) > 0
		})
		ask()
		unlock := func() {
			if _, err := blocker.Exec(t.Context(), `select pg_advisory_unlock(1)`); err != nil {
				t.Error(err)
			}
		}
		if letGo {
			unlock()
		} else {
			defer unlock()
		}
		result := <-ended
		return result.done, result.err
	}
	done, err := compact(time.Hour, true)
	if err != nil || done.Runs != 1 || done.Stopped != jobs.StoppedOnCall || done.Left != 2 {
		t.Errorf("with time enough: %+v, error %v", done, err)
	}
	done, err = compact(0, false)
	if !errors.Is(err, context.Canceled) || done.Runs != 0 || waitingRuns(t, pool) != 2 {
		t.Errorf("without: %+v, error %v", done, err)
	}
	if done := mustCompact(t, pool, jobs.CompactOptions{}); done.Runs != 2 {
		t.Errorf("the next one: %+v", done)
	}
	checkSnapshots(t, pool, store)
}

// compactOnce are the two ways to compact up to some runs that ended a while ago.
var compactOnce = map[string]func(t *testing.T, pool *pgxpool.Pool, maxRuns int, olderThan time.Duration){
	"Go": func(t *testing.T, pool *pgxpool.Pool, maxRuns int, olderThan time.Duration) {
		mustCompact(t, pool, jobs.CompactOptions{MaxRuns: maxRuns, OlderThan: olderThan})
	},
	"SQL": func(t *testing.T, pool *pgxpool.Pool, maxRuns int, olderThan time.Duration) {
		testdb.Exec(t, pool, `call agui.compact($1, older_than => $2)`, maxRuns, olderThan)
	},
}

func TestTheOldestRunsAreCompactedFirst(t *testing.T) {
	t.Parallel()
	for name, compact := range compactOnce {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			const threads = 8
			for i := range threads {
				appendRun(t, store, fmt.Sprint("t", i), "r", "", message("m", 3)...)
			}
			for i := range threads {
				compact(t, pool, 1, 0)
				if count(t, pool, `select count(*) from agui.run where thread_key = agui.thread_key('', $1) and log_bytes is not null`, fmt.Sprint("t", i)) != 1 {
					t.Errorf("thread %d was not the next", i)
				}
			}
		})
	}
}

func TestYoungRunsCanBeLeftAlone(t *testing.T) {
	t.Parallel()
	for name, compact := range compactOnce {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			for i, run := range []string{"a", "b", "c", "d"} {
				appendRun(t, store, "t", run, "", message("m"+run, 20)...)
				if i < 2 {
					testdb.Exec(t, pool, `set session_replication_role = replica;
						update agui.run set ended_at = ended_at - interval '2 hours' where status <> 'running' and ended_at > now() - interval '1 hour';
						reset session_replication_role`)
				}
			}
			before := restored(t, store, "t", "")
			compact(t, pool, 10, time.Hour)
			if waiting := waitingRuns(t, pool); waiting != 2 {
				t.Errorf("%d runs wait, want the two young ones", waiting)
			}
			if after := restored(t, store, "t", ""); !sameJSON(t, before, after) {
				t.Errorf("restores as\n%s\nbefore it was\n%s", after, before)
			}
			compact(t, pool, 10, 0)
			if waiting := waitingRuns(t, pool); waiting != 0 {
				t.Errorf("%d runs wait", waiting)
			}
			if after := restored(t, store, "t", ""); !sameJSON(t, before, after) {
				t.Errorf("restores as\n%s\nbefore it was\n%s", after, before)
			}
			checkSnapshots(t, pool, store)
		})
	}
}
