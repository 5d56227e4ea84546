package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/compaction"
)

// load appends conversations in parallel, in batches of batchSize events.
func (d *database) load(ctx context.Context, batchSize int, conversations ...corpus.Conversation) error {
	return d.loadRuns(ctx, batchSize, 0, -1, conversations...)
}

// loadRuns appends the runs from index from up to, but not including, to of each conversation. If
// to is negative, it appends all from there.
func (d *database) loadRuns(ctx context.Context, batchSize, from, to int, conversations ...corpus.Conversation) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(int(d.Config().MaxConns))
	for _, conversation := range conversations {
		runs := conversation.Runs[from:]
		if to >= 0 {
			runs = conversation.Runs[from:to]
		}
		group.Go(func() error {
			for _, run := range runs {
				for events := range slices.Chunk(run.Events, batchSize) {
					if _, err := d.store.Append(ctx, pgagui.RunRef{ThreadID: conversation.ThreadID, RunID: run.RunID}, events, pgagui.AppendOptions{}); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// plainTable is the usual table for events in PostgreSQL: one row per event, ids as text, jsonb, an
// index for the thread and one for the run.
const plainTable = `
	create table plain (
		thread_id  text not null,
		run_id     text not null,
		seq        bigint not null,
		type       text not null,
		payload    jsonb not null,
		created_at timestamptz not null default now(),
		primary key (thread_id, seq)
	);
	create index plain_run on plain (run_id)`

const plainColumns = 5 // except created_at, which has a default

// insertPlain returns the statement that inserts this number of rows.
func insertPlain(rows int) string {
	values := make([]string, rows)
	for i := range values {
		n := i * plainColumns
		values[i] = fmt.Sprintf("($%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5)
	}
	return "insert into plain (thread_id, run_id, seq, type, payload) values " + strings.Join(values, ", ")
}

// loadPlain creates the plain table and inserts conversations.
func (d *database) loadPlain(ctx context.Context, conversations ...corpus.Conversation) error {
	if _, err := d.Exec(ctx, plainTable); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(int(d.Config().MaxConns))
	for _, conversation := range conversations {
		group.Go(func() error {
			seq := 0
			for _, run := range conversation.Runs {
				for events := range slices.Chunk(run.Events, 100) {
					var arguments []any
					for _, event := range events {
						seq++
						arguments = append(arguments, conversation.ThreadID, run.RunID, seq, compaction.EventType(event), []byte(event))
					}
					if _, err := d.Exec(ctx, insertPlain(len(events)), arguments...); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// everyday returns the ordinary chats.
func (b *bench) everyday() []corpus.Conversation {
	conversations := make([]corpus.Conversation, b.sizes.everydayThreads)
	for i := range conversations {
		conversations[i] = b.corpus.Everyday(uint64(i)+1, b.sizes.everydayRuns)
	}
	return conversations
}

func countEvents(conversations []corpus.Conversation) int {
	count := 0
	for _, conversation := range conversations {
		count += conversation.Events()
	}
	return count
}

// file writes a conversation to a file and makes the peers load it.
func (b *bench) file(ctx context.Context, conversation corpus.Conversation) (string, error) {
	path := filepath.Join(b.folder, conversation.ThreadID+".ndjson")
	if err := corpus.WriteFile(path, conversation); err != nil {
		return "", err
	}
	return path, b.peers.Do(ctx, map[string]any{"do": "load", "file": path}, nil)
}

// vacuum vacuums and analyzes tables, as autovacuum does eventually.
func (d *database) vacuum(ctx context.Context, tables ...string) error {
	_, err := d.Exec(ctx, "vacuum analyze "+strings.Join(tables, ", "))
	return err
}
