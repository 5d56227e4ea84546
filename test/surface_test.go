package test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

// The comment of a public function ends with the SQLSTATEs of class UI that it raises ("Errors: UI001 unknown thread, …."): those in
// its body and in the bodies of all that it calls.
func TestCommentsListErrors(t *testing.T) {
	t.Parallel()
	rows, err := testdb.Pool(t).Query(context.Background(), `
		select pronamespace::regnamespace || '.' || proname, coalesce(prosrc, '') || coalesce(pg_get_function_sqlbody(oid), ''),
			coalesce(obj_description(oid, 'pg_proc'), '')
		from pg_proc where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)`)
	must.Do(t, err)
	const elsewhere = "UI027" // of every call for a thread, where there is a cluster: docs/reference/errors.md says it once
	code := regexp.MustCompile(`\bUI[0-9]{3}\b`)
	call := regexp.MustCompile(`\b(agui(?:_internal)?\.\w+)\(`)
	raises, calls, comments := map[string][]string{}, map[string][]string{}, map[string]string{}
	var name, body, comment string
	if _, err := pgx.ForEachRow(rows, []any{&name, &body, &comment}, func() error {
		for line := range strings.Lines(body) {
			statement, _, _ := strings.Cut(line, "--")
			if strings.Contains(statement, "execute on") {
				continue // it grants, it does not call
			}
			raises[name] = append(raises[name], code.FindAllString(statement, -1)...)
			for _, match := range call.FindAllStringSubmatch(statement, -1) {
				calls[name] = append(calls[name], match[1])
			}
		}
		comments[name] = comment
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	never := map[string][]string{} // codes in what a function reaches that it does not raise
	for _, object := range testfile.SQLObjects(t) {
		never[object.Name] = code.FindAllString(object.Facts["never"], -1)
	}
	for name, comment := range comments {
		if !strings.HasPrefix(name, "agui.") {
			continue
		}
		reachable, seen := map[string]bool{}, map[string]bool{}
		var visit func(string)
		visit = func(name string) {
			if seen[name] {
				return
			}
			seen[name] = true
			for _, code := range raises[name] {
				reachable[code] = true
			}
			for _, called := range calls[name] {
				visit(called)
			}
		}
		visit(name)
		delete(reachable, elsewhere)
		for _, code := range never[name] {
			if !reachable[code] {
				t.Errorf("the source of %s says never %s, which nothing that it calls raises", name, code)
			}
			delete(reachable, code)
		}
		_, errors, _ := strings.Cut(comment, "Errors: ")
		listed := code.FindAllString(errors, -1)
		for code := range reachable {
			if !slices.Contains(listed, code) {
				t.Errorf("the comment of %s does not list %s", name, code)
			}
		}
		for _, code := range listed {
			if code != elsewhere && !reachable[code] {
				t.Errorf("the comment of %s lists %s, which nothing that it calls raises", name, code)
			}
		}
	}
}
