package upkeep

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

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
