package session

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A ThreadSnapshot is what a client gets of a thread: messages, shared state and open interrupts.
// It may also hold the state of the agent's session, which is private. encoding/json and CBOR leave
// out the private part and unknown members, so what they write may go to a client. To store a
// snapshot, write it as a [StoredThreadSnapshot].
type ThreadSnapshot struct {
	Messages     json.RawMessage // messages: an array
	State        json.RawMessage // state: an object, null, or nil
	Interrupt    json.RawMessage // interrupt: an array, null, or nil
	SessionState json.RawMessage // session_state: the states of the session by their keys, null, or nil. Private

	document rawjson.Object // as it was read
}

// A StoredThreadSnapshot is written with its private part: as it was read, byte for byte, but for
// fields that were changed.
type StoredThreadSnapshot struct{ ThreadSnapshot }

// member returns the field for a member of the document, or nil.
func (t *ThreadSnapshot) member(key string) *json.RawMessage {
	switch key {
	case "messages":
		return &t.Messages
	case "state":
		return &t.State
	case "interrupt":
		return &t.Interrupt
	case "session_state":
		return &t.SessionState
	default:
		return nil
	}
}

var (
	clientMembers = []string{"messages", "state", "interrupt"}
	storedMembers = append(slices.Clone(clientMembers), "session_state")
)

// UnmarshalJSON reads a snapshot, with its private part if the text has one.
func (t *ThreadSnapshot) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	text = slices.Clone(text)
	document, ok := rawjson.Object{}, json.Valid(text)
	if ok {
		document, ok = rawjson.ParseObject(text)
	}
	if ok {
		_, ok = rawjson.ParseArray(document.Get("messages"))
	}
	if !ok {
		return fmt.Errorf("session: %w: it has no array of messages: give an object with messages, state, interrupt", ErrInvalidSnapshot)
	}
	*t = ThreadSnapshot{document: document}
	for _, key := range storedMembers {
		*t.member(key) = document.Get(key)
	}
	return nil
}

// MarshalJSON writes what a client may see.
func (t ThreadSnapshot) MarshalJSON() ([]byte, error) {
	document := t.document.Clone()
	document.Members = slices.DeleteFunc(document.Members, func(m rawjson.Member) bool { return !slices.Contains(clientMembers, m.Key) })
	return t.write(document, clientMembers)
}

// MarshalJSON writes the snapshot with its private part.
func (t StoredThreadSnapshot) MarshalJSON() ([]byte, error) {
	return t.write(t.document.Clone(), storedMembers)
}

func (t *ThreadSnapshot) write(document rawjson.Object, keys []string) ([]byte, error) {
	if document.Head == nil {
		document = rawjson.NewObject()
		document.Set("messages", json.RawMessage("[]"))
	}
	for _, key := range keys {
		value := *t.member(key)
		switch {
		case value != nil && !json.Valid(value):
			return nil, fmt.Errorf("session: %w: its %s is not JSON: give one JSON value", ErrInvalidSnapshot, key)
		case value != nil:
			document.Set(key, value)
		case key == "messages":
			document.Set(key, json.RawMessage("[]"))
		default:
			document.Remove(key)
		}
	}
	return document.Text(), nil
}

// MarshalCBOR writes what a client may see.
func (t ThreadSnapshot) MarshalCBOR() ([]byte, error) { return marshalCBOR(t) }

// MarshalCBOR writes the snapshot with its private part.
func (t StoredThreadSnapshot) MarshalCBOR() ([]byte, error) { return marshalCBOR(t) }

// UnmarshalCBOR reads a snapshot, with its private part if the data has one.
func (t *ThreadSnapshot) UnmarshalCBOR(data []byte) error { return unmarshalCBOR(data, t) }
