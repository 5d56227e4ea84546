package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/db"
)

// ErrClosed is the error of a sender or a run that takes no more events.
var ErrClosed = errors.New("the recording is closed")

// RunConfig names a run, and says how it begins.
type RunConfig struct {
	Key   Key
	RunID string
	// Seq is the last seq of a run that is taken over. 0: the run begins.
	Seq int64
	// Parent is the parent of the run, whatever RUN_STARTED names; a pointer to an empty text makes
	// the run a root.
	Parent   *string
	Input    json.RawMessage
	Parallel bool
	// IsClaimed is true if the run needs heartbeats before it begins.
	IsClaimed bool
	// IsBeginning is true if the caller waits for the beginning: until Begun is called, a failure is
	// neither counted nor logged.
	IsBeginning bool
}

// Run is a run whose events a sender stores. Its methods are safe for concurrent use.
type Run struct {
	sender *Sender
	config RunConfig
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Guarded by the sender's lock.
	pending      []json.RawMessage // not stored yet, in order
	pendingBytes int
	taken, kept  int64         // events that Add took, and those of them that are stored
	seq          int64         // of the last one stored
	hasEnded     bool          // RUN_FINISHED or RUN_ERROR is among what Add took
	failure      error         // what ended it early
	inCall       int           // of the pending events, those that a call under way brings
	changed      chan struct{} // closed at the next change; nil: no call waits for one
	queuedIn     *lane         // nil: it is in no queue
	isAlone      bool          // sent in calls of its own
	isFinishing  bool
	isDetached   bool
}

// Context returns a context that ends with that of Sender.Begin, and when the run should stop, has
// failed or is closed. Its cause says why.
func (r *Run) Context() context.Context { return r.ctx }

// RunState is what is known about a run.
type RunState struct {
	// Seq is the seq of the last event that is stored. 0 if none is.
	Seq int64
	// HasEnded is true if the end of the run is among the events that it took.
	HasEnded bool
	// Pending are the events that are not stored.
	Pending []json.RawMessage
	// Failure is what ended the run early.
	Failure error
}

// State returns what is known about the run.
func (r *Run) State() RunState {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	return r.state()
}

func (r *Run) state() RunState {
	return RunState{Seq: r.seq, HasEnded: r.hasEnded, Pending: slices.Clone(r.pending), Failure: r.failure}
}

// Seq returns the seq of the last event that is stored.
func (r *Run) Seq() int64 {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	return r.seq
}

// Add takes events. ends is true if they have the end of the run. If too many events are pending, Add
// waits, at most until ctx ends.
func (r *Run) Add(ctx context.Context, events []json.RawMessage, ends bool) error {
	size := 0
	for _, event := range events {
		size += len(event)
	}
	sender := r.sender
	sender.mu.Lock()
	defer sender.mu.Unlock()
	for {
		if r.failure != nil {
			return r.failure
		}
		if r.isFinishing {
			return fmt.Errorf("%s: %w", r, ErrClosed)
		}
		if len(r.pending) == 0 || r.pendingBytes+size <= sender.config.MaxBufferBytes {
			break
		}
		if err := r.wait(ctx); err != nil {
			return fmt.Errorf("%s: %d events are not stored yet, and the buffer takes no more: %w", r, len(r.pending), err)
		}
	}
	r.pending = append(r.pending, events...)
	r.pendingBytes += size
	r.taken += int64(len(events))
	r.hasEnded = r.hasEnded || ends
	sender.enqueue(r)
	return nil
}

// Flush stores at once what Add took before, and returns when that is done.
func (r *Run) Flush(ctx context.Context) error {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	return r.flush(ctx)
}

func (r *Run) flush(ctx context.Context) error {
	for target := r.taken; r.kept < target; {
		if r.failure != nil {
			return r.failure
		}
		r.sender.hurry(r)
		if err := r.wait(ctx); err != nil {
			return fmt.Errorf("%s: %d events are not stored: %w", r, target-r.kept, err)
		}
	}
	return r.failure
}

// Finish flushes the run, which takes no more events, and waits for the answer to a call under way:
// it says which events are stored. It returns the state of the run, and the error of the flush.
func (r *Run) Finish(ctx context.Context) (RunState, error) {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	r.isFinishing = true
	err := r.flush(ctx)
	for err == nil || r.failure != nil {
		if r.inCall == 0 || r.sender.background.Err() != nil || r.wait(ctx) != nil {
			break
		}
	}
	return r.state(), err
}

// Forget drops the pending events, which are stored elsewhere.
func (r *Run) Forget() {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	r.pending, r.pendingBytes = nil, 0
}

// Begun says that the caller does not wait for the beginning any more.
func (r *Run) Begun() {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	r.config.IsBeginning = false
}

// Fail ends the run early, and reports whether it had not failed before. The pending events stay.
func (r *Run) Fail(err error) (isFirst bool) {
	r.sender.mu.Lock()
	defer r.sender.mu.Unlock()
	isFirst = r.failure == nil
	r.fail(err)
	return isFirst
}

func (r *Run) String() string {
	return fmt.Sprintf("run %q of thread %q", r.config.RunID, r.config.Key.ThreadID)
}

// The sender calls the methods from here on, with its lock.

// stored records that the first of the pending events, those of a call with this after_seq, are in the log.
func (r *Run) stored(afterSeq int64, events int, answer db.AppendManyRow) {
	if afterSeq != r.seq || events > len(r.pending) {
		r.fail(fmt.Errorf("%s: a call has stored %d events behind seq %d, but the run is at seq %d with %d events to store: they are kept",
			r, events, afterSeq, r.seq, len(r.pending)))
		return
	}
	r.sender.hub.Stored(r.config.Key, r.config.RunID, r.pending[:events], Position{answer.LastSeq, answer.RecordedAt})
	for _, event := range r.pending[:events] {
		r.pendingBytes -= len(event)
	}
	clear(r.pending[:events]) // so that the garbage collector frees them
	if r.pending = r.pending[events:]; len(r.pending) == 0 {
		r.pending = nil
	}
	r.kept += int64(events)
	r.seq = answer.LastSeq
	r.config.Input = nil // the log has it, and it may be large
	r.sender.enqueue(r)
	r.notify()
}

// hasMore reports whether there are events to send.
func (r *Run) hasMore() bool { return r.failure == nil && len(r.pending) > 0 }

// inputSize is the size of the input in the next call.
func (r *Run) inputSize() int {
	if r.seq > 0 {
		return 0
	}
	return len(r.config.Input)
}

// isInProgress reports whether the run is in progress in the log, or claimed, as far as the sender
// knows.
func (r *Run) isInProgress() bool {
	// A run whose end is not stored yet is in progress in the log.
	isOver := r.hasEnded && len(r.pending) == 0
	hasNotBegun := r.seq == 0 && !r.config.IsClaimed
	return !hasNotBegun && !isOver && !r.isDetached && r.failure == nil
}

func (r *Run) fail(err error) {
	if r.failure != nil {
		r.notify()
		return
	}
	r.failure = err
	if !r.config.IsBeginning {
		r.sender.stats.Failed++
		r.sender.config.Logger.Warn("pgagui: a recording ended early",
			"thread", r.config.Key.ThreadID, "run", r.config.RunID, "unstored", len(r.pending), "error", err)
	}
	r.notify()
	r.cancel(err)
}

// wait waits for a change of the run, without the lock.
func (r *Run) wait(ctx context.Context) error {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	changed := r.changed
	r.sender.mu.Unlock()
	defer r.sender.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-r.sender.background.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Run) notify() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}
