package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

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
		{"agui_worker", `call agui.compact()`, true},
		{"agui_writer", `select agui.append('t', 'u', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`, true},
		{"agui_worker", `call agui.compact()`, true},
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
		{"agui_worker", `select agui.add_webhook('hook', 'https://example.com')`, false},
		{"agui_maintainer", `select agui.add_webhook('hook', 'https://example.com')`, true},
		{"agui_maintainer", `select 1 / count(*) from agui.webhooks()`, true},
		{"agui_reader", `select agui.webhooks()`, false},
		{"agui_reader", `select agui.webhook_failures()`, false},
		{"agui_reader", `select 1 / count(*) from agui_internal.webhook_states()`, true},
		{"agui_worker", `select agui.rotate_webhook_secret('hook')`, false},
		{"agui_worker", `select agui.take_over_webhooks()`, false},
		{"agui_reader", `select agui_internal.erased_after('0', gen_random_uuid(), 0, 1, gen_random_uuid(), gen_random_uuid())`, false},
		{"agui_reader", `select agui_internal.webhook_endpoints(now())`, false},
		{"agui_writer", `select agui_internal.webhook_endpoints(now())`, false},
		{"agui_worker", `select 1 / count(*) from agui_internal.webhook_endpoints(now())`, true},
		{"agui_worker", `select agui.changes()`, true},
		{"agui_maintainer", `select * from agui.webhook`, false},
		{"agui_worker", `select * from agui_internal.webhook_request`, false},
		{"pg_monitor", `select * from agui.setting, agui.lag()`, true},
		{"agui_writer", `select agui.keep_alive('{live}', '{r}')`, true},
		{"agui_worker", `call agui.reap()`, true},
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
		{"agui_worker", `call agui.repack(older_than => '0')`, true},
		{"agui_writer", `select agui.append('gone', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`, true},
		{"agui_writer", `select agui.save_session_state('gone', 'k', '1'), agui.save_checkpoint('gone', 'c', '{}')`, true},
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
		{"agui_reader", `select * from agui.stats(), agui.lag(exact => true)`, true},
		{"pg_monitor", `select * from agui.stats(), agui.lag(exact => true)`, true},
		{"pg_monitor", `select * from agui.run`, false},
		{"agui_reader", `select agui.rebuild_snapshots('t')`, false},
		{"agui_writer", `select agui.rebuild_snapshots('t')`, false},
		{"agui_maintainer", `select agui.rebuild_snapshots('t')`, true},
		{"agui_reader", `select agui.append('t', 'v', '[{"type":"RUN_STARTED"}]')`, false},
		{"agui_reader", `call agui.compact()`, false},
		{"agui_recorder", `select * from agui.append_many('{rec}', '{r}', array['[{"type":"RUN_STARTED"}]'::json])`, true},
		{"agui_recorder", `select * from agui.keep_alive('{rec}', '{r}')`, true},
		{"agui_recorder", `select * from agui.poll('{rec}', '{0}')`, true},
		{"agui_recorder", `select agui.append('rec', 'r', '[{"type":"RUN_FINISHED"}]')`, false},
		{"agui_recorder", `select agui.claim_run('rec', 's', 'me', parallel => true)`, false},
		{"agui_recorder", `select agui.status('rec')`, false},
		{"agui_recorder", `select agui.abandon('rec', 'r')`, false},
		{"agui_recorder", `select agui.request_stop('rec')`, false},
		{"agui_recorder", `select * from agui.threads()`, false},
		{"agui_recorder", `select * from agui.thread`, false},
		{"agui_recorder", `select * from agui_internal.claim`, false},
		{"agui_writer", `select agui.keep_agent_error('t', 'r', 422, 'text/plain', 'no')`, true},
		{"agui_diagnoser", `select 1 / (status = 422)::int from agui.get_agent_error('t', 'r')`, true},
		{"agui_diagnoser", `select 1 / count(*) from agui.agent_error`, true},
		{"agui_diagnoser", `select agui.keep_agent_error('t', 'r', 500, '', '')`, false},
		{"agui_diagnoser", `delete from agui.agent_error`, false},
		{"agui_writer", `select 1 / (count(*) = 0)::int from agui.get_agent_error('t', 'r')`, true},
		{"agui_writer", `select * from agui.agent_error`, false},
		{"agui_maintainer", `select 1 / (count(*) = 0)::int from agui.get_agent_error('t', 'r')`, true},
		{"agui_reader", `select agui_internal.content_digests(agui.thread_key('', 't'), '{"agui.agent_error":["body"]}')`, false},
		{"agui_reader", `select * from agui_internal.claim`, false},
		{"agui_writer", `update agui_internal.claim set claimant = ''`, false},
		{"agui_reader", `select agui.claims('rec')`, true},
		{"agui_reader", `select agui.claim_run('rec', 's', 'me', parallel => true)`, false},
		{"agui_reader", `insert into agui.thread values (gen_random_uuid(), '', 'x')`, false},
	}
	connection := testdb.Acquire(t, pool)
	for _, attempt := range attempts {
		testdb.Exec(t, connection, `set role `+attempt.role)
		if _, err := connection.Exec(ctx, attempt.statement); (err == nil) != attempt.allowed {
			t.Errorf("%s: %s: error %v, allowed %t", attempt.role, attempt.statement, err, attempt.allowed)
		}
	}
	testdb.Exec(t, connection, `reset role`)
}

