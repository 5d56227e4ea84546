package schema_test

import (
	"errors"
	"fmt"
	"net/url"
	osexec "os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// otherBuild is a build whose tables differ.
func otherBuild(t *testing.T) release {
	r := thisRelease(t).unreleased()
	r.replace("schema/000001_tables.up.sql", `create table agui.thread `, "-- Otherwise.\ncreate table agui.thread ")
	r.write("functions/core/sample.sql", `create or replace function agui_internal.other_build()
returns agui_internal.installed_object
language sql
stable
begin atomic
    select * from agui_internal.installed_object limit 1;
end;`)
	return r
}

func TestAnotherBuildIsRecognisedAndCanBeRemoved(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	otherBuild(t).mustUp(address)

	state, err := schema.Status(t.Context(), address)
	if err != nil || !errors.Is(state.Problem(), schema.ErrOtherBuild) {
		t.Fatalf("%+v, %v", state, err)
	}
	for _, fingerprint := range []string{state.Fingerprint, state.Expected} {
		if len(fingerprint) != 64 || !strings.Contains(state.Problem().Error(), fingerprint[:12]) {
			t.Errorf("%v does not name the build %q", state.Problem(), fingerprint)
		}
	}
	if err := schema.Check(t.Context(), pool); !errors.Is(err, schema.ErrOtherBuild) {
		t.Errorf("Check: %v", err)
	}
	if err := schema.Up(t.Context(), address, schema.AcceptChanges()); !errors.Is(err, schema.ErrOtherBuild) {
		t.Errorf("Up: %v", err)
	}
	must.Do(t, schema.Down(t.Context(), address))
	if schemaExists(t, pool) {
		t.Error("Down left the schema agui")
	}
	must.Report(t, schema.Up(t.Context(), address))
}

// The builds before there was a record had objects with the same names and no word about what they are.
func TestABuildWithoutARecordCanBeRemoved(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	testdb.Exec(t, pool, `
		create schema agui;
		create table agui.schema_migrations (version bigint not null primary key, dirty boolean not null);
		insert into agui.schema_migrations values (2, false);
		create type agui.row as (a int);
		create domain agui.positive as int check (value > 0);
		create type agui.mood as enum ('good');
		create table agui.thread (id int primary key, n serial, m int generated always as identity);
		create table agui.batch (thread int references agui.thread, r agui.row);
		create function agui.rows(out agui.row) returns setof agui.row begin atomic select r from agui.batch; end;
		create procedure agui.p(a int, out b agui.positive) language sql as 'select 1';
		create aggregate agui.total(int) (sfunc = int4pl, stype = int);
		create view agui.event as select * from agui.rows();
		create materialized view agui.report as select * from agui.event`)

	state, err := schema.Status(t.Context(), address)
	if err != nil || !errors.Is(state.Problem(), schema.ErrOtherBuild) {
		t.Fatalf("%+v, %v", state, err)
	}
	if err := schema.Up(t.Context(), address); !errors.Is(err, schema.ErrOtherBuild) {
		t.Errorf("Up: %v", err)
	}
	if err := schema.Down(t.Context(), address); !errors.Is(err, schema.ErrOtherBuild) || !strings.Contains(err.Error(), "table agui.thread") {
		t.Errorf("Down: got %v, want what would be removed", err)
	}
	testdb.Exec(t, pool, `create view public.mine as select * from agui.event`)
	if err := schema.Down(t.Context(), address, schema.Force()); err == nil || !strings.Contains(err.Error(), "view public.mine depends on") {
		t.Errorf("Down, although another view depends on it: %v", err)
	}
	testdb.Exec(t, pool, `drop view public.mine`)
	must.Do(t, schema.Down(t.Context(), address, schema.Force()))
	if schemaExists(t, pool) {
		t.Error("Down left the schema agui")
	}
}

func TestDownKeepsWhatOthersMade(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	testdb.Exec(t, pool, `create table agui.mine (); create function agui_internal.mine() returns int return 1; create view public.mine as select * from agui.quarantine`)

	if err := schema.Down(t.Context(), address); err == nil || !strings.Contains(err.Error(), "view public.mine depends on view agui.quarantine") {
		t.Fatalf("got %v, want the view that depends on agui.quarantine", err)
	}
	if err := schema.Check(t.Context(), pool); err != nil {
		t.Errorf("it was removed in part: %v", err)
	}
	testdb.Exec(t, pool, `drop view public.mine`)
	var notices []string
	must.Do(t, schema.Down(t.Context(), address, schema.OnNotice(func(text string) { notices = append(notices, text) })))
	if len(notices) != 1 || !strings.Contains(notices[0], "table agui.mine") || !strings.Contains(notices[0], "routine agui_internal.mine()") {
		t.Errorf("notices: %q", notices)
	}
	if got := testdb.Ask[int](t, pool, `select agui_internal.mine() from (select count(*) from agui.mine) as mine`); got != 1 {
		t.Errorf("agui_internal.mine() = %d", got)
	}
	for _, migrate := range []func() error{
		func() error { return schema.Up(t.Context(), address) },
		func() error { return schema.Down(t.Context(), address) },
		func() error { return schema.Down(t.Context(), address) },
	} {
		if err := migrate(); err != nil {
			t.Errorf("beside what others made: %v", err)
		}
	}
}

func TestChangesByHandAreNamed(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string][]schema.Change{
		`create or replace function agui.head(thread_id text, scope text default '') returns text language sql stable as 'select ''x'''`: {
			{Object: "function agui.head(text,text)", Change: "changed"}},
		`alter function agui.head(text, text) set work_mem = '1MB'`:     {{Object: "function agui.head(text,text)", Change: "changed"}},
		`drop procedure agui.reap`:                                      {{Object: "procedure agui.reap(integer,interval)", Change: "missing"}},
		`create function agui.head(thread_id int) returns int return 1`: {{Object: "function agui.head(integer)", Change: "added"}},
		`alter table agui.thread add column mine int`:                   {{Object: "table agui.thread", Change: "changed"}},
		`alter table agui.run drop constraint run_parent_is_older`:      {{Object: "table agui.run", Change: "changed"}},
		`alter table agui.erasure set unlogged`:                         {{Object: "table agui.erasure", Change: "changed"}},
		`drop index agui.thread_by_id`:                                  {{Object: "index agui.thread_by_id", Change: "missing"}},
		`alter table agui.batch disable trigger refuse_change`:          {{Object: "trigger refuse_change on agui.batch", Change: "changed"}},
		`drop trigger refuse_change on agui.batch`:                      {{Object: "trigger refuse_change on agui.batch", Change: "missing"}},
		`alter view agui.event reset (security_invoker)`:                {{Object: "view agui.event", Change: "changed"}},
		`alter type agui.event_row add attribute mine int`:              {{Object: "type agui.event_row", Change: "changed"}},
		`drop function agui_internal.catalog_objects`: {
			{Object: "function agui_internal.changed_objects()", Change: "fails: function agui_internal.catalog_objects() does not exist"}},
		`drop table agui_internal.installed_object cascade`: {
			{Object: "function agui_internal.changed_objects()", Change: `fails: relation "agui_internal.installed_object" does not exist`}},
		`drop function agui.merge_base; alter table agui.thread add column a int`: {{Object: "function agui.merge_base(text,text,text,text)", Change: "missing"}, {Object: "table agui.thread", Change: "changed"}},
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			address := testdb.New(t)
			pool := testdb.Connect(t, address)
			testdb.Exec(t, pool, statement)
			state, err := schema.Status(t.Context(), address)
			if err != nil || !errors.Is(state.Problem(), schema.ErrChanged) || !slices.Equal(state.Changes, want) {
				t.Fatalf("got %v, %v, %v; want %v", state.Changes, state.Problem(), err, want)
			}
			for _, change := range want {
				if !strings.Contains(state.Problem().Error(), change.Object+" ("+change.Change+")") {
					t.Errorf("%v does not name %v", state.Problem(), change)
				}
			}
			if err := schema.Check(t.Context(), pool); err != nil {
				t.Errorf("a connection costs one query, which does not look at objects: %v", err)
			}
			if err := schema.Up(t.Context(), address); !errors.Is(err, schema.ErrChanged) {
				t.Errorf("Up: %v", err)
			}
			if want[0].Change == "added" {
				// An object of others: it is not removed, and not taken for one of the install.
				if err := schema.Down(t.Context(), address); err == nil || !strings.Contains(err.Error(), "agui.head") {
					t.Errorf("Down: %v", err)
				}
				return
			}
			if !strings.HasPrefix(want[0].Change, "fails") {
				up(t, address, schema.AcceptChanges())
				if state, err := schema.Status(t.Context(), address); err != nil || state.Problem() != nil {
					t.Errorf("after the changes were accepted: %v, %v", state.Problem(), err)
				}
			}
			if err := schema.Down(t.Context(), address); err != nil || schemaExists(t, pool) {
				t.Errorf("Down: %v", err)
			}
		})
	}
}

