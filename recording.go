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
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// ErrStopRequested is the cause of the end of a recording's context after a call of RequestStop or
// agui.request_stop.
var ErrStopRequested = errors.New("the run was asked to stop")

// ErrClosed is the error of a Recorder or a Recording that is closed.
var ErrClosed = errors.New("the recording is closed")

// BeginOptions say how a run is recorded.
type BeginOptions struct {
	// Start is the RUN_STARTED event of the run (see events.RunStarted), for an agent that does not
	// send one. Begin stores it before it returns, and returns an error if the run cannot begin. If
	// empty, the run begins with the first events that Record takes.
	Start json.RawMessage
	// Scope is that of the run's thread. The Store's if empty.
	Scope string
	// Input is the input of the run (RunAgentInput), a JSON object, if RUN_STARTED does not carry
	// it; see AppendOptions.Input.
	Input json.RawMessage
	// ParentRunID is the parent of the run, whatever RUN_STARTED names. If empty, RUN_STARTED names
	// the parent, or else the parent is the head.
	ParentRunID string
	// NoParent makes the run a root, whatever ParentRunID and RUN_STARTED name.
	NoParent bool
	// Parallel lets the run begin while others are in progress in its thread. Its parent must have
	// ended.
	Parallel bool
	// Claim is the claim of the run, from Store.Claim. Until the run begins, the recorder sends
	// heartbeats for it and cancels Recording.Context after a request to stop. The beginning of the
	// run has the scope, input, parent and Parallel of the claim; Scope, Input, ParentRunID,
	// NoParent and Parallel do not count. If the recording is closed without an event in the log,
	// Close releases the claim.
	Claim *Claim
	// AfterSeq takes over a run in progress from another writer: the last seq of the run, as Status
	// returns it. 0: the run begins.
	AfterSeq int64
}

// Recording is a run that is being recorded. Its methods are safe for concurrent use.
type Recording struct {
	recorder               *Recorder
	threadID, runID, scope string
	options                BeginOptions
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
	changed      chan struct{} // closed at the next change; nil: no call waits for one
	isQueued     bool          // in the recorder's queue
	isAlone      bool          // sent in calls of its own
	isBeginning  bool          // Begin stores its start
	isClosing    bool
	isDetached   bool
}

// Begin returns a recording for a run.
//
// With BeginOptions.Start it stores the beginning of the run. A run that cannot begin is an error
// at once, which a server can answer with 409 Conflict: ErrRunInProgress, or another error of
// Store.Append. Without Start it makes no call to the database; then a run that cannot begin fails
// when its first events are stored.
//
// Errors: ErrClosed, ErrNeedsPool, ErrInvalidEvents (Start or Input), ErrInvalidArgument (Claim is
// that of another run); with Start also those of Store.Append and that of ctx.
func (r *Recorder) Begin(ctx context.Context, run RunRef, options BeginOptions) (*Recording, error) {
	if claim := options.Claim; claim != nil {
		if claim.Run != run {
			return nil, &Error{Kind: ErrInvalidArgument, Message: fmt.Sprintf("record run %q of thread %q: the claim is that of run %q of thread %q",
				run.RunID, run.ThreadID, claim.Run.RunID, claim.Run.ThreadID)}
		}
		options.Scope, options.Input, options.Parallel = claim.Scope, claim.Input, claim.Parallel
		options.ParentRunID, options.NoParent = claim.ParentRunID, claim.ParentRunID == ""
	}
	recording := &Recording{
		recorder: r, threadID: run.ThreadID, runID: run.RunID, scope: options.Scope, options: options, seq: options.AfterSeq,
		isBeginning: len(options.Start) > 0,
	}
	if recording.scope == "" && options.Claim == nil {
		recording.scope = r.store.scope
	}
	if problem := problemOf(options.Input); len(options.Input) > 0 && problem != "" {
		return nil, &Error{Kind: ErrInvalidEvents, Message: fmt.Sprintf("%s: its input %s", recording, problem)}
	}
	if r.store.live == nil {
		return nil, fmt.Errorf("record %s: %w", recording, ErrNeedsPool)
	}
	recording.ctx, recording.cancel = context.WithCancelCause(ctx)
	r.mu.Lock()
	isClosed := r.isClosed
	if !isClosed {
		r.open[recording] = struct{}{}
	}
	r.mu.Unlock()
	if isClosed {
		recording.cancel(ErrClosed)
		return nil, fmt.Errorf("record %s: %w", recording, ErrClosed)
	}
	if len(options.Start) == 0 {
		return recording, nil
	}
	err := recording.Record(ctx, options.Start)
	if err == nil {
		err = recording.Flush(ctx)
	}
	if err != nil {
		_ = recording.Close(ctx) // it returns the same error
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	recording.isBeginning = false
	return recording, nil
}

// Context returns the context for the agent. It ends with the context of Begin, when the run was
// requested to stop (context.Cause is an ErrStopRequested), when the recording cannot store its
// events any more (the cause is the error, for example ErrRunCutOff), and when the recording is
// closed. After a request to stop, the recording still takes the last events of the agent.
func (r *Recording) Context() context.Context { return r.ctx }

// Seq returns the seq of the last event that is stored, 0 if none is.
func (r *Recording) Seq() int64 {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	return r.seq
}

// Record takes events and returns. The recorder stores them soon, in the order in which Record took
// them. It keeps the bytes, so do not change them. If too many events are not stored yet
// (RecorderConfig.MaxBufferBytes), Record waits, at most until ctx ends.
//
// Errors: ErrInvalidEvents, then Record took none of the events; ErrClosed; that of ctx; and the
// error that ended the recording early, which is one of Store.Append.
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
			return fmt.Errorf("%s: %d events are not stored yet, and the buffer takes no more: %w", r, len(r.pending), err)
		}
	}
	r.pending = append(r.pending, events...)
	r.pendingBytes += size
	r.taken += int64(len(events))
	r.hasEnded = r.hasEnded || ends
	recorder.enqueue(r)
	return nil
}

