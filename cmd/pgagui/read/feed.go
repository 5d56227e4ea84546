package read

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) feedCommand() *cobra.Command {
	var from feedSource
	var follow bool
	var every time.Duration
	command := &cobra.Command{
		Use:   "feed",
		Short: "Print the runs that began, ended or changed, of all threads of a scope",
		Long: `Prints the runs of all threads of a scope that began, ended, or took events after their end, one
JSON object a line: position, scope, threadId, runId, parentRunId, status, firstSeq, lastSeq,
startedAt, endedAt, threadUid. All runs come first. With --follow it waits for those that change,
until Ctrl-C.

Each run comes at least once. A run whose transaction is in progress, or began after one that is,
comes later, so nothing is missed. To go on later, keep the position of the last line that was
processed, and begin there with --after. Or name a consumer: the database keeps its place, which
moves as lines are written (see "pgagui feed consumers").

A thread that is erased comes as a line with "isErased":true, its position and its threadUid, which
all lines about the thread had. Its name is not kept.

With --events, which needs a consumer, each line is an event: scope, threadId, threadUid, seq,
runId, type, recordedAt and payload, which has the bytes of the event. The events of a thread come
in the order of seq, each once, when one of its runs begins or ends. If the command is killed, those
of the last lines may come once more.

If the database was restored or failed over to a standby, a position is refused (UI024): begin
without one.`,
		Example: `  pgagui feed --follow --all-scopes
  pgagui feed --after "$(tail -n 1 feed.ndjson | jq -r .position)" >> feed.ndjson
  pgagui feed --consumer warehouse --events --follow | ./load`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case every <= 0:
				return cli.WrongUsage(command, "--every must be more than 0")
			case from.events && from.consumer == "":
				return cli.WrongUsage(command, "--events needs --consumer, for which the database keeps how far each thread was read")
			case from.after != "" && from.consumer != "":
				return cli.WrongUsage(command, "--after and --consumer exclude each other: a consumer has a place")
			}
			if err := checkAllScopes(command, from.allScopes); err != nil {
				return err
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.feed(command.Context(), store, from, follow, every)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&from.after, "after", "", "begin behind this `position`, from an earlier line")
	flags.StringVar(&from.consumer, "consumer", "", "begin where the consumer with this `name` stopped, and save how far the feed was read")
	flags.BoolVar(&from.events, "events", false, "print events instead of runs")
	flags.BoolVar(&follow, "follow", false, "wait for runs that change")
	flags.DurationVar(&every, "every", time.Second, "with --follow: how often to look for changes")
	flags.BoolVar(&from.null, "null", false, "with --events: end each event with a NUL byte, as its bytes may contain line ends")
	addAllScopes(command, &from.allScopes)
	command.AddCommand(p.consumersCommand())
	return command
}

// feedSource is what a feed prints.
type feedSource struct {
	after, consumer   string
	events, allScopes bool
	null              bool
}

func (p *program) feed(ctx context.Context, store *pgagui.Store, from feedSource, follow bool, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for told := ""; ; {
		n, err := p.feedPage(ctx, store, &from)
		switch {
		case err != nil:
			return err
		case n > 0:
			continue
		case !follow:
			return nil
		}
		text := ""
		if missing := p.TakeMissing(); missing != nil {
			text = cli.Describe(missing)
		}
		if text != told && text != "" {
			fmt.Fprintln(p.Messages, text)
		}
		told = text
		select {
		case <-ctx.Done():
			return cli.ErrInterrupted
		case <-ticker.C:
		}
	}
}

// consumerOf is the consumer of the scope, or of all.
func consumerOf(store *pgagui.Store, name string, allScopes bool) pgagui.Consumer {
	if allScopes {
		return store.ConsumerOfAllScopes(name)
	}
	return store.Consumer(name)
}

// feedPage prints what is behind the source's place, and moves that. It returns the number of lines.
func (p *program) feedPage(ctx context.Context, store *pgagui.Store, from *feedSource) (n int, err error) {
	consumer := consumerOf(store, from.consumer, from.allScopes)
	if from.events {
		return p.feedEvents(ctx, consumer, from.null)
	}
	var changes []pgagui.Change
	if from.consumer != "" {
		changes, err = consumer.Changes(ctx, 0)
	} else {
		changes, err = store.Changes(ctx, pgagui.ChangesOptions{After: from.after, AllScopes: from.allScopes})
	}
	err = p.Partly(err)
	for _, change := range changes {
		if err := p.PrintJSON(change); err != nil {
			return n, err
		}
		n, from.after = n+1, change.Position
	}
	if err == nil && n > 0 && from.consumer != "" {
		err = p.Partly(consumer.Move(ctx, from.after))
	}
	return n, err
}

