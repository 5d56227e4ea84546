package jobs

import (
	"context"
	"time"
)

// WithGrace returns a context for jobs that shall end in good order when ctx ends: from then on they begin nothing more, and have
// so much time to finish what they are at, until the returned context ends too.
//
// A job that ended early on this account returns no error; its result says so.
func WithGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	granted, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), notice{}, ctx.Done()))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-granted.Done():
		}
	})
	return granted, func() {
		stop()
		cancel()
	}
}

// notice is the key of the channel that is closed when a job is to end in good order.
type notice struct{}

// isAskedToStop reports whether a job is to begin nothing more.
func isAskedToStop(ctx context.Context) bool {
	asked, _ := ctx.Value(notice{}).(<-chan struct{})
	select {
	case <-asked: // nil when there is no grace: never
		return true
	default:
		return false
	}
}

// StopReason is what ended a job before all was done. Nothing is wrong then: the next one goes on.
type StopReason string

const (
	StoppedAtLimit StopReason = "limit"       // MaxRuns, MaxThreads
	StoppedByTime  StopReason = "time"        // MaxTime
	StoppedOnCall  StopReason = "interrupted" // the context of WithGrace
)

// limits are what may end a job early.
type limits struct {
	begin   time.Time
	maxTime time.Duration // 0: none
	most    int           // things done; 0: any number
}

// isOver reports whether the time is over.
func (l limits) isOver() bool {
	return l.maxTime > 0 && time.Since(l.begin) >= l.maxTime
}

// reached says why nothing more is to be begun, if so.
func (l limits) reached(ctx context.Context, done int) StopReason {
	switch {
	case isAskedToStop(ctx):
		return StoppedOnCall
	case l.isOver():
		return StoppedByTime
	case l.most > 0 && done >= l.most:
		return StoppedAtLimit
	default:
		return ""
	}
}
