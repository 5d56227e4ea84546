package core

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/door"
)

// This file says which events of a run the folds of the log skip: the streams leave them out, or a page would show what is gone after a
// reload. Only a fold can say so. A run is folded when the first of its events is in doubt, once for all of its streams.

// foldedRuns are the runs that streams have in doubt.
type foldedRuns struct {
	mu  sync.Mutex
	all map[foldedName]*foldedRun
}

type foldedName struct{ scope, threadID, runID string }

// of returns a run for a stream, which must release it.
func (f *foldedRuns) of(name foldedName) *foldedRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.all[name]
	if run == nil {
		run = &foldedRun{name: name, reasons: map[int64]string{}}
		f.all[name] = run
	}
	run.users++
	return run
}

func (f *foldedRuns) release(run *foldedRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if run.users--; run.users > 0 {
		return
	}
	delete(f.all, run.name)
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.held != nil {
		run.held.Release()
	}
}

// A foldedRun is the fold of a run, as far as a stream has come.
type foldedRun struct {
	name  foldedName
	users int // guarded by foldedRuns

	mu      sync.Mutex
	fold    *compaction.Fold // nil: none yet
	err     error            // why there is none
	seq     int64            // of the last event in it
	taken   int              // events since it was measured
	reasons map[int64]string // by the seqs of the events that it skips
	noted   []int64          // those that are in the log of the server
	held    *door.Holding
}

const (
	measuredEvery = 256 // events
	notedReasons  = 10  // of a run, in the log of the server
)

// take gives the fold the next event, if it has come to the one before.
func (r *foldedRun) take(previous, seq int64, event json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fold != nil && r.seq == previous && seq > previous {
		r.apply(seq, event)
	}
}

func (r *foldedRun) apply(seq int64, event json.RawMessage) {
	r.fold.Locate(r.name.runID, seq)
	r.fold.Apply(event)
	r.seq = seq
	if reason := r.fold.Skipped(); reason != "" {
		r.reasons[seq] = reason
	}
	if r.taken++; r.taken >= measuredEvery {
		r.measure()
	}
}

// measure takes memory for the fold. Without it there is no fold: a page then gets what it would get from the agent.
func (r *foldedRun) measure() {
	r.taken = 0
	if r.err = r.held.Resize(int(compaction.MemorySize(r.fold))); r.err != nil {
		r.fold = nil
		r.held.Release()
	}
}

// reasonAt returns why the folds skip an event, or nothing. It reads the log as far as the fold has not come yet. isNew says that no
// stream has requested it before.
func (r *foldedRun) reasonAt(ctx context.Context, s *Stream, seq int64, event json.RawMessage) (reason string, isNew bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && r.fold == nil {
		r.held = s.server.Memory.Hold(ctx)
		if err := r.begin(ctx, s.from); err != nil {
			r.fold = nil
			return "", false, err // another stream may retry
		}
		r.measure()
	}
	if r.err != nil {
		return "", false, r.err
	}
	if r.seq < seq {
		options := pgagui.EventsOptions{RunID: r.name.runID, NoLineage: true, AfterSeq: r.seq}
		for stored, err := range s.from.Events(ctx, r.name.threadID, options) {
			if err != nil {
				return "", false, err
			}
			if stored.Seq >= seq || r.fold == nil {
				break
			}
			r.apply(stored.Seq, stored.JSON)
		}
		if r.fold != nil {
			r.apply(seq, event)
		}
	}
	reason = r.reasons[seq]
	if isNew = reason != "" && len(r.noted) < notedReasons && !slices.Contains(r.noted, seq); isNew {
		r.noted = append(r.noted, seq)
	}
	return reason, isNew, nil
}

// begin folds what the run began with: its first event, on what came before. Of messages it keeps only what tells whether pieces and patches
// have an effect.
func (r *foldedRun) begin(ctx context.Context, from Tenant) error {
	run, err := from.Status(ctx, pgagui.RunRef{ThreadID: r.name.threadID, RunID: r.name.runID})
	if err != nil {
		return err
	}
	limits, err := from.Maintenance().FoldLimits(ctx)
	if err != nil {
		return err
	}
	restored, err := from.Restore(ctx, r.name.threadID, pgagui.At{RunID: r.name.runID, Seq: run.FirstSeq})
	if err != nil {
		return err
	}
	snapshot := compaction.Snapshot{State: restored.State, Interrupts: json.RawMessage("[]")}
	for _, message := range restored.Messages {
		var kept struct {
			ID        *string    `json:"id,omitempty"`
			Role      string     `json:"role"`
			ToolCalls []keptCall `json:"toolCalls,omitempty"`
		}
		if json.Unmarshal(message, &kept) == nil && kept.Role != "activity" {
			message, _ = json.Marshal(kept)
		}
		snapshot.Messages = append(snapshot.Messages, compaction.StoredMessage{Body: message})
	}
	if r.fold, err = compaction.Resume(snapshot); err != nil {
		return fmt.Errorf("run %q: %w", r.name.runID, err)
	}
	r.fold.SetLimits(limits)
	r.seq = run.FirstSeq
	return nil
}

// keptCall is what such a fold keeps of a call.
type keptCall struct {
	ID       string `json:"id"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// examine notes the event that the filter takes next, and returns it with what it means to all who read the log: clients make ids of
// their own for thinking, or show nothing, and some show old parts of messages as they are written. Events of a history have no seq.
func (s *Stream) examine(event json.RawMessage, seq int64) json.RawMessage {
	s.event = compaction.ListsAsRead(s.thinking.AsReasoning(event, s.runID, seq))
	if s.folded != nil && seq > 0 {
		s.folded.take(s.seq, seq, s.event)
	}
	s.seq = seq
	return s.event
}

// consult makes the filter ask the fold of the run at hand.
func (s *Stream) consult(ctx context.Context) {
	s.filter.Consult(func([]byte) bool { return s.skips(ctx) })
}

// skips reports whether the folds skip the event at hand.
func (s *Stream) skips(ctx context.Context) bool {
	if s.seq == 0 {
		return false
	}
	if s.folded == nil {
		s.folded = s.server.folded.of(foldedName{s.from.scope, s.ThreadID, s.runID})
	}
	reason, isNew, err := s.folded.reasonAt(ctx, s, s.seq, s.event)
	log := s.server.Options.Logger.With("thread", s.ThreadID, "run", s.runID, "seq", s.seq)
	switch {
	case err != nil && ctx.Err() == nil:
		log.Warn("an event was sent that may have no effect after a reload: its run could not be folded", "error", err)
	case isNew:
		log.Warn("an event has no effect, so pages do not get it", "type", compaction.EventType(s.event), "reason", reason)
	}
	return reason != ""
}

// forget releases the fold of the run at hand.
func (s *Stream) forget() {
	if s.folded != nil {
		s.server.folded.release(s.folded)
		s.folded = nil
	}
}
