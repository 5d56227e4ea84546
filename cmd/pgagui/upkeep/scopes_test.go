package upkeep

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

// Commands for the database work on all scopes, commands that remove threads on one. They report
// the threads that they skip.
func TestWhichScopesACommandWorksOn(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	for _, scope := range []string{"mine", "yours"} {
		commands.Must("import", clitest.WriteFile(t, "chat.ndjson", clitest.Answer("t", "r", 1)...), "--scope", scope)
	}
	if got := clitest.Parse[verified](commands, "verify"); got.Threads != 2 {
		t.Errorf("verify: %+v", got)
	}
	if done := clitest.Parse[compactResult](commands, "job", "compact"); done.Runs != 2 {
		t.Errorf("compact: %+v", done)
	}
	for arguments, want := range map[string]clitest.Outcome{
		"verify --scope mine --json":                           {Code: cli.ExitOK, Out: `{"threads":1,`, Messages: ""},
		"verify --scope whose --json":                          {Code: cli.ExitOK, Out: `{"threads":0,`, Messages: "scope \"whose\": 2 threads of other scopes were not checked (use another --scope, or none to check all)\n"},
		"verify t":                                             {Code: cli.ExitRefused, Out: "", Messages: "thread \"t\" is unknown. A thread exists once a run of it has begun. Is it in another scope (--scope NAME)?\n"},
		"verify t --scope mine --json":                         {Code: cli.ExitOK, Out: `{"threads":1,`, Messages: ""},
		"erase --older-than 1us --dry-run":                     {Code: cli.ExitOK, Out: "would erase 0 threads", Messages: "scope \"\": 2 threads of other scopes were skipped (--scope NAME or --all-scopes includes them)\n"},
		"erase --older-than 1us --dry-run --scope mine --json": {Code: cli.ExitOK, Out: `{"threads":1,`, Messages: ""},
		"erase --older-than 1us --dry-run --all-scopes --json": {Code: cli.ExitOK, Out: `{"threads":2,`, Messages: ""},
		"erase --older-than 1us --all-scopes --scope mine":     {Code: cli.ExitUsage, Out: "", Messages: "exclude each other"},
		"job compact --scope mine":                             {Code: cli.ExitUsage, Out: "", Messages: "job works on the threads of all scopes, so it does not accept --scope"},
		"job reap --scope mine":                                {Code: cli.ExitUsage, Out: "", Messages: "job works on"},
		"job repack --scope mine":                              {Code: cli.ExitUsage, Out: "", Messages: "job works on"},
		"stats --scope mine":                                   {Code: cli.ExitUsage, Out: "", Messages: "stats works on"},
		"migrate down --yes --scope mine":                      {Code: cli.ExitUsage, Out: "", Messages: "down works on"},
		"worker --scope mine":                                  {Code: cli.ExitUsage, Out: "", Messages: "--erase"},
		"worker --erase @daily --erase-after 1d":               {Code: cli.ExitUsage, Out: "", Messages: "--scope and --all-scopes"},
	} {
		got := commands.Run(strings.Fields(arguments)...)
		if got.Code != want.Code || !strings.HasPrefix(got.Out, want.Out) || !strings.Contains(got.Messages, want.Messages) || want.Messages == "" && got.Messages != "" {
			t.Errorf("pgagui %s: %+v, want %+v", arguments, got, want)
		}
	}
	if text := commands.Must("help", "scopes"); !strings.Contains(text, "Which scopes a command works on:") {
		t.Errorf("help: %s", text)
	}
}