// What a DBA may do with tables, and add to them.
func TestTuningIsNoChange(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	testdb.Exec(t, testdb.Connect(t, address), `
		create role agui_tuner nologin;
		alter table agui.batch set (fillfactor = 80, autovacuum_enabled = off);
		alter table agui.batch alter column events set storage extended;
		alter table agui.run alter column status set statistics 500;
		create index my_index on agui.run (started_at);
		create table agui.mine ();
		create function agui.mine() returns trigger language plpgsql as 'begin return new; end';
		create trigger mine after insert on agui.batch for each row execute function agui.mine();
		comment on function agui.head(text, text) is 'Mine.';
		grant select on agui.thread to agui_tuner;
		alter table agui.thread enable row level security;
		create policy mine on agui.thread using (true);
		alter function agui.head(text, text) owner to agui_tuner;
		reassign owned by agui_tuner to current_user;
		drop owned by agui_tuner;
		drop role agui_tuner`)
	state, err := schema.Status(t.Context(), address)
	if err != nil || state.Problem() != nil {
		t.Errorf("%v, %v", state.Problem(), err)
	}
}

func TestANewerDatabase(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	newer := thisRelease(t)
	newer.freeze()
	newer.write("functions/core/sample.sql", `create or replace function agui_internal.newer() returns int return 1;`)
	newer.write("schema/serves", fmt.Sprint(schema.Latest()+1))
	newer.freeze()
	newer.mustUp(address)
	if err := schema.Up(t.Context(), address); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("Up: got %v, want %v", err, schema.ErrNewer)
	}
	if err := schema.Check(t.Context(), pool); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("Check: got %v, want %v", err, schema.ErrNewer)
	}
	if err := schema.Down(t.Context(), address); err != nil || schemaExists(t, pool) {
		t.Errorf("Down: %v", err)
	}
}

