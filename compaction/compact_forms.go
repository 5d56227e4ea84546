package compaction

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
)

// This file writes the events of one run in their compact forms.

// A form is one way to write the events of a run.
type form struct {
	events []json.RawMessage
	// checks are the messages that must be there on the way, because a MESSAGES_SNAPSHOT may hide a difference before it.
	checks []check
	// isSnapshot says that the form has no events of messages but snapshots of their list.
	isSnapshot bool
	// hasList says that the form has a list of messages that the run did not have.
	hasList bool
}

type check struct {
	events   int // how many of the form's events come first
	messages []*Message
}

func (w *form) add(events ...json.RawMessage) { w.events = append(w.events, events...) }

// forms yields the forms of the run, the best first, but not the run as it came. start is what stood before the run, its
// RUN_STARTED included; compacted is the same, folded from compacted events; end is what the run means.
func (r *run) forms(shape Shape, start, compacted, end *Fold) iter.Seq[*form] {
	return func(yield func(*form) bool) {
		if r.odd {
			return
		}
		if shape == SnapshotShape {
			if snapshot, ok := r.asSnapshot(start, compacted, end); ok && !yield(snapshot) {
				return
			}
		}
		if r.snapshot >= 0 && !r.startedTwice {
			if stream, ok := r.afterSnapshot(start, compacted); ok && !yield(stream) {
				return
			}
		}
		stream := new(form)
		r.write(stream, r.items, true)
		yield(stream)
	}
}

// afterSnapshot is the form of a run with a MESSAGES_SNAPSHOT: all messages up to the last such event in that event.
func (r *run) afterSnapshot(start, compacted *Fold) (*form, bool) {
	list, ok := snapshotEvents(start, compacted, r.list)
	if !ok {
		return nil, false
	}
	w := &form{hasList: true}
	r.write(w, r.items[:r.snapshot], false)
	w.add(list...)
	r.write(w, r.items[r.snapshot+1:], true)
	return w, true
}

// asSnapshot is the form with one MESSAGES_SNAPSHOT and one STATE_SNAPSHOT before the end of the run.
func (r *run) asSnapshot(start, compacted, end *Fold) (*form, bool) {
	place := r.ended
	if place < 0 {
		place = len(r.items)
	}
	before := slices.Clone(r.items[:place])
	if r.state >= 0 {
		before[r.state].isState = false
	}
	w := &form{isSnapshot: true, hasList: true}
	r.write(w, before, false)
	if slices.ContainsFunc(r.items, func(i item) bool { return i.ofMessages }) {
		list, ok := snapshotEvents(start, compacted, end.Messages())
		if !ok {
			return nil, false
		}
		w.add(list...)
	}
	if r.state >= 0 {
		w.add(r.stateEvent())
	}
	if r.ended < 0 {
		// What is open stays open.
		for _, i := range r.items {
			if b := i.stream; b != nil && r.open[b.key] == b {
				w.add(streamOf(b.key.kind, b.id, end).startEvent())
			}
		}
	}
	r.write(w, r.items[place:], false)
	return w, true
}

// write adds the events of items. Without messages, what changes messages is left out; only the end of what began before the run's
// events stays.
func (r *run) write(w *form, items []item, messages bool) {
	for _, i := range items {
		switch {
		case i.isState:
			w.add(r.stateEvent())
		case i.ofMessages && !messages:
			if b := i.stream; b != nil && b.endsEarlier {
				w.add(b.endEvent(nil))
			}
		case i.event != nil:
			if i.isSnapshot {
				w.checks = append(w.checks, check{len(w.events), i.before})
			}
			w.add(i.event)
		case i.stream != nil:
			w.events = i.stream.write(w.events)
		case i.activity != nil && i.activity.activityType != nil && i.activity.content != nil:
			w.events = i.activity.write(w.events)
		}
	}
}

func (r *run) stateEvent() json.RawMessage {
	return newEvent("STATE_SNAPSHOT", eventField{"snapshot", r.stateText})
}

