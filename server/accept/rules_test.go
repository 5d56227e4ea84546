package accept_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/server/accept"
)

// stream writes events for reading: "START m" is TEXT_MESSAGE_START with messageId m, and so on. What begins with a brace is
// an event as it is.
func stream(text string) (events [][]byte) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		word, id, _ := strings.Cut(line, " ")
		format := map[string]string{
			"RUN":      `{"type":"RUN_STARTED","threadId":"t","runId":"%s"}`,
			"FINISHED": `{"type":"RUN_FINISHED","threadId":"t","runId":"%s"}`,
			"ERROR":    `{"type":"RUN_ERROR","message":"%s"}`,
			"START":    `{"type":"TEXT_MESSAGE_START","messageId":"%s"}`,
			"CONTENT":  `{"type":"TEXT_MESSAGE_CONTENT","messageId":"%s","delta":"x"}`,
			"END":      `{"type":"TEXT_MESSAGE_END","messageId":"%s"}`,
			"CHUNK":    `{"type":"TEXT_MESSAGE_CHUNK","messageId":"%s","delta":"x"}`,
			"MORE":     `{"type":"TEXT_MESSAGE_CHUNK","delta":"%s"}`,
			"CALL":     `{"type":"TOOL_CALL_START","toolCallId":"%s","toolCallName":"f"}`,
			"ARGS":     `{"type":"TOOL_CALL_ARGS","toolCallId":"%s","delta":"x"}`,
			"CALLED":   `{"type":"TOOL_CALL_END","toolCallId":"%s"}`,
			"REASON":   `{"type":"REASONING_MESSAGE_CONTENT","messageId":"%s","delta":"x"}`,
			"STEP":     `{"type":"STEP_STARTED","stepName":"%s"}`,
			"THINK":    `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"%s"}`,
		}[word]
		switch {
		case line == "":
		case strings.HasPrefix(line, "{"):
			events = append(events, []byte(line))
		case format == "":
			panic(line)
		default:
			events = append(events, fmt.Appendf(nil, format, id))
		}
	}
	return events
}

