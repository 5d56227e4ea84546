package compaction

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/must"
)

// foldOf folds events.
func foldOf(t testing.TB, events ...string) *Fold {
	t.Helper()
	f := New()
	must.Have(f.ApplyBatch([]byte("[" + strings.Join(events, ",") + "]")))(t)
	return f
}

func messagesOf(f *Fold) string {
	var bodies []string
	for _, m := range f.Messages() {
		bodies = append(bodies, string(m.JSON()))
	}
	return "[" + strings.Join(bodies, ",\n") + "]"
}

// meaning is all that a fold means, as text.
func meaning(f *Fold) string {
	return messagesOf(f) + "\n" + string(f.State()) + "\n" + string(f.Interrupts()) + "\n" + string(f.Lanes())
}

// wantMeaning compares two folds to the byte. Of a state that patches have reached, the values count: only the server prints it.
func wantMeaning(t *testing.T, got, want *Fold) {
	t.Helper()
	sameState := string(got.State()) == string(want.State())
	if got.statePatched || want.statePatched {
		sameState = jsontree.Equal(got.State(), want.State())
	}
	if messagesOf(got) != messagesOf(want) || !sameState ||
		string(got.Interrupts()) != string(want.Interrupts()) || string(got.Lanes()) != string(want.Lanes()) {
		t.Errorf("got:\n%s\nwant:\n%s", meaning(got), meaning(want))
	}
}

