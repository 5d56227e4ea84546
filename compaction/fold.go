// Package compaction says what an AG-UI event stream means: it folds events into messages, state and open interrupts. And it
// writes streams that mean the same with fewer events: [CompactEvents], [Fold.Replay].
//
// # Model
//
// A [Fold] starts from nothing and takes events one after another, as raw JSON. The meaning of each is that of the official
// client, @ag-ui/client: its transformChunks (here chunks.go), then its defaultApplyEvents. The table in rules.go leads from
// each event type to the function that folds it.
//
// It goes beyond the client in this:
//
//   - The state that a run was started with, input.state of RUN_STARTED, is the state from there on.
//   - The spellings of the AG-UI proposals are read as well: STATE_DELTA with patch, STATE_SNAPSHOT with state, ACTIVITY with
//     snapshot and patch, and plain strings in input.messages.
//   - JSON stays as it was written, but for white space. Strings are joined as JSON text, so two halves of an emoji become one character and a zero
//     byte or a lone surrogate comes through; numbers keep their spelling, messages their unknown fields. Strings are decoded
//     only to compare them.
//   - Nothing is an error. An event is skipped, as if it were not there, when it is of an unknown type, when a field that the
//     reducer needs is missing or has the wrong type, and when it is a chunk that continues nothing or several streams at
//     once. A field that is null counts as absent, except for a state. Elements of a list of messages that are neither
//     objects nor strings are left out.
//   - Patches follow RFC 6902 strictly, within [Limits], and are applied whole or not at all.
//   - A fold has [Limits], too. One that goes beyond them takes no more events: [Fold.Err].
//
// A run folds onto what its parent meant: the caller clones the parent's fold ([Fold.Clone]) where a lineage branches.
//
// A fold and its clones share what they have in common; all of them belong to one goroutine at a time.
package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Fold is what a stream of events means so far. Make one with [New] or [Resume].
type Fold struct {
	owner        *owner
	messages     messageList
	index        *index // nil until something is looked up
	order        int    // counts the times that messages took places of others
	state        document
	stateText    json.RawMessage // the state as JSON, nil when it changed since it was written
	statePatched bool
	interrupts   json.RawMessage
	lanes        []lane
	limits       Limits
	usage        usage
	runsByEvents bool // RUN_STARTED begins a run with fuel of its own; otherwise EndRun alone does

	event event // the event at hand
}

// New returns the fold of nothing: no messages, the state {}, no interrupts.
func New() *Fold {
	f := &Fold{owner: new(owner), interrupts: json.RawMessage("[]")}
	f.SetLimits(DefaultLimits())
	f.setState(json.RawMessage("{}"))
	f.usage.size = f.storedSize()
	return f
}

// Clone returns a fold that goes its own way from here. It takes time for a list of the messages, not for what is in them.
func (f *Fold) Clone() *Fold {
	// What both have is nobody's from now on: whoever changes a part of it copies that part first.
	f.owner = new(owner)
	f.state.owner = f.owner
	clone := *f
	clone.owner = new(owner)
	clone.messages = messageList{flat: slices.Clone(f.messages.all())}
	clone.index = nil
	clone.state = document{owner: clone.owner, root: f.state.root, bytes: f.state.bytes, octets: f.state.octets}
	clone.lanes = slices.Clone(f.lanes)
	clone.usage.copied = slices.Clone(f.usage.copied)
	clone.event.clear()
	return &clone
}

// Apply folds one event. Whatever the bytes are, it does not fail; what is not an event has no effect, and a fold that is over one
// of its limits takes no more: see [Fold.Err]. The fold keeps no part of the slice.
func (f *Fold) Apply(event []byte) {
	if f.event.scanWhole(event) {
		f.applyEvent(&f.event)
	}
	f.event.clear()
}

// ApplyBatch folds a JSON array of events. A text that is not a JSON array gives a *[SyntaxError]; the events before the problem
// are folded then. A fold that has ended gives [Fold.Err]. The fold keeps no part of the slice.
func (f *Fold) ApplyBatch(events []byte) error {
	defer f.event.clear()
	err := walkBatch(events, func(at int) (int, bool) {
		if at == len(events) || events[at] != '{' {
			return rawjson.SkipValue(events, at, 0)
		}
		end, ok := f.event.scan(events, at)
		if ok {
			f.applyEvent(&f.event)
		}
		return end, ok
	})
	if err == nil {
		err = f.usage.err
	}
	return err
}

