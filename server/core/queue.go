package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pgagui/pgagui"
)

// ConcurrentRun says what a request does while another run of its thread is in progress.
type ConcurrentRun string

const (
	// RefuseRun refuses the request with 409.
	RefuseRun ConcurrentRun = ""
	// SupersedeRun requests the other run to stop, and begins when that has ended.
	SupersedeRun ConcurrentRun = "supersede"
	// QueueRun waits until the other run has ended, and continues from it.
	QueueRun ConcurrentRun = "queue"
)

const minTurnPause, maxTurnPause = 50 * time.Millisecond, 500 * time.Millisecond

// queues let the requests for a thread take their turns in the order in which they came.
type queues struct {
	mu  sync.Mutex
	all map[threadKey][]chan struct{} // the first one is closed: it has its turn
}

type threadKey struct{ scope, threadID string }

// enter puts a request at the end of the line. It has its turn when the channel is closed, until it leaves.
func (q *queues) enter(thread threadKey) (turn chan struct{}, leave func()) {
	turn = make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all[thread] = append(q.all[thread], turn)
	if len(q.all[thread]) == 1 {
		close(turn)
	}
	return turn, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		line := q.all[thread]
		isFirst := line[0] == turn
		line = slices.DeleteFunc(line, func(other chan struct{}) bool { return other == turn })
		switch {
		case len(line) == 0:
			delete(q.all, thread)
			return
		case isFirst:
			close(line[0])
		}
		q.all[thread] = line
	}
}

// claimInTurn is claim, after the other runs of the thread if the agent has them wait. A request that has waited for
// Agent.QueueTimeout claims out of turn, and is refused while another run is in progress.
func (s *Server) claimInTurn(ctx context.Context, to Tenant, agent *Agent, in *Input) (claim *pgagui.Claim, isKnown bool, err error) {
	if agent.OnConcurrentRun == RefuseRun {
		return s.claim(ctx, to, agent, in)
	}
	waiting, cancel := context.WithTimeout(ctx, agent.QueueTimeout)
	defer cancel()
	defer context.AfterFunc(s.streaming, cancel)()
	turn, leave := s.queues.enter(threadKey{to.scope, in.ThreadID})
	defer leave()
	defer func() {
		if in.waitedFrom != nil {
			s.metrics.queued.Dec()
		}
	}()
	select {
	case <-turn:
	default:
		s.beginWaiting(waiting, to, in)
		select {
		case <-turn:
		case <-waiting.Done():
		}
	}
	for pause := minTurnPause; ; pause = min(2*pause, maxTurnPause) {
		if s.streaming.Err() != nil {
			return nil, false, ErrShutdown
		}
		claim, isKnown, err = s.claim(ctx, to, agent, in)
		if !errors.Is(err, pgagui.ErrRunInProgress) || waiting.Err() != nil {
			return claim, isKnown, err
		}
		s.beginWaiting(waiting, to, in)
		if agent.OnConcurrentRun == SupersedeRun {
			_, err = to.RequestStop(waiting, pgagui.RunRef{ThreadID: in.ThreadID}, pgagui.RequestStopOptions{Reason: "superseded by another run"})
			if err != nil && waiting.Err() == nil {
				return nil, false, err
			}
		}
		select {
		case <-time.After(pause):
		case <-waiting.Done():
		}
	}
}

// beginWaiting notes, once, at the end of which run a thread was before what a request waits for.
func (s *Server) beginWaiting(ctx context.Context, from Tenant, in *Input) {
	if in.waitedFrom == nil {
		s.metrics.queued.Inc()
		_, before := runInProgress(ctx, from, in.ThreadID)
		in.waitedFrom = &before
	}
}
