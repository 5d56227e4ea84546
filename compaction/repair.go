package compaction

import (
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file repairs the life of runs. The client's verifier refuses a stream whose runs go on after their end, end with
// something open, start twice, or begin with another event than RUN_STARTED. The repair inserts the events that are
// missing. The fold of the stream stays the same. agui_internal.repaired_events gives the same bytes.
//
// A stream is cut into stretches. Each begins with RUN_STARTED and ends with RUN_FINISHED, RUN_ERROR, or both in this order.
//
//   - Behind RUN_ERROR, events that mean something before it go, further ends too, until a RUN_STARTED.
//   - An event for which no run is in progress begins a stretch: a bare RUN_STARTED (threadId, runId) comes before it. At the
//     beginning of the events this is so only where the first of RUN_STARTED, RUN_FINISHED and RUN_ERROR among them is a
//     RUN_STARTED; otherwise the events go on with a run.
//   - A stretch without an end gets one where the next begins. If the repair has begun it after an end, also at the end of the
//     events, unless a stream of chunks, a message of thinking or a question is open there. It is a copy of the end that the
//     stretch stands after, if any, else a RUN_FINISHED that keeps the interrupts as they are.
//   - What is open at a RUN_FINISHED is closed before it, the youngest first, and suspended from there on; so is what is open at
//     a RUN_ERROR.
//   - If an event goes on with something suspended, its start comes right after the beginning of the stretch, where no stream
//     of chunks is open. A start would make a message or call that a MESSAGES_SNAPSHOT has dropped, or an activity replaced. If
//     it is not there at the beginning of the stretch, but at the event, the start comes before the event. If it is not there
//     either, the event goes, for it has no effect.
//
// A start says whose the message or call is: as the next event about it that names a subagent does, otherwise as its first start
// or the list that brought it did. It has no metadata and no parent, which mean something for a new message or call only.

// A partKey names a part. A step is known by its name and the agent that takes it.
type partKey struct {
	kind      partKind
	id, owner string
}

// An openedPart is a part that is open or suspended.
type openedPart struct {
	kind partKind
	// As the start said, in JSON; nil where it did not.
	id, role, name, owner []byte
	openIn                int        // the stretch in which it is open; 0: it is suspended
	reopening             *insertion // its start, as long as no event has named a subagent since
	replaced              int        // how many events had replaced messages when it started
}

// An insertion is an event that the stream lacks.
type insertion struct {
	position int // of the event before or after which it comes
	slot     slot
	text     json.RawMessage
	part     *openedPart // set for a start
	// What the start says of the message or call.
	name, owner []byte
}

// A slot is a place at an event.
type slot int8

const (
	closingSlot slot = iota
	endingSlot
	beginningSlot
	behindBeginningSlot
	eventSlot
	behindSlot
)

// A phase is the progress of a run.
type phase int8

const (
	beforePhase phase = iota
	runningPhase
	finishedPhase
	failedPhase
)

// A repair reads the events of a stream one after another.
type repair struct {
	isNeeded bool // something is inserted or left out

	position  int // of the event at hand
	inserted  []*insertion
	leftOut   map[int]bool
	phase     phase
	hasFailed bool            // RUN_ERROR has ended the run; RUN_STARTED opens it again
	stretch   int             // counts from 1
	begin     int             // the position of the stretch's first event
	beginSlot slot            // where starts come at that event
	behind    json.RawMessage // the end that the repair has begun the stretch behind; nil if it has not
	last      json.RawMessage // the event before

	threadID, runID []byte // of the run at hand
	interrupts      []byte

	parts     map[partKey]*openedPart
	opened    []*openedPart // in the stretch; some are closed since
	suspended bool          // there are parts from an earlier stretch
	subagents map[string]*openedPart
	seenIn    map[string]int // the stretch in which a subagent has last been started

	// What the events mean so far, and up to the beginning of the stretch; nil if the repair only looks.
	fold, beginning *Fold
	replaced        int // how many events may have dropped messages or calls
}

func newRepair(after *Fold) *repair {
	return &repair{
		stretch: 1, beginSlot: behindBeginningSlot, interrupts: after.interrupts, hasFailed: after.hasFailed && !after.isBetweenRuns,
		leftOut: map[int]bool{}, parts: map[partKey]*openedPart{}, subagents: map[string]*openedPart{}, seenIn: map[string]int{},
	}
}

// add takes the next event, which e holds.
func (r *repair) add(text json.RawMessage, e *event) {
	if r.fold == nil && r.isNeeded {
		return // it has been seen
	}
	t := typeOf(e)
	if r.hasFailed = r.hasFailed && t.does != doesStartRun; r.hasFailed && t.isLate() {
		r.isNeeded, r.leftOut[r.position] = true, true
		r.position++
		return
	}
	r.hasFailed = r.hasFailed || t.does == doesFailRun
	r.live(t.does, text, e)
	if t.part != noPart && t.does != doesChunk {
		r.addToPart(t, text, e)
	}
	switch t.does {
	case doesListMessages, doesShowActivity, doesShowOrPatchActivity:
		r.replaced++
	}
	if r.fold != nil {
		r.fold.at.next(text, t)
		r.fold.applyEvent(e)
		if r.position == r.begin && r.beginSlot == behindSlot {
			r.beginning = r.fold.Clone()
		}
	}
	r.last = text
	r.position++
}

// live follows the life of runs.
func (r *repair) live(does action, text json.RawMessage, e *event) {
	switch {
	case does == doesStartRun:
		if r.position > 0 && (r.phase == runningPhase || r.phase == beforePhase) {
			if r.phase == beforePhase {
				r.threadID, r.runID = memberString(text, "threadId"), memberString(text, "runId")
				r.beginRun(0)
			}
			r.finishStretch()
		}
		r.threadID, r.runID = memberString(text, "threadId"), memberString(text, "runId")
		r.nextStretch(nil)
		r.beginSlot = behindSlot
	case r.phase == failedPhase, r.phase == finishedPhase && does != doesFailRun:
		if r.threadID == nil && r.runID == nil {
			break // no event has named the run
		}
		r.nextStretch(r.last)
		r.beginRun(r.position)
	}
	switch does {
	case doesFinishRun:
		if r.phase == beforePhase || r.phase == runningPhase {
			r.closeParts(r.position)
		}
		if r.threadID == nil && r.runID == nil {
			r.threadID, r.runID = memberString(text, "threadId"), memberString(text, "runId")
		}
		if readOutcome(e) {
			r.interrupts, _ = interruptsOf(e)
		}
		r.phase = finishedPhase
	case doesFailRun:
		r.phase = failedPhase
	}
}

// memberString returns a member that is a string, as JSON; nil if it is not.
func memberString(object []byte, name string) []byte {
	if value := rawjson.MemberOf(object, name); value != nil && kindOf(value) == isString {
		return value
	}
	return nil
}

func (r *repair) insert(i insertion) *insertion {
	r.isNeeded = true
	r.inserted = append(r.inserted, &i)
	return &i
}

func (r *repair) nextStretch(behind json.RawMessage) {
	if r.position > 0 {
		r.stretch++
	}
	r.phase, r.begin, r.beginSlot, r.behind = runningPhase, r.position, behindBeginningSlot, behind
	r.opened = r.opened[:0]
	r.suspended = len(r.parts) > 0
	if r.fold != nil {
		r.beginning = r.fold.Clone()
	}
}

// beginRun begins a run in front of an event.
func (r *repair) beginRun(position int) {
	r.insert(insertion{position: position, slot: beginningSlot, text: newEvent("RUN_STARTED", eventField{"threadId", r.threadID}, eventField{"runId", r.runID})})
}

// finishStretch ends a stretch that has no end of its own, in front of the event at hand.
func (r *repair) finishStretch() {
	end := r.behind
	if end == nil {
		var outcome []byte
		if len(r.interrupts) > 0 && string(r.interrupts) != "[]" {
			outcome = slices.Concat([]byte(`{"type":"interrupt","interrupts":`), r.interrupts, []byte("}"))
		}
		end = newEvent("RUN_FINISHED", eventField{"threadId", r.threadID}, eventField{"runId", r.runID}, eventField{"outcome", outcome})
	}
	if r.behind == nil || EventType(end) == "RUN_FINISHED" {
		r.closeParts(r.position)
	}
	r.insert(insertion{position: r.position, slot: endingSlot, text: end})
}

// closeParts closes what is open in the stretch, in front of an event.
func (r *repair) closeParts(position int) {
	for _, p := range slices.Backward(r.opened) {
		if p.openIn == r.stretch {
			p.openIn = 0
			r.insert(insertion{position: position, slot: closingSlot, text: p.closing()})
		}
	}
	r.opened = r.opened[:0]
}

func (r *repair) addToPart(t *eventType, text json.RawMessage, e *event) {
	if t.does == doesContinue && !r.suspended && r.fold == nil {
		return
	}
	kind := &partKinds[t.part]
	var id []byte
	switch {
	case kind.idName == "messageId":
		id = e.values[fieldMessageID]
	case t.part == toolPart:
		id = e.values[fieldToolCallID]
	case t.part == subagentPart:
		id = e.values[fieldSubagentRunID]
	case t.part == stepPart:
		id = rawjson.MemberOf(text, "stepName")
	}
	if kind.idName != "" && (id == nil || kindOf(id) != isString) {
		return
	}
	owner := e.values[fieldSubagentRunID]
	if owner != nil && kindOf(owner) != isString {
		owner = nil
	}
	key := partKey{kind: t.part}
	key.id, _ = jsontree.StringValue(jsontree.Raw(id))
	if t.part == stepPart && owner != nil {
		key.owner = string(rawjson.Decode([]byte("+"), owner[1:len(owner)-1]))
	}

	if t.does == doesStart {
		if t.part == subagentPart {
			r.needSubagent(text)
		}
		p := &openedPart{kind: t.part, id: id, owner: owner, openIn: r.stretch, replaced: r.replaced}
		switch t.part {
		case textPart:
			p.role, p.name = stringField(e, fieldRole), stringField(e, fieldName)
		case toolPart:
			p.name = stringField(e, fieldToolCallName)
		case subagentPart:
			p.name = stringField(e, fieldName)
			r.subagents[key.id], r.seenIn[key.id] = p, r.stretch
		}
		if old := r.parts[key]; old != nil {
			old.openIn = 0
		}
		r.parts[key] = p
		r.opened = append(r.opened, p)
		return
	}

	p := r.parts[key]
	if p == nil || r.phase == finishedPhase || r.phase == failedPhase {
		return
	}
	if p.openIn != r.stretch && !r.reopen(p, key.id) {
		r.leftOut[r.position] = true
		r.isNeeded = true
		return
	}
	if p.reopening != nil && owner != nil {
		p.reopening.owner, p.reopening = owner, nil
	}
	if t.does == doesEnd {
		p.openIn = 0
		delete(r.parts, key)
	}
}

func stringField(e *event, name field) []byte {
	if value := e.values[name]; value != nil && kindOf(value) == isString {
		return value
	}
	return nil
}

// needSubagent opens the parent of a subagent that starts: the stretch must have started it, too.
func (r *repair) needSubagent(text json.RawMessage) {
	id, ok := jsontree.StringValue(jsontree.Raw(memberString(text, "parentSubagentRunId")))
	if !ok {
		return
	}
	if parent := r.subagents[id]; parent != nil && r.seenIn[id] != r.stretch {
		r.reopen(parent, id)
		r.parts[partKey{kind: subagentPart, id: id}] = parent
	}
}

// reopen starts a suspended part in the stretch at hand, and reports whether it can.
func (r *repair) reopen(p *openedPart, id string) bool {
	i := insertion{position: r.begin, slot: r.beginSlot, part: p, name: p.name, owner: p.owner}
	if r.fold != nil && r.replaced > p.replaced && (p.kind == textPart || p.kind == toolPart || p.kind == reasoningPart) {
		name, owner, ok := r.beginning.subject(p.kind, id)
		if !ok {
			name, owner, ok = r.fold.subject(p.kind, id)
			i.position, i.slot = r.position, behindBeginningSlot
		}
		if !ok {
			return false
		}
		i.owner = owner
		if p.kind == toolPart {
			i.name = name
		}
	}
	if p.kind == subagentPart {
		r.seenIn[id] = r.stretch
	}
	p.openIn = r.stretch
	p.reopening = r.insert(i)
	r.opened = append(r.opened, p)
	return true
}

// subject finds a message or call that events are about: the name of a call, and the subagent.
func (f *Fold) subject(kind partKind, id string) (name, owner []byte, ok bool) {
	if kind != toolPart {
		place := f.find([]byte(id))
		if place < 0 {
			return nil, nil, false
		}
		return nil, jsonString(f.messages.at(place).member("subagentRunId")), true
	}
	place, ok := f.findCall([]byte(id))
	if !ok || f.messages.at(place.message).function(place.call) == nil {
		return nil, nil, false
	}
	m := f.messages.at(place.message)
	return jsonString(m.function(place.call).Get("name")), jsonString(m.member("subagentRunId")), true
}

// --- events ---

func (p *openedPart) closing() json.RawMessage {
	kind := &partKinds[p.kind]
	if p.kind == stepPart {
		return newEvent(kind.closes, eventField{kind.idName, p.id}, eventField{"subagentRunId", p.owner})
	}
	return newEvent(kind.closes, eventField{kind.idName, p.id})
}

// start writes the start of a suspended part.
func (i *insertion) start() json.RawMessage {
	p, kind := i.part, &partKinds[i.part.kind]
	id, subagent := eventField{kind.idName, p.id}, eventField{"subagentRunId", i.owner}
	switch p.kind {
	case textPart:
		return newEvent(kind.opens, id, eventField{"role", p.role}, eventField{"name", i.name}, subagent)
	case reasoningPart:
		return newEvent(kind.opens, id, eventField{"role", []byte(`"reasoning"`)}, subagent)
	case toolPart:
		if i.name == nil {
			i.name = []byte(`""`)
		}
		return newEvent(kind.opens, id, eventField{"toolCallName", i.name}, subagent)
	case subagentPart:
		return newEvent(kind.opens, id, eventField{"name", i.name})
	default:
		return newEvent(kind.opens, id, subagent)
	}
}

// RepairEvents inserts the events of the life of runs that a stream lacks, so that the client's
// verifier accepts it, unless it has other faults. The stream means the same. Events come back
// unchanged if they keep the rules, if a repair would change their meaning, or if they exceed the
// limits of after. after is the fold of the lineage before the events, nil for none.
//
// An agent breaks the rules if it goes on after RUN_FINISHED or RUN_ERROR, ends a run in the middle
// of a message, starts a run twice, or begins one with another event than RUN_STARTED.
// [CompactEvents] calls RepairEvents by itself.
func RepairEvents(events []json.RawMessage, after *Fold) []json.RawMessage {
	if after == nil {
		after = New()
	}
	events = asReasoning(events, after)
	r := newRepair(after)
	r.fold = after.Clone()
	r.fold.runsByEvents = true
	var e event
	for _, text := range events {
		if !e.scanWhole(text, nil) {
			e.clear()
		}
		r.add(text, &e)
	}
	if !r.isNeeded {
		return events
	}
	whole := r.finish(events)
	f := after.Clone()
	f.runsByEvents = true
	f.applyAll(whole)
	if f.Err() != nil || r.fold.Err() != nil || !f.means(r.fold) {
		return events
	}
	return whole
}

// finish puts the events together.
func (r *repair) finish(events []json.RawMessage) []json.RawMessage {
	if r.phase == runningPhase && r.behind != nil && (r.fold.hasFailed || r.fold.Lanes() == nil) {
		r.finishStretch()
	}
	slices.SortStableFunc(r.inserted, func(a, b *insertion) int {
		if a.position != b.position {
			return a.position - b.position
		}
		return int(a.slot - b.slot)
	})
	repaired := make([]json.RawMessage, 0, len(events)+len(r.inserted))
	insert := func(position int, last slot) {
		for len(r.inserted) > 0 && r.inserted[0].position == position && r.inserted[0].slot <= last {
			i := r.inserted[0]
			if i.part != nil {
				i.text = i.start()
			}
			repaired = append(repaired, i.text)
			r.inserted = r.inserted[1:]
		}
	}
	for position, event := range events {
		insert(position, eventSlot)
		if !r.leftOut[position] {
			repaired = append(repaired, event)
		}
		insert(position, behindSlot)
	}
	insert(len(events), behindSlot)
	return repaired
}
