package read

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/compaction"
)

func (p *program) history(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.HistoryOptions, all, null bool) error {
	out := newEventWriter(p.Out, null, "pgagui events")
	table := [][]string{{"SEQ", "TIME", "RUN", "TYPE", "EVENTS", "TEXT"}}
	found, more := 0, true
	for page := 0; more && (page == 0 || all); page++ {
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
		fmt.Fprintf(p.Messages, "more rows follow: continue with --after %d, or use --all\n", options.AfterSeq)
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
