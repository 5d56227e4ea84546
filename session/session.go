package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Session holds the states that the parts of an agent keep between the runs of a conversation. It
// is plain data: encoding/json and CBOR write and read it, alone and within other values. The
// package documentation describes what it holds.
//
// A copy has fields of its own. It shares the states, and the behaviours made from them, with its
// original, as copies of a map do; only copies of a literal that was never used share nothing. For
// an independent copy, write the session and read it.
//
// Several goroutines may use a session at the same time, but not while its fields are changed. A
// literal must have been used once before; New returns a session that is ready. A caller that
// changes a state must make sure that no other goroutine writes the session at that time, or the
// state must be a json.Marshaler with a lock of its own.
type Session struct {
	// ID is the id of the conversation: threadId, in Python session_id.
	ID string
	// RunID is the id of the run that the states belong to: runId. Empty (null) means that they
	// belong to the thread.
	RunID string
	// ServiceID is the id of a conversation that a remote service keeps: conversationId in .NET,
	// service_session_id in Python.
	ServiceID string
	// Versions are the versions of the states in the store, by key: versions. Saving a session
	// returns the next versions; set them here.
	Versions map[string]int64

	contents *contents // nil until a literal is used
}

// New returns a session without states. It is written as
// {"threadId":…,"runId":null,"state":{},"versions":{}}, which means that the writer expects no
// stored session. The literal Session{ID: id} is the same.
func New(id string) Session {
	return Session{ID: id, contents: newContents()}
}

// contents is what copies of a session share.
type contents struct {
	shape    *shape
	document rawjson.Object // as it was read
	was      fields         // as they were read

	mu       sync.Mutex
	states   rawjson.Object // as they were read, but for those that were added, set and removed
	parts    map[string]*part
	making   map[string]*making     // behaviours that are being made
	declared map[string]declaration // what states say of their type, once that was looked up
}

func newContents() *contents {
	c, err := readContents([]byte(newDocument))
	if err != nil {
		panic(err) // unreachable: newDocument is a document
	}
	return c
}

func readContents(text []byte) (*contents, error) {
	if !json.Valid(text) {
		return nil, fmt.Errorf("session: %w: invalid JSON: give the whole document", ErrInvalidDocument)
	}
	document, ok := rawjson.ParseObject(text)
	if !ok {
		return nil, fmt.Errorf("session: %w: it is no object: give the document of one session", ErrInvalidDocument)
	}
	sh, err := shapeOf(document)
	if err != nil {
		return nil, err
	}
	states := rawjson.NewObject()
	if value := document.Get(sh.states); value != nil && string(value) != "null" {
		if states, ok = rawjson.ParseObject(value); !ok {
			return nil, fmt.Errorf("session: %w: its member %s is no object: give the states by their keys", ErrInvalidDocument, sh.states)
		}
	}
	return &contents{
		shape:    sh,
		document: document,
		was:      sh.read(document),
		states:   states,
		parts:    map[string]*part{},
		making:   map[string]*making{},
		declared: map[string]declaration{},
	}, nil
}

func (s *Session) use() *contents {
	if s.contents == nil {
		s.contents = newContents()
	}
	return s.contents
}

// UnmarshalJSON reads a session of any shape. Behaviours that the session had stay with its copies.
func (s *Session) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	c, err := readContents(slices.Clone(text))
	if err != nil {
		return err
	}
	*s = Session{ID: c.was.id, RunID: c.was.runID, ServiceID: c.was.serviceID, Versions: maps.Clone(c.was.versions), contents: c}
	return nil
}

// MarshalJSON writes the session as it was read, byte for byte but for what was changed. json.Marshal, which calls it, removes white space and
// escapes <, > and & in what it is given; a json.Encoder with SetEscapeHTML(false) only removes white space.
func (s Session) MarshalJSON() ([]byte, error) {
	c := s.use() // of the copy, so that a literal stays as it is
	c.mu.Lock()
	states, parts := c.states.Clone(), maps.Clone(c.parts)
	c.mu.Unlock()

	document := c.document.Clone()
	touched := len(states.Members) > 0 || document.Get(c.shape.states) != nil && string(document.Get(c.shape.states)) != "null"
	for key, p := range parts {
		value, err := p.written(key, states.Get(key))
		if err != nil {
			return nil, err
		}
		states.Set(key, value)
	}
	if touched {
		document.Set(c.shape.states, states.Text())
	}
	if err := c.shape.write(&document, c.was, fields{s.ID, s.RunID, s.ServiceID, s.Versions}); err != nil {
		return nil, err
	}
	return document.Text(), nil
}

// Keys returns the keys of the states, in order.
func (s *Session) Keys() []string {
	c := s.use()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states.Keys()
}

// State returns the state with the key as it would be written now, nil if there is none.
func (s *Session) State(key string) (json.RawMessage, error) {
	c := s.use()
	c.mu.Lock()
	value, p := slices.Clone(c.states.Get(key)), c.parts[key]
	c.mu.Unlock()
	if p == nil {
		return value, nil
	}
	return p.written(key, value)
}

// SetState sets the state with the key; a new one comes last. The session drops a behaviour that
// was made from the old state: the next use makes one from the new state.
func (s *Session) SetState(key string, state json.RawMessage) error {
	if !json.Valid(state) {
		return fmt.Errorf("session: %w: the text for %q is not JSON: give one JSON value", ErrInvalidState, key)
	}
	c := s.use()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states.Set(key, slices.Clone(state))
	c.forget(key)
	return nil
}

// RemoveState removes the state with the key, and its behaviour, if there is one.
func (s *Session) RemoveState(key string) {
	c := s.use()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states.Remove(key)
	c.forget(key)
}

func (c *contents) forget(key string) {
	delete(c.parts, key)
	delete(c.making, key)
	delete(c.declared, key)
}
