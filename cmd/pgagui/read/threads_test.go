package read

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

// threadLines runs threads with --json and returns the thread ids.
func threadLines(c clitest.CommandLine, arguments ...string) (ids []string) {
	c.T.Helper()
	for _, thread := range clitest.Lines[pgagui.Thread](c.T, c.Must(append([]string{"threads", "--json"}, arguments...)...)) {
		ids = append(ids, thread.ID)
	}
	return ids
}

func TestThreads(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	for n := range 5 {
		thread := fmt.Sprint("thread-", n)
		withInput := fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":"r","input":{"messages":[{"role":"user","content":"Question \u001b[2J number %d"}]}}`, thread, n)
		commands.Must("import", clitest.WriteFile(t, "chat.ndjson", withInput, clitest.Finished))
	}
	commands.Must("import", clitest.WriteFile(t, "fails.ndjson", clitest.Started("thread-5", "r"), clitest.Failed))
	table := commands.Must("threads")
	for _, want := range []string{"THREAD", "thread-5  -", "thread-4  Question \\x1b[2J number 4", "failed", "finished"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	if strings.Index(table, "thread-5") > strings.Index(table, "thread-4") || strings.Contains(table, "\x1b") {
		t.Errorf("the table is\n%s", table)
	}

	// Page by page, and with --all.
	first := commands.Run("threads", "--limit", "4")
	_, cursor, found := strings.Cut(first.Messages, "--cursor ")
	cursor, _, _ = strings.Cut(cursor, ",")
	if !found || strings.Count(first.Out, "\n") != 5 {
		t.Errorf("the first page is\n%s%s", first.Out, first.Messages)
	}
	if got := commands.Run("threads", "--cursor", cursor, "--json"); strings.Count(got.Out, "\n") != 2 || got.Messages != "" {
		t.Errorf("the second page is\n%s%s", got.Out, got.Messages)
	}
	if all := threadLines(commands, "--all"); !slices.Equal(all, []string{"thread-5", "thread-4", "thread-3", "thread-2", "thread-1", "thread-0"}) {
		t.Errorf("all threads: %v", all)
	}

	commands.Must("threads", "set", "thread-1", "--title", "Set", "--agent", "planner", "--metadata", `{"folder":"trips"}`)
	commands.Must("threads", "set", "thread-2", "--archived")
	commands.Must("threads", "set", "empty", "--create", "--title", "Nothing yet")
	for arguments, want := range map[string]string{
		"--agent planner":                "thread-1",
		"--title number":                 "thread-4 thread-3 thread-0",
		"--title set":                    "thread-1",
		"--status failed":                "thread-5",
		"--status stale":                 "",
		"--archived":                     "thread-2",
		"--archived=any":                 "empty thread-5 thread-4 thread-3 thread-2 thread-1 thread-0",
		"--since 1h --limit 2":           "empty thread-5",
		`--metadata {"folder":"trips"}`:  "thread-1",
		"--since 2999-01-01T00:00:00Z":   "",
		"--scope nobody --archived=only": "",
	} {
		if got := strings.Join(threadLines(commands, strings.Fields(arguments)...), " "); got != want {
			t.Errorf("threads %s: %s, want %s", arguments, got, want)
		}
	}
	if set := commands.Must("threads", "set", "thread-2", "--archived=false"); !strings.Contains(set, "thread-2") || strings.Contains(set, "archived") {
		t.Errorf("threads set prints\n%s", set)
	}
	if empty := commands.Run("threads", "--scope", "nobody"); empty.Messages != "scope \"nobody\": 7 threads of other scopes are not listed\n" {
		t.Errorf("in another scope: %s%s", empty.Out, empty.Messages)
	}
	for arguments, code := range map[string]int{
		"threads thread-1":                     cli.ExitUsage,
		"threads --limit 0":                    cli.ExitUsage,
		"threads --limit 5 --all":              cli.ExitUsage,
		"threads --status lost":                cli.ExitUsage,
		"threads --archived=no":                cli.ExitUsage,
		"threads --metadata []":                cli.ExitUsage,
		"threads --since yesterday":            cli.ExitUsage,
		"threads --cursor 7":                   cli.ExitRefused,
		"threads set thread-1":                 cli.ExitUsage,
		"threads set --title x":                cli.ExitUsage,
		"threads set thread-1 --metadata null": cli.ExitUsage,
		"threads set unknown --title x":        cli.ExitRefused,
	} {
		commands.MustFail(code, strings.Fields(arguments)...)
	}
}
