package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// beginRuns begins a run r in each thread.
func beginRuns(t *testing.T, pool *pgxpool.Pool, threads ...string) {
	t.Helper()
	for _, thread := range threads {
		testdb.Exec(t, pool, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"}]')`, thread)
	}
}

// runsOf says of all runs what they are, in the order of their threads.
func runsOf(t *testing.T, db querier, expression string) string {
	t.Helper()
	runs := testdb.List[string](t, db, `
		select thread.thread_id || ' ' || `+expression+` from agui.run as run join agui.thread as thread using (thread_key) order by thread.thread_id`)
	return fmt.Sprint(runs)
}

// A heartbeat writes at most once in a third of the lease, waits for no lock, and returns only the runs that the writer must act on.
func TestKeepAliveWritesWhatIsDue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	threads := []string{"asked to stop", "ended", "gone", "locked", "running"}
	beginRuns(t, pool, threads...)
	for _, statement := range []string{
		`select agui.request_stop('asked to stop', reason => 'enough'), agui.request_stop('asked to stop', 'r', 'more than enough')`,
		`select agui.append('ended', 'r', '[{"type":"RUN_FINISHED"}]')`,
		`select agui.abandon('gone', 'r', 'too long away')`,
	} {
		testdb.Exec(t, pool, statement)
	}
	other := begin(t, pool, pgx.ReadCommitted)
	testdb.Exec(t, other, `select from agui.run where thread_key = agui.thread_key('', 'locked') for update`)
	for _, call := range []struct{ before, wrote string }{
		{`select 1`, "[asked to stop t ended f gone f locked f running t]"}, // the first heartbeat
		{`update agui.run set has_heartbeat = true, seen_at = now() - interval '9 seconds'`, "[asked to stop f ended f gone f locked f running f]"},
		{`update agui.run set has_heartbeat = true, seen_at = now() - interval '10 seconds'`, "[asked to stop t ended f gone f locked f running t]"},
	} {
		other.Rollback(ctx)
		tx := begin(t, pool, pgx.ReadCommitted)
		testdb.Exec(t, tx, call.before)
		must.Do(t, tx.Commit(ctx))
		other = begin(t, pool, pgx.ReadCommitted)
		testdb.Exec(t, other, `select from agui.run where thread_key = agui.thread_key('', 'locked') for update`)
		tx = begin(t, pool, pgx.ReadCommitted)
		signals := testdb.List[string](t, tx, `
			select concat_ws(' ', call_no, status, stop_requested_at is not null, stop_reason, cut_off_reason)
			from agui.keep_alive($1, array_fill('r'::text, array[6]))`, append(threads, "never begun"))
		if got, want := fmt.Sprint(signals), "[1 running t enough 2 finished f 3 cut_off f too long away]"; got != want {
			t.Errorf("after %s: heard %s, want %s", call.before, got, want)
		}
		if got := runsOf(t, tx, `case when run.seen_at >= now() then 't' else 'f' end`); got != call.wrote {
			t.Errorf("after %s: wrote %s, want %s", call.before, got, call.wrote)
		}
		tx.Rollback(ctx)
	}
}
