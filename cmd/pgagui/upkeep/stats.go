package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) statsCommand() *cobra.Command {
	var options jobs.StatsOptions
	command := &cobra.Command{
		Use:   "stats",
		Short: "Show the size of the store and the work that waits",
		Long: `Shows the size of the store, of all scopes, and the runs that wait for compaction and repacking
(agui.stats and agui.lag). Counts of a store of more than about 50,000 runs are estimates, marked
with "about", so the command costs the same however large the store is. --exact counts all rows. Of
a cluster it shows each node, and then the sum of the nodes that answered, which with --json has the
member nodes.`,
		Example: `  pgagui stats
  pgagui stats --exact
  pgagui stats --json | jq .runsToCompact`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return p.stats(command.Context(), options) },
	}
	command.Flags().BoolVar(&options.Exact, "exact", false, "count all rows of a large store instead of estimating how many there are")
	return command
}

// stats prints the statistics of the database, or those of each node and their sum.
func (p *program) stats(ctx context.Context, options jobs.StatsOptions) error {
	var sum jobs.Stats
	var allPlaces []pgagui.ConsumerPlace
	var nodes []string
	err := p.EachPool(ctx, 1, func(ctx context.Context, pool *pgxpool.Pool) error {
		stats, err := jobs.ReadStats(ctx, pool, options)
		if err != nil {
			return err
		}
		if len(nodes) == 0 {
			sum = stats
		} else {
			sum.Add(stats)
		}
		nodes = append(nodes, p.Node)
		if p.JSON {
			return p.PrintJSON(stats)
		}
		places, err := pgagui.New(pool, nil).Consumers(ctx)
		if err != nil {
			return err
		}
		allPlaces = append(allPlaces, places...)
		return p.printStats(stats, places)
	})
	var printing error
	switch {
	case p.Nodes == "" || len(nodes) == 0:
	case p.JSON:
		printing = p.PrintJSON(struct {
			Nodes []string `json:"nodes"`
			jobs.Stats
		}{nodes, sum})
	default:
		heading := "all nodes"
		if err != nil {
			heading = "nodes " + strings.Join(nodes, ", ")
		}
		fmt.Fprintln(p.Out, heading+":")
		printing = p.printStats(sum, allPlaces)
	}
	return errors.Join(err, printing)
}

// consumersText counts consumers. One is behind if it is on any node.
func consumersText(places []pgagui.ConsumerPlace) string {
	type name struct {
		consumer, scope string
		allScopes       bool
	}
	isBehind, behind := map[name]bool{}, 0
	for _, place := range places {
		key := name{place.Consumer, place.Scope, place.AllScopes}
		wasBehind := isBehind[key]
		if isBehind[key] = wasBehind || place.Behind > 0 || place.IsLost; isBehind[key] && !wasBehind {
			behind++
		}
	}
	if len(isBehind) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %d behind (pgagui feed consumers)", len(isBehind), behind)
}

func (p *program) printStats(stats jobs.Stats, places []pgagui.ConsumerPlace) error {
	waiting := func(runs int64, seconds float64) string {
		if runs == 0 {
			return "none"
		}
		atLeast := ""
		if !stats.BacklogIsExact {
			atLeast = "at least "
		}
		return atLeast + fmt.Sprintf("%s, the first for %s", cli.CountText(runs, "run"), cli.DurationText(time.Duration(seconds*float64(time.Second))))
	}
	running := humanize.Comma(stats.RunningRuns)
	if stats.RunningRuns > 0 {
		running += fmt.Sprintf(", %s stale, longest silence %s",
			humanize.Comma(stats.StaleRuns), cli.DurationText(time.Duration(stats.OldestSignOfLife*float64(time.Second))))
	}
	quarantined := "none"
	if stats.QuarantinedRuns > 0 {
		quarantined = cli.CountText(stats.QuarantinedRuns, "run") + " (select * from agui.quarantine)"
	}
	about := ""
	if !stats.IsExact {
		about = "about "
	}
	return p.PrintTable([][]string{
		{"threads", about + humanize.Comma(stats.Threads) + fmt.Sprintf(" (%s erased)", humanize.Comma(stats.ErasedThreads))},
		{"runs", about + fmt.Sprintf("%s: %s finished, %s interrupted, %s cancelled, %s failed, %s cut off, %s in progress",
			humanize.Comma(stats.Runs), humanize.Comma(stats.FinishedRuns), humanize.Comma(stats.InterruptedRuns), humanize.Comma(stats.CancelledRuns),
			humanize.Comma(stats.FailedRuns), humanize.Comma(stats.CutOffRuns), humanize.Comma(stats.RunningRuns))},
		{"events", about + humanize.Comma(stats.Events)},
		{"log on disk", fmt.Sprintf("%s, %s%s repacked", cli.BytesText(stats.LogDiskBytes), about, cli.CountText(stats.RepackedRuns, "run"))},
		{"snapshots on disk", cli.BytesText(stats.SnapshotDiskBytes)},
		{"threads and runs on disk", cli.BytesText(stats.TreeDiskBytes)},
		{"session state on disk", cli.BytesText(stats.SessionDiskBytes)},
		{"to compact", waiting(stats.RunsToCompact, stats.CompactionLag)},
		{"to repack", waiting(stats.RunsToRepack, stats.RepackLag)},
		{"in progress", running},
		{"in quarantine", quarantined},
		{"consumers", consumersText(places)},
	})
}
