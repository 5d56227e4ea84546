package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/worker"
)

// workerFlags say how the worker does its jobs.
type workerFlags struct {
	schedules   map[string]*string // by the name of the job
	compaction  compactFlags
	eraseAfter  time.Duration
	allScopes   bool
	verifySince time.Duration
	grace       time.Duration
}

// workerJobs are the jobs that the worker knows; each has a flag with its name, for its schedule.
var workerJobs = []struct{ name, schedule, does string }{
	{"compact", "@every 1m", "fold ended runs into snapshots"},
	{"reap", "@every 1m", "close the runs whose writers are gone"},
	{"repack", "@every 10m", "join the small batches of ended runs"},
	{"verify", "0 3 * * *", "check log, tree and snapshots of the threads with news for --verify-since"},
	{"erase", off, "remove threads for good that had no news for --erase-after"},
}

// off is the schedule of a job that is not done.
const off = "off"

func (p *program) workerCommand() *cobra.Command {
	how := workerFlags{schedules: map[string]*string{}, compaction: compactFlags{running: true}, verifySince: 48 * time.Hour}
	command := &cobra.Command{
		Use:   "worker",
		Short: "Do the upkeep on schedules, in one process",
		Long: `Does the jobs that keep a store in shape, each on its schedule: a line of five fields as in a crontab ('0 3 * * *', local time), or
'@every 90s', '@hourly', '@daily'; 'off' leaves a job out. A job that fails is logged and done again when it is due next. Several workers,
cron and pg_cron may serve one database: a job is done by one of them at a time. On a standby nothing is done until it is promoted.

On SIGTERM or Ctrl-C the worker starts nothing more, waits up to --grace for the jobs at work, and ends with exit code 0.

All jobs work on all scopes, but for --erase, which needs --scope or --all-scopes.

What it does it logs on stderr, with --json as JSON. It takes the rights of the role agui_worker, and with --erase
those of agui_maintainer.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.work(command, how) },
	}
	flags := command.Flags()
	for _, job := range workerJobs {
		how.schedules[job.name] = flags.String(job.name, job.schedule, "when to "+job.does)
	}
	how.compaction.addFlags(flags)
	flags.Var((*age)(&how.eraseAfter), "erase-after", "with --erase: how long ago the last event of a thread must be, as in 12h or 90d")
	flags.BoolVar(&how.allScopes, "all-scopes", false, "with --erase: threads of all scopes, instead of those of --scope")
	flags.Var((*age)(&how.verifySince), "verify-since", "with --verify: threads with events or snapshots since then; 0: all threads")
	flags.DurationVar(&how.grace, "grace", defaultGrace, "on SIGTERM: how long jobs at work may go on")
	return command
}

func (p *program) work(command *cobra.Command, how workerFlags) error {
	wrong := func(problem string) error { return &usageError{problem: problem, command: command.CommandPath()} }
	options, err := how.compaction.options(command)
	if err != nil {
		return err
	}
	if how.grace < 0 || (*how.schedules["erase"] != off) != (how.eraseAfter > 0) {
		return wrong("--erase and --erase-after go together, and --grace must be 0 or more")
	}
	if erases := *how.schedules["erase"] != off; !erases && (how.allScopes || scopeIsGiven(command)) || erases && how.allScopes == scopeIsGiven(command) {
		return wrong("--erase needs one of --scope and --all-scopes; all other jobs work on all scopes")
	}
	erasure := jobs.EraseOptions{
		OlderThan: how.eraseAfter, Scope: p.scope, AllScopes: how.allScopes, Reason: "pgagui worker --erase-after " + (*age)(&how.eraseAfter).String(),
	}

	// Each job has a connection beside that of its lock; compaction has one for each of its workers.
	ctx := command.Context()
	pool, err := p.connect(ctx, options.Workers+len(workerJobs))
	if err != nil {
		return err
	}
	defer pool.Close()
	known := []jobs.Job{
		compactJob(pool, options),
		reapJob(pool, jobs.ReapOptions{}),
		repackJob(pool, jobs.RepackOptions{}),
		{Name: "verify", Work: func(ctx context.Context) (any, error) { return verifyRecent(ctx, pool, how.verifySince) }},
		{Name: "erase", Work: func(ctx context.Context) (any, error) { return jobs.Erase(ctx, pool, erasure) }},
	}
	var tasks []worker.Task
	for _, job := range known {
		if schedule := *how.schedules[job.Name]; schedule != off {
			tasks = append(tasks, worker.Task{Schedule: schedule, Job: job})
		}
	}
	if err := worker.Run(ctx, pool, tasks, worker.Options{Grace: how.grace, Logger: p.logger()}); err != nil {
		return wrong(err.Error())
	}
	return nil
}

// verifyRecent checks the threads of all scopes that have news; problems are an error, so that they are logged as one.
func verifyRecent(ctx context.Context, pool *pgxpool.Pool, since time.Duration) (jobs.Verified, error) {
	options := jobs.VerifyOptions{}
	if since > 0 {
		options.Since = time.Now().Add(-since)
	}
	first := ""
	options.Report = func(thread jobs.VerifiedThread) {
		if len(thread.Problems) > 0 && first == "" {
			first = fmt.Sprintf("thread %q of scope %q: %s", thread.ThreadID, thread.Scope, thread.Problems[0].Problem.Problem)
		}
	}
	done, err := jobs.Verify(ctx, pool, options)
	if err == nil && done.Problems > 0 {
		err = fmt.Errorf("%s found, the first in %s (pgagui verify names all)", countText(done.Problems, "problem"), first)
	}
	return done, err
}

func (p *program) logger() *slog.Logger {
	if p.json {
		return slog.New(slog.NewJSONHandler(p.messages, nil))
	}
	return slog.New(slog.NewTextHandler(p.messages, nil))
}
