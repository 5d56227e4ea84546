// Package worker runs the jobs of a store on schedules, in one process. The command pgagui worker
// uses it. Other programs can run it with more jobs, or with an observer.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/robfig/cron/v3"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
)

// Task is a job with its schedule. A schedule is a line of five fields as in a crontab ("0 3 * *
// *"), or "@every 90s", "@hourly", "@daily" and so on. Times are local, unless the schedule begins
// with a time zone such as CRON_TZ=Europe/Berlin.
type Task struct {
	Schedule string
	Job      jobs.Job
}

// CheckSchedule returns what is wrong with a schedule.
func CheckSchedule(schedule string) error {
	_, err := parse(schedule)
	return err
}

func parse(schedule string) (cron.Schedule, error) {
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return nil, fmt.Errorf("schedule %q is not valid: %w", schedule, err)
	}
	return parsed, nil
}

// Options are the settings of [Run]. The zero value logs nothing, and cancels running jobs when the
// worker stops.
type Options struct {
	// Grace is how long running jobs may continue after ctx has ended, before they are cancelled. In
	// that time they begin no new work.
	Grace time.Duration
	// Logger gets a line for each job that has ended; nil logs nothing.
	Logger *slog.Logger
	// Observe watches the jobs; nil means no observer.
	Observe jobs.Observer
}

// Run runs the jobs of the tasks on their schedules until ctx ends. It returns when the running
// jobs have ended. If a job fails or panics, Run logs it and runs the job at its next time. If a job
// is still running at its time, in this process or elsewhere, Run skips it until its next time.
//
// Run returns an error if a schedule is not valid. Each running job takes one or more connections
// of the pool, and one more for its lock.
func Run(ctx context.Context, pool *pgxpool.Pool, tasks []Task, options Options) error {
	worker := worker{pool: pool, observe: options.Observe, logger: options.Logger}
	if worker.logger == nil {
		worker.logger = slog.New(slog.DiscardHandler)
	}
	jobContext, cancel := jobs.WithGrace(ctx, options.Grace)
	defer cancel()

	scheduler := cron.New()
	for _, task := range tasks {
		schedule, err := parse(task.Schedule)
		if err != nil {
			return fmt.Errorf("job %s: %w", task.Job.Name, err)
		}
		logger := cronLogger{worker.logger, task.Job.Name}
		// The panic of an observer or a driver must not end the process, which may serve requests too.
		once := cron.NewChain(cron.SkipIfStillRunning(logger), cron.Recover(logger))
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
	case errors.Is(pgagui.ErrorOf(err), pgagui.ErrPermissionDenied):
		logger.Error("job failed", "error", err, "advice", "grant agui_worker to the role of this process; to retain and erase also agui_maintainer", "result", report.Result)
	case err != nil:
		logger.Error("job failed", "error", err, "result", report.Result)
	case report.Skipped == jobs.SkippedIdle:
		logger.Debug("job skipped", "reason", string(report.Skipped))
	case report.Skipped != "":
		logger.Info("job skipped", "reason", string(report.Skipped))
	default:
		logger.Info("job done", "result", report.Result)
	}
}

// cronLogger is the cron.Logger of a job. It logs that a start was skipped, or a panic.
type cronLogger struct {
	logger *slog.Logger
	job    string
}

func (s cronLogger) Info(string, ...any) {
	s.logger.Warn("job is still running, this start is skipped", "job", s.job)
}

func (s cronLogger) Error(err error, message string, details ...any) {
	s.logger.With("job", s.job, "error", err).Error(message, details...)
}
