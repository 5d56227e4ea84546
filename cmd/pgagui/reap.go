package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/jobs"
)

func (p *program) reapCommand() *cobra.Command {
	var options jobs.ReapOptions
	command := &cobra.Command{
		Use:   "reap",
		Short: "Close the runs whose writers are gone",
		Long: `Closes the runs in progress, of all scopes, that gave no sign of life within the lease (the settings lease and
heartbeat_lease, see the view agui.setting): what they left open is ended in the log, then a RUN_ERROR says why. Without it such a run is in progress, for all who look at
it, until the next run of its thread begins. A writer that comes back late is refused. "pgagui status THREAD" says when a run last gave a
sign of life, "pgagui stats" how many are stale.

It can be stopped at any time. Like compact it does nothing while another is at work or on a standby. The exit code is 6 when it stopped at
--limit or --max-time with work left, or has left runs in quarantine because it failed at them (--retry tries them at once). It takes the
rights of the role agui_worker.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.MaxRuns < 0 || options.MaxTime < 0 {
				return &usageError{problem: "--limit and --max-time must not be negative", command: command.CommandPath()}
			}
			return p.reap(command.Context(), options)
		},
	}
	command.Flags().IntVar(&options.MaxRuns, "limit", 0, "stop after so many runs; 0: when all are done")
	command.Flags().DurationVar(&options.MaxTime, "max-time", 0, "stop after so long; 0: when all are done")
	command.Flags().BoolVar(&options.Retry, "retry", false, "try the runs in quarantine at once")
	return command
}

// reapJob makes a job of closing runs.
func reapJob(pool *pgxpool.Pool, options jobs.ReapOptions) jobs.Job {
	return jobs.Job{Name: "reap", Work: func(ctx context.Context) (any, error) { return jobs.Reap(ctx, pool, options) }}
}

// reapResult is what reap prints with --json.
type reapResult struct {
	jobs.Reaped
	Skipped jobs.SkipReason `json:"skipped,omitempty"`
}

func (p *program) reap(ctx context.Context, options jobs.ReapOptions) error {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	line := p.newProgress()
	options.Progress = func(done jobs.Reaped) {
		line.show(func() string { return countText(done.Runs, "run") + " closed" })
	}
	report, failure := reapJob(pool, options).Run(ctx, pool, nil)
	line.clear()
	done, _ := report.Result.(jobs.Reaped) // none when it was skipped
	return p.finishJob(jobEnd{
		report: report, failure: failure, result: reapResult{done, report.Skipped}, runs: done.Runs, stopped: done.Stopped,
		left: done.Quarantined > 0,
		print: func() error {
			_, err := fmt.Fprintf(p.out, "%s closed, in %s%s\n", countText(done.Runs, "run"), durationText(done.Duration), leftText(done.Quarantined, 0))
			return err
		},
	})
}