// A program goes on with a newer schema that serves it, also after a restart.
func TestANewerDatabaseThatServesThisProgram(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	newer := thisRelease(t)
	newer.freeze()
	newer.write("functions/core/sample.sql", `create or replace function agui_internal.newer() returns int return 1;`)
	newer.write("schema/serves", fmt.Sprint(schema.Latest()))
	newer.freeze()
	newer.mustUp(address)
	if err := schema.Check(t.Context(), pool); err != nil {
		t.Errorf("Check: %v", err)
	}
	testdb.Exec(t, pool, `call agui.enable_row_security()`)
	before := objects(t, pool)
	if err := schema.Up(t.Context(), address); err != nil {
		t.Errorf("Up: %v", err)
	}
	if after := objects(t, pool); after != before {
		t.Errorf("Up of an older program changed\n%s", differences(after, before))
	}
	state, err := schema.Status(t.Context(), address)
	if err != nil || state.Problem() != nil || state.Version <= state.Latest {
		t.Errorf("%+v, %v", state, err)
	}
}

func TestAnOlderDatabaseIsUpgradedByWhoInstalledIt(t *testing.T) {
	t.Parallel()
	newer := thisRelease(t)
	newer.freeze()
	installed := newer.next()
	newer.write("functions/core/sample.sql", `create or replace function agui_internal.newer() returns int return 1;`)
	newer.replace("functions/api/views.sql", `(?s)create or replace view agui.quarantine .*'Number of the run in its thread\.';`, `create or replace view agui.quarantine as select 1 as other;`)
	newer.freeze()
	t.Run("what of others depends on what changes", func(t *testing.T) {
		t.Parallel()
		address := testdb.New(t)
		pool := testdb.Connect(t, address)
		testdb.Exec(t, pool, `create view public.mine as select * from agui.quarantine`)
		err := schema.Up(t.Context(), address, newer.migrations())
		if err == nil || !strings.Contains(err.Error(), "view public.mine depends on view agui.quarantine") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want the view that depends on agui.quarantine", err)
		}
		if err := schema.Check(t.Context(), pool); err != nil {
			t.Errorf("it was upgraded in part: %v", err)
		}
		testdb.Exec(t, pool, `drop view public.mine`)
		newer.mustUp(address)
	})
	t.Run("this package", func(t *testing.T) {
		t.Parallel()
		address := testdb.Empty(t)
		installed.mustUp(address)
		state, err := schema.Status(t.Context(), address, newer.migrations())
		if err != nil || !errors.Is(state.Problem(), schema.ErrOlder) {
			t.Errorf("%v, %v", state.Problem(), err)
		}
		newer.mustUp(address)
		state, err = schema.Status(t.Context(), address, newer.migrations())
		if err != nil || state.Problem() != nil || state.Version != schema.Latest()+1 {
			t.Errorf("%v, %v", state.Problem(), err)
		}
	})
	t.Run("another tool", func(t *testing.T) {
		t.Parallel()
		address := testdb.Empty(t)
		testdb.Exec(t, testdb.Connect(t, address), schema.InstallSQL())
		err := schema.Up(t.Context(), address, newer.migrations())
		if !errors.Is(err, schema.ErrInstalledOtherwise) || !strings.Contains(err.Error(), fmt.Sprintf("--from %d", schema.Latest())) {
			t.Errorf("got %v, want %v and how to print what is new", err, schema.ErrInstalledOtherwise)
		}
		if err := schema.Down(t.Context(), address, schema.Force()); err != nil {
			t.Errorf("Down by force: %v", err)
		}
	})
}

