package read

import (
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestShowPrintsTheConversation(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", "../../../testdata/recordings/trip-to-lisbon.ndjson")
	out := commands.Must("show", "trip-to-lisbon", "--run", "run-3")
	const begin = "thread trip-to-lisbon, run run-3: interrupted, seq 106, TIME\n\nuser\n  Plan three days in Lisbon in May for two. We love food and hate queues 🍤\n\nassistant\n"
	if !strings.HasPrefix(clitest.FirstTimeAs("TIME", out), begin) {
		t.Errorf("the beginning of\n%s\nis not\n%s", out, begin)
	}
	const end = `
user
  Perfect. Book the hotel.

assistant
  Three nights come to €372. One click from you and it is booked.

  ▸ bookHotel(hotel: Casa do Miradouro, nights: 3, eur: 372)  waits for its result

waits for an answer
  ◦ approval: Book Casa do Miradouro, 3 nights, €372?  interrupt book-hotel
`
	if !strings.HasSuffix(out, end) {
		t.Errorf("the end of\n%s\nis not\n%s", out, end)
	}
	commands.Must("job", "compact") // now show reads snapshots
	if compacted := commands.Must("show", "trip-to-lisbon", "--run", "run-3"); compacted != out {
		t.Errorf("after compaction:\n%s\nwant\n%s", compacted, out)
	}
	const head7 = "thread trip-to-lisbon, run run-7 (head): finished, seq 178, TIME; calls to answer: draw-trip-card\n"
	if head := clitest.FirstTimeAs("TIME", commands.Must("show", "trip-to-lisbon")); !strings.HasPrefix(head, head7) {
		t.Errorf("the head: %s", head)
	}
}

// importSearch creates the thread t with a run that searches: an activity, and a tool call of 1.5
// s.
func importSearch(t *testing.T, commands clitest.CommandLine) {
	t.Helper()
	commands.Must("import", clitest.WriteFile(t, "search.ndjson",
		`{"type":"RUN_STARTED","threadId":"t","runId":"r","timestamp":1714064100000}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"I will search the internet for relevant \u001b[31minformation"}`,
		`{"type":"ACTIVITY","messageId":"msg_789","activityType":"PLAN","snapshot":{"tasks":["check reddit","search X.com"]}}`,
		`{"type":"ACTIVITY","messageId":"msg_789","activityType":"PLAN","patch":{"op":"replace","path":"/tasks/0","value":"✓ check reddit"}}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"search","timestamp":1714064120000}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"query\":"}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\"pgagui\"}"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"c"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"c","content":"`+strings.Repeat("found ", 300)+`","timestamp":1714064121500}`,
		clitest.Finished,
	))
}

func TestShowAtAnyPoint(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	importSearch(t, commands)
	timeAt := func(seconds int64) string { return time.Unix(seconds, 0).Format("2006-01-02 15:04:05") }
	const said = "\n\nassistant\n  I will search the internet for relevant \\x1b[31minformation\n\n  PLAN\n  │ "
	for _, test := range []struct{ arguments, want string }{
		{"--at 3", "thread t, run r (head): finished, seq 3 of 10, " + timeAt(1714064100) + said + "◦ check reddit\n  │ ◦ search X.com\n"},
		{"--at 6", "thread t, run r (head): finished, seq 6 of 10, " + timeAt(1714064120) + said + "✓ check reddit\n  │ ◦ search X.com\n\n  ▸ search  arguments still come\n    {\"query\":…\n"},
		{"--at 8", "thread t, run r (head): finished, seq 8 of 10, " + timeAt(1714064120) + said + "✓ check reddit\n  │ ◦ search X.com\n\n  ▸ search(query: pgagui)  waits for its result\n"},
		{"--full", "thread t, run r (head): finished, seq 10, " + timeAt(1714064121) + said + "✓ check reddit\n  │ ◦ search X.com\n\n  ✓ search(query: pgagui)  1.5s\n  │ " +
			strings.TrimSpace(strings.Repeat("found ", 300)) + "\n"},
	} {
		if out := commands.Must(append([]string{"show", "t"}, strings.Fields(test.arguments)...)...); out != test.want {
			t.Errorf("show t %s:\n%s\nwant\n%s", test.arguments, out, test.want)
		}
	}
	if out := commands.Must("show", "t"); !strings.HasSuffix(out, " more characters (--full shows all)\n") {
		t.Errorf("without --full:\n%s", out)
	}
}

func TestShowAsJSON(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	importSearch(t, commands)
	want := []string{
		`{"threadId":"t","runId":"r","status":"finished","seq":9,"recordedAt":"2024-04-25T16:55:21.5Z"}`,
		`{"kind":"message","id":"m","role":"assistant","text":"I will search the internet for relevant \u001b[31minformation"}`,
		`{"kind":"activity","id":"msg_789","role":"activity","activityType":"PLAN","content":{"tasks":["✓ check reddit","search X.com"]}}`,
		`{"kind":"tool_call","id":"c","role":"assistant","toolName":"search","arguments":{"query":"pgagui"},"status":"completed","durationMs":1500,"result":"` +
			strings.Repeat("found ", 300) + `"}`,
	}
	lines := strings.Split(strings.TrimSuffix(commands.Must("show", "t", "--at", "9", "--json"), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d: %s", len(lines), len(want), lines)
	}
	for i, line := range lines {
		if line != want[i] {
			t.Errorf("line %d: %s\nwant %s", i, line, want[i])
		}
	}
}

// Events that no client shows are named: a conversation is not silently empty.
func TestShowNamesMalformedEvents(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "python.ndjson", clitest.Started("t", "r"),
		`{"type":"TEXT_MESSAGE_START","message_id":"m"}`, `{"type":"TEXT_MESSAGE_CONTENT","message_id":"m","delta":"x"}`, clitest.Finished))
	const want = `; 2 events without effect, the first is seq 2, TEXT_MESSAGE_START: it has "message_id", not "messageId"`
	if out := commands.Must("show", "t"); !strings.Contains(out, want) {
		t.Errorf("%q is not in\n%s", want, out)
	}
	if out := commands.Must("show", "t", "--json"); !strings.Contains(out, `"malformedEvents":[{"seq":2,"type":"TEXT_MESSAGE_START"`) {
		t.Errorf("as JSON: %s", out)
	}
}

