package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
)

func (p *program) exportCommand() *cobra.Command {
	var runID string
	var null bool
	command := &cobra.Command{
		Use:   "export THREAD",
		Short: "Print the events of a thread, byte for byte",
		Long: `Prints the raw events of a thread, one a line, their very bytes. The events of a run come together, the runs in the order in which
they began, so that import can read them again.

An event may hold line ends between its fields; then --null is needed, which puts a NUL byte behind each event instead of a line end.`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.export(command.Context(), store, arguments[0], runID, null)
			})
		},
	}
	command.Flags().StringVar(&runID, "run", "", "the events of this run alone")
	command.Flags().BoolVar(&null, "null", false, "end each event with a NUL byte instead of a line end")
	return command
}

func (p *program) export(ctx context.Context, store *pgagui.Store, threadID, runID string, null bool) error {
	runs, err := runsToExport(ctx, store, threadID, runID)
	if err != nil {
		return err
	}
	end := byte('\n')
	if null {
		end = 0
	}
	out := bufio.NewWriterSize(p.out, 1<<16)
	for _, run := range runs {
		for event, err := range store.RunEvents(ctx, threadID, run, 0) {
			if err != nil {
				return err
			}
			if !null && bytes.IndexByte(event.Payload, '\n') >= 0 {
				if err := out.Flush(); err != nil {
					return err
				}
				return &usageError{command: "pgagui export", problem: fmt.Sprintf(
					"event %d of thread %q (run %q) holds a line end, so it does not fit in a line: use --null", event.Seq, threadID, run.ID)}
			}
			out.Write(event.Payload) // Flush returns the error
			if err := out.WriteByte(end); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func runsToExport(ctx context.Context, store *pgagui.Store, threadID, runID string) ([]pgagui.Run, error) {
	if runID == "" {
		return store.Runs(ctx, threadID)
	}
	lineage, err := store.Lineage(ctx, threadID, runID)
	if err != nil {
		return nil, err
	}
	return lineage[len(lineage)-1:], nil
}
