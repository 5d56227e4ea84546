// Package clitest runs the whole program in tests, and has what they put into it.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/internal/testdb"
)

// asProgram is an environment variable that makes the test binary run as pgagui, for tests that
// send signals to a process or call it from a shell, and for the demo, which starts itself.
const asProgram = "PGAGUI_TEST_AS_PROGRAM"

// Run executes a command line and returns the exit code. Main sets it: the packages of the commands
// use this package in their tests, so it cannot import the program, which imports them.
var Run func(ctx context.Context, arguments []string, in io.Reader, out, messages io.Writer) int

// Main is TestMain of a package that runs the program: main and run are those of package root.
func Main(m *testing.M, main func(), run func(context.Context, []string, io.Reader, io.Writer, io.Writer) int) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	if err := os.Setenv(asProgram, "1"); err != nil {
		panic(err)
	}
	Run = run
	testdb.Main(m)
}

// Program prepares a process of pgagui on the database of the test.
func (c CommandLine) Program(name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(c.T.Context(), name, arguments...)
	command.Env = append(os.Environ(), "DATABASE_URL="+c.DatabaseURL, "PGAGUI_NODES="+c.Nodes)
	return command
}

// Outcome is the exit code and the output of a command line.
type Outcome struct {
	Code     int
	Out      string
	Messages string
}

// CommandLine runs commands on a private database of the test, or on the nodes of a cluster.
type CommandLine struct {
	T           *testing.T
	DatabaseURL string
	Nodes       string // the file that describes the nodes; empty: the database
}

// NewCommandLine returns a command line on a new database.
func NewCommandLine(t *testing.T) CommandLine {
	return On(t, testdb.New(t))
}

// On returns a command line on a database.
func On(t *testing.T, databaseURL string) CommandLine {
	return CommandLine{T: t, DatabaseURL: databaseURL}
}

// OnNodes returns a command line on a cluster.
func OnNodes(t *testing.T, nodes ...cluster.Node) CommandLine {
	t.Helper()
	text, err := json.Marshal(map[string]any{"nodes": nodes})
	if err != nil {
		t.Fatal(err)
	}
	return CommandLine{T: t, Nodes: WriteFile(t, "nodes.json", string(text))}
}

// flags are those that select the database or the nodes.
func (c CommandLine) flags() []string {
	if c.Nodes != "" {
		return []string{"--nodes", c.Nodes}
	}
	return []string{"--database-url", c.DatabaseURL}
}

// Run runs a command.
func (c CommandLine) Run(arguments ...string) Outcome {
	return c.RunWithInput("", arguments...)
}

// RunWithInput runs a command that reads input.
func (c CommandLine) RunWithInput(input string, arguments ...string) Outcome {
	c.T.Helper()
	var out, messages bytes.Buffer
	code := Run(c.T.Context(), append(arguments, c.flags()...), strings.NewReader(input), &out, &messages)
	return Outcome{code, out.String(), messages.String()}
}

// RunBefore runs a command with the flags before the arguments, as the shell completion expects
// them.
func (c CommandLine) RunBefore(command string, arguments ...string) Outcome {
	c.T.Helper()
	var out, messages bytes.Buffer
	line := append(append([]string{command}, c.flags()...), arguments...)
	code := Run(c.T.Context(), line, strings.NewReader(""), &out, &messages)
	return Outcome{code, out.String(), messages.String()}
}

// Must runs a command that has to succeed and returns its output.
func (c CommandLine) Must(arguments ...string) string {
	c.T.Helper()
	result := c.Run(arguments...)
	if result.Code != cli.ExitOK {
		c.T.Fatalf("pgagui %s: exit code %d: %s", strings.Join(arguments, " "), result.Code, result.Messages)
	}
	return result.Out
}

// MustFail runs a command that has to fail with an exit code, and returns its error, which has to
// be one line.
func (c CommandLine) MustFail(code int, arguments ...string) string {
	c.T.Helper()
	result := c.Run(arguments...)
	if result.Code != code {
		c.T.Fatalf("pgagui %s: exit code %d, want %d; messages: %s", strings.Join(arguments, " "), result.Code, code, result.Messages)
	}
	text, ended := strings.CutSuffix(result.Messages, "\n")
	if !ended || text == "" || strings.Contains(text, "\n") {
		c.T.Errorf("pgagui %s: the error is not one line: %q", strings.Join(arguments, " "), result.Messages)
	}
	return text
}

// Parse runs a command that has to succeed with --json, and reads its result.
func Parse[Result any](c CommandLine, arguments ...string) Result {
	c.T.Helper()
	var result Result
	out := c.Must(append(arguments, "--json")...)
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		c.T.Fatalf("pgagui %s --json: %v in %s", strings.Join(arguments, " "), err, out)
	}
	return result
}

// Lines parses lines of JSON.
func Lines[Row any](t testing.TB, text string) (rows []Row) {
	t.Helper()
	for line := range strings.Lines(text) {
		var row Row
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		rows = append(rows, row)
	}
	return rows
}
