package read

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/compaction"
)

func (p *program) followCommand() *cobra.Command {
	var options pgagui.FollowOptions
	var history string
	var lineage, null bool
	command := &cobra.Command{
		Use:   "follow THREAD",
		Short: "Print the events of a thread as they arrive, like tail -f",
		Long: `Prints the events of a thread, first those in the log and then new ones as they arrive, one a line,
byte for byte, in the order of seq. With --run it prints the events of the lineage of that run; with
--lineage=false those of the run itself. It ends when no run of the thread is in progress, or with
--run when that run has ended. If the connection to the database is lost, it waits until it is back.

With --history the past comes in short: "stream" gives each message and tool call as a start, one
piece and an end; "snapshot" gives all messages and the state. What is open stays open, and the
events that follow come one by one.

With --json each line is an object with seq, runId, type, recordedAt, and payload, which has the
bytes of the event. The events of a history have no recordedAt, and only the last of them has a seq.
To continue after it, use --after.`,
		Example: `  pgagui follow trip-to-lisbon
  pgagui follow trip-to-lisbon --run run-4 --history snapshot --json`,
		Args: cli.OneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			if options.After.Seq < 0 {
				return cli.WrongUsage(command, "--after must be 0 or more")
			}
			options.NoLineage = !lineage
			if history != "" {
				if !lineage {
					return cli.WrongUsage(command, "--history and --lineage=false exclude each other: a history covers the whole lineage")
				}
				var err error
				if options.History, err = compaction.ParseShape(history); err != nil {
					return cli.WrongUsage(command, `--history must be "stream" or "snapshot"`)
				}
				if command.Flags().Changed("after") {
					return cli.WrongUsage(command, "--history and --after exclude each other: a history begins with the first event")
				}
			}
			return p.follow(command.Context(), arguments[0], options, null)
		},
	}
	flags := command.Flags()
	addRunFlags(command, &options.RunID, &lineage)
	flags.Int64Var(&options.After.Seq, "after", 0, "start after this `seq`")
	flags.BoolVar(&options.Stay, "stay", false, "wait if the thread or the run does not exist yet, and for the next run of the thread")
	flags.StringVar(&history, "history", "", "`shape` of a short history instead of the past events: stream or snapshot")
	flags.BoolVar(&null, "null", false, "write a NUL byte instead of a line end after each event")
	return command
}

func (p *program) follow(ctx context.Context, threadID string, options pgagui.FollowOptions, null bool) error {
	return p.WithStore(ctx, func(store *pgagui.Store) error { return p.followOn(ctx, store, threadID, options, null) })
}

func (p *program) followOn(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.FollowOptions, null bool) error {
	out := newEventWriter(p.Out, null, "pgagui follow")
	for event, err := range store.Follow(ctx, threadID, options) {
		if err != nil {
			return err
		}
		text := []byte(event.JSON)
		if p.JSON {
			if text, err = followedJSON(event); err != nil {
				return err
			}
		}
		if err := out.write(text, "event %d of thread %q (run %q)", event.Seq, threadID, event.RunID); err != nil {
			return err
		}
		// The next event may arrive much later.
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// followedJSON encodes an event with its seq, run, type and time.
func followedJSON(event pgagui.Event) ([]byte, error) {
	return withPayload(struct {
		Seq        int64     `json:"seq,omitempty"`
		RunID      string    `json:"runId"`
		Type       string    `json:"type"`
		RecordedAt time.Time `json:"recordedAt,omitzero"`
	}{event.Seq, event.RunID, event.Type, event.RecordedAt}, event.JSON)
}

// withPayload encodes a struct as JSON and adds the payload, byte for byte, as its last member.
func withPayload(fields any, payload []byte) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"payload":`...)
	text = append(text, payload...)
	return append(text, '}'), nil
}
