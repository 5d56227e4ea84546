package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
)

func (p *program) followCommand() *cobra.Command {
	var options pgagui.FollowOptions
	var history string
	var lineage, null bool
	command := &cobra.Command{
		Use:   "follow THREAD",
		Short: "Print the events of a thread as they come, like tail -f",
		Long: `Prints the events of a thread, those in the log and then those that come, one a line, their very bytes, in the order of their seqs. It ends when no
run of the thread is in progress any more, with --run when that run has ended. With --run they are those of the run and, before it, of the runs that it
goes on from; with --lineage=false of the run alone. While the database is away, it waits.

With --history what has passed comes in short: "stream" gives each message and tool call as a start, one piece and an end, "snapshot" all
messages and the state. What is open stays open, and from there on it comes event by event.

With --json each line is an object with the event's seq, runId, type, recordedAt and payload, which holds its very bytes. Events of a history have no recordedAt,
and only the last of them a seq: go on behind it with --after.`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			wrong := func(problem string) error { return &usageError{problem: problem, command: command.CommandPath()} }
			if options.After.Seq < 0 {
				return wrong("--after must be 0 or more")
			}
			options.NoLineage = !lineage
			if history != "" {
				if !lineage {
					return wrong("--history and --lineage=false exclude each other: a history is that of the lineage")
				}
				var err error
				if options.History, err = compaction.ParseShape(history); err != nil {
					return wrong(`--history must be "stream" or "snapshot"`)
				}
				if command.Flags().Changed("after") {
					return wrong("--history and --after exclude each other: who has seen a part of the log goes on from there")
				}
			}
			return p.follow(command.Context(), arguments[0], options, null)
		},
	}
	flags := command.Flags()
	addRunFlags(command, &options.RunID, &lineage)
	flags.Int64Var(&options.After.Seq, "after", 0, "begin behind this seq")
	flags.BoolVar(&options.Stay, "stay", false, "wait for what is not there yet: the thread, the run, the next run of the thread")
	flags.StringVar(&history, "history", "", `what has passed in short: "stream" or "snapshot"`)
	flags.BoolVar(&null, "null", false, "end each event with a NUL byte instead of a line end")
	return command
}

func (p *program) follow(ctx context.Context, threadID string, options pgagui.FollowOptions, null bool) error {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	store := pgagui.New(pool, &pgagui.Config{Scope: p.scope, Logger: p.logger()})
	out := newEventWriter(p.out, null, "pgagui follow")
	for event, err := range store.Follow(ctx, threadID, options) {
		if err != nil {
			return err
		}
		text := []byte(event.JSON)
		if p.json {
			if text, err = followedJSON(event); err != nil {
				return err
			}
		}
		if err := out.write(text, "event %d of thread %q (run %q)", event.Seq, threadID, event.RunID); err != nil {
			return err
		}
		// Nobody knows when the next one comes.
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// followedJSON is an event with what the log knows of it.
func followedJSON(event pgagui.Event) ([]byte, error) {
	return withPayload(struct {
		Seq        int64     `json:"seq,omitempty"`
		RunID      string    `json:"runId"`
		Type       string    `json:"type"`
		RecordedAt time.Time `json:"recordedAt,omitzero"`
	}{event.Seq, event.RunID, event.Type, event.RecordedAt}, event.JSON)
}

// withPayload writes a struct as JSON and the payload as its last member, which stays as it is, white space and all.
func withPayload(known any, payload []byte) ([]byte, error) {
	text, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"payload":`...)
	text = append(text, payload...)
	return append(text, '}'), nil
}
