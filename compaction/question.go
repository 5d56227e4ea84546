package compaction

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file reads the questions of agents that have no outcome for them: they send an event, and a plain RUN_FINISHED.
// agui_internal.question_interrupt does the same.

// A questionMember is a member of the interrupt that a question makes, and the paths in the event where it may stand.
type questionMember struct {
	name  string
	paths [][]string
}

// ask takes the question of an event. A RUN_FINISHED without an outcome makes an interrupt of it. The event stays with it, as its source:
// so that it can be asked once more as it was.
func (f *Fold) ask(t *eventType, e *event) {
	if !isQuestion(t, e) {
		return
	}
	var interrupt []byte
	for _, member := range questionMembers {
		value := member.of(e.text)
		switch {
		case value != nil:
		case member.name == "id":
			value = f.questionID()
		case member.name == "reason":
			value = rawjson.Quote(nil, questionName)
		default:
			continue
		}
		interrupt = append(interrupt, ',')
		interrupt = append(rawjson.Quote(interrupt, member.name), ':')
		interrupt = append(interrupt, value...)
	}
	interrupt = append(interrupt, `,"source":`...)
	interrupt = append(interrupt, e.text...)
	interrupt[0] = '{'
	f.asked = append(f.asked, append(interrupt, '}'))
}

// isQuestion reports whether an event of the type asks.
func isQuestion(t *eventType, e *event) bool {
	name := e.values[fieldName]
	return t.does == doesAsk && name != nil && kindOf(name) == isString && string(e.decoded(fieldName)) == questionName
}

// of returns the member, a JSON string that is not empty; nil: the event has none.
func (m questionMember) of(event []byte) []byte {
	for _, path := range m.paths {
		value := event
		for _, key := range path {
			if value == nil || value[0] != '{' {
				value = nil
				break
			}
			value = rawjson.MemberOf(value, key)
		}
		if len(value) > 2 && value[0] == '"' {
			return value
		}
	}
	return nil
}

// questionID makes the id of a question that has none. Its place among those of the run stays when the run is compacted.
func (f *Fold) questionID() []byte {
	run := f.at.runID
	if run == nil {
		run = []byte(`""`)
	}
	id := append(slices.Clone(run[:len(run)-1]), "-question-"...)
	return append(strconv.AppendInt(id, int64(len(f.asked)+1), 10), '"')
}

// sources returns the questions of a list of interrupts, as they came; none if the interrupts are those of an outcome.
func sources(interrupts json.RawMessage) (events []json.RawMessage) {
	var e event
	for interrupt := range rawjson.Elements(interrupts) {
		if kindOf(interrupt) != isObject {
			continue
		}
		source := rawjson.MemberOf(interrupt, "source")
		if e.clear(); e.scanWhole(source, nil) && isQuestion(typeOf(&e), &e) {
			events = append(events, source)
		}
	}
	return events
}
