package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/root"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/pooler"
	"github.com/pgagui/pgagui/internal/testdb"
)

// throughPooler returns a command line on a new database, with the plain address of a PgBouncer in transaction mode.
func throughPooler(t *testing.T) (through, direct clitest.CommandLine) {
	t.Helper()
	direct = clitest.NewCommandLine(t)
	return clitest.On(t, pooler.Start(t, direct.DatabaseURL)), direct
}

// Each command that uses the database works through PgBouncer with an address that says nothing of it.
func TestEveryCommandThroughAPooler(t *testing.T) {
	t.Parallel()
	commands, direct := throughPooler(t)
	events := clitest.WriteFile(t, "events.ndjson", append(clitest.Answer("t", "r", 3), append(clitest.Answer("t", "r2", 3), clitest.Answer("u", "r", 2)...)...)...)
	document := clitest.WriteFile(t, "document.json", "{}")
	archive := filepath.Join(t.TempDir(), "threads.archive")
	lines := []string{
		"import " + events, "import --scope other " + events,
		"events t", "events t --compact stream", "events --all",
		"events t --page", "log t", "log t --branches", "show t --status", "show t", "show t --document", "show t --document --at 2", "diff t --from r", "show t --subagents", "waiting",
		"log --all-threads", "threads", "threads --all --title x", "threads set t --title x", "show t --usage", "report", "stats", "verify --print-heads",
		"session put t k " + document, "session get t k", "session ls t", "session rm t k",
		"events t --follow --run r", "events --follow t --run r --compact snapshot", "stop t",
		"feed", "feed --consumer warehouse --events", "feed consumers", "feed consumers move warehouse", "feed consumers rm warehouse",
		"job compact --running --older-than 0s", "job compact", "job repack --older-than 0s", "job project", "job reap", "verify", "verify --sample 1 --in-sql", "verify --repair",
		"search --enable english", "project", "search token",
		"retention hold t --reason case", "retention hold", "retention hold t --lift",
		"retention set erase 365d --all-scopes", "retention ls", "retention apply --dry-run", "retention apply --yes", "retention rm erase --all-scopes",
		"webhook add crm http://127.0.0.1:1/ --all-scopes", "webhook ls", "webhook failures", "webhook failures crm --retry", "webhook set crm --enabled=false", "webhook set crm --enabled",
		"webhook rotate crm", "webhook failures crm --drop", "webhook take-over", "webhook rm crm",
		"archive " + archive + " u", "erase u --yes", "retention allow u", "unarchive " + archive,
		"erase --older-than 1us --all-scopes --dry-run", "doctor", "migrate status",
	}
	for _, line := range lines {
		result := commands.Run(strings.Fields(line)...)
		if result.Code != cli.ExitOK && !(line == "doctor" && result.Code == cli.ExitProblems) {
			t.Errorf("pgagui %s: exit code %d: %s%s", line, result.Code, result.Out, result.Messages)
		}
	}
	needSession := []string{"migrate up", "migrate down --yes", "demo"} // their lock is that of a session
	for _, line := range needSession {
		if got := commands.Run(strings.Fields(line)...); got.Code != cli.ExitUnavailable || !strings.Contains(got.Messages, "use the address of the server itself") {
			t.Errorf("pgagui %s: %+v", line, got)
		}
	}
	direct.Must("migrate", "up")

	// Those that run until they are stopped, use no database, or send what a test of their own receives, and those of a cluster.
	elsewhere := []string{"cluster", "serve", "worker", "explore", "dev", "token", "version", "help", "completion", "migrate sql", "webhook test"}
	var check func(command *cobra.Command)
	check = func(command *cobra.Command) {
		path := strings.TrimPrefix(command.CommandPath(), "pgagui ")
		for _, child := range command.Commands() {
			check(child)
		}
		isRun := func(line string) bool { return line == path || strings.HasPrefix(line, path+" ") }
		isElsewhere := func(other string) bool { return path == other || strings.HasPrefix(path, other+" ") }
		if command.Runnable() && command.IsAvailableCommand() && !command.HasSubCommands() && !slices.ContainsFunc(append(lines, needSession...), isRun) && !slices.ContainsFunc(elsewhere, isElsewhere) {
			t.Errorf("pgagui %s is not tested through a pooler", path)
		}
	}
	check(root.Command(&cli.Program{}))
}

