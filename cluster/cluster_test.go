package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/wait"
)

// three databases, as nodes.
type three struct {
	t     *testing.T
	nodes []cluster.Node
	pools map[string]*pgxpool.Pool
	*cluster.Cluster
}

// newThree returns a cluster of a, which fill has filled before, and of b and c. Nodes have the
// databases of on, or else new ones.
func newThree(t *testing.T, fill func(*pgxpool.Pool), on ...cluster.Node) *three {
	t.Helper()
	c := &three{t: t, pools: map[string]*pgxpool.Pool{}}
	for _, name := range []string{"a", "b", "c"} {
		address := ""
		if i := slices.IndexFunc(on, func(node cluster.Node) bool { return node.Name == name }); i >= 0 {
			address = on[i].URL
		} else {
			address = testdb.New(t)
		}
		c.nodes = append(c.nodes, cluster.Node{Name: name, URL: address})
		c.pools[name] = testdb.Connect(t, address)
	}
	if fill != nil {
		fill(c.pools["a"])
	}
	var err error
	c.Cluster, err = cluster.Open(t.Context(), c.nodes)
	if err == nil {
		t.Cleanup(c.Close)
		c.RemoveAfter = 100 * time.Millisecond
		err = c.Init(t.Context())
	}
	must.Do(t, err)
	return c
}

// at calls f with the node that has a thread, wherever it is sent: for the time of a move two nodes name each other.
func (c *three) at(f func(*pgagui.Store) error) (err error) {
	name := "a"
	wait.Until(func() bool {
		err = f(pgagui.New(c.pools[name], nil))
		refusal, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || refusal.Code != "UI027" {
			return true
		}
		var places []struct{ Node string }
		if unreadable := json.Unmarshal([]byte(refusal.Detail), &places); unreadable != nil || c.pools[places[0].Node] == nil {
			err = fmt.Errorf("sent to the nodes %v: %w", places, errors.Join(unreadable, err))
			return true
		}
		name = places[0].Node
		return false
	})
	return err
}

// rows are the threads that have rows on each node.
func (c *three) rows() map[string][]string {
	c.t.Helper()
	found := map[string][]string{}
	for name, pool := range c.pools {
		found[name] = testdb.List[string](c.t, pool, `select scope || '/' || thread_id from agui.thread order by 1`)
	}
	return found
}

// checkPlaces fails unless each thread has rows on one node, the one of its bucket, and all nodes
// have the same map.
func (c *three) checkPlaces() {
	c.t.Helper()
	var first string
	for name, pool := range c.pools {
		var buckets string
		var elsewhere, exceptions int
		if err := pool.QueryRow(c.t.Context(), `
			select (select string_agg(concat_ws(' ', bucket, node, epoch), ',' order by bucket) from agui_internal.bucket),
				(select count(*) from agui.thread where agui_internal.node_of(thread_key) <> agui_internal.this_node()),
				(select count(*) from agui_internal.moved_thread)`).Scan(&buckets, &elsewhere, &exceptions); err != nil {
			c.t.Fatal(err)
		}
		if elsewhere > 0 || exceptions > 0 {
			c.t.Errorf("node %s has %d threads of others, and %d rows of moves", name, elsewhere, exceptions)
		}
		if first == "" {
			first = buckets
		} else if first != buckets {
			c.t.Errorf("node %s has another map:\n%s\n%s", name, buckets, first)
		}
		for _, problem := range testdb.List[string](c.t, pool, `
			select problem from agui.thread as thread cross join lateral agui.verify(thread.thread_id, thread.scope) where severity <> 'note'`) {
			c.t.Errorf("node %s: %s", name, problem)
		}
	}
	seen := map[string]string{}
	for name, threads := range c.rows() {
		for _, thread := range threads {
			if other := seen[thread]; other != "" {
				c.t.Errorf("thread %s is on %s and on %s", thread, name, other)
			}
			seen[thread] = name
		}
	}
}

// writers append to threads until stopped, each to one thread at a time, as a recorder does: each call says
// what the writer has seen, and is repeated until it is answered.
type writers struct {
	c       *three
	name    string // of its threads
	stop    atomic.Bool
	working sync.WaitGroup
	mu      sync.Mutex
	written map[string][]string // by thread, in order
	longest time.Duration
}

