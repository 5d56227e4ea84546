package test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

// readsTables are the statements of Go code that read tables of the schema, by query of sql/queries or by file. All others call
// functions, or read views. sql/queries/README.md gives the reasons; a statement that is new here needs one there.
var readsTables = map[string][]string{
	// Jobs read rows as they are, page by page, bounded by their bytes.
	"compact.sql CountRunsToCompact": {"agui.run"},
	"compact.sql RunsToCompact":      {"agui.message_version", "agui.run", "agui.run_input", "agui.snapshot"},
	"compact.sql SnapshotAt":         {"agui.snapshot"},
	"compact.sql SnapshotMessages":   {"agui.message", "agui.snapshot"},
	"compact.sql BatchesBetween":     {"agui.batch", "agui.input", "agui.run"},
	"compact.sql InputPlaces":        {"agui.run_input"},
	"compact.sql InputsInParts":      {"agui.run_input"},
	"compact.sql InputMessages":      {"agui.input_part"},

	// What a move brings to another node, or has left.
	"move.sql ErasureSalt":                          {"agui_internal.erasure_salt"},
	"move.sql ErasuresSince":                        {"agui.erasure"},
	"move.sql UnfinishedMoves":                      {"agui.thread", "agui_internal.moved_thread"},
	"move.sql SentThreads":                          {"agui.thread", "agui_internal.moved_thread"},
	"cmd/pgagui/internal/doctor/checks/cluster.sql": {"agui.thread", "agui_internal.moved_thread", "agui_internal.node"},

	// A check trusts no function that may have been replaced.
	"chain.sql ChainState":        {"agui.run", "agui.thread", "agui_internal.chained_scope"},
	"chain.sql ChainRuns":         {"agui.run"},
	"chain.sql ChainBatches":      {"agui.batch"},
	"verify.sql ThreadsToVerify":  {"agui.thread"},
	"verify.sql RandomThreads":    {"agui.thread"},
	"verify.sql ThreadSize":       {"agui.batch", "agui.run", "agui.snapshot"},
	"verify.sql RunsToVerify":     {"agui.run", "agui.snapshot"},
	"verify.sql SnapshotToVerify": {"agui.snapshot"},
	"verify.sql MessageBodies":    {"agui.message"},

	// Look-ups of a few rows by their keys, and walks along an index.
	"append.sql RunInput":     {"agui.input"},
	"live.sql OpeningEvents":  {"agui.run"},
	"live.sql RunsInProgress": {"agui.batch", "agui.run"},
	"live.sql Attach":         {"agui.run"},
	"replica.sql IsShown":     {"agui.batch"},
	"read.sql Batches":        {"agui.batch"},
	"threads.sql ThreadIDs":   {"agui.thread"},

	// The rules are rows to read.
	"retention.sql RetentionRules": {"agui.retention"},

	// An archive counts what it has of a thread, as of one point in time.
	"archive.sql ThreadToArchive": {"agui.batch", "agui.run", "agui.thread"},

	// The command line: what only it needs.
	"cmd/pgagui/internal/runlog/runlog.go":   {"agui.batch", "agui.input", "agui.run"},
	"cmd/pgagui/internal/ingest/importer.go": {"agui.batch", "agui.input", "agui.run"},
	"cmd/pgagui/internal/cli/scopes.go":      {"agui.thread"},
	"cmd/pgagui/install/migrate.go":          {"agui.run", "agui.thread"},
	"cmd/pgagui/demo/demo.go":                {"agui.batch", "agui.message_version", "agui.snapshot", "agui.thread"},

	// The doctor looks at how the schema is installed, and at the runs that changed last.
	"cmd/pgagui/internal/doctor/checks/events.sql":           {"agui.run", "agui.thread"},
	"cmd/pgagui/internal/doctor/checks/missing_settings.sql": {"agui_internal.setting"},
}

var (
	relationRead    = regexp.MustCompile(`(?i)\b(?:from|join)\s+(?:only\s+)?(agui(?:_internal)?\.[a-z_]+)\b(\s*\()?`)
	relationWritten = regexp.MustCompile(`(?i)\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate|copy)\s+(?:table\s+|only\s+)*(agui(?:_internal)?\.[a-z_]+)\b`)
	queryComment    = regexp.MustCompile(`(?m)--.*$`)
)

// Go code calls functions of the schema. It reads no table but where readsTables says so, and writes to none.
func TestGoCodeCallsFunctions(t *testing.T) {
	t.Parallel()
	isView := map[string]bool{}
	for _, object := range testfile.SQLObjects(t) {
		isView[object.Name] = object.Area == "api/views" && strings.Contains(object.Text, " view "+object.Name)
	}
	found := map[string][]string{}
	look := func(place, text string) {
		if written := relationWritten.FindStringSubmatch(text); written != nil {
			t.Errorf("%s writes to %s: only functions of the schema write", place, written[1])
		}
		for _, read := range relationRead.FindAllStringSubmatch(text, -1) {
			isFunction := read[2] != ""
			schema, name, _ := strings.Cut(strings.ToLower(read[1]), ".")
			if isFunction || isView[schema+"."+name] {
				continue
			}
			if table := schema + "." + name; !slices.Contains(found[place], table) {
				found[place] = append(found[place], table)
			}
		}
	}

	files, err := filepath.Glob("../sql/queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no queries: %v", err)
	}
	for _, file := range files {
		text := testfile.Read(t, file)
		for _, query := range strings.Split(string(text), "-- name: ")[1:] {
			name, _, _ := strings.Cut(query, " ")
			look(filepath.Base(file)+" "+name, queryComment.ReplaceAllString(query, ""))
		}
	}

	// Not the schema itself, what is generated, the benchmark, the examples for users, and tests.
	others := []string{".git", "sql", "db", "bench", "examples", "test", "tools", "testdata", "bin", "node_modules", "internal/migration", "internal/testdb"}
	err = filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, "../"))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(others, name):
			return fs.SkipDir
		case entry.IsDir() || strings.HasSuffix(name, "_test.go") || filepath.Ext(name) != ".go" && filepath.Ext(name) != ".sql":
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			look(name, string(text))
		}
		return err
	})
	must.Do(t, err)

	for _, place := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[place])
		if !slices.Equal(found[place], readsTables[place]) {
			t.Errorf("%s reads the tables %q, not %q: call a function of the schema, or add it to readsTables and its reason to sql/queries/README.md",
				place, found[place], readsTables[place])
		}
	}
	for place := range readsTables {
		if found[place] == nil {
			t.Errorf("%s reads no table: take it from readsTables", place)
		}
	}
}
