package write

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

// notArchived are the columns and tables that belong to the database, or that jobs make anew.
const notArchived = `('snapshot', 'message_version', 'projected_run', 'projected_call', 'projected_interrupt', 'projected_usage', 'older_rules', 'projection', 'message_text', 'consumer_thread', 'claim', 'job_note', 'webhook_request', 'node', 'bucket', 'moved_thread', 'pinned_scope',
	'schema_migrations')`

// contents is what a database has of the threads of all scopes, without what is derived. With a scope, that is what it says the scope is.
func contents(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	exec := func(statement string) (text string) {
		if err := pool.QueryRow(t.Context(), statement).Scan(&text); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		return text
	}
	tables := strings.Fields(exec(`
		select string_agg(distinct attribute.attrelid::regclass::text, ' ')
		from pg_attribute as attribute
		join pg_class as class on class.oid = attribute.attrelid
		where class.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and class.relkind = 'r'
			and attribute.attname in ('thread_key', 'erased_key') and class.relname not in ` + notArchived))
	var all strings.Builder
	for _, table := range tables {
		columns := exec(`
			select string_agg(format('%I::text', attname), ', ' order by attnum) from pg_attribute
			where attrelid = '` + table + `'::regclass and attnum > 0 and not attisdropped
				and attname not in ('n', 'log_bytes', 'repacked_at', 'changed_in', 'written_in', 'writes', 'erased_key', 'thread_uid', 'erased_in')
				or attrelid = '` + table + `'::regclass and attname = 'n' and attrelid = 'agui.batch'::regclass`)
		condition := ""
		if table == "agui.erasure" { // the others have no names
			condition = ` where erased_key in (select agui_internal.erasure_key(thread_key) from agui.thread)`
		}
		fmt.Fprintln(&all, table, exec(`select coalesce(string_agg(item, e'\n' order by item), '') from (
			select json_build_array(`+columns+`)::text as item from `+table+condition+`) as stored`))
	}
	return all.String()
}

// meaning is what reads say of the threads.
func meaning(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return testdb.Ask[string](t, pool, `
		select string_agg(concat_ws(' ', scope, thread_id, run_id, status, parent_run_id,
			(select json_agg(event)::text from agui.events(thread_id, run_id, scope => scope) as event),
			(select json_agg(m)::text from agui.messages(thread_id, run_id, scope => scope) as m), agui.state(thread_id, run_id, scope => scope)::text,
			(select input.input::text from agui.input as input where input.thread_key = thread.thread_key and input.run_no = run.run_no)),
			e'\n' order by scope, thread_id, run_id)
		from agui.thread as thread
		cross join lateral agui.runs(thread_id, scope) as run
		where exists (select from agui.run where run.thread_key = thread.thread_key)`)
}

// fillOddly adds what only a few threads have.
func fillOddly(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, statement := range []string{
		// Bytes that a parser of JSON would not keep.
		`select agui.append('odd "id" \ ü', 'r "1" \', e'[ {"type":"RUN_STARTED", "a":"\\u0000\\ud83d \\u0041","n":1e400 },\n\t{"type":"CUSTOM","name":"x","value":"\\\\\\"\\n"}  ,{"type":"RUN_FINISHED"}]', 0,
			'{ "messages" : [ {"id":"\u0000","role":"user","content":"ä \ud83d"} ] }', scope => 'odd \ "scope"')`,
		`select agui.save_session_state('odd "id" \ ü', 'k \ "', '"a \u0041 \u0000"', scope => 'odd \ "scope"')`,
		`select agui.put_checkpoint('odd "id" \ ü', 'bin', '{"channel_versions":{"a\\b":1}}', channels => '{"a\\b"}', versions => '{1}', types => '{bytes}', channel_values => '["AAEC"]', scope => 'odd \ "scope"')`,
		// It was erased once, and is used again.
		`select agui.append('again', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]'), agui.erase('again', 'by request'), agui.lift_erasure('again')`,
		`select agui.append('again', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`,
		// Without runs.
		`select agui.set_thread('empty', title => 'Empty', agent => 'a', create_if_missing => true)`,
		`select agui.save_session_state('session only', 'k', '1')`,
		`select agui.request_stop('kept', 'running', 'a reason')`,
	} {
		testdb.Exec(t, pool, statement)
	}
}

