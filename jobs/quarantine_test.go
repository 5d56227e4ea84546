package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/protocol"
)

// jobsToTry are the ways to do a job; each returns its error.
var compactions = map[string]func(*pgxpool.Pool) error{
	"Go": func(pool *pgxpool.Pool) error {
		_, err := jobs.Compact(context.Background(), pool, jobs.CompactOptions{Workers: 2})
		return err
	},
	"SQL": func(pool *pgxpool.Pool) error {
		_, err := pool.Exec(context.Background(), `call agui.compact()`)
		return err
	},
}

var repackings = map[string]func(*pgxpool.Pool) error{
	"Go": func(pool *pgxpool.Pool) error {
		_, err := jobs.Repack(context.Background(), pool, jobs.RepackOptions{OlderThan: new(time.Duration)})
		return err
	},
	"SQL": func(pool *pgxpool.Pool) error {
		_, err := pool.Exec(context.Background(), `call agui.repack(older_than => '0')`)
		return err
	},
}

// damage goes past the trigger that guards the log.
func damage(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, allowed := tx.Exec(t.Context(), `select agui_internal.allow_log_change(true)`)
		_, err := tx.Exec(t.Context(), statement)
		return errors.Join(allowed, err)
	})
	must.Do(t, err)
}

// What the log has lost ends no job and holds up no other run: not those of other branches either.
func TestCompactionGoesOnBesideMissingBatches(t *testing.T) {
	t.Parallel()
	for how, compact := range compactions {
		for what, lost := range map[string]string{
			"all of a run": `run_no = 2`,
			"the last one": `run_no = 2 and first_seq = (select max(first_seq) from agui.batch where run_no = 2 and thread_key = agui.thread_key('', 'broken'))`,
		} {
			t.Run(how+", "+what, func(t *testing.T) {
				t.Parallel()
				pool := testdb.Pool(t)
				store := pgagui.New(pool, nil)
				appendInBatches(t, store, "broken", "r1", "", 2, message("m", 3)...)
				appendInBatches(t, store, "broken", "r2", "r1", 2, message("n", 3)...)
				appendInBatches(t, store, "broken", "child", "r2", 2, message("o", 3)...)
				appendInBatches(t, store, "broken", "branch", "r1", 2, message("p", 3)...)
				appendInBatches(t, store, "sound", "r1", "", 2, message("m", 3)...)
				damage(t, pool, `delete from agui.batch where thread_key = agui.thread_key('', 'broken') and `+lost)
				if err := compact(pool); err == nil || !strings.Contains(err.Error(), "the log has no event") {
					t.Errorf("error %v, want one that names what is missing", err)
				}
				if waiting := waitingRuns(t, pool); waiting != 2 {
					t.Errorf("%d runs wait, want the damaged one and its child", waiting)
				}
				if err := compact(pool); err != nil {
					t.Errorf("a second call: %v, want nothing, for the run is in quarantine", err)
				}
				if n := count(t, pool, `select count(*) from agui.quarantine where thread_id = 'broken' and run_id = 'r2' and attempts = 1`); n != 1 {
					t.Errorf("the run is in quarantine %d times", n)
				}
				stats, err := jobs.ReadStats(t.Context(), pool, jobs.StatsOptions{})
				if err != nil || stats.QuarantinedRuns != 1 {
					t.Errorf("stats: %+v, error %v", stats, err)
				}
				// The first failure already makes reads fail quickly, and so they do while the next attempt is in progress, or was killed.
				refused := func() bool {
					_, err := store.Restore(t.Context(), "broken", pgagui.At{RunID: "child"})
					return errors.Is(err, pgagui.ErrQuarantined) && strings.Contains(err.Error(), "the log has no event")
				}
				if !refused() {
					t.Error("a read of the child is not refused after the first failure")
				}
				testdb.Exec(t, pool, `select agui_internal.note_attempt('compact', agui.thread_key('', 'broken'), '{2}')`)
				if !refused() {
					t.Error("a read of the child is not refused while it is retried")
				}
				testdb.Exec(t, pool, `update agui_internal.job_note set next_at = now() - interval '1 second'`)
				if err := compact(pool); err == nil {
					t.Error("the run was not tried after its time")
				}
				if _, err := store.Restore(t.Context(), "broken", pgagui.At{RunID: "child"}); !errors.Is(err, pgagui.ErrQuarantined) ||
					!strings.Contains(err.Error(), "the log has no event") {
					t.Errorf("restore of the child: error %v, want the cause", err)
				}
				restored(t, store, "broken", "branch")
				if n := count(t, pool, `select count(*) from agui.events('broken')`); n == 0 {
					t.Error("the raw log cannot be read")
				}
				if n := count(t, pool, `select agui.retry()`); n != 1 {
					t.Errorf("agui.retry took %d runs out of quarantine", n)
				}
				if err := compact(pool); err == nil {
					t.Error("after agui.retry the run was not tried")
				}
			})
		}
	}
}

