package door

import (
	"context"
	"errors"
	"sync"
	"time"
)

// room is a lock of something that is limited, and the wait until some of it is free again.
type room struct {
	sync.Mutex
	freed chan struct{} // closed when some is free; nil: no call of wait is in progress
}

// errNoRoom is the error of a wait that took too long.
var errNoRoom = errors.New("nothing became free in time")

// wait waits until try, which it calls with the lock, returns true. If patience is 0, it tries once.
func (r *room) wait(ctx context.Context, patience time.Duration, try func() bool) error {
	var timeout <-chan time.Time
	for {
		r.Lock()
		if try() {
			r.Unlock()
			return nil
		}
		if r.freed == nil {
			r.freed = make(chan struct{})
		}
		freed := r.freed
		r.Unlock()
		if patience == 0 {
			return errNoRoom
		}
		if timeout == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-freed:
		case <-timeout:
			return errNoRoom
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wakeUp wakes all calls of wait. The caller has the lock.
func (r *room) wakeUp() {
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}
