// Package testfile reads and writes the files of tests.
package testfile

import (
	"flag"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/sql/functions"
)

// Read returns what a file has.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Write writes a file.
func Write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Update is the flag -update of tests: they write what they get into golden files.
var Update = flag.Bool("update", false, "write what tests get into golden files")

// Golden compares a file with what a test got.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	if *Update {
		Write(t, name, []byte(got))
		return
	}
	want := string(Read(t, name))
	if want == got {
		return
	}
	t.Errorf("%s is not what the test got (where that is meant: go test -run %s -update, or make golden)", name, t.Name())
	only(t, "only in the file: ", want, got)
	only(t, "not in the file:  ", got, want)
}

// only logs the lines of one text that another lacks.
func only(t testing.TB, about, text, other string) {
	t.Helper()
	lines := map[string]bool{}
	for line := range strings.Lines(other) {
		lines[line] = true
	}
	for line := range strings.Lines(text) {
		if !lines[line] {
			t.Log(about + strings.TrimSuffix(line, "\n"))
		}
	}
}

var created = regexp.MustCompile(`(?m)^create (?:or replace )?(?:function|procedure|aggregate|view|type|domain) (agui(?:_internal)?\.\w+)`)

// An SQLObject is a function, type or view of sql/functions.
type SQLObject struct {
	Name string // agui.append
	Area string // api/append
	Text string // its statement and those about it, up to the next object
}

// SQLObjects returns the objects of sql/functions.
func SQLObjects(t testing.TB) []SQLObject {
	t.Helper()
	files, err := fs.Glob(functions.Files, "*/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var objects []SQLObject
	for _, file := range files {
		content, err := fs.ReadFile(functions.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		found := created.FindAllStringSubmatchIndex(text, -1)
		for i, match := range found {
			end := len(text)
			if i+1 < len(found) {
				end = found[i+1][0]
			}
			objects = append(objects, SQLObject{text[match[2]:match[3]], file[:len(file)-len(".sql")], text[match[0]:end]})
		}
	}
	return objects
}
