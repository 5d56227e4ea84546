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
		"no function runs with its owner's rights": `
			select oid::regprocedure::text from pg_proc where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and prosecdef`,
		"PL/pgSQL functions that look at tables pin their search_path, with pg_temp last; a procedure that commits cannot, and lock_thread names everything with its schema": `
			select oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
				and prolang = (select oid from pg_language where lanname = 'plpgsql')
				and provolatile <> 'i'
				and coalesce(array_to_string(proconfig, ';'), '') !~ '(^|;)search_path=pg_catalog, pg_temp(;|$)'
				and proname not in ('compact', 'compact_running', 'repack', 'erase_older', 'reap', 'lock_thread')`,
		"every table has a primary key": `
			select c.oid::regclass::text from pg_class c
			where c.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and c.relkind = 'r'
				and not exists (select from pg_index where indrelid = c.oid and indisprimary)`,
		"no table is unlogged": `
			select oid::regclass::text from pg_class where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relkind = 'r' and relpersistence <> 'p'`,
		"what only reads can run in parallel, but for what catches errors": `
			select oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and provolatile <> 'v' and proparallel <> 's'
				and proname not in ('verify', 'verify_log', 'verify_batches', 'verify_snapshots',
					'json_or_null', 'tool_calls', 'session_messages', 'session_runs')`,
		"what catches errors does not run in parallel, which PostgreSQL refuses before 17": `
			select oid::regprocedure::text from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and proparallel = 's' and prosrc ~ '\mexception\s+(--[^\n]*\s+)*when\M'`,
	}
	for rule, query := range rules {
		rows, err := pool.Query(context.Background(), query)
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		for rows.Next() {
			var object string
			if err := rows.Scan(&object); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s: not so for %s", rule, object)
		}
	}
}

