package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pgagui/pgagui"
)

// largeScope is the scope that has a tenth of all threads. The others share the rest.
const largeScope = "large"

// threads lists threads in a store with many threads and in one with few. It measures the first and
// the last page, and searches.
func (b *bench) threads(ctx context.Context) error {
	const pageRows = 50
	many, err := b.server.create(ctx, 1)
	if err != nil {
		return err
	}
	few, err := b.server.create(ctx, 1)
	if err != nil {
		return err
	}
	// The scopes have the same size in both.
	for _, fill := range []struct {
		database        *database
		threads, scopes int
	}{{many, b.sizes.threads, b.sizes.scopes}, {few, 10 * b.sizes.threads / b.sizes.scopes, 10}} {
		b.Progress(fmt.Sprintf("threads: make %d in %d scopes", fill.threads, fill.scopes))
		if err := fill.database.fillThreads(ctx, fill.threads, fill.scopes); err != nil {
			return err
		}
	}

	page := func(name string, database *database, scope func(i int) string, options pgagui.ThreadsOptions) side {
		return b.reading(name, func(ctx context.Context, i int) error {
			_, err := database.store.InScope(scope(i)).Threads(ctx, options)
			return err
		})
	}
	in := func(scope string) func(int) string { return func(int) string { return scope } }
	const ours, inFew = "pgagui", "few threads"
	first := pgagui.ThreadsOptions{Limit: pageRows}
	what := fmt.Sprintf("page of %d of %s threads in %s scopes", pageRows, number3(float64(b.sizes.threads)), number3(float64(b.sizes.scopes)))
	measured, err := b.rounds(ctx, "threads",
		page(ours, many, in("scope-7"), first),
		page(inFew, few, in("scope-7"), first))
	if err != nil {
		return err
	}
	b.report.add(Measurement{
		Phase: "threads", What: what, Unit: "ms",
		Ours: Side{Name: ours}, Against: Side{Name: "of " + number3(float64(10*b.sizes.threads/b.sizes.scopes))}, Target: atMost("T1", 1.5),
	}, inMilliseconds(measured[ours]), inMilliseconds(measured[inFew]))

	var lowest string
	if err := many.QueryRow(ctx, `
		select agui_internal.thread_cursor(active_at, thread_key)
		from agui.thread_activity
		where scope_key = agui_internal.scope_key(agui.thread_key($1, ''))
		order by active_at, thread_key
		offset $2 limit 1`, largeScope, pageRows).Scan(&lowest); err != nil {
		return err
	}
	const last, firstPage = "last page", "first page"
	measured, err = b.rounds(ctx, "threads: pages of a large scope",
		page(last, many, in(largeScope), pgagui.ThreadsOptions{Limit: pageRows, Cursor: lowest}),
		page(firstPage, many, in(largeScope), first))
	if err != nil {
		return err
	}
	b.report.add(Measurement{
		Phase: "threads", What: fmt.Sprintf("last page of a scope of %s threads", number3(float64(b.sizes.threads/10))), Unit: "ms",
		Ours: Side{Name: ours}, Against: Side{Name: firstPage}, Target: atMost("T2", 1.25),
	}, inMilliseconds(measured[last]), inMilliseconds(measured[firstPage]))

	// Figures without another side.
	var figures notes
	for round := range 1 + b.Repeat {
		b.Progress(fmt.Sprintf("threads: scopes at random, round %d of %d", round, b.Repeat))
		var delays []float64
		for range 10 * b.sizes.reads {
			scope := fmt.Sprint("scope-", 1+rand.IntN(b.sizes.scopes-1))
			begin := time.Now()
			if _, err := many.store.InScope(scope).Threads(ctx, first); err != nil {
				return err
			}
			delays = append(delays, 1000*time.Since(begin).Seconds())
		}
		figures.addDelays("page of a scope at random", delays)
		for _, search := range []struct {
			what    string
			options pgagui.ThreadsOptions
		}{
			{"title that one thread in 100 has, page of 50", pgagui.ThreadsOptions{Title: "770 of", Limit: pageRows}},
			{"title that no thread has, 10,000 looked at", pgagui.ThreadsOptions{Title: "nothing"}},
			{"status that no head has, 10,000 looked at", pgagui.ThreadsOptions{Status: pgagui.Failed, HeadOnly: true}},
		} {
			begin := time.Now()
			if _, err := many.store.InScope(largeScope).Threads(ctx, search.options); err != nil {
				return err
			}
			figures.add(search.what, "ms", 1000*time.Since(begin).Seconds())
		}
	}
	b.report.addFigures("threads", figures)
	if err := few.drop(ctx); err != nil {
		return err
	}
	return many.drop(ctx)
}

// fillThreads inserts threads of one to three runs directly into the tables, in the order of their
// keys, as a restored dump has them.
func (d *database) fillThreads(ctx context.Context, threads, scopes int) error {
	tx, err := d.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, `
		create temp table made on commit drop as
		select named.n, named.scope, agui.thread_key(named.scope, 'thread-' || named.n) as key, timestamptz '2026-01-01' + named.n * interval '1 second' as at
		from (
			select n, case when n % 10 = 0 then $3::text else 'scope-' || (1 + n % ($2::int - 1)) end as scope
			from generate_series(1, $1::int) as n
		) as named
		order by key`, threads, scopes, largeScope); err != nil {
		return err
	}
	for _, statement := range []string{
		`insert into agui.thread (thread_key, scope, thread_id, created_at) select key, scope, 'thread-' || n, at from made`,
		`insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at, n, log_bytes, repacked_at)
			select key, run_no, nullif(run_no - 1, 0), 'run-' || run_no, 'finished', run_no, run_no, at, at, 1, 100, at
			from made cross join generate_series(1, 1 + n % 3) as run_no`,
		`insert into agui.thread_activity (thread_key, scope_key, active_at, derived_title)
			select key, agui_internal.scope_key(key), at, 'What about number ' || n || ' of them, is it as good as the others?' from made`,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	return d.vacuum(ctx, "agui.thread", "agui.run", "agui.thread_activity")
}
