package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

// What reading and appending cost is counted in rows, which do not depend on the machine: a slow path shows as more of them.

// rowsRead counts the rows of a table that a statement looks at. In a table of one thread all rows are near; in a large one indexes lead
// to them.
func rowsRead(t *testing.T, pool *pgxpool.Pool, table, statement string, arguments ...any) (rows int64) {
	t.Helper()
	return rowsReadWith(t, pool, `set local enable_seqscan = off`, table, statement, arguments...)
}

func rowsReadWith(t *testing.T, pool *pgxpool.Pool, setting, table, statement string, arguments ...any) (rows int64) {
	t.Helper()
	ctx := context.Background()
	count := func(tx pgx.Tx) int64 {
		return testdb.Ask[int64](t, tx, `
			select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
			from pg_stat_xact_user_tables where schemaname = 'agui' and relname = $1`, table)
	}
	tx := testdb.Begin(t, pool)
	defer tx.Rollback(ctx)
	testdb.Exec(t, tx, setting)
	before := count(tx)
	testdb.Exec(t, tx, statement, arguments...)
	return count(tx) - before
}

// pagesRead counts the pages of the schema's tables and indexes that a statement reads in a transaction. Those of the catalog do not count:
// the session reads them when something makes it forget what it knew, such as much DDL in other databases of the server, and not more of them
// for a long thread.
func pagesRead(t *testing.T, tx pgx.Tx, statement string) int64 {
	t.Helper()
	count := func() int64 {
		return testdb.Ask[int64](t, tx, `
			with own as (
				select oid, reltoastrelid from pg_class where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
			)
			select sum(pg_stat_get_xact_blocks_fetched(oid))::bigint
			from (
				select oid from own
				union all
				select reltoastrelid from own
				union all
				select indexrelid from pg_index where indrelid in (select reltoastrelid from own where reltoastrelid <> 0)
			) as relations`)
	}
	before := count()
	testdb.Exec(t, tx, statement)
	return count() - before
}

// longThread appends a thread of 30 runs, each with 40 batches of 5 events, and a run in progress with three batches. The first run sets
// the state.
func longThread(t *testing.T, store *pgagui.Store, state string) {
	t.Helper()
	for number := range 31 {
		run := fmt.Sprint("r", number)
		events := []string{
			fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q}`, run),
			fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":%q}`, run),
		}
		for token := range 196 {
			events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":" token %d"}`, run, token))
		}
		events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, run), `{"type":"RUN_FINISHED","usage":[{"inputTokens":1}]}`)
		if number == 0 {
			events[2] = fmt.Sprintf(`{"type":"STATE_SNAPSHOT","snapshot":%q}`, state)
		}
		if number == 30 {
			events = events[:15]
		}
		for batch := range slices.Chunk(events, 5) {
			mustAppend(t, store, "t", run, rawEvents(batch...))
		}
	}
}

func TestCostsGrowWithWhatIsReadAlone(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	longThread(t, store, "")
	if done, err := jobs.Compact(context.Background(), pool, jobs.CompactOptions{}); err != nil || done.Runs != 30 || done.Events != 6000 {
		t.Fatalf("compacted %+v, error %v", done, err)
	}
	testdb.Exec(t, pool, `analyze`)
	// When the event 3,000 was recorded, in the middle of the log.
	const middle = `(select recorded_at from agui.batch where thread_key = agui.thread_key('', 't') and first_seq = 2996)`
	for _, cost := range []struct {
		statement string
		table     string
		most      int64
	}{
		// Three batches are behind the last snapshot; finding where to begin reads one more, perhaps twice.
		{`select agui.restore('t')`, "batch", 6},
		{`select agui.restore('t', 'r29')`, "batch", 2},
		{`select agui.restore('t', 'r29')`, "message", 30},
		{`select agui.restore('t', 'r29')`, "snapshot", 3},
		{`select * from agui.messages('t')`, "batch", 6},
		{`select * from agui.events('t', after_seq => 6005)`, "batch", 6},
		{`select * from agui.events('t', 'r3', after_seq => 700)`, "batch", 24},
		{`select * from agui.events('t', 'r3', lineage => false, after_seq => 700)`, "batch", 24},
		{`select * from agui.events('t', 'r3', lineage => false, after_seq => 700)`, "run", 2},
		{`select * from agui.history('t', run_id => 'r29', lineage => false)`, "batch", 60},
		// A point in time is found in 13 steps among 6,000 events; the fold of half a run reads 21 batches.
		{`select agui_internal.last_seq_by(agui.thread_key('', 't'), ` + middle + `)`, "batch", 15},
		{`select agui_internal.last_seq_by(agui.thread_key('', 't'), 'infinity')`, "batch", 15},
		{`select agui_internal.last_seq_by(agui.thread_key('', 't'), '-infinity')`, "batch", 15},
		{`select agui.restore('t', at_time => ` + middle + `)`, "batch", 15 + 21 + 2},
		{`select * from agui.messages('t', at_time => '-infinity')`, "batch", 15},
		{`select * from agui.history('t', since => ` + middle + `, max_rows => 1)`, "batch", 15 + 60},
		// The fold, what the run in progress has open, the end of the log twice.
		{`select agui.attach('t')`, "batch", 6 + 4 + 2},
		// Its CUSTOM events are in its 40 batches.
		{`select agui.attach('t', 'r29')`, "batch", 5 + 40},
		{`select agui.attach('t', shape => 'events', after_seq => 6005)`, "batch", 6},
		{`select agui.attach('nobody')`, "batch", 0},
		{`select agui.attach('nobody')`, "run", 0},
		{`select * from agui.poll('{t}', '{6005}')`, "batch", 4},
		{`select agui.abandon('t', 'r30')`, "batch", 6},
		{`select agui.append('t', 'r30', '[{"type":"CUSTOM"}]')`, "batch", 1},
		{`select agui.append('t', 'r30', '[{"type":"CUSTOM"}]')`, "run", 2},
		{`select agui.append('t', 'r30', '[{"type":"CUSTOM"}]', after_seq => 6015)`, "batch", 1},
		// The ends of 31 runs, and what the one in progress has.
		{`select agui.usage('t', whole_thread => true)`, "batch", 40},
		{`select agui.usage('t')`, "batch", 40},
		{`select agui.usage('t', 'r5', lineage => false)`, "batch", 2},
		{`select agui.stats()`, "batch", 0},
		{`select agui.lag()`, "batch", 1},
		{`select agui.lag()`, "run", 5},
		{`select * from agui_internal.next_to_repack(null, null)`, "run", 1},
	} {
		if rows := rowsRead(t, pool, cost.table, cost.statement); rows > cost.most {
			t.Errorf("%s reads %d rows of agui.%s, want %d at most", cost.statement, rows, cost.table, cost.most)
		}
	}
}

