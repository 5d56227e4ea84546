package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestMalformedEventsAreNamed(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	for _, c := range []struct{ event, want string }{
		{`{"type":"TEXT_MESSAGE_START","messageId":"m"}`, ""},
		{`{"type":"TEXT_MESSAGE_START"}`, `it has no "messageId"`},
		{`{"type":"TEXT_MESSAGE_START","messageId":null}`, `"messageId" is of type null, not string`},
		{`{"type":"TEXT_MESSAGE_START","message_id":"m"}`, `it has "message_id", not "messageId"`},
		{`{"type":"TEXT_MESSAGE_CONTENT","messageId":1}`, `it has no "delta", "messageId" is of type number, not string`},
		{`{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}`, ""}, // of the message before
		{`{"type":"TOOL_CALL_START","tool_call_id":"c","tool_call_name":"f"}`, `it has "tool_call_id", not "toolCallId", it has "tool_call_name", not "toolCallName"`},
		{`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[]}`, ""},
		{`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":{}}`, `"content" is of type object, not string or array`},
		{`{"type":"EventType.TEXT_MESSAGE_END","messageId":"m"}`, `its type is not "TEXT_MESSAGE_END"`},
		{`{"type":"MESSAGES_SNAPSHOT","messages":"\u0000"}`, `"messages" is of type string, not array`},
		{`{"type":"CUSTOM","name":"x"}`, ""},
		{`{"type":"OF_THE_FUTURE"}`, ""},
	} {
		mustAppend(t, store, c.event, "r", []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`), json.RawMessage(c.event)})
		found := must.Have(store.MalformedEvents(t.Context(), pgagui.RunRef{ThreadID: c.event, RunID: "r"}, 0))(t)
		var problems []string
		for _, event := range found {
			problems = append(problems, fmt.Sprint(event.Seq, ": ", event.Problem))
		}
		if got := strings.Join(problems, "\n"); got != "" && got != "2: "+c.want || got == "" && c.want != "" {
			t.Errorf("%s: %q, want %q", c.event, got, c.want)
		}
	}
}

// What is named has no effect: without it the log means the same.
func TestMalformedEventsHaveNoEffect(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	named := 0
	for i, kind := range kindsOfStreams {
		if !kind.options.Malformed && !strings.HasPrefix(kind.name, "valid") {
			continue
		}
		for n := range streamsOfAKind(2) {
			seed := *firstSeed + uint64(n)
			var stream []json.RawMessage
			for _, event := range compactiontest.Stream(seed<<8+uint64(i), kind.options) {
				if eventType := compaction.EventType(event); eventType != "" && !strings.HasPrefix(eventType, "RUN_") {
					stream = append(stream, event)
				}
			}
			stream = run("r", stream)
			thread := fmt.Sprint(kind.name, " ", n)
			mustAppend(t, store, thread, "r", stream)
			malformed := must.Have(store.MalformedEvents(t.Context(), pgagui.RunRef{ThreadID: thread}, len(stream)))(t)
			if !kind.options.Malformed && len(malformed) > 0 {
				t.Errorf("%s, seed %d: %v", kind.name, seed, malformed)
			}
			named += len(malformed)
			rest := slices.Clone(stream)
			for _, event := range malformed {
				rest[event.Seq-1] = json.RawMessage(`{"type":"OF_THE_FUTURE"}`)
			}
			if problem := differences(foldInGo(t, rest), foldInGo(t, stream)); problem != "" {
				t.Fatalf("%s, seed %d: without %v %s", kind.name, seed, malformed, problem)
			}
		}
	}
	if named == 0 {
		t.Error("no generated stream has a malformed event")
	}
}
