package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/events"
)

func ExampleRunStarted() {
	event, err := events.RunStarted{
		ThreadID: "thread-1", RunID: "run-2", ParentRunID: "run-1",
		Input: json.RawMessage(`{"messages":[{"id":"m1","role":"user","content":"Hello"}]}`),
	}.Event()
	fmt.Println(string(event), err)
	// Output:
	// {"type":"RUN_STARTED","threadId":"thread-1","runId":"run-2","parentRunId":"run-1","input":{"messages":[{"id":"m1","role":"user","content":"Hello"}]}} <nil>
}

// maker is any of the events.
type maker interface {
	Event() (json.RawMessage, error)
}

func TestEventsAreReadAndWrittenWithoutLoss(t *testing.T) {
	for _, test := range []struct {
		text string
		into maker
	}{
		{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, &events.RunStarted{}},
		{
			`{"type":"RUN_STARTED","threadId":"t <&>","runId":"r","parentRunId":"p","input":{ "a" : "<\ud83d>", "n": 1e2 },` +
				`"timestamp":1700000000123,"metadata":{ "b": [1.0] },"rawEvent":null}`, &events.RunStarted{},
		},
		{`{"type":"RUN_FINISHED","threadId":"t","runId":"r","result": 1,"outcome":{"type":"interrupt"},"x":2}`, &events.RunFinished{}},
		{`{"type":"RUN_ERROR","message":"failed","code":"E1","x":"\u0000"}`, &events.RunError{}},
		{`{"type":"CUSTOM","name":"n","value":null,"x":{}}`, &events.Custom{}},
	} {
		if err := json.Unmarshal([]byte(test.text), test.into); err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		written, err := test.into.Event()
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
		}
		// Only white space around values is not kept.
		if got, want := string(written), strings.ReplaceAll(test.text, `"result": 1`, `"result":1`); got != want {
			t.Errorf("read and written:\n%s, want\n%s", got, want)
		}
	}
}

func TestInvalidEventsAreRefused(t *testing.T) {
	for name, event := range map[string]maker{
		"RUN_STARTED: threadId is missing":             events.RunStarted{RunID: "r"},
		"RUN_FINISHED: runId is missing":               events.RunFinished{ThreadID: "t"},
		"RUN_ERROR: message is missing":                events.RunError{},
		"CUSTOM: name is missing":                      events.Custom{},
		"RUN_STARTED: input is not JSON":               events.RunStarted{ThreadID: "t", RunID: "r", Input: json.RawMessage(`{`)},
		`RUN_ERROR: Members has "type", which is a`:    events.RunError{Message: "m", Members: map[string]json.RawMessage{"type": json.RawMessage(`"X"`)}},
		`CUSTOM: Members has "timestamp", which is a`:  events.Custom{Name: "m", Members: map[string]json.RawMessage{"timestamp": json.RawMessage(`1`)}},
		"RUN_STARTED: x is not JSON":                   events.RunStarted{ThreadID: "t", RunID: "r", Members: map[string]json.RawMessage{"x": {}}},
		`RUN_STARTED: Members has "input", which is a`: events.RunStarted{ThreadID: "t", RunID: "r", Members: map[string]json.RawMessage{"input": json.RawMessage(`1`)}},
	} {
		written, err := event.Event()
		if err == nil || !strings.HasPrefix(err.Error(), name) || written != nil {
			t.Errorf("%s and error %v, want %s", written, err, name)
		}
	}
	for text, want := range map[string]string{
		`{"type":"RUN_FINISHED"}`:              "not RUN_STARTED",
		`{"type":"RUN_STARTED","runId":1}`:     "runId",
		`[]`:                                   "array",
		`{"type":"RUN_STARTED","timestamp":""`: "unexpected end",
	} {
		if err := json.Unmarshal([]byte(text), new(events.RunStarted)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
