package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

const start, end = `{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`

func bucketOf(t *testing.T, c *three, threadID string) int {
	return testdb.Ask[int](t, c.pools["a"], `select agui.bucket('', $1)`, threadID)
}

func (c *three) mustAppend(threadID, runID, events string) {
	c.t.Helper()
	must.Do(c.t, c.append(threadID, runID, events))
}

func (c *three) mustMove(buckets []int, to string) {
	c.t.Helper()
	must.Have(c.Move(c.t.Context(), buckets, to, cluster.MoveOptions{}))(c.t)
}

func (c *three) mustMoveThread(scope, threadID, to string) {
	c.t.Helper()
	must.Have(c.MoveThread(c.t.Context(), scope, threadID, to))(c.t)
}

func (c *three) append(threadID, runID, events string) error {
	return c.at(func(store *pgagui.Store) error {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(events), &list); err != nil {
			return err
		}
		_, err := store.Append(c.t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: runID}, list, pgagui.AppendOptions{})
		return err
	})
}

// The session that holds the locks of a move is idle meanwhile, for longer than the nodes allow others.
func TestAMoveOutlastsTheTimeoutsOfItsNodes(t *testing.T) {
	t.Parallel()
	var impatient []cluster.Node
	for _, name := range []string{"a", "b", "c"} {
		impatient = append(impatient, cluster.Node{Name: name, URL: testdb.New(t) + "&options=-cidle_session_timeout%3D200ms%20-cidle_in_transaction_session_timeout%3D200ms"})
	}
	c := newThree(t, nil, impatient...)
	c.RemoveAfter = time.Second
	c.mustAppend("t", "r", `[`+start+`]`)
	c.mustMove([]int{bucketOf(t, c, "t")}, "b")
}

