package functions_test

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/sql/functions"
)

var (
	areaInReadme = regexp.MustCompile("(?m)^\\| `(\\w+/\\w+)` \\|")

	// Comments and literals name what is not called. What EXECUTE is given is.
	commentOrLiteral = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'`)
	executed         = regexp.MustCompile(`(?i)\bexecute\s+(?:(?:pg_catalog\.)?format\s*\(\s*)?('(?:[^']|'')*')`)

	created = regexp.MustCompile(`(?im)^create (?:or replace )?(?:function|procedure|aggregate|view|type|domain) (agui(?:_internal)?\.\w+)`)
	object  = regexp.MustCompile(`(?i)\bagui(?:_internal)?\.\w+`)
)

// calls are the objects of other files that each file names, by file.
func calls(t *testing.T, sources fs.FS) (named map[string][]string, fileOf map[string]string) {
	t.Helper()
	texts := map[string]string{}
	named, fileOf = map[string][]string{}, map[string]string{}
	err := fs.WalkDir(sources, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(sources, file)
		texts[file] = string(content)
		for _, match := range created.FindAllStringSubmatch(texts[file], -1) {
			fileOf[strings.ToLower(match[1])] = file
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range texts {
		named[file] = namesIn(text)
	}
	return named, fileOf
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
func runsUp(areas []string, named map[string][]string, fileOf map[string]string) (wrong []string, count int) {
	for file, names := range named {
		for _, name := range names {
			callee, known := fileOf[name]
			from, to := path.Dir(file), path.Dir(callee)
			if !known || from == to {
				continue
			}
			count++
			if slices.Index(areas, from) > slices.Index(areas, to) {
				wrong = append(wrong, file+" uses "+name+", which is above it: "+callee)
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
	folders, err := fs.Glob(functions.Files, "*/*")
	if err != nil {
		t.Fatal(err)
	}
	if listed := slices.Sorted(slices.Values(areas)); !slices.Equal(listed, folders) {
		t.Errorf("README.md lists the areas\n%q\nthe folders are\n%q", listed, folders)
	}
	named, fileOf := calls(t, functions.Files)
	wrong, count := runsUp(areas, named, fileOf)
	if count < 500 {
		t.Errorf("only %d calls between areas were found", count)
	}
	for _, call := range wrong {
		t.Errorf("sql/functions/%s. README.md says what to do", call)
	}
	t.Logf("%d files, %d uses between %d areas", len(named), count, len(areas))
}

func TestAnArrowThatRunsUpIsFound(t *testing.T) {
	t.Parallel()
	fileOf := map[string]string{"agui.high": "api/x/high.sql", "agui_internal.low": "core/y/low.sql", "agui_internal.other": "core/y/other.sql"}
	areas := []string{"api/x", "core/y"}
	for body, want := range map[string]int{
		`perform agui.high();`:                                       1,
		`execute format('select agui.high(%L)', value);`:             1,
		`declare v Agui.High[];`:                                     1,
		`perform agui_internal.other(); -- and not agui.high()`:      0,
		`raise exception using hint = 'It''s -- call agui.high().';`: 0,
		`select '--'; perform agui.high();`:                          1,
	} {
		wrong, _ := runsUp(areas, map[string][]string{"core/y/low.sql": namesIn(body)}, fileOf)
		if len(wrong) != want {
			t.Errorf("%s: found %q, want %d", body, wrong, want)
		}
	}
	if wrong, count := runsUp(areas, map[string][]string{"api/x/high.sql": {"agui_internal.low"}}, fileOf); len(wrong) != 0 || count != 1 {
		t.Errorf("a call down: %q of %d", wrong, count)
	}
}
