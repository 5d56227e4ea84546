package core

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/internal/jsontext"
)

// conversation is the stored conversation at the end of a run, as agents and clients know it:
// without activities, which only UIs get.
type conversation struct {
	messages   []message
	activities map[string]bool // their ids
	state      json.RawMessage
	hasAliases bool // the client has messages of it under other ids
	// arrived are the ids of what agents said while the request waited for its turn: its client cannot have removed it.
	arrived map[string]bool
}

func readConversation(messages []json.RawMessage, state json.RawMessage) conversation {
	c := conversation{activities: map[string]bool{}, state: state}
	for _, text := range messages {
		if message := readMessage(text); message.role != "activity" {
			c.messages = append(c.messages, message)
		} else {
			c.activities[message.id] = true
		}
	}
	return c
}

// ids returns the ids of messages, except those of instructions.
func ids(messages []message) map[string]bool {
	known := map[string]bool{}
	for _, message := range messages {
		if !message.isInstruction && message.id != "" {
			known[message.id] = true
		}
	}
	return known
}

// knowsAny reports whether a client sent a turn of the stored conversation.
func knowsAny(stored conversation, sent []message) bool {
	known := ids(turns(stored.messages))
	return slices.ContainsFunc(sent, func(m message) bool { return known[m.id] })
}

// keepArrived finds what came while a request waited for its turn.
func (c *conversation) keepArrived(in *Input) {
	if in.before == nil {
		return
	}
	c.arrived = ids(c.messages)
	for _, message := range c.messages {
		if message.role == "user" || in.before[message.id] {
			delete(c.arrived, message.id)
		}
	}
}

// isMissed reports whether something arrived that the client did not send.
func (c *conversation) isMissed(in *Input) bool {
	if len(c.arrived) == 0 || c.hasAliases {
		return false
	}
	known := ids(in.messages)
	return slices.ContainsFunc(turns(c.messages), func(m message) bool { return c.arrived[m.id] && !known[m.id] })
}

// size returns the size of a conversation in bytes.
func (c *conversation) size() int {
	size := len(c.state)
	for _, message := range c.messages {
		size += len(message.json) + 1
	}
	return size
}

// isFilled reports whether the agent receives more than the client sent.
func isFilled(in *Input, stored conversation, mode History) bool {
	if len(stored.messages) == 0 && len(stored.state) == 0 {
		return false
	}
	return mode == NewMessages || mode == FillHistory && !knowsAny(stored, turns(in.messages)) || stored.isMissed(in)
}

// lacksHistory reports whether a client does not have the stored conversation. One that sends new messages only has it.
func lacksHistory(in *Input, stored conversation, mode History) bool {
	return len(stored.messages) > 0 && (stored.hasAliases || mode == FillHistory && isFilled(in, stored, mode))
}

// stateOfBranch returns the state with which a run begins that branches off here, if the client sent
// another one. If it sent none, the log goes on with that state by itself.
func (c *conversation) stateOfBranch(in *Input) (state json.RawMessage, isInLog bool) {
	state = c.state
	if len(state) == 0 || bytes.Equal(state, []byte("null")) {
		state = json.RawMessage("{}")
	}
	isInLog = len(in.state) == 0 || bytes.Equal(in.state, []byte("null"))
	if !isInLog && sameJSON(in.state, state) {
		return nil, true
	}
	return state, isInLog
}

// filled returns the stored messages before those of the client.
func filled(in *Input, stored conversation) (list []message) {
	known := ids(stored.messages)
	hasInstructions := false
	for _, message := range in.messages {
		hasInstructions = hasInstructions || message.isInstruction
	}
	for _, message := range stored.messages {
		if !message.isInstruction || !hasInstructions {
			list = append(list, message)
		}
	}
	for _, message := range in.messages {
		if !known[message.id] || message.isInstruction {
			list = append(list, message)
		}
	}
	return list
}

func listOf(messages []message) json.RawMessage {
	texts := make([]json.RawMessage, len(messages))
	for i, message := range messages {
		texts[i] = message.json
	}
	return jsontext.Array(texts)
}

// withMembers returns an object with other values of some members. The other members keep their
// bytes.
func withMembers(of json.RawMessage, changes map[string]json.RawMessage) json.RawMessage {
	var out jsontext.Object
	written := map[string]bool{}
	for name, value := range compaction.Members(of) {
		changed, isChanged := changes[name]
		switch {
		case !isChanged:
			out.Raw(name, value)
		case !written[name]:
			out.Raw(name, changed)
			written[name] = true
		}
	}
	for _, name := range []string{"messages", "state", "parentRunId"} {
		if changed, isChanged := changes[name]; isChanged && !written[name] {
			out.Raw(name, changed)
		}
	}
	return out.End()
}

// branchPoint says where the messages of a client leave the stored conversation.
type branchPoint int

