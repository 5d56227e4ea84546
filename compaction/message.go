package compaction

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Message is one message of a fold. It is read only.
type Message struct {
	// Version is the caller's tag of this version of the message, for example the number of the row that holds it. A message is
	// made with 0, and becomes 0 again when it changes. Clones that share the message share the tag.
	Version int32

	owner *owner
	id    string // decoded
	hasID bool
	role  string // decoded
	// calls are the ids of the elements of toolCalls, in order.
	calls []callID
	// body is the JSON text, nil when the message changed since it was written; tree is the same as a tree, nil until the
	// first change. One of them is set.
	body json.RawMessage
	tree *object
	// patched says that patches have changed its content since it was read.
	patched bool
	// repeated says that the message stands at several places of its fold; see snapshotMessages.
	repeated bool
	// results is how many tool results follow, as far as they were counted.
	results countedResults
	// patching is the content of an activity under patches, until it is shown anew.
	patching *patchedContent
	// listed are the tool calls of body, as far as they were looked into.
	listed *array
}

// countedResults is a count that holds as long as the fold has this owner and order.
type countedResults struct {
	owner *owner
	order int
	count int
}

type callID struct {
	id    string // decoded
	hasID bool
}

// ID returns the decoded id, "" when the message has none. A lone surrogate in it is three bytes, as UTF-8 would have them.
func (m *Message) ID() string { return m.id }

// Role returns the decoded role.
func (m *Message) Role() string { return m.role }

// JSON returns the message as JSON.
func (m *Message) JSON() json.RawMessage {
	if m.body == nil {
		m.body = written(m.tree)
	}
	return m.body
}

// StoredJSON returns JSON as the reducer in SQL makes it, to the byte: there, the content of an activity that patches have changed is
// in the spelling of jsonb. It reports false, and returns JSON, where only the server can print that spelling; see [PrintJSONB].
func (m *Message) StoredJSON() (body json.RawMessage, isPrinted bool) {
	if !m.patched {
		return m.JSON(), true
	}
	content, isPrinted := PrintJSONB(written(m.tree.get("content")))
	if !isPrinted {
		return m.JSON(), false
	}
	stored := object{members: slices.Clone(m.tree.members), removed: m.tree.removed}
	stored.set("content", raw(content))
	return written(&stored), true
}

// Size returns the length of JSON in bytes, without making it.
func (m *Message) Size() int {
	if m.body == nil {
		return m.tree.size()
	}
	return len(m.body)
}

// newMessage makes a message of its JSON object, which it keeps. The object must be valid JSON.
func newMessage(body []byte, by *owner) *Message {
	m := &Message{owner: by, body: body}
	for key, value := range rawjson.Members(body) {
		switch {
		case rawjson.SameKey(key, "id"):
			m.id, m.hasID = stringValue(raw(value))
		case rawjson.SameKey(key, "role"):
			m.role, _ = stringValue(raw(value))
		case rawjson.SameKey(key, "toolCalls"):
			m.calls = callIDs(value)
		}
	}
	return m
}

func callIDs(toolCalls []byte) (ids []callID) {
	if toolCalls[0] != '[' {
		return nil
	}
	for call := range rawjson.Elements(toolCalls) {
		var id callID
		if call[0] == '{' {
			id.id, id.hasID = stringValue(raw(rawjson.MemberOf(call, "id")))
		}
		ids = append(ids, id)
	}
	return ids
}

// buildMessage makes a message that starts with an id and a role, given as JSON strings.
func (f *Fold) buildMessage(id, role []byte) *Message {
	m := &Message{owner: f.owner, hasID: true, tree: &object{owner: f.owner, members: make([]member, 0, 5)}}
	m.id, _ = stringValue(raw(id))
	m.role, _ = stringValue(raw(role))
	m.tree.add("id", raw(kept(id)))
	m.tree.add("role", raw(kept(role)))
	return m
}

// edit returns the message at a place, ready to be changed: no clone of the fold sees the change. Its tree is set.
func (f *Fold) edit(place int) *Message {
	m := f.own(place)
	m.listed = nil
	if m.tree == nil {
		m.tree = parsed(raw(m.body), f.owner).(*object)
	} else {
		m.tree = owned(m.tree, f.owner).(*object)
	}
	m.body = nil
	m.Version = 0
	return m
}

// own returns the message at a place as one that belongs to this fold alone.
func (f *Fold) own(place int) *Message {
	m := f.messages.at(place)
	if m.owner != f.owner {
		own := *m
		own.owner = f.owner
		own.calls = slices.Clip(own.calls)
		own.patching, own.listed = nil, nil
		f.replaceEverywhere(place, m, &own)
		m = &own
	}
	return m
}

// editAlone is edit for a change that a repeated message takes only at this place.
func (f *Fold) editAlone(place int) *Message {
	if m := f.messages.at(place); m.repeated {
		f.looksAtMessages()
		f.messages.set(place, newMessage(bytes.Clone(m.JSON()), f.owner))
	}
	return f.edit(place)
}

func (f *Fold) replaceEverywhere(place int, old, replacement *Message) {
	f.messages.set(place, replacement)
	if old.repeated {
		for i, m := range f.messages.all() {
			if m == old {
				f.messages.set(i, replacement)
			}
		}
	}
}

