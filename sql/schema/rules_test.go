package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// A release may fold stored events by other rules than the one before. What that one derived from them is not used, and the jobs make it
// again: statuses and snapshots of a store of 0.1.0, of which webhooks hear nothing.
func TestWhatOlderRulesDerivedIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, jobsOf := range []string{"SQL", "Go"} {
		t.Run(jobsOf, func(t *testing.T) {
			t.Parallel()
			address := testdb.Empty(t)
			pool := testdb.Connect(t, address)
			if storeOfRelease(t, address) == 0 {
				t.Skip("nothing is released")
			}
			const failed = `[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"boom","code":"B"},{"type":"STATE_SNAPSHOT","snapshot":{"late":1}},{"type":"RUN_FINISHED"}]`
			for i := range 3 {
				testdb.Exec(t, pool, `select agui.append($1, 'r', $2)`, fmt.Sprint("late-", i), failed)
				testdb.Exec(t, pool, `select agui.append($1, 'next', '[{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"n"},{"type":"RUN_FINISHED"}]')`, fmt.Sprint("late-", i))
			}
			testdb.Exec(t, pool, `select agui.append('asks', 'q', '[{"type":"RUN_STARTED"},{"type":"CUSTOM","name":"on_interrupt","value":"Erase it?"},{"type":"RUN_FINISHED"}]')`)
			testdb.Exec(t, pool, `call agui.compact()`)
			const state = `select string_agg(agui.state(thread_id)::text, ' ' order by thread_id) from agui.thread where thread_id like 'late-%'`
			if got := testdb.Ask[string](t, pool, state); got != `{"late":1} {"late":1} {"late":1}` {
				t.Fatalf("by the older rules the state is %s", got)
			}
			must.Do(t, schema.Up(t.Context(), address))
			mustBeRight := func(when string) {
				t.Helper()
				if got := testdb.Ask[string](t, pool, state); got != `{} {} {}` {
					t.Errorf("%s: the states are %s", when, got)
				}
				mustBeSound(t, pool, when)
			}
			mustBeRight("after the upgrade")

			// A program of the older rules may not fold, and nothing of what it does is left.
			for _, statement := range []string{
				`select agui_internal.limits_of_folds()`,
				`select agui_internal.add_snapshot(agui.thread_key('', 'late-0'), 1, 4, '{}', '{}', '{}', false, '[]', null)`,
			} {
				if _, err := pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("by version %d", compaction.Rules)) {
					t.Errorf("%s: %v", statement, err)
				}
			}

			compact, project := `call agui.compact()`, `call agui.project()`
			step := func(call string) {
				t.Helper()
				var err error
				switch {
				case jobsOf == "SQL":
					testdb.Exec(t, pool, call)
				case call == compact:
					_, err = jobs.Compact(t.Context(), pool, jobs.CompactOptions{})
				default:
					_, err = jobs.Project(t.Context(), pool, jobs.ProjectOptions{})
				}
				must.Do(t, err)
			}
			testdb.Exec(t, pool, `select agui.add_webhook('all', 'https://example.com')`)
			testdb.Exec(t, pool, `update agui.webhook set created_at = 'epoch'`)
			requests := func() string {
				testdb.Exec(t, pool, `
					select agui_internal.add_webhook_requests('all', position, position, array_agg(thread.scope), array_agg(thread.thread_id), array_agg(run.run_id))
					from agui.run join agui.thread using (thread_key) cross join agui_internal.webhook_position
					where webhook_position.webhook = 'all'
					group by position`)
				return testdb.Ask[string](t, pool, `select string_agg(event_id, ' ' order by event_id) from agui_internal.webhook_request where next_at is not null`)
			}
			sent := requests()
			step(compact)
			mustBeRight("after a compaction")
			step(compact)
			step(project)
			mustBeRight("after the jobs")
			if got := requests(); got != sent {
				t.Errorf("webhooks get requests of what was corrected: %s, not %s", got, sent)
			}
			if got := testdb.Ask[string](t, pool, `
				select concat_ws(' ', (select count(*) from agui_internal.older_rules), (select count(*) from agui.snapshot where rules is distinct from agui_internal.rules()),
					(select string_agg(concat_ws(' ', status, end_seq), ', ') from agui.run where run_id = 'r'),
					(select string_agg(concat_ws(' ', status, error_code), ', ') from agui.run_fact where run_id = 'r'))`); got != "0 0 failed 2, failed 2, failed 2 failed B, failed B, failed B" {
				t.Errorf("after the jobs: %s", got)
			}
			// A question is an interrupt now.
			if got := testdb.Ask[string](t, pool, `select concat_ws(' ', run.status, waiting.run_id, waiting.message) from agui.runs('asks') as run, agui.waiting() as waiting`); got != "interrupted q Erase it?" {
				t.Errorf("what asks is %q", got)
			}
			if got := testdb.Ask[int](t, pool, `select count(*) from agui.snapshot join agui.thread using (thread_key) where thread_id like 'late-%'`); got != 3 {
				t.Errorf("%d threads have a snapshot again, not 3", got)
			}
		})
	}
}

// mustBeSound fails for damage that is found with the reducer in SQL or in Go.
func mustBeSound(t *testing.T, pool *pgxpool.Pool, when string) {
	t.Helper()
	damage := testdb.Ask[*string](t, pool, `
		select string_agg(concat_ws(' ', thread_id, problem.run_id, problem.problem), e'\n')
		from agui.thread
		cross join lateral agui.verify(thread_id, scope) as problem
		where problem.severity = 'damage'`)
	if damage != nil {
		t.Errorf("%s: %s", when, *damage)
	}
	found, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{})
	if err != nil || found.Problems > 0 {
		t.Errorf("%s: %d problems, %v", when, found.Problems, err)
	}
}