// What is wrong in the middle of a run is noticed by each job that folds or joins it, and in SQL as in Go. The run is left as it is,
// and so are those that continue from it; another branch is not.
func TestDamageInTheMiddleOfARunIsNoticed(t *testing.T) {
	t.Parallel()
	const at = ` where thread_key = agui.thread_key('', 'broken') and run_no = 2 and first_seq = 13`
	for what, test := range map[string]struct{ damage, want string }{
		"a missing batch":   {`delete from agui.batch` + at, "the batch at seq 15 should begin at seq 13: events are missing or double"},
		"too many events":   {`update agui.batch set n = 3` + at, "the batch at seq 13 holds 2 events, its row says 3"},
		"too few events":    {`update agui.batch set n = 1` + at, "the batch at seq 13 holds 2 events, its row says 1"},
		"an event less":     {`update agui.batch set events = json_build_array(events -> 0)` + at, "the batch at seq 13 holds 1 events, its row says 2"},
		"an overlap":        {`update agui.batch set first_seq = 12` + at, "the batch at seq 12 should begin at seq 13: events are missing or double"},
		"an overlap, a gap": {`update agui.batch set first_seq = 14` + at, "the batch at seq 14 should begin at seq 13: events are missing or double"},
		"no array":          {`update agui.batch set events = '{"no":"array"}'` + at, "the batch at seq 13 holds a JSON object in place of an array of events"},
	} {
		for how, job := range map[string]func(*pgxpool.Pool) error{
			"compaction in Go": compactions["Go"], "compaction in SQL": compactions["SQL"],
			"repack in Go": repackings["Go"], "repack in SQL": repackings["SQL"],
		} {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				pool := testdb.Pool(t)
				store := pgagui.New(pool, nil)
				appendInBatches(t, store, "broken", "r1", "", 2, message("m", 4)...)
				appendInBatches(t, store, "broken", "r2", "r1", 2, message("n", 6)...)
				appendInBatches(t, store, "broken", "child", "r2", 2, message("o", 4)...)
				appendInBatches(t, store, "broken", "branch", "r1", 2, message("p", 4)...)
				log := `select string_agg(batch::text, ';' order by first_seq) from agui.batch where run_no = 2`
				damage(t, pool, test.damage)
				var before, after string
				must.Do(t, pool.QueryRow(t.Context(), log).Scan(&before))
				if err := job(pool); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				if err := job(pool); err != nil {
					t.Errorf("a second call: %v, want nothing, for the run is in quarantine", err)
				}
				if n := count(t, pool, `select count(distinct run_id) from agui.quarantine where run_id = 'r2' and cause = 'run'`); n != 1 {
					t.Errorf("%d runs are in quarantine", n)
				}
				if err := pool.QueryRow(t.Context(), log).Scan(&after); err != nil || after != before {
					t.Errorf("the log of the run was\n%s\nand is\n%s (%v)", before, after, err)
				}
				column, left := "log_bytes", "r2 child"
				if strings.HasPrefix(how, "repack") {
					column, left = "repacked_at", "r2"
				}
				if waiting := testdb.Ask[string](t, pool, `select string_agg(run_id, ' ' order by run_no) from agui.run where `+column+` is null`); waiting != left {
					t.Errorf("%q wait, want %q", waiting, left)
				}
			})
		}
	}
}

