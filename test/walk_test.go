package test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// For each run a job finds the next one without a look at those that are done: for twice as many runs it reads twice as many rows.
func TestJobsReadInProportionToTheRuns(t *testing.T) {
	t.Parallel()
	compact := func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := jobs.Compact(ctx, pool, jobs.CompactOptions{})
		return err
	}
	call := func(statement string) func(context.Context, *pgxpool.Pool) error {
		return func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, statement)
			return err
		}
	}
	for _, job := range []struct {
		name    string
		prepare string
		do      func(context.Context, *pgxpool.Pool) error
	}{
		{"agui.compact", `select 1`, call(`call agui.compact()`)},
		{"agui.repack", `select 1`, call(`call agui.repack(older_than => '0')`)},
		// A note of the thread, as a process leaves it that is killed: its runs are taken one by one.
		{"Compact", `select agui_internal.note_attempt('compact', agui.thread_key('', 't'), '{0}')`, compact},
		{"Repack", `select 1`, func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := jobs.Repack(ctx, pool, jobs.RepackOptions{OlderThan: new(time.Duration)})
			return err
		}},
	} {
		t.Run(job.name, func(t *testing.T) {
			t.Parallel()
			rows := func(runs int) int64 {
				pool := shortRuns(t, runs)
				ctx := context.Background()
				testdb.Exec(t, pool, job.prepare)
				before := logRowsRead(t, pool)
				must.Do(t, job.do(ctx, pool))
				return logRowsRead(t, pool) - before
			}
			few, many := rows(30), rows(60)
			t.Logf("%d rows are read for 30 runs, %d for 60", few, many)
			if few == 0 || float64(many) > 2.2*float64(few) {
				t.Error("that is more than twice as many")
			}
		})
	}
}

// shortRuns makes a database with one thread of ended runs, and a pool of one connection to it, which uses indexes as in a large database.
func shortRuns(t *testing.T, runs int) *pgxpool.Pool {
	t.Helper()
	ctx := context.Background()
	pool := testdb.ConnectWith(t, testdb.New(t), func(config *pgxpool.Config) {
		config.MaxConns = 1
		config.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	})
	for number := range runs {
		run := fmt.Sprint("r", number)
		events := []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q}`, run)), json.RawMessage(`{"type":"RUN_FINISHED"}`)}
		must.Have(pgagui.New(pool, nil).Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: run}, events, pgagui.AppendOptions{}))(t)
	}
	return pool
}

// logRowsRead counts the rows of runs, batches and snapshots that the only session of the database has read so far.
func logRowsRead(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
	return testdb.Ask[int64](t, pool, `
		select sum(seq_tup_read + idx_tup_fetch)::bigint from pg_stat_user_tables where schemaname = 'agui' and relname in ('run', 'batch', 'snapshot')`)
}

// A job also finds a run that comes before the last processed one: its end came late, or something was appended to it.
func TestJobsFindRunsBeforeTheLastOne(t *testing.T) {
	t.Parallel()
	pool := shortRuns(t, 4) // each continues the one before
	for _, found := range []struct {
		name, left, statement string
		want                  int
	}{
		{"compact: the next one", "{3,4}", `select agui_internal.next_to_compact(agui.thread_key('', 't'), 'infinity', 2)`, 3},
		{"compact: one before", "{1}", `select agui_internal.next_to_compact(agui.thread_key('', 't'), 'infinity', 4)`, 1},
		{"compact: the parent of the next one", "{2,3}", `select agui_internal.next_to_compact(agui.thread_key('', 't'), 'infinity', 2)`, 2},
		{"compact: none", "{}", `select agui_internal.next_to_compact(agui.thread_key('', 't'), 'infinity', 2)`, 0},
		{"repack: the next one", "{2,4}", `select run_no from agui_internal.next_to_repack(agui.thread_key('', 't'), '0', after_no => 3)`, 4},
		{"repack: one before", "{2}", `select run_no from agui_internal.next_to_repack(agui.thread_key('', 't'), '0', after_no => 3)`, 2},
		{"repack: none", "{}", `select run_no from agui_internal.next_to_repack(agui.thread_key('', 't'), '0', after_no => 3)`, 0},
	} {
		testdb.Exec(t, pool, `
			update agui.run set
				log_bytes = case when run_no = any ($1::int[]) then null else 1 end,
				repacked_at = case when run_no = any ($1::int[]) then null else now() end`, found.left)
		number := testdb.Ask[int](t, pool, `select coalesce((`+found.statement+`), 0)`)
		if number != found.want {
			t.Errorf("%s: run number %d, want %d", found.name, number, found.want)
		}
	}
}
