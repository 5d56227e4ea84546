package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// asProgram is an environment variable that makes the test binary run as pgagui, for tests that
// send signals to a process or call it from a shell, and for the demo, which starts itself.
const asProgram = "PGAGUI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	if err := os.Setenv(asProgram, "1"); err != nil {
		panic(err)
	}
	testdb.Main(m)
}

// program prepares a process of pgagui on the database of the test.
func (c commandLine) program(name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(c.t.Context(), name, arguments...)
	command.Env = append(os.Environ(), "DATABASE_URL="+c.databaseURL)
	return command
}

// outcome is the exit code and the output of a command line.
type outcome struct {
	code     int
	out      string
	messages string
}

// commandLine runs commands on a private database of the test.
type commandLine struct {
	t           *testing.T
	databaseURL string
}

func newCommandLine(t *testing.T) commandLine {
	return commandLine{t, testdb.New(t)}
}

func (c commandLine) run(arguments ...string) outcome {
	return c.runWithInput("", arguments...)
}

func (c commandLine) runWithInput(input string, arguments ...string) outcome {
	c.t.Helper()
	var out, messages bytes.Buffer
	code := run(c.t.Context(), append(arguments, "--database-url", c.databaseURL), strings.NewReader(input), &out, &messages)
	return outcome{code, out.String(), messages.String()}
}

// runBefore runs a command with the flags before the arguments, as the shell completion expects
// them.
func (c commandLine) runBefore(command string, arguments ...string) outcome {
	c.t.Helper()
	var out, messages bytes.Buffer
	line := append([]string{command, "--database-url", c.databaseURL}, arguments...)
	code := run(c.t.Context(), line, strings.NewReader(""), &out, &messages)
	return outcome{code, out.String(), messages.String()}
}

// must runs a command that has to succeed and returns its output.
func (c commandLine) must(arguments ...string) string {
	c.t.Helper()
	result := c.run(arguments...)
	if result.code != exitOK {
		c.t.Fatalf("pgagui %s: exit code %d: %s", strings.Join(arguments, " "), result.code, result.messages)
	}
	return result.out
}

// mustFail runs a command that has to fail with an exit code, and returns its error, which has to
// be one line.
func (c commandLine) mustFail(code int, arguments ...string) string {
	c.t.Helper()
	result := c.run(arguments...)
	if result.code != code {
		c.t.Fatalf("pgagui %s: exit code %d, want %d; messages: %s", strings.Join(arguments, " "), result.code, code, result.messages)
	}
	text, ended := strings.CutSuffix(result.messages, "\n")
	if !ended || text == "" || strings.Contains(text, "\n") {
		c.t.Errorf("pgagui %s: the error is not one line: %q", strings.Join(arguments, " "), result.messages)
	}
	return text
}

// parse runs a command that has to succeed with --json, and reads its result.
func parse[Result any](c commandLine, arguments ...string) Result {
	c.t.Helper()
	var result Result
	out := c.must(append(arguments, "--json")...)
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		c.t.Fatalf("pgagui %s --json: %v in %s", strings.Join(arguments, " "), err, out)
	}
	return result
}

// writeFile writes lines to a file of the test and returns its path.
func writeFile(t *testing.T, name string, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(joinLines(lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func joinLines(lines []string) string {
	return strings.Join(lines, "\n") + "\n"
}

func started(threadID, runID string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, threadID, runID)
}

func startedFrom(threadID, runID, parentRunID string) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":%q,"parentRunId":%q}`, threadID, runID, parentRunID)
}

func token(n int) string {
	return fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"token %d "}`, n)
}

const (
	textBegins = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
	textEnds   = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
	finished   = `{"type":"RUN_FINISHED"}`
	failed     = `{"type":"RUN_ERROR","message":"no answer"}`
)

// answer returns a run with a message of a number of tokens.
func answer(threadID, runID string, tokens int) []string {
	lines := []string{started(threadID, runID), textBegins}
	for n := range tokens {
		lines = append(lines, token(n))
	}
	return append(lines, textEnds, finished)
}
