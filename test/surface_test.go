package test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/testdb"
)

// The comment of a public function ends with the SQLSTATEs of class UI that it raises ("Errors: UI001 unknown thread, …."): those in
// its body and in the bodies of all that it calls.
func TestCommentsListErrors(t *testing.T) {
	t.Parallel()
	rows, err := testdb.Pool(t).Query(context.Background(), `
		select pronamespace::regnamespace || '.' || proname, coalesce(prosrc, '') || coalesce(pg_get_function_sqlbody(oid), ''),
			coalesce(obj_description(oid, 'pg_proc'), '')
		from pg_proc where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)`)
	if err != nil {
		t.Fatal(err)
	}
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
		_, errors, _ := strings.Cut(comment, "Errors: ")
		listed := code.FindAllString(errors, -1)
		for code := range reachable {
			if !slices.Contains(listed, code) && !slices.Contains(cannotHappen[name], code) {
				t.Errorf("the comment of %s does not list %s", name, code)
			}
		}
		for _, code := range listed {
			if code == elsewhere {
				continue
			}
			if !reachable[code] || slices.Contains(cannotHappen[name], code) {
				t.Errorf("the comment of %s lists %s, which nothing that it calls raises", name, code)
			}
		}
	}
}

// cannotHappen are codes in the bodies that a function reaches, but that it does not raise.
var cannotHappen = map[string][]string{
	// They ask for the head, not for a run by its id.
	"agui.branches":          {"UI002"},
	"agui.head":              {"UI002"},
	"agui.runs":              {"UI002"},
	"agui.rebuild_snapshots": {"UI002"},
	"agui.verify":            {"UI002", "UI022", "UI023"}, // a fold that ends is a problem that it names
	// It has one shape, and begins at the beginning.
	"agui.attach_part": {"UI013", "UI017"},
	// A run that cannot be folded has no texts.
	"agui.project": {"UI022", "UI023"}, "agui.search": {"UI022", "UI023"},
	// They leave held threads.
	"agui.erase_older": {"UI025"}, "agui.apply_retention": {"UI025"},
	// It returns them, for each thread.
	"agui.poll": {"UI012", "UI014", "UI017"},
	// It says that a consumer is lost.
	"agui.consumers": {"UI024"},
	// A consumer that it creates begins at the beginning.
	"agui.mark_read": {"UI024"},
}