// A move waits for the open transaction of a writer, without holding up others for long, and moves
// what it has written. A transaction that began before a move cannot write behind it.
func TestAMoveWaitsForWriters(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	for _, thread := range []string{"open", "other", "old"} {
		c.mustAppend(thread, "r", `[`+start+`]`)
	}
	old := must.Have(c.pools["a"].BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
	defer func() { _ = old.Rollback(context.Background()) }()
	testdb.Exec(t, old, `select from agui.thread`)
	c.mustMove([]int{bucketOf(t, c, "old")}, "b")
	if _, err := old.Exec(t.Context(), `select agui.append('old', 'r', '[{"type":"CUSTOM"}]')`); testdb.State(err) != "40001" && testdb.State(err) != "UI027" {
		t.Errorf("a writer with an old snapshot: %v", err)
	}

	tx := must.Have(c.pools["a"].Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	testdb.Exec(t, tx, `select agui.append('open', 'r', '[{"type":"CUSTOM"}]')`)
	done := make(chan error, 1)
	go func() {
		_, err := c.Move(t.Context(), []int{bucketOf(t, c, "open"), bucketOf(t, c, "other")}, "b", cluster.MoveOptions{})
		done <- err
	}()
	wait.For(t, "the other thread to move", func() bool {
		return testdb.Ask[int](t, c.pools["b"], `select count(*) from agui.thread where thread_id = 'other'`) == 1
	})
	must.Report(t, c.append("other", "r", `[`+end+`]`))
	select {
	case err := <-done:
		t.Fatalf("the move did not wait for an open transaction: %v", err)
	default:
	}
	testdb.Exec(t, tx, `select agui.append('open', 'r', '[`+end+`]')`)
	must.Do(t, tx.Commit(t.Context()))
	must.Do(t, <-done)
	if n := testdb.Ask[int](t, c.pools["b"], `select count(*) from agui.events('open')`); n != 3 {
		t.Errorf("%d events were moved, want 3", n)
	}
	c.checkPlaces()
}

// A thread that is moved alone is where it was moved to until its bucket moves, which takes it along. The node with all buckets does not
// leave the cluster before.
func TestAThreadMovesAlone(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	for _, thread := range []string{"hot", "erased"} {
		c.mustAppend(thread, "r1", `[`+start+`,`+end+`]`)
		for _, to := range []string{"b", "b"} { // the second time there is nothing to do
			c.mustMoveThread("", thread, to)
		}
	}
	testdb.Exec(t, c.pools["b"], `select agui.erase('erased')`)
	for _, name := range []string{"a", "c"} {
		_, err := c.pools[name].Exec(t.Context(), `select agui.append('hot', 'r2', '[`+start+`]')`)
		if testdb.State(err) != "UI027" {
			t.Errorf("append on %s: %v", name, err)
		}
	}
	must.Report(t, c.append("hot", "r2", `[`+start+`,`+end+`]`))
	if rows := c.rows(); !slices.Equal(rows["b"], []string{"/hot"}) || len(rows["a"])+len(rows["c"]) > 0 {
		t.Errorf("threads are on %v", rows)
	}
	_, err := c.pools["a"].Exec(t.Context(), `call agui.leave_cluster()`)
	if testdb.State(err) != "55000" {
		t.Errorf("a node without a thread of its buckets leaves: %v", err)
	}
	for _, to := range []string{"c", "a", "a"} {
		for _, bucket := range []string{"hot", "erased"} {
			c.mustMove([]int{bucketOf(t, c, bucket)}, to)
		}
		if n := testdb.Ask[int](t, c.pools[to], `select count(*) from agui.runs('hot')`); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
		c.checkPlaces()
	}
	if err := c.append("erased", "r2", `[`+start+`]`); testdb.State(err) != "UI014" {
		t.Errorf("a thread that was erased elsewhere: %v", err)
	}
	if _, err := c.MoveThread(t.Context(), "", "unknown", "b"); err == nil || !strings.Contains(err.Error(), `no thread "unknown"`) {
		t.Errorf("an unknown thread: %v", err)
	}
	testdb.Exec(t, c.pools["a"], `call agui.leave_cluster()`)
}

// The next move finishes what an interrupted one has left, wherever it leads: a thread that was fenced and not copied, one that was
// copied while its bucket was not given, and rows that were not removed.
func TestTheNextMoveFinishesTheLastOne(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a", "b", "c"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			c := newThree(t, nil)
			for _, thread := range []string{"fenced", "copied", "given", "alone", "quiet"} {
				c.mustAppend(thread, "r1", `[`+start+`,`+end+`]`)
			}
			c.mustMoveThread("", "alone", "b")
			copied := bucketOf(t, c, "copied")
			claimed := testdb.Ask[string](t, c.pools["a"], `select id from (select 'claimed ' || n as id from generate_series(1, 100000) as n) as candidate where agui.bucket('', id) = $1 limit 1`, copied)
			testdb.Exec(t, c.pools["a"], `select agui.claim_run($1, 'r1', 'me')`, claimed) // keeps the bucket
			ctx, cancel := context.WithCancel(t.Context())
			_, err := c.Move(ctx, []int{copied, bucketOf(t, c, "given")}, "c", cluster.MoveOptions{OnProgress: func(moved cluster.Moved) {
				if moved.Buckets == 1 {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			wait.For(t, "the lock of the mover to be free", func() bool {
				return testdb.Ask[bool](t, c.pools["a"], `select not exists (select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()))`)
			})
			c.mustAppend(claimed, "r1", `[`+start+`,`+end+`]`)
			if rows := c.rows(); len(rows["a"]) != 5 || !slices.Equal(rows["c"], []string{"/copied", "/given"}) {
				t.Fatalf("threads are on %v", rows)
			}
			testdb.Exec(t, c.pools["a"], `select agui_internal.fence_threads(array[agui.thread_key('', 'fenced')], 'c')`)
			testdb.Exec(t, c.pools["b"], `select agui_internal.fence_threads(array[agui.thread_key('', 'alone')], 'c')`)
			all := bucketsFrom(0, cluster.Buckets)
			c.mustMove([]int{bucketOf(t, c, "quiet")}, next)
			for _, thread := range []string{"fenced", "copied", "given", "alone"} {
				if err := c.append(thread, "r2", `[`+start+`,`+end+`]`); err != nil {
					t.Errorf("%s: %v", thread, err)
				}
			}
			if rows := c.rows(); len(rows["a"])+len(rows["b"])+len(rows["c"]) != 6 {
				t.Errorf("rows are left: %v", rows)
			}
			c.mustMove(all, next)
			c.checkPlaces()
			if n := testdb.Ask[int](t, c.pools[next], `select count(*) from agui.run`); n != 10 {
				t.Errorf("%d runs, want 10", n)
			}
		})
	}
}

// A node still has rows of a thread that it has given away, and the node that got it was about to send it on: the copy there is the only
// one, and the next move sends it on, wherever the map says that the thread is.
func TestTheNextMoveSendsOnWhatOthersHaveRowsOf(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"a", "b"} {
		t.Run(home, func(t *testing.T) {
			t.Parallel()
			c := newThree(t, nil)
			run := func(id string) {
				t.Helper()
				c.mustAppend("t", id, `[`+start+`,`+end+`]`)
			}
			moveTo := func(node string) {
				t.Helper()
				c.mustMoveThread("", "t", node)
			}
			run("r1")
			c.mustMove([]int{bucketOf(t, c, "t")}, home)
			moveTo("a")
			// Its rows stay there while a request of a webhook waits.
			must.Have(jobs.AddWebhook(t.Context(), c.pools["a"], jobs.Webhook{Name: "hook", URL: "https://example.com", AllScopes: true}, ""))(t)
			testdb.Exec(t, c.pools["a"], `insert into agui_internal.webhook_request (webhook, event_id, thread_key, kind, ended_at, body, next_at)
				values ('hook', 'e', agui.thread_key('', 't'), 'run', now(), '{}', now())`)
			moveTo("b")
			run("r2")
			testdb.Exec(t, c.pools["b"], `select agui_internal.fence_threads(array[agui.thread_key('', 't')], 'c')`)
			if rows := c.rows(); len(rows["a"]) != 1 || len(rows["b"]) != 1 || len(rows["c"]) != 0 {
				t.Fatalf("threads are on %v", rows)
			}
			moveTo("c")
			run("r3")
			if runs := testdb.Ask[string](t, c.pools["c"], `select string_agg(run_id, ' ' order by run_no) from agui.run`); runs != "r1 r2 r3" {
				t.Errorf("the runs are %q", runs)
			}
		})
	}
}

// What consumers and webhooks have noted of a thread goes along: no event is processed twice, and no end
// of a run sent twice.
func TestReadersMove(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	var mu sync.Mutex
	got := map[string]int{} // requests, by their id
	answer := http.StatusOK
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if answer == http.StatusOK {
			got[r.Header.Get("webhook-id")]++
		}
		w.WriteHeader(answer)
	}))
	defer endpoint.Close()
	answerWith := func(status int) {
		mu.Lock()
		defer mu.Unlock()
		answer = status
	}
	sent := func() (ids, requests int) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range got {
			requests += n
		}
		return len(got), requests
	}
	for _, pool := range c.pools {
		must.Have(jobs.AddWebhook(t.Context(), pool, jobs.Webhook{Name: "hook", URL: endpoint.URL, AllScopes: true}, ""))(t)
	}
	for _, name := range []string{"a", "b"} {
		testdb.Exec(t, c.pools[name], `select agui.move_consumer('copy', null), agui.move_consumer('own', null, '')`)
	}
	// send makes a node send what it has, until its webhook has read the end of a run.
	send := func(name string, ended int) {
		t.Helper()
		wait.For(t, "the webhook of "+name, func() bool {
			must.Have(jobs.SendWebhooks(t.Context(), c.pools[name], jobs.WebhookOptions{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true}))(t)
			return testdb.Ask[int](t, c.pools[name], `select count(*) from agui_internal.webhook_request`) >= ended
		})
	}
	move := func(to string) {
		t.Helper()
		c.mustMoveThread("", "t", to)
	}
	c.mustAppend("t", "r1", `[`+start+`,`+end+`]`)
	testdb.Exec(t, c.pools["a"], `select agui.mark_read('copy', 't', 2), agui.mark_read('own', 't', 1, scope => '')`)
	send("a", 1)
	move("b")
	if read := testdb.Ask[string](t, c.pools["b"], `
		select (select read_seq from agui.consume('copy') where thread_id = 't') || ' ' || (select read_seq from agui.consume('own', scope => '') where thread_id = 't')`); read != "2 1" {
		t.Errorf("on b the consumers have read %s, want 2 1", read)
	}
	// An end that waits for its endpoint is sent by the node where it happened.
	answerWith(http.StatusServiceUnavailable)
	c.mustAppend("t", "r2", `[`+start+`,`+end+`]`)
	send("b", 2)
	answerWith(http.StatusOK)
	move("c")
	c.mustAppend("t", "r3", `[`+start+`,`+end+`]`)
	send("c", 3)
	if ids, requests := sent(); ids != 2 || requests != 2 {
		t.Errorf("%d ends were sent in %d requests, want r1 and r3", ids, requests)
	}
	testdb.Exec(t, c.pools["b"], `update agui_internal.webhook_request set next_at = now() where next_at is not null`)
	send("b", 2)
	if ids, requests := sent(); ids != 3 || requests != 3 {
		t.Errorf("%d ends were sent in %d requests, want 3 in 3", ids, requests)
	}
	move("a")
	send("a", 3)
	if ids, requests := sent(); ids != 3 || requests != 3 {
		t.Errorf("back on a, %d ends were sent in %d requests, want 3 in 3", ids, requests)
	}
	// Until its rows are removed, a node sends nothing more of a thread that it gave away.
	testdb.Exec(t, c.pools["a"], `select agui.append('t', 'r4', '[`+start+`,`+end+`]')`)
	testdb.Exec(t, c.pools["a"], `select agui_internal.fence_threads(array[agui.thread_key('', 't')], 'b')`)
	testdb.Exec(t, c.pools["a"], `select agui.append('behind', 'r', '[`+start+`,`+end+`]')`)
	send("a", 4)
	if ids, requests := sent(); ids != 4 || requests != 4 {
		t.Errorf("of a thread that is elsewhere, and of another one, %d ends were sent in %d requests, want 4 in 4", ids, requests)
	}
}

