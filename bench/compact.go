package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/jobs"
)

// compact folds logs of the database into snapshots, with as many workers as pgagui job compact uses.
// It also measures one worker, to compare with one reader that only reads the log.
func (b *bench) compact(ctx context.Context) error {
	var short, allTypes []corpus.Conversation
	for i := range b.sizes.shortThreads {
		short = append(short, b.corpus.Short(uint64(i)+1))
	}
	for i := range b.sizes.allTypesThreads {
		allTypes = append(allTypes, b.corpus.AllTypes(uint64(i)+1, b.sizes.allTypesRuns))
	}
	growing := b.corpus.Growing(1, b.sizes.growingRuns, b.sizes.growingState)
	for _, c := range []compactCase{
		{name: "threads of one short run", threads: short, goCPU: atMost("5", 12), sqlCPU: atMost("8", 12)},
		{name: "all event types", threads: allTypes, client: true, goCPU: atMost("5", 4), sqlCPU: atMost("8", 30)},
		{name: "one growing thread", threads: []corpus.Conversation{growing}, client: true, wholeThread: true, goCPU: atMost("6", 3)},
	} {
		if err := b.compactThreads(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

type compactCase struct {
	name    string
	threads []corpus.Conversation
	// client makes the official client compact the same, run by run; with wholeThread the whole thread in one call.
	client, wholeThread bool
	// Targets of the CPU, beside reading the log alone. If sqlCPU is nil, SQL is not measured.
	goCPU, sqlCPU *Target
}

func (b *bench) compactThreads(ctx context.Context, c compactCase) error {
	database, err := b.server.create(ctx, 4)
	if err != nil {
		return err
	}
	b.Progress("compact: load " + c.name)
	if err := database.load(ctx, 20, c.threads...); err != nil {
		return err
	}
	events, runs := countEvents(c.threads), 0
	for _, thread := range c.threads {
		runs += len(thread.Runs)
	}

	taken := cpuOf(database)
	workers := min(4, runtime.NumCPU(), len(c.threads))
	const oneWorker, inSQL, reading, client = "pgagui 1 worker", "pgagui in SQL", "reading", "client"
	inGo := fmt.Sprintf("pgagui %d workers", workers)
	compacting := func(name string, workers int) side {
		return side{name, func(ctx context.Context) (float64, error) {
			if err := database.forgetSnapshots(ctx); err != nil {
				return 0, err
			}
			return taken.timed(name, events, func(ctx context.Context) error {
				done, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{Workers: workers})
				if err == nil && done.Runs != runs {
					err = fmt.Errorf("%d runs of %d were compacted", done.Runs, runs)
				}
				return err
			}).measure(ctx)
		}}
	}
	sides := []side{
		compacting(oneWorker, 1),
		taken.timed(reading, events, func(ctx context.Context) error {
			read, err := database.readBatches(ctx)
			if err == nil && read != events {
				err = fmt.Errorf("%d events of %d were read", read, events)
			}
			return err
		}),
	}
	if workers > 1 {
		sides = append(sides, compacting(inGo, workers))
	} else {
		inGo = oneWorker
	}
	if c.sqlCPU != nil {
		sides = append(sides, side{inSQL, func(ctx context.Context) (float64, error) {
			if err := database.forgetSnapshots(ctx); err != nil {
				return 0, err
			}
			return taken.timed(inSQL, events, func(ctx context.Context) error {
				_, err := database.Exec(ctx, "call agui.compact()")
				return err
			}).measure(ctx)
		}})
	}
	hasClient := c.client && b.peers != nil
	if hasClient {
		var files []string
		for _, thread := range c.threads {
			file, err := b.file(ctx, thread)
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		sides = append(sides, side{client, func(ctx context.Context) (float64, error) {
			var total clientTook
			for _, file := range files {
				var answer clientTook
				command := map[string]any{"do": "client.compactEvents", "file": file, "thread": c.wholeThread}
				if err := b.peers.Do(ctx, command, &answer); err != nil {
					return 0, err
				}
				total.Seconds += answer.Seconds
				total.CPU += answer.CPU
			}
			taken.taken[client] = append(taken.taken[client], total.CPU*1e6/float64(events))
			return total.Seconds, nil
		}})
	}
	measured, err := b.rounds(ctx, "compact "+c.name, sides...)
	if err != nil {
		return err
	}
	add := func(ours, against string, cpu *Target) {
		m := Measurement{
			Phase: "compact", What: fmt.Sprintf("compact %s, %d runs, %s", c.name, runs, strings.TrimPrefix(ours, "pgagui ")), Unit: "events/s",
			Ours: Side{Name: ours}, Against: Side{Name: against},
		}
		b.report.add(m, rates(measured[ours], events), rates(measured[against], events))
		m.Target = cpu
		taken.add(b.report, m, 1)
	}
	add(oneWorker, reading, c.goCPU)
	if c.sqlCPU != nil {
		add(inSQL, reading, c.sqlCPU)
	}
	if !hasClient {
		return database.drop(ctx)
	}
	for _, ours := range slices.Compact([]string{oneWorker, inGo}) {
		add(ours, client, nil)
	}
	if c.sqlCPU != nil {
		add(inSQL, client, nil)
	}
	return database.drop(ctx)
}

// clientTook is what the client needed for a conversation.
type clientTook struct{ Seconds, CPU float64 } // both in seconds

// forgetSnapshots removes all results of compaction.
func (d *database) forgetSnapshots(ctx context.Context) error {
	if _, err := d.Exec(ctx, `
		delete from agui.snapshot;
		delete from agui.message_version;
		update agui.run set log_bytes = null, n = null`); err != nil {
		return err
	}
	return d.vacuum(ctx, append(logTables, snapshotTables...)...)
}

// readBatches reads the log in pages, as the job does, and returns the number of events.
func (d *database) readBatches(ctx context.Context) (int, error) {
	rows, err := d.Query(ctx, "select thread_key, array_agg(run_no order by run_no), max(last_seq) from agui.run group by thread_key")
	if err != nil {
		return 0, err
	}
	var threads []db.BatchesBetweenParams
	for rows.Next() {
		thread := db.BatchesBetweenParams{Page: 200, PageBytes: 16 << 20, MostBytes: math.MaxInt64}
		var key pgtype.UUID
		if err := rows.Scan(&key, &thread.RunNos, &thread.ThroughSeq); err != nil {
			return 0, err
		}
		thread.ThreadKey = key
		threads = append(threads, thread)
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	queries, events := db.New(d.Pool), 0
	for _, thread := range threads {
		for {
			page, err := queries.BatchesBetween(ctx, thread)
			if err != nil {
				return 0, err
			}
			for _, batch := range page {
				events += int(batch.N)
				thread.FromSeq = batch.FirstSeq + int64(batch.N)
			}
			if len(page) == 0 || !page[len(page)-1].HasMore {
				break
			}
		}
	}
	return events, nil
}