// A document of session state is found by its key, however many runs and keys there are, and those of other branches are passed over.
func TestSessionStateCostsWhatLiesBetween(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	// 2,000 runs, each with 50 keys: in turns on a long branch, which ends with run 1999, and on one that run 2000 ends. Some keys are rare.
	testdb.Exec(t, pool, `
		insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('', 't'), '', 't');
		insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
		select agui.thread_key('', 't'), n, case when n > 1 then greatest(n - 2, 1) end, 'r' || n, 'finished', n, n, now(), now()
		from generate_series(1, 2000) as n;
		insert into agui.session_key (thread_key, key, last_version, saved_at)
		select agui.thread_key('', 't'), 'k' || k, 2000, now() from generate_series(1, 50) as k
		union all select agui.thread_key('', 't'), key, 1, now() from unnest('{own,root,middle,other}'::text[]) as key;
		insert into agui.session_state (thread_key, run_no, key, version, document)
		select agui.thread_key('', 't'), n, 'k' || k, n, '{}'::json from generate_series(1, 2000) as n, generate_series(1, 50) as k
		union all select agui.thread_key('', 't'), run_no, key, 1, '{}'::json
		from (values (0, 'own'), (1, 'root'), (1001, 'middle'), (1000, 'other')) as rare (run_no, key);
		analyze`)
	for _, cost := range []struct {
		statement string
		table     string
		most      int64
	}{
		{`select * from agui.load_session_state('t', 'k7', 'r1999')`, "session_state", 2},
		{`select * from agui.load_session_state('t', 'k7', 'r1999')`, "run", 3},
		{`select * from agui.load_session_state('t', 'k7', 'r3')`, "session_state", 2},
		{`select * from agui.load_session_state('t', 'own', 'r1999')`, "run", 2},
		{`select * from agui.load_session_state('t', 'none', 'r1999')`, "run", 2},
		{`select * from agui.load_session_state('t', 'own')`, "session_state", 2},
		{`select * from agui.load_session_state('t', 'middle', 'r1999')`, "run", 502},
		{`select * from agui.load_session_state('t', 'root', 'r1999')`, "session_state", 4},
		{`select * from agui.load_session_state('t', 'root', 'r1999')`, "run", 1002},
		{`select * from agui.load_session_state('t', 'other', 'r1999')`, "run", 502},
		{`select * from agui.session_versions('t', 'k7', 'r1999')`, "session_state", 1},
		{`select agui.load_session('t', 'r1999')`, "session_state", 130},
		// Once up the lineage for all keys, and once for the id of the run.
		{`select agui.load_session('t', 'r1999')`, "run", 1010},
		{`select agui.save_session_state('t', 'k7', '1', 'r1999', 1999)`, "session_state", 4},
		{`select agui.save_session_state('t', 'k7', '1', 'r1999', 1999)`, "session_key", 8},
	} {
		if rows := rowsRead(t, pool, cost.table, cost.statement); rows > cost.most {
			t.Errorf("%s reads %d rows of agui.%s, want %d at most", cost.statement, rows, cost.table, cost.most)
		}
	}
}

