package pgagui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pgagui/pgagui/db"
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
	// another connection. 30 seconds if zero.
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
	live   *db.Queries // on Config.Live: appends and heartbeats
	config RecorderConfig

	background context.Context // of what the recorder itself does
	stop       context.CancelFunc
	tasks      sync.WaitGroup
	wake       chan struct{} // there is something to send, or it became urgent
	alive      chan struct{} // holds one while agui.keep_alive is called
	costly     chan struct{} // holds one for each call of a run that was too costly to share one

	mu       sync.Mutex // guards what follows, and all of the recordings
	open     map[*Recording]struct{}
	queue    []*Recording // those with events to send, the one that waits longest first
	since    time.Time    // when the queue was last empty
	isUrgent bool         // send without lingering
	isClosed bool
	stats    RecorderStats
	outages  map[*outage]struct{} // of the calls that are being retried
	answered time.Time            // when the database last answered a call
}

// The bounds of one call. It holds the locks of its threads until it commits.
const (
	maxCallRuns  = 500
	maxCallBytes = 8 << 20
)

const (
	// maxSharedBytes is the size of an event up to which it shares a call with others.
	maxSharedBytes = 1 << 20
	// maxCostlyCalls bounds the concurrent calls of runs that are too large or too slow to share
	// one. maxCostlyAttempts bounds the attempts of one of them while the database answers others.
	maxCostlyCalls, maxCostlyAttempts = 4, 3
	// keepAliveTimeout is short, so that the lease does not expire while a heartbeat waits on a
	// lost connection.
	keepAliveTimeout = 10 * time.Second
)

// NewRecorder returns a Recorder for the threads of the Store's scope. config may be nil. The
// caller must close it. The Store must be on a pool: otherwise Recorder.Begin returns ErrNeedsPool.
func (s *Store) NewRecorder(config *RecorderConfig) *Recorder {
	r := &Recorder{
		store: s, live: s.forLive().queries, wake: make(chan struct{}, 1), alive: make(chan struct{}, 1), costly: make(chan struct{}, maxCostlyCalls),
		open: map[*Recording]struct{}{}, outages: map[*outage]struct{}{},
	}
	if config != nil {
		r.config = *config
	}
	setDefault(&r.config.MaxBatchEvents, 500)
	setDefault(&r.config.MaxBatchBytes, 64<<10)
	setDefault(&r.config.MaxBufferBytes, 4<<20)
	setDefault(&r.config.CheckEvery, time.Second)
	setDefault(&r.config.CallTimeout, 30*time.Second)
	setDefault(&r.config.CloseTimeout, 10*time.Second)
	setDefault(&r.config.Logger, slog.Default())
	r.background, r.stop = context.WithCancel(context.Background())
	if s.live == nil {
		return r
	}
	r.tasks.Go(r.sendQueue)
	r.tasks.Go(r.keepAlive)
	return r
}

func setDefault[T comparable](setting *T, value T) {
	var zero T
	if *setting == zero {
		*setting = value
	}
}

