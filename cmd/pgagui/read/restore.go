package read

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) restoreCommand() *cobra.Command {
	var at pgagui.At
	command := &cobra.Command{
		Use:   "restore THREAD",
		Short: "Print a conversation as of any point, as JSON",
		Long: `Prints the messages, the state and the open interrupts of a thread as one JSON document: {threadId,
runId, seq, status, messages, state, interrupts}. A UI can show the conversation from it. The
document is indented on a terminal; otherwise, and with --json, it is one line.`,
		Example: `  pgagui restore trip-to-lisbon
  pgagui restore trip-to-lisbon --run run-3 --at 100 | jq .state
  pgagui restore trip-to-lisbon --at 2h`,
		Args: cli.OneThread,
		RunE: p.OnStore(func(ctx context.Context, store *pgagui.Store, arguments []string) error {
			return p.restore(ctx, store, arguments[0], at)
		}),
	}
	addPointFlags(command, &at)
	return command
}

// addPointFlags adds the flags that select a point of a thread.
func addPointFlags(command *cobra.Command, at *pgagui.At) {
	flags := command.Flags()
	flags.StringVar(&at.RunID, "run", "", "`id` of the run whose result to show (default: the head)")
	var point string
	flags.StringVar(&point, "at", "", "earlier `point` in the lineage of the run: the seq of an event such as 100, "+cli.TimeFormats)
	command.PreRunE = func(*cobra.Command, []string) error { return readPoint(command, "at", point, at) }
}

// readPoint parses the value of a flag that selects an earlier point, if the flag is set.
func readPoint(command *cobra.Command, flag, text string, at *pgagui.At) (err error) {
	if !command.Flags().Changed(flag) {
		return nil
	}
	if at.Seq, at.Time, err = cli.SeqOrTime("--"+flag, text, time.Now()); err != nil {
		return cli.WrongUsage(command, err.Error())
	}
	return nil
}

func (p *program) restore(ctx context.Context, store *pgagui.Store, threadID string, at pgagui.At) error {
	restored, err := store.Restore(ctx, threadID, at)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if p.Terminal != nil && !p.JSON {
		err = json.Indent(&text, restored.JSON, "", "  ")
	} else {
		err = json.Compact(&text, restored.JSON)
	}
	if err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err = p.Out.Write(text.Bytes())
	return err
}
