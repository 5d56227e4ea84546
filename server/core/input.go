package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/internal/jsontext"
)

const (
	// maxCall is what agui.append takes, in bytes: agui_internal.max_call_bytes. The input of a run
	// comes in one call with its first event.
	maxCall = 64 << 20
	// MaxInput is the size of an input in bytes. It leaves room for that event.
	MaxInput = maxCall - 1<<20
)

// Input is a RunAgentInput as a client sent it. Its bytes are stored as they are.
type Input struct {
	json            json.RawMessage
	ThreadID, RunID string
	parentRunID     string
	hasParent       bool // it names a parent; an empty one means none
	history         History
	branchState     *bool               // nil: as the agent has it
	LastSeen        string              // lastSeenEventId of CopilotKit's connect
	Custom          pgagui.CustomEvents // of which runs a connect repeats the CUSTOM events
	Protocol        string              // protocolVersion, which clients from 1.0.0 on send
	messages        []message
	answer          answer
	state           json.RawMessage
	isEmpty         bool // the state is null or {}
	// waitedFrom is the run before the one that the request waited for; empty: none. nil: it did not wait.
	waitedFrom *string
	// Held is the memory of the input and of its copies.
	Held *door.Holding
}

// message is a message of an input.
type message struct {
	json     json.RawMessage
	id, role string
	content  json.RawMessage // as the official client reads it
}

// ReadInput reads an input. Its errors are for the client.
func ReadInput(body []byte) (*Input, error) {
	in := &Input{json: body, isEmpty: true}
	if !json.Valid(body) || !jsontext.IsObject(body) {
		return nil, fmt.Errorf("the body is no JSON object (expected a RunAgentInput)")
	}
	for name, value := range compaction.Members(body) {
		var err error
		switch name {
		case "threadId":
			in.ThreadID, err = jsontext.ReadString(value)
		case "runId":
			in.RunID, err = jsontext.ReadString(value)
		case "parentRunId":
			err = in.readParent(value)
		case "lastSeenEventId":
			in.LastSeen, err = jsontext.ReadString(value)
		case "protocolVersion":
			in.Protocol, err = jsontext.ReadString(value)
		case "messages":
			in.messages, err = readMessages(value)
		case "resume":
			in.answer.readResume(value)
		case "state":
			in.state = value
			in.isEmpty = bytes.Equal(value, []byte("null")) || isEmptyObject(value)
		case "forwardedProps":
			err = in.readProps(value)
		}
		if err != nil {
			return nil, fmt.Errorf("the member %q of the body: %w", name, err)
		}
	}
	if in.ThreadID == "" {
		return nil, fmt.Errorf(`the body has no "threadId"`)
	}
	return in, nil
}

// readProps reads forwardedProps.pgagui, where clients put what RunAgentInput has no member for.
func (in *Input) readProps(props []byte) error {
	for name, value := range compaction.Members(props) {
		if name == "command" {
			in.answer.readCommand(value)
		}
		if name != "pgagui" {
			continue
		}
		for name, value := range compaction.Members(value) {
			switch name {
			case "branchState":
				if json.Unmarshal(value, &in.branchState) != nil {
					return fmt.Errorf("pgagui.branchState: expected true or false")
				}
			case "parentRunId":
				if err := in.readParent(value); err != nil {
					return fmt.Errorf("pgagui.parentRunId: %w", err)
				}
			case "custom":
				text, err := jsontext.ReadString(value)
				if err == nil {
					in.Custom, err = ReadCustom(text)
				}
				if err != nil {
					return fmt.Errorf("pgagui.custom: %w", err)
				}
			case "history":
				text, err := jsontext.ReadString(value)
				in.history = History(text)
				if err != nil || !slices.Contains([]History{NewMessages, FullHistory}, in.history) {
					return fmt.Errorf(`pgagui.history: expected "new" or "full"`)
				}
			}
		}
	}
	return nil
}

// ReadCustom reads a choice of CUSTOM events. An empty text leaves it to the server.
func ReadCustom(text string) (pgagui.CustomEvents, error) {
	custom := pgagui.CustomEvents(text)
	if !slices.Contains([]pgagui.CustomEvents{"", pgagui.CustomOfNone, pgagui.CustomOfHead, pgagui.CustomOfLineage}, custom) {
		return "", fmt.Errorf(`expected "none", "head" or "lineage"`)
	}
	return custom, nil
}

func (in *Input) readParent(value []byte) (err error) {
	if !bytes.Equal(value, []byte("null")) {
		in.hasParent = true
		in.parentRunID, err = jsontext.ReadString(value)
	}
	return err
}

func isEmptyObject(value []byte) bool {
	return len(value) > 1 && value[0] == '{' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// readMessages reads the messages of an input. Several may have the same id, if the agent has sent
// them so: clients post what they have.
func readMessages(array []byte) (messages []message, err error) {
	if len(array) == 0 || array[0] != '[' {
		return nil, fmt.Errorf("expected a list")
	}
	for item, err := range compaction.Split(array) {
		if err != nil {
			return nil, err
		}
		if len(item) == 0 || item[0] != '{' {
			return nil, fmt.Errorf("message %d is no object", len(messages)+1)
		}
		messages = append(messages, readMessage(item))
	}
	return messages, nil
}

func readMessage(text []byte) message {
	m := message{json: text}
	for name, value := range compaction.Members(compaction.MessageAsRead(text)) {
		switch name {
		case "id":
			m.id, _ = jsontext.ReadString(value)
		case "role":
			m.role, _ = jsontext.ReadString(value)
		case "content":
			m.content = value
		}
	}
	return m
}