// Runs that are in progress at the same time interleave in the log: their batches do not follow one another, and nothing is wrong.
func TestInterleavedRunsAreNoDamage(t *testing.T) {
	t.Parallel()
	for how, compact := range compactions {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			testdb.Exec(t, pool, `
				do $$
				begin
					for n in 0 .. 9 loop
						for run in 1 .. 3 loop
							perform agui.append('t', 'r' || run, case n
								when 0 then '[{"type":"RUN_STARTED"}]'
								when 9 then '[{"type":"RUN_FINISHED"}]'
								else '[{"type":"CUSTOM"},{"type":"CUSTOM"}]'
							end::json, parent_run_id => case n when 0 then '' end, parallel => true);
						end loop;
					end loop;
				end $$`)
			testdb.Exec(t, pool, `update agui.run set ended_at = ended_at - interval '1 day', started_at = started_at - interval '1 day'`)
			must.Report(t, compact(pool))
			testdb.Exec(t, pool, `call agui.repack()`)
			if n := count(t, pool, `select count(*) from agui.run where log_bytes is null or repacked_at is null`); n != 0 {
				t.Errorf("%d runs wait", n)
			}
		})
	}
}

// A run whose fold goes beyond a limit holds up no other; once the limit is raised, it is compacted.
func TestAFoldOverALimitGoesIntoQuarantine(t *testing.T) {
	t.Parallel()
	for how, compact := range compactions {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			appendInBatches(t, store, "large", "r1", "", 2, message("m", 3)...)
			appendInBatches(t, store, "large", "r2", "r1", 2, append(message("n", 3), message("o", 3)...)...)
			appendInBatches(t, store, "large", "child", "r2", 2, message("p", 3)...)
			appendInBatches(t, store, "other", "r1", "", 2, message("m", 3)...)
			testdb.Exec(t, pool, `select agui.set_setting('fold_messages', '2')`)
			_, err := store.Restore(t.Context(), "large", pgagui.At{RunID: "r2"})
			var refused *pgagui.Error
			if !errors.Is(err, pgagui.ErrFoldLimit) || !errors.As(err, &refused) || !strings.Contains(refused.Detail, "fold_messages is 2, and it takes 3 at seq ") ||
				!strings.Contains(refused.Message, `"r2"`) || !strings.Contains(refused.Hint, "agui.retry") {
				t.Errorf("restore: error %v, %+v", err, refused)
			}
			if err := compact(pool); err == nil || !strings.Contains(err.Error(), "the limit fold_messages") {
				t.Errorf("error %v, want one that names the limit", err)
			}
			if waiting := waitingRuns(t, pool); waiting != 2 {
				t.Errorf("%d runs wait, want the one that is too large and its child", waiting)
			}
			if n := count(t, pool, `select count(*) from agui.quarantine where thread_id = 'large' and run_id = 'r2' and code = 'UI023'`); n != 1 {
				t.Errorf("the run is in quarantine %d times", n)
			}
			restored(t, store, "large", "r1")
			// What a read found out in its time, compaction has noted.
			checkReads(t, pool, "large", "UI022")
			if _, err := store.Restore(t.Context(), "large", pgagui.At{RunID: "child"}); err == nil || !strings.Contains(err.Error(), "the limit fold_messages") {
				t.Errorf("restore: error %v, want one that names the limit", err)
			}
			if n := count(t, pool, `select count(*) from agui.events('large')`); n == 0 {
				t.Error("the raw log cannot be read")
			}
			for _, inSQL := range []bool{false, true} {
				if found, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{InSQL: inSQL}); err != nil || found.Problems != 0 {
					t.Errorf("verify (in SQL: %t): %+v, error %v", inSQL, found, err)
				}
			}
			testdb.Exec(t, pool, `select agui.set_setting('fold_messages', null), agui.retry()`)
			must.Report(t, compact(pool))
			restored(t, store, "large", "child")
		})
	}
}

