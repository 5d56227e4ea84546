package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/compaction"
)

// input is a RunAgentInput as a client sent it. Its bytes are stored as they are.
type input struct {
	json              json.RawMessage
	threadID, runID   string
	parentRunID       string
	hasParent         bool // it names a parent; an empty one means none
	history           History
	lastSeen          string // lastSeenEventId of CopilotKit's connect
	protocol          string // protocolVersion, which clients from 1.0.0 on send
	messages          []message
	state             json.RawMessage
	hasMessages       bool
	hasState, isEmpty bool // isEmpty: the state is null or {}
}

// message is a message of an input or of the stored conversation.
type message struct {
	json          json.RawMessage
	id, role      string
	content       json.RawMessage
	isInstruction bool // a system or developer message, which agents and clients add as they like
}

// readInput reads an input. Its errors are for the client.
func readInput(body []byte) (*input, error) {
	in := &input{json: body, isEmpty: true}
	if !json.Valid(body) || !isObject(body) {
		return nil, fmt.Errorf("the body is no JSON object (expected a RunAgentInput)")
	}
	for name, value := range compaction.Members(body) {
		var err error
		switch name {
		case "threadId":
			in.threadID, err = readText(value)
		case "runId":
			in.runID, err = readText(value)
		case "parentRunId":
			err = in.readParent(value)
		case "lastSeenEventId":
			in.lastSeen, err = readText(value)
		case "protocolVersion":
			in.protocol, err = readText(value)
		case "messages":
			in.hasMessages = true
			in.messages, err = readMessages(value)
		case "state":
			in.hasState, in.state = true, value
			in.isEmpty = bytes.Equal(value, []byte("null")) || isEmptyObject(value)
		case "forwardedProps":
			err = in.readProps(value)
		}
		if err != nil {
			return nil, fmt.Errorf("the member %q of the body: %w", name, err)
		}
	}
	if in.threadID == "" {
		return nil, fmt.Errorf(`the body has no "threadId"`)
	}
	return in, nil
}

// readProps reads forwardedProps.pgagui, where clients put what RunAgentInput has no member for.
func (in *input) readProps(props []byte) error {
	for name, value := range compaction.Members(props) {
		if name != "pgagui" {
			continue
		}
		for name, value := range compaction.Members(value) {
			switch name {
			case "parentRunId":
				if err := in.readParent(value); err != nil {
					return fmt.Errorf("pgagui.parentRunId: %w", err)
				}
			case "history":
				text, err := readText(value)
				in.history = History(text)
				if err != nil || !slices.Contains([]History{NewMessages, FullHistory}, in.history) {
					return fmt.Errorf(`pgagui.history: expected "new" or "full"`)
				}
			}
		}
	}
	return nil
}

func (in *input) readParent(value []byte) (err error) {
	if !bytes.Equal(value, []byte("null")) {
		in.hasParent = true
		in.parentRunID, err = readText(value)
	}
	return err
}

// readText reads a string. null is an empty one.
func readText(value []byte) (text string, err error) {
	if err := json.Unmarshal(value, &text); err != nil {
		return "", fmt.Errorf("expected a string")
	}
	return text, nil
}

func isEmptyObject(value []byte) bool {
	return len(value) > 1 && value[0] == '{' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// readMessages reads the messages of an input, in which each message of the user has an id of its
// own. Agents give other messages the same id: an answer and the results of its tool calls.
func readMessages(array []byte) (messages []message, err error) {
	if len(array) == 0 || array[0] != '[' {
		return nil, fmt.Errorf("expected a list")
	}
	seen := map[string]bool{}
	for item, err := range compaction.Split(array) {
		if err != nil {
			return nil, err
		}
		message := readMessage(item)
		switch {
		case len(item) == 0 || item[0] != '{':
			return nil, fmt.Errorf("message %d is no object", len(messages)+1)
		case seen[message.id] && message.role == "user" && message.id != "":
			return nil, fmt.Errorf("two messages of the user have the id %q", message.id)
		}
		seen[message.id] = seen[message.id] || message.role == "user"
		messages = append(messages, message)
	}
	return messages, nil
}

func readMessage(text []byte) message {
	m := message{json: text}
	for name, value := range compaction.Members(text) {
		switch name {
		case "id":
			m.id, _ = readText(value)
		case "role":
			m.role, _ = readText(value)
		case "content":
			m.content = value
		}
	}
	m.isInstruction = m.role == "system" || m.role == "developer"
	return m
}