// A page of threads costs what it shows, wherever it is, however many threads and scopes there are, and whatever the planner knows of them.
func TestAPageOfThreadsCostsWhatItShows(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	// 12,000 threads in the scope "", one in ten archived, and 300 in each of 40 others; each has 3 runs, on 2 branches.
	testdb.Exec(t, pool, `
		create temp table made as
		select agui.thread_key(scope, 'thread-' || n) as key, scope, n, timestamptz '2026-01-01' + n * interval '1 second' as at
		from (
			select n, '' as scope from generate_series(1, 12000) as n
			union all
			select n, 'scope-' || s from generate_series(1, 300) as n, generate_series(1, 40) as s
		) as named;
		insert into agui.thread (thread_key, scope, thread_id) select key, scope, 'thread-' || n from made;
		insert into agui.run (thread_key, run_no, parent_no, run_id, status, first_seq, last_seq, started_at, ended_at)
		select key, run_no, case when run_no > 1 then 1 end, 'r' || run_no, 'finished', run_no, run_no, at, at from made, generate_series(1, 3) as run_no;
		insert into agui.thread_activity (thread_key, scope_key, active_at, archived, derived_title)
		select key, agui_internal.scope_key(key), at, n % 10 = 0, 'number ' || n from made;
		select agui.append('open', 'r', '[{"type":"RUN_STARTED","input":{"messages":["Hello"]}}]', scope => 'scope-8')`)
	for _, known := range []string{"", "analyze"} {
		testdb.Exec(t, pool, known)
		for _, cost := range []struct {
			statement string
			table     string
			most      int64
		}{
			// One more, to know whether there are more.
			{`select * from agui.threads()`, "thread_activity", 51},
			{`select * from agui.threads()`, "thread", 50},
			{`select * from agui.threads()`, "run", 50 * 4},
			{`select * from agui.threads(archived => true)`, "thread_activity", 51},
			{`select * from agui.threads(archived => null)`, "thread_activity", 53},
			{`select * from agui.threads(max_rows => 1)`, "thread_activity", 2},
			{`select * from agui.threads(since => '2026-01-01 03:19:51')`, "thread_activity", 10},
			{`select * from agui.threads(scope => 'scope-7')`, "thread_activity", 51},
			{`select * from agui.threads(scope => 'nobody')`, "thread_activity", 0},
			{`select * from agui.threads(cursor => agui_internal.thread_cursor('2026-01-01 00:01:00', agui.thread_key('', 'x')))`, "thread_activity", 51},
			{`select * from agui.threads(cursor => agui_internal.thread_cursor('2026-01-01 00:01:00', agui.thread_key('', 'x')), archived => null)`, "thread_activity", 53},
			// A search ends with the page, or after 10,000 threads; what it shows is looked up, the rest is not.
			{`select * from agui.threads(title => 'number 118')`, "thread_activity", 200},
			{`select * from agui.threads(title => 'nothing')`, "thread_activity", 10001},
			{`select * from agui.threads(title => 'nothing')`, "run", 0},
			{`select * from agui.threads(title => 'nothing')`, "thread", 0},
			{`select * from agui.threads(status => 'failed')`, "run", 0}, // by an index that none of these runs is in
			{`select * from agui.threads(status => 'failed', head_only => true)`, "run", 10001},
			{`select * from agui.get_thread('thread-7')`, "thread_activity", 1},
			{`select agui.set_thread('thread-7', title => 'x')`, "thread_activity", 2},
			// A run that begins and one that ends look at one row of the list, a token at none.
			{`select agui.append('open', 'r', '[{"type":"CUSTOM"}]', scope => 'scope-8')`, "thread_activity", 0},
			{`select agui.append('open', 'r', '[{"type":"CUSTOM"},{"type":"CUSTOM"}]', after_seq => 1, scope => 'scope-8')`, "thread_activity", 0},
			{`select agui.append('open', 'r', '[{"type":"RUN_FINISHED"}]', scope => 'scope-8')`, "thread_activity", 1},
			{`select agui.append('open', 's', '[{"type":"RUN_STARTED"}]', parallel => true, parent_run_id => '', scope => 'scope-8')`, "thread_activity", 1},
			{`select agui.append('thread-7', 's', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`, "thread_activity", 1},
			{`select agui.append('new', 'r', '[{"type":"RUN_STARTED"}]')`, "thread_activity", 0},
		} {
			for _, setting := range []string{`set local enable_seqscan = on`, `set local plan_cache_mode = force_custom_plan`} {
				if rows := rowsReadWith(t, pool, setting, cost.table, cost.statement); rows > cost.most {
					t.Errorf("%s, %s: %s reads %d rows of agui.%s, want %d at most", known, setting, cost.statement, rows, cost.table, cost.most)
				}
			}
		}
	}
	// A search that ends after 10,000 threads says how far back it went; one that ends with the page or the list does not.
	const searched = `select concat_ws(' ', cardinality(threads), next_cursor is not null, searched_to at time zone 'UTC') from agui.thread_page`
	for arguments, want := range map[string]string{
		// Threads of 10,800 that are not archived: the last one examined is number 889, each at its second.
		`(title => 'nothing')`:                     `0 t 2026-01-01 00:14:49`,
		`(title => 'number 8', max_rows => 1000)`:  `910 t 2026-01-01 00:14:49`,
		`(title => 'number 118')`:                  `50 t`,
		`(title => 'nothing', scope => 'scope-7')`: `0 f`,
		`()`: `50 t`,
		`(archived => true, title => 'number 120')`: `3 f`,
	} {
		if got := testdb.Ask[string](t, pool, searched+arguments); got != want {
			t.Errorf("agui.thread_page%s: %s, want %s", arguments, got, want)
		}
	}
}

// Each batch is folded once, however many runs lie between two snapshots that are kept. With a state larger than all of the log, that is
// none but the last.
func TestCompactionReadsTheLogOnce(t *testing.T) {
	t.Parallel()
	for name, compact := range map[string]string{"Go": "", "SQL": `call agui.compact()`} {
		for size, kept := range map[int]int{10: 0, 1_000_000: 1} { // bytes of the state, snapshots kept: 0 is any number
			t.Run(fmt.Sprint(name, " with a state of ", size, " bytes"), func(t *testing.T) {
				t.Parallel()
				// One connection does all of it, so that it knows what it has read.
				pool := testdb.ConnectWith(t, testdb.New(t), func(config *pgxpool.Config) { config.MaxConns = 1 })
				longThread(t, pgagui.New(pool, nil), strings.Repeat("s", size))
				statistics := func() int64 {
					testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
					return testdb.Ask[int64](t, pool, `
						select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where schemaname = 'agui' and relname = 'batch'`)
				}
				before := statistics()
				if compact != "" {
					testdb.Exec(t, pool, compact)
				} else {
					compactInGo(t, pool)
				}
				// In SQL its size is read too: to choose a sequence, where the run of the batch ends one also
				// for the sequence before, and to mark the run.
				if rows := statistics() - before; rows < 1200 || rows > 4*1200 {
					t.Errorf("compaction of 1,200 batches read %d", rows)
				}
				snapshots := testdb.Ask[int](t, pool, `select count(*) from agui.snapshot`)
				if kept > 0 && snapshots != kept {
					t.Errorf("%d snapshots were kept, want %d", snapshots, kept)
				}
			})
		}
	}
}

