package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/qualify"
	"github.com/pgagui/pgagui/internal/testfile"
)

// Names in SQL are looked up along search_path, in which others may create. So what runs without a pinned path is qualified: operators, functions,
// types and relations. PL/pgSQL that commits cannot have a pinned path; it sets one at the beginning of each transaction.

const setPath = "set local search_path = pg_catalog, pg_temp;"

func TestPLpgSQLWithoutAPinnedPathIsQualified(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, object := range testfile.SQLObjects(t) {
		// An expression, or BEGIN ATOMIC, is looked up when the function is created.
		head, body, isQuoted := strings.Cut(object.Text, "\nas $")
		if !isQuoted || strings.Contains(head+"\n", "\nset search_path = pg_catalog, pg_temp\n") {
			continue
		}
		_, body, _ = strings.Cut(body, "$\n")
		body, _, _ = strings.Cut(body, "\n$")
		seen++
		for _, problem := range unpinned(body) {
			t.Errorf("%s in %s: %s", object.Name, object.Area, problem)
		}
	}
	if seen < 10 {
		t.Errorf("only %d bodies without a path were found", seen)
	}
}

// unpinned says what is wrong with a body that has no path of its own.
func unpinned(body string) (problems []string) {
	endOfTransaction := regexp.MustCompile(`(?m)^\s*(?:commit|rollback|call [^;]*);`)
	before, rest, sets := strings.Cut(body, setPath)
	problems = lookUps(before)
	if !sets {
		return problems
	}
	for _, end := range endOfTransaction.FindAllStringIndex(rest, -1) {
		next := strings.TrimSpace(rest[end[1]:])
		if next != "end" && !strings.HasPrefix(next, setPath) {
			problems = append(problems, "a transaction ends, and the next statement does not set the path: "+strings.TrimSpace(rest[end[0]:end[1]]))
		}
	}
	if !strings.HasSuffix(rest, "\n    commit;\nend") {
		problems = append(problems, "the last statement is not commit: in the transaction of its caller the path would stay")
	}
	return problems
}

// lookUps says what a piece of SQL looks up along search_path.
func lookUps(text string) (problems []string) {
	qualified, err := qualify.SQL(text)
	if err != nil {
		problems = append(problems, err.Error())
	}
	if err == nil && qualified != text {
		got, want := strings.Split(text, "\n"), strings.Split(qualified, "\n")
		for i := range got {
			if got[i] != want[i] {
				problems = append(problems, strings.TrimSpace(got[i])+" must be "+strings.TrimSpace(want[i]))
			}
		}
	}
	return problems
}

func TestBareOperatorsInProceduresAreFound(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"before the path is set": "declare\n    n int := 1 + 1;\nbegin\n    " + setPath + "\n    commit;\nend",
		"a type":                 "declare\n    n text;\nbegin\n    " + setPath + "\n    commit;\nend",
		"after a commit":         "begin\n    " + setPath + "\n    commit;\n    n := 1;\n    commit;\nend",
		"after a procedure":      "begin\n    " + setPath + "\n    call agui.repack();\n    n := 1;\n    commit;\nend",
		"a path that stays":      "begin\n    " + setPath + "\nend",
		"no path":                "begin\n    return a || b;\nend",
	} {
		if len(unpinned(body)) == 0 {
			t.Errorf("%s: not found in %s", name, body)
		}
	}
}

// All SQL that Go sends on a connection without a pinned search_path, as string literals contain it.
func TestStatementsOfGoAreQualified(t *testing.T) {
	t.Parallel()
	statement := regexp.MustCompile(`^\s*(?:--[^\n]*\n\s*)*(select|insert|update|delete|with|call|table|do|truncate)\b`)
	// Those of tests, of measurements and of private servers run on databases without other users; the migrations set the path of their connection.
	others := []string{"bench", "examples", "test", "testdata", "testdb", "clitest", "hostile", "cluster", "migration", "node_modules", ".git"}
	seen := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(others, entry.Name()) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || path == "../sql/schema/migrate.go" || path == "../sql/schema/remove.go" {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil || !statement.MatchString(text) || !strings.ContainsAny(text, "(.") {
				return true
			}
			seen++
			for _, problem := range lookUps(text) {
				t.Errorf("%s: %s", files.Position(literal.Pos()), problem)
			}
			return true
		})
		return nil
	})
	must.Do(t, err)
	if seen < 50 {
		t.Errorf("only %d statements were found", seen)
	}
}
