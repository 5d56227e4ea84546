package pgagui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// ErrStopRequested is why the context of a recording ended when someone called RequestStop, or agui.request_stop.
var ErrStopRequested = errors.New("the run was asked to stop")

// ErrClosed is what a Recorder or a Recording returns once it is closed.
var ErrClosed = errors.New("the recording is closed")

// RecordOptions say how a run is recorded.
type RecordOptions struct {
	// Scope is that of the run's thread; empty: the store's.
	Scope string
	// Input is that of the run (RunAgentInput), a JSON object, where RUN_STARTED does not carry it; see WithInput.
	Input json.RawMessage
	// Parent is the run that this one goes on from, whatever RUN_STARTED names; empty: as that names it, else the thread's head.
	Parent string
	// NoParent makes the run a root, whatever Parent and RUN_STARTED name.
	NoParent bool
	// Parallel lets the run begin although others are in progress in its thread. Its parent must have ended.
	Parallel bool
	// AfterSeq takes over a run that is in progress: its last seq, as Status returns it. 0: the run begins.
	AfterSeq int64
}

// Recording is a run that is being recorded. Its methods may be called by several goroutines.
type Recording struct {
	recorder               *Recorder
	threadID, runID, scope string
	options                RecordOptions
	ctx                    context.Context
	cancel                 context.CancelCauseFunc

	// Guarded by the recorder's lock.
	pending      []json.RawMessage // not stored yet, in order
	pendingBytes int
	taken, kept  int64         // events that Record took, and those of them that are stored
	seq          int64         // of the last one stored
	hasEnded     bool          // RUN_FINISHED or RUN_ERROR is among what Record took
	failure      error         // what ended it early
	changed      chan struct{} // closed at the next change; nil: nobody waits for one
	isQueued     bool          // in the recorder's queue
	isAlone      bool          // sent in calls of its own
	isClosing    bool
}

// Begin returns a recording for a run, whose first event is RUN_STARTED, as a rule. It asks nothing of the database yet: a run that cannot begin
// (ErrRunInProgress, ErrUnknownParent, …) fails when its first events are stored.
func (r *Recorder) Begin(ctx context.Context, threadID, runID string, options RecordOptions) *Recording {
	recording := &Recording{
		recorder: r, threadID: threadID, runID: runID, scope: options.Scope, options: options, seq: options.AfterSeq,
	}
	if recording.scope == "" {
		recording.scope = r.store.scope
	}
	recording.ctx, recording.cancel = context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed {
		recording.fail(ErrClosed)
	} else if problem := problemOf(options.Input); len(options.Input) > 0 && problem != "" {
		recording.fail(&Error{Kind: ErrInvalidEvents, Message: fmt.Sprintf("%s: its input %s", recording, problem)})
	} else {
		r.open[recording] = struct{}{}
	}
	return recording
}

// Context is the context for the agent. It ends when the run was asked to stop (context.Cause is an ErrStopRequested), when what it emits is not stored any
// more (the cause says why: ErrRunCutOff, for instance), when the recording is closed, and with the context that Begin was given.
// After a request to stop the recording still takes what the agent has to say in the end.
func (r *Recording) Context() context.Context { return r.ctx }

// Seq returns the seq of the last event that is stored; 0: none is.
func (r *Recording) Seq() int64 {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	return r.seq
}

// Record takes events, to be stored in the order in which they are taken, soon. It keeps their bytes, which must not be changed any more. It waits only
// while too many events wait to be stored, and then no longer than ctx.
//
// Errors: ErrInvalidEvents, of which nothing is taken; ErrClosed; and whatever ended the recording early.
func (r *Recording) Record(ctx context.Context, events ...json.RawMessage) error {
	size, ends := 0, false
	for i, event := range events {
		if problem := problemOf(event); problem != "" {
			return &Error{Kind: ErrInvalidEvents, Message: fmt.Sprintf("%s: event %d of those to record %s", r, i+1, problem)}
		}
		size += len(event)
		eventType := compaction.EventType(event)
		ends = ends || eventType == "RUN_FINISHED" || eventType == "RUN_ERROR"
	}
	if len(events) == 0 {
		return nil
	}

	recorder := r.recorder
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	for {
		if r.failure != nil {
			return r.failure
		}
		if r.isClosing {
			return fmt.Errorf("%s: %w", r, ErrClosed)
		}
		if len(r.pending) == 0 || r.pendingBytes+size <= recorder.config.MaxBufferBytes {
			break
		}
		if err := r.wait(ctx); err != nil {
			return fmt.Errorf("%s: %d events wait to be stored, no more are taken: %w", r, len(r.pending), err)
		}
	}
	r.pending = append(r.pending, events...)
	r.pendingBytes += size
	r.taken += int64(len(events))
	r.hasEnded = r.hasEnded || ends
	recorder.enqueue(r)
	return nil
}

