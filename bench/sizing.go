package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
)

// sizing measures what a run takes in each table, in a store of many conversations of ordinary length. A run is a question, a call of a
// tool, and an answer in tokens, five events a batch. The client sends the whole conversation with each run. After each turn of all
// conversations the jobs and vacuum run, as they do in a store in use.
func (b *bench) sizing(ctx context.Context) error {
	database, err := b.server.create(ctx, 8)
	if err != nil {
		return err
	}
	threads, turns := b.sizes.sizingThreads, 10
	texts := make([]turnTexts, threads)
	events, compacting, repacking := 0, time.Duration(0), time.Duration(0)
	for turn := range turns {
		b.Progress(fmt.Sprintf("sizing: turn %d of %d", turn+1, turns))
		group, groupContext := errgroup.WithContext(ctx)
		group.SetLimit(8)
		counts := make([]int, threads)
		for thread := range threads {
			text := &texts[thread]
			if text.words == nil {
				text.words = rand.New(rand.NewPCG(1, uint64(thread)))
			}
			group.Go(func() (err error) {
				counts[thread], err = database.appendTurn(groupContext, fmt.Sprint("conversation ", thread), turn, text)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for _, count := range counts {
			events += count
		}
		begun := time.Now()
		if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{Workers: 2}); err != nil {
			return err
		}
		compacting += time.Since(begun)
		begun = time.Now()
		if _, err := jobs.Repack(ctx, database.Pool, jobs.RepackOptions{OlderThan: new(time.Duration(0))}); err != nil {
			return err
		}
		repacking += time.Since(begun)
		if err := database.vacuum(ctx, allTables...); err != nil {
			return err
		}
	}

	runs := float64(threads * turns)
	content := 0
	for i := range texts {
		content += texts[i].bytes
	}
	tables, total, err := database.tableSizes(ctx)
	if err != nil {
		return err
	}
	b.report.addTables("sizing", "bytes/run", tables, runs)
	b.report.add(Measurement{
		Phase: "sizing", What: fmt.Sprintf("all tables, %d conversations of %d turns", threads, turns), Unit: "bytes/run",
		Ours: Side{Name: "pgagui"}, Against: Side{Name: "new text"},
	}, []float64{total / runs}, []float64{float64(content) / runs})
	b.report.addFigure("sizing", "events", "a run", float64(events)/runs)
	b.report.addFigure("sizing", "compaction", "ms/run", float64(compacting.Milliseconds())/runs)
	b.report.addFigure("sizing", "repacking", "ms/run", float64(repacking.Milliseconds())/runs)
	return database.drop(ctx)
}

// appendTurn appends a run to a conversation, five events a call, and returns the number of events.
func (d *database) appendTurn(ctx context.Context, threadID string, turn int, text *turnTexts) (int, error) {
	text.history = append(text.history, saidMessage{ID: fmt.Sprint("question ", turn), Role: "user", Content: text.next(200)})
	input, err := json.Marshal(map[string]any{"threadId": threadID, "messages": text.history, "tools": []any{}, "context": []any{}})
	if err != nil {
		return 0, err
	}
	run := pgagui.RunRef{ThreadID: threadID, RunID: fmt.Sprint("run ", turn)}
	events := text.answer()
	for i, batch := range slices.Collect(slices.Chunk(events, 5)) {
		options := pgagui.AppendOptions{}
		if i == 0 {
			options.Input = input
		}
		if _, err := d.store.Append(ctx, run, batch, options); err != nil {
			return 0, err
		}
	}
	return len(events), nil
}
