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

// RecorderConfig holds the settings of a Recorder. The zero value is ready to use: what an agent emits can be read within 50 ms.
type RecorderConfig struct {
	// Linger is how long an event waits for others, of its run and of others, to share a commit with. 20 ms when 0.
	Linger time.Duration
	// MaxBatchEvents and MaxBatchBytes are how much of one run goes into one batch. A run that has so much is not kept waiting.
	// 500 events and 64 KB when 0.
	MaxBatchEvents, MaxBatchBytes int
	// MaxBufferBytes is how much of one run may wait to be stored. Then Record waits: an agent that emits more than the database takes, or
	// goes on while it is away, is slowed down. 4 MB when 0.
	MaxBufferBytes int
	// Durability is what an event that is stored has outlived.
	Durability Durability
	// Strict refuses what breaks the protocol, as the option Strict of Append does.
	Strict bool
	// CheckEvery is how often the recorder says that its runs are alive, and asks whether one shall stop. A second when 0. It must be
	// less than a third of the database's setting heartbeat_lease (30 seconds), which is the lease of the runs of a recorder.
	CheckEvery time.Duration
	// CallTimeout is after how long a call that the database does not answer is given up, to be repeated on another connection.
	// 30 seconds when 0.
	CallTimeout time.Duration
	// CloseTimeout is how long Close takes at most when its ctx has ended before, as it has in "defer recorder.Close(ctx)" at the end of
	// a program that was told to stop. 10 seconds when 0.
	CloseTimeout time.Duration
	// Logger gets a line when the database cannot be reached, every minute as long as it cannot be, and when it can again; and one
	// for each recording that ends early. slog.Default() when nil.
	Logger *slog.Logger
}

// Durability is what an event has outlived once it counts as stored.
type Durability int

const (
	// Durable commits as the database is set to, as a rule when the event is on disk: nothing that is stored is lost in a crash.
	Durable Durability = iota
	// Relaxed commits without waiting for the disk (synchronous_commit = off). A crash of the server, not of the recorder, may take back what was
	// stored in its last moments, up to three times wal_writer_delay (0.6 seconds unless set). What is left is in order and without gaps; the
	// recording fails then with ErrLogRewound, and so do followers that have seen more.
	Relaxed
)

// RecorderStats counts what a Recorder has done.
type RecorderStats struct {
	// Commits are the transactions that stored events.
	Commits int64 `json:"commits"`
	// Batches are the rows that they wrote: a batch holds events of one run.
	Batches int64 `json:"batches"`
	Events  int64 `json:"events"`
	// Repeats are attempts of calls after one that failed.
	Repeats int64 `json:"repeats"`
	// Failed counts the recordings that ended early.
	Failed int64 `json:"failed"`
	// Buffered is how many events wait to be stored now.
	Buffered int64 `json:"buffered"`
	// RepeatingSince is when the oldest of the calls that are being repeated now failed first; zero: there is none.
	RepeatingSince time.Time `json:"repeatingSince,omitzero"`
	// RepeatCause is the error of its last attempt.
	RepeatCause string `json:"repeatCause,omitempty"`
}

// Recorder stores what the agents of a process emit while they run. The runs share commits, so hundreds of them can stream at once over few
// connections. What could not be sent while the database was away is sent again, as often as it takes, and is stored once. What the database
// refuses, or cannot do, ends the recording of that run alone; Recording.Unstored has its events.
//
//	recorder := store.NewRecorder(nil)
//	defer recorder.Close(ctx)
//
//	recording := recorder.Begin(ctx, "thread-1", "run-1", pgagui.RecordOptions{})
//	defer recording.Close(ctx)
//	for event := range agent.Run(recording.Context(), input) {
//		if err := recording.Record(ctx, event); err != nil { … }
//	}
//
// What a standby refuses is sent again, too, until it is promoted. A pool that may meet a standby that stays one should connect with
// target_session_attrs=read-write.
//
// A failure that lasts is said in the log every minute, and Stats has it. The package otelagui makes metrics of Stats.
//
// Under row-level security its role is an operator, as a rule, and records for all scopes. On a Store with SetScope it records those of the Store's scope
// alone; a recording of another scope ends with ErrPermissionDenied.
//
// It takes up to two connections of the pool, one more for a run whose thread another transaction is writing to, and up to four for runs whose
// events were too large or took too long to be sent with those of others.
type Recorder struct {
	store  *Store
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
	isUrgent bool         // do not linger
	isClosed bool
	stats    RecorderStats
	outages  map[*outage]struct{} // of the calls that are being repeated
	answered time.Time            // when the database last answered a call
}

// What one call takes at most: the locks of its threads are held until it commits.
const (
	maxCallRuns  = 500
	maxCallBytes = 8 << 20
)