func TestTheFoldOfNothing(t *testing.T) {
	t.Parallel()
	if got, want := meaning(New()), "[]\n{}\n[]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Events that many cases use.
const (
	textM     = `{"type":"TEXT_MESSAGE_START","messageId":"m"}`
	helloM    = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hello"}`
	activityM = `{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"PLAN","content":{"tasks":["a"]}}`
	callC     = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`
	reasonR   = `{"type":"REASONING_MESSAGE_START","messageId":"r"}`

	helloMBody    = `{"id":"m","role":"assistant","content":"Hello"}`
	activityMBody = `{"id":"m","role":"activity","activityType":"PLAN","content":{"tasks":["a"]}}`
	callCBody     = `{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}`
	reasonRBody   = `{"id":"r","role":"reasoning","content":""}`
)

func snapshotOf(messages ...string) string {
	return `{"type":"MESSAGES_SNAPSHOT","messages":[` + strings.Join(messages, ",") + `]}`
}

func inputOf(messages ...string) string {
	return `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[` + strings.Join(messages, ",") + `]}}`
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		events []string
		want   []string
	}{
		// Text and reasoning
		{"a text message grows", []string{textM, helloM, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":" world"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`},
			[]string{`{"id":"m","role":"assistant","content":"Hello world"}`}},
		{"a start names role, name and subagent", []string{`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user","name":"Ann","subagentRunId":"s"}`},
			[]string{`{"id":"m","role":"user","content":"","name":"Ann","subagentRunId":"s"}`}},
		{"null fields of a start are absent", []string{`{"type":"TEXT_MESSAGE_START","messageId":"m","role":null,"name":null,"subagentRunId":null,"metadata":null}`},
			[]string{`{"id":"m","role":"assistant","content":""}`}},
		{"a second start keeps the message", []string{textM, helloM, `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user","name":"Ann","metadata":{"k":1}}`},
			[]string{`{"id":"m","role":"assistant","content":"Hello","metadata":{"k":1}}`}},
		{"text does not touch an activity", []string{activityM, `{"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"k":1}}`, helloM, `{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"k":1}}`},
			[]string{activityMBody}},
		{"content for an unknown id", []string{helloM}, nil},
		{"content that is no string counts as empty", []string{inputOf(`{"id":"m","role":"user","content":[{"type":"text","text":"x"}]}`), helloM},
			[]string{`{"id":"m","role":"user","content":"Hello"}`}},
		{"content of a message without any", []string{callC, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"c","delta":""}`},
			[]string{strings.TrimSuffix(callCBody, "}") + `,"content":""}`}},
		{"reasoning", []string{reasonR, `{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"think"}`, `{"type":"REASONING_MESSAGE_END","messageId":"r","metadata":{"k":1}}`},
			[]string{`{"id":"r","role":"reasoning","content":"think","metadata":{"k":1}}`}},
		{"events without effect", []string{`{"type":"REASONING_START","messageId":"m"}`, `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"x"}`, `{"type":"RAW","event":{}}`, `{"type":"CUSTOM","name":"n","value":1}`,
			`{"type":"STEP_STARTED","stepName":"s"}`, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}`, `{"type":"NEW_IN_2030","messageId":"m"}`}, nil},

		// Metadata
		{"metadata merges by key, never deep", []string{`{"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"a":{"x":1},"b":1}}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"","metadata":{"a":{"y":2}}}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"c":null}}`}, []string{`{"id":"m","role":"assistant","content":"","metadata":{"a":{"y":2},"b":1,"c":null}}`}},

		// Tool calls
		{"a call without a parent", []string{callC, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"q\":"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"1}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c","metadata":{"k":1}}`},
			[]string{`{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"q\":1}"},"metadata":{"k":1}}]}`}},
		{"a call attaches to its parent", []string{textM, helloM, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m","subagentRunId":"s"}`},
			[]string{`{"id":"m","role":"assistant","content":"Hello","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]}`}},
		{"a parent of another role", []string{`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}`, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`},
			[]string{`{"id":"m","role":"user","content":""}`, callCBody}},
		{"an unknown parent", []string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"p","subagentRunId":"s"}`},
			[]string{`{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}],"subagentRunId":"s"}`}},
		{"an empty parent is none", []string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":""}`}, []string{callCBody}},
		{"no parent, though the id exists", []string{`{"type":"TEXT_MESSAGE_START","messageId":"c"}`, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","subagentRunId":"s"}`},
			[]string{`{"id":"c","role":"assistant","content":""}`, callCBody}},
		{"a call that exists is renamed", []string{callC, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"g","parentMessageId":"p","metadata":{"k":1}}`},
			[]string{`{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"g","arguments":"{}"},"metadata":{"k":1}}]}`}},
		{"arguments for an unknown call", []string{`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`}, nil},
		{"a result stands behind its call and the results there", []string{callC, textM, `{"type":"TOOL_CALL_RESULT","messageId":"1","toolCallId":"c","content":"x"}`, `{"type":"TOOL_CALL_RESULT","messageId":"2","toolCallId":"c","content":[],"subagentRunId":"s","metadata":{"k":1}}`},
			[]string{callCBody, `{"id":"1","toolCallId":"c","role":"tool","content":"x"}`, `{"id":"2","toolCallId":"c","role":"tool","content":[],"subagentRunId":"s","metadata":{"k":1}}`, `{"id":"m","role":"assistant","content":""}`}},
		{"a result without an owner, with an id that exists", []string{textM, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"x","role":""}`},
			[]string{`{"id":"m","role":"assistant","content":""}`, `{"id":"m","toolCallId":"c","role":"tool","content":"x"}`}},
		{"only an assistant owns a result", []string{inputOf(`{"id":"u","role":"user","toolCalls":[{"id":"c"}]}`, `{"id":"a","role":"assistant","toolCalls":[{"id":"c"}]}`, `{"id":"z","role":"user"}`),
			`{"type":"TOOL_CALL_RESULT","messageId":"1","toolCallId":"c","content":"x"}`},
			[]string{`{"id":"u","role":"user","toolCalls":[{"id":"c"}]}`, `{"id":"a","role":"assistant","toolCalls":[{"id":"c"}]}`, `{"id":"1","toolCallId":"c","role":"tool","content":"x"}`, `{"id":"z","role":"user"}`}},
		{"the first of two messages with an id grows, also when it came last", []string{callC, textM, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"x"}`, helloM},
			[]string{callCBody, `{"id":"m","toolCallId":"c","role":"tool","content":"xHello"}`, `{"id":"m","role":"assistant","content":""}`}},

		// Messages snapshot
		{"a snapshot updates in place, drops and appends", []string{inputOf(`{"id":"a","role":"user","content":"a"}`, `{"id":"b","role":"user","content":"b"}`, `{"id":"c","role":"user","content":"c"}`),
			snapshotOf(`{"id":"d","role":"user"}`, `{"id":"c","role":"user","content":"C"}`, `{"id":"a","role":"user","content":"A","x":1.0}`)},
			[]string{`{"id":"a","role":"user","content":"A","x":1.0}`, `{"id":"c","role":"user","content":"C"}`, `{"id":"d","role":"user"}`}},
		{"a snapshot keeps activities and reasoning that it does not know", []string{activityM, reasonR, snapshotOf(`{"id":"u","role":"user"}`)},
			[]string{activityMBody, reasonRBody, `{"id":"u","role":"user"}`}},
		{"a snapshot with activities and reasoning has all of them", []string{activityM, reasonR, snapshotOf(`{"id":"x","role":"activity"}`, `{"id":"y","role":"reasoning"}`)},
			[]string{`{"id":"x","role":"activity"}`, `{"id":"y","role":"reasoning"}`}},
		{"a snapshot that claims all activities", []string{activityM, `{"type":"MESSAGES_SNAPSHOT","messages":[],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":null}}}`}, nil},
		{"a snapshot that claims a type", []string{activityM, `{"type":"ACTIVITY_SNAPSHOT","messageId":"n","activityType":"SEARCH","content":{}}`, `{"type":"MESSAGES_SNAPSHOT","messages":[],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":["SEARCH"]}}}`},
			[]string{activityMBody}},
		{"a snapshot whose claim makes no sense", []string{activityM, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"x","role":"activity"}],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":[1]}}}`},
			[]string{activityMBody, `{"id":"x","role":"activity"}`}},
		{"a null subagent reads as absent", []string{snapshotOf(`{"id":"a", "subagentRunId": null, "role":"user"}`), inputOf(`{"subagentRunId":null,"id":"b"}`)}, []string{`{"id":"a","role":"user"}`, `{"id":"b"}`}},
		{"messages that share an id become one", []string{textM, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"x"}`, snapshotOf(`{"id":"m","role":"user","content":"y"}`), helloM},
			[]string{`{"id":"m","role":"user","content":"yHello"}`, `{"id":"m","role":"user","content":"yHello"}`}},
		{"an activity's new content is for the first of them", []string{textM, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"x"}`, snapshotOf(`{"id":"m","role":"activity","content":{}}`),
			`{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"PLAN","patch":[{"op":"add","path":"/a","value":1}],"metadata":{"k":1}}`},
			[]string{`{"id":"m","role":"activity","content":{"a":1},"metadata":{"k":1},"activityType":"PLAN"}`, `{"id":"m","role":"activity","content":{},"metadata":{"k":1}}`}},

		// Activities
		{"an activity with subagent and metadata", []string{`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"PLAN","content":{},"subagentRunId":"s","metadata":{"k":1}}`},
			[]string{`{"id":"m","role":"activity","activityType":"PLAN","content":{},"subagentRunId":"s","metadata":{"k":1}}`}},
		{"an activity is replaced but for its metadata", []string{`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"PLAN","content":{},"subagentRunId":"s","metadata":{"k":1}}`, `{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"SEARCH","content":{"a":1}}`},
			[]string{`{"id":"m","role":"activity","activityType":"SEARCH","content":{"a":1},"metadata":{"k":1}}`}},
		{"an activity replaces another message", []string{textM, helloM, activityM}, []string{activityMBody}},
		{"without replace only metadata merges", []string{activityM, `{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"SEARCH","content":{"a":1},"replace":false,"metadata":{"k":1}}`},
			[]string{strings.TrimSuffix(activityMBody, "}") + `,"metadata":{"k":1}}`}},
		{"without replace another message stays", []string{textM, helloM, `{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"SEARCH","content":{"a":1},"replace":false,"metadata":{"k":1}}`}, []string{helloMBody}},
		{"without replace a new one is made", []string{`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"PLAN","content":{"tasks":["a"]},"replace":false}`}, []string{activityMBody}},
		{"an activity is patched", []string{activityM, `{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"DONE","patch":[{"op":"add","path":"/tasks/-","value":"b"}]}`},
			[]string{`{"id":"m","role":"activity","activityType":"DONE","content":{"tasks":["a","b"]}}`}},
		{"a patch that fails leaves the metadata", []string{activityM, `{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"DONE","patch":[{"op":"add","path":"/tasks/-","value":"b"},{"op":"remove","path":"/x"}],"metadata":{"k":1}}`},
			[]string{strings.TrimSuffix(activityMBody, "}") + `,"metadata":{"k":1}}`}},
		{"no patch sets the type", []string{activityM, `{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"DONE"}`}, []string{strings.Replace(activityMBody, "PLAN", "DONE", 1)}},
		{"a patch for no activity", []string{textM, helloM, `{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"DONE","patch":[],"metadata":{"k":1}}`, `{"type":"ACTIVITY_DELTA","messageId":"x","activityType":"DONE","patch":[]}`}, []string{helloMBody}},
		{"the proposal's activity", []string{`{"type":"ACTIVITY","messageId":"m","activityType":"PLAN","snapshot":{"tasks":["a"]},"patch":{"op":"add","path":"/tasks/-","value":"b"}}`, `{"type":"ACTIVITY","messageId":"m","activityType":"PLAN","snapshot":null,"patch":[{"op":"remove","path":"/tasks/0"}]}`},
			[]string{`{"id":"m","role":"activity","activityType":"PLAN","content":{"tasks":["b"]}}`}},

		// Runs
		{"input messages that are known are not updated", []string{textM, helloM, inputOf(`{"id":"m","role":"user"}`, `{"id":"n","role":"user"}`, `{"id":"n","role":"system"}`)}, []string{helloMBody, `{"id":"n","role":"user"}`}},
		{"strings and messages without an id are never merged", []string{inputOf(`"Hi"`, `{"role":"user","content":"Hi"}`), inputOf(`"Hi"`)},
			[]string{`{"role":"user","content":"Hi"}`, `{"role":"user","content":"Hi"}`, `{"role":"user","content":"Hi"}`}},
		{"an element that is no message is left out", []string{inputOf(`7`, `null`, `[]`, `{"id":"n"}`)}, []string{`{"id":"n"}`}},
		{"an encrypted value of a message", []string{textM, `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"x"}`, `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"n","encryptedValue":"x"}`},
			[]string{`{"id":"m","role":"assistant","content":"","encryptedValue":"x"}`}},
		{"an encrypted value of an activity", []string{activityM, `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"x"}`}, []string{activityMBody}},
		{"an encrypted value of a call", []string{callC, `{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"c","encryptedValue":"x"}`},
			[]string{`{"id":"c","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":""},"encryptedValue":"x"}]}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got, want := messagesOf(foldOf(t, test.events...)), "["+strings.Join(test.want, ",\n")+"]"; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		events []string
		want   string
	}{
		{"a snapshot replaces", []string{`{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`, `{"type":"STATE_SNAPSHOT","snapshot": [ 1.0 ]}`}, `[ 1.0 ]`},
		{"a snapshot may be null", []string{`{"type":"STATE_SNAPSHOT","snapshot":null}`}, `null`},
		{"a delta changes", []string{`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1},{"op":"add","path":"/b","value":2}]}`}, `{"a":1,"b":2}`},
		{"a delta fails as a whole, the next goes on", []string{`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/x"}]}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/b","value":2}]}`}, `{"b":2}`},
		{"a run starts from its input's state", []string{`{"type":"RUN_STARTED","input":{"state":{"seed":1}}}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]}`}, `{"seed":1,"a":1}`},
		{"an input without a state, or with null, changes nothing", []string{`{"type":"STATE_SNAPSHOT","snapshot":1}`, `{"type":"RUN_STARTED","input":{"state":null}}`, `{"type":"RUN_STARTED","input":{}}`}, `1`},
		{"the proposal's snapshot", []string{`{"type":"STATE_SNAPSHOT","state":{"a":1}}`}, `{"a":1}`},
		{"the proposal's patch, one operation", []string{`{"type":"STATE_DELTA","patch":{"op":"add","path":"/foo","value":1}}`, `{"type":"STATE_DELTA","patch":{"op":"replace","path":"/foo","value":2}}`}, `{"foo":2}`},
		{"the proposal's patch, a list", []string{`{"type":"STATE_DELTA","patch":[{"op":"add","path":"/foo","value":1}]}`}, `{"foo":1}`},
		{"a failed run keeps the state", []string{`{"type":"STATE_SNAPSHOT","snapshot":1}`, `{"type":"RUN_ERROR","message":"x"}`}, `1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := string(foldOf(t, test.events...).State()); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	interrupted := `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","subagentRunId":null,"reason":"x"},{"id":"j","n":1.0}]}}`
	for _, test := range []struct {
		name   string
		events []string
		want   string
	}{
		{"an interrupt sets them", []string{interrupted}, `[{"id":"i","reason":"x"},{"id":"j","n":1.0}]`},
		{"success clears them", []string{interrupted, `{"type":"RUN_FINISHED","outcome":{"type":"success"}}`}, `[]`},
		{"no outcome clears them", []string{interrupted, `{"type":"RUN_FINISHED","outcome":null}`}, `[]`},
		{"an error and a new run keep them", []string{interrupted, `{"type":"RUN_ERROR","message":"x"}`, `{"type":"RUN_STARTED"}`}, `[{"id":"i","reason":"x"},{"id":"j","n":1.0}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := string(foldOf(t, test.events...).Interrupts()); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	chunk := func(fields string) string { return `{"type":"TEXT_MESSAGE_CHUNK",` + fields + `}` }
	open := chunk(`"messageId":"m","delta":"He"`)
	goOn := chunk(`"delta":"llo"`)
	openS := chunk(`"messageId":"n","delta":"He","subagentRunId":"s"`)
	for _, test := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"text", []string{chunk(`"messageId":"m","role":"user","name":"Ann","delta":"He","metadata":{"k":1}`), chunk(`"messageId":"m","delta":"llo"`)}, []string{`{"id":"m","role":"user","content":"Hello","name":"Ann","metadata":{"k":1}}`}},
		{"an id is not repeated", []string{open, goOn}, []string{helloMBody}},
		{"a first chunk needs its id", []string{goOn}, nil},
		{"a first chunk of a call needs its name", []string{`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","delta":"{"}`}, nil},
		{"a call", []string{`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","parentMessageId":"p","delta":"{"}`, `{"type":"TOOL_CALL_CHUNK","delta":"}"}`},
			[]string{`{"id":"p","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`}},
		{"reasoning", []string{`{"type":"REASONING_MESSAGE_CHUNK","messageId":"r"}`, `{"type":"REASONING_MESSAGE_CHUNK","delta":"x"}`}, []string{`{"id":"r","role":"reasoning","content":"x"}`}},
		{"another id is another message", []string{open, chunk(`"messageId":"n","delta":"x"`), goOn}, []string{`{"id":"m","role":"assistant","content":"He"}`, `{"id":"n","role":"assistant","content":"xllo"}`}},
		{"an empty id is an id", []string{open, chunk(`"messageId":"","delta":"x"`)}, []string{`{"id":"m","role":"assistant","content":"He"}`, `{"id":"","role":"assistant","content":"x"}`}},
		{"another kind ends the stream", []string{open, `{"type":"REASONING_MESSAGE_CHUNK","messageId":"r"}`, goOn}, []string{`{"id":"m","role":"assistant","content":"He"}`, reasonRBody}},
		{"an event of the lane ends it", []string{open, `{"type":"CUSTOM","name":"n"}`, goOn}, []string{`{"id":"m","role":"assistant","content":"He"}`}},
		{"a snapshot of messages ends it", []string{openS, snapshotOf(`{"id":"u"}`), chunk(`"delta":"llo","subagentRunId":"s"`)}, []string{`{"id":"u"}`}},
		{"the end of a run ends it", []string{openS, `{"type":"RUN_ERROR","message":"x"}`, chunk(`"delta":"llo","subagentRunId":"s"`)}, []string{`{"id":"n","role":"assistant","content":"He","subagentRunId":"s"}`}},
		{"these do not end it", []string{open, `{"type":"RAW"}`, `{"type":"REASONING_ENCRYPTED_VALUE","entityId":"x","encryptedValue":"y"}`, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}`, `{"type":"SUBAGENT_FINISHED"}`, `{"type":"NEW"}`,
			`{"type":"ACTIVITY_DELTA","messageId":"x","activityType":"y"}`, `{"type":"ACTIVITY","messageId":"x","activityType":"y"}`, goOn}, []string{helloMBody}},
		{"lanes do not mix", []string{open, openS, goOn, chunk(`"delta":"y","subagentRunId":"s"`), `{"type":"CUSTOM","name":"n"}`, chunk(`"delta":"!","subagentRunId":"s"`)}, []string{helloMBody, `{"id":"n","role":"assistant","content":"Hey!","subagentRunId":"s"}`}},
		{"a subagent's end ends its stream", []string{openS, `{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}`, chunk(`"delta":"y","subagentRunId":"s"`)}, []string{`{"id":"n","role":"assistant","content":"He","subagentRunId":"s"}`}},
		{"a chunk that names nothing continues the only stream", []string{openS, `{"type":"REASONING_MESSAGE_CHUNK","messageId":"r"}`, goOn}, []string{`{"id":"n","role":"assistant","content":"Hello","subagentRunId":"s"}`, reasonRBody}},
		{"one that could continue two is skipped", []string{openS, chunk(`"messageId":"o","subagentRunId":"t"`), goOn}, []string{`{"id":"n","role":"assistant","content":"He","subagentRunId":"s"}`, `{"id":"o","role":"assistant","content":"","subagentRunId":"t"}`}},
		{"an open id goes on where it is", []string{openS, chunk(`"messageId":"n","delta":"llo"`), chunk(`"messageId":"n","delta":"!","subagentRunId":"t"`)}, []string{`{"id":"n","role":"assistant","content":"Hello!","subagentRunId":"s"}`}},
		{"metadata alone continues", []string{open, chunk(`"metadata":{"usage":1}`)}, []string{`{"id":"m","role":"assistant","content":"He","metadata":{"usage":1}}`}},
		{"a provider's event alone is a piece of no length", []string{callC, chunk(`"messageId":"c"`), chunk(`"rawEvent":{}`)}, []string{strings.TrimSuffix(callCBody, "}") + `,"content":""}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got, want := messagesOf(foldOf(t, test.events...)), "["+strings.Join(test.want, ",\n")+"]"; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestOpenLanesAreDescribed(t *testing.T) {
	t.Parallel()
	f := foldOf(t, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m"}`, `{"type":"TOOL_CALL_CHUNK","toolCallId":"c\u0000","toolCallName":"f","subagentRunId":"s"}`, `{"type":"REASONING_MESSAGE_CHUNK","messageId":"r"}`)
	want := `[{"lane":"s","kind":"tool","id":"c\u0000"},{"lane":null,"kind":"reasoning","id":"r"}]`
	if got := string(f.Lanes()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.Apply([]byte(`{"type":"RUN_FINISHED"}`))
	if f.Lanes() != nil {
		t.Errorf("lanes are open after the run: %s", f.Lanes())
	}
}

// An event that is not what its type asks for is skipped as if it were not there: it does not even end a stream of chunks.
func TestMalformedEventsAreSkipped(t *testing.T) {
	t.Parallel()
	before := []string{
		textM, helloM, strings.ReplaceAll(activityM, `"m"`, `"a"`), callC, `{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`,
		`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"chunked","delta":"x"}`,
	}
	want := foldOf(t, before...)
	for _, event := range []string{
		`7`, `null`, `"x"`, `[]`, `{}`, `{"type":7}`, `{"type":null}`, `{"type":["TEXT_MESSAGE_START"],"messageId":"m"}`, `{"type":"toString"}`,
		`{"type":"TEXT_MESSAGE_START"}`, `{"type":"TEXT_MESSAGE_START","messageId":7}`, `{"type":"TEXT_MESSAGE_START","messageId":"n","role":7}`, `{"type":"TEXT_MESSAGE_START","messageId":"n","name":{}}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"n","subagentRunId":7}`, `{"type":"TEXT_MESSAGE_START","messageId":"n","metadata":[]}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":null}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":7}`, `{"type":"TEXT_MESSAGE_CONTENT","delta":"x"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":"x"}`, `{"type":"CUSTOM","subagentRunId":7}`,
		`{"type":"TOOL_CALL_START","toolCallId":"d"}`, `{"type":"TOOL_CALL_START","toolCallName":"f"}`, `{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"f","parentMessageId":7}`,
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":{}}`, `{"type":"TOOL_CALL_RESULT","toolCallId":"c","content":"x"}`, `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":{}}`,
		`{"type":"STATE_SNAPSHOT"}`, `{"type":"STATE_DELTA"}`, `{"type":"STATE_DELTA","delta":{"op":"add","path":"/b","value":1}}`, `{"type":"STATE_DELTA","delta":7}`, `{"type":"STATE_DELTA","patch":"x"}`,
		`{"type":"MESSAGES_SNAPSHOT"}`, `{"type":"MESSAGES_SNAPSHOT","messages":{}}`, `{"type":"MESSAGES_SNAPSHOT","messages":null}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"X"}`, `{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"X","content":[]}`, `{"type":"ACTIVITY_SNAPSHOT","messageId":"a","content":{}}`,
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"X","content":{},"replace":"no"}`, `{"type":"ACTIVITY_DELTA","messageId":"a","patch":[]}`, `{"type":"ACTIVITY","messageId":"a","activityType":"X","snapshot":7}`,
		`{"type":"REASONING_ENCRYPTED_VALUE","entityId":"m"}`, `{"type":"REASONING_ENCRYPTED_VALUE","entityId":"m","encryptedValue":7}`,
		`{"type":"RUN_STARTED","input":[]}`, `{"type":"RUN_STARTED","input":{"state":1,"messages":{}}}`, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt"}}`, `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":{}}}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":7}`, `{"type":"TEXT_MESSAGE_CHUNK","delta":7}`, `{"type":"REASONING_MESSAGE_CHUNK"}`, `{"type":"TOOL_CALL_CHUNK","toolCallId":"c"}`,
	} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			wantMeaning(t, foldOf(t, append(before[:len(before):len(before)], event)...), want)
		})
	}
}

