package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/markdown"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/pooler"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// Each page of docs/start and docs/guides is followed as a reader follows it: in an empty folder, with an empty database. A block that
// the page calls a file is that file, a block of sh is run, and the text behind it is what it prints.
func TestPagesAreFollowed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs all commands of all pages")
	}
	var pages []string
	for _, folder := range []string{"start", "guides"} {
		found, err := filepath.Glob("../../docs/" + folder + "/*.md")
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages in %s: %v", folder, err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		if filepath.Base(page) == "front-end.md" {
			continue // js/frameworks follows it in a browser
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			switch filepath.Base(page) {
			case "front.md":
				needPLProxy(t)
			case "python.md":
				if err := exec.Command("python3", "-c", "import sys, venv, ensurepip; assert sys.version_info >= (3, 10)").Run(); err != nil {
					testneeds.Skip(t, testneeds.Python, "python3, 3.10 or newer with venv: %v", err)
				}
			}
			followPage(t, page)
		})
	}
}

func needPLProxy(t *testing.T) {
	t.Helper()
	var isThere bool
	err := testdb.Connect(t, testdb.Empty(t)).QueryRow(t.Context(), `select exists (select from pg_available_extensions where name = 'plproxy')`).Scan(&isThere)
	must.Do(t, err)
	if !isThere {
		testneeds.Skip(t, testneeds.PLProxy, "the server has no PL/Proxy")
	}
}

var trailing = regexp.MustCompile(`(?m) +$`)

// A reader has a shell in an empty folder, with the programs and the empty databases that the pages require.
type reader struct {
	folder      string
	environment []string
}

func newReader(t *testing.T) reader {
	t.Helper()
	if _, err := exec.LookPath("psql"); err != nil {
		testneeds.Skip(t, testneeds.Psql, "psql is not installed")
	}
	checkout := must.Have(filepath.Abs("../.."))(t)
	place := t.TempDir()
	folder := filepath.Join(place, "start")
	for _, name := range []string{folder, filepath.Join(place, "bin"), filepath.Join(place, "home")} {
		must.Do(t, os.Mkdir(name, 0o755))
	}
	program := must.Have(os.Executable())(t) // it runs as pgagui (see clitest)
	goTool := exec.Command("go", "tool", "-n", "-modfile=tools/go.mod", "sqlc")
	goTool.Dir, goTool.Env = checkout, append(os.Environ(), "GOWORK=off")
	sqlc := must.Have(goTool.Output())(t)
	for name, target := range map[string]string{"pgagui": checkout, "bin/pgagui": program, "bin/sqlc": strings.TrimSpace(string(sqlc))} {
		must.Do(t, os.Symlink(target, filepath.Join(place, name)))
	}
	caches := must.Have(exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output())(t)
	modules, builds, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	return reader{folder, append(os.Environ(), "GOWORK=off", "GOMODCACHE="+modules, "GOCACHE="+builds,
		"DATABASE_URL="+testdb.Empty(t), "NEW_DATABASE_URL="+testdb.Empty(t), "FRONT_DATABASE_URL="+testdb.Empty(t), "HOME="+filepath.Join(place, "home"),
		"PATH="+filepath.Join(place, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))}
}

// run runs a block of sh, and returns what it prints.
func (r reader) run(t *testing.T, page string, block markdown.Block) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block.Text)
	command.Dir, command.Env = r.folder, r.environment
	printed, err := command.CombinedOutput()
	output := trailing.ReplaceAllString(string(printed), "")
	if err != nil {
		t.Fatalf("%s:%d: %v\n%s", page, block.Line, err, output)
	}
	return output
}

func followPage(t *testing.T, page string) {
	reader, output := newReader(t), ""
	for _, block := range markdown.Blocks(t, page) {
		switch {
		case block.File != "":
			testfile.Write(t, filepath.Join(reader.folder, block.File), []byte(block.Text))
		case block.Language == "sh":
			output = reader.run(t, page, block)
		case block.Language == "text":
			if !prints(block.Text).MatchString(output) {
				t.Errorf("%s:%d: it prints\n%s", page, block.Line, output)
			}
		default:
			t.Errorf("%s:%d: this block is neither run nor written to a file", page, block.Line)
		}
	}
}