func TestRules(t *testing.T) {
	t.Parallel()
	var streams [][][]byte
	var origins []string
	for _, test := range []struct{ name, events, want string }{
		{"what comes after RUN_FINISHED comes before it", "RUN r\nSTART m\nFINISHED r\nCONTENT m\nEND m", "RUN r\nSTART m\nCONTENT m\nEND m\nFINISHED r"},
		{"of two ends the last counts", "RUN r\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":1}` + "\nFINISHED r", "RUN r\nFINISHED r"},
		{"what is open ends before the run, the youngest first", "RUN r\nSTART m\nCALL c\nSTEP s\nFINISHED r",
			"RUN r\nSTART m\nCALL c\nSTEP s\n" + `{"type":"STEP_FINISHED","stepName":"s"}` + "\nCALLED c\nEND m\nFINISHED r"},
		{"a run without an end gets one", "RUN r\nSTART m", "RUN r\nSTART m\nEND m\nFINISHED r"},
		{"an error ends at once", "RUN r\nSTART m\nERROR no\nCONTENT m\nFINISHED r\nERROR no", "RUN r\nSTART m\nERROR no"},
		{"an error after the end comes after it", "RUN r\nFINISHED r\nERROR no", "RUN r\nFINISHED r\nERROR no"},
		{"an error needs no start", "ERROR no", "ERROR no"},
		{"a run without a start gets one", "START m\nEND m\nFINISHED run-1", "RUN run-1\nSTART m\nEND m\nFINISHED run-1"},
		{"what is left out starts nothing", "END m\nRUN r\nFINISHED r", "RUN r\nFINISHED r"},
		{"nothing is a run, too", "", "RUN run-1\nFINISHED run-1"},
		{"a run begins once", "RUN r\nSTART m\nRUN r\nCONTENT m\nEND m\nFINISHED r", "RUN r\nSTART m\nCONTENT m\nEND m\nFINISHED r"},
		{"a run after an end begins", "RUN r\nFINISHED r\nRUN s\nFINISHED s", "RUN r\nFINISHED r\nRUN s\nFINISHED s"},
		{"content without a start makes no message", "RUN r\nCONTENT m\nCONTENT m\nEND m\nFINISHED r", "RUN r\nFINISHED r"},
		{"content behind the end starts once more", "RUN r\nSTART m\nEND m\nCONTENT m\nCONTENT m\nEND m\nFINISHED r", "RUN r\nSTART m\nEND m\nSTART m\nCONTENT m\nCONTENT m\nEND m\nFINISHED r"},
		{"content of a message that a list dropped", "RUN r\nSTART m\nEND m\n" + `{"type":"MESSAGES_SNAPSHOT","messages":[]}` + "\nCONTENT m\nFINISHED r", "RUN r\nSTART m\nEND m\n" + `{"type":"MESSAGES_SNAPSHOT","messages":[]}` + "\nFINISHED r"},
		{"arguments need a name", "RUN r\nARGS c\nFINISHED r", "RUN r\nFINISHED r"},
		{"a call that was open before has one", "RUN r\nCALL c\nERROR no\nRUN s\nARGS c\nFINISHED s", "RUN r\nCALL c\nERROR no\nRUN s\nCALL c\nARGS c\nCALLED c\nFINISHED s"},
		{"a list gives names", `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}]}` + "\nARGS c\nFINISHED run-1",
			"RUN run-1\n" + `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}]}` + "\nCALL c\nARGS c\nCALLED c\nFINISHED run-1"},
		{"reasoning without a start", "RUN r\nREASON m\nFINISHED r", "RUN r\nFINISHED r"},
		{"thinking without a start", "RUN r\nTHINK x\nFINISHED r", "RUN r\nFINISHED r"},
		{"a message starts and ends once", "RUN r\nSTART m\nSTART m\nEND m\nEND m\nFINISHED r", "RUN r\nSTART m\nEND m\nFINISHED r"},
		{"chunks end by themselves", "RUN r\nCHUNK m\nMORE y\nCALL c\nMORE y\nCALLED c\nFINISHED r", "RUN r\nCHUNK m\nMORE y\nCALL c\nCALLED c\nFINISHED r"},
		{"a message of chunks that is ended", "RUN r\nCHUNK m\nEND m\nFINISHED r", "RUN r\nCHUNK m\nSTART m\nEND m\nFINISHED r"},
		{"a chunk of an open message", "RUN r\nSTART m\nCHUNK m\nFINISHED r", "RUN r\nSTART m\nEND m\nCHUNK m\nFINISHED r"},
		{"a chunk of nothing", "RUN r\nMORE y\nFINISHED r", "RUN r\nFINISHED r"},
		{"a chunk after the end goes on with no message", "RUN r\nCHUNK m\nFINISHED r\nMORE y", "RUN r\nCHUNK m\n" + `{"type":"STATE_DELTA","delta":[]}` + "\nFINISHED r"},
		{"a chunk after the end begins a message", "RUN r\nCHUNK m\nFINISHED r\nCHUNK m", "RUN r\nCHUNK m\n" + `{"type":"STATE_DELTA","delta":[]}` + "\nCHUNK m\nFINISHED r"},
		{"a chunk that contradicts the first", "RUN r\nCHUNK m\n" + `{"type":"TEXT_MESSAGE_CHUNK","role":"user","delta":"y"}` + "\nFINISHED r", "RUN r\nCHUNK m\nMORE y\nFINISHED r"},
		{"the contradiction of a subagent", `{"type":"TEXT_MESSAGE_START","messageId":"m","subagentRunId":"a"}` + "\n" + `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","subagentRunId":"b"}` + "\nEND m\nFINISHED run-1",
			"RUN run-1\n" + `{"type":"TEXT_MESSAGE_START","messageId":"m","subagentRunId":"a"}` + "\nEND m\nFINISHED run-1"},
		{"unknown types and broken events", "RUN r\n{\"type\":\"FUTURE\"}\n{\"type\":\"CUSTOM\"}\n{}\n{broken\nFINISHED r", "RUN r\nFINISHED r"},
		{"members that are null", "RUN r\n" + `{"type":"TEXT_MESSAGE_START","messageId":"m","name":null,"timestamp":1.5,"x":1}` + "\nEND m\nFINISHED r", "RUN r\n" + `{"type":"TEXT_MESSAGE_START","messageId":"m","x":1}` + "\nEND m\nFINISHED r"},
		{"null is absence in an outcome", "RUN r\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x","message":null,"toolCallId":null,"metadata":{"a":null}}]}}`,
			"RUN r\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"x","metadata":{"a":null}}]}}`},
		{"null is absence in a usage", "RUN r\n" + `{"type":"RUN_ERROR","message":"x","usage":[{"inputTokens":1,"cachedInputTokens":null}]}`,
			"RUN r\n" + `{"type":"RUN_ERROR","message":"x","usage":[{"inputTokens":1}]}`},
		{"null is absence in the outcome of a subagent", "RUN r\n" + `{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"x"}` + "\n" + `{"type":"SUBAGENT_FINISHED","subagentRunId":"a","outcome":{"type":"suspended","interruptIds":null}}` + "\nFINISHED r",
			"RUN r\n" + `{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"x"}` + "\n" + `{"type":"SUBAGENT_FINISHED","subagentRunId":"a","outcome":{"type":"suspended"}}` + "\nFINISHED r"},
		{"ends always pass", "RUN r\n" + `{"type":"RUN_FINISHED","outcome":{"type":"cancelled"}}`, "RUN r\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`},
		{"errors always pass", "RUN r\n" + `{"type":"RUN_ERROR","code":"c"}`, "RUN r\n" + `{"type":"RUN_ERROR","code":"c","message":"The run failed."}`},
		{"messages that a client refuses", "RUN r\n" + `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"x","name":null},{"id":"v","role":"wizard"},"text",{"id":"w","role":"user","content":"y"}]}` + "\nFINISHED r",
			"RUN r\n" + `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"x"},{"id":"w","role":"user","content":"y"}]}` + "\nFINISHED r"},
	} {
		f := accept.New(run, 0)
		var sent [][]byte
		for _, event := range stream(test.events) {
			before, send := f.Push(event)
			if sent = append(sent, before...); send != nil {
				sent = append(sent, send)
			}
		}
		sent = append(sent, f.End("")...)
		if got, want := printed(sent), printed(stream(test.want)); got != want {
			t.Errorf("%s:\n%s\n\nwant\n%s", test.name, got, want)
		}
		streams, origins = append(streams, sent), append(origins, test.name)
	}
	mustAccept(t, streams, origins)
}

