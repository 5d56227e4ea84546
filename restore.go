package pgagui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Message is a message of a conversation.
type Message struct {
	ID   string // empty: it has none
	Role string
	// JSON is the message in the form that AG-UI clients use.
	JSON json.RawMessage
}

// Restored is all that a UI needs to show a conversation.
type Restored struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	// Seq is the seq of the last event in it. Position{Seq: Seq} is where to follow the thread from.
	Seq        int64             `json:"seq"`
	Status     Status            `json:"status"`
	Messages   []json.RawMessage `json:"messages"`
	State      json.RawMessage   `json:"state"`
	Interrupts []json.RawMessage `json:"interrupts"`

	// JSON is the whole as one JSON object, as the database wrote it. Messages, State and
	// Interrupts are parts of it.
	JSON json.RawMessage `json:"-"`
}

// Restore returns messages, state and interrupts at a point of a thread. It reads the nearest
// snapshot and folds what follows it, so its cost is that of its result.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Restore(ctx context.Context, threadID string, at At) (*Restored, error) {
	document, err := s.of(threadID).Restore(ctx, db.RestoreParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	if err != nil {
		return nil, ErrorOf(err)
	}
	restored := &Restored{JSON: json.RawMessage(document)}
	if err := restored.read(document); err != nil {
		return nil, fmt.Errorf("restore thread %q: %w", threadID, err)
	}
	return restored, nil
}

