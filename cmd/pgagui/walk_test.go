package main

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	_ "github.com/golang-migrate/migrate/v4/source/file"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

// An application with its own migrations in golang-migrate installs pgagui, upgrades it, uses it
// and removes it. The version table of the application does not change.
func TestAnApplicationAdoptsAndRemovesPgagui(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, testdb.Empty(t))
	pool := testdb.Connect(t, commands.DatabaseURL)
	application := t.TempDir()
	for name, text := range map[string]string{
		"1_users.up.sql": "create table public.users (id bigint primary key)", "1_users.down.sql": "drop table public.users",
		"2_orders.up.sql": "create table public.orders (id bigint primary key)", "2_orders.down.sql": "drop table public.orders",
	} {
		testfile.Write(t, filepath.Join(application, name), []byte(text))
	}
	golangMigrate := func(folder, parameters string, work func(*migrate.Migrate) error) {
		t.Helper()
		address := must.Have(url.Parse(commands.DatabaseURL))(t)
		address.Scheme = "pgx5"
		address.RawQuery = strings.Trim(address.RawQuery+"&"+parameters, "&")
		engine, err := migrate.New("file://"+folder, address.String())
		if err == nil {
			err = work(engine)
			engine.Close()
		}
		if err != nil {
			t.Fatalf("golang-migrate with %s: %v", folder, err)
		}
	}
	wantVersion := func(version int) {
		t.Helper()
		var got int
		var dirty bool
		if err := pool.QueryRow(t.Context(), `select version, dirty from public.schema_migrations`).Scan(&got, &dirty); err != nil || got != version || dirty {
			t.Fatalf("the migrations of the application are at version %d, dirty %t, error %v; want version %d", got, dirty, err, version)
		}
	}

	golangMigrate(application, "", func(own *migrate.Migrate) error { return own.Migrate(1) })
	commands.MustFail(cli.ExitUnavailable, "threads")

	// It installs pgagui with golang-migrate as docs/install.md describes, then continues with pgagui
	// itself.
	readme := testfile.Read(t, "../../docs/install.md")
	parameters := regexp.MustCompile(`\$DATABASE_URL\?(x-migrations-table=[^"]*)"`).FindSubmatch(readme)
	if parameters == nil {
		t.Fatal("docs/install.md does not say how to call golang-migrate")
	}
	testdb.Exec(t, pool, `create schema if not exists agui`)
	migrations := t.TempDir()
	commands.Must("migrate", "sql", "--folder", migrations)
	golangMigrate(migrations, string(parameters[1]), func(ours *migrate.Migrate) error { return ours.Migrate(1) })
	wantVersion(1)
	if out := commands.Must("migrate", "up"); !strings.HasPrefix(out, "upgraded the schema agui from version 1 to ") {
		t.Errorf("migrate up: %s", out)
	}
	wantVersion(1)
	golangMigrate(application, "", func(own *migrate.Migrate) error { return own.Up() })
	wantVersion(2)
	if out := commands.Must("migrate", "status"); !strings.Contains(out, "up to date") {
		t.Errorf("migrate status: %s", out)
	}

	// It imports and reads a recording.
	recording := clitest.WriteFile(t, "chat.ndjson", clitest.Answer("support-42", "run-1", 3)...)
	inputs := clitest.WriteFile(t, "chat.requests.ndjson", clitest.RequestOf("support-42", "run-1", "Where is my parcel?"))
	if out := commands.Must("import", recording, "--requests", inputs); !strings.Contains(out, "\nsupport-42  1     7       7\n") {
		t.Errorf("import: %s", out)
	}
	if thread := clitest.Parse[pgagui.Thread](commands, "threads"); thread.ID != "support-42" || thread.Title != "Where is my parcel?" {
		t.Errorf("threads: %+v", thread)
	}
	if text := commands.Must("show", "support-42"); !strings.Contains(text, "user\n  Where is my parcel?\n") || !strings.Contains(text, "token 2") {
		t.Errorf("show: %s", text)
	}
	commands.Must("job", "compact")
	commands.Must("verify")

	commands.Must("migrate", "down", "--yes")
	wantVersion(2)
	if left := testdb.Ask[string](t, pool, `
		select string_agg(nspname || '.' || relname, ' ' order by nspname, relname)
		from pg_class
		join pg_namespace on pg_namespace.oid = relnamespace
		where relkind = 'r' and nspname not in ('pg_catalog', 'information_schema')`); left != "public.orders public.schema_migrations public.users" {
		t.Errorf("left are the tables %s", left)
	}
	golangMigrate(application, "", func(own *migrate.Migrate) error { return own.Down() })
}