// mergeMetadata merges the metadata of an event, if any, into a message or a tool call: key by key, the last write wins, never
// deep.
func mergeMetadata(target *object, metadata []byte) {
	if metadata == nil {
		return
	}
	existing, ok := target.ownMember("metadata").(*object)
	if !ok {
		target.set("metadata", raw(kept(metadata)))
		return
	}
	for key, value := range rawjson.Members(metadata) {
		existing.set(string(rawjson.Decode(nil, key)), raw(asWritten(value)))
	}
}

// appendText appends to a member that is a string; one that is not counts as empty. The delta is JSON text between quotes.
func (o *object) appendText(key string, delta []byte) {
	delta = usual(delta)
	at := o.place(key)
	if at < 0 {
		o.add(key, &text{owner: o.owner, bytes: bytes.Clone(delta)})
		return
	}
	if t, ok := o.members[at].value.(*text); ok && t.owner == o.owner {
		t.bytes = append(t.bytes, delta...)
		return
	}
	existing, _ := stringText(o.members[at].value)
	o.members[at].value = &text{owner: o.owner, bytes: slices.Concat(existing, delta)}
}

// --- finding messages and calls ---

// An index finds the first message with an id, and the first one that holds a tool call. Messages that are put in between move
// those behind them, so a place in the index is where to start looking: never behind the message that it is for.
type index struct {
	messages map[string]int
	calls    map[string]callPlace
	// ofAssistants finds the first call in an assistant message behind that in calls.
	ofAssistants map[string]callPlace
	// repeatsIDs says that there may be two messages with one id.
	repeatsIDs bool
	// passed counts the messages that were passed on the way from the noted place to the true one. An index that costs more than a
	// new one is dropped.
	passed int
}

type callPlace struct {
	message int
	call    int // its place in toolCalls
}

func (f *Fold) indexed() *index {
	if f.index == nil {
		f.index = &index{messages: make(map[string]int, f.messages.len()), calls: map[string]callPlace{}}
		for place, m := range f.messages.all() {
			f.noteMessage(m, place)
		}
	}
	return f.index
}

// noteMessage enters a message that stands behind all that the index knows.
func (f *Fold) noteMessage(m *Message, place int) {
	x := f.index
	if m.hasID {
		if _, known := x.messages[m.id]; known {
			x.repeatsIDs = true
		} else {
			x.messages[m.id] = place
		}
	}
	for i, call := range m.calls {
		if !call.hasID {
			continue
		}
		at := callPlace{message: place, call: i}
		if _, known := x.calls[call.id]; !known {
			x.calls[call.id] = at
		} else if _, known := x.ofAssistants[call.id]; !known && m.role == roleAssistant {
			if x.ofAssistants == nil {
				x.ofAssistants = map[string]callPlace{}
			}
			x.ofAssistants[call.id] = at
		}
	}
}

// passedOver notes that a look-up went over n messages in vain.
func (f *Fold) passedOver(n int) {
	f.index.passed += n
	if f.index.passed > f.messages.len() {
		f.index = nil
	}
}

// find returns the place of the first message with the id, given decoded, or -1.
func (f *Fold) find(id []byte) int {
	x := f.indexed()
	noted, ok := x.messages[string(id)]
	if !ok {
		return -1
	}
	place := noted
	for m := f.messages.at(place); !m.hasID || m.id != string(id); m = f.messages.at(place) {
		place++
	}
	if place > noted {
		x.messages[string(id)] = place
		f.passedOver(place - noted)
	}
	return place
}

// findCall returns the first message that holds a tool call with the id, given decoded, and the call's place in it.
func (f *Fold) findCall(id []byte) (callPlace, bool) {
	return f.findCallIn(f.indexed().calls, id, func(*Message) bool { return true })
}

func (f *Fold) findCallIn(places map[string]callPlace, id []byte, fits func(*Message) bool) (callPlace, bool) {
	noted, ok := places[string(id)]
	if !ok {
		return callPlace{}, false
	}
	found := noted
	for m := f.messages.at(found.message); !m.hasCall(found.call, id) || !fits(m); m = f.messages.at(found.message) {
		found.message++
	}
	if found != noted {
		places[string(id)] = found
		f.passedOver(found.message - noted.message)
	}
	return found, true
}

func (m *Message) hasCall(call int, id []byte) bool {
	return call < len(m.calls) && m.calls[call].hasID && m.calls[call].id == string(id)
}

// push appends a message.
func (f *Fold) push(m *Message) {
	f.messages.push(m)
	if f.index != nil {
		f.noteMessage(m, f.messages.len()-1)
	}
	f.holdsMessages()
}

// insert puts a message without tool calls at a place.
func (f *Fold) insert(place int, m *Message) {
	if place == f.messages.len() {
		f.push(m)
		return
	}
	first := f.find([]byte(m.id))
	f.messages.insert(place, m)
	if f.index != nil {
		f.index.repeatsIDs = f.index.repeatsIDs || first >= 0
		if first < 0 || place <= first {
			f.index.messages[m.id] = place
		}
	}
	f.holdsMessages()
}