// Messages returns the messages in order. The caller must not change the slice, which is valid until the next event. A message
// may stand in it twice; see [StoredMessage].
func (f *Fold) Messages() []*Message { return f.messages.all() }

// State returns the state as JSON.
func (f *Fold) State() json.RawMessage {
	if f.stateText == nil {
		f.stateText = written(f.state.root)
		f.state.bytes = len(f.stateText)
	}
	return f.stateText
}

// StoredState returns State as the reducer in SQL makes it, to the byte: there, a state that patches have changed is in the spelling of
// jsonb. It reports false, and returns State, where only the server can print that spelling; see [PrintJSONB].
func (f *Fold) StoredState() (state json.RawMessage, isPrinted bool) {
	state = f.State()
	if !f.statePatched {
		return state, true
	}
	printed, isPrinted := PrintJSONB(state)
	if !isPrinted {
		return state, false
	}
	return printed, true
}

// StateSize returns the length of State in bytes, without making it: of a large state that patches have changed, as jsonb prints it.
// It may be more where a key stands twice in an object.
func (f *Fold) StateSize() int {
	switch {
	case f.stateText != nil:
		return len(f.stateText)
	case f.state.octets > 0:
		return int(f.state.octets)
	default:
		return f.state.bytes
	}
}

// Interrupts returns the JSON array of the interrupts that wait for an answer.
func (f *Fold) Interrupts() json.RawMessage { return f.interrupts }

// A Snapshot is a fold as data: what to store in order to go on from there.
type Snapshot struct {
	Messages   []StoredMessage
	State      json.RawMessage
	Interrupts json.RawMessage
	Lanes      json.RawMessage // see [Fold.Lanes]; nil when no stream of chunks is open
}

// A StoredMessage is a message of a snapshot.
//
// Two elements with the same Version, other than 0, are one message: an event that changes it changes both. It comes about
// when a MESSAGES_SNAPSHOT names an id that several messages have.
type StoredMessage struct {
	Version int32
	Body    json.RawMessage
}

// Snapshot returns the fold as data. A message that stands in the fold twice and has no Version yet gets a negative one, its own
// in this snapshot.
func (f *Fold) Snapshot() Snapshot {
	s := Snapshot{State: f.State(), Interrupts: f.interrupts, Lanes: f.Lanes()}
	numbers := map[*Message]int32{}
	for _, m := range f.messages.all() {
		version := m.Version
		if m.repeated && version == 0 {
			if numbers[m] == 0 {
				numbers[m] = -int32(len(numbers)) - 1
			}
			version = numbers[m]
		}
		s.Messages = append(s.Messages, StoredMessage{Version: version, Body: m.JSON()})
	}
	return s
}

// Resume goes on from a stored snapshot, of which it keeps the slices. It fails when the snapshot is damaged.
func Resume(s Snapshot) (*Fold, error) {
	f := New()
	byVersion := make(map[int32]*Message)
	for i, stored := range s.Messages {
		if m := byVersion[stored.Version]; m != nil {
			m.repeated = true
			f.messages.push(m)
			continue
		}
		body := bytes.TrimSpace(stored.Body)
		if !json.Valid(body) || body[0] != '{' {
			return nil, fmt.Errorf("compaction: resume: message %d of the snapshot (version %d) is not a JSON object: fold the events again", i+1, stored.Version)
		}
		m := newMessage(body, f.owner)
		m.Version = max(0, stored.Version)
		f.messages.push(m)
		if stored.Version != 0 {
			byVersion[stored.Version] = m
		}
	}
	state := bytes.TrimSpace(s.State)
	if !json.Valid(state) {
		return nil, errors.New("compaction: resume: the state of the snapshot is not JSON: fold the events again")
	}
	f.setState(state)
	f.interrupts = bytes.TrimSpace(s.Interrupts)
	if !json.Valid(f.interrupts) || f.interrupts[0] != '[' {
		return nil, errors.New("compaction: resume: the interrupts of the snapshot are not a JSON array: fold the events again")
	}
	if err := f.resumeLanes(s.Lanes); err != nil {
		return nil, err
	}
	f.usage.size = f.storedSize()
	return f, nil
}