const (
	atHead    branchPoint = iota // they continue it
	before                       // they edit a message, or regenerate what follows
	elsewhere                    // they were trimmed or reordered
	atStart                      // they replace all of it
)

// branchOf compares the turns that a client sent with the stored conversation at the head. For before,
// messageID is the first stored message that the client's conversation does not have, and that shares
// its id with none that it has, and with no activity: the id would name that one.
//
// A client that sends new messages only has not removed those that it leaves out. One that sends all
// of them has: if it sent none of the stored ones, it begins a new conversation.
func branchOf(sent []message, stored conversation, mode History) (point branchPoint, messageID string) {
	if mode == NewMessages {
		return editOf(sent, stored)
	}
	known := ids(stored.messages)
	if !knowsAny(stored, sent) {
		if mode == FullHistory && len(sent) > 0 && len(turns(stored.messages)) > 0 {
			return atStart, ""
		}
		return atHead, ""
	}
	have, rest := turns(stored.messages), sent
	k := 0
	for ; k < len(have); k++ {
		if len(rest) > 0 && isSame(rest[0], have[k]) {
			rest = rest[1:]
		} else if !stored.arrived[have[k].id] {
			break
		}
	}
	if k == len(have) {
		return atHead, ""
	}
	kept := ids(have[:k])
	messageID = have[k].id
	for _, message := range have[k:] {
		if !kept[message.id] && !stored.activities[message.id] {
			messageID = message.id
			break
		}
	}
	if len(rest) > 0 && rest[0].id == have[k].id {
		return before, messageID
	}
	for _, message := range rest {
		if known[message.id] {
			return elsewhere, ""
		}
	}
	return before, messageID
}

// editOf returns the first message of the user that the client sent with another content than the
// stored one.
func editOf(turns []message, stored conversation) (point branchPoint, messageID string) {
	known := ids(stored.messages)
	for _, sent := range turns {
		if sent.role == "user" && known[sent.id] && !stored.activities[sent.id] &&
			!slices.ContainsFunc(stored.messages, func(m message) bool { return isSame(sent, m) }) {
			return before, sent.id
		}
	}
	return atHead, ""
}

// underStoredIDs returns the turns that a client sent, with the stored ones in place of those that the client has under other ids:
// some agents stream a message with one id, and list it with another when the run ends, which a client that stopped did not see.
// originOf returns the run that brought an id, empty if none did. What the client has of the answer of a run stands for all of it.
func underStoredIDs(sent []message, stored conversation, originOf func(messageID string) (string, error)) (same []message, err error) {
	known, have := ids(stored.messages), turns(stored.messages)
	isOf := func(list []message, run string) bool { // an answer of a run stands next
		if err != nil || len(list) == 0 || list[0].role == "user" {
			return false
		}
		var origin string
		origin, err = originOf(list[0].id)
		return origin == run
	}
	for len(sent) > 0 && len(have) > 0 {
		if isSame(sent[0], have[0]) {
			same, sent, have = append(same, have[0]), sent[1:], have[1:]
			continue
		}
		if known[sent[0].id] || sent[0].role == "user" {
			break
		}
		var run string
		if run, err = originOf(sent[0].id); run == "" || !isOf(have, run) {
			break
		}
		for isOf(sent, run) {
			sent = sent[1:]
		}
		for isOf(have, run) {
			same, have = append(same, have[0]), have[1:]
		}
	}
	return append(same, sent...), err
}

// turns returns the messages that every client keeps: without instructions, and without the
// reasoning of the model, which some clients drop.
func turns(messages []message) (kept []message) {
	for _, message := range messages {
		if !message.isInstruction && message.role != "reasoning" {
			kept = append(kept, message)
		}
	}
	return kept
}

// isSame compares id, role and, for a message of the user, the content.
func isSame(a, b message) bool {
	return a.id == b.id && a.role == b.role && (a.role != "user" || sameContent(a.content, b.content))
}

// sameContent compares two contents without the parts that name a file by its id alone: protocol 1.0 does not have them, so clients
// drop them.
func sameContent(a, b json.RawMessage) bool {
	return sameJSON(a, b) || sameJSON(withoutFileIDs(a), withoutFileIDs(b))
}

func withoutFileIDs(content json.RawMessage) json.RawMessage {
	var parts []map[string]json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return content
	}
	isFileID := func(part map[string]json.RawMessage) bool { return string(part["type"]) == `"binary"` }
	text, _ := json.Marshal(slices.DeleteFunc(parts, isFileID))
	return text
}

// sameJSON compares two values. Clients and databases write the same value in several ways.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var left, right any
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return false
	}
	leftText, _ := json.Marshal(left)
	rightText, _ := json.Marshal(right)
	return bytes.Equal(leftText, rightText)
}
