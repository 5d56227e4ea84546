package schema_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	_ "github.com/golang-migrate/migrate/v4/database/postgres"
	_ "github.com/golang-migrate/migrate/v4/source/file"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/pgagui/pgagui/internal/hostile"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/sql/schema"
)

// ourVersionTable is what docs/install.md adds to the address of the database for golang-migrate.
var ourVersionTable = sync.OnceValue(func() string {
	readme, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		panic(err)
	}
	match := regexp.MustCompile(`\$DATABASE_URL\?(x-migrations-table=[^"]*)"`).FindSubmatch(readme)
	if match == nil {
		panic("docs/install.md does not say how to call golang-migrate")
	}
	return string(match[1])
})

// golangMigrate is golang-migrate as its command line sets it up, given a folder and the address of a database.
func golangMigrate(t *testing.T, folder, address, scheme, parameters string) *migrate.Migrate {
	t.Helper()
	parsed := must.Have(url.Parse(address))(t)
	parsed.Scheme = scheme
	query := parsed.Query()
	more := must.Have(url.ParseQuery(parameters))(t)
	for name, values := range more {
		query.Set(name, values[0])
	}
	parsed.RawQuery = query.Encode()
	engine := must.Have(migrate.New("file://"+folder, parsed.String()))(t)
	t.Cleanup(func() {
		must.Report(t, errors.Join(engine.Close()))
	})
	return engine
}

// documentedGolangMigrate is golang-migrate as README says to call it: the schema is made before, for its version table.
func documentedGolangMigrate(t *testing.T, address, scheme string) *migrate.Migrate {
	t.Helper()
	testdb.Exec(t, testdb.Connect(t, address), `create schema if not exists agui`)
	folder := t.TempDir()
	must.Do(t, os.CopyFS(folder, schema.Migrations()))
	return golangMigrate(t, folder, address, scheme, ourVersionTable())
}

// teamChain writes migrations of a team with the given numbers, each with a table of its own, and returns their folder.
func teamChain(t *testing.T, versions ...uint) string {
	t.Helper()
	folder := t.TempDir()
	for _, version := range versions {
		for suffix, text := range map[string]string{
			"up": fmt.Sprintf("create table public.team_%d ();", version), "down": fmt.Sprintf("drop table public.team_%d;", version),
		} {
			testfile.Write(t, filepath.Join(folder, fmt.Sprintf("%d_team.%s.sql", version, suffix)), []byte(text))
		}
	}
	return folder
}

// A team's own chain is in public.schema_migrations, as golang-migrate has it unless told otherwise; ours is beside it.
func TestGolangMigrateBesideAChainOfTheTeam(t *testing.T) {
	t.Parallel()
	const teamTables = `select coalesce(string_agg(relname, ' ' order by relname), '') from pg_class where relname like 'team\_%' and relkind = 'r'`
	for name, chain := range map[string]struct {
		scheme    string // the driver of golang-migrate
		oursFirst bool
		versions  []uint
	}{
		"at version 1": {"postgres", true, []uint{1}},
		"at version 2": {"pgx5", false, []uint{1, 2}},
		"with times":   {"postgres", false, []uint{20260101120000, 20260301090000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme, versions := chain.scheme, chain.versions
			address := testdb.Empty(t)
			pool := testdb.Connect(t, address)
			theirs := golangMigrate(t, teamChain(t, versions...), address, scheme, "")
			ours := documentedGolangMigrate(t, address, scheme)
			mustHaveTeamTables := func() {
				t.Helper()
				expectVersion(t, theirs, versions[len(versions)-1])
				if got := testdb.Ask[string](t, pool, teamTables); strings.Count(got, "team_") != len(versions) {
					t.Errorf("tables of the team: %s", got)
				}
			}

			if chain.oursFirst {
				must.Do(t, ours.Up())
				must.Do(t, theirs.Up())
			} else {
				must.Do(t, theirs.Up())
				must.Do(t, ours.Up())
			}
			mustHaveTeamTables()
			expectVersion(t, ours, schema.Latest())
			if state, err := schema.Status(t.Context(), address); err != nil || state.Problem() != nil || state.OtherTool {
				t.Errorf("status: %+v, %v", state, err)
			}
			if err := schema.Up(t.Context(), address); err != nil {
				t.Errorf("Up where golang-migrate has installed: %v", err)
			}

			must.Do(t, theirs.Down())
			expectVersion(t, ours, schema.Latest())
			if err := schema.Check(t.Context(), pool); err != nil {
				t.Errorf("after the team's down: %v", err)
			}
			must.Do(t, theirs.Up())
			must.Do(t, ours.Down())
			mustHaveTeamTables()
			if err := schema.Check(t.Context(), pool); !errors.Is(err, schema.ErrNotInstalled) {
				t.Errorf("after our down: %v", err)
			}
		})
	}
}

