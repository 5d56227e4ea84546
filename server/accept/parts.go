package accept

import (
	"cmp"
	"slices"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file is what the verifier of a client keeps: what is open, and which agent it belongs to.

// A bucket has the ids of one kind of thing. The same id may be in several.
type bucket uint8

const (
	messages bucket = iota
	toolCalls
	reasoning
	activities
	subagents
	bucketCount
)

// An aspect of a part can be open. A span of reasoning and a message in it may have the same id.
type aspect uint8

const (
	itself aspect = iota
	span
)

// An owner is a subagent, or the main agent.
type owner struct {
	isSubagent bool
	id         string
}

// is reports whether a subagentRunId, nil for none, names the owner.
func (o owner) is(tag []byte) bool {
	return o.isSubagent == (tag != nil) && o.id == string(tag)
}

// tag writes the subagentRunId, nil for the main agent.
func (o owner) tag() []byte {
	if !o.isSubagent {
		return nil
	}
	return rawjson.Quote(nil, o.id)
}

func ownerOf(tag []byte) owner { return owner{tag != nil, string(tag)} }

// contradicted reports whether a tag names another agent. No tag contradicts nothing.
func (o owner) contradicted(tag []byte) bool { return tag != nil && !o.is(tag) }

// A part is what an id names.
type part struct {
	id       string
	opened   [2]uint32 // by aspect: when, or 0
	hasOwner bool      // the client has the owner on record
	owner    owner
	name     string // of a tool call, "" unless isNamed
	isNamed  bool
	isGone   bool // the last list of messages did not have it, or an activity has its id
}

func (p *part) isOpen(a aspect) bool { return p != nil && p.opened[a] != 0 }

// contradicted reports whether the client would refuse an event of this subagent about the part.
func (p *part) contradicted(tag []byte) bool {
	return p != nil && p.hasOwner && p.owner.contradicted(tag)
}

// A step is known by its name and the agent that takes it.
type step struct {
	owner owner
	name  string
}

// A thought is a span of thinking, or the message in it; they have no ids.
type thought struct {
	opened uint32
	owner  owner
}

// state is what the verifier keeps for a run.
type state struct {
	parts    [bucketCount]map[string]*part
	steps    map[step]uint32
	thinking [2]thought // by aspect
	lanes    []lane
	clock    uint32 // counts what is opened
	size     int    // about what all this takes, in bytes
}

const (
	maxSize  = 256 << 10
	partSize = 128 // without the strings
)

func newState() state {
	var s state
	for b := range s.parts {
		s.parts[b] = map[string]*part{}
	}
	s.steps = map[step]uint32{}
	return s
}

// reset begins a run. The client forgets the run before, but not its messages: the names of their tool calls
// are kept.
func (s *state) reset() {
	calls := s.parts[toolCalls]
	*s = newState()
	for id, p := range calls {
		if p.isNamed {
			s.parts[toolCalls][id] = &part{id: p.id, name: p.name, isNamed: true}
			s.size += partSize + len(p.id) + len(p.name)
		}
	}
}

func (s *state) find(b bucket, id []byte) *part { return s.parts[b][string(id)] }

// add returns the part with an id. It is nil if there is no room for a new one.
func (s *state) add(b bucket, id []byte) *part {
	if p := s.find(b, id); p != nil {
		return p
	}
	if !s.hasRoom(partSize + len(id)) {
		return nil
	}
	p := &part{id: string(id)}
	s.parts[b][p.id] = p
	return p
}

// hasRoom takes room for a number of bytes. If there is none, what is closed is forgotten. Subagents are not: their ids may not
// be used twice.
func (s *state) hasRoom(bytes int) bool {
	if s.size+bytes > maxSize {
		for b := messages; b < subagents; b++ {
			for id, p := range s.parts[b] {
				if !p.isOpen(itself) && !p.isOpen(span) {
					delete(s.parts[b], id)
					s.size -= partSize + len(p.id) + len(p.owner.id) + len(p.name)
				}
			}
		}
	}
	if s.size+bytes > maxSize {
		return false
	}
	s.size += bytes
	return true
}

// own records whose a part is.
func (s *state) own(p *part, o owner) {
	s.size += len(o.id) - len(p.owner.id)
	p.hasOwner, p.owner = true, o
}

// call records the name of a tool call.
func (s *state) call(p *part, name string) {
	s.size += len(name) - len(p.name)
	p.name, p.isNamed = name, true
}

// open opens a part, and records whose it is if that is not known.
func (s *state) open(p *part, a aspect, tag []byte) {
	s.clock++
	p.opened[a], p.isGone = s.clock, false
	if !p.hasOwner {
		s.own(p, ownerOf(tag))
	}
}

func (s *state) think(a aspect, tag []byte) {
	s.clock++
	s.thinking[a] = thought{s.clock, ownerOf(tag)}
}

// closings returns the events that close what is open, the youngest first. What chunks have opened is closed by the end of the
// run.
func (s *state) closings() [][]byte {
	type closing struct {
		opened uint32
		event  []byte
	}
	var all []closing
	add := func(opened uint32, eventType string, members ...jsonMember) {
		if opened != 0 {
			all = append(all, closing{opened, newEvent(eventType, members...)})
		}
	}
	for _, kind := range []partKind{textPart, toolPart, reasoningPart, spanPart, subagentPart} {
		rule := partRules[kind]
		for id, p := range s.parts[rule.bucket] {
			if rule.aspect != itself || !s.isChunked(p) {
				add(p.opened[rule.aspect], partKinds[kind].ends, jsonMember{partKinds[kind].id, rawjson.Quote(nil, id)})
			}
		}
	}
	for st, opened := range s.steps {
		add(opened, partKinds[stepPart].ends, jsonMember{fieldStepName, rawjson.Quote(nil, st.name)}, jsonMember{fieldSubagentRunID, st.owner.tag()})
	}
	add(s.thinking[itself].opened, partKinds[thinkingPart].ends)
	add(s.thinking[span].opened, partKinds[thinkingSpanPart].ends)
	slices.SortFunc(all, func(a, b closing) int { return cmp.Compare(b.opened, a.opened) })
	events := make([][]byte, len(all))
	for i := range all {
		events[i] = all[i].event
	}
	return events
}

// --- chunks ---

// A lane is the stream of chunks that an agent has open. The client makes of each chunk a piece of a message or a call, of the
// first one also its start, and closes it where another event of the agent comes.
type lane struct {
	owner  owner
	bucket bucket
	part   *part
	// hasEnded: an event that was left out or is held ended the stream. The client does not know that yet.
	hasEnded bool
	// What the first chunk said; nil if it did not. Later ones may not say otherwise.
	role, name, parent []byte
}

func (l *lane) size() int {
	return partSize + len(l.owner.id) + len(l.role) + len(l.name) + len(l.parent)
}

// laneOf returns the place of an agent's lane, or -1.
func (s *state) laneOf(tag []byte) int {
	for i := range s.lanes {
		if s.lanes[i].owner.is(tag) {
			return i
		}
	}
	return -1
}

// laneWith returns the place of the lane that has a part open, or -1.
func (s *state) laneWith(p *part) int {
	for i := range s.lanes {
		if s.lanes[i].part == p {
			return i
		}
	}
	return -1
}

func (s *state) isChunked(p *part) bool { return s.laneWith(p) >= 0 }

// closeLane closes the lane at a place; -1 is none.
func (s *state) closeLane(place int) {
	if place >= 0 {
		l := &s.lanes[place]
		l.part.opened[itself] = 0
		s.size -= l.size()
		s.lanes = slices.Delete(s.lanes, place, place+1)
	}
}

func (s *state) endLanes() {
	for i := range s.lanes {
		s.lanes[i].hasEnded = true
	}
}

func (s *state) closeLanes() {
	for len(s.lanes) > 0 {
		s.closeLane(len(s.lanes) - 1)
	}
}
