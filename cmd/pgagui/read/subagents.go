package read

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/transcript"
)

func (p *program) subagentsCommand() *cobra.Command {
	options := pgagui.SubagentsOptions{}
	lineage := true
	command := &cobra.Command{
		Use:   "subagents THREAD",
		Short: "Show the subagents of a conversation as a tree",
		Long: `Shows the subagents of the lineage of a run, each above the subagents that it began, with status,
number of events, how long it took, and why it failed. The wait of a suspended subagent for an
answer does not count.

With --json each line is a subagent: subagentRunId, depth, name, description, parentSubagentRunId,
parentToolCallId, parentMessageId, status (running, finished, suspended, failed, cut_off), runId,
lastRunId, firstSeq, lastSeq, eventCount, startedAt, endedAt, durationMs, result, interruptIds,
errorMessage, errorCode, usage. Members without a value are left out.`,
		Example: `  pgagui subagents trip-to-lisbon
  pgagui subagents trip-to-lisbon --json | jq 'select(.status == "failed")'`,
		Args: cli.OneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			options.NoLineage = !lineage
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.subagents(command.Context(), store, arguments[0], options)
			})
		},
	}
	addPointFlags(command, &options.At)
	command.Flags().BoolVar(&lineage, "lineage", true, "include the runs before the run")
	return command
}

func (p *program) subagents(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.SubagentsOptions) error {
	subagents, err := store.Subagents(ctx, threadID, options)
	if err != nil {
		return err
	}
	return cli.PrintList(p.Program, subagents, "", []string{"SUBAGENT", "ID", "STATUS", "EVENTS", "TIME", "RUN"}, func(subagent pgagui.Subagent) []string {
		name := cmp.Or(subagent.Name, "(no name)")
		status := string(subagent.Status)
		if subagent.ErrorMessage != "" {
			status += ": " + cli.Shorten(subagent.ErrorMessage, 60)
		}
		return []string{
			strings.Repeat("  ", min(subagent.Depth-1, 10)) + cli.Shorten(name, 40), subagent.ID, status, cli.CountText(subagent.EventCount, "event"),
			cli.DurationText(time.Duration(subagent.DurationMs) * time.Millisecond), subagent.LastRunID,
		}
	})
}

// knownSubagents returns what messages do not say of the subagents of a conversation. It reads them
// from the log, and only if the conversation has any.
func knownSubagents(ctx context.Context, store *pgagui.Store, restored *pgagui.Restored, conversation *transcript.Conversation) (map[string]transcript.Subagent, error) {
	if !slices.ContainsFunc(conversation.Items(), func(item transcript.Item) bool { return item.SubagentRunID != "" }) {
		return nil, nil
	}
	// A run in progress may have more events by now: read the log only up to the restored seq.
	subagents, err := store.Subagents(ctx, restored.ThreadID, pgagui.SubagentsOptions{At: pgagui.At{RunID: restored.RunID, Seq: restored.Seq}})
	if err != nil {
		return nil, err
	}
	known := map[string]transcript.Subagent{}
	for _, subagent := range subagents {
		note := strings.ReplaceAll(string(subagent.Status), "_", " ")
		switch subagent.Status {
		case pgagui.SubagentFailed:
			note += ": " + cli.Shorten(subagent.ErrorMessage, 200)
		case pgagui.SubagentFinished, pgagui.SubagentSuspended:
			if subagent.DurationMs > 0 {
				note += ", " + cli.DurationText(time.Duration(subagent.DurationMs)*time.Millisecond)
			}
		}
		known[subagent.ID] = transcript.Subagent{Name: subagent.Name, Depth: subagent.Depth, Note: note}
	}
	return known, nil
}
