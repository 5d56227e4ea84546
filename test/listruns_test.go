package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/testdb"
)

// endRuns appends n runs of threads of a scope, of which each goes on from the one before it. They end in turn as failed, finished,
// cancelled and interrupted.
func endRuns(t *testing.T, pool *pgxpool.Pool, scope string, n int) {
	t.Helper()
	testdb.Exec(t, pool, `
		select agui.append('t' || i % 40, 'r' || i, json_build_array('{"type":"RUN_STARTED"}'::json, (array[
				'{"type":"RUN_ERROR","message":"secret of SCOPE"}', '{"type":"RUN_FINISHED"}', '{"type":"RUN_FINISHED","outcome":{"type":"cancelled"}}',
				'{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}'
			]::json[])[1 + i / 40 % 4]), scope => $1)
		from generate_series(0, $2 - 1) as i`, scope, n)
}

// A page of agui.list_runs reads the runs that it shows, however many others there are: of other statuses, of other scopes, before and
// behind the page.
func TestAPageOfRunsCostsWhatItShows(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, scope := range []string{"", "other", "another"} {
		endRuns(t, pool, scope, 800)
	}
	const page = 10
	for _, state := range []string{"without statistics", "analyzed"} {
		if state == "analyzed" {
			testdb.Exec(t, pool, `analyze`)
		}
		cursor := testdb.Ask[string](t, pool, `select cursor from agui.list_runs('{failed}', max_rows => 100) order by cursor limit 1`)
		for _, list := range []struct {
			arguments string
			statuses  int64
			rows      int64
		}{
			{`'{failed}', max_rows => 10`, 1, page},
			{`'{failed}', max_rows => 10, cursor => '` + cursor + `'`, 1, page},
			{`'{failed}', max_rows => 10, since => now() - interval '1 day'`, 1, page},
			{`'{failed}', max_rows => 10, scope => 'other'`, 1, page},
			{`'{failed}', max_rows => 10, scope => 'nobody'`, 1, 0},
			{`'{failed}', max_rows => 10, since => now() + interval '1 day'`, 1, 0},
			{`'{cut_off}', max_rows => 10`, 1, 0},
			{`'{interrupted}', max_rows => 10`, 1, page},
			{`'{failed,cut_off,cancelled,interrupted}', max_rows => 10`, 3, page},
			{`null, max_rows => 10`, 3, page},
			{`null, max_rows => 1000`, 3, 600},
		} {
			statement := `select agui.list_runs(` + list.arguments + `)`
			shown := testdb.Ask[int64](t, pool, `select count(*) from agui.list_runs(`+list.arguments+`)`)
			if shown != list.rows {
				t.Errorf("%s shows %d runs, want %d", statement, shown, list.rows)
			}
			for table, most := range map[string]int64{
				// A page of each status, and the parents of those shown.
				"run": list.statuses*list.rows + list.rows, "thread": list.rows, "thread_activity": list.rows, "batch": list.rows,
			} {
				if read := rowsReadWith(t, pool, `set local enable_seqscan = on`, table, statement); read > most {
					t.Errorf("%s, %s reads %d rows of %s, want at most %d", state, statement, read, table, most)
				}
			}
		}
		// A thread costs a look at an index if no run of it ended so.
		if read := rowsReadWith(t, pool, `set local enable_seqscan = on`, "run", `select agui.threads(status => 'cut_off')`); read > 0 {
			t.Errorf("%s, agui.threads(status => 'cut_off') reads %d rows of run, want none", state, read)
		}
		// The job that corrects restored rows looks at those alone. Planning reads the first and the last key.
		if read := rowsReadWith(t, pool, `set local enable_seqscan = on`, "run", `select agui_internal.find_ends()`); read > 2 {
			t.Errorf("%s, agui_internal.find_ends reads %d rows of run, want at most 2", state, read)
		}
	}
}