func TestRunsOfOneStream(t *testing.T) {
	t.Parallel()
	f := accept.New(run, 0)
	var sent [][]byte
	push := func(text string) {
		for _, event := range stream(text) {
			before, send := f.Push(event)
			if sent = append(sent, before...); send != nil {
				sent = append(sent, send)
			}
		}
	}
	push("RUN run-1\nSTART m\nFINISHED run-1")
	if !f.Holding() {
		t.Error("the filter holds no end")
	}
	sent = append(sent, f.Begin(accept.Run{ThreadID: "t", RunID: "run-2"})...)
	f.Consult(func(event []byte) bool { return !bytes.Contains(event, []byte(`"m"`)) }) // the log has m
	push("CONTENT m\nCONTENT n\n" + `{"type":"STATE_DELTA","delta":[]}`)
	sent = append(sent, f.End("The agent is gone.")...)
	sent = append(sent, f.End("")...)
	sent = append(sent, f.Begin(accept.Run{ThreadID: "t", RunID: "run-3"})...)
	push("RUN run-3")
	sent = append(sent, f.End("")...)
	want := "RUN run-1\nSTART m\nEND m\nFINISHED run-1\nRUN run-2\nSTART m\nCONTENT m\nERROR The agent is gone.\nRUN run-3\nFINISHED run-3"
	if got, want := printed(sent), printed(stream(want)); got != want {
		t.Errorf("%s\n\nwant\n%s", got, want)
	}
	if stats := f.Stats(); stats.Added != 5 || stats.Skipped != 2 {
		t.Errorf("%+v", stats)
	}
	mustAccept(t, [][][]byte{sent}, []string{"runs"})
}

// TestMemoryIsBounded: an agent that opens without end fills the filter, and what it opens then is left out.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var streams [][][]byte
	id := "%d" + strings.Repeat("m", 1000)
	for _, end := range []string{"", "\nEND " + id} {
		f := accept.New(run, 0)
		var sent [][]byte
		for i := range 500 {
			for _, event := range stream(strings.ReplaceAll("START "+id+"\nCONTENT "+id+end, "%d", fmt.Sprint(i))) {
				before, send := f.Push(event)
				if sent = append(sent, before...); send != nil {
					sent = append(sent, send)
				}
			}
		}
		sent = append(sent, f.End("")...)
		if size := accept.Size(f); size > 300<<10 {
			t.Errorf("the filter takes %d bytes", size)
		}
		if stats := f.Stats(); (stats.Misplaced > 0) != (end == "") {
			t.Errorf("%q: %+v", end, stats)
		}
		streams = append(streams, sent)
	}
	mustAccept(t, streams, []string{"open", "closed"})
}

func TestLargeEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text   string
		passes bool
	}{
		{strings.Repeat("x", 10<<20-4096), true},
		{strings.Repeat("x", 10<<20), false},
		{strings.Repeat("日", 5<<20), true}, // 15 MiB in UTF-8, 5 million units of UTF-16
		{strings.Repeat("🎉", 6<<20), false},
	} {
		f := accept.New(run, 0)
		f.Push(stream("START m")[0])
		event := []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"` + test.text + `"}`)
		if _, send := f.Push(event); (send != nil) != test.passes {
			t.Errorf("%d bytes of %.4s: %v", len(test.text), test.text, send != nil)
		}
	}
}