func TestCompactRunningGoesOnAfterADamagedRun(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for thread := range 5 {
		testdb.Exec(t, pool, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"}]')`, fmt.Sprint("t", thread))
		testdb.Exec(t, pool, `select agui.append($1, 'r', '[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}]')`, fmt.Sprint("t", thread))
	}
	damage(t, pool, `update agui.batch set events = '{"no":"array"}' where first_seq = 2 and thread_key = (
		select thread_key from agui.run order by thread_key limit 1)`)
	if _, err := pool.Exec(t.Context(), `call agui.compact_running(1)`); err == nil || !strings.Contains(err.Error(), "1 of the runs in progress got no snapshot") {
		t.Errorf("error %v", err)
	}
	if n := count(t, pool, `select count(*) from agui.snapshot`); n != 4 {
		t.Errorf("%d runs have a snapshot, want the 4 sound ones", n)
	}
	testdb.Exec(t, pool, `call agui.compact_running(1)`)
}

// A thread that an open transaction holds is left for later; no job waits for it.
func TestJobsGoOnBesideAnOpenTransaction(t *testing.T) {
	t.Parallel()
	erasures := map[string]func(*pgxpool.Pool) error{
		"Go": func(pool *pgxpool.Pool) error {
			_, err := jobs.Erase(context.Background(), pool, jobs.EraseOptions{OlderThan: time.Hour, AllScopes: true})
			return err
		},
		"SQL": func(pool *pgxpool.Pool) error {
			_, err := pool.Exec(context.Background(), `call agui.erase_older('1 hour', scope => null)`)
			return err
		},
	}
	for how := range compactions {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			for thread := range 4 {
				appendInBatches(t, store, fmt.Sprint("t", thread), "r1", "", 2, message("m", 3)...)
			}
			tx := must.Have(pool.Begin(ctx))(t)
			defer tx.Rollback(ctx)
			// Behind the end: it holds the row of the run, the thread's lock and its place in lists.
			testdb.Exec(t, tx, `select agui.append('t2', 'r1', '[{"type":"RUN_ERROR","message":"late"}]')`)
			if err := compactions[how](pool); err != nil {
				t.Errorf("compact: %v", err)
			}
			if waiting := waitingRuns(t, pool); waiting != 1 {
				t.Errorf("%d runs wait for compaction, want the one that is held", waiting)
			}
			if err := repackings[how](pool); err != nil {
				t.Errorf("repack: %v", err)
			}
			if n := count(t, pool, `select count(*) from agui.run where repacked_at is not null`); n != 3 {
				t.Errorf("%d runs are repacked, want 3", n)
			}
			if n := count(t, pool, `select count(*) from agui_internal.job_note`); n != 0 {
				t.Errorf("%d notes are left: a lock is nothing that counts", n)
			}
			for thread := range 4 {
				makeOlder(t, pool, "", fmt.Sprint("t", thread), 48*time.Hour)
			}
			if err := erasures[how](pool); err != nil {
				t.Errorf("erase: %v", err)
			}
			if n := count(t, pool, `select count(*) from agui.thread`); n != 1 {
				t.Errorf("%d threads are left, want the one that is held", n)
			}
			must.Do(t, tx.Commit(ctx))
			if err := compactions[how](pool); err != nil || waitingRuns(t, pool) != 0 {
				t.Errorf("afterwards: error %v, %d runs wait", err, waitingRuns(t, pool))
			}
		})
	}
}

// A job that panics is a failure of that job alone.
func TestAPanicIsAnErrorOfTheJob(t *testing.T) {
	t.Parallel()
	job := jobs.Job{Name: "test", Work: func(context.Context) (any, error) { panic("no such luck") }}
	_, err := job.Run(t.Context(), testdb.Pool(t), nil)
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), "quarantine_test.go") {
		t.Errorf("error %v, want the panic and its place", err)
	}
}

// If a writer appends to a run while compaction folds it, the next call compacts what came late.
func TestALateErrorBesideCompaction(t *testing.T) {
	t.Parallel()
	for how, compact := range compactions {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			pool := testdb.Connect(t, url)
			store := pgagui.New(pool, nil)
			appendRun(t, store, "t", "r1", "", message("m", 3)...)
			// Compaction waits in the middle of the run until the error has been appended.
			testdb.Exec(t, pool, `
				create function wait() returns trigger language plpgsql as '
				begin
					while not pg_try_advisory_xact_lock(4711) loop perform pg_sleep(0.01); end loop;
					return new;
				end';
				create trigger wait before insert on agui.snapshot for each row execute function wait()`)
			tx := must.Have(pool.Begin(t.Context()))(t)
			defer tx.Rollback(t.Context())
			testdb.Exec(t, tx, `select pg_advisory_xact_lock(4711)`)
			ended := make(chan error, 1)
			go func() { ended <- compact(pool) }()
			wait.For(t, "compaction to wait", func() bool {
				return count(t, pool, `select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`) > 0
			})
			must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r1"}, []json.RawMessage{json.RawMessage(`{"type":"RUN_ERROR","message":"late"}`)}, pgagui.AppendOptions{}))(t)
			tx.Rollback(t.Context())
			must.Do(t, <-ended)
			must.Do(t, compact(pool))
			if n := count(t, pool, `select n from agui.run`); n != 8 {
				t.Errorf("the run has %d events, want 8", n)
			}
			checkSnapshots(t, pool, store)
		})
	}
}