// problemOf says why the log does not take an event, as far as that can be known without the
// database.
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

// Flush stores at once what Record took before, and returns when that is done.
//
// Errors: that of ctx, and the error that ended the recording early.
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

// Close stores all that Record took and ends the recording. If the run has not ended by then, with
// RUN_FINISHED or RUN_ERROR, Close ends it as Store.Abandon does. If it has not begun, Close
// releases its claim (BeginOptions.Claim). If ctx ends first, the recording stays open, and Close
// can be called again. A ctx that had ended before the call does not count: see
// RecorderConfig.CloseTimeout.
//
// Errors: those of Flush. Close of a closed recording returns nil. Unstored returns what could not
// be stored because the run was cut off or the database refused it.
func (r *Recording) Close(ctx context.Context) error {
	reason := "its recording was closed"
	if cause := context.Cause(r.ctx); errors.Is(cause, ErrStopRequested) {
		reason = cause.Error()
	}
	return r.close(ctx, &reason)
}

// Detach stores all that Record took and ends the recording, as Close does, but leaves the run in
// progress: for another recorder (BeginOptions.AfterSeq), or for a writer without one, which must
// append within the lease of the database (its setting lease).
func (r *Recording) Detach(ctx context.Context) error { return r.close(ctx, nil) }

// close ends the run, if it has not ended, for the given reason. If that is nil, the run stays in
// progress.
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
	hasNoEvents := r.seq == 0
	isLeftOpen := r.seq > 0 && !(r.hasEnded && r.kept == r.taken)
	r.isDetached = abandon == nil && err == nil
	recorder.mu.Unlock()
	if err != nil && failure == nil {
		return err
	}
	switch {
	case r.options.Claim != nil && hasNoEvents && abandon != nil:
		if err := recorder.release(ctx, r.options.Claim); err != nil && failure == nil {
			return fmt.Errorf("the claim of %s could not be released: %w", r, err)
		}
	case !isLeftOpen || errors.Is(failure, ErrConflictingRepeat): // after a conflict it is another writer's run
	case abandon != nil:
		if failure != nil {
			*abandon = failure.Error()
		}
		_, err := retry(ctx, recorder.retryPolicy(), func(ctx context.Context) (int64, error) {
			return recorder.store.InScope(r.scope).Abandon(ctx, RunRef{ThreadID: r.threadID, RunID: r.runID}, AbandonOptions{Reason: *abandon})
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

// Unstored returns the events that Record took and that are not in the log. While the recording is
// open they may still be stored. After Close they are those that could not be stored: the run was
// cut off, or another writer ended it; the database refused the events; or the database was away
// for longer than Close could wait. (After an error of Close, some of them may be stored although
// the answer was lost.)
func (r *Recording) Unstored() []json.RawMessage {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	return slices.Clone(r.pending)
}

// AppendUnstored appends what Unstored returns as a run of its own, after the recorded run was cut
// off or ended by another writer. The new run is a child of the recorded one: its RUN_STARTED names
// it as the parent, and an event of type CUSTOM with the name "pgagui.continues" holds the seq
// behind which the events belong. The new run first opens what was open there (messages, tool
// calls, steps), so clients join the pieces. It ends as its events say, or else as Store.Abandon
// ends a run. AppendUnstored returns the last seq, 0 if there was nothing to append.
//
// Close the recording first, so that no event is stored twice. After an error, retry with the same
// run id.
//
// Errors: those of Store.Append; ErrUnknownRun if nothing of the recorded run is in the log: then
// record the events as a run of any id.
func (r *Recording) AppendUnstored(ctx context.Context, runID string) (int64, error) {
	recorder := r.recorder
	recorder.mu.Lock()
	pending, seq, hasEnded := slices.Clone(r.pending), r.seq, r.hasEnded
	_, isOpen := recorder.open[r]
	recorder.mu.Unlock()
	switch {
	case isOpen:
		return 0, fmt.Errorf("%s is still open: close the recording before its events are appended to another run", r)
	case len(pending) == 0:
		return 0, nil
	case seq == 0:
		return 0, &Error{
			Kind: ErrUnknownRun, Message: fmt.Sprintf("%s: nothing of it is in the log, so no other run can continue it", r),
			Hint: "Record its events as a run that begins with them.",
		}
	}
	store := recorder.store.InScope(r.scope)
	policy := recorder.retryPolicy()
	open, err := retry(ctx, policy, func(ctx context.Context) ([]rawjson.Text, error) {
		return store.queries.OpeningEvents(ctx, db.OpeningEventsParams{AtSeq: seq, Scope: r.scope, ThreadID: r.threadID, RunID: r.runID})
	})
	if err != nil {
		return 0, ErrorOf(err)
	}
	started, err := events.RunStarted{ThreadID: r.threadID, RunID: runID, ParentRunID: r.runID}.Event()
	if err != nil {
		return 0, err
	}
	value, err := json.Marshal(map[string]any{"runId": r.runID, "afterSeq": seq})
	if err != nil {
		return 0, err
	}
	place, err := events.Custom{Name: "pgagui.continues", Value: value}.Event()
	if err != nil {
		return 0, err
	}
	begin := []json.RawMessage{started, place}
	for _, event := range open {
		begin = append(begin, json.RawMessage(event))
	}
	all := append(begin, pending...)
	last, err := retry(ctx, policy, func(ctx context.Context) (int64, error) {
		return store.Append(ctx, RunRef{ThreadID: r.threadID, RunID: runID}, all, AppendOptions{AfterSeq: new(int64(0)), Parallel: true})
	})
	if err == nil && !hasEnded {
		last, err = retry(ctx, policy, func(ctx context.Context) (int64, error) {
			return store.Abandon(ctx, RunRef{ThreadID: r.threadID, RunID: runID}, AbandonOptions{Reason: fmt.Sprintf("run %q, whose events it has, was cut off", r.runID)})
		})
	}
	if err != nil {
		return 0, ErrorOf(err)
	}
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	r.pending, r.pendingBytes = nil, 0
	return last, nil
}

// The recorder calls the methods from here on. Those without a lock of their own need its lock.

// stored records that the first of the pending events are in the log.
func (r *Recording) stored(events int, answer db.AppendManyRow) {
	r.recorder.store.live.stored(topicKey{r.scope, r.threadID}, r.runID, r.pending[:events], Position{answer.LastSeq, answer.RecordedAt})
	for _, event := range r.pending[:events] {
		r.pendingBytes -= len(event)
	}
	clear(r.pending[:events]) // so that the garbage collector frees them
	if r.pending = r.pending[events:]; len(r.pending) == 0 {
		r.pending = nil
	}
	r.kept += int64(events)
	r.seq = answer.LastSeq
	r.recorder.enqueue(r)
	r.notify()
}

// hasMore reports whether there are events to send.
func (r *Recording) hasMore() bool { return r.failure == nil && len(r.pending) > 0 }

// inputSize is the size of the input in the next call.
func (r *Recording) inputSize() int {
	if r.seq > 0 {
		return 0
	}
	return len(r.options.Input)
}

// fail ends the recording early. The pending events stay for Unstored.
func (r *Recording) fail(err error) {
	if r.failure != nil {
		r.notify()
		return
	}
	r.failure = err
	if !r.isBeginning { // otherwise Begin returns the error
		r.recorder.stats.Failed++
		r.recorder.config.Logger.Warn("pgagui: a recording ended early", "thread", r.threadID, "run", r.runID, "unstored", len(r.pending), "error", err)
	}
	r.notify()
	r.cancel(err)
}

// claimed is the status, in the answer to a heartbeat, of a run that is claimed and has not begun.
const claimed = "claimed"

// follow acts on the answer to a heartbeat.
func (r *Recording) follow(signal db.KeepAliveRow) {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	switch {
	case r.hasEnded: // its end may be in the log already
	case signal.CutOffReason != "":
		r.fail(&Error{Kind: ErrRunCutOff, Message: fmt.Sprintf("%s was cut off: %s", r, signal.CutOffReason)})
	case Status(signal.Status) != Running && signal.Status != claimed:
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
