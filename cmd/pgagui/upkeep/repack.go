package upkeep

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

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
