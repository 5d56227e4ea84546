package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// graphRowsRead counts the rows of the tables of graphs that the transaction has read.
func graphRowsRead(t *testing.T, tx pgx.Tx) int {
	t.Helper()
	return testdb.Ask[int](t, tx, `select sum(seq_tup_read + idx_tup_fetch) from pg_stat_xact_user_tables where relname ~ '^(channel|checkpoint)'`)
}

// A connection that planned its statements while the tables were nearly empty reads no more rows later than a call needs.
func TestGraphCheckpointsReadWhatTheyNeed(t *testing.T) {
	t.Parallel()
	for name, analyzed := range map[string]bool{"analyzed when nearly empty": true, "never analyzed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			connection := must.Have(pool.Acquire(t.Context()))(t)
			defer connection.Release()
			put := func(from, to int) string {
				return fmt.Sprintf(`select count(agui.put_checkpoint('t', 'a' || n, '{"channel_versions":{"list":1}}', parent_id => 'a' || n - 1, channels => '{list}',
					versions => array[n::text], types => '{json}', channel_values => json_build_array(json_build_array(n, repeat('x', 300))))),
					count(agui.put_checkpoint('t', 'a', '{}', namespace => 'node:' || n)) from generate_series(%d, %d) as n`, from, to)
			}
			testdb.Exec(t, connection, put(1, 5))
			if analyzed {
				testdb.Exec(t, connection, `analyze agui.channel, agui.channel_part, agui.channel_value, agui.checkpoint, agui.checkpoint_write`)
			}
			const many = 3000
			channelRows := 10 * many
			if analyzed {
				// Where the statistics say that there is one channel, PostgreSQL finds those of a thread by its key, and then compares
				// names. That lasts until the next analyze.
				channelRows = many * many
			}
			sequence := `(select '[[' || string_agg(n::text, ',' order by %s) || ']]' from generate_series(1, 3000) as n)::json`
			shuffled := fmt.Sprintf(sequence, `md5(n::text)`)
			for _, step := range []struct {
				name, statement string
				most            int // rows read
			}{
				{"warm up", put(6, 20), 1000},
				{"checkpoints and namespaces", put(21, 500), 480 * 20},
				{"a list", `select agui.put_checkpoint('t', 'list', '{"channel_versions":{"list":"l"}}', channels => '{list}', versions => '{l}', types => '{json}',
					channel_values => ` + fmt.Sprintf(sequence, `n`) + `)`, 4 * many},
				{"the list shuffled", `select agui.put_checkpoint('t', 'shuffled', '{"channel_versions":{"list":"s"}}', channels => '{list}', versions => '{s}', types => '{json}',
					channel_values => ` + shuffled + `)`, 4 * many},
				{"the list shuffled, as a write", `select agui.put_checkpoint_writes('t', 'shuffled', 'task', '{list}', '{json}', ` + shuffled + `)`, 4 * many},
				{"read the shuffled list", `select count(*) from agui.checkpoint_contents('t', 'shuffled', '')`, 4 * many},
				{"many channels", `select agui.put_checkpoint('t', 'channels', json_build_object('channel_versions', json_object_agg('c' || n, n)), channels => array_agg('c' || n),
					versions => array_agg(n::text), types => array_agg('json'::text), channel_values => json_agg(n)) from generate_series(1, 3000) as n`, channelRows},
				{"read many channels", `select count(*) from agui.checkpoint_contents('t', 'channels', '')`, 5 * many},
				{"read few of many", `select count(*) from agui.checkpoint_contents('t', namespace => '', before_id => 'a9', max_rows => 50)`, 50 * 10},
				{"history", `select count(*) from agui.channel_history('t', '{none}', 'a500')`, 500 * 10},
				{"lineage", `select count(*) from agui.checkpoint_lineage('t', 'a500')`, 500 * 10},
			} {
				tx := testdb.Begin(t, connection)
				before := graphRowsRead(t, tx) // of earlier transactions, not reported yet
				if _, err := tx.Exec(t.Context(), step.statement); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if rows := graphRowsRead(t, tx) - before; rows > step.most {
					t.Errorf("%s reads %d rows, want at most %d", step.name, rows, step.most)
				}
				must.Do(t, tx.Commit(t.Context()))
			}
		})
	}
}

// Arrays have the bounds that callers gave them.
func TestGraphCheckpointsTakeArraysWithAnyBounds(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.put_checkpoint('t', 'c', '{"channel_versions":{"a":1,"b":2}}', channels => '[5:6]={a,b}', versions => '[-3:-2]={1,2}', types => '[0:1]={json,json}', channel_values => '["A","B"]')`)
	testdb.Exec(t, pool, `select agui.put_checkpoint_writes('t', 'c', 'task', '[5:6]={a,b}', '[0:1]={json,json}', '["A","B"]', '[2:3]={7,8}')`)
	got := testdb.List[string](t, pool, `select concat_ws(' ', channel, version, place, body) from agui.checkpoint_contents('t') where kind in ('value', 'write') order by 1`)
	if want := `a 1 "A", a 7 "A", b 2 "B", b 8 "B"`; strings.Join(got, ", ") != want {
		t.Errorf("the contents are %s, want %s", strings.Join(got, ", "), want)
	}
}

// A call may name a place twice, as a node with several interrupts does.
func TestGraphWritesOfOneCallThatShareAPlace(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.put_checkpoint('t', 'c', '{}')`)
	for range 2 { // the call is idempotent
		testdb.Exec(t, pool, `select agui.put_checkpoint_writes('t', 'c', 'task', '{r,r,a,b}', '{json,json,json,json}', '[[1],[1,2],"first","second"]', '{-4,-4,3,3}')`)
		got := testdb.List[string](t, pool, `select concat_ws(' ', channel, place, body) from agui.checkpoint_contents('t') where kind = 'write' order by place`)
		if want := `r -4 [1,2], a 3 "first"`; strings.Join(got, ", ") != want {
			t.Errorf("the writes are %s, want %s", strings.Join(got, ", "), want)
		}
	}
}

// A checkpoint of a graph and one of an engine with the same id: the second transaction is refused, even if it began before the
// first one ended.
func TestSavedCheckpointsStayWhenTransactionsMeet(t *testing.T) {
	t.Parallel()
	for _, calls := range [][2]string{
		{`select agui.save_checkpoint('t', 'c', '"first"')`, `select agui.save_checkpoint('t', 'c', '"second"')`},
		{`select agui.save_checkpoint('t', 'c', '"first"')`, `select agui.put_checkpoint('t', 'c', '{}')`},
		{`select agui.put_checkpoint('t', 'c', '{}')`, `select agui.save_checkpoint('t', 'c', '"second"')`},
	} {
		pool := testdb.Pool(t)
		testdb.Exec(t, pool, `select agui.put_checkpoint_writes('t', 'c', 'task', '{a}', '{json}', '[1]')`) // the row exists
		tx := testdb.Begin(t, pool)
		testdb.Exec(t, tx, calls[0])
		second := make(chan error)
		go func() {
			_, err := pool.Exec(t.Context(), calls[1])
			second <- err
		}()
		for testdb.List[string](t, pool, `select count(*)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)[0] == "0" {
			if t.Context().Err() != nil {
				t.Fatal("the second call did not wait")
			}
		}
		must.Do(t, tx.Commit(t.Context()))
		if err := <-second; testdb.State(err) != "UI007" {
			t.Errorf("%s, then %s: error %v, want UI007", calls[0], calls[1], err)
		}
	}
}