func expectVersion(t *testing.T, engine *migrate.Migrate, want uint) {
	t.Helper()
	if got, dirty, err := engine.Version(); got != want || dirty || err != nil {
		t.Errorf("version %d, dirty %t, %v; want %d", got, dirty, err, want)
	}
}

// golang-migrate makes its version table before it runs a migration, so a schema for it must be there.
func TestGolangMigrateNeedsTheSchemaForItsVersionTable(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx/v5", testdb.Empty(t))
	must.Do(t, err)
	defer db.Close()
	_, err = migratepgx.WithInstance(db, &migratepgx.Config{MigrationsTable: `"agui"."schema_migrations"`, MigrationsTableQuoted: true})
	if err == nil {
		t.Error("golang-migrate did without the schema: README need not ask for it")
	}
}

func TestEveryDownMigrationTakesBackItsUpMigration(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	engine := documentedGolangMigrate(t, address, "pgx5")
	for version := range schema.Latest() {
		before := objects(t, pool)
		for _, step := range []int{+1, -1} {
			must.Do(t, engine.Steps(step))
		}
		if after := objects(t, pool); after != before {
			t.Errorf("before\n%s\n\nafter\n%s", before, after)
		}
		must.Do(t, engine.Steps(+1))
		if state, err := schema.Status(t.Context(), address); err != nil || state.Version != version+1 || state.Fingerprint != state.Expected {
			t.Errorf("after migration %d: %+v, %v", version+1, state, err)
		}
	}
}

// A mapping of usage of the time when there could be only one still counts, and goes down alone. Where down would lose others, it refuses.
func TestTheOnlyMappingOfUsageStays(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	engine := documentedGolangMigrate(t, address, "pgx5")
	const whereOneIs = 18
	migrate := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	migrate(engine.Migrate(whereOneIs))
	testdb.Exec(t, pool, `insert into agui_internal.usage_mapping (path, names) values ('{metadata,llm}', '{"inputTokens":"in"}')`)
	migrate(engine.Up())
	testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","metadata":{"llm":{"in":7}}}]')`)
	mustCount := func() {
		t.Helper()
		if got := testdb.Ask[int](t, pool, `select coalesce(input_tokens, 0) from agui.usage('t')`); got != 7 {
			t.Errorf("%d tokens by the mapping, want 7", got)
		}
	}
	mustCount()
	migrate(engine.Migrate(whereOneIs))
	migrate(engine.Up())
	mustCount()
	testdb.Exec(t, pool, `select agui.map_usage('{value}', custom => 'cost')`)
	if err := engine.Migrate(whereOneIs); err == nil || !strings.Contains(err.Error(), "agui.allow_removal = on") {
		t.Errorf("down: %v", err)
	}
}

// What users have set is in no log, so a down migration that would lose it refuses until that is allowed.
func TestDownMigrationsKeepWhatUsersHaveSet(t *testing.T) {
	t.Parallel()
	for table, set := range map[string]string{
		"agui.retention":              `select agui.set_retention('erase', '90 days')`,
		"agui.consumer":               `select agui.move_consumer('warehouse', null)`,
		"agui.webhook":                `select agui.add_webhook('w', 'https://example.com')`,
		"agui_internal.usage_mapping": `select agui.map_usage('{metadata,usage}')`,
		"agui_internal.node":          `call agui.join_cluster('a')`,
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			address := testdb.New(t)
			pool := testdb.Connect(t, address)
			engine := documentedGolangMigrate(t, address, "pgx5")
			testdb.Exec(t, pool, set)
			var err error
			for version := schema.Latest(); version > 0 && err == nil; version-- {
				err = engine.Steps(-1)
			}
			if err == nil || !strings.Contains(err.Error(), "agui.allow_removal = on") {
				t.Errorf("down: %v", err)
			}
			if got := testdb.Ask[int](t, pool, `select count(*) from `+table); got != 1 {
				t.Errorf("%d rows of %s are left, of 1", got, table)
			}
		})
	}
}

