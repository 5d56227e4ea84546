package pgagui_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Writers on one thread: seqs have no gap and no double, and every writer gets its own.
func TestManyWritersOnOneThread(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	const writers, calls = 32, 25
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	for w := range writers {
		id := fmt.Sprint("run-", w)
		mustAppend(t, store, "t", id, rawEvents(startedFrom(id, "root")), pgagui.AppendOptions{Parallel: true})
	}
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			id := fmt.Sprint("run-", w)
			var last int64
			for n := range calls {
				seq, err := store.Append(context.Background(), pgagui.RunRef{ThreadID: "t", RunID: id}, rawEvents(token(n), token(n)), pgagui.AppendOptions{})
				if err != nil {
					return err
				}
				if seq <= last {
					return fmt.Errorf("run %s got seq %d after %d", id, seq, last)
				}
				last = seq
			}
			_, err := store.Append(context.Background(), pgagui.RunRef{ThreadID: "t", RunID: id}, rawEvents(finished), pgagui.AppendOptions{})
			return err
		})
	}
	// A reader that has read up to N and sees N+1 has missed nothing.
	stop := make(chan struct{})
	reader := make(chan error, 1)
	go func() { reader <- readWithoutGaps(pool, stop) }()
	must.Do(t, group.Wait())
	close(stop)
	must.Report(t, <-reader)
	mustVerify(t, store, "t")
	var n, last int64
	must.Do(t, pool.QueryRow(context.Background(), `select sum(n), max(first_seq + n - 1) from agui.batch`).Scan(&n, &last))
	if want := int64(2 + writers*(2+2*calls)); n != want || last != want {
		t.Errorf("the log has %d events up to seq %d, want %d", n, last, want)
	}
}

func readWithoutGaps(pool pgagui.DB, stop <-chan struct{}) error {
	var seen int64
	for {
		var count, last int64
		err := pool.QueryRow(context.Background(),
			`select coalesce(sum(n), 0), coalesce(max(first_seq + n - 1), $1) from agui.batch where first_seq > $1`, seen).Scan(&count, &last)
		if err != nil {
			return err
		}
		if last-seen != count {
			return fmt.Errorf("a reader at seq %d saw %d events up to seq %d", seen, count, last)
		}
		seen = last
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

func TestOfTwoRunsThatBeginAtOnceOneIsRefused(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	for round := range 20 {
		thread := fmt.Sprint("t", round)
		var refused atomic.Int32
		var group errgroup.Group
		for _, id := range []string{"a", "b"} {
			group.Go(func() error {
				_, err := store.Append(context.Background(), pgagui.RunRef{ThreadID: thread, RunID: id}, rawEvents(started(id)), pgagui.AppendOptions{})
				if errors.Is(err, pgagui.ErrRunInProgress) {
					refused.Add(1)
					return nil
				}
				return err
			})
		}
		must.Do(t, group.Wait())
		if refused.Load() != 1 {
			t.Errorf("round %d: %d of two runs were refused, want 1", round, refused.Load())
		}
		mustVerify(t, store, thread)
	}
}

// A token that races with the end of its run is in the log before the end, or refused: never behind it.
func TestALateWriteThatRacesWithTheFinish(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	for round := range 30 {
		thread := fmt.Sprint("t", round)
		mustAppend(t, store, thread, "r", rawEvents(started("r")))
		var ready, done sync.WaitGroup
		ready.Add(1)
		for _, event := range []string{token(1), finished, token(2)} {
			done.Go(func() {
				ready.Wait()
				if _, err := store.Append(context.Background(), pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(event), pgagui.AppendOptions{}); err != nil && !errors.Is(err, pgagui.ErrRunEnded) {
					t.Error(err)
				}
			})
		}
		ready.Done()
		done.Wait()
		got := payloads(t, store, thread, "r")
		if got[len(got)-1] != finished {
			t.Errorf("round %d: the log ends with %s", round, got[len(got)-1])
		}
		mustVerify(t, store, thread)
	}
}

// In REPEATABLE READ and SERIALIZABLE a caller's snapshot may be older than the log. It gets 40001, never a seq that was used.
func TestCallersWithAnOldSnapshot(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		thread := string(level)
		begin := func() pgx.Tx {
			t.Helper()
			tx := must.Have(pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: level}))(t)
			// The snapshot is taken with the first statement.
			testdb.Exec(t, tx, `select count(*) from agui.batch`)
			return tx
		}

		tx := begin()
		mustAppend(t, store, thread, "r", rawEvents(started("r")))
		_, err := store.WithTx(tx).Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(started("r")), pgagui.AppendOptions{})
		wantSerializationFailure(t, thread+": thread made since", err)
		tx.Rollback(ctx)

		tx = begin()
		mustAppend(t, store, thread, "r", rawEvents(token(1)))
		_, err = store.WithTx(tx).Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: "r"}, rawEvents(token(2)), pgagui.AppendOptions{})
		wantSerializationFailure(t, thread+": event appended since", err)
		tx.Rollback(ctx)

		tx = begin()
		if seq := mustAppend(t, store.WithTx(tx), thread, "r", rawEvents(token(3))); seq != 3 {
			t.Errorf("%s: seq %d, want 3", level, seq)
		}
		if err := tx.Commit(ctx); err != nil {
			t.Errorf("%s: %v", level, err)
		}
		mustVerify(t, store, thread)
	}
}

func wantSerializationFailure(t *testing.T, what string, err error) {
	t.Helper()
	if testdb.State(err) != "40001" {
		t.Errorf("%s: error %v, want SQLSTATE 40001", what, err)
	}
}