func (p *program) feedEvents(ctx context.Context, consumer pgagui.Consumer, null bool) (n int, err error) {
	out := newEventWriter(p.Out, null, "pgagui feed")
	for event, err := range consumer.Events(ctx) {
		if err != nil {
			return n, p.Partly(err)
		}
		err = writeFeedEvent(out, event)
		// The next event marks this one as processed, so it has to be out by then.
		if err = errors.Join(err, out.Flush()); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func writeFeedEvent(out eventWriter, event pgagui.ChangedEvent) error {
	if event.IsErased {
		return out.write(fmt.Appendf(nil, `{"threadUid":%q,"isErased":true}`, event.ThreadUID), "an erased thread")
	}
	line, err := withPayload(struct {
		Scope      string    `json:"scope"`
		ThreadID   string    `json:"threadId"`
		ThreadUID  string    `json:"threadUid"`
		Seq        int64     `json:"seq"`
		RunID      string    `json:"runId"`
		Type       string    `json:"type"`
		RecordedAt time.Time `json:"recordedAt"`
	}{event.Scope, event.ThreadID, event.ThreadUID, event.Seq, event.RunID, event.Type, event.RecordedAt}, event.JSON)
	if err != nil {
		return err
	}
	return out.write(line, "event %d of thread %q (run %q)", event.Seq, event.ThreadID, event.RunID)
}

// consumersCommand has the commands about the consumers of the feed.
func (p *program) consumersCommand() *cobra.Command {
	consumers := &cobra.Command{
		Use:   "consumers",
		Short: "List the consumers of the feed and how far they are behind, move or remove one",
		Long: `A consumer is a reader of changes with a name, whose place the database keeps ("pgagui feed
--consumer", agui.consume, Store.Consumer). It belongs to a scope or to all scopes. The command
lists the consumers of the scopes that the role sees, and how many changed runs they have not
processed. Not more than 10,000 are counted. "lost": the database was restored, or failed over, so
the place means nothing any more; remove the consumer, or move it to the beginning.`,
		Example: `  pgagui feed consumers --json`,
		Args:    cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return p.WithStore(command.Context(), func(store *pgagui.Store) error { return p.listConsumers(command.Context(), store) })
		},
	}
	remove := &cobra.Command{
		Use:     "rm NAME",
		Short:   "Remove a consumer and its place",
		Long:    `Removes a consumer and its place.`,
		Example: `  pgagui feed consumers rm warehouse --all-scopes`,
	}
	move := &cobra.Command{
		Use:   "move NAME [POSITION]",
		Short: "Move a consumer to a position, or to the beginning",
		Long: `Moves a consumer to a position that a line of the feed has, or without one to the beginning, so that
all runs and their events come again. If there is no such consumer, the command creates it.`,
		Example: `  pgagui feed consumers move warehouse`,
	}
	p.onConsumer(remove, 1, func(ctx context.Context, consumer pgagui.Consumer, arguments []string) error {
		wasKnown, err := consumer.Remove(ctx)
		if err == nil && !wasKnown {
			err = fmt.Errorf("there is no consumer %q here: pgagui feed consumers lists them", arguments[0])
		}
		return err
	})
	p.onConsumer(move, 2, func(ctx context.Context, consumer pgagui.Consumer, arguments []string) error {
		return consumer.Move(ctx, strings.Join(arguments[1:], ""))
	})
	cli.OfAllScopes(consumers)
	consumers.AddCommand(remove, move)
	return consumers
}

// onConsumer makes a command that is about one consumer, which it names, with up to a number of arguments.
func (p *program) onConsumer(command *cobra.Command, most int, work func(context.Context, pgagui.Consumer, []string) error) {
	var allScopes bool
	addAllScopes(command, &allScopes)
	command.Args = cli.Arguments(1, most)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if err := checkAllScopes(command, allScopes); err != nil {
			return err
		}
		return p.WithStore(command.Context(), func(store *pgagui.Store) error {
			return work(command.Context(), consumerOf(store, arguments[0], allScopes), arguments)
		})
	}
}

func (p *program) listConsumers(ctx context.Context, store *pgagui.Store) error {
	places, err := store.Consumers(ctx)
	if err = p.Partly(err); err != nil {
		return err
	}
	heading := []string{"CONSUMER", "SCOPE", "BEHIND", "MOVED"}
	return cli.PrintList(p.Program, places, "there are no consumers", heading, func(place pgagui.ConsumerPlace) []string {
		behind := cli.CountText(place.Behind, "run")
		switch {
		case place.IsLost:
			behind = "lost"
		case place.Behind == 10_000:
			behind = "at least " + behind
		}
		return []string{place.Consumer, cli.ScopeText(place.Scope, place.AllScopes), behind, humanize.Time(place.MovedAt)}
	}, 0, 1)
}
