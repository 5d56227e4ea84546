package upkeep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

// importOld imports a thread whose events are days old.
func importOld(t *testing.T, commands clitest.CommandLine, thread string, days int, flags ...string) {
	t.Helper()
	at := time.Now().AddDate(0, 0, -days).UnixMilli()
	file := clitest.WriteFile(t, "old.ndjson", fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"%s","runId":"r","timestamp":%d}`, thread, at), `{"type":"RUN_FINISHED"}`)
	commands.Must(append([]string{"import", file}, flags...)...)
}

func TestRulesOfRetentionAreSetPlannedAndObeyed(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	importOld(t, commands, "quiet", 100)
	importOld(t, commands, "old", 400)
	importOld(t, commands, "held", 400)
	importOld(t, commands, "old", 400, "--scope", "acme")
	expect := func(want string, arguments ...string) {
		t.Helper()
		if got := commands.Must(arguments...); !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("pgagui %s prints\n%s\nwant %s", strings.Join(arguments, " "), got, want)
		}
	}
	expect("there are no rules", "retention", "ls")
	expect("no thread is due", "retention", "apply", "--dry-run")
	expect(`erase after 365d, all scopes`, "retention", "set", "erase", "365d", "--all-scopes")
	expect(`archive after 90d, ""`, "retention", "set", "archive", "90d", "--scope", "")
	expect(`erase after never, "acme"`, "retention", "set", "erase", "never", "--scope", "acme")
	expect(`remove_checkpoints after 1 year, "acme"`, "retention", "set", "remove_checkpoints", "1 year", "--scope", "acme")
	expect(`archive 90 days ""`, "retention", "ls")
	expect(`erase 365 days all scopes`, "retention", "ls")
	expect(`erase never "acme"`, "retention", "ls")
	for _, wrong := range [][]string{
		{"retention"}, {"retention", "set", "erase", "1d"}, {"retention", "set", "erase", "1d", "--scope", "a", "--all-scopes"}, {"retention", "set", "erase"},
		{"retention", "apply", "--yes", "--limit", "-1"}, {"retention", "apply", "--dry-run", "--scope", "a"}, {"hold"}, {"retention", "hold", "old"},
	} {
		commands.MustFail(cli.ExitUsage, wrong...)
	}
	if text := commands.MustFail(cli.ExitRefused, "retention", "set", "forget", "1d", "--all-scopes"); !strings.Contains(text, `"forget" is no action of retention`) {
		t.Error(text)
	}
	commands.MustFail(cli.ExitRefused, "retention", "set", "erase", "0s", "--all-scopes")
	commands.MustFail(cli.ExitRefused, "retention", "set", "erase", "a while", "--all-scopes")

	expect("thread held is held", "retention", "hold", "held", "--reason", "case 4711")
	expect("case 4711", "retention", "hold")
	if text := commands.MustFail(cli.ExitRefused, "erase", "held", "--yes"); !strings.Contains(text, `thread "held" is held since`) || !strings.Contains(text, "case 4711") {
		t.Error(text)
	}
	expect("erase 365 days all scopes 1 2", "retention", "apply", "--dry-run")
	expect("erase thread held, 2 events, last active", "retention", "apply", "--dry-run", "--threads")
	expect("not done: it is held", "retention", "apply", "--dry-run", "--threads")
	if lines := commands.Must("retention", "apply", "--dry-run", "--threads", "--json"); strings.Count(lines, "\n") != 4 || !strings.Contains(lines, `"keptBecause":"held"`) {
		t.Errorf("the plan as JSON: %s", lines)
	}
	if code := commands.Run("retention", "apply").Code; code != cli.ExitUsage {
		t.Errorf("without a confirmation: exit code %d", code)
	}
	if code := commands.Run("retention", "apply", "--yes", "--limit", "1").Code; code != cli.ExitWorkLeft {
		t.Errorf("with a limit: exit code %d", code)
	}

	// The worker does the rest.
	worker := commands.Start("worker", "--retain", "@every 1s", "--compact", "off", "--reap", "off", "--repack", "off", "--verify", "off", "--json")
	worker.WaitForLine(t, `"msg":"job done","job":"retain"`)
	worker.Terminate(t)
	if code := worker.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, worker.Log)
	}
	expect("erase 365 days all scopes 0 0 0 B 1 0 done in", "retention", "apply", "--yes", "--limit", "100")
	if threads := commands.Must("threads", "--archived=only", "--json"); strings.Count(threads, "\n") != 2 || !strings.Contains(threads, `"held"`) || !strings.Contains(threads, `"quiet"`) {
		t.Errorf("archived: %s", threads)
	}
	if threads := commands.Must("threads", "--scope", "acme", "--json"); strings.Count(threads, "\n") != 1 {
		t.Errorf("of the exempt scope: %s", threads)
	}
	expect("thread held is not held any more", "retention", "hold", "--lift", "held")
	expect("nothing to lift", "retention", "hold", "--lift", "held")
	expect("removed: erase, all scopes", "retention", "rm", "erase", "--all-scopes")
	expect("nothing to remove", "retention", "rm", "erase", "--all-scopes")
}
