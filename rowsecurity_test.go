package pgagui_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// poolRole turns row-level security on in a database, makes a role that is mapped as a pool, and returns the address with which it logs in.
func poolRole(t testing.TB, address string) string {
	t.Helper()
	owner := testdb.Connect(t, address)
	testdb.Exec(t, owner, `call agui.enable_row_security()`)
	return testdb.As(t, address, testdb.Role(t, owner, "pool", "agui_writer", `select agui.map_pool('%s')`))
}

// underRowSecurity runs a test on a pool of two connections whose role is mapped as a pool, and on one that goes through PgBouncer.
func underRowSecurity(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool)) {
	t.Parallel()
	run := func(name string, through func(t testing.TB, address string) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.ConnectWith(t, through(t, poolRole(t, testdb.New(t))), func(config *pgxpool.Config) { config.MaxConns = 2 })
			test(t, pool)
		})
	}
	run("direct", func(_ testing.TB, address string) string { return address })
	run("pooler", throughPooler)
}

func TestStoresOfTwoScopesShareAPool(t *testing.T) {
	underRowSecurity(t, func(t *testing.T, pool *pgxpool.Pool) {
		ctx := t.Context()
		a := pgagui.New(pool, &pgagui.Config{Scope: "a", SetScope: true})
		stores := map[string]*pgagui.Store{"a": a, "b": a.InScope("b")}
		for scope, store := range stores {
			mustAppend(t, store, "t", "r", rawEvents(started("r"), `{"type":"CUSTOM","name":"secret of `+scope+`"}`, finished))
			mustAppend(t, store, "only "+scope, "r", rawEvents(started("r"), finished))
		}
		var group errgroup.Group
		for scope, store := range stores {
			for range 4 {
				group.Go(func() error {
					for range 10 {
						var list []string
						for event, err := range store.Events(ctx, "t", pgagui.EventsOptions{}) {
							if err != nil {
								return err
							}
							list = append(list, string(event.JSON))
						}
						if len(list) != 3 || !strings.Contains(list[1], "secret of "+scope) {
							return fmt.Errorf("scope %s reads %s", scope, list)
						}
						page, err := store.Threads(ctx, pgagui.ThreadsOptions{})
						if err != nil || len(page.Threads) != 2 {
							return fmt.Errorf("scope %s lists %+v (%v)", scope, page, err)
						}
						var foreign *pgagui.Error
						if _, err := store.Restore(ctx, "only "+map[string]string{"a": "b", "b": "a"}[scope], pgagui.At{}); !errors.Is(err, pgagui.ErrUnknownThread) ||
							!errors.As(err, &foreign) {
							return fmt.Errorf("scope %s restores a thread of the other: %v", scope, err)
						}
					}
					return nil
				})
			}
		}
		must.Report(t, group.Wait())

		// One that does not name its scope has none.
		unset := pgagui.New(pool, &pgagui.Config{Scope: "a"})
		if _, err := unset.Restore(ctx, "t", pgagui.At{}); !errors.Is(err, pgagui.ErrUnknownThread) {
			t.Errorf("a store that does not set agui.scope restores: %v", err)
		}
		if _, err := unset.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "s"}, rawEvents(started("s")), pgagui.AppendOptions{}); !errors.Is(err, pgagui.ErrPermissionDenied) || !strings.Contains(err.Error(), `scope "a"`) {
			t.Errorf("a store that does not set agui.scope appends: %v", err)
		}

		// In a transaction of the caller each call names its scope, and nothing stays behind it.
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			for _, scope := range []string{"a", "b", "a"} {
				mustAppend(t, stores[scope].WithTx(tx), "in a transaction", "r", rawEvents(started("r"), finished), afterSeq(0))
			}
			if _, err := stores["b"].WithTx(tx).Append(ctx, pgagui.RunRef{ThreadID: "of both", RunID: "r"}, rawEvents(started("r")), pgagui.AppendOptions{}); err != nil {
				t.Error(err)
			}
			// What is set now is b.
			_, err := unset.WithTx(tx).Append(ctx, pgagui.RunRef{ThreadID: "of both", RunID: "r"}, rawEvents(started("r")), pgagui.AppendOptions{})
			return err
		})
		if !errors.Is(err, pgagui.ErrPermissionDenied) {
			t.Errorf("while agui.scope is b, a store of scope a that does not set it appends: %v", err)
		}
		for range 4 {
			if scope := testdb.Ask[string](t, pool, `select coalesce(current_setting('agui.scope', true), '')`); scope != "" {
				t.Errorf("agui.scope is %q", scope)
			}
		}
		if _, err := a.Restore(ctx, "in a transaction", pgagui.At{}); !errors.Is(err, pgagui.ErrUnknownThread) {
			t.Errorf("what was rolled back: %v", err)
		}
	})
}

