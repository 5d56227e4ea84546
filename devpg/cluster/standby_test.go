package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// startPair starts a primary, with a table named number that holds 1, and a standby that shows it.
func startPair(t *testing.T) (primary, standby *Cluster) {
	t.Helper()
	primary = start(t, fast)
	execute(t, connect(t, primary.URL("postgres")), `create table number as select 1 as n`)
	standby, err := primary.Standby(t.Context(), Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	return primary, standby
}

func execute(t *testing.T, connection *pgx.Conn, statement string) {
	t.Helper()
	if _, err := connection.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func ask[Answer any](t *testing.T, connection *pgx.Conn, question string) (answer Answer) {
	t.Helper()
	if err := connection.QueryRow(t.Context(), question).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return answer
}

func numbers(t *testing.T, connection *pgx.Conn) []int {
	t.Helper()
	return ask[[]int](t, connection, `select array_agg(n order by n) from number`)
}

func TestStandbyFollowsThePrimary(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	writer, reader := connect(t, primary.URL("postgres")), connect(t, standby.URL("postgres"))

	execute(t, writer, `insert into number values (2)`)
	eventually(t, "the standby shows what the primary committed", func() bool {
		return slices.Equal(numbers(t, reader), []int{1, 2})
	})

	_, err := reader.Exec(t.Context(), `insert into number values (3)`)
	var refusal *pgconn.PgError
	const readOnlyTransaction = "25006"
	if !errors.As(err, &refusal) || refusal.Code != readOnlyTransaction {
		t.Errorf("a write on the standby gives %v, want SQLSTATE %s", err, readOnlyTransaction)
	}

	// After crashes of both, in either order, it follows again.
	for _, crashing := range []*Cluster{standby, primary} {
		if err := crashing.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := crashing.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, connect(t, primary.URL("postgres")), `insert into number values (4)`)
	reader = connect(t, standby.URL("postgres"))
	eventually(t, "the standby follows again", func() bool { return slices.Equal(numbers(t, reader), []int{1, 2, 4}) })
}

func TestStandbyLagsWhileReplayIsPaused(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	writer, reader := connect(t, primary.URL("postgres")), connect(t, standby.URL("postgres"))

	execute(t, reader, `select pg_wal_replay_pause()`)
	eventually(t, "replay is paused", func() bool { return ask[string](t, reader, `select pg_get_wal_replay_pause_state()`) == "paused" })
	execute(t, writer, `insert into number values (2)`)
	committed := ask[string](t, writer, `select pg_current_wal_flush_lsn()::text`)
	eventually(t, "the standby receives the change", func() bool {
		return ask[bool](t, reader, `select coalesce(pg_last_wal_receive_lsn() >= '`+committed+`', false)`)
	})
	if got := numbers(t, reader); !slices.Equal(got, []int{1}) {
		t.Errorf("the standby shows %v while replay is paused", got)
	}

	execute(t, reader, `select pg_wal_replay_resume()`)
	eventually(t, "the standby shows the change", func() bool { return slices.Equal(numbers(t, reader), []int{1, 2}) })
}

func TestPromotedStandbyLacksWhatItDidNotReceive(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	reader := connect(t, standby.URL("postgres"))
	execute(t, reader, `alter system set primary_conninfo = ''`)
	execute(t, reader, `select pg_reload_conf()`)
	eventually(t, "the standby stops to receive", func() bool {
		return ask[string](t, reader, `show primary_conninfo`) == "" && ask[int](t, reader, `select count(*) from pg_stat_wal_receiver`) == 0
	})
	execute(t, connect(t, primary.URL("postgres")), `insert into number values (2)`)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}

	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, reader, `insert into number values (3)`)
	if got := numbers(t, reader); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("the promoted standby has %v, want 1 and 3", got)
	}
	if err := standby.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, standby.URL("postgres")), `insert into number values (4)`)
}

func TestStoppedStandbyLeavesNothing(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(standby.folder.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := pgx.Connect(t.Context(), standby.URL("postgres")); err == nil {
		t.Error("the standby still takes connections")
	}
	writer := connect(t, primary.URL("postgres"))
	execute(t, writer, `insert into number values (2)`)
	eventually(t, "the primary streams to nobody", func() bool { return ask[int](t, writer, `select count(*) from pg_stat_replication`) == 0 })
}

func TestPromoteRefusesAPrimary(t *testing.T) {
	t.Parallel()
	if err := start(t, fast).Promote(context.Background()); err == nil {
		t.Error("a server that is no standby was promoted")
	}
}
