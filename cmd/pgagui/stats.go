package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/jobs"
)

func (p *program) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Show the size of the store and the work that waits",
		Long: `Shows the size of the store, of all scopes, and the runs that wait for compaction and repacking: the
views agui.stats and agui.lag. It reads the runs but not the log, so you may call it every minute.`,
		Example: `  pgagui stats
  pgagui stats --json | jq .runsToCompact`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.stats(command.Context()) },
	}
}

func (p *program) stats(ctx context.Context) error {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	stats, err := jobs.ReadStats(ctx, pool)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(stats)
	}
	waiting := func(runs int64, seconds float64) string {
		if runs == 0 {
			return "none"
		}
		return fmt.Sprintf("%s, the first for %s", countText(runs, "run"), durationText(time.Duration(seconds*float64(time.Second))))
	}
	running := humanize.Comma(stats.RunningRuns)
	if stats.RunningRuns > 0 {
		running += fmt.Sprintf(", %s stale, longest silence %s",
			humanize.Comma(stats.StaleRuns), durationText(time.Duration(stats.OldestSignOfLife*float64(time.Second))))
	}
	quarantined := "none"
	if stats.QuarantinedRuns > 0 {
		quarantined = countText(stats.QuarantinedRuns, "run") + " (select * from agui.quarantine)"
	}
	return p.printTable([][]string{
		{"threads", humanize.Comma(stats.Threads) + fmt.Sprintf(" (%s erased)", humanize.Comma(stats.ErasedThreads))},
		{"runs", fmt.Sprintf("%s: %s finished, %s failed, %s in progress",
			humanize.Comma(stats.Runs), humanize.Comma(stats.FinishedRuns), humanize.Comma(stats.FailedRuns), humanize.Comma(stats.RunningRuns))},
		{"events", humanize.Comma(stats.Events)},
		{"log on disk", fmt.Sprintf("%s, %s repacked", bytesText(stats.LogDiskBytes), countText(stats.RepackedRuns, "run"))},
		{"snapshots on disk", bytesText(stats.SnapshotDiskBytes)},
		{"threads and runs on disk", bytesText(stats.TreeDiskBytes)},
		{"session state on disk", bytesText(stats.SessionDiskBytes)},
		{"to compact", waiting(stats.RunsToCompact, stats.CompactionLag)},
		{"to repack", waiting(stats.RunsToRepack, stats.RepackLag)},
		{"in progress", running},
		{"in quarantine", quarantined},
	})
}
