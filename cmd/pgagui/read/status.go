package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) statusCommand() *cobra.Command {
	var runID string
	command := &cobra.Command{
		Use:   "status THREAD",
		Short: "Show whether a run is in progress and its writer is alive",
		Long: `Shows the status of the head of a thread, or of the run that --run names: whether it is in progress
or how and why it ended, the seqs of its events, and the last sign of life of its writer, which is
an event or a heartbeat (agui.keep_alive). A run without a sign of life within the lease is stale
(the settings lease and heartbeat_lease; see the view agui.setting). "pgagui reap" closes stale
runs; so does the next run of the thread.

If the agent behind "pgagui serve" answered with something else than events, a role with
agui_diagnoser also sees that: status, content type, and the first 4 KB of the body.`,
		Example: `  pgagui status trip-to-lisbon
  pgagui status trip-to-lisbon --run run-3 --json | jq .status`,
		Args: cli.OneThread,
		RunE: p.OnStore(func(ctx context.Context, store *pgagui.Store, arguments []string) error {
			return p.status(ctx, store, arguments[0], runID)
		}),
	}
	command.Flags().StringVar(&runID, "run", "", "`id` of the run (default: the head of the thread)")
	return command
}

func (p *program) status(ctx context.Context, store *pgagui.Store, threadID, runID string) error {
	status, err := store.Status(ctx, pgagui.RunRef{ThreadID: threadID, RunID: runID})
	if err != nil {
		return err
	}
	pending, err := store.PendingToolCalls(ctx, pgagui.RunRef{ThreadID: threadID, RunID: status.RunID})
	if err != nil {
		return err
	}
	answered, err := answerOfAgent(ctx, store, pgagui.RunRef{ThreadID: threadID, RunID: status.RunID}, status.RunEnd)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(struct {
			*pgagui.RunStatus
			PendingToolCallIDs []string           `json:"pendingToolCallIds,omitempty"`
			AgentError         *pgagui.AgentError `json:"agentError,omitempty"`
		}{status, pending, answered})
	}
	text := cli.StatusText(status.Status)
	if status.Status == pgagui.Running {
		text = "in progress"
	}
	if status.Stale {
		text += ", but stale: its writer seems to be gone"
	}
	rows := [][]string{
		{"run", status.RunID},
		{"status", text},
		{"seq", fmt.Sprintf("%d–%d", status.FirstSeq, status.LastSeq)},
		{"started", timeText(status.StartedAt)},
	}
	if status.Status == pgagui.Running {
		rows = append(rows, []string{"last sign of life", timeText(status.AliveAt)})
	} else {
		rows = append(rows, []string{"ended", timeText(status.EndedAt)})
	}
	if !status.StopRequestedAt.IsZero() {
		rows = append(rows, []string{"stop requested", timeText(status.StopRequestedAt) + reasonText(status.StopReason)})
	}
	if why := cli.WhyText(status.Status, status.RunEnd); why != "" && (status.Status != pgagui.Cancelled || status.StopRequestedAt.IsZero()) {
		rows = append(rows, []string{map[pgagui.Status]string{pgagui.Failed: "error", pgagui.CutOff: "cut off", pgagui.Cancelled: "stopped"}[status.Status], cli.Joined(why)})
	}
	if answered != nil {
		rows = append(rows, []string{"agent answered", answerText(answered)})
	}
	if len(pending) > 0 {
		rows = append(rows, []string{"calls to answer", strings.Join(pending, ", ")})
	}
	switch tokens, err := usageOfRun(ctx, store, pgagui.RunRef{ThreadID: threadID, RunID: status.RunID}); {
	case err != nil:
		return err
	case tokens != "":
		rows = append(rows, []string{"tokens", tokens})
	}
	return p.PrintTable(rows, 1)
}

// answerOfAgent returns what the agent of a run answered in place of events: nil if the run ended otherwise, or if the role may not see it.
func answerOfAgent(ctx context.Context, store *pgagui.Store, run pgagui.RunRef, end pgagui.RunEnd) (*pgagui.AgentError, error) {
	if end.ErrorCode != "AGENT_STATUS" { // of pgagui serve
		return nil, nil
	}
	return store.AgentError(ctx, run)
}

func answerText(answered *pgagui.AgentError) string {
	return cli.Joined(fmt.Sprintf("%d %s: %s", answered.Status, answered.ContentType, answered.Text()))
}

// timeText formats a time with its age: 2026-03-01 09:30:00 (4.20 s ago).
func timeText(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", cli.TimeText(t), cli.DurationText(time.Since(t)))
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + cli.Shorten(reason, 200)
}
