package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/jobs"
)

// scale grows a store in one dimension and runs all maintenance jobs in it. It compares the cost
// per item with that at half the size, and measures the memory.
type scale struct {
	phase string
	// of names the items, each one of them, for the report.
	of, each string
	count    int
	// fill appends count items.
	fill func(ctx context.Context, database *database, count int) error
}

// scaleMemory is the memory limit of the process during the measurement, in bytes.
const scaleMemory = 400 << 20

func (b *bench) scaleEvents(ctx context.Context) error {
	return b.scale(ctx, scale{"scale-events", "events in a run", "event", b.sizes.scaleEvents, func(ctx context.Context, database *database, count int) error {
		const perCall = 100
		_, err := database.store.Append(ctx, pgagui.RunRef{ThreadID: "thread", RunID: "run"}, []json.RawMessage{runStarted("thread", "run")}, pgagui.AppendOptions{})
		for n := 0; err == nil && n < count; n += perCall {
			_, err = database.store.Append(ctx, pgagui.RunRef{ThreadID: "thread", RunID: "run"}, message(fmt.Sprint("message-", n), perCall), pgagui.AppendOptions{})
		}
		if err == nil {
			_, err = database.store.Append(ctx, pgagui.RunRef{ThreadID: "thread", RunID: "run"}, []json.RawMessage{runFinished}, pgagui.AppendOptions{})
		}
		return err
	}})
}

func (b *bench) scaleRuns(ctx context.Context) error {
	return b.scale(ctx, scale{"scale-runs", "runs in a thread", "run", b.sizes.scaleRuns, func(ctx context.Context, database *database, count int) error {
		for n := range count {
			if _, err := database.store.Append(ctx, pgagui.RunRef{ThreadID: "thread", RunID: fmt.Sprint("run-", n)}, shortRun("thread", fmt.Sprint("run-", n)), pgagui.AppendOptions{}); err != nil {
				return err
			}
		}
		return nil
	}})
}

func (b *bench) scaleThreads(ctx context.Context) error {
	return b.scale(ctx, scale{"scale-threads", "threads", "thread", b.sizes.scaleThreads, func(ctx context.Context, database *database, count int) error {
		const perCall, writers = 100, 2
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(writers)
		for from := 0; from < count; from += perCall {
			group.Go(func() error {
				var calls db.AppendManyParams
				for n := from; n < min(from+perCall, count); n++ {
					thread := fmt.Sprint("thread-", n)
					calls.ThreadIds, calls.RunIds = append(calls.ThreadIds, thread), append(calls.RunIds, "run")
					events, err := json.Marshal(shortRun(thread, "run"))
					if err != nil {
						return err
					}
					calls.Events = append(calls.Events, string(events))
				}
				calls.Wait, calls.Durable = true, true
				answers, err := db.New(database).AppendMany(ctx, calls)
				for _, answer := range answers {
					if answer.ErrorCode != "" {
						return errors.New(answer.Error)
					}
				}
				return err
			})
		}
		return group.Wait()
	}})
}

var runFinished = json.RawMessage(`{"type":"RUN_FINISHED"}`)

func runStarted(threadID, runID string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, threadID, runID))
}

// message returns a message of this number of events.
func message(id string, events int) []json.RawMessage {
	message := []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, id))}
	for n := 2; n < events; n++ {
		message = append(message, json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":"token %d "}`, id, n)))
	}
	return append(message, json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, id)))
}

// shortRun returns a run of ten events.
func shortRun(threadID, runID string) []json.RawMessage {
	events := append([]json.RawMessage{runStarted(threadID, runID)}, message("message-of-"+runID, 8)...)
	return append(events, runFinished)
}

