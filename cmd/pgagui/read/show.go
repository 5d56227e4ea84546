package read

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/timeline"
	"github.com/pgagui/pgagui/transcript"
)

func (p *program) showCommand() *cobra.Command {
	var at pgagui.At
	var full, document, status, usage, subagents, lineage, wholeThread bool
	command := &cobra.Command{
		Use:   "show THREAD",
		Short: "Print a conversation, or the status, tokens and subagents of its run",
		Long: `Prints the conversation of a thread: the messages of the user and the assistant, reasoning, tool
calls with their results, activities, and open interrupts. What a subagent says is indented. The
marks mean: ✓ done, ▸ in progress, ◦ not begun, ✗ failed, ~ skipped. Long arguments, results,
activities and reasoning are shortened unless --full is set.

On a terminal the lines are wrapped and colored (NO_COLOR=1 turns colors off). Control characters,
such as escape sequences, are shown as escapes.

The first line names the run, its status and why it ended so, and with --at or for an earlier run
the seq and the time up to which the conversation is shown. It names events of the run without an
effect: they lack a field that their type needs, their patch fails by RFC 6902, or the message that
they continue is not there. The last lines say what waits for an
answer, what the run answered, and why it failed.

With --json each line is an object: first {threadId, runId, status, seq, recordedAt, errorCode,
errorMessage, stopReason, cutOffReason, pendingToolCallIds, malformedEvents, answers}, then the
parts of the conversation in order, each with its kind:

  message, reasoning   id, role, name, text
  tool_call            id, toolName, arguments (a string until they are valid JSON), status
                       (streaming, called, completed, cut_off), durationMs, result, error
  tool_result          id of a tool call that is missing or already has a result; result, error
  activity             id, activityType, content
  interrupt            id, reason, text of an open interrupt; expiresAt, expired

Parts of a subagent have a subagentRunId and subagentName. Members without a value are left out.

--document prints the conversation for a UI, as one JSON document: {threadId, runId, seq, status,
messages, state, interrupts}. It is indented on a terminal; otherwise, and with --json, it is one
line.

--status prints, in place of the conversation, whether the run is in progress or how and why it
ended, the seqs of its events, and the last sign of life of its writer, which is an event or a
heartbeat (agui.keep_alive). A run without a sign of life within the lease is stale (the settings
lease and heartbeat_lease; see the view agui.setting). "pgagui job reap" closes stale runs; so does
the next run of the thread. If the agent behind "pgagui serve" answered with something else than
events, a role with agui_diagnoser also sees that: status, content type, and the first 4 KB of the
body.

--usage prints how many tokens the lineage of the run used, by provider and model, as the ends of
the runs report them; with --lineage=false the run alone, with --whole-thread all runs on all
branches, each once. The calls of subagents are in the count of their run. REASONING is a part of
OUTPUT; CACHED and CACHE WRITE are parts of INPUT; TOTAL is INPUT plus OUTPUT. A count that no run
reported is "-". With --json it is one object: usage (provider, model, inputTokens, outputTokens,
totalTokens, reasoningTokens, cachedInputTokens, cacheWriteInputTokens, runs), runs,
runsWithoutUsage.

--subagents prints the subagents of the lineage, each above those that it began, with status, number
of events, how long it took, and why it failed. The wait of a suspended subagent for an answer does
not count. With --json each line has subagentRunId, depth, name, description, parentSubagentRunId,
parentToolCallId, parentMessageId, status (running, finished, suspended, failed, cut_off), runId,
lastRunId, firstSeq, lastSeq, eventCount, startedAt, endedAt, durationMs, result, interruptIds,
errorMessage, errorCode, usage. Members without a value are left out.`,
		Example: `  pgagui show trip-to-lisbon
  pgagui show trip-to-lisbon --run run-3 --at 100 --full | less
  pgagui show trip-to-lisbon --json | jq 'select(.kind == "tool_call") | {toolName, durationMs}'
  pgagui show trip-to-lisbon --document --at 2h | jq .state
  pgagui show trip-to-lisbon --usage --whole-thread --json | jq '[.usage[].totalTokens] | add'`,
		Args: cli.OneThread,
	}
	addPointFlags(command, &at)
	flags := command.Flags()
	flags.BoolVar(&full, "full", false, "show long texts in full")
	flags.BoolVar(&document, "document", false, "print messages, state and open interrupts as one JSON document")
	flags.BoolVar(&status, "status", false, "print whether the run is in progress and its writer is alive")
	flags.BoolVar(&usage, "usage", false, "print the tokens that the runs used")
	flags.BoolVar(&subagents, "subagents", false, "print the subagents as a tree")
	flags.BoolVar(&lineage, "lineage", true, "with --usage and --subagents: include the runs before the run")
	flags.BoolVar(&wholeThread, "whole-thread", false, "with --usage: count all runs of the thread, on all branches")
	readAt := command.PreRunE
	command.PreRunE = func(command *cobra.Command, arguments []string) error {
		switch {
		case cli.Several(full, document, status, usage, subagents):
			return cli.WrongUsage(command, "--full, --document, --status, --usage and --subagents exclude each other")
		case wholeThread && (!lineage || at.RunID != ""):
			return cli.WrongUsage(command, "--whole-thread excludes --run and --lineage")
		}
		return cmp.Or(
			cli.GoesWith(command, "the conversation, --document and --subagents", !status && !usage, "at"),
			cli.GoesWith(command, "--usage and --subagents", usage || subagents, "lineage"),
			cli.GoesWith(command, "--usage", usage, "whole-thread"),
			readAt(command, arguments),
		)
	}
	command.RunE = p.OnStore(func(ctx context.Context, store *pgagui.Store, arguments []string) error {
		switch threadID := arguments[0]; {
		case document:
			return p.restore(ctx, store, threadID, at)
		case status:
			return p.status(ctx, store, threadID, at.RunID)
		case usage:
			return p.usage(ctx, store, threadID, pgagui.UsageOptions{RunID: at.RunID, NoLineage: !lineage, WholeThread: wholeThread})
		case subagents:
			return p.subagents(ctx, store, threadID, pgagui.SubagentsOptions{At: at, NoLineage: !lineage})
		default:
			return p.show(ctx, store, threadID, at, full)
		}
	})
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
	if conversation.Subagents, err = knownSubagents(ctx, store, restored, &conversation); err != nil {
		return err
	}
	run, err := store.Status(ctx, pgagui.RunRef{ThreadID: threadID, RunID: restored.RunID})
	if err != nil {
		return err
	}
	head := shownPoint{ThreadID: threadID, RunID: restored.RunID, Status: restored.Status, Seq: restored.Seq, RunEnd: run.RunEnd}
	if head.RecordedAt, err = recordedAt(ctx, store, restored); err != nil {
		return err
	}
	if restored.Seq >= run.LastSeq {
		if head.PendingToolCallIDs, err = store.PendingToolCalls(ctx, pgagui.RunRef{ThreadID: threadID, RunID: restored.RunID}); err != nil {
			return err
		}
	}
	if head.MalformedEvents, err = store.MalformedEvents(ctx, pgagui.RunRef{ThreadID: threadID, RunID: restored.RunID}, 100); err != nil {
		return err
	}
	skipped, err := skippedEvents(ctx, store, restored)
	if err != nil {
		return err
	}
	head.MalformedEvents = append(head.MalformedEvents, skipped...)
	slices.SortFunc(head.MalformedEvents, func(a, b pgagui.MalformedEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	if run.ParentRunID != "" {
		given, err := store.GivenAnswers(ctx, pgagui.RunRef{ThreadID: threadID, RunID: restored.RunID}, run.ParentRunID)
		if err != nil {
			return err
		}
		for _, one := range given {
			head.Answers = append(head.Answers, shownAnswer{transcript.Question(one.JSON, restored.Messages), one.Reason, one.Status, one.Payload})
		}
	}
	if p.JSON {
		return p.showJSON(head, conversation)
	}
	headID, err := store.Head(ctx, threadID)
	if err != nil {
		return err
	}
	conversation.Title = showTitle(head, run.LastSeq, headID)
	for _, answer := range head.Answers {
		conversation.Answers = append(conversation.Answers, transcript.Line{
			Mark: transcript.Done, Text: answer.Status + ": " + cmp.Or(answer.Question, answer.Reason, "an interrupt"), Note: string(answer.Payload),
		})
	}
	if why := cli.WhyText(head.Status, head.RunEnd); restored.Seq >= run.LastSeq && (head.Status == pgagui.Failed || head.Status == pgagui.CutOff) {
		conversation.Failure = strings.TrimSuffix(cli.StatusText(head.Status)+": "+why, ": ")
	}
	return transcript.New(transcript.Options{
		Width: p.textWidth(), Color: p.Colored(), Full: full, Hint: "--full shows all",
	}).Write(p.Styled(), conversation)
}

// skippedEvents returns the events of the run, as far as it is restored, that a client would let change something and the fold does not.
func skippedEvents(ctx context.Context, store *pgagui.Store, restored *pgagui.Restored) ([]pgagui.MalformedEvent, error) {
	line, err := timeline.NewCache(0).Open(ctx, store, pgagui.RunRef{ThreadID: restored.ThreadID, RunID: restored.RunID})
	if err != nil {
		return nil, err
	}
	marks := line.Marks()
	behind := sort.Search(len(marks), func(i int) bool { return marks[i].Seq > restored.Seq })
	if behind == 0 {
		return nil, nil
	}
	moment, err := line.At(ctx, marks[behind-1].Seq)
	if err != nil {
		return nil, err
	}
	return moment.Skipped, nil
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

// shownPoint is what show shows: a run, up to an event.
type shownPoint struct {
	ThreadID   string        `json:"threadId"`
	RunID      string        `json:"runId"`
	Status     pgagui.Status `json:"status"`
	Seq        int64         `json:"seq"`
	RecordedAt time.Time     `json:"recordedAt,omitzero"`
	pgagui.RunEnd
	PendingToolCallIDs []string                `json:"pendingToolCallIds,omitempty"`
	MalformedEvents    []pgagui.MalformedEvent `json:"malformedEvents,omitempty"`
	Answers            []shownAnswer           `json:"answers,omitempty"`
}

type shownAnswer struct {
	Question string          `json:"question,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Status   string          `json:"status"`
	Payload  json.RawMessage `json:"payload,omitempty"`
}

// recordedAt returns the time of the last event that counts.
func recordedAt(ctx context.Context, store *pgagui.Store, restored *pgagui.Restored) (time.Time, error) {
	options := pgagui.EventsOptions{RunID: restored.RunID, AfterSeq: restored.Seq - 1}
	for event, err := range store.Events(ctx, restored.ThreadID, options) {
		return event.RecordedAt, err
	}
	return time.Time{}, nil // the lineage has no event yet
}

// showTitle is the first line: thread trip-to-lisbon, run run-8 (head): finished, seq 110 of 186, 2026-03-01 09:30:00.
func showTitle(at shownPoint, lastSeq int64, head string) string {
	title := fmt.Sprintf("thread %s, run %s", at.ThreadID, at.RunID)
	if at.RunID == head {
		title += " (head)"
	}
	title += fmt.Sprintf(": %s, seq %d", cli.StatusText(at.Status), at.Seq)
	if at.Seq < lastSeq {
		title += fmt.Sprintf(" of %d", lastSeq)
	}
	if !at.RecordedAt.IsZero() {
		title += ", " + cli.TimeText(at.RecordedAt)
	}
	if why := cli.WhyText(at.Status, at.RunEnd); why != "" {
		title += "; " + cli.Shorten(why, 200)
	}
	if len(at.PendingToolCallIDs) > 0 {
		title += "; calls to answer: " + strings.Join(at.PendingToolCallIDs, ", ")
	}
	if n := len(at.MalformedEvents); n > 0 {
		first := at.MalformedEvents[0]
		title += fmt.Sprintf("; %s without effect, the first is seq %d, %s: %s", cli.CountText(n, "event"), first.Seq, first.Type, first.Problem)
	}
	return title
}

func (p *program) showJSON(at shownPoint, conversation transcript.Conversation) error {
	if err := p.PrintJSON(at); err != nil {
		return err
	}
	for _, item := range conversation.Items() {
		if err := p.PrintJSON(item); err != nil {
			return err
		}
	}
	return nil
}

// textWidth returns the number of columns for text, or 0 if results do not go to a terminal. Lines
// of more than a hundred columns are hard to read.
func (p *program) textWidth() int {
	const limit = 100
	return min(p.TerminalWidth(), limit)
}
