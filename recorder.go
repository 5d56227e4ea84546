package pgagui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// RecorderConfig holds the settings of a Recorder. The zero value is ready to use.
type RecorderConfig struct {
	// Linger is how long an event waits for others, of its run or of other runs, to share a commit
	// with. If zero, the recorder sends at once when no call is in progress, and what arrives
	// meanwhile shares the next call: readers see an event after a few milliseconds. A longer time
	// makes fewer commits of a few runs.
	Linger time.Duration
	// MaxBatchEvents and MaxBatchBytes bound the events of one run in one batch. A run with so many
	// pending events does not linger. 500 events and 64 KB if zero.
	MaxBatchEvents, MaxBatchBytes int
	// MaxBufferBytes bounds the pending events of one run. Then Record waits, which slows down an
	// agent that sends more than the database takes, or that continues while the database is away.
	// 4 MB if zero.
	MaxBufferBytes int
	// Durability says when an event counts as stored.
	Durability Durability
	// Strict refuses what breaks the protocol, as AppendOptions.Strict does.
	Strict bool
	// CheckEvery is the interval of heartbeats, which also bring requests to stop. A second if
	// zero. It must be less than a third of the database's setting heartbeat_lease (30 seconds),
	// the lease of a recorder's runs.
	CheckEvery time.Duration
	// CallTimeout is how long the recorder waits for the answer to a call before it retries it on
	// another connection, and a second more for each MiB of a large call. 30 seconds if zero.
	CallTimeout time.Duration
	// CloseTimeout bounds Close if its ctx had ended before the call, as with "defer
	// recorder.Close(ctx)" in a program that got a signal to stop. 10 seconds if zero.
	CloseTimeout time.Duration
	// Logger gets a line when the database cannot be reached, one every minute while it cannot, and
	// one when it can again; and one for each recording that ends early. slog.Default() if nil.
	Logger *slog.Logger
}

// Durability says when an event counts as stored.
type Durability int

const (
	// Durable commits as the database is configured, by default when the event is on disk: a crash
	// loses no stored event.
	Durable Durability = iota
	// Relaxed commits without waiting for the disk (synchronous_commit = off). A crash of the
	// database server, not of the recorder, may lose the last stored events: those of three times
	// wal_writer_delay (0.6 seconds by default). What is left is in order and without gaps. The
	// recording then fails with ErrLogRewound, and so do followers that have seen more.
	Relaxed
)

// RecorderStats are the counters of a Recorder.
type RecorderStats struct {
	// Commits is the number of transactions that stored events.
	Commits int64 `json:"commits"`
	// Batches is the number of rows that they wrote. A batch holds events of one run.
	Batches int64 `json:"batches"`
	Events  int64 `json:"events"`
	// Retries is the number of attempts after a failed one.
	Retries int64 `json:"retries"`
	// Failed is the number of recordings that ended early.
	Failed int64 `json:"failed"`
	// Buffered is the number of events that are not stored yet.
	Buffered int64 `json:"buffered"`
	// RetryingSince is the time of the first failure of the oldest call that is being retried now.
	// Zero if there is none.
	RetryingSince time.Time `json:"retryingSince,omitzero"`
	// RetryCause is the error of its last attempt.
	RetryCause string `json:"retryCause,omitempty"`
}

// Recorder stores what the agents of a process send while they run. Its runs share commits, so
// hundreds of them can stream at once over few connections. The recorder retries calls while the
// database is away, and stores each event once. If the database refuses the events of a run, the
// recording of that run alone ends; Recording.Unstored returns its events.
//
//	recorder := store.NewRecorder(nil)
//	defer recorder.Close(ctx)
//
//	recording, err := recorder.Begin(ctx, run, pgagui.BeginOptions{})
//	if err != nil { … }
//	defer recording.Close(ctx)
//	for event := range agent.Run(recording.Context(), input) {
//		if err := recording.Record(ctx, event); err != nil { … }
//	}
//
// The recorder also retries what a standby refuses, until the standby is promoted. If a pool may
// connect to a standby that stays one, set target_session_attrs=read-write.
//
// While a failure lasts, the recorder logs it every minute, and Stats reports it. Package otelagui
// turns Stats into metrics.
//
// Under row-level security the recorder's role is usually an operator and records for all scopes.
// On a Store with SetScope it records for the Store's scope only; a recording of another scope ends
// with ErrPermissionDenied. With Config.Live it appends and sends heartbeats on that pool, whose
// role needs agui_recorder alone, and ends runs and releases claims on the pool of the Store, in the
// scope of the recording.
//
// Behind the end of a run the recorder calls Store.Settle, for one thread after the other, so that
// the next reload does not wait for a job.
//
// A recorder takes up to three connections of the pool, one more for each run whose thread another
// transaction has locked, and up to four for runs with events that are too large or too slow to
// share a call.
type Recorder struct {
	store  *Store
	sender *live.Sender
	config RecorderConfig

	mu       sync.Mutex // guards what follows, and some fields of all recordings
	open     map[*Recording]struct{}
	isClosed bool

	toSettle     []live.Key         // threads with a run that has ended
	settled      chan struct{}      // closed when the queue is empty; nil: it is
	settling     context.Context    // of the calls of Settle
	stopSettling context.CancelFunc // makes the rest of the queue fail at once
}

// maxToSettle bounds the threads that wait to be settled. Jobs compact those beyond it.
const maxToSettle = 256