func (b *streamBlock) write(events []json.RawMessage) []json.RawMessage {
	metadata := b.metadata.MemberJSON("metadata")
	if b.started {
		events = append(events, b.startEvent())
		metadata = nil
	}
	if len(b.text) > 0 || b.hasPiece && (b.textless || metadata != nil) {
		part := b.part()
		events = append(events, newEvent(part.continues, eventField{part.idName, b.id}, eventField{"delta", slices.Concat([]byte{'"'}, b.text, []byte{'"'})}, eventField{"metadata", metadata}))
		metadata = nil
	}
	if b.ended {
		events = append(events, b.endEvent(metadata))
	}
	return events
}

// startEvent writes the start, which has the metadata of all events of the block.
func (b *streamBlock) startEvent() json.RawMessage {
	metadata := eventField{"metadata", b.metadata.MemberJSON("metadata")}
	subagent := eventField{"subagentRunId", b.subagent}
	switch b.key.kind {
	case textStream:
		return newEvent("TEXT_MESSAGE_START", eventField{"messageId", b.id}, eventField{"role", b.role}, eventField{"name", b.name}, subagent, metadata)
	case reasoningStream:
		return newEvent("REASONING_MESSAGE_START", eventField{"messageId", b.id}, eventField{"role", []byte(`"reasoning"`)}, subagent, metadata)
	default:
		return newEvent("TOOL_CALL_START", eventField{"toolCallId", b.id}, eventField{"toolCallName", b.name}, eventField{"parentMessageId", b.parent}, subagent, metadata)
	}
}

func (b *streamBlock) endEvent(metadata []byte) json.RawMessage {
	part := b.part()
	return newEvent(part.closes, eventField{part.idName, b.id}, eventField{"metadata", metadata})
}

// part returns the types of the events about what the block is about.
func (b *streamBlock) part() *partEvents {
	switch b.key.kind {
	case textStream:
		return &partKinds[textPart]
	case reasoningStream:
		return &partKinds[reasoningPart]
	default:
		return &partKinds[toolPart]
	}
}

// reopen writes the chunks that reopen the streams which later chunks may continue. If such a stream was open before
// the run's events and is closed now, its message or call becomes part of the compacted run, with an end, as it
// would if the chunk were compacted a second time.
func (r *run) reopen(w *form, truth, replica *Fold) (events []json.RawMessage) {
	var chunks []json.RawMessage
	for _, l := range truth.lanes {
		if slices.ContainsFunc(replica.lanes, func(open lane) bool { return sameLane(l, open) }) {
			continue
		}
		decoded, _ := jsontree.StringValue(jsontree.Raw(l.id))
		b := r.streams[streamKey{l.kind, decoded}]
		if b == nil || !b.started {
			b = streamOf(l.kind, l.id, truth)
			if !w.isSnapshot {
				b.subagent, b.started, b.ended = l.subagent, true, true
				events = b.write(events)
			}
		}
		chunks = append(chunks, b.chunk(l.subagent))
	}
	return append(events, chunks...)
}

// chunk writes a chunk that only opens the stream.
func (b *streamBlock) chunk(subagent []byte) json.RawMessage {
	lane := eventField{"subagentRunId", subagent}
	switch b.key.kind {
	case textStream:
		return newEvent("TEXT_MESSAGE_CHUNK", eventField{"messageId", b.id}, eventField{"role", b.role}, eventField{"name", b.name}, lane)
	case reasoningStream:
		return newEvent("REASONING_MESSAGE_CHUNK", eventField{"messageId", b.id}, lane)
	default:
		return newEvent("TOOL_CALL_CHUNK", eventField{"toolCallId", b.id}, eventField{"toolCallName", b.name}, eventField{"parentMessageId", b.parent}, lane)
	}
}

func (b *activityBlock) write(events []json.RawMessage) []json.RawMessage {
	content, isObject := b.content, b.content[0] == '{'
	if !isObject {
		content = []byte("{}")
	}
	events = append(events, newEvent("ACTIVITY_SNAPSHOT", eventField{"messageId", b.id}, eventField{"activityType", b.activityType}, eventField{"content", content},
		eventField{"subagentRunId", b.subagent}, eventField{"metadata", b.metadata.MemberJSON("metadata")}))
	if !isObject {
		// A patch can make something else of the content, a snapshot cannot.
		operation := slices.Concat([]byte(`[{"op":"replace","path":"","value":`), jsontree.Kept(b.content), []byte("}]"))
		events = append(events, newEvent("ACTIVITY_DELTA", eventField{"messageId", b.id}, eventField{"activityType", b.activityType}, eventField{"patch", operation}))
	}
	return events
}

