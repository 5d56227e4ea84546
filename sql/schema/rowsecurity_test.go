package schema_test

import (
	"fmt"
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/sql/schema"
)

// tenantRole makes a role for one test that may append, and maps it to a scope.
func tenantRole(t *testing.T, pool *pgxpool.Pool, scope string) string {
	t.Helper()
	return testdb.Role(t, pool, "tenant", "agui_writer", `select agui.map_tenant('%s', '`+scope+`')`)
}

// tables with keys of threads, and those of them that row-level security is on for.
func protectedTables(t *testing.T, pool *pgxpool.Pool) (all, on int) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `
		select count(*), count(*) filter (where relrowsecurity and exists (select from pg_policy where polrelid = relation.oid and polname = 'agui_scope'))
		from pg_class as relation
		join pg_attribute as attribute on attribute.attrelid = relation.oid and attribute.attname in ('thread_key', 'erased_key', 'is_all')
		where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relkind = 'r'`).Scan(&all, &on)
	must.Do(t, err)
	return all, on
}

func TestRowSecurityIsTurnedOnAndOff(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	for _, step := range []struct {
		options []schema.Option
		want    bool
	}{
		{[]schema.Option{schema.RowSecurity(true)}, true},
		{nil, true},
		{[]schema.Option{schema.RowSecurity(true)}, true},
		{[]schema.Option{schema.RowSecurity(false)}, false},
		{nil, false},
	} {
		up(t, address, step.options...)
		state, err := schema.Status(t.Context(), address)
		if err != nil || state.Problem() != nil || state.RowSecurity != step.want {
			t.Errorf("row-level security is %t, want %t (%v, %v)", state.RowSecurity, step.want, state.Problem(), err)
		}
		if all, on := protectedTables(t, pool); all < 13 || step.want != (on == all) || !step.want && on > 0 {
			t.Errorf("want %t: it is on for %d of %d tables", step.want, on, all)
		}
	}
	up(t, address, schema.RowSecurity(true))
	if err := schema.Down(t.Context(), address); err != nil || schemaExists(t, pool) {
		t.Errorf("Down: %v", err)
	}
}

// A statement that waits for a lock on a table keeps those behind it waiting.
func TestRowSecurityGivesWayToALongTransaction(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"}]')`)
	tx := testdb.Begin(t, pool)
	testdb.Exec(t, tx, `select from agui.run`)
	done := make(chan error)
	go func() { done <- schema.Up(t.Context(), address, schema.RowSecurity(true)) }()
	for range 20 {
		testdb.Exec(t, pool, `set statement_timeout = '10s'; select agui.append('t', 'r', '[{"type":"CUSTOM"}]')`)
	}
	must.Do(t, tx.Rollback(t.Context()))
	must.Report(t, <-done)
	if all, on := protectedTables(t, pool); on != all {
		t.Errorf("it is on for %d of %d tables", on, all)
	}
}

