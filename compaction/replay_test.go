package compaction

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestReplayGivesWhatTheFoldMeans(t *testing.T) {
	t.Parallel()
	eachStream(t, 60, func(t *testing.T, events []json.RawMessage) {
		f := New()
		f.at.runID = []byte(`"r"`)
		started := json.RawMessage(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`)
		var ended json.RawMessage
		for _, event := range events {
			if !f.hasFailed {
				ended = nil
			}
			f.Apply(event)
			switch eventType := EventType(event); {
			case eventType == "RUN_STARTED":
				started, ended = event, nil
			case ended == nil && (eventType == "RUN_FINISHED" || eventType == "RUN_ERROR"):
				ended = event
			}
			replay := f.Replay(started, ended)
			want := f.Clone()
			want.lanes = slices.DeleteFunc(want.lanes, func(l lane) bool { return !want.knows(l) })
			if id := want.thinking.message; id != nil && !want.knows(lane{kind: thinkingStream, id: id}) {
				want.thinking = Thinking{}
			}
			if got := applyAll(New(), replay); !sameMeaning(want, got) {
				t.Fatalf("means\n%s\nits replay\n%s\n%s", meaning(f), meaning(got), texts(replay))
			}
		}
	})
}

func TestReplay(t *testing.T) {
	t.Parallel()
	const (
		started  = `{"type":"RUN_STARTED","threadId":"t","runId":"2","parentRunId":"1","input":{"messages":[{"id":"m"}, "x"],"tools":[]}}`
		finished = `{"type":"RUN_FINISHED","threadId":"t","runId":"2"}`
		failed   = `{"type":"RUN_ERROR","message":"failed"}`
		waiting  = `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}`
		rest     = `{"type":"RUN_STARTED","threadId":"t","runId":"2","parentRunId":"1","input":{"messages":[],"tools":[]}}
			{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","content":""}]}
			{"type":"STATE_SNAPSHOT","snapshot":{}}
			`
		earlier = `{"type":"RUN_STARTED","threadId":"t","runId":"1"}
			{"type":"RUN_FINISHED","threadId":"t","runId":"1","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}
			`
	)
	for _, test := range []struct{ name, events, ended, want string }{
		{"a finished run", textM, finished, rest + finished},
		{"a run that waits for an answer", textM + "\n" + waiting, waiting, rest + waiting},
		{"a failed run behind one that waits", waiting + "\n" + textM, failed, earlier + rest + failed},
		{"a question behind the end", textM + "\n" + finished + "\n" + `{"type":"CUSTOM","name":"on_interrupt","value":"Erase it?"}`, finished, rest + finished},
		{"a run in progress", `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m"}`, "", rest + `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var ended json.RawMessage
			if test.ended != "" {
				ended = json.RawMessage(test.ended)
			}
			if got, want := texts(applyAll(New(), lines(test.events)).Replay(json.RawMessage(started), ended)), texts(lines(test.want)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