// pg_upgrade keeps the record of a catalog that another major version wrote down in its own way.
func TestCatalogIsRecordedAnewAfterAMajorUpgradeOfTheServer(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	testdb.Exec(t, pool, `update agui_internal.installed_object set server_major = 14, definition = 'written in another way'`)
	state, err := schema.Status(t.Context(), address)
	if err != nil || state.Problem() != nil || !state.CatalogUnrecorded {
		t.Errorf("%+v, %v", state, err)
	}
	up(t, address)
	testdb.Exec(t, pool, `drop procedure agui.reap`)
	state, err = schema.Status(t.Context(), address)
	if err != nil || !errors.Is(state.Problem(), schema.ErrChanged) || state.CatalogUnrecorded {
		t.Errorf("after Up: %+v, %v", state, err)
	}
}

func TestUpWithNothingToDoChangesNothing(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	const rows = `select string_agg(xmin::text, ' ' order by class, oid) from (
		select 1, oid, xmin from pg_proc union all select 2, oid, xmin from pg_class union all select 3, oid, xmin from pg_namespace
		union all select 4, 0, xmin from agui_internal.installed_object union all select 5, 0, xmin from agui.schema_migrations) as row (class, oid, xmin)`
	before := testdb.Ask[string](t, pool, rows)
	up(t, address)
	if after := testdb.Ask[string](t, pool, rows); after != before {
		t.Error("rows of the catalog were written")
	}
}

func TestUpRepairsPrivileges(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	want := objects(t, pool) + tablePrivileges(t, pool)
	for _, damage := range []string{
		`revoke all on all tables in schema agui from agui_reader, agui_writer, agui_maintainer, pg_monitor`,
		`revoke all on all routines in schema agui, agui_internal from agui_reader, agui_writer, agui_maintainer, pg_monitor`,
		`revoke all on schema agui, agui_internal from agui_reader`,
		`grant execute on all routines in schema agui, agui_internal to public`, // what a function gets without more ado
		`grant delete, update on agui.batch to agui_writer; grant update (n) on agui.batch to agui_reader`,
	} {
		testdb.Exec(t, pool, damage)
		if err := schema.Up(t.Context(), address); err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		got := objects(t, pool) + tablePrivileges(t, pool)
		if sortedPrivileges(got) != sortedPrivileges(want) {
			t.Errorf("%s:\n%s", damage, differences(sortedPrivileges(got), sortedPrivileges(want)))
		}
	}
}