func TestJSONStaysAsWritten(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		events []string
		want   string
	}{
		{"halves of an emoji join", []string{textM, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ud83d"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude00"}`}, `{"id":"m","role":"assistant","content":"\ud83d\ude00"}`},
		{"zero bytes, lone surrogates and escapes", []string{textM, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\u0000\udc00\/<>&\u001B\n"}`}, `{"id":"m","role":"assistant","content":"\u0000\udc00/<>&\u001b\n"}`},
		{"ids are compared decoded", []string{textM, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"\u006d","delta":"x"}`}, `{"id":"m","role":"assistant","content":"x"}`},
		{"keys and types are compared decoded", []string{textM, `{"t\u0079pe":"TEXT_MESSAGE\u005fCONTENT","m\u0065ssageId":"m","delta":"x"}`}, `{"id":"m","role":"assistant","content":"x"}`},
		{"the last of duplicate keys wins", []string{textM, `{"type":"NO","type":"TEXT_MESSAGE_CONTENT","messageId":7,"messageId":"m","delta":"no","delta":"x"}`}, `{"id":"m","role":"assistant","content":"x"}`},
		{"unlike surrogates are unlike ids", []string{`{"type":"TEXT_MESSAGE_START","messageId":"\ud800"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"\ud801","delta":"x"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"\ufffd","delta":"x"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"\uD800","delta":"y"}`}, `{"id":"\ud800","role":"assistant","content":"y"}`},
		{"messages keep unknown fields and the spelling of numbers", []string{snapshotOf(`{ "id" : "m", "n": 1.0, "big": 1e400, "\u0078": {"y": [ " " ]} }`)}, `{ "id" : "m", "n": 1.0, "big": 1e400, "\u0078": {"y": [ " " ]} }`},
		{"also when they change", []string{snapshotOf(`{ "id" : "m", "n": 1.0, "\u0078\u0000": {"y": [ ]}, "content": "\ud83d" }`), `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude00"}`}, `{"id":"m","n":1.0,"x\u0000":{"y": [ ]},"content":"\ud83d\ude00"}`},
		{"metadata keys", []string{textM, `{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"a":1.0,"\ud800":2}}`, `{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"\u0061":1e0,"\ud800":-0}}`}, `{"id":"m","role":"assistant","content":"","metadata":{"a":1e0,"\ud800":-0}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got, want := messagesOf(foldOf(t, test.events...)), "["+test.want+"]"; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestStateKeepsSpellings(t *testing.T) {
	t.Parallel()
	got := string(foldOf(t, `{"type":"STATE_SNAPSHOT","snapshot":{"n": 1.00, "deep": { "kept" : 1e5 }, "\u0000": "\ud800", "list": [ 1, 2 ]}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/list/0","value": 2.50},{"op":"add","path":"/\u0000","value":"\udc00"},{"op":"add","path":"/\ud800\"","value":0}]}`).State())
	if want := `{"n":1.00,"deep":{"kept":1e5},"\u0000":"\udc00","list":[2.50,2],"\ud800\"":0}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMessageAccessors(t *testing.T) {
	t.Parallel()
	f := foldOf(t, `{"type":"TEXT_MESSAGE_START","messageId":"\u0061\ud800\u0000","role":"us\u0065r"}`, inputOf(`"no id"`))
	m := f.Messages()[0]
	if m.ID() != "a\xed\xa0\x80\x00" || m.Role() != "user" {
		t.Errorf("got id %q and role %q", m.ID(), m.Role())
	}
	if m := f.Messages()[1]; m.ID() != "" || m.Role() != "user" {
		t.Errorf("got id %q and role %q", m.ID(), m.Role())
	}
}