func (c *three) write(name string, writing int) *writers {
	w := &writers{c: c, name: name, written: map[string][]string{}}
	for n := range writing {
		w.working.Go(func() { w.run(n) })
	}
	return w
}

// run begins a thread after each 10 runs.
func (w *writers) run(writer int) {
	for n := 0; !w.stop.Load(); n++ {
		w.runOnce(fmt.Sprintf("w %s %d.%d", w.name, writer, n/10), fmt.Sprint("r", n), 10)
	}
}

func (w *writers) runOnce(threadID, runID string, events int) {
	seen := new(int64)
	tick := time.Tick(4 * time.Millisecond) // as a model
	for n := range events {
		<-tick
		event := fmt.Sprintf(`{"type":"CUSTOM","name":"%s %s","value":%d}`, threadID, runID, n)
		switch n {
		case 0:
			event = fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"%s","runId":"%s"}`, threadID, runID)
		case events - 1:
			event = fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":"%s","runId":"%s"}`, threadID, runID)
		}
		begin := time.Now()
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			var last int64
			err := w.c.at(func(store *pgagui.Store) (err error) {
				last, err = store.Append(ctx, pgagui.RunRef{ThreadID: threadID, RunID: runID}, []json.RawMessage{json.RawMessage(event)}, pgagui.AppendOptions{AfterSeq: seen})
				return err
			})
			cancel()
			if err == nil {
				seen = &last
				break
			}
			if !pgagui.IsTransient(err) || time.Since(begin) > time.Minute {
				w.c.t.Errorf("append to %s %s: %v", threadID, runID, err)
				w.stop.Store(true)
				return
			}
		}
		w.mu.Lock()
		w.written[threadID] = append(w.written[threadID], event)
		w.longest = max(w.longest, time.Since(begin))
		w.mu.Unlock()
	}
}

// end stops the writers and compares the logs with what they wrote.
func (w *writers) end() {
	w.c.t.Helper()
	w.stop.Store(true)
	w.working.Wait()
	for _, threadID := range slices.Sorted(maps.Keys(w.written)) {
		var stored []string
		err := w.c.at(func(store *pgagui.Store) error {
			stored = nil
			for event, err := range store.Events(w.c.t.Context(), threadID, pgagui.EventsOptions{}) {
				if err != nil {
					return err
				}
				stored = append(stored, string(event.JSON))
			}
			return nil
		})
		if err != nil || !slices.Equal(stored, w.written[threadID]) {
			w.c.t.Errorf("thread %s has %d events, %d were stored (%v)", threadID, len(stored), len(w.written[threadID]), err)
		}
	}
	w.c.t.Logf("%d threads, longest append %s", len(w.written), w.longest)
}

// A store with every kind of row becomes a cluster while writers append: nothing is lost, doubled or
// seen on two nodes. Then a node gives all its buckets away.
func TestThreadsMoveWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	c := newThree(t, func(pool *pgxpool.Pool) { fill(t, pool, repeats(60)) })
	before := c.contents()
	w := c.write("spread", 2)
	moved := must.Have(c.Rebalance(t.Context(), cluster.MoveOptions{}))(t)
	t.Logf("%+v", moved)
	var statuses []int
	for _, status := range c.Status(t.Context()) {
		if status.Error != "" || !status.IsNode || status.Outdated > 0 {
			t.Errorf("%+v", status)
		}
		statuses = append(statuses, status.Buckets)
	}
	if want := []int{342, 341, 341}; !slices.Equal(statuses, want) || moved.Buckets != 682 {
		t.Errorf("the nodes have %v buckets, want %v; %d were moved", statuses, want, moved.Buckets)
	}
	w.end()
	c.checkPlaces()
	if after := c.contents(); !maps.Equal(before, after) {
		t.Errorf("threads that were not written have changed: %d before, %d after", len(before), len(after))
	}

	all := bucketsFrom(0, cluster.Buckets)
	w = c.write("gathered", 2)
	c.mustMove(all, "c")
	w.end()
	c.checkPlaces()
	if after := c.contents(); !maps.Equal(before, after) {
		t.Error("threads that were not written have changed")
	}
	if rows := c.rows(); len(rows["a"])+len(rows["b"]) > 0 {
		t.Errorf("nodes without buckets have threads: %v", rows)
	}
	if _, err := c.pools["c"].Exec(t.Context(), `call agui.leave_cluster()`); err != nil {
		t.Errorf("a node with all threads leaves: %v", err)
	}
}

