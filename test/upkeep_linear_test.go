package test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// insertRuns makes a thread of so many runs of two events, each after the one before it.
func insertRuns(t *testing.T, pool *pgxpool.Pool, thread string, runs int) {
	t.Helper()
	insertTree(t, pool, thread, runs, "no - 1")
}

// insertTree makes a thread of so many runs of two events. parent is the number of the parent of the run no, as SQL.
func insertTree(t *testing.T, pool *pgxpool.Pool, thread string, runs int, parent string) {
	t.Helper()
	testdb.Exec(t, pool, `select agui.append($1, 'r1', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`, thread)
	testdb.Exec(t, pool, `
		insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select thread_key, no * 2 - 1, recorded_at, 2, no, events
		from agui.batch, generate_series(2, $2::int) as no
		where thread_key = agui.thread_key('', $1)`, thread, runs)
	testdb.Exec(t, pool, `
		insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
		select thread_key, no, `+parent+`, 'r' || no, status, no * 2 - 1, no * 2, started_at, ended_at
		from agui.run, generate_series(2, $2::int) as no
		where thread_key = agui.thread_key('', $1) and run_no = 1`, thread, runs)
}

// What a call costs does not depend on how many runs its transaction has begun and ended before. The versions of rows that they left
// behind cannot be pruned until it commits; and a plan that reads a whole table, made when the store was empty, stays until then.
func TestManyRunsInOneTransaction(t *testing.T) {
	t.Parallel()
	const runs = 500
	both := `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]`
	begin, speak, end := `[{"type":"RUN_STARTED"}]`, `[{"type":"CUSTOM"}]`, `[{"type":"RUN_FINISHED"}]`
	call := func(thread, run, events, more string) string {
		return fmt.Sprintf(`select agui.append('%s', '%s', '%s'%s)`, thread, run, events, more)
	}
	for name, calls := range map[string]func(i int) []string{ // of each run
		"in turns": func(i int) []string {
			run := fmt.Sprint("r", i)
			return []string{call("t", run, both, ""), call("u", run, begin, ""), call("u", run, speak, ""), call("u", run, end, "")}
		},
		"beside one in progress": func(i int) []string {
			first := []string{}
			if i == 1 {
				first = append(first, call("t", "long", begin, ""))
			}
			run := fmt.Sprint("r", i)
			return append(first, call("t", run, begin, ", parallel => true, parent_run_id => ''"), call("t", "long", speak, ""), call("t", run, end, ""))
		},
		"side by side": func(i int) []string {
			if i <= runs/2 {
				return []string{call("t", fmt.Sprint("r", i), begin, ", parallel => true, parent_run_id => ''")}
			}
			return []string{call("t", fmt.Sprint("r", runs-i+1), end, "")}
		},
		"in savepoints": func(i int) []string {
			return []string{"savepoint a", call("t", fmt.Sprint("r", i), begin, ""), "release a", call("t", fmt.Sprint("r", i), end, "")}
		},
		"of one parent": func(i int) []string {
			first := []string{}
			if i == 1 {
				first = append(first, call("t", "parent", both, ""))
			}
			return append(first, call("t", fmt.Sprint("r", i), both, ", parent_run_id => 'parent'"))
		},
		"in calls of many": func(i int) []string {
			many := func(events string) string {
				return fmt.Sprintf(`select count(*) from agui.append_many(array['t'], array['r%d'], array['%s']::json[])`, i, events)
			}
			return []string{many(begin), many(speak), many(end)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool := testdb.Pool(t)
			testdb.Exec(t, pool, `analyze`)
			tx := testdb.Begin(t, pool)
			defer tx.Rollback(ctx)
			// Ten runs are counted in the middle, and the last ten.
			middle := runs/2 - 11
			if name == "side by side" {
				middle = runs/2 + 11
			}
			counted := func(i int) bool { return i >= middle && i < middle+10 || i > runs-10 }
			costs := make([][]int64, runs+1)
			for i := 1; i <= runs; i++ {
				for _, statement := range calls(i) {
					if counted(i) && strings.HasPrefix(statement, "select") {
						costs[i] = append(costs[i], pagesRead(t, tx, statement))
					} else if _, err := tx.Exec(ctx, statement); err != nil {
						t.Fatal(err)
					}
				}
			}
			for place := range costs[runs] {
				sum := func(from int) (pages int64) {
					for i := from; i < from+10; i++ {
						pages += costs[i][place]
					}
					return pages / 10
				}
				early, late := sum(middle), sum(runs-9)
				if late > early+6 {
					t.Errorf("call %d of a run reads %d pages for run %d, %d for run %d", place+1, early, runs/2, late, runs)
				}
			}
			must.Do(t, tx.Commit(ctx))
			for id, thread := range verifyThreads(t, pool, jobs.VerifyOptions{}) {
				if problems := described(thread.Problems); len(problems) > 0 {
					t.Errorf("%v: %v", id, problems)
				}
			}
			const late = `select count(*)::int from agui.thread join agui.thread_activity using (thread_key)
				where active_at not between agui_internal.active_at(thread) and agui_internal.active_at(thread) + interval '1 second'`
			if n := testdb.Ask[int](t, pool, late); n != 0 {
				t.Errorf("%d threads are in another place in lists than where they belong", n)
			}
			// The next transaction moves the thread as any other.
			testdb.Exec(t, pool, `select agui.append('t', 'last', '`+both+`', parallel => true)`)
			if n := testdb.Ask[int](t, pool, late+` and thread_id = 't'`); n != 0 {
				t.Error("the next run did not move the thread in lists")
			}
		})
	}
}

