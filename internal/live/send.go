package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/refusal"
)

// The bounds of one call. It holds the locks of its threads until it commits.
const (
	maxCallRuns  = 500
	maxCallBytes = 8 << 20
	// timePerMiB is what a call may take beside CallTimeout, for each MiB: a network or a server that
	// is slow can be slow with 64 MiB for longer than that.
	timePerMiB = time.Second
)

const (
	// maxSharedBytes is the size of an event up to which it shares a call with others.
	maxSharedBytes = 1 << 20
	// maxCostlyCalls bounds the concurrent calls of runs that are too large or too slow to share
	// one. maxCostlyAttempts bounds the attempts of one of them while the database answers others.
	maxCostlyCalls, maxCostlyAttempts = 4, 3
	// longestMove is how long a run waits while its thread is being moved to another node.
	longestMove = 5 * time.Minute
)

// sendQueue sends the pending events of the runs of a lane, one call after the other.
func (s *Sender) sendQueue(l *lane) {
	for s.linger(l) {
		if next := s.nextCall(l); len(next.runs) > 0 {
			s.sendShared(next)
		}
	}
}

// linger waits until the queue must be sent, and returns false when the sender ends.
func (s *Sender) linger(l *lane) bool {
	for {
		s.mu.Lock()
		isEmpty, left := len(l.queue) == 0, time.Until(l.since.Add(s.config.Linger))
		if l.isUrgent {
			left = 0
		}
		s.mu.Unlock()
		var timer <-chan time.Time
		switch {
		case isEmpty:
		case left <= 0:
			return s.background.Err() == nil
		default:
			timer = time.After(left)
		}
		select {
		case <-timer:
		case <-l.wake:
		case <-s.background.Done():
			return false
		}
	}
}

// enqueue puts a run with pending events into the queue. The caller holds the lock.
func (s *Sender) enqueue(run *Run) {
	if run.isAlone || !run.hasMore() {
		return
	}
	if run.queuedIn == nil {
		l := s.laneOf(run)
		if len(l.queue) == 0 {
			l.since = time.Now()
			wakeUp(l.wake)
		}
		run.queuedIn = l
		l.queue = append(l.queue, run)
	}
	if len(run.pending) >= s.config.MaxBatchEvents || run.pendingBytes >= s.config.MaxBatchBytes {
		s.hurry(run)
	}
}

// hurry makes the queue of a run be sent without lingering. The caller holds the lock.
func (s *Sender) hurry(run *Run) {
	l := run.queuedIn
	if l == nil {
		l = s.laneOf(run)
	}
	if !l.isUrgent {
		l.isUrgent = true
		wakeUp(l.wake)
	}
}

// isolate works on a run, which alone fails if that panics: it keeps its events. It returns other
// errors. The caller holds the lock.
func (s *Sender) isolate(run *Run, work func() error) error {
	err := panics.Catch(s.config.Logger, work)
	if errors.Is(err, panics.Err) {
		run.inCall = 0
		run.fail(s.config.ErrorOf(fmt.Errorf("%s: its events cannot be stored: %w", run, err)))
		return nil
	}
	return err
}

// call is a call of append_many: events of several runs, stored in one transaction.
type call struct {
	lane   *lane
	calls  Calls
	runs   []*Run
	counts []int // of the events of each
	size   int   // of all events and inputs, in bytes
	params db.AppendManyParams
}

// nextCall takes the runs that have waited longest from the queue of a lane.
func (s *Sender) nextCall(l *lane) call {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := call{lane: l, calls: l.calls}
	for len(l.queue) > 0 && len(next.runs) < maxCallRuns && next.size < maxCallBytes {
		run := l.queue[0]
		l.queue = l.queue[1:]
		run.queuedIn = nil
		// Since it was queued, it may have failed, be sent alone, be in a call of another lane, whose answer
		// queues it again, or belong to another lane.
		switch {
		case !run.hasMore() || run.isAlone || run.inCall > 0:
		case s.laneOf(run) != l:
			s.enqueue(run)
		case len(run.pending[0])+run.inputSize() > maxSharedBytes:
			s.sendAlone(run, true)
		default:
			_ = s.isolate(run, func() error {
				next.add(run)
				return nil
			})
		}
	}
	if len(l.queue) == 0 {
		l.queue, l.isUrgent = nil, false
	}
	return next
}