// fill appends small threads that no writer touches, in two scopes, with session state and
// checkpoints.
func fill(t *testing.T, pool *pgxpool.Pool, threads int) {
	t.Helper()
	testdb.Fill(t, pool)
	testdb.Exec(t, pool, `
		delete from agui_internal.moved_thread;
		call agui.leave_cluster();
		select agui.remove_webhook('hook');
		select agui.release_claim('kept', 'claimed', 'claimant');
		select agui.append('quiet' || n, 'r1', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"é"},{"type":"RUN_FINISHED"}]',
			scope => case when n % 2 = 0 then 'acme' else '' end),
			agui.save_session_state('quiet' || n, 'k', to_json(n), 'r1', scope => case when n % 2 = 0 then 'acme' else '' end)
		from generate_series(1, $1) as n`, pgx.QueryExecModeSimpleProtocol, threads)
}

// contents are the rows of all threads that no writer touches, by thread.
func (c *three) contents() map[string]string {
	c.t.Helper()
	found := map[string]string{}
	for _, pool := range c.pools {
		rows, err := pool.Query(c.t.Context(), `
			select scope || '/' || thread_id, string_agg(table_name || item, e'\n' order by table_name, item)
			from agui.thread
			cross join lateral agui_internal.archived_rows(thread_key)
			where thread_id not like 'w %'
			group by 1`)
		must.Do(c.t, err)
		for rows.Next() {
			var thread, content string
			must.Do(c.t, rows.Scan(&thread, &content))
			found[thread] = content
		}
		if rows.Err() != nil {
			c.t.Fatal(rows.Err())
		}
	}
	return found
}

// repeats is how often something is repeated: less with -short.
func repeats(n int) int {
	if testing.Short() {
		return n / 2
	}
	return n
}

func TestTheDescriptionOfStandbys(t *testing.T) {
	t.Setenv("PASSWORD_OF_A", "secret")
	path := filepath.Join(t.TempDir(), "nodes.json")
	for standbys, want := range map[string]string{
		`["postgres://u:${PASSWORD_OF_A}@standby/agui", "host=second"]`: `["postgres://u:secret@standby/agui" "host=second"]`,
		`["host=first", "host=${UNSET_ADDRESS}"]`:                       `node "a": the variable UNSET_ADDRESS of its address is not set`,
		`[""]`: `a standby of node "a" has no address`,
	} {
		testfile.Write(t, path, []byte(`{"nodes":[{"name":"a","url":"host=primary","standbys":`+standbys+`}]}`))
		nodes, err := cluster.ReadFile(path)
		if err == nil {
			if got := fmt.Sprintf("%q", nodes[0].Standbys); got != want {
				t.Errorf("%s: the standbys are %s, want %s", standbys, got, want)
			}
		} else if !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", standbys, err, want)
		}
	}
}

// Status judges a standby as the server does, which reads from it: after a failover, the address of the standby that was promoted leads to
// the primary itself.
func TestWhichStandbysCanBeUsed(t *testing.T) {
	t.Parallel()
	own, other := testdb.New(t), testdb.New(t)
	c := must.Have(cluster.Open(t.Context(), []cluster.Node{{Name: "a", URL: own, Standbys: []string{own, other}}}))(t)
	defer c.Close()
	standbys := c.Status(t.Context())[0].Standbys
	if len(standbys) != 2 || standbys[0] != (cluster.StandbyStatus{}) || !strings.HasSuffix(standbys[1].Error, "another database than the primary's") {
		t.Errorf("%+v", standbys)
	}
}

const moverEnv = "PGAGUI_TEST_MOVER"

