package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/markdown"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

var readmeComment = regexp.MustCompile(`--.*`)

// The SQL that README shows runs, statement by statement, in a new database.
func TestReadmeSQLRuns(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"../README.md", "../docs/sql.md", "../docs/settings.md"} {
		pool := testdb.Pool(t)
		for _, block := range markdown.Code(t, page, "sql") {
			for statement := range strings.SplitSeq(readmeComment.ReplaceAllString(block, ""), ";\n") {
				statement = strings.TrimSuffix(strings.TrimSpace(statement), ";")
				if statement == "" {
					continue
				}
				if _, err := pool.Exec(context.Background(), statement); err != nil {
					t.Errorf("%s: %s\n%v", page, statement, err)
				}
			}
		}
	}
}

// What the Go of the pages uses without making it itself.
const readmePrelude = `package readme

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/devpg/testdb"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/otelagui"
	"github.com/pgagui/pgagui/session"
	"github.com/pgagui/pgagui/sql/schema"
	"github.com/pgagui/pgagui/timeline"
	"github.com/pgagui/pgagui/worker"
)

var (
	_ = json.Marshal
	_ = errors.Is
	_ time.Duration
	_ pgx.Tx
	_ compaction.Shape
	_ jobs.Job
	_ otelagui.Options
	_ session.Session
	_ worker.Options
	_ testdb.Template
	_ schema.State
	_ timeline.Moment
	_ events.Custom
	_ iter.Seq[int]
	_ sdktrace.SpanExporter
)

type (
	theAgent struct{}
	TodoList struct{}
	Todos    struct {
		list   *TodoList
		client any
	}
)

func (theAgent) Run(ctx context.Context, input any) iter.Seq[json.RawMessage] { return nil }
func (*Todos) Finish(string)                                                  {}
func send(id, data any)                                                       {}
`

var (
	notUsed    = regexp.MustCompile(`declared and not used`)
	compileErr = regexp.MustCompile(`(?m)^\S*readme\d+\.go:\d+.*$`)
)

// The Go that the pages show compiles. It may leave variables unused, and have "…" where the reader's own
// code belongs.
func TestReadmeGoCompiles(t *testing.T) {
	t.Parallel()
	root := must.Have(filepath.Abs(".."))(t)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	directory := t.TempDir()
	for _, page := range []string{"README.md", "docs/go.md", "docs/security.md"} {
		for i, block := range markdown.Code(t, filepath.Join(root, page), "go") {
			block = strings.ReplaceAll(block, "{ … }", "{}")
			file := filepath.Join(directory, fmt.Sprintf("readme%d.go", len(overlay.Replace)))
			source := readmePrelude
			if len(overlay.Replace) > 0 {
				source = source[:strings.Index(source, "type (")]
			}
			source += fmt.Sprintf(`
// Block %d of %s.
func _(ctx context.Context, pool, poolA, poolB, poolC *pgxpool.Pool, store *pgagui.Store, run pgagui.RunRef, stream []json.RawMessage,
	agent theAgent, input, client any, exporter sdktrace.SpanExporter, t testing.TB) (err error) {
	{
%s
	}
	return nil
}
`, i+1, page, block)
			testfile.Write(t, file, []byte(source))
			overlay.Replace[filepath.Join(root, "otelagui", "readmecheck", filepath.Base(file))] = file
		}
	}
	text := must.Have(json.Marshal(overlay))(t)
	overlayFile := filepath.Join(directory, "overlay.json")
	testfile.Write(t, overlayFile, text)
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-overlay", overlayFile, "./readmecheck")
	build.Dir = filepath.Join(root, "otelagui") // the module that may import all of them
	output, err := build.CombinedOutput()
	problems := compileErr.FindAllString(string(output), -1)
	if err == nil || len(problems) == 0 {
		t.Fatalf("the compiler says nothing of unused variables, so it has not seen the blocks: %v\n%s", err, output)
	}
	for _, problem := range problems {
		if !notUsed.MatchString(problem) {
			t.Error(problem)
		}
	}
}
