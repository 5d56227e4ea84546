package accept

import (
	"bytes"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file says for each type of event when the verifier accepts it, and what has to come before it.

// An eventKind is what protocol/events.json says of a type; protocol_generated.go has all of them.
type eventKind struct {
	does action
	part partKind // what it is done to
	// closesLane: where the event comes, the client closes the lane of its agent.
	closesLane bool
	knownTo    Clients
	// instead is the type under which other clients get the event; "": they do not.
	instead string
	rules   []eventRule

	// Set by init:
	admit  admit
	bucket bucket
	aspect aspect
}

// An action is what events do, a partKind what they do it to.
type (
	action   uint8
	partKind uint8
)

// An admit reports whether the verifier accepts an event of an agent (tag), which closes the lane at a place (closing, -1: none),
// and records what it means. If it does not, it has changed nothing. nil: always.
type admit func(f *Filter, kind *eventKind, tag []byte, closing int) bool

// A partRule says how a part is kept, and which of its events the verifier accepts where.
type partRule struct {
	bucket                     bucket
	aspect                     aspect
	start, proceed, end, chunk admit
}

var partRules = map[partKind]partRule{
	textPart:         {messages, itself, (*Filter).admitStart, (*Filter).admitPiece, (*Filter).admitEnd, (*Filter).admitChunk},
	toolPart:         {toolCalls, itself, (*Filter).admitCall, (*Filter).admitPiece, (*Filter).admitEnd, (*Filter).admitChunk},
	reasoningPart:    {reasoning, itself, (*Filter).admitStart, (*Filter).admitPiece, (*Filter).admitEnd, (*Filter).admitChunk},
	spanPart:         {reasoning, span, (*Filter).admitStart, nil, (*Filter).admitEnd, nil},
	thinkingPart:     {0, itself, (*Filter).admitThinking, (*Filter).admitThinkingPiece, (*Filter).admitThinkingEnd, nil},
	thinkingSpanPart: {0, span, (*Filter).admitThinking, nil, (*Filter).admitThinkingEnd, nil},
	stepPart:         {0, itself, (*Filter).admitStep, nil, (*Filter).admitStepEnd, nil},
	subagentPart:     {subagents, itself, (*Filter).admitSubagent, nil, (*Filter).admitSubagentEnd, nil},
}

// admissions are the rules for events that are about no part, where the verifier has some.
var admissions = map[action]admit{
	doesListMessages:  (*Filter).admitSnapshot,
	doesAddResult:     (*Filter).admitResult,
	doesEncrypt:       (*Filter).admitEncrypted,
	doesShowActivity:  (*Filter).admitActivity,
	doesPatchActivity: (*Filter).admitActivityDelta,
}

func init() {
	for _, kind := range eventKinds {
		if kind.part == noPart {
			kind.admit = admissions[kind.does]
			continue
		}
		rule := partRules[kind.part]
		kind.bucket, kind.aspect = rule.bucket, rule.aspect
		kind.admit = map[action]admit{doesStart: rule.start, doesContinue: rule.proceed, doesEnd: rule.end, doesChunk: rule.chunk}[kind.does]
	}
}

// isOfRun reports whether the event begins or ends a run.
func (k *eventKind) isOfRun() bool {
	return k.does == doesStartRun || k.does == doesFinishRun || k.does == doesFailRun
}

// isPatch reports whether the event patches the state or an activity.
func (k *eventKind) isPatch() bool { return k.does == doesPatchState || k.does == doesPatchActivity }

// id returns the field that names what the event is about.
func (k *eventKind) id() field { return partKinds[k.part].id }

// starts returns the type of event that starts what the event is about, ends the one that ends it.
func (k *eventKind) starts() string { return partKinds[k.part].starts }
func (k *eventKind) ends() string   { return partKinds[k.part].ends }

// isOpen reports whether a part is open once the lane at a place is closed.
func (f *Filter) isOpen(p *part, a aspect, closing int) bool {
	return p.isOpen(a) && (a != itself || closing < 0 || f.state.lanes[closing].part != p)
}

// --- messages, calls, reasoning ---

// admitStart: the start of what is open says nothing new, unless a list has dropped what it is about.
func (f *Filter) admitStart(kind *eventKind, tag []byte, closing int) bool {
	id := f.event.text(kind.id())
	p := f.state.find(kind.bucket, id)
	isOpen := f.isOpen(p, kind.aspect, closing)
	if isOpen && (!p.isGone || kind.aspect == span) || p.contradicted(tag) {
		return false
	}
	if p = f.state.add(kind.bucket, id); p == nil {
		return false
	}
	if isOpen {
		f.addEnd(kind, tag)
	}
	f.state.closeLane(closing)
	f.state.open(p, kind.aspect, tag)
	return true
}

// admitCall: a call belongs to the agent of its message. The start of one that is open may give it another name.
func (f *Filter) admitCall(kind *eventKind, tag []byte, closing int) bool {
	s := &f.state
	id := f.event.text(kind.id())
	p := s.find(toolCalls, id)
	isOpen := f.isOpen(p, itself, closing)
	if isOpen && !p.isGone && p.name == string(f.event.text(fieldToolCallName)) {
		return false
	}
	inherited, ok := f.ownerOfCall(p, tag)
	if !ok {
		return false
	}
	if p = s.add(toolCalls, id); p == nil {
		return false
	}
	if isOpen {
		f.addEnd(kind, tag)
	}
	s.closeLane(closing)
	f.openCall(p, tag, inherited)
	return true
}

// ownerOfCall returns the agent that the start of a call makes its owner if it has none; false if the client refuses the start.
func (f *Filter) ownerOfCall(p *part, tag []byte) (inherited *owner, ok bool) {
	if p.contradicted(tag) {
		return nil, false
	}
	if parent := f.event.text(fieldParentMessageID); parent != nil {
		if m := f.state.find(messages, parent); m != nil && m.hasOwner {
			inherited = &m.owner
		}
	}
	if inherited != nil {
		if inherited.contradicted(tag) || tag == nil && p != nil && p.hasOwner && p.owner != *inherited {
			return nil, false
		}
	}
	return inherited, true
}

func (f *Filter) openCall(p *part, tag []byte, inherited *owner) {
	s := &f.state
	if !p.hasOwner && tag == nil && inherited != nil {
		s.own(p, *inherited)
	}
	s.open(p, itself, tag)
	s.call(p, string(f.event.text(fieldToolCallName)))
}

// admitPiece: the start of what is not open comes before, if that is there. Only of a call whose name is known can there be one.
func (f *Filter) admitPiece(kind *eventKind, tag []byte, closing int) bool {
	id := f.event.text(kind.id())
	p := f.state.find(kind.bucket, id)
	if p.contradicted(tag) {
		return false
	}
	isOpen := f.isOpen(p, kind.aspect, closing)
	switch { // a start would make a message or a call that the folds do not have
	case isOpen && !p.isGone:
	case f.skips != nil:
		f.isSkipped = f.skips(f.text)
	default:
		f.isSkipped = !isOpen && kind.bucket != toolCalls && (p == nil || p.isGone)
	}
	if f.isSkipped {
		return false
	}
	if isOpen {
		f.state.closeLane(closing)
		return true
	}
	return f.addStart(kind, id, p, tag, closing)
}

// addStart puts in the start of what the event at hand is about.
func (f *Filter) addStart(kind *eventKind, id []byte, p *part, tag []byte, closing int) bool {
	if kind.bucket == toolCalls && (p == nil || !p.isNamed) {
		return false
	}
	if p = f.state.add(kind.bucket, id); p == nil {
		return false
	}
	f.state.closeLane(closing)
	f.state.open(p, kind.aspect, tag)
	members := []jsonMember{{kind.id(), f.event.values[kind.id()]}}
	switch kind.bucket {
	case toolCalls:
		members = append(members, jsonMember{fieldToolCallName, rawjson.Quote(nil, p.name)})
	case reasoning:
		if kind.aspect == itself {
			members = append(members, jsonMember{fieldRole, []byte(`"reasoning"`)})
		}
	}
	if tag != nil {
		members = append(members, jsonMember{fieldSubagentRunID, f.event.values[fieldSubagentRunID]})
	}
	f.add(newEvent(kind.starts(), members...))
	return true
}

// admitEnd: what a lane of another agent has open stays open, because that lane will end it. What the event itself closes, by
// closing its lane, is started a second time.
func (f *Filter) admitEnd(kind *eventKind, tag []byte, closing int) bool {
	id := f.event.text(kind.id())
	p := f.state.find(kind.bucket, id)
	if !p.isOpen(kind.aspect) || p.contradicted(tag) {
		return false
	}
	if kind.aspect == itself {
		if lane := f.state.laneWith(p); lane >= 0 && lane != closing {
			return false
		} else if lane >= 0 && !f.addStart(kind, id, p, tag, closing) {
			return false
		} else if lane >= 0 {
			closing = -1
		}
	}
	f.state.closeLane(closing)
	p.opened[kind.aspect] = 0
	return true
}

// admitResult: a result makes a message.
func (f *Filter) admitResult(_ *eventKind, tag []byte, closing int) bool {
	s := &f.state
	id := f.event.text(fieldMessageID)
	if p := s.find(messages, id); p != nil {
		if lane := s.laneWith(p); lane >= 0 && lane != closing && s.lanes[lane].owner.isSubagent && !s.lanes[lane].owner.is(tag) {
			return false // the lane would end a message that is not its agent's
		}
	}
	s.closeLane(closing)
	if p := s.add(messages, id); p != nil {
		s.own(p, ownerOf(tag))
	}
	return true
}

func (f *Filter) admitEncrypted(_ *eventKind, tag []byte, _ int) bool {
	s := &f.state
	id := f.event.text(fieldEntityID)
	if string(f.event.text(fieldSubtype)) == "tool-call" {
		return !s.find(toolCalls, id).contradicted(tag)
	}
	if p := s.find(messages, id); p != nil && p.hasOwner {
		return !p.contradicted(tag)
	}
	return !s.find(reasoning, id).contradicted(tag)
}

// --- chunks ---

// admitChunk does what the client does with a chunk.
func (f *Filter) admitChunk(kind *eventKind, tag []byte, _ int) bool {
	s, e := &f.state, &f.event
	id := e.text(kind.id())
	p := (*part)(nil)
	if id != nil {
		p = s.find(kind.bucket, id)
	}
	place, ok := f.laneOfChunk(kind, p, id, tag)
	if !ok {
		return false
	}
	if place >= 0 && s.lanes[place].bucket == kind.bucket && (id == nil || s.lanes[place].part == p) {
		if f.clients&Client1 != 0 {
			f.pruneRepeated(kind, &s.lanes[place])
		}
		return true
	}

	// It starts a message or a call.
	if id == nil {
		return false
	}
	var inherited *owner
	if kind.bucket == toolCalls {
		if e.text(fieldToolCallName) == nil {
			return false
		}
		if inherited, ok = f.ownerOfCall(p, tag); !ok {
			return false
		}
	} else if p.contradicted(tag) {
		return false
	}
	l := lane{owner: ownerOf(tag), bucket: kind.bucket}
	for from, to := range map[field]*[]byte{fieldRole: &l.role, fieldName: &l.name, fieldToolCallName: &l.name, fieldParentMessageID: &l.parent} {
		if value := e.text(from); value != nil {
			*to = bytes.Clone(value)
		}
	}
	if l.part = s.add(kind.bucket, id); l.part == nil || !s.hasRoom(l.size()) {
		return false
	}
	if l.part.isOpen(itself) { // by a start, not by a chunk
		f.addEnd(kind, tag)
	}
	s.closeLane(place)
	if kind.bucket == toolCalls {
		f.openCall(l.part, tag, inherited)
	} else {
		s.open(l.part, itself, tag)
	}
	s.lanes = append(s.lanes, l)
	return true
}

// addEnd puts in the end of what the event at hand starts a second time.
func (f *Filter) addEnd(kind *eventKind, tag []byte) {
	members := []jsonMember{{kind.id(), f.event.values[kind.id()]}}
	if tag != nil {
		members = append(members, jsonMember{fieldSubagentRunID, f.event.values[fieldSubagentRunID]})
	}
	f.add(newEvent(kind.ends(), members...))
}

// laneOfChunk returns the place of the lane that a chunk belongs to, -1 if it opens one; false if the client refuses the chunk.
func (f *Filter) laneOfChunk(kind *eventKind, p *part, id, tag []byte) (place int, ok bool) {
	s := &f.state
	if id != nil {
		if p != nil {
			if place = s.laneWith(p); place >= 0 {
				return place, !s.lanes[place].owner.contradicted(tag)
			}
		}
		return s.laneOf(tag), true
	}
	place = s.laneOf(tag)
	if tag != nil || place >= 0 && s.lanes[place].bucket == kind.bucket {
		return place, true
	}
	// A chunk of a subagent that named itself only in its first chunk.
	candidates := 0
	for i := range s.lanes {
		if s.lanes[i].bucket == kind.bucket {
			candidates++
			place = i
		}
	}
	return place, candidates == 1
}

// pruneRepeated: a later chunk may not contradict the first in what only the first can say.
func (f *Filter) pruneRepeated(kind *eventKind, l *lane) {
	check := func(name field, first []byte) {
		if value := f.event.text(name); value != nil && (first == nil || !bytes.Equal(value, first)) {
			f.prune = append(f.prune, name)
		}
	}
	switch kind.bucket {
	case messages:
		role := l.role
		if role == nil {
			role = []byte("assistant")
		}
		check(fieldRole, role)
		check(fieldName, l.name)
	case toolCalls:
		check(fieldToolCallName, l.name)
		check(fieldParentMessageID, l.parent)
	}
}

// --- thinking ---

func (f *Filter) admitThinking(kind *eventKind, tag []byte, closing int) bool {
	if f.state.thinking[kind.aspect].opened != 0 {
		return false
	}
	f.state.closeLane(closing)
	if kind.aspect == itself {
		f.addThinkingSpan(tag)
	}
	f.state.think(kind.aspect, tag)
	return true
}

func (f *Filter) addThinkingSpan(tag []byte) {
	if f.state.thinking[span].opened == 0 {
		f.addThinking(partKinds[thinkingSpanPart].starts, tag)
		f.state.think(span, tag)
	}
}

func (f *Filter) addThinking(eventType string, tag []byte) {
	member := jsonMember{}
	if tag != nil {
		member = jsonMember{fieldSubagentRunID, f.event.values[fieldSubagentRunID]}
	}
	f.add(newEvent(eventType, member))
}

func (f *Filter) admitThinkingPiece(kind *eventKind, tag []byte, closing int) bool {
	if t := &f.state.thinking[itself]; t.opened != 0 && t.owner.contradicted(tag) {
		return false
	}
	if f.isSkipped = f.state.thinking[itself].opened == 0; f.isSkipped {
		return false
	}
	f.state.closeLane(closing)
	return true
}

func (f *Filter) admitThinkingEnd(kind *eventKind, tag []byte, closing int) bool {
	t := &f.state.thinking[kind.aspect]
	if t.opened == 0 || t.owner.contradicted(tag) {
		return false
	}
	f.state.closeLane(closing)
	*t = thought{}
	return true
}

// --- lists, activities, steps, subagents ---

func (f *Filter) admitSnapshot(*eventKind, []byte, int) bool {
	f.state.closeLanes()
	for _, p := range f.state.parts[toolCalls] {
		if !p.isOpen(itself) { // the client may not have it any more
			f.state.call(p, "")
			p.isNamed = false
		}
	}
	for _, b := range []bucket{messages, toolCalls, reasoning} {
		for _, p := range f.state.parts[b] {
			p.isGone = true // unless the list has it
		}
	}
	f.learn(f.event.values[fieldMessages], true)
	return true
}

func (f *Filter) admitActivity(_ *eventKind, tag []byte, _ int) bool {
	id := f.event.text(fieldMessageID)
	for _, b := range []bucket{messages, reasoning} { // it may have taken the place of a message
		if replaced := f.state.find(b, id); replaced != nil {
			replaced.isGone = true
		}
	}
	p := f.state.add(activities, id)
	if replace := f.event.values[fieldReplace]; p != nil && (!p.hasOwner || replace == nil || replace[0] != 'f') {
		f.state.own(p, ownerOf(tag))
	}
	return true
}

func (f *Filter) admitActivityDelta(_ *eventKind, tag []byte, _ int) bool {
	return !f.state.find(activities, f.event.text(fieldMessageID)).contradicted(tag)
}

func (f *Filter) admitStep(_ *eventKind, tag []byte, closing int) bool {
	s := &f.state
	st := step{ownerOf(tag), string(f.event.text(fieldStepName))}
	if s.steps[st] != 0 || !s.hasRoom(partSize+len(st.name)+len(st.owner.id)) {
		return false
	}
	s.closeLane(closing)
	s.clock++
	s.steps[st] = s.clock
	return true
}

func (f *Filter) admitStepEnd(_ *eventKind, tag []byte, closing int) bool {
	s := &f.state
	st := step{ownerOf(tag), string(f.event.text(fieldStepName))}
	if s.steps[st] == 0 {
		return false
	}
	s.closeLane(closing)
	delete(s.steps, st)
	s.size -= partSize + len(st.name) + len(st.owner.id)
	return true
}

// admitSubagent: a subagent starts once in a run, and after its parent.
func (f *Filter) admitSubagent(_ *eventKind, tag []byte, _ int) bool {
	s := &f.state
	parent := f.event.text(fieldParentSubagentRunID)
	if s.find(subagents, tag) != nil || parent != nil && s.find(subagents, parent) == nil {
		return false
	}
	p := s.add(subagents, tag)
	if p == nil {
		return false
	}
	s.clock++
	p.opened[itself] = s.clock
	return true
}

func (f *Filter) admitSubagentEnd(_ *eventKind, tag []byte, closing int) bool {
	p := f.state.find(subagents, tag)
	if !p.isOpen(itself) {
		return false
	}
	f.state.closeLane(closing)
	p.opened[itself] = 0
	return true
}