// Patches and pieces that the fold skips are named among them, up to what is shown.
func TestShowNamesSkippedEvents(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "t.ndjson",
		clitest.Started("t", "r0"), `{"type":"ACTIVITY_SNAPSHOT","messageId":"plan","activityType":"PLAN","content":{"steps":[]}}`, `{"type":"STATE_SNAPSHOT","snapshot":{"list":[1]}}`, clitest.Finished,
		clitest.Started("t", "r"), `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/list/01","value":2}]}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/list/1","value":2}]}`,
		`{"type":"TEXT_MESSAGE_END"}`, `{"type":"ACTIVITY_DELTA","messageId":"plan","activityType":"PLAN","patch":[{"op":"_get","path":"/steps"}]}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"unknown","delta":"x"}`, clitest.Finished))
	const patch = `{"seq":6,"type":"STATE_DELTA","problem":"operation 1 of the patch fails by RFC 6902"}`
	for _, test := range []struct{ arguments, want string }{
		{"--json", `"malformedEvents":[` + patch + `,{"seq":8,"type":"TEXT_MESSAGE_END","problem":"it has no \"messageId\""},` +
			`{"seq":9,"type":"ACTIVITY_DELTA","problem":"operation 1 of the patch fails by RFC 6902"},` +
			`{"seq":10,"type":"TEXT_MESSAGE_CONTENT","problem":"no message that takes text has the id of the piece"}]`},
		{"--json --at 6", patch},
		{"", "; 4 events without effect, the first is seq 6, STATE_DELTA: operation 1 of the patch fails by RFC 6902"},
	} {
		if out := commands.Must(append([]string{"show", "t"}, strings.Fields(test.arguments)...)...); !strings.Contains(out, test.want) {
			t.Errorf("show t %s: %s is not in\n%s", test.arguments, test.want, out)
		}
	}
	if out := commands.Must("show", "t", "--at", "5"); strings.Contains(out, "STATE_DELTA") {
		t.Errorf("it names what it does not show:\n%s", out)
	}
}

// A run that answers says what it was asked, and what it answered, in each way of answering.
func TestShowSaysWhatWasAnswered(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	const asks = `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"approval","message":"Refund?"}]}}`
	for thread, input := range map[string]string{
		"resume":  `{"resume":[{"interruptId":"i1","status":"resolved","payload":{"ok":true}}]}`,
		"command": `{"forwardedProps":{"command":{"resume":{"ok":true}}}}`,
	} {
		commands.Must("import", clitest.WriteFile(t, thread+".ndjson", clitest.Started(thread, "r1"), asks,
			`{"type":"RUN_STARTED","threadId":"`+thread+`","runId":"r2","parentRunId":"r1","input":`+input+`}`, `{"type":"RUN_ERROR","message":"no"}`))
		if out := commands.Must("show", thread); !strings.HasSuffix(out, "\n✓ Answered: Refund?  {\"ok\":true}\n✗ failed: no\n") {
			t.Errorf("%s:\n%s", thread, out)
		}
		if out := commands.Must("show", thread, "--json"); !strings.Contains(out, `"answers":[{"question":"Refund?","reason":"approval","status":"Answered","payload":{"ok":true}}]`) {
			t.Errorf("%s as JSON: %s", thread, out)
		}
	}
}
