package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file folds the state, and the beginning and the end of runs.

func (f *Fold) setState(state jsontree.Raw) {
	f.state = jsontree.NewDocument(f.owner, state)
	f.stateText = json.RawMessage(state)
	f.statePatched = false
	f.stateChanges++
}

// bringState sets the state to the value of an event, in the spelling that the fold keeps. Most agents send the whole state repeatedly:
// what is the same, to the byte, is not taken apart once more.
func (f *Fold) bringState(value []byte, isSame bool, spelled func([]byte) jsontree.Raw) {
	if !isSame {
		f.setState(spelled(value))
		return
	}
	f.state.Restart(len(value))
	f.statePatched = false
	f.stateChanges++
}

// readStateSnapshot accepts the serialization proposal's spelling too: state in place of snapshot.
func readStateSnapshot(e *event) bool {
	if e.values[fieldSnapshot] == nil {
		e.values[fieldSnapshot] = e.values[fieldState]
	}
	return e.values[fieldSnapshot] != nil
}

func (f *Fold) snapshotState(e *event) {
	f.bring(e, broughtByMessage|fieldSnapshot.set())
	f.bringState(e.values[fieldSnapshot], e.isState, jsontree.Kept)
}

// readStateDelta accepts the serialization proposal's spelling too: patch, a list or one operation, in place of delta. Beside a
// delta it has no effect.
func readStateDelta(e *event) bool {
	if patch := e.values[fieldPatch]; e.values[fieldDelta] == nil && patch != nil && kindOf(patch)&(isArray|isObject) != 0 {
		e.values[fieldDelta] = asOperations(patch)
	}
	return e.values[fieldDelta] != nil
}

func (f *Fold) patchState(e *event) { f.patchedState(e) }

// patchedState applies a patch to the state and reports whether it succeeded.
func (f *Fold) patchedState(e *event) bool {
	f.bring(e, broughtByMessage|fieldDelta.set())
	succeeded := f.patch(&f.state, e.values[fieldDelta])
	if succeeded {
		f.stateText = nil
		f.statePatched = true
		f.stateChanges++
	}
	if jsontree.HasCopy(e.values[fieldDelta]) {
		f.mayHaveGrown("")
		f.look()
	}
	return succeeded
}

// patch applies a patch to a document of the fold.
func (f *Fold) patch(d *jsontree.Document, operations []byte) bool {
	succeeded := d.Patch(operations, &f.patchLimits)
	f.usage.spent += d.Fuel()
	if !succeeded {
		f.skipped = d.Failure()
	}
	return succeeded
}

// readInput accepts an input whose messages, if any, are a list.
func readInput(e *event) bool {
	input := e.values[fieldInput]
	return input == nil || isListOrNone(rawjson.MemberOf(input, "messages"))
}

func isListOrNone(value []byte) bool {
	return value == nil || value[0] == '[' || value[0] == 'n'
}

// startRun takes the state that the run was started with, and those of its messages that are new. A message without an id is
// always new.
func (f *Fold) startRun(e *event) {
	if f.runsByEvents && f.EndRun() != nil {
		return
	}
	input := e.values[fieldInput]
	if input == nil {
		return
	}
	state, list := rawjson.MemberOf(input, "state"), rawjson.MemberOf(input, "messages")
	hasState, hasList := state != nil && state[0] != 'n', list != nil && list[0] == '['
	if hasState || hasList {
		f.bring(e, broughtByMessage&^fieldMetadata.set())
	}
	if hasState {
		f.usage.brought += jsontree.GuardedOctets(state)
		end, isSame := f.state.SkipIn(state, 0)
		f.bringState(state, isSame && end == len(state), jsontree.AsWritten)
	}
	if !hasList {
		return
	}
	f.usage.brought += jsontree.GuardedOctets(list) + f.input.messageBytes()
	f.addNew(list)
	for _, m := range f.input.Messages {
		switch {
		case m.HasID && f.find([]byte(m.ID)) >= 0:
		case m.JSON == nil:
			f.usage.err = ErrMissingMessage
			return
		default:
			f.addNew(slices.Concat([]byte{'['}, m.JSON, []byte{']'}))
		}
	}
}

