// Package testfile reads and writes the files of tests.
package testfile

import (
	"flag"
	"os"
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

// SQLObjects returns the objects of sql/functions.
func SQLObjects(t testing.TB) []functions.Object {
	t.Helper()
	objects, err := functions.Objects(functions.Files)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
