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