// To erase many threads, each is looked at a few times, however many there are.
func TestEraseLooksAtEachThreadAFewTimes(t *testing.T) {
	t.Parallel()
	const threads = 200
	for name, erase := range map[string]string{"Go": "", "SQL": `call agui.erase_older('1 microsecond')`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, scans := countingScans(t)
			testdb.Exec(t, pool, `
				select agui.append('thread-' || n, 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')
				from generate_series(1, $1::int) as n`, threads)
			before := scans("batch")
			var err error
			if erase == "" {
				_, err = jobs.Erase(t.Context(), pool, jobs.EraseOptions{OlderThan: time.Microsecond})
			} else {
				_, err = pool.Exec(t.Context(), erase)
			}
			must.Do(t, err)
			// To find it, for its last event, to check that it has none since, to count and to delete.
			if n := scans("batch") - before; n < threads || n > 8*threads {
				t.Errorf("to erase %d threads, their log was looked up %d times", threads, n)
			}
			if left := testdb.Ask[int](t, pool, `select count(*) from agui.thread`); left > 0 {
				t.Errorf("%d threads are left", left)
			}
		})
	}
}

// countingScans returns a pool of one connection, which knows what it has read, and a function that returns how often the indexes of
// a table were scanned.
func countingScans(t *testing.T) (*pgxpool.Pool, func(table string) int64) {
	t.Helper()
	pool := testdb.ConnectWith(t, testdb.New(t), func(config *pgxpool.Config) {
		config.MaxConns = 1
		config.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
		config.ConnConfig.RuntimeParams["jit"] = "off" // the costs of plans without an index would turn it on
	})
	return pool, func(table string) int64 {
		testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
		return testdb.Ask[int64](t, pool, `
			select idx_scan from pg_stat_user_tables where schemaname = 'agui' and relname = $1`, table)
	}
}

// A read of a run costs what it returns, however many runs its thread has, beside it and before it, and whatever the planner knows.
func TestReadsOfARunCostWhatTheyReturn(t *testing.T) {
	t.Parallel()
	const runs = 3000
	pool := testdb.Pool(t)
	insertRuns(t, pool, "chain", runs)
	insertTree(t, pool, "siblings", runs, "1")
	for _, statement := range []string{
		// Every second one has the text of a part of the inputs.
		`insert into agui.input_part (thread_key, kind, part_no, print, bytes, body)
			select agui.thread_key('', 'chain'), 'message', no, no, 2, '{}' from generate_series(1, 500) as no`,
		`insert into agui.message_version (thread_key, message_no, message_id, role, body, part_no)
			select agui.thread_key('', 'chain'), no, 'm' || no, 'user', case when no % 2 = 1 then '{}'::json end, case when no % 2 = 0 then no / 2 end
			from generate_series(1, 1000) as no`,
		`insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, rules)
			values (agui.thread_key('', 'chain'), 3000, 6000, '{"[1,1001)"}', '{"n":1}', '[]', agui_internal.rules())`,
	} {
		testdb.Exec(t, pool, statement)
	}
	for _, known := range []string{"", "analyze"} {
		testdb.Exec(t, pool, known)
		for _, cost := range []struct {
			statement string
			most      map[string]int64
		}{
			{`select * from agui.lineage('chain')`, map[string]int64{"run": 2*runs + 10}},
			{`select * from agui.children('siblings', 'r3')`, map[string]int64{"run": 6}},
			{`select * from agui.children('chain', 'r20')`, map[string]int64{"run": 25}},
			{`select * from agui.status('siblings', 'r3')`, map[string]int64{"run": 4, "batch": 2}},
			{`select * from agui.history('siblings', 'r3000', max_rows => 5)`, map[string]int64{"run": 8, "batch": 8}},
			{`select * from agui.history('siblings', 'r3', max_rows => 5)`, map[string]int64{"run": 8, "batch": 8}},
			{`select * from agui.history('chain', 'r2990', after_seq => 5970, max_rows => 2)`, map[string]int64{"run": 12, "batch": 4}},
			{`select * from agui.history('chain', 'r2990', lineage => false)`, map[string]int64{"run": 6, "batch": 4}},
			{`select * from agui.events('chain', 'r2990', after_seq => 5976)`, map[string]int64{"run": 6, "batch": 6}},
			{`select * from agui.events('chain', 'r2990', lineage => false)`, map[string]int64{"run": 3, "batch": 4}},
			{`select agui.attach('chain', shape => 'events', after_seq => 5996)`, map[string]int64{"run": 6, "batch": 12}},
			{`select * from agui.subagents('chain', 'r2990', lineage => false)`, map[string]int64{"run": 3, "batch": 2}},
			{`select * from agui.usage('chain', 'r2990', lineage => false)`, map[string]int64{"run": 3, "batch": 2}},
			{`select agui.last_errors('chain', 'r2990', lineage => false)`, map[string]int64{"run": 6}},
			// Once down the lineage, then from the 50th run to the first, twice.
			{`select agui.restore('chain', at_seq => 100)`, map[string]int64{"run": 2950 + 200, "batch": 120}},
			{`select agui.restore('chain')`, map[string]int64{"message_version": 1010, "input_part": 510, "run": 6}},
			{`select agui.state('chain')`, map[string]int64{"message_version": 0, "batch": 0, "snapshot": 1}},
			{`select * from agui.interrupts('chain')`, map[string]int64{"message_version": 0, "batch": 0, "snapshot": 1}},
		} {
			for table, most := range cost.most {
				for _, setting := range []string{`set local enable_seqscan = on`, `set local plan_cache_mode = force_custom_plan`} {
					if rows := rowsReadWith(t, pool, setting, table, cost.statement); rows > most {
						t.Errorf("%s, %s: %s reads %d rows of agui.%s, want %d at most", known, setting, cost.statement, rows, table, most)
					}
				}
			}
		}
	}
}

