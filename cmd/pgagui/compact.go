package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui/jobs"
)

// defaultGrace is less than the 30 seconds that Kubernetes gives a process after SIGTERM, and the 90 of systemd.
const defaultGrace = 20 * time.Second

// compactFlags are the flags of compact and worker that say how to compact.
type compactFlags struct {
	workers   int
	olderThan time.Duration
	running   bool
	every     int
}

func (c *compactFlags) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&c.workers, "workers", min(4, runtime.NumCPU()), "threads to compact side by side, each on a connection of its own")
	flags.Var((*age)(&c.olderThan), "older-than", "compact only runs that ended so long ago, as in 30m or 12h")
	flags.BoolVar(&c.running, "running", c.running, "make snapshots of long runs in progress too")
	flags.IntVar(&c.every, "every", 1000, "with --running: events between two snapshots of a run")
}

// options checks the flags.
func (c *compactFlags) options(command *cobra.Command) (jobs.CompactOptions, error) {
	if c.workers < 1 || c.every < 1 {
		return jobs.CompactOptions{}, &usageError{problem: "--workers and --every must be 1 or more", command: command.CommandPath()}
	}
	options := jobs.CompactOptions{Workers: c.workers, OlderThan: c.olderThan}
	if c.running {
		options.RunningEvery = c.every
	}
	return options, nil
}

// compactJob makes a job of compaction.
func compactJob(pool *pgxpool.Pool, options jobs.CompactOptions) jobs.Job {
	return jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) { return jobs.Compact(ctx, pool, options) }}
}

func (p *program) compactCommand() *cobra.Command {
	var (
		how     compactFlags
		limit   int
		maxTime time.Duration
		grace   time.Duration
		repack  bool
		retry   bool
	)
	command := &cobra.Command{
		Use:   "compact",
		Short: "Fold ended runs into snapshots",
		Long: `Folds every ended run that was not processed yet, of all scopes, the oldest first, and keeps the snapshots that make reading cheap.
Then it joins the small batches of runs that ended longer ago than the setting agui_internal.repack_after (10m), as "pgagui repack" does, unless
--repack=false or the role may not. What the log says stays as it is. With --running, long runs that are still in progress get a
snapshot too, and a new one after so many more events.

It is made for cron. It can be stopped or killed at any time; what was committed stays. While another pgagui compact or a call of
agui.compact is at work, and on a standby, it does nothing: exit code 0. When it stopped at --limit or --max-time with runs left, the
exit code is 6: run it again. A run that it fails at, or at which a process is killed, goes into quarantine: it is tried after all others,
less and less often, and while there are such runs the exit code is 6, too (select * from agui.quarantine). --retry tries them at once.
On SIGTERM or Ctrl-C it finishes the threads at hand, for up to --grace, and ends with 130.

With --json the result is one line:

    threads, runs, events      what was processed
    logBytes                   what the log of these runs takes as stored
    snapshots, dropped         snapshots written, and dropped because they were no longer needed
    waiting, left              runs that waited at the beginning and in the end
    quarantined                runs that it failed at and tries later
    busy                       threads that other transactions held
    stopped                    what ended the job with runs left: "limit", "time" or "interrupted"; else it is not there
    repacked                   what was repacked, as "pgagui repack --json" says it; else it is not there
    skipped                    why nothing was done: "another is at work" or "the server is a standby"; else it is not there
    nanoseconds                how long it took`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := how.options(command)
			if err != nil {
				return err
			}
			if limit < 0 || maxTime < 0 || grace < 0 {
				return &usageError{problem: "--limit, --max-time and --grace must be 0 or more", command: command.CommandPath()}
			}
			options.MaxRuns, options.MaxTime, options.Retry = limit, maxTime, retry
			ctx, cancel := jobs.WithGrace(command.Context(), grace)
			defer cancel()
			return p.compact(ctx, options, repack)
		},
	}
	flags := command.Flags()
	how.addFlags(flags)
	flags.IntVar(&limit, "limit", 0, "stop after so many runs; 0: when all are done")
	flags.DurationVar(&maxTime, "max-time", 0, "stop after so much time, for instance 50s; of the threads at hand the runs at hand are finished. 0: when all are done")
	flags.BoolVar(&repack, "repack", true, "repack what is due, too")
	flags.BoolVar(&retry, "retry", false, "try the runs in quarantine at once")
	flags.DurationVar(&grace, "grace", defaultGrace, "on SIGTERM: how long the threads at hand may take")
	return command
}

