package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/refusal"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/protocol"
)

// The SQLSTATEs of class UI that the schema raises are those of protocol/errors.json. Each has a status, an exit code, and a hint for
// those who do not write SQL: one of the table, or those of the functions, which then name nothing of SQL.
func TestTheTableOfErrorsHasWhatTheSchemaRaises(t *testing.T) {
	t.Parallel()
	var (
		state  = regexp.MustCompile(`'(UI\d{3})'`)
		raised = regexp.MustCompile(`(?s)errcode = '(\w{5})'(.*?);\n`)
		hint   = regexp.MustCompile(`(?s)hint = (.*)`)
		ofSQL  = regexp.MustCompile(`agui\.|=>|after_seq|next_cursor|pg_|lock_timeout|\b(select|alter) `)
		hints  = map[string]int{} // how many functions have one, by SQLSTATE
	)
	for _, source := range testdb.List[string](t, testdb.Pool(t), `
		select prosrc from pg_proc where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and prosrc <> ''`) {
		for _, match := range state.FindAllStringSubmatch(source, -1) {
			hints[match[1]] += 0
		}
		for _, raise := range raised.FindAllStringSubmatch(source, -1) {
			if kind, text := refusal.OfState[raise[1]], hint.FindString(raise[2]); kind != nil && text != "" {
				hints[raise[1]]++
				if kind.HTTP == "" && ofSQL.MatchString(text) {
					t.Errorf("%s has no hint for HTTP in the table, and a function has one of SQL: %s", raise[1], text)
				}
			}
		}
	}
	for state, kind := range refusal.OfState {
		count, isRaised := hints[state]
		if strings.HasPrefix(state, "UI") && (!isRaised || kind.Status < 400 || kind.Status == 500 || kind.Exit == 0 || kind.HTTP == "" && count == 0) {
			t.Errorf("%s: raised: %t, status %d, exit code %d, hint %q", state, isRaised, kind.Status, kind.Exit, kind.HTTP)
		}
	}
	for state := range hints {
		if refusal.OfState[state] == nil {
			t.Errorf("protocol/errors.json lacks %s", state)
		}
	}
}

