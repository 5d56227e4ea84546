package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
)

func (p *program) stopCommand() *cobra.Command {
	var runID, reason string
	command := &cobra.Command{
		Use:   "stop THREAD",
		Short: "Ask the writers of runs in progress to stop",
		Long: `Asks the writers of all runs in progress of a thread to stop, or that of the run that --run names, in whichever processes they are. A writer
that keeps its run alive (agui.keep_alive, or a recorder of the Go package) learns of it within about a second, and ends the run
itself. "pgagui status" says whether it has.

Where none is in progress nobody is asked, and that is no error: exit code 0. It takes the rights of the role agui_writer.`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.stop(command.Context(), store, arguments[0], runID, reason)
			})
		},
	}
	command.Flags().StringVar(&runID, "run", "", "the run; without it all runs in progress of the thread")
	command.Flags().StringVar(&reason, "reason", "", "why, for the writer to read; the first reason given for a run stays")
	return command
}

// stopResult is what stop prints with --json.
type stopResult struct {
	Runs int `json:"runs"`
}

func (p *program) stop(ctx context.Context, store *pgagui.Store, threadID, runID, reason string) error {
	runs, err := store.RequestStop(ctx, pgagui.RunRef{ThreadID: threadID, RunID: runID}, pgagui.RequestStopOptions{Reason: reason})
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(stopResult{runs})
	case runs == 0:
		_, err = fmt.Fprintln(p.out, "nobody to ask: no run is in progress")
	default:
		_, err = fmt.Fprintf(p.out, "asked %s to stop\n", countText(runs, "run"))
	}
	return err
}
