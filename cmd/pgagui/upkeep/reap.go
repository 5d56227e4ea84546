package upkeep

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) reapCommand() *cobra.Command {
	var options jobs.ReapOptions
	command := &cobra.Command{
		Use:   "reap",
		Short: "Close stale runs, whose writers are gone",
		Long: `Closes the stale runs of all scopes: runs in progress whose writer has given no sign of life within
the lease (the settings lease and heartbeat_lease; see the view agui.setting). It appends events
that end what the run left open, then a RUN_ERROR with the reason. Without it a stale run stays in
progress for all readers until the next run of its thread begins. If the writer returns later, its
appends are refused. "pgagui status THREAD" shows the last sign of life of a run, "pgagui stats" the
number of stale runs.

It can be stopped at any time. While another reap is in progress, and on a standby, it does nothing
and exits with 0. Exit code 6 means that work is left: it stopped at --limit or --max-time, or runs
that it failed to close are in quarantine. It needs the role agui_worker.`,
		Example: `  pgagui reap --max-time 50s`,
		Args:    cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.MaxRuns < 0 || options.MaxTime < 0 {
				return cli.WrongUsage(command, "--limit and --max-time must not be negative")
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error { return p.reap(ctx, pool, options) })
		},
	}
	command.Flags().IntVar(&options.MaxRuns, "limit", 0, "stop after this `number` of runs; 0 means no limit")
	command.Flags().DurationVar(&options.MaxTime, "max-time", 0, "stop after this time, for example 50s; 0 means no limit")
	command.Flags().BoolVar(&options.Retry, "retry", false, "retry the runs in quarantine at once")
	return command
}

// reapResult is the JSON output of reap.
type reapResult struct {
	jobs.Reaped
	Skipped jobs.SkipReason `json:"skipped,omitempty"`
}

func (p *program) reap(ctx context.Context, pool *pgxpool.Pool, options jobs.ReapOptions) error {
	line := p.NewProgress()
	options.Progress = func(done jobs.Reaped) {
		line.Show(func() string { return cli.CountText(done.Runs, "run") + " closed" })
	}
	report, failure := schedule.ReapJob(pool, options).Run(ctx, pool, nil)
	line.Clear()
	done, _ := report.Result.(jobs.Reaped) // nil if the job was skipped
	return p.finishJob(jobEnd{
		report: report, failure: failure, result: reapResult{done, report.Skipped}, runs: done.Runs, stopped: done.Stopped,
		left: done.Quarantined > 0,
		print: func() error {
			_, err := fmt.Fprintf(p.Out, "%s closed, in %s%s\n", cli.CountText(done.Runs, "run"), cli.DurationText(done.Duration), leftText(done.Quarantined, 0))
			return err
		},
	})
}