// To count the branches of a thread, lists read an index, not its runs.
func TestBranchesAreCountedInAnIndex(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for thread, parent := range map[string]string{"chain": "no - 1", "siblings": "1"} {
		insertTree(t, pool, thread, 4000, parent)
	}
	testdb.Exec(t, pool, `vacuum analyze agui.run`)
	tx := testdb.Begin(t, pool)
	defer tx.Rollback(context.Background())
	for thread, branches := range map[string]int{"chain": 1, "siblings": 3999} {
		statement := fmt.Sprintf(`select * from agui.get_thread('%s')`, thread)
		if pages := pagesRead(t, tx, statement); pages > 60 {
			t.Errorf("%s reads %d pages, want 60 at most", statement, pages)
		}
		if n := testdb.Ask[int](t, pool, fmt.Sprintf(`select branches from agui.get_thread('%s')`, thread)); n != branches {
			t.Errorf("%s has %d branches, want %d", thread, n, branches)
		}
	}
}

// A reader in Go that goes on near the end of a long lineage reads no runs before its place.
func TestEventsInGoBeginWithTheirPlace(t *testing.T) {
	t.Parallel()
	pool, _ := countingScans(t)
	insertRuns(t, pool, "chain", 1000)
	store := pgagui.New(pool, nil)
	before := int64(0)
	read := func() int64 {
		testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
		total := testdb.Ask[int64](t, pool, `select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where schemaname = 'agui' and relname = 'run'`)
		rows := total - before
		before = total
		return rows
	}
	for _, c := range []struct {
		options      pgagui.EventsOptions
		events, rows int
	}{
		{pgagui.EventsOptions{}, 2000, 1100},
		{pgagui.EventsOptions{AfterSeq: 1990}, 10, 12},
		{pgagui.EventsOptions{RunID: "r500", AfterSeq: 995}, 5, 12},
		{pgagui.EventsOptions{RunID: "r500", NoLineage: true}, 2, 12},
		{pgagui.EventsOptions{AfterSeq: 2000}, 0, 12},
	} {
		read()
		events := 0
		for _, err := range store.Events(t.Context(), "chain", c.options) {
			must.Do(t, err)
			events++
		}
		if rows := read(); events != c.events || rows > int64(c.rows) {
			t.Errorf("%+v: %d events, want %d, and %d rows of agui.run, want %d at most", c.options, events, c.events, rows, c.rows)
		}
	}
}

// If the tables of snapshots were analyzed while they were empty, the first compaction reads them by index all the same.
func TestTheFirstCompactionReadsNoTableForEachRun(t *testing.T) {
	t.Parallel()
	const threads = 300
	pool, _ := countingScans(t)
	for _, statement := range []string{
		`set enable_seqscan = on`, `set jit = on`,
		`do $$ begin
			for n in 1 .. 300 loop
				perform agui.append('thread-' || n, 'r', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"x"},{"type":"RUN_FINISHED"}]');
			end loop;
		end $$`,
		`vacuum analyze`,
		`call agui.compact()`,
		`call agui.repack(older_than => '0')`,
		`select pg_stat_force_next_flush()`,
	} {
		testdb.Exec(t, pool, statement)
	}
	read := testdb.List[string](t, pool, `
		select format('%s: %s rows in %s scans', relname, seq_tup_read, seq_scan)
		from pg_stat_user_tables
		where schemaname in ('agui', 'agui_internal') and seq_tup_read > 20 * $1 and relname <> 'setting'`, threads)
	if len(read) > 0 {
		t.Errorf("the compaction of %d threads read whole tables: %v", threads, read)
	}
}

// The first projection looks runs up in the tables of facts, and does not read these whole in each step, though they were empty when it began.
func TestTheFirstProjectionReadsNoFactsOfOthers(t *testing.T) {
	t.Parallel()
	const threads = 1000
	pool, _ := countingScans(t)
	for _, statement := range []string{
		`do $$ begin
			for n in 1 .. 1000 loop
				perform agui.append('thread-' || n, 'r', '[{"type":"RUN_STARTED"},{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f"},{"type":"RUN_FINISHED"}]');
			end loop;
		end $$`,
		`vacuum analyze`,
	} {
		testdb.Exec(t, pool, statement)
	}
	projected := 0
	for projected < threads {
		runs := testdb.Ask[int](t, pool, `select agui_internal.project_step() from agui_internal.begin_step()`)
		if runs == 0 {
			t.Fatalf("%d runs are projected, of %d", projected, threads)
		}
		projected += runs
	}
	testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
	read := testdb.List[string](t, pool, `
		select format('%s: %s rows by index, %s without', relname, sum(index.idx_tup_read), max(stored.seq_tup_read))
		from pg_stat_user_tables as stored
		join pg_stat_user_indexes as index using (relid, relname)
		where relname like 'projected\_%'
		group by relname
		having sum(index.idx_tup_read) + max(stored.seq_tup_read) > $1`, threads)
	if len(read) > 0 {
		t.Errorf("the projection of %d runs read the facts of others: %v", threads, read)
	}
}

