// Package worker does the jobs of a store on schedules, in one process. It is what pgagui worker runs; a program of your own can run it
// too, with more jobs or an observer.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/robfig/cron/v3"

	"github.com/pgagui/pgagui/jobs"
)

// Task is a job with its schedule: a line of five fields as in a crontab ("0 3 * * *", in local time unless it begins with
// CRON_TZ=Europe/Berlin), or "@every 90s", "@hourly", "@daily", …
type Task struct {
	Schedule string
	Job      jobs.Job
}

// Options are the settings of Run. The zero value logs nothing and, when asked to stop, waits for no job.
type Options struct {
	// Grace is how long jobs may go on when the worker is to stop, before they are cancelled. They begin nothing more meanwhile.
	Grace time.Duration
	// Logger gets a line for each job that has ended; nil drops them.
	Logger *slog.Logger
	// Observe watches the jobs; nil: nobody does.
	Observe jobs.Observer
}

// Run does the tasks' jobs whenever they are due, until ctx ends; then it returns once those at work have ended. A job that fails is
// logged, and done again when it is due next, as is one that is still at work or is done elsewhere.
//
// The error is about a schedule that cannot be understood. Each job at work needs a connection of the pool or more, and one beside it.
func Run(ctx context.Context, pool *pgxpool.Pool, tasks []Task, options Options) error {
	worker := worker{pool: pool, observe: options.Observe, logger: options.Logger}
	if worker.logger == nil {
		worker.logger = slog.New(slog.DiscardHandler)
	}
	jobContext, cancel := jobs.WithGrace(ctx, options.Grace)
	defer cancel()

	scheduler := cron.New()
	for _, task := range tasks {
		schedule, err := cron.ParseStandard(task.Schedule)
		if err != nil {
			return fmt.Errorf("schedule %q of job %s: %w", task.Schedule, task.Job.Name, err)
		}
		once := cron.NewChain(cron.SkipIfStillRunning(stillRunning{worker.logger, task.Job.Name}))
		scheduler.Schedule(schedule, once.Then(cron.FuncJob(func() { worker.do(jobContext, task.Job) })))
		worker.logger.Info("job scheduled", "job", task.Job.Name, "schedule", task.Schedule)
	}
	scheduler.Start()
	<-ctx.Done()
	worker.logger.Info("worker stops", "grace", options.Grace)
	<-scheduler.Stop().Done()
	worker.logger.Info("worker stopped")
	return nil
}

type worker struct {
	pool    *pgxpool.Pool
	observe jobs.Observer
	logger  *slog.Logger
}

func (w worker) do(ctx context.Context, job jobs.Job) {
	report, err := job.Run(ctx, w.pool, w.observe)
	logger := w.logger.With("job", job.Name, "duration", report.Duration)
	switch {
	case err != nil:
		logger.Error("job failed", "error", err, "result", report.Result)
	case report.Skipped != "":
		logger.Info("job skipped", "reason", string(report.Skipped))
	default:
		logger.Info("job done", "result", report.Result)
	}
}

// stillRunning is a cron.Logger of a job's, which says that a start was left out.
type stillRunning struct {
	logger *slog.Logger
	job    string
}

func (s stillRunning) Info(string, ...any) {
	s.logger.Warn("job is still at work, a start is left out", "job", s.job)
}

func (s stillRunning) Error(err error, message string, details ...any) {
	s.logger.With("job", s.job, "error", err).Error(message, details...)
}
