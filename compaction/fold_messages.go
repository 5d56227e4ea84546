package compaction

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file folds text, reasoning and whole lists of messages.

const (
	roleActivity  = "activity"
	roleAssistant = "assistant"
	roleReasoning = "reasoning"
	roleTool      = "tool"
)

// startText makes the message, unless one with its id exists: that one is kept with its role and name.
func (f *Fold) startText(e *event) {
	f.bring(e, broughtByMessage|fieldName.set())
	role := e.values[fieldRole]
	if role == nil {
		role = []byte(`"assistant"`)
	}
	f.startMessage(e, role, e.values[fieldName])
}

func (f *Fold) startReasoning(e *event) {
	f.bring(e, broughtByMessage)
	f.startMessage(e, []byte(`"reasoning"`), nil)
}

func (f *Fold) startMessage(e *event, role, name []byte) {
	place := f.find(e.decoded(fieldMessageID))
	switch {
	case place < 0:
		m := f.buildMessage(e.values[fieldMessageID], role)
		m.tree.Add("content", jsontree.NewText(f.owner))
		if name != nil {
			m.tree.Add("name", jsontree.Kept(name))
		}
		m.setSubagent(e)
		mergeMetadata(m.tree, e.values[fieldMetadata])
		f.push(m)
	case f.messages.at(place).role == roleActivity:
		// The id belongs to an activity, whose content is not text.
	case e.values[fieldMetadata] != nil:
		mergeMetadata(f.edit(place).tree, e.values[fieldMetadata])
	}
}

// setSubagent gives a new message the subagent of its event.
func (m *Message) setSubagent(e *event) {
	if subagent := e.values[fieldSubagentRunID]; subagent != nil {
		m.tree.Set("subagentRunId", jsontree.Kept(subagent))
	}
}

// continueMessage appends to the content of a message of any role but activity.
func (f *Fold) continueMessage(e *event) {
	f.bringPiece(e, broughtByMessage)
	place := f.find(e.decoded(fieldMessageID))
	if place < 0 || f.messages.at(place).role == roleActivity {
		f.skipped = "no message that takes text has the id of the piece"
		return
	}
	delta := e.inner(fieldDelta)
	if len(delta) == 0 && e.values[fieldMetadata] == nil {
		if _, ok := jsontree.StringText(f.messages.at(place).member("content")); ok {
			return
		}
	}
	m := f.edit(place)
	m.tree.AppendText("content", delta)
	mergeMetadata(m.tree, e.values[fieldMetadata])
}

func (f *Fold) endMessage(e *event) {
	if e.values[fieldMetadata] == nil {
		return
	}
	f.bring(e, broughtByMessage)
	if place := f.find(e.decoded(fieldMessageID)); place >= 0 && f.messages.at(place).role != roleActivity {
		mergeMetadata(f.edit(place).tree, e.values[fieldMetadata])
	}
}

// setEncryptedValue sets the encrypted value of a tool call or of a message that is not an activity.
func (f *Fold) setEncryptedValue(e *event) {
	f.bring(e, 1<<fieldEntityID|1<<fieldSubagentRunID|1<<fieldRole|1<<fieldEncryptedValue)
	encrypted := jsontree.Kept(e.values[fieldEncryptedValue])
	if e.values[fieldSubtype] != nil && string(e.decoded(fieldSubtype)) == "tool-call" {
		if place, ok := f.findCallOfAssistant(e.decoded(fieldEntityID)); ok {
			f.edit(place.message).ownCall(place.call).Set("encryptedValue", encrypted)
		}
		return
	}
	if place := f.find(e.decoded(fieldEntityID)); place >= 0 && f.messages.at(place).role != roleActivity {
		f.edit(place).tree.Set("encryptedValue", encrypted)
	}
}

// snapshotMessages makes the list what the snapshot says. A message that the snapshot names stays in its place, with the
// snapshot's version; when several messages have that id, all of them become the one of the snapshot, and from then on change
// together.
func (f *Fold) snapshotMessages(e *event) {
	f.bring(e, broughtByMessage|fieldMessages.set())
	f.looksAtMessages()
	present := f.messages.all()
	listed := f.parseMessages(e.values[fieldMessages], present)
	byID := make(map[string]*Message, len(listed))
	for _, m := range listed {
		if m.hasID {
			byID[m.id] = m
		}
	}
	isNamed := f.namedBy(byID)
	keeps := keepsUnlisted(listed, e.values[fieldMetadata])

	messages := make([]*Message, 0, len(present)+len(listed))
	placed := make(map[string]bool, len(listed))
	keepsIndex := f.index != nil
	for place, m := range present {
		switch {
		case isNamed(place):
			version := byID[m.id]
			if placed[m.id] {
				version.repeated = true
			} else if !m.patched && bytes.Equal(m.JSON(), version.JSON()) {
				// No difference: the message stays the same object, so that it is not stored a second time.
				version = m
				byID[m.id] = m
			}
			placed[m.id] = true
			keepsIndex = keepsIndex && (version == m || len(m.calls) == 0 && len(version.calls) == 0)
			messages = append(messages, version)
		case keeps(m):
			messages = append(messages, m)
		default:
			keepsIndex = false
		}
	}
	f.messages = messageList{flat: messages}
	if !keepsIndex {
		f.index = nil
	}
	f.order++
	for _, m := range listed {
		if !m.hasID || !placed[m.id] {
			f.push(m)
		}
	}
	f.holdsMessages()
}

