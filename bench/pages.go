package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/timeline"
)

// pages measures what a screen reads of a long thread: its end, one run, and a run event by event,
// beside the reads of the whole.
func (b *bench) pages(ctx context.Context) error {
	database, thread, err := b.loadLongThread(ctx, "pages")
	if err != nil {
		return err
	}
	store, middle, last := database.store, thread.Runs[len(thread.Runs)/2].RunID, thread.Runs[len(thread.Runs)-1].RunID
	page, err := store.LastMessages(ctx, thread.ThreadID, pgagui.LastMessagesOptions{At: pgagui.At{RunID: middle}, Limit: 1})
	if err != nil {
		return err
	}
	cache := timeline.NewCache(0)
	line, err := cache.Open(ctx, store, pgagui.RunRef{ThreadID: thread.ThreadID, RunID: last})
	if err != nil {
		return err
	}
	marks := line.Marks()
	for _, pair := range []struct {
		what          string
		ours, against side
	}{
		{
			"the last 200 messages, with their places",
			b.reading("a page", func(ctx context.Context, _ int) error {
				_, err := store.LastMessages(ctx, thread.ThreadID, pgagui.LastMessagesOptions{Limit: 200})
				return err
			}),
			b.reading("all messages", func(ctx context.Context, _ int) error {
				_, err := store.Messages(ctx, thread.ThreadID, pgagui.At{})
				return err
			}),
		}, {
			"200 messages in the middle",
			b.reading("a page", func(ctx context.Context, _ int) error {
				_, err := store.LastMessages(ctx, thread.ThreadID, pgagui.LastMessagesOptions{Limit: 200, Cursor: page[0].Cursor})
				return err
			}),
			b.reading("all messages", func(ctx context.Context, _ int) error {
				_, err := store.Messages(ctx, thread.ThreadID, pgagui.At{})
				return err
			}),
		}, {
			"the last 100 events",
			b.reading("a page", func(ctx context.Context, _ int) error {
				_, err := store.LastEvents(ctx, thread.ThreadID, pgagui.LastEventsOptions{})
				return err
			}),
			timed("all events", func(ctx context.Context) error {
				for _, err := range store.Events(ctx, thread.ThreadID, pgagui.EventsOptions{}) {
					if err != nil {
						return err
					}
				}
				return nil
			}),
		}, {
			"the tool calls of a run",
			b.reading("one run", func(ctx context.Context, _ int) error {
				_, err := store.ToolCalls(ctx, thread.ThreadID, pgagui.ToolCallsOptions{At: pgagui.At{RunID: last}, NoLineage: true})
				return err
			}),
			timed("its lineage", func(ctx context.Context) error {
				_, err := store.ToolCalls(ctx, thread.ThreadID, pgagui.ToolCallsOptions{At: pgagui.At{RunID: last}})
				return err
			}),
		}, {
			"the errors",
			b.reading("a page", func(ctx context.Context, _ int) error {
				_, err := store.LastErrors(ctx, thread.ThreadID, pgagui.LastErrorsOptions{})
				return err
			}),
			timed("session messages", func(ctx context.Context) error {
				_, err := store.SessionMessages(ctx, thread.ThreadID, pgagui.SessionMessagesOptions{})
				return err
			}),
		}, {
			"the first step in the last run",
			b.reading("a timeline", func(ctx context.Context, _ int) error {
				line, err := timeline.NewCache(0).Open(ctx, store, pgagui.RunRef{ThreadID: thread.ThreadID, RunID: last})
				if err != nil {
					return err
				}
				_, err = line.At(ctx, marks[len(marks)-1].Seq)
				return err
			}),
			b.reading("a restore", func(ctx context.Context, i int) error {
				_, err := store.Restore(ctx, thread.ThreadID, pgagui.At{RunID: last, Seq: marks[i%len(marks)].Seq})
				return err
			}),
		}, {
			"a step forward",
			repeated("a timeline", len(marks), func(ctx context.Context, i int) error {
				_, err := line.At(ctx, marks[i].Seq)
				return err
			}),
			b.reading("a restore", func(ctx context.Context, i int) error {
				_, err := store.Restore(ctx, thread.ThreadID, pgagui.At{RunID: last, Seq: marks[i%len(marks)].Seq})
				return err
			}),
		}, {
			"a step back",
			repeated("a timeline", len(marks), func(ctx context.Context, i int) error {
				_, err := line.At(ctx, marks[len(marks)-1-i].Seq)
				return err
			}),
			b.reading("a restore", func(ctx context.Context, i int) error {
				_, err := store.Restore(ctx, thread.ThreadID, pgagui.At{RunID: last, Seq: marks[i%len(marks)].Seq})
				return err
			}),
		},
	} {
		measured, err := b.rounds(ctx, "pages: "+pair.what, pair.ours, pair.against)
		if err != nil {
			return err
		}
		b.report.add(Measurement{
			Phase: "pages", What: fmt.Sprintf("%s, a thread of %d runs and %d events", pair.what, len(thread.Runs), thread.Events()), Unit: "ms",
			Ours: Side{Name: pair.ours.name}, Against: Side{Name: pair.against.name},
		}, inMilliseconds(measured[pair.ours.name]), inMilliseconds(measured[pair.against.name]))
	}
	return database.drop(ctx)
}

// loadLongThread makes a database with one long thread, compacted and repacked.
func (b *bench) loadLongThread(ctx context.Context, phase string) (database *database, thread corpus.Conversation, err error) {
	thread = b.corpus.Exchanges(1, b.sizes.pageRuns)
	if database, err = b.server.create(ctx, 1); err != nil {
		return nil, thread, err
	}
	b.Progress(phase + ": load")
	if err := database.load(ctx, 20, thread); err != nil {
		return nil, thread, err
	}
	if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{}); err != nil {
		return nil, thread, err
	}
	if _, err := jobs.Repack(ctx, database.Pool, jobs.RepackOptions{OlderThan: new(time.Duration(0))}); err != nil {
		return nil, thread, err
	}
	if _, err := database.Exec(ctx, `call agui.project()`); err != nil {
		return nil, thread, err
	}
	return database, thread, database.vacuum(ctx, append(logTables, snapshotTables...)...)
}
