package pgagui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// ErrStopRequested is the cause of the end of a recording's context after a call of RequestStop or
// agui.request_stop.
var ErrStopRequested = errors.New("the run was asked to stop")

// stopRequest is an ErrStopRequested with the reason of the request.
type stopRequest struct{ reason string }

func (s *stopRequest) Error() string { return ErrStopRequested.Error() + ": " + s.reason }

func (s *stopRequest) Unwrap() error { return ErrStopRequested }

// StopReason returns the reason given with RequestStop, from the cause of the end of a recording's
// context. Empty: none was given.
func StopReason(cause error) string {
	if request, ok := errors.AsType[*stopRequest](cause); ok {
		return request.reason
	}
	return ""
}

// ErrClosed is the error of a Recorder or a Recording that is closed.
var ErrClosed = live.ErrClosed

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
	recorder *Recorder
	run      *live.Run
	ref      RunRef
	scope    string
	claim    *Claim

	// Guarded by the recorder's lock.
	isReported bool // a method has returned the failure
	isGivenUp  bool // the failure is that of closing the recorder
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
	recording := &Recording{recorder: r, ref: run, scope: options.Scope}
	if options.Claim != nil {
		claim := *options.Claim
		claim.Input = nil // it may be large, and a release does not need it
		recording.claim = &claim
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
	r.mu.Lock()
	if r.isClosed {
		r.mu.Unlock()
		return nil, fmt.Errorf("record %s: %w", recording, ErrClosed)
	}
	recording.run = r.sender.Begin(ctx, live.RunConfig{
		Key: live.Key{Scope: recording.scope, ThreadID: run.ThreadID}, RunID: run.RunID, Seq: options.AfterSeq,
		Parent: parentOf(options.ParentRunID, options.NoParent), Input: options.Input, Parallel: options.Parallel,
		IsClaimed: options.Claim != nil, IsBeginning: len(options.Start) > 0,
	})
	r.open[recording] = struct{}{}
	r.mu.Unlock()
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
	recording.run.Begun()
	return recording, nil
}

// Context returns the context for the agent. It ends with the context of Begin, when the run was
// requested to stop (context.Cause is an ErrStopRequested), when the recording cannot store its
// events any more (the cause is the error, for example ErrRunCutOff), and when the recording is
// closed. After a request to stop, the recording still takes the last events of the agent.
func (r *Recording) Context() context.Context { return r.run.Context() }

// Seq returns the seq of the last event that is stored, 0 if none is.
func (r *Recording) Seq() int64 { return r.run.Seq() }

// Record takes events and returns. The recorder stores them soon, in the order in which Record took
// them. It keeps the bytes, so do not change them. If too many events are not stored yet
// (RecorderConfig.MaxBufferBytes), Record waits, at most until ctx ends.
//
// Errors: ErrInvalidEvents, then Record took none of the events; ErrClosed; that of ctx; and the
// error that ended the recording early, which is one of Store.Append.
func (r *Recording) Record(ctx context.Context, events ...json.RawMessage) error {
	ends := false
	for i, event := range events {
		eventType, isEvent := compaction.CheckEvent(event)
		if !isEvent || !utf8.Valid(event) {
			return &Error{Kind: ErrInvalidEvents, Message: fmt.Sprintf("%s: event %d of those to record %s", r, i+1, problemOf(event))}
		}
		ends = ends || eventType == "RUN_FINISHED" || eventType == "RUN_ERROR"
	}
	if len(events) == 0 {
		return nil
	}
	return r.reported(r.run.Add(ctx, events, ends))
}

