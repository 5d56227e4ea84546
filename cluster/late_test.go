package cluster_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// A mover was killed when a step of its move was on its way. The step is committed when the next move runs already: it waits for it.
func TestTheNextMoveWaitsForALateStep(t *testing.T) {
	t.Parallel()
	const key = `agui.thread_key('', 't')`
	ofThread := func(c *three) []int { return []int{bucketOf(c.t, c, "t")} }
	ofOther := func(c *three) []int { return []int{bucketOf(c.t, c, "other")} }
	// interrupt moves the thread to b, and leaves its rows on a.
	interrupt := func(c *three) {
		c.t.Helper()
		ctx, cancel := context.WithCancel(c.t.Context())
		defer cancel()
		if _, err := c.Move(ctx, ofThread(c), "b", cluster.MoveOptions{OnProgress: func(moved cluster.Moved) {
			if moved.Buckets == 1 {
				cancel()
			}
		}}); !errors.Is(err, context.Canceled) {
			c.t.Fatal(err)
		}
	}
	for name, late := range map[string]struct {
		before  func(c *three)
		at      string
		step    string
		buckets func(c *three) []int
		to      string
		isOn    string // afterwards
	}{
		"fence": {
			before: func(c *three) { c.mustMoveThread("", "t", "b") },
			at:     "b", step: `agui_internal.fence_threads(array[` + key + `], 'c')`, buckets: ofThread, to: "a", isOn: "a",
		},
		"fence, another bucket": {
			before: func(c *three) { c.mustMoveThread("", "t", "b") },
			at:     "b", step: `agui_internal.fence_threads(array[` + key + `], 'c')`, buckets: ofOther, to: "a", isOn: "c",
		},
		"take back": {
			before: func(c *three) {
				testdb.Exec(c.t, c.pools["a"], `select agui_internal.fence_threads(array[`+key+`], 'b')`)
			},
			at: "a", step: `agui_internal.take_back_thread(` + key + `)`, buckets: ofOther, to: "c", isOn: "a",
		},
		"hand over": {
			before: func(c *three) { c.mustMoveThread("", "t", "b") },
			at:     "a", step: `agui_internal.hand_over_buckets(array[agui.bucket('', 't')], 'c')`, buckets: ofThread, to: "a", isOn: "a",
		},
		"pin": {
			before: func(c *three) {
				c.mustMove(ofOther(c), "b")
				c.mustMoveThread("", "t", "b")
				c.mustMoveThread("", "t", "a")
			},
			at: "a", step: `agui_internal.pin_scope('', agui.bucket('', 'other'), 1)`, buckets: ofThread, to: "a", isOn: "a",
		},
		"remove": {
			before: interrupt, at: "a", step: `agui_internal.remove_moved_thread(` + key + `)`, buckets: ofThread, to: "a", isOn: "a",
		},
		"forget": {
			before: func(c *three) { c.mustMoveThread("", "t", "b") },
			at:     "a", step: `agui_internal.forget_moved_threads(array[agui.bucket('', 't')])`, buckets: ofThread, to: "c", isOn: "c",
		},
		"set the map": {
			before: func(c *three) {
				c.mustMoveThread("", "t", "b")
				testdb.Exec(c.t, c.pools["a"], `select agui_internal.hand_over_buckets(array[agui.bucket('', 't')], 'c')`)
			},
			at: "c", step: `agui_internal.receive_buckets((select json_build_object('buckets', json_build_array(json_build_object(
				'first', agui.bucket('', 't'), 'last', agui.bucket('', 't'), 'node', 'c', 'epoch', 2)))),
				(select json_agg(moved) from (select ` + key + ` as thread_key, 'b' as node, now() as moved_at) as moved), '[]')`,
			buckets: ofThread, to: "c", isOn: "c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newThree(t, nil)
			for _, thread := range []string{"t", "other"} {
				c.mustAppend(thread, "r1", `[`+start+`,`+end+`]`)
			}
			late.before(c)
			tx := testdb.Begin(t, c.pools[late.at])
			defer func() { _ = tx.Rollback(context.Background()) }()
			testdb.Exec(t, tx, `select `+late.step)
			ended := make(chan error, 1)
			go func() {
				_, err := c.Move(t.Context(), late.buckets(c), late.to, cluster.MoveOptions{})
				ended <- err
			}()
			wait.For(t, "the next move ends, or waits", func() bool {
				return len(ended) > 0 || testdb.Ask[bool](t, c.pools[late.at], `
					select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`)
			})
			must.Do(t, errors.Join(tx.Commit(t.Context()), <-ended))
			c.mustAppend("t", "r2", `[`+start+`,`+end+`]`)
			for name, pool := range c.pools {
				want := 0
				if name == late.isOn {
					want = 4
				}
				if n := testdb.Ask[int](t, pool, `select count(*) from agui.event where thread_key = `+key); n != want {
					t.Errorf("node %s has %d events of the thread, want %d", name, n, want)
				}
			}
			c.mustMove(bucketsFrom(0, cluster.Buckets), "a")
			c.checkPlaces()
		})
	}
}

// A step that begins when its move has lost the lock of the node is refused, also if another move has it. A node does not leave the cluster
// during a move, or before a late step.
func TestAStepOfALostMoveIsRefused(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	pool := c.pools["a"]
	step := func(token int) string {
		_, err := pool.Exec(t.Context(), `select agui_internal.begin_move_step($1)`, token)
		return testdb.State(err)
	}
	leave := func() string {
		_, err := pool.Exec(t.Context(), `set lock_timeout = '10ms'; call agui.leave_cluster(); reset lock_timeout`)
		return testdb.State(err)
	}
	begin := func(token int) (end func()) {
		t.Helper()
		session := must.Have(pgx.Connect(t.Context(), c.nodes[0].URL))(t)
		if !testdb.Ask[bool](t, session, `select agui_internal.begin_move($1)`, token) {
			t.Fatal("another move is in progress")
		}
		return func() { testdb.Exec(t, session, `select pg_advisory_unlock_all()`) }
	}
	for token := 1; token <= 2; token++ {
		end := begin(token)
		if state := step(token); state != "" {
			t.Errorf("move %d: a step: %s", token, state)
		}
		if state := step(token - 1); state != "55000" {
			t.Errorf("move %d: a step of the move before: %q", token, state)
		}
		if testdb.Ask[bool](t, pool, `select agui_internal.begin_move(9)`) {
			t.Errorf("move %d: two moves are in progress", token)
		}
		if state := leave(); state != "55000" {
			t.Errorf("move %d: the node leaves: %q", token, state)
		}
		end()
		if state := step(token); state != "55000" {
			t.Errorf("move %d: a step behind its end: %q", token, state)
		}
	}
	tx := testdb.Begin(t, pool)
	testdb.Exec(t, tx, `select agui_internal.fence_threads('{}', 'b')`)
	if state := leave(); state != "55P03" {
		t.Errorf("the node leaves before a late step: %q", state)
	}
	must.Do(t, tx.Rollback(t.Context()))
	if state := leave(); state != "" {
		t.Errorf("the node leaves: %s", state)
	}
}
