package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) compactCommand() *cobra.Command {
	var (
		how     schedule.CompactFlags
		limit   int
		maxTime time.Duration
		grace   time.Duration
		repack  bool
		retry   bool
	)
	command := &cobra.Command{
		Use:   "compact",
		Short: "Fold ended runs into snapshots",
		Long: `Folds every ended run that has not been compacted, of all scopes, oldest first, and keeps the
snapshots that make reading cheap. Then it repacks the runs that are due, as "pgagui repack" does,
unless --repack=false is set or the role may not repack. The log keeps its contents. With --running,
long runs in progress also get a snapshot, and a new one after every --every events.

Run it from cron. It can be stopped or killed at any time; what it has committed stays. While
another pgagui compact or a call of agui.compact is in progress, and on a standby, it does nothing
and exits with 0. On SIGTERM or Ctrl-C it finishes the threads in progress, for up to --grace, and
exits with 130.

If it fails to process a run, or is killed while it processes one, the run goes into quarantine.
Such runs come after all others and are retried with backoff; --retry retries them at once.

Exit code 6 means that work is left: the job stopped at --limit or --max-time, other transactions
held threads, or runs are in quarantine (select * from agui.quarantine). Run it again.

With --json the result is one line with these members:

    threads, runs, events   what was processed
    logBytes                stored size of the log of these runs, in bytes
    snapshots, dropped      snapshots written, and snapshots dropped because they became superfluous
    waiting, left           runs to compact at the beginning and at the end
    quarantined             runs in quarantine
    busy                    threads that other transactions held
    stopped                 why the job stopped with runs left: "limit", "time" or "interrupted";
                            absent if it did not
    repacked                the result of repacking, as in "pgagui repack --json"; absent if none
    skipped                 why the job did nothing; absent if it ran
    nanoseconds             duration`,
		Example: `  pgagui compact --running --max-time 50s
  pgagui compact --older-than 1h --workers 2 --json`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := how.Check(); err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			if limit < 0 || maxTime < 0 || grace < 0 {
				return cli.WrongUsage(command, "--limit, --max-time and --grace must be 0 or more")
			}
			options := how.Options()
			options.MaxRuns, options.MaxTime, options.Retry = limit, maxTime, retry
			ctx, cancel := jobs.WithGrace(command.Context(), grace)
			defer cancel()
			return p.EachPool(ctx, options.Workers, func(ctx context.Context, pool *pgxpool.Pool) error { return p.compact(ctx, pool, options, repack) })
		},
	}
	flags := command.Flags()
	how.AddFlags(flags)
	flags.IntVar(&limit, "limit", 0, "stop after this `number` of runs; 0 means no limit")
	flags.DurationVar(&maxTime, "max-time", 0, "stop after this time, for example 50s, and finish the runs in progress; 0 means no limit")
	flags.BoolVar(&repack, "repack", true, "also repack the runs that are due")
	flags.BoolVar(&retry, "retry", false, "retry the runs in quarantine at once")
	flags.DurationVar(&grace, "grace", schedule.DefaultGrace, "after SIGTERM, wait this long for the threads in progress")
	return command
}

// compactResult is the JSON output of compact.
type compactResult struct {
	jobs.Compacted
	Repacked *jobs.Repacked  `json:"repacked,omitempty"`
	Skipped  jobs.SkipReason `json:"skipped,omitempty"`
}

func (p *program) compact(ctx context.Context, pool *pgxpool.Pool, options jobs.CompactOptions, repack bool) error {
	begin := time.Now()
	line := p.NewProgress()
	options.Progress = func(done jobs.Compacted) {
		line.Show(func() string {
			whole := max(done.Waiting, int64(done.Runs))
			return fmt.Sprintf("%s  %s of %s, %s", cli.Bar(int64(done.Runs), whole), humanize.Comma(int64(done.Runs)), cli.CountText(whole, "run"),
				cli.CountText(done.Events, "event"))
		})
	}
	report, failure := schedule.CompactJob(pool, options).Run(ctx, pool, nil)
	line.Clear()
	done, _ := report.Result.(jobs.Compacted) // nil if the job was skipped
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

// repackDue repacks the runs that are due, within the time that is left of options.MaxTime since
// begin. It returns nil if the same job is in progress elsewhere.
func repackDue(ctx context.Context, pool *pgxpool.Pool, options jobs.CompactOptions, begin time.Time) (*jobs.Repacked, error) {
	limits := jobs.RepackOptions{MaxRuns: options.MaxRuns, Retry: options.Retry}
	if options.MaxTime > 0 {
		limits.MaxTime = max(1, options.MaxTime-time.Since(begin))
	}
	report, err := schedule.RepackJob(pool, limits).Run(ctx, pool, nil)
	if report.Skipped != "" || report.Result == nil {
		return nil, err
	}
	done, _ := report.Result.(jobs.Repacked)
	return &done, err
}

// leftText describes the work that a job left.
func leftText(quarantined int64, busy int) string {
	text := ""
	if quarantined > 0 {
		text += fmt.Sprintf("; %s in quarantine (select * from agui.quarantine)", cli.CountText(quarantined, "run"))
	}
	if busy > 0 {
		text += fmt.Sprintf("; %s held by other transactions", cli.CountText(int64(busy), "thread"))
	}
	return text
}

func (p *program) printCompacted(done jobs.Compacted) error {
	left := ""
	if done.Stopped != "" {
		left = fmt.Sprintf("; %s left (stopped: %s)", cli.CountText(done.Left, "run"), done.Stopped)
	}
	left += leftText(done.Quarantined, done.Busy)
	_, err := fmt.Fprintf(p.Out, "%s of %s, %s, %s of log: %s written, %d dropped, in %s%s\n",
		cli.CountText(done.Runs, "run"), cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"), cli.BytesText(done.LogBytes),
		cli.CountText(done.Snapshots, "snapshot"), done.Dropped, cli.DurationText(done.Duration), left)
	return err
}