// scale measures at half the size, then at the full size.
func (b *bench) scale(ctx context.Context, s scale) error {
	if b.Share > 0 {
		s.count = max(2, int(float64(s.count)*b.Share))
	}
	limit := debug.SetMemoryLimit(scaleMemory)
	defer debug.SetMemoryLimit(limit)
	half, err := b.scaleAt(ctx, s, s.count/2)
	if err != nil {
		return err
	}
	whole, err := b.scaleAt(ctx, s, s.count)
	if err != nil {
		return err
	}
	for i, step := range whole {
		what := fmt.Sprintf("%s, %s %s", step.what, number3(float64(s.count)), s.of)
		b.report.add(Measurement{
			Phase: s.phase, What: what, Unit: "µs/" + s.each,
			Ours: Side{Name: "pgagui"}, Against: Side{Name: "half as many"}, Target: atMost("linear", 1.5),
		}, []float64{step.perItem()}, []float64{half[i].perItem()})
		b.report.addFigure(s.phase, what, "s", step.seconds)
		if step.process > 0 {
			b.report.addFigure(s.phase, what+", memory of the process", "MB", float64(step.process>>20))
		}
		if step.session > 0 {
			b.report.addFigure(s.phase, what+", memory of a session", "MB", float64(step.session>>20))
		}
	}
	return nil
}

// scaleStep is the measurement of a step.
type scaleStep struct {
	what             string
	count            int
	seconds          float64
	process, session int64 // peak memory in bytes of this process and of a session of the server; 0 if unknown
}

func (s scaleStep) perItem() float64 { return s.seconds * 1e6 / float64(s.count) }

// scaleAt fills a store with count items and runs all maintenance jobs.
func (b *bench) scaleAt(ctx context.Context, s scale, count int) (steps []scaleStep, err error) {
	measure := func(in *database, what string, work func(ctx context.Context, in *database) error) {
		if err != nil {
			return
		}
		b.Progress(fmt.Sprintf("%s %s: %s", number3(float64(count)), s.of, what))
		step := scaleStep{what: what, count: count}
		debug.FreeOSMemory()
		memory.ResetPeak()
		stop := memory.WatchSessions(in.sessionsSoFar)
		begin := time.Now()
		if err = work(ctx, in); err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		step.seconds = time.Since(begin).Seconds()
		step.process, step.session = memory.Peak(os.Getpid()), stop()
		steps = append(steps, step)
	}
	store, err := b.server.create(ctx, 4)
	if err != nil {
		return nil, err
	}
	measure(store, "append", func(ctx context.Context, in *database) error { return s.fill(ctx, in, count) })
	if err == nil {
		err = store.vacuum(ctx, logTables...)
	}
	if err != nil {
		return nil, err
	}
	// Compact the same store in SQL and in Go.
	copied, err := b.server.copy(ctx, store)
	if err != nil {
		return nil, err
	}
	workers := min(4, runtime.NumCPU())
	measure(copied, "compact in SQL", func(ctx context.Context, in *database) error {
		return in.AcquireFunc(ctx, func(connection *pgxpool.Conn) error {
			// Otherwise it would also repack the runs that ended ten minutes ago.
			_, err := connection.Exec(ctx, "set agui.repack_after = '1 day'")
			if err == nil {
				_, err = connection.Exec(ctx, "call agui.compact()")
			}
			return err
		})
	})
	measure(copied, "repack in SQL", func(ctx context.Context, in *database) error {
		_, err := in.Exec(ctx, "call agui.repack(older_than => '0')")
		return err
	})
	if err == nil {
		err = copied.drop(ctx)
	}
	measure(store, "compact in Go", func(ctx context.Context, in *database) error {
		_, err := jobs.Compact(ctx, in.Pool, jobs.CompactOptions{Workers: workers})
		return err
	})
	measure(store, "repack in Go", func(ctx context.Context, in *database) error {
		_, err := jobs.Repack(ctx, in.Pool, jobs.RepackOptions{OlderThan: new(time.Duration)})
		return err
	})
	measure(store, "verify", func(ctx context.Context, in *database) error {
		found, err := jobs.Verify(ctx, in.Pool, jobs.VerifyOptions{Workers: workers})
		if err == nil && (found.Problems > 0 || found.Threads == 0) {
			err = fmt.Errorf("%d problems in %d threads", found.Problems, found.Threads)
		}
		return err
	})
	measure(store, "erase", func(ctx context.Context, in *database) error {
		_, err := jobs.Erase(ctx, in.Pool, jobs.EraseOptions{OlderThan: time.Microsecond, AllScopes: true})
		return err
	})
	if err != nil {
		return nil, err
	}
	return steps, store.drop(ctx)
}
