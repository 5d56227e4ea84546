package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/hostile"
	"github.com/pgagui/pgagui/internal/testdb"
)

// No command calls functions or operators that others created in a schema of the search_path.
func TestCommandsLookUpNothingOnTheSearchPath(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	setLease(t, commands, "1")
	hostile.Plant(t, commands.databaseURL)
	pool := testdb.Connect(t, commands.databaseURL)
	commands.databaseURL = hostile.Address(commands.databaseURL)
	folder := t.TempDir()
	events := writeFile(t, "events.ndjson", append(answer("t", "r", 3), startedFrom("t", "s", "r"), textBegins, token(1))...)
	document := writeFile(t, "document.json", "{}")
	requests := filepath.Join(folder, "requests.ndjson")
	for _, line := range []string{
		"import " + events,
		"import --scope other " + events,
		"export t --requests " + requests, "export t --compact stream", "export t --compact snapshot",
		"history t", "log t", "log t --graph", "branches t", "status t", "status t --json", "stop t", "show t", "restore t", "restore t --at 2",
		"threads", "threads --all --title x", "threads set t --title x",
		"session put t k " + document, "session get t k", "session get t", "session ls t", "session rm t k",
		"follow t --run r", "follow t --run r --history snapshot",
		"compact --running --older-than 0s", "compact", "compact --retry", "repack --older-than 0s", "reap", "verify", "verify t", "verify --sample 1 --in-sql",
		"verify --repair", "stats", "stats --json", "doctor", "migrate status", "migrate up",
		"erase t --yes", "allow t", "erase --older-than 1us --all-scopes --yes", "threads",
		"__complete show t", "demo", "migrate down --yes",
	} {
		result := commands.run(strings.Fields(line)...)
		if result.code != exitOK && result.code != exitProblems || strings.Contains(result.messages, "HOSTILE") {
			t.Errorf("pgagui %s: exit code %d: %s", line, result.code, result.messages)
		}
	}
	if calls := hostile.Calls(t, pool); calls > 0 {
		t.Errorf("%d calls of planted functions", calls)
	}
}
