package ambient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// The shapes of the Ambient Platform, and what they are in AG-UI. A session is a thread.

// ambientEvent is an event of a session.
type ambientEvent struct {
	ID          string     `json:"id"`
	SessionID   string     `json:"session_id"`
	Seq         int64      `json:"seq"`
	EventType   string     `json:"event_type"`
	Payload     string     `json:"payload"`
	CreatedAt   time.Time  `json:"created_at"`
	CompletedAt *time.Time `json:"completed_at"`
	EventCount  int64      `json:"event_count"`
}

func ambientEventOf(sessionID string, event pgagui.HistoryEvent) ambientEvent {
	shown := ambientEvent{
		ID: ambientID(sessionID, event.Seq), SessionID: sessionID, Seq: event.Seq, EventType: event.Type, Payload: string(event.JSON),
		CreatedAt: event.CreatedAt.UTC(), EventCount: event.Count,
	}
	if !event.CompletedAt.IsZero() {
		completed := event.CompletedAt.UTC()
		shown.CompletedAt = &completed
	}
	return shown
}

// ambientID names an event, or the first message that an event brought.
func ambientID(sessionID string, seq int64) string {
	return sessionID + ":" + strconv.FormatInt(seq, 10)
}

// ambientMessage is a message of a session.
type ambientMessage struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Seq       int64  `json:"seq"`
	EventType string `json:"event_type"`
	// Payload is a JSON string: text may hold what a Go string cannot, one half of a surrogate pair.
	Payload   json.RawMessage `json:"payload"`
	CreatedAt time.Time       `json:"created_at"`
}

// ambientMessagesOf returns messages in the order of their seqs. Several have the same seq if one
// event brought them.
func ambientMessagesOf(sessionID string, messages []pgagui.SessionMessage) []ambientMessage {
	shown := make([]ambientMessage, len(messages))
	sameSeq := 0
	for i, message := range messages {
		id := ambientID(sessionID, message.Seq)
		if sameSeq++; i == 0 || messages[i-1].Seq != message.Seq {
			sameSeq = 1
		} else {
			id += "." + strconv.Itoa(sameSeq)
		}
		shown[i] = ambientMessage{
			ID: id, SessionID: sessionID, Seq: message.Seq, EventType: message.Type, Payload: ambientPayloadOf(message), CreatedAt: message.CreatedAt.UTC(),
		}
	}
	return shown
}

// ambientPayloadOf returns the payload of a message: its text if it has one, or else JSON.
func ambientPayloadOf(message pgagui.SessionMessage) json.RawMessage {
	var textMember string
	switch message.Type {
	case "user", "assistant", "system":
		textMember = "content"
	case "error":
		textMember = "message"
	}
	payload := []byte(message.JSON)
	for name, value := range compaction.Members(payload) {
		if name == textMember && len(value) > 0 {
			if value[0] == '"' {
				return value
			}
			payload = value // a list of parts
		}
	}
	return jsontext.Quote(string(payload))
}

// pushedEvent is an event that a client pushes. It stands for several if the client joined them.
type pushedEvent struct {
	eventType   string
	payload     []byte
	completedAt time.Time // zero: not given
	eventCount  *int64    // nil: not given
}

// event returns the AG-UI event of the log. If the payload is one already, its bytes stay. Otherwise
// it gets the type, the names that AG-UI has for members, and what the client said about the events
// that it joined.
func (p pushedEvent) event() (json.RawMessage, error) {
	if fault := faultOf(p.payload); fault != "" {
		return nil, problem.Errorf(http.StatusUnprocessableEntity, "the payload %s (expected an AG-UI event)", fault)
	}
	count := int64(1)
	if p.eventCount != nil {
		count = *p.eventCount
	}
	if count < 1 {
		return nil, problem.Errorf(http.StatusBadRequest, "event_count is %d (expected a number from 1 on)", count)
	}
	given := map[string]bool{}
	for name := range compaction.Members(p.payload) {
		given[name] = true
	}
	kind := cmp.Or(p.eventType, compaction.EventType(p.payload))
	switch {
	case kind == "":
		return nil, problem.Errorf(http.StatusUnprocessableEntity, `the event has no type (expected event_type, or a member "type" of the payload)`)
	case given["type"] && compaction.EventType(p.payload) != kind:
		return nil, problem.Errorf(http.StatusUnprocessableEntity, "event_type is %q, but the type of the payload is %q", kind, compaction.EventType(p.payload))
	}
	isJoined := count > 1 || !p.completedAt.IsZero()

	var added, kept bytes.Buffer
	member := func(to *bytes.Buffer, name string, value []byte) {
		fmt.Fprintf(to, ",%s:%s", jsontext.Quote(name), value)
	}
	if !given["type"] {
		member(&added, "type", jsontext.Quote(kind))
	}
	if isJoined {
		member(&added, "event_count", strconv.AppendInt(nil, count, 10))
		if !p.completedAt.IsZero() {
			member(&added, "completed_at", jsontext.Quote(p.completedAt.UTC().Format(time.RFC3339Nano)))
		}
	}
	isRenamed := false
	callID := ""
	for name, value := range compaction.Members(p.payload) {
		switch name {
		case "event_count", "eventCount", "completed_at", "completedAt":
			if isJoined {
				isRenamed = true
				continue
			}
		}
		own := cmp.Or(aguiNameOf(kind, name), name)
		if own != name && given[own] {
			own = name
		}
		if own == "toolCallId" {
			callID, _ = jsontext.ReadString(value)
		}
		isRenamed = isRenamed || own != name
		member(&kept, own, value)
	}
	if kind == "TOOL_CALL_RESULT" && !given["messageId"] && !given["message_id"] && callID != "" {
		member(&added, "messageId", jsontext.Quote(callID+"-result")) // AG-UI requires one
	}
	if added.Len() == 0 && !isRenamed {
		return p.payload, nil
	}
	return append(append([]byte{'{'}, append(added.Bytes(), kept.Bytes()...)[1:]...), '}'), nil
}

