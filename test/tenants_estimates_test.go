package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// The planner's estimates apply no policy. So it has no statistics of what others wrote: neither of values that are frequent, nor of those
// that are the bounds of its histograms.
func TestEstimatesTellNothingOfOtherScopes(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	testdb.Exec(t, tenants.owner, `
		select agui.append('known to b', 'run of b ' || n % 10, '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'scope of b ' || n), agui.set_thread('known to b', title => 'title of b', scope => 'scope of b ' || n)
		from generate_series(1, 300) as n;
		select agui.append('t' || n, 'run of b', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'b'), agui.set_thread('t' || n, title => 'title of b', agent => 'agent of b', scope => 'b')
		from generate_series(1, 300) as n;
		analyze`)
	estimate := func(table, condition string) string {
		t.Helper()
		return testdb.List[string](t, tenants.asA, fmt.Sprintf(`explain (format json) select from generate_series(1, 1000000) cross join agui.%s where %s`, table, condition))[0]
	}
	scopeKey := testdb.List[string](t, tenants.owner, `select distinct scope_key::text from agui.thread_activity join agui.thread using (thread_key) where scope = 'b'`)[0]
	scopeHash := testdb.List[string](t, tenants.owner, `select left(agui.thread_key('b', '')::text, 18)`)[0]
	for _, try := range []struct{ table, column, known, unknown string }{
		{"thread", "scope", "'b'", "'nobody'"},
		{"thread", "thread_id", "'known to b'", "'nobody'"},
		{"thread_activity", "scope_key", scopeKey, "1"},
		{"thread_activity", "title", "'title of b'", "'nobody'"},
		{"thread_activity", "agent", "'agent of b'", "'nobody'"},
		{"run", "run_id", "'run of b'", "'nobody'"},
		{"run", `left(thread_key::text, 18) collate "C"`, "'" + scopeHash + "'", "'00000000-0000-0000'"},
	} {
		for _, operator := range []string{"=", "<", ">="} {
			// The same but for the value.
			known, unknown := estimate(try.table, try.column+operator+try.known), estimate(try.table, try.column+operator+try.unknown)
			if a, b := planRows(t, known), planRows(t, unknown); !slices.Equal(a, b) {
				t.Errorf("%s.%s %s %s: the estimates are %v, those for a value that nobody has %v", try.table, try.column, operator, try.known, a, b)
			}
		}
	}
}

// No texts or bytes of a table that is protected have statistics, but for words of this project.
func TestTextsHaveNoStatistics(t *testing.T) {
	t.Parallel()
	for _, column := range testdb.List[string](t, testdb.Pool(t), `
		select format('%s.%s', attribute.attrelid::regclass, attribute.attname)
		from pg_attribute as attribute
		join pg_class as class on class.oid = attribute.attrelid and class.relkind in ('r', 'i')
		where class.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and attribute.attnum > 0 and not attribute.attisdropped
			and (
				class.relkind = 'r' and (attribute.atttypid in ('text'::regtype, 'bytea'::regtype) or attribute.attname = 'scope_key')
				and exists (
					select from pg_attribute as key
					where key.attrelid = class.oid and key.attname in ('thread_key', 'erased_key', 'is_all')
				)
				-- Expressions of indexes have statistics of their own.
				or class.relkind = 'i' and exists (
					select from pg_index as index
					where index.indexrelid = class.oid and index.indkey[attribute.attnum - 1] = 0
				)
			)
			and coalesce(attribute.attstattarget, -1) <> 0
			and (class.relname, attribute.attname) not in (
				('run', 'status'), ('message_version', 'role'), ('input_part', 'kind'), ('job_note', 'job'), ('job_note', 'code')
			)
		order by 1`) {
		t.Errorf("%s has statistics", column)
	}
}

// planRows are the estimates of a plan, from its root.
func planRows(t *testing.T, plan string) (rows []float64) {
	t.Helper()
	type node struct {
		Rows  float64 `json:"Plan Rows"`
		Plans []node
	}
	var plans []struct{ Plan node }
	must.Do(t, json.Unmarshal([]byte(plan), &plans))
	var add func(node)
	add = func(n node) {
		rows = append(rows, n.Rows)
		for _, child := range n.Plans {
			add(child)
		}
	}
	add(plans[0].Plan)
	return rows
}