// isLinear counts the pages that a statement reads for a thread of some size, then for one of twice that.
func isLinear(t *testing.T, pool *pgxpool.Pool, fill func(thread string, size int), statement string, size int) {
	t.Helper()
	pages := map[int]int64{}
	for _, n := range []int{size, 2 * size} {
		thread := fmt.Sprint("thread-", n)
		fill(thread, n)
		tx := testdb.Begin(t, pool)
		pages[n] = pagesRead(t, tx, fmt.Sprintf(statement, thread))
		tx.Rollback(t.Context())
	}
	t.Logf("pages read: %v", pages)
	if ratio := float64(pages[2*size]) / float64(pages[size]); ratio > 2.6 {
		t.Errorf("%s reads %.1f times the pages for twice the size", statement, ratio)
	}
}

func TestEraseIsLinearInRuns(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	isLinear(t, pool, func(thread string, size int) { insertRuns(t, pool, thread, size) }, `select agui.erase('%s')`, 1500)
}

func TestEraseIsLinearInCheckpoints(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	isLinear(t, pool, func(thread string, size int) {
		insertRuns(t, pool, thread, 1)
		testdb.Exec(t, pool, `
			insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, parent_no, document)
			select agui.thread_key('', $1), no, '', no::text, nullif(no - 1, 0), '{}'
			from generate_series(1, $2::int) as no`, thread, size)
	}, `select agui.erase('%s')`, 1500)
}

