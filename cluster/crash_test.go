package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	devcluster "github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/sql/schema"
)

// A move that has lost its locks goes on until its next step, which is refused: another move may have begun. That one waits for the step
// that is on its way.
func TestAMoveThatLosesItsLockEnds(t *testing.T) {
	t.Parallel()
	for _, isCopied := range []bool{true, false} {
		t.Run(fmt.Sprintf("copied %v", isCopied), func(t *testing.T) {
			t.Parallel()
			c := newThree(t, nil)
			c.mustAppend("t", "r1", `[`+start+`,`+end+`]`)
			all := bucketsFrom(0, cluster.Buckets)
			c.mustMove(all, "b")
			tx := testdb.Begin(t, c.pools["c"]) // lets the copy wait
			testdb.Exec(t, tx, `lock table agui.run in share mode`)
			move := func(to string) chan error {
				done := make(chan error, 1)
				go func() {
					_, err := c.Move(t.Context(), all, to, cluster.MoveOptions{})
					done <- err
				}()
				return done
			}
			first := move("c")
			const here = ` and database = (select oid from pg_database where datname = current_database())`
			copies := `select pid from pg_locks where relation = 'agui.run'::regclass and not granted` + here
			wait.For(t, "the copy waits", func() bool { return testdb.Ask[bool](t, c.pools["c"], `select exists (`+copies+`)`) })
			for _, pool := range c.pools {
				testdb.Exec(t, pool, `
					select pg_terminate_backend(pid, 5000)
					from pg_locks
					where locktype = 'advisory' and (classid::bigint << 32 | objid::bigint) = agui_internal.move_lock_id()`+here)
			}
			second := move("a")
			wait.For(t, "the next move waits for the copy", func() bool {
				if len(second) > 0 {
					t.Fatalf("the next move did not wait for the copy: %v", <-second)
				}
				return testdb.Ask[bool](t, c.pools["c"], `select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted`+here+`)`)
			})
			if !isCopied {
				testdb.Exec(t, c.pools["c"], `select pg_terminate_backend(pid) from (`+copies+`) as copying`)
			}
			must.Do(t, tx.Rollback(t.Context()))
			if err := <-first; err == nil || !strings.Contains(err.Error(), "has lost the lock") {
				t.Errorf("the first move: %v", err)
			}
			if err := <-second; err != nil {
				t.Errorf("the second move: %v", err)
			}
			c.mustAppend("t", "r2", `[`+start+`,`+end+`]`)
			c.mustMove(all, "a") // b forgets where it has sent the thread
			c.checkPlaces()
			if n := testdb.Ask[int](t, c.pools["a"], `select count(*) from agui.events('t')`); n != 4 {
				t.Errorf("the thread has %d events on a, want 4", n)
			}
		})
	}
}

// What a move has committed is on the disk, also where commits do not wait for it by default: what a
// crash takes back on one node would be on two, or on none.
func TestMovesAreOnTheDisk(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, map[string]string{"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"})
	must.Do(t, schema.Up(t.Context(), server.URL("postgres")))
	c := newThree(t, nil, cluster.Node{Name: "b", URL: server.URL("postgres")})
	for _, thread := range []string{"alone", "t"} {
		c.mustAppend(thread, "r1", `[`+start+`,`+end+`]`)
	}
	crash := func() {
		t.Helper()
		must.Do(t, server.Kill())
		must.Do(t, server.Restart(t.Context()))
		c.pools["b"].Reset()
		c.Close() // as the next command of an operator
		var err error
		if c.Cluster, err = cluster.Open(t.Context(), c.nodes); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Cluster.Close)
	}
	placesOf := func(name string) string {
		return testdb.Ask[string](t, c.pools[name], `select string_agg(node || epoch, ' ' order by bucket) from agui_internal.bucket`)
	}
	all := bucketsFrom(0, cluster.Buckets)

	c.mustMove(slices.DeleteFunc(slices.Clone(all), func(n int) bool { return n == bucketOf(t, c, "alone") }), "b")
	c.mustMoveThread("", "alone", "b")
	crash()
	if rows := c.rows(); !slices.Equal(rows["b"], []string{"/alone", "/t"}) || len(rows["a"]) > 0 {
		t.Errorf("the node that got threads was lost: threads are on %v", rows)
	}
	if a, b := placesOf("a"), placesOf("b"); a != b {
		t.Errorf("the nodes have two maps:\n%s\n%s", a, b)
	}

	testdb.Exec(t, c.pools["b"], `checkpoint`)
	c.mustMove(all, "c")
	crash()
	for _, thread := range []string{"alone", "t", "new"} {
		if _, err := c.pools["b"].Exec(t.Context(), `select agui.append($1, 'r2', '[`+start+`]')`, thread); testdb.State(err) != "UI027" {
			t.Errorf("the node that gave threads was lost: an append to %q there: %v", thread, err)
		}
	}
	if a, b := placesOf("a"), placesOf("b"); a != b {
		t.Errorf("the nodes have two maps:\n%s\n%s", a, b)
	}
	if _, err := c.Move(t.Context(), all, "c", cluster.MoveOptions{}); err != nil { // removes what came back
		t.Fatal(err)
	}
	c.checkPlaces()
}