// An eventField is a field of an event, as JSON; nil is left out.
type eventField struct {
	name  string
	value []byte
}

func newEvent(eventType string, fields ...eventField) json.RawMessage {
	size := len(`{"type":""}`) + len(eventType)
	for _, f := range fields {
		size += len(f.name) + len(f.value) + len(`,"":`)
	}
	event := make(json.RawMessage, 0, size)
	event = append(event, `{"type":"`...)
	event = append(event, eventType...)
	event = append(event, '"')
	for _, f := range fields {
		if f.value != nil {
			event = append(event, `,"`...)
			event = append(event, f.name...)
			event = append(event, `":`...)
			event = append(event, f.value...)
		}
	}
	return append(event, '}')
}

// --- whole lists of messages ---

// snapshotEvents returns the MESSAGES_SNAPSHOT events that turn the messages of a fold into the list; false if none do.
// A snapshot keeps the order of the messages that a fold has, and puts those without an id last. If that is not the
// order of the list, a first snapshot clears the messages.
//
// A message that did not change is written as compacted has it, perhaps with keys in another order. So compacting
// twice changes no byte.
func snapshotEvents(from, compacted *Fold, list []*Message) ([]json.RawMessage, bool) {
	hasRole := func(messages []*Message, role string) bool {
		return slices.ContainsFunc(messages, func(m *Message) bool { return m.role == role })
	}
	var claim []byte // all activities are the snapshot's
	clearsActivities := hasRole(from.Messages(), roleActivity)
	if clearsActivities && !hasRole(list, roleActivity) {
		claim = []byte(`{"@ag-ui/client":{"authoritativeActivityTypes":null}}`)
	}
	places := make(map[*Message]int, len(from.Messages()))
	for place, m := range from.Messages() {
		places[m] = place
	}
	written := make([]*Message, len(list))
	for i, m := range list {
		place, unchanged := places[m]
		if !unchanged && m.hasID {
			place = from.find([]byte(m.id))
			unchanged = place >= 0 && from.messages.at(place).says(m)
		}
		if unchanged {
			m = compacted.messages.at(place)
		}
		written[i] = m
	}
	messages := eventField{"messages", bodies(written)}
	whole := newEvent("MESSAGES_SNAPSHOT", messages, eventField{"metadata", claim})
	if makes(from, list, whole) {
		return []json.RawMessage{whole}, true
	}

	// A snapshot drops reasoning only if it has some itself.
	first := "[]"
	if hasRole(from.Messages(), roleReasoning) {
		id := "cleared"
		taken := func(m *Message) bool { return m.id == id }
		for slices.ContainsFunc(from.Messages(), taken) || slices.ContainsFunc(list, taken) {
			id += "-"
		}
		first = `[{"id":"` + id + `","role":"reasoning","content":""}]`
	}
	claim = nil
	if clearsActivities {
		claim = []byte(`{"@ag-ui/client":{"authoritativeActivityTypes":null}}`)
	}
	cleared := newEvent("MESSAGES_SNAPSHOT", eventField{"messages", []byte(first)}, eventField{"metadata", claim})
	whole = newEvent("MESSAGES_SNAPSHOT", messages)
	return []json.RawMessage{cleared, whole}, makes(from, list, cleared, whole)
}

// bodies writes a JSON array of messages.
func bodies(messages []*Message) []byte {
	list := []byte{'['}
	for i, m := range messages {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, m.JSON()...)
	}
	return append(list, ']')
}

// makes reports whether the events make the list of what a fold has.
func makes(from *Fold, list []*Message, events ...json.RawMessage) bool {
	f := from.Clone()
	for _, event := range events {
		f.Apply(event)
	}
	return slices.EqualFunc(list, f.Messages(), func(a, b *Message) bool { return a == b || a.says(b) }) && sameRepeats(list, f.Messages())
}