// A later release that replaces functions, drops and creates others, and adds a table leaves row-level security on.
func TestRowSecuritySurvivesUpgrades(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	testdb.Exec(t, pool, `
		select agui.append('t', 'r', '[{"type":"RUN_STARTED"}]', scope => 'a'), agui.append('t', 'r', '[{"type":"RUN_STARTED"}]', scope => 'b')`)
	role := tenantRole(t, pool, "a")
	up(t, address, schema.RowSecurity(true))
	check := func(after string) {
		t.Helper()
		all, on := protectedTables(t, pool)
		if on != all {
			t.Errorf("%s: it is on for %d of %d tables", after, on, all)
		}
		for statement, want := range map[string]string{
			`select count(*) from agui.run`:                                                                          "1",
			`select agui.append('t', 'r', '[{"type":"CUSTOM"}]', scope => 'b')`:                                      "42501",
			`select count(*) from agui.runs('t', 'b')`:                                                               "UI001",
			`select (agui.append('t', 'r', '[{"type":"CUSTOM"}]', scope => 'a') > 1)::int`:                           "1",
			`select agui_internal.own_key(agui.thread_key('b', 't')) is null`:                                        "42501",
			`select count(*) from agui_internal.visible_key(agui.thread_key('b', 't')) as key where key is not null`: "0",
		} {
			var answer any
			err := func() error {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					return err
				}
				defer tx.Rollback(t.Context())
				if _, err := tx.Exec(t.Context(), `set local role `+role); err != nil {
					return err
				}
				return tx.QueryRow(t.Context(), statement).Scan(&answer)
			}()
			if got := fmt.Sprint(answer); err == nil && got != want || err != nil && !strings.Contains(err.Error(), "SQLSTATE "+want) {
				t.Errorf("%s: %s: %v, %v, want %s", after, statement, answer, err, want)
			}
		}
	}
	check("turned on")

	newer := thisRelease(t)
	newer.freeze()
	// Dropped and created: a function that definers and the policies' view depend on, by one more argument.
	newer.replace("functions/core/tenants.sql", `visible_key\(thread_key uuid\)\nreturns`, "visible_key(thread_key uuid, more text default null)\nreturns")
	newer.replace("functions/core/tenants.sql", "-- The planner", "-- Still the planner")
	newer.replace("functions/core/views.sql", "where tenant.role_name", "where true and tenant.role_name")
	newer.migrate("more", `create table agui_internal.more (thread_key uuid primary key); comment on table agui_internal.more is 'More.';`,
		`drop table agui_internal.more;`)
	newer.freeze()
	newer.mustUp(address)
	state, err := schema.Status(t.Context(), address, newer.migrations())
	if err != nil || state.Problem() != nil || !state.RowSecurity || state.Version != schema.Latest()+2 {
		t.Errorf("after the upgrade: %+v, %v, %v", state, state.Problem(), err)
	}
	if all, _ := protectedTables(t, pool); all < 14 {
		t.Errorf("only %d tables", all)
	}
	check("upgraded")
	if err := schema.Down(t.Context(), address, newer.migrations(), schema.DeleteData()); err != nil || schemaExists(t, pool) {
		t.Errorf("Down: %v", err)
	}
}

func TestRowSecuritySurvivesADump(t *testing.T) {
	t.Parallel()
	dump, restore := testdb.Program(t, testneeds.PgDump, "pg_dump"), testdb.Program(t, testneeds.PgDump, "pg_restore")
	source := testdb.New(t)
	sourcePool := testdb.Connect(t, source)
	testdb.Exec(t, sourcePool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"}]', scope => 'a'), agui.append('t', 'r', '[{"type":"RUN_STARTED"}]', scope => 'b')`)
	tenantRole(t, sourcePool, "a") // which the other server does not have
	up(t, source, schema.RowSecurity(true))
	server := testdb.Server(t, nil)
	for number, how := range []string{"--no-comments", "--no-privileges", "--schema-only"} {
		text, err := osexec.Command(dump, "-d", source, "--format=custom", how).Output()
		if err != nil {
			testneeds.Skip(t, testneeds.PgDump, "pg_dump: %v", err)
		}
		address := createDatabase(t, server, fmt.Sprintf("restored_%d", number), "")
		pool := testdb.Connect(t, address)
		load := osexec.Command(restore, "-d", address)
		load.Stdin = strings.NewReader(string(text))
		_ = load.Run() // there are no roles to grant anything to, and it warns about that
		up(t, address)
		state, err := schema.Status(t.Context(), address)
		all, on := protectedTables(t, pool)
		if err != nil || state.Problem() != nil || !state.RowSecurity || on != all {
			t.Errorf("%s: %+v, %v, %v; it is on for %d of %d tables", how, state, state.Problem(), err, on, all)
		}
		testdb.Exec(t, pool, `create role restored_`+fmt.Sprint(number)+` in role agui_writer`)
		if _, err := pool.Exec(t.Context(), fmt.Sprintf(`set role restored_%d; select agui.append('t', 'r', '[{"type":"CUSTOM"}]', scope => 'a')`, number)); err == nil ||
			!strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: a role without a mapping appends: %v", how, err)
		}
		if how != "--schema-only" {
			if got := testdb.Ask[string](t, pool, `select string_agg(concat_ws(' ', kind, scope), ',') from agui.tenant`); got != "tenant a" {
				t.Errorf("%s: mappings are %s", how, got)
			}
		}
	}
	// Who may read a part of the rows cannot dump them: pg_dump fails rather than leave rows out.
	testdb.Exec(t, testdb.Connect(t, server.URL("restored_0")), `create role reader in role agui_reader; select agui.map_tenant('reader', 'a')`)
	output, err := osexec.Command(dump, "-d", server.URL("restored_0"), "--role=reader", "--table=agui.run").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "row-level security") {
		t.Errorf("pg_dump by a tenant: %v: %s", err, output)
	}
}
