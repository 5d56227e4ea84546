package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/testdata/recordings"
)

// history reads the history of threads in pages, raw and with joined pieces. It measures how much
// smaller the joined history is, and the time of the first and the last page.
func (b *bench) history(ctx context.Context) error {
	recorded, err := recordedConversations()
	if err != nil {
		return err
	}
	long := b.corpus.Everyday(1, b.sizes.historyRuns)
	database, err := b.server.create(ctx, 1)
	if err != nil {
		return err
	}
	var sums [2]historySize
	for _, kind := range []struct {
		name          string
		conversations []corpus.Conversation
		rows, bytes   *Target
	}{
		{"chats with tool calls", []corpus.Conversation{long}, atMost("E1", 1.0/5), atMost("E2", 0.8)},
		{"all event types", []corpus.Conversation{b.corpus.AllTypes(2, b.sizes.allTypesRuns)}, nil, nil},
		{"text alone", []corpus.Conversation{b.corpus.Fifty(3, b.sizes.textInTokens, 4)}, atMost("E1", 1.0/5), atMost("E2", 0.8)},
		{"state in deltas only", []corpus.Conversation{b.corpus.DeltaState(4, b.sizes.deltaRuns)}, nil, nil},
		{"recorded streams", recorded, nil, nil},
	} {
		b.Progress("history: " + kind.name)
		if err := database.load(ctx, 20, kind.conversations...); err != nil {
			return err
		}
		var sizes [2]historySize
		for _, conversation := range kind.conversations {
			for i, raw := range []bool{false, true} {
				size, err := database.historySize(ctx, conversation.ThreadID, raw)
				if err != nil {
					return err
				}
				sizes[i].add(size)
				sums[i].add(size)
			}
		}
		b.addHistorySizes(kind.name, sizes, kind.rows, kind.bytes)
	}
	b.addHistorySizes("all of these", sums, nil, nil)
	if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{}); err != nil {
		return err
	}
	if err := database.vacuum(ctx, append(logTables, snapshotTables...)...); err != nil {
		return err
	}
	if err := b.historyPages(ctx, database, long); err != nil {
		return err
	}
	if err := b.conversationReads(ctx, database, long); err != nil {
		return err
	}
	return database.drop(ctx)
}

// historySize is the size of a history.
type historySize struct{ rows, bytes float64 }

func (s *historySize) add(other historySize) {
	s.rows += other.rows
	s.bytes += other.bytes
}

func (b *bench) addHistorySizes(kind string, sizes [2]historySize, rows, bytes *Target) {
	joined, raw := sizes[0], sizes[1]
	ours, against := Side{Name: "joined"}, Side{Name: "raw"}
	b.report.add(Measurement{Phase: "history", What: "rows of a history, " + kind, Unit: "rows", Ours: ours, Against: against, Target: rows},
		[]float64{joined.rows}, []float64{raw.rows})
	b.report.add(Measurement{Phase: "history", What: "payload of a history, " + kind, Unit: "bytes", Ours: ours, Against: against, Target: bytes},
		[]float64{joined.bytes}, []float64{raw.bytes})
}

// historyPages measures the time to read pages of a long thread.
func (b *bench) historyPages(ctx context.Context, database *database, thread corpus.Conversation) error {
	// A joined page of 1,000 rows would be the whole thread. The last page has as many events as
	// the first.
	const rawRows, joinedRows = 1000, 100
	events := int64(thread.Events())
	first, err := database.store.History(ctx, thread.ThreadID, pgagui.HistoryOptions{Limit: joinedRows})
	if err != nil {
		return err
	}
	page := func(name string, options pgagui.HistoryOptions) side {
		return b.reading(name, func(ctx context.Context, _ int) error {
			_, err := database.store.History(ctx, thread.ThreadID, options)
			return err
		})
	}
	whole := func(name string, raw bool) side {
		return timed(name, func(ctx context.Context) error {
			_, err := database.historySize(ctx, thread.ThreadID, raw)
			return err
		})
	}
	const rawFirst, rawLast, joinedFirst, joinedLast, rawAll, joinedAll = "raw, first", "raw, last", "joined, first", "joined, last", "raw, all", "joined, all"
	measured, err := b.rounds(ctx, "history: pages",
		page(rawFirst, pgagui.HistoryOptions{Raw: true, Limit: rawRows}),
		page(rawLast, pgagui.HistoryOptions{Raw: true, Limit: rawRows, AfterSeq: max(0, events-rawRows)}),
		page(joinedFirst, pgagui.HistoryOptions{Limit: joinedRows}),
		page(joinedLast, pgagui.HistoryOptions{Limit: joinedRows, AfterSeq: max(0, events-first.AfterSeq)}),
		whole(rawAll, true), whole(joinedAll, false))
	if err != nil {
		return err
	}
	for _, comparison := range []struct{ what, last, first string }{
		{fmt.Sprintf("last page of %d events, 1,000 rows, raw", events), rawLast, rawFirst},
		{fmt.Sprintf("the same, joined, 100 rows of %d events", first.AfterSeq), joinedLast, joinedFirst},
	} {
		b.report.add(Measurement{
			Phase: "history", What: comparison.what, Unit: "ms",
			Ours: Side{Name: "last page"}, Against: Side{Name: "first page"}, Target: atMost("E3", 1.25),
		}, inMilliseconds(measured[comparison.last]), inMilliseconds(measured[comparison.first]))
	}
	b.report.add(Measurement{
		Phase: "history", What: fmt.Sprintf("page through a thread of %d events", events), Unit: "events/s", Ours: Side{Name: "joined"}, Against: Side{Name: "raw"},
	}, rates(measured[joinedAll], int(events)), rates(measured[rawAll], int(events)))
	return nil
}

