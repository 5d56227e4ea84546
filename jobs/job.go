package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
)

// Job is upkeep that runs on a schedule: by cron, by pgagui worker, or by a program of your own.
type Job struct {
	// Name is the name of the job in logs and metrics, and of its lock: "compact".
	Name string
	// Work does the job and returns its result, such as a [Compacted].
	Work func(ctx context.Context) (result any, err error)
	// HasWork, if set, is called before the lock is taken. If it returns false, the job is skipped. It
	// is for jobs that run often and seldom find something to do.
	HasWork func(ctx context.Context) (bool, error)
}

// Report says how a job went.
type Report struct {
	Job string
	// Skipped says why the job did nothing; empty if it ran.
	Skipped SkipReason
	// Result is what Work returned; nil when the job was skipped.
	Result   any
	Duration time.Duration
}

// SkipReason is why a job did nothing, where that is not an error.
type SkipReason string

const (
	// SkippedBusy means that another process runs the same job in this database, or a session runs
	// agui.compact.
	SkippedBusy SkipReason = "another is in progress"
	// SkippedIdle means that there is nothing to do (Job.HasWork).
	SkippedIdle SkipReason = "there is nothing to do"
	// SkippedStandby means that the server is a standby, which cannot be written to. After a
	// promotion the job runs.
	SkippedStandby SkipReason = "the server is a standby"
)

// Observer watches jobs, for traces and metrics. Package otelagui makes one for OpenTelemetry. It
// is called when a job begins. The job runs with the context that it returns, and calls ended at
// its end. To see the statements, use a tracer of the connections of the pool.
type Observer func(ctx context.Context, job string) (jobContext context.Context, ended func(Report, error))

// Run runs the job, unless another session runs it or the server is a standby. Then the report has
// the reason. observe may be nil.
//
// While the job runs, a connection of its own holds the lock of the job in an idle transaction,
// which does not hold back vacuum. If that connection is lost, the job is cancelled. Run returns an
// error if a role that may not run jobs holds the lock, or if it has been held for a day: the next
// run would not get it either.
func (j Job) Run(ctx context.Context, pool *pgxpool.Pool, observe Observer) (report Report, err error) {
	if observe != nil {
		var ended func(Report, error)
		ctx, ended = observe(ctx, j.Name)
		defer func() { ended(report, err) }()
	}
	begin := time.Now()
	report.Job = j.Name
	defer func() { report.Duration = time.Since(begin) }()
	if hasWork, err := j.hasWork(ctx); err != nil || !hasWork {
		report.Skipped = SkippedIdle
		return report, err
	}
	report.Skipped, err = exclusively(ctx, pool, j.Name, func(ctx context.Context) (err error) {
		return panics.Catch(nil, func() error {
			report.Result, err = j.Work(ctx)
			return err
		})
	})
	return report, err
}

func (j Job) hasWork(ctx context.Context) (has bool, err error) {
	if j.HasWork == nil {
		return true, nil
	}
	err = panics.Catch(nil, func() error {
		has, err = j.HasWork(ctx)
		return err
	})
	return has, err
}

// closeTimeout bounds the wait for a server that no longer answers.
const closeTimeout = 5 * time.Second

// exclusively calls work while it holds the lock of a job. If the lock is not free, it returns the
// reason.
func exclusively(ctx context.Context, pool *pgxpool.Pool, job string, work func(context.Context) error) (SkipReason, error) {
	acquired, err := pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	// Taken out of the pool, because the work may need all connections of the pool.
	holder := acquired.Hijack()
	// Whatever the default is: READ COMMITTED holds no snapshot between statements.
	tx, err := holder.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	defer func() {
		closeContext, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		// The connection may be lost. If it is not, the lock is free after the rollback; closing alone would not wait for that.
		if tx != nil {
			_ = tx.Rollback(closeContext)
		}
		_ = holder.Close(closeContext)
	}()
	if err != nil {
		return "", err
	}
	queries := db.New(tx)
	lock, err := queries.TakeJobLock(ctx, job)
	switch {
	case err != nil:
		return "", err
	case lock.IsStandby:
		return SkippedStandby, nil
	case !lock.IsTaken:
		problem, err := queries.JobLockProblem(ctx, job)
		switch {
		case err != nil:
			return "", err
		case problem != "":
			return "", fmt.Errorf("job %s cannot run: %s: end that session with pg_terminate_backend", job, problem)
		}
		return SkippedBusy, nil
	}
	if err := queries.AllowIdleTransaction(ctx); err != nil {
		return "", err
	}

	workContext, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchContext, endWatch := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go panics.Task(nil, func() {
		defer close(watched)
		// Nothing comes on this connection but its end.
		for {
			if _, err := holder.WaitForNotification(watchContext); err != nil {
				if watchContext.Err() == nil {
					cancel(&lostLockError{job, err})
				}
				return
			}
		}
	}, func(err error) { cancel(&lostLockError{job, err}) })()
	err = work(workContext)
	endWatch()
	<-watched
	if lost := (*lostLockError)(nil); errors.As(context.Cause(workContext), &lost) {
		return "", lost
	}
	return "", err
}

// lostLockError means that the connection that held the lock of a job ended before the job did.
type lostLockError struct {
	job string
	err error
}

func (e *lostLockError) Error() string {
	return fmt.Sprintf("job %s was ended, for the connection that held its lock was lost (what it committed stays): %v", e.job, e.err)
}

func (e *lostLockError) Unwrap() error { return e.err }
