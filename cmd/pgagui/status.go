package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
)

func (p *program) statusCommand() *cobra.Command {
	var runID string
	command := &cobra.Command{
		Use:   "status THREAD",
		Short: "Show whether a run is in progress and its writer is alive",
		Long: `Shows the status of the head of a thread, or of the run that --run names: whether it is in progress
or how it ended, the seqs of its events, and the last sign of life of its writer, which is an event
or a heartbeat (agui.keep_alive). A run without a sign of life within the lease is stale (the
settings lease and heartbeat_lease; see the view agui.setting). "pgagui reap" closes stale runs; so
does the next run of the thread.`,
		Example: `  pgagui status trip-to-lisbon
  pgagui status trip-to-lisbon --run run-3 --json | jq .status`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.status(command.Context(), store, arguments[0], runID)
			})
		},
	}
	command.Flags().StringVar(&runID, "run", "", "`id` of the run (default: the head of the thread)")
	return command
}

func (p *program) status(ctx context.Context, store *pgagui.Store, threadID, runID string) error {
	status, err := store.Status(ctx, pgagui.RunRef{ThreadID: threadID, RunID: runID})
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(status)
	}
	text := string(status.Status)
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
	if status.CutOffReason != "" {
		rows = append(rows, []string{"cut off", shorten(status.CutOffReason, 200)})
	}
	return p.printTable(rows)
}

// timeText formats a time with its age: 2026-03-01 09:30:00 (4.20 s ago).
func timeText(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("2006-01-02 15:04:05"), durationText(time.Since(t)))
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + shorten(reason, 200)
}
