package cutproxy_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/cutproxy"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// start starts a proxy in front of a database with an empty table named number. Beside it is a connection without it.
func start(t *testing.T) (*cutproxy.Proxy, *pgx.Conn) {
	t.Helper()
	database := testdb.Empty(t)
	beside := connect(t, database)
	testdb.Exec(t, beside, `create table number (n int primary key)`)
	return cutproxy.Start(t, database), beside
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	connection := must.Have(pgx.Connect(t.Context(), address))(t)
	t.Cleanup(func() { connection.Close(context.Background()) })
	return connection
}

const insert = `insert into number values ($1)`

// mustInsert fails the test when the client gets no good answer.
func mustInsert(t *testing.T, connection pgagui.DB, n int) {
	t.Helper()
	testdb.Exec(t, connection, insert, n)
}

func wantNumbers(t *testing.T, beside *pgx.Conn, want ...int) {
	t.Helper()
	got := testdb.List[int](t, beside, `select n from number order by n`)
	if !slices.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
}

func wantCutsLeft(t *testing.T, proxy *cutproxy.Proxy, want int) {
	t.Helper()
	if got := proxy.CutsLeft(); got != want {
		t.Errorf("%d cuts are left, want %d", got, want)
	}
}

func TestCommittedAlthoughTheClientGotAnError(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			proxy, beside := start(t)
			address := withMode(t, proxy.URL(), mode)
			connection := connect(t, address)
			mustInsert(t, connection, 1) // some modes prepare the statement here

			proxy.CutBeforeAnswer(2, "insert into number")
			for _, n := range []int{2, 3} {
				if err := connection.Ping(t.Context()); err != nil {
					t.Fatalf("a statement that is not meant: %v", err)
				}
				if _, err := connection.Exec(t.Context(), insert, n); err == nil {
					t.Errorf("insert %d was answered", n)
				}
				if !connection.IsClosed() {
					t.Error("the connection is still there")
				}
				connection = connect(t, address)
			}
			wantNumbers(t, beside, 1, 2, 3)
			wantCutsLeft(t, proxy, 0)
			mustInsert(t, connection, 4)
		})
	}
}

func withMode(t *testing.T, address, mode string) string {
	t.Helper()
	parsed := must.Have(url.Parse(address))(t)
	parameters := parsed.Query()
	parameters.Set("default_query_exec_mode", mode)
	parsed.RawQuery = parameters.Encode()
	return parsed.String()
}

func TestTransactionIsCutAtItsCommit(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	connection := connect(t, proxy.URL())
	proxy.CutBeforeAnswer(1, "insert")
	tx := must.Have(connection.Begin(t.Context()))(t)
	mustInsert(t, tx, 1)
	var count int
	if err := tx.QueryRow(t.Context(), `select count(*) from number`).Scan(&count); err != nil || count != 1 {
		t.Errorf("the transaction counts %d, error %v", count, err)
	}
	wantNumbers(t, beside)
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the commit was answered")
	}
	wantNumbers(t, beside, 1)
	wantCutsLeft(t, proxy, 0)
}

func TestOnlyWhatCommitsIsCut(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	connection := connect(t, proxy.URL())
	mustInsert(t, connection, 1)
	proxy.CutBeforeAnswer(1, "")

	const invalid = `insert into number values (1)`
	if _, err := connection.Exec(t.Context(), invalid); err == nil || connection.IsClosed() {
		t.Errorf("a statement that fails gives %v", err)
	}
	for _, spoil := range []string{"", invalid} {
		tx, err := connection.Begin(t.Context())
		must.Do(t, err)
		mustInsert(t, tx, 2)
		if spoil == "" {
			err = tx.Rollback(t.Context())
		} else if _, err = tx.Exec(t.Context(), spoil); err != nil {
			if err = tx.Commit(t.Context()); err == pgx.ErrTxCommitRollback {
				err = nil
			}
		}
		if err != nil || connection.IsClosed() {
			t.Errorf("a transaction that is undone gives %v", err)
		}
	}
	wantCutsLeft(t, proxy, 1)

	// A savepoint undone does not undo the transaction.
	tx := must.Have(connection.Begin(t.Context()))(t)
	mustInsert(t, tx, 3)
	savepoint := must.Have(tx.Begin(t.Context()))(t)
	mustInsert(t, savepoint, 4)
	must.Do(t, savepoint.Rollback(t.Context()))
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the commit was answered")
	}
	wantNumbers(t, beside, 1, 3)
	wantCutsLeft(t, proxy, 0)
}

func TestCopyIsCutAfterItsRows(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	connection := connect(t, proxy.URL())
	proxy.CutBeforeAnswer(1, "copy")
	_, err := connection.CopyFrom(t.Context(), pgx.Identifier{"number"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}, {2}}))
	if err == nil {
		t.Error("the copy was answered")
	}
	wantNumbers(t, beside, 1, 2)
}

func TestNoByteOfALongAnswerArrives(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	connection := connect(t, proxy.URL())
	proxy.CutBeforeAnswer(1, "insert")
	rows, err := connection.Query(t.Context(), `insert into number select n from generate_series(1, 3) as n returning repeat('x', 1000000)`)
	if err == nil {
		if rows.Next() {
			t.Error("a row has arrived")
		}
		err = rows.Err()
	}
	if err == nil {
		t.Error("the insert was answered")
	}
	wantNumbers(t, beside, 1, 2, 3)
}