var accessRoles = []string{"agui_reader", "agui_writer", "agui_worker", "agui_maintainer", "agui_recorder", "agui_diagnoser", "pg_monitor"}

// Who may do what, and what a function with the rights of the owner asks, as a table that changes only on purpose. A public object that only the owner may use
// is listed, too.
func TestPrivilegeMatrix(t *testing.T) {
	t.Parallel()
	rows, err := testdb.Pool(t).Query(t.Context(), `
		with object (name, acl, owner) as (
			select 'schema ' || nspname, nspacl, nspowner from pg_namespace where nspname in ('agui', 'agui_internal')
			union all
			select case relkind when 'v' then 'view ' else 'table ' end || oid::regclass, relacl, relowner
			from pg_class
			where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relkind in ('r', 'v')
			union all
			select 'column ' || attrelid::regclass || '.' || attname, attacl, relowner
			from pg_attribute join pg_class on pg_class.oid = attrelid
			where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and attacl is not null
			union all
			select case prokind when 'p' then 'procedure ' else 'function ' end || oid::regprocedure || case when prosecdef then ' with the rights of the owner, asks ' || coalesce(nullif(array_to_string(`+fmt.Sprintf(asked, "pg_proc")+`, ', '), ''), 'nothing') else '' end,
				coalesce(proacl, acldefault('f', proowner)), proowner
			from pg_proc
			where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
		)
		select object.name || ': ' || coalesce((
			select string_agg(distinct grants.text, ', ' order by grants.text)
			from (
				select coalesce(nullif(granted.grantee, 0)::regrole::text, 'PUBLIC') || ' ' || string_agg(lower(granted.privilege_type), ' ' order by granted.privilege_type) as text
				from aclexplode(object.acl) as granted
				where granted.grantee <> object.owner
				group by granted.grantee
			) as grants
		), 'owner')
		from object
		order by object.name collate "C"`, asksForScopes)
	must.Do(t, err)
	lines := must.Have(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	// Only a schema that is not released yet has this function.
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "function agui_internal.unreleased_build(") })
	text := strings.Join(lines, "\n") + "\n"
	testfile.Golden(t, "privileges.txt", text)
}

// Only the owner may write. So a function that writes either has the rights of the owner and is granted to a role, or is called only by such functions.
// Procedures that commit have the rights of their caller. A function that reads a thread for users has the rights of the owner, too, and checks whether the
// caller has the scope of the thread (TestTenants…).
func TestFunctionsThatTouchThreadsAreDefiners(t *testing.T) {
	t.Parallel()
	rows, err := testdb.Pool(t).Query(t.Context(), `
		select proc.oid::regprocedure::text
		from pg_proc as proc
		cross join lateral (
			select count(*) > 0 as is_granted
			from aclexplode(coalesce(proc.proacl, acldefault('f', proc.proowner))) as granted
			where granted.grantee <> proc.proowner
		) as access
		where proc.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
			and proc.prokind = 'f'
			and case
				when proc.prorettype = 'trigger'::regtype then false
				when proc.proname = 'begin_step' then proc.prosecdef -- settings of the transaction, and no table
				when proc.provolatile = 'v' then proc.prosecdef <> access.is_granted
				when proc.pronamespace = 'agui'::regnamespace then not proc.prosecdef and proc.provolatile = 's' and proc.proname not in ('compact_events', 'heads')
			end`)
	must.Do(t, err)
	functions := must.Have(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	for _, function := range functions {
		t.Errorf("%s: SECURITY DEFINER is for functions that are granted to a role, for all that write and for those of the schema agui that read", function)
	}
}

// as runs a statement with the rights of a role, in a transaction that is rolled back.
func as(ctx context.Context, pool *pgxpool.Pool, role, statement string) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "set local role "+role); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, statement)
	return err
}