// What an operator has set for autovacuum is no business of an upgrade, and none of the way back.
func TestMigrationsKeepOwnSettingsOfAutovacuum(t *testing.T) {
	t.Parallel()
	address := testdb.Empty(t)
	pool := testdb.Connect(t, address)
	engine := documentedGolangMigrate(t, address, "pgx5")
	setting := func() string {
		return testdb.Ask[string](t, pool, `select coalesce(array_to_string(reloptions, ' '), '') from pg_class where oid = 'agui.message_version'::regclass`)
	}
	must.Do(t, engine.Migrate(12))
	for _, step := range []struct{ own, up, down string }{
		{"", "autovacuum_vacuum_scale_factor=0.02", ""},
		{"autovacuum_vacuum_scale_factor=0.1", "autovacuum_vacuum_scale_factor=0.1", "autovacuum_vacuum_scale_factor=0.1"},
	} {
		if step.own != "" {
			testdb.Exec(t, pool, `alter table agui.message_version set (`+step.own+`)`)
		}
		must.Do(t, engine.Migrate(13))
		if got := setting(); got != step.up {
			t.Errorf("set to %q, upgraded: %q, want %q", step.own, got, step.up)
		}
		must.Do(t, engine.Migrate(12))
		if got := setting(); got != step.down {
			t.Errorf("set to %q, on the way back: %q, want %q", step.own, got, step.down)
		}
	}
}

// golang-migrate leaves its version table dirty where the connection was lost or the server refused. What is installed says the
// database itself.
func TestUpGoesOnFromADirtyVersionTable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		installed int
		row       string
	}{
		"nothing was applied":        {0, "1, true"},
		"the install was stopped":    {0, fmt.Sprintf("%d, true", schema.Latest())},
		"the first was applied":      {1, "1, true"},
		"the second was not applied": {1, "2, true"},
		"the second was applied":     {2, "2, true"},
		"the row is behind":          {2, "1, false"},
		"the row is gone":            {2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := testdb.Empty(t)
			pool := testdb.Connect(t, address)
			engine := documentedGolangMigrate(t, address, "pgx5")
			if test.installed > 0 {
				must.Do(t, engine.Steps(test.installed))
			}
			testdb.Exec(t, pool, `truncate agui.schema_migrations`)
			if test.row != "" {
				testdb.Exec(t, pool, `insert into agui.schema_migrations values (`+test.row+`)`)
			}
			up(t, address)
			expectVersion(t, engine, schema.Latest())
			must.Report(t, schema.Check(t.Context(), pool))
		})
	}
}

