package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// nodesOfScope returns the nodes that have threads of a scope.
func (c *three) nodesOfScope(scope string) []string {
	var nodes []string
	for name, threads := range c.rows() {
		if slices.ContainsFunc(threads, func(thread string) bool { return strings.HasPrefix(thread, scope+"/") }) {
			nodes = append(nodes, name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// A scope is pinned, moved with its bucket, pinned to another bucket, and spread again, while its
// threads are born, written and followed: nothing is lost, doubled or seen on two nodes.
func TestAPinnedScopeStaysTogether(t *testing.T) {
	t.Parallel()
	c := newThree(t, func(pool *pgxpool.Pool) { fill(t, pool, 20) })
	must.Have(c.Rebalance(t.Context(), cluster.MoveOptions{}))(t)
	before := c.contents()
	onNode := func(name string) int {
		return testdb.Ask[int](t, c.pools["a"], `select max(bucket) from agui_internal.bucket where node = $1`, name)
	}
	others := c.nodesOfScope("acme")
	if nodes := c.nodesOfScope(""); len(nodes) != 3 || len(others) != 3 {
		t.Fatalf("threads are on %v and %v", nodes, others)
	}
	ofB, ofC := onNode("b"), onNode("c")
	for _, step := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"pin", func() error { _, err := c.PinScope(t.Context(), "", ofB, cluster.MoveOptions{}); return err }, []string{"b"}},
		{"pin again", func() error { _, err := c.PinScope(t.Context(), "", ofB, cluster.MoveOptions{}); return err }, []string{"b"}},
		{"move", func() error { _, err := c.Move(t.Context(), []int{ofB}, "a", cluster.MoveOptions{}); return err }, []string{"a"}},
		{"pin elsewhere", func() error { _, err := c.PinScope(t.Context(), "", ofC, cluster.MoveOptions{}); return err }, []string{"c"}},
		{"unpin", func() error { _, err := c.UnpinScope(t.Context(), "", cluster.MoveOptions{}); return err }, []string{"a", "b", "c"}},
	} {
		if testing.Short() && step.what != "pin" && step.what != "unpin" {
			continue
		}
		w := c.write(step.what, repeats(2))
		ctx, stopFollowing := context.WithCancel(t.Context())
		threads := []string{"w " + step.what + " 0.0", "w " + step.what + " 0.1"}
		followed, waitForFollowers := c.follow(ctx, threads)
		begin := time.Now()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		t.Logf("%s took %s", step.what, time.Since(begin))
		w.runOnce("w "+step.what+" later", "r", 5) // born afterwards
		w.end()
		if nodes := c.nodesOfScope(""); !slices.Equal(nodes, step.want) {
			t.Errorf("%s: threads are on %v, want %v", step.what, nodes, step.want)
		}
		if nodes := c.nodesOfScope("acme"); !slices.Equal(nodes, others) && step.what != "move" {
			t.Errorf("%s: threads of the other scope are on %v, want %v", step.what, nodes, others)
		}
		for _, thread := range threads {
			wait.For(t, "the follower of "+thread, func() bool {
				followed.mu.Lock()
				defer followed.mu.Unlock()
				return len(followed.errs) > 0 || len(followed.seen[thread]) >= len(w.written[thread])
			})
			followed.mu.Lock()
			if !slices.Equal(followed.seen[thread], w.written[thread]) {
				t.Errorf("thread %s: %d events were followed, %d written (%v)", thread, len(followed.seen[thread]), len(w.written[thread]), followed.errs)
			}
			followed.mu.Unlock()
		}
		stopFollowing()
		waitForFollowers()
		pins, err := c.Pins(t.Context())
		if err != nil || (len(pins) == 0) != (step.what == "unpin") {
			t.Errorf("%s: pins %v, %v", step.what, pins, err)
		}
		if after := c.contents(); !maps.Equal(before, after) {
			t.Errorf("%s: threads that were not written have changed", step.what)
		}
	}
	c.checkPlaces()
	if _, err := c.PinScope(t.Context(), "", cluster.Buckets, cluster.MoveOptions{}); err == nil || !strings.Contains(err.Error(), "there is no bucket 1024") {
		t.Error(err)
	}
}

// A pin that reached only some nodes reaches the others with the next move, whatever it moves, and a
// node that joins later gets it too. Meanwhile no node takes a thread that another one has.
func TestAnInterruptedPinGoesOn(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	must.Have(c.Rebalance(t.Context(), cluster.MoveOptions{}))(t)
	bucket := testdb.Ask[int](t, c.pools["a"], `select max(bucket) from agui_internal.bucket where node = 'b'`)
	for n := range 12 {
		c.mustAppend(fmt.Sprint("t", n), "r1", `[`+start+`,`+end+`]`)
	}
	before := c.rows()
	erased := strings.TrimPrefix(before["a"][0], "/")
	testdb.Exec(t, c.pools["a"], `select agui.erase($1)`, erased)
	testdb.Exec(t, c.pools["a"], `select agui_internal.pin_scope('', $1, 1)`, bucket) // and the mover was killed
	for n := range 12 {
		if id := fmt.Sprint("t", n); id != erased {
			if err := c.append(id, "r2", `[`+start+`,`+end+`]`); err != nil {
				t.Errorf("thread %s: %v", id, err)
			}
		}
	}
	for name, threads := range c.rows() {
		if want := slices.DeleteFunc(slices.Clone(before[name]), func(thread string) bool { return thread == "/"+erased }); !slices.Equal(threads, want) {
			t.Errorf("node %s has %v, want %v", name, threads, want)
		}
	}
	c.mustMove([]int{0}, "a")
	for name, pool := range c.pools {
		if n := testdb.Ask[int](t, pool, `select bucket from agui_internal.pinned_scope`); n != bucket {
			t.Errorf("node %s knows bucket %d", name, n)
		}
	}
	for n := range 20 {
		c.mustAppend(fmt.Sprint("new", n), "r", `[`+start+`,`+end+`]`)
	}
	if n := testdb.Ask[int](t, c.pools["b"], `select count(*) from agui.thread where thread_id like 'new%'`); n != 20 {
		t.Errorf("%d of 20 new threads are on the node of the bucket", n)
	}
	must.Have(c.PinScope(t.Context(), "", bucket, cluster.MoveOptions{}))(t)
	c.checkPlaces()
	if nodes := c.nodesOfScope(""); !slices.Equal(nodes, []string{"b"}) {
		t.Errorf("threads are on %v", nodes)
	}
	if err := c.append(erased, "r2", `[`+start+`]`); testdb.State(err) != "UI014" {
		t.Errorf("a thread that was erased elsewhere: %v", err)
	}
}

// A run that is claimed begins its thread where it was claimed: the pin waits.
func TestAPinWaitsForClaims(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	bucket := bucketOf(t, c, "claimed")
	c.mustMove([]int{0}, "b")
	if bucket == 0 {
		t.Fatal("the claimed thread is in bucket 0")
	}
	testdb.Exec(t, c.pools["a"], `select agui.claim_run('claimed', 'r', 'me')`)
	done := make(chan error, 1)
	go func() {
		_, err := c.PinScope(t.Context(), "", 0, cluster.MoveOptions{})
		done <- err
	}()
	wait.For(t, "the pin to try", func() bool {
		return testdb.Ask[bool](t, c.pools["a"], `select exists (select from pg_stat_activity where datname = current_database() and query like '%pin_scope%' and pid <> pg_backend_pid())`)
	})
	if len(done) > 0 {
		t.Fatal("the pin did not wait for the claim")
	}
	testdb.Exec(t, c.pools["a"], `select agui.append('claimed', 'r', '[`+start+`]')`)
	must.Do(t, <-done)
	c.checkPlaces()
	if rows := c.rows(); !slices.Equal(rows["b"], []string{"/claimed"}) {
		t.Errorf("threads are on %v", rows)
	}
}

// Without pins no call looks for one.
func TestPinsCostNothingWithoutOne(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	lookUps := func() (calls int) {
		connection := must.Have(pgx.Connect(t.Context(), c.nodes[0].URL))(t)
		defer connection.Close(context.Background())
		tx := testdb.Begin(t, connection)
		for _, statement := range []string{
			`set local track_functions = 'all'`, `select agui.append('t', 'r', '[` + start + `]')`, `select agui.append_many('{t}', '{r}', '{"[{\"type\":\"CUSTOM\"}]"}')`,
			`select agui.restore('t')`, `select agui.poll('{t}', '{0}')`, `select agui.keep_alive('{t}', '{r}')`,
		} {
			testdb.Exec(t, tx, statement)
		}
		must.Do(t, tx.QueryRow(t.Context(), `select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where funcname = 'bucket_of_thread'`).Scan(&calls))
		return calls // and nothing is committed
	}
	if n := lookUps(); n != 0 {
		t.Errorf("%d look-ups without a pin", n)
	}
	must.Have(c.PinScope(t.Context(), "other", 1, cluster.MoveOptions{}))(t)
	if n := lookUps(); n == 0 {
		t.Errorf("%d look-ups with a pin", n)
	}
	must.Have(c.UnpinScope(t.Context(), "other", cluster.MoveOptions{}))(t)
	if n := lookUps(); n != 0 {
		t.Errorf("%d look-ups behind the last pin", n)
	}
}
