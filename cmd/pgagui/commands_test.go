package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/root"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestTablesDoNotActOnTheTerminal(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "red.ndjson",
		`{"type":"RUN_STARTED","threadId":"t","runId":"r\u001b[2J","input":{"messages":[{"role":"user","content":"\u001b[31mred\u202e"}]}}`, clitest.Finished))
	for _, arguments := range []string{"log t", "log t --graph", "log t --branches", "show t --status"} {
		out := commands.Must(strings.Fields(arguments)...)
		if strings.ContainsAny(out, "\x1b\u202e") || !strings.Contains(out, `r\x1b[2J`) {
			t.Errorf("%s: %q", arguments, out)
		}
	}
}

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	installed, empty := clitest.NewCommandLine(t), clitest.On(t, testdb.Empty(t))
	nowhere := clitest.On(t, "postgres://nobody@127.0.0.1:1/nothing")
	clitest.ImportTree(t, installed)
	tests := []struct {
		commands  clitest.CommandLine
		arguments string
		code      int
		saying    string
	}{
		{installed, "log nobody", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "log nobody --graph", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "log nobody --branches", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "events nobody", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "show nobody", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "show t --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "show t --at 0", cli.ExitUsage, "--at 0: not a seq (the first event of a thread has seq 1)"},
		{installed, "show", cli.ExitUsage, "one thread"},
		{installed, "show nobody --document", cli.ExitRefused, `A thread exists once a run of it has begun`},
		{installed, "verify nobody", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "show nobody --status", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "stop nobody", cli.ExitRefused, `thread "nobody" is unknown`},
		{installed, "show t --status --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "stop t --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "stop", cli.ExitUsage, "one thread"},
		{installed, "show t --document --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "events t --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "diff t --from r9", cli.ExitRefused, "pgagui log THREAD lists the runs"},
		{installed, "search tides", cli.ExitRefused, "pgagui search --enable LANGUAGE turns it on"},
		{installed, "sho t", cli.ExitUsage, "show"},
		{installed, "verify t --print-heads", cli.ExitUsage, "expected no thread, got 1 thread"},
		{installed, "migrate t", cli.ExitUsage, `unknown command "t"`},
		{installed, "help nothere", cli.ExitUsage, `there is no command or help topic "nothere" (see: pgagui --help)`},
		{installed, "help webhook nothere", cli.ExitUsage, `there is no command or help topic "webhook nothere"`},
		{installed, "feed --after x", cli.ExitRefused, `"x" is not a position. Use the position of an earlier row (pgagui feed: of a line); without`},
		{installed, "feed consumers move c x", cli.ExitRefused, `"x" is not a position. Use the position of an earlier row (pgagui feed: of a line); without`},
		{installed, "webhook failures nothere", cli.ExitRefused, `there is no webhook "nothere" (pgagui webhook ls lists them)`},
		{installed, "webhook failures nothere --retry", cli.ExitRefused, `there is no webhook "nothere"`},
		{installed, "webhook failures nothere --drop", cli.ExitRefused, `there is no webhook "nothere"`},
		{installed, "webhook add crm", cli.ExitUsage, "expected NAME URL, got 1 argument"},
		{installed, "archive", cli.ExitUsage, "expected DIRECTORY [THREAD…], got 0 arguments"},
		{installed, "threads --limit x", cli.ExitUsage, "--limit x: expected a number (see"},
		{installed, "job compact --max-time x", cli.ExitUsage, "--max-time x: expected a duration such as 50s or 2h (see"},
		{installed, "migrate sql --from x", cli.ExitUsage, "--from x: expected a number (see"},
		{installed, "retention set erase 90x --all-scopes", cli.ExitRefused, `"90x" is not a duration (expected for example 90d, 12h or "1 year", or never)`},
		{installed, "job compact --older-than x", cli.ExitUsage, "--older-than x: expected a duration such as 30m, 12h or 7d (see"},
		{installed, "job compact --repack=x", cli.ExitUsage, "--repack x: expected true or false (see"},
		{installed, "show", cli.ExitUsage, "pgagui show --help"},
		{installed, "show t --nope", cli.ExitUsage, "--nope"},
		{installed, "log t u", cli.ExitUsage, "one thread"},
		{installed, "import", cli.ExitUsage, "pgagui import --help"},
		{installed, "migrate", cli.ExitUsage, "up, down, status or sql"},
		{empty, "log t", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "events t", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "log t --branches", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "show t", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "job compact", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "job reap", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "show t --status", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "stop t", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "verify", cli.ExitUnavailable, "pgagui migrate up"},
		{empty, "import ../../testdata/recordings/weather-tools.ndjson", cli.ExitUnavailable, "pgagui migrate up"},
		{nowhere, "log t", cli.ExitUnavailable, "--database-url"},
		{nowhere, "migrate status", cli.ExitUnavailable, "--database-url"},
		{nowhere, "migrate up", cli.ExitUnavailable, "--database-url"},
		{clitest.On(t, installed.DatabaseURL+"&nonsense=x"), "log t", cli.ExitUnavailable, `unrecognized configuration parameter "nonsense" (SQLSTATE 42704) (--database-url`},
		{clitest.On(t, installed.DatabaseURL+"&default_transaction_read_only=on"), "stop t", cli.ExitRefused, "(SQLSTATE 25006): the database is a standby, or was made read-only: use the address of the primary"},
		{clitest.On(t, "nonsense"), "log t", cli.ExitUnavailable, "--database-url"},
	}
	for _, test := range tests {
		if message := test.commands.MustFail(test.code, strings.Fields(test.arguments)...); !strings.Contains(message, test.saying) {
			t.Errorf("pgagui %s: %s, which does not say %q", test.arguments, message, test.saying)
		}
	}
}

