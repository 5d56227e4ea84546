package main

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "old.ndjson", clitest.Started("old", "r1"), clitest.Finished, clitest.Started("old", "r2"), clitest.Failed))
	commands.Must("import", clitest.WriteFile(t, "trip.ndjson",
		`{"type":"RUN_STARTED","threadId":"trip","runId":"a","input":{"messages":["Plan\ta trip"]}}`, clitest.Finished))
	commands.Must("import", clitest.WriteFile(t, "scoped.ndjson", clitest.Started("scoped", "r"), clitest.Finished), "--scope", "ann")
	commands.Must("threads", "set", "line\nend", "--create", "--title", "x")
	offered := func(arguments ...string) string {
		t.Helper()
		result := commands.RunBefore("__complete", arguments...)
		lines := strings.Split(strings.TrimSpace(result.Out), "\n")
		if result.Code != cli.ExitOK || !strings.HasPrefix(lines[len(lines)-1], ":") {
			t.Errorf("%v: exit code %d, %s%s", arguments, result.Code, result.Out, result.Messages)
		}
		return strings.Join(lines[:len(lines)-1], "|")
	}
	const both = "trip\tPlan a trip|old"
	for _, completion := range []struct{ line, want string }{
		{"show ,", both}, {"show tr,", "trip\tPlan a trip"}, {"show x,", ""}, {"show trip ,", ""},
		{"log ,", both}, {"events ,", both},
		{"stop ,", both}, {"retention allow ,", both}, {"session get ,", both}, {"session put ,", both}, {"session ls ,", both}, {"session rm ,", both},
		{"threads set ,", both}, {"verify ,", both}, {"verify trip ,", "old"}, {"erase old ,", "trip\tPlan a trip"},
		{"import --thread ,", both}, {"show --scope ann ,", "scoped"},
		{"session put trip key ,", ""}, {"threads --status ,", "stale|running|finished|interrupted|cancelled|failed|cut_off"},
	} {
		line := strings.Fields(completion.line)
		last := len(line) - 1
		line[last] = strings.TrimSuffix(line[last], ",")
		if got := offered(line...); got != completion.want {
			t.Errorf("%s offers %q, want %q", completion.line, got, completion.want)
		}
	}
	for _, command := range []string{"show", "events", "stop", "session get"} {
		got := strings.Split(offered(append(strings.Fields(command), "old", "--run", "")...), "|")
		if len(got) != 2 || !strings.HasPrefix(got[0], "r2\tfailed, started ") || !strings.HasPrefix(got[1], "r1\tfinished, started ") {
			t.Errorf("%s old --run offers %q", command, got)
		}
	}
	if got := offered("show", "--run", ""); got != "" {
		t.Errorf("without a thread --run offers %q", got)
	}
	commands.DatabaseURL = "postgres://localhost:1/none"
	if got := offered("show", ""); got != "" {
		t.Errorf("without a database show offers %q", got)
	}
}
