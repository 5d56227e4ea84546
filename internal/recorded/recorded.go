// Package recorded gives tests the runs of the recordings of real servers.
package recorded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/eventfile"
)

// Run is a run of a recording.
type Run struct {
	ThreadID, RunID, ParentRunID string
	Events                       []json.RawMessage
}

// Files are the recordings: the project's own, and more where the folder ../shared/recordings is there. root is the path to the
// repository.
func Files(t testing.TB, root string) []string {
	t.Helper()
	var own []string
	for _, pattern := range []string{"testdata/recordings/*.ndjson", "testdata/recordings/field/*.ndjson"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no recordings: %v", err)
		}
		own = append(own, files...)
	}
	shared, err := filepath.Glob(filepath.Join(root, "../shared/recordings/*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(append(own, shared...), func(file string) bool {
		return strings.HasSuffix(file, ".requests.ndjson")
	})
}

// Read returns the runs of a recording.
func Read(t testing.TB, file string) []Run {
	t.Helper()
	source, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var events []json.RawMessage
	for event, err := range eventfile.Read(file, source) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event.Raw)
	}
	return Split(t, events)
}

// Split splits events at every RUN_STARTED.
func Split(t testing.TB, events []json.RawMessage) (runs []Run) {
	t.Helper()
	for _, event := range events {
		var opening struct{ Type, ThreadID, RunID, ParentRunID string }
		if err := json.Unmarshal(event, &opening); err != nil {
			t.Fatal(err)
		}
		if opening.Type == "RUN_STARTED" {
			runs = append(runs, Run{ThreadID: opening.ThreadID, RunID: opening.RunID, ParentRunID: opening.ParentRunID})
		}
		last := &runs[len(runs)-1]
		last.Events = append(last.Events, event)
	}
	return runs
}
