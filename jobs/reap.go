package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// ReapOptions are the settings of Reap. The zero value closes all runs that are stale.
type ReapOptions struct {
	// MaxRuns ends the job after so many runs; 0: when all are done.
	MaxRuns int
	// MaxTime ends the job after so long; 0: when all are done.
	MaxTime time.Duration
	// Progress, when set, is called after each run that was closed with what is done so far.
	Progress func(Reaped)
}

// Reaped says what Reap did.
type Reaped struct {
	// Runs counts the runs that were closed.
	Runs int `json:"runs"`
	// Stopped says what ended the job with work left; empty when it did all there was to do.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue makes a group of the counts, for slog.
func (r Reaped) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("runs", r.Runs), slog.String("stopped", string(r.Stopped)))
}

// Reap closes the runs in progress, of all scopes, whose writers are gone: those that gave no sign of life within the lease (the
// settings lease and heartbeat_lease in agui.setting), which counts only while writers can reach the server. It ends in the log what
// they left open, then a RUN_ERROR says why, each run in a transaction of its own. A writer that comes back late gets
// pgagui.ErrRunCutOff. A thread that is being written to is left for the next time. It takes the rights of agui_worker.
//
// A run that cannot be closed, because its log is damaged, does not hold up the others; the errors are returned together in the end.
func Reap(ctx context.Context, pool *pgxpool.Pool, options ReapOptions) (done Reaped, err error) {
	begin := time.Now()
	defer func() { done.Duration = time.Since(begin) }()
	stop := limits{begin, options.MaxTime, options.MaxRuns}
	queries := db.New(pool)
	if err := queries.NoteReap(ctx); err != nil {
		return done, err
	}
	stale, err := queries.StaleRuns(ctx)
	if err != nil {
		return done, err
	}
	var failures []error
	for _, run := range stale {
		if done.Stopped = stop.reached(ctx, done.Runs); done.Stopped != "" {
			break
		}
		lastSeq, err := queries.ReapRun(ctx, db.ReapRunParams(run))
		if err != nil {
			failures = append(failures, fmt.Errorf("close run number %d of the thread with key %s: %w", run.RunNo, run.ThreadKey, err))
			if damageIn(err) == nil {
				break
			}
		}
		if lastSeq == 0 {
			continue
		}
		done.Runs++
		if options.Progress != nil {
			options.Progress(done)
		}
	}
	return done, errors.Join(failures...)
}
