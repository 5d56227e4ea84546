package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

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