// A thread at the last seq that there is fails its own call alone.
func TestAThreadThatIsFullFailsItsOwnCallAlone(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, thread := range []string{"full", "other"} {
		testdb.Exec(t, pool, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"}]')`, thread)
	}
	testdb.Exec(t, pool, `
		insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select thread_key, 9223372036854775806, recorded_at, 1, run_no, events
		from agui.batch
		where thread_key = agui.thread_key('', 'full')`)
	rows, err := pool.Query(context.Background(), `
		select call_no, coalesce(last_seq, 0), coalesce(error_code, '')
		from agui.append_many(
			array['full', 'other'], array['r', 'r'],
			array['[{"type":"CUSTOM","name":"a"},{"type":"CUSTOM","name":"b"}]', '[{"type":"CUSTOM","name":"c"}]']::json[])
		order by call_no`)
	must.Do(t, err)
	defer rows.Close()
	got := ""
	for rows.Next() {
		var no, lastSeq int64
		var code string
		must.Do(t, rows.Scan(&no, &lastSeq, &code))
		got += fmt.Sprint(no, ":", lastSeq, code, " ")
	}
	if err := rows.Err(); err != nil || got != "1:022003 2:2 " {
		t.Errorf("answers %q, error %v", got, err)
	}
}

// Each run adds a message and keeps a snapshot that holds all messages before it, too.
func fillSnapshots(t *testing.T, pool *pgxpool.Pool) func(thread string, size int) {
	return func(thread string, size int) {
		t.Helper()
		testdb.Exec(t, pool, `
			select agui.append($1, 'r1', format(
				'[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m1"},{"type":"CUSTOM","value":"%s"},{"type":"RUN_FINISHED"}]',
				repeat('dummy ', 200))::json)`, thread)
		testdb.Exec(t, pool, `
			insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
			select thread_key, no * 4 - 3, recorded_at, 4, no, replace(events::text, '"m1"', '"m' || no || '"')::json
			from agui.batch, generate_series(2, $2::int) as no
			where thread_key = agui.thread_key('', $1)`, thread, size)
		testdb.Exec(t, pool, `
			insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
			select thread_key, no, no - 1, 'r' || no, status, no * 4 - 3, no * 4, started_at, ended_at
			from agui.run, generate_series(2, $2::int) as no
			where thread_key = agui.thread_key('', $1) and run_no = 1`, thread, size)
		compactInGo(t, pool)
		testdb.Exec(t, pool, `analyze`)
		snapshots := int64(0)
		if err := pool.QueryRow(context.Background(), `select count(*) from agui.snapshot where thread_key = agui.thread_key('', $1)`, thread).
			Scan(&snapshots); err != nil || snapshots < int64(size/4) {
			t.Fatalf("thread %s has %d snapshots, error %v", thread, snapshots, err)
		}
	}
}

func TestVerifyInSQLReadsEachMessageOnce(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	isLinear(t, pool, fillSnapshots(t, pool), `select agui.verify('%s')`, 200)
}

// rowCounter counts the rows that the statements of a pool return.
type rowCounter struct{ rows atomic.Int64 }

func (c *rowCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (c *rowCounter) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	c.rows.Add(data.CommandTag.RowsAffected())
}

func TestVerifyReadsEachMessageOnce(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	pool := testdb.Connect(t, url)
	counter := &rowCounter{}
	counted := testdb.ConnectWith(t, url, func(config *pgxpool.Config) { config.ConnConfig.Tracer = counter })
	rows := map[int]int64{}
	for _, size := range []int{200, 400} {
		thread := fmt.Sprint("thread-", size)
		fillSnapshots(t, pool)(thread, size)
		counter.rows.Store(0)
		done, err := jobs.Verify(context.Background(), counted, jobs.VerifyOptions{Threads: []string{thread}})
		if err != nil || done.Problems != 0 {
			t.Fatalf("verify: %+v, error %v", done, err)
		}
		rows[size] = counter.rows.Load()
	}
	t.Logf("rows read: %v", rows)
	if ratio := float64(rows[400]) / float64(rows[200]); ratio > 2.2 {
		t.Errorf("twice the runs take %.1f times the rows", ratio)
	}
}

// A thread that goes after verify has listed it is no damage.
func TestVerifyOfAThreadThatIsBeingErased(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	for thread := range 20 {
		insertRuns(t, pool, fmt.Sprint("t", thread), 2)
	}
	kept := ""
	done, err := jobs.Verify(ctx, pool, jobs.VerifyOptions{Report: func(thread jobs.VerifiedThread) {
		for _, problem := range thread.Problems {
			t.Errorf("thread %s: %s", thread.ThreadID, problem.Problem.Problem)
		}
		if kept == "" {
			kept = thread.ThreadID
			testdb.Exec(t, pool, `select agui.erase(thread_id) from agui.thread where thread_id <> $1`, kept)
		}
	}})
	if err != nil || done.Problems != 0 {
		t.Errorf("verify: %+v, error %v", done, err)
	}
}

// Each fold copies the messages that it begins with, so compaction of a long thread does not begin one for each run: as many messages are
// copied for each run of a thread that is twice as long.
func TestCompactionCopiesInProportionToTheRuns(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"agui.compact":           `call agui.compact()`,
		"agui.rebuild_snapshots": `select agui.rebuild_snapshots('t')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := func(runs int) (messages int64) {
				t.Helper()
				pool := testdb.Pool(t)
				insertMessages(t, pool, "t", runs)
				testdb.Exec(t, pool, `
					create sequence copied;
					alter function agui_internal.fold_events rename to fold_these_events;
					create function agui_internal.fold_events(
						start agui_internal.fold, thread_key uuid, run_nos int[], after_seqs bigint[], through_seqs bigint[],
						given json default null, takes_input boolean[] default null, stop_at timestamptz default null,
						limits agui_internal.fold_limits default null
					) returns agui_internal.fold language plpgsql as $$
					begin
						perform setval('public.copied', nextval('public.copied') + cardinality(start.message_nos));
						return agui_internal.fold_these_events(start, thread_key, run_nos, after_seqs, through_seqs, given, takes_input, stop_at, limits);
					end $$`)
				testdb.Exec(t, pool, statement)
				if err := pool.QueryRow(t.Context(), `select last_value from copied where not exists (select from agui.run where log_bytes is null)`).
					Scan(&messages); err != nil {
					t.Fatal(err)
				}
				return messages
			}
			few, many := copied(300), copied(600)
			t.Logf("%d messages are copied for 300 runs, %d for 600", few, many)
			if float64(many) > 2.6*float64(few) {
				t.Error("that is more than twice as many")
			}
		})
	}
}

// insertMessages makes a thread of so many runs of one message each, each after the one before it.
func insertMessages(t *testing.T, pool *pgxpool.Pool, thread string, runs int) {
	t.Helper()
	testdb.Exec(t, pool, `
		select agui.append($1, 'r' || no, json_build_array(
			json_build_object('type', 'RUN_STARTED', 'runId', 'r' || no),
			json_build_object('type', 'TEXT_MESSAGE_START', 'messageId', 'm' || no),
			json_build_object('type', 'TEXT_MESSAGE_CONTENT', 'messageId', 'm' || no, 'delta', repeat('word ', 20) || no),
			json_build_object('type', 'TEXT_MESSAGE_END', 'messageId', 'm' || no),
			json_build_object('type', 'RUN_FINISHED')))
		from generate_series(1, $2::int) as no`, thread, runs)
}

// Verify folds the runs between two snapshots together: a call of the fold looks at all messages so far.
func TestVerifyFoldsRunsTogether(t *testing.T) {
	t.Parallel()
	const runs = 200
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		select agui.append('t', 'r' || i, format(
			'[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m%s"}%s,{"type":"RUN_FINISHED"}]', i, repeat(',{"type":"CUSTOM"}', 50)
		)::json)
		from generate_series(1, $1::int) as i`, runs)
	testdb.Exec(t, pool, `call agui.compact()`)
	tx := testdb.Begin(t, pool)
	defer tx.Rollback(context.Background())
	var damages, snapshots, folds int
	for _, step := range []struct {
		statement string
		results   []any
	}{
		{`select set_config('track_functions', 'all', true) is null`, []any{new(bool)}},
		{`select count(*) from agui.verify('t')`, []any{&damages}},
		{`
			select (select count(*) from agui.snapshot), sum(calls)
			from pg_stat_xact_user_functions
			where funcname = 'fold_events'`, []any{&snapshots, &folds}},
	} {
		must.Do(t, tx.QueryRow(t.Context(), step.statement).Scan(step.results...))
	}
	if damages != 0 || snapshots < 2 || snapshots > runs/4 || folds > snapshots+1 {
		t.Errorf("%d damages; %d folds for %d snapshots of %d runs", damages, folds, snapshots, runs)
	}
}

