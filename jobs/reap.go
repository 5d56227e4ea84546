package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// ReapOptions are the settings of Reap. The zero value closes all runs that are stale.
type ReapOptions struct {
	// Retry lets the job try the runs in quarantine at once.
	Retry bool
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
	// Quarantined is how many runs the job has failed at and tries later (agui.quarantine).
	Quarantined int64 `json:"quarantined,omitempty"`
	// Stopped says what ended the job with work left; empty when it did all there was to do.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue makes a group of the counts, for slog.
func (r Reaped) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("runs", r.Runs), slog.Int64("quarantined", r.Quarantined), slog.String("stopped", string(r.Stopped)))
}

// Reap closes the runs in progress, of all scopes, whose writers are gone: those that gave no sign of life within the lease (the
// settings lease and heartbeat_lease in agui.setting), which counts only while writers can reach the server. It ends in the log what
// they left open, then a RUN_ERROR says why, each run in a transaction of its own. A writer that comes back late gets
// pgagui.ErrRunCutOff. A thread that is being written to is left for the next time. It takes the rights of agui_worker.
//
// A run that fails does not hold up the others: it goes into quarantine (agui.quarantine), and the error in the end is a *RunsLeftError.
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
	stale, err := queries.StaleRuns(ctx)
	if err != nil {
		return done, err
	}
	var failures []error
	isNoted := false // the transaction of the run before has done that
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
		case err != nil && (ctx.Err() != nil || isForbidden(err)):
			return done, withRunsLeft(errors.Join(err, takeBackAttempt(ctx, queries, db.TakeBackAttemptParams(attempt))), failures)
		case err != nil:
			if _, noting := noteFailure(ctx, queries, reapJobName, run.ThreadKey, run.RunNo, err); noting != nil {
				return done, withRunsLeft(errors.Join(err, noting), failures)
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

// reapJobName names the job in its notes.
const reapJobName = "reap"

// reapRun closes a run of which there is a note, and notes the next one (nil: none) in the same transaction. It reports false for a run that is
// alive or has ended, or whose thread is being written to.
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