// addNew adds those messages of a list whose ids are new.
func (f *Fold) addNew(list []byte) {
	for _, m := range f.parseMessages(list, nil) {
		if !m.hasID || f.find([]byte(m.id)) < 0 {
			f.push(m)
		}
	}
}

// readOutcome accepts an interrupt only with a list of interrupts.
func readOutcome(e *event) bool {
	interrupts, interrupted := interruptsOf(e)
	return !interrupted || interrupts != nil && interrupts[0] == '['
}

// interruptsOf returns the interrupts of a run that ended with outcome "interrupt".
func interruptsOf(e *event) (interrupts []byte, interrupted bool) {
	outcome := e.values[fieldOutcome]
	if outcome == nil || kindOf(outcome) != isObject {
		return nil, false
	}
	if kind, ok := jsontree.StringText(jsontree.Raw(rawjson.MemberOf(outcome, "type"))); !ok || !rawjson.SameKey(kind, "interrupt") {
		return nil, false
	}
	return rawjson.MemberOf(outcome, "interrupts"), true
}

// finishRun sets the interrupts that wait for an answer: those of the outcome, or what the run has asked if it has no outcome. Any other
// outcome clears them.
func (f *Fold) finishRun(e *event) {
	f.bring(e, broughtByMessage)
	defer func() { f.usage.brought += int64(len(f.interrupts)) }()
	interrupts, interrupted := interruptsOf(e)
	asked := f.asked
	f.asked = nil
	if e.values[fieldOutcome] != nil {
		asked = nil
	}
	if interrupted {
		for interrupt := range rawjson.Elements(interrupts) {
			if kindOf(interrupt) == isObject {
				interrupt = withoutNulls(interrupt, "subagentRunId", "message", "toolCallId", "responseSchema", "expiresAt", "metadata")
			}
			asked = append(asked, json.RawMessage(jsontree.AsWritten(interrupt)))
		}
	}
	f.interrupts = json.RawMessage(rawjson.Array(asked))
}

// failRun ends the run for good; the interrupts stay open.
func (f *Fold) failRun(*event) {
	f.hasFailed = true
	f.asked = nil
}

// Input is an input (RunAgentInput) that is stored beside the events of a run. A fold keeps no part of it.
type Input struct {
	JSON []byte
	// Messages are those that JSON lacks: it has an empty list then.
	Messages []InputMessage
	// SeparatorBytes is the size of what stands between two of Messages.
	SeparatorBytes int
}

// InputMessage is an element of the messages of an [Input].
type InputMessage struct {
	ID    string // decoded
	HasID bool   // ID is known
	Bytes int    // the size of the message, as PostgreSQL counts it (agui.input_part)
	// JSON may be nil if the conversation has a message with this id, because it ignores the input's then.
	JSON []byte
}

func (i *Input) messageBytes() int64 {
	size := int64(max(0, len(i.Messages)-1) * i.SeparatorBytes)
	for _, m := range i.Messages {
		size += int64(m.Bytes)
	}
	return size
}

// ErrMissingMessage is why a fold ended that needs a message of an input whose text it was not given.
var ErrMissingMessage = errors.New("a message of an input is missing")

// ApplyInput folds RUN_STARTED with an input in place of its own; started nil: the input of a run without a RUN_STARTED, as if a
// RUN_STARTED had carried it.
func (f *Fold) ApplyInput(started []byte, input Input) {
	f.input = input
	defer func() { f.input = Input{} }()
	if started != nil {
		f.Apply(WithInput(started, input.JSON))
		return
	}
	f.applyInput(input.JSON)
}

// WithInput returns a RUN_STARTED event with the input in place of its own.
func WithInput(started, input []byte) []byte {
	end := bytes.LastIndexByte(started, '}')
	event := make([]byte, 0, len(started)+len(input)+len(`,"input":`))
	event = append(event, started[:end]...)
	event = append(event, `,"input":`...) // where a key stands twice, the last one counts
	event = append(event, input...)
	return append(event, started[end:]...)
}

func (f *Fold) applyInput(input []byte) {
	if input = bytes.TrimSpace(input); len(input) == 0 || kindOf(input) != isObject {
		return
	}
	f.event.values[fieldInput] = input
	if readInput(&f.event) && f.beforeEvent() {
		f.closeLanes(allLanes, &f.event)
		f.startRun(&f.event)
		f.endPart()
	}
	f.event.clear()
}