// The texts of runs are read from their batches alone, by a plan of a time when the tables were empty too.
func TestTheTextsOfRunsReadTheRuns(t *testing.T) {
	t.Parallel()
	pool, _ := countingScans(t)
	const statement = `
		select * from agui_internal.news_of_runs((
			select array_agg(found.run)
			from generate_series(1, 20) as listed (run_no)
			cross join lateral (
				select run from agui.run as run where run.thread_key = agui.thread_key('', 't') and run.run_no = listed.run_no offset 0
			) as found
		))`
	for _, setting := range []string{
		`set enable_seqscan = on`, `set plan_cache_mode = force_generic_plan`, `create table planned as ` + statement,
	} {
		testdb.Exec(t, pool, setting)
	}
	insertMessages(t, pool, "t", 1000)
	for _, known := range []string{"", "analyze", `update pg_class set reltuples = 1, relpages = 1 where relnamespace = 'agui'::regnamespace and relkind in ('r', 'i')`} {
		testdb.Exec(t, pool, known)
		tables := map[string]int64{}
		read := func(table string) int64 {
			testdb.Exec(t, pool, `select pg_stat_force_next_flush()`)
			before := tables[table]
			tables[table] = testdb.Ask[int64](t, pool, fmt.Sprintf(`
				select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where schemaname = 'agui' and relname = '%s'`, table))
			return tables[table] - before
		}
		read("run")
		read("batch")
		read("run_input")
		testdb.Exec(t, pool, statement)
		// Each batch is folded, and searched for the place of its message.
		for table, most := range map[string]int64{"run": 20, "batch": 60, "run_input": 20} {
			if rows := read(table); rows > most {
				t.Errorf("%s: the texts of 20 runs read %d rows of agui.%s, want %d at most", known, rows, table, most)
			}
		}
	}
}

// Pages from the end of a thread cost the same, however long the thread is.
func TestPagesFromTheEndCostWhatTheyShow(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	lengths := []int{60, 240}
	for _, runs := range lengths {
		for number := range runs {
			input := fmt.Sprintf(`{"messages":[{"id":"u%d","role":"user","content":"question"}]}`, number)
			events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
			for piece := range 40 {
				events = append(events, json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"a%d","delta":"piece %d"}`, number, piece)))
			}
			events = append(events,
				json.RawMessage(fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"f","parentMessageId":"a%d"}`, number, number)),
				json.RawMessage(fmt.Sprintf(`{"type":"TOOL_CALL_END","toolCallId":"c%d"}`, number)),
				json.RawMessage(fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","toolCallId":"c%d","messageId":"r%d","content":%q}`, number, number, map[bool]string{true: "Error", false: "done"}[number%20 == 0])),
				json.RawMessage(`{"type":"RUN_FINISHED"}`))
			run := pgagui.RunRef{ThreadID: fmt.Sprint("t", runs), RunID: fmt.Sprint("r", number)}
			must.Have(store.Append(t.Context(), run, events, pgagui.AppendOptions{Input: json.RawMessage(input)}))(t)
		}
	}
	for _, job := range []string{`call agui.compact()`, `call agui.repack()`, `analyze`} {
		testdb.Exec(t, pool, job)
	}
	// Three messages a run, and 45 events, which are a batch. Places are looked for in a thousand events at once, which 24 runs have. The
	// row of a run is read three times: on the way back, for its input, and for its name.
	costs := []struct {
		statement string
		most      map[string]int64
	}{
		{`select * from agui.last_messages('%s', max_rows => 30)`, map[string]int64{"batch": 24, "run": 80, "run_input": 24, "message_version": 30, "snapshot": 1}},
		{`select * from agui.last_messages('%s', max_rows => 30, cursor => '91.1351')`, map[string]int64{"batch": 24, "run_input": 24, "message_version": 30, "snapshot": 1}},
		{`select * from agui.last_events('%s', max_rows => 100)`, map[string]int64{"batch": 6, "run": 5}},
		{`select * from agui.last_events('%s', 'r40', at_seq => 1830, lineage => false)`, map[string]int64{"batch": 2, "run": 2}},
		{`select * from agui.run_tool_calls('%s', 'r40')`, map[string]int64{"batch": 3, "run": 5, "run_input": 0, "message_version": 0}},
		// Without facts the logs of runs are read: of the newest, and of each its parent too.
		{`select agui.last_errors('%s', max_rows => 2)`, map[string]int64{"batch": 200}},
	}
	check := func() {
		t.Helper()
		for _, cost := range costs {
			for table, most := range cost.most {
				for _, runs := range lengths {
					statement := fmt.Sprintf(cost.statement, fmt.Sprint("t", runs))
					if rows := rowsRead(t, pool, table, statement); rows > most {
						t.Errorf("%s reads %d rows of agui.%s, want %d at most", statement, rows, table, most)
					}
				}
			}
		}
	}
	check()
	testdb.Exec(t, pool, `call agui.project()`)
	costs = costs[len(costs)-1:]
	costs[0].statement, costs[0].most = `select agui.last_errors('%s')`, map[string]int64{"batch": 12 * 4}
	check()

	// A run that has many events by itself: the page reads its end.
	events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
	for message := range 2000 {
		for range 5 {
			events = append(events, json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d","delta":"piece"}`, message)))
		}
	}
	for batch := range slices.Chunk(append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`)), 100) {
		mustAppend(t, store, "one", "r", batch)
	}
	testdb.Exec(t, pool, `call agui.compact()`)
	for statement, most := range map[string]int64{
		// A loop fetches 10 rows ahead, then 50.
		`select * from agui.last_messages('one', max_rows => 50)`: 12 + 60 + 20,
		`select * from agui.last_events('one')`:                   10 + 2,
	} {
		if rows := rowsRead(t, pool, "batch", statement); rows > most {
			t.Errorf("%s reads %d batches, want %d at most", statement, rows, most)
		}
	}
}

// A reader of a scope whose conversations are quiet keeps its place, while other scopes write. What they write costs it little.
func TestChangesOfAQuietScopeCostLittle(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const others = 20_000
	begin := func(scope, run string) {
		t.Helper()
		mustAppend(t, store.InScope(scope), "t", run, rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`))
	}
	begin("quiet", "first")
	place := ""
	read := func() (runs []string) {
		t.Helper()
		changes := must.Have(store.InScope("quiet").Changes(t.Context(), pgagui.ChangesOptions{After: place}))(t)
		for _, change := range changes {
			runs, place = append(runs, change.RunID), change.Position
		}
		return runs
	}
	if runs := read(); !slices.Equal(runs, []string{"first"}) {
		t.Fatalf("the first page has %v", runs)
	}
	begin("quiet", "second")
	wait.For(t, "the second run", func() bool { return slices.Contains(read(), "second") })
	for _, statement := range []string{
		`insert into agui.thread (thread_key, scope, thread_id) select agui.thread_key('loud-' || n, 't'), 'loud-' || n, 't' from generate_series(1, 100) as n`,
		fmt.Sprintf(`
			insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, end_seq, started_at, ended_at, n, log_bytes, repacked_at, changed_in)
			select agui.thread_key('loud-' || 1 + n %% 100, 't'), n, 'r' || n, 'finished', n, n, n, now(), now(), 1, 1, now(), pg_current_xact_id()
			from generate_series(1, %d) as n`, others),
		`vacuum analyze agui.run`,
	} {
		testdb.Exec(t, pool, statement)
	}
	wait.For(t, "the changes of others", func() bool {
		return testdb.Ask[bool](t, pool, `select count(*) > 5000 from agui.changes($1, 10000)`, place)
	})
	for _, statement := range []string{`select * from agui.changes($1, scope => 'quiet')`, `select * from agui.changes($1, scope => 'loud-7')`} {
		if rows := rowsRead(t, pool, "run", statement, place); rows > 2500 {
			t.Errorf("%s reads %d rows of agui.run, want 2500 at most", statement, rows)
		}
	}
	begin("quiet", "third")
	wait.For(t, "the third run", func() bool { return slices.Contains(read(), "third") })
	if runs := read(); len(runs) > 0 {
		t.Errorf("behind the last change are %v", runs)
	}
}

