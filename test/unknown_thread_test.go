package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// A join of own rows with the calls that read a thread goes on where a row's thread does not exist, if the session asks for that.
func TestReadsOfUnknownThreadsAreEmpty(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.append('there', 'r', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"},{"type":"RUN_FINISHED"}]')`)
	const join = `select count(*)::int from (values ('there'), ('elsewhere')) as mine (id) cross join lateral agui.messages(mine.id)`
	if _, err := pool.Exec(t.Context(), join); err == nil || !strings.Contains(err.Error(), `thread "elsewhere" is unknown`) {
		t.Errorf("without the setting: %v", err)
	}
	connection := testdb.Acquire(t, pool)
	testdb.Exec(t, connection, `set agui.unknown_thread = 'empty'`)
	if got := testdb.Ask[int](t, connection, join); got != 1 {
		t.Errorf("got %d messages of a thread that is there and one that is not, want 1", got)
	}
	// Every call that reads one thread and needs to be given no more than its name. What returns a value has null, and usage a row of sums.
	readers := testdb.Ask[[]string](t, pool, `
		select array_agg(oid::regproc::text order by 1) from pg_proc
		where pronamespace = 'agui'::regnamespace and provolatile <> 'v' and proargnames[1] = 'thread_id' and pronargs - pronargdefaults = 1
			and proretset and proname not in ('attach', 'verify', 'usage')`)
	if len(readers) < 15 {
		t.Errorf("only %v", readers)
	}
	for _, reader := range readers {
		var rows int
		err := connection.QueryRow(t.Context(), fmt.Sprintf(`select count(*)::int from %s('elsewhere') as row `, reader)).Scan(&rows)
		if err != nil || rows != 0 {
			t.Errorf("%s has %d rows of a thread that does not exist, %v", reader, rows, err)
		}
	}
	if _, err := connection.Exec(t.Context(), `select agui.abandon('elsewhere', 'r')`); err == nil || !strings.Contains(err.Error(), "is unknown") {
		t.Errorf("a call that writes: %v", err)
	}
	testdb.Exec(t, connection, `reset agui.unknown_thread`)
}
