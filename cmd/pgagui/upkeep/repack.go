package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) repackCommand() *cobra.Command {
	var options jobs.RepackOptions
	var olderThan time.Duration
	command := &cobra.Command{
		Use:   "repack",
		Short: "Join the small batches of ended runs",
		Long: `Joins the batches of ended runs, of all scopes, into larger ones, which need a fraction of the
space. Events, their order and their times stay the same: each transaction reads back what it wrote
before it commits. The space becomes free for other rows at the next vacuum. "pgagui compact" also
repacks, so you rarely need this command.

It can be stopped at any time. While another repack is in progress, and on a standby, it does
nothing and exits with 0. Exit code 6 means that work is left: it stopped at --limit or --max-time,
other transactions held threads, or runs that it failed to repack are in quarantine. It needs the
role agui_worker.`,
		Example: `  pgagui repack --older-than 7d --max-time 10m`,
		Args:    cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if command.Flags().Changed("older-than") {
				options.OlderThan = &olderThan
			}
			if options.MaxRuns < 0 || options.MaxTime < 0 || olderThan < 0 {
				return cli.WrongUsage(command, "--limit, --max-time and --older-than must not be negative")
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error { return p.repack(ctx, pool, options) })
		},
	}
	command.Flags().Var((*cli.Age)(&olderThan), "older-than", "repack only runs that ended at least this long ago, for example 30m or 7d (default: the setting agui.repack_after, or 10m)")
	command.Flags().IntVar(&options.MaxRuns, "limit", 0, "stop after this `number` of runs; 0 means no limit")
	command.Flags().DurationVar(&options.MaxTime, "max-time", 0, "stop after this time, also within a run; 0 means no limit")
	command.Flags().BoolVar(&options.Retry, "retry", false, "retry the runs in quarantine at once")
	return command
}

// repackResult is the JSON output of repack.
type repackResult struct {
	jobs.Repacked
	Skipped jobs.SkipReason `json:"skipped,omitempty"`
}

func (p *program) repack(ctx context.Context, pool *pgxpool.Pool, options jobs.RepackOptions) error {
	line := p.NewProgress()
	options.Progress = func(done jobs.Repacked) {
		line.Show(func() string {
			return cli.CountText(done.Runs, "run") + ", " + batchesText(done.Joined)
		})
	}
	report, failure := schedule.RepackJob(pool, options).Run(ctx, pool, nil)
	line.Clear()
	done, _ := report.Result.(jobs.Repacked) // nil if the job was skipped
	return p.finishJob(jobEnd{
		report: report, failure: failure, result: repackResult{done, report.Skipped}, runs: done.Runs, stopped: done.Stopped,
		left:  done.Quarantined > 0 || done.Busy > 0,
		print: func() error { return p.printRepacked(done) },
	})
}

func (p *program) printRepacked(done jobs.Repacked) error {
	_, err := fmt.Fprintf(p.Out, "%s: %s joined into larger ones, %s dropped, in %s%s\n",
		cli.CountText(done.Runs, "run"), batchesText(done.Joined), cli.CountText(done.Dropped, "snapshot"), cli.DurationText(done.Duration),
		leftText(done.Quarantined, done.Busy))
	return err
}

func batchesText(count int) string {
	if count == 1 {
		return "1 batch"
	}
	return humanize.Comma(int64(count)) + " batches"
}
