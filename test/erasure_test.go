package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/markdown"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// Who has what is left of erased threads, a dump for instance, cannot try names against it; and it is for maintainers.
func TestNamesCannotBeGuessedFromErasures(t *testing.T) {
	t.Parallel()
	var keys []string
	for range 2 {
		pool := testdb.Pool(t)
		for _, statement := range []string{
			`delete from agui_internal.erasure_salt`, `call agui.grant_access()`, // databases of tests are copies
			`select agui.append('alice', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'clinic')`,
			`select agui.append('bob', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'clinic')`,
			`select agui.erase('alice', 'on request', 'clinic'), agui.erase('bob', scope => 'clinic')`,
		} {
			testdb.Exec(t, pool, statement)
		}
		row := testdb.List[string](t, pool, `select erasure::text from agui.erasure where reason is not null`)[0]
		for _, guess := range append(testdb.List[string](t, pool, `
			select part from (select replace(agui.thread_key('clinic', 'alice')::text, '-', '')) as key (digits),
				unnest(array[left(key.digits, 8), left(key.digits, 16), right(key.digits, 12)]) as part`), "alice", "clinic") {
			if strings.Contains(strings.ReplaceAll(row, "-", ""), guess) {
				t.Errorf("%s holds %s", row, guess)
			}
		}
		// Both are of one scope; the database of another install has other keys for them.
		scopes := testdb.List[string](t, pool, `select distinct left(erased_key::text, 18) from agui.erasure`)
		if len(scopes) != 1 {
			t.Errorf("two threads of a scope have keys that begin with %v", scopes)
		}
		keys = append(keys, scopes[0])
		for _, refused := range []string{
			`set role agui_reader; table agui.erasure`, `set role agui_writer; table agui.erasure`, `set role agui_worker; table agui.erasure`,
			`set role agui_maintainer; table agui_internal.erasure_salt`, `set role agui_maintainer; select agui_internal.erasure_key(agui.thread_key('clinic', 'bob'))`,
			`set role agui_maintainer; update agui.erasure set reason = 'x'`,
		} {
			if _, err := pool.Exec(t.Context(), "begin; "+refused); err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("%s: %v", refused, err)
			}
			testdb.Exec(t, pool, "rollback")
		}
		if _, err := pool.Exec(t.Context(), `begin; set local role agui_maintainer; table agui.erasure; commit`); err != nil {
			t.Error(err)
		}
		if _, err := pool.Exec(t.Context(), `begin; set local role agui_reader; select agui.poll('{alice}', '{2}', scopes => '{clinic}'); select agui.stats(); commit`); err != nil {
			t.Error(err)
		}
	}
	if keys[0] == keys[1] {
		t.Error("two installs have the same keys")
	}
}

// A schema that was restored without its data has no salt, so it cannot recognize erased threads. Appends fail until agui.grant_access makes a salt.
func TestErasuresNeedTheirSalt(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `delete from agui_internal.erasure_salt`)
	if _, err := pool.Exec(t.Context(), `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`); err == nil ||
		!strings.Contains(err.Error(), "agui_internal.erasure_salt") {
		t.Errorf("got %v", err)
	}
	testdb.Exec(t, pool, `call agui.grant_access()`)
	if _, err := pool.Exec(t.Context(), `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]'), agui.erase('t')`); err != nil {
		t.Error(err)
	}
	was := testdb.List[string](t, pool, `select salt::text from agui_internal.erasure_salt`)[0]
	if _, err := pool.Exec(t.Context(), `call agui.grant_access()`); err != nil || was != testdb.List[string](t, pool, `select salt::text from agui_internal.erasure_salt`)[0] {
		t.Errorf("the salt has changed (%v)", err)
	}
}

// The commands of docs/erasure.md run, and leave no name of an erased thread in the statistics.
func TestWhatErasingLeavesCanBeCleared(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	run := func(statement string) {
		t.Helper()
		testdb.Exec(t, pool, statement)
	}
	for _, thread := range []string{"s3cret thread", "other thread"} {
		run(`select agui.append('` + thread + `', run, '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"` + thread + `","delta":"x"},{"type":"RUN_FINISHED"}]')
			from unnest('{s3cret run,b}'::text[]) as run`)
		run(`select agui.set_thread('` + thread + `', title => '` + thread + `', metadata => '{"x":"` + thread + `"}'), agui.save_session_state('` + thread + `', '` + thread + `', '1')`)
	}
	run(`call agui.compact()`)
	run(`analyze`)
	const named = `select coalesce(string_agg(tablename || '.' || attname, ' ' order by 1), '') from pg_stats
		where schemaname = 'agui' and concat(most_common_vals, histogram_bounds) like '%s3cret%'`
	if testdb.List[string](t, pool, named)[0] == "" {
		t.Fatal("the statistics hold no name: the test shows nothing")
	}
	run(`select agui.erase('s3cret thread')`)
	run(`select agui.erase('other thread')`)
	run(`select agui.append('third', 'r', '[{"type":"RUN_STARTED"}]')`)
	blocks := markdown.Code(t, "../docs/erasure.md", "sql")
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	left := "all"
	// A transaction that still sees the rows keeps them: an autovacuum worker's, for instance.
	wait.Until(func() bool {
		for _, block := range blocks {
			for statement := range strings.SplitSeq(block, ";\n") {
				if strings.TrimSpace(statement) != "" {
					run(statement)
				}
			}
		}
		left = testdb.List[string](t, pool, named)[0]
		return left == ""
	})
	if left != "" {
		t.Errorf("names in the statistics of %s", left)
	}
}