const (
	// maxSharedBytes is how large an event may be to share a call with others.
	maxSharedBytes = 1 << 20
	// maxCostlyCalls is how many calls of runs that are too large or too slow to share one are made at once, and
	// mostCostly how often one of them is tried while the database does answer others.
	maxCostlyCalls, mostCostly = 4, 3
	// keepAliveTimeout is short, so that a connection that the network has lost does not take the lease.
	keepAliveTimeout = 10 * time.Second
)

// NewRecorder returns a Recorder for the threads of the store's scope. config may be nil. It must be closed. The store must be on a pool:
// otherwise each recording fails at once with ErrNeedsPool.
func (s *Store) NewRecorder(config *RecorderConfig) *Recorder {
	r := &Recorder{
		store: s, wake: make(chan struct{}, 1), alive: make(chan struct{}, 1), costly: make(chan struct{}, maxCostlyCalls),
		open: map[*Recording]struct{}{}, outages: map[*outage]struct{}{},
	}
	if config != nil {
		r.config = *config
	}
	setDefault(&r.config.Linger, 20*time.Millisecond)
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

// Stats returns what the recorder has done so far.
func (r *Recorder) Stats() RecorderStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	for recording := range r.open {
		stats.Buffered += int64(len(recording.pending))
	}
	for outage := range r.outages {
		since, cause := outage.state()
		if !since.IsZero() && (stats.RepeatingSince.IsZero() || since.Before(stats.RepeatingSince)) {
			stats.RepeatingSince, stats.RepeatCause = since, cause.Error()
		}
	}
	return stats
}

// Close closes all recordings as Recording.Close does, all at once, and ends the recorder. When ctx ends first, the error says of which runs
// events are not stored; Recording.Unstored has them. Called again, it ends those runs in the log, and returns the error again.
//
// It returns the errors that ended recordings early, but for those that a method of the recording has returned already. A ctx that has ended before
// Close is called does not count: see RecorderConfig.CloseTimeout.
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
			recording.fail(failures[i]) // its agent goes on for nothing
		}
		if wasReported[recording] {
			failures[i] = nil
		}
	}
	return errors.Join(failures...)
}

// closing is the context of a Close that was called with ctx.
func (r *Recorder) closing(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), r.config.CloseTimeout)
}

// sendQueue sends what recordings have, one call after the other.
func (r *Recorder) sendQueue() {
	for r.linger() {
		if next := r.nextCall(); len(next.recordings) > 0 {
			r.sendShared(next)
		}
	}
}

// linger waits until there is something that must not wait any longer, and reports false when the recorder ends.
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

// enqueue has the events of a recording sent. The caller holds the lock.
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

// hurry has the queue sent at once. The caller holds the lock.
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

// call is what recordings have to store, in one transaction.
type call struct {
	recordings []*Recording
	counts     []int // of the events of each
	params     db.AppendManyParams
}

// nextCall takes what has waited longest off the queue.
func (r *Recorder) nextCall() call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next call
	bytes := 0
	for len(r.queue) > 0 && len(next.recordings) < maxCallRuns && bytes < maxCallBytes {
		recording := r.queue[0]
		r.queue = r.queue[1:]
		recording.isQueued = false
		// It may have failed since, or be sent alone since.
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

// add takes a batch of a recording in, and returns its size.
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

// addBeginning gives the last call what comes with the beginning of a run, and returns its size.
func (c *call) addBeginning(options *RecordOptions) (size int) {
	if len(options.Input) > 0 {
		c.params.Inputs = atLast(c.params.Inputs, len(c.recordings), string(options.Input))
	}
	switch {
	case options.NoParent:
		c.params.ParentRunIds = atLast(c.params.ParentRunIds, len(c.recordings), "=")
	case options.Parent != "":
		c.params.ParentRunIds = atLast(c.params.ParentRunIds, len(c.recordings), "="+options.Parent)
	}
	return len(options.Input)
}

// fill makes the arrays of what only beginnings have as long as the others, unless no call begins a run.
func (c *call) fill() {
	for _, items := range []*[]string{&c.params.Inputs, &c.params.ParentRunIds} {
		if *items != nil {
			*items = append(*items, make([]string, len(c.recordings)-len(*items))...)
		}
	}
}

// atLast sets the last of n items. The others that the slice does not have yet are empty.
func atLast(items []string, n int, item string) []string {
	return append(append(items, make([]string, n-1-len(items))...), item)
}

// sendShared makes a call that runs share. Whatever keeps it from being done is that of one of them: on their own, the others go through.
func (r *Recorder) sendShared(c call) {
	err := r.send(c)
	if err == nil || r.background.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isPermanent := prospectOf(err) == permanent && !isCostly(err)
	for _, recording := range c.recordings {
		if recording.inCall = 0; isPermanent && len(c.recordings) == 1 {
			recording.fail(refusal(err))
		} else {
			r.sendAlone(recording, true)
		}
	}
}

const lockNotAvailable = "55P03"

// sendAlone sends the next events of a recording in a call of their own, so that no other run waits for it: because another transaction has
// the lock of its thread, or because they are costly. The caller holds the lock.
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
			recording.fail(refusal(err))
		}
		recording.isAlone = false
		r.enqueue(recording)
		recording.notify()
	})
}

