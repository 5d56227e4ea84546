package main

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
	"github.com/pgagui/pgagui/compaction"
)

// historyFlags are those that are not options of the store as they are.
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
		Short: "Show what happened in a thread, a page at a time",
		Long: `Shows the log of a thread, all branches in the order of seq. The pieces of a message, or of the arguments of a tool call, that stream in one after the
other are one row, which says how many events it is; its seq is that of the first. With --raw every event is a row.

A page has 100 rows unless --limit says otherwise. Where there is more, the way to the next page is on stderr.

With --json each line is an object with seq, lastSeq, runId, type, eventCount, createdAt, completedAt (of several events) and payload, which holds the very bytes of a
single event. An event may hold line ends between its fields; then --null is needed.`,
		Example: `  pgagui history trip-to-lisbon --type TOOL_CALL_START --type TOOL_CALL_ARGS
  pgagui history trip-to-lisbon --since 2h --all --json | jq .payload`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			err := given.complete(&options, command.Flags().Changed("limit"), time.Now())
			if err == nil && given.null && !p.json {
				err = errors.New("--null goes with --json")
			}
			if err != nil {
				return &usageError{problem: err.Error(), command: command.CommandPath()}
			}
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.history(command.Context(), store, arguments[0], options, given)
			})
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&options.Types, "type", nil, "only events of this type; may be given several times")
	flags.StringVar(&given.since, "since", "", "only events since then:\nso long ago, as in 24h or 7d, or a time, as in 2006-01-02T15:04 (local time unless it has a zone)")
	flags.StringVar(&given.until, "until", "", "only events before then, in the same way")
	flags.Int64Var(&options.AfterSeq, "after-seq", 0, "begin behind this seq")
	flags.IntVar(&options.Limit, "limit", 100, "rows at most, up to 1000")
	addRunFlags(command, &options.RunID, &given.lineage)
	flags.BoolVar(&options.Raw, "raw", false, "join nothing: every event as it was appended")
	flags.IntVar(&options.MaxBytes, "max-bytes", 0, "join no more text than so many bytes; 0: no bound")
	flags.DurationVar(&options.MaxIdle, "max-idle", 0, "join no pieces with a longer pause between them, as in 5s; 0: no bound")
	flags.BoolVar(&given.all, "all", false, "all pages")
	flags.BoolVar(&given.null, "null", false, "with --json: end each row with a NUL byte instead of a line end")
	return command
}

// complete reads the flags into the options, and makes sure that they go together.
func (f historyFlags) complete(options *pgagui.HistoryOptions, limited bool, now time.Time) (err error) {
	options.NoLineage = !f.lineage
	switch {
	case options.Limit < 1 || options.Limit > 1000:
		return fmt.Errorf("--limit must be from 1 to 1000, not %d", options.Limit)
	case options.AfterSeq < 0:
		return errors.New("--after-seq must be 0 or more")
	case options.MaxBytes < 0 || options.MaxIdle < 0:
		return errors.New("--max-bytes and --max-idle must not be below zero")
	case f.all && limited:
		return errors.New("--all and --limit exclude each other")
	case f.all:
		options.Limit = 1000
	}
	if options.Since, err = pointInTime("--since", f.since, now); err != nil {
		return err
	}
	options.Until, err = pointInTime("--until", f.until, now)
	return err
}

func (p *program) history(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.HistoryOptions, given historyFlags) error {
	out := newEventWriter(p.out, given.null, "pgagui history")
	table := [][]string{{"SEQ", "TIME", "RUN", "TYPE", "EVENTS", "TEXT"}}
	more := true
	for page := 0; more && (page == 0 || given.all); page++ {
		read, err := store.History(ctx, threadID, options)
		if err != nil {
			return err
		}
		for _, event := range read.Events {
			if !p.json {
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
		options.AfterSeq = read.AfterSeq
		more = len(read.Events) == options.Limit
	}
	if !p.json {
		if err := p.printTable(table); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if !more {
		return nil
	}
	// The page is full: whether it was the last one, only the next one says.
	options.Limit = 1
	next, err := store.History(ctx, threadID, options)
	if err == nil && len(next.Events) > 0 {
		fmt.Fprintf(p.messages, "there is more: go on with --after-seq %d, or give --all\n", options.AfterSeq)
	}
	return err
}

func historyRow(event pgagui.HistoryEvent) []string {
	return []string{
		strconv.FormatInt(event.Seq, 10), event.CreatedAt.Local().Format("2006-01-02 15:04:05.000"), event.RunID, event.Type,
		humanize.Comma(event.Count), shorten(eventText(event.JSON), 60),
	}
}

// eventText is what an event says to people: the text that it brings, else its members but the type.
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

// historyLine is an event without its payload.
type historyLine struct {
	pgagui.HistoryEvent
	Payload *json.RawMessage `json:"payload,omitempty"`
}
