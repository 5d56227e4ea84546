package pgagui

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// EventsShape is the shape of a history that is the events themselves, as they were appended.
// Attach alone takes it.
const EventsShape compaction.Shape = "events"

// AttachOptions say which history Attach returns. The zero value is that of the head, as a
// snapshot.
type AttachOptions struct {
	// At is the run to attach to, and where its history ends.
	At At
	// Shape is the form of the history. compaction.SnapshotShape, also when empty: what Replay
	// returns, which suits a client that has seen some of it before. compaction.StreamShape: the
	// events, compacted. EventsShape: the events.
	Shape compaction.Shape
	// AfterSeq leaves out the events up to this seq, in EventsShape.
	AfterSeq int64
}

// Attachment is a conversation as of one moment: its history, and where to follow it from.
type Attachment struct {
	// RunID is the run that was attached to, and Status how it is now. Both are empty when the
	// thread is not there yet.
	RunID  string
	Status Status
	// Running names the runs of the thread that are in progress now. What others than RunID have
	// had is not in Events.
	Running []string
	// Position is where to go on: FollowOptions.After.
	Position Position
	// Events is the history of the run's lineage up to Position. What is open there stays open, so
	// the next events join on.
	Events []json.RawMessage
}

// Attach returns the history of a conversation and the position behind it, in one consistent call:
// what a server sends to a client that connects, before it follows. A thread that is not there yet
// is no error: it has no run, no events, and the zero position.
//
// Errors: ErrUnknownThread when a run or AfterSeq is given, ErrUnknownRun, ErrUnknownShape, also
// for AfterSeq with another shape than EventsShape, ErrLogRewound when the log ends before
// AfterSeq.
func (s *Store) Attach(ctx context.Context, threadID string, options AttachOptions) (*Attachment, error) {
	attachment, err := s.attach(ctx, threadID, options, false)
	return attachment, refusal(err)
}

// attach does so, for one who follows all runs where there are several in progress: with the
// history up to where the first of them began.
func (s *Store) attach(ctx context.Context, threadID string, options AttachOptions, allRuns bool) (*Attachment, error) {
	if options.Shape == "" {
		options.Shape = compaction.SnapshotShape
	}
	row, err := s.queries.Attach(ctx, db.AttachParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		AllRuns: allRuns, AfterSeq: options.AfterSeq, Shape: string(options.Shape), Scope: s.scope,
	})
	if err != nil {
		return nil, err
	}
	attachment := &Attachment{RunID: row.RunID, Status: Status(row.Status), Running: row.Running, Position: Position{row.Seq, row.RecordedAt}}
	if attachment.Events, err = split(row.Events); err != nil {
		return nil, fmt.Errorf("attach to thread %q: %w", threadID, err)
	}
	return attachment, nil
}