func TestAnswerThatComesBeforeTheEndOfItsRequestIsHeldBack(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	connection := connect(t, proxy.URL()).PgConn()
	proxy.CutBeforeAnswer(1, "insert")
	pipeline := connection.StartPipeline(t.Context())
	pipeline.SendQueryParams(`insert into number values (1)`, nil, nil, nil, nil)
	pipeline.SendFlushRequest()
	must.Do(t, pipeline.Flush())
	for answered := false; !answered; {
		err := beside.QueryRow(t.Context(), `
			select state = 'active' and wait_event is not distinct from 'ClientRead' and query like 'insert%'
			from pg_stat_activity where pid = $1`, connection.PID()).Scan(&answered)
		must.Do(t, err)
	}
	must.Do(t, pipeline.Sync())
	if result, err := pipeline.GetResults(); err == nil {
		t.Errorf("%T has arrived", result)
	}
	_ = pipeline.Close() // reports the cut
	wantNumbers(t, beside, 1)
}

func TestRequestsSentTogetherAreToldApart(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	proxy.CutBeforeAnswer(1, "values (2)")
	pipeline := connect(t, proxy.URL()).PgConn().StartPipeline(t.Context())
	for _, statement := range []string{`insert into number values (1)`, `insert into number values (2)`, `insert into number values (3)`} {
		pipeline.SendQueryParams(statement, nil, nil, nil, nil)
		must.Do(t, pipeline.Sync())
	}
	var results []string
	for {
		result, err := pipeline.GetResults()
		if err != nil {
			break
		}
		if reader, ok := result.(*pgconn.ResultReader); ok {
			tag, err := reader.Close()
			if err != nil {
				break
			}
			results = append(results, tag.String())
		}
	}
	if err := pipeline.Close(); err == nil {
		t.Error("all was answered")
	}
	if len(results) != 1 {
		t.Errorf("%d requests were answered, want that before the cut alone", len(results))
	}
	// The server reads on what had arrived before the cut.
	wantCutsLeft(t, proxy, 0)
	var count int
	if err := beside.QueryRow(t.Context(), `select count(*) from number where n <= 2`).Scan(&count); err != nil || count != 2 {
		t.Errorf("%d of the first two inserts are there, error %v", count, err)
	}
}

func TestCutNowEndsAllConnections(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	first, second := connect(t, proxy.URL()), connect(t, proxy.URL())
	waiting := make(chan error, 1)
	go func() {
		_, err := first.WaitForNotification(t.Context())
		waiting <- err
	}()
	proxy.CutNow()
	if err := <-waiting; err == nil {
		t.Error("a connection that waits was not cut")
	}
	if err := second.Ping(t.Context()); err == nil {
		t.Error("an idle connection was not cut")
	}
	mustInsert(t, connect(t, proxy.URL()), 1)
	wantNumbers(t, beside, 1)
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	open := connect(t, proxy.URL())
	proxy.Refuse(true)
	if _, err := pgx.Connect(t.Context(), proxy.URL()); err == nil {
		t.Error("a new connection was let through")
	}
	mustInsert(t, open, 1)
	proxy.Refuse(false)
	mustInsert(t, connect(t, proxy.URL()), 2)
	wantNumbers(t, beside, 1, 2)
}

func TestTheAddressKeepsItsSettings(t *testing.T) {
	t.Parallel()
	proxy := cutproxy.Start(t, testdb.Empty(t)+"&options=-c%20statement_timeout%3D7s%20-c%20lock_timeout%3D1s")
	var timeouts string
	err := connect(t, proxy.URL()).QueryRow(t.Context(), `select current_setting('statement_timeout') || ' ' || current_setting('lock_timeout')`).Scan(&timeouts)
	if err != nil || timeouts != "7s 1s" {
		t.Errorf("%q, %v", timeouts, err)
	}
}

func TestHeldTrafficArrivesLater(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	connection := connect(t, proxy.URL())
	answered := insertWhileHeld(t, proxy, connection, 1)
	wantNumbers(t, beside)
	proxy.Release()
	must.Report(t, <-answered)
	wantNumbers(t, beside, 1)
}

func TestHeldTrafficIsLostWithItsConnection(t *testing.T) {
	t.Parallel()
	proxy, beside := start(t)
	answered := insertWhileHeld(t, proxy, connect(t, proxy.URL()), 1)
	proxy.CutNow()
	if err := <-answered; err == nil {
		t.Error("the insert was answered")
	}
	proxy.Release()
	mustInsert(t, connect(t, proxy.URL()), 2)
	wantNumbers(t, beside, 2)
}

// insertWhileHeld sends an insert into a network that hangs, and gives it the time that it would have needed.
func insertWhileHeld(t *testing.T, proxy *cutproxy.Proxy, connection *pgx.Conn, n int) (answered <-chan error) {
	t.Helper()
	proxy.Hold()
	result := make(chan error, 1)
	go func() {
		_, err := connection.Exec(t.Context(), insert, n)
		result <- err
	}()
	select {
	case err := <-result:
		t.Fatalf("an answer came through a network that hangs: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	return result
}