func TestMain(m *testing.M) {
	if path := os.Getenv(moverEnv); path != "" {
		os.Exit(runMover(path))
	}
	testdb.Main(m)
}

// runMover is the process that is killed.
func runMover(path string) int {
	nodes, err := cluster.ReadFile(path)
	if err == nil {
		var c *cluster.Cluster
		if c, err = cluster.Open(context.Background(), nodes); err == nil {
			_, err = c.Rebalance(context.Background(), cluster.MoveOptions{})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A mover that is killed at any moment leaves nothing that the next one does not complete.
func TestAKilledMoveGoesOn(t *testing.T) {
	t.Parallel()
	c := newThree(t, func(pool *pgxpool.Pool) { fill(t, pool, repeats(60)) })
	before := c.contents()
	text := must.Have(json.Marshal(map[string]any{"nodes": c.nodes}))(t)
	path := filepath.Join(t.TempDir(), "nodes.json")
	testfile.Write(t, path, text)
	w := c.write("killed", 2)
	killed := 0
	for {
		var messages strings.Builder
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), moverEnv+"="+path)
		command.Stderr = &messages
		must.Do(t, command.Start())
		life := time.Duration(rand.IntN(600)) * time.Millisecond
		if killed > repeats(8) {
			life = time.Minute
		}
		timer := time.AfterFunc(life, func() { _ = command.Process.Kill() })
		err := command.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		if command.ProcessState.ExitCode() == 1 && !strings.Contains(messages.String(), cluster.ErrMoving.Error()) {
			t.Fatalf("the mover: %s", messages.String())
		}
		killed++
	}
	t.Logf("killed %d times", killed)
	w.end()
	// What was in progress when a mover was killed is complete, but for rows to be removed.
	all := bucketsFrom(0, cluster.Buckets)
	for _, name := range []string{"a", "b", "c"} {
		var err error
		wait.For(t, "the lock of the last mover to be free", func() bool {
			_, err = c.Move(t.Context(), all, name, cluster.MoveOptions{})
			return !errors.Is(err, cluster.ErrMoving)
		})
		must.Do(t, err)
	}
	c.checkPlaces()
	if after := c.contents(); !maps.Equal(before, after) {
		t.Error("threads that were not written have changed")
	}
}

// Sessions of the nodes end all the time, as when servers restart. A move returns the error, and the
// next one goes on.
func TestAMoveThatLosesItsSessionsGoesOn(t *testing.T) {
	t.Parallel()
	c := newThree(t, func(pool *pgxpool.Pool) { fill(t, pool, repeats(60)) })
	before := c.contents()
	w := c.write("interrupted", 2)
	stop := make(chan struct{})
	var ending sync.WaitGroup
	ended := 0
	ending.Go(func() {
		names := []string{"a", "b", "c"}
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rand.IntN(150)) * time.Millisecond):
			}
			var n int
			if err := c.pools[names[rand.IntN(3)]].QueryRow(context.Background(), `
				select count(pg_terminate_backend(pid))
				from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and state = 'active'`).Scan(&n); err == nil {
				ended += n
			}
		}
	})
	failed := 0
	for failed < repeats(6) {
		_, err := c.Rebalance(t.Context(), cluster.MoveOptions{})
		if err == nil {
			break
		}
		if !pgagui.IsTransient(err) && !errors.Is(err, cluster.ErrMoving) {
			t.Fatal(err)
		}
		failed++
	}
	close(stop)
	ending.Wait()
	t.Logf("%d sessions were ended, %d moves failed", ended, failed)
	if ended == 0 || failed == 0 {
		t.Error("no move was interrupted")
	}
	all := bucketsFrom(0, cluster.Buckets)
	for _, name := range []string{"b", "a"} {
		wait.For(t, "the move to "+name, func() bool {
			_, err := c.Move(t.Context(), all, name, cluster.MoveOptions{})
			if err != nil && !pgagui.IsTransient(err) && !errors.Is(err, cluster.ErrMoving) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	w.end()
	c.checkPlaces()
	if after := c.contents(); !maps.Equal(before, after) {
		t.Error("threads that were not written have changed")
	}
}
