package pgagui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/panics"
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
// A recorder takes up to two connections of the pool, one more for each run whose thread another
// transaction has locked, and up to four for runs with events that are too large or too slow to
// share a call.
type Recorder struct {
	store  *Store
	sender *live.Sender
	config RecorderConfig

	mu       sync.Mutex // guards what follows, and some fields of all recordings
	open     map[*Recording]struct{}
	isClosed bool
}

// NewRecorder returns a Recorder for the threads of the Store's scope. config may be nil. The
// caller must close it. The Store must be on a pool: otherwise Recorder.Begin returns ErrNeedsPool.
func (s *Store) NewRecorder(config *RecorderConfig) *Recorder {
	r := &Recorder{store: s, open: map[*Recording]struct{}{}}
	if config != nil {
		r.config = *config
	}
	r.config.CloseTimeout = cmp.Or(r.config.CloseTimeout, 10*time.Second)
	backend, as := s.forLive()
	r.sender = live.NewSender(s.live, live.SenderConfig{
		Calls: backend.ofMany(as), Lanes: backend.lanes(as), Scope: as.scope, Linger: r.config.Linger,
		MaxBatchEvents: cmp.Or(r.config.MaxBatchEvents, 500), MaxBatchBytes: cmp.Or(r.config.MaxBatchBytes, 64<<10),
		MaxBufferBytes: cmp.Or(r.config.MaxBufferBytes, 4<<20),
		Relaxed:        r.config.Durability == Relaxed, Strict: r.config.Strict,
		CheckEvery: cmp.Or(r.config.CheckEvery, time.Second), CallTimeout: cmp.Or(r.config.CallTimeout, 30*time.Second),
		Logger: cmp.Or(r.config.Logger, slog.Default()), ErrorOf: ErrorOf, SignalOf: signalOf,
	})
	if s.live != nil {
		r.sender.Start()
	}
	return r
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

// Close closes all recordings at once, as Recording.Close does, and ends the recorder. If ctx ends
// first, the error names the runs with events that are not stored; Recording.Unstored returns them.
// A second call ends those runs in the log, and returns the error again.
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
