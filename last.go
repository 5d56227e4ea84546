package pgagui

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/pgagui/pgagui/db"
)

// This file reads a thread from its end, a page at a time: what a screen shows first.

// PlacedMessage is a message of a conversation and its place in the log.
type PlacedMessage struct {
	// Position is its place in the conversation, from 1.
	Position int
	Message
	MessagePlace
	// Calls are the tool calls in the message that have events of their own in the same run, in the
	// order in which they began. The result of a call is a message with a place of its own.
	Calls []ToolCallPlace
	// Cursor continues before the message (LastMessagesOptions.Cursor).
	Cursor string
}

// MessagePlace is where the log has a message. It is zero if the message has no id.
type MessagePlace struct {
	// RunID is the run that brought the message.
	RunID string
	// FirstSeq is the seq of the event that brought it: its start, or that of the list of messages
	// that has it. If an input stored beside the events has it, that is RUN_STARTED, or else the first
	// event of the run.
	FirstSeq int64
	// LastSeq is the seq of the last event of that run that is about the message, such as its end or
	// that of a tool call in it.
	LastSeq int64
	// StartedAt and UpdatedAt are the timestamps of the two events, or when they were appended if they
	// have none.
	StartedAt, UpdatedAt time.Time
}

// ToolCallPlace is where the log has a tool call, without its result.
type ToolCallPlace struct {
	ID        string    `json:"toolCallId"`
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq"`
	StartedAt time.Time `json:"startedAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// LastMessagesOptions say which messages LastMessages returns. The zero value is the last 100 of the
// head.
type LastMessagesOptions struct {
	At At
	// Cursor is PlacedMessage.Cursor of the first message of the page behind this one. Empty: the end
	// of the conversation.
	Cursor string
	// Limit is the maximum number of messages. 100 if zero; more than 1,000 is ErrLimitExceeded.
	Limit int
}

// LastMessages returns the last messages of a conversation at a point of a thread, or those before a
// cursor, in order, with their places. The page whose first message has Position 1 is the beginning.
// After a run that has ended and was compacted, it reads the messages of the page, and the log of the
// runs that brought them, however long the conversation is.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded, ErrInvalidArgument (not a cursor),
// ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) LastMessages(ctx context.Context, threadID string, options LastMessagesOptions) ([]PlacedMessage, error) {
	rows, err := s.of(threadID).LastMessages(ctx, db.LastMessagesParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		Cursor: orNull(options.Cursor), MaxRows: pageSize(options.Limit, 100), Scope: s.scope,
	})
	if err != nil {
		return nil, ErrorOf(err)
	}
	messages := make([]PlacedMessage, len(rows))
	for i, row := range rows {
		messages[i] = PlacedMessage{
			Position: int(row.Position),
			Message:  Message{ID: row.MessageID, Role: row.Role, JSON: json.RawMessage(row.Message)},
			MessagePlace: MessagePlace{
				RunID: row.RunID, FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, UpdatedAt: row.UpdatedAt,
			},
			Cursor: row.Cursor,
		}
		if row.Calls != nil {
			if err := json.Unmarshal(row.Calls, &messages[i].Calls); err != nil {
				return nil, fmt.Errorf("messages of thread %q: the places of tool calls: %w", threadID, err)
			}
		}
	}
	return messages, nil
}

// LastEventsOptions say which events LastEvents returns. The zero value is the last 100 of the head's
// lineage.
type LastEventsOptions struct {
	// RunID is the run to read at. The head if empty.
	RunID string
	// NoLineage leaves out the ancestors of the run.
	NoLineage bool
	// AtSeq is the greatest seq. No bound if zero. For the page before another one, it is the seq of
	// that page's first event minus 1, if that is not 0.
	AtSeq int64
	// Types narrows it to events of these types. All if empty.
	Types []string
	// Limit is the maximum number of events. 100 if zero; more than 1,000 is ErrLimitExceeded.
	Limit int
}

// LastEvents returns the last events of the lineage of a run, or of the run alone, up to a seq, in the
// order of seq. Fewer than the limit are the first ones. It reads the log backwards as far as the page
// needs; a page of a rare type may read all of it.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded, ErrKeyCollision.
func (s *Store) LastEvents(ctx context.Context, threadID string, options LastEventsOptions) ([]Event, error) {
	page, err := s.LastEventPage(ctx, threadID, options, 0)
	return page.Events, err
}

// EventPage is a page of the last events of a lineage.
type EventPage struct {
	// Events are in the order of seq.
	Events []Event
	// HasMore is false if there are none before them. A page before one with HasMore may be empty.
	HasMore bool
}

// LastEventPage is LastEvents with a bound of the bytes of the events: there is one at least. No bound if pageBytes is zero.
//
// Errors: those of LastEvents.
func (s *Store) LastEventPage(ctx context.Context, threadID string, options LastEventsOptions, pageBytes int) (page EventPage, err error) {
	parameters := db.LastEventsParams{
		ThreadID: threadID, RunID: orNull(options.RunID), AtSeq: orNull(options.AtSeq), MaxRows: pageSize(options.Limit, 100),
		Lineage: !options.NoLineage, PageBytes: orNull(int32(min(pageBytes, math.MaxInt32))), Scope: s.scope,
	}
	if len(options.Types) > 0 {
		parameters.Types = options.Types
	}
	rows, err := s.of(threadID).LastEvents(ctx, parameters)
	if err != nil {
		return page, ErrorOf(err)
	}
	page.HasMore = len(rows) >= int(parameters.MaxRows)
	if last := len(rows) - 1; last >= 0 && rows[last].Seq == 0 {
		rows, page.HasMore = rows[:last], true
	}
	page.Events = make([]Event, len(rows))
	for i, row := range rows {
		page.Events[i] = Event{Seq: row.Seq, RunID: row.RunID, Type: row.Type, RecordedAt: row.RecordedAt, JSON: json.RawMessage(row.Payload)}
	}
	return page, nil
}

// ThreadErrorKind says what went wrong.
type ThreadErrorKind string

// A run ended with an error, or was cut off or cancelled; or the result of a tool call is an error.
const (
	RunFailed    ThreadErrorKind = "failed"
	RunCutOff    ThreadErrorKind = "cut_off"
	RunCancelled ThreadErrorKind = "cancelled"
	ToolFailed   ThreadErrorKind = "tool"
)

// ThreadError is something that went wrong in a thread.
type ThreadError struct {
	// Seq is the seq of the event that says so: the end of the run, or the result of the call. For a
	// result that the client sent, it is the beginning of the run whose input has it.
	Seq   int64           `json:"seq"`
	RunID string          `json:"runId"`
	Kind  ThreadErrorKind `json:"kind"`
	// RunEnd says why the run ended. Of a tool call, ErrorMessage is what failed, in up to 1,000
	// characters.
	RunEnd
	// ToolCallID and Tool are the call and the name of its function. Tool is empty if neither the run
	// nor its parent made the call.
	ToolCallID string    `json:"toolCallId,omitempty"`
	Tool       string    `json:"tool,omitempty"`
	RecordedAt time.Time `json:"recordedAt"` // when the event was appended
}

// LastErrorsOptions say which errors LastErrors returns. The zero value is the last 100 of the thread.
type LastErrorsOptions struct {
	// RunID narrows it to the lineage of a run. If empty, all runs of the thread, on all branches.
	RunID string
	// NoLineage narrows it to the run alone, or to the head if RunID is empty.
	NoLineage bool
	// AtSeq is the greatest seq. No bound if zero. For the next page, it is ErrorPage.NextSeq.
	AtSeq int64
	// Limit is the maximum number of errors, but for those of one seq. 100 if zero; more than 1,000 is
	// ErrLimitExceeded.
	Limit int
}

// ErrorPage is a page of the errors of a thread.
type ErrorPage struct {
	// Errors are in the order of seq.
	Errors []ThreadError `json:"errors"`
	// NextSeq is LastErrorsOptions.AtSeq of the page before this one. 0: there is none. A page that has
	// one may be empty.
	NextSeq int64 `json:"nextSeq,omitzero"`
}

// LastErrors returns the last errors of a thread: runs that failed, were cut off or were cancelled, and
// tool calls whose result is an error, as in Facts. Of runs that pgagui project has read, it reads the
// log only where a tool call failed; of the others it reads the log, of up to 200 runs for a page.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded, ErrKeyCollision.
func (s *Store) LastErrors(ctx context.Context, threadID string, options LastErrorsOptions) (ErrorPage, error) {
	rows, err := s.of(threadID).LastErrors(ctx, db.LastErrorsParams{
		ThreadID: threadID, RunID: orNull(options.RunID), AtSeq: orNull(options.AtSeq), MaxRows: pageSize(options.Limit, 100),
		Lineage: !options.NoLineage, Scope: s.scope,
	})
	if err != nil {
		return ErrorPage{}, ErrorOf(err)
	}
	page := ErrorPage{Errors: []ThreadError{}}
	for _, row := range rows {
		page.NextSeq = row.NextSeq
		if row.Seq == 0 {
			continue // the page has no errors
		}
		page.Errors = append(page.Errors, ThreadError{
			Seq: row.Seq, RunID: row.RunID, Kind: ThreadErrorKind(row.Kind),
			RunEnd:     RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason},
			ToolCallID: row.ToolCallID, Tool: row.Tool, RecordedAt: row.RecordedAt,
		})
	}
	return page, nil
}