// The comment of a function of the schema lists its errors, and so does the doc comment of each method
// that calls it. The two lists must agree.
func TestMethodsListTheErrorsOfTheirFunctions(t *testing.T) {
	t.Parallel()
	var (
		sentinels = sentinelsOfStates()
		functions = functionsOfQueries(t)
		codes     = codesOfFunctions(t)
		methods   = methodsOfPackage(t)
		checked   = 0
	)
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		method := methods[name]
		if !method.isExported {
			continue
		}
		documented := documentedErrors(methods, name, 0)
		for query := range queriesOf(methods, name, map[string]bool{}) {
			for _, function := range functions[query] {
				for _, code := range codes[function] {
					checked++
					sentinel := sentinels[code]
					if sentinel == "" {
						t.Errorf("agui.%s can raise %s, which has no Err variable", function, code)
					} else if !strings.Contains(documented, sentinel) {
						t.Errorf("%s calls agui.%s, which can raise %s: its doc comment does not list %s", name, function, code, sentinel)
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d errors were compared", checked)
	}
}

var thoseOf = regexp.MustCompile(`[Tt]hose of ((?:[A-Z]\w*\.)?[A-Z]\w*)`)

// documentedErrors is what a doc comment lists, with what it says of another method ("those of Save").
func documentedErrors(methods map[string]*method, name string, depth int) string {
	method := methods[name]
	if method == nil || depth > 5 {
		return ""
	}
	_, list, _ := strings.Cut(method.doc, "\nErrors:")
	for _, other := range thoseOf.FindAllStringSubmatch(strings.Join(strings.Fields(list), " "), -1) {
		reference := other[1]
		if !strings.Contains(reference, ".") {
			reference = method.receiver + "." + reference
		}
		list += documentedErrors(methods, reference, depth+1)
	}
	return list
}

type method struct {
	receiver, doc string
	isExported    bool
	queries       []string // of package db that it calls
	calls         []string // other methods of the package
	functions     []string // of the package
}

func methodsOfPackage(t *testing.T) map[string]*method {
	t.Helper()
	methods := map[string]*method{}
	files := must.Have(filepath.Glob("../*.go"))(t)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Have(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments))(t)
		for _, declaration := range file.Decls {
			function, isFunction := declaration.(*ast.FuncDecl)
			if !isFunction || function.Body == nil {
				continue
			}
			one := &method{doc: function.Doc.Text(), isExported: function.Name.IsExported()}
			if function.Recv != nil {
				receiver := function.Recv.List[0].Type
				if pointer, isPointer := receiver.(*ast.StarExpr); isPointer {
					receiver = pointer.X
				}
				if generic, isGeneric := receiver.(*ast.IndexExpr); isGeneric {
					receiver = generic.X
				}
				one.receiver = receiver.(*ast.Ident).Name
				one.isExported = one.isExported && ast.IsExported(one.receiver)
			}
			ast.Inspect(function.Body, func(node ast.Node) bool {
				call, isCall := node.(*ast.CallExpr)
				if !isCall {
					return true
				}
				switch called := call.Fun.(type) {
				case *ast.Ident:
					one.functions = append(one.functions, called.Name)
				case *ast.SelectorExpr:
					if isQueries(called.X) {
						one.queries = append(one.queries, called.Sel.Name)
					} else {
						one.calls = append(one.calls, called.Sel.Name)
					}
				}
				return true
			})
			methods[one.receiver+"."+function.Name.Name] = one
		}
	}
	return methods
}

// isQueries reports whether an expression is the queries of package db: s.of(threadID), those of a backend, or what a backend passes to a call.
func isQueries(expression ast.Expr) bool {
	switch of := expression.(type) {
	case *ast.Ident:
		return of.Name == "on"
	case *ast.CallExpr:
		selector, isSelector := of.Fun.(*ast.SelectorExpr)
		return isSelector && slices.Contains([]string{"of", "ofScope", "ofMany"}, selector.Sel.Name)
	}
	return false
}

// queriesOf is what a method calls itself, or through functions and methods of the same type.
func queriesOf(methods map[string]*method, name string, seen map[string]bool) map[string]bool {
	queries := map[string]bool{}
	if method := methods[name]; method != nil && !seen[name] {
		seen[name] = true
		for _, query := range method.queries {
			queries[query] = true
		}
		for _, call := range method.calls {
			maps.Copy(queries, queriesOf(methods, method.receiver+"."+call, seen))
		}
		for _, function := range method.functions {
			maps.Copy(queries, queriesOf(methods, "."+function, seen))
		}
	}
	return queries
}

var (
	queryName    = regexp.MustCompile(`(?m)^-- name: (\w+) :`)
	functionCall = regexp.MustCompile(`\bagui\.(\w+)\(`)
)

func functionsOfQueries(t *testing.T) map[string][]string {
	t.Helper()
	functions := map[string][]string{}
	eachFile(t, "../sql/queries", func(text string) {
		places := queryName.FindAllStringSubmatchIndex(text, -1)
		for i, place := range places {
			end := len(text)
			if i+1 < len(places) {
				end = places[i+1][0]
			}
			name := text[place[2]:place[3]]
			for _, call := range functionCall.FindAllStringSubmatch(text[place[1]:end], -1) {
				functions[name] = append(functions[name], call[1])
			}
		}
	})
	return functions
}

var (
	functionComment = regexp.MustCompile(`(?s)comment on (?:function|procedure) agui\.(\w+)\b[^']*?is\s+('.*?');`)
	joinedTexts     = regexp.MustCompile(`'\s*'`)
	stateInText     = regexp.MustCompile(`\b(?:UI\d{3}|22023)\b`)
)

func codesOfFunctions(t *testing.T) map[string][]string {
	t.Helper()
	codes := map[string][]string{}
	eachFile(t, "../sql/functions", func(text string) {
		for _, comment := range functionComment.FindAllStringSubmatch(text, -1) {
			_, list, _ := strings.Cut(joinedTexts.ReplaceAllString(comment[2], ""), "Errors:")
			codes[comment[1]] = stateInText.FindAllString(list, -1)
		}
	})
	return codes
}

func sentinelsOfStates() map[string]string {
	sentinels := map[string]string{}
	for _, kind := range protocol.Errors().Refusals {
		for _, state := range kind.States {
			sentinels[state] = "Err" + kind.Name
		}
	}
	return sentinels
}

func eachFile(t *testing.T, root string, visit func(text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".sql") {
			return err
		}
		text, err := os.ReadFile(path)
		visit(string(text))
		return err
	})
	must.Do(t, err)
}
