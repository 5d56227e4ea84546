package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
)

func (p *program) exportCommand() *cobra.Command {
	var given exportFlags
	var compact string
	command := &cobra.Command{
		Use:   "export THREAD",
		Short: "Print the events of a thread, byte for byte",
		Long: `Prints the raw events of a thread, one a line, their very bytes. The events of a run come together, the runs in the order in which
they began, so that import can read them again. With --run they are those of the run's lineage, with --lineage=false too those of the run alone.

An event may hold line ends between its fields; then --null is needed, which puts a NUL byte behind each event instead of a line end.

With --compact each run's events are replaced by fewer that mean the same: "stream" gives each message and tool call as a start, one
piece and an end, "snapshot" all messages and the state as they stood at the end of each run (so it is best with --lineage=false).`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			if compact != "" {
				shape, err := compaction.ParseShape(compact)
				if err != nil {
					return &usageError{problem: `--compact must be "stream" or "snapshot"`, command: command.CommandPath()}
				}
				return p.withStore(command.Context(), func(store *pgagui.Store) error {
					return p.exportCompacted(command.Context(), store, arguments[0], given, shape)
				})
			}
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.export(command.Context(), store, arguments[0], given)
			})
		},
	}
	addRunFlags(command, &given.runID, &given.lineage)
	command.Flags().StringVar(&compact, "compact", "", `fewer events that mean the same: "stream" or "snapshot"`)
	command.Flags().BoolVar(&given.null, "null", false, "end each event with a NUL byte instead of a line end")
	return command
}

// exportFlags say which events are exported, and how.
type exportFlags struct {
	runID         string
	lineage, null bool
}

// addRunFlags lets a command be told which part of a thread's tree it is about.
func addRunFlags(command *cobra.Command, runID *string, lineage *bool) {
	command.Flags().StringVar(runID, "run", "", "the events of this run and of the runs that it goes on from")
	command.Flags().BoolVar(lineage, "lineage", true, "--lineage=false: the events of the run (without --run: of the head) alone, without those of the runs before it")
}

func (p *program) export(ctx context.Context, store *pgagui.Store, threadID string, given exportFlags) error {
	runs, err := runsUpTo(ctx, store, threadID, given)
	if err != nil {
		return err
	}
	if !given.lineage {
		runs = runs[len(runs)-1:]
	}
	out := newEventWriter(p.out, given.null, "pgagui export")
	for _, run := range runs {
		for event, err := range store.RunEvents(ctx, threadID, run, 0) {
			if err != nil {
				return err
			}
			if err := out.write(event.Payload, "event %d of thread %q (run %q)", event.Seq, threadID, run.ID); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// exportCompacted compacts run by run, each behind what its lineage means: so all ancestors are read too.
func (p *program) exportCompacted(
	ctx context.Context, store *pgagui.Store, threadID string, given exportFlags, shape compaction.Shape,
) error {
	runs, err := runsUpTo(ctx, store, threadID, given)
	if err != nil {
		return err
	}
	out := newEventWriter(p.out, given.null, "pgagui export")
	lineages := map[string]*compaction.Fold{} // what each run's lineage means
	for i, run := range runs {
		lineage := compaction.New()
		if run.Parent != "" {
			lineage = lineages[run.Parent].Clone()
		}
		lineages[run.ID] = lineage
		var events []json.RawMessage
		for event, err := range store.RunEvents(ctx, threadID, run, 0) {
			if err != nil {
				return err
			}
			events = append(events, event.Payload)
		}
		if given.lineage || i == len(runs)-1 {
			for _, event := range compaction.CompactEvents(events, shape, lineage) {
				if err := out.write(event, "an event of thread %q (run %q)", threadID, run.ID); err != nil {
					return err
				}
			}
		}
		for _, event := range events {
			lineage.Apply(event)
		}
	}
	return out.Flush()
}

// eventWriter writes one event a line, or with a NUL byte behind each.
type eventWriter struct {
	*bufio.Writer
	null    bool
	command string // which writes them
}

func newEventWriter(w io.Writer, null bool, command string) eventWriter {
	return eventWriter{bufio.NewWriterSize(w, 1<<16), null, command}
}

// write refuses an event that holds a line end where a line end is to follow it; format and arguments say which one it is.
func (w eventWriter) write(event []byte, format string, arguments ...any) error {
	end := byte('\n')
	if w.null {
		end = 0
	} else if bytes.IndexByte(event, '\n') >= 0 {
		if err := w.Flush(); err != nil {
			return err
		}
		return &usageError{command: w.command, problem: fmt.Sprintf(format, arguments...) +
			" holds a line end, so it does not fit in a line: use --null"}
	}
	w.Writer.Write(event) // WriteByte returns the error
	return w.WriteByte(end)
}

// runsUpTo returns the lineage of a run, or all runs of the thread when none is named, parents before children.
func runsUpTo(ctx context.Context, store *pgagui.Store, threadID string, given exportFlags) ([]pgagui.Run, error) {
	if given.runID == "" && given.lineage {
		return store.Runs(ctx, threadID)
	}
	return store.Lineage(ctx, threadID, given.runID)
}
