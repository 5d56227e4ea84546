package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func TestRepairEvents(t *testing.T) {
	t.Parallel()
	const (
		started  = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}` + "\n"
		finished = `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}` + "\n"
		waiting  = `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}` + "\n"
		failed   = `{"type":"RUN_ERROR","message":"failed"}` + "\n"
		text     = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user","name":"n","subagentRunId":"s","metadata":{"a":1}}` + "\n"
		again    = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user","name":"n","subagentRunId":"s"}` + "\n"
		piece    = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}` + "\n"
		textEnd  = `{"type":"TEXT_MESSAGE_END","messageId":"m"}` + "\n"
		call     = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}` + "\n"
		recall   = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}` + "\n"
		args     = `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}` + "\n"
		callEnd  = `{"type":"TOOL_CALL_END","toolCallId":"c"}` + "\n"
		result   = `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":"ok"}` + "\n"
		custom   = `{"type":"CUSTOM","name":"n","value":1}` + "\n"
		list     = `{"type":"MESSAGES_SNAPSHOT","messages":[]}` + "\n"
		chunk    = `{"type":"TEXT_MESSAGE_CHUNK","messageId":"k","delta":"Hi"}` + "\n"
	)
	for _, test := range []struct{ name, events, want string }{
		{"a run that keeps the rules", started + text + piece + textEnd + finished, ""},
		{"a failed run and the next one", started + text + failed + started + finished, ""},
		{"a fragment", piece + textEnd + finished, ""},
		{"an end in the middle of a message", started + text + finished + piece + textEnd + finished,
			started + text + textEnd + finished + started + again + piece + textEnd + finished},
		{"an end with a call open", started + call + finished + args + callEnd,
			started + call + callEnd + finished + started + recall + args + callEnd + finished},
		{"text and ends behind an error", started + failed + text + piece + textEnd + finished + failed, started + failed},
		{"a custom event between what has no effect", started + failed + text + custom + textEnd + finished, started + failed + started + custom + failed},
		{"a run that begins again behind an error", started + failed + text + started + text + textEnd + finished, started + failed + started + text + textEnd + finished},
		{"two ends", started + finished + finished, started + finished + started + finished},
		{"two beginnings", started + text + started + piece + textEnd + finished,
			started + text + textEnd + finished + started + again + piece + textEnd + finished},
		{"a result before the beginning", result + started + finished, started + result + finished + started + finished},
		{"interrupts behind the end", started + waiting + piece, started + waiting + started + piece + waiting},
		{"interrupts and two beginnings", started + waiting + started + started,
			started + waiting + started + `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}` + "\n" + started},
		{"a message that is gone", started + text + list + finished + piece + textEnd + finished, started + text + list + textEnd + finished + started + finished},
		{"a chunk behind the end", started + finished + chunk, started + finished + started + chunk},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := test.want
			if want == "" {
				want = test.events
			}
			if got := RepairEvents(lines(test.events), nil); texts(got) != texts(lines(want)) {
				t.Errorf("got\n%s\nwant\n%s", texts(got), texts(lines(want)))
			}
		})
	}
}

// What the lineage waits for stays: a run that starts twice does not answer it.
func TestRepairKeepsInterruptsOfTheLineage(t *testing.T) {
	t.Parallel()
	after := applyAll(New(), lines(`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}`))
	started := `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
	got := RepairEvents(lines(started+"\n"+started), after)
	want := started + "\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}` + "\n" + started
	if texts(got) != texts(lines(want)) {
		t.Errorf("got\n%s\nwant\n%s", texts(got), want)
	}
}

// Twice the events take twice the work and add twice the events.
func TestRepairsAreLinear(t *testing.T) {
	stream := func(breaks int) []json.RawMessage {
		events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`)}
		for n := range breaks {
			id := fmt.Sprintf(`,"messageId":"m%d"`, n)
			events = append(events, lines(`{"type":"TEXT_MESSAGE_START"`+id+`}
				{"type":"RUN_FINISHED","threadId":"t","runId":"r"}
				{"type":"TEXT_MESSAGE_CONTENT","delta":"Hi"`+id+`}
				{"type":"TEXT_MESSAGE_END"`+id+`}`)...)
		}
		return events
	}
	added := func(breaks int) int { return len(RepairEvents(stream(breaks), nil)) - 4*breaks - 1 }
	if small, large := added(500), added(1000); large != 2*small-1 {
		t.Errorf("500 ends in the middle add %d events, 1,000 add %d", small, large)
	}
	small, large := stream(500), stream(1000)
	allocations := func(events []json.RawMessage) float64 {
		return testing.AllocsPerRun(1, func() { RepairEvents(events, nil) })
	}
	if once, twice := allocations(small), allocations(large); twice > 2.5*once {
		t.Errorf("500 ends in the middle take %v allocations, 1,000 take %v", once, twice)
	}
}

func TestRepairedEventsMeanTheSame(t *testing.T) {
	t.Parallel()
	eachStream(t, 200, func(t *testing.T, events []json.RawMessage) {
		given := slices.Clone(events)
		whole := RepairEvents(events, nil)
		if want, got := applyAll(New(), events), applyAll(New(), whole); !sameMeaning(want, got) {
			t.Errorf("means\n%s\nrepaired\n%s", meaning(want), meaning(got))
		}
		if again := RepairEvents(whole, nil); texts(again) != texts(whole) {
			t.Errorf("repaired twice:\n%s", difference(whole, again))
		}
		if texts(events) != texts(given) {
			t.Error("the events given have changed")
		}
	})
}
