package live

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/pgagui/pgagui/compaction"
)

// Key names a thread.
type Key struct{ Scope, ThreadID string }

// Event is an event of the log. Its fields are those of the package's public type.
type Event struct {
	Seq        int64
	RunID      string
	Type       string
	RecordedAt time.Time
	JSON       json.RawMessage
}

// Position is where a follower that has seen the event continues.
func (e Event) Position() Position { return Position{e.Seq, e.RecordedAt} }

// Position is a place in the log of a thread: that of the last event seen. Its fields are those of
// the package's public type.
type Position struct {
	Seq        int64
	RecordedAt time.Time // zero: not known
}

// Batch is a row of the log: events of a run.
type Batch struct {
	ThreadID, RunID string
	FirstSeq        int64
	RecordedAt      time.Time
	EarlierUs       []int32
	Events          []byte
}

// All yields the events of the batch. Their JSON is a part of the batch's.
func (b *Batch) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seq := b.FirstSeq
		for event, err := range compaction.Split(b.Events) {
			if err != nil {
				yield(Event{}, fmt.Errorf("thread %q, batch at seq %d: %w", b.ThreadID, b.FirstSeq, err))
				return
			}
			event := Event{Seq: seq, RunID: b.RunID, Type: compaction.EventType(event), RecordedAt: b.RecordedAt, JSON: event}
			if len(b.EarlierUs) > 0 { // repack has joined several batches
				if seq-b.FirstSeq >= int64(len(b.EarlierUs)) {
					yield(Event{}, fmt.Errorf("thread %q, batch at seq %d: it has times of %d events only", b.ThreadID, b.FirstSeq, len(b.EarlierUs)))
					return
				}
				event.RecordedAt = event.RecordedAt.Add(-time.Duration(b.EarlierUs[seq-b.FirstSeq]) * time.Microsecond)
			}
			if !yield(event, nil) {
				return
			}
			seq++
		}
	}
}