// A page of changes of all scopes reads the runs of the page, whatever the planner expects of a range of keys.
func TestAPageOfChangesReadsThePage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, statement := range []string{
		`insert into agui.thread (thread_key, scope, thread_id) select agui.thread_key('', 't' || n), '', 't' || n from generate_series(1, 100) as n`,
		`insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, end_seq, started_at, ended_at, n, log_bytes, repacked_at, changed_in)
			select agui.thread_key('', 't' || 1 + n % 100), n, 'r' || n, 'finished', n, n, n, now(), now(), 1, 1, now(), (3 + n / 40)::text::xid8
			from generate_series(1, 20000) as n`,
		`insert into agui.erasure (erased_key, runs, events, thread_uid, erased_in) select gen_random_uuid(), 1, 2, gen_random_uuid(), (3 + n / 40)::text::xid8 from generate_series(1, 20000) as n`,
		`analyze agui.run, agui.erasure`,
	} {
		testdb.Exec(t, pool, statement)
	}
	const statement = `select * from agui.changes(agui_internal.epoch() || ' changed 100 00000000-0000-0000-0000-000000000000 0', 100)`
	for _, table := range []string{"run", "erasure"} {
		if rows := rowsRead(t, pool, table, statement); rows < 40 || rows > 500 {
			t.Errorf("a page of 100 changes reads %d rows of agui.%s, want 500 at most", rows, table)
		}
	}
}

// What a scope is asked costs the same in a store of many scopes.
func TestQuestionsOfAScopeReadTheScope(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, statement := range []string{
		`create table made as
			select n, agui.thread_key('s' || n % 1000, 't' || n) as key from generate_series(1, 30000) as n order by 2`,
		`insert into agui.thread (thread_key, scope, thread_id) select key, 's' || n % 1000, 't' || n from made`,
		`insert into agui.thread_activity (thread_key, scope_key, active_at) select key, agui_internal.scope_key(key), now() from made`,
		`insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, end_seq, started_at, ended_at, n, log_bytes, repacked_at)
			select key, 1, 'r' || n, case n / 1000 % 10 when 0 then 'interrupted' else 'failed' end, 1, 9, 9, now(), now(), 9, 9, now() from made`,
		`insert into agui.projected_run (thread_key, run_no, events, bytes) select key, 1, 9, 9 from made`,
		`insert into agui.projected_interrupt (thread_key, run_no, place, interrupt_id, asked_at) select key, 1, 1, 'i', now() from made where n / 1000 % 10 = 0`,
		`insert into agui.projected_call (thread_key, run_no, place, call_id, tool, started_at, is_complete, is_answer) select key, 1, 1, 'c', 'f', now(), true, false from made`,
		`insert into agui.projected_usage (thread_key, run_no, place, model, total_tokens) select key, 1, 1, 'm', 9 from made`,
		`vacuum analyze agui.thread, agui.thread_activity, agui.projected_run, agui.projected_interrupt, agui.projected_call, agui.projected_usage`,
		`analyze agui.run`, // without a vacuum, so that rows found in an index count
		// The planner knows nothing of scopes, and expects more threads in each the more there are.
		`update pg_class set reltuples = 10000000 where oid in ('agui.thread_activity'::regclass, 'agui.thread_activity_by_time'::regclass)`,
	} {
		testdb.Exec(t, pool, statement)
	}
	for _, question := range []string{
		"waiting(", "agent_report(", "day_report(", "tool_report(", "model_report(", "threads(status => 'failed', since => now() - interval '1 hour', ",
	} {
		statement := fmt.Sprintf(`select * from agui.%sscope => 's7')`, question)
		for _, table := range []string{"thread", "thread_activity", "run", "projected_run", "projected_interrupt", "projected_call", "projected_usage"} {
			// A scope has 30 threads of a run.
			if rows := rowsReadWith(t, pool, `set local enable_seqscan = on`, table, statement); rows > 100 {
				t.Errorf("%s reads %d rows of agui.%s, want 100 at most", statement, rows, table)
			}
		}
	}
}

