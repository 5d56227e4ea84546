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
		Short: "Say whether a run is in progress, and whether its writer is still there",
		Long: `Says how the head of a thread is, or the run that --run names: in progress or how it ended, its events so far, and when its writer last gave
a sign of life, by an event or by agui.keep_alive. A run that is silent for longer than the lease (the settings lease
and heartbeat_lease, see the view agui.setting) is stale: "pgagui reap" closes it, or the next run of the thread.`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.status(command.Context(), store, arguments[0], runID)
			})
		},
	}
	command.Flags().StringVar(&runID, "run", "", "the run; without it the head of the thread")
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
	inWords := string(status.Status)
	if status.Status == pgagui.Running {
		inWords = "in progress"
	}
	if status.Stale {
		inWords += ", but stale: its writer seems to be gone"
	}
	rows := [][]string{
		{"run", status.RunID},
		{"status", inWords},
		{"seq", fmt.Sprintf("%d–%d", status.FirstSeq, status.LastSeq)},
		{"started", momentText(status.StartedAt)},
	}
	if status.Status == pgagui.Running {
		rows = append(rows, []string{"last sign of life", momentText(status.AliveAt)})
	} else {
		rows = append(rows, []string{"ended", momentText(status.EndedAt)})
	}
	if !status.StopRequestedAt.IsZero() {
		rows = append(rows, []string{"asked to stop", momentText(status.StopRequestedAt) + reasonText(status.StopReason)})
	}
	if status.CutOffReason != "" {
		rows = append(rows, []string{"cut off", shorten(status.CutOffReason, 200)})
	}
	return p.printTable(rows)
}

// momentText is a time with how long ago it was: 2026-03-01 09:30:00 (4.20 s ago).
func momentText(moment time.Time) string {
	return fmt.Sprintf("%s (%s ago)", moment.Local().Format("2006-01-02 15:04:05"), durationText(time.Since(moment)))
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + shorten(reason, 200)
}
