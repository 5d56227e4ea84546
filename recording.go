package pgagui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
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
	isReported   bool          // a method has returned the failure
	isGivenUp    bool          // the failure is that of closing the recorder
	inCall       int           // of the pending events, those that a call under way brings
	changed      chan struct{} // closed at the next change; nil: nobody waits for one
	isQueued     bool          // in the recorder's queue
	isAlone      bool          // sent in calls of its own
	isClosing    bool
	isDetached   bool
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
	if r.store.live == nil {
		recording.fail(fmt.Errorf("record %s: %w", recording, ErrNeedsPool))
	} else if r.isClosed {
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
			r.isReported = true
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
	err := r.flush(ctx)
	r.isReported = r.isReported || r.failure != nil
	return err
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
// writer: it is ended as Store.Abandon does. When ctx ends first, the recording stays open, and Close can be called again. A ctx that has ended
// before Close is called does not count: see RecorderConfig.CloseTimeout.
//
// Errors: as of Flush. Once closed, it returns nil. What is not stored then, because the run was cut off or the database refused it, is what
// Unstored returns.
func (r *Recording) Close(ctx context.Context) error {
	reason := "its recording was closed"
	if cause := context.Cause(r.ctx); errors.Is(cause, ErrStopRequested) {
		reason = cause.Error()
	}
	return r.close(ctx, &reason)
}

// Detach stores all that Record took and ends the recording, as Close does, but leaves the run in progress, for another recorder to go on with
// (RecordOptions.AfterSeq), or for a writer without one, within the database's setting lease.
func (r *Recording) Detach(ctx context.Context) error { return r.close(ctx, nil) }

// close ends the run, when it has not ended, for the reason given; nil: it stays in progress.
func (r *Recording) close(ctx context.Context, abandon *string) error {
	recorder := r.recorder
	ctx, cancel := recorder.closing(ctx)
	defer cancel()
	recorder.mu.Lock()
	if _, isOpen := recorder.open[r]; !isOpen {
		recorder.mu.Unlock()
		return nil
	}
	r.isClosing = true
	err := r.flush(ctx)
	for err == nil || r.failure != nil {
		// The answer to a call says which of its events are stored.
		if r.inCall == 0 || recorder.background.Err() != nil || r.wait(ctx) != nil {
			break
		}
	}
	failure := r.failure
	isLeftOpen := r.seq > 0 && !(r.hasEnded && r.kept == r.taken)
	r.isDetached = abandon == nil && err == nil
	recorder.mu.Unlock()
	if err != nil && failure == nil {
		return err
	}
	switch {
	case !isLeftOpen || errors.Is(failure, ErrConflictingRepeat): // after a conflict it is another writer's run
	case abandon != nil:
		if failure != nil {
			*abandon = failure.Error()
		}
		_, err := again(ctx, recorder.attempts(), func(ctx context.Context) (int64, error) {
			return recorder.store.InScope(r.scope).Abandon(ctx, r.threadID, r.runID, *abandon)
		})
		if err != nil && failure == nil {
			return fmt.Errorf("%s could not be ended: %w", r, err)
		}
	case failure == nil:
		if err := recorder.detach(ctx, r); err != nil {
			recorder.mu.Lock()
			r.isDetached = false // it is still open
			recorder.mu.Unlock()
			return fmt.Errorf("%s could not be detached: %w", r, err)
		}
	}
	recorder.mu.Lock()
	delete(recorder.open, r)
	recorder.mu.Unlock()
	r.cancel(ErrClosed)
	return failure
}

// Unstored returns the events that Record took and that are not in the log. While the recording is open they may still be stored. Once Close has
// returned they are those that could not be: the run was cut off, or ended by another writer; the database refused the events; it was away for longer
// than Close could wait. (After an error of Close itself some may be stored, whose answer was lost.)
func (r *Recording) Unstored() []json.RawMessage {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	return slices.Clone(r.pending)
}

// AppendUnstored appends what Unstored returns as a run of its own, when the run was cut off or ended by another writer. The new run goes on from the
// one that was recorded: its RUN_STARTED names that as its parent, and an event of type CUSTOM with the name "pgagui.continues" says behind which seq
// the events belong. What was open there (messages, tool calls, steps) is opened again, so clients join the pieces. The new run ends as the events say, or
// as Store.Abandon ends one. It returns the last seq; 0: nothing was to be appended.
//
// Close the recording first, so that nothing is stored twice. A call that failed may be repeated with the same run id.
//
// Errors: those of Append; ErrUnknownRun when nothing of the run is in the log: then record Unstored as a run of any id.
func (r *Recording) AppendUnstored(ctx context.Context, runID string) (int64, error) {
	recorder := r.recorder
	recorder.mu.Lock()
	events, seq, hasEnded := slices.Clone(r.pending), r.seq, r.hasEnded
	_, isOpen := recorder.open[r]
	recorder.mu.Unlock()
	switch {
	case isOpen:
		return 0, fmt.Errorf("%s is still recorded: close it before its events are appended to another run", r)
	case len(events) == 0:
		return 0, nil
	case seq == 0:
		return 0, &Error{
			Kind: ErrUnknownRun, Message: fmt.Sprintf("%s: nothing of it is in the log, so no other run can go on from it", r),
			Hint: "Record its events as a run that begins with them.",
		}
	}
	store := recorder.store.InScope(r.scope)
	how := recorder.attempts()
	open, err := again(ctx, how, func(ctx context.Context) ([]rawjson.Text, error) {
		return store.queries.OpeningEvents(ctx, db.OpeningEventsParams{AtSeq: seq, Scope: r.scope, ThreadID: r.threadID, RunID: r.runID})
	})
	if err != nil {
		return 0, refusal(err)
	}
	started, err := json.Marshal(map[string]string{"type": "RUN_STARTED", "threadId": r.threadID, "runId": runID, "parentRunId": r.runID})
	if err != nil {
		return 0, err
	}
	place, err := json.Marshal(map[string]any{
		"type": "CUSTOM", "name": "pgagui.continues", "value": map[string]any{"runId": r.runID, "afterSeq": seq},
	})
	if err != nil {
		return 0, err
	}
	begin := []json.RawMessage{started, place}
	for _, event := range open {
		begin = append(begin, json.RawMessage(event))
	}
	events = append(begin, events...)
	last, err := again(ctx, how, func(ctx context.Context) (int64, error) {
		return store.Append(ctx, r.threadID, runID, events, AfterSeq(0), Parallel())
	})
	if err == nil && !hasEnded {
		last, err = again(ctx, how, func(ctx context.Context) (int64, error) {
			return store.Abandon(ctx, r.threadID, runID, fmt.Sprintf("run %q, whose events it has, was cut off", r.runID))
		})
	}
	if err != nil {
		return 0, refusal(err)
	}
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	r.pending, r.pendingBytes = nil, 0
	return last, nil
}

// The methods from here on are called by the recorder; those without a lock of their own while it holds its lock.

// stored notes that the first of the pending events are in the log.
func (r *Recording) stored(events int, seq int64) {
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

// hasMore reports whether there is something to send.
func (r *Recording) hasMore() bool { return r.failure == nil && len(r.pending) > 0 }

// inputSize is the size of the input that the next call brings.
func (r *Recording) inputSize() int {
	if r.seq > 0 {
		return 0
	}
	return len(r.options.Input)
}

// fail ends the recording early. What waits to be stored stays for Unstored.
func (r *Recording) fail(err error) {
	if r.failure != nil {
		r.notify()
		return
	}
	r.failure = err
	r.recorder.stats.Failed++
	r.recorder.config.Logger.Warn("pgagui: a recording ended early", "thread", r.threadID, "run", r.runID, "unstored", len(r.pending), "error", err)
	r.notify()
	r.cancel(err)
}

// follow does what the database says about the run.
func (r *Recording) follow(signal db.KeepAliveRow) {
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
