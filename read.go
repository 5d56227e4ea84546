package pgagui

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// At names a point in a thread. The zero value is the end of the head. Where both Seq and Time are given, the earlier of the two counts.
type At struct {
	// RunID is the run to read at; empty: the head.
	RunID string
	// Seq goes back in time: only the events of the run's lineage up to this one count. 0: all of them.
	Seq int64
	// Time goes back to what had been appended by then. Zero: all of it.
	Time time.Time
}

// Event is an event of the log.
type Event struct {
	// Seq is its place in its thread's log: 1, 2, 3, … in commit order.
	Seq   int64
	RunID string
	// Type is its type, for example TEXT_MESSAGE_CONTENT.
	Type string
	// RecordedAt is when it was appended.
	RecordedAt time.Time
	// Payload holds its very bytes.
	Payload json.RawMessage
}

// Message is a message of a conversation.
type Message struct {
	ID   string // empty: it has none
	Role string
	// Body is the message as AG-UI clients know it.
	Body json.RawMessage
}

// Restored is all that a UI needs to show a conversation again.
type Restored struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	// Seq is that of the last event in it: follow the thread from there.
	Seq        int64             `json:"seq"`
	Status     Status            `json:"status"`
	Messages   []json.RawMessage `json:"messages"`
	State      json.RawMessage   `json:"state"`
	Interrupts []json.RawMessage `json:"interrupts"`

	// Document is the whole as one JSON object, as the database wrote it. Messages, State and Interrupts are parts of it.
	Document json.RawMessage `json:"-"`
}

// Problem is something that Verify found.
type Problem struct {
	RunID   string `json:"runId,omitempty"` // empty: no run can be named
	Problem string `json:"problem"`
	// Severity tells damage from what an agent or its writer did against the protocol.
	Severity Severity `json:"severity"`
}

// Severity says how bad a Problem is.
type Severity string

const (
	// Damage is what the database should not hold.
	Damage Severity = "damage"
	// Note is what an agent or its writer did against the protocol: it is kept as it was appended.
	Note Severity = "note"
)

// Restore returns messages, state and interrupts as they stood at a point of a thread. It reads the nearest snapshot and folds
// what follows it, so it costs about what it returns. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) Restore(ctx context.Context, threadID string, at At) (*Restored, error) {
	document, err := s.queries.Restore(ctx, db.RestoreParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	restored := &Restored{Document: json.RawMessage(document)}
	if err := restored.read(document); err != nil {
		return nil, fmt.Errorf("restore thread %q: %w", threadID, err)
	}
	return restored, nil
}

// read takes the document apart without a copy. A conversation is large, and encoding/json would take longer than the database.
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

// Messages returns the conversation as it stood at a point of a thread. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) Messages(ctx context.Context, threadID string, at At) ([]Message, error) {
	rows, err := s.queries.Messages(ctx, db.MessagesParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	messages := make([]Message, len(rows))
	for i, row := range rows {
		messages[i] = Message{ID: row.MessageID, Role: row.Role, Body: json.RawMessage(row.Message)}
	}
	return messages, nil
}

// State returns the state that agent and UI shared at a point of a thread. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) State(ctx context.Context, threadID string, at At) (json.RawMessage, error) {
	state, err := s.queries.State(ctx, db.StateParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return json.RawMessage(state), refusal(err)
}

// Interrupts returns the interrupts that waited for an answer at a point of a thread, as a JSON array.
// Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) Interrupts(ctx context.Context, threadID string, at At) (json.RawMessage, error) {
	interrupts, err := s.queries.Interrupts(ctx, db.InterruptsParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return json.RawMessage(interrupts), refusal(err)
}

// EventsOptions says which events of a thread Events yields. The zero value is all events of the head's lineage.
type EventsOptions struct {
	// RunID is the run to read at; empty: the head.
	RunID string
	// NoLineage leaves out the runs that it goes on from: its own events alone.
	NoLineage bool
	// AfterSeq is where to begin: behind this seq.
	AfterSeq int64
}

// Events yields the events of a run's lineage, in order. They are read a few batches at a time, up to 16 MB or one batch that is larger, so no connection is
// held while the caller works. An error ends the iteration: ErrUnknownThread, ErrUnknownRun, or one of the connection.
func (s *Store) Events(ctx context.Context, threadID string, options EventsOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lineage, err := s.Lineage(ctx, threadID, options.RunID)
		if err != nil {
			yield(Event{}, err)
			return
		}
		if options.NoLineage {
			lineage = lineage[len(lineage)-1:]
		}
		for _, run := range lineage {
			if run.Status != Running && run.LastSeq <= options.AfterSeq {
				continue
			}
			for event, err := range s.RunEvents(ctx, threadID, run, options.AfterSeq) {
				if !yield(event, err) || err != nil {
					return
				}
			}
		}
	}
}

