// Package testfile reads and writes the files of tests.
package testfile

import (
	"io/fs"
	"os"
	"regexp"
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

// Golden returns what a file has. With update it first writes there what a test got.
func Golden(t testing.TB, name, got string, update bool) string {
	t.Helper()
	if update {
		Write(t, name, []byte(got))
	}
	return string(Read(t, name))
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
