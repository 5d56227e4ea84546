package read

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) usageCommand() *cobra.Command {
	options := pgagui.UsageOptions{}
	lineage := true
	command := &cobra.Command{
		Use:   "usage THREAD",
		Short: "Show the tokens that the runs of a thread used",
		Long: `Shows how many tokens the lineage of a run used, by provider and model, as the ends of the runs
report them. --lineage=false shows the run alone, --whole-thread all runs on all branches, each
once. The calls of subagents are in the count of their run.

REASONING is a part of OUTPUT; CACHED and CACHE WRITE are parts of INPUT; TOTAL is INPUT plus
OUTPUT. A count that no run reported is "-".

With --json it is one object: usage (provider, model, inputTokens, outputTokens, totalTokens,
reasoningTokens, cachedInputTokens, cacheWriteInputTokens, runs), runs, runsWithoutUsage.`,
		Example: `  pgagui usage trip-to-lisbon
  pgagui usage trip-to-lisbon --whole-thread --json | jq '[.usage[].totalTokens] | add'`,
		Args: cli.OneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			if options.NoLineage = !lineage; options.WholeThread && (options.NoLineage || options.RunID != "") {
				return cli.WrongUsage(command, "--whole-thread excludes --run and --lineage")
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.usage(command.Context(), store, arguments[0], options)
			})
		},
	}
	command.Flags().StringVar(&options.RunID, "run", "", "`id` of the run whose lineage is counted (default: the head)")
	command.Flags().BoolVar(&lineage, "lineage", true, "include the runs before the run")
	command.Flags().BoolVar(&options.WholeThread, "whole-thread", false, "count all runs of the thread, on all branches")
	return command
}

func (p *program) usage(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.UsageOptions) error {
	usage, err := store.Usage(ctx, threadID, options)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(usage)
	}
	table := [][]string{{"PROVIDER", "MODEL", "INPUT", "OUTPUT", "TOTAL", "REASONING", "CACHED", "CACHE WRITE", "RUNS"}}
	for _, model := range usage.Models {
		row := []string{cli.OrDash(model.Provider), cli.OrDash(model.Model)}
		for _, count := range []*int64{
			model.InputTokens, model.OutputTokens, model.TotalTokens, model.ReasoningTokens, model.CachedInputTokens, model.CacheWriteInputTokens,
		} {
			row = append(row, tokensText(count))
		}
		table = append(table, append(row, humanize.Comma(model.Runs)))
	}
	if len(usage.Models) > 0 {
		if err := p.PrintTable(table); err != nil {
			return err
		}
	}
	if usage.RunsWithoutUsage > 0 {
		fmt.Fprintf(p.Messages, "%d of %s reported no usage\n", usage.RunsWithoutUsage, cli.CountText(usage.Runs, "run"))
	}
	return nil
}

// usageOfRun returns what a run used, in words: 1,200 tokens in, 300 out. Empty if it reported nothing.
func usageOfRun(ctx context.Context, store *pgagui.Store, run pgagui.RunRef) (string, error) {
	usage, err := store.Usage(ctx, run.ThreadID, pgagui.UsageOptions{RunID: run.RunID, NoLineage: true})
	if err != nil || len(usage.Models) == 0 {
		return "", err
	}
	var in, out int64
	for _, model := range usage.Models {
		if model.InputTokens != nil {
			in += *model.InputTokens
		}
		if model.OutputTokens != nil {
			out += *model.OutputTokens
		}
	}
	return fmt.Sprintf("%s in, %s out", humanize.Comma(in), humanize.Comma(out)), nil
}

func tokensText(count *int64) string {
	if count == nil {
		return "-"
	}
	return humanize.Comma(*count)
}