func TestServeAndWorkerThroughAPooler(t *testing.T) {
	t.Parallel()
	commands, _ := throughPooler(t)
	s := commands.Serve("--insecure", "--agent", "assistant="+clitest.NewSample(t), "--worker")
	const runs = 25
	var group errgroup.Group
	for n := range runs {
		thread := fmt.Sprint("t", n)
		group.Go(func() error {
			answer, text := s.Request(http.DefaultClient, "", "POST", "/agent/assistant/run", clitest.RunInput(thread, "r", "Hello"))
			if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"RUN_FINISHED"`) {
				return fmt.Errorf("%s: %s %s", thread, answer.Status, text)
			}
			followed := commands.Run("events", "--follow", thread, "--run", "r", "--json")
			if followed.Code != cli.ExitOK || !strings.Contains(followed.Out, `"RUN_FINISHED"`) {
				return fmt.Errorf("follow %s: %d %s", thread, followed.Code, followed.Messages)
			}
			answer, text = s.Request(http.DefaultClient, "", "GET", "/threads/"+thread+"/messages", "")
			var reloaded struct{ Messages []json.RawMessage }
			if err := json.Unmarshal([]byte(text), &reloaded); err != nil || answer.StatusCode != http.StatusOK || len(reloaded.Messages) < 2 {
				return fmt.Errorf("messages of %s: %s %s", thread, answer.Status, text)
			}
			return nil
		})
	}
	must.Report(t, group.Wait())
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("serve: exit code %d: %s", code, s.Log)
	}

	worker := commands.Start("worker", "--json", "--compact", "@every 1s")
	worker.WaitForLine(t, `"job":"compact"`)
	worker.Terminate(t)
	if code := worker.End(t); code != cli.ExitOK {
		t.Errorf("worker: exit code %d: %s", code, worker.Log)
	}
}

// The nodes of a cluster may be reached through poolers, except by moves, which hold locks.
func TestAMoveRefusesAPooler(t *testing.T) {
	t.Parallel()
	nodes := []cluster.Node{{Name: "a", URL: testdb.New(t)}, {Name: "b", URL: testdb.New(t)}}
	clitest.OnNodes(t, nodes...).Must("cluster", "init")
	for i, node := range nodes {
		nodes[i].URL = pooler.Start(t, node.URL)
	}
	commands := clitest.OnNodes(t, nodes...)
	commands.Must("cluster", "status")
	commands.Must("threads")
	if message := commands.MustFail(cli.ExitUnavailable, "cluster", "move", "0-3", "--to", "b"); !strings.Contains(message, "use the address of the server itself") {
		t.Error(message)
	}
}

// Under row-level security a role that is mapped as a pool needs no setting of its session.
func TestTheFlagNamesTheScopeThroughAPooler(t *testing.T) {
	t.Parallel()
	database := testdb.New(t)
	owner := testdb.Connect(t, database)
	testdb.Exec(t, owner, `call agui.enable_row_security()`)
	role := testdb.Role(t, owner, "pool", "agui_writer", `select agui.map_pool('%s')`)
	commands := clitest.On(t, pooler.Start(t, testdb.As(t, database, role)))
	commands.Must("import", "--scope", "a", clitest.WriteFile(t, "events.ndjson", clitest.Answer("t", "r", 3)...))
	for _, line := range []string{"threads", "show t", "log t", "log --all-threads", "show t --status", "events t --page", "show t --document", "events t", "events t --follow --run r", "report"} {
		if got := commands.Run(append(strings.Fields(line), "--scope", "a")...); got.Code != cli.ExitOK || got.Out == "" {
			t.Errorf("pgagui %s: %+v", line, got)
		}
	}
	for _, line := range []string{"threads", "threads --scope b"} {
		if got := commands.Run(strings.Fields(line)...); strings.Contains(got.Out, "token") || strings.Contains(got.Out, "finished") {
			t.Errorf("pgagui %s: %+v", line, got)
		}
	}
	commands.DatabaseURL += "&options=-c%20agui.scope%3Da"
	if message := commands.MustFail(cli.ExitUnavailable, "threads"); !strings.Contains(message, "--scope sets agui.scope") {
		t.Error(message)
	}
}
