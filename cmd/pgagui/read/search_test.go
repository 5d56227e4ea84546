package read_test

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "runs.ndjson",
		`{"type":"RUN_STARTED","threadId":"order","runId":"r1","timestamp":1714064100000,"input":{"threadId":"order","runId":"r1","messages":[{"id":"u","role":"user","content":"I want my refund\nnow \u001b[31m"}]}}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"Refunds take a week.","timestamp":1714064101000}`,
		`{"type":"RUN_FINISHED","threadId":"order","runId":"r1","timestamp":1714064106000}`,
	))
	if text := commands.MustFail(cli.ExitRefused, "search", "refund"); !strings.Contains(text, "search is off") {
		t.Errorf("%s", text)
	}
	commands.Must("search", "--enable", "english")
	commands.Must("job", "project")
	lines := strings.Split(strings.TrimSpace(commands.Must("search", "refund", "--since", "2024-01-01T00:00")), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], "  order  r1  user") && !strings.HasSuffix(lines[2], "  order  r1  user") {
		t.Errorf("%q", lines)
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "    *Refunds* take a week") || !strings.Contains(text, `want my *refund*`) {
		t.Errorf("%s", text)
	}
	if text := commands.Must("search", "refund", "--role", "user", "--json"); strings.Count(text, "\n") != 1 || !strings.Contains(text, `{"text":"refund","isMatch":true}`) {
		t.Errorf("%s", text)
	}
	if text := commands.Must("search", "refund", "--since", "1h"); text != "" {
		t.Errorf("of the last hour: %s", text)
	}
	if text := commands.MustFail(cli.ExitRefused, "search", "--enable", "klingon"); !strings.Contains(text, `"klingon" is not a text search configuration`) || !strings.Contains(text, "english") {
		t.Errorf("%s", text)
	}
	commands.Must("search", "--disable")
	commands.MustFail(cli.ExitRefused, "search", "refund")
	for _, wrong := range [][]string{{"search"}, {"search", "x", "--enable", "simple"}, {"search", "--disable", "--enable", "simple"}, {"search", "x", "--limit", "0"}, {"search", "x", "--since", "never"}} {
		commands.MustFail(cli.ExitUsage, wrong...)
	}
}