// sortedPrivileges brings the privileges {a=x/o,b=y/o} of a list of objects into one order.
func sortedPrivileges(list string) string {
	var lines []string
	for line := range strings.Lines(list) {
		begin, end := strings.Index(line, "{"), strings.LastIndex(line, "}")
		if begin >= 0 && begin < end {
			entries := strings.Split(line[begin+1:end], ",")
			slices.Sort(entries)
			line = line[:begin] + strings.Join(entries, ",") + line[end:]
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func TestPrivilegesOfOthersStay(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	testdb.Exec(t, pool, `
		create table agui.mine ();
		create function agui.mine() returns int return 1;
		grant select on agui.mine to agui_reader;
		grant insert on agui.batch to pg_read_all_data`)
	up(t, address)
	if !testdb.Ask[bool](t, pool, `
		select has_table_privilege('agui_reader', 'agui.mine', 'select') and has_table_privilege('pg_read_all_data', 'agui.batch', 'insert')
			and has_function_privilege('pg_read_all_data', 'agui.mine()', 'execute')`) {
		t.Error("Up took privileges away that are not its own")
	}
}

func createDatabase(t *testing.T, server *cluster.Cluster, name, more string) string {
	t.Helper()
	testdb.Exec(t, testdb.Connect(t, server.URL("postgres")), `create database `+name+more)
	return server.URL(name)
}

func TestRestoreOnAnotherServer(t *testing.T) {
	t.Parallel()
	dump, restore := testdb.Program(t, testneeds.PgDump, "pg_dump"), testdb.Program(t, testneeds.PgDump, "pg_restore")
	psql := testdb.Program(t, testneeds.Psql, "psql")
	source := testdb.New(t)
	sourcePool := testdb.Connect(t, source)
	server := testdb.Server(t, nil)
	testdb.Exec(t, sourcePool, `select agui.enable_chain()`)
	testdb.Exec(t, sourcePool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)
	const heads = `select array_agg(head)::text from agui.heads() as head`
	wantHeads := testdb.Ask[string](t, sourcePool, heads)
	want := privileges(t, sourcePool)
	wantData := testdb.Ask[string](t, sourcePool, `select agui.restore('t')`)

	for number, how := range []string{"--format=plain", "--format=custom", "--no-privileges", "--schema-only"} {
		text, err := osexec.Command(dump, "-d", source, how).Output()
		if err != nil {
			testneeds.Skip(t, testneeds.PgDump, "pg_dump: %v", err) // older than the server of the tests
		}
		address := createDatabase(t, server, fmt.Sprintf("restored_%d", number), "")
		pool := testdb.Connect(t, address)
		// The first time there are no roles to grant anything to, and the program warns at each grant.
		load := osexec.Command(psql, "-X", "-q", "-d", address)
		if how == "--format=custom" {
			// Without owners and privileges nothing names a role, so nothing fails.
			load = osexec.Command(restore, "--no-owner", "--no-privileges", "--exit-on-error", "-d", address)
		}
		load.Stdin = strings.NewReader(string(text))
		printed, err := load.CombinedOutput()
		if how == "--format=custom" && (err != nil || len(printed) > 0) {
			t.Errorf("%s: %v\n%s", how, err, printed)
		}

		state, err := schema.Status(t.Context(), address)
		if err != nil || state.Problem() != nil || state.CatalogUnrecorded != (how == "--schema-only") {
			t.Errorf("%s: %+v, %v, %v", how, state, state.Problem(), err)
		}
		var notices []string
		if err := schema.Up(t.Context(), address, schema.OnNotice(func(text string) { notices = append(notices, text) })); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		wantNotice := "completed the privileges of the roles"
		if number == 0 {
			wantNotice = "created the roles agui_diagnoser, agui_maintainer, agui_reader, agui_recorder, agui_worker, agui_writer, and gave them their privileges"
		}
		if hasPrivileges := number > 0 && how != "--format=custom" && how != "--no-privileges"; !hasPrivileges && !slices.Contains(notices, wantNotice) {
			t.Errorf("%s: Up says %q", how, notices)
		}
		if state, err := schema.Status(t.Context(), address); err != nil || state.Problem() != nil || state.CatalogUnrecorded {
			t.Errorf("%s, after Up: %+v, %v, %v", how, state, state.Problem(), err)
		}
		if got := privileges(t, pool); got != want {
			t.Errorf("%s: privileges restored (+) and as they were (-) differ:\n%s", how, differences(got, want))
		}
		if how != "--schema-only" {
			if got := testdb.Ask[string](t, pool, `select agui.restore('t')`); got != wantData {
				t.Errorf("%s: restored %s, want %s", how, got, wantData)
			}
			if got := testdb.Ask[string](t, pool, heads); got != wantHeads {
				t.Errorf("%s: heads %s, want %s", how, got, wantHeads)
			}
			if found, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{Chain: true}); err != nil || found.Threads != 1 || found.Problems+found.Notes > 0 {
				t.Errorf("%s: verify --chain: %+v, error %v", how, found, err)
			}
		}
		if _, err := pool.Exec(t.Context(), `set role agui_writer; select agui.append('t', 's', '[{"type":"RUN_STARTED"}]'); reset role`); err != nil {
			t.Errorf("%s: as agui_writer: %v", how, err)
		}
	}
}

// A subscriber of logical replication has the log, the snapshots and what else is stored, also of threads that were erased
// or compacted meanwhile.
func TestLogicalReplication(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, map[string]string{"wal_level": "logical"})
	connect := func(name string) *pgxpool.Pool {
		address := createDatabase(t, server, name, "")
		up(t, address)
		return testdb.Connect(t, address)
	}
	publisher, subscriber := connect("publisher"), connect("subscriber")
	// By it a subscriber knows erased threads (docs/erasure.md).
	testdb.Exec(t, subscriber, `update agui_internal.erasure_salt set salt = '`+testdb.Ask[string](t, publisher, `select salt::text from agui_internal.erasure_salt`)+`'`)
	testdb.Exec(t, publisher, `select agui.append('before', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)
	testdb.Exec(t, publisher, `select agui.append('erased', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)

	// All tables but the one that says which version is installed: each database has its own.
	testdb.Exec(t, publisher, `do $$ begin execute (
		select format('create publication agui for table %s', string_agg(oid::regclass::text, ', '))
		from pg_class
		where relnamespace = 'agui'::regnamespace and relkind = 'r' and relname <> 'schema_migrations'
	); end $$`)
	// A subscription in the publisher's own server cannot make its slot.
	testdb.Exec(t, publisher, `select pg_create_logical_replication_slot('agui', 'pgoutput')`)
	testdb.Exec(t, subscriber, `create subscription agui connection '`+server.URL("publisher")+`' publication agui with (create_slot = false, slot_name = 'agui')`)

	testdb.Exec(t, publisher, `select agui.append('after', 'r', '[
		{"type":"RUN_STARTED","input":{"messages":[{"id":"u","role":"user","content":"Hello"}]}}, {"type":"RUN_FINISHED"}]')`)
	testdb.Exec(t, publisher, `call agui.compact()`)
	testdb.Exec(t, publisher, `call agui.repack(older_than => '0')`)
	testdb.Exec(t, publisher, `select agui.erase('erased')`)

	all := `select concat(
		agui.restore('before'), agui.restore('after'),
		(select json_agg(event order by thread_id, seq) from agui.event),
		(select json_agg(erasure) from agui.erasure), agui_internal.erased_at(agui.thread_key('', 'erased')),
		(select count(*) from agui.snapshot), (select count(*) from agui.thread_activity))`
	want, got := testdb.Ask[string](t, publisher, all), ""
	var err error
	if !wait.Until(func() bool {
		err = subscriber.QueryRow(t.Context(), all).Scan(&got)
		return err == nil && got == want
	}) {
		t.Fatalf("the subscriber has\n%s\nwant\n%s\n%v", got, want, err)
	}
	if problems := testdb.Ask[int](t, subscriber, `select count(*) from agui.verify('after')`); problems > 0 {
		t.Errorf("verify finds %d problems in the subscriber", problems)
	}
}

// privileges are those of the roles of the schema, with their memberships.
func privileges(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return sortedPrivileges(objects(t, pool)+tablePrivileges(t, pool)) +
		testdb.Ask[string](t, pool, `select string_agg(member::regrole || ' in ' || roleid::regrole, ', ' order by 1) from pg_auth_members
			where roleid::regrole::text like 'agui\_%' and member::regrole::text like 'agui\_%'`)
}

// The installing role may make no roles, as on many managed servers.
func TestRolesThatCannotBeMadeAreNamed(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, nil)
	superuser := testdb.Connect(t, server.URL("postgres"))
	testdb.Exec(t, superuser, `create role app login password 'app'`)
	createDatabase(t, server, "app", " owner app")
	app := must.Have(url.Parse(server.URL("app")))(t)
	app.User = url.UserPassword("app", "app")

	up := func(address string) string {
		t.Helper()
		var notices []string
		up(t, address, schema.OnNotice(func(text string) { notices = append(notices, text) }))
		return strings.Join(notices, "\n")
	}
	for range 2 { // while it installs, and when there is nothing to do
		notice := up(app.String())
		for _, want := range []string{"create role agui_reader nologin", "grant agui_reader to agui_writer", "grant agui_reader to agui_maintainer", "call agui.grant_access()"} {
			if !strings.Contains(notice, want) {
				t.Errorf("the notice does not say %q: %s", want, notice)
			}
		}
	}
	testdb.Exec(t, testdb.Connect(t, app.String()), `select agui.append('t', 'r', '[{"type":"RUN_STARTED"}]')`) // the owner can work

	// Somebody makes the roles, but not what they are members of.
	testdb.Exec(t, superuser, `create role agui_reader; create role agui_writer; create role agui_worker in role agui_reader; create role agui_maintainer in role agui_reader; create role agui_recorder; create role agui_diagnoser in role agui_reader`)
	if notice := up(app.String()); !strings.Contains(notice, "grant agui_reader to agui_writer") || strings.Contains(notice, "create role") ||
		strings.Contains(notice, "agui_maintainer;") {
		t.Errorf("notice: %s", notice)
	}
	if !testdb.Ask[bool](t, testdb.Connect(t, app.String()), `select has_table_privilege('agui_reader', 'agui.batch', 'select')`) {
		t.Error("the roles that there are have not got their privileges")
	}
	if notice := up(server.URL("app")); notice != "" {
		t.Errorf("as superuser: %s", notice)
	}
	if !testdb.Ask[bool](t, superuser, `select pg_has_role('agui_writer', 'agui_reader', 'usage')`) {
		t.Error("the memberships are not repaired")
	}
	if notice := up(app.String()); notice != "" {
		t.Errorf("when all is there: %s", notice)
	}
}

// A role that may create roles but is no superuser can only grant what it has made, from PostgreSQL 16 on.
func TestARoleThatMayCreateRolesInstallsThemAll(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, nil)
	testdb.Exec(t, testdb.Connect(t, server.URL("postgres")), `create role app login createrole password 'app'`)
	createDatabase(t, server, "app", " owner app")
	app := must.Have(url.Parse(server.URL("app")))(t)
	app.User = url.UserPassword("app", "app")
	for range 2 {
		err := schema.Up(t.Context(), app.String(), schema.OnNotice(func(text string) { t.Errorf("notice: %s", text) }))
		must.Do(t, err)
	}
	if !testdb.Ask[bool](t, testdb.Connect(t, app.String()), `
		select pg_has_role('agui_maintainer', 'agui_reader', 'usage') and pg_has_role('agui_writer', 'agui_reader', 'usage') and pg_has_role('agui_worker', 'agui_reader', 'usage')
			and has_table_privilege('agui_reader', 'agui.run', 'select')`) {
		t.Error("roles, memberships or privileges are missing")
	}
}
