package read_test

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/wait"
)

// projected calls the job until it has read that many runs: a transaction in progress in any database of the server holds it back.
func projected(t *testing.T, commands clitest.CommandLine, runs int) {
	t.Helper()
	read := 0
	wait.For(t, "facts of all runs", func() bool {
		read += clitest.Parse[struct{ Runs int }](commands, "job", "project").Runs
		return read >= runs
	})
}

func TestReportOfAPeriod(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "runs.ndjson",
		`{"type":"RUN_STARTED","threadId":"trip","runId":"r1","timestamp":1714064100000}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"Looking.","timestamp":1714064101000}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"search","timestamp":1714064102000}`,
		`{"type":"TOOL_CALL_END","toolCallId":"c1","timestamp":1714064102000}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"c1","content":"Error: the site is down","timestamp":1714064105000}`,
		`{"type":"RUN_FINISHED","threadId":"trip","runId":"r1","usage":[{"provider":"p","model":"large","inputTokens":1000,"outputTokens":200}],"timestamp":1714064106000}`,
		`{"type":"RUN_STARTED","threadId":"order","runId":"r2","timestamp":1714164100000}`,
		`{"type":"RUN_FINISHED","threadId":"order","runId":"r2","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"approval","message":"Buy it?"}]},"timestamp":1714164102000}`,
		`{"type":"RUN_STARTED","threadId":"order 2","runId":"r3","timestamp":1714164100000}`,
		`{"type":"RUN_ERROR","message":"no model","timestamp":1714164104000}`,
	))
	projected(t, commands, 3)
	waiting := commands.Must("waiting")
	if !strings.HasPrefix(waiting, "ASKED") || strings.Count(waiting, "\n") != 2 || !strings.Contains(waiting, "order   r2   approval  Buy it?") {
		t.Errorf("waiting:\n%s", waiting)
	}
	if text := commands.Must("waiting", "--agent", "nobody", "--json"); text != "" {
		t.Errorf("of no agent: %s", text)
	}
	report := commands.Must("report", "--since", "2024-01-01T00:00")
	for _, part := range []string{
		"DAY ", "  ██████████  1       2        4       ",
		"AGENT  RUNS  FAILED  CUT OFF  CANCELLED  MEDIAN  P95     FIRST TOKEN  P95", "-      3     1       -        -          4.00 s  6.00 s  1.00 s       1.00 s",
		"search  1      1       ██████████  -        -        3.00 s  3.00 s  Error: the site is down",
		"p         large  1     1,000  200     1,200",
		"1 question waiting for an answer, the first since 2024-04-26",
	} {
		if !strings.Contains(report, part) {
			t.Errorf("no %q in\n%s", part, report)
		}
	}
	if text := commands.Must("report"); !strings.HasPrefix(text, "no runs since ") {
		t.Errorf("of a week without runs: %s", text)
	}
	parsed := clitest.Parse[struct{ Days, Agents, Tools, Models, Waiting []map[string]any }](commands, "report", "--since", "2024-01-01T00:00", "--all-scopes")
	if len(parsed.Days) != 2 || len(parsed.Agents) != 1 || len(parsed.Tools) != 1 || len(parsed.Models) != 1 || len(parsed.Waiting) != 1 {
		t.Errorf("%+v", parsed)
	}
	for _, arguments := range [][]string{{"report", "--scope", "a", "--all-scopes"}, {"waiting", "--limit", "0"}, {"report", "--since", "soon"}, {"job", "project", "--max-time", "-1s"}} {
		if result := commands.Run(arguments...); result.Code != cli.ExitUsage {
			t.Errorf("%s: exit %d, %s", arguments, result.Code, result.Messages)
		}
	}
	// An answer ends the wait, at once: it is seen in the tree of runs.
	commands.Must("import", clitest.WriteFile(t, "answer.ndjson",
		`{"type":"RUN_STARTED","threadId":"order","runId":"r4","parentRunId":"r2"}`, clitest.Finished))
	if text := commands.Must("waiting", "--json"); text != "" {
		t.Errorf("after the answer: %s", text)
	}
}

// A tool call without a result is listed with the interrupts.
func TestCallsWait(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "runs.ndjson",
		`{"type":"RUN_STARTED","threadId":"order","runId":"r1","timestamp":1714064100000}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"erase","timestamp":1714064102000}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"at\":\"it\"}","timestamp":1714064102000}`,
		`{"type":"TOOL_CALL_END","toolCallId":"c1","timestamp":1714064102000}`,
		`{"type":"RUN_FINISHED","threadId":"order","runId":"r1","timestamp":1714064106000}`,
	))
	projected(t, commands, 1)
	if text := commands.Must("waiting"); !strings.Contains(text, `order   r1   tool call  erase {"at":"it"}`) {
		t.Errorf("waiting:\n%s", text)
	}
	if one := clitest.Parse[map[string]any](commands, "waiting"); one["kind"] != "call" || one["tool"] != "erase" || one["toolCallId"] != "c1" || one["arguments"] != `{"at":"it"}` {
		t.Errorf("as JSON: %v", one)
	}
	if text := commands.Must("threads", "--status", "interrupted"); !strings.Contains(text, "order") {
		t.Errorf("the threads that wait:\n%s", text)
	}
	commands.Must("import", clitest.WriteFile(t, "answer.ndjson",
		`{"type":"RUN_STARTED","threadId":"order","runId":"r2","parentRunId":"r1"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"m1","toolCallId":"c1","content":"yes"}`, clitest.Finished))
	mustNotWait := func() {
		t.Helper()
		if text := commands.Must("waiting", "--json") + commands.Must("threads", "--status", "interrupted", "--json"); text != "" {
			t.Errorf("after the answer: %s", text)
		}
	}
	mustNotWait() // before the job has read it
	projected(t, commands, 1)
	mustNotWait()
}

// An interrupt without a message is listed with the call that it is about, or with its metadata.
func TestWaitingSaysWhatWasAsked(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "t.ndjson", clitest.Started("order", "r1"),
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"erase"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"at\": 1}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`,
		`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"approval","toolCallId":"c"},{"id":"i2","reason":"choice","metadata":{"of":"two"}},{"id":"i3","reason":"none"}]}}`))
	projected(t, commands, 1)
	text := commands.Must("waiting")
	for _, want := range []string{`approval  erase {"at":1}`, `choice    {"of":"two"}`, `none      -`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
