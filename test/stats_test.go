package test

import (
	"fmt"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// storeOfRuns makes n threads with one ended run of 10 events each, in 20 scopes. Of eight runs one failed; all are compacted, half of
// them are repacked.
func storeOfRuns(t *testing.T, pool *pgxpool.Pool, from, to int) {
	t.Helper()
	testdb.Exec(t, pool, `
		with made as materialized (
			select agui.thread_key('scope-' || n % 20, 't' || n) as key, 'scope-' || n % 20 as scope, n from generate_series($1::int, $2::int) as n
		),
		threads as (
			insert into agui.thread (thread_key, scope, thread_id) select key, scope, 't' || n from made
		)
		insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, end_seq, started_at, ended_at, n, log_bytes, repacked_at)
		select key, 1, 'r', case when n % 8 = 0 then 'failed' else 'finished' end, 1, 10, 10, now(), now() - interval '1 day', 10, 100, case when n % 2 = 0 then now() end
		from made`, from, to)
	testdb.Exec(t, pool, `vacuum analyze agui.run, agui.thread`)
}

// The limits of what is read are those of large stores. With smaller ones a small store shows the same.
func lowerLimits(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, change := range [][3]string{
		{"agui_internal.sampled_percent(regclass)", "> 1000 then (100000.0", "> 10 then (1000.0"},
		{"agui.lag(boolean)", "100000", "500"},
	} {
		testdb.Exec(t, pool, fmt.Sprintf(`do $$ begin execute replace(pg_get_functiondef('%s'::regprocedure), '%s', '%s'); end $$`, change[0], change[1], change[2]))
	}
}

// Monitoring costs the same in a store of any size, and says that it estimates. Exact counts are a matter of asking.
func TestStatsAndLagCostTheSameInALargerStore(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	lowerLimits(t, pool)
	type cost struct{ rows, pages int64 }
	measured := map[string][]cost{}
	statements := []string{`select agui.stats()`, `select agui.lag()`, `select agui.stats(exact => true)`, `select agui.lag(exact => true)`}
	const small, large = 4_000, 40_000
	for _, size := range []int{small, large} {
		storeOfRuns(t, pool, size/large*small+1, size)
		for _, statement := range statements {
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				var c cost
				c.pages = pagesRead(t, tx, statement)
				for _, table := range []string{"run", "thread", "batch"} {
					c.rows += rowsReadWith(t, pool, `set local jit = off`, table, statement)
				}
				measured[statement] = append(measured[statement], c)
				return nil
			})
			must.Do(t, err)
		}
	}
	for _, statement := range statements[:2] {
		// The pages are chosen at random.
		if before, after := measured[statement][0], measured[statement][1]; after.rows > 2*before.rows+100 || after.pages > 2*before.pages+100 {
			t.Errorf("%s reads %+v in a store of %d runs, and %+v in one of %d", statement, before, small, after, large)
		}
	}
	for _, statement := range statements[2:] {
		// Of a queue it reads the index alone.
		if before, after := measured[statement][0], measured[statement][1]; after.rows+after.pages <= before.rows+before.pages {
			t.Errorf("%s reads %+v in a store of %d runs, and %+v in one of %d: it cannot count them", statement, before, small, after, large)
		}
	}

	exact := testdb.Ask[string](t, pool, `
		select concat_ws(' ', threads, runs, finished_runs, failed_runs, events, repacked_runs, compacted_log_bytes, is_exact) from agui.stats(exact => true)`)
	if want := "40000 40000 35000 5000 400000 20000 4000000 t"; exact != want {
		t.Errorf("counted %s, want %s", exact, want)
	}
	if testdb.Ask[bool](t, pool, `select is_exact from agui.stats()`) {
		t.Error("agui.stats says of an estimate that it is exact")
	}
	for column, want := range map[string]float64{
		"threads": large, "runs": large, "finished_runs": large / 8 * 7, "failed_runs": large / 8, "events": 10 * large, "repacked_runs": large / 2,
		"compacted_log_bytes": 100 * large,
	} {
		got := testdb.Ask[float64](t, pool, `select `+column+`::float8 from agui.stats()`)
		if math.Abs(got-want) > want/4 {
			t.Errorf("%s is estimated as %.0f, there are %.0f", column, got, want)
		}
	}

	const lag = `select concat_ws(' ', runs_to_compact, runs_to_repack, compaction_lag is null, repack_lag between '1 day' and '25 hours', is_exact) from agui.lag`
	if got, want := testdb.Ask[string](t, pool, lag+`()`), "0 500 t t f"; got != want {
		t.Errorf("the backlog is %s, want %s", got, want)
	}
	if got, want := testdb.Ask[string](t, pool, lag+`(exact => true)`), "0 20000 t t t"; got != want {
		t.Errorf("the whole backlog is %s, want %s", got, want)
	}
}

// A small store is counted, whatever is asked for; runs in progress and what alerts use are in any store.
func TestStatsOfASmallStoreAreExact(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	storeOfRuns(t, pool, 1, 2_000)
	const stats = `select concat_ws(' ', threads, runs, finished_runs, failed_runs, events, is_exact) from agui.stats()`
	if got, want := testdb.Ask[string](t, pool, stats), "2000 2000 1750 250 20000 t"; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	lowerLimits(t, pool)
	beginRuns(t, pool, "a", "b")
	testdb.Exec(t, pool, `update agui.run set log_bytes = null, ended_at = now() - interval '1 week' where thread_key = agui.thread_key('scope-7', 't7')`)
	got := testdb.Ask[string](t, pool, `
		select concat_ws(' ', stats.running_runs, lag.running_runs, lag.stale_runs, runs_to_compact, compaction_lag >= '1 week', repack_lag >= '1 week', stats.is_exact)
		from agui.stats() as stats, agui.lag() as lag`)
	if want := "2 2 0 1 t t f"; got != want {
		t.Errorf("in progress and waiting: %s, want %s", got, want)
	}
}
