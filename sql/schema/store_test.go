package schema_test

import (
	"bytes"
	"flag"
	"fmt"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/sql/schema"
)

var dumpStore = flag.Bool("dump-store", false, "write testdata/store_NNNNNN.sql: a store of the last released version with rows in every table")

// fill puts rows into every table, and does what jobs would do with them.
func fill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testdb.Fill(t, pool)
	for _, table := range tables(t, pool) {
		if testdb.Ask[int](t, pool, `select count(*) from `+table) == 0 {
			t.Errorf("%s has no row that could get lost in an upgrade: fill it", table)
		}
	}
}

// tables are the tables that hold what people store, in order.
func tables(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	return testdb.Ask[[]string](t, pool, `
		select array_agg(oid::regclass::text order by oid::regclass::text)
		from pg_class
		where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relkind = 'r'
			and relname not in ('schema_migrations', 'installed_object', 'uptime', 'older_rules')`)
}

// columns are the columns of tables.
func columns(t *testing.T, pool *pgxpool.Pool) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range tables(t, pool) {
		all[table] = testdb.Ask[[]string](t, pool, fmt.Sprintf(`
			select array_agg(attname::text order by attnum) from pg_attribute where attrelid = '%s'::regclass and attnum > 0 and not attisdropped`, table))
	}
	return all
}

// kept is what the store has of what fill made: rows, in some columns, and what calls say of it.
func kept(t *testing.T, pool *pgxpool.Pool, columns map[string][]string) string {
	t.Helper()
	var all strings.Builder
	for table, names := range columns {
		others := ""
		if slices.Contains(names, "thread_key") { // of writers of the test
			others = `where thread_key not in (select thread_key from agui.thread where thread_id like 'writer%')`
		} else if table == "agui_internal.setting" {
			others = `where name <> 'call_delay'` // an upgrade adds it
		}
		fmt.Fprintln(&all, table, testdb.Ask[string](t, pool, fmt.Sprintf(`
			select coalesce(string_agg(concat_ws(' | ', %[1]s), e'\n' order by concat_ws(' | ', %[1]s)), '') from %[2]s %[3]s`,
			strings.Join(names, ", "), table, others)))
	}
	lines := strings.Split(all.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n") + testdb.Ask[string](t, pool, `
		select string_agg(concat_ws(' ', scope, thread_id, run_id, status, parent_run_id,
			(select json_agg(event)::text from agui.events(thread_id, run_id, scope => scope) as event),
			(select json_agg(m)::text from agui.messages(thread_id, run_id, scope => scope) as m), agui.state(thread_id, run_id, scope => scope)::text,
			(select json_agg(i)::text from agui.interrupts(thread_id, run_id, scope => scope) as i),
			(select input::text from agui.input as input where input.thread_key = thread.thread_key and input.run_no = run.run_no)),
			e'\n' order by scope, thread_id, run_id)
		from agui.thread as thread
		cross join lateral agui.runs(thread_id, scope) as run
		where thread_id not like 'writer%'`)
}

// storeOfRelease installs a released version and loads its store from testdata. It returns the version; 0: there is no such store.
func storeOfRelease(t *testing.T, address string) uint {
	t.Helper()
	files, err := filepath.Glob("testdata/store_*.sql")
	if err != nil || len(files) == 0 {
		return 0
	}
	version := versionOf(t, files[0], "store_")
	installReleased(t, address, version)
	if output, err := osexec.Command(testdb.Program(t, testneeds.Psql, "psql"), "-X", "-q", "--single-transaction", "--set", "ON_ERROR_STOP=1", "-d", address, "-f", files[0]).CombinedOutput(); err != nil {
		t.Fatalf("psql: %v: %s", err, output)
	}
	return version
}

// installReleased installs a version with golang-migrate.
func installReleased(t *testing.T, address string, version uint) {
	t.Helper()
	testdb.Exec(t, testdb.Connect(t, address), `create schema agui`)
	must.Do(t, ownChain(t, address, schema.Migrations(), ourVersionTable()).Migrate(version))
}

// versionOf is the number in the name of a file of testdata.
func versionOf(t *testing.T, file, prefix string) uint {
	t.Helper()
	version := must.Have(strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), prefix), ".sql"), 10, 31))(t)
	return uint(version)
}

// A release writes its store. It is loaded where the migrations have made the tables and a few rows.
func TestStoreOfAReleaseIsWritten(t *testing.T) {
	if !*dumpStore {
		t.Skip("only with -dump-store, as part of a release")
	}
	released := testfile.Read(t, "released.sum")
	version := uint(strings.Count(string(released), ".up.sql"))
	address := testdb.Empty(t)
	installReleased(t, address, version)
	pool := testdb.Connect(t, address)
	fill(t, pool)
	options := []string{"--data-only", "--disable-triggers", "--no-owner", "--schema=agui", "--schema=agui_internal", "--dbname=" + address}
	for _, table := range []string{"agui.schema_migrations", "agui_internal.installed_object", "agui_internal.uptime"} {
		options = append(options, "--exclude-table-data="+table)
	}
	dump := must.Have(osexec.Command(testdb.Program(t, testneeds.PgDump, "pg_dump"), options...).Output())(t)
	dump = regexp.MustCompile(`(?m)^(\\(un)?restrict .*|--.*|)\n`).ReplaceAll(dump, nil)
	begin := []byte("delete from agui_internal.setting;\ndelete from agui_internal.erasure_salt;\n")
	testfile.Write(t, fmt.Sprintf("testdata/store_%06d.sql", version), bytes.Join([][]byte{begin, dump}, nil))
}