// A call that changes a thread looks up once which node has it.
func TestAChangeLooksUpTheNodeOnce(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	c.mustAppend("t", "r", `[`+start+`]`)
	for _, call := range []string{`agui.set_thread('t', title => 'x')`, `agui.set_hold('t', 'law')`, `agui.lift_hold('t')`} {
		connection, err := pgx.Connect(t.Context(), c.nodes[0].URL) // whose counts begin at 0
		must.Do(t, err)
		calls := 0
		if err := pgx.BeginFunc(t.Context(), connection, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `set local track_functions = 'all'; select `+call); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `select calls from pg_stat_xact_user_functions where funcname = 'key_on_this_node'`).Scan(&calls)
		}); err != nil || calls != 1 {
			t.Errorf("%s looks up %d times (%v)", call, calls, err)
		}
		_ = connection.Close(t.Context())
	}
}

// What was erased on one node is refused on the next one. A thread with a claimed run moves when the
// run has begun.
func TestErasuresAndClaimsMove(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	for _, thread := range []string{"erased", "lifted"} {
		c.mustAppend(thread, "r", `[`+start+`,`+end+`]`)
		testdb.Exec(t, c.pools["a"], `select agui.erase($1)`, thread)
	}
	testdb.Exec(t, c.pools["a"], `select agui.lift_erasure('lifted')`)
	testdb.Exec(t, c.pools["a"], `select agui.claim_run('claimed', 'r', 'me')`)
	all := bucketsFrom(0, cluster.Buckets)
	done := make(chan error, 1)
	go func() {
		_, err := c.Move(t.Context(), all, "b", cluster.MoveOptions{})
		done <- err
	}()
	wait.For(t, "all buckets but that of the claim to move", func() bool {
		return testdb.Ask[int](t, c.pools["a"], `select count(*) from agui_internal.bucket where node = 'b'`) == cluster.Buckets-1
	})
	if _, err := c.pools["a"].Exec(t.Context(), `select agui.append('claimed', 'r', '[`+start+`]')`); err != nil {
		t.Errorf("the claimed run begins: %v", err)
	}
	must.Do(t, <-done)
	must.Report(t, c.append("claimed", "r", `[`+end+`]`))
	if err := c.append("erased", "r", `[`+start+`]`); testdb.State(err) != "UI014" {
		t.Errorf("a thread that was erased: %v", err)
	}
	if err := c.append("lifted", "r", `[`+start+`]`); err != nil {
		t.Errorf("a thread whose erasure was lifted: %v", err)
	}
	c.checkPlaces()
}

