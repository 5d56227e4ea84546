package live

import (
	"context"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
)

// keepAliveTimeout is short, so that the lease does not expire while a heartbeat waits on a lost
// connection.
const keepAliveTimeout = 10 * time.Second

// keepAlive sends heartbeats for the runs of a lane, and receives requests to stop.
func (s *Sender) keepAlive(l *lane) {
	ticker := time.NewTicker(s.config.CheckEvery)
	defer ticker.Stop()
	report, end := s.reporter("keep alive", l)
	defer end()
	failing := outage{
		logger: s.logger(l),
		lost:   "pgagui: the runs that are recorded cannot be kept alive",
		still:  "pgagui: the runs that are recorded still cannot be kept alive",
		back:   "pgagui: the runs that are recorded are kept alive again",
	}
	for {
		select {
		case <-ticker.C:
		case <-s.background.Done():
			return
		}
		if len(s.running(l)) == 0 {
			continue
		}
		err := panics.Catch(s.logger(l), func() error {
			_, err := Retry(s.background, RetryPolicy{Timeout: min(keepAliveTimeout, s.config.CallTimeout), report: report}, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, s.sayAlive(ctx, l)
			})
			return err
		})
		if s.background.Err() == nil {
			failing.report(err)
		}
	}
}

// sayAlive calls agui.keep_alive for the runs in progress of a lane, also if there is none: it tells
// the database that writers can reach it.
func (s *Sender) sayAlive(ctx context.Context, l *lane) error {
	if err := l.hold(ctx); err != nil {
		return err
	}
	defer l.release()
	for attempt := 1; ; attempt++ {
		err := s.sayAllAlive(ctx, l)
		// The call names threads that are on other nodes now: then they are in other lanes.
		if !isMoved(err) || s.config.Lanes == nil || attempt == maxMovedAttempts {
			return err
		}
	}
}

// maxMovedAttempts bounds the calls of a heartbeat while threads of the lane are being moved away.
const maxMovedAttempts = 5

func (s *Sender) sayAllAlive(ctx context.Context, l *lane) error {
	parts := s.running(l)
	if len(parts) == 0 {
		parts = [][]*Run{nil}
	}
	for _, runs := range parts {
		signals, err := l.calls.KeepAlive(ctx, keepAliveParams(runs...))
		if err != nil {
			return err
		}
		for _, signal := range signals {
			s.follow(runs[signal.CallNo-1], signal)
		}
	}
	return nil
}

// hold waits until no other call of agui.keep_alive is in progress in the lane, until release.
func (l *lane) hold(ctx context.Context) error {
	select {
	case l.alive <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lane) release() { <-l.alive }

// follow acts on the answer to a heartbeat.
func (s *Sender) follow(run *Run, answer db.KeepAliveRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run.hasEnded { // its end may be in the log already
		return
	}
	failure, stop := s.config.SignalOf(run, answer)
	switch {
	case failure != nil:
		run.fail(failure)
	case stop != nil:
		run.cancel(stop)
	}
}

// Detach leaves a run to the next writer, which may send no heartbeats. After an error it stays
// with the sender.
func (s *Sender) Detach(ctx context.Context, run *Run) error {
	s.setDetached(run, true)
	err := s.detach(ctx, run)
	if err != nil {
		s.setDetached(run, false)
	}
	return err
}

func (s *Sender) setDetached(run *Run, isDetached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run.isDetached = isDetached
}

func (s *Sender) detach(ctx context.Context, run *Run) error {
	s.mu.Lock()
	l := s.laneOf(run)
	s.mu.Unlock()
	if err := l.hold(ctx); err != nil { // otherwise a heartbeat in progress could undo the detach
		return err
	}
	defer l.release()
	params := keepAliveParams(run)
	params.Detach = true
	_, err := Retry(ctx, s.RetryPolicy(), func(ctx context.Context) ([]db.KeepAliveRow, error) {
		return s.config.Calls.KeepAlive(ctx, params)
	})
	return err
}

func keepAliveParams(runs ...*Run) (params db.KeepAliveParams) {
	for _, run := range runs {
		params.ThreadIds = append(params.ThreadIds, run.config.Key.ThreadID)
		params.RunIds = append(params.RunIds, run.config.RunID)
		params.Scopes = append(params.Scopes, run.config.Key.Scope)
	}
	return params
}

// running returns the runs in progress of a lane, in parts of the size of a call.
func (s *Sender) running(l *lane) (parts [][]*Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for run := range s.runs {
		if !run.isInProgress() || s.laneOf(run) != l {
			continue
		}
		if len(parts) == 0 || len(parts[len(parts)-1]) == maxCallRuns {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], run)
	}
	return parts
}