// namedBy returns whether the message at a place has one of the ids of a list.
func (f *Fold) namedBy(byID map[string]*Message) func(place int) bool {
	if len(byID) == 0 {
		return func(int) bool { return false }
	}
	if f.indexed().repeatsIDs {
		return func(place int) bool {
			m := f.messages.at(place)
			return m.hasID && byID[m.id] != nil
		}
	}
	named := make([]bool, f.messages.len())
	for id := range byID {
		if place := f.find([]byte(id)); place >= 0 {
			named[place] = true
		}
	}
	return func(place int) bool { return named[place] }
}

// says reports whether two messages are the same but for white space, the order of keys and the spelling of strings.
func (m *Message) says(other *Message) bool {
	return m == other || bytes.Equal(m.JSON(), other.JSON()) || jsontree.Same(m.content(), other.content())
}

func (m *Message) content() jsontree.Value {
	if m.tree != nil {
		return m.tree
	}
	return jsontree.Raw(m.body)
}

// keepsUnlisted returns which messages stay that a snapshot does not list. Reasoning messages and activities often live in the
// client only: they stay unless the snapshot lists messages of their kind, and its metadata may claim the activities of all
// types (null) or of some (a list).
func keepsUnlisted(listed []*Message, metadata []byte) func(*Message) bool {
	lists := func(role string) bool {
		return slices.ContainsFunc(listed, func(m *Message) bool { return m.role == role })
	}
	keepsReasoning := !lists(roleReasoning)
	keepsActivity := activityAuthority(metadata)
	if keepsActivity == nil {
		keepsAll := !lists(roleActivity)
		keepsActivity = func(*Message) bool { return keepsAll }
	}
	return func(m *Message) bool {
		return m.role == roleReasoning && keepsReasoning || m.role == roleActivity && keepsActivity(m)
	}
}

// activityAuthority reads metadata["@ag-ui/client"].authoritativeActivityTypes of a snapshot: nil if there is none, otherwise
// a function that says which activities stay. An invalid value claims no activities.
func activityAuthority(metadata []byte) func(*Message) bool {
	if metadata == nil {
		return nil
	}
	client := rawjson.MemberOf(metadata, "@ag-ui/client")
	if client == nil {
		return nil
	}
	keepsAll := func(*Message) bool { return true }
	if client[0] != '{' {
		return keepsAll
	}
	types := rawjson.MemberOf(client, "authoritativeActivityTypes")
	switch {
	case types == nil:
		return nil
	case types[0] == 'n':
		return func(*Message) bool { return false }
	case types[0] != '[':
		return keepsAll
	}
	claimed := map[string]bool{}
	for element := range rawjson.Elements(types) {
		activityType, ok := jsontree.StringValue(jsontree.Raw(element))
		if !ok {
			return keepsAll
		}
		claimed[activityType] = true
	}
	return func(m *Message) bool {
		activityType, ok := jsontree.StringValue(m.member("activityType"))
		return !ok || !claimed[activityType]
	}
}

// member returns a member of a message, nil when it has none.
func (m *Message) member(key string) jsontree.Value {
	if m.tree != nil {
		return m.tree.Get(key)
	}
	if found := rawjson.MemberOf(m.body, key); found != nil {
		return jsontree.Raw(found)
	}
	return nil
}

// parseMessages makes messages of the elements of a list. One that is present is taken as it is: a server repeats most of them in
// each list, in their order. A string is a user message without an id, as in the serialization proposal; what is neither an object
// nor a string is left out.
func (f *Fold) parseMessages(list []byte, present []*Message) (messages []*Message) {
	next := 0 // the place of the message that is likely to come next
	for element := range rawjson.Elements(list) {
		switch kindOf(element) {
		case isObject:
			element, isRead := asRead(element)
			if next < len(present) && present[next].hasID && present[next].isText(element) {
				messages = append(messages, present[next])
				next++
				continue
			}
			if !isRead {
				element = jsontree.Kept(element)
			}
			m := newMessage(element, f.owner)
			if m.hasID && present != nil {
				if place := f.find([]byte(m.id)); place >= 0 {
					next = place + 1
					if present[place].isText(element) {
						m = present[place]
					}
				}
			}
			messages = append(messages, m)
		case isString:
			body := slices.Concat([]byte(`{"role":"user","content":`), element, []byte(`}`))
			messages = append(messages, newMessage(body, f.owner))
		}
	}
	return messages
}

// isText reports whether the message is this JSON text, to the byte. What patches changed gets another text once it is stored.
func (m *Message) isText(text []byte) bool {
	return !m.patched && m.Size() == len(text) && bytes.Equal(m.JSON(), text)
}

func without(object []byte, name string) []byte {
	tree := jsontree.Open(jsontree.Raw(object), nil).(*jsontree.Object)
	tree.Delete(name)
	return jsontree.JSON(tree)
}

// withoutNulls leaves out those of these members that are null, which reads as absent.
func withoutNulls(object []byte, names ...string) json.RawMessage {
	for _, name := range names {
		if string(rawjson.MemberOf(object, name)) == "null" {
			object = without(object, name)
		}
	}
	return object
}
