// Package testfile reads and writes the files of tests.
package testfile

import (
	"os"
	"testing"
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