// conversationReads measures the reads that return parts of a conversation with their places in the
// log, and compares them with a read of the whole log.
func (b *bench) conversationReads(ctx context.Context, database *database, thread corpus.Conversation) error {
	const calls, messages, log = "tool calls", "session messages", "its events"
	measured, err := b.rounds(ctx, "history: tool calls and messages",
		timed(calls, func(ctx context.Context) error {
			_, err := database.store.ToolCalls(ctx, thread.ThreadID, pgagui.ToolCallsOptions{})
			return err
		}),
		timed(messages, func(ctx context.Context) error {
			_, err := database.store.SessionMessages(ctx, thread.ThreadID, pgagui.SessionMessagesOptions{})
			return err
		}),
		timed(log, func(ctx context.Context) error {
			for _, err := range database.store.Events(ctx, thread.ThreadID, pgagui.EventsOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}))
	if err != nil {
		return err
	}
	for _, what := range []string{calls, messages} {
		b.report.add(Measurement{
			Phase: "history", What: fmt.Sprintf("%s of a thread of %d events", what, thread.Events()), Unit: "ms",
			Ours: Side{Name: what}, Against: Side{Name: log},
		}, inMilliseconds(measured[what]), inMilliseconds(measured[log]))
	}
	return nil
}

// historySize reads the whole history of a thread in pages of 1,000 rows.
func (d *database) historySize(ctx context.Context, threadID string, raw bool) (size historySize, err error) {
	options := pgagui.HistoryOptions{Raw: raw, Limit: 1000}
	for {
		page, err := d.store.History(ctx, threadID, options)
		if err != nil {
			return size, err
		}
		for _, event := range page.Events {
			size.rows++
			size.bytes += float64(len(event.JSON))
		}
		if len(page.Events) < options.Limit {
			return size, nil
		}
		options.AfterSeq = page.AfterSeq
	}
}

// recordedConversations returns the recordings of AG-UI frameworks.
func recordedConversations() ([]corpus.Conversation, error) {
	files, err := fs.Glob(recordings.Files, "*.ndjson")
	if err != nil {
		return nil, err
	}
	conversations := make([]corpus.Conversation, len(files))
	for i, file := range files {
		text, err := recordings.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		conversation := corpus.Conversation{ThreadID: strings.TrimSuffix(path.Base(file), ".ndjson")}
		for line := range bytes.Lines(text) {
			var event struct{ Type, RunID string }
			if err := json.Unmarshal(line, &event); err != nil {
				return nil, fmt.Errorf("recording %s: %w", file, err)
			}
			if event.Type == "RUN_STARTED" {
				conversation.Runs = append(conversation.Runs, corpus.Run{RunID: event.RunID})
			}
			run := &conversation.Runs[len(conversation.Runs)-1]
			end := len(run.Events)
			if end > 0 && compaction.EventType(run.Events[end-1]) == "RUN_FINISHED" {
				// Some frameworks send more events after it, which an append without after_seq
				// refuses: move RUN_FINISHED to the end.
				if event.Type == "RUN_FINISHED" {
					continue
				}
				end--
			}
			run.Events = slices.Insert(run.Events, end, json.RawMessage(bytes.TrimSpace(line)))
		}
		conversations[i] = conversation
	}
	return conversations, nil
}
