package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgagui/pgagui"
)

// stopTimeout is how long runs have to end before their thread is erased.
const stopTimeout = 5 * time.Second

// Erase stops the runs of a thread and erases it. It is no error if the thread does not exist or
// was erased before. A held thread is refused, and its runs go on.
func (s *Server) Erase(ctx context.Context, from Tenant, threadID string) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout+30*time.Second)
	defer cancel()
	holds, err := from.Maintenance().Holds(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(holds, func(hold pgagui.Hold) bool { return hold.ThreadID == threadID }) {
		_, err := from.Erase(ctx, threadID, pgagui.EraseOptions{}) // it says why
		return err
	}
	stopped, err := from.RequestStop(ctx, pgagui.RunRef{ThreadID: threadID}, pgagui.RequestStopOptions{Reason: "the thread is erased"})
	if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
		return err
	}
	for deadline := time.Now().Add(stopTimeout); stopped > 0 && time.Now().Before(deadline); {
		status, err := from.Status(ctx, pgagui.RunRef{ThreadID: threadID})
		if err != nil || status.Status != pgagui.Running {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err = from.Erase(ctx, threadID, pgagui.EraseOptions{Reason: "deleted by its user"})
	if errors.Is(err, pgagui.ErrNotFound) || errors.Is(err, pgagui.ErrThreadErased) {
		return nil
	}
	return err
}
