package read

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// historyLines returns the rows of the JSON output.
func historyLines(t *testing.T, commands clitest.CommandLine, arguments ...string) []pgagui.HistoryEvent {
	t.Helper()
	return clitest.Lines[pgagui.HistoryEvent](t, commands.Must(append([]string{"events", "--page", "--json"}, arguments...)...))
}

func TestHistoryShowsWhatHappened(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "chat.ndjson", append(clitest.Answer("t", "r1", 3), clitest.Answer("t", "r2", 2)...)...))
	want := []string{
		"SEQ TIME RUN TYPE EVENTS TEXT",
		`1 r1 RUN_STARTED 1 threadId="t" runId="r1"`,
		`2 r1 TEXT_MESSAGE_START 1 messageId="m" role="assistant"`,
		"3 r1 TEXT_MESSAGE_CONTENT 3 token 0 token 1 token 2",
		`6 r1 TEXT_MESSAGE_END 1 messageId="m"`,
		"7 r1 RUN_FINISHED 1",
	}
	table := strings.Split(commands.Must("events", "--page", "t", "--run", "r1"), "\n")
	for i, row := range want {
		if got := clitest.WithoutTimes(table[i]); got != row {
			t.Errorf("row %d is %q, want %q", i, got, row)
		}
	}
	if rows := historyLines(t, commands, "t", "--raw"); len(rows) != 13 || string(rows[3].JSON) != clitest.Token(1) || rows[3].Count != 1 || !rows[3].CompletedAt.IsZero() {
		t.Errorf("raw: %+v", rows)
	}
	if rows := historyLines(t, commands, "t", "--type", "TEXT_MESSAGE_CONTENT", "--type", "RUN_FINISHED"); len(rows) != 4 ||
		rows[0].Seq != 3 || rows[0].LastSeq != 5 || rows[0].Count != 3 || rows[0].CompletedAt.IsZero() || rows[3].RunID != "r2" {
		t.Errorf("two types: %+v", rows)
	}
	for arguments, want := range map[string]int{
		"t --since 1h": 10, "t --since 2999-01-01T00:00:00Z": 0, "t --until 1h": 0, "t --until 2999-01-01T00:00:00Z --after 7": 5,
		"t --max-bytes 1": 13, "t --max-bytes 1000 --max-idle 1h": 10,
	} {
		if rows := historyLines(t, commands, strings.Fields(arguments)...); len(rows) != want {
			t.Errorf("%s: %d rows, want %d", arguments, len(rows), want)
		}
	}
}

func TestHistorySaysHowToContinue(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "chat.ndjson", clitest.Answer("t", "r", 3)...)) // 7 events in 5 rows
	var seqs []int64
	arguments := []string{"t", "--limit", "2"}
	for page, wantMore := range []string{"more rows follow: continue with --after 2, or use --all\n", "more rows follow: continue with --after 6, or use --all\n", ""} {
		result := commands.Run(append([]string{"events", "--page"}, arguments...)...)
		if result.Code != cli.ExitOK || result.Messages != wantMore {
			t.Errorf("page %d: exit code %d, messages %q, want %q", page, result.Code, result.Messages, wantMore)
		}
		for _, row := range historyLines(t, commands, arguments...) {
			seqs = append(seqs, row.Seq)
			arguments = []string{"t", "--limit", "2", "--after", jsonText(t, row.LastSeq)}
		}
	}
	if got := jsonText(t, seqs); got != "[1,2,3,6,7]" {
		t.Errorf("the pages hold %s", got)
	}
	// After a full last page there is no such line.
	for _, arguments := range []string{"t --limit 5", "t --all", "t --all --raw"} {
		if result := commands.Run(append([]string{"events", "--page"}, strings.Fields(arguments)...)...); result.Code != cli.ExitOK || result.Messages != "" {
			t.Errorf("%s: exit code %d, messages %q", arguments, result.Code, result.Messages)
		}
	}
}

func TestHistoryReadsAllPages(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "chat.ndjson", clitest.Answer("t", "r", 2500)...))
	if rows := historyLines(t, commands, "t", "--all", "--raw"); len(rows) != 2504 || rows[2503].Seq != 2504 {
		t.Errorf("%d rows", len(rows))
	}
}

func jsonText(t *testing.T, value any) string {
	t.Helper()
	text := must.Have(json.Marshal(value))(t)
	return string(text)
}

// Text of a run must not control the terminal. The JSON output has it unchanged.
func TestHistoryEscapesWhatActsOnATerminal(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	store := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil)
	const spread = "{\"type\":\"CUSTOM\",\n\t\"name\":\"a\"}"
	for _, event := range []string{
		`{"type":"RUN_STARTED"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"red \u001b[31m\u0007\u202e"}`, `{"type":"\u001b]0;x\u0007"}`, spread,
	} {
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r\x1b[2J"}, []json.RawMessage{json.RawMessage(event)}, pgagui.AppendOptions{}))(t)
	}
	table := commands.Must("events", "--page", "t")
	if strings.ContainsAny(table, "\x1b\x07\u202e\t") || !strings.Contains(table, `red \x1b[31m\a\u202e`) || strings.Count(table, "\n") != 5 {
		t.Errorf("the table acts on the terminal: %q", table)
	}
	if message := commands.MustFail(cli.ExitUsage, "events", "--page", "t", "--json"); !strings.Contains(message, "event 4 of thread") || !strings.Contains(message, "use --null") {
		t.Errorf("an event with a line end: %s", message)
	}
	rows := strings.Split(commands.Must("events", "--page", "t", "--json", "--null"), "\x00")
	if len(rows) != 5 || !strings.HasSuffix(rows[3], `,"payload":`+spread+`}`) {
		t.Errorf("rows: %q", rows)
	}
}

func TestHistoryRefusals(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "chat.ndjson", clitest.Answer("t", "r", 1)...))
	for _, test := range []struct {
		arguments string
		code      int
		saying    string
	}{
		{"t --limit 0", cli.ExitUsage, "--limit must be from 1 to 1000, not 0"},
		{"t --limit 1001", cli.ExitUsage, "--limit must be from 1 to 1000, not 1001"},
		{"t --max-bytes -1", cli.ExitUsage, "--max-bytes and --max-idle must be 0 or more"},
		{"t --after -1", cli.ExitUsage, "--after must be 0 or more"},
		{"t --all --limit 5", cli.ExitUsage, "--all and --limit exclude each other"},
		{"t --null", cli.ExitUsage, "--null needs --json"},
		{"t --since yesterday", cli.ExitUsage, "--since yesterday: not a point in time"},
		{"t --until 2024-05-01", cli.ExitUsage, "--until 2024-05-01: not a point in time"},
		{"", cli.ExitUsage, "expected one thread id"},
		{"u", cli.ExitRefused, `thread "u" is unknown`},
		{"t --run s", cli.ExitRefused, `run "s" of thread "t" is unknown`},
	} {
		arguments := append([]string{"events", "--page"}, strings.Fields(test.arguments)...)
		if message := commands.MustFail(test.code, arguments...); !strings.Contains(message, test.saying) {
			t.Errorf("pgagui events --page %s: %s, which does not say %q", test.arguments, message, test.saying)
		}
	}
}