// A role that may read cannot write, one that may write cannot touch what is in the log.
func TestRoles(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx := context.Background()
	attempts := []struct {
		role, statement string
		allowed         bool
	}{
		{"agui_writer", `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"},{"type":"RUN_FINISHED"}]')`, true},
		{"agui_writer", `select agui.append('t', 's', '[{"type":"RUN_STARTED"}]')`, true},
		{"agui_writer", `select agui.abandon('t', 's')`, true},
		{"agui_writer", `call agui.compact()`, true},
		{"agui_writer", `select agui.append('t', 'u', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`, true},
		{"agui_writer", `call agui.compact()`, true},
		{"agui_writer", `select agui.append('t', 'u', '[{"type":"CUSTOM"}]', after_seq => (agui.status('t', 'u')).last_seq)`, true},
		{"agui_writer", `select agui.append('input', 'r', '[{"type":"RUN_STARTED"}]', input => '{}', parent_run_id => '')`, true},
		{"agui_writer", `select agui.restore('input')`, true},
		{"agui_writer", `select agui.import_events('t', 'x', '[{"type":"RUN_STARTED"}]')`, false},
		{"agui_maintainer", `select agui.import_events('imported', 'r', '[{"type":"RUN_STARTED"},{"type":"CUSTOM","timestamp":1700000000000},{"type":"RUN_FINISHED"}]')`, true},
		{"agui_writer", `update agui.run_input set input = '[]'`, false},
		{"agui_writer", `delete from agui.run_input`, false},
		{"agui_writer", `select agui.append('live', 'r', '[{"type":"RUN_STARTED"}]')`, true},
		{"agui_reader", `select * from agui.poll('{live}', '{0}')`, true},
		{"agui_reader", `select agui.status('live')`, true},
		{"agui_reader", `select agui.attach('live'), agui.attach('live', shape => 'stream'), agui.attach('live', shape => 'events')`, true},
		{"agui_reader", `select agui.request_stop('live')`, false},
		{"agui_reader", `select agui.keep_alive('{live}', '{r}')`, false},
		{"agui_reader", `call agui.reap()`, false},
		{"agui_reader", `select agui_internal.reap_run(agui.thread_key('', 'live'), 1)`, false},
		{"agui_writer", `select agui.request_stop('live')`, true},
		{"agui_writer", `select agui.set_setting('lease', '0')`, false},
		{"agui_writer", `update agui_internal.setting set value = 0`, false},
		{"agui_maintainer", `update agui_internal.setting set max_value = 0`, false},
		{"agui_maintainer", `select agui.set_setting('lease', '0')`, true},
		{"agui_reader", `select 1 / (value = 0)::int from agui.setting where name = 'lease'`, true},
		{"pg_monitor", `select * from agui.setting, agui.lag`, true},
		{"agui_writer", `select agui.keep_alive('{live}', '{r}')`, true},
		{"agui_writer", `call agui.reap()`, true},
		{"agui_maintainer", `select agui.set_setting('lease', null)`, true},
		{"agui_reader", `select 1 / count(*) from agui.run where run_id = 'r' and cut_off_reason is not null`, true},
		{"agui_writer", `select agui.save_session_state('t', 'k', '1', 'r')`, true},
		{"agui_writer", `set agui.session_versions = '1'`, true},
		{"agui_writer", `select agui.save_session('{"threadId":"t","runId":"r","state":{"k":2,"l":1}}')`, true},
		{"agui_writer", `reset agui.session_versions`, true},
		{"agui_reader", `select 1 / (count(*) = 1)::int from agui.session_versions('t', 'k', 'r')`, true},
		{"agui_writer", `select agui.remove_session_state('t', 'l', 'r', overwrite => true)`, true},
		{"agui_writer", `select agui.save_session_state('new', 'k', '1')`, true},
		{"agui_writer", `select agui.save_checkpoint('t', 'c', '{}'), agui.save_checkpoint('t', 'd', '{}', 'c')`, true},
		{"agui_writer", `update agui.session_state set document = '5'`, false},
		{"agui_writer", `delete from agui.session_key`, false},
		{"agui_writer", `update agui.checkpoint set document = '5'`, false},
		{"agui_writer", `delete from agui.checkpoint`, false},
		{"agui_reader", `select * from agui.load_session_state('t', 'k', 'r'), agui.session_states('t', 'r')`, true},
		{"agui_reader", `select agui.load_session('t', 'r'), agui.load_sessions('{t}')`, true},
		{"agui_reader", `select * from agui.load_checkpoint('t'), agui.checkpoints('t'), agui.checkpoint_lineage('t')`, true},
		{"agui_reader", `select agui.save_session_state('t', 'k', '1')`, false},
		{"agui_reader", `select agui.remove_session_state('t', 'k')`, false},
		{"agui_reader", `select agui.save_session('{"threadId":"t","state":{}}')`, false},
		{"agui_reader", `select agui.save_checkpoint('t', 'e', '{}')`, false},
		{"agui_reader", `insert into agui.session_state (thread_key, run_no, key, version) values (agui.thread_key('', 't'), 0, 'k', 9)`, false},
		{"pg_monitor", `select * from agui.session_state`, false},
		{"agui_writer", `delete from agui.batch`, false},
		{"agui_writer", `update agui.batch set n = 1`, false},
		{"agui_writer", `truncate agui.batch`, false},
		{"agui_writer", `delete from agui.run`, false},
		{"agui_writer", `call agui.repack(older_than => '0')`, false},
		{"agui_writer", `select agui.erase('t')`, false},
		{"agui_maintainer", `call agui.repack(older_than => '0')`, true},
		{"agui_maintainer", `select agui.append('gone', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`, true},
		{"agui_maintainer", `select agui.save_session_state('gone', 'k', '1'), agui.save_checkpoint('gone', 'c', '{}')`, true},
		{"agui_maintainer", `select agui.erase('gone')`, true},
		{"agui_maintainer", `select agui.lift_erasure('gone')`, true},
		{"agui_maintainer", `call agui.erase_older('1 day')`, true},
		{"agui_maintainer", `delete from agui.batch`, false},
		{"agui_reader", `select agui.restore('t')`, true},
		{"agui_reader", `select * from agui.messages('t')`, true},
		{"agui_reader", `select * from agui.events('t')`, true},
		{"agui_reader", `select * from agui.event`, true},
		{"agui_reader", `select * from agui.branches('t')`, true},
		{"agui_reader", `select * from agui.verify('t')`, true},
		{"agui_reader", `select * from agui.threads(title => 'x', status => 'stale'), agui.get_thread('t')`, true},
		{"agui_reader", `select agui.set_thread('t', title => 'x')`, false},
		{"agui_reader", `update agui.thread_activity set title = 'x'`, false},
		{"agui_writer", `select agui.set_thread('t', title => 'x')`, true},
		{"agui_writer", `select agui.set_thread('made', create_if_missing => true)`, true},
		{"agui_writer", `delete from agui.thread_activity`, false},
		{"agui_reader", `select * from agui.stats, agui.lag`, true},
		{"pg_monitor", `select * from agui.stats, agui.lag`, true},
		{"pg_monitor", `select * from agui.run`, false},
		{"agui_reader", `select agui.rebuild_snapshots('t')`, false},
		{"agui_writer", `select agui.rebuild_snapshots('t')`, true},
		{"agui_reader", `select agui.append('t', 'v', '[{"type":"RUN_STARTED"}]')`, false},
		{"agui_reader", `call agui.compact()`, false},
		{"agui_reader", `insert into agui.thread values (gen_random_uuid(), '', 'x')`, false},
	}
	connection, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Release()
	for _, attempt := range attempts {
		if _, err := connection.Exec(ctx, `set role `+attempt.role); err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Exec(ctx, attempt.statement); (err == nil) != attempt.allowed {
			t.Errorf("%s: %s: error %v, allowed %t", attempt.role, attempt.statement, err, attempt.allowed)
		}
	}
	if _, err := connection.Exec(ctx, `reset role`); err != nil {
		t.Fatal(err)
	}
}

// On a standby everything is read-only; so is a transaction that says so. All reads must work there.
func TestReadsWriteNothing(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx := context.Background()
	if _, err := pool.Exec(ctx, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]},{"type":"RUN_FINISHED"}]'),
		agui.save_session_state('t', 'k', '1', 'r'), agui.save_checkpoint('t', 'c', '1')`); err != nil {
		t.Fatal(err)
	}
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
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, `set transaction read only`); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, read); err != nil {
			t.Errorf("%s: %v", read, err)
		}
		tx.Rollback(ctx)
	}
}
