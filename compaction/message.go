package compaction

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Message is one message of a fold. It is read only.
type Message struct {
	// Version is a tag of the caller for this version of the message, such as the number of the row
	// that holds it. A new message has 0, and a change sets it to 0. Clones that share the message
	// share the tag.
	Version int32

	owner *jsontree.Owner
	id    string // decoded
	hasID bool
	role  string // decoded
	// calls are the ids of the elements of toolCalls, in order.
	calls []callID
	// body is the JSON text, nil when the message changed since it was written; tree is the same as a tree, nil until the
	// first change. One of them is set.
	body json.RawMessage
	tree *jsontree.Object
	// patched says that patches have changed its content since it was read.
	patched bool
	// repeated says that the message stands at several places of its fold; see snapshotMessages.
	repeated bool
	// results is how many tool results follow, as far as they were counted.
	results countedResults
	// patching is the content of an activity under patches, until a snapshot replaces it.
	patching *patchedContent
	// listed are the tool calls of body, as far as they were looked into.
	listed *jsontree.Array
}

// countedResults is a count that holds as long as the fold has this owner and order.
type countedResults struct {
	owner *jsontree.Owner
	order int
	count int
}

type callID struct {
	id    string // decoded
	hasID bool
}

// ID returns the decoded id, "" if the message has none. A lone surrogate in it becomes three
// bytes, as in UTF-8.
func (m *Message) ID() string { return m.id }

// Role returns the decoded role.
func (m *Message) Role() string { return m.role }

// JSON returns the message as JSON.
func (m *Message) JSON() json.RawMessage {
	if m.body == nil {
		m.body = jsontree.JSON(m.tree)
	}
	return m.body
}

// StoredJSON returns JSON as the reducer in SQL gives it, to the byte: there, the content of an
// activity that patches have changed is spelled as jsonb. It returns JSON and false for the few
// values whose jsonb spelling only the server can print.
func (m *Message) StoredJSON() (body json.RawMessage, isPrinted bool) {
	if !m.patched {
		return m.JSON(), true
	}
	content, isPrinted := jsontree.PrintJSONB(jsontree.JSON(m.tree.Get("content")))
	if !isPrinted {
		return m.JSON(), false
	}
	return jsontree.JSON(m.tree.With("content", jsontree.Raw(content))), true
}

// Size returns the length of JSON in bytes, without making it.
func (m *Message) Size() int {
	if m.body == nil {
		return m.tree.Size()
	}
	return len(m.body)
}

// newMessage makes a message of its JSON object, which it keeps. The object must be valid JSON.
func newMessage(body []byte, by *jsontree.Owner) *Message {
	m := &Message{owner: by, body: body}
	for key, value := range rawjson.Members(body) {
		switch {
		case rawjson.SameKey(key, "id"):
			m.id, m.hasID = jsontree.StringValue(jsontree.Raw(value))
		case rawjson.SameKey(key, "role"):
			m.role, _ = jsontree.StringValue(jsontree.Raw(value))
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
			id.id, id.hasID = jsontree.StringValue(jsontree.Raw(rawjson.MemberOf(call, "id")))
		}
		ids = append(ids, id)
	}
	return ids
}

// buildMessage makes a message that starts with an id and a role, given as JSON strings.
func (f *Fold) buildMessage(id, role []byte) *Message {
	m := &Message{owner: f.owner, hasID: true, tree: jsontree.NewObject(f.owner, 5)}
	m.id, _ = jsontree.StringValue(jsontree.Raw(id))
	m.role, _ = jsontree.StringValue(jsontree.Raw(role))
	m.tree.Add("id", jsontree.Kept(id))
	m.tree.Add("role", jsontree.Kept(role))
	return m
}

// edit returns the message at a place, ready to be changed: no clone of the fold sees the change. Its tree is set.
func (f *Fold) edit(place int) *Message {
	m := f.own(place)
	m.listed = nil
	if m.tree == nil {
		m.tree = jsontree.Open(jsontree.Raw(m.body), f.owner).(*jsontree.Object)
	} else {
		m.tree = jsontree.Own(m.tree, f.owner).(*jsontree.Object)
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
func mergeMetadata(target *jsontree.Object, metadata []byte) {
	if metadata == nil {
		return
	}
	existing, ok := target.OwnMember("metadata").(*jsontree.Object)
	if !ok {
		target.Set("metadata", jsontree.Kept(metadata))
		return
	}
	for key, value := range rawjson.Members(metadata) {
		existing.Set(string(rawjson.Decode(nil, key)), jsontree.AsWritten(value))
	}
}
