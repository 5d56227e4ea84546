package core

import (
	"bytes"
	"encoding/json"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/internal/jsontext"
)

// clientMessages is what agui.branch_point compares with the stored conversation: the messages of an input, of which it
// needs the content of users only. A parent that the client named, or that asks what it answers, is given.
func (in *Input) clientMessages(mode History, isGiven bool) pgagui.ClientMessages {
	texts := make([]json.RawMessage, len(in.messages))
	for i, message := range in.messages {
		compared := new(jsontext.Object).Value("id", message.id).Value("role", message.role)
		if message.role == "user" && message.content != nil {
			compared.Raw("content", message.content)
		}
		texts[i] = compared.End()
	}
	return pgagui.ClientMessages{Messages: jsontext.Array(texts), History: string(mode), IsGiven: isGiven, WaitedFrom: in.waitedFrom}
}

// stateOfBranch returns the state with which a run begins that branches off where the state was stored, if the client sent
// another one. If it sent none, the log goes on with that state by itself.
func (in *Input) stateOfBranch(stored json.RawMessage) (state json.RawMessage, isInLog bool) {
	if len(stored) == 0 || bytes.Equal(stored, []byte("null")) {
		stored = json.RawMessage("{}")
	}
	isInLog = len(in.state) == 0 || bytes.Equal(in.state, []byte("null"))
	if !isInLog && sameJSON(in.state, stored) {
		return nil, true
	}
	return stored, isInLog
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
