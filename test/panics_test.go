package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

// A panic in a goroutine ends the process, with all runs that it records. So each goroutine of the
// recorder, the jobs, the worker and the server is a panics.Task, or returns what panics.Catch does.
func TestNoGoroutineCanEndTheProcess(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	seen := 0
	for _, pattern := range []string{
		"*.go", "internal/live/*.go", "jobs/*.go", "worker/*.go", "cluster/*.go", "server/*.go", "server/*/*.go", "server/*/*/*.go",
		"cmd/pgagui/internal/schedule/*.go",
	} {
		names, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file := must.Have(parser.ParseFile(files, name, nil, 0))(t)
			for at, isSafe := range goroutines(file) {
				if seen++; !isSafe {
					t.Errorf("%s: a panic here ends the process: go panics.Task(logger, func() {…}, failed)(), or return panics.Catch(…)",
						files.Position(at))
				}
			}
		}
	}
	if seen < 25 {
		t.Errorf("only %d goroutines were found", seen)
	}
}

func TestBareGoroutinesAreFound(t *testing.T) {
	t.Parallel()
	for statement, isSafe := range map[string]bool{
		"go work()":                        false,
		"go func() { work() }()":           false,
		"go panics.Task(nil, work, nil)()": true,
		"tasks.Go(work)":                   false,
		"tasks.Go(func() { panics.Task(nil, a, b); c() })":          false,
		"tasks.Go(panics.Task(nil, work, nil))":                     true,
		"group.Go(func() error { return panics.Catch(nil, work) })": true,
		"group.Go(func() error { return work() })":                  false,
		"time.AfterFunc(1, func() { work() })":                      false,
		"context.AfterFunc(ctx, cancel)":                            true,
	} {
		file := must.Have(parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+statement+"\n}", 0))(t)
		found := goroutines(file)
		if len(found) != 1 {
			t.Errorf("%s: %d goroutines", statement, len(found))
		}
		for _, got := range found {
			if got != isSafe {
				t.Errorf("%s: %t", statement, got)
			}
		}
	}
}

// goroutines returns where a file begins them, and whether a panic there is caught.
func goroutines(file *ast.File) map[token.Pos]bool {
	found := map[token.Pos]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			found[node.Pos()] = isCallOf(node.Call.Fun, "Task")
		case *ast.CallExpr:
			called, ok := node.Fun.(*ast.SelectorExpr)
			switch {
			case !ok:
			case called.Sel.Name == "Go" && len(node.Args) == 1:
				found[node.Pos()] = isCaught(node.Args[0])
			case called.Sel.Name == "AfterFunc" && len(node.Args) == 2:
				name, isName := node.Args[1].(*ast.Ident)
				found[node.Pos()] = isCaught(node.Args[1]) || isName && name.Name == "cancel" // of a context
			}
		}
		return true
	})
	return found
}

// isCaught reports whether a function is panics.Task(…), or only returns panics.Catch(…).
func isCaught(function ast.Expr) bool {
	literal, ok := function.(*ast.FuncLit)
	if !ok {
		return isCallOf(function, "Task")
	}
	if len(literal.Body.List) != 1 {
		return false
	}
	returned, ok := literal.Body.List[0].(*ast.ReturnStmt)
	return ok && len(returned.Results) == 1 && isCallOf(returned.Results[0], "Catch")
}

// isCallOf reports whether an expression calls a function of internal/panics.
func isCallOf(expression ast.Expr, name string) bool {
	call, ok := expression.(*ast.CallExpr)
	if !ok {
		return false
	}
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || called.Sel.Name != name {
		return false
	}
	from, ok := called.X.(*ast.Ident)
	return ok && from.Name == "panics"
}
