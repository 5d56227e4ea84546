package test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/sql/schema"
)

// What the code of tenant a tries, wherever it runs.
var (
	foreignCalls = []string{
		`select string_agg(row::text, '') from agui.messages('t', 'r1', scope => 'b') as row`,
		`select agui.restore('t', 'r1', scope => 'b')::text`,
		`select string_agg(row::text, '') from agui.events('t', scope => 'b') as row`,
		`select string_agg(row::text, '') from agui.threads(scope => 'b') as row`,
		`select agui.get_thread('t', 'b')::text`,
		`select string_agg(row::text, '') from agui.poll('{t}', '{0}', scopes => '{b}') as row`,
		`select agui.load_session_state('t', 'k', scope => 'b')::text`,
		`select agui.append('t', 'planted', '[{"type":"RUN_STARTED"}]', parallel => true, scope => 'b')::text`,
		`select string_agg(row::text, '') from agui.append_many('{t}', '{planted}', array['[{"type":"RUN_STARTED"}]']::json[], parallel => '{true}', scopes => '{b}') as row`,
		`select agui.set_thread('t', title => 'planted', scope => 'b')::text`,
		`select agui.set_setting('lease', '61')::text`,
		`select agui.append('t', 'planted', '[{"type":"RUN_STARTED"}]', parallel => true, scope => 'c')::text`,
		`select agui.erase('t', 'planted', 'b')::text`,
	}
	foreignReads = []string{
		`select string_agg(row::text, '') from agui.message as row`,
		`select string_agg(row::text, '') from agui.event as row`,
		`select string_agg(row::text, '') from agui.batch as row`,
		`select string_agg(row::text, '') from agui.thread_activity as row`,
		`select string_agg(row::text, '') from agui.run_input as row`,
		`select string_agg(row::text, '') from agui.session_state as row`,
		`select string_agg(row::text, '') from agui.erasure as row`,
		`select string_agg(row::text, '') from agui.quarantine as row`,
	}
)

// A lair is a database in which tenant a has objects whose code tries to reach tenant b, wherever PostgreSQL runs it.
type lair struct {
	*tenancy
	version int
	stored  string // what scopes other than a have
}

func newLair(t *testing.T) *lair {
	t.Helper()
	server := testdb.Server(t, map[string]string{
		"wal_level": "logical", "autovacuum_naptime": "1s", "autovacuum_analyze_threshold": "1", "autovacuum_analyze_scale_factor": "0",
		"autovacuum_vacuum_threshold": "1", "autovacuum_vacuum_scale_factor": "0",
	})
	address := server.URL("postgres")
	must.Do(t, schema.Up(t.Context(), address))
	l := &lair{tenancy: newTenancyIn(t, address)}
	var err error
	l.version, err = strconv.Atoi(testdb.List[string](t, l.owner, `select current_setting('server_version_num')`)[0])
	must.Do(t, err)
	t.Cleanup(func() { // before the roles
		if _, err := l.owner.Exec(context.Background(), `drop schema lair, office cascade`); err != nil {
			t.Error(err)
		}
	})
	testdb.Exec(t, l.owner, fmt.Sprintf(`create schema lair authorization %s; create schema office authorization %s`, l.a, l.operator))
	testdb.Exec(t, l.asA, `
		create table lair.attempt (query text);
		create table lair.loot (place text, query text, got text, is_error boolean, ran_as name, session name);
		grant usage, create on schema lair to public;
		grant all on all tables in schema lair to public;
		create function lair.try(at text, attempt text) returns void language plpgsql as $$
		declare
			got text;
			is_error boolean := false;
		begin
			begin
				execute attempt into got;
			exception when others then
				got := sqlstate || ' ' || sqlerrm;
				is_error := true;
			end;
			insert into lair.loot values (at, attempt, got, is_error, current_user, session_user);
		end $$;
		create function lair.spy(place text) returns int language plpgsql as $$
		begin
			perform lair.try(place, attempt.query) from lair.attempt;
			return 1;
		end $$;
		create function lair.spy(place text, i int) returns int language plpgsql immutable as $$ begin return lair.spy(place) + i; end $$;
		create function lair.fire() returns trigger language plpgsql as $$ begin perform lair.spy(tg_argv[0]); return coalesce(new, old); end $$;
		create function lair.fire_definer() returns trigger language plpgsql security definer as $$ begin perform lair.spy(tg_argv[0]); return coalesce(new, old); end $$;
		grant execute on all functions in schema lair to public`)
	for _, query := range slices.Concat(foreignCalls, foreignReads) {
		testdb.Exec(t, l.asA, `insert into lair.attempt values ($1)`, query)
	}
	l.stored = l.storedElsewhere(t)
	return l
}

