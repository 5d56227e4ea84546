// Package events makes the AG-UI events that a backend writes itself: the beginning of a run, its end,
// and custom events. Agents send all others.
//
// Each type has the members of the protocol as fields. Members holds any other member, so that an event
// that was read and written again loses nothing:
//
//	var started events.RunStarted
//	err := json.Unmarshal(received, &started)
//	started.ParentRunID = "run-1"
//	event, err := started.Event()
//
// Raw JSON (Input, Result, Value, Members) is written as it is, byte for byte.
package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// RunStarted is the event RUN_STARTED, which begins a run.
type RunStarted struct {
	ThreadID string
	RunID    string
	// ParentRunID is the run that this one continues. Omitted if empty.
	ParentRunID string
	// Input is the RunAgentInput of the run. Omitted if nil.
	Input json.RawMessage
	// Timestamp is written in milliseconds since 1970. Omitted if zero.
	Timestamp time.Time
	// Members are the other members of the event.
	Members map[string]json.RawMessage
}

// RunFinished is the event RUN_FINISHED, which ends a run that succeeded or that waits for an answer to
// interrupts.
type RunFinished struct {
	ThreadID string
	RunID    string
	// Result is the result of the run. Omitted if nil.
	Result json.RawMessage
	// Outcome is the outcome of the run, for example {"type":"interrupt","interrupts":[…]}. Omitted if
	// nil.
	Outcome json.RawMessage
	// Timestamp is written in milliseconds since 1970. Omitted if zero.
	Timestamp time.Time
	// Members are the other members of the event.
	Members map[string]json.RawMessage
}

// RunError is the event RUN_ERROR, which ends a run that failed.
type RunError struct {
	Message string
	// Code is a code for programs. Omitted if empty.
	Code string
	// Timestamp is written in milliseconds since 1970. Omitted if zero.
	Timestamp time.Time
	// Members are the other members of the event.
	Members map[string]json.RawMessage
}

// Custom is the event CUSTOM, whose meaning an application defines.
type Custom struct {
	Name string
	// Value is any JSON value. null if nil.
	Value json.RawMessage
	// Timestamp is written in milliseconds since 1970. Omitted if zero.
	Timestamp time.Time
	// Members are the other members of the event.
	Members map[string]json.RawMessage
}

// Event returns the event as JSON. It is an error if an id is missing, if raw JSON is invalid, or if
// Members has the name of a field.
func (e RunStarted) Event() (json.RawMessage, error) {
	w := newWriter("RUN_STARTED")
	w.required("threadId", e.ThreadID)
	w.required("runId", e.RunID)
	w.text("parentRunId", e.ParentRunID)
	w.raw("input", e.Input)
	return w.finish(e.Timestamp, e.Members)
}

// Event returns the event as JSON. It is an error if an id is missing, if raw JSON is invalid, or if
// Members has the name of a field.
func (e RunFinished) Event() (json.RawMessage, error) {
	w := newWriter("RUN_FINISHED")
	w.required("threadId", e.ThreadID)
	w.required("runId", e.RunID)
	w.raw("result", e.Result)
	w.raw("outcome", e.Outcome)
	return w.finish(e.Timestamp, e.Members)
}

// Event returns the event as JSON. It is an error if the message is missing, if raw JSON is invalid, or
// if Members has the name of a field.
func (e RunError) Event() (json.RawMessage, error) {
	w := newWriter("RUN_ERROR")
	w.required("message", e.Message)
	w.text("code", e.Code)
	return w.finish(e.Timestamp, e.Members)
}

// Event returns the event as JSON. It is an error if the name is missing, if raw JSON is invalid, or if
// Members has the name of a field.
func (e Custom) Event() (json.RawMessage, error) {
	w := newWriter("CUSTOM")
	w.required("name", e.Name)
	if e.Value == nil {
		e.Value = json.RawMessage("null")
	}
	w.raw("value", e.Value)
	return w.finish(e.Timestamp, e.Members)
}

// UnmarshalJSON reads an event of type RUN_STARTED.
func (e *RunStarted) UnmarshalJSON(text []byte) error {
	r := newReader("RUN_STARTED", text)
	*e = RunStarted{
		ThreadID: r.text("threadId"), RunID: r.text("runId"), ParentRunID: r.text("parentRunId"), Input: r.raw("input"),
		Timestamp: r.time(), Members: r.others(),
	}
	return r.err
}

