package pgagui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// A reader of pages learns of every run and its end, however the transactions of the writers overlap, roll back, or change a run once more
// between its pages. Jobs, erasures and imports beside it change nothing of that.
func TestAReaderOfChangesMissesNothing(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	// Runs of before are there at the beginning, also those of a store that did not have the column.
	for i := range 5 {
		mustAppend(t, store, fmt.Sprint("old ", i), "r", rawEvents(`{"type":"RUN_STARTED"}`, finished))
	}
	testdb.Exec(t, pool, `update agui.run set changed_in = null where run_no = 1 and thread_key in (select thread_key from agui.thread where thread_id in ('old 1', 'old 3'))`)

	var writers sync.WaitGroup
	for w := range 6 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 25 {
				thread := fmt.Sprint("t", w, "-", random.IntN(4))
				run := fmt.Sprint("r", i)
				work := func(tx pgx.Tx) error {
					bound := store.WithTx(tx)
					events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`), json.RawMessage(`{"type":"CUSTOM","name":"n","value":1}`), json.RawMessage(finished)}
					return pgx.BeginFunc(t.Context(), tx, func(pgx.Tx) error { // a savepoint
						_, err := bound.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run}, events, pgagui.AppendOptions{})
						if err == nil && random.IntN(4) == 0 {
							err = errRolledBack
						}
						return err
					})
				}
				if err := pgx.BeginFunc(t.Context(), pool, work); err != nil && !errors.Is(err, errRolledBack) {
					t.Error(err)
				}
			}
		})
	}
	writing := make(chan struct{})
	go func() { writers.Wait(); close(writing) }()

	random := rand.New(rand.NewPCG(2, 3))
	seen := map[string]pgagui.Status{}
	after := ""
	page := func() (n int) {
		changes := must.Have(store.Changes(t.Context(), pgagui.ChangesOptions{After: after, Limit: 3 + random.IntN(5)}))(t)
		for _, change := range changes {
			seen[change.ThreadID+"/"+change.RunID], after = change.Status, change.Position
		}
		return len(changes)
	}
	for isWriting := true; isWriting; {
		select {
		case <-writing:
			isWriting = false
		default:
			page()
			if random.IntN(20) == 0 {
				testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
			}
		}
	}
	// A transaction in progress in any database of the server holds the last ones back.
	wait.For(t, "all runs", func() bool {
		for page() > 0 {
		}
		stored := testdb.Ask[int](t, pool, `select count(*) from agui.run`)
		return len(seen) == stored
	})
	for run, status := range seen {
		if status != pgagui.Finished {
			t.Errorf("%s: last seen %s", run, status)
		}
	}
	// Again without a change: nothing. A change after that: the run, and no other.
	if page() != 0 {
		t.Error("a change without one")
	}
	mustAppend(t, store, "old 0", "another", rawEvents(`{"type":"RUN_STARTED"}`))
	wait.For(t, "the change", func() bool { return page() == 1 && seen["old 0/another"] == pgagui.Running })
}

var errRolledBack = errors.New("rolled back")

// A run that was seen before its transaction, or one before it, ended would hide those that commit later.
func TestChangesEndAtTransactionsInProgress(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "first", "r", rawEvents(`{"type":"RUN_STARTED"}`))
	changes, err := store.Changes(t.Context(), pgagui.ChangesOptions{})
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	after := changes[0].Position
	mustAppend(t, store, "first", "r", rawEvents(finished))
	wait.For(t, "the end of the first reading of all runs", func() bool {
		changes := must.Have(store.Changes(t.Context(), pgagui.ChangesOptions{After: after}))(t)
		for _, change := range changes {
			after = change.Position
		}
		return strings.Contains(after, " changed ")
	})
	tx := testdb.Begin(t, pool)
	mustAppend(t, store.WithTx(tx), "slow", "r", rawEvents(`{"type":"RUN_STARTED"}`))
	mustAppend(t, store, "fast", "r", rawEvents(`{"type":"RUN_STARTED"}`))
	if changes, err := store.Changes(t.Context(), pgagui.ChangesOptions{After: after}); err != nil {
		t.Fatal(err)
	} else {
		for _, change := range changes {
			t.Errorf("%s comes before what is in progress has ended", change.ThreadID)
		}
	}
	must.Do(t, tx.Commit(t.Context()))
	seen := map[string]bool{}
	wait.For(t, "both", func() bool {
		changes := must.Have(store.Changes(t.Context(), pgagui.ChangesOptions{After: after}))(t)
		for _, change := range changes {
			seen[change.ThreadID], after = true, change.Position
		}
		return seen["slow"] && seen["fast"]
	})
}

func TestPositionsOfChangesAreChecked(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`))
	epoch := testdb.Ask[string](t, pool, `select agui_internal.epoch()`)
	const run = " 00000000-0000-0000-0000-000000000000 0"
	for after, want := range map[string]error{
		"tomorrow":            pgagui.ErrInvalidArgument,
		epoch + " changed 5":  pgagui.ErrInvalidArgument,
		"1/1 changed 5" + run: pgagui.ErrOtherHistory,
		epoch + " changed 9000000000000000" + run: pgagui.ErrOtherHistory, // the server has not come so far: it was restored to an earlier time
		epoch + " changed 5" + run:                nil,
	} {
		if _, err := store.Changes(t.Context(), pgagui.ChangesOptions{After: after}); !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v", after, err, want)
		}
	}
	if _, err := store.Changes(t.Context(), pgagui.ChangesOptions{Limit: 10_001}); !errors.Is(err, pgagui.ErrLimitExceeded) {
		t.Errorf("a page too large: %v", err)
	}
	scoped := pgagui.New(pool, &pgagui.Config{Scope: "other"})
	mustAppend(t, scoped, "theirs", "r", rawEvents(`{"type":"RUN_STARTED"}`))
	if changes, err := store.Changes(t.Context(), pgagui.ChangesOptions{}); err != nil || len(changes) != 1 {
		t.Errorf("of one scope: %v, %v", changes, err)
	}
	if changes, err := store.Changes(t.Context(), pgagui.ChangesOptions{AllScopes: true}); err != nil || len(changes) < 2 {
		t.Errorf("of all scopes: %v, %v", changes, err)
	}
}

