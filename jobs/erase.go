package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// EraseOptions say which threads Erase removes.
type EraseOptions struct {
	// OlderThan is for how long nothing must have been appended to a thread or saved in it. It must be more than 0.
	OlderThan time.Duration
	// Scope is the tenant or user whose threads are removed, unless AllScopes.
	Scope     string
	AllScopes bool
	// Reason is noted in agui.erasure.
	Reason string
	// DryRun removes nothing and only says what would be removed.
	DryRun bool
	// MaxThreads ends the job after so many threads; 0: when all are gone.
	MaxThreads int
	// MaxTime ends the job after so long; 0: when all are gone.
	MaxTime time.Duration
	// Each, when set, is called for each thread once it is gone, or with DryRun for each that would go.
	Each func(ErasedThread)
}

// ErasedThread is a thread that Erase removed.
type ErasedThread struct {
	Scope    string `json:"scope"`
	ThreadID string `json:"threadId"`
	// LastNewsAt is when something was appended to it, or saved in it, last.
	LastNewsAt time.Time `json:"lastNewsAt"`
	Events     int64     `json:"events"`
}

// Erased says what Erase did.
type Erased struct {
	Threads int   `json:"threads"`
	Events  int64 `json:"events"`
	// DryRun reports that nothing was removed.
	DryRun bool `json:"dryRun"`
	// Busy is how many threads were left because other transactions held them.
	Busy int `json:"busy,omitempty"`
	// Stopped says what ended the job with work left; empty when it did all there was to do.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue makes a group of the counts, for slog.
func (e Erased) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("threads", e.Threads), slog.Int64("events", e.Events), slog.String("stopped", string(e.Stopped)))
}

// Erase removes the threads that have had no news for a time, for good, a transaction each: a thread is there as a whole or not at all.
// A thread that another transaction holds is left until all others are gone, then tried once more; one that fails does not hold up the others, and
// the error in the end is a *RunsLeftError. What stays of each is a row in agui.erasure. It takes the rights of agui_maintainer. See also pgagui.Store.Erase, for a single thread.
func Erase(ctx context.Context, pool *pgxpool.Pool, options EraseOptions) (done Erased, err error) {
	begin := time.Now()
	done.DryRun = options.DryRun
	defer func() { done.Duration = time.Since(begin) }()
	if options.OlderThan <= 0 {
		return done, errors.New("erase: OlderThan must be more than 0, or threads that are in use would go")
	}
	const page = 100
	stop := limits{begin, options.MaxTime, options.MaxThreads}
	queries := db.New(pool)
	var reason *string
	if options.Reason != "" {
		reason = &options.Reason
	}
	scope := &options.Scope
	if options.AllScopes {
		scope = nil
	}
	var busy []db.ThreadsWithoutNewsRow
	var failures []error
	// eraseEach erases threads until the job is to stop. What others hold is added to busy.
	eraseEach := func(threads []db.ThreadsWithoutNewsRow) error {
		for _, thread := range threads {
			if done.Stopped = stop.reached(ctx, done.Threads); done.Stopped != "" {
				return nil
			}
			erased := ErasedThread{Scope: thread.Scope, ThreadID: thread.ThreadID, LastNewsAt: thread.LastNewsAt, Events: thread.Events}
			if !options.DryRun {
				_, err := queries.EraseThread(ctx, db.EraseThreadParams{
					ThreadKey: thread.ThreadKey, Reason: reason, OlderThan: &options.OlderThan,
				})
				switch {
				case errors.Is(err, pgx.ErrNoRows):
					continue // it has news meanwhile
				case isLockTimeout(err):
					busy = append(busy, thread)
					continue
				case isForbidden(err):
					return err
				case err != nil:
					failures = append(failures, fmt.Errorf("erase thread %q: %w", thread.ThreadID, err))
					if ctx.Err() != nil {
						return ctx.Err()
					}
					continue
				}
			}
			done.Threads++
			done.Events += erased.Events
			if options.Each != nil {
				options.Each(erased)
			}
		}
		return nil
	}
	var after pgtype.UUID
	for {
		threads, err := queries.ThreadsWithoutNews(ctx, db.ThreadsWithoutNewsParams{
			OlderThan: options.OlderThan, Scope: scope, After: after, Page: page,
		})
		if err != nil {
			return done, withRunsLeft(err, failures)
		}
		if err := eraseEach(threads); err != nil {
			return done, withRunsLeft(err, failures)
		}
		if len(threads) < page || done.Stopped != "" {
			break
		}
		after = threads[len(threads)-1].ThreadKey
	}
	if later := busy; done.Stopped == "" {
		busy = nil
		err = eraseEach(later)
	}
	done.Busy = len(busy)
	return done, withRunsLeft(err, failures)
}