// Under row-level security a tenant lists its own runs. Of other scopes it gets none, as of scopes that do not exist.
func TestTenantsListTheirOwnRuns(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	for _, scope := range []string{"a", "b"} {
		testdb.Exec(t, tenants.owner, strings.ReplaceAll(`
			select agui.append('failed', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_ERROR","message":"secret of SCOPE"}]', scope => 'SCOPE'),
				agui.append('cut', 'r', '[{"type":"RUN_STARTED"}]', scope => 'SCOPE'), agui.abandon('cut', 'r', reason => 'secret of SCOPE', scope => 'SCOPE'),
				agui.append('stopped', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","outcome":{"type":"cancelled"},"result":{"reason":"secret of SCOPE"}}]', scope => 'SCOPE')`,
			"SCOPE", scope))
	}
	const everything = `'{failed,cut_off,cancelled}'`
	list := func(pool *pgxpool.Pool, scope string, arguments ...string) (found []string) {
		t.Helper()
		statement := fmt.Sprintf(`
			select thread_id || ' ' || run_id || ': ' || coalesce(cut_off_reason, stop_reason, error_message)
			from agui.list_runs(%s, scope => '%s')`, strings.Join(append([]string{everything}, arguments...), ", "), scope)
		if err := pool.QueryRow(t.Context(), `select coalesce(array_agg(line), '{}') from (`+statement+`) as listed (line)`).Scan(&found); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
		slices.Sort(found)
		return found
	}
	ownOf := func(scope string) []string {
		secret := " r: secret of " + scope
		return []string{"cut" + secret, "failed" + secret, "stopped" + secret}
	}
	for _, test := range []struct {
		name  string
		pool  *pgxpool.Pool
		scope string
		want  []string
	}{
		{"a, its own", tenants.asA, "a", ownOf("a")},
		{"a, of b", tenants.asA, "b", nil},
		{"a, of none", tenants.asA, "nobody", nil},
		{"a, without a scope", tenants.asA, "", nil},
		{"b, its own", tenants.asB, "b", ownOf("b")},
		{"b, of a", tenants.asB, "a", nil},
		{"operator, of a", tenants.asOperator, "a", ownOf("a")},
		{"operator, of b", tenants.asOperator, "b", ownOf("b")},
		{"unmapped, of a", tenants.asNone, "a", nil},
		{"pool that has not named its scope", tenants.asPool, "a", nil},
		{"owner", tenants.owner, "a", ownOf("a")},
	} {
		if got := list(test.pool, test.scope); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	// A cursor has the position of a run, of which the scope is not part: a foreign one leads to no foreign run.
	foreign := testdb.Ask[string](t, tenants.owner, `select cursor from agui.list_runs(`+everything+`, scope => 'b') order by cursor desc limit 1`)
	for _, line := range list(tenants.asA, "a", `cursor => '`+foreign+`'`) {
		if !strings.Contains(line, "secret of a") {
			t.Errorf("behind the cursor of another tenant: %q", line)
		}
	}
	if got := list(tenants.asA, "b", `cursor => '`+foreign+`'`); len(got) > 0 {
		t.Errorf("runs of another tenant behind its cursor: %q", got)
	}
	// A pool lists the runs of the scope that is set.
	transaction := testdb.Begin(t, tenants.asPool)
	defer transaction.Rollback(t.Context())
	var own, others int
	if err := transaction.QueryRow(t.Context(), `
		with named as materialized (select set_config('agui.scope', 'b', true))
		select (select count(*) from agui.list_runs(scope => 'b')), (select count(*) from agui.list_runs(scope => 'a')) from named`).Scan(&own, &others); err != nil || own != 2 || others != 0 {
		t.Errorf("a pool lists %d runs of its scope and %d of another (%v)", own, others, err)
	}
	if _, err := tenants.asA.Exec(t.Context(), `select agui.list_runs(scope => null)`); testdb.State(err) != "22023" {
		t.Errorf("without a scope: %v", err)
	}
}