// A copy that follows what a page says is the store, however threads are erased and begun again under their names, also by transactions
// whose numbers are in another order than their commits.
func TestACopyOfChangesHearsOfErasures(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	consumer := store.Consumer("copy")
	type key struct{ thread, run string }
	copied := map[key]pgagui.Change{}
	erased := map[string]bool{}
	random := rand.New(rand.NewPCG(4, 4))
	// page processes a page; sometimes it stops before it notes that, and processes it once more.
	page := func() int {
		changes := must.Have(consumer.Changes(t.Context(), 1+random.IntN(8)))(t)
		for _, change := range changes {
			if change.IsErased {
				erased[change.ThreadUID] = true
				maps.DeleteFunc(copied, func(_ key, kept pgagui.Change) bool { return kept.ThreadUID == change.ThreadUID })
			} else {
				copied[key{change.ThreadID, change.RunID}] = change
			}
			if random.IntN(20) == 0 {
				return len(changes)
			}
		}
		if len(changes) > 0 {
			must.Do(t, consumer.Move(t.Context(), changes[len(changes)-1].Position))
		}
		return len(changes)
	}
	page()

	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(5, uint64(w)))
			for i := range 60 {
				thread := fmt.Sprint("t", random.IntN(3))
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					bound := store.WithTx(tx)
					if random.IntN(2) == 0 { // a number from before it waits for the thread
						if _, err := tx.Exec(t.Context(), `select pg_current_xact_id()`); err != nil {
							return err
						}
					}
					if random.IntN(3) == 0 {
						err := pgx.BeginFunc(t.Context(), tx, func(pgx.Tx) error { // a savepoint
							_, err := bound.Erase(t.Context(), thread, pgagui.EraseOptions{})
							return err
						})
						if err != nil && !errors.Is(err, pgagui.ErrUnknownThread) {
							return err
						}
						if random.IntN(2) == 0 {
							return nil
						}
					}
					if _, err := bound.Maintenance().LiftErasure(t.Context(), thread); err != nil {
						return err
					}
					_, err := bound.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: fmt.Sprint("r", i%4, "-", w)}, rawEvents(`{"type":"RUN_STARTED"}`, finished), pgagui.AppendOptions{Parallel: true})
					return err
				})
				// The same run once more, or the thread was erased by another.
				if err != nil && !errors.Is(err, pgagui.ErrRunIDInUse) && !errors.Is(err, pgagui.ErrThreadErased) {
					t.Error(err)
				}
			}
		})
	}
	writing := make(chan struct{})
	go func() { writers.Wait(); close(writing) }()
	for isWriting := true; isWriting; {
		select {
		case <-writing:
			isWriting = false
		default:
			page()
		}
	}
	wait.For(t, "the copy", func() bool {
		for page() > 0 {
		}
		stored := map[key]string{}
		rows := must.Have(pool.Query(t.Context(), `select thread_id, run_id, thread_uid::text from agui.run join agui.thread using (thread_key)`))(t)
		var name key
		var uid string
		must.Have(pgx.ForEachRow(rows, []any{&name.thread, &name.run, &uid}, func() error { stored[name] = uid; return nil }))(t)
		return maps.EqualFunc(stored, copied, func(uid string, change pgagui.Change) bool {
			return change.ThreadUID == uid && change.Status == pgagui.Finished
		})
	})
	var missing int
	if err := pool.QueryRow(t.Context(), `select count(*) from agui.erasure where not thread_uid::text = any ($1)`, slices.Collect(maps.Keys(erased))).Scan(&missing); err != nil || missing != 0 || len(erased) < 10 {
		t.Errorf("%d of more than %d erasures did not come, %v", missing, len(erased), err)
	}
}