// Stats returns the counters of the recorder.
func (r *Recorder) Stats() RecorderStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	for recording := range r.open {
		stats.Buffered += int64(len(recording.pending))
	}
	for outage := range r.outages {
		since, cause := outage.state()
		if !since.IsZero() && (stats.RetryingSince.IsZero() || since.Before(stats.RetryingSince)) {
			stats.RetryingSince, stats.RetryCause = since, cause.Error()
		}
	}
	return stats
}

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
		closing.Go(func() { failures[i] = recording.Close(ctx) })
	}
	closing.Wait()
	r.stop()
	r.tasks.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	for i, recording := range open {
		if failures[i] != nil {
			recording.isGivenUp = recording.isGivenUp || recording.failure == nil
			recording.fail(failures[i]) // its agent should stop
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

// sendQueue sends the pending events of recordings, one call after the other.
func (r *Recorder) sendQueue() {
	for r.linger() {
		if next := r.nextCall(); len(next.recordings) > 0 {
			r.sendShared(next)
		}
	}
}

// linger waits until the queue must be sent, and returns false when the recorder ends.
func (r *Recorder) linger() bool {
	for {
		r.mu.Lock()
		isEmpty, left := len(r.queue) == 0, time.Until(r.since.Add(r.config.Linger))
		if r.isUrgent {
			left = 0
		}
		r.mu.Unlock()
		var timer <-chan time.Time
		switch {
		case isEmpty:
		case left <= 0:
			return r.background.Err() == nil
		default:
			timer = time.After(left)
		}
		select {
		case <-timer:
		case <-r.wake:
		case <-r.background.Done():
			return false
		}
	}
}

// enqueue puts a recording with pending events into the queue. The caller holds the lock.
func (r *Recorder) enqueue(recording *Recording) {
	if recording.isAlone || !recording.hasMore() {
		return
	}
	if !recording.isQueued {
		if len(r.queue) == 0 {
			r.since = time.Now()
			r.wakeUp()
		}
		recording.isQueued = true
		r.queue = append(r.queue, recording)
	}
	if len(recording.pending) >= r.config.MaxBatchEvents || recording.pendingBytes >= r.config.MaxBatchBytes {
		r.hurry()
	}
}

// hurry makes the queue be sent without lingering. The caller holds the lock.
func (r *Recorder) hurry() {
	if !r.isUrgent {
		r.isUrgent = true
		r.wakeUp()
	}
}

func (r *Recorder) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// call is a call of append_many: events of several recordings, stored in one transaction.
type call struct {
	recordings []*Recording
	counts     []int // of the events of each
	params     db.AppendManyParams
}

// nextCall takes the recordings that have waited longest from the queue.
func (r *Recorder) nextCall() call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next call
	bytes := 0
	for len(r.queue) > 0 && len(next.recordings) < maxCallRuns && bytes < maxCallBytes {
		recording := r.queue[0]
		r.queue = r.queue[1:]
		recording.isQueued = false
		// Since it was queued, it may have failed or be sent alone.
		switch {
		case !recording.hasMore() || recording.isAlone:
		case len(recording.pending[0])+recording.inputSize() > maxSharedBytes:
			r.sendAlone(recording, true)
		default:
			bytes += next.add(recording)
		}
	}
	if len(r.queue) == 0 {
		r.queue, r.isUrgent = nil, false
	}
	return next
}

// add adds a batch of a recording, and returns its size.
func (c *call) add(recording *Recording) (size int) {
	config := &recording.recorder.config
	events := recording.pending
	for i, event := range events {
		if i == config.MaxBatchEvents || i > 0 && size+len(event) > config.MaxBatchBytes {
			events = events[:i]
			break
		}
		size += len(event)
	}
	recording.inCall = len(events)
	c.recordings = append(c.recordings, recording)
	c.counts = append(c.counts, len(events))
	c.params.ThreadIds = append(c.params.ThreadIds, recording.threadID)
	c.params.RunIds = append(c.params.RunIds, recording.runID)
	c.params.Events = append(c.params.Events, string(jsonArray(events)))
	c.params.AfterSeqs = append(c.params.AfterSeqs, recording.seq)
	c.params.Scopes = append(c.params.Scopes, recording.scope)
	c.params.Parallel = append(c.params.Parallel, recording.options.Parallel)
	c.params.Durable = config.Durability == Durable
	c.params.Strict = config.Strict
	if recording.seq == 0 {
		size += c.addBeginning(&recording.options)
	}
	return size
}

// addBeginning adds the input and the parent of the run that the last item begins, and returns
// their size.
func (c *call) addBeginning(options *BeginOptions) (size int) {
	if len(options.Input) > 0 {
		c.params.Inputs = atLast(c.params.Inputs, len(c.recordings), string(options.Input))
	}
	switch {
	case options.NoParent:
		c.params.ParentRunIds = atLast(c.params.ParentRunIds, len(c.recordings), "=")
	case options.ParentRunID != "":
		c.params.ParentRunIds = atLast(c.params.ParentRunIds, len(c.recordings), "="+options.ParentRunID)
	}
	return len(options.Input)
}

// fill makes the arrays of inputs and parents as long as the others, unless no item begins a run.
func (c *call) fill() {
	for _, items := range []*[]string{&c.params.Inputs, &c.params.ParentRunIds} {
		if *items != nil {
			*items = append(*items, make([]string, len(c.recordings)-len(*items))...)
		}
	}
}

// atLast sets the last of n items, and adds empty ones before it if needed.
func atLast(items []string, n int, item string) []string {
	return append(append(items, make([]string, n-1-len(items))...), item)
}

// sendShared makes a call that runs share. If it fails, one of the runs is the cause: then each is
// sent alone, and the others succeed.
func (r *Recorder) sendShared(c call) {
	err := r.send(c)
	if err == nil || r.background.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isPermanent := classify(err) == permanent && !isCostly(err)
	for _, recording := range c.recordings {
		if recording.inCall = 0; isPermanent && len(c.recordings) == 1 {
			recording.fail(ErrorOf(err))
		} else {
			r.sendAlone(recording, true)
		}
	}
}

const lockNotAvailable = "55P03"

// sendAlone sends the next events of a recording in a call of their own, so that no other run waits
// for it: because another transaction holds the lock of its thread, or because they are costly. The
// caller holds the lock.
func (r *Recorder) sendAlone(recording *Recording, isCostly bool) {
	recording.isAlone = true
	r.tasks.Go(func() {
		if isCostly {
			select {
			case r.costly <- struct{}{}:
				defer func() { <-r.costly }()
			case <-r.background.Done():
				return
			}
		}
		err := r.sendByItself(recording, !isCostly)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.background.Err() != nil {
			return
		}
		if err != nil {
			recording.inCall = 0
			recording.fail(ErrorOf(err))
		}
		recording.isAlone = false
		r.enqueue(recording)
		recording.notify()
	})
}

// sendByItself sends the next events of a recording, and returns an error if they cannot be stored.
func (r *Recorder) sendByItself(recording *Recording, isLocked bool) error {
	failures := 0
	for {
		var alone call
		r.mu.Lock()
		if recording.hasMore() {
			alone.add(recording)
			// If the thread is locked, the call waits for the lock.
			alone.params.Wait = isLocked
		}
		r.mu.Unlock()
		if len(alone.recordings) == 0 {
			return nil
		}
		err := r.send(alone)
		switch {
		case errors.Is(err, errLocked):
			isLocked = true
		case err == nil || !isCostly(err) && !isTimeout(err):
			return err
		case isLocked: // perhaps for the lock: now without waiting for it
			isLocked = false
		default:
			if failures++; failures == maxCostlyAttempts {
				return fmt.Errorf("%s: its events were tried %d times, and the database answered other calls meanwhile: %w", recording, failures, err)
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.background.Done():
			return nil
		}
	}
}

// errLocked is the error of send for a call of one run that did not get the lock of its thread.
var errLocked = errors.New("another transaction writes to the thread")

// send makes a call and retries it until it is answered or fails permanently.
func (r *Recorder) send(c call) error {
	c.fill()
	report, end := r.reporter("append")
	defer end()
	isFirst := true
	answers, err := retry(r.background, retryPolicy{r.config.CallTimeout, report, r.isOwnFault}, func(ctx context.Context) ([]db.AppendManyRow, error) {
		if !isFirst {
			// After an outage the heartbeats come first. Otherwise a run that begins here could
			// cut off a run whose writer could not reach the database.
			if err := r.sayAlive(ctx); err != nil {
				return nil, err
			}
		}
		isFirst = false
		return r.live.AppendMany(ctx, c.params)
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Commits++
	for _, answer := range answers {
		i := answer.CallNo - 1
		recording := c.recordings[i]
		recording.inCall = 0
		switch {
		case answer.ErrorCode == "":
			r.stats.Batches++
			r.stats.Events += int64(c.counts[i])
			recording.stored(c.counts[i], answer)
		case answer.ErrorCode == lockNotAvailable && recording.isAlone:
			return errLocked
		case answer.ErrorCode == lockNotAvailable:
			r.sendAlone(recording, false)
		default:
			recording.fail(errorOfCall(answer))
		}
	}
	return nil
}

// isOwnFault reports whether a call that began then failed because of its own content: the database
// answers others.
func (r *Recorder) isOwnFault(err error, began time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return isCostly(err) || isTimeout(err) && r.answered.After(began)
}

// reporter returns the functions to call after each attempt of a call, and at its end.
func (r *Recorder) reporter(call string) (report func(error), end func()) {
	o := &outage{
		logger: r.config.Logger.With("call", call),
		lost:   "pgagui: the recorder retries a call that the database did not answer",
		still:  "pgagui: the recorder still retries a call that the database does not answer",
		back:   "pgagui: the database answers the recorder again",
	}
	report = func(err error) {
		o.report(err)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil {
			r.answered = time.Now()
			delete(r.outages, o)
		} else {
			r.stats.Retries++
			r.outages[o] = struct{}{}
		}
	}
	end = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.outages, o)
	}
	return report, end
}

// keepAlive sends heartbeats for the runs, and receives requests to stop.
func (r *Recorder) keepAlive() {
	ticker := time.NewTicker(r.config.CheckEvery)
	defer ticker.Stop()
	report, end := r.reporter("keep alive")
	defer end()
	failing := outage{
		logger: r.config.Logger,
		lost:   "pgagui: the runs that are recorded cannot be kept alive",
		still:  "pgagui: the runs that are recorded still cannot be kept alive",
		back:   "pgagui: the runs that are recorded are kept alive again",
	}
	for {
		select {
		case <-ticker.C:
		case <-r.background.Done():
			return
		}
		if len(r.running()) == 0 {
			continue
		}
		_, err := retry(r.background, retryPolicy{timeout: min(keepAliveTimeout, r.config.CallTimeout), report: report}, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, r.sayAlive(ctx)
		})
		if r.background.Err() == nil {
			failing.report(err)
		}
	}
}

// sayAlive calls agui.keep_alive for the runs in progress, also if there is none: it tells the
// database that writers can reach it.
func (r *Recorder) sayAlive(ctx context.Context) error {
	select {
	case r.alive <- struct{}{}:
		defer func() { <-r.alive }()
	case <-ctx.Done():
		return ctx.Err()
	}
	parts := r.running()
	if len(parts) == 0 {
		parts = [][]*Recording{nil}
	}
	for _, recordings := range parts {
		signals, err := r.live.KeepAlive(ctx, keepAliveParams(recordings...))
		if err != nil {
			return err
		}
		for _, signal := range signals {
			recordings[signal.CallNo-1].follow(signal)
		}
	}
	return nil
}

// retryPolicy is that of a call for one recording.
func (r *Recorder) retryPolicy() retryPolicy {
	return retryPolicy{timeout: r.config.CallTimeout, report: func(error) {}}
}

// detach leaves a run to the next writer, which may send no heartbeats.
func (r *Recorder) detach(ctx context.Context, recording *Recording) error {
	select {
	case r.alive <- struct{}{}: // otherwise a heartbeat in progress could undo the detach
		defer func() { <-r.alive }()
	case <-ctx.Done():
		return ctx.Err()
	}
	params := keepAliveParams(recording)
	params.Detach = true
	_, err := retry(ctx, r.retryPolicy(), func(ctx context.Context) ([]db.KeepAliveRow, error) {
		return r.live.KeepAlive(ctx, params)
	})
	return err
}

func keepAliveParams(recordings ...*Recording) (params db.KeepAliveParams) {
	for _, recording := range recordings {
		params.ThreadIds = append(params.ThreadIds, recording.threadID)
		params.RunIds = append(params.RunIds, recording.runID)
		params.Scopes = append(params.Scopes, recording.scope)
	}
	return params
}

// release releases the claim of a run that will not begin.
func (r *Recorder) release(ctx context.Context, claim *Claim) error {
	_, err := retry(ctx, r.retryPolicy(), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.store.InScope(claim.Scope).ReleaseClaim(ctx, claim)
	})
	return err
}

// running returns the recordings whose runs are in progress in the log, or claimed, in parts of the
// size of a call.
func (r *Recorder) running() (parts [][]*Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for recording := range r.open {
		// A run whose end is not stored yet is in progress in the log.
		isOver := recording.hasEnded && len(recording.pending) == 0
		hasNotBegun := recording.seq == 0 && recording.options.Claim == nil
		if hasNotBegun || isOver || recording.isDetached || recording.failure != nil {
			continue
		}
		if len(parts) == 0 || len(parts[len(parts)-1]) == maxCallRuns {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], recording)
	}
	return parts
}
