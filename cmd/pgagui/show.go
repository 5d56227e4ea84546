package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/transcript"
)

func (p *program) showCommand() *cobra.Command {
	var at pgagui.At
	var full bool
	command := &cobra.Command{
		Use:   "show THREAD",
		Short: "Print a conversation in readable form",
		Long: `Prints the conversation of a thread: the messages of the user and the assistant, reasoning, tool
calls with their results, activities, and open interrupts. The marks mean: ✓ done, ▸ in progress, ◦
not begun, ✗ failed, ~ skipped. Long arguments, results, activities and reasoning are shortened
unless --full is set.

On a terminal the lines are wrapped and colored (NO_COLOR=1 turns colors off). Control characters,
such as escape sequences, are shown as escapes.

With --json each line is an object: first {threadId, runId, status, seq}, then the parts of the
conversation in order, each with its kind:

  message, reasoning   id, role, name, text
  tool_call            id, toolName, arguments (a string until they are valid JSON), status
                       (streaming, called, completed, cut_off), durationMs, result, error
  tool_result          id of a tool call that is missing or already has a result; result, error
  activity             id, activityType, content
  interrupt            id, reason, text of an open interrupt

Parts of a subagent have a subagentRunId. Members without a value are left out.`,
		Example: `  pgagui show trip-to-lisbon
  pgagui show trip-to-lisbon --run run-3 --at 100 --full | less
  pgagui show trip-to-lisbon --json | jq 'select(.kind == "tool_call") | {toolName, durationMs}'`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.show(command.Context(), store, arguments[0], at, full)
			})
		},
	}
	addPointFlags(command, &at)
	command.Flags().BoolVar(&full, "full", false, "show long texts in full")
	return command
}

func (p *program) show(ctx context.Context, store *pgagui.Store, threadID string, at pgagui.At, full bool) error {
	restored, err := store.Restore(ctx, threadID, at)
	if err != nil {
		return err
	}
	conversation := transcript.Conversation{
		Messages: restored.Messages, Interrupts: restored.Interrupts, Running: restored.Status == pgagui.Running,
	}
	if conversation.Calls, err = knownCalls(ctx, store, restored, &conversation); err != nil {
		return err
	}
	if p.json {
		return p.showJSON(restored, conversation)
	}
	runs, err := store.Lineage(ctx, pgagui.RunRef{ThreadID: threadID, RunID: restored.RunID})
	if err != nil {
		return err
	}
	head, err := store.Head(ctx, threadID)
	if err != nil {
		return err
	}
	conversation.Title = showTitle(restored, runs[len(runs)-1], head)
	return transcript.New(transcript.Options{
		Width: p.textWidth(), Color: p.colored(), Full: full, Hint: "--full shows all",
	}).Write(p.styled(), conversation)
}

// knownCalls returns the status and duration of the tool calls of a conversation. It reads them
// from the log, and only if the conversation has any.
func knownCalls(ctx context.Context, store *pgagui.Store, restored *pgagui.Restored, conversation *transcript.Conversation) (map[string]transcript.Call, error) {
	if !slices.ContainsFunc(conversation.Items(), func(item transcript.Item) bool { return item.Kind == transcript.ToolCall }) {
		return nil, nil
	}
	// A run in progress may have more events by now: read the log only up to the restored seq.
	calls, err := store.ToolCalls(ctx, restored.ThreadID, pgagui.ToolCallsOptions{At: pgagui.At{RunID: restored.RunID, Seq: restored.Seq}})
	if err != nil {
		return nil, err
	}
	known := map[string]transcript.Call{}
	for _, call := range calls {
		entry := transcript.Call{Status: transcript.CallStatus(call.Status)}
		if call.Status == pgagui.ToolCallCompleted && call.EndedAt.After(call.StartedAt) {
			entry.Duration = call.EndedAt.Sub(call.StartedAt)
		}
		known[call.ID] = entry
	}
	return known, nil
}

// showTitle is the first line: thread trip-to-lisbon, run run-8 (head): finished, seq 110 of 186.
func showTitle(restored *pgagui.Restored, run pgagui.Run, head string) string {
	title := fmt.Sprintf("thread %s, run %s", restored.ThreadID, restored.RunID)
	if restored.RunID == head {
		title += " (head)"
	}
	title += fmt.Sprintf(": %s, seq %d", restored.Status, restored.Seq)
	if restored.Seq < run.LastSeq {
		title += fmt.Sprintf(" of %d", run.LastSeq)
	}
	return title
}

func (p *program) showJSON(restored *pgagui.Restored, conversation transcript.Conversation) error {
	if err := p.printJSON(struct {
		ThreadID string        `json:"threadId"`
		RunID    string        `json:"runId"`
		Status   pgagui.Status `json:"status"`
		Seq      int64         `json:"seq"`
	}{restored.ThreadID, restored.RunID, restored.Status, restored.Seq}); err != nil {
		return err
	}
	for _, item := range conversation.Items() {
		if err := p.printJSON(item); err != nil {
			return err
		}
	}
	return nil
}

// textWidth returns the number of columns for text, or 0 if results do not go to a terminal. Lines
// of more than a hundred columns are hard to read.
func (p *program) textWidth() int {
	const limit = 100
	if p.terminal == nil {
		return 0
	}
	width, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil {
		return 0
	}
	return min(width, limit)
}
