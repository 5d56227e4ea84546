package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/compaction/compactiontest"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/must"
)

var shapes = []Shape{StreamShape, SnapshotShape}

// sameMeaning reports whether two folds mean the same, whatever the order of keys.
func sameMeaning(a, b *Fold) bool {
	return len(a.Messages()) == len(b.Messages()) && sameLanes(a, b) &&
		jsontree.Same(jsontree.Raw(a.State()), jsontree.Raw(b.State())) && jsontree.Same(jsontree.Raw(a.Interrupts()), jsontree.Raw(b.Interrupts())) &&
		slices.EqualFunc(a.Messages(), b.Messages(), (*Message).says)
}

func applyAll(f *Fold, events []json.RawMessage) *Fold {
	f.applyAll(events)
	return f
}

func texts(events []json.RawMessage) string { return string(compactiontest.Batch(events)) }

// difference shows the events from the first that differ on.
func difference(a, b []json.RawMessage) string {
	for len(a) > 0 && len(b) > 0 && string(a[0]) == string(b[0]) {
		a, b = a[1:], b[1:]
	}
	return texts(a) + "\n" + texts(b)
}

// checkCompaction checks what holds for all events behind any lineage, and returns them compacted.
func mustCompact(t *testing.T, events []json.RawMessage, shape Shape, after *Fold) []json.RawMessage {
	t.Helper()
	compact := must.Have(CompactEvents(events, shape, after))(t)
	return compact
}

func checkCompaction(t *testing.T, events []json.RawMessage, shape Shape, after *Fold) []json.RawMessage {
	t.Helper()
	compact := mustCompact(t, events, shape, after)
	want, got := applyAll(after.Clone(), events), applyAll(after.Clone(), compact)
	if !sameMeaning(want, got) {
		t.Errorf("%s: the events mean\n%s\nand compacted\n%s\nevents %s\ncompacted %s", shape, meaning(want), meaning(got), texts(events), texts(compact))
	}
	if again := mustCompact(t, compact, shape, after); texts(again) != texts(compact) {
		t.Errorf("%s: compacted twice, the events are not what they are compacted once:\n%s\nevents %s\nbehind %s", shape, difference(compact, again), texts(events), meaning(after))
	}
	return compact
}

func TestCompactedEventsMeanTheSame(t *testing.T) {
	t.Parallel()
	eachStream(t, 150, func(t *testing.T, events []json.RawMessage) {
		for _, shape := range shapes {
			checkCompaction(t, events, shape, New())
			if len(events) > 0 {
				middle := len(events) * (1 + len(events)%3) / 4
				after := applyAll(New(), events[:middle])
				before := meaning(after)
				checkCompaction(t, events[middle:], shape, after)
				if got := meaning(after); got != before {
					t.Errorf("the lineage changed from\n%s\nto\n%s", before, got)
				}
				// What comes later goes on where the events stopped.
				head := checkCompaction(t, events[:middle], shape, New())
				behind := applyAll(New(), head)
				behind.at = after.at
				got := applyAll(behind, events[middle:])
				if want := applyAll(New(), events); !sameMeaning(want, got) {
					t.Errorf("%s: what follows means\n%s\nand behind compacted events\n%s\nevents %s\ncompacted %s", shape, meaning(want), meaning(got), texts(events[:middle]), texts(head))
				}
			}
		}
	})
}

// lines reads events that are written one a line.
func lines(text string) (events []json.RawMessage) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			events = append(events, json.RawMessage(line))
		}
	}
	return events
}

func TestCompactEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		after  string // what stood before
		events string
		stream string
		snap   string // "" when it is the same as stream
	}{
		{"the example of the serialization proposal", "",
			`{ "type": "TEXT_MESSAGE_START", "messageId": "msg1", "role": "user" }
			{ "type": "TEXT_MESSAGE_CONTENT", "messageId": "msg1", "delta": "Hello " }
			{ "type": "TEXT_MESSAGE_CONTENT", "messageId": "msg1", "delta": "world" }
			{ "type": "TEXT_MESSAGE_END", "messageId": "msg1" }
			{ "type": "STATE_DELTA", "patch": { "op": "add", "path": "/foo", "value": 1 } }
			{ "type": "STATE_DELTA", "patch": { "op": "replace", "path": "/foo", "value": 2 } }`,
			`{"type":"TEXT_MESSAGE_START","messageId":"msg1","role":"user"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg1","delta":"Hello world"}
			{"type":"TEXT_MESSAGE_END","messageId":"msg1"}
			{"type":"STATE_SNAPSHOT","snapshot":{"foo":2}}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"msg1","role":"user","content":"Hello world"}]}
			{"type":"STATE_SNAPSHOT","snapshot":{"foo":2}}`},
		{"the proposal's normalized input", `{"type":"RUN_STARTED","runId":"run1","input":{"messages":[{"id":"msg1","role":"user","content":"Hello"}]}}`,
			`{"type":"RUN_STARTED", "runId":"run2","input":{"tools":[ ], "messages":[{"id":"msg1","role":"user","content":"Hello"}, { "id":"msg2","role":"user","content":"How are you?"}], "state":null},"vendor":1.0}`,
			`{"type":"RUN_STARTED", "runId":"run2","input":{"tools":[ ], "messages":[{ "id":"msg2","role":"user","content":"How are you?"}], "state":null},"vendor":1.0}`, ""},
		{"an input with nothing known keeps its text", "", `{"type":"RUN_STARTED","input":{"messages":[ {"id":"u"} , "hello" ]}}`, `{"type":"RUN_STARTED","input":{"messages":[ {"id":"u"} , "hello" ]}}`, ""},
		{"messages without an id are always new, a list's second of an id never", `{"type":"RUN_STARTED","input":{"messages":["hello"]}}`,
			`{"type":"RUN_STARTED","input":{"messages":["hello",{"role":"user"},{"id":"u"},{"id":"u"},7]}}`, `{"type":"RUN_STARTED","input":{"messages":["hello",{"role":"user"},{"id":"u"}]}}`, ""},
		{"interleaved messages and parallel calls", "",
			`{"type":"RUN_STARTED","threadId":"t","runId":"r"}
			{"type":"TEXT_MESSAGE_START","messageId":"a","rawEvent":{"x":1}}
			{"type":"REASONING_MESSAGE_START","messageId":"b","role":"reasoning","subagentRunId":"s"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"1","timestamp":1}
			{"type":"REASONING_MESSAGE_CONTENT","messageId":"b","delta":"x","subagentRunId":"s"}
			{"type":"STEP_STARTED","stepName":"n"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"2"}
			{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"a"}
			{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"g","parentMessageId":"a"}
			{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{"}
			{"type":"TOOL_CALL_ARGS","toolCallId":"d","delta":"[]"}
			{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"}"}
			{"type":"TOOL_CALL_END","toolCallId":"d"}
			{"type":"TOOL_CALL_END","toolCallId":"c"}
			{"type":"REASONING_MESSAGE_CONTENT","messageId":"b","delta":"y","subagentRunId":"s"}
			{"type":"REASONING_MESSAGE_END","messageId":"b","subagentRunId":"s"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"TOOL_CALL_RESULT","messageId":"rd","toolCallId":"d","content":"ok"}
			{"type":"STEP_FINISHED","stepName":"n"}
			{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
			`{"type":"RUN_STARTED","threadId":"t","runId":"r"}
			{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"12"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"REASONING_MESSAGE_START","messageId":"b","role":"reasoning","subagentRunId":"s"}
			{"type":"REASONING_MESSAGE_CONTENT","messageId":"b","delta":"xy"}
			{"type":"REASONING_MESSAGE_END","messageId":"b"}
			{"type":"STEP_STARTED","stepName":"n"}
			{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"a"}
			{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
			{"type":"TOOL_CALL_END","toolCallId":"c"}
			{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"g","parentMessageId":"a"}
			{"type":"TOOL_CALL_ARGS","toolCallId":"d","delta":"[]"}
			{"type":"TOOL_CALL_END","toolCallId":"d"}
			{"type":"TOOL_CALL_RESULT","messageId":"rd","toolCallId":"d","content":"ok"}
			{"type":"STEP_FINISHED","stepName":"n"}
			{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
			`{"type":"RUN_STARTED","threadId":"t","runId":"r"}
			{"type":"STEP_STARTED","stepName":"n"}
			{"type":"STEP_FINISHED","stepName":"n"}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"12","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"g","arguments":"[]"}}]},{"id":"rd","toolCallId":"d","role":"tool","content":"ok"},{"id":"b","role":"reasoning","content":"xy","subagentRunId":"s"}]}
			{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`},
		{"metadata comes together on the start, strings stay JSON text", "",
			`{"type":"TEXT_MESSAGE_START","messageId":"a","role":"user","name":"Ann","metadata":{"k":1, "l":1}}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"\ud83d","metadata":{"k":{"x":1.0}}}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"\ude00\u0000"}
			{"type":"TEXT_MESSAGE_END","messageId":"a","metadata":{"usage":[]}}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"a","role":"user","name":"Ann","metadata":{"k":{"x":1.0},"l":1,"usage":[]}}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"\ud83d\ude00\u0000"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"user","content":"\ud83d\ude00\u0000","name":"Ann","metadata":{"k":{"x":1.0},"l":1,"usage":[]}}]}`},
		{"a message that continues from before", textM,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b","metadata":{"k":1}}
			{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab","metadata":{"k":1}}
			{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"m"}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","content":"ab","metadata":{"k":1}}]}`},
		{"a message that is open at the end, and an empty one", "",
			`{"type":"TEXT_MESSAGE_START","messageId":"a"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":""}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"TEXT_MESSAGE_START","messageId":"b","role":"user"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"b","delta":"x"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"TEXT_MESSAGE_START","messageId":"b","role":"user"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"b","delta":"x"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":""},{"id":"b","role":"user","content":"x"}]}
			{"type":"TEXT_MESSAGE_START","messageId":"b","role":"user"}`},
		{"chunks", "",
			`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","delta":"{"}
			{"type":"REASONING_MESSAGE_CHUNK","messageId":"r","delta":"x","subagentRunId":"s"}
			{"type":"TOOL_CALL_CHUNK","delta":"}"}
			{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}
			{"type":"TEXT_MESSAGE_CHUNK","delta":"b","metadata":{"k":1}}
			{"type":"RUN_FINISHED"}`,
			`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}
			{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
			{"type":"TOOL_CALL_END","toolCallId":"c"}
			{"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning","subagentRunId":"s"}
			{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"x"}
			{"type":"REASONING_MESSAGE_END","messageId":"r"}
			{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","metadata":{"k":1}}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab"}
			{"type":"TEXT_MESSAGE_END","messageId":"m"}
			{"type":"RUN_FINISHED"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"id":"r","role":"reasoning","content":"x","subagentRunId":"s"},{"id":"m","role":"assistant","content":"ab","metadata":{"k":1}}]}
			{"type":"RUN_FINISHED"}`},
		{"chunks that may go on", "",
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user","delta":"a"}
			{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}
			{"type":"RAW","event":1}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab"}
			{"type":"TEXT_MESSAGE_END","messageId":"m"}
			{"type":"RAW","event":1}
			{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user"}`,
			`{"type":"RAW","event":1}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"user","content":"ab"}]}
			{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user"}`},
		{"a chunk that continues from before", `{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","delta":"{"}`,
			`{"type":"TOOL_CALL_CHUNK","delta":"}"}
			{"type":"RUN_FINISHED"}`,
			`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}
			{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"}"}
			{"type":"TOOL_CALL_END","toolCallId":"c"}
			{"type":"RUN_FINISHED"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}]}
			{"type":"RUN_FINISHED"}`},
		{"the state stands where it stood last; what fails leaves nothing", `{"type":"STATE_SNAPSHOT","snapshot":{"a":[1.0]}}`,
			`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a/-","value":1e400}]}
			{"type":"CUSTOM","name":"n","value":1}
			{"type":"STATE_DELTA","delta":[{"op":"add","path":"/b","value":-0}]}
			{"type":"CUSTOM","name":"o","value":1}
			{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/missing"}]}`,
			`{"type":"CUSTOM","name":"n","value":1}
			{"type":"STATE_SNAPSHOT","snapshot":{"a":[1.0,1e400],"b":-0}}
			{"type":"CUSTOM","name":"o","value":1}`,
			`{"type":"CUSTOM","name":"n","value":1}
			{"type":"CUSTOM","name":"o","value":1}
			{"type":"STATE_SNAPSHOT","snapshot":{"a":[1.0,1e400],"b":-0}}`},
		{"activities, as both proposals spell them", "",
			`{"type":"ACTIVITY","messageId":"a","activityType":"PLAN","snapshot":{"steps":[]},"subagentRunId":"s"}
			{"type":"ACTIVITY","messageId":"a","activityType":"PLAN","patch":{"op":"add","path":"/steps/-","value":1}}
			{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"PLAN","patch":[{"op":"remove","path":"/missing"}],"metadata":{"k":1}}
			{"type":"ACTIVITY_DELTA","messageId":"unknown","activityType":"PLAN","patch":[]}`,
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"PLAN","content":{"steps":[1]},"subagentRunId":"s","metadata":{"k":1}}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"activity","activityType":"PLAN","content":{"steps":[1]},"subagentRunId":"s","metadata":{"k":1}}]}`},
		{"a snapshot supersedes what comes before it", `{"type":"RUN_STARTED","input":{"messages":[{"id":"u","role":"user","content":"?"}]}}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"a"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"x"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"RAW","event":1}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"gone"}]}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"?"},{"id":"a","role":"assistant","content":"y"}]}
			{"type":"TEXT_MESSAGE_START","messageId":"b"}
			{"type":"TEXT_MESSAGE_END","messageId":"b"}`,
			`{"type":"RAW","event":1}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"?"},{"id":"a","role":"assistant","content":"y"}]}
			{"type":"TEXT_MESSAGE_START","messageId":"b","role":"assistant"}
			{"type":"TEXT_MESSAGE_END","messageId":"b"}`,
			`{"type":"RAW","event":1}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"?"},{"id":"a","role":"assistant","content":"y"},{"id":"b","role":"assistant","content":""}]}`},
		{"a snapshot in the middle of messages", "",
			`{"type":"TEXT_MESSAGE_START","messageId":"a"}
			{"type":"TEXT_MESSAGE_START","messageId":"gone"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"x"}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"y"}]}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"z"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"gone","delta":"z"}
			{"type":"TEXT_MESSAGE_END","messageId":"gone"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"x"}
			{"type":"TEXT_MESSAGE_START","messageId":"gone","role":"assistant"}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"y"}]}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"z"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"TEXT_MESSAGE_END","messageId":"gone"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"yz"}]}`},
		{"a message left open by an error", "",
			`{"type":"TEXT_MESSAGE_START","messageId":"a"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"x"}
			{"type":"STATE_SNAPSHOT","snapshot":1}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"y"}
			{"type":"RUN_ERROR","message":"failed"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"xy"}
			{"type":"STATE_SNAPSHOT","snapshot":1}
			{"type":"RUN_ERROR","message":"failed"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"xy"}]}
			{"type":"STATE_SNAPSHOT","snapshot":1}
			{"type":"RUN_ERROR","message":"failed"}`},
		{"a result for a call of the lineage needs a list that starts anew", callC + "\n" + textM,
			`{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"ok"}
			{"type":"RUN_FINISHED"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"ok"}
			{"type":"RUN_FINISHED"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[]}
			{"type":"MESSAGES_SNAPSHOT","messages":[` + callCBody + `,{"id":"r","toolCallId":"c","role":"tool","content":"ok"},{"id":"m","role":"assistant","content":""}]}
			{"type":"RUN_FINISHED"}`},
		{"of several runs the last comes as a snapshot", "",
			`{"type":"RUN_STARTED","runId":"1"}
			{"type":"TEXT_MESSAGE_CHUNK","messageId":"a","delta":"x"}
			{"type":"RUN_FINISHED","runId":"1"}
			{"type":"RUN_STARTED","runId":"2","input":{"messages":[{"id":"a","role":"assistant","content":"x"},{"id":"u","role":"user","content":"?"}]}}
			{"type":"TEXT_MESSAGE_CHUNK","messageId":"b","delta":"y"}
			{"type":"RUN_FINISHED","runId":"2"}`,
			`{"type":"RUN_STARTED","runId":"1"}
			{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"x"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"RUN_FINISHED","runId":"1"}
			{"type":"RUN_STARTED","runId":"2","input":{"messages":[{"id":"u","role":"user","content":"?"}]}}
			{"type":"TEXT_MESSAGE_START","messageId":"b","role":"assistant"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"b","delta":"y"}
			{"type":"TEXT_MESSAGE_END","messageId":"b"}
			{"type":"RUN_FINISHED","runId":"2"}`,
			`{"type":"RUN_STARTED","runId":"1"}
			{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"x"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"RUN_FINISHED","runId":"1"}
			{"type":"RUN_STARTED","runId":"2","input":{"messages":[{"id":"u","role":"user","content":"?"}]}}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"x"},{"id":"u","role":"user","content":"?"},{"id":"b","role":"assistant","content":"y"}]}
			{"type":"RUN_FINISHED","runId":"2"}`},
		{"an id that means two things stays as it came", "",
			`{"type":"TEXT_MESSAGE_START","messageId":"a"}
			{"type":"REASONING_MESSAGE_START","messageId":"a"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"1"}
			{"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"2"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"3"}
			{"type":"RUN_FINISHED"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"a"}
			{"type":"REASONING_MESSAGE_START","messageId":"a"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"1"}
			{"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"2"}
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"3"}
			{"type":"REASONING_MESSAGE_END","messageId":"a"}
			{"type":"TEXT_MESSAGE_END","messageId":"a"}
			{"type":"RUN_FINISHED"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"123"}]}
			{"type":"RUN_FINISHED"}`},
		{"what is not an event stays", "", "7\n{\"type\":\"FUTURE\"}", "7\n{\"type\":\"FUTURE\"}", ""},
		{"nothing", "", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			after := applyAll(New(), lines(test.after))
			for shape, want := range map[Shape]string{StreamShape: test.stream, SnapshotShape: test.snap} {
				if want == "" {
					want = test.stream
				}
				got := checkCompaction(t, lines(test.events), shape, after)
				if texts(got) != texts(lines(want)) {
					t.Errorf("%s: got\n%s\nwant\n%s", shape, strings.ReplaceAll(texts(got), "},{\"type", "}\n{\"type"), strings.ReplaceAll(texts(lines(want)), "},{\"type", "}\n{\"type"))
				}
			}
		})
	}
}

// An event that carries something of its own is in the result as often as it came, byte for byte and in its order, but for ends behind
// RUN_ERROR. Between these events may be what closes and opens things where a run ends in their middle.
func TestCompactionKeepsWhatItDoesNotMerge(t *testing.T) {
	t.Parallel()
	isKept := func(event json.RawMessage) bool {
		switch eventType := EventType(event); eventType {
		case "RAW", "CUSTOM", "FUTURE", "RUN_FINISHED", "RUN_ERROR":
			return true
		default:
			return strings.HasPrefix(eventType, "STEP_") || strings.HasPrefix(eventType, "SUBAGENT_")
		}
	}
	eachStream(t, 100, func(t *testing.T, events []json.RawMessage) {
		for _, shape := range shapes {
			compact := mustCompact(t, events, shape, nil)
			rest := compact
			hasFailed := false
			for _, event := range events {
				eventType := EventType(event)
				isEnd := eventType == "RUN_FINISHED" || eventType == "RUN_ERROR"
				if !isKept(event) || hasFailed && isEnd {
					hasFailed = hasFailed && eventType != "RUN_STARTED"
					continue
				}
				hasFailed = eventType == "RUN_ERROR" || hasFailed
				place := slices.IndexFunc(rest, func(got json.RawMessage) bool { return string(got) == string(event) })
				if place < 0 {
					t.Fatalf("%s: lost or moved: %s\nevents %s\ncompacted %s", shape, event, texts(events), texts(compact))
				}
				rest = rest[place+1:]
			}
		}
	})
}

// Of a stream that the client's verifier accepts, each message, call and activity has one event of a kind, each run one state.
func TestValidStreamsAreFullyCompacted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		events := compactiontest.Stream(seed, compactiontest.Options{Events: 200})
		if slices.ContainsFunc(events, func(event json.RawMessage) bool { return EventType(event) == "MESSAGES_SNAPSHOT" }) {
			continue // an id may come again behind a snapshot
		}
		if hasTextAndActivity(t, events) {
			continue // a run where a message becomes an activity stays as it came
		}
		for _, shape := range shapes {
			seen := map[string]bool{}
			for _, event := range mustCompact(t, events, shape, nil) {
				var e struct{ Type, MessageID, ToolCallID string }
				must.Do(t, json.Unmarshal(event, &e))
				switch {
				case e.Type == "RUN_STARTED":
					clear(seen)
					continue
				case e.Type == "MESSAGES_SNAPSHOT" && !seen["cleared"]:
					seen["cleared"] = true // the list may need two
					continue
				case e.Type == "STATE_SNAPSHOT" || e.Type == "STATE_DELTA" || e.Type == "MESSAGES_SNAPSHOT":
				case e.Type == "TOOL_CALL_RESULT" || strings.HasPrefix(e.Type, "TEXT_") || strings.HasPrefix(e.Type, "REASONING_MESSAGE") || strings.HasPrefix(e.Type, "TOOL_") || strings.HasPrefix(e.Type, "ACTIVITY_"):
				default:
					continue
				}
				key := e.Type
				if e.Type != "STATE_SNAPSHOT" {
					key = fmt.Sprint(e.Type, e.MessageID, e.ToolCallID)
				}
				if seen[key] || strings.HasSuffix(e.Type, "_CHUNK") || e.Type == "STATE_DELTA" {
					t.Errorf("seed %d, %s: not merged: %s", seed, shape, event)
				}
				seen[key] = true
			}
		}
	}
}

// hasTextAndActivity reports whether both a text and an activity have one id.
func hasTextAndActivity(t *testing.T, events []json.RawMessage) bool {
	t.Helper()
	texts, activities := map[string]bool{}, map[string]bool{}
	for _, event := range events {
		var e struct{ Type, MessageID string }
		must.Do(t, json.Unmarshal(event, &e))
		switch {
		case strings.HasPrefix(e.Type, "TEXT_"):
			texts[e.MessageID] = true
		case strings.HasPrefix(e.Type, "ACTIVITY_"):
			activities[e.MessageID] = true
		}
		if texts[e.MessageID] && activities[e.MessageID] {
			return true
		}
	}
	return false
}

// An input that is stored beside the events is part of what they are compacted to, and loses what the lineage has.
func TestCompactionOfAnInput(t *testing.T) {
	t.Parallel()
	after := applyAll(New(), lines(`{"type":"RUN_STARTED","threadId":"t","runId":"r1","input":{"messages":[{"id":"u","role":"user","content":"a"}]}}`))
	started := WithInput([]byte(`{"type":"RUN_STARTED","threadId":"t","runId":"r2"}`),
		[]byte(`{"state":{"n":1},"messages":[{"id":"u","role":"user","content":"a"},{"id":"v","role":"user","content":"b"}]}`))
	want := `{"type":"RUN_STARTED","threadId":"t","runId":"r2","input":{"state":{"n":1},"messages":[{"id":"v","role":"user","content":"b"}]}}`
	for _, shape := range shapes {
		if got := checkCompaction(t, []json.RawMessage{started}, shape, after); texts(got) != texts(lines(want)) {
			t.Errorf("%s: got %s, want %s", shape, texts(got), want)
		}
	}
}

// What a patch made the whole of an activity has the spelling that a fold of the patch in its place gives it.
func TestCompactionOfACopiedString(t *testing.T) {
	t.Parallel()
	events := lines(`
		{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"PLAN","content":{"a":"\/"}}
		{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"PLAN","patch":[{"op":"copy","from":"/a","path":""}]}`)
	for _, shape := range shapes {
		once := checkCompaction(t, events, shape, New())
		if twice := checkCompaction(t, once, shape, New()); texts(twice) != texts(once) {
			t.Errorf("%s: compacted twice it is %s, not %s", shape, texts(twice), texts(once))
		}
	}
}

// An input without the text of messages that the conversation has means what the whole input means, and counts as much.
func TestInputWithoutKnownMessages(t *testing.T) {
	t.Parallel()
	before := lines(`{"type":"RUN_STARTED","input":{"messages":[{"id":"u","role":"user","content":"a"},{"role":"user","content":"no id"}]}}`)
	started := []byte(`{"type":"RUN_STARTED"}`)
	messages := []string{`{"id":"u","role":"user","content":"other"}`, `{"role":"user","content":"no id"}`, `{"id":"w","role":"user","content":"c"}`, `{"id":"w","role":"user","content":"d"}`}
	whole, thin, missing := applyAll(New(), before), applyAll(New(), before), applyAll(New(), before)
	whole.Apply(WithInput(started, []byte(`{"state":{"n":1},"messages":[`+strings.Join(messages, ", ")+`]}`)))
	input := Input{JSON: []byte(`{"state":{"n":1},"messages":[]}`), SeparatorBytes: 2}
	for i, id := range []string{"u", "", "w", "w"} {
		input.Messages = append(input.Messages, InputMessage{ID: id, HasID: id != "", Bytes: len(messages[i]), JSON: []byte(messages[i])})
	}
	input.Messages[0].JSON = nil
	thin.ApplyInput(started, input)
	if messagesOf(thin) != messagesOf(whole) || thin.usage.brought != whole.usage.brought || thin.Err() != nil {
		t.Errorf("got %s (%d bytes, error %v), want %s (%d bytes)", messagesOf(thin), thin.usage.brought, thin.Err(), messagesOf(whole), whole.usage.brought)
	}
	input.Messages[2].JSON = nil
	if missing.ApplyInput(started, input); missing.Err() != ErrMissingMessage {
		t.Errorf("a new message without its text: error %v", missing.Err())
	}
}

func TestAFoldKeepsNothingOfAnInput(t *testing.T) {
	t.Parallel()
	started := `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
	for _, input := range []string{
		`{"state":{"n":1,"list":[1,{"a":"b"}]},"messages":[{"id":"u","role":"user","content":"hello"},"text",{"role":"user","content":"no id"}]}`,
		` { "state" : [ 1, "x" ] , "messages" : [ { "id" : "\u0075", "role" : "user" } ] } `,
		`{"state":"text","messages":[]}`,
	} {
		want := applyAll(New(), lines(started[:len(started)-1]+`,"input":`+input+`}`))
		for _, event := range [][]byte{nil, []byte(started)} {
			got, text := New(), []byte(input)
			got.ApplyInput(event, Input{JSON: text})
			clear(text)
			clear(event)
			wantMeaning(t, got, want)
		}
	}
}

