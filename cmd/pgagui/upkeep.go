package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/worker"
)

// upkeepJobs are the jobs of the worker, with their default schedules. Each has a flag of its name.
var upkeepJobs = []struct{ name, schedule, purpose string }{
	{"compact", "@every 1m", "fold ended runs into snapshots"},
	{"reap", "@every 1m", "close stale runs, whose writers are gone"},
	{"repack", "@every 10m", "join the small batches of ended runs"},
	{"verify", "0 3 * * *", "check the threads that changed within --verify-since"},
	{"erase", off, "permanently remove threads without changes for --erase-after"},
}

// off is the schedule of a job that does not run.
const off = "off"

// upkeep are the settings of the jobs. pgagui worker has a flag for each, pgagui serve the same
// ones as --worker-….
type upkeep struct {
	schedules   map[string]*string // by job name
	compaction  compactFlags
	eraseAfter  time.Duration
	allScopes   bool
	verifySince time.Duration
	grace       time.Duration
}

// flags returns a flag for each setting. The settings get their defaults.
func (u *upkeep) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	u.schedules, u.compaction.running = map[string]*string{}, true
	for _, job := range upkeepJobs {
		u.schedules[job.name] = flags.String(job.name, job.schedule, "`schedule` of the job: "+job.purpose)
	}
	u.compaction.addFlags(flags)
	flags.Var((*age)(&u.eraseAfter), "erase-after", "with --erase: erase threads in which nothing was stored for at least this long, for example 12h or 90d")
	flags.BoolVar(&u.allScopes, "all-scopes", false, "with --erase: erase threads of all scopes, not only of one")
	u.verifySince = 48 * time.Hour
	flags.Var((*age)(&u.verifySince), "verify-since", "with --verify: check threads with events or snapshots within this time; 0 means all threads")
	flags.DurationVar(&u.grace, "grace", defaultGrace, "after SIGTERM, wait this long for the jobs in progress")
	return flags
}

var flagName = regexp.MustCompile(`--([a-z])`)

// withPrefix puts a prefix before the names of flags in a text.
func withPrefix(prefix, text string) string { return flagName.ReplaceAllString(text, "--"+prefix+"$1") }

func (u *upkeep) erases() bool { return *u.schedules["erase"] != off }

// check reports settings that contradict each other. The caller checks the scope of the erasure.
func (u *upkeep) check() error {
	if err := u.compaction.check(); err != nil {
		return err
	}
	switch {
	case u.grace < 0 || u.erases() != (u.eraseAfter > 0):
		return errors.New("--erase and --erase-after go together, and --grace must be 0 or more")
	case u.allScopes && !u.erases():
		return errors.New("--all-scopes is for --erase: all other jobs work on all scopes")
	}
	for _, job := range upkeepJobs {
		if schedule := *u.schedules[job.name]; schedule != off {
			if err := worker.CheckSchedule(schedule); err != nil {
				return fmt.Errorf("--%s: %w", job.name, err)
			}
		}
	}
	return nil
}

// connections is how many connections the jobs take at most: each has one for its lock and one for
// its work, and compaction one per worker.
func (u *upkeep) connections() int { return u.compaction.workers + len(upkeepJobs) }

// tasks returns the jobs that are not off. The erasure is for scope, unless allScopes is set.
func (u *upkeep) tasks(pool *pgxpool.Pool, scope string) (tasks []worker.Task) {
	erasure := jobs.EraseOptions{
		OlderThan: u.eraseAfter, Scope: scope, AllScopes: u.allScopes, Reason: "pgagui worker --erase-after " + (*age)(&u.eraseAfter).String(),
	}
	for _, job := range []jobs.Job{
		compactJob(pool, u.compaction.options()),
		reapJob(pool, jobs.ReapOptions{}),
		repackJob(pool, jobs.RepackOptions{}),
		{Name: "verify", Work: func(ctx context.Context) (any, error) { return verifyRecent(ctx, pool, u.verifySince) }},
		{Name: "erase", Work: func(ctx context.Context) (any, error) { return jobs.Erase(ctx, pool, erasure) }},
	} {
		if schedule := *u.schedules[job.Name]; schedule != off {
			tasks = append(tasks, worker.Task{Schedule: schedule, Job: job})
		}
	}
	return tasks
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
