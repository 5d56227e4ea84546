package jobs

import (
	"context"
	"time"

	"github.com/pgagui/pgagui/internal/panics"
)

// WithGrace returns a context for jobs that end in order when ctx ends. From then on the jobs begin
// no new work, and have the grace to finish the work at hand. After it the returned context ends.
//
// A job that ends early for this reason returns no error; its result has [StoppedOnCall].
func WithGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	granted, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), notice{}, ctx.Done()))
	stop := context.AfterFunc(ctx, panics.Task(nil, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-granted.Done():
		}
	}, nil))
	return granted, func() {
		stop()
		cancel()
	}
}

// notice is the key of the channel that is closed when a job has to end in order.
type notice struct{}

// hasToStop reports whether a job may begin no new work.
func hasToStop(ctx context.Context) bool {
	stopped, _ := ctx.Value(notice{}).(<-chan struct{})
	select {
	case <-stopped: // nil without a grace: never
		return true
	default:
		return false
	}
}

// StopReason is why a job ended before all was done. It is not an error: the next call continues.
type StopReason string

const (
	StoppedAtLimit StopReason = "limit"       // MaxRuns, MaxThreads
	StoppedByTime  StopReason = "time"        // MaxTime
	StoppedOnCall  StopReason = "interrupted" // the context of WithGrace
)

// limits are the bounds at which a job ends early.
type limits struct {
	begin   time.Time
	maxTime time.Duration // 0: none
	most    int           // things done; 0: any number
}

// isOver reports whether the time limit is reached.
func (l limits) isOver() bool {
	return l.maxTime > 0 && time.Since(l.begin) >= l.maxTime
}

// reached returns why the job must begin no new work; empty if it may continue.
func (l limits) reached(ctx context.Context, done int) StopReason {
	switch {
	case hasToStop(ctx):
		return StoppedOnCall
	case l.isOver():
		return StoppedByTime
	case l.most > 0 && done >= l.most:
		return StoppedAtLimit
	default:
		return ""
	}
}
