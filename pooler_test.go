package pgagui_test

// Recorder and Follow through PgBouncer in transaction mode.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/pooler"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// throughPooler starts a PgBouncer in transaction mode, and returns an address with what ErrPreparedStatement says to add.
func throughPooler(t testing.TB, address string) string {
	return pooler.Start(t, address) + "&default_query_exec_mode=exec"
}

func TestAPoolThatPreparesStatementsIsToldWhatToSet(t *testing.T) {
	t.Parallel()
	address := pooler.Start(t, testdb.New(t))
	list := func() error {
		_, err := pgagui.New(testdb.Connect(t, address), nil).Threads(t.Context(), pgagui.ThreadsOptions{})
		return err
	}
	err := list() // the first one prepares the statement for the next, which gets the same connection of the server
	for range 10 {
		if err == nil {
			err = list()
		}
	}
	if err == nil {
		t.Skip("this PgBouncer keeps prepared statements, as those from 1.21 on do")
	}
	if !errors.Is(err, pgagui.ErrPreparedStatement) || !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Error(err)
	}
}

// bothWays runs a test on a database that it reaches directly, and on one that it reaches through PgBouncer. The settings, such as
// "lease = 1s", are those of the database.
func bothWays(t *testing.T, test func(t *testing.T, address string), settings ...string) {
	t.Parallel()
	database := func(t *testing.T) string {
		address := testdb.New(t)
		set(t, address, settings)
		return address
	}
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		test(t, database(t))
	})
	t.Run("pooler", func(t *testing.T) {
		t.Parallel()
		test(t, throughPooler(t, database(t)))
	})
}

// set gives a database settings.
func set(t testing.TB, address string, settings []string) {
	t.Helper()
	connection := must.Have(pgx.Connect(t.Context(), address))(t)
	defer connection.Close(t.Context())
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, " = ")
		testdb.Exec(t, connection, `select agui.set_setting($1, $2)`, name, value)
	}
}

func TestManyProcessesShareFewConnectionsOfAPooler(t *testing.T) {
	t.Parallel()
	address := throughPooler(t, testdb.New(t))
	const processes, runs = 4, 24
	stores := make([]*pgagui.Store, processes)
	recorders := make([]*pgagui.Recorder, processes)
	for i := range stores {
		stores[i] = pgagui.New(testdb.Connect(t, address), nil)
		recorders[i] = newRecorder(t, stores[i], &pgagui.RecorderConfig{Linger: 5 * time.Millisecond, CheckEvery: 10 * time.Millisecond})
	}
	agents := startAgents(t, runs, recorders...)
	var followers errgroup.Group
	for i, store := range stores {
		seen, group := followAll(t, store, agents.threads[i*runs/processes:][:runs/processes]) // each recorded by another process
		followers.Go(group.Wait)
		wait.For(t, fmt.Sprintf("the followers of process %d get events", i), func() bool { return seen.Load() > 500 })
	}
	agents.stop(t, stores[0])
	must.Report(t, followers.Wait())
}