// filled is a command line on a database with rows of all kinds.
func filled(t *testing.T) (clitest.CommandLine, *pgxpool.Pool) {
	t.Helper()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	testdb.Fill(t, pool)
	fillOddly(t, pool)
	return commands, pool
}

type archived struct{ Threads, Written, Unchanged, Failed int }
type unarchived struct{ Threads, Stored, AlreadyThere, Failed int }

func TestAnArchiveMovesThreadsByteForByte(t *testing.T) {
	t.Parallel()
	from, source := filled(t)
	directory := filepath.Join(t.TempDir(), "archive")
	result := clitest.Parse[archived](from, "archive", directory, "--all-scopes")
	if result.Threads != 7 || result.Written != 7 {
		t.Fatalf("archived: %+v", result)
	}
	from.Must("unarchive", directory, "--check")

	to := clitest.NewCommandLine(t)
	target := testdb.Connect(t, to.DatabaseURL)
	if result := clitest.Parse[unarchived](to, "unarchive", directory); result != (unarchived{Threads: 7, Stored: 7}) {
		t.Errorf("unarchived: %+v", result)
	}
	if before, after := contents(t, source), contents(t, target); before != after {
		t.Errorf("the contents differ:\n%s\n\n%s", before, after)
	}
	to.Must("verify", "--chain")
	// Jobs make the rest anew, and read it as before.
	to.Must("job", "compact")
	to.Must("job", "repack")
	to.Must("verify", "--chain")
	if before, after := meaning(t, source), meaning(t, target); before != after {
		t.Errorf("the meanings differ:\n%s\n\n%s", before, after)
	}

	// Once more in both directions: nothing changes, whatever jobs have done.
	if result := clitest.Parse[unarchived](to, "unarchive", directory); result != (unarchived{Threads: 7, AlreadyThere: 7}) {
		t.Errorf("unarchived once more: %+v", result)
	}
	from.Must("job", "compact")
	from.Must("job", "repack")
	if result := clitest.Parse[archived](from, "archive", directory, "--all-scopes"); result != (archived{Threads: 7, Unchanged: 7}) {
		t.Errorf("archived once more: %+v", result)
	}
	// The way back is the same archive.
	back := filepath.Join(t.TempDir(), "back")
	to.Must("archive", back, "--all-scopes")
	if result := clitest.Parse[unarchived](from, "unarchive", back); result != (unarchived{Threads: 7, AlreadyThere: 7}) {
		t.Errorf("unarchived where it comes from: %+v", result)
	}
	// New runs continue the log where it ends, and its chain.
	if _, err := target.Exec(t.Context(), `select agui.append('linked', 'r2', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'chained')`); err != nil {
		t.Error(err)
	}
	to.Must("verify", "--chain")
}

// Every table that has rows of threads is archived, or made of those that are. A new one must say which.
func TestEveryTableOfThreadsIsArchivedOrDerived(t *testing.T) {
	t.Parallel()
	rows, err := testdb.Pool(t).Query(t.Context(), `
		select format('%s.%s', attribute.attrelid::regclass, attribute.attname)
		from pg_attribute as attribute
		join pg_class as class on class.oid = attribute.attrelid
		left join agui_internal.archived_tables() as archived on archived.name = attribute.attrelid::regclass::text
		where class.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and class.relkind = 'r'
			and attribute.attnum > 0 and not attribute.attisdropped and class.relname not in `+notArchived+`
			and exists (select from pg_attribute as key where key.attrelid = class.oid and key.attname in ('thread_key', 'erased_key'))
			and attribute.attname <> 'thread_key'
			and (archived.name is null or attribute.attname <> all (archived.columns) and not archived.made ? attribute.attname)
		order by 1`)
	must.Do(t, err)
	var left []string
	var column string
	for rows.Next() {
		must.Do(t, rows.Scan(&column))
		left = append(left, column)
	}
	// They come as arguments of agui_internal.begin_unarchive, but for thread_uid: a thread that comes back gets another one.
	if want := []string{"agui.thread.created_at", "agui.thread.scope", "agui.thread.thread_id", "agui.thread.thread_uid"}; rows.Err() != nil || !slices.Equal(left, want) {
		t.Errorf("not archived: %q, want %q (%v)", left, want, rows.Err())
	}
}

