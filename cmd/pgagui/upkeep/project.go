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

func (p *program) projectCommand() *cobra.Command {
	var options jobs.ProjectOptions
	command := &cobra.Command{
		Use:   "project",
		Short: "Keep the facts about runs, tool calls, interrupts and tokens",
		Long: `Keeps the facts about the runs of all scopes, so that a question about all conversations reads no
log: the views agui.run_fact, agui.tool_fact, agui.interrupt_fact and agui.usage_fact. It reads the
runs that have ended or changed since the last call, in groups, and commits after each. The first
call reads all runs, and so does --rebuild, after which the facts are those of the log again.

It can be stopped at any time. While another project is in progress, and on a standby, it does
nothing and exits with 0. Exit code 6 means that work is left: it stopped at --max-time, or runs
that it failed to read are in quarantine. It needs the role agui_worker, with --rebuild also
agui_maintainer.`,
		Example: `  pgagui project --max-time 50s`,
		Args:    cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.MaxTime < 0 {
				return cli.WrongUsage(command, "--max-time must not be negative")
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error { return p.project(ctx, pool, options) })
		},
	}
	command.Flags().BoolVar(&options.Rebuild, "rebuild", false, "read all runs, not only those that were changed")
	command.Flags().DurationVar(&options.MaxTime, "max-time", 0, "stop after this time, for example 50s; 0 means no limit")
	command.Flags().BoolVar(&options.Retry, "retry", false, "retry the runs in quarantine at once")
	return command
}

// projectResult is the JSON output of project.
type projectResult struct {
	jobs.Projected
	Skipped jobs.SkipReason `json:"skipped,omitempty"`
}

func (p *program) project(ctx context.Context, pool *pgxpool.Pool, options jobs.ProjectOptions) error {
	line := p.NewProgress()
	options.Progress = func(done jobs.Projected) {
		line.Show(func() string { return cli.CountText(done.Runs, "run") + " read" })
	}
	report, failure := schedule.ProjectJob(pool, options).Run(ctx, pool, nil)
	line.Clear()
	done, _ := report.Result.(jobs.Projected) // nil if the job was skipped
	return p.finishJob(jobEnd{
		report: report, failure: failure, result: projectResult{done, report.Skipped}, runs: done.Runs, stopped: done.Stopped,
		left: done.Quarantined > 0,
		print: func() error {
			_, err := fmt.Fprintf(p.Out, "%s read, in %s%s\n", cli.CountText(done.Runs, "run"), cli.DurationText(done.Duration), leftText(done.Quarantined, 0))
			return err
		},
	})
}
