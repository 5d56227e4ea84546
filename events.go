package pgagui

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
)

// Event is an event of the log.
type Event struct {
	// Seq is its place in the log of its thread: 1, 2, 3, … in commit order.
	Seq   int64
	RunID string
	// Type is its type, for example TEXT_MESSAGE_CONTENT.
	Type string
	// RecordedAt is when it was appended.
	RecordedAt time.Time
	// JSON is the event, byte for byte.
	JSON json.RawMessage
}

// Position is where a follower that has seen this event continues.
func (e Event) Position() Position { return Position{e.Seq, e.RecordedAt} }

// IsHeartbeat reports whether this is no event, but what Follow yields after a pause without one
// (FollowOptions.Heartbeat).
func (e Event) IsHeartbeat() bool { return e.JSON == nil }

// EventsOptions say which events of a thread Events yields. The zero value is all events of the
// head's lineage.
type EventsOptions struct {
	// RunID is the run to read at. The head if empty.
	RunID string
	// NoLineage leaves out the ancestors of the run.
	NoLineage bool
	// AfterSeq is a cursor: only events with a greater seq.
	AfterSeq int64
}

// Events yields the events of a run's lineage, in order. It reads a few batches at a time, up to 16
// MB or one batch that is larger, and holds no connection while the caller works. An error ends the
// iteration.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrLogDamaged.
func (s *Store) Events(ctx context.Context, threadID string, options EventsOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		runs, err := s.of(threadID).RunSpans(ctx, db.RunSpansParams{
			ThreadID: threadID, RunID: orNull(options.RunID), Scope: s.scope, Lineage: !options.NoLineage, AfterSeq: options.AfterSeq,
		})
		if err != nil {
			yield(Event{}, ErrorOf(err))
			return
		}
		for _, run := range runs {
			if Status(run.Status) != Running && run.LastSeq <= options.AfterSeq {
				continue
			}
			for event, err := range s.runEvents(ctx, threadID, run, options.AfterSeq) {
				if !yield(event, err) || err != nil {
					return
				}
			}
		}
	}
}

// runEvents yields the events of one run.
func (s *Store) runEvents(ctx context.Context, threadID string, run db.RunSpansRow, afterSeq int64) iter.Seq2[Event, error] {
	const (
		page      = 50
		pageBytes = 16 << 20
	)
	return func(yield func(Event, error) bool) {
		afterSeq := max(run.FirstSeq-1, afterSeq)
		for {
			batches, err := s.of(threadID).Batches(ctx, db.BatchesParams{
				Scope: s.scope, ThreadID: threadID, RunNo: run.RunNo, AfterSeq: afterSeq, Page: page, PageBytes: pageBytes,
			})
			if err != nil {
				yield(Event{}, ErrorOf(err))
				return
			}
			for _, row := range batches {
				batch := live.Batch{
					ThreadID: threadID, RunID: run.RunID, FirstSeq: row.FirstSeq, RecordedAt: row.RecordedAt, EarlierUs: row.EarlierUs, Events: row.Events,
				}
				for event, err := range batch.All() {
					if event.Seq <= afterSeq && err == nil {
						continue
					}
					if err != nil {
						yield(Event{}, unknown(ErrLogDamaged, "%v", err))
						return
					}
					if !yield(Event(event), nil) {
						return
					}
				}
				afterSeq = row.FirstSeq + int64(row.N) - 1
			}
			if len(batches) == 0 || !batches[len(batches)-1].HasMore {
				return
			}
		}
	}
}

// RunInput returns the input that was stored beside the events of a run, byte for byte (see
// AppendOptions.Input); that of the head if run.RunID is empty.
//
// Errors: ErrUnknownInput if there is none: many agents send it in RUN_STARTED. ErrUnknownThread,
// ErrUnknownRun, ErrKeyCollision.
func (s *Store) RunInput(ctx context.Context, run RunRef) (json.RawMessage, error) {
	rows, err := s.of(run.ThreadID).RunInput(ctx, db.RunInputParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	switch {
	case err != nil:
		return nil, ErrorOf(err)
	case len(rows) == 0:
		return nil, unknown(ErrUnknownInput, "run %q of thread %q has no input beside its events", run.RunID, run.ThreadID)
	}
	return json.RawMessage(rows[0]), nil
}
