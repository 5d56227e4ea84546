package test

import (
	"strings"
	"testing"

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
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
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
