package upkeep

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

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