// reported returns an error to the caller of a method, and remembers that it did if that is what
// ended the recording.
func (r *Recording) reported(err error) error {
	if err != nil && errors.Is(err, r.run.State().Failure) {
		r.recorder.mu.Lock()
		defer r.recorder.mu.Unlock()
		r.isReported = true
	}
	return err
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
func (r *Recording) Flush(ctx context.Context) error { return r.reported(r.run.Flush(ctx)) }

// Close stores all that Record took and ends the recording. If the run has not ended by then, with
// RUN_FINISHED or RUN_ERROR, Close ends it as Store.Abandon does: as cancelled, if it was requested
// to stop. If it has not begun, Close releases its claim (BeginOptions.Claim). If ctx ends first, the
// recording stays open, and Close can be called again. A ctx that had ended before the call does not
// count: see RecorderConfig.CloseTimeout.
//
// Errors: those of Flush. Close of a closed recording returns nil. Unstored returns what could not
// be stored because the run was cut off or the database refused it.
func (r *Recording) Close(ctx context.Context) error {
	end := AbandonOptions{Reason: "its recording was closed"}
	if cause := context.Cause(r.run.Context()); errors.Is(cause, ErrStopRequested) {
		end = AbandonOptions{Reason: cmp.Or(StopReason(cause), ErrStopRequested.Error()), Cancelled: true}
	}
	return r.close(ctx, &end)
}

// Detach stores all that Record took and ends the recording, as Close does, but leaves the run in
// progress: for another recorder (BeginOptions.AfterSeq), or for a writer without one, which must
// append within the lease of the database (its setting lease).
func (r *Recording) Detach(ctx context.Context) error { return r.close(ctx, nil) }

// close ends the run, if it has not ended, as abandon says. If that is nil, the run stays in progress.
func (r *Recording) close(ctx context.Context, abandon *AbandonOptions) error {
	recorder := r.recorder
	ctx, cancel := recorder.closing(ctx)
	defer cancel()
	if !r.isOpen() {
		return nil
	}
	final, err := r.run.Finish(ctx)
	failure := final.Failure
	if err != nil && failure == nil {
		return err
	}
	hasNoEvents := final.Seq == 0
	isLeftOpen := !hasNoEvents && !(final.HasEnded && len(final.Pending) == 0)
	switch {
	case r.claim != nil && hasNoEvents && abandon != nil:
		if err := recorder.release(ctx, r.claim); err != nil && failure == nil {
			return fmt.Errorf("the claim of %s could not be released: %w", r, err)
		}
	case !isLeftOpen || errors.Is(failure, ErrConflictingRepeat): // after a conflict it is another writer's run
	case abandon != nil:
		if failure != nil {
			*abandon = AbandonOptions{Reason: failure.Error()}
		}
		_, err := live.Retry(ctx, recorder.sender.RetryPolicy(), func(ctx context.Context) (int64, error) {
			return recorder.store.InScope(r.scope).Abandon(ctx, r.ref, *abandon)
		})
		if err != nil && failure == nil {
			return fmt.Errorf("%s could not be ended: %w", r, err)
		}
	case failure == nil:
		if err := recorder.sender.Detach(ctx, r.run); err != nil {
			return fmt.Errorf("%s could not be detached: %w", r, err)
		}
	}
	recorder.mu.Lock()
	delete(recorder.open, r)
	recorder.mu.Unlock()
	recorder.sender.End(r.run)
	return failure
}

func (r *Recording) isOpen() bool {
	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	_, isOpen := r.recorder.open[r]
	return isOpen
}

// Unstored returns the events that Record took and that are not in the log. While the recording is
// open they may still be stored. After Close they are those that could not be stored: the run was
// cut off, or another writer ended it; the database refused the events; or the database was away
// for longer than Close could wait. (After an error of Close, some of them may be stored although
// the answer was lost.)
func (r *Recording) Unstored() []json.RawMessage { return r.run.State().Pending }

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
	left := r.run.State()
	switch {
	case r.isOpen():
		return 0, fmt.Errorf("%s is still open: close the recording before its events are appended to another run", r)
	case len(left.Pending) == 0:
		return 0, nil
	case left.Seq == 0:
		return 0, &Error{
			Kind: ErrUnknownRun, Message: fmt.Sprintf("%s: nothing of it is in the log, so no other run can continue it", r),
			Hint: "Record its events as a run that begins with them.",
		}
	}
	store := r.recorder.store.InScope(r.scope)
	policy := r.recorder.sender.RetryPolicy()
	open, err := live.Retry(ctx, policy, func(ctx context.Context) ([]rawjson.Text, error) {
		return store.of(r.ref.ThreadID).OpeningEvents(ctx, db.OpeningEventsParams{AtSeq: left.Seq, Scope: r.scope, ThreadID: r.ref.ThreadID, RunID: r.ref.RunID})
	})
	if err != nil {
		return 0, ErrorOf(err)
	}
	started, err := events.RunStarted{ThreadID: r.ref.ThreadID, RunID: runID, ParentRunID: r.ref.RunID}.Event()
	if err != nil {
		return 0, err
	}
	value, err := json.Marshal(map[string]any{"runId": r.ref.RunID, "afterSeq": left.Seq})
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
	all := append(begin, left.Pending...)
	last, err := live.Retry(ctx, policy, func(ctx context.Context) (int64, error) {
		return store.Append(ctx, RunRef{ThreadID: r.ref.ThreadID, RunID: runID}, all, AppendOptions{AfterSeq: new(int64(0)), Parallel: true})
	})
	if err == nil && !left.HasEnded {
		last, err = live.Retry(ctx, policy, func(ctx context.Context) (int64, error) {
			return store.Abandon(ctx, RunRef{ThreadID: r.ref.ThreadID, RunID: runID}, AbandonOptions{Reason: fmt.Sprintf("run %q, whose events it has, was cut off", r.ref.RunID)})
		})
	}
	if err != nil {
		return 0, ErrorOf(err)
	}
	r.run.Forget()
	return last, nil
}

func (r *Recording) String() string {
	return fmt.Sprintf("run %q of thread %q", r.ref.RunID, r.ref.ThreadID)
}
