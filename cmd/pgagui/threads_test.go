package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
)

// threadLines runs threads with --json and returns the thread ids.
func threadLines(c commandLine, arguments ...string) (ids []string) {
	c.t.Helper()
	for line := range strings.Lines(c.must(append([]string{"threads", "--json"}, arguments...)...)) {
		var thread pgagui.Thread
		if err := json.Unmarshal([]byte(line), &thread); err != nil {
			c.t.Fatal(err)
		}
		ids = append(ids, thread.ID)
	}
	return ids
}

func TestThreads(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	for n := range 5 {
		thread := fmt.Sprint("thread-", n)
		withInput := fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":"r","input":{"messages":[{"role":"user","content":"Question \u001b[2J number %d"}]}}`, thread, n)
		commands.must("import", writeFile(t, "chat.ndjson", withInput, finished))
	}
	commands.must("import", writeFile(t, "fails.ndjson", started("thread-5", "r"), failed))
	table := commands.must("threads")
	for _, want := range []string{"THREAD", "thread-5  -", "thread-4  Question \\x1b[2J number 4", "failed", "finished"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	if strings.Index(table, "thread-5") > strings.Index(table, "thread-4") || strings.Contains(table, "\x1b") {
		t.Errorf("the table is\n%s", table)
	}

	// Page by page, and with --all.
	first := commands.run("threads", "--limit", "4")
	_, cursor, found := strings.Cut(first.messages, "--cursor ")
	cursor, _, _ = strings.Cut(cursor, ",")
	if !found || strings.Count(first.out, "\n") != 5 {
		t.Errorf("the first page is\n%s%s", first.out, first.messages)
	}
	if got := commands.run("threads", "--cursor", cursor, "--json"); strings.Count(got.out, "\n") != 2 || got.messages != "" {
		t.Errorf("the second page is\n%s%s", got.out, got.messages)
	}
	if all := threadLines(commands, "--all"); !slices.Equal(all, []string{"thread-5", "thread-4", "thread-3", "thread-2", "thread-1", "thread-0"}) {
		t.Errorf("all threads: %v", all)
	}

	commands.must("threads", "set", "thread-1", "--title", "Set", "--agent", "planner", "--metadata", `{"folder":"trips"}`)
	commands.must("threads", "set", "thread-2", "--archived")
	commands.must("threads", "set", "empty", "--create", "--title", "Nothing yet")
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
	if set := commands.must("threads", "set", "thread-2", "--archived=false"); !strings.Contains(set, "thread-2") || strings.Contains(set, "archived") {
		t.Errorf("threads set prints\n%s", set)
	}
	if empty := commands.run("threads", "--scope", "nobody"); empty.messages != "scope \"nobody\": 7 threads of other scopes are not listed\n" {
		t.Errorf("in another scope: %s%s", empty.out, empty.messages)
	}
	for arguments, code := range map[string]int{
		"threads thread-1":                     exitUsage,
		"threads --limit 0":                    exitUsage,
		"threads --limit 5 --all":              exitUsage,
		"threads --status lost":                exitUsage,
		"threads --archived=no":                exitUsage,
		"threads --metadata []":                exitUsage,
		"threads --since yesterday":            exitUsage,
		"threads --cursor 7":                   exitRefused,
		"threads set thread-1":                 exitUsage,
		"threads set --title x":                exitUsage,
		"threads set thread-1 --metadata null": exitUsage,
		"threads set unknown --title x":        exitRefused,
	} {
		commands.mustFail(code, strings.Fields(arguments)...)
	}
}

func TestImportNamesItsThreads(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	var lines []string
	for n := range 22 {
		lines = append(lines, started(fmt.Sprint("thread-", n), "r"), finished)
	}
	file := writeFile(t, "chats.ndjson", lines...)
	out := strings.Split(strings.TrimSpace(commands.must("import", file)), "\n")
	if len(out) != 23 || out[1] != "thread-0   1     2       2" || out[20] != "thread-19  1     2       2" ||
		out[21] != "… and 2 more (pgagui threads lists them)" || !strings.HasPrefix(out[22], "22 threads, 22 runs, 44 events, ") {
		t.Errorf("import prints\n%s", strings.Join(out, "\n"))
	}
	result := parse[imported](commands, "import", file)
	if len(result.Threads) != 22 || result.Threads[21].ThreadID != "thread-21" {
		t.Errorf("import --json: %+v", result)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	commands.must("import", writeFile(t, "old.ndjson", started("old", "r1"), finished, started("old", "r2"), failed))
	commands.must("import", writeFile(t, "trip.ndjson",
		`{"type":"RUN_STARTED","threadId":"trip","runId":"a","input":{"messages":["Plan\ta trip"]}}`, finished))
	commands.must("import", writeFile(t, "scoped.ndjson", started("scoped", "r"), finished), "--scope", "ann")
	commands.must("threads", "set", "line\nend", "--create", "--title", "x")
	offered := func(arguments ...string) string {
		t.Helper()
		result := commands.runBefore("__complete", arguments...)
		lines := strings.Split(strings.TrimSpace(result.out), "\n")
		if result.code != exitOK || !strings.HasPrefix(lines[len(lines)-1], ":") {
			t.Errorf("%v: exit code %d, %s%s", arguments, result.code, result.out, result.messages)
		}
		return strings.Join(lines[:len(lines)-1], "|")
	}
	const both = "trip\tPlan a trip|old"
	for _, completion := range []struct{ line, want string }{
		{"show ,", both}, {"show tr,", "trip\tPlan a trip"}, {"show x,", ""}, {"show trip ,", ""},
		{"log ,", both}, {"branches ,", both}, {"export ,", both}, {"follow ,", both}, {"history ,", both}, {"restore ,", both}, {"status ,", both},
		{"stop ,", both}, {"allow ,", both}, {"session get ,", both}, {"session put ,", both}, {"session ls ,", both}, {"session rm ,", both},
		{"threads set ,", both}, {"verify ,", both}, {"verify trip ,", "old"}, {"erase old ,", "trip\tPlan a trip"},
		{"import --thread ,", both}, {"show --scope ann ,", "scoped"},
		{"session put trip key ,", ""}, {"threads --status ,", "running|stale|finished|failed"},
	} {
		line := strings.Fields(completion.line)
		last := len(line) - 1
		line[last] = strings.TrimSuffix(line[last], ",")
		if got := offered(line...); got != completion.want {
			t.Errorf("%s offers %q, want %q", completion.line, got, completion.want)
		}
	}
	for _, command := range []string{"show", "export", "follow", "history", "restore", "status", "stop", "session get"} {
		got := strings.Split(offered(append(strings.Fields(command), "old", "--run", "")...), "|")
		if len(got) != 2 || !strings.HasPrefix(got[0], "r2\tfailed, started ") || !strings.HasPrefix(got[1], "r1\tfinished, started ") {
			t.Errorf("%s old --run offers %q", command, got)
		}
	}
	if got := offered("show", "--run", ""); got != "" {
		t.Errorf("without a thread --run offers %q", got)
	}
	commands.databaseURL = "postgres://localhost:1/none"
	if got := offered("show", ""); got != "" {
		t.Errorf("without a database show offers %q", got)
	}
}
