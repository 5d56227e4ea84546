package read

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

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