// followed are the events of threads that followers have seen, each in a process of its own. They
// follow through all crashes and moves.
type followed struct {
	mu   sync.Mutex
	seen map[string][]string // by thread
	errs []error
}

// follow follows threads of writers, from their beginning on, until ctx ends.
func (c *three) follow(ctx context.Context, threads []string) (f *followed, ended func()) {
	c.t.Helper()
	var nodes []pgagui.Node
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		nodes = append(nodes, pgagui.Node{Name: name, Pool: c.pools[name]})
	}
	store := pgagui.NewCluster(nodes, &pgagui.Config{Logger: slog.New(slog.DiscardHandler)})
	f = &followed{seen: map[string][]string{}}
	var following sync.WaitGroup
	for _, thread := range threads {
		following.Go(func() {
			for event, err := range store.Follow(ctx, thread, pgagui.FollowOptions{Stay: true}) {
				f.mu.Lock()
				if err == nil {
					f.seen[thread] = append(f.seen[thread], string(event.JSON))
				} else if ctx.Err() == nil {
					f.errs = append(f.errs, fmt.Errorf("thread %s: %w", thread, err))
				}
				f.mu.Unlock()
			}
		})
	}
	return f, following.Wait
}

// The servers of nodes are killed at any moment of moves, while threads are written and followed. The
// next move finishes what the one before has left.
func TestAMoveThatLosesItsServersGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes: make test-costly")
	}
	t.Parallel()
	servers, nodes := map[string]*devcluster.Cluster{}, []cluster.Node{}
	for _, name := range []string{"a", "b"} { // c is on the server of all tests
		servers[name] = testdb.Server(t, nil)
		must.Do(t, schema.Up(t.Context(), servers[name].URL("postgres")))
		nodes = append(nodes, cluster.Node{Name: name, URL: servers[name].URL("postgres")})
	}
	c := newThree(t, func(pool *pgxpool.Pool) { fill(t, pool, 60) }, nodes...)
	before := c.contents()
	w := c.write("crashed", 2)
	ctx, stopFollowing := context.WithCancel(t.Context())
	defer stopFollowing()
	var threads []string
	for n := range 6 {
		threads = append(threads, fmt.Sprintf("w crashed %d.%d", n%2, n/2))
	}
	followed, waitForFollowers := c.follow(ctx, threads)

	all := bucketsFrom(0, cluster.Buckets)
	move := func(ctx context.Context, to string, options cluster.MoveOptions) error {
		administered, err := cluster.Open(ctx, c.nodes)
		if err != nil {
			return err
		}
		defer administered.Close()
		_, err = administered.Move(ctx, all, to, options)
		return err
	}
	failed, crashes := 0, 4
	for crash := range crashes {
		victim, to := []string{"a", "b"}[crash%2], []string{"b", "c"}[crash/2]
		progressed, done := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		left := int64(rand.IntN(40))
		steps := new(atomic.Int64)
		go func() {
			done <- move(t.Context(), to, cluster.MoveOptions{OnProgress: func(cluster.Moved) {
				if steps.Add(1) > left {
					once.Do(func() { close(progressed) })
				}
			}})
		}()
		select { // a step of the copies, or a moment of what comes before and behind them
		case <-progressed:
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		case <-time.After(time.Duration(rand.IntN(4000)) * time.Millisecond):
		}
		var pid int
		wait.For(t, "the process of the server", func() bool { // connections of the pool may be those before the last crash
			return c.pools[victim].QueryRow(t.Context(), `select (regexp_match(pg_read_file('postmaster.pid'), '^\d+'))[1]::int`).Scan(&pid) == nil
		})
		if crash%4 < 2 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // its sessions go on for a moment
				t.Fatal(err)
			}
		} else if err := servers[victim].Kill(); err != nil {
			t.Fatal(err)
		}
		wait.For(t, "the server is back", func() bool { return servers[victim].Restart(t.Context()) == nil })
		if err := <-done; err != nil {
			failed++
			if !pgagui.IsTransient(err) && !errors.Is(err, cluster.ErrMoving) && !strings.Contains(err.Error(), "has lost the lock") {
				t.Errorf("the move to %s when %s was killed: %v", to, victim, err)
			}
		}
	}
	t.Logf("%d crashes, %d moves failed", crashes, failed)
	if failed == 0 {
		t.Error("no move was interrupted")
	}
	for _, to := range []string{"c", "b", "a"} {
		must.Do(t, move(t.Context(), to, cluster.MoveOptions{}))
	}
	w.end()
	for _, thread := range threads {
		wait.For(t, "the follower of "+thread, func() bool {
			followed.mu.Lock()
			defer followed.mu.Unlock()
			return len(followed.errs) > 0 || len(followed.seen[thread]) >= len(w.written[thread])
		})
	}
	stopFollowing()
	waitForFollowers()
	for _, err := range followed.errs {
		t.Error(err)
	}
	for _, thread := range threads {
		if !slices.Equal(followed.seen[thread], w.written[thread]) {
			t.Errorf("thread %s: %d events were followed, %d written", thread, len(followed.seen[thread]), len(w.written[thread]))
		}
	}
	c.checkPlaces()
	if after := c.contents(); !maps.Equal(before, after) {
		t.Error("threads that were not written have changed")
	}
}