// Whatever runs the migrations: the same objects, privileges and record, and no problem for the commands.
func TestAllWaysOfInstallingGiveTheSame(t *testing.T) {
	t.Parallel()
	installed := testdb.Pool(t)
	want, wantPrivileges, wantCatalog := objects(t, installed), tablePrivileges(t, installed), catalog(t, installed)

	psql := func(t *testing.T, address, text string, options ...string) error {
		t.Helper()
		command := osexec.Command(testdb.Program(t, testneeds.Psql, "psql"), append(options, "-X", "-q", "--set", "ON_ERROR_STOP=1", "-d", address)...)
		command.Stdin = strings.NewReader(text)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("psql: %w: %s", err, output)
		}
		return nil
	}
	// From the version that is there: those after it are taken back already if one was refused before.
	downOneByOne := func(t *testing.T, address string, options ...string) error {
		t.Helper()
		state, err := schema.Status(t.Context(), address)
		for from := state.Version; from > 0 && err == nil; from-- {
			err = psql(t, address, strings.TrimPrefix(schema.DownSQL(from-1), schema.DownSQL(from)), options...)
		}
		return err
	}
	// What fails leaves the version table of golang-migrate dirty, at the version that it did not reach. All at once would leave
	// goroutines behind, too.
	down := func(engine *migrate.Migrate) error {
		for {
			before, _, err := engine.Version()
			if errors.Is(err, migrate.ErrNilVersion) {
				return nil
			}
			if err == nil {
				err = engine.Steps(-1)
			}
			if err != nil {
				return errors.Join(err, engine.Force(int(before)))
			}
		}
	}
	for name, install := range map[string]struct {
		otherTool bool
		up, down  func(t *testing.T, address string) error
	}{
		"golang-migrate": {
			up:   func(t *testing.T, address string) error { return documentedGolangMigrate(t, address, "postgres").Up() },
			down: func(t *testing.T, address string) error { return down(documentedGolangMigrate(t, address, "postgres")) },
		},
		"golang-migrate as a library, from the file system of this package": {
			up: func(t *testing.T, address string) error {
				testdb.Exec(t, testdb.Connect(t, address), `create schema agui`)
				return ownChain(t, address, schema.Migrations(), ourVersionTable()).Up()
			},
			down: func(t *testing.T, address string) error {
				return down(ownChain(t, address, schema.Migrations(), ourVersionTable()))
			},
		},
		"golang-migrate, in the chain of the team": {
			otherTool: true,
			up:        func(t *testing.T, address string) error { return ownChain(t, address, copied(), "").Up() },
			down:      func(t *testing.T, address string) error { return down(ownChain(t, address, copied(), "")) },
		},
		"goose, in the chain of the team": {
			otherTool: true,
			up: func(t *testing.T, address string) error {
				_, err := gooseProvider(t, address, gooseFile()).Up(t.Context())
				return err
			},
			down: func(t *testing.T, address string) error {
				_, err := gooseProvider(t, address, gooseFile()).DownTo(t.Context(), 0)
				return err
			},
		},
		"psql": {
			otherTool: true,
			up: func(t *testing.T, address string) error {
				return psql(t, address, schema.InstallSQL(), "--single-transaction")
			},
			down: func(t *testing.T, address string) error {
				return psql(t, address, schema.DownSQL(0), "--single-transaction")
			},
		},
		"psql, a version at a time": {
			otherTool: true,
			up: func(t *testing.T, address string) error {
				// What is after a version, less what is after the next one.
				for from := range schema.Latest() {
					if err := psql(t, address, strings.TrimSuffix(schema.UpSQL(from), schema.UpSQL(from+1)), "--single-transaction"); err != nil {
						return err
					}
				}
				return nil
			},
			down: func(t *testing.T, address string) error { return downOneByOne(t, address, "--single-transaction") },
		},
		"statement by statement, as Atlas does": {
			otherTool: true,
			up:        func(t *testing.T, address string) error { return psql(t, address, schema.InstallSQL()) },
			down:      func(t *testing.T, address string) error { return downOneByOne(t, address) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := testdb.Empty(t)
			pool := testdb.Connect(t, address)
			must.Do(t, install.up(t, address))
			if got := objects(t, pool); got != want {
				t.Errorf("got\n%s\n\nwant\n%s", got, want)
			}
			if got := catalog(t, pool); got != wantCatalog {
				t.Errorf("it (+) and what pgagui migrate up installs (-) differ:\n%s", differences(got, wantCatalog))
			}
			if got := tablePrivileges(t, pool); got != wantPrivileges {
				t.Errorf("got\n%s\n\nwant\n%s", got, wantPrivileges)
			}
			state, err := schema.Status(t.Context(), address)
			if err != nil || state.Problem() != nil || state.OtherTool != install.otherTool || state.CatalogUnrecorded {
				t.Errorf("status: %+v, %v, %v", state, state.Problem(), err)
			}
			if err := schema.Up(t.Context(), address); err != nil {
				t.Errorf("Up: %v", err)
			}
			if err := schema.Check(t.Context(), pool); err != nil {
				t.Errorf("Check: %v", err)
			}
			if install.otherTool {
				if err := schema.Down(t.Context(), address); !errors.Is(err, schema.ErrInstalledOtherwise) {
					t.Errorf("Down: got %v, want %v", err, schema.ErrInstalledOtherwise)
				}
				if testdb.Ask[bool](t, pool, `select to_regclass('agui.schema_migrations') is not null`) {
					t.Error("there is a version table beside that of the other tool")
				}
			}
			testdb.Exec(t, pool, `select agui.append('kept', 'r', '[{"type":"RUN_STARTED"}]')`)
			if err := install.down(t, address); err == nil || !strings.Contains(err.Error(), "agui.allow_removal = on") {
				t.Errorf("down, with a conversation: %v", err)
			}
			// Migrations that delete nothing may be taken back before one is refused.
			if state, err := schema.Status(t.Context(), address); err != nil || state.Version == 0 || state.Fingerprint != state.Expected || len(state.Changes) > 0 {
				t.Errorf("after down was refused: %+v, %v", state, err)
			}
			if got := testdb.Ask[int](t, pool, `select count(*) from agui.events('kept')`); got != 1 {
				t.Errorf("%d events are left, of 1", got)
			}
			must.Report(t, install.down(t, address+"&options=-cagui.allow_removal%3Don"))
			if got := objects(t, pool); got != "" {
				t.Errorf("left behind:\n%s", got)
			}
			if state, err := schema.Status(t.Context(), address); err != nil || !errors.Is(state.Problem(), schema.ErrNotInstalled) {
				t.Errorf("status afterwards: %+v, %v", state, err)
			}
		})
	}
}