// A page of what waits costs the page, whatever was answered or has expired, of all scopes, and in a store of one scope.
func TestWhatWaitsReadsAPage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, statement := range []string{
		`create table made as select n, agui.thread_key('', 't' || n) as key from generate_series(1, 5000) as n order by 2`,
		`insert into agui.thread (thread_key, scope, thread_id) select key, '', 't' || n from made`,
		`insert into agui.thread_activity (thread_key, scope_key, active_at) select key, agui_internal.scope_key(key), now() from made`,
		// One of ten threads waits. It is too late to answer another one, and the others went on.
		`insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, end_seq, started_at, ended_at, n, log_bytes, repacked_at)
			select key, run_no, 'r' || run_no, 'interrupted', 9 * run_no - 8, 9 * run_no, 9 * run_no, now(), now(), 9, 9, now()
			from made cross join generate_series(1, 2) as run_no where run_no = 1 or n % 10 > 1`,
		`insert into agui.projected_interrupt (thread_key, run_no, place, asked_at, expires_at)
			select key, 1, 1, now() + n * interval '1 second', case n % 10 when 1 then now() end from made order by n`,
		`vacuum analyze agui.thread, agui.thread_activity, agui.run, agui.projected_interrupt`,
	} {
		testdb.Exec(t, pool, statement)
	}
	waiting := func() int {
		return testdb.Ask[int](t, pool, `select count(*) from agui.waiting(1000)`)
	}
	// In a store that did not have the column, the job has not looked at them yet.
	if n := waiting(); n != 500 {
		t.Errorf("%d wait, want 500", n)
	}
	testdb.Exec(t, pool, `do $$ begin while agui_internal.settle_interrupts() > 0 loop end loop; end $$`)
	if n := waiting(); n != 500 {
		t.Errorf("after the job %d wait, want 500", n)
	}
	for _, statement := range []string{
		`select * from agui.waiting(10)`, `select * from agui.waiting(10, scope => '')`,
		`select agui_internal.settle_interrupts()`, // there is nothing left to do
	} {
		for _, table := range []string{"thread", "thread_activity", "run", "projected_interrupt"} {
			// Which index the planner takes for cheaper must not matter.
			if rows := rowsReadWith(t, pool, `set local random_page_cost = 100`, table, statement); rows > 20 {
				t.Errorf("%s reads %d rows of agui.%s, want 20 at most", statement, rows, table)
			}
		}
	}
}

// What a read looks at grows with the thread and not with its square, also in tables without statistics, as those of a new store: there
// the planner takes each look-up for one of few rows, and may read all runs of the thread for each.
func TestReadsOfYoungTablesAreLinear(t *testing.T) {
	t.Parallel()
	const size, times = 20, 4
	pool := testdb.Pool(t)
	for thread, runs := range map[string]int{"few": size, "many": size * times} {
		testdb.Exec(t, pool, `
			select agui.append($1, 'r' || n, format('[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m%s","role":"assistant"},
				{"type":"TEXT_MESSAGE_CONTENT","messageId":"m%s","delta":"x"},{"type":"TEXT_MESSAGE_END","messageId":"m%s"},{"type":"RUN_FINISHED"}]', n, n, n)::json,
				input => format('{"messages":[{"id":"u%s","role":"user","content":"%s"}]}', n, repeat('x', 5000))::json)
			from generate_series(1, $2::int) as n`, thread, runs)
	}
	calls := callsOf(t, pool, map[string]string{
		"thread_id": "$1", "run_id": `'r7'`, "run_a": `'r7'`, "run_b": `'r9'`, "message_id": `'m7'`, "channels": `'{}'`, "messages": `'[]'`,
	}, func(f *publicFunction) bool {
		if len(f.Required) == 0 {
			f.Required = []string{"thread_id"}
		}
		return f.Kind == "f" && f.Volatility != "v" && len(f.Arguments) > 0 && f.Arguments[0] == "thread_id"
	})
	if len(calls) < 45 {
		t.Fatalf("%d functions read threads", len(calls))
	}
	compare := func(when string) {
		for _, call := range calls {
			var rows [2]int64
			for i, thread := range []string{"few", "many"} {
				tx := testdb.Begin(t, pool)
				count := func() int64 {
					return testdb.Ask[int64](t, tx, `select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables`)
				}
				before := count()
				if _, err := tx.Exec(t.Context(), `select * from `+call, thread); err != nil && !strings.Contains(err.Error(), "(SQLSTATE UI") {
					t.Fatalf("%s: %v", call, err)
				} else if err == nil {
					rows[i] = count() - before
				}
				tx.Rollback(t.Context())
			}
			if most := 2 * times * max(rows[0], 2*size); rows[1] > most {
				t.Errorf("%s: %s reads %d rows of a thread, and %d of one that is %d times as long", when, call, rows[0], rows[1], times)
			}
		}
	}
	compare("before the jobs")
	testdb.Exec(t, pool, `call agui.compact()`)
	testdb.Exec(t, pool, `call agui.project()`)
	compare("after the jobs")
}