// Compaction of earlier versions overlooked such late events. Verify finds and repairs that.
func TestRepairCountsWhatCompactionOverlooked(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendRun(t, store, "t", "r1", "", message("m", 3)...)
	mustCompact(t, pool, jobs.CompactOptions{})
	must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r1"}, []json.RawMessage{json.RawMessage(`{"type":"RUN_ERROR","message":"late"}`)}, pgagui.AppendOptions{}))(t)
	testdb.Exec(t, pool, `update agui.run set n = 7, log_bytes = 500`) // as if it had not been appended
	for name, inSQL := range map[string]bool{"Go": false, "SQL": true} {
		done, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{InSQL: inSQL})
		if err != nil || done.Problems != 1 {
			t.Errorf("%s: %+v, error %v", name, done, err)
		}
	}
	done, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{Repair: true})
	if err != nil || done.Problems != 0 || done.Repaired != 1 {
		t.Errorf("repair: %+v, error %v", done, err)
	}
	if n := count(t, pool, `select n from agui.run`); n != 8 {
		t.Errorf("the run has %d events, want 8", n)
	}
	checkSnapshots(t, pool, store)
}

// agui.compact folds short runs of a lineage together. If that fails, or the process is killed in it, each of them is tried alone: those before
// the culprit are compacted, and the culprit alone goes into quarantine.
func TestARunThatIsFoldedTogetherWithOthers(t *testing.T) {
	t.Parallel()
	const runs, culprit = 12, 8
	for what, begin := range map[string]string{
		"fails":     ``,
		"is killed": `select agui_internal.note_attempt('compact', agui.thread_key('', 't'), array(select generate_series(3, 12)))`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			for number := range runs {
				appendRun(t, store, "t", fmt.Sprint("r", number+1), "", message(fmt.Sprint("m", number+1), 3)...)
			}
			appendRun(t, store, "t", "branch", "r2", message("b", 3)...)
			appendRun(t, store, "other", "r1", "", message("m", 3)...)
			testdb.Exec(t, pool, fmt.Sprintf(`select agui.set_setting('fold_messages', '%d')`, culprit-1))
			if begin != "" {
				testdb.Exec(t, pool, begin)
				if n := count(t, pool, `select count(*) from agui.quarantine`); n != 0 {
					t.Errorf("%d runs are in quarantine before they are tried alone", n)
				}
			}
			compact := compactions["SQL"]
			if err := compact(pool); err == nil || !strings.Contains(err.Error(), "compaction failed for 1 of the threads") {
				t.Errorf("error %v, want one that names the limit", err)
			}
			if waiting := waitingRuns(t, pool); waiting != runs-culprit+1 {
				t.Errorf("%d runs wait, want the culprit and those that continue from it", waiting)
			}
			if n := count(t, pool, `select count(*) from agui.quarantine where run_no = $1 and attempts = 1 and code = 'UI023'`, culprit); n != 1 ||
				count(t, pool, `select count(*) from agui.quarantine`) != 1 {
				t.Errorf("the culprit alone is in quarantine, after one attempt: %d times", n)
			}
			if err := compact(pool); err != nil {
				t.Errorf("a second call: %v, want nothing, for the run is in quarantine", err)
			}
			testdb.Exec(t, pool, `select agui.set_setting('fold_messages', null), agui.retry()`)
			if err := compact(pool); err != nil || waitingRuns(t, pool) != 0 {
				t.Errorf("after the retry: error %v, %d runs wait", err, waitingRuns(t, pool))
			}
			if n := count(t, pool, `select count(*) from agui_internal.job_note`); n != 0 {
				t.Errorf("%d notes are left", n)
			}
			checkSnapshots(t, pool, store)
			if n := count(t, pool, `select json_array_length(agui.restore('t', run_id => 'r12') -> 'messages')`); n != runs {
				t.Errorf("the last run has %d messages, want %d", n, runs)
			}
		})
	}
}

