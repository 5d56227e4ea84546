package clitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// WithoutTimes removes dates and times of day from a row.
func WithoutTimes(row string) string {
	var fields []string
	for field := range strings.FieldsSeq(row) {
		if strings.Count(field, ":") != 2 && strings.Count(field, "-") != 2 {
			fields = append(fields, field)
		}
	}
	return strings.Join(fields, " ")
}

var timeOfDay = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// FirstTimeAs replaces the first time in an output.
func FirstTimeAs(name, out string) string {
	if at := timeOfDay.FindStringIndex(out); at != nil {
		return out[:at[0]] + name + out[at[1]:]
	}
	return out
}

// Field returns the value of a name in a table of names and values.
func Field(t *testing.T, table, name string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if value, isIt := strings.CutPrefix(line, name+"  "); isIt {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Repository returns the path of a file of the repository, whose tests run in their own folders.
func Repository(name string) string {
	for folder := "."; ; folder = filepath.Join(folder, "..") {
		if _, err := os.Stat(filepath.Join(folder, "cmd/pgagui/main.go")); err == nil {
			return filepath.Join(folder, name)
		}
		if absolute, err := filepath.Abs(folder); err != nil || filepath.Dir(absolute) == absolute {
			panic("the test does not run in the repository")
		}
	}
}

// ReadDeploy returns a file of the folder deploy.
func ReadDeploy(t *testing.T, name string) string { return ReadFile(t, Repository("deploy/"+name)) }

// ReadFile returns the text of a file.
func ReadFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
