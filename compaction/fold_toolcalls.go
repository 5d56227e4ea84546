package compaction

import (
	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file folds tool calls and their results.

// startToolCall adds a call to its parent, an assistant message that is made when there is none. A call that exists is renamed
// and keeps its arguments, whatever the parent: the same start may come twice.
func (f *Fold) startToolCall(e *event) {
	f.bring(e, broughtByCall|fieldToolCallName.set()|fieldParentMessageID.set())
	if place, ok := f.findCall(e.decoded(fieldToolCallID)); ok {
		f.restartToolCall(place, e)
		return
	}
	place := f.ownerOfNewCall(e)
	m := f.edit(place)
	calls, ok := m.tree.OwnMember("toolCalls").(*jsontree.Array)
	if !ok {
		calls = jsontree.NewArray(f.owner)
		m.tree.Set("toolCalls", calls)
	}
	function := jsontree.NewObject(f.owner, 0)
	function.Add("name", jsontree.Kept(e.values[fieldToolCallName]))
	function.Add("arguments", jsontree.NewText(f.owner))
	call := jsontree.NewObject(f.owner, 0)
	call.Add("id", jsontree.Kept(e.values[fieldToolCallID]))
	call.Add("type", jsontree.Raw(`"function"`))
	call.Add("function", function)
	mergeMetadata(call, e.values[fieldMetadata])
	calls.Push(call)

	id := callID{id: string(e.decoded(fieldToolCallID)), hasID: true}
	m.calls = append(m.calls, id)
	f.indexed().calls[id.id] = callPlace{message: place, call: len(m.calls) - 1}
}

func (f *Fold) restartToolCall(place callPlace, e *event) {
	function := f.messages.at(place.message).function(place.call)
	if function == nil {
		return
	}
	name, ok := jsontree.StringText(function.Get("name"))
	renamed := !ok || !rawjson.SameString(name, e.inner(fieldToolCallName))
	if !renamed && e.values[fieldMetadata] == nil {
		return
	}
	call := f.edit(place.message).ownCall(place.call)
	if renamed {
		call.OwnMember("function").(*jsontree.Object).Set("name", jsontree.Kept(e.values[fieldToolCallName]))
	}
	mergeMetadata(call, e.values[fieldMetadata])
}

// ownerOfNewCall returns the place of the message that a new call belongs to: the parent when it is an assistant message;
// otherwise a new one, which gets the parent's id if that is not taken, else the call's.
func (f *Fold) ownerOfNewCall(e *event) int {
	id := e.values[fieldToolCallID]
	if e.values[fieldParentMessageID] != nil && len(e.inner(fieldParentMessageID)) > 0 {
		parent := f.find(e.decoded(fieldParentMessageID))
		if parent >= 0 && f.messages.at(parent).role == roleAssistant {
			return parent
		}
		if parent < 0 {
			id = e.values[fieldParentMessageID]
		}
	}
	m := f.buildMessage(id, []byte(`"assistant"`))
	m.tree.Add("toolCalls", jsontree.NewArray(f.owner))
	if f.find([]byte(m.id)) < 0 {
		m.setSubagent(e)
	}
	f.push(m)
	return f.messages.len() - 1
}

func (f *Fold) continueToolCall(e *event) {
	f.bringPiece(e, broughtByCall)
	place, ok := f.findCall(e.decoded(fieldToolCallID))
	if !ok {
		f.skipped = "no call has the id of the piece"
		return
	}
	delta := e.inner(fieldDelta)
	function := f.messages.at(place.message).function(place.call)
	if function == nil || len(delta) == 0 && e.values[fieldMetadata] == nil {
		return
	}
	call := f.edit(place.message).ownCall(place.call)
	call.OwnMember("function").(*jsontree.Object).AppendText("arguments", delta)
	mergeMetadata(call, e.values[fieldMetadata])
}

func (f *Fold) endToolCall(e *event) {
	if e.values[fieldMetadata] == nil {
		return
	}
	f.bring(e, broughtByCall)
	if place, ok := f.findCall(e.decoded(fieldToolCallID)); ok {
		mergeMetadata(f.edit(place.message).ownCall(place.call), e.values[fieldMetadata])
	}
}

// addToolResult makes a message, whether or not its id is known: after the assistant message that owns the call and the results
// that follow that, because providers want them together; at the end if no message owns the call.
func (f *Fold) addToolResult(e *event) {
	f.bring(e, broughtByCall|fieldMessageID.set()|fieldContent.set())
	m := &Message{owner: f.owner, hasID: true, role: roleTool, tree: jsontree.NewObject(f.owner, 6)}
	m.id = string(e.decoded(fieldMessageID))
	role := jsontree.Raw(`"tool"`)
	if e.values[fieldRole] != nil && len(e.inner(fieldRole)) > 0 {
		role = jsontree.Kept(e.values[fieldRole])
		m.role = string(e.decoded(fieldRole))
	}
	m.tree.Add("id", jsontree.Kept(e.values[fieldMessageID]))
	m.tree.Add("toolCallId", jsontree.Kept(e.values[fieldToolCallID]))
	m.tree.Add("role", role)
	m.tree.Add("content", jsontree.Kept(e.values[fieldContent]))
	m.setSubagent(e)
	mergeMetadata(m.tree, e.values[fieldMetadata])

	place, ok := f.findCallOfAssistant(e.decoded(fieldToolCallID))
	if !ok {
		f.push(m)
		return
	}
	behind := place.message + 1 + f.resultsBehind(place.message)
	f.insert(behind, m)
}

// resultsBehind counts the tool results that follow a message.
func (f *Fold) resultsBehind(place int) int {
	counted := &f.messages.at(place).results
	if counted.owner != f.owner || counted.order != f.order {
		*counted = countedResults{owner: f.owner, order: f.order}
	}
	for behind := place + 1 + counted.count; behind < f.messages.len() && f.messages.at(behind).role == roleTool; behind++ {
		counted.count++
	}
	return counted.count
}

// findCallOfAssistant is findCall among the assistant messages. Only a list of messages from outside gives calls to others.
func (f *Fold) findCallOfAssistant(id []byte) (callPlace, bool) {
	place, ok := f.findCall(id)
	if !ok || f.messages.at(place.message).role == roleAssistant {
		return place, ok
	}
	return f.findCallIn(f.indexed().ofAssistants, id, func(m *Message) bool { return m.role == roleAssistant })
}

// function returns the function of a tool call that the message has, for reading; nil when the call has none.
func (m *Message) function(place int) *jsontree.Object {
	calls := m.listed
	if m.tree != nil {
		calls = m.tree.OpenMember("toolCalls").(*jsontree.Array)
	} else if calls == nil {
		calls = jsontree.Open(m.member("toolCalls"), m.owner).(*jsontree.Array)
		m.listed = calls
	}
	function, _ := calls.OpenItem(place).(*jsontree.Object).OpenMember("function").(*jsontree.Object)
	return function
}

// ownCall returns a tool call that the message has, ready to be changed.
func (m *Message) ownCall(place int) *jsontree.Object {
	return m.tree.OwnMember("toolCalls").(*jsontree.Array).OwnItem(place, m.owner).(*jsontree.Object)
}