// A thread is archived again once anything of it has changed, and else left.
func TestArchiveBringsADirectoryUpToDate(t *testing.T) {
	t.Parallel()
	commands, pool := filled(t)
	directory := t.TempDir()
	commands.Must("archive", directory)
	for _, change := range []string{
		`select agui.append('again', 'new', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`,
		`select agui.set_thread('again', title => 'New')`,
		`select agui.save_session_state('again', 'new', '1')`,
		`select agui.put_checkpoint('again', 'new', '{"channel_versions":{}}')`,
		`select agui.put_checkpoint_writes('again', 'new', 'task', '{list}', '{json}', '[1]')`,
		`select agui.erase('again'), agui.lift_erasure('again')`,
		`select agui.append('again', 'new', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`,
	} {
		testdb.Exec(t, pool, change)
		want := archived{Threads: 4, Written: 1, Unchanged: 3}
		if strings.Contains(change, "erase") {
			want = archived{Threads: 3, Unchanged: 3}
		}
		if result := clitest.Parse[archived](commands, "archive", directory); result != want {
			t.Errorf("after %s: %+v, want %+v", change, result, want)
		}
	}
	// The manifest names one file a thread, and there are no others.
	if files := threadFiles(t, directory); len(files) != 4 {
		t.Errorf("files: %q", files)
	}
	// A damaged file is written anew.
	damage(t, threadFiles(t, directory)[0])
	if result := clitest.Parse[archived](commands, "archive", directory); result != (archived{Threads: 4, Written: 1, Unchanged: 3}) {
		t.Errorf("after damage: %+v", result)
	}
	commands.Must("unarchive", directory, "--check")
}

func threadFiles(t *testing.T, directory string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(directory, "threads"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	must.Do(t, err)
	return files
}

// damage changes a bit in the middle of a file.
func damage(t *testing.T, file string) {
	t.Helper()
	content := testfile.Read(t, file)
	content[len(content)/2] ^= 1
	testfile.Write(t, file, content)
}

// What cannot be stored is named, a line each, and the other threads are stored.
func TestUnarchiveRefusesOnlyWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	from, _ := filled(t)
	directory := t.TempDir()
	from.Must("archive", directory)
	to := clitest.NewCommandLine(t)
	target := testdb.Connect(t, to.DatabaseURL)
	for _, statement := range []string{
		`select agui.append('again', 'r', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"},{"type":"RUN_FINISHED"}]')`, // other content
		`select agui.append('empty', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]'), agui.erase('empty')`,
	} {
		testdb.Exec(t, target, statement)
	}
	manifest := readManifest(t, directory)
	damage(t, filepath.Join(directory, manifest["session only"]))

	result := to.Run("unarchive", directory)
	lines := strings.Split(strings.TrimSpace(result.Messages), "\n")
	slices.Sort(lines)
	if result.Code != cli.ExitInput || len(lines) != 3 {
		t.Fatalf("exit code %d: %s", result.Code, result.Messages)
	}
	for n, want := range []string{
		`thread "again": the database has this thread with other content (events, run): erase it first`,
		`thread "empty": unarchive: the thread was erased at `,
		`the file is damaged: it does not have the SHA-256 of the manifest (thread "session only"): restore the file from a copy`,
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("line %d: no line has %s:\n%s", n, want, result.Messages)
		}
	}
	if threads := to.Must("threads", "--all", "--archived=any", "--json"); strings.Count(threads, "\n") != 2 || !strings.Contains(threads, `"kept"`) {
		t.Errorf("threads: %s", threads)
	}
	if text := to.MustFail(cli.ExitInput, "unarchive", directory, "--check"); !strings.Contains(text, "session only") {
		t.Error(text)
	}
	if text := to.MustFail(cli.ExitInput, "unarchive", directory, "nobody"); !strings.Contains(text, `has no thread "nobody"`) {
		t.Error(text)
	}
	if text := to.MustFail(cli.ExitInput, "unarchive", t.TempDir()); !strings.Contains(text, "manifest.ndjson") {
		t.Error(text)
	}
	if text := from.MustFail(cli.ExitInput, "archive", filepath.Dir(threadFiles(t, directory)[0])); !strings.Contains(text, "has other files") {
		t.Error(text)
	}
	if text := from.MustFail(cli.ExitRefused, "archive", t.TempDir(), "nobody"); !strings.Contains(text, `thread "nobody" is unknown`) {
		t.Error(text)
	}
}