// Runs that continue from one run are folded from its fold, which is made once, and several are compacted in one transaction.
func TestCompactionOfManyRunsOfOneParent(t *testing.T) {
	t.Parallel()
	const batches, children = 50, 160
	for name, compact := range map[string]func(t *testing.T, pool *pgxpool.Pool) error{
		"agui.compact": func(t *testing.T, pool *pgxpool.Pool) error {
			_, err := pool.Exec(t.Context(), `call agui.compact()`)
			return err
		},
		"agui.rebuild_snapshots": func(t *testing.T, pool *pgxpool.Pool) error {
			_, err := pool.Exec(t.Context(), `select agui.rebuild_snapshots('t')`)
			return err
		},
		"Compact": func(t *testing.T, pool *pgxpool.Pool) error {
			_, err := jobs.Compact(t.Context(), pool, jobs.CompactOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := countingScans(t)
			testdb.Exec(t, pool, `select agui.append('t', 'parent', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m"}]')`)
			testdb.Exec(t, pool, `
				select agui.append('t', 'parent', '[{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"word "}]')
				from generate_series(1, $1::int)`, batches-2)
			testdb.Exec(t, pool, `select agui.append('t', 'parent', '[{"type":"TEXT_MESSAGE_END","messageId":"m"},{"type":"RUN_FINISHED"}]')`)
			testdb.Exec(t, pool, `
				select agui.append('t', 'child' || no, json_build_array(
					json_build_object('type', 'RUN_STARTED'),
					json_build_object('type', 'TEXT_MESSAGE_CHUNK', 'messageId', 'm' || no, 'role', 'assistant', 'delta', 'answer'),
					json_build_object('type', 'RUN_FINISHED')), parent_run_id => 'parent')
				from generate_series(1, $1::int) as no`, children)
			testdb.Exec(t, pool, `set track_functions = 'all'`)
			must.Do(t, compact(t, pool))
			testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
			calls := func(function string) int {
				return testdb.Ask[int](t, pool, fmt.Sprintf(`select coalesce(sum(calls), 0)::int from pg_stat_user_functions where funcname = '%s'`, function))
			}
			if n := calls("fold_base"); n > 3 {
				t.Errorf("the fold of the parent was looked for %d times", n)
			}
			if n := calls("begin_step"); n > children/8 {
				t.Errorf("%d runs were compacted in %d transactions", children+1, n)
			}
			if n := testdb.Ask[int](t, pool, `select count(*)::int from agui.run where log_bytes is null`); n > 0 {
				t.Errorf("%d runs are not compacted", n)
			}
			for id, thread := range verifyThreads(t, pool, jobs.VerifyOptions{}) {
				if problems := described(thread.Problems); len(problems) > 0 {
					t.Errorf("%v: %v", id, problems)
				}
			}
		})
	}
}

