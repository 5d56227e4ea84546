package schema_test

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/markdown"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/sql/schema"
)

// An extension installs what the migrations install, its data survives a dump, and a database goes from one way to the other.
func TestExtension(t *testing.T) {
	server := serverWithExtension(t)
	install := func(name string) (string, *pgxpool.Pool) {
		t.Helper()
		address := createDatabase(t, server, name, "")
		return address, testdb.Connect(t, address)
	}
	blocks := markdown.Code(t, "../../docs/install.md", "sql")
	if len(blocks) != 4 {
		t.Fatalf("docs/install.md has %d blocks of SQL", len(blocks))
	}
	create, toExtension, toMigrations, record := blocks[0], blocks[1], blocks[2], blocks[3]

	migrated, migratedPool := install("migrated")
	up(t, migrated)
	want := catalog(t, migratedPool)
	address, pool := install("extension")
	testdb.Exec(t, pool, create)
	checkInstalled(t, address)
	// Beside what the migrations make, it has the triggers of a restore alone.
	sameCatalog := func(pool *pgxpool.Pool) {
		t.Helper()
		testdb.Exec(t, pool, `alter extension pgagui drop function agui_internal.restore_row(); drop function agui_internal.restore_row() cascade`)
		if got := catalog(t, pool); got != want {
			t.Errorf("the extension (+) and the migrations (-) differ:\n%s", differences(got, want))
		}
	}
	_, compared := install("compared")
	testdb.Exec(t, compared, create)
	sameCatalog(compared)

	fill(t, pool)
	testdb.Exec(t, pool, `select agui.set_setting('document_depth', '500')`)
	columnsOfAll := columns(t, pool)
	data := kept(t, pool, columnsOfAll)

	// A dump, restored.
	restored, restoredPool := install("restored")
	text, err := osexec.Command(testdb.Program(t, testneeds.PgDump, "pg_dump"), "-d", address, "--format=custom").Output()
	if err != nil {
		t.Logf("pg_dump cannot dump this server: %v", err) // it is older
	} else {
		restore := osexec.Command(testdb.Program(t, testneeds.PgDump, "pg_restore"), "--exit-on-error", "-d", restored)
		restore.Stdin = strings.NewReader(string(text))
		if printed, err := restore.CombinedOutput(); err != nil || len(printed) > 0 {
			t.Errorf("pg_restore: %v\n%s", err, printed)
		}
		if got := kept(t, restoredPool, columnsOfAll); got != data {
			t.Errorf("restored (+) and as it was (-) differ:\n%s", differences(got, data))
		}
		checkInstalled(t, restored)
	}

	// To migrations and back.
	testdb.Exec(t, pool, toMigrations)
	testdb.Exec(t, pool, record)
	if got := catalog(t, pool); got != want {
		t.Errorf("moved to migrations (+) and the migrations (-) differ:\n%s", differences(got, want))
	}
	if err := schema.Up(t.Context(), address); err != nil {
		t.Errorf("up after the move: %v", err)
	}
	if err := schema.Down(t.Context(), address); !errors.Is(err, schema.ErrHoldsData) {
		t.Errorf("down after the move: %v", err)
	}
	testdb.Exec(t, pool, toExtension)
	members := func(pool *pgxpool.Pool) string {
		return testdb.Ask[string](t, pool, `
			select string_agg(pg_describe_object(classid, objid, objsubid), e'\n' order by pg_describe_object(classid, objid, objsubid))
			from pg_depend where refclassid = 'pg_extension'::regclass and deptype = 'e'
				and refobjid = (select oid from pg_extension where extname = 'pgagui')`)
	}
	if got, want := members(pool), members(restoredPoolOr(t, restoredPool, create)); got != want {
		t.Errorf("the members after the move (+) and of a new extension (-) differ:\n%s", differences(got, want))
	}
	if got := kept(t, pool, columnsOfAll); got != data {
		t.Errorf("moved twice (+) and as it was (-) differ:\n%s", differences(got, data))
	}
	checkInstalled(t, address)
	sameCatalog(pool)
}

// restoredPoolOr is a database with a new extension, which a restore has made or this call makes.
func restoredPoolOr(t *testing.T, pool *pgxpool.Pool, create string) *pgxpool.Pool {
	t.Helper()
	if !testdb.Ask[bool](t, pool, `select exists (select from pg_extension where extname = 'pgagui')`) {
		testdb.Exec(t, pool, create)
	}
	return pool
}

func checkInstalled(t *testing.T, address string) {
	t.Helper()
	state, err := schema.Status(t.Context(), address)
	if err != nil || state.Problem() != nil {
		t.Errorf("status: %+v, %v, %v", state, state.Problem(), err)
	}
}

// serverWithExtension starts a copy of the server's programs that has the files of the extension: a server finds its files relative
// to its programs.
func serverWithExtension(t *testing.T) *cluster.Cluster {
	t.Helper()
	programs := os.Getenv("PGAGUI_POSTGRES_BIN")
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); programs == "" && len(found) > 0 {
		programs = slices.Max(found)
	}
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // the account of the server reads it
		t.Fatal(err)
	}
	copied := filepath.Dir(programs)
	folders := []string{copied}
	if version := filepath.Base(copied); copied == "/usr/lib/postgresql/"+version { // Debian
		folders = append(folders, "/usr/share/postgresql/"+version)
	}
	for _, folder := range folders {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(folder)); err != nil {
			t.Skipf("the programs of the server cannot be copied: %v", err)
		}
	}
	controls := ""
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "plpgsql.control" {
			controls = filepath.Dir(path)
		}
		return err
	})
	if err != nil || controls == "" {
		t.Skipf("the server in %s has no files of extensions beside it: %v", programs, err)
	}
	must.Do(t, os.CopyFS(controls, schema.Extension()))
	t.Setenv("PGAGUI_POSTGRES_BIN", filepath.Join(root, programs))
	return testdb.Server(t, nil)
}
