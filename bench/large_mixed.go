package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/worker"
)

// The pace of the mixed load. A run takes some twelve appends, so these are about 120 commits and 550 events a second.
const (
	mixedRuns  = 10 // begun a second
	mixedReads = 20 // a second
)

// tableState is what PostgreSQL counts of a table.
type tableState struct {
	live, dead, updated, hot, vacuums, analyzes, bytes int64
}

// tableStates returns the tables of the schema that have rows, those that take most first.
func (s *largeStore) tableStates(ctx context.Context) (names []string, states map[string]tableState, err error) {
	rows, err := s.Query(ctx, `
		select relname, n_live_tup, n_dead_tup, n_tup_upd, n_tup_hot_upd, autovacuum_count, autoanalyze_count, pg_total_relation_size(relid)
		from pg_stat_user_tables
		where schemaname in ('agui', 'agui_internal') and n_live_tup + n_dead_tup > 0
		order by pg_total_relation_size(relid) desc`)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	states = map[string]tableState{}
	for rows.Next() {
		var name string
		var state tableState
		if err := rows.Scan(&name, &state.live, &state.dead, &state.updated, &state.hot, &state.vacuums, &state.analyzes, &state.bytes); err != nil {
			return nil, nil, err
		}
		names, states[name] = append(names, name), state
	}
	return names, states, rows.Err()
}

// mixed writes to the large store at a fixed pace, reads, and runs the jobs as the worker does. Then it reports whether vacuum and the
// jobs kept up, and what a vacuum of each table takes.
func (l *large) mixed(ctx context.Context) error {
	store, length := l.stores[0], l.sizes.mixed
	if l.Mixed > 0 {
		length = l.Mixed
	}
	l.Progress(fmt.Sprintf("large: writes, reads and jobs for %s", length))
	_, before, err := store.tableStates(ctx)
	if err != nil {
		return err
	}
	appends, reads, err := store.work(ctx, length)
	if err != nil {
		return err
	}
	if _, err := store.Exec(ctx, "select pg_stat_force_next_flush()"); err != nil {
		return err
	}
	names, after, err := store.tableStates(ctx)
	if err != nil {
		return err
	}
	figure := func(what, unit string, value float64) { l.report.addFigure("large", "mixed load: "+what, unit, value) }
	for _, calls := range []struct {
		what   string
		delays []float64
	}{{"append of 5 events", appends}, {"restore or list", reads}} {
		figure(calls.what+", p50", "ms", percentile(calls.delays, 0.5))
		figure(calls.what+", p99", "ms", percentile(calls.delays, 0.99))
	}
	for _, name := range names {
		now, then := after[name], before[name]
		updates := now.updated - then.updated
		if now.live-then.live == 0 && updates == 0 {
			continue
		}
		figure(name+", growth", "MB", float64(now.bytes-then.bytes)/(1<<20))
		figure(name+", dead rows", "% of all", 100*float64(now.dead)/float64(max(1, now.live+now.dead)))
		if updates > 0 {
			figure(name+", updates in place (HOT)", "% of "+number3(float64(updates)), 100*float64(now.hot-then.hot)/float64(updates))
		}
		figure(name+", autovacuum and autoanalyze", "times", float64(now.vacuums-then.vacuums+now.analyzes-then.analyzes))
	}
	var toCompact, toRepack int64
	var compactionLag float64
	if err := store.QueryRow(ctx, `select runs_to_compact, runs_to_repack, coalesce(extract(epoch from compaction_lag), 0)::float8 from agui.lag()`).Scan(&toCompact, &toRepack, &compactionLag); err != nil {
		return err
	}
	figure("runs that wait for compaction at the end", "runs", float64(toCompact))
	figure("runs that wait for repack at the end", "runs", float64(toRepack))
	figure("age of the oldest that waits for compaction", "s", compactionLag)
	for _, name := range []string{"thread", "thread_activity", "run", "batch", "message_text"} {
		begun := time.Now()
		if err := store.vacuum(ctx, "agui."+name); err != nil {
			return err
		}
		figure("vacuum and analyze of "+name, "s", time.Since(begun).Seconds())
	}
	return nil
}

// work writes, reads and runs the jobs for this long, and returns how long the calls took, in milliseconds.
func (s *largeStore) work(ctx context.Context, length time.Duration) (appends, reads []float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var mu sync.Mutex
	timed := func(delays *[]float64, call func() error) error {
		begun := time.Now()
		err := call()
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			*delays = append(*delays, 1000*time.Since(begun).Seconds())
		}
		return err
	}
	busy := map[int]bool{}
	pick := func(instead *place) *place {
		mu.Lock()
		defer mu.Unlock()
		if instead != nil {
			delete(busy, instead.n)
		}
		return s.pick(busy)
	}
	begin := func() (*spokenThread, spokenRun) {
		mu.Lock()
		defer mu.Unlock()
		return s.begin()
	}
	group, ctx := errgroup.WithContext(ctx)
	paced := func(perSecond int, call func() error) {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		group.Go(func() error {
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-ticker.C:
				}
				if err := call(); err != nil && ctx.Err() == nil {
					return err
				}
			}
		})
	}
	const writers = 4
	for range writers {
		// A call of a writer is an append of five events of its run. Every third run is that of a new thread.
		var at *place
		var run spokenRun
		turn := 0
		paced(mixedRuns*12/writers, func() error {
			options := pgagui.AppendOptions{}
			if len(run.events) == 0 {
				var spoken *spokenThread
				at, turn = pick(at), turn+1
				spoken, run = begin()
				if at.run.RunID = run.id; turn%3 == 0 {
					at.run.ThreadID = spoken.id
				}
				options.Input = run.input
			}
			events := run.events[:min(5, len(run.events))]
			run.events = run.events[len(events):]
			return timed(&appends, func() error {
				_, err := at.store.Append(ctx, at.run, events, options)
				return err
			})
		})
	}
	paced(mixedReads, func() error {
		at := s.place(1 + rand.IntN(s.threads))
		if s.taken[at.n] {
			return nil
		}
		return timed(&reads, func() error {
			if rand.IntN(2) == 0 {
				_, err := at.store.Restore(ctx, at.thread, pgagui.At{})
				return err
			}
			_, err := at.store.Threads(ctx, pgagui.ThreadsOptions{Limit: 20})
			return err
		})
	})
	group.Go(func() error {
		return worker.Run(ctx, s.Pool, []worker.Task{
			{Schedule: "@every 10s", Job: jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
				return jobs.Compact(ctx, s.Pool, jobs.CompactOptions{Workers: 1})
			}}},
			{Schedule: "@every 30s", Job: jobs.Job{Name: "repack", Work: func(ctx context.Context) (any, error) {
				return jobs.Repack(ctx, s.Pool, jobs.RepackOptions{})
			}}},
			{Schedule: "@every 20s", Job: jobs.Job{Name: "project", Work: func(ctx context.Context) (any, error) {
				return jobs.Project(ctx, s.Pool, jobs.ProjectOptions{})
			}}},
			{Schedule: "@every 60s", Job: jobs.Job{Name: "reap", Work: func(ctx context.Context) (any, error) {
				return jobs.Reap(ctx, s.Pool, jobs.ReapOptions{})
			}}},
		}, worker.Options{Grace: 30 * time.Second})
	})
	err = group.Wait()
	if len(appends) == 0 || len(reads) == 0 {
		err = fmt.Errorf("nothing was written or read: %w", err)
	}
	return appends, reads, err
}