// readManifest returns the file of each thread.
func readManifest(t *testing.T, directory string) map[string]string {
	t.Helper()
	content := testfile.Read(t, filepath.Join(directory, "manifest.ndjson"))
	files := map[string]string{}
	for _, thread := range clitest.Lines[struct{ ThreadID, File string }](t, string(content)) {
		files[thread.ThreadID] = thread.File
	}
	return files
}

func TestUnarchiveIntoAnotherScope(t *testing.T) {
	t.Parallel()
	from, _ := filled(t)
	all, plain, chained := t.TempDir(), t.TempDir(), t.TempDir()
	from.Must("archive", all, "--all-scopes")
	from.Must("archive", plain)
	from.Must("archive", chained, "--scope", "chained")
	if text := from.MustFail(cli.ExitInput, "unarchive", all, "--scope", "copy"); !strings.Contains(text, `4 scopes ("", "acme", "chained", "odd \\ \"scope\"")`) {
		t.Error(text)
	}
	if text := from.MustFail(cli.ExitInput, "unarchive", chained, "--scope", "copy"); !strings.Contains(text, "has a chain of hashes, which covers its scope") {
		t.Error(text)
	}
	if result := clitest.Parse[unarchived](from, "unarchive", plain, "--scope", "copy"); result != (unarchived{Threads: 4, Stored: 4}) {
		t.Errorf("%+v", result)
	}
	if original, moved := from.Must("events", "--all", "--scope", ""), from.Must("events", "--all", "--scope", "copy"); original != moved {
		t.Errorf("the copy differs:\n%s\n%s", original, moved)
	}
	from.Must("job", "compact")
	from.Must("verify")
	// Parts of inputs are found by a print that depends on the scope.
	pool := testdb.Connect(t, from.DatabaseURL)
	wrong := testdb.Ask[int](t, pool, `
		select count(*) from agui.input_part where print <> agui_internal.part_print(uuid_send(thread_key) || convert_to(kind, 'UTF8'), body::text)`)
	if wrong > 0 {
		t.Errorf("%d parts have a wrong print", wrong)
	}
	if err := pool.QueryRow(t.Context(), `
		select count(*) from agui.channel_part where print <> agui_internal.part_print(uuid_send(thread_key) || int4send(channel_no), body::text)`).Scan(&wrong); err != nil || wrong > 0 {
		t.Errorf("%d parts have a wrong print (%v)", wrong, err)
	}
}

// Whatever is killed leaves no half thread in the database, and no file that counts in the directory. The next call completes it.
func TestKilledArchivesAreCompleted(t *testing.T) {
	t.Parallel()
	from := clitest.NewCommandLine(t)
	source := testdb.Connect(t, from.DatabaseURL)
	testdb.Exec(t, source, `
		select agui.append('t' || thread, 'r' || run, (
			select json_build_array('{"type":"RUN_STARTED"}'::json, json_build_object('type', 'CUSTOM', 'value', string_agg(md5(random()::text), '')), '{"type":"RUN_FINISHED"}'::json)
			from generate_series(1, 300)))
		from generate_series(1, 60) as thread, generate_series(1, 4) as run`)
	whole := contents(t, source)
	directory := t.TempDir()
	killAtRandom := func(commands clitest.CommandLine, arguments ...string) {
		process := commands.Start(arguments...)
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // anywhere in what it is doing
		must.Do(t, process.Process.Kill())
		process.End(t)
	}
	for range 6 {
		killAtRandom(from, "archive", directory)
		if _, err := os.Stat(filepath.Join(directory, "manifest.ndjson")); err == nil {
			from.Must("unarchive", directory, "--check") // what counts is whole
		}
	}
	from.Must("archive", directory)
	if files := threadFiles(t, directory); len(files) != 60 {
		t.Errorf("%d files", len(files))
	}

	to := clitest.NewCommandLine(t)
	target := testdb.Connect(t, to.DatabaseURL)
	for range 6 {
		killAtRandom(to, "unarchive", directory)
		to.Must("verify")
		if torn := testdb.Ask[int](t, target, `select count(*) from agui.thread where (select count(*) from agui.run where run.thread_key = thread.thread_key) <> 4`); torn > 0 {
			t.Errorf("%d threads are incomplete", torn)
		}
	}
	to.Must("unarchive", directory)
	if contents(t, target) != whole {
		t.Error("the contents differ")
	}
}

