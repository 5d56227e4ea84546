package compaction_test

import (
	"encoding/json"
	"testing"

	"github.com/pgagui/pgagui/compaction"
)

func TestTextsAreCheckedForBeingOneEvent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		eventType string
		isEvent   bool
	}{
		`{"type":"RUN_STARTED"}`:                         {"RUN_STARTED", true},
		" {\n\"delta\" : [1, {}] , \"type\":\"OTHER\"} ": {"OTHER", true},
		`{"type":"CUSTOM","type":"RUN_ERROR"}`:           {"RUN_ERROR", true},
		`{"\u0074ype":"RUN\u005fERROR"}`:                 {"RUN_ERROR", true},
		`{"type":"a\\b"}`:                                {`a\b`, true},
		`{"type":1}`:                                     {"", true},
		`{"type":null}`:                                  {"", true},
		`{"x":{"type":"CUSTOM"}}`:                        {"", true},
		`{}`:                                             {"", true},
		`{"type":"CUSTOM"}{}`:                            {"CUSTOM", false},
		`{"type":"CUSTOM",}`:                             {"", false},
		`{"type":"CUSTOM","x":01}`:                       {"", false},
		`[{"type":"CUSTOM"}]`:                            {"", false},
		`"type"`:                                         {"", false},
		``:                                               {"", false},
		` `:                                              {"", false},
	} {
		eventType, isEvent := compaction.CheckEvent([]byte(text))
		if isEvent != want.isEvent || eventType != want.eventType {
			t.Errorf("%s: %q, %t; expected %q, %t", text, eventType, isEvent, want.eventType, want.isEvent)
		}
		var object map[string]json.RawMessage
		if isObject := json.Unmarshal([]byte(text), &object) == nil; isObject != isEvent {
			t.Errorf("%s: encoding/json reads an object: %t", text, isObject)
		}
		if got := compaction.EventType([]byte(text)); got != want.eventType {
			t.Errorf("%s has the type %q", text, got)
		}
	}
}

// A stream has an event a token, so what happens to each of them must be cheap.
func TestTheTypeOfAnEventTakesNoMemory(t *testing.T) {
	event := []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a \"word\""}`)
	if allocations := testing.AllocsPerRun(100, func() { compaction.CheckEvent(event) }); allocations != 0 {
		t.Errorf("%.0f allocations", allocations)
	}
}
