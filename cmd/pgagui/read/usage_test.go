package read_test

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

// importDelegation creates the thread t with two runs: a subagent with one of its own in the first, which is suspended and resumed in the
// second. Both report usage.
func importDelegation(t *testing.T, commands clitest.CommandLine) {
	t.Helper()
	commands.Must("import", clitest.WriteFile(t, "delegation.ndjson",
		`{"type":"RUN_STARTED","threadId":"t","runId":"r1","timestamp":1714064100000}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","role":"assistant","delta":"I ask a planner."}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"planner","timestamp":1714064101000}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m2","role":"assistant","delta":"I ask a reader.","subagentRunId":"s1"}`,
		`{"type":"SUBAGENT_STARTED","subagentRunId":"s2","name":"reader","parentSubagentRunId":"s1","timestamp":1714064102000}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m3","role":"assistant","delta":"Reading.","subagentRunId":"s2"}`,
		`{"type":"SUBAGENT_ERROR","subagentRunId":"s2","message":"the page is gone","timestamp":1714064103000}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"s1","outcome":{"type":"suspended"},"timestamp":1714064104000}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r1","usage":[{"provider":"p","model":"m","inputTokens":1000,"outputTokens":200}],"timestamp":1714064105000}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r2","timestamp":1714064200000}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m4","role":"assistant","delta":"Three days.","subagentRunId":"s1","timestamp":1714064201000}`,
		`{"type":"SUBAGENT_FINISHED","subagentRunId":"s1","result":3,"timestamp":1714064203000}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r2","usage":[{"provider":"p","model":"m","inputTokens":500,"outputTokens":34,"reasoningTokens":30},{"model":"small","inputTokens":7}],"timestamp":1714064205000}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r3","timestamp":1714064300000}`, clitest.Finished,
	))
}

func TestUsageOfAThread(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	importDelegation(t, commands)
	for _, c := range []struct {
		arguments []string
		out, err  string
	}{
		{[]string{"show", "--usage", "t"}, `PROVIDER  MODEL  INPUT  OUTPUT  TOTAL  REASONING  CACHED  CACHE WRITE  RUNS
p         m      1,500  234     1,734  30         -       -            2
-         small  7      -       -      -          -       -            1
`, "1 of 3 runs reported no usage\n"},
		{[]string{"show", "--usage", "t", "--whole-thread", "--json"}, `{"usage":[{"provider":"p","model":"m","inputTokens":1500,"outputTokens":234,"totalTokens":1734,"reasoningTokens":30,"runs":2},` +
			`{"model":"small","inputTokens":7,"runs":1}],"runs":3,"runsWithoutUsage":1}` + "\n", ""},
		{[]string{"show", "--usage", "t", "--run", "r1"}, `PROVIDER  MODEL  INPUT  OUTPUT  TOTAL  REASONING  CACHED  CACHE WRITE  RUNS
p         m      1,000  200     1,200  -          -       -            1
`, ""},
		{[]string{"show", "--usage", "t", "--lineage=false"}, "", "1 of 1 run reported no usage\n"},
	} {
		result := commands.Run(c.arguments...)
		if result.Code != cli.ExitOK || result.Out != c.out || result.Messages != c.err {
			t.Errorf("%s: exit %d\n%s%s\nwant\n%s%s", c.arguments, result.Code, result.Out, result.Messages, c.out, c.err)
		}
	}
	if result := commands.Run("show", "--usage", "t", "--whole-thread", "--run", "r1"); result.Code != cli.ExitUsage {
		t.Errorf("--whole-thread with --run: exit %d, %s", result.Code, result.Messages)
	}
	if status := commands.Must("show", "--status", "t", "--run", "r2"); !strings.Contains(status, "\ntokens   507 in, 34 out\n") {
		t.Error(status)
	}
}

func TestSubagentsOfAThread(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	importDelegation(t, commands)
	want := `SUBAGENT  ID  STATUS                    EVENTS    TIME    RUN
planner   s1  finished                  5 events  5.00 s  r2
  reader  s2  failed: the page is gone  3 events  1.00 s  r1
`
	if out := commands.Must("show", "--subagents", "t"); out != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	if out := commands.Must("show", "--subagents", "t", "--run", "r1", "--json"); strings.Count(out, "\n") != 2 ||
		!strings.HasPrefix(out, `{"subagentRunId":"s1","depth":1,"name":"planner","status":"suspended",`) {
		t.Error(out)
	}

	show := `thread t, run r3 (head): finished, seq 15, TIME

assistant
  I ask a planner.

  assistant (subagent planner s1)  finished, 5.00 s
    I ask a reader.

    assistant (subagent reader s2)  failed: the page is gone
      Reading.

  assistant (subagent planner s1)
    Three days.
`
	if out := clitest.FirstTimeAs("TIME", commands.Must("show", "t")); out != show {
		t.Errorf("%s\nwant\n%s", out, show)
	}
	if out := commands.Must("show", "t", "--json"); !strings.Contains(out, `"subagentRunId":"s2","subagentName":"reader"`) {
		t.Error(out)
	}
}