func TestShapesHaveNames(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		if got, err := ParseShape(string(shape)); got != shape || err != nil {
			t.Errorf("%q is read as %q, %v", shape, got, err)
		}
	}
	if _, err := ParseShape("tree"); err == nil || err.Error() != `compaction: there is no shape "tree": use "stream" or "snapshot"` {
		t.Errorf("got error %v", err)
	}
}

func FuzzCompactEvents(f *testing.F) {
	for seed, options := range allStreams {
		options.Events = 12
		for more := range uint64(20) {
			f.Add(compactiontest.Batch(compactiontest.Stream(uint64(seed)+more, options)), uint8(more))
		}
	}
	f.Fuzz(func(t *testing.T, batch []byte, split uint8) {
		var events []json.RawMessage
		for event, err := range Split(batch) {
			if err != nil {
				return
			}
			events = append(events, event)
		}
		behind := min(int(split), len(events))
		after := applyAll(New(), events[:behind])
		for _, shape := range shapes {
			checkCompaction(t, events[behind:], shape, after)
		}
	})
}

func BenchmarkCompactEvents(b *testing.B) {
	for _, runs := range []int{1, 1000} {
		const perRun = 100_000
		var events []json.RawMessage
		for run := range runs {
			events = append(events, json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"t","runId":"%d"}`, run)))
			for event := range perRun / runs {
				id := fmt.Sprintf("%d-%d", run, event/50)
				if event%50 == 0 {
					events = append(events, json.RawMessage(`{"type":"TEXT_MESSAGE_START","messageId":"`+id+`","role":"assistant"}`))
				}
				events = append(events, json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"`+id+`","delta":" word","rawEvent":{"role":"assistant","contents":[{"$type":"text","text":" word"}]}}`))
				if event%50 == 49 {
					events = append(events, json.RawMessage(`{"type":"TEXT_MESSAGE_END","messageId":"`+id+`"}`))
				}
			}
			events = append(events, json.RawMessage(fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":"t","runId":"%d"}`, run)))
		}
		for _, shape := range shapes {
			b.Run(fmt.Sprintf("runs=%d/%s", runs, shape), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					CompactEvents(events, shape, nil)
				}
				b.ReportMetric(float64(len(events))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}
