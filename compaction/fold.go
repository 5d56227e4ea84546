package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Fold is what a stream of events means so far: messages, state and open interrupts. Make one
// with [New] or [Resume].
type Fold struct {
	owner        *jsontree.Owner
	messages     messageList
	index        *index // nil until something is looked up
	order        int    // counts the times that messages took places of others
	state        jsontree.Document
	stateText    json.RawMessage // the state as JSON, nil when it changed since it was written
	statePatched bool
	stateChanges int // how often an event has set or patched the state
	interrupts   json.RawMessage
	lanes        []lane
	// hasFailed says that RUN_ERROR has ended the run: what follows has no effect until RUN_STARTED opens it again, or, after
	// EndRun (isBetweenRuns), another run begins.
	hasFailed     bool
	isBetweenRuns bool
	thinking      Thinking
	at            place // of the event at hand
	limits        Limits
	patchLimits   jsontree.Limits // those of limits that are about patches
	usage         usage
	skipped       string // see Skipped
	runsByEvents  bool   // RUN_STARTED begins a run with fuel of its own; otherwise EndRun alone does

	event event // the event at hand
	input Input // that is stored beside it

	// asked are the interrupts that the questions of the run make at its end.
	asked []json.RawMessage
}

// New returns an empty fold: no messages, the state {}, no interrupts.
func New() *Fold {
	f := &Fold{owner: new(jsontree.Owner), interrupts: json.RawMessage("[]")}
	f.SetLimits(DefaultLimits())
	f.setState(jsontree.Raw("{}"))
	f.usage.size = f.storedSize()
	return f
}

// Clone returns an independent copy. It takes time in proportion to the number of messages, not to
// their size.
func (f *Fold) Clone() *Fold {
	// Neither fold owns the shared parts from now on: a change copies the part first.
	f.owner = new(jsontree.Owner)
	f.state.SetOwner(f.owner)
	clone := *f
	clone.owner = new(jsontree.Owner)
	clone.messages = messageList{flat: slices.Clone(f.messages.all())}
	clone.index = nil
	clone.state = f.state.Clone(clone.owner)
	clone.lanes = slices.Clone(f.lanes)
	clone.asked = slices.Clone(f.asked)
	clone.usage.copied = slices.Clone(f.usage.copied)
	clone.event.clear()
	return &clone
}

// Apply folds one event. It never fails: bytes that are not an event have no effect, and a fold
// that exceeds one of its limits takes no more events (see [Fold.Err]). The fold keeps no part of
// the slice.
func (f *Fold) Apply(event []byte) {
	isEvent := f.event.scanWhole(event, &f.state)
	if f.at.next(event, typeOf(&f.event)); isEvent {
		f.applyEvent(&f.event)
	}
	f.event.clear()
}

// ApplyBatch folds a JSON array of events, and returns how many it has. If the text is not a JSON
// array, the error is a *[SyntaxError], and the events before the fault are folded. If the fold has
// ended, the error is [Fold.Err]. The fold keeps no part of the slice.
func (f *Fold) ApplyBatch(events []byte) (n int, err error) {
	defer f.event.clear()
	err = walkBatch(events, func(at int) (int, bool) {
		n++
		if at == len(events) || events[at] != '{' {
			f.at.seq++
			return rawjson.SkipValue(events, at, 0)
		}
		end, ok := f.event.scan(events, at, &f.state)
		if ok {
			f.at.next(events[at:end], typeOf(&f.event))
			f.applyEvent(&f.event)
		}
		return end, ok
	})
	if err == nil {
		err = f.usage.err
	}
	return n, err
}

// Messages returns the messages in order. The caller must not change the slice, which is valid until the next event. A message
// may stand in it twice; see [StoredMessage].
func (f *Fold) Messages() []*Message { return f.messages.all() }

// State returns the state as JSON.
func (f *Fold) State() json.RawMessage {
	if f.stateText == nil {
		f.stateText = f.state.Text()
	}
	return f.stateText
}

// StoredState returns State as the reducer in SQL gives it, to the byte: there, a state that
// patches have changed is spelled as jsonb. It returns State and false for the few values whose
// jsonb spelling only the server can print.
func (f *Fold) StoredState() (state json.RawMessage, isPrinted bool) {
	state = f.State()
	if !f.statePatched {
		return state, true
	}
	printed, isPrinted := jsontree.PrintJSONB(state)
	if !isPrinted {
		return state, false
	}
	return printed, true
}

// StateSize returns the length of State in bytes, without making it. For a large state that patches
// have changed, it is the length of the jsonb text. It may be too large if an object has duplicate
// keys.
func (f *Fold) StateSize() int {
	if f.stateText == nil && f.statePatched {
		return f.state.Size()
	}
	return len(f.State())
}

// StateChanges counts how often the state has been set, or patched with success. An event that leaves
// the count as it is has not changed the state.
func (f *Fold) StateChanges() int { return f.stateChanges }

// Skipped says why the last event changed nothing, if the official client would let it change something: it is a patch that fails, or a
// piece of a message or call that is not there. Otherwise it is empty.
func (f *Fold) Skipped() string { return f.skipped }

// Interrupts returns the JSON array of the open interrupts.
func (f *Fold) Interrupts() json.RawMessage { return f.interrupts }

// A Snapshot is a fold as data, to be stored. [Resume] makes a fold of it.
type Snapshot struct {
	Messages   []StoredMessage
	State      json.RawMessage
	Interrupts json.RawMessage
	Lanes      json.RawMessage // see [Fold.Lanes]; nil when no stream of chunks is open
}

// A StoredMessage is a message of a snapshot.
//
// Two elements with the same Version, other than 0, are one message: an event that changes one
// changes both. This happens if a MESSAGES_SNAPSHOT names an id that several messages have.
type StoredMessage struct {
	Version int32
	Body    json.RawMessage
}

// Snapshot returns the fold as data. A message that the fold has at several places, and that has no
// Version yet, gets a negative one, unique in this snapshot.
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

// Resume returns the fold of a stored snapshot, and keeps the slices of the snapshot. It returns an
// error if the snapshot is damaged.
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
			return nil, fmt.Errorf("compaction: resume: message %d of the snapshot (version %d) is not a JSON object: fold the events from the beginning", i+1, stored.Version)
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
		return nil, errors.New("compaction: resume: the state of the snapshot is not JSON: fold the events from the beginning")
	}
	f.setState(jsontree.Raw(state))
	f.interrupts = bytes.TrimSpace(s.Interrupts)
	if !json.Valid(f.interrupts) || f.interrupts[0] != '[' {
		return nil, errors.New("compaction: resume: the interrupts of the snapshot are not a JSON array: fold the events from the beginning")
	}
	if err := f.resumeLanes(s.Lanes); err != nil {
		return nil, err
	}
	f.usage.size = f.storedSize()
	return f, nil
}