// add adds a batch of a run.
func (c *call) add(run *Run) {
	config := &run.sender.config
	events := run.pending
	size := run.inputSize() // an input that is as large as a call may be leaves room for the first event only
	for i, event := range events {
		if i == config.MaxBatchEvents || i > 0 && size+len(event) > config.MaxBatchBytes {
			events = events[:i]
			break
		}
		size += len(event)
	}
	array := rawjson.String(rawjson.Array(events)) // first: what may panic leaves the call as it is
	run.inCall = len(events)
	c.size += size
	c.runs = append(c.runs, run)
	c.counts = append(c.counts, len(events))
	c.params.ThreadIds = append(c.params.ThreadIds, run.config.Key.ThreadID)
	c.params.RunIds = append(c.params.RunIds, run.config.RunID)
	c.params.Events = append(c.params.Events, array)
	c.params.AfterSeqs = append(c.params.AfterSeqs, run.seq)
	c.params.Scopes = append(c.params.Scopes, run.config.Key.Scope)
	c.params.Parallel = append(c.params.Parallel, run.config.Parallel)
	c.params.Durable = !config.Relaxed
	c.params.Strict = config.Strict
	if run.seq == 0 {
		c.addBeginning(&run.config)
	}
}

// addBeginning adds the input and the parent of the run that the last item begins.
func (c *call) addBeginning(config *RunConfig) {
	if len(config.Input) > 0 {
		c.params.Inputs = atLast(c.params.Inputs, len(c.runs), new(rawjson.String(config.Input)))
	}
	if config.Parent != nil {
		c.params.ParentRunIds = atLast(c.params.ParentRunIds, len(c.runs), config.Parent)
	}
}

// fill makes the arrays of inputs and parents as long as the others, unless no item begins a run.
func (c *call) fill() {
	for _, items := range []*[]*string{&c.params.Inputs, &c.params.ParentRunIds} {
		if *items != nil {
			*items = append(*items, make([]*string, len(c.runs)-len(*items))...)
		}
	}
}

// atLast sets the last of n items, and adds those that are not given before it if needed.
func atLast(items []*string, n int, item *string) []*string {
	return append(append(items, make([]*string, n-1-len(items))...), item)
}

// sendShared makes a call that runs share. If it fails, one of the runs is the cause: then each is
// sent alone, and the others succeed.
func (s *Sender) sendShared(c call) {
	err := panics.Catch(s.logger(c.lane), func() error { return s.send(c) })
	if err == nil || s.background.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	isMoving := isMoved(err) // a thread of the call; each run alone finds its own
	isPermanent := classify(err) == refusal.Permanent && !isCostly(err) && !isMoving
	for _, run := range c.runs {
		if run.inCall = 0; isPermanent && len(c.runs) == 1 {
			run.fail(s.config.ErrorOf(err))
		} else {
			s.sendAlone(run, !isMoving)
		}
	}
}

const lockNotAvailable = "55P03"

// sendAlone sends the next events of a run in a call of their own, so that no other run waits
// for it: because another transaction holds the lock of its thread, because its thread is on another
// node, or because they are costly. The caller holds the lock.
func (s *Sender) sendAlone(run *Run, isCostly bool) {
	run.isAlone = true
	l := s.laneOf(run)
	s.tasks.Go(panics.Task(s.logger(l), func() {
		if isCostly {
			select {
			case l.costly <- struct{}{}:
				defer func() { <-l.costly }()
			case <-s.background.Done():
				return
			}
		}
		err := panics.Catch(s.logger(l), func() error { return s.sendByItself(run, !isCostly) })
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.background.Err() != nil {
			return
		}
		if err != nil {
			run.inCall = 0
			run.fail(s.config.ErrorOf(err))
		}
		run.isAlone = false
		s.enqueue(run)
		run.notify()
	}, nil))
}

