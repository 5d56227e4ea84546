package pgagui

import (
	"context"

	"github.com/pgagui/pgagui/db"
)

// UsageOptions say of which runs Usage counts the tokens. The zero value is the head's lineage.
type UsageOptions struct {
	// RunID is the run whose lineage is counted. The head if empty.
	RunID string
	// NoLineage narrows it to the run alone.
	NoLineage bool
	// WholeThread counts all runs of the thread, on all branches, each once. It excludes RunID and
	// NoLineage.
	WholeThread bool
}

// Usage is how many tokens runs used, as they report them.
type Usage struct {
	Models []ModelUsage `json:"usage"`
	// Runs is how many runs were read, and RunsWithoutUsage how many of them reported nothing: they
	// are in progress, were cut off, or their agent does not count.
	Runs             int64 `json:"runs"`
	RunsWithoutUsage int64 `json:"runsWithoutUsage"`
}

// ModelUsage is how many tokens runs used of a model of a provider, in the accounting of AG-UI.
// ReasoningTokens are a part of OutputTokens, CachedInputTokens and CacheWriteInputTokens are parts
// of InputTokens, and TotalTokens are InputTokens plus OutputTokens. A count that no run reported is
// nil.
type ModelUsage struct {
	Provider              string `json:"provider,omitempty"`
	Model                 string `json:"model,omitempty"`
	InputTokens           *int64 `json:"inputTokens,omitempty"`
	OutputTokens          *int64 `json:"outputTokens,omitempty"`
	TotalTokens           *int64 `json:"totalTokens,omitempty"`
	ReasoningTokens       *int64 `json:"reasoningTokens,omitempty"`
	CachedInputTokens     *int64 `json:"cachedInputTokens,omitempty"`
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens,omitempty"`
	// Runs is how many runs used the model.
	Runs int64 `json:"runs"`
}

// Usage returns how many tokens the runs of a thread used, by provider and model. The calls of
// subagents are in the count of their run. It reads the ends of the runs in the log, and the rest of
// those whose ends report nothing.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrInvalidArgument.
func (s *Store) Usage(ctx context.Context, threadID string, options UsageOptions) (Usage, error) {
	rows, err := s.of(threadID).Usage(ctx, db.UsageParams{
		ThreadID: threadID, RunID: orNull(options.RunID), Lineage: !options.NoLineage, WholeThread: options.WholeThread, Scope: s.scope,
	})
	if err != nil {
		return Usage{}, ErrorOf(err)
	}
	usage := Usage{Models: []ModelUsage{}}
	for _, row := range rows {
		usage.Runs, usage.RunsWithoutUsage = row.AllRuns, row.RunsWithoutUsage
		if row.Runs == 0 { // the only row: no run reported any
			break
		}
		usage.Models = append(usage.Models, ModelUsage{
			Provider: row.Provider, Model: row.Model, Runs: row.Runs,
			InputTokens: reported(row.InputTokens), OutputTokens: reported(row.OutputTokens), TotalTokens: reported(row.TotalTokens),
			ReasoningTokens: reported(row.ReasoningTokens), CachedInputTokens: reported(row.CachedInputTokens),
			CacheWriteInputTokens: reported(row.CacheWriteInputTokens),
		})
	}
	return usage, nil
}

func reported(count int64) *int64 {
	if count < 0 {
		return nil
	}
	return &count
}