// A damaged thread is not moved. It stays where it is, as readable as before, and the message names
// it.
func TestADamagedThreadStays(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	for _, run := range []string{"r1", "r2"} {
		c.mustAppend("damaged", run, `[`+start+`,`+end+`]`)
	}
	testdb.Exec(t, c.pools["a"], `do $$ begin
		perform agui_internal.allow_log_change(true);
		delete from agui.batch where first_seq = 1;
		perform agui_internal.allow_log_change(false);
	end $$`)
	_, err := c.Move(t.Context(), []int{bucketOf(t, c, "damaged")}, "b", cluster.MoveOptions{})
	if err == nil || !strings.Contains(err.Error(), `thread "damaged"`) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the move: %v", err)
	}
	if n := testdb.Ask[int](t, c.pools["a"], `select count(*) from agui.events('damaged')`); n != 2 {
		t.Errorf("%d events, want the 2 that are left", n)
	}
}

// What ended before a move that failed is sent, also if the webhook looked during the move.
func TestAThreadThatIsTakenBackSendsItsEnds(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	var requests atomic.Int32
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer endpoint.Close()
	pool := c.pools["a"]
	must.Have(jobs.AddWebhook(t.Context(), pool, jobs.Webhook{Name: "hook", URL: endpoint.URL, AllScopes: true}, ""))(t)
	position := func() string {
		return testdb.Ask[string](t, pool, `select position from agui_internal.webhook_position`)
	}
	// look lets the webhook look until it has read what changed.
	look := func() {
		t.Helper()
		before := position()
		wait.For(t, "a look of the webhook", func() bool {
			must.Have(jobs.SendWebhooks(t.Context(), pool, jobs.WebhookOptions{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true}))(t)
			return position() != before
		})
	}
	must.Do(t, c.append("thread", "run", `[`+start+`,`+end+`]`))
	testdb.Exec(t, pool, `select agui_internal.fence_threads(array[agui.thread_key('', 'thread')], 'b')`)
	look()
	if n := requests.Load(); n != 0 {
		t.Fatalf("%d requests from the node that the thread leaves", n)
	}
	testdb.Exec(t, pool, `select agui_internal.take_back_thread(agui.thread_key('', 'thread'))`)
	look()
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// Two moves never run at a time, a node must be known, and a database with threads does not join.
func TestMovesThatAreRefused(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	holds, release := make(chan struct{}), make(chan struct{})
	c.mustAppend("t", "r", `[`+start+`,`+end+`]`)
	done := make(chan error, 1)
	go func() {
		_, err := c.Move(t.Context(), []int{bucketOf(t, c, "t")}, "b", cluster.MoveOptions{OnProgress: func(moved cluster.Moved) {
			if moved.Threads == 1 && moved.Buckets == 0 {
				close(holds)
				<-release
			}
		}})
		done <- err
	}()
	<-holds
	if _, err := c.Move(t.Context(), []int{1}, "b", cluster.MoveOptions{}); !errors.Is(err, cluster.ErrMoving) {
		t.Errorf("a second move: %v", err)
	}
	close(release)
	must.Do(t, <-done)
	for _, refused := range []struct {
		buckets []int
		to      string
		want    string
	}{{[]int{1}, "z", `no node "z"`}, {[]int{1024}, "b", "no bucket 1024"}, {[]int{-1}, "b", "no bucket -1"}} {
		if _, err := c.Move(t.Context(), refused.buckets, refused.to, cluster.MoveOptions{}); err == nil || !strings.Contains(err.Error(), refused.want) {
			t.Errorf("move %v to %s: %v", refused.buckets, refused.to, err)
		}
	}
	_, err := c.pools["c"].Exec(t.Context(), `call agui.leave_cluster()`)
	if testdb.State(err) != "55000" {
		t.Errorf("a node without buckets leaves: %v", err)
	}

	own := testdb.New(t)
	testdb.Exec(t, testdb.Connect(t, own), `select agui.append('own', 'r', '[`+start+`]')`)
	other := must.Have(cluster.Open(t.Context(), append(c.nodes, cluster.Node{Name: "d", URL: own})))(t)
	defer other.Close()
	if err := other.Add(t.Context()); err == nil || !strings.Contains(err.Error(), `node "d" has threads already`) {
		t.Errorf("a database with threads joins: %v", err)
	}
}

// A thread comes back to a node that still has its rows, because the mover died before it removed
// them.
func TestAThreadComesBackToItsRows(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	c.mustAppend("t", "r", `[`+start+`]`)
	bucket := []int{bucketOf(t, c, "t")}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := c.Move(ctx, bucket, "b", cluster.MoveOptions{OnProgress: func(moved cluster.Moved) {
		if moved.Buckets == 1 {
			cancel() // before the rows are removed
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.mustAppend("t", "r", `[`+end+`]`)
	wait.For(t, "the lock of the mover to be free", func() bool {
		_, err := c.Move(t.Context(), bucket, "a", cluster.MoveOptions{})
		if err != nil && !errors.Is(err, cluster.ErrMoving) {
			t.Fatal(err)
		}
		return err == nil
	})
	c.checkPlaces()
	if n := testdb.Ask[int](t, c.pools["a"], `select count(*) from agui.events('t')`); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// The server ends the sessions of a mover whose machine is gone, and with them its locks, within half a minute: all of them, unless an
// address says otherwise.
func TestSessionsOfAMoveEndWithTheirMachine(t *testing.T) {
	t.Parallel()
	c := newThree(t, nil)
	c.mustAppend("t", "r", `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]`)
	c.nodes[2].URL += "&tcp_user_timeout=5000"
	for _, node := range c.nodes {
		pool := testdb.Connect(t, node.URL)
		testdb.Exec(t, pool, `create table public.seen (setting text)`)
		testdb.Exec(t, pool, `create function public.note() returns trigger language plpgsql as $$
			begin
				insert into public.seen select concat_ws(' ', current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),
					current_setting('tcp_keepalives_count'), current_setting('tcp_user_timeout'));
				return null;
			end $$`)
		testdb.Exec(t, pool, `grant all on public.seen to public`)
		testdb.Exec(t, pool, `create trigger note after insert or delete on agui.thread for each row execute function public.note()`)
	}
	mover := must.Have(cluster.Open(t.Context(), c.nodes))(t)
	defer mover.Close()
	mover.RemoveAfter = 0
	for _, to := range []string{"b", "c"} {
		must.Have(mover.MoveThread(t.Context(), "", "t", to))(t)
	}
	for i, want := range []string{"15 5 3 30000", "15 5 3 30000", "15 5 3 5000"} {
		if seen := testdb.List[string](t, testdb.Connect(t, c.nodes[i].URL), `select distinct setting from public.seen`); !slices.Equal(seen, []string{want}) {
			t.Errorf("node %s: keepalives and tcp_user_timeout of the sessions that moved a thread are %q, want %q", c.nodes[i].Name, seen, want)
		}
	}
}