// read takes the document apart without a copy. A conversation is large, and encoding/json would
// take longer than the database.
func (r *Restored) read(document []byte) (err error) {
	for name, value := range compaction.Members(document) {
		switch name {
		case "threadId":
			err = json.Unmarshal(value, &r.ThreadID)
		case "runId":
			err = json.Unmarshal(value, &r.RunID)
		case "seq":
			err = json.Unmarshal(value, &r.Seq)
		case "status":
			err = json.Unmarshal(value, &r.Status)
		case "messages":
			r.Messages, err = split(value)
		case "interrupts":
			r.Interrupts, err = split(value)
		case "state":
			r.State = value
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func split(array []byte) ([]json.RawMessage, error) {
	items := []json.RawMessage{}
	for item, err := range compaction.Split(array) {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Messages returns the messages at a point of a thread.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Messages(ctx context.Context, threadID string, at At) ([]Message, error) {
	rows, err := s.of(threadID).Messages(ctx, db.MessagesParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return listOf(rows, err, func(row db.MessagesRow) Message {
		return Message{ID: row.MessageID, Role: row.Role, JSON: json.RawMessage(row.Message)}
	})
}

// State returns the state that agent and UI share, at a point of a thread.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) State(ctx context.Context, threadID string, at At) (json.RawMessage, error) {
	state, err := s.of(threadID).State(ctx, db.StateParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return json.RawMessage(state), ErrorOf(err)
}

// Interrupt is an interrupt that waits for an answer.
type Interrupt struct {
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	Message    string `json:"message,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
	// ExpiresAt is the time in expiresAt. Zero if there is none, or if it is not a time.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Expired is true if ExpiresAt has passed. A client can then no longer answer the interrupt, only
	// cancel it.
	Expired bool `json:"expired"`
	// JSON is the interrupt as the agent sent it, byte for byte.
	JSON json.RawMessage `json:"interrupt"`
}

// Interrupts returns the interrupts that wait for an answer at a point of a thread.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Interrupts(ctx context.Context, threadID string, at At) ([]Interrupt, error) {
	rows, err := s.of(threadID).Interrupts(ctx, db.InterruptsParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return listOf(rows, err, func(row db.InterruptsRow) Interrupt {
		return Interrupt{
			ID: row.InterruptID, Reason: row.Reason, Message: row.Message, ToolCallID: row.ToolCallID, ExpiresAt: row.ExpiresAt, Expired: row.Expired,
			JSON: json.RawMessage(row.Interrupt),
		}
	})
}

// PendingToolCalls returns the ids of the tool calls that a run, or the head if run.RunID is empty,
// has left for the application to answer: those that the outcome of its RUN_FINISHED names
// (pendingToolCallIds), or else those that it began and gave no result, as in the official client.
// Only a run that is Finished has any. If the outcome names none, it reads the events of the run.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) PendingToolCalls(ctx context.Context, run RunRef) (callIDs []string, err error) {
	callIDs, err = s.of(run.ThreadID).PendingToolCalls(ctx, db.PendingToolCallsParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	return callIDs, ErrorOf(err)
}

// MalformedEvent is an event that has no effect: it lacks a field that its type needs, or a fold skips it.
type MalformedEvent struct {
	Seq     int64  `json:"seq"`
	Type    string `json:"type"`
	Problem string `json:"problem"`
}

// MalformedEvents returns the first events of a run, or of the head if run.RunID is empty, that have no effect, because
// they lack a field that their type needs or have it under a name of Python; limit: how many (100 if zero). It reads all
// events of the run.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) MalformedEvents(ctx context.Context, run RunRef, limit int) ([]MalformedEvent, error) {
	rows, err := s.of(run.ThreadID).MalformedEvents(ctx, db.MalformedEventsParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), MaxRows: pageSize(limit, 100), Scope: s.scope,
	})
	return listOf(rows, err, func(row db.MalformedEventsRow) MalformedEvent { return MalformedEvent(row) })
}

// ReplayOptions say what Replay returns. The zero value is the head, as a snapshot.
type ReplayOptions struct {
	At At
	// Shape is compaction.SnapshotShape (if empty): messages and state, from the nearest snapshot.
	// compaction.StreamShape: the compacted stream of the lineage.
	Shape compaction.Shape
}

// Replay returns a short stream of events that brings any AG-UI client to a point of a thread. What
// is open there stays open.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrInvalidEvents (a log that is no stream),
// ErrKeyCollision, ErrUnknownShape, ErrQuarantined, ErrFoldLimit.
func (s *Store) Replay(ctx context.Context, threadID string, options ReplayOptions) ([]json.RawMessage, error) {
	options.Shape = cmp.Or(options.Shape, compaction.SnapshotShape)
	rows, err := s.of(threadID).Replay(ctx, db.ReplayParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		Shape: string(options.Shape), Scope: s.scope,
	})
	return listOf(rows, err, func(event rawjson.Text) json.RawMessage { return json.RawMessage(event) })
}

// MessageAttachment is a part of a message that holds data: an image, a file.
type MessageAttachment struct {
	// N is its number in the conversation, from 1.
	N         int    `json:"n"`
	MessageID string `json:"messageId"`
	// Type is what the part calls itself: image, audio, video, document, binary.
	Type string `json:"type"`
	// MIMEType and Filename are what the client said, and may be wrong; empty: it said nothing.
	MIMEType string `json:"mimeType,omitempty"`
	Filename string `json:"filename,omitempty"`
	// Bytes is the size of the decoded data.
	Bytes int64 `json:"bytes"`
}

// Attachments returns what the messages at a point of a thread hold as data. Parts that name a URL are left out.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Attachments(ctx context.Context, threadID string, at At) ([]MessageAttachment, error) {
	rows, err := s.of(threadID).Attachments(ctx, db.AttachmentsParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return listOf(rows, err, func(row db.AttachmentsRow) MessageAttachment {
		return MessageAttachment{
			N: int(row.N), MessageID: row.MessageID, Type: row.Type, MIMEType: row.MimeType, Filename: row.Filename, Bytes: row.Bytes,
		}
	})
}

// AttachmentData returns what the attachment number n of a point of a thread holds.
//
// Errors: ErrUnknownAttachment if there is no such number, or if its text is not base64; ErrUnknownThread, ErrUnknownRun, ErrKeyCollision,
// ErrQuarantined, ErrFoldLimit.
func (s *Store) AttachmentData(ctx context.Context, threadID string, n int, at At) (MessageAttachment, []byte, error) {
	row, err := s.of(threadID).AttachmentData(ctx, db.AttachmentDataParams{
		ThreadID: threadID, N: int32(min(max(n, 0), 1<<31-1)), RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return MessageAttachment{}, nil, unknown(ErrUnknownAttachment, "thread %q has no attachment number %d there", threadID, n)
	case err != nil:
		return MessageAttachment{}, nil, ErrorOf(err)
	case row.Data == nil:
		return MessageAttachment{}, nil, unknown(ErrUnknownAttachment, "the data of attachment number %d of thread %q is not base64", n, threadID)
	}
	return MessageAttachment{
		N: n, MessageID: row.MessageID, Type: row.Type, MIMEType: row.MimeType, Filename: row.Filename, Bytes: int64(len(row.Data)),
	}, row.Data, nil
}
