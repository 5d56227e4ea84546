package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/jobs"
)

// restore restores a thread of 50 runs, as of its end and as of points in the middle, and measures
// the size of all its data.
func (b *bench) restore(ctx context.Context) error {
	tokens := b.corpus.Fifty(1, b.sizes.textInTokens, 4)
	coarse := b.corpus.Fifty(2, b.sizes.textInLargePiece, 12)
	fine := b.corpus.Fifty(2, b.sizes.textInLargePiece, 1)
	fine.ThreadID += "-fine"
	database, err := b.server.create(ctx, 1)
	if err != nil {
		return err
	}
	b.Progress("restore: load the threads")
	if err := database.load(ctx, 20, tokens); err != nil {
		return err
	}
	if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{}); err != nil {
		return err
	}
	if b.peers != nil {
		if err := b.againstLangGraph(ctx, database, tokens); err != nil {
			return err
		}
	}
	if err := database.load(ctx, 20, coarse, fine); err != nil {
		return err
	}
	if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{}); err != nil {
		return err
	}
	if err := database.vacuum(ctx, append(logTables, snapshotTables...)...); err != nil {
		return err
	}

	name := func(thread corpus.Conversation) string { return fmt.Sprintf("%d events", thread.Events()) }
	measured, err := b.rounds(ctx, "restore", b.restoring(database, name(coarse), coarse, false), b.restoring(database, name(fine), fine, false))
	if err != nil {
		return err
	}
	b.report.add(Measurement{
		Phase: "restore", What: "restore a thread, the same text in " + name(fine), Unit: "ms",
		Ours: Side{Name: "pgagui"}, Against: Side{Name: "in " + name(coarse)}, Target: atMost("11", 1.2),
	}, inMilliseconds(measured[name(fine)]), inMilliseconds(measured[name(coarse)]))

	return database.drop(ctx)
}

// restoring is a side that restores a thread, as of its end or as of the middle of one run after
// the other.
func (b *bench) restoring(database *database, name string, thread corpus.Conversation, inTheMiddle bool) side {
	return b.reading(name, func(ctx context.Context, i int) error {
		at := pgagui.At{}
		if inTheMiddle {
			number := i * len(thread.Runs) / b.sizes.reads
			at.RunID = thread.Runs[number].RunID
			for _, before := range thread.Runs[:number] {
				at.Seq += int64(len(before.Events))
			}
			at.Seq += int64(len(thread.Runs[number].Events) / 2)
		}
		_, err := database.store.Restore(ctx, thread.ThreadID, at)
		return err
	})
}

// againstLangGraph compares pgagui with the checkpointer of LangGraph, which stores the same
// conversation in the same database.
func (b *bench) againstLangGraph(ctx context.Context, database *database, thread corpus.Conversation) error {
	file, err := b.file(ctx, thread)
	if err != nil {
		return err
	}
	address, err := database.url()
	if err != nil {
		return err
	}
	b.Progress("restore: LangGraph stores the thread")
	stored := func(deltas bool) (bytes float64, err error) {
		var answer struct{ Bytes float64 }
		err = b.peers.Do(ctx, map[string]any{"do": "langgraph.load", "file": file, "url": address, "deltas": deltas}, &answer)
		return answer.Bytes, err
	}
	inDeltas, err := stored(true)
	if err != nil {
		return err
	}
	inLists, err := stored(false) // the default of LangGraph; the tables are read below
	if err != nil {
		return err
	}
	size, err := database.size(ctx, append(logTables, snapshotTables...)...)
	if err != nil {
		return err
	}
	events := float64(thread.Events())
	for _, langGraph := range []struct {
		name   string
		bytes  float64
		target *Target
	}{{"LangGraph", inLists, atMost("4", 1.0/6)}, {"LangGraph, DeltaChannel", inDeltas, nil}} {
		b.report.add(Measurement{
			Phase: "restore", What: fmt.Sprintf("log and snapshots on disk, a thread of %d runs", len(thread.Runs)), Unit: "bytes/event",
			Ours: Side{Name: "pgagui"}, Against: Side{Name: langGraph.name}, Target: langGraph.target,
		}, []float64{size / events}, []float64{langGraph.bytes / events})
	}

	const ours, inTheMiddle, langGraph, client, promised = "pgagui", "pgagui in the middle", "LangGraph", "client replays", "promised"
	measured, err := b.rounds(ctx, "restore",
		b.restoring(database, ours, thread, false),
		b.restoring(database, inTheMiddle, thread, true),
		side{langGraph, func(ctx context.Context) (float64, error) {
			var answer struct{ Seconds []float64 }
			err := b.peers.Do(ctx, map[string]any{"do": "langgraph.getTuple", "file": file, "url": address, "times": b.sizes.reads}, &answer)
			if err != nil {
				return 0, err
			}
			return SpreadOf(answer.Seconds).Median, nil
		}},
		side{client, func(ctx context.Context) (float64, error) {
			var answer struct{ Seconds float64 }
			err := b.peers.Do(ctx, map[string]any{"do": "client.replay", "file": file}, &answer)
			return answer.Seconds, err
		}},
	)
	if err != nil {
		return err
	}
	measured[promised] = slices.Repeat([]float64{0.005}, len(measured[ours]))
	for _, comparison := range []struct {
		what, ours, against string
		target              *Target
	}{
		{fmt.Sprintf("restore a thread of %d events", thread.Events()), ours, promised, atMost("10", 1)},
		{"the same, beside LangGraph", ours, langGraph, nil},
		{"the same, as it stood in the middle of runs", inTheMiddle, langGraph, nil},
		{"the same, beside a replay of its events", ours, client, nil},
	} {
		b.report.add(Measurement{
			Phase: "restore", What: comparison.what, Unit: "ms",
			Ours: Side{Name: comparison.ours}, Against: Side{Name: comparison.against}, Target: comparison.target,
		}, inMilliseconds(measured[comparison.ours]), inMilliseconds(measured[comparison.against]))
	}
	return nil
}