// A driver tries an address with TLS and without. The failures of both are one.
func TestAFailureIsSaidOnce(t *testing.T) {
	t.Parallel()
	message := clitest.On(t, "postgres://nobody@127.0.0.1:1/nothing").MustFail(cli.ExitUnavailable, "threads")
	if strings.Count(message, "connection refused") != 1 {
		t.Errorf("message: %s", message)
	}
}

func TestNothingFoundIsSaid(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	for _, test := range []struct{ arguments, saying string }{
		{"events --page t --type NO_SUCH_TYPE", "no event matches"},
		{"search --enable english", "search is on: pgagui job project, or the worker, indexes"},
		{"search nothing", "no message matches"},
	} {
		if got := commands.Run(strings.Fields(test.arguments)...); got.Code != cli.ExitOK || !strings.Contains(got.Messages, test.saying) {
			t.Errorf("pgagui %s: %+v", test.arguments, got)
		}
	}
}

// What is wrong with the description of a cluster says nothing of the address of a database.
func TestADescriptionOfNodesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for text, test := range map[string]struct {
		code           int
		saying, hiding string
	}{
		`{"nodes":`: {cli.ExitInput, "unexpected EOF", "--database-url"},
		`{"nodes": [{"name": "a", "url": "postgres://nobody@127.0.0.1:1/nothing"}]}`: {cli.ExitUnavailable, `node "a": failed to connect`, "--database-url"},
	} {
		commands := clitest.CommandLine{T: t, Nodes: clitest.WriteFile(t, "nodes.json", text)}
		if message := commands.MustFail(test.code, "cluster", "rebalance"); !strings.Contains(message, test.saying) || strings.Contains(message, test.hiding) {
			t.Errorf("%s: %s", text, message)
		}
	}
	empty := clitest.OnNodes(t, cluster.Node{Name: "a", URL: testdb.Empty(t)})
	if message := empty.MustFail(cli.ExitUnavailable, "cluster", "init"); !strings.Contains(message, "pgagui cluster migrate") {
		t.Errorf("no schema: %s", message)
	}
	away := clitest.OnNodes(t, cluster.Node{Name: "a", URL: "postgres://nobody@127.0.0.1:1/nothing"})
	if got := away.Run("cluster", "status"); got.Code != cli.ExitUnavailable ||
		strings.Contains(got.Out, `\n`) || strings.Count(got.Out, "connection refused") != 1 {
		t.Errorf("status: %+v", got)
	}
}

func TestALostConnectionIsNoRefusal(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	// The first append of the import triggers it.
	testdb.Exec(t, pool, `
		create function public.hang_up() returns trigger language plpgsql as 'begin perform pg_terminate_backend(pg_backend_pid()); return new; end';
		create trigger hang_up before insert on agui.run for each row execute function public.hang_up()`)
	commands.MustFail(cli.ExitUnavailable, "import", clitest.WriteFile(t, "chat.ndjson", clitest.Answer("t", "r", 1)...))
}

