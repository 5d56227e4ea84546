package clitest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
)

// ImportTree creates the thread t with the branches r1 ← r2 ← r3 and r1 ← r4; r4 fails.
func ImportTree(t *testing.T, commands CommandLine) {
	t.Helper()
	withInput := `{"type":"RUN_STARTED","threadId":"t","runId":"r1","input":{"messages":[{"id":"u","role":"user","content":"Where\nto?"}]}}`
	commands.Must("import", WriteFile(t, "tree.ndjson",
		withInput, Finished,
		Started("t", "r2"), `{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`, `{"type":"STATE_SNAPSHOT","snapshot":{"a":2}}`, Finished,
		Started("t", "r3"), TextBegins, Token(1), TextEnds, Finished,
		StartedFrom("t", "r4", "r1"), Failed,
	))
}

// WriteFile writes lines to a file of the test and returns its path.
func WriteFile(t *testing.T, name string, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(JoinLines(lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// JoinLines returns lines as the text of a file.
func JoinLines(lines []string) string {
	return strings.Join(lines, "\n") + "\n"
}

// Started returns the event that begins a run.
func Started(threadID, runID string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, threadID, runID)
}

// StartedFrom returns the event that begins a run after a parent.
func StartedFrom(threadID, runID, parentRunID string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":%q,"parentRunId":%q}`, threadID, runID, parentRunID)
}

// Token returns an event with the n-th piece of a message.
func Token(n int) string {
	return fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"token %d "}`, n)
}

const (
	TextBegins = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
	TextEnds   = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
	Finished   = `{"type":"RUN_FINISHED"}`
	Failed     = `{"type":"RUN_ERROR","message":"no answer"}`
)

// Answer returns a run with a message of a number of tokens.
func Answer(threadID, runID string, tokens int) []string {
	lines := []string{Started(threadID, runID), TextBegins}
	for n := range tokens {
		lines = append(lines, Token(n))
	}
	return append(lines, TextEnds, Finished)
}

// RequestOf returns the request of a run, with what the user says.
func RequestOf(threadID, runID, words string) string {
	return `{"threadId":"` + threadID + `","runId":"` + runID + `","messages":[{"id":"u-` + runID + `","role":"user","content":"` + words + `"}]}`
}

// ImportThreads imports threads of one run each: t0, t1, ….
func ImportThreads(t *testing.T, commands CommandLine, threads int) {
	t.Helper()
	var lines []string
	for i := range threads {
		lines = append(lines, Answer(fmt.Sprint("t", i), "r", 3)...)
	}
	commands.Must("import", WriteFile(t, "threads.ndjson", lines...))
}

// SetLease sets the lease of the database. With "0" every run in progress is stale.
func SetLease(t *testing.T, commands CommandLine, lease string) {
	t.Helper()
	pool := testdb.Connect(t, commands.DatabaseURL)
	if _, err := pool.Exec(t.Context(), `select agui.set_setting('lease', $1)`, lease); err != nil {
		t.Fatal(err)
	}
}

// LeaveRun appends a run that ends in the middle of a message. (An import would close it.)
func LeaveRun(t *testing.T, commands CommandLine, threadID, runID string) {
	t.Helper()
	events := []json.RawMessage{json.RawMessage(Started(threadID, runID)), json.RawMessage(TextBegins)}
	if _, err := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil).Append(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: runID}, events, pgagui.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}
