package functions_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testfile"
)

var (
	areaInReadme = regexp.MustCompile("(?m)^\\| `(\\w+/\\w+)` \\|")

	// Comments and literals name what is not called. What EXECUTE is given is.
	commentOrLiteral = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'`)
	executed         = regexp.MustCompile(`(?i)\bexecute\s+(?:(?:pg_catalog\.)?format\s*\(\s*)?('(?:[^']|'')*')`)

	object = regexp.MustCompile(`(?i)\bagui(?:_internal)?\.\w+`)
)

// calls are the objects that each area names, by area, and the area of each object.
func calls(t *testing.T) (named map[string][]string, areaOf map[string]string) {
	t.Helper()
	named, areaOf = map[string][]string{}, map[string]string{}
	for _, object := range testfile.SQLObjects(t) {
		areaOf[strings.ToLower(object.Name)] = object.Area
		named[object.Area] = append(named[object.Area], namesIn(object.Text)...)
	}
	return named, areaOf
}

func namesIn(text string) []string {
	var names []string
	code := commentOrLiteral.ReplaceAllString(text, "''")
	for _, match := range executed.FindAllStringSubmatch(text, -1) {
		code += " " + match[1]
	}
	for _, name := range object.FindAllString(code, -1) {
		if name = strings.ToLower(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// runsUp are the calls that do not run from an area to one below it, given the areas from the top down.
func runsUp(areas []string, named map[string][]string, areaOf map[string]string) (wrong []string, count int) {
	for from, names := range named {
		for _, name := range names {
			to, known := areaOf[name]
			if !known || from == to {
				continue
			}
			count++
			if slices.Index(areas, from) > slices.Index(areas, to) {
				wrong = append(wrong, from+" uses "+name+", which is above it, in "+to)
			}
		}
	}
	slices.Sort(wrong)
	return wrong, count
}

func TestArrowsRunDown(t *testing.T) {
	t.Parallel()
	readme := testfile.Read(t, "README.md")
	var areas []string
	for _, match := range areaInReadme.FindAllStringSubmatch(string(readme), -1) {
		areas = append(areas, match[1])
	}
	named, areaOf := calls(t)
	if listed, files := slices.Sorted(slices.Values(areas)), slices.Sorted(maps.Keys(named)); !slices.Equal(listed, files) {
		t.Errorf("README.md lists the areas\n%q\nthe files are\n%q", listed, files)
	}
	wrong, count := runsUp(areas, named, areaOf)
	if count < 500 {
		t.Errorf("only %d calls between areas were found", count)
	}
	for _, call := range wrong {
		t.Errorf("%s. README.md says what to do", call)
	}
	t.Logf("%d objects, %d uses between %d areas", len(areaOf), count, len(areas))
}

func TestAnArrowThatRunsUpIsFound(t *testing.T) {
	t.Parallel()
	areaOf := map[string]string{"agui.high": "api/x", "agui_internal.low": "core/y", "agui_internal.other": "core/y"}
	areas := []string{"api/x", "core/y"}
	for body, want := range map[string]int{
		`perform agui.high();`:                                       1,
		`execute format('select agui.high(%L)', value);`:             1,
		`declare v Agui.High[];`:                                     1,
		`perform agui_internal.other(); -- and not agui.high()`:      0,
		`raise exception using hint = 'It''s -- call agui.high().';`: 0,
		`select '--'; perform agui.high();`:                          1,
	} {
		wrong, _ := runsUp(areas, map[string][]string{"core/y": namesIn(body)}, areaOf)
		if len(wrong) != want {
			t.Errorf("%s: found %q, want %d", body, wrong, want)
		}
	}
	if wrong, count := runsUp(areas, map[string][]string{"api/x": {"agui_internal.low"}}, areaOf); len(wrong) != 0 || count != 1 {
		t.Errorf("a call down: %q of %d", wrong, count)
	}
}
