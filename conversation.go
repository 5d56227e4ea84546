package pgagui

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui/db"
)

// ToolCallStatus says how far a tool call is.
type ToolCallStatus string

// The arguments of a call stream in, then they are complete and it waits for its result. It is cut off when its run fails, or ends before
// the arguments are complete, and there is no result.
const (
	ToolCallStreaming ToolCallStatus = "streaming"
	ToolCallCalled    ToolCallStatus = "called"
	ToolCallCompleted ToolCallStatus = "completed"
	ToolCallCutOff    ToolCallStatus = "cut_off"
)

// ToolCall is a tool call: what was called, with which arguments, and what came of it.
type ToolCall struct {
	ID   string `json:"toolCallId"`
	Name string `json:"name"`
	// Arguments is their text, as far as it came.
	Arguments string `json:"arguments"`
	// ArgumentsJSON is the same as JSON; nil: it is none.
	ArgumentsJSON json.RawMessage `json:"argumentsJson,omitempty"`
	// Result is the content of the tool's message, a JSON string or a list of parts; nil: there is none so far.
	Result json.RawMessage `json:"result,omitempty"`
	// ParentMessageID is the assistant's message that the call is part of.
	ParentMessageID string `json:"parentMessageId,omitempty"`
	// RunID is the run that made the call. The result may have come in a later one.
	RunID    string `json:"runId"`
	FirstSeq int64  `json:"firstSeq"`
	LastSeq  int64  `json:"lastSeq"`
	// StartedAt is the timestamp of its first event, or, where that says none, when it was appended.
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is when the result came or the call was cut off; zero before that.
	EndedAt time.Time      `json:"endedAt,omitzero"`
	Status  ToolCallStatus `json:"status"`
}

// Activity is an activity of a conversation: what an agent shows of its work between messages.
type Activity struct {
	MessageID string          `json:"messageId"`
	Type      string          `json:"activityType"`
	Content   json.RawMessage `json:"content"`
	RunID     string          `json:"runId"` // the run that began it
	FirstSeq  int64           `json:"firstSeq"`
	LastSeq   int64           `json:"lastSeq"`
	StartedAt time.Time       `json:"startedAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
}

// SessionMessage is a message as sessions had them before AG-UI.
type SessionMessage struct {
	// Seq is that of the event that brought it.
	Seq int64 `json:"seq"`
	// Type is user, assistant, tool_use, tool_result, system or error.
	Type string `json:"type"`
	// MessageID is the AG-UI message that it is, or is a part of; empty for an error.
	MessageID string    `json:"messageId,omitempty"`
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	// Payload is {content} for user, assistant and system, {id, name, input} for tool_use, {tool_use_id, content} for tool_result,
	// {message, code} for error.
	Payload json.RawMessage `json:"payload"`
}

// ToolCalls returns the tool calls of a conversation as they stood at a point of a thread, those that began behind afterSeq, in the order in
// which they began. It reads the log of the lineage. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) ToolCalls(ctx context.Context, threadID string, at At, afterSeq int64) ([]ToolCall, error) {
	rows, err := s.queries.ToolCalls(ctx, db.ToolCallsParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), AfterSeq: afterSeq, Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	calls := make([]ToolCall, len(rows))
	for i, row := range rows {
		calls[i] = ToolCall{
			ID: row.ToolCallID, Name: row.Name, Arguments: row.Arguments, ArgumentsJSON: json.RawMessage(row.ArgumentsJson),
			Result: json.RawMessage(row.Result), ParentMessageID: row.ParentMessageID, RunID: row.RunID,
			FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, EndedAt: row.EndedAt, Status: ToolCallStatus(row.Status),
		}
	}
	return calls, nil
}

// Activities returns the activities of a conversation as they stood at a point of a thread, in the order of the conversation. It reads
// the log of the lineage. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) Activities(ctx context.Context, threadID string, at At) ([]Activity, error) {
	rows, err := s.queries.Activities(ctx, db.ActivitiesParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	activities := make([]Activity, len(rows))
	for i, row := range rows {
		activities[i] = Activity{
			MessageID: row.MessageID, Type: row.ActivityType, Content: json.RawMessage(row.Content), RunID: row.RunID,
			FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, UpdatedAt: row.UpdatedAt,
		}
	}
	return activities, nil
}

// SessionMessages returns a conversation, as it stood at a point of a thread, as the six types of messages that sessions had before AG-UI: those
// that came behind afterSeq, in the order of the events that brought them. Reasoning and activities have no type there.
// It reads the log of the lineage. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) SessionMessages(ctx context.Context, threadID string, at At, afterSeq int64) ([]SessionMessage, error) {
	rows, err := s.queries.SessionMessages(ctx, db.SessionMessagesParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), AfterSeq: afterSeq, Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	messages := make([]SessionMessage, len(rows))
	for i, row := range rows {
		messages[i] = SessionMessage{
			Seq: row.Seq, Type: row.Type, MessageID: row.MessageID, RunID: row.RunID, CreatedAt: row.CreatedAt, Payload: json.RawMessage(row.Payload),
		}
	}
	return messages, nil
}

// AppendSessionMessages appends an old session to a thread: its messages in order, each an object {event_type (or type), payload, message_id
// (or id), created_at} of one of the six types of SessionMessage. Each message of the user begins a run, called runPrefix and a number; an
// error ends one. It returns the last seq. All of them are stored or none, and a call whose answer was lost can be repeated.
// Errors: ErrInvalidEvents, and those of Append.
func (s *Store) AppendSessionMessages(ctx context.Context, threadID, runPrefix string, messages []json.RawMessage) (lastSeq int64, err error) {
	lastSeq, err = s.queries.AppendSessionMessages(ctx, db.AppendSessionMessagesParams{
		ThreadID: threadID, RunPrefix: runPrefix, Messages: jsonArray(messages), Scope: s.scope,
	})
	return lastSeq, refusal(err)
}

// ImportSessionMessages is AppendSessionMessages with the times of the messages (created_at), as Import keeps those of events. It takes the
// rights of agui_maintainer.
func (s *Store) ImportSessionMessages(ctx context.Context, threadID, runPrefix string, messages []json.RawMessage) (lastSeq int64, err error) {
	lastSeq, err = s.queries.ImportSessionMessages(ctx, db.ImportSessionMessagesParams{
		ThreadID: threadID, RunPrefix: runPrefix, Messages: jsonArray(messages), Scope: s.scope,
	})
	return lastSeq, refusal(err)
}
