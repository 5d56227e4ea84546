package pgagui

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui/db"
)

// ToolCallStatus is the progress of a tool call.
type ToolCallStatus string

// The arguments of a call stream in; then it is called and waits for its result. It is cut off if
// its run fails, or ends before the arguments are complete, and there is no result.
const (
	ToolCallStreaming ToolCallStatus = "streaming"
	ToolCallCalled    ToolCallStatus = "called"
	ToolCallCompleted ToolCallStatus = "completed"
	ToolCallCutOff    ToolCallStatus = "cut_off"
)

// ToolCall is a tool call with its arguments and its result.
type ToolCall struct {
	ID   string `json:"toolCallId"`
	Name string `json:"name"`
	// Arguments is the text of the arguments, as far as it has arrived.
	Arguments string `json:"arguments"`
	// ArgumentsJSON is the same as JSON. nil if the text is not JSON.
	ArgumentsJSON json.RawMessage `json:"argumentsJson,omitempty"`
	// Result is the content of the tool's message, a JSON string or a list of parts. nil if there is
	// none so far.
	Result json.RawMessage `json:"result,omitempty"`
	// ParentMessageID is the assistant's message that the call is part of.
	ParentMessageID string `json:"parentMessageId,omitempty"`
	// RunID is the run that made the call. The result may have come in a later one.
	RunID    string `json:"runId"`
	FirstSeq int64  `json:"firstSeq"`
	LastSeq  int64  `json:"lastSeq"`
	// StartedAt is the timestamp of its first event, or when that was appended if it has none.
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is when the result came or the call was cut off. Zero before that.
	EndedAt time.Time      `json:"endedAt,omitzero"`
	Status  ToolCallStatus `json:"status"`
}

// ToolCallsOptions say which tool calls ToolCalls returns. The zero value is those of the head's
// lineage.
type ToolCallsOptions struct {
	At At
	// AfterSeq is a cursor: only calls that began behind this seq.
	AfterSeq int64
	// NoLineage narrows it to the calls that events of the run made, or of the head if At.RunID is
	// empty. Then it reads the log of this run and no other: results that came with a later run are
	// not there, and calls that only a list of messages has are left out.
	NoLineage bool
}

// ToolCalls returns the tool calls of a conversation at a point of a thread, in the order in which
// they began. It reads the log of the lineage, or that of the run alone (NoLineage).
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) ToolCalls(ctx context.Context, threadID string, options ToolCallsOptions) ([]ToolCall, error) {
	if options.NoLineage {
		return s.runToolCalls(ctx, threadID, options)
	}
	rows, err := s.of(threadID).ToolCalls(ctx, db.ToolCallsParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		AfterSeq: options.AfterSeq, Scope: s.scope,
	})
	return listOf(rows, err, toolCallOf)
}

func (s *Store) runToolCalls(ctx context.Context, threadID string, options ToolCallsOptions) ([]ToolCall, error) {
	rows, err := s.of(threadID).RunToolCalls(ctx, db.RunToolCallsParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time), Scope: s.scope,
	})
	if err != nil {
		return nil, ErrorOf(err)
	}
	calls := make([]ToolCall, 0, len(rows))
	for _, row := range rows {
		if call := toolCallOf(db.ToolCallsRow(row)); call.FirstSeq > options.AfterSeq {
			calls = append(calls, call)
		}
	}
	return calls, nil
}

func toolCallOf(row db.ToolCallsRow) ToolCall {
	return ToolCall{
		ID: row.ToolCallID, Name: row.Name, Arguments: row.Arguments, ArgumentsJSON: json.RawMessage(row.ArgumentsJson),
		Result: json.RawMessage(row.Result), ParentMessageID: row.ParentMessageID, RunID: row.RunID,
		FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, EndedAt: row.EndedAt, Status: ToolCallStatus(row.Status),
	}
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

// Activities returns the activities of a conversation at a point of a thread, in the order of the
// conversation. It reads the log of the lineage.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Activities(ctx context.Context, threadID string, at At) ([]Activity, error) {
	rows, err := s.of(threadID).Activities(ctx, db.ActivitiesParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return listOf(rows, err, func(row db.ActivitiesRow) Activity {
		return Activity{
			MessageID: row.MessageID, Type: row.ActivityType, Content: json.RawMessage(row.Content), RunID: row.RunID,
			FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, UpdatedAt: row.UpdatedAt,
		}
	})
}

// SessionMessage is a message in the form that legacy sessions had before AG-UI.
type SessionMessage struct {
	// Seq is the seq of the event that brought it.
	Seq int64 `json:"seq"`
	// Type is user, assistant, tool_use, tool_result, system or error.
	Type string `json:"type"`
	// MessageID is the AG-UI message that it is, or is a part of. Empty for an error.
	MessageID string    `json:"messageId,omitempty"`
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	// JSON is {content} for user, assistant and system, {id, name, input} for tool_use,
	// {tool_use_id, content} for tool_result, {message, code} for error.
	JSON json.RawMessage `json:"payload"`
}

// SessionMessagesOptions say which messages SessionMessages returns. The zero value is those of the
// head's lineage.
type SessionMessagesOptions struct {
	At At
	// AfterSeq is a cursor: only messages whose event has a greater seq.
	AfterSeq int64
}

// SessionMessages returns a conversation at a point of a thread as the six types of messages that
// legacy sessions had before AG-UI, in the order of the events that brought them. Reasoning and
// activities have no type there. It reads the log of the lineage.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) SessionMessages(ctx context.Context, threadID string, options SessionMessagesOptions) ([]SessionMessage, error) {
	rows, err := s.of(threadID).SessionMessages(ctx, db.SessionMessagesParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		AfterSeq: options.AfterSeq, Scope: s.scope,
	})
	return listOf(rows, err, func(row db.SessionMessagesRow) SessionMessage {
		return SessionMessage{
			Seq: row.Seq, Type: row.Type, MessageID: row.MessageID, RunID: row.RunID, CreatedAt: row.CreatedAt, JSON: json.RawMessage(row.Payload),
		}
	})
}
