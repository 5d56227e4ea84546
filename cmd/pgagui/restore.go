package main

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
)

func (p *program) restoreCommand() *cobra.Command {
	var at pgagui.At
	command := &cobra.Command{
		Use:   "restore THREAD",
		Short: "Print a conversation as it stood at any point",
		Long: `Prints messages, state and interrupts of a thread as one JSON document, {threadId, runId, seq, status, messages, state, interrupts}:
all that a UI needs to show the conversation again. On a terminal it is indented, else in one line.`,
		Example: `  pgagui restore trip-to-lisbon
  pgagui restore trip-to-lisbon --run run-3 --at 100 | jq .state
  pgagui restore trip-to-lisbon --at 2h`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.restore(command.Context(), store, arguments[0], at)
			})
		},
	}
	addPointFlags(command, &at)
	return command
}

// addPointFlags lets a command be told of which point of a thread it is asked.
func addPointFlags(command *cobra.Command, at *pgagui.At) {
	flags := command.Flags()
	flags.StringVar(&at.RunID, "run", "", "after this run, instead of the head")
	var point string
	flags.StringVar(&point, "at", "", "back in time: after the event with this seq, so long ago, as in 2h or 7d,\nor at a time, as in 2006-01-02T15:04 (local time unless it has a zone)")
	command.PreRunE = func(*cobra.Command, []string) error { return readPoint(command, "at", point, at) }
}

// readPoint reads the value of a flag that goes back in time, if the flag is given.
func readPoint(command *cobra.Command, flag, text string, at *pgagui.At) (err error) {
	if !command.Flags().Changed(flag) {
		return nil
	}
	if at.Seq, at.Time, err = seqOrTime("--"+flag, text, time.Now()); err != nil {
		return &usageError{problem: err.Error(), command: command.CommandPath()}
	}
	return nil
}

func (p *program) restore(ctx context.Context, store *pgagui.Store, threadID string, at pgagui.At) error {
	restored, err := store.Restore(ctx, threadID, at)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if p.terminal != nil && !p.json {
		err = json.Indent(&text, restored.JSON, "", "  ")
	} else {
		err = json.Compact(&text, restored.JSON)
	}
	if err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err = p.out.Write(text.Bytes())
	return err
}
