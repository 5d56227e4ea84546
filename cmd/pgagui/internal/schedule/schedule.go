// Package schedule has the jobs that worker and serve run on schedules, with their flags.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/telemetry"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/otelagui"
	"github.com/pgagui/pgagui/worker"
)

// upkeepJobs are the jobs of the worker, with their default schedules. Each has a flag of its name.
var upkeepJobs = []struct{ name, schedule, purpose string }{
	{"compact", "@every 1m", "fold ended runs into snapshots"},
	{"reap", "@every 1m", "close stale runs, whose writers are gone"},
	{"repack", "@every 10m", "join the small batches of ended runs"},
	{"project", "@every 1m", "keep the facts about runs and tool calls"},
	{"webhooks", "@every 10s", "send the requests of pgagui webhook"},
	{"traces", Off, "send the runs that ended to OpenTelemetry, to $OTEL_EXPORTER_OTLP_ENDPOINT"},
	{"verify", "0 3 * * *", "check the threads that changed within --verify-since"},
	{"retain", "30 3 * * *", "archive and erase threads by the rules of pgagui retention"},
	{"erase", Off, "permanently remove threads without changes for --erase-after"},
}

// Off is the schedule of a job that does not run.
const Off = "off"

// Jobs are the settings of the jobs. pgagui worker has a flag for each, pgagui serve the same
// ones as --worker-….
type Jobs struct {
	Schedules   map[string]*string // by job name
	Compaction  CompactFlags
	webhooks    WebhookFlags
	EraseAfter  time.Duration
	AllScopes   bool
	verifySince time.Duration
	traces      otelagui.TracesOptions
	Grace       time.Duration
}

// Flags returns a flag for each setting. The settings get their defaults.
func (u *Jobs) Flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	u.Schedules, u.Compaction.Running = map[string]*string{}, true
	for _, job := range upkeepJobs {
		u.Schedules[job.name] = flags.String(job.name, job.schedule, "`schedule` of the job: "+job.purpose)
	}
	u.Compaction.AddFlags(flags)
	u.webhooks.AddFlags(flags)
	flags.Var((*cli.Age)(&u.EraseAfter), "erase-after", "with --erase: erase threads in which nothing was stored for at least this long, for example 12h or 90d")
	flags.BoolVar(&u.AllScopes, "all-scopes", false, "with --erase: erase threads of all scopes, not only of one")
	u.verifySince = 48 * time.Hour
	flags.Var((*cli.Age)(&u.verifySince), "verify-since", "with --verify: check threads with events or snapshots within this time; 0 means all threads")
	u.traces = otelagui.TracesOptions{AllScopes: true, MaxAge: 24 * time.Hour}
	flags.Var((*cli.Age)(&u.traces.MaxAge), "traces-max-age", "with --traces: leave out runs that ended longer ago; 0 means that all are sent")
	flags.BoolVar(&u.traces.Contents, "traces-contents", false, "with --traces: also send what users, models and tools say")
	flags.DurationVar(&u.Grace, "grace", DefaultGrace, "after SIGTERM, wait this long for the jobs in progress")
	return flags
}

var flagName = regexp.MustCompile(`--([a-z])`)

// WithPrefix puts a prefix before the names of flags in a text.
func WithPrefix(prefix, text string) string { return flagName.ReplaceAllString(text, "--"+prefix+"$1") }

// Erases reports whether the erasure is on.
func (u *Jobs) Erases() bool { return *u.Schedules["erase"] != Off }

// Check reports settings that contradict each other. The caller checks the scope of the erasure.
func (u *Jobs) Check() error {
	if err := u.Compaction.Check(); err != nil {
		return err
	}
	if _, err := u.webhooks.Options(); err != nil {
		return err
	}
	switch {
	case u.Grace < 0 || u.Erases() != (u.EraseAfter > 0):
		return errors.New("--erase and --erase-after go together, and --grace must be 0 or more")
	case u.AllScopes && !u.Erases():
		return errors.New("--all-scopes is for --erase: all other jobs work on all scopes")
	case *u.Schedules["traces"] != Off && !telemetry.IsOn():
		return errors.New("--traces needs an address in $OTEL_EXPORTER_OTLP_ENDPOINT or $OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	}
	for _, job := range upkeepJobs {
		if schedule := *u.Schedules[job.name]; schedule != Off {
			if err := worker.CheckSchedule(schedule); err != nil {
				return fmt.Errorf("--%s: %w", job.name, err)
			}
		}
	}
	return nil
}

// Connections is how many connections the jobs take at most: each has one for its lock and one for
// its work, and compaction one per worker.
func (u *Jobs) Connections() int { return u.Compaction.Workers + len(upkeepJobs) }

// Tasks returns the jobs that are not off. The erasure is for scope, unless AllScopes is set.
func (u *Jobs) Tasks(ctx context.Context, pool *pgxpool.Pool, scope string, logger *slog.Logger) (tasks []worker.Task, err error) {
	erasure := jobs.EraseOptions{
		OlderThan: u.EraseAfter, Scope: scope, AllScopes: u.AllScopes, Reason: "pgagui worker --erase-after " + (*cli.Age)(&u.EraseAfter).String(),
	}
	webhooks, _ := u.webhooks.Options() // Check has looked at them
	traces := jobs.Job{Name: "traces"}
	if *u.Schedules[traces.Name] != Off {
		if traces.Work, err = u.sendTraces(ctx, pool, logger); err != nil {
			return nil, err
		}
	}
	for _, job := range []jobs.Job{
		CompactJob(pool, u.Compaction.Options()),
		ReapJob(pool, jobs.ReapOptions{}),
		RepackJob(pool, jobs.RepackOptions{}),
		ProjectJob(pool, jobs.ProjectOptions{}),
		WebhooksJob(pool, webhooks),
		traces,
		{Name: "verify", Work: func(ctx context.Context) (any, error) { return verifyRecent(ctx, pool, u.verifySince) }},
		RetainJob(pool, jobs.RetainOptions{}),
		{Name: "erase", Work: func(ctx context.Context) (any, error) { return jobs.Erase(ctx, pool, erasure) }},
	} {
		if schedule := *u.Schedules[job.Name]; schedule != Off {
			tasks = append(tasks, worker.Task{Schedule: schedule, Job: job})
		}
	}
	return tasks, nil
}

// tracesTime is how long the job sends traces at most. What is left comes when it is next due.
const tracesTime = 10 * time.Second

// sendTraces is the work of the job that sends traces. Its exporter lives as long as the process, and keeps no
// spans.
func (u *Jobs) sendTraces(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) (func(context.Context) (any, error), error) {
	exporter, described, err := telemetry.Exporter(ctx, cli.Version())
	if err != nil {
		return nil, err
	}
	options := u.traces
	options.Resource, options.Logger = described, logger
	traces := otelagui.NewTraces(pgagui.New(pool, nil), exporter, options)
	return func(ctx context.Context) (any, error) {
		var done otelagui.TracesSent
		for begin := time.Now(); ; {
			sent, err := traces.SendNew(ctx)
			done.Runs, done.Left = done.Runs+sent.Runs, sent.Left
			if err != nil || !sent.Left || time.Since(begin) > tracesTime {
				return done, err
			}
		}
	}, nil
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
		err = fmt.Errorf("%s found, the first in %s (pgagui verify lists all)", cli.CountText(done.Problems, "problem"), first)
	}
	return done, err
}
