package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// ReapOptions are the settings of [Reap]. The zero value closes all stale runs.
type ReapOptions struct {
	// Retry makes the job retry the runs in quarantine at once.
	Retry bool
	// MaxRuns ends the job after this number of runs; 0 means no limit.
	MaxRuns int
	// MaxTime ends the job after this time; 0 means no limit.
	MaxTime time.Duration
	// Progress, if set, is called after each closed run with the totals so far.
	Progress func(Reaped)
}

// Reaped is the result of [Reap].
type Reaped struct {
	// Runs is the number of runs that were closed.
	Runs int `json:"runs"`
	// Quarantined is the number of runs at which the job failed and that it retries later
	// (agui.quarantine).
	Quarantined int64 `json:"quarantined,omitempty"`
	// Stopped says why the job ended with work left; empty if it did all work.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (r Reaped) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("runs", r.Runs), slog.Int64("quarantined", r.Quarantined), slog.String("stopped", string(r.Stopped)))
}

// Reap closes the runs in progress, of all scopes, whose writers are gone: those without a sign of
// life within the lease (the settings lease and heartbeat_lease in agui.setting). Time in which no
// writer could reach the server does not count. For each run, in a transaction of its own, Reap
// appends the ends of what the run left open and a RUN_ERROR with the reason. A writer that comes
// back late gets pgagui.ErrRunCutOff. A thread that a transaction writes to is left for the next
// call. Reap needs the rights of agui_worker.
//
// A run that fails does not stop the others. It goes into quarantine (agui.quarantine), and Reap
// returns a [*RunsLeftError] at the end.
func Reap(ctx context.Context, pool *pgxpool.Pool, options ReapOptions) (done Reaped, err error) {
	begin := time.Now()
	defer func() { done.Duration = time.Since(begin) }()
	stop := limits{begin, options.MaxTime, options.MaxRuns}
	queries := db.New(pool)
	if options.Retry {
		if _, err := queries.Retry(ctx, reapJobName); err != nil {
			return done, err
		}
	}
	if err := queries.NoteReap(ctx); err != nil {
		return done, err
	}
	for found := int32(1); found > 0; {
		if found, err = queries.FindEnds(ctx); err != nil {
			return done, err
		}
	}
	stale, err := queries.StaleRuns(ctx)
	if err != nil {
		return done, err
	}
	var failures []error
	isNoted := false // whether the transaction of the run before has noted this one
	for at, run := range stale {
		attempt := db.NoteAttemptParams{Job: reapJobName, ThreadKey: run.ThreadKey, RunNo: run.RunNo}
		if done.Stopped = stop.reached(ctx, done.Runs); done.Stopped != "" {
			if isNoted {
				err = takeBackAttempt(ctx, queries, db.TakeBackAttemptParams(attempt))
			}
			break
		}
		if !isNoted {
			if err := queries.NoteAttempt(ctx, attempt); err != nil {
				return done, withRunsLeft(err, failures)
			}
		}
		var next *db.NoteAttemptParams
		if at+1 < len(stale) && stop.reached(ctx, done.Runs+1) == "" {
			next = &db.NoteAttemptParams{Job: reapJobName, ThreadKey: stale[at+1].ThreadKey, RunNo: stale[at+1].RunNo}
		}
		isClosed, err := reapRun(ctx, pool, attempt, next)
		isNoted = err == nil && next != nil
		switch {
		case err != nil:
			if _, ended := endAttempt(ctx, queries, attempt, err); ended != nil {
				return done, withRunsLeft(ended, failures)
			}
			if !isLockTimeout(err) {
				failures = append(failures, fmt.Errorf("close run number %d of the thread with key %s: %w", run.RunNo, run.ThreadKey, err))
			}
		case isClosed:
			done.Runs++
			if options.Progress != nil {
				options.Progress(done)
			}
		}
	}
	if err == nil {
		done.Quarantined, err = queries.Quarantined(ctx, reapJobName)
	}
	return done, withRunsLeft(err, failures)
}

// reapJobName is the name of the job in its notes.
const reapJobName = "reap"

// reapRun closes a run that has a note, and notes the next one (nil: none) in the same transaction.
// It reports false for a run that is alive or has ended, or whose thread another transaction writes
// to.
func reapRun(ctx context.Context, pool *pgxpool.Pool, run db.NoteAttemptParams, next *db.NoteAttemptParams) (isClosed bool, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		queries := db.New(tx)
		if err := queries.LimitLockWait(ctx); err != nil {
			return err
		}
		lastSeq, err := queries.ReapRun(ctx, db.ReapRunParams{ThreadKey: run.ThreadKey, RunNo: run.RunNo})
		if err != nil {
			return err
		}
		isClosed = lastSeq > 0
		if isClosed {
			err = queries.NoteSuccess(ctx, db.NoteSuccessParams(run))
		} else {
			err = queries.TakeBackAttempt(ctx, db.TakeBackAttemptParams(run))
		}
		if err == nil && next != nil {
			err = queries.NoteAttempt(ctx, *next)
		}
		return err
	})
	return isClosed && err == nil, err
}