// What a call may do in its limits: runs that are folded together count, and none are begun that the limits leave no room for.
func TestCompactionOfSeveralRunsKeepsItsLimits(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for number := range 20 {
		appendRun(t, store, "t", fmt.Sprint("r", number+1), "", message(fmt.Sprint("m", number+1), 3)...)
	}
	for _, call := range []struct {
		statement string
		waiting   int64
	}{
		{`call agui.compact(7)`, 13},
		{`call agui.compact(1)`, 12},
		{`call agui.compact(max_time => '1 microsecond')`, 11},
		{`call agui.compact(older_than => '1 hour')`, 11},
		{`call agui.compact()`, 0},
	} {
		testdb.Exec(t, pool, call.statement)
		if waiting := waitingRuns(t, pool); waiting != call.waiting {
			t.Errorf("%s: %d runs wait, want %d", call.statement, waiting, call.waiting)
		}
	}
	checkSnapshots(t, pool, store)
}

// agui.compact folds short threads in one transaction. If the process is killed in one of them, wherever that stands, the next call does all others
// before it, and counts attempts at that one alone.
func TestARunThatKillsATransactionOfSeveralThreads(t *testing.T) {
	t.Parallel()
	const threads = 40
	for what, kill := range map[string]string{
		"is killed":      `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
		"is out of time": `select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			address := testdb.New(t)
			pool := testdb.Connect(t, address)
			store := pgagui.New(pool, nil)
			for thread := range threads {
				appendRun(t, store, fmt.Sprint("t", thread), "r1", "", message("m", 3)...)
				if thread == 7 {
					plantHanging(t, pool, store)
				}
			}
			for call, want := range []struct{ attempts, waiting, noted int64 }{
				// The first transaction has 16 threads. None of them is done, and which one is to blame is known.
				{0, threads + 1, 16},
				{2, 1, 1},
			} {
				ended := beginCompaction(t, "SQL", address, 0, nil).ended
				waitForHanging(t, pool)
				testdb.Exec(t, pool, kill)
				if err := <-ended; err == nil {
					t.Error("a call that was killed ended well")
				}
				if attempts := count(t, pool, `select attempts from agui_internal.job_note where thread_key = agui.thread_key('', 'poison')`); attempts != want.attempts {
					t.Errorf("call %d: %d attempts at the run, want %d", call+1, attempts, want.attempts)
				}
				if waiting := waitingRuns(t, pool); waiting != want.waiting {
					t.Errorf("call %d: %d runs wait, want %d", call+1, waiting, want.waiting)
				}
				if n := count(t, pool, `select count(*) from agui_internal.job_note`); n != want.noted {
					t.Errorf("call %d: %d notes, want %d", call+1, n, want.noted)
				}
			}
			if err := compactions["SQL"](pool); err != nil {
				t.Errorf("a third call: %v, want nothing, for the run is in quarantine", err)
			}
			if n := count(t, pool, `select count(*) from agui.quarantine where thread_id = 'poison' and attempts = 2`); n != 1 {
				t.Errorf("the run is in quarantine %d times", n)
			}
			testdb.Exec(t, pool, `drop function hang() cascade; select agui.retry()`)
			if err := compactions["SQL"](pool); err != nil || waitingRuns(t, pool) != 0 {
				t.Errorf("after the retry: error %v, %d runs wait", err, waitingRuns(t, pool))
			}
			if n := count(t, pool, `select count(*) from agui_internal.job_note`); n != 0 {
				t.Errorf("%d notes are left", n)
			}
			checkSnapshots(t, pool, store)
		})
	}
}

// A run that fails undoes its own part of a transaction of several threads.
func TestARunThatFailsAmongSeveralThreads(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for thread := range 20 {
		appendRun(t, store, fmt.Sprint("t", thread), "r1", "", message("m", 3)...)
		if thread%7 == 3 {
			damage(t, pool, fmt.Sprintf(`delete from agui.batch where thread_key = agui.thread_key('', 't%d')`, thread))
		}
	}
	if err := compactions["SQL"](pool); err == nil || !strings.Contains(err.Error(), "compaction failed for 3 of the threads") {
		t.Errorf("error %v, want one that counts the threads", err)
	}
	if waiting := waitingRuns(t, pool); waiting != 3 {
		t.Errorf("%d runs wait, want the damaged ones", waiting)
	}
	if n := count(t, pool, `select count(*) from agui.quarantine where thread_id in ('t3', 't10', 't17') and attempts = 1 and next_attempt_at > now()`); n != 3 {
		t.Errorf("%d of the damaged runs are in quarantine, after one attempt", n)
	}
	if n := count(t, pool, `select count(*) from agui_internal.job_note`); n != 3 {
		t.Errorf("%d notes are left", n)
	}
}

