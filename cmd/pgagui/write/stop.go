package write

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) stopCommand() *cobra.Command {
	var runID, reason string
	command := &cobra.Command{
		Use:   "stop THREAD",
		Short: "Request that runs in progress stop",
		Long: `Requests that all runs in progress of a thread stop, or only the run that --run names. The writers
may be in any process. A writer that keeps its run alive (agui.keep_alive, or a recorder of the Go
package) receives the request within about a second and ends the run itself. "pgagui show --status"
shows whether the run has ended.

If no run is in progress, the command does nothing and exits with 0. It needs the role agui_writer.`,
		Example: `  pgagui stop trip-to-lisbon --reason "the user pressed Stop"`,
		Args:    cli.OneThread,
		RunE: p.OnStore(func(ctx context.Context, store *pgagui.Store, arguments []string) error {
			return p.stop(ctx, store, arguments[0], runID, reason)
		}),
	}
	command.Flags().StringVar(&runID, "run", "", "`id` of the run to stop (default: all runs in progress of the thread)")
	command.Flags().StringVar(&reason, "reason", "", "`text` for the writer; the first reason given for a run stays")
	return command
}

// stopResult is the JSON output of stop.
type stopResult struct {
	Runs int `json:"runs"`
}

func (p *program) stop(ctx context.Context, store *pgagui.Store, threadID, runID, reason string) error {
	runs, err := store.RequestStop(ctx, pgagui.RunRef{ThreadID: threadID, RunID: runID}, pgagui.RequestStopOptions{Reason: reason})
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.PrintJSON(stopResult{runs})
	case runs == 0:
		_, err = fmt.Fprintln(p.Out, "nothing to stop: no run is in progress")
	default:
		_, err = fmt.Fprintf(p.Out, "requested a stop of %s\n", cli.CountText(runs, "run"))
	}
	return err
}
