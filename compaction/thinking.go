package compaction

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file reads the events of thinking, which protocol 0 had, as those of reasoning that took their place. The official client of
// protocol 1.0 does so, with ids that it makes up. Readers of a log must agree on the id, so it is made of the run and of the seq of the
// event that began the message. agui_internal.thinking_as_reasoning does the same.

// Thinking translates the events of a run, in their order. It reads its own result as it reads what that came from.
type Thinking struct {
	message, span []byte // the ids of what is open, as JSON strings; nil: nothing is
}

// AsReasoning returns the event of reasoning that an event of thinking means; any other event as it is. A piece or an end of nothing gets
// an id that nothing else has.
func (t *Thinking) AsReasoning(text []byte, runID string, seq int64) []byte {
	return t.translate(text, rawjson.Quote(nil, runID), seq)
}

func (t *Thinking) translate(text, runID []byte, seq int64) []byte {
	isOpen := t.message != nil || t.span != nil
	if !isOpen && !bytes.Contains(text, []byte("THINKING")) && !bytes.Contains(text, []byte(thinkingInfix)) && !bytes.Contains(text, []byte(`\u00`)) {
		return text
	}
	before := eventTypes[EventType(text)]
	if before == nil {
		return text
	}
	after, id := t.read(before, memberString(text, "messageId"), runID, seq)
	if after == before {
		return text
	}
	object, _ := rawjson.ParseObject(text)
	object.Set("type", rawjson.Quote(nil, after.name))
	object.Set("messageId", id)
	if after.part == reasoningPart && after.does == doesStart {
		object.Set("role", []byte(`"reasoning"`))
	}
	return withoutSpace(object.Text())
}

// withoutSpace writes the members of an object as agui_internal.json_member_set does.
func withoutSpace(object []byte) []byte {
	text := make([]byte, 0, len(object))
	for key, value := range rawjson.Members(object) {
		text = append(text, ",\""...)
		text = append(text, key...)
		text = append(text, `":`...)
		text = append(text, value...)
	}
	text[0] = '{'
	return append(text, '}')
}

// read returns the type that an event of a type means, and the id of what it is about.
func (t *Thinking) read(before *eventType, id, runID []byte, seq int64) (*eventType, []byte) {
	var open *[]byte
	switch before.part {
	case thinkingPart, reasoningPart:
		open = &t.message
	case thinkingSpanPart, spanPart:
		open = &t.span
	case noPart:
		if before.does == doesStartRun || before.does == doesFinishRun || before.does == doesFailRun {
			*t = Thinking{}
		}
		return before, id
	default:
		return before, id
	}
	after := before
	if before.became != "" {
		after = eventTypes[before.became]
		if id = *open; id == nil || before.does == doesStart {
			id = thinkingID(runID, seq)
		}
	}
	switch {
	case id == nil || id[0] != '"':
	case before.does == doesStart && (after != before || isThinkingID(id, runID)):
		*open = bytes.Clone(id)
	case before.does == doesEnd && *open != nil && sameJSONString(id, *open):
		*open = nil
	}
	return after, id
}

const thinkingInfix = "-thinking-"

// thinkingID makes the id of what begins at a seq of a run (a JSON string; nil: an unknown one).
func thinkingID(runID []byte, seq int64) []byte {
	if runID == nil {
		runID = []byte(`""`)
	}
	id := slices.Concat(runID[:len(runID)-1], []byte(thinkingInfix))
	return append(strconv.AppendInt(id, seq, 10), '"')
}

// isThinkingID reports whether an id was made of the run.
func isThinkingID(id, runID []byte) bool {
	decoded := rawjson.Decode(nil, id[1:len(id)-1])
	at := bytes.LastIndex(decoded, []byte(thinkingInfix))
	if at < 0 || runID == nil && at > 0 || runID != nil && !bytes.Equal(decoded[:at], rawjson.Decode(nil, runID[1:len(runID)-1])) {
		return false
	}
	digits := decoded[at+len(thinkingInfix):]
	return len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}

// asReasoning translates events that follow a fold.
func asReasoning(events []json.RawMessage, after *Fold) []json.RawMessage {
	thinking, at := after.thinking, after.at
	translated := events
	for i, event := range events {
		at.next(event, eventTypes[EventType(event)])
		if reasoning := thinking.translate(event, at.runID, at.seq); !bytes.Equal(reasoning, event) {
			if &translated[0] == &events[0] {
				translated = slices.Clone(events)
			}
			translated[i] = reasoning
		}
	}
	return translated
}

// A place is where the event at hand stands.
type place struct {
	isLocated bool   // in the log: see Fold.Locate
	runID     []byte // a JSON string, or nil
	seq       int64
}

// next goes to the next event, of a type (nil: an unknown one).
func (p *place) next(text []byte, t *eventType) {
	p.seq++
	if !p.isLocated && t != nil && t.does == doesStartRun {
		p.runID = bytes.Clone(memberString(text, "runId"))
	}
}

// Locate says where the next event stands in the log; those after it follow it. The messages of thinking have ids of it, so a fold that
// is compared with the log has to know. Without it, events count from 1, and their run is the one that RUN_STARTED names.
func (f *Fold) Locate(runID string, seq int64) {
	run := rawjson.Quote(nil, runID)
	if f.thinking.message != nil && !isThinkingID(f.thinking.message, run) {
		f.thinking = Thinking{}
	}
	f.at = place{isLocated: true, runID: run, seq: seq - 1}
}
