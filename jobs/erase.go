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

// EraseOptions are the settings of [Erase].
type EraseOptions struct {
	// OlderThan selects the threads in which nothing was appended or saved for this time. It must
	// be more than 0.
	OlderThan time.Duration
	// Scope is the tenant or user whose threads are erased. AllScopes erases those of all scopes.
	Scope     string
	AllScopes bool
	// Reason is stored in agui.erasure.
	Reason string
	// DryRun removes nothing and only says what would be removed.
	DryRun bool
	// MaxThreads ends the job after this number of threads; 0 means no limit.
	MaxThreads int
	// MaxTime ends the job after this time; 0 means no limit.
	MaxTime time.Duration
	// Each, if set, is called for each thread after it was erased; with DryRun for each that would
	// be.
	Each func(ErasedThread)
}

// ErasedThread is a thread that [Erase] removed.
type ErasedThread struct {
	Scope    string `json:"scope"`
	ThreadID string `json:"threadId"`
	// LastActivityAt is when something was last appended to the thread or saved in it.
	LastActivityAt time.Time `json:"lastActivityAt"`
	Events         int64     `json:"events"`
}

// Erased is the result of [Erase].
type Erased struct {
	Threads int   `json:"threads"`
	Events  int64 `json:"events"`
	// DryRun reports that nothing was removed.
	DryRun bool `json:"dryRun"`
	// Busy is the number of threads that were left because other transactions held them.
	Busy int `json:"busy,omitempty"`
	// Stopped says why the job ended with work left; empty if it did all work.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (e Erased) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("threads", e.Threads), slog.Int64("events", e.Events), slog.String("stopped", string(e.Stopped)))
}

// Erase removes for good the threads without activity for OlderThan, one transaction each: a thread
// is removed as a whole or not at all. A row in agui.erasure stays of each. It needs the rights of
// agui_maintainer. For a single thread, see pgagui.Store.Erase.
//
// Threads that are held (agui.set_hold) stay.
//
// A thread that another transaction holds is retried once, after all others. A thread that fails
// does not stop the others; Erase then returns a [*RunsLeftError] at the end.
func Erase(ctx context.Context, pool *pgxpool.Pool, options EraseOptions) (done Erased, err error) {
	begin := time.Now()
	done.DryRun = options.DryRun
	defer func() { done.Duration = time.Since(begin) }()
	if options.OlderThan <= 0 {
		return done, errors.New("erase: OlderThan must be more than 0: otherwise threads that are in use would be erased")
	}
	queries := db.New(pool)
	stop := limits{begin, options.MaxTime, options.MaxThreads}
	reached := func() StopReason { return stop.reached(ctx, done.Threads) }
	threadsOf := func(after pgtype.UUID, rows int32) ([]db.ThreadsWithoutNewsRow, error) {
		return queries.ThreadsWithoutNews(ctx, db.ThreadsWithoutNewsParams{
			OlderThan: options.OlderThan, Scope: scopeOf(options.Scope, options.AllScopes), After: after, Page: rows,
		})
	}
	keyOf := func(thread db.ThreadsWithoutNewsRow) pgtype.UUID { return thread.ThreadKey }
	done.Stopped, done.Busy, err = eachThread(ctx, reached, threadsOf, keyOf, func(thread db.ThreadsWithoutNewsRow) error {
		if thread.IsHeld {
			return nil
		}
		if !options.DryRun {
			_, err := queries.EraseThread(ctx, db.EraseThreadParams{
				ThreadKey: thread.ThreadKey, Reason: orNull(options.Reason), OlderThan: &options.OlderThan,
			})
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return nil // it became active in the meantime
			case err != nil:
				return fmt.Errorf("erase thread %q: %w", thread.ThreadID, err)
			}
		}
		done.Threads++
		done.Events += thread.Events
		if options.Each != nil {
			options.Each(ErasedThread{Scope: thread.Scope, ThreadID: thread.ThreadID, LastActivityAt: thread.LastNewsAt, Events: thread.Events})
		}
		return nil
	})
	return done, err
}
