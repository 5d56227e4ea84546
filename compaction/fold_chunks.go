package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file expands *_CHUNK events, a shorthand. The first chunk stands for the start of a message or call, and each
// chunk for a piece of it; only the first needs an id. Chunks continue the open stream of their lane. A lane is a
// subagent, or the main agent; it has at most one open stream.

// A lane is one with an open stream.
type lane struct {
	subagent []byte // the subagentRunId as a JSON string; nil is the main agent
	kind     streamKind
	id       []byte // of the message or the tool call, as a JSON string
}

type streamKind string

const (
	textStream      streamKind = "text"
	toolStream      streamKind = "tool"
	reasoningStream streamKind = "reasoning"
	thinkingStream  streamKind = "thinking" // in what is stored only
)

func (k streamKind) idField() field {
	if k == toolStream {
		return fieldToolCallID
	}
	return fieldMessageID
}

// closing says which streams an event ends.
type closing int8

const (
	noLane    closing = iota
	ownLane           // that of the event's subagent, or of the main agent
	namedLane         // that of the event's subagent, if it names one
	allLanes
)

// A shorthand is how the chunks of one kind expand.
type shorthand struct {
	kind                streamKind
	start, proceed, end func(*Fold, *event)
	described           fields // that a chunk has; anything else makes of a chunk without a delta a piece of no length
}

var (
	textChunks      = &shorthand{kind: textStream, start: (*Fold).startText, proceed: (*Fold).continueMessage, end: (*Fold).endMessage}
	reasoningChunks = &shorthand{kind: reasoningStream, start: (*Fold).startReasoning, proceed: (*Fold).continueMessage, end: (*Fold).endMessage}
	toolCallChunks  = &shorthand{kind: toolStream, start: (*Fold).startToolCall, proceed: (*Fold).continueToolCall, end: (*Fold).endToolCall}
)

// stream returns how the message or call is made that the events of a type are about; nil if they are about something else.
func (t *eventType) stream() *shorthand {
	switch t.part {
	case textPart:
		return textChunks
	case reasoningPart:
		return reasoningChunks
	case toolPart:
		return toolCallChunks
	default:
		return nil
	}
}

func (s *shorthand) apply(f *Fold, e *event) {
	starts, proceeds := f.expandChunk(s, e)
	if starts {
		s.start(f, e)
		e.values[fieldMetadata] = nil // the start has it
	}
	if proceeds {
		s.proceed(f, e)
	}
}

// expandChunk finds the stream that a chunk opens or continues, and gives the chunk what it left out, so that it can be read as
// the start of the stream, as a piece of it, or as one after the other. A chunk that is neither is skipped.
func (f *Fold) expandChunk(s *shorthand, e *event) (starts, proceeds bool) {
	id := e.values[s.kind.idField()]
	subagent, ok := f.laneOfChunk(s.kind, id, e.values[fieldSubagentRunID])
	if !ok {
		return false, false
	}
	proceeds = e.values[fieldDelta] != nil || e.present&fieldRawEvent.set() != 0
	place := f.openLane(subagent)
	if place >= 0 && f.lanes[place].kind == s.kind && (id == nil || sameJSONString(id, f.lanes[place].id)) {
		e.values[s.kind.idField()] = f.lanes[place].id
		nullSubagent := e.present&fieldSubagentRunID.set() != 0 && e.values[fieldSubagentRunID] == nil
		proceeds = proceeds || nullSubagent || e.present&^s.described != 0
	} else {
		if id == nil || s.kind == toolStream && e.values[fieldToolCallName] == nil {
			return false, false
		}
		if place >= 0 {
			f.lanes = slices.Delete(f.lanes, place, place+1)
		}
		f.lanes = append(f.lanes, lane{subagent: bytes.Clone(subagent), kind: s.kind, id: bytes.Clone(id)})
		if len(f.lanes) > f.limits.FoldLanes {
			f.refuse("fold_lanes", int64(f.limits.FoldLanes), int64(len(f.lanes)))
			return false, false
		}
		starts = true
	}
	if proceeds && e.values[fieldDelta] == nil {
		e.values[fieldDelta] = []byte(`""`)
	}
	return starts, proceeds
}

// laneOfChunk returns the subagent of the lane that a chunk belongs to; false if that is ambiguous.
func (f *Fold) laneOfChunk(kind streamKind, id, subagent []byte) ([]byte, bool) {
	if id != nil {
		// An open id continues in its lane, whatever the subagent of the chunk.
		for i := range f.lanes {
			if f.lanes[i].kind == kind && sameJSONString(f.lanes[i].id, id) {
				return f.lanes[i].subagent, true
			}
		}
		return subagent, true
	}
	if subagent != nil {
		return subagent, true
	}
	if main := f.openLane(nil); main >= 0 && f.lanes[main].kind == kind {
		return nil, true
	}
	// A chunk of a subagent that named itself only in its first chunk.
	var candidates [][]byte
	for i := range f.lanes {
		if f.lanes[i].kind == kind {
			candidates = append(candidates, f.lanes[i].subagent)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], true
	}
	return nil, false
}

