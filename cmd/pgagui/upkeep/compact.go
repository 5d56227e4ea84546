package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

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
