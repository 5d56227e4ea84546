package schema_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/sql/schema"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func up(t *testing.T, databaseURL string, options ...schema.Option) {
	t.Helper()
	must.Do(t, schema.Up(t.Context(), databaseURL, options...))
}

// objects lists all in the schema agui but the version table, with the definitions and privileges of routines.
func objects(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return testdb.Ask[string](t, pool, `
		select coalesce(string_agg(object, e'\n' order by object), '') from (
			select format('%s %s', relkind, relname) from pg_class
			where relnamespace in (to_regnamespace('agui'), to_regnamespace('agui_internal')) and relname not like 'schema_migrations%'
			union all
			select format('%s %s %s %s', prokind, oid::regprocedure, proacl,
				case prokind when 'a' then '' else pg_get_functiondef(oid) end) from pg_proc
			where pronamespace in (to_regnamespace('agui'), to_regnamespace('agui_internal'))
			union all
			select format('%s %s', typtype, typname) from pg_type
			where typnamespace in (to_regnamespace('agui'), to_regnamespace('agui_internal')) and typname not like '%schema_migrations'
			union all
			select format('trigger %s on %s', tgname, tgrelid::regclass) from pg_trigger where not tgisinternal
		) as listed (object)`)
}

// A statement of a migration takes longer than the role may take for one.
func TestMigrationsOutlastStatementTimeout(t *testing.T) {
	t.Parallel()
	url := testdb.Empty(t)
	testdb.Exec(t, testdb.Connect(t, url), `
		create function slow() returns event_trigger language plpgsql as 'begin perform pg_sleep(1); end';
		create event trigger slow on ddl_command_end when tag in ('CREATE SCHEMA') execute function slow()`, pgx.QueryExecModeSimpleProtocol)
	up(t, url+"&statement_timeout=800ms")
}

// tablePrivileges lists the privileges on the schema agui, its tables and its views.
func tablePrivileges(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return testdb.Ask[string](t, pool, `
		select string_agg(format('%s %s', name, privileges), e'\n' order by name) from (
			select nspname, nspacl from pg_namespace where nspname in ('agui', 'agui_internal')
			union all
			select oid::regclass::text, case when relkind in ('r', 'v') then coalesce(relacl, acldefault('r', relowner)) else relacl end from pg_class
			where relnamespace in (to_regnamespace('agui'), to_regnamespace('agui_internal')) and relname not like 'schema_migrations%'
		) as listed (name, privileges)`)
}

func schemaExists(t *testing.T, pool *pgxpool.Pool) bool {
	t.Helper()
	return testdb.Ask[bool](t, pool, `select to_regnamespace('agui') is not null`)
}

func TestUpInstallsAndDownLeavesNothing(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)

	before := must.Have(schema.Status(t.Context(), address))(t)
	if before.Version != 0 || before.Latest == 0 || !errors.Is(before.Problem(), schema.ErrNotInstalled) {
		t.Errorf("status of an empty database: %+v", before)
	}
	for range 2 { // the second time there is nothing to do
		up(t, address)
	}
	after := must.Have(schema.Status(t.Context(), address))(t)
	if after.Version != after.Latest || after.Problem() != nil {
		t.Errorf("status after Up: %+v", after)
	}
	for range 2 {
		must.Do(t, schema.Down(t.Context(), address))
	}
	if schemaExists(t, pool) {
		t.Error("Down left the schema agui")
	}
}

func TestProcessesThatMigrateAtOnceTakeTurns(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	var processes sync.WaitGroup
	for range 6 {
		processes.Go(func() {
			must.Report(t, schema.Up(t.Context(), address))
		})
	}
	processes.Wait()
}

func TestUpStopsWaitingForItsTurnWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	holder := testdb.Acquire(t, pool)
	testdb.Exec(t, holder, `select pg_advisory_lock(x'616775696d696772'::bigint)`)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := schema.Up(ctx, address); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestMigrationGivesWayToALongTransaction(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	reader := testdb.Begin(t, pool)
	defer func() { _ = reader.Rollback(context.Background()) }()
	testdb.Exec(t, reader, `lock table agui.batch in access share mode`)

	impatient, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := schema.Down(impatient, address); !errors.Is(err, schema.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, schema.ErrBusy)
	}
	state, err := schema.Status(t.Context(), address)
	if err != nil || state.Problem() != nil {
		t.Errorf("after a migration that gave way: %+v, %v", state, err)
	}

	removed := make(chan error, 1)
	go func() { removed <- schema.Down(t.Context(), address) }()
	for waiting := false; !waiting; {
		waiting = testdb.Ask[bool](t, pool, `select exists (select from pg_locks where not granted and relation = 'agui.batch'::regclass)`)
		select {
		case err := <-removed:
			t.Fatalf("Down did not wait for the transaction: %v", err)
		default:
		}
	}
	must.Do(t, reader.Rollback(t.Context()))
	must.Report(t, <-removed)
}

func TestMigrationThatFailsLeavesNothingDirty(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	testdb.Exec(t, pool, `
		create schema agui;
		create table agui.schema_migrations (version bigint not null primary key, dirty boolean not null);
		create table agui.message_version ()`)

	err := schema.Up(t.Context(), address)
	if err == nil || !strings.Contains(err.Error(), "_install.up.sql") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that names the migration", err)
	}
	state, err := schema.Status(t.Context(), address)
	if err != nil || state.Version != 0 {
		t.Errorf("got %+v, %v", state, err)
	}
	testdb.Exec(t, pool, `drop table agui.message_version`)
	must.Report(t, schema.Up(t.Context(), address))
}

func TestDatabaseMustBeUTF8(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	name := testdb.Ask[string](t, pool, `select current_database()`)
	testdb.Exec(t, pool, `create database `+name+`_a template template0 encoding 'SQL_ASCII' locale 'C'`)
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), `drop database `+name+`_a with (force)`); err != nil {
			t.Error(err)
		}
	})
	ascii := strings.Replace(address, name, name+"_a", 1)
	if err := schema.Up(t.Context(), ascii); !errors.Is(err, schema.ErrUnsupported) {
		t.Errorf("Up: got %v, want %v", err, schema.ErrUnsupported)
	}
	if _, err := testdb.Connect(t, ascii).Exec(t.Context(), schema.UpSQL(0)); err == nil || !strings.Contains(err.Error(), "UTF8") {
		t.Errorf("UpSQL: got %v, want an error that names UTF8", err)
	}
}