func TestHelpAndVersionNeedNoDatabase(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, "postgres://nobody@127.0.0.1:1/nothing")
	if got := clitest.Parse[struct{ Version, Go string }](commands, "version"); got.Version == "" || got.Go == "" {
		t.Errorf("version: %+v", got)
	}
	if out := commands.Must("version"); !strings.HasPrefix(out, "pgagui ") {
		t.Errorf("version: %s", out)
	}
	if out := commands.Must("--version"); !strings.HasPrefix(out, "pgagui ") {
		t.Errorf("--version: %s", out)
	}
	if out := commands.Must("help", "exit-codes"); !strings.Contains(out, "    6   a job left work") {
		t.Errorf("help exit-codes: %s", out)
	}
	if out := commands.Must(); !strings.Contains(out, "pgagui demo") {
		t.Errorf("without arguments: %s", out)
	}
}

// Every command has a one-line summary, a description and an example, and its help fits on a
// terminal of helpWidth columns.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	var check func(command *cobra.Command)
	check = func(command *cobra.Command) {
		for _, child := range command.Commands() {
			if child.Deprecated == "" && !child.Hidden { // no old name
				check(child)
			}
		}
		path := command.CommandPath()
		isTopic := !command.Runnable()
		if command.Short == "" || strings.HasSuffix(command.Short, ".") || command.Long == "" || command.Example == "" && !isTopic {
			t.Errorf("%s: the help has no summary, description or example", path)
		}
		arguments := append(strings.Fields(path)[1:], "--help")
		if isTopic {
			arguments = append([]string{"help"}, strings.Fields(path)[1:]...)
		}
		for line := range strings.Lines(clitest.On(t, "").Must(arguments...)) {
			if columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > cli.HelpWidth {
				t.Errorf("%s: a line of the help has %d columns, want %d at most: %s", path, columns, cli.HelpWidth, line)
			}
		}
	}
	check(root.Command(&cli.Program{}))
}

func TestDatabaseURLFile(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "address", commands.DatabaseURL)
	command := func(arguments ...string) (int, string) {
		var out, messages bytes.Buffer
		code := clitest.Run(t.Context(), arguments, strings.NewReader(""), &out, &messages)
		return code, out.String() + messages.String()
	}
	if code, text := command("stats", "--database-url-file", file); code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, text)
	}
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no file":         {[]string{"stats", "--database-url-file", file + "x"}, "no such file"},
		"an empty one":    {[]string{"stats", "--database-url-file", os.DevNull}, "only line"},
		"two lines":       {[]string{"stats", "--database-url-file", clitest.WriteFile(t, "two", "postgres://u:s3cret@h", "x")}, "only line"},
		"two addresses":   {[]string{"stats", "--database-url-file", file, "--database-url", "x"}, "none of the others can be"},
		"no address":      {[]string{"stats", "--database-url-file", clitest.WriteFile(t, "bad", "postgres://u:s3cret@h:port/db")}, "cannot be read: invalid port"},
		"what is no flag": {[]string{"stats", "--database-url-file"}, "flag needs an argument"},
	} {
		if code, text := command(test.arguments...); code == cli.ExitOK || !strings.Contains(text, test.want) || strings.Contains(text, "s3cret") {
			t.Errorf("%s: exit code %d: %s", name, code, text)
		}
	}
}

// An address that cannot be parsed may contain a password.
func TestMessagesHoldNoPassword(t *testing.T) {
	for _, address := range []string{
		"host=127.0.0.1 port=1 password = s3cret bogus", "postgres://u:s3cret%zz@h/db", "postgres://u:33/s3cret@h/db", "postgres://u:s3cret@127.0.0.1:1/db", "user=u password='s3cret",
	} {
		for _, line := range []string{"stats", "migrate up", "migrate status", "migrate down --yes", "doctor", "demo", "__complete show t", "worker --compact @hourly", "stats --help",
			"serve --insecure", "serve --insecure --check", "serve --help"} {
			var out, messages bytes.Buffer
			t.Setenv("DATABASE_URL", address)
			if clitest.Run(t.Context(), strings.Fields(line), strings.NewReader(""), &out, &messages); strings.Contains(out.String()+messages.String(), "s3cret") {
				t.Errorf("pgagui %s, %s: %s%s", line, address, &out, &messages)
			}
		}
		var out, messages bytes.Buffer
		t.Setenv("PGAGUI_LIVE_DATABASE_URL", address)
		line := []string{"serve", "--insecure", "--check", "--database-url", "postgres://127.0.0.1:1/db"}
		if clitest.Run(t.Context(), line, strings.NewReader(""), &out, &messages); strings.Contains(out.String()+messages.String(), "s3cret") {
			t.Errorf("the second address %s: %s%s", address, &out, &messages)
		}
	}
}