// prints is the pattern of an output that a page shows: … is any text within a line, and a line of its own any lines. The schema may
// have a later version.
func prints(shown string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(strings.TrimSpace(trailing.ReplaceAllString(shown, "")))
	pattern = regexp.MustCompile(`version \d+`).ReplaceAllString(pattern, `version \d+`)
	pattern = regexp.MustCompile(`(?m)^…$`).ReplaceAllString(pattern, `(?s:.*)`)
	return regexp.MustCompile(`(?m)^` + strings.ReplaceAll(pattern, "…", `.*`) + `\s*\z`)
}

// The commands of docs/erasure.md erase the threads of alice and what is old, and nothing else. A second time they find nothing to do.
func TestErasureIsFollowed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		testneeds.Skip(t, testneeds.JQ, "jq is not installed")
	}
	const page = "../../docs/erasure.md"
	reader := newReader(t)
	run := func(commands string) string { return reader.run(t, page, markdown.Block{Text: commands}) }
	threads := func() string {
		return run(`psql "$DATABASE_URL" -X -A -t -q -c "select scope, thread_id from agui.thread order by 1, 2"`)
	}
	run(`pgagui migrate up
psql "$DATABASE_URL" -X -q -v ON_ERROR_STOP=1 <<'SQL'
create temporary view events as select '[{"type": "RUN_STARTED"}, {"type": "RUN_FINISHED"}]'::json as events;
select agui.append(id, 'r', events, scope => 'alice') from events, unnest(array['plain', 'with a space', '--yes', E'two\nlines', 'archived']) as id;
select agui.set_thread('archived', archived => true, scope => 'alice');
select agui.save_session_state('no runs', 'memory', '{}', overwrite => true, scope => 'alice');
select agui.append('plain', 'r', events, scope => 'bob') from events;
select agui.append(id, 'r', events) from events, unnest(array['of alice', 'of bob', 'old']) as id;
select agui.set_thread('of alice', metadata => '{"user": "alice", "folder": "trips"}'), agui.set_thread('of bob', metadata => '{"user": "bob"}');
select agui.import_events('old', 'r', '[{"type": "RUN_STARTED", "timestamp": 1700000000000}, {"type": "RUN_FINISHED", "timestamp": 1700000001000}]', scope => 'carol');
SQL`)
	for range 2 {
		commands := 0
		for _, block := range markdown.Blocks(t, page) {
			if block.Language == "sh" {
				commands++
				reader.run(t, page, block)
			}
		}
		if commands != 7 {
			t.Errorf("the page has %d blocks of commands", commands)
		}
		if left, want := threads(), "|of bob\n|old\nbob|plain\n"; left != want {
			t.Errorf("left are\n%snot\n%s", left, want)
		}
	}
}

// The program of the page says what a pooler needs that loses prepared statements, and has it.
func TestTheProgramOfStartGoThroughAPooler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles a program")
	}
	const page = "../../docs/start/go.md"
	reader := newReader(t)
	for _, block := range markdown.Blocks(t, page) {
		if block.File != "" {
			testfile.Write(t, filepath.Join(reader.folder, block.File), []byte(block.Text))
		}
		if strings.Contains(block.Text, "go mod init") {
			reader.run(t, page, block)
		}
	}
	reader.run(t, page, markdown.Block{Text: "go mod tidy && go build -o chat ."})
	chat := func(setting string) (string, error) {
		command := exec.CommandContext(t.Context(), filepath.Join(reader.folder, "chat"))
		command.Env = append(reader.environment, "DATABASE_URL="+pooler.Start(t, testdb.New(t))+setting)
		output, err := command.CombinedOutput()
		return string(output), err
	}
	const setting = "default_query_exec_mode=exec"
	if output, err := chat(""); err != nil && !strings.Contains(output, setting) {
		t.Errorf("it does not say what to set: %v\n%s", err, output)
	}
	if output, err := chat("&" + setting); err != nil || !strings.Contains(output, "Three days are enough.") {
		t.Errorf("with the setting: %v\n%s", err, output)
	}
}
