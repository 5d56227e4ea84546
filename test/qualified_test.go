package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Names in SQL are looked up along search_path, in which others may create. So what runs without a pinned path is qualified: operators, functions,
// types and relations. PL/pgSQL that commits cannot have a pinned path; it sets one at the beginning of each transaction.

const setPath = "set local search_path = pg_catalog, pg_temp;"

func TestPLpgSQLWithoutAPinnedPathIsQualified(t *testing.T) {
	t.Parallel()
	bodyPattern := regexp.MustCompile(`(?s)\nas (\$\w*\$)\n(.*)\n\$\w*\$;`)
	seen := 0
	for _, folder := range []string{"../sql/api", "../sql/internal"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".sql" {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text := string(content)
			match := bodyPattern.FindStringSubmatch(text)
			if match == nil || strings.Contains(text[:strings.Index(text, match[1])], "set search_path = pg_catalog, pg_temp") {
				return nil // of one expression or of BEGIN ATOMIC, which are looked up when they are created; or it has its path
			}
			seen++
			for _, problem := range unqualifiedInBody(match[2]) {
				t.Errorf("%s: %s", path, problem)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 5 {
		t.Errorf("only %d bodies without a path were found", seen)
	}
}

// unqualifiedInBody lists what a body looks up along the caller's path.
func unqualifiedInBody(body string) (problems []string) {
	pinned := false
	for i, part := range splitBehind(body, setPath) {
		outside := part
		if i > 0 {
			// What stands between the path and the end of the transaction may be anything.
			outside = ""
			for _, end := range regexp.MustCompile(`(?m)^\s*(?:commit|rollback|call [^;]*);`).FindAllStringIndex(part, -1) {
				outside = part[end[1]:]
			}
			pinned = true
		}
		if rest := strings.TrimSpace(withoutComments(outside)); pinned && rest != "" && rest != "end" && i > 0 {
			problems = append(problems, fmt.Sprintf("a transaction ends and the next one does not begin with %q, but with %.60q", setPath, rest))
			continue
		}
		problems = append(problems, unqualified(outside, true)...)
	}
	return problems
}

// splitBehind cuts a text behind each separator.
func splitBehind(text, separator string) []string { return strings.SplitAfter(text, separator) }

// Everything that Go sends, as it stands in string literals.
func TestStatementsOfGoAreQualified(t *testing.T) {
	t.Parallel()
	statement := regexp.MustCompile(`(?i)^\s*(?:--[^\n]*\n\s*)*(select|insert|update|delete|with|call|table|do|truncate)\b`)
	seen := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{"node_modules", "examples", "bench", "test", "testdata", "testdb", "hostile", "tools", ".git", "cluster", "sqlgen"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
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
			for _, problem := range unqualified(text, false) {
				t.Errorf("%s: %s", files.Position(literal.Pos()), problem)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("only %d statements were found", seen)
	}
}

var sqlToken = regexp.MustCompile(`(?s)^(?:` +
	`(?P<space>(?:\s|--[^\n]*|/\*.*?\*/)+)|` +
	`(?P<literal>[eE]?'(?:[^'\\]|''|\\.)*'|\$\w*\$.*?\$\w*\$)|` +
	`(?P<word>(?:[A-Za-z_]\w*|"[^"]*")(?:\.(?:[A-Za-z_]\w*|"[^"]*"|\*))*)|` + // with what qualifies it
	`(?P<parameter>\$\d+|\d[\d.]*|:=|=>|::|\.\.|%[a-zA-Z])|` +
	`(?P<operator>[-+*/<>=~!@#%^&|?` + "`" + `]+)|` +
	`.)`)

func withoutComments(text string) string {
	return regexp.MustCompile(`--[^\n]*`).ReplaceAllString(text, "")
}

// What the grammar knows by itself, and what may stand before a parenthesis without being a function.
var (
	keywordTypes = words(`int integer bigint smallint boolean interval numeric decimal real float double char varchar character bit`)
	notFunctions = words(`coalesce greatest least array exists values cast row any all some and or not from lateral on where when then else case select
		in as over filter within group by set into union except intersect only returning using extract with recursive materialized having if elsif return
		perform exit is null operator int varchar numeric interval between distinct insert limit offset rows unique key execute trim substring position overlay`)
	comparingWords = words(`like ilike similar between nullif using natural overlaps`)
	relationWords  = words(`from join update into`)
	notRelations   = words(`lateral only select strict unnest rows current_user`)
)

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// unqualified lists what a statement, or a piece of PL/pgSQL, looks up along search_path.
func unqualified(text string, isBody bool) (problems []string) {
	type item struct{ kind, text string }
	var items []item
	for rest := text; rest != ""; {
		match := sqlToken.FindStringSubmatch(rest)
		next := item{"", match[0]}
		for i, name := range sqlToken.SubexpNames() {
			if name != "" && match[i] != "" {
				next.kind = name
			}
		}
		if next.kind != "space" {
			if next.kind == "word" {
				next.text = strings.ToLower(next.text)
			}
			items = append(items, next)
		}
		rest = rest[len(match[0]):]
	}
	at := func(i int) item {
		if i < 0 || i >= len(items) {
			return item{}
		}
		return items[i]
	}
	report := func(i int, what string) {
		var around []string
		for j := max(0, i-4); j < min(len(items), i+5); j++ {
			around = append(around, items[j].text)
		}
		problems = append(problems, fmt.Sprintf("%s %q in: %s", what, items[i].text, strings.Join(around, " ")))
	}
	names := map[string]bool{} // of common table expressions, and of what has an alias with columns
	for i, next := range items {
		if next.kind == "word" && (at(i+1).text == "as" && at(i+2).text == "(" || at(i-1).text == "recursive" || at(i-1).text == "with") {
			names[next.text] = true
		}
		if next.kind == "word" && at(i+1).text == "(" && (at(i-1).text == "," || at(i-1).text == "with") {
			for j, depth := i+1, 0; j < len(items); j++ {
				if items[j].text == "(" {
					depth++
				} else if items[j].text == ")" {
					if depth--; depth == 0 {
						if at(j+1).text == "as" && at(j+2).text == "(" {
							names[next.text] = true
						}
						break
					}
				}
			}
		}
	}
	isQualified := func(word string) bool { return strings.Contains(word, ".") || strings.HasPrefix(word, `"`) }
	for i, next := range items {
		before, after := at(i-1), at(i+1)
		switch next.kind {
		case "operator":
			isStar := next.text == "*" && (before.text == "select" || before.text == "(" || before.text == ",")
			isAssignment := next.text == "=" && (before.text == ")" && at(i+1).text == "(" && slices.ContainsFunc(items[:i], func(t item) bool { return t.text == "set" }) ||
				isBody && before.kind == "word" && (slices.Contains([]string{"errcode", "message", "detail", "hint", "search_path"}, before.text)) ||
				at(i-2).text == "set" || at(i-2).text == "local")
			if !isStar && !isAssignment && !strings.HasPrefix(before.text, "pg_catalog") {
				report(i, "operator")
			}
		case "word":
			switch {
			case before.text == "::" && !isQualified(next.text) && !keywordTypes[next.text]:
				report(i, "type")
			case next.text == "in" && after.text == "(", next.text == "not" && after.text == "in":
				report(i, "comparison")
			case next.text == "distinct" && (before.text == "is" || before.text == "not") && after.text == "from":
				report(i, "comparison")
			case comparingWords[next.text] && !(isBody && next.text == "using" && before.text == "exception"):
				report(i, "comparison")
			case next.text == "case" && after.text != "when":
				report(i, "comparison by case")
			case after.text == "(" && !isQualified(next.text) && !notFunctions[next.text] && !names[next.text] && before.text != "as" && before.kind != "":
				report(i, "function")
			case relationWords[before.text] && !isQualified(next.text) && !notRelations[next.text] && !names[next.text] && after.text != "(" &&
				at(i-2).text != "distinct" && !(isBody && before.text == "into"):
				report(i, "relation")
			case isBody && i > 0 && before.kind == "word" && regexp.MustCompile(`^(text|uuid|json|jsonb|timestamptz|record|bytea|oid|name)$`).MatchString(next.text):
				report(i, "type")
			}
		}
	}
	return problems
}