// sendByItself sends the next events of a run, and returns an error if they cannot be stored.
func (s *Sender) sendByItself(run *Run, isLocked bool) error {
	failures, since := 0, time.Now()
	for {
		alone := s.callOf(run)
		if len(alone.runs) == 0 {
			return nil
		}
		// If the thread is locked, the call waits for the lock.
		alone.params.Wait = isLocked
		err := s.send(alone)
		switch {
		case isMoved(err) && s.config.Lanes != nil && time.Since(since) < longestMove:
		case errors.Is(err, errLocked):
			isLocked = true
		case err == nil || !isCostly(err) && !isTimeout(err):
			return err
		case isLocked: // perhaps for the lock: now without waiting for it
			isLocked = false
		default:
			if failures++; failures == maxCostlyAttempts {
				return fmt.Errorf("%s: its events were tried %d times, and the database answered other calls meanwhile: %w", run, failures, err)
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.background.Done():
			return nil
		}
	}
}

// callOf returns a call of the next events of a run alone.
func (s *Sender) callOf(run *Run) call {
	s.mu.Lock()
	defer s.mu.Unlock()
	alone := call{lane: s.laneOf(run), calls: s.config.Calls}
	if run.hasMore() {
		alone.add(run)
	}
	return alone
}

// errLocked is the error of send for a call of one run that did not get the lock of its thread.
var errLocked = errors.New("another transaction writes to the thread")

// send makes a call and retries it until it is answered or fails permanently.
func (s *Sender) send(c call) error {
	c.fill()
	report, end := s.reporter("append", c.lane)
	defer end()
	isFirst := true
	timeout := s.config.CallTimeout + time.Duration(c.size>>20)*timePerMiB
	answers, err := Retry(s.background, RetryPolicy{timeout, report, c.isOwnFault}, func(ctx context.Context) ([]db.AppendManyRow, error) {
		if !isFirst {
			// After an outage the heartbeats come first. Otherwise a run that begins here could
			// cut off a run whose writer could not reach the database.
			if err := s.sayAlive(ctx, c.lane); err != nil {
				return nil, err
			}
		}
		isFirst = false
		return c.calls.AppendMany(ctx, c.params)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Commits++
	for _, answer := range answers {
		i := answer.CallNo - 1
		if err := s.isolate(c.runs[i], func() error { return s.answered(c, int(i), answer) }); err != nil {
			return err
		}
	}
	return nil
}

// answered takes the answer for a run of a call. The caller holds the lock.
func (s *Sender) answered(c call, i int, answer db.AppendManyRow) error {
	run := c.runs[i]
	run.inCall = 0
	switch {
	case answer.ErrorCode == "":
		s.stats.Batches++
		s.stats.Events += int64(c.counts[i])
		run.stored(c.params.AfterSeqs[i], c.counts[i], answer)
	case answer.ErrorCode == lockNotAvailable && run.isAlone:
		return errLocked
	case answer.ErrorCode == lockNotAvailable, answer.ErrorCode == refusal.Moved.State && !run.isAlone:
		s.sendAlone(run, false)
	default:
		refusal := &pgconn.PgError{Severity: "ERROR", Code: answer.ErrorCode, Message: answer.Error, Detail: answer.Detail, Hint: answer.Hint}
		if isMoved(refusal) {
			return refusal
		}
		run.fail(s.config.ErrorOf(refusal))
	}
	return nil
}

// isOwnFault reports whether a call that began then failed because of its own content: the database
// answers others.
func (c *call) isOwnFault(err error, began time.Time) bool {
	s := c.runs[0].sender
	s.mu.Lock()
	defer s.mu.Unlock()
	return isCostly(err) || isTimeout(err) && c.lane.answered.After(began)
}

// reporter returns the functions to call after each attempt of a call in a lane, and at its end.
func (s *Sender) reporter(call string, l *lane) (report func(error), end func()) {
	o := &outage{
		logger: s.logger(l).With("call", call),
		lost:   "pgagui: the recorder retries a call that the database did not answer",
		still:  "pgagui: the recorder still retries a call that the database does not answer",
		back:   "pgagui: the database answers the recorder again",
	}
	report = func(err error) {
		o.report(err)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			l.answered = time.Now()
			delete(s.outages, o)
		} else {
			s.stats.Retries++
			s.outages[o] = struct{}{}
		}
	}
	end = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.outages, o)
	}
	return report, end
}