// What a short run costs is counted in transactions and calls of functions, which do not depend on the machine.
func TestWhatAShortRunCosts(t *testing.T) {
	t.Parallel()
	const runs = 64
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, nil)
	for thread := range runs {
		appendRun(t, store, fmt.Sprint("t", thread), "r1", "", message("m", 3)...)
	}
	connection := must.Have(pgx.Connect(t.Context(), address))(t)
	for _, statement := range []string{`set track_functions = 'all'`, `call agui.compact()`, `select pg_stat_force_next_flush()`} {
		testdb.Exec(t, connection, statement)
	}
	connection.Close(t.Context())
	if waiting := waitingRuns(t, pool); waiting != 0 {
		t.Fatalf("%d runs wait", waiting)
	}
	wait.For(t, "the counts", func() bool {
		return count(t, pool, `select count(*) from pg_stat_user_functions where funcname = 'compact_sequence' and calls = $1`, runs) == 1
	})
	transactions := count(t, pool, `select calls from pg_stat_user_functions where funcname = 'begin_step'`)
	calls := count(t, pool, `select sum(calls) from pg_stat_user_functions`)
	t.Logf("%d transactions and %d calls of functions for %d runs", transactions, calls, runs)
	if transactions > runs/16+3 || calls > runs*18 {
		t.Error("that is more than ever")
	}
	if n := count(t, pool, `select count(*) from agui.run where repacked_at is null`); n != 0 {
		t.Errorf("%d runs of one batch wait for repack, which has nothing to join there", n)
	}
}

// roundTrips counts how often a pool sends statements and waits for the answer.
type roundTrips struct{ n atomic.Int64 }

func (r *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.n.Add(1)
	return ctx
}

func (r *roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.n.Add(1)
	return ctx
}

func (r *roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (r *roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// A job in Go waits for the server four times for a thread whose runs are all due, and six times if it has to load what they continue from.
func TestRoundTripsOfAThread(t *testing.T) {
	t.Parallel()
	const threads = 20
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	counter := &roundTrips{}
	config := pool.Config()
	config.ConnConfig.Tracer = counter
	counted := must.Have(pgxpool.NewWithConfig(t.Context(), config))(t)
	defer counted.Close()
	for _, step := range []struct {
		run  string
		most int64
	}{{"r1", 4}, {"r2", 6}} {
		for thread := range threads {
			appendRun(t, store, fmt.Sprint("t", thread), step.run, "", message(step.run, 3)...)
		}
		before := counter.n.Load()
		if done := mustCompact(t, counted, jobs.CompactOptions{}); done.Runs != threads {
			t.Fatalf("done: %+v", done)
		}
		// The job itself counts runs, reads limits and looks for more.
		taken := counter.n.Load() - before
		t.Logf("%d round trips for %d threads", taken, threads)
		if taken > threads*step.most+20 {
			t.Errorf("%s: that is more than %d a thread", step.run, step.most)
		}
	}
	checkSnapshots(t, pool, store)
}

// What a retry may cure does not speak against a run: a read of it goes on. The table is that of the retries of writers and followers.
func TestErrorsThatARetryMayCureKeepNoReads(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	kindOf := func(code string) (kind string) {
		t.Helper()
		must.Do(t, pool.QueryRow(t.Context(), `select agui_internal.failure_kind($1)`, code).Scan(&kind))
		return kind
	}
	for _, failure := range protocol.Errors().States {
		if kind := kindOf(failure.Code); failure.Retry != "" && kind == "run" {
			t.Errorf("%s (%s): %s speaks against the run", failure.Code, failure.Meaning, failure.Retry)
		}
	}
	for code, want := range map[string]string{"": "run", "UI023": "run", "22P02": "run", "P0004": "run", "P0001": "interruption", "XX000": "interruption"} {
		if kind := kindOf(code); kind != want {
			t.Errorf("%q is %s, want %s", code, kind, want)
		}
	}
}