func (l *lair) storedElsewhere(t *testing.T) string {
	t.Helper()
	return strings.Join(testdb.List[string](t, l.owner, `
		select concat_ws(' ', thread.scope, thread.thread_id, activity.title, (select count(*) from agui.batch where batch.thread_key = thread.thread_key))
		from agui.thread
		left join agui.thread_activity as activity using (thread_key)
		where thread.scope <> 'a'
		union all
		select row::text from agui_internal.setting as row
		order by 1`), "\n")
}

// forget removes what was found at a place so far, for instance while its objects were made.
func (l *lair) forget(t *testing.T, place string) {
	t.Helper()
	testdb.Exec(t, l.owner, `delete from lair.loot where place = '`+place+`'`)
}

// check fails if the code of tenant a did not run at a place as the role that is expected, or reached what is not its own.
func (l *lair) check(t *testing.T, place, ranAs string, queries ...string) {
	t.Helper()
	if ran := testdb.List[string](t, l.owner, `select count(distinct query)::text from lair.loot where place = $1 and ran_as = $2 and query = any ($3)`, place, ranAs, queries); ran[0] != fmt.Sprint(len(queries)) {
		t.Errorf("%s: %s of %d attempts were made as %s:\n%s", place, ran[0], len(queries), ranAs,
			strings.Join(testdb.List[string](t, l.owner, `select left(row::text, 300) from lair.loot as row where place = $1`, place), "\n"))
	}
	for _, leak := range testdb.List[string](t, l.owner, `
		select format('%s (session %s) gives %s', query, session, left(got, 200)) from lair.loot
		where place = $1 and query = any ($2) and got like '%secret of b%'`, place, queries) {
		t.Errorf("%s: %s", place, leak)
	}
	if stored := l.storedElsewhere(t); stored != l.stored {
		t.Errorf("%s: stored is\n%s\nnot\n%s", place, stored, l.stored)
		l.stored = stored
	}
}