// sendByItself sends the next events of a recording, and returns an error when they cannot be stored.
func (r *Recorder) sendByItself(recording *Recording, isLocked bool) error {
	failures := 0
	for {
		var alone call
		r.mu.Lock()
		if recording.hasMore() {
			alone.add(recording)
			// With the thread locked it waits for that, which is not the call's fault.
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
			if failures++; failures == mostCostly {
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

// errLocked is what send returns for a call of one run that did not wait for the lock of its thread.
var errLocked = errors.New("another transaction writes to the thread")

// send makes a call until it is answered, or fails for good.
func (r *Recorder) send(c call) error {
	c.fill()
	report, end := r.reporter("append")
	defer end()
	isFirst := true
	answers, err := again(r.background, attempts{r.config.CallTimeout, report, r.isToBlame}, func(ctx context.Context) ([]db.AppendManyRow, error) {
		if !isFirst {
			// After an outage, so that no run that begins here cuts off one whose writer could not reach the database.
			if err := r.sayAlive(ctx); err != nil {
				return nil, err
			}
		}
		isFirst = false
		return r.store.queries.AppendMany(ctx, c.params)
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
			recording.stored(c.counts[i], answer.LastSeq)
		case answer.ErrorCode == lockNotAvailable && recording.isAlone:
			return errLocked
		case answer.ErrorCode == lockNotAvailable:
			r.sendAlone(recording, false)
		default:
			recording.fail(refusalOf(answer))
		}
	}
	return nil
}

// isToBlame reports whether a call that began then failed because of what it brings: the database answers others.
func (r *Recorder) isToBlame(err error, began time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return isCostly(err) || isTimeout(err) && r.answered.After(began)
}

// reporter returns what is called after each attempt of a call, and at its end.
func (r *Recorder) reporter(call string) (report func(error), end func()) {
	o := &outage{
		logger: r.config.Logger.With("call", call),
		lost:   "pgagui: the recorder repeats a call that the database did not answer",
		still:  "pgagui: the recorder still repeats a call that the database does not answer",
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
			r.stats.Repeats++
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

// keepAlive says from time to time that the runs are alive, and learns which of them shall stop.
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
		_, err := again(r.background, attempts{timeout: min(keepAliveTimeout, r.config.CallTimeout), report: report}, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, r.sayAlive(ctx)
		})
		if r.background.Err() == nil {
			failing.report(err)
		}
	}
}

// sayAlive calls agui.keep_alive for the runs in progress, also where there is none: the database learns that writers can reach it.
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
		signals, err := r.store.queries.KeepAlive(ctx, keepAliveParams(recordings...))
		if err != nil {
			return err
		}
		for _, signal := range signals {
			recordings[signal.CallNo-1].follow(signal)
		}
	}
	return nil
}

// attempts are those of a call that is made for one recording.
func (r *Recorder) attempts() attempts {
	return attempts{timeout: r.config.CallTimeout, report: func(error) {}}
}

// detach leaves a run to the writer that goes on with it, which may have no heartbeats.
func (r *Recorder) detach(ctx context.Context, recording *Recording) error {
	select {
	case r.alive <- struct{}{}: // a call that is under way would have the heartbeats go on
		defer func() { <-r.alive }()
	case <-ctx.Done():
		return ctx.Err()
	}
	params := keepAliveParams(recording)
	params.Detach = true
	_, err := again(ctx, r.attempts(), func(ctx context.Context) ([]db.KeepAliveRow, error) {
		return r.store.queries.KeepAlive(ctx, params)
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

// running returns the recordings whose runs are in progress in the log, as many in each part as one call takes.
func (r *Recorder) running() (parts [][]*Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for recording := range r.open {
		// A run whose end waits to be stored is in progress in the log.
		isOver := recording.hasEnded && len(recording.pending) == 0
		if recording.seq == 0 || isOver || recording.isDetached || recording.failure != nil {
			continue
		}
		if len(parts) == 0 || len(parts[len(parts)-1]) == maxCallRuns {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], recording)
	}
	return parts
}
