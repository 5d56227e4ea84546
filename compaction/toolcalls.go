package compaction

import "github.com/pgagui/pgagui/internal/rawjson"

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
	calls, ok := m.tree.ownMember("toolCalls").(*array)
	if !ok {
		calls = &array{owner: f.owner}
		m.tree.set("toolCalls", calls)
	}
	function := &object{owner: f.owner}
	function.add("name", raw(kept(e.values[fieldToolCallName])))
	function.add("arguments", &text{owner: f.owner})
	call := &object{owner: f.owner}
	call.add("id", raw(kept(e.values[fieldToolCallID])))
	call.add("type", raw(`"function"`))
	call.add("function", function)
	mergeMetadata(call, e.values[fieldMetadata])
	calls.items = append(calls.items, call)

	id := callID{id: string(e.decoded(fieldToolCallID)), hasID: true}
	m.calls = append(m.calls, id)
	f.indexed().calls[id.id] = callPlace{message: place, call: len(m.calls) - 1}
}

func (f *Fold) restartToolCall(place callPlace, e *event) {
	function := f.messages.at(place.message).function(place.call)
	if function == nil {
		return
	}
	name, ok := stringText(function.get("name"))
	renamed := !ok || !rawjson.SameString(name, e.inner(fieldToolCallName))
	if !renamed && e.values[fieldMetadata] == nil {
		return
	}
	call := f.edit(place.message).ownCall(place.call)
	if renamed {
		call.ownMember("function").(*object).set("name", raw(kept(e.values[fieldToolCallName])))
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
	m.tree.add("toolCalls", &array{owner: f.owner})
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
		return
	}
	delta := e.inner(fieldDelta)
	function := f.messages.at(place.message).function(place.call)
	if function == nil || len(delta) == 0 && e.values[fieldMetadata] == nil {
		return
	}
	call := f.edit(place.message).ownCall(place.call)
	call.ownMember("function").(*object).appendText("arguments", delta)
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

// addToolResult makes a message, whether or not its id is known: behind the assistant message that owns the call and the results
// that follow that, for a provider wants them together; at the end when nobody owns the call.
func (f *Fold) addToolResult(e *event) {
	f.bring(e, broughtByCall|fieldMessageID.set()|fieldContent.set())
	m := &Message{owner: f.owner, hasID: true, role: roleTool, tree: &object{owner: f.owner, members: make([]member, 0, 6)}}
	m.id = string(e.decoded(fieldMessageID))
	role := raw(`"tool"`)
	if e.values[fieldRole] != nil && len(e.inner(fieldRole)) > 0 {
		role = kept(e.values[fieldRole])
		m.role = string(e.decoded(fieldRole))
	}
	m.tree.add("id", raw(kept(e.values[fieldMessageID])))
	m.tree.add("toolCallId", raw(kept(e.values[fieldToolCallID])))
	m.tree.add("role", role)
	m.tree.add("content", raw(kept(e.values[fieldContent])))
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
func (m *Message) function(place int) *object {
	calls := m.listed
	if m.tree != nil {
		calls = m.tree.opened("toolCalls").(*array)
	} else if calls == nil {
		calls = parsed(m.member("toolCalls"), m.owner).(*array)
		m.listed = calls
	}
	calls.items[place] = parsed(calls.items[place], calls.owner)
	function, _ := calls.items[place].(*object).opened("function").(*object)
	return function
}

// ownCall returns a tool call that the message has, ready to be changed.
func (m *Message) ownCall(place int) *object {
	calls := m.tree.ownMember("toolCalls").(*array)
	calls.items[place] = owned(calls.items[place], m.owner)
	return calls.items[place].(*object)
}
