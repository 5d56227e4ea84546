package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
)

// Sender stores the events of many runs in shared calls, retries calls while the database is away,
// and keeps the runs alive.
//
// Runs with pending events wait in the queue of their lane. One goroutine takes them from there and
// makes one call after the other (send.go); what cannot share a call is sent in calls of its own.
// Another goroutine sends heartbeats (heartbeat.go). One database is one lane. Of a cluster each node
// is one, so that a node that does not answer holds up its own runs only.
type Sender struct {
	config SenderConfig
	hub    *Hub

	background context.Context // of what the sender itself does
	stop       context.CancelFunc
	tasks      sync.WaitGroup

	mu      sync.Mutex // guards what follows, all lanes and all runs
	runs    map[*Run]struct{}
	lanes   map[string]*lane
	isBegun bool // Start was called
	stats   SenderStats
	outages map[*outage]struct{} // of the calls that are being retried
}

// lane is a database that is called by itself.
type lane struct {
	name   string
	calls  Calls
	wake   chan struct{} // there is something to send, or it became urgent
	alive  chan struct{} // holds one while agui.keep_alive is called
	costly chan struct{} // holds one for each call of a run that was too costly to share one

	queue    []*Run    // those with events to send, the one that waits longest first
	since    time.Time // when the queue was last empty
	isUrgent bool      // send without lingering
	answered time.Time // when the database last answered a call
}

// SenderConfig holds what a sender needs. All of it is required but Linger, Relaxed, Strict, Lanes and
// Scope.
type SenderConfig struct {
	Calls Calls
	Lanes Lanes  // nil: one database
	Scope string // of the calls
	// Linger is how long an event waits for others to share a call with.
	Linger time.Duration
	// MaxBatchEvents and MaxBatchBytes bound the events of one run in one batch, MaxBufferBytes the
	// pending events of one run.
	MaxBatchEvents, MaxBatchBytes, MaxBufferBytes int
	// Relaxed commits without waiting for the disk.
	Relaxed bool
	Strict  bool
	// CheckEvery is the interval of heartbeats.
	CheckEvery  time.Duration
	CallTimeout time.Duration
	Logger      *slog.Logger
	// ErrorOf makes the error for callers of an error of the database.
	ErrorOf func(error) error
	// SignalOf says what the answer to a heartbeat means for a run that has not ended: why it
	// fails, or why it should stop. The sender calls it with its lock.
	SignalOf func(run *Run, answer db.KeepAliveRow) (failure, stop error)
}

// SenderStats are the counters of a sender. The fields are those of the public type.
type SenderStats struct {
	Commits, Batches, Events, Retries, Failed, Buffered int64
	RetryingSince                                       time.Time
	RetryCause                                          string
}

// NewSender returns a sender whose runs are followed in a hub. Start begins its work.
func NewSender(hub *Hub, config SenderConfig) *Sender {
	s := &Sender{
		config: config, hub: hub, runs: map[*Run]struct{}{}, lanes: map[string]*lane{}, outages: map[*outage]struct{}{},
	}
	s.background, s.stop = context.WithCancel(context.Background())
	return s
}

// Start begins to send, until Stop.
func (s *Sender) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isBegun = true
}

// Stop ends all calls and waits until they have ended.
func (s *Sender) Stop() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.tasks.Wait()
}

// laneOf returns the lane of a run. The caller holds the lock.
func (s *Sender) laneOf(run *Run) *lane {
	name := laneOf(s.config.Lanes, run.config.Key)
	if l := s.lanes[name]; l != nil {
		return l
	}
	l := &lane{
		name: name, calls: s.config.Calls,
		wake: make(chan struct{}, 1), alive: make(chan struct{}, 1), costly: make(chan struct{}, maxCostlyCalls),
	}
	if s.config.Lanes != nil {
		l.calls = s.config.Lanes.OnLane(name, s.config.Scope)
	}
	s.lanes[name] = l
	if s.isBegun && s.background.Err() == nil { // after Stop, it does not wait for them
		s.tasks.Go(panics.Task(s.logger(l), func() { s.sendQueue(l) }, nil))
		s.tasks.Go(panics.Task(s.logger(l), func() { s.keepAlive(l) }, nil))
	}
	return l
}

// logger is for what concerns a lane.
func (s *Sender) logger(l *lane) *slog.Logger {
	if l.name == "" {
		return s.config.Logger
	}
	return s.config.Logger.With("node", l.name)
}

// Stats returns the counters of the sender.
func (s *Sender) Stats() SenderStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	for run := range s.runs {
		stats.Buffered += int64(len(run.pending))
	}
	for outage := range s.outages {
		since, cause := outage.state()
		if !since.IsZero() && (stats.RetryingSince.IsZero() || since.Before(stats.RetryingSince)) {
			stats.RetryingSince, stats.RetryCause = since, cause.Error()
		}
	}
	return stats
}

// Begin returns a run to send events of, until End. It makes no call.
func (s *Sender) Begin(ctx context.Context, config RunConfig) *Run {
	run := &Run{sender: s, config: config, seq: config.Seq}
	run.ctx, run.cancel = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[run] = struct{}{}
	s.laneOf(run) // so that it gets heartbeats
	return run
}

// End forgets a run, which gets no more heartbeats.
func (s *Sender) End(run *Run) {
	s.mu.Lock()
	delete(s.runs, run)
	s.mu.Unlock()
	run.cancel(ErrClosed)
}

// RetryPolicy is that of a call for one run.
func (s *Sender) RetryPolicy() RetryPolicy { return RetryPolicy{Timeout: s.config.CallTimeout} }