// Where PostgreSQL runs a tenant's code in the session of another role, the code reaches what the tenant does, and nothing of the session's.
func TestTenantsCodeInOtherSessions(t *testing.T) {
	t.Parallel()
	l := newLair(t)
	all := slices.Concat(foreignCalls, foreignReads)

	// Security-restricted operations, by a superuser.
	testdb.Exec(t, l.asA, `
		create table lair.indexed (i int);
		insert into lair.indexed values (1), (2);
		alter table lair.indexed set (autovacuum_enabled = off);
		create index spying on lair.indexed (lair.spy('indexed', i));
		create materialized view lair.snapshot as select lair.spy('snapshot') as i;
		create statistics lair.extended on i, (lair.spy('indexed', i)) from lair.indexed`)
	for _, statement := range []string{
		`analyze lair.indexed`, `vacuum (full, analyze) lair.indexed`, `reindex index lair.spying`, `reindex table concurrently lair.indexed`,
		`cluster lair.indexed using spying`, `create index on lair.indexed ((lair.spy('indexed', i) + 1))`,
	} {
		l.forget(t, "indexed")
		testdb.Exec(t, l.owner, statement)
		l.check(t, "indexed", l.a, all...)
	}
	l.forget(t, "snapshot")
	testdb.Exec(t, l.owner, `refresh materialized view lair.snapshot`)
	l.check(t, "snapshot", l.a, all...)
	if l.version >= 170000 {
		testdb.Exec(t, l.asA, fmt.Sprintf(`grant maintain on lair.indexed, lair.snapshot to %s, %s`, l.b, l.operator))
		for _, pool := range []*pgxpool.Pool{l.asB, l.asOperator} {
			l.forget(t, "indexed")
			testdb.Exec(t, pool, `analyze lair.indexed`)
			l.check(t, "indexed", l.a, all...)
			l.forget(t, "snapshot")
			testdb.Exec(t, pool, `refresh materialized view lair.snapshot`)
			l.check(t, "snapshot", l.a, all...)
		}
	}

	// Autovacuum.
	testdb.Exec(t, l.asA, `
		create table lair.vacuumed (i int);
		create index on lair.vacuumed (lair.spy('vacuumed', i))`)
	testdb.Exec(t, l.asA, `insert into lair.vacuumed select generate_series(1, 3)`)
	wait.For(t, "autovacuum", func() bool {
		return testdb.List[string](t, l.owner, `
			select (count(distinct query) = $1 and bool_and((select autoanalyze_count > 0 from pg_stat_all_tables where relid = 'lair.vacuumed'::regclass)))::text
			from lair.loot
			where place = 'vacuumed' and session = 'postgres'`, len(all))[0] == "true"
	})
	l.check(t, "vacuumed", l.a, all...)

	// Triggers with the rights of the tenant, and actions of its foreign keys.
	for _, caller := range []struct {
		name string
		pool *pgxpool.Pool
	}{{"operator", l.asOperator}, {"superuser", l.owner}} {
		place := "trigger of " + caller.name
		testdb.Exec(t, l.asA, fmt.Sprintf(`
			create table lair.%[1]s (i int);
			grant all on lair.%[1]s to public;
			create trigger spy before insert on lair.%[1]s for each row execute function lair.fire_definer('%[2]s');
			create constraint trigger spy_late after insert on lair.%[1]s deferrable initially deferred for each row execute function lair.fire_definer('late %[2]s')`,
			caller.name, place))
		testdb.Exec(t, caller.pool, `insert into lair.`+caller.name+` values (1)`)
		l.check(t, place, l.a, all...)
		l.check(t, "late "+place, l.a, all...)

		place = "foreign key for " + caller.name
		testdb.Exec(t, l.asOperator, fmt.Sprintf(`
			create table office.%[1]s (i int primary key);
			insert into office.%[1]s values (1), (2);
			grant usage on schema office to %[2]s;
			grant references on office.%[1]s to %[2]s`, caller.name, l.a))
		testdb.Exec(t, l.asA, fmt.Sprintf(`
			create table lair.refers_%[1]s (i int references office.%[1]s on delete cascade on update cascade);
			insert into lair.refers_%[1]s values (1), (2);
			create trigger spy before delete on lair.refers_%[1]s for each row execute function lair.fire('%[2]s');
			create index on lair.refers_%[1]s (lair.spy('updated %[2]s', i))`, caller.name, place))
		l.forget(t, "updated "+place)
		testdb.Exec(t, caller.pool, `delete from office.`+caller.name+` where i = 1; update office.`+caller.name+` set i = 3`)
		l.check(t, place, l.a, all...)
		l.check(t, "updated "+place, l.a, all...)

		// With the rights of the session, it may read tables as the session may. Functions refuse.
		place = "invoker trigger of " + caller.name
		testdb.Exec(t, l.asA, fmt.Sprintf(`
			create table lair.invoker_%[1]s (i int);
			grant all on lair.invoker_%[1]s to public;
			create trigger spy before insert on lair.invoker_%[1]s for each row execute function lair.fire('%[2]s')`, caller.name, place))
		testdb.Exec(t, caller.pool, `insert into lair.invoker_`+caller.name+` values (1)`)
		ranAs := l.operator
		if caller.name == "superuser" {
			ranAs = "postgres"
		}
		l.check(t, place, ranAs, foreignCalls...)
	}

	// The worker that applies what is replicated: until 15 with the rights of the subscription's owner, a superuser; from 16 on with those of the table's.
	testdb.Exec(t, l.owner, `create database source`)
	source := testdb.Connect(t, strings.Replace(l.url, "/postgres?", "/source?", 1))
	testdb.Exec(t, source, `create schema lair; create table lair.replicated (i int primary key); create publication everything for all tables`)
	testdb.Exec(t, source, `select pg_create_logical_replication_slot('lair', 'pgoutput')`)
	testdb.Exec(t, l.asA, `
		create table lair.replicated (i int primary key);
		create trigger spy before insert on lair.replicated for each row execute function lair.fire('replicated');
		alter table lair.replicated enable always trigger spy`)
	testdb.Exec(t, l.owner, `create subscription lair connection '`+strings.Replace(l.url, "/postgres?", "/source?", 1)+`' publication everything with (create_slot = false, slot_name = 'lair', copy_data = false)`)
	testdb.Exec(t, source, `insert into lair.replicated values (1)`)
	wait.For(t, "replication", func() bool {
		return testdb.List[string](t, l.owner, `select count(*)::text from lair.replicated`)[0] == "1"
	})
	if l.version >= 160000 {
		l.check(t, "replicated", l.a, all...)
	} else {
		l.check(t, "replicated", "postgres", foreignCalls...)
	}
	testdb.Exec(t, l.owner, `drop subscription lair`)
}

// On a standby, where nothing can be written, the scopes are those of the primary.
func TestTenantsReadOnAStandby(t *testing.T) {
	t.Parallel()
	servers := testdb.NewReplicated(t)
	tenants := newTenancyIn(t, servers.Primary.URL("postgres"))
	wait.For(t, "the standby", func() bool {
		return testdb.List[string](t, servers.StandbyPool, `select (pg_last_wal_replay_lsn() >= $1::pg_lsn)::text`, testdb.List[string](t, tenants.owner, `select pg_current_wal_lsn()::text`)[0])[0] == "true"
	})
	asA := asRole(t, servers.Standby.URL("postgres"), tenants.a)
	for _, query := range []string{
		`select agui.restore('t', 'r1', scope => 'a')::text`,
		`select string_agg(row::text, '') from agui.messages('t', 'r1', scope => 'a') as row`,
		`select string_agg(row::text, '') from agui.event as row`,
	} {
		if got := testdb.List[string](t, asA, query)[0]; !strings.Contains(got, "secret of a") || strings.Contains(got, "secret of b") {
			t.Errorf("%s gives %s", query, got)
		}
	}
	if _, err := asA.Exec(t.Context(), `select agui.restore('t', 'r1', scope => 'b')`); testdb.State(err) != "UI001" {
		t.Errorf("of another scope: %v", err)
	}
}
