package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A call that ends several runs and a call that requests all of them to stop do not wait for each other.
func TestAStopRequestBesideTheEndsOfRuns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	call := func(run, events string) appendCall {
		return appendCall{thread: new("t"), run: &run, events: &events, parallel: new(true)}
	}
	if _, err := appendMany(pool, []appendCall{
		call("root", `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]`),
		call("a", `[{"type":"RUN_STARTED","parentRunId":"root"}]`),
		call("b", `[{"type":"RUN_STARTED","parentRunId":"root"}]`),
	}, ""); err != nil {
		t.Fatal(err)
	}
	writer := begin(t, pool, pgx.ReadCommitted)
	finish := func(run string) {
		t.Helper()
		if answers, err := appendMany(writer, []appendCall{call(run, `[{"type":"RUN_FINISHED"}]`)}, ""); err != nil || answers[0].code != "" {
			t.Fatalf("run %s: %v %v", run, answers, err)
		}
	}
	finish("b")
	conn := testdb.Acquire(t, pool)
	asked := make(chan error, 1)
	go func() {
		var runs int
		err := conn.QueryRow(ctx, `select agui.request_stop('t')`).Scan(&runs)
		if err == nil && runs != 0 {
			err = fmt.Errorf("%d runs were asked to stop, want none: all have ended", runs)
		}
		asked <- err
	}()
	for waits := false; !waits; {
		must.Do(t, pool.QueryRow(ctx, `select cardinality(pg_blocking_pids($1::int)) > 0`, conn.Conn().PgConn().PID()).Scan(&waits))
	}
	finish("a")
	must.Do(t, writer.Commit(ctx))
	must.Report(t, <-asked)
}
