package pgagui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// EventsShape is the shape of a history that is the events themselves, as they were appended.
// AttachOptions alone take it.
const EventsShape compaction.Shape = "events"

// AttachOptions say which history Attach returns. The zero value is that of the head, as a
// snapshot.
type AttachOptions struct {
	// At is the run to attach to, and where its history ends.
	At At
	// Shape is the form of the history. compaction.SnapshotShape (if empty): the events that Replay
	// returns, which a client can take although it has seen some of them. compaction.StreamShape:
	// the compacted stream. EventsShape: the events.
	Shape compaction.Shape
	// AfterSeq leaves out the events up to this seq. For EventsShape only.
	AfterSeq int64
}

// CustomEvents says whose CUSTOM events a history repeats.
type CustomEvents string

// The runs whose CUSTOM events AttachPart repeats.
const (
	CustomOfHead    CustomEvents = "head"    // the run that is attached to
	CustomOfLineage CustomEvents = "lineage" // with its ancestors
	CustomOfNone    CustomEvents = "none"
)

// PartBytes is the size of a part of a history, in bytes, if PartOptions names none.
const PartBytes = 8 << 20

// PartOptions say which part of a history AttachPart returns. The zero value is the first part of
// that of the head.
type PartOptions struct {
	// At is the run, and the seq where its history ends. At.Time must be zero. For the parts behind
	// the first one, name the run and the seq that the first one returned.
	At At
	// Part counts from 1, which 0 means, too.
	Part int
	// Bytes is the size of a part. PartBytes if zero.
	Bytes int
	// Custom says whose CUSTOM events the last part repeats. CustomOfHead if empty.
	Custom CustomEvents
}

// Attachment is a conversation at one point in time: its history, and where to follow it from.
type Attachment struct {
	// RunID is the run that was attached to, and Status its status now. Both are empty if the thread
	// does not exist yet.
	RunID  string
	Status Status
	// Running names the runs of the thread that are in progress now. Events contains only those of
	// RunID's lineage.
	Running []string
	// Position is where to continue: FollowOptions.After.
	Position Position
	// Events is the history of the run's lineage up to Position. What is open there stays open, so
	// the next events join it.
	Events []json.RawMessage
	// NextPart is the number of the part behind this one (AttachPart). 0: there is none.
	NextPart int
}

// Attach returns the history of a conversation and the position behind it, in one consistent call.
// A server sends it to a client that connects, and then follows the thread. For a thread that does
// not exist yet it returns an empty history and the zero position.
//
// Errors: ErrUnknownThread if a run or AfterSeq is given; ErrUnknownRun; ErrUnknownShape, also for
// AfterSeq with another shape than EventsShape; ErrLogRewound if the log ends before AfterSeq;
// ErrInvalidEvents (a log that is no stream); ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Attach(ctx context.Context, threadID string, options AttachOptions) (*Attachment, error) {
	attachment, err := s.attach(ctx, threadID, options, false)
	return attachment, ErrorOf(err)
}

// attach is Attach without the conversion of the error. With allRuns the history ends where the first
// of several runs in progress began.
func (s *Store) attach(ctx context.Context, threadID string, options AttachOptions, allRuns bool) (*Attachment, error) {
	options.Shape = cmp.Or(options.Shape, compaction.SnapshotShape)
	row, err := s.of(threadID).Attach(ctx, db.AttachParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		AllRuns: allRuns, AfterSeq: options.AfterSeq, Shape: string(options.Shape), Scope: s.scope,
	})
	return attachmentOf(threadID, db.AttachPartRow{
		RunID: row.RunID, Status: row.Status, Running: row.Running, Seq: row.Seq, RecordedAt: row.RecordedAt, Events: row.Events,
	}, err)
}

// AttachPart returns one part of what Attach returns as a snapshot. A part is small, although a
// conversation may be large: a server needs little memory, and no event is larger than the official
// client takes, unless one message is. A client that applies all parts in their order has exactly the
// stored messages and state. Call it for the first part, then for the others (Attachment.NextPart).
//
// If a message or a value of the state is larger than a client takes, the last part ends with
// RUN_ERROR, whose code is MESSAGE_TOO_LARGE, STATE_TOO_LARGE or MESSAGE_NOT_SENT.
//
// Errors: ErrUnknownThread if a run is given; ErrUnknownRun; ErrInvalidArgument; ErrInvalidEvents (a log that is no stream); ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) AttachPart(ctx context.Context, threadID string, options PartOptions) (*Attachment, error) {
	row, err := s.of(threadID).AttachPart(ctx, db.AttachPartParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), Part: int32(max(options.Part, 1)),
		PartBytes: int32(cmp.Or(options.Bytes, PartBytes)), CustomsOf: string(cmp.Or(options.Custom, CustomOfHead)), Scope: s.scope,
	})
	attachment, err := attachmentOf(threadID, row, err)
	return attachment, ErrorOf(err)
}

func attachmentOf(threadID string, row db.AttachPartRow, err error) (*Attachment, error) {
	if err != nil {
		return nil, err
	}
	events, err := split(row.Events)
	if err != nil {
		return nil, fmt.Errorf("attach to thread %q: %w", threadID, err)
	}
	return &Attachment{
		RunID: row.RunID, Status: Status(row.Status), Running: row.Running, Position: Position{row.Seq, row.RecordedAt}, Events: events, NextPart: int(row.NextPart),
	}, nil
}