// aguiNames are the names of AG-UI for those of the platform, and of AG-UI's types in Python.
var aguiNames = map[string]string{
	"message_id": "messageId", "parent_message_id": "parentMessageId", "tool_call_id": "toolCallId", "tool_id": "toolCallId",
	"tool_call_name": "toolCallName", "tool_name": "toolCallName", "thread_id": "threadId", "run_id": "runId", "parent_run_id": "parentRunId",
	"step_name": "stepName", "activity_type": "activityType", "raw_event": "rawEvent", "subagent_run_id": "subagentRunId",
	"entity_id": "entityId", "encrypted_value": "encryptedValue", "forwarded_props": "forwardedProps",
}

// aguiNameOf returns the name of AG-UI for a member of an event of the platform. Empty: the same.
func aguiNameOf(kind, name string) string {
	switch {
	case name == "content" && strings.HasSuffix(kind, "_CONTENT"), name == "args" && kind == "TOOL_CALL_ARGS":
		return "delta"
	case name == "result" && kind == "TOOL_CALL_RESULT":
		return "content"
	default:
		return aguiNames[name]
	}
}

// pushedMessage is a message that a client pushes.
type pushedMessage struct {
	eventType string
	payload   json.RawMessage // a JSON string
	id        string          // becomes that of the message
}

// asEvents returns the message as events. While a run is in progress, all messages but those of the
// user become CUSTOM events: an agent that pushes events pushes summaries of the same as messages,
// and the conversation would have both.
func (p pushedMessage) asEvents() core.Message {
	alone, endsRun := p.asConversation()
	within := alone
	if p.eventType != "user" {
		within = []json.RawMessage{p.asCustom()}
	}
	return core.Message{Alone: alone, EndsRun: endsRun, Within: within}
}

// asConversation returns the message as a part of a conversation, and whether that ends the run. A
// message without a counterpart in AG-UI becomes a CUSTOM event.
func (p pushedMessage) asConversation() (made []json.RawMessage, endsRun bool) {
	event := func(format string, values ...any) {
		made = append(made, json.RawMessage(fmt.Sprintf(format, values...)))
	}
	id := jsontext.Quote(p.id)
	switch p.eventType {
	case "user", "assistant", "system":
		event(`{"type":"TEXT_MESSAGE_START","messageId":%s,"role":%q}`, id, p.eventType)
		if len(p.payload) > len(`""`) {
			event(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%s,"delta":%s}`, id, p.payload)
		}
		event(`{"type":"TEXT_MESSAGE_END","messageId":%s}`, id)
		return made, false
	case "error":
		event(`{"type":"RUN_ERROR","message":%s}`, p.payload)
		return made, true
	}
	var call struct {
		ID, Name, Tool         string
		ToolCallID             string `json:"tool_call_id"`
		ToolUseID              string `json:"tool_use_id"`
		Input, Content, Result json.RawMessage
	}
	isCall := json.Unmarshal([]byte(textOf(p.payload)), &call) == nil
	callID, name := cmp.Or(call.ID, call.ToolCallID, call.ToolUseID), cmp.Or(call.Name, call.Tool)
	switch {
	case p.eventType == "tool_use" && isCall && callID != "" && name != "":
		event(`{"type":"TOOL_CALL_START","toolCallId":%s,"toolCallName":%s}`, jsontext.Quote(callID), jsontext.Quote(name))
		if len(call.Input) > 0 {
			event(`{"type":"TOOL_CALL_ARGS","toolCallId":%s,"delta":%s}`, jsontext.Quote(callID), jsontext.Quote(string(call.Input)))
		}
		event(`{"type":"TOOL_CALL_END","toolCallId":%s}`, jsontext.Quote(callID))
	case p.eventType == "tool_result" && isCall && callID != "":
		result := call.Content
		if result == nil {
			result = call.Result
		}
		event(`{"type":"TOOL_CALL_RESULT","messageId":%s,"toolCallId":%s,"content":%s}`, id, jsontext.Quote(callID), jsontext.Quote(textOf(result)))
	default:
		made = append(made, p.asCustom())
	}
	return made, false
}

// asCustom returns the message as an event beside the conversation.
func (p pushedMessage) asCustom() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"CUSTOM","name":"ambient:message","value":{"event_type":%s,"payload":%s}}`, jsontext.Quote(p.eventType), p.payload))
}

// textOf returns a JSON string as text, and any other value as its JSON.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}

// isEventType reports whether a type of a message is that of an AG-UI event, as older runners of the
// platform push them.
func isEventType(kind string) bool {
	return kind != "" && strings.ToUpper(kind) == kind && strings.ToLower(kind) != kind
}

// faultOf says why a text is no event. Empty: it may be one.
func faultOf(text []byte) string {
	switch {
	case !utf8.Valid(text):
		return "is not UTF-8"
	case !json.Valid(text):
		return "is not JSON"
	case !jsontext.IsObject(text):
		return "is no JSON object"
	default:
		return ""
	}
}