// Each of many runs of one parent has a snapshot of its own. What makes, checks and reads one of them reads its messages alone, although
// the plans are of a time when there were few.
func TestSnapshotsOfManyRunsOfOneParentAreReadAlone(t *testing.T) {
	t.Parallel()
	const children = 300
	fill := func(t *testing.T) (pool *pgxpool.Pool, messages func() int64) {
		pool, _ = countingScans(t)
		testdb.Exec(t, pool, `set enable_seqscan = on`)
		testdb.Exec(t, pool, `analyze`)
		testdb.Exec(t, pool, `
			select agui.append('t', 'r' || no, format('[
				{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%s","role":"assistant","delta":"answer"},
				{"type":"CUSTOM","name":"n","value":"%s"},{"type":"RUN_FINISHED"}]',
				no, (select string_agg(md5(no || '.' || part), '') from generate_series(1, 40) as part))::json,
				parent_run_id => case when no = 0 then '' else 'r0' end)
			from generate_series(0, $1::int) as no`, children)
		read := int64(0)
		return pool, func() int64 {
			t.Helper()
			testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
			before := read
			read = testdb.Ask[int64](t, pool, `
				select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where schemaname = 'agui' and relname = 'message_version'`)
			return read - before
		}
	}
	for name, compact := range map[string]string{"SQL": `call agui.compact()`, "Go": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, messages := fill(t)
			messages()
			if compact != "" {
				testdb.Exec(t, pool, compact)
			} else {
				compactInGo(t, pool)
			}
			if n := testdb.Ask[int](t, pool, `select count(*)::int from agui.snapshot`); n < children {
				t.Fatalf("%d snapshots", n)
			}
			check := func(what string, most int64) {
				t.Helper()
				if rows := messages(); rows > most {
					t.Errorf("%s read %d messages, want %d at most", what, rows, most)
				}
			}
			check("compaction", 10*children)
			testdb.Exec(t, pool, `select * from agui.verify('t')`)
			check("agui.verify", 12*children)
			if done, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{}); err != nil || done.Problems > 0 {
				t.Fatal(done, err)
			}
			check("Verify", 6*children)
			for _, reader := range []string{
				`select agui.restore('t', 'r150')`, `select * from agui.messages('t', 'r150')`, `select * from agui.last_messages('t', 'r150')`,
				`select agui.state('t', 'r150')`, `select * from agui.message_origin('t', 'm150', 'r150')`,
			} {
				testdb.Exec(t, pool, reader)
				check(reader, 12)
			}
			testdb.Exec(t, pool, `select agui_internal.prune_snapshots(agui.thread_key('', 't'), 1)`)
			check("the choice of snapshots to drop", 6*children)
			testdb.Exec(t, pool, `select agui_internal.drop_snapshots(agui.thread_key('', 't'), '{200}')`)
			check("the drop of a snapshot", 12)
		})
	}
}

