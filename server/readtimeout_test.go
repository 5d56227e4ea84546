package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
)

// A read that takes too long is cancelled, also in the database, and says what the client can do. A write takes what it takes.
func TestReadsThatTakeTooLong(t *testing.T) {
	t.Parallel()
	for _, setsScope := range []bool{false, true} {
		t.Run(fmt.Sprint("with agui.scope ", setsScope), func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			testdb.Exec(t, pool, `select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)
			p := serveStore(t, pgagui.New(pool, &pgagui.Config{SetScope: setsScope}), server.Options{ReadTimeout: 300 * time.Millisecond})
			block := testdb.Begin(t, pool)
			testdb.Exec(t, block, `lock table agui.thread in access exclusive mode`)
			for _, path := range []string{"/threads", "/threads/t/history", "/threads/t/messages", "/threads/t/usage"} {
				if got := p.json(422, "GET", path, ""); !strings.Contains(fmt.Sprint(got["detail"]), "--read-timeout") {
					t.Errorf("%s: %v", path, got)
				}
			}
			wait.For(t, "the database to cancel what no client waits for", func() bool {
				return testdb.Ask[int](t, pool, `select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 0
			})
			written := make(chan int, 1)
			go func() { written <- p.request("PATCH", "/threads/t", `{"title":"a title"}`).StatusCode }()
			wait.For(t, "the write to wait for longer than a read may", func() bool {
				return testdb.Ask[bool](t, pool, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
					and query_start < clock_timestamp() - interval '500 ms')`)
			})
			must.Do(t, block.Rollback(t.Context()))
			if status := <-written; status != 200 {
				t.Errorf("the write: status %d", status)
			}
			p.json(200, "GET", "/threads/t", "")
		})
	}
}