// A role without rights on a scope neither reads nor writes its threads.
func TestArchivesKeepTenantsApart(t *testing.T) {
	t.Parallel()
	from, pool := filled(t)
	directory := t.TempDir()
	from.Must("archive", directory, "--all-scopes")
	role := "tenant_" + fmt.Sprint(rand.Uint32())
	for _, statement := range []string{
		`create role ` + role + ` in role agui_maintainer`, `call agui.enable_row_security()`, `select agui.map_tenant('` + role + `', 'acme')`,
	} {
		testdb.Exec(t, pool, statement)
	}
	t.Cleanup(func() {
		for _, statement := range []string{`drop owned by ` + role, `drop role ` + role} {
			if _, err := pool.Exec(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	tenant := clitest.On(t, from.DatabaseURL+"&options=-c%20role%3D"+role)
	own := t.TempDir()
	if result := clitest.Parse[archived](tenant, "archive", own, "--all-scopes"); result != (archived{Threads: 1, Written: 1}) {
		t.Errorf("%+v", result)
	}
	if text := tenant.MustFail(cli.ExitRefused, "unarchive", directory, "kept"); !strings.Contains(text, `may not change threads of scope ""`) {
		t.Error(text)
	}
	if result := clitest.Parse[unarchived](tenant, "unarchive", own); result != (unarchived{Threads: 1, AlreadyThere: 1}) {
		t.Errorf("%+v", result)
	}
}

// A part of a thread is stored only if the manifest has its hash.
func TestUnarchiveRefusesAPartWithoutAHash(t *testing.T) {
	t.Parallel()
	commands, _ := filled(t)
	directory := t.TempDir()
	commands.Must("archive", directory)
	path := filepath.Join(directory, "manifest.ndjson")
	without := regexp.MustCompile(`"agui.run":"[0-9a-f]+",?`).ReplaceAll(testfile.Read(t, path), nil)
	testfile.Write(t, path, without)
	address := testdb.New(t)
	if message := clitest.On(t, address).MustFail(cli.ExitInput, "unarchive", directory, "kept"); !strings.Contains(message, "is not what was archived: agui.run") {
		t.Error(message)
	}
	if n := testdb.Ask[int](t, testdb.Connect(t, address), `select count(*) from agui.thread`); n != 0 {
		t.Errorf("%d threads were stored", n)
	}
}

// A file of a few bytes may decompress to a line without end.
func TestMemoryOfALineOfAnArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 512 MB")
	}
	commands, _ := filled(t)
	directory := t.TempDir()
	commands.Must("archive", directory)
	encoder := must.Have(zstd.NewWriter(nil))(t)
	packed := encoder.EncodeAll(bytes.Repeat([]byte("x"), 600<<20), nil)
	files, err := filepath.Glob(filepath.Join(directory, "threads", "*", "*.zst"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	manifest := testfile.Read(t, filepath.Join(directory, "manifest.ndjson"))
	for _, file := range files {
		before, after := sha256.Sum256(testfile.Read(t, file)), sha256.Sum256(packed)
		testfile.Write(t, file, packed)
		manifest = bytes.ReplaceAll(manifest, []byte(hex.EncodeToString(before[:])), []byte(hex.EncodeToString(after[:])))
	}
	testfile.Write(t, filepath.Join(directory, "manifest.ndjson"), manifest)
	if message := clitest.On(t, testdb.New(t)).MustFail(cli.ExitInput, "unarchive", directory, "kept"); !strings.Contains(message, "a line has more than 512 MB") {
		t.Error(message)
	}
}

// The functions of the schema check what they are given.
func TestUnarchiveChecksItsRows(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const begin = `select agui_internal.begin_unarchive('', 't', '2020-01-01')`
	row := func(columns, item string) string {
		return `select agui_internal.unarchive_rows(agui.thread_key('', 't'), 'agui.run', '{` + columns + `}', '[` + item + `]')`
	}
	const columns, run = "run_no,run_id,status,first_seq,last_seq,end_seq,started_at,ended_at,open_from", `["1","r","finished","1","2","2","2020-01-01","2020-01-01","1"]`
	finish := `select agui_internal.finish_unarchive(agui.thread_key('', 't'), '{"agui.run": ["run_no"]}', '{}')`
	for _, attempt := range []struct {
		statements []string
		code       string
	}{
		{[]string{row(columns, run)}, "55000"}, // no thread was created
		{[]string{begin, row("run_no,tomorrow", `["1","x"]`)}, "42703"},
		{[]string{begin, `select agui_internal.unarchive_rows(agui.thread_key('', 't'), 'agui.tomorrow', '{a}', '[["1"]]')`}, "42703"},
		{[]string{begin, `select agui_internal.unarchive_rows(agui.thread_key('', 't'), 'pg_catalog.pg_class', '{oid}', '[["1"]]')`}, "42703"},
		{[]string{begin, row(columns, strings.Replace(run, "finished", "odd", 1))}, "23514"},
		{[]string{begin, row(columns, strings.Replace(run, `"r"`, `null`, 1))}, "23502"},
		{[]string{begin, row(columns, run), finish}, "XX001"}, // a run without a log
		{[]string{begin, begin}, "23505"},
		{[]string{`select agui_internal.begin_unarchive('', '', now())`}, "UI008"},
		{[]string{`select agui_internal.begin_unarchive(repeat('x', 2000), 't', now())`}, "UI011"},
		{[]string{`select agui.claim_run('t', 'r', 'me')`, begin}, "UI006"},
	} {
		tx := testdb.Begin(t, pool)
		var err error
		for n, statement := range attempt.statements {
			_, err = tx.Exec(t.Context(), statement)
			if (err != nil) != (n == len(attempt.statements)-1) {
				t.Errorf("%s: %v", statement, err)
			}
		}
		if testdb.State(err) != attempt.code {
			t.Errorf("%s: %v, want %s", attempt.statements, err, attempt.code)
		}
		must.Do(t, tx.Rollback(t.Context()))
	}
}

// A line that was being written when a process was killed does not count. Other damage of the manifest is named.
func TestDamagedManifests(t *testing.T) {
	t.Parallel()
	commands, _ := filled(t)
	directory := t.TempDir()
	commands.Must("archive", directory)
	path := filepath.Join(directory, "manifest.ndjson")
	whole := testfile.Read(t, path)
	write := func(text string) {
		t.Helper()
		testfile.Write(t, path, []byte(text))
	}
	write(string(whole[:len(whole)-10]))
	if result := clitest.Parse[unarchived](commands, "unarchive", directory, "--check"); result.Threads != 3 {
		t.Errorf("without the end: %+v", result)
	}
	if result := clitest.Parse[archived](commands, "archive", directory); result != (archived{Threads: 4, Written: 1, Unchanged: 3}) {
		t.Errorf("completed: %+v", result)
	}
	for text, want := range map[string]string{
		"":          "manifest.ndjson:1: the manifest has no lines",
		"{}\n":      "manifest.ndjson:1: the file is no manifest",
		"no JSON\n": "manifest.ndjson:1: the manifest is damaged",
		strings.Replace(string(whole), `"version":1`, `"version":2`, 1):              "manifest.ndjson:1: the archive has version 2 of its format",
		strings.Replace(string(whole), `"file":"threads/`, `"file":"../threads/`, 1): "manifest.ndjson:2: the manifest is damaged",
	} {
		write(text)
		if message := commands.MustFail(cli.ExitInput, "unarchive", directory); !strings.Contains(message, want) {
			t.Errorf("%.20q: %s, want %s", text, message, want)
		}
	}
}
