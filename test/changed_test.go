package test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// run.changed_in is the transaction that last changed what a run is: its beginning, its end, events after its end. What happens in between
// and what jobs do with it later is no change, or a reader of changes would read a run as often as it has tokens.
func TestARunChangesWhenItBeginsAndEnds(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.UpForEver(t, pool)
	var none []string
	before := map[string]int64{}
	for _, step := range []struct {
		does    string
		changes []string
	}{
		{`select agui.append('t', 'r', '[{"type":"RUN_STARTED"}]')`, []string{"t/r"}},
		{`select agui.append('t', 'r', '[{"type":"CUSTOM"}]')`, none},
		{`select agui.append('t', 'r', '[{"type":"CUSTOM"},{"type":"STEP_STARTED","stepName":"s"}]', after_seq => 2)`, none},
		{`select agui.append_many('{t}', '{r}', array['[{"type":"CUSTOM"}]'::json])`, none},
		{`select agui.keep_alive('{t}', '{r}')`, none},
		{`select agui.request_stop('t', 'r', 'enough')`, none},
		{`select agui.append('t', 'other', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', parallel => true, parent_run_id => '')`, []string{"t/other"}},
		{`call agui.compact_running(1)`, none},
		{`select agui.append('t', 'r', '[{"type":"STEP_FINISHED","stepName":"s"},{"type":"RUN_FINISHED"}]')`, []string{"t/r"}},
		{`select agui.set_thread('t', title => 'x')`, none},
		{`call agui.compact()`, none},
		{`select agui.rebuild_snapshots('t')`, none},
		{`call agui.compact()`, none},
		{`call agui.repack(older_than => '0 s')`, none},
		{`select agui.append('t', 'r', '[{"type":"CUSTOM"}]', after_seq => 9)`, []string{"t/r"}},
		{`call agui.compact()`, none},
		// Ends on behalf of the writer: by request, by the next run, by the job.
		{`select agui.append('left', 'r', '[{"type":"RUN_STARTED"}]')`, []string{"left/r"}},
		{`select agui.abandon('left', 'r')`, []string{"left/r"}},
		{`select agui.append('stale', 'r', '[{"type":"RUN_STARTED"}]')`, []string{"stale/r"}},
		{`select agui.append('silent', 'r', '[{"type":"RUN_STARTED"}]')`, []string{"silent/r"}},
		{`alter table agui.batch disable trigger all; update agui.batch set recorded_at = recorded_at - interval '1 hour'`, none},
		{`select agui.append('stale', 's', '[{"type":"RUN_STARTED"}]')`, []string{"stale/r", "stale/s"}},
		{`call agui.reap()`, []string{"silent/r"}},
		// An import.
		{`select agui.import_events('old', 'r', '[{"type":"RUN_STARTED"}]')`, []string{"old/r"}},
		{`select agui.import_events('old', 'r', '[{"type":"CUSTOM"}]', after_seq => 1)`, none},
		{`select agui.import_events('old', 'r', '[{"type":"RUN_FINISHED"}]', after_seq => 2)`, []string{"old/r"}},
	} {
		horizon := testdb.Ask[int64](t, pool, `select pg_snapshot_xmin(pg_current_snapshot())::text::bigint`)
		if _, err := pool.Exec(context.Background(), step.does); err != nil {
			t.Fatalf("%s: %v", step.does, err)
		}
		after := changedIn(t, pool)
		changed := []string{}
		for run, transaction := range after {
			if transaction == before[run] {
				continue
			}
			changed = append(changed, run)
			if transaction < horizon {
				t.Errorf("%s: %s changed in transaction %d, which was over before (%d)", step.does, run, transaction, horizon)
			}
		}
		if slices.Sort(changed); !slices.Equal(changed, step.changes) {
			t.Errorf("%s changes the runs %v, want %v", step.does, changed, step.changes)
		}
		before = after
	}
	if runs := slices.Sorted(maps.Keys(before)); len(runs) != 7 {
		t.Errorf("the runs are %v", runs)
	}
}

func changedIn(t *testing.T, pool *pgxpool.Pool) map[string]int64 {
	t.Helper()
	transactions := map[string]int64{}
	rows, err := pool.Query(context.Background(), `
		select thread_id || '/' || run_id, changed_in::text::bigint from agui.run join agui.thread using (thread_key)`)
	must.Do(t, err)
	defer rows.Close()
	for rows.Next() {
		var run string
		var transaction int64
		must.Do(t, rows.Scan(&run, &transaction))
		transactions[run] = transaction
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return transactions
}

// What changes while a run is in progress changes in place: no index gets an entry. The begin and the end of a run cannot, because queues
// and lists have what they change.
func TestFrequentUpdatesAreHOT(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"},{"type":"RUN_FINISHED"}]'),
			agui.append('t', 's', '[{"type":"RUN_STARTED"}]'), agui.save_session_state('t', 'k', '1', 'r'),
			agui.append('u', 'r', '[{"type":"RUN_STARTED"}]'), agui.keep_alive('{u}', '{r}');
		update agui.run set seen_at = seen_at - interval '1 hour'`) // so that the next heartbeat is due
	for _, update := range []struct{ statement, table string }{
		{`select agui.keep_alive('{t}', '{s}')`, "run"},
		{`select agui.keep_alive('{u}', '{r}')`, "run"},
		{`select agui.keep_alive('{u}', '{r}', detach => true)`, "run"},
		{`select agui.request_stop('t', 's', 'enough')`, "run"},
		{`select agui.set_thread('t', title => 'x', agent => 'a', metadata => '{"a":1}')`, "thread_activity"},
		{`select agui.save_session_state('t', 'k', '2', 'r', 1)`, "session_key"},
		{`select agui_internal.repack_run(agui.thread_key('', 't'), 1)`, "thread"},
	} {
		tx := testdb.Begin(t, pool)
		defer tx.Rollback(t.Context())
		// What the session has not reported yet counts, too.
		counts := func() (updates, hot int64) {
			err := tx.QueryRow(t.Context(), `
				select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where schemaname = 'agui' and relname = $1`, update.table).Scan(&updates, &hot)
			must.Do(t, err)
			return updates, hot
		}
		updatesBefore, hotBefore := counts()
		testdb.Exec(t, tx, update.statement)
		updates, hot := counts()
		if updates -= updatesBefore; updates != 1 || hot-hotBefore != 1 {
			t.Errorf("%s updates agui.%s %d times, %d of them HOT; want 1", update.statement, update.table, updates, hot-hotBefore)
		}
		must.Do(t, tx.Rollback(t.Context()))
	}
}