func TestVersionsFollowChanges(t *testing.T) {
	t.Parallel()
	f := foldOf(t, textM, helloM, callC)
	tag := func() {
		for i, m := range f.Messages() {
			m.Version = int32(i + 1)
		}
	}
	for _, test := range []struct {
		event string
		want  [2]int32
	}{
		{helloM, [2]int32{0, 2}},
		{`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":""}`, [2]int32{1, 2}},
		{textM, [2]int32{1, 2}},
		{callC, [2]int32{1, 2}},
		{`{"type":"TEXT_MESSAGE_END","messageId":"m"}`, [2]int32{1, 2}},
		{`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"x"}`, [2]int32{1, 0}},
		{`{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"n":1}}`, [2]int32{0, 2}},
		{snapshotOf(`{"content":"Hello\u0048ello", "metadata": {"n":1}, "role":"assistant", "id":"m"}`, `{"id":"c","role":"assistant"}`), [2]int32{0, 0}},
		{snapshotOf(`{"content":"HelloHello","metadata":{"n":1.0},"role":"assistant","id":"m"}`, `{"id":"c","role":"assistant"}`), [2]int32{0, 2}},
		{snapshotOf(`{"content":"HelloHello","metadata":{"n":1.0},"role":"assistant","id":"m"}`, `{"id":"c","role":"assistant"}`), [2]int32{1, 2}},
	} {
		tag()
		f.Apply([]byte(test.event))
		if got := [2]int32{f.Messages()[0].Version, f.Messages()[1].Version}; got != test.want {
			t.Errorf("after %s: versions %v, want %v", test.event, got, test.want)
		}
	}
}

