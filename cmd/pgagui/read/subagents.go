package read

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/transcript"
)

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