// Who installs is a superuser or an owner, and others may create in a schema of the search_path.
func TestMigrationsLookUpNothingOnThePathOfTheSession(t *testing.T) {
	t.Parallel()
	want := objects(t, testdb.Pool(t))
	for name, install := range map[string]struct {
		up, down func(t *testing.T, address string) error
	}{
		"by another tool": {
			up: func(t *testing.T, address string) error {
				connection := testdb.Connect(t, address)
				if _, err := connection.Exec(t.Context(), schema.UpSQL(0), pgx.QueryExecModeSimpleProtocol); err != nil {
					return err
				}
				if path := testdb.Ask[string](t, connection, `show search_path`); path != hostile.Path {
					t.Errorf("search_path is %s afterwards", path)
				}
				return nil
			},
			down: func(t *testing.T, address string) error {
				_, err := testdb.Connect(t, address).Exec(t.Context(), schema.DownSQL(0), pgx.QueryExecModeSimpleProtocol)
				return err
			},
		},
		"pgagui migrate": {
			up: func(t *testing.T, address string) error {
				if err := schema.Up(t.Context(), address); err != nil {
					return err
				}
				if state, err := schema.Status(t.Context(), address); err != nil || state.Problem() != nil {
					return errors.Join(err, state.Problem())
				}
				return schema.Up(t.Context(), address)
			},
			down: func(t *testing.T, address string) error { return schema.Down(t.Context(), address) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := testdb.Empty(t)
			pool := testdb.Connect(t, address)
			hostile.Plant(t, address)
			onPath := hostile.Address(address)
			must.Do(t, install.up(t, onPath))
			if got := objects(t, pool); got != want {
				t.Errorf("got\n%s\n\nwant\n%s", got, want)
			}
			must.Do(t, install.down(t, onPath))
			if calls := hostile.Calls(t, pool); calls > 0 {
				t.Errorf("%d calls of doubles", calls)
			}
		})
	}
}

// ownChain is golang-migrate with the migrations of a file system.
func ownChain(t *testing.T, address string, files fs.FS, parameters string) *migrate.Migrate {
	t.Helper()
	source := must.Have(iofs.New(files, "."))(t)
	parsed := must.Have(url.Parse(address))(t)
	parsed.Scheme = "pgx5"
	if parameters != "" {
		values := must.Have(url.ParseQuery(parsed.RawQuery + "&" + parameters))(t)
		parsed.RawQuery = values.Encode()
	}
	engine := must.Have(migrate.NewWithSourceInstance("iofs", source, parsed.String()))(t)
	t.Cleanup(func() {
		must.Report(t, errors.Join(engine.Close()))
	})
	return engine
}

// copied is a chain of a team that has our SQL, as "pgagui migrate sql" prints it, between migrations of its own.
func copied() fstest.MapFS {
	return fstest.MapFS{
		"1_team.up.sql":     {Data: []byte("create table public.team_1 ();")},
		"1_team.down.sql":   {Data: []byte("drop table public.team_1;")},
		"2_pgagui.up.sql":   {Data: []byte(schema.InstallSQL())},
		"2_pgagui.down.sql": {Data: []byte(schema.DownSQL(0))},
		"3_team.up.sql":     {Data: []byte("create table public.team_3 ();")},
		"3_team.down.sql":   {Data: []byte("drop table public.team_3;")},
	}
}

func gooseFile() fstest.MapFS {
	return fstest.MapFS{
		"1_team.sql":   {Data: []byte("-- +goose Up\ncreate table public.team_1 ();\n-- +goose Down\ndrop table public.team_1;\n")},
		"2_pgagui.sql": {Data: []byte(schema.GooseSQL(0))},
	}
}

func gooseProvider(t *testing.T, address string, files fs.FS) *goose.Provider {
	t.Helper()
	db := must.Have(sql.Open("pgx/v5", address))(t)
	provider := must.Have(goose.NewProvider(goose.DialectPostgres, db, files))(t)
	t.Cleanup(func() {
		must.Report(t, provider.Close())
	})
	return provider
}

func TestSQLFromAVersionIsWhatComesAfterIt(t *testing.T) {
	t.Parallel()
	for _, text := range []func(uint) string{schema.UpSQL, schema.DownSQL, schema.GooseSQL} {
		if got := text(schema.Latest()); got != "" {
			t.Errorf("after the latest version: %s", got)
		}
	}
	if after, all := schema.UpSQL(1), schema.UpSQL(0); !strings.HasSuffix(all, after) || len(after) >= len(all) || strings.Contains(after, "create table agui.thread ") {
		t.Error("UpSQL(1) is not the end of UpSQL(0)")
	}
	if after, all := schema.DownSQL(1), schema.DownSQL(0); !strings.HasPrefix(all, after) || strings.Contains(after, "agui.run, agui.thread;") {
		t.Error("DownSQL(1) is not the beginning of DownSQL(0)")
	}
	if !bytes.Contains([]byte(schema.GooseSQL(1)), []byte("-- +goose Down")) {
		t.Error("GooseSQL has no way down")
	}
}