// RunEvents yields the events of one run, which Runs or Lineage returned, behind afterSeq, in order. An error ends the iteration.
func (s *Store) RunEvents(ctx context.Context, threadID string, run Run, afterSeq int64) iter.Seq2[Event, error] {
	const (
		page      = 50
		pageBytes = 16 << 20
	)
	return func(yield func(Event, error) bool) {
		afterSeq := max(run.FirstSeq-1, afterSeq)
		for {
			batches, err := s.queries.Batches(ctx, db.BatchesParams{
				Scope: s.scope, ThreadID: threadID, RunNo: int32(run.Number), AfterSeq: afterSeq, Page: page, PageBytes: pageBytes,
			})
			if err != nil {
				yield(Event{}, refusal(err))
				return
			}
			for _, row := range batches {
				batch := batch{threadID, run.ID, row.FirstSeq, row.RecordedAt, row.EarlierUs, row.Events}
				for event, err := range batch.all() {
					if event.Seq <= afterSeq && err == nil {
						continue
					}
					if !yield(event, err) || err != nil {
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

// batch is a row of the log: events of a run.
type batch struct {
	threadID, runID string
	firstSeq        int64
	recordedAt      time.Time
	earlierUs       []int32
	events          []byte
}

// all yields the events of the batch. Their payloads are parts of it.
func (b *batch) all() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seq := b.firstSeq
		for payload, err := range compaction.Split(b.events) {
			if err != nil {
				yield(Event{}, fmt.Errorf("thread %q, batch at seq %d: %w", b.threadID, b.firstSeq, err))
				return
			}
			event := Event{Seq: seq, RunID: b.runID, Type: compaction.EventType(payload), RecordedAt: b.recordedAt, Payload: payload}
			if len(b.earlierUs) > 0 { // joined from several
				event.RecordedAt = event.RecordedAt.Add(-time.Duration(b.earlierUs[seq-b.firstSeq]) * time.Microsecond)
			}
			if !yield(event, nil) {
				return
			}
			seq++
		}
	}
}

// Replay returns a short stream of events that gives any AG-UI client what a conversation meant at a point of a thread: in the shape
// compaction.SnapshotShape messages and state, from the nearest snapshot, in compaction.StreamShape the lineage's events, compacted. What is
// open there stays open. Errors: ErrUnknownThread, ErrUnknownRun, ErrUnknownShape.
func (s *Store) Replay(ctx context.Context, threadID string, at At, shape compaction.Shape) ([]json.RawMessage, error) {
	rows, err := s.queries.Replay(ctx, db.ReplayParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Shape: string(shape), Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	events := make([]json.RawMessage, len(rows))
	for i, event := range rows {
		events[i] = json.RawMessage(event)
	}
	return events, nil
}

// FoldLimits returns the limits of folds in this database (docs/settings.md), for programs that fold events themselves.
func (s *Store) FoldLimits(ctx context.Context) (compaction.Limits, error) {
	row, err := s.queries.FoldLimits(ctx)
	return compaction.Limits{
		DocumentBytes:     row.DocumentBytes,
		DocumentDepth:     int(row.DocumentDepth),
		PatchOperations:   int(row.PatchOperations),
		PatchCopiedBytes:  row.PatchCopiedBytes,
		PatchShiftedItems: row.PatchShiftedItems,
		FoldBytes:         row.FoldBytes,
		FoldMessages:      int(row.FoldMessages),
		FoldLanes:         int(row.FoldLanes),
		FoldFuel:          row.FoldFuel,
	}, refusal(err)
}

// Verify checks a thread: its log, the tree of its runs, and every snapshot against a fold of the raw log. No problem that is Damage means
// that all is well. jobs.Verify does it for many threads, and several times faster. Errors: ErrUnknownThread.
func (s *Store) Verify(ctx context.Context, threadID string) ([]Problem, error) {
	rows, err := s.queries.Verify(ctx, db.VerifyParams{ThreadID: threadID, Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	problems := make([]Problem, len(rows))
	for i, row := range rows {
		problems[i] = Problem{RunID: row.RunID, Problem: row.Problem, Severity: Severity(row.Severity)}
	}
	return problems, nil
}

// RebuildSnapshots makes the snapshots of a thread again from its log, which stays as it is, and returns how many there are now. It puts
// right what Verify finds wrong with snapshots. Errors: ErrUnknownThread, and ErrLogDamaged when Verify finds something wrong with the log
// itself: nothing is touched then, for a snapshot may hold what the log has lost.
func (s *Store) RebuildSnapshots(ctx context.Context, threadID string) (int, error) {
	snapshots, err := s.queries.RebuildSnapshots(ctx, db.RebuildSnapshotsParams{ThreadID: threadID, Scope: s.scope})
	return int(snapshots), refusal(err)
}