// Followers of two scopes share a hub, whose queries are each of one scope. A recorder records its own.
func TestFollowersOfTwoScopesShareAPool(t *testing.T) {
	underRowSecurity(t, func(t *testing.T, pool *pgxpool.Pool) {
		a := pgagui.New(pool, &pgagui.Config{Scope: "a", SetScope: true, PollInterval: 5 * time.Millisecond})
		var followers errgroup.Group
		const tokens = 30
		for _, scope := range []string{"a", "b"} {
			store := a.InScope(scope)
			recorder := newRecorder(t, store, &pgagui.RecorderConfig{Linger: time.Millisecond})
			for _, thread := range []string{"t", "u"} {
				recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.BeginOptions{})
				mustRecord(t, recording, started("r"))
				must.Do(t, recording.Flush(t.Context()))
				followers.Go(func() error {
					var seen []string
					for event, err := range store.Follow(t.Context(), thread, pgagui.FollowOptions{}) {
						if err != nil {
							return err
						}
						seen = append(seen, string(event.JSON))
					}
					want := []string{started("r")}
					for n := range tokens {
						want = append(want, fmt.Sprintf(`{"type":"CUSTOM","name":"%s %s %d"}`, scope, thread, n))
					}
					if want = append(want, finished); !slices.Equal(seen, want) {
						return fmt.Errorf("a follower of thread %s of scope %s has seen %s", thread, scope, seen)
					}
					return nil
				})
				followers.Go(func() error {
					for n := range tokens {
						if err := recording.Record(t.Context(), rawEvents(fmt.Sprintf(`{"type":"CUSTOM","name":"%s %s %d"}`, scope, thread, n))...); err != nil {
							return err
						}
						if n%5 == 0 { // so that there are several batches
							if err := recording.Flush(t.Context()); err != nil {
								return err
							}
						}
					}
					if err := recording.Record(t.Context(), rawEvents(finished)...); err != nil {
						return err
					}
					return recording.Close(t.Context())
				})
			}
			foreign := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "foreign"}, pgagui.BeginOptions{Scope: "c"})
			mustRecord(t, foreign, started("foreign"))
			if err := foreign.Flush(t.Context()); !errors.Is(err, pgagui.ErrPermissionDenied) {
				t.Errorf("a recorder of scope %s records for another scope: %v", scope, err)
			}
			_ = foreign.Close(t.Context())
		}
		must.Report(t, followers.Wait())
	})
}

// To name the scope takes no further round trip.
func TestSetScopeTakesNoRoundTrip(t *testing.T) {
	t.Parallel()
	address := poolRole(t, testdb.New(t))
	var wire countedTrips
	pool := testdb.ConnectWith(t, address, func(config *pgxpool.Config) {
		config.MaxConns = 1
		config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &countedConn{connection, &wire}, err
		}
	})
	store := pgagui.New(pool, &pgagui.Config{Scope: "a", SetScope: true})
	mustAppend(t, store, "t", "r", rawEvents(started("r")))
	calls := map[string]func() error{
		"append": func() error {
			_, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(1)), pgagui.AppendOptions{})
			return err
		},
		"restore": func() error {
			_, err := store.Restore(t.Context(), "t", pgagui.At{})
			return err
		},
		"status": func() error {
			_, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"})
			return err
		},
		"runs": func() error { _, err := store.Runs(t.Context(), "t"); return err },
	}
	for name, call := range calls {
		if err := call(); err != nil { // which prepares the statement
			t.Fatalf("%s: %v", name, err)
		}
		before := wire.trips()
		for range 10 {
			if err := call(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if trips := wire.trips() - before; trips != 10 {
			t.Errorf("10 calls of %s take %d round trips", name, trips)
		}
	}
}

// countedTrips counts how often something is read behind what was written.
type countedTrips struct {
	mu        sync.Mutex
	isWritten bool
	n         int
}

func (c *countedTrips) note(isWrite bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isWrite && c.isWritten {
		c.n++
	}
	c.isWritten = isWrite
}

func (c *countedTrips) trips() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

type countedConn struct {
	net.Conn
	trips *countedTrips
}

func (c *countedConn) Read(into []byte) (n int, err error) {
	if n, err = c.Conn.Read(into); n > 0 {
		c.trips.note(false)
	}
	return n, err
}

func (c *countedConn) Write(from []byte) (int, error) {
	c.trips.note(true)
	return c.Conn.Write(from)
}
