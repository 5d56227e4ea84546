package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/compaction"
)

// historyFlags are the flags that do not set an option of the store directly.
type historyFlags struct {
	since, until string
	all, null    bool
	lineage      bool
}

func (p *program) historyCommand() *cobra.Command {
	options := pgagui.HistoryOptions{}
	given := historyFlags{}
	command := &cobra.Command{
		Use:   "history THREAD",
		Short: "Show the log of a thread in pages",
		Long: `Shows the log of a thread, all branches, in the order of seq. Consecutive pieces of one message, or
of the arguments of one tool call, are joined into one row with the number of events; its seq is
that of the first event. With --raw every event is a row.

A page has 100 rows unless --limit sets another number. If there are more, a line on stderr has the
flag for the next page.

With --json each line is an object with seq, lastSeq, runId, type, eventCount, createdAt,
completedAt (if the row joins events) and payload, which has the bytes of a single event. An event
may contain line ends between its fields; then use --null.`,
		Example: `  pgagui history trip-to-lisbon --type TOOL_CALL_START --type TOOL_CALL_ARGS
  pgagui history trip-to-lisbon --since 2h --all --json | jq .payload`,
		Args: cli.OneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			err := given.complete(&options, command.Flags().Changed("limit"), time.Now())
			if err == nil && given.null && !p.JSON {
				err = errors.New("--null needs --json")
			}
			if err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.history(command.Context(), store, arguments[0], options, given)
			})
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&options.Types, "type", nil, "show only events of this `type`; may be repeated")
	flags.StringVar(&given.since, "since", "", "show only events since this `time`: "+cli.TimeFormats)
	flags.StringVar(&given.until, "until", "", "show only events before this `time`, in the same formats")
	flags.Int64Var(&options.AfterSeq, "after-seq", 0, "start after this `seq`")
	flags.IntVar(&options.Limit, "limit", 100, "maximum `number` of rows, from 1 to 1000")
	addRunFlags(command, &options.RunID, &given.lineage)
	flags.BoolVar(&options.Raw, "raw", false, "do not join pieces: one row per event")
	flags.IntVar(&options.MaxBytes, "max-bytes", 0, "join at most this `number` of bytes of text into a row; 0 means no limit")
	flags.DurationVar(&options.MaxIdle, "max-idle", 0, "do not join pieces with a longer pause between them, for example 5s; 0 means no limit")
	flags.BoolVar(&given.all, "all", false, "show all pages")
	flags.BoolVar(&given.null, "null", false, "with --json: write a NUL byte instead of a line end after each row")
	return command
}

// complete sets the options from the flags, and checks their combination.
func (f historyFlags) complete(options *pgagui.HistoryOptions, limited bool, now time.Time) (err error) {
	options.NoLineage = !f.lineage
	switch {
	case options.Limit < 1 || options.Limit > 1000:
		return fmt.Errorf("--limit must be from 1 to 1000, not %d", options.Limit)
	case options.AfterSeq < 0:
		return errors.New("--after-seq must be 0 or more")
	case options.MaxBytes < 0 || options.MaxIdle < 0:
		return errors.New("--max-bytes and --max-idle must be 0 or more")
	case f.all && limited:
		return errors.New("--all and --limit exclude each other")
	case f.all:
		options.Limit = 1000
	}
	if options.Since, err = cli.PointInTime("--since", f.since, now); err != nil {
		return err
	}
	options.Until, err = cli.PointInTime("--until", f.until, now)
	return err
}

func (p *program) history(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.HistoryOptions, given historyFlags) error {
	out := newEventWriter(p.Out, given.null, "pgagui history")
	table := [][]string{{"SEQ", "TIME", "RUN", "TYPE", "EVENTS", "TEXT"}}
	found, more := 0, true
	for page := 0; more && (page == 0 || given.all); page++ {
		read, err := store.History(ctx, threadID, options)
		if err != nil {
			return err
		}
		for _, event := range read.Events {
			if !p.JSON {
				table = append(table, historyRow(event))
				continue
			}
			text, err := withPayload(historyLine{HistoryEvent: event}, event.JSON)
			if err != nil {
				return err
			}
			if err := out.write(text, "event %d of thread %q (run %q)", event.Seq, threadID, event.RunID); err != nil {
				return err
			}
		}
		found += len(read.Events)
		options.AfterSeq = read.AfterSeq
		more = len(read.Events) == options.Limit
	}
	if !p.JSON {
		if err := p.PrintTable(table); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if found == 0 {
		fmt.Fprintln(p.Messages, "no event matches")
	}
	if !more {
		return nil
	}
	// The page is full. Read one row more to find out whether there is a next page.
	options.Limit = 1
	next, err := store.History(ctx, threadID, options)
	if err == nil && len(next.Events) > 0 {
		fmt.Fprintf(p.Messages, "more rows follow: continue with --after-seq %d, or use --all\n", options.AfterSeq)
	}
	return err
}

func historyRow(event pgagui.HistoryEvent) []string {
	return []string{
		strconv.FormatInt(event.Seq, 10), event.CreatedAt.Local().Format("2006-01-02 15:04:05.000"), event.RunID, event.Type,
		humanize.Comma(event.Count), cli.Shorten(eventText(event.JSON), 60),
	}
}

// eventText summarizes an event: its text, or if it has none, all members except the type.
func eventText(payload []byte) string {
	members := map[string]string{}
	var all []string
	for name, value := range compaction.Members(payload) {
		if name == "type" {
			continue
		}
		all = append(all, name+"="+string(value))
		var text string
		if json.Unmarshal(value, &text) == nil {
			members[name] = text
		}
	}
	for _, name := range []string{"delta", "content", "message"} {
		if text, ok := members[name]; ok {
			return text
		}
	}
	return strings.Join(all, " ")
}

// historyLine is a row of JSON output without its payload, which withPayload adds.
type historyLine struct {
	pgagui.HistoryEvent
	Payload *json.RawMessage `json:"payload,omitempty"`
}
