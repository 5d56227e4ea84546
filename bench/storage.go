package bench

import (
	"context"
	"fmt"

	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/jobs"
)

// storage measures the size of the log on disk: all its tables with their indexes, after a vacuum.
func (b *bench) storage(ctx context.Context) error {
	conversations := b.everyday()
	events := float64(countEvents(conversations))

	b.Progress("storage: the plain table")
	plain, err := b.server.create(ctx, 4)
	if err != nil {
		return err
	}
	if err := plain.loadPlain(ctx, conversations...); err != nil {
		return err
	}
	plainSize, err := plain.size(ctx, "plain")
	if err != nil {
		return err
	}
	if err := plain.drop(ctx); err != nil {
		return err
	}

	add := func(what string, size float64, target *Target) {
		b.report.add(Measurement{
			Phase: "storage", What: "log on disk, " + what, Unit: "bytes/event",
			Ours: Side{Name: "pgagui"}, Against: Side{Name: "plain table"}, Target: target,
		}, []float64{size / events}, []float64{plainSize / events})
	}
	for _, batches := range []struct {
		size   int
		target *Target
	}{{20, atMost("3", 1.0/6)}, {3, atMost("3", 1.0/2)}} {
		b.Progress(fmt.Sprintf("storage: batches of %d", batches.size))
		database, err := b.server.create(ctx, 4)
		if err != nil {
			return err
		}
		if err := database.load(ctx, batches.size, conversations...); err != nil {
			return err
		}
		size, err := database.size(ctx, logTables...)
		if err != nil {
			return err
		}
		add(fmt.Sprintf("batches of %d", batches.size), size, batches.target)
		if err := database.drop(ctx); err != nil {
			return err
		}
	}

	// A store in use: each thread gets a run, the jobs run, vacuum frees the old rows, and the next
	// runs use that space. So the files include the space that repacking needs. Files that are
	// written once and repacked once would not show it.
	b.Progress("storage: live batches, repacked")
	database, err := b.server.create(ctx, 4)
	if err != nil {
		return err
	}
	for number := range b.sizes.everydayRuns {
		if err := database.loadRuns(ctx, 3, number, number+1, conversations...); err != nil {
			return err
		}
		if _, err := database.Exec(ctx, "call agui.repack(older_than => '0')"); err != nil {
			return err
		}
		if err := database.vacuum(ctx, logTables...); err != nil {
			return err
		}
	}
	size, err := database.size(ctx, logTables...)
	if err != nil {
		return err
	}
	add("batches of 3, repacked", size, atMost("3", 1.0/8))
	for _, table := range logTables {
		if _, err := database.Exec(ctx, "vacuum full "+table); err != nil {
			return err
		}
	}
	if size, err = database.size(ctx, logTables...); err != nil {
		return err
	}
	add("the same without free space", size, nil)
	return database.drop(ctx)
}

// snapshots measures the size of the snapshots on disk.
func (b *bench) snapshots(ctx context.Context) error {
	for _, thread := range []struct {
		name         string
		conversation corpus.Conversation
	}{
		{"state in deltas only", b.corpus.DeltaState(1, b.sizes.deltaRuns)},
		{fmt.Sprintf("%d regenerated branches", b.sizes.branches), b.corpus.Regenerated(1, b.sizes.branches)},
	} {
		database, err := b.server.create(ctx, 1)
		if err != nil {
			return err
		}
		// Append a few runs at a time, as in a growing store.
		const runs = 10
		for from := 0; from < len(thread.conversation.Runs); from += runs {
			b.Progress(fmt.Sprintf("snapshots: %s, run %d of %d", thread.name, from, len(thread.conversation.Runs)))
			to := min(from+runs, len(thread.conversation.Runs))
			if err := database.loadRuns(ctx, 20, from, to, thread.conversation); err != nil {
				return err
			}
			if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{}); err != nil {
				return err
			}
			if err := database.vacuum(ctx, append(logTables, snapshotTables...)...); err != nil {
				return err
			}
		}
		kept, err := database.size(ctx, snapshotTables...)
		if err != nil {
			return err
		}
		log, err := database.size(ctx, logTables...)
		if err != nil {
			return err
		}
		b.report.add(Measurement{
			Phase: "snapshots", What: "snapshots on disk, " + thread.name, Unit: "bytes",
			Ours: Side{Name: "pgagui"}, Against: Side{Name: "its log"}, Target: atMost("9", 1),
		}, []float64{kept}, []float64{log})
		if err := database.drop(ctx); err != nil {
			return err
		}
	}
	return nil
}