// keysLeft names the tables with a row that holds the key of a thread, however it is written.
func keysLeft(t *testing.T, pool *pgxpool.Pool, key string) (tables []string) {
	t.Helper()
	for _, table := range testdb.List[string](t, pool, `
		select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('agui', 'agui_internal') order by 1`) {
		if testdb.Ask[bool](t, pool, `select exists (select from `+table+` as stored where strpos(replace(stored::text, '-', ''), replace($1, '-', '')) > 0)`, key) {
			tables = append(tables, table)
		}
	}
	return tables
}

// No table holds the key of an erased thread, as names can be tried against it. Readers of changes go on where they were.
func TestNoTableHoldsTheKeyOfAnErasedThread(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Fill(t, pool)
	key := testdb.Ask[string](t, pool, `select agui.thread_key('', 'kept')::text`)
	before := testdb.Ask[string](t, pool, `select agui.thread_key('acme', 'scoped')::text`)
	epoch := testdb.Ask[string](t, pool, `select agui_internal.epoch()`)
	// The places of readers that read the thread last: of all runs, of changes, of all scopes, of its scope.
	places := map[string]string{}
	wait.For(t, "older transactions of the server have ended, so that readers see the runs", func() bool {
		return testdb.Ask[bool](t, pool, `select max(changed_in::text::bigint)::text::xid8 < pg_snapshot_xmin(pg_current_snapshot()) from agui.run`)
	})
	for i, row := range testdb.List[string](t, pool, `select concat_ws(' ', changed_in, thread_key, run_no) from agui.run where thread_key = $1 and run_no in (1, 2)`, key) {
		for kind, scope := range map[string]string{"all": "null", "changed": "''"} {
			places[fmt.Sprint(kind, i)] = scope
			testdb.Exec(t, pool, `select agui.move_consumer($1, $2, `+scope+`)`, fmt.Sprint(kind, i), strings.Join([]string{epoch, kind, row}, " "))
		}
	}
	testdb.Exec(t, pool, `update agui_internal.webhook_position set position = (select position from agui.consumer where consumer = 'changed0')`)
	testdb.Exec(t, pool, `update agui_internal.projection set thread_key = $1, run_no = 3, scan_key = $1, scan_no = 2`, key)
	late := testdb.Ask[string](t, pool, `select position from agui.consumer where consumer = 'changed0'`)

	held := keysLeft(t, pool, key)
	for _, table := range []string{"agui.thread", "agui.consumer", "agui_internal.webhook_position", "agui_internal.webhook_request", "agui_internal.projection", "agui_internal.job_note"} {
		if !slices.Contains(held, table) {
			t.Errorf("%s does not hold the key: the test shows nothing", table)
		}
	}
	testdb.Exec(t, pool, `select agui.lift_hold('kept')`)
	unread := func(consumer string) []string {
		return testdb.List[string](t, pool, `select concat_ws(' ', scope, thread_id, run_id) from agui.consume($1, scope => `+places[consumer]+`)
			where not is_erased and thread_id <> 'kept' order by 1`, consumer)
	}
	was := map[string][]string{}
	for consumer := range places {
		was[consumer] = unread(consumer)
	}
	testdb.Exec(t, pool, `select agui.erase('kept')`)
	if left := keysLeft(t, pool, key); left != nil {
		t.Errorf("tables with the key of an erased thread: %v", left)
	}
	for consumer, want := range was {
		if got := unread(consumer); !slices.Equal(got, want) {
			t.Errorf("consumer %s reads %q, and would have read %q without the erasure", consumer, got, want)
		}
	}
	if now := testdb.Ask[string](t, pool, `select concat_ws(' ', thread_key, run_no, scan_key, scan_no) from agui_internal.projection`); key > before && strings.Count(now, before) != 2 {
		t.Errorf("the projection is at %s, want both places at the run before, of %s", now, before)
	}

	// A reader that read the thread before it was erased, and comes back afterwards.
	testdb.Exec(t, pool, `select agui.move_consumer('late', $1)`, late)
	webhook := testdb.Ask[string](t, pool, `select position from agui_internal.webhook_position`)
	if !testdb.Ask[bool](t, pool, `select agui_internal.add_webhook_requests('hook', $1, $2, '{}', '{}', '{}')`, webhook, late) {
		t.Error("the webhook did not move")
	}
	if left := keysLeft(t, pool, key); left != nil {
		t.Errorf("tables with the key afterwards: %v", left)
	}
}