// NewRecorder returns a Recorder for the threads of the Store's scope. config may be nil. The
// caller must close it. The Store must be on a pool: otherwise Recorder.Begin returns ErrNeedsPool.
func (s *Store) NewRecorder(config *RecorderConfig) *Recorder {
	r := &Recorder{store: s, open: map[*Recording]struct{}{}}
	r.settling, r.stopSettling = context.WithCancel(context.Background())
	if config != nil {
		r.config = *config
	}
	r.config.CloseTimeout = cmp.Or(r.config.CloseTimeout, 10*time.Second)
	r.config.CallTimeout = cmp.Or(r.config.CallTimeout, 30*time.Second)
	r.config.Logger = cmp.Or(r.config.Logger, slog.Default())
	backend, as := s.forLive()
	r.sender = live.NewSender(s.live, live.SenderConfig{
		Calls: backend.ofMany(as), Lanes: backend.lanes(as), Scope: as.scope, Linger: r.config.Linger,
		MaxBatchEvents: cmp.Or(r.config.MaxBatchEvents, 500), MaxBatchBytes: cmp.Or(r.config.MaxBatchBytes, 64<<10),
		MaxBufferBytes: cmp.Or(r.config.MaxBufferBytes, 4<<20),
		Relaxed:        r.config.Durability == Relaxed, Strict: r.config.Strict,
		CheckEvery: cmp.Or(r.config.CheckEvery, time.Second), CallTimeout: r.config.CallTimeout,
		Logger: r.config.Logger, ErrorOf: ErrorOf, SignalOf: signalOf,
	})
	if s.live != nil {
		r.sender.Start()
	}
	return r
}

// settleLater puts a thread in which a run has ended into the queue to be settled, unless it is full.
// r.mu is held.
func (r *Recorder) settleLater(thread live.Key) {
	if len(r.toSettle) < maxToSettle {
		r.toSettle = append(r.toSettle, thread)
	}
	if r.settled == nil {
		settled := make(chan struct{})
		r.settled = settled
		go panics.Task(r.config.Logger, func() { r.settle(settled) }, nil)()
	}
}

// settle settles the threads of the queue, one after the other, until it is empty. Then it closes
// settled. What fails is left to the jobs, which note it.
func (r *Recorder) settle(settled chan<- struct{}) {
	defer close(settled)
	for {
		r.mu.Lock()
		if len(r.toSettle) == 0 {
			r.settled = nil
			r.mu.Unlock()
			return
		}
		thread := r.toSettle[0]
		r.toSettle = r.toSettle[1:]
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(r.settling, r.config.CallTimeout)
		_, err := r.store.InScope(thread.Scope).Settle(ctx, thread.ThreadID)
		cancel()
		if err != nil {
			r.config.Logger.Debug("pgagui: a thread is left to the compaction job", "thread", thread.ThreadID, "error", err)
		}
	}
}

// claimed is the status, in the answer to a heartbeat, of a run that is claimed and has not begun.
const claimed = "claimed"

// signalOf says what the answer to a heartbeat means for a run that has not ended: why its recording
// ends early, or why its agent should stop.
func signalOf(run *live.Run, answer db.KeepAliveRow) (failure, stop error) {
	switch {
	case answer.CutOffReason != "":
		return &Error{Kind: ErrRunCutOff, Message: fmt.Sprintf("%s was cut off: %s", run, answer.CutOffReason)}, nil
	case Status(answer.Status) != Running && answer.Status != claimed:
		return &Error{Kind: ErrRunEnded, Message: fmt.Sprintf("%s was ended by another writer", run)}, nil
	case answer.StopReason != "":
		return nil, &stopRequest{answer.StopReason}
	case answer.StopRequested:
		return nil, ErrStopRequested
	}
	return nil, nil
}

// Stats returns the counters of the recorder.
func (r *Recorder) Stats() RecorderStats { return RecorderStats(r.sender.Stats()) }

// Close closes all recordings at once, as Recording.Close does, settles their threads, and ends the
// recorder. If ctx ends first, the error names the runs with events that are not stored;
// Recording.Unstored returns them. A second call ends those runs in the log, and returns the error
// again.
//
// Close returns the errors that ended recordings early, except those that a method of the recording
// has returned already. A ctx that had ended before the call does not count: see
// RecorderConfig.CloseTimeout.
func (r *Recorder) Close(ctx context.Context) error {
	ctx, cancel := r.closing(ctx)
	defer cancel()
	r.mu.Lock()
	r.isClosed = true
	var open []*Recording
	wasReported := map[*Recording]bool{}
	for recording := range r.open {
		open = append(open, recording)
		wasReported[recording] = recording.isReported && !recording.isGivenUp
	}
	r.mu.Unlock()

	failures := make([]error, len(open))
	var closing sync.WaitGroup
	for i, recording := range open {
		closing.Go(panics.Task(r.config.Logger, func() { failures[i] = recording.Close(ctx) }, func(err error) { failures[i] = err }))
	}
	closing.Wait()
	r.sender.Stop()
	r.mu.Lock()
	settled := r.settled
	r.mu.Unlock()
	if settled != nil {
		select {
		case <-settled:
		case <-ctx.Done():
			r.stopSettling()
			<-settled
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for i, recording := range open {
		if failures[i] != nil {
			isGivenUp := recording.run.Fail(failures[i]) // its agent should stop
			recording.isGivenUp = recording.isGivenUp || isGivenUp
		}
		if wasReported[recording] {
			failures[i] = nil
		}
	}
	return errors.Join(failures...)
}

// closing returns the context for a Close that was called with ctx.
func (r *Recorder) closing(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), r.config.CloseTimeout)
}

// release releases the claim of a run that will not begin.
func (r *Recorder) release(ctx context.Context, claim *Claim) error {
	_, err := live.Retry(ctx, r.sender.RetryPolicy(), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.store.InScope(claim.Scope).ReleaseClaim(ctx, claim)
	})
	return err
}

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
	if !hasNoEvents && abandon != nil {
		recorder.settleLater(live.Key{Scope: r.scope, ThreadID: r.ref.ThreadID})
	}
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