// Results that are put in between move the messages behind them, which must still be found.
func TestMessagesAreFoundBehindInsertedResults(t *testing.T) {
	t.Parallel()
	const count = 50
	f := foldOf(t, callC)
	for i := range count {
		f.Apply(fmt.Appendf(nil, `{"type":"TOOL_CALL_START","toolCallId":"call-%d","toolCallName":"f","parentMessageId":"message-%d"}`, i, i))
	}
	for i := range count {
		f.Apply(fmt.Appendf(nil, `{"type":"TOOL_CALL_RESULT","messageId":"result-%d","toolCallId":"c","content":""}`, i))
		for j := range count {
			f.Apply(fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"message-%d","delta":"x"}`, j))
			f.Apply(fmt.Appendf(nil, `{"type":"TOOL_CALL_ARGS","toolCallId":"call-%d","delta":"y"}`, j))
		}
	}
	for i, m := range f.Messages()[1+count:] {
		want := fmt.Sprintf(`{"id":"message-%d","role":"assistant","toolCalls":[{"id":"call-%d","type":"function","function":{"name":"f","arguments":"%s"}}],"content":"%s"}`,
			i, i, strings.Repeat("y", count), strings.Repeat("x", count))
		if string(m.JSON()) != want {
			t.Fatalf("got %s\nwant %s", m.JSON(), want)
		}
	}
}

// A state that comes again, as it is, changes nothing but that it counts as set. A clone reads it anew.
func TestAStateComesAgain(t *testing.T) {
	t.Parallel()
	states := []string{
		`{}`, `{"a":{"b":[1,2,{"c":"x\n\u00e9\ud800"}]},"\u0061\"":[],"n":1.50,"l":[]}`, `[1,[2,3],{"a":{}}]`, `"a\/b"`, `null`,
		`{"a": {"b" :[]} , "a":{"b":[0]}}`, `{"a":{"b":["` + strings.Repeat("long ", 40) + `"]}}`,
	}
	values := []string{`1`, `"a\/\u0041\n"`, `{"b":[]}`, `{"b" : [1, 2]}`, `[]`, `[{"c":1}]`, `null`, `"` + strings.Repeat("long ", 60) + `"`}
	paths := []string{``, `/a`, `/a/b`, `/a/b/0`, `/a/b/-`, `/n`, `/l/-`, `/0`, `/1/0`, `/a\"`, `/new`, `/a/b/2/c`}
	kept := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		choose := func(from []string) string { return from[random.IntN(len(from))] }
		limits := DefaultLimits()
		limits.DocumentBytes = []int64{limits.DocumentBytes, 3000, 500}[random.IntN(3)] // sizes do not matter, do, and are exceeded
		f := New()
		f.SetLimits(limits)
		anew := f.Clone()
		for range 60 {
			var event string
			switch random.IntN(10) {
			case 0:
				event = `{"type":"STATE_SNAPSHOT","snapshot":` + choose(states) + `}`
			case 1, 2, 3:
				event = `{"type":"STATE_SNAPSHOT","snapshot":` + string(f.Clone().State()) + `}`
			case 4:
				event = `{"type":"RUN_STARTED","input":{"state":` + string(f.Clone().State()) + `,"messages":[]}}`
			default:
				operation := choose([]string{"add", "add", "replace", "remove", "test", "copy", "move"})
				event = fmt.Sprintf(`{"type":"STATE_DELTA","delta":[{"op":"%s","path":"%s","from":"%s","value":%s}]}`,
					operation, choose(paths), choose(paths), choose(values))
			}
			before, stateBefore := jsontree.Identity(f.state.Value()), string(f.Clone().State())
			f.Apply([]byte(event))
			if strings.Contains(event, "SNAPSHOT") && before == jsontree.Identity(f.state.Value()) && strings.Contains(event, stateBefore+`}`) {
				kept++
			}
			anew = anew.Clone()
			anew.Apply([]byte(event))
			// Of a state that patches have changed, the size is that of the one or the other spelling.
			if !f.statePatched && f.StateSize() != anew.StateSize() || f.StateChanges() != anew.StateChanges() || f.statePatched != anew.statePatched ||
				string(f.Clone().State()) != string(anew.Clone().State()) ||
				f.usage.size != anew.usage.size || f.usage.brought != anew.usage.brought || f.usage.spent != anew.usage.spent {
				t.Fatalf("seed %d, %s:\n%s, %d bytes, %d changes, %+v\nread anew:\n%s, %d bytes, %d changes, %+v",
					seed, event, f.State(), f.StateSize(), f.StateChanges(), f.usage, anew.State(), anew.StateSize(), anew.StateChanges(), anew.usage)
			}
			wantMeaning(t, f, anew)
		}
	}
	if kept < 300 {
		t.Errorf("%d states were not taken apart again", kept)
	}
}