// problemOf says what keeps an event out of the log, as far as that shows without the database.
func problemOf(event json.RawMessage) string {
	switch {
	case !utf8.Valid(event):
		return "is not UTF-8"
	case !json.Valid(event):
		return "is not JSON"
	case !bytes.HasPrefix(bytes.TrimLeft(event, " \t\r\n"), []byte("{")):
		return "is not a JSON object"
	default:
		return ""
	}
}

// Flush returns when all that Record took before is stored. Errors: that of ctx, and whatever ended the recording early.
func (r *Recording) Flush(ctx context.Context) error {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	return r.flush(ctx)
}

func (r *Recording) flush(ctx context.Context) error {
	for target := r.taken; r.kept < target; {
		if r.failure != nil {
			return r.failure
		}
		r.recorder.hurry()
		if err := r.wait(ctx); err != nil {
			return fmt.Errorf("%s: %d events are not stored: %w", r, target-r.kept, err)
		}
	}
	return r.failure
}

// Close stores all that Record took and ends the recording. A run that has not ended by then, with RUN_FINISHED or RUN_ERROR, has lost its
// writer: it is ended as Store.Abandon does. When ctx ends first, the recording stays open, and Close can be called again.
//
// Errors: as of Flush. Once closed, it returns nil.
func (r *Recording) Close(ctx context.Context) error {
	reason := "its recording was closed"
	if cause := context.Cause(r.ctx); errors.Is(cause, ErrStopRequested) {
		reason = cause.Error()
	}
	return r.close(ctx, &reason)
}

// Detach stores all that Record took and ends the recording, as Close does, but leaves the run in progress, for another recorder to go on with
// (RecordOptions.AfterSeq) within the lease.
func (r *Recording) Detach(ctx context.Context) error { return r.close(ctx, nil) }

// close ends the run, when it has not ended, for the reason given; nil: it stays in progress.
func (r *Recording) close(ctx context.Context, abandon *string) error {
	recorder := r.recorder
	recorder.mu.Lock()
	if _, isOpen := recorder.open[r]; !isOpen {
		recorder.mu.Unlock()
		return nil
	}
	r.isClosing = true
	err := r.flush(ctx)
	failure := r.failure
	isLeftOpen := r.seq > 0 && !(r.hasEnded && r.kept == r.taken)
	recorder.mu.Unlock()
	if err != nil && failure == nil {
		return err
	}
	// After a conflict it is another writer's run.
	if abandon != nil && isLeftOpen && !errors.Is(failure, ErrConflictingRepeat) {
		if failure != nil {
			*abandon = failure.Error()
		}
		_, err := again(ctx, recorder.config.CallTimeout, func(error) {}, func(ctx context.Context) (int64, error) {
			return recorder.store.InScope(r.scope).Abandon(ctx, r.threadID, r.runID, *abandon)
		})
		if err != nil && failure == nil {
			return fmt.Errorf("%s could not be ended: %w", r, err)
		}
	}
	recorder.mu.Lock()
	delete(recorder.open, r)
	recorder.mu.Unlock()
	r.cancel(ErrClosed)
	return failure
}

// The methods from here on are called by the recorder; those without a lock of their own while it holds its lock.

// stored notes that the first of the pending events are in the log.
func (r *Recording) stored(events int, seq int64) {
	if r.failure != nil { // while the call was under way: nothing is pending any more
		return
	}
	for _, event := range r.pending[:events] {
		r.pendingBytes -= len(event)
	}
	clear(r.pending[:events]) // they are not to be kept in memory by those behind them
	if r.pending = r.pending[events:]; len(r.pending) == 0 {
		r.pending = nil
	}
	r.kept += int64(events)
	r.seq = seq
	r.recorder.enqueue(r)
	r.notify()
	r.recorder.store.live.wake(r.scope, r.threadID)
}

// fail ends the recording early. What waits to be stored is given up.
func (r *Recording) fail(err error) {
	if r.failure != nil {
		return
	}
	r.failure = err
	r.pending, r.pendingBytes = nil, 0
	r.notify()
	r.cancel(err)
}

// heed does what the database says about the run.
func (r *Recording) heed(signal db.KeepAliveRow) {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	switch {
	case r.hasEnded: // its end may be in the log already
	case signal.CutOffReason != "":
		r.fail(&Error{Kind: ErrRunCutOff, Message: fmt.Sprintf("%s was cut off: %s", r, signal.CutOffReason)})
	case Status(signal.Status) != Running:
		r.fail(&Error{Kind: ErrRunEnded, Message: fmt.Sprintf("%s was ended by another writer", r)})
	case signal.StopReason != "":
		r.cancel(fmt.Errorf("%w: %s", ErrStopRequested, signal.StopReason))
	case signal.StopRequested:
		r.cancel(ErrStopRequested)
	}
}

// wait waits for a change of the recording, without the lock.
func (r *Recording) wait(ctx context.Context) error {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	changed := r.changed
	r.recorder.mu.Unlock()
	defer r.recorder.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-r.recorder.background.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Recording) notify() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *Recording) String() string { return fmt.Sprintf("run %q of thread %q", r.runID, r.threadID) }
