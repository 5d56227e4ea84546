package pgagui

import (
	"context"
	"errors"
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
	// CheckEvery is how often the recorder says that its runs are alive, and asks whether one shall stop. A second when 0.
	CheckEvery time.Duration
	// CallTimeout is after how long a call that the database does not answer is given up, to be repeated on another connection.
	// 30 seconds when 0.
	CallTimeout time.Duration
	// Logger gets a line when the database cannot be reached and when it can again. slog.Default() when nil.
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
	// Repeats are calls that were made again because their answer did not come.
	Repeats int64 `json:"repeats"`
}

// Recorder stores what the agents of a process emit while they run. The runs share commits, so hundreds of them can stream at once over few
// connections. What could not be sent is sent again, as often as it takes, and is stored once.
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
// It takes up to two connections of the pool, and one more for a run whose thread another transaction is writing to.
type Recorder struct {
	store  *Store
	config RecorderConfig

	background context.Context // of what the recorder itself does
	stop       context.CancelFunc
	tasks      sync.WaitGroup
	wake       chan struct{} // there is something to send, or it became urgent

	mu       sync.Mutex // guards what follows, and all of the recordings
	open     map[*Recording]struct{}
	queue    []*Recording // those with events to send, the one that waits longest first
	since    time.Time    // when the queue was last empty
	isUrgent bool         // do not linger
	isClosed bool
	stats    RecorderStats
}

// What one call takes at most: the locks of its threads are held until it commits.
const (
	maxCallRuns  = 500
	maxCallBytes = 8 << 20
)

// NewRecorder returns a Recorder for the threads of the store's scope. config may be nil. It must be closed.
func (s *Store) NewRecorder(config *RecorderConfig) *Recorder {
	r := &Recorder{store: s, wake: make(chan struct{}, 1), open: map[*Recording]struct{}{}}
	if config != nil {
		r.config = *config
	}
	setDefault(&r.config.Linger, 20*time.Millisecond)
	setDefault(&r.config.MaxBatchEvents, 500)
	setDefault(&r.config.MaxBatchBytes, 64<<10)
	setDefault(&r.config.MaxBufferBytes, 4<<20)
	setDefault(&r.config.CheckEvery, time.Second)
	setDefault(&r.config.CallTimeout, 30*time.Second)
	setDefault(&r.config.Logger, slog.Default())
	r.background, r.stop = context.WithCancel(context.Background())
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
	return r.stats
}

// Close closes all recordings as Recording.Close does, all at once, and ends the recorder. When ctx ends first, the error says of which runs
// events are not stored; they are lost with the recorder. Called again, it ends those runs in the log, and returns the error again.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	r.isClosed = true
	var open []*Recording
	for recording := range r.open {
		open = append(open, recording)
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
			recording.fail(failures[i]) // its agent goes on for nothing
		}
	}
	return errors.Join(failures...)
}

// sendQueue sends what recordings have, one call after the other.
func (r *Recorder) sendQueue() {
	for r.linger() {
		r.send(r.nextCall())
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
	if recording.isAlone || len(recording.pending) == 0 {
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
		if len(recording.pending) > 0 && !recording.isAlone {
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

// send makes the call, again and again until it is answered.
func (r *Recorder) send(c call) {
	if len(c.recordings) == 0 {
		return
	}
	c.fill()
	answers, err := again(r.background, r.config.CallTimeout, r.reporter("append"), func(ctx context.Context) ([]db.AppendManyRow, error) {
		return r.store.queries.AppendMany(ctx, c.params)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.background.Err() != nil:
		return
	case err != nil && len(c.recordings) > 1:
		// The events of one make the whole statement fail: PostgreSQL cannot read them. On their own, the others go through.
		for _, recording := range c.recordings {
			r.sendAlone(recording)
		}
		return
	case err != nil:
		c.recordings[0].fail(refusal(err))
		return
	}
	r.stats.Commits++
	for _, answer := range answers {
		i := answer.CallNo - 1
		recording := c.recordings[i]
		switch answer.ErrorCode {
		case "":
			r.stats.Batches++
			r.stats.Events += int64(c.counts[i])
			recording.stored(c.counts[i], answer.LastSeq)
		case lockNotAvailable:
			r.sendAlone(recording)
		default:
			recording.fail(refusalOf(answer))
		}
	}
}

const lockNotAvailable = "55P03"

// sendAlone sends the next events of a recording in a call of their own, which may wait for the lock of its thread, so that no other run
// waits for it. The caller holds the lock.
func (r *Recorder) sendAlone(recording *Recording) {
	recording.isAlone = true
	r.tasks.Go(func() {
		var alone call
		r.mu.Lock()
		if len(recording.pending) > 0 {
			alone.add(recording)
			alone.params.Wait = true
		}
		r.mu.Unlock()
		r.send(alone)
		r.mu.Lock()
		defer r.mu.Unlock()
		recording.isAlone = false
		r.enqueue(recording)
	})
}

// reporter returns what is to be told how the attempts of a call go.
func (r *Recorder) reporter(call string) func(error) {
	o := &outage{
		logger: r.config.Logger.With("call", call),
		lost:   "pgagui: the recorder repeats what the database did not answer",
		back:   "pgagui: the database answers the recorder again",
	}
	return func(err error) {
		o.report(err)
		if err != nil {
			r.mu.Lock()
			r.stats.Repeats++
			r.mu.Unlock()
		}
	}
}

// keepAlive says from time to time that the runs are alive, and hears which of them shall stop.
func (r *Recorder) keepAlive() {
	ticker := time.NewTicker(r.config.CheckEvery)
	defer ticker.Stop()
	report := r.reporter("keep alive")
	for {
		select {
		case <-ticker.C:
		case <-r.background.Done():
			return
		}
		for _, recordings := range r.running() {
			var params db.KeepAliveParams
			for _, recording := range recordings {
				params.ThreadIds = append(params.ThreadIds, recording.threadID)
				params.RunIds = append(params.RunIds, recording.runID)
				params.Scopes = append(params.Scopes, recording.scope)
			}
			signals, err := again(r.background, r.config.CallTimeout, report, func(ctx context.Context) ([]db.KeepAliveRow, error) {
				return r.store.queries.KeepAlive(ctx, params)
			})
			if err != nil {
				if r.background.Err() == nil {
					r.config.Logger.Error("pgagui: the runs that are recorded cannot be kept alive", "error", err)
				}
				break
			}
			for _, signal := range signals {
				recordings[signal.CallNo-1].heed(signal)
			}
		}
	}
}

// running returns the recordings whose runs are in progress in the log, as many in each part as one call takes.
func (r *Recorder) running() (parts [][]*Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for recording := range r.open {
		if recording.seq == 0 || recording.hasEnded || recording.failure != nil {
			continue
		}
		if len(parts) == 0 || len(parts[len(parts)-1]) == maxCallRuns {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], recording)
	}
	return parts
}