// UnmarshalJSON reads an event of type RUN_FINISHED.
func (e *RunFinished) UnmarshalJSON(text []byte) error {
	r := newReader("RUN_FINISHED", text)
	*e = RunFinished{
		ThreadID: r.text("threadId"), RunID: r.text("runId"), Result: r.raw("result"), Outcome: r.raw("outcome"),
		Timestamp: r.time(), Members: r.others(),
	}
	return r.err
}

// UnmarshalJSON reads an event of type RUN_ERROR.
func (e *RunError) UnmarshalJSON(text []byte) error {
	r := newReader("RUN_ERROR", text)
	*e = RunError{Message: r.text("message"), Code: r.text("code"), Timestamp: r.time(), Members: r.others()}
	return r.err
}

// UnmarshalJSON reads an event of type CUSTOM.
func (e *Custom) UnmarshalJSON(text []byte) error {
	r := newReader("CUSTOM", text)
	*e = Custom{Name: r.text("name"), Value: r.raw("value"), Timestamp: r.time(), Members: r.others()}
	return r.err
}

// writer writes the members of an event. encoding/json would change raw JSON: it removes white space
// and escapes some characters.
type writer struct {
	eventType string
	event     bytes.Buffer
	names     map[string]bool // of the fields, also of those that are omitted
	err       error           // the first one
}

func newWriter(eventType string) *writer {
	w := &writer{eventType: eventType, names: map[string]bool{}}
	w.event.WriteByte('{')
	w.text("type", eventType)
	return w
}

func (w *writer) fail(format string, arguments ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%s: %s", w.eventType, fmt.Sprintf(format, arguments...))
	}
}

func (w *writer) member(name string, value []byte) {
	if w.event.Len() > 1 {
		w.event.WriteByte(',')
	}
	w.event.Write(quoted(name))
	w.event.WriteByte(':')
	w.event.Write(value)
}

func (w *writer) required(name, value string) {
	if value == "" {
		w.fail("%s is missing", name)
	}
	w.text(name, value)
}

func (w *writer) text(name, value string) {
	w.names[name] = true
	if value != "" {
		w.member(name, quoted(value))
	}
}

func (w *writer) raw(name string, value json.RawMessage) {
	w.names[name] = true
	switch {
	case value == nil:
	case !json.Valid(value):
		w.fail("%s is not JSON", name)
	default:
		w.member(name, value)
	}
}

func (w *writer) finish(timestamp time.Time, members map[string]json.RawMessage) (json.RawMessage, error) {
	w.names["timestamp"] = true
	if !timestamp.IsZero() {
		w.member("timestamp", strconv.AppendInt(nil, timestamp.UnixMilli(), 10))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if w.names[name] {
			w.fail("Members has %q, which is a field of the event", name)
		}
		w.raw(name, members[name])
	}
	w.event.WriteByte('}')
	if w.err != nil {
		return nil, w.err
	}
	return w.event.Bytes(), nil
}

// quoted returns a JSON string.
func quoted(text string) []byte {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // of a string, which cannot fail
	return bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))
}

// reader takes the members of an event apart.
type reader struct {
	eventType string
	members   map[string]json.RawMessage
	err       error // the first one
}

func newReader(eventType string, text []byte) *reader {
	r := &reader{eventType: eventType}
	r.err = json.Unmarshal(text, &r.members)
	if got := r.text("type"); r.err == nil && got != eventType {
		r.err = fmt.Errorf("the event has the type %q, not %s", got, eventType)
	}
	return r
}

func (r *reader) take(name string, into any) {
	value, found := r.members[name]
	if !found || r.err != nil {
		return
	}
	delete(r.members, name)
	if err := json.Unmarshal(value, into); err != nil {
		r.err = fmt.Errorf("%s: %s: %w", r.eventType, name, err)
	}
}

func (r *reader) text(name string) (value string) {
	r.take(name, &value)
	return value
}

func (r *reader) raw(name string) json.RawMessage {
	value := r.members[name]
	delete(r.members, name)
	return value
}

func (r *reader) time() time.Time {
	var milliseconds *float64
	r.take("timestamp", &milliseconds)
	if milliseconds == nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(*milliseconds))
}

func (r *reader) others() map[string]json.RawMessage {
	if len(r.members) == 0 {
		return nil
	}
	return r.members
}
