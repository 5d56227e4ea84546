package test

import (
	"context"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// What a DBA looks at before saying yes: each query lists what breaks a rule, and must find nothing.
func TestCatalog(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	rules := map[string]string{
		"every table, view and type is commented": `
			select c.oid::regclass::text from pg_class c
			where c.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and c.relkind in ('r', 'v', 'c') and c.relname <> 'schema_migrations'
				and obj_description(coalesce(nullif(c.reltype, 0)::oid, c.oid), 'pg_type') is null and obj_description(c.oid, 'pg_class') is null`,
		"every column of a table is commented, but for keys named as the table's own": `
			select a.attrelid::regclass || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
			where c.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and c.relkind = 'r' and c.relname <> 'schema_migrations'
				and a.attnum > 0 and not a.attisdropped and a.attname not in ('thread_key', 'run_no', 'created_at')
				and col_description(a.attrelid, a.attnum) is null`,
		"every function is commented": `
			select oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and obj_description(oid, 'pg_proc') is null`,
		"nobody but roles that were granted it may execute a function": `
			select p.oid::regprocedure::text from pg_proc p
			where p.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
				and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) where grantee = 0)`,
		"PL/pgSQL functions that look at tables pin their search_path, with pg_temp last; a procedure that commits cannot, and what each append or each statement calls names everything with its schema": `
			select oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
				and prolang = (select oid from pg_language where lanname = 'plpgsql')
				and provolatile <> 'i'
				and coalesce(array_to_string(proconfig, ';'), '') !~ '(^|;)search_path=pg_catalog, pg_temp(;|$)'
				and proname not in ('compact', 'compact_running', 'project', 'repack', 'split_inputs', 'erase_older', 'apply_retention', 'reap', 'visible_key', 'checked_caller_role', 'pool_first_key', 'pool_last_key')`,
		"what turns a kind of plan off turns JIT off, which the cost of a plan that is left would turn on": `
			select oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
				and array_to_string(proconfig, ';') ~ '(^|;)enable_[a-z]+=off' and array_to_string(proconfig, ';') !~ '(^|;)jit=off'`,
		"every table has a primary key": `
			select c.oid::regclass::text from pg_class c
			where c.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and c.relkind = 'r'
				and not exists (select from pg_index where indrelid = c.oid and indisprimary)`,
		"no table is unlogged": `
			select oid::regclass::text from pg_class where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relkind = 'r' and relpersistence <> 'p'`,
		"what only reads can run in parallel, but for what catches errors, or calls what cannot": `
			select pg_proc.oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and provolatile <> 'v' and proparallel <> 's'
				and not exists (
					select from (` + callsIn(`pg_get_functiondef(pg_proc.oid)`) + `) as call
					where call.caller = pg_proc.oid and call.called <> pg_proc.oid and call.proparallel <> 's'
				)
				and proname not in ('verify', 'verify_log', 'verify_batches', 'verify_snapshots',
					'json_or_null', 'tool_calls', 'session_messages', 'session_runs', 'known_messages', 'attachment_data', 'epoch')`,
		"what can run in parallel calls nothing that cannot": `
			select format('%s, which calls %s', caller::regprocedure, called::regprocedure)
			from (` + callsIn(
			// But for what is in texts.
			`regexp_replace(pg_get_functiondef(pg_proc.oid), '(hint|message) = (format\()?''[^'']*''', '', 'g')`) + `) as call
			join pg_proc on pg_proc.oid = caller
			where pg_proc.proparallel = 's' and pg_proc.prokind = 'f' and call.proparallel <> 's'`,
		"what catches errors does not run in parallel, which PostgreSQL refuses before 17": `
			select oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and proparallel = 's' and prosrc ~ '\mexception\s+(--[^\n]*\s+)*when\M'`,
	}
	for rule, query := range rules {
		for _, object := range testdb.List[string](t, pool, query) {
			t.Errorf("%s: not so for %s", rule, object)
		}
	}
}

// callsIn is a query for the calls of the schemas' functions that their definitions have: caller, called, and proparallel of the latter.
func callsIn(definition string) string {
	return `
		select distinct pg_proc.oid as caller, called.oid as called, called.proparallel
		from pg_proc
		cross join lateral regexp_matches(` + definition + `, '\m(agui|agui_internal)\.(\w+)\(', 'g') as name
		join pg_proc as called on called.pronamespace::regnamespace::text = name[1] and called.proname = name[2]
		where pg_proc.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and pg_proc.prokind <> 'a'`
}

// On a standby everything is read-only; so is a transaction that says so. All reads must work there.
func TestReadsWriteNothing(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx := context.Background()
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]},{"type":"RUN_FINISHED"}]'),
		agui.save_session_state('t', 'k', '1', 'r'), agui.save_checkpoint('t', 'c', '1')`)
	for _, read := range []string{
		`select agui.restore('t')`, `select * from agui.messages('t')`, `select agui.state('t')`, `select agui.interrupts('t')`,
		`select * from agui.events('t')`, `select * from agui.event`, `select * from agui.lineage('t')`, `select * from agui.runs('t')`,
		`select * from agui.branches('t')`, `select * from agui.threads(title => 'x', archived => null)`, `select agui.get_thread('t')`,
		`select * from agui.children('t')`, `select agui.head('t')`,
		`select agui.merge_base('t', 'r', 'r')`, `select * from agui.verify('t')`,
		`select * from agui.load_session_state('t', 'k', 'r')`, `select * from agui.session_states('t', 'r')`,
		`select * from agui.session_versions('t', 'k', 'r')`, `select agui.load_session('t', 'r')`, `select agui.load_sessions('{t,t}', '{r,null}')`,
		`select * from agui.load_checkpoint('t', 'c')`, `select * from agui.checkpoints('t')`, `select * from agui.checkpoint_lineage('t')`,
		`select * from agui.status('t')`, `select * from agui.poll('{t}', '{0}')`, `select agui.restore('t', at_time => now())`,
		`select agui.attach('t')`, `select agui.attach('t', shape => 'stream')`, `select agui.attach('t', shape => 'events')`, `select agui.replay('t')`, `select * from agui_internal.stale_runs()`,
	} {
		tx := testdb.Begin(t, pool)
		testdb.Exec(t, tx, `set transaction read only`)
		if _, err := tx.Exec(ctx, read); err != nil {
			t.Errorf("%s: %v", read, err)
		}
		tx.Rollback(ctx)
	}
}