// openLane returns the place of the open stream of a subagent, or -1.
func (f *Fold) openLane(subagent []byte) int {
	return slices.IndexFunc(f.lanes, func(l lane) bool {
		if l.subagent == nil || subagent == nil {
			return l.subagent == nil && subagent == nil
		}
		return sameJSONString(l.subagent, subagent)
	})
}

func sameJSONString(a, b []byte) bool {
	return rawjson.SameString(a[1:len(a)-1], b[1:len(b)-1])
}

func (f *Fold) closeLanes(closes closing, e *event) {
	if len(f.lanes) == 0 {
		return
	}
	subagent := e.values[fieldSubagentRunID]
	switch {
	case closes == allLanes:
		f.lanes = nil
	case closes == ownLane, closes == namedLane && subagent != nil:
		if place := f.openLane(subagent); place >= 0 {
			f.lanes = slices.Delete(f.lanes, place, place+1)
		}
	}
}

// failedLanes are the lanes of a run that has failed: none is open. The SQL fold writes the same.
const failedLanes = `[{"lane":null,"kind":"failed","id":""}]`

// questionLane is the kind of what the run has asked.
const questionLane streamKind = "question"

// storedLane is how Lanes writes an open stream; the SQL fold writes the same.
type storedLane struct {
	Lane      json.RawMessage `json:"lane"` // the subagentRunId, or null
	Kind      streamKind      `json:"kind"`
	ID        json.RawMessage `json:"id"`
	Interrupt json.RawMessage `json:"interrupt"` // of a question
}

// Lanes returns what later events depend on that do not name it, as an opaque JSON document; nil if there is nothing: that the run has
// failed; or the streams of chunks that are open, in the order in which they were opened, the message of thinking, and the
// questions of a run that has not ended.
func (f *Fold) Lanes() json.RawMessage {
	if f.hasFailed {
		return json.RawMessage(failedLanes)
	}
	lanes := f.lanes
	if f.thinking.message != nil {
		lanes = append(slices.Clip(lanes), lane{kind: thinkingStream, id: f.thinking.message})
	}
	if len(lanes)+len(f.asked) == 0 {
		return nil
	}
	out := json.RawMessage{'['}
	for i, l := range lanes {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"lane":`...)
		if l.subagent == nil {
			out = append(out, "null"...)
		} else {
			out = append(out, l.subagent...)
		}
		out = append(out, `,"kind":"`...)
		out = append(out, l.kind...)
		out = append(out, `","id":`...)
		out = append(out, l.id...)
		out = append(out, '}')
	}
	for _, interrupt := range f.asked {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, `{"lane":null,"kind":"question","id":"","interrupt":`...)
		out = append(out, interrupt...)
		out = append(out, '}')
	}
	return append(out, ']')
}

// HasOpenChunks reports whether a stream of chunks, or a message of thinking, is open, which a RUN_STARTED would end.
func (f *Fold) HasOpenChunks() bool { return len(f.lanes) > 0 || f.thinking.message != nil }

func (f *Fold) resumeLanes(stored json.RawMessage) error {
	if stored == nil {
		return nil
	}
	problem := errors.New("compaction: resume: the lanes of the snapshot are damaged: fold the events from the beginning")
	var lanes []storedLane
	if err := json.Unmarshal(stored, &lanes); err != nil {
		return problem
	}
	if len(lanes) == 1 && lanes[0].Kind == "failed" {
		f.hasFailed = true
		return nil
	}
	for _, l := range lanes {
		if l.Kind == questionLane && len(l.Interrupt) > 0 && l.Interrupt[0] == '{' {
			f.asked = append(f.asked, l.Interrupt)
			continue
		}
		subagent := []byte(l.Lane)
		if string(subagent) == "null" {
			subagent = nil
		}
		known := l.Kind == textStream || l.Kind == toolStream || l.Kind == reasoningStream || l.Kind == thinkingStream
		if !known || len(l.ID) == 0 || l.ID[0] != '"' || subagent != nil && subagent[0] != '"' {
			return problem
		}
		if l.Kind == thinkingStream {
			f.thinking.message = l.ID
			continue
		}
		f.lanes = append(f.lanes, lane{subagent: subagent, kind: l.Kind, id: l.ID})
	}
	return nil
}