// Snapshots that go ask the newest ones first who holds their messages, and those of one call ask together.
func TestSnapshotsThatGoReadFewOthers(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	insertRuns(t, pool, "t", 400)
	// Each snapshot holds the messages of those before it, and one that no other has.
	testdb.Exec(t, pool, `
		insert into agui.message_version (thread_key, message_no, message_id, role, body)
		select agui.thread_key('', 't'), no, 'm' || no, 'user', '{}' from generate_series(1, 1400) as no`)
	testdb.Exec(t, pool, `
		insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, rules)
		select agui.thread_key('', 't'), no, no * 2, array[int4range(1, no + 1), int4range(1000 + no, 1001 + no)], '{}', '[]', agui_internal.rules() from generate_series(1, 400) as no`)
	for _, cost := range []struct {
		statement string
		most      int64
	}{
		{`select agui_internal.delete_unused_messages(agui.thread_key('', 't'), '{}')`, 0},
		{`select agui_internal.delete_unused_messages(agui.thread_key('', 't'), '{"[1,301)"}')`, 20},
		{`select agui_internal.drop_snapshots(agui.thread_key('', 't'), array(select generate_series(100, 200)))`, 101 + 300},
	} {
		for _, setting := range []string{`set local enable_seqscan = on`, `set local plan_cache_mode = force_custom_plan`} {
			if rows := rowsReadWith(t, pool, setting, "snapshot", cost.statement); rows > cost.most {
				t.Errorf("%s: %s reads %d rows of agui.snapshot, want %d at most", setting, cost.statement, rows, cost.most)
			}
		}
	}
	for _, setting := range []string{`set local enable_seqscan = on`, `set local plan_cache_mode = force_custom_plan`} {
		const weigh = `select agui_internal.drop_needless_snapshot(agui.thread_key('', 't'), 350)`
		if rows := rowsReadWith(t, pool, setting, "message_version", weigh); rows > 10 {
			t.Errorf("%s: %s reads %d messages, of which two are not in the snapshot before", setting, weigh, rows)
		}
	}
	testdb.Exec(t, pool, `select agui_internal.drop_snapshots(agui.thread_key('', 't'), array(select generate_series(100, 200)))`)
	if n := testdb.Ask[int](t, pool, `select count(*)::int from agui.message_version where message_no <= 400 or message_no between 1100 and 1200`); n != 400 {
		t.Errorf("%d messages are left, want the 400 that others hold", n)
	}
}

// Repack weighs the snapshots behind the runs that it has joined. Those before them cost nothing.
func TestRepackWeighsTheSnapshotsBehindItsRuns(t *testing.T) {
	t.Parallel()
	for name, repack := range map[string]string{"SQL": `call agui.repack(older_than => '0')`, "Go": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := countingScans(t)
			fillSnapshots(t, pool)("t", 200)
			for _, events := range []string{
				`[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m"}]`, `[{"type":"TEXT_MESSAGE_END","messageId":"m"},{"type":"RUN_FINISHED"}]`,
			} {
				testdb.Exec(t, pool, `select agui.append('t', 'late', $1)`, events)
			}
			compactInGo(t, pool)
			read := func() int64 {
				testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
				return testdb.Ask[int64](t, pool, `select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where schemaname = 'agui' and relname = 'snapshot'`)
			}
			before := read()
			if repack != "" {
				testdb.Exec(t, pool, repack)
			} else if done, err := jobs.Repack(t.Context(), pool, jobs.RepackOptions{OlderThan: new(time.Duration)}); err != nil || done.Runs != 1 {
				t.Fatal(done, err)
			}
			if n := testdb.Ask[int](t, pool, `select count(*)::int from agui.batch where run_no = 201`); n != 1 {
				t.Fatalf("the run has %d batches after it was repacked", n)
			}
			if rows := read() - before; rows > 10 {
				t.Errorf("repack of the last run read %d snapshots", rows)
			}
		})
	}
}

// Compaction of a chain that takes several transactions does not fold again from the first run: it reads as much of each run. Of
// the four snapshots that carry the fold over those of runs 2,000 and 4,000 stay, because they are far from the one before.
func TestCompactionOfALongChainGoesOn(t *testing.T) {
	t.Parallel()
	const runs = 4500
	pool, _ := countingScans(t)
	testdb.Exec(t, pool, `
		select agui.append('t', 'r' || no, json_build_array(
			json_build_object('type', 'RUN_STARTED', 'input', json_build_object('messages', json_build_array(
				json_build_object('id', 'm' || no, 'role', 'user', 'content', repeat('same ', 100))))),
			json_build_object('type', 'RUN_FINISHED')))
		from generate_series(1, $1::int) as no`, runs)
	read := func() int64 {
		testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
		return testdb.Ask[int64](t, pool, `select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where schemaname = 'agui' and relname = 'batch'`)
	}
	before := read()
	done, err := jobs.Compact(t.Context(), pool, jobs.CompactOptions{})
	if err != nil || done.Runs != runs {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := read() - before; n > 5*runs/2 {
		t.Errorf("%d batches were read for %d runs of one each, want two for each", n, runs)
	}
	if n := testdb.Ask[int](t, pool, `select count(*)::int from agui.snapshot`); n != 3 {
		t.Errorf("%d snapshots are left, want those of two runs and of the tip", n)
	}
}
