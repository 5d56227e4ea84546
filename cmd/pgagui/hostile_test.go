package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/hostile"
	"github.com/pgagui/pgagui/internal/testdb"
)

// No command calls functions or operators that others created in a schema of the search_path.
func TestCommandsLookUpNothingOnTheSearchPath(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.SetLease(t, commands, "1")
	hostile.Plant(t, commands.DatabaseURL)
	pool := testdb.Connect(t, commands.DatabaseURL)
	commands.DatabaseURL = hostile.Address(commands.DatabaseURL)
	folder := t.TempDir()
	events := clitest.WriteFile(t, "events.ndjson", append(clitest.Answer("t", "r", 3), clitest.StartedFrom("t", "s", "r"), clitest.TextBegins, clitest.Token(1))...)
	document := clitest.WriteFile(t, "document.json", "{}")
	requests := filepath.Join(folder, "requests.ndjson")
	for _, line := range []string{
		"import " + events,
		"import --scope other " + events,
		"events t --requests " + requests, "events t --compact stream", "events t --compact snapshot",
		"events t --page", "log t", "log t --graph", "log t --branches", "show t --status", "show t --status --json", "stop t", "show t", "show t --document", "show t --document --at 2",
		"threads", "threads --all --title x", "threads set t --title x",
		"session put t k " + document, "session get t k", "session get t", "session ls t", "session rm t k",
		"events t --follow --run r", "events --follow t --run r --compact snapshot",
		"job compact --running --older-than 0s", "job compact", "job compact --retry", "job repack --older-than 0s", "job reap", "verify", "verify t", "verify --sample 1 --in-sql",
		"verify --repair", "stats", "stats --json", "doctor", "migrate status", "migrate up",
		"erase t --yes", "retention allow t", "erase --older-than 1us --all-scopes --yes", "threads",
		"__complete show t", "demo", "migrate down --yes",
	} {
		result := commands.Run(strings.Fields(line)...)
		if result.Code != cli.ExitOK && result.Code != cli.ExitProblems || strings.Contains(result.Messages, "HOSTILE") {
			t.Errorf("pgagui %s: exit code %d: %s", line, result.Code, result.Messages)
		}
	}
	if calls := hostile.Calls(t, pool); calls > 0 {
		t.Errorf("%d calls of planted functions", calls)
	}
}