// No role changes, locks or watches a table, whatever it says; nor does it get there by the setting that the trigger on the log looks at.
func TestNoRoleWritesToTables(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx := t.Context()
	testdb.Exec(t, pool, `
		select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', input => '{}');
		select agui.save_session_state('t', 'k', '1', 'r'), agui.save_checkpoint('t', 'c', '1');
		select agui.append('gone', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]'), agui.erase('gone')`)
	testdb.Exec(t, pool, `call agui.compact()`)
	rows, err := pool.Query(ctx, `
		select relation.oid::regclass::text, attribute.attname::text, relation.relkind = 'v'
		from pg_class as relation
		join pg_attribute as attribute on attribute.attrelid = relation.oid and attribute.attnum > 0 and not attribute.attisdropped
		where relation.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relation.relkind in ('r', 'v')
		order by 1, attribute.attnum`)
	must.Do(t, err)
	columns, isView := map[string][]string{}, map[string]bool{}
	var relation, column string
	var view bool
	if _, err := pgx.ForEachRow(rows, []any{&relation, &column, &view}, func() error {
		columns[relation] = append(columns[relation], column)
		isView[relation] = view // what does not write through to a table is refused otherwise
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(columns) < 15 {
		t.Fatalf("only %d relations were found", len(columns))
	}
	for relation, columns := range columns {
		statements := []string{
			"insert into %s default values", "insert into %[1]s select * from %[1]s", "copy %s from stdin", "delete from %s", "truncate %s",
			"select from %s for update", "select from %s for no key update", "select from %s for share", "select from %s for key share",
			"lock %s in row exclusive mode", "lock %s in share mode", "lock %s in exclusive mode", "lock %s in access exclusive mode",
			"alter table %s set (fillfactor = 50)", "drop table %s", "create trigger mine before insert on %s execute function agui_internal.refuse_log_change()",
			"create rule mine as on insert to %s do nothing", "create table mine (k uuid references %s)", "create index on %s ((1))",
			"alter table %s enable row level security", "comment on table %s is 'mine'", "analyze %s; select 1 / 0",
		}
		for _, column := range columns {
			statements = append(statements, "update %s set "+pgx.Identifier{column}.Sanitize()+" = default")
		}
		for _, role := range accessRoles {
			for _, statement := range statements {
				statement := "set local agui.log_change = 'on'; " + fmt.Sprintf(statement, relation)
				err := as(ctx, pool, role, statement)
				switch {
				case strings.Contains(statement, "analyze"):
					// A warning, it is skipped; or the role may not even look into the schema.
					if state := testdb.State(err); state != "42501" && state != "22012" {
						t.Errorf("%s: %s: %v", role, statement, err)
					}
				case testdb.State(err) == "42501", err != nil && (isView[relation] || strings.Contains(statement, " table mine ")):
				default:
					t.Errorf("%s may: %s (%v)", role, statement, err)
				}
			}
		}
	}
}

// Every function, called by every role: it may, or is refused before it does anything; and one that a role may call never fails because the function
// lacks a right.
func TestEveryFunctionByEveryRole(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx := t.Context()
	rows, err := pool.Query(ctx, `
		select
			proc.oid::regprocedure::text,
			-- Of nulls that are no constants: a call of a strict function with these is not looked at.
			case
				when proc.prokind = 'p' then format('call %I.%I(%s)', namespace.nspname, proc.proname, arguments.nulls)
				else format('select %I.%I(%s) from (select %s offset 0) as given', namespace.nspname, proc.proname, arguments.names, arguments.named_nulls)
			end as statement,
			array(
				select role.name from unnest($1::text[]) as role (name)
				where has_function_privilege(role.name, proc.oid, 'execute')
			) as allowed
		from pg_proc as proc
		join pg_namespace as namespace on namespace.oid = proc.pronamespace
		cross join lateral (
			select
				string_agg(case when argument.place = proc.pronargs and proc.provariadic <> 0 then 'variadic ' else '' end || 'given.a' || argument.place, ', ' order by argument.place) as names,
				string_agg(format('null::%s', format_type(argument.type, null)), ', ' order by argument.place) as nulls,
				string_agg(format('null::%s as a%s', format_type(argument.type, null), argument.place), ', ' order by argument.place) as named_nulls
			from unnest(proc.proargtypes::oid[]) with ordinality as argument (type, place)
		) as arguments
		where namespace.nspname in ('agui', 'agui_internal') and proc.prorettype not in ('trigger'::regtype, 'internal'::regtype) and proc.prokind <> 'a'`, accessRoles)
	must.Do(t, err)
	type function struct {
		Name      string
		Statement string
		Allowed   []string
	}
	functions := must.Have(pgx.CollectRows(rows, pgx.RowToStructByPos[function]))(t)
	if len(functions) < 200 {
		t.Fatalf("only %d functions were found", len(functions))
	}
	connection := testdb.Acquire(t, pool)
	for _, role := range accessRoles {
		testdb.Exec(t, connection, "set role "+role)
		for _, f := range functions {
			_, err := connection.Exec(ctx, f.Statement)
			switch allowed := slices.Contains(f.Allowed, role); {
			case allowed && testdb.State(err) == "42501":
				t.Errorf("%s may call %s, which fails: %v", role, f.Name, err)
			case !allowed && testdb.State(err) != "42501":
				t.Errorf("%s may not call %s, and did: %v", role, f.Name, err)
			}
		}
	}
	testdb.Exec(t, connection, "reset role")
}
