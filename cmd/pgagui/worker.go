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

// workerFlags are the flags of worker.
type workerFlags struct {
	schedules   map[string]*string // by job name
	compaction  compactFlags
	eraseAfter  time.Duration
	allScopes   bool
	verifySince time.Duration
	grace       time.Duration
}

// workerJobs are the jobs of the worker, with their default schedules. Each has a flag of its name.
var workerJobs = []struct{ name, schedule, purpose string }{
	{"compact", "@every 1m", "fold ended runs into snapshots"},
	{"reap", "@every 1m", "close stale runs, whose writers are gone"},
	{"repack", "@every 10m", "join the small batches of ended runs"},
	{"verify", "0 3 * * *", "check the threads that changed within --verify-since"},
	{"erase", off, "permanently remove threads without changes for --erase-after"},
}

// off is the schedule of a job that does not run.
const off = "off"

func (p *program) workerCommand() *cobra.Command {
	how := workerFlags{schedules: map[string]*string{}, compaction: compactFlags{running: true}, verifySince: 48 * time.Hour}
	command := &cobra.Command{
		Use:   "worker",
		Short: "Run all maintenance jobs on schedules, in one process",
		Long: `Runs the maintenance jobs, each on its own schedule. A schedule is a line of five fields as in a
crontab ('0 3 * * *', in local time), '@every 90s', '@hourly' or '@daily'; 'off' disables a job. If
a job fails, the worker logs the error and runs the job again when it is next due. Several workers,
cron and pg_cron may serve one database: only one of them runs a job at a time. On a standby the
jobs do nothing until it is promoted.

On SIGTERM or Ctrl-C the worker starts no more jobs, waits up to --grace for those in progress, and
exits with 0.

All jobs work on all scopes, except --erase, which needs --scope or --all-scopes.

The worker logs to stderr, with --json as JSON. It needs the role agui_worker, and with --erase also
agui_maintainer.`,
		Example: `  pgagui worker --json
  pgagui worker --compact '@every 30s' --verify off
  pgagui worker --erase '30 3 * * *' --erase-after 90d --all-scopes`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.work(command, how) },
	}
	flags := command.Flags()
	for _, job := range workerJobs {
		how.schedules[job.name] = flags.String(job.name, job.schedule, "`schedule` of the job: "+job.purpose)
	}
	how.compaction.addFlags(flags)
	flags.Var((*age)(&how.eraseAfter), "erase-after", "with --erase: erase threads whose last event is at least this old, for example 12h or 90d")
	flags.BoolVar(&how.allScopes, "all-scopes", false, "with --erase: erase threads of all scopes, not only of --scope")
	flags.Var((*age)(&how.verifySince), "verify-since", "with --verify: check threads with events or snapshots within this time; 0 means all threads")
	flags.DurationVar(&how.grace, "grace", defaultGrace, "after SIGTERM, wait this long for the jobs in progress")
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

	// Each job needs a connection for its lock and one for its work; compaction needs one per
	// worker.
	ctx := command.Context()
	pool, err := p.connect(ctx, options.Workers+len(workerJobs))
	if err != nil {
		return err
	}
	defer pool.Close()
	all := []jobs.Job{
		compactJob(pool, options),
		reapJob(pool, jobs.ReapOptions{}),
		repackJob(pool, jobs.RepackOptions{}),
		{Name: "verify", Work: func(ctx context.Context) (any, error) { return verifyRecent(ctx, pool, how.verifySince) }},
		{Name: "erase", Work: func(ctx context.Context) (any, error) { return jobs.Erase(ctx, pool, erasure) }},
	}
	var tasks []worker.Task
	for _, job := range all {
		if schedule := *how.schedules[job.Name]; schedule != off {
			tasks = append(tasks, worker.Task{Schedule: schedule, Job: job})
		}
	}
	if err := worker.Run(ctx, pool, tasks, worker.Options{Grace: how.grace, Logger: p.logger()}); err != nil {
		return wrong(err.Error())
	}
	return nil
}

// verifyRecent checks the threads of all scopes that changed within a time. It returns an error if
// it finds problems, so that the worker logs them as one.
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
		err = fmt.Errorf("%s found, the first in %s (pgagui verify lists all)", countText(done.Problems, "problem"), first)
	}
	return done, err
}

func (p *program) logger() *slog.Logger {
	if p.json {
		return slog.New(slog.NewJSONHandler(p.messages, nil))
	}
	return slog.New(slog.NewTextHandler(p.messages, nil))
}