// compactResult is what compact prints with --json.
type compactResult struct {
	jobs.Compacted
	Repacked *jobs.Repacked  `json:"repacked,omitempty"`
	Skipped  jobs.SkipReason `json:"skipped,omitempty"`
}

func (p *program) compact(ctx context.Context, options jobs.CompactOptions, repack bool) error {
	begin := time.Now()
	pool, err := p.connect(ctx, options.Workers)
	if err != nil {
		return err
	}
	defer pool.Close()
	line := p.newProgress()
	options.Progress = func(done jobs.Compacted) {
		line.show(func() string {
			whole := max(done.Waiting, int64(done.Runs))
			return fmt.Sprintf("%s  %s of %s, %s", bar(int64(done.Runs), whole), humanize.Comma(int64(done.Runs)), countText(whole, "run"),
				countText(done.Events, "event"))
		})
	}
	report, failure := compactJob(pool, options).Run(ctx, pool, nil)
	line.clear()
	done, _ := report.Result.(jobs.Compacted) // none when it was skipped
	result := compactResult{Compacted: done, Skipped: report.Skipped}
	end := jobEnd{report: report, failure: failure, runs: done.Runs, stopped: done.Stopped, left: done.Quarantined > 0 || done.Busy > 0}
	var left *jobs.RunsLeftError
	if repack && (failure == nil || errors.As(failure, &left)) && report.Skipped == "" && done.Stopped == "" {
		var repackFailure error
		if result.Repacked, repackFailure = repackDue(ctx, pool, options, begin); result.Repacked != nil {
			end.stopped = result.Repacked.Stopped
			end.left = end.left || result.Repacked.Quarantined > 0 || result.Repacked.Busy > 0
		}
		end.failure = errors.Join(failure, repackFailure)
	}
	end.result = result
	end.print = func() error {
		if err := p.printCompacted(done); err != nil || result.Repacked == nil || result.Repacked.Runs == 0 {
			return err
		}
		return p.printRepacked(*result.Repacked)
	}
	return p.finishJob(end)
}

// repackDue repacks what is due, within what a compaction that began at begin has left of its limits. It returns nil when
// another process is at it.
func repackDue(ctx context.Context, pool *pgxpool.Pool, options jobs.CompactOptions, begin time.Time) (*jobs.Repacked, error) {
	limits := jobs.RepackOptions{MaxRuns: options.MaxRuns, Retry: options.Retry}
	if options.MaxTime > 0 {
		limits.MaxTime = max(1, options.MaxTime-time.Since(begin))
	}
	report, err := repackJob(pool, limits).Run(ctx, pool, nil)
	if report.Skipped != "" || report.Result == nil {
		return nil, err
	}
	done, _ := report.Result.(jobs.Repacked)
	return &done, err
}

// leftText says what a job left for another time.
func leftText(quarantined int64, busy int) string {
	text := ""
	if quarantined > 0 {
		text += fmt.Sprintf("; %s in quarantine (select * from agui.quarantine)", countText(quarantined, "run"))
	}
	if busy > 0 {
		text += fmt.Sprintf("; %s held by other transactions", countText(int64(busy), "thread"))
	}
	return text
}

func (p *program) printCompacted(done jobs.Compacted) error {
	left := ""
	if done.Stopped != "" {
		left = fmt.Sprintf("; %s left (stopped: %s)", countText(done.Left, "run"), done.Stopped)
	}
	left += leftText(done.Quarantined, done.Busy)
	_, err := fmt.Fprintf(p.out, "%s of %s, %s, %s of log: %s written, %d dropped, in %s%s\n",
		countText(done.Runs, "run"), countText(done.Threads, "thread"), countText(done.Events, "event"), bytesText(done.LogBytes),
		countText(done.Snapshots, "snapshot"), done.Dropped, durationText(done.Duration), left)
	return err
}
