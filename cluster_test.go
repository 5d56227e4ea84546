package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/internal/cutproxy"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// threadsOn are threads of the scope "", some on each of the nodes.
func threadsOn(t testing.TB, nodes []testdb.Node, each int) map[string][]string {
	t.Helper()
	threads := map[string][]string{}
	for n := 0; ; n++ {
		id := fmt.Sprint("thread ", n)
		node := nodeOf(t, nodes, "", id)
		if len(threads[node]) < each {
			threads[node] = append(threads[node], id)
		}
		if len(threads) == len(nodes) && !slices.ContainsFunc(slices.Collect(maps.Values(threads)), func(ids []string) bool { return len(ids) < each }) {
			return threads
		}
	}
}

// nodeOf is the node that the map gives a thread to.
func nodeOf(t testing.TB, nodes []testdb.Node, scope, threadID string) string {
	t.Helper()
	return testdb.Ask[string](t, nodes[0].Pool, `select node from agui_internal.bucket where bucket = agui.bucket($1, $2)`, scope, threadID)
}

// countingDB counts the statements that go through it.
type countingDB struct {
	pgagui.DB
	statements *atomic.Int64
}

func (c countingDB) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	c.statements.Add(1)
	return c.DB.Exec(ctx, sql, arguments...)
}

func (c countingDB) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	c.statements.Add(1)
	return c.DB.Query(ctx, sql, arguments...)
}

func (c countingDB) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	c.statements.Add(1)
	return c.DB.QueryRow(ctx, sql, arguments...)
}

func (c countingDB) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	c.statements.Add(1)
	return c.DB.SendBatch(ctx, batch)
}

// The Store computes the node of a thread as the database does, so each call is one statement, on the right node.
func TestACallGoesToTheNodeOfItsThread(t *testing.T) {
	t.Parallel()
	for _, setsScope := range []bool{false, true} {
		nodes := testdb.Nodes(t, 3)
		counts := map[string]*atomic.Int64{}
		var list []pgagui.Node
		for _, node := range nodes {
			counts[node.Name] = &atomic.Int64{}
			list = append(list, pgagui.Node{Name: node.Name, Pool: countingDB{node.Pool, counts[node.Name]}})
		}
		store := pgagui.NewCluster(list, &pgagui.Config{SetScope: setsScope})
		if _, err := store.Threads(t.Context(), pgagui.ThreadsOptions{}); err != nil { // the map, from each
			t.Fatal(err)
		}
		for _, count := range counts {
			if n := count.Swap(0); n != 2 {
				t.Fatalf("the map and a list take %d statements", n)
			}
		}
		want := map[string][]string{} // the threads of each node
		random := rand.New(rand.NewPCG(1, 2))
		for n := range 60 {
			scope, threadID := []string{"", "a", "ü\n", "scope"}[n%4], fmt.Sprintf("%d %c \\x00 %s", n, 'a'+random.Int32N(2000), strings.Repeat("x", n))
			node := nodeOf(t, nodes, scope, threadID)
			want[node] = append(want[node], scope+"|"+threadID)
			counts["a"].Store(0)
			counts["b"].Store(0)
			counts["c"].Store(0)
			in := store.InScope(scope)
			mustAppend(t, in, threadID, "r", rawEvents(started("r"), token(n), finished))
			if got, err := in.Messages(t.Context(), threadID, pgagui.At{}); err != nil || len(got) != 0 && got[0].ID != "m" {
				t.Errorf("messages of %q: %v, %v", threadID, got, err)
			}
			for name, count := range counts {
				if n := count.Load(); (name == node) != (n == 2) || name != node && n != 0 {
					t.Errorf("thread %q of scope %q is on node %s, and %s got %d statements", threadID, scope, node, name, n)
				}
			}
			if got := payloads(t, in, threadID, "r"); len(got) != 3 || got[1] != token(n) {
				t.Errorf("thread %q has %s", threadID, got)
			}
		}
		for _, node := range nodes {
			got := testdb.Ask[[]string](t, node.Pool, `select array(select scope || '|' || thread_id from agui.thread)`)
			slices.Sort(got)
			slices.Sort(want[node.Name])
			if len(got) == 0 || !slices.Equal(got, want[node.Name]) {
				t.Errorf("node %s has threads %q, want %q", node.Name, got, want[node.Name])
			}
			if n := testdb.Ask[int](t, node.Pool, `select count(*) from agui.batch`); n != len(got) {
				t.Errorf("node %s has %d batches of %d threads", node.Name, n, len(got))
			}
		}
	}
}

func TestAppendManyOverAllNodes(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 3)
	store := onNodes(nodes, nil)
	threads := threadsOn(t, nodes, 2)
	var calls []pgagui.AppendCall
	add := func(threadID, runID string, afterSeq int64, raw ...string) {
		calls = append(calls, pgagui.AppendCall{Run: pgagui.RunRef{ThreadID: threadID, RunID: runID}, AfterSeq: afterSeq, Events: rawEvents(raw...)})
	}
	for i := range 2 { // alternately, so that the calls of a node are not side by side
		for _, node := range nodes {
			add(threads[node.Name][i], "r", 0, started("r"), token(i))
		}
	}
	for _, node := range nodes {
		add(threads[node.Name][0], "r", 2, token(7))             // behind the first call for this thread
		add(threads[node.Name][1], "other", 0, started("other")) // refused
	}
	calls[7].Events = rawEvents("\x00") // the database cannot read it
	results, err := store.AppendMany(t.Context(), calls, pgagui.AppendManyOptions{})
	if err != nil || len(results) != len(calls) {
		t.Fatalf("%d results, error %v", len(results), err)
	}
	for i, result := range results {
		switch {
		case i < 6 && (result.Err != nil || result.LastSeq != 2), i >= 6 && i%2 == 0 && (result.Err != nil || result.LastSeq != 3):
			t.Errorf("call %d: %+v", i, result)
		case i == 7 && !errors.Is(result.Err, pgagui.ErrInvalidEvents), i > 7 && i%2 == 1 && !errors.Is(result.Err, pgagui.ErrRunInProgress):
			t.Errorf("call %d: %+v", i, result)
		}
	}
	again, err := store.AppendMany(t.Context(), calls[:7], pgagui.AppendManyOptions{})
	if err != nil || !reflect.DeepEqual(again, results[:7]) {
		t.Errorf("repeated: %+v, want %+v; error %v", again, results[:7], err)
	}
}

// A thread and buckets move while recorders write and followers read: each event comes once, in order, with its bytes.
func TestThreadsMoveUnderRecordersAndFollowers(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 3)
	store := onNodes(nodes, &pgagui.Config{Logger: quiet})
	others := onNodes(nodes, &pgagui.Config{Logger: quiet}) // in another process, which learns of moves by itself
	var described []cluster.Node
	for _, node := range nodes {
		described = append(described, cluster.Node{Name: node.Name, URL: node.URL})
	}
	mover := must.Have(cluster.Open(t.Context(), described))(t)
	t.Cleanup(mover.Close)
	mover.RemoveAfter = 100 * time.Millisecond

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: 10 * time.Millisecond, Logger: quiet})
	var threads []string
	var homes []int // of each, the node where it begins
	each, rounds := 2, 3
	if testing.Short() {
		each, rounds = 1, 1
	}
	for node, ids := range threadsOn(t, nodes, each) {
		for _, id := range ids {
			threads, homes = append(threads, id), append(homes, slices.IndexFunc(nodes, func(n testdb.Node) bool { return n.Name == node }))
		}
	}
	end := make(chan struct{})
	var work errgroup.Group
	recorded := make([][]string, len(threads))
	followed := make([][]string, len(threads))
	for i, threadID := range threads {
		recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: threadID, RunID: "r"}, pgagui.BeginOptions{Start: json.RawMessage(started("r"))})
		work.Go(func() error {
			recorded[i] = []string{started("r")}
			tick := time.Tick(2 * time.Millisecond) // as a fast model
			for n := 0; ; n++ {
				event := token(n)
				select {
				case <-end:
					event = finished
				case <-tick:
				}
				recorded[i] = append(recorded[i], event)
				err := recording.Record(ctx, json.RawMessage(event))
				if err == nil && n%5 == 0 || event == finished {
					err = recording.Flush(ctx)
				}
				if err == nil && event == finished {
					return recording.Close(ctx)
				}
				if err != nil {
					return fmt.Errorf("record thread %q: %w", threadID, err)
				}
			}
		})
		for _, follower := range []*pgagui.Store{store, others} {
			work.Go(func() error {
				var seen []string
				for event, err := range follower.Follow(ctx, threadID, pgagui.FollowOptions{RunID: "r"}) {
					if err != nil {
						return fmt.Errorf("follow thread %q: %w", threadID, err)
					}
					if int(event.Seq) != len(seen)+1 {
						return fmt.Errorf("follow thread %q: seq %d behind %d events", threadID, event.Seq, len(seen))
					}
					seen = append(seen, string(event.JSON))
				}
				if follower == others {
					followed[i] = seen
				}
				return nil
			})
		}
		work.Go(func() error { // reads and small changes of all kinds
			tick := time.Tick(10 * time.Millisecond)
			for n := 0; ; n++ {
				select {
				case <-end:
					return nil
				case <-tick:
				}
				reader := []*pgagui.Store{store, others}[n%2]
				_, err := reader.Status(ctx, pgagui.RunRef{ThreadID: threadID})
				if err == nil {
					_, err = reader.Restore(ctx, threadID, pgagui.At{})
				}
				if err == nil {
					_, err = reader.SetThread(ctx, threadID, pgagui.ThreadChanges{Title: new(fmt.Sprint(n))})
				}
				if err == nil {
					_, err = reader.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: threadID, Key: "k"}, json.RawMessage("1"), pgagui.SaveOptions{Overwrite: true})
				}
				if err != nil {
					return fmt.Errorf("read thread %q: %w", threadID, err)
				}
			}
		})
	}
	moves := 0
	for round := range rounds {
		for i, threadID := range threads {
			moved := must.Have(mover.MoveThread(ctx, "", threadID, nodes[(homes[i]+round+1)%3].Name))(t)
			moves += moved.Threads
		}
	}
	for _, threadID := range threads[:1] { // a whole bucket
		moved := must.Have(mover.Move(ctx, []int{testdb.Ask[int](t, nodes[0].Pool, `select agui.bucket('', $1)`, threadID)}, nodes[moves%3].Name, cluster.MoveOptions{}))(t)
		moves += moved.Threads
	}
	close(end)
	must.Do(t, work.Wait())
	if moves < len(threads) {
		t.Fatalf("%d moves", moves)
	}
	fresh := onNodes(nodes, nil) // which knows only the map
	for i, threadID := range threads {
		log := payloads(t, fresh, threadID, "r")
		if !slices.Equal(log, recorded[i]) {
			t.Errorf("thread %q has %d events, recorded were %d", threadID, len(log), len(recorded[i]))
		}
		if !slices.Equal(followed[i], recorded[i]) {
			t.Errorf("of thread %q %d events were followed, recorded were %d", threadID, len(followed[i]), len(recorded[i]))
		}
		mustVerify(t, fresh, threadID)
	}
	stats := recorder.Stats()
	if stats.Failed != 0 || stats.Buffered != 0 {
		t.Errorf("%+v", stats)
	}
}

// A node that cannot be reached, or hangs, holds up its own threads only: calls, recordings, their heartbeats and followers.
func TestANodeThatIsAwayHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ begin, end func(*cutproxy.Proxy) }{
		"it refuses": {func(p *cutproxy.Proxy) { p.Refuse(true); p.CutNow() }, func(p *cutproxy.Proxy) { p.Refuse(false) }},
		"it hangs":   {func(p *cutproxy.Proxy) { p.Hold() }, func(p *cutproxy.Proxy) { p.CutNow(); p.Release() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := testdb.Nodes(t, 3)
			threads := threadsOn(t, nodes, 3)
			proxy := cutproxy.Start(t, nodes[1].URL)
			list := []pgagui.Node{
				{Name: "a", Pool: nodes[0].Pool}, {Name: "b", Pool: testdb.Connect(t, proxy.URL())}, {Name: "c", Pool: nodes[2].Pool},
			}
			newStore := func() *pgagui.Store {
				return pgagui.NewCluster(list, &pgagui.Config{Logger: quiet, CallTimeout: givesUpSoon})
			}
			store := newStore()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			recorder := newRecorder(t, store, &pgagui.RecorderConfig{CallTimeout: givesUpSoon, CheckEvery: 10 * time.Millisecond, Logger: quiet})
			recordings := map[string]*pgagui.Recording{}
			var mu sync.Mutex
			seen := map[string]int{} // events
			var following errgroup.Group
			for _, ids := range threads {
				for _, id := range ids {
					recordings[id] = mustBegin(t, recorder, pgagui.RunRef{ThreadID: id, RunID: "r"}, pgagui.BeginOptions{Start: json.RawMessage(started("r"))})
					following.Go(func() error {
						last := int64(0)
						for event, err := range newStore().Follow(ctx, id, pgagui.FollowOptions{RunID: "r"}) {
							if err != nil {
								return err
							}
							if event.Seq <= last {
								return fmt.Errorf("thread %q: seq %d behind %d", id, event.Seq, last)
							}
							last = event.Seq
							mu.Lock()
							seen[id]++
							mu.Unlock()
						}
						return nil
					})
				}
			}
			hasSeen := func(node string, events int) func() bool {
				return func() bool {
					mu.Lock()
					defer mu.Unlock()
					for _, id := range threads[node] {
						if seen[id] < events {
							return false
						}
					}
					return true
				}
			}
			record := func(event string) {
				t.Helper()
				for _, recording := range recordings {
					must.Do(t, recording.Record(ctx, json.RawMessage(event)))
				}
			}
			for _, node := range nodes {
				wait.For(t, "the beginning on node "+node.Name, hasSeen(node.Name, 1))
			}

			test.begin(proxy)
			large := fmt.Sprintf(`{"type":"CUSTOM","name":"large","value":%q}`, strings.Repeat("x", 2<<20)) // in a call of its own
			record(large)
			for n := range 5 {
				record(token(n))
				wait.For(t, "events on node a", hasSeen("a", n+3))
				wait.For(t, "events on node c", hasSeen("c", n+3))
			}
			if hasSeen("b", 2)() {
				t.Error("node b is away, and its threads go on")
			}
			// Other calls, of a process that begins now.
			fresh := newStore()
			for _, id := range []string{threads["a"][0], threads["c"][0]} {
				if status, err := fresh.Status(ctx, pgagui.RunRef{ThreadID: id}); err != nil || status.LastSeq < 7 {
					t.Errorf("thread %q: %+v, error %v", id, status, err)
				}
			}
			freshRecorder := newRecorder(t, newStore(), &pgagui.RecorderConfig{CallTimeout: givesUpSoon, Logger: quiet})
			for _, node := range []string{"b", "a"} {
				recording := mustBegin(t, freshRecorder, pgagui.RunRef{ThreadID: threads[node][1], RunID: "fresh"}, pgagui.BeginOptions{Parallel: true, NoParent: true})
				mustRecord(t, recording, started("fresh"), finished)
				if node == "a" {
					must.Report(t, recording.Close(ctx))
				}
			}
			short, cancelShort := context.WithTimeout(ctx, givesUpSoon)
			page, err := store.Threads(short, pgagui.ThreadsOptions{})
			cancelShort()
			if unanswered, ok := errors.AsType[*pgagui.UnansweredError](err); !ok || len(unanswered.Nodes) != 1 || unanswered.Nodes["b"] == nil || len(page.Threads) != 6 {
				t.Errorf("%d threads, error %v", len(page.Threads), err)
			}
			if !strings.HasPrefix(err.Error(), `node "b" did not answer: `) || strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
			if runs, err := store.RequestStop(ctx, pgagui.RunRef{ThreadID: threads["c"][2], RunID: "r"}, pgagui.RequestStopOptions{}); err != nil || runs != 1 {
				t.Error(runs, err)
			}
			wait.For(t, "the request to stop", func() bool { return recordings[threads["c"][2]].Context().Err() != nil })

			test.end(proxy)
			record(finished)
			for id, recording := range recordings {
				if err := recording.Close(ctx); err != nil {
					t.Errorf("thread %q: %v", id, err)
				}
			}
			must.Report(t, following.Wait())
			for id := range recordings {
				log := payloads(t, store, id, "r")
				if len(log) != 8 || log[1] != large || log[7] != finished {
					t.Errorf("thread %q has %d events", id, len(log))
				}
			}
			must.Report(t, freshRecorder.Close(ctx))
			if stats := recorder.Stats(); stats.Failed != 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

func TestAClusterThatIsNone(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 2)
	plain := testdb.Pool(t)
	a, b := pgagui.Node{Name: "a", Pool: nodes[0].Pool}, pgagui.Node{Name: "b", Pool: nodes[1].Pool}
	onB := threadsOn(t, nodes, 1)["b"][0]
	for what, test := range map[string]struct {
		nodes  []pgagui.Node
		config *pgagui.Config
		want   string
	}{
		"no nodes":            {nil, nil, "has no nodes"},
		"no name":             {[]pgagui.Node{{Pool: plain}}, nil, "node 1 has no name"},
		"no pool":             {[]pgagui.Node{{Name: "a"}}, nil, `node "a" has no pool`},
		"twice":               {[]pgagui.Node{a, a}, nil, `two nodes are named "a"`},
		"some live":           {[]pgagui.Node{a, {Name: "b", Pool: b.Pool, Live: b.Pool}}, nil, "some nodes have a pool for recorders"},
		"live of a database":  {[]pgagui.Node{a, b}, &pgagui.Config{Live: plain}, "Config.Live is for one database"},
		"a node is missing":   {[]pgagui.Node{a}, nil, `the map has a node "b", and the Store has no pool for it`},
		"names are exchanged": {[]pgagui.Node{{Name: "b", Pool: a.Pool}, {Name: "a", Pool: b.Pool}}, nil, `is node "`},
		"no node":             {[]pgagui.Node{a, {Name: "b", Pool: plain}}, nil, `the database of node "b" is no node of a cluster`},
	} {
		store := pgagui.NewCluster(test.nodes, test.config)
		if _, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: onB, RunID: "r"}, rawEvents(started("r")), pgagui.AppendOptions{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: append: %v, want %s", what, err, test.want)
		}
		recorder := newRecorder(t, store, &pgagui.RecorderConfig{Logger: quiet})
		if _, err := recorder.Begin(t.Context(), pgagui.RunRef{ThreadID: onB, RunID: "r"}, pgagui.BeginOptions{Start: json.RawMessage(started("r"))}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: record: %v, want %s", what, err, test.want)
		}
		for _, err := range store.Follow(t.Context(), onB, pgagui.FollowOptions{}) {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: follow: %v, want %s", what, err, test.want)
			}
		}
	}
	for _, pool := range append([]testdb.Node{{Pool: plain}}, nodes...) {
		if n := testdb.Ask[int](t, pool.Pool, `select count(*) from agui.thread`); n != 0 {
			t.Errorf("%d threads were stored", n)
		}
	}
}

// A Store learns from one thread of a pinned scope where the others are, and that the scope is pinned no
// longer.
func TestTheBucketOfAPinnedScopeIsLearned(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 2)
	var described []cluster.Node
	var counted []pgagui.Node
	statements := &atomic.Int64{}
	for _, node := range nodes {
		described = append(described, cluster.Node{Name: node.Name, URL: node.URL})
		counted = append(counted, pgagui.Node{Name: node.Name, Pool: countingDB{node.Pool, statements}})
	}
	administered := must.Have(cluster.Open(t.Context(), described))(t)
	defer administered.Close()
	threads := threadsOn(t, nodes, 10)
	all := slices.Concat(threads["a"], threads["b"])
	store := pgagui.NewCluster(counted, nil)
	appendAll := func(run string) (sent int64) {
		before := statements.Load()
		for _, thread := range all {
			mustAppend(t, store, thread, run, rawEvents(started(run), finished))
		}
		return statements.Load() - before
	}
	count := func(node int) int { return testdb.Ask[int](t, nodes[node].Pool, `select count(*) from agui.thread`) }
	appendAll("r0")
	bucket := testdb.Ask[int](t, nodes[0].Pool, `select max(bucket) from agui_internal.bucket where node = 'b'`)
	must.Have(administered.PinScope(t.Context(), "", bucket, cluster.MoveOptions{}))(t)
	if sent := appendAll("r1"); sent != int64(len(all))+1 || count(1) != len(all) {
		t.Errorf("%d statements for %d threads of a pinned scope, want one more; %d are on b", sent, len(all), count(1))
	}
	must.Have(administered.UnpinScope(t.Context(), "", cluster.MoveOptions{}))(t)
	if sent := appendAll("r2"); sent != int64(len(all))+1 || count(0) != len(all)/2 {
		t.Errorf("%d statements for %d threads, want one more; %d are on a", sent, len(all), count(0))
	}
}

// One database can be used as a cluster, also before it is one, and becomes the first node while it is used.
func TestOneDatabaseBecomesACluster(t *testing.T) {
	t.Parallel()
	address, second := testdb.New(t), testdb.New(t)
	described := []cluster.Node{{Name: "a", URL: address}, {Name: "b", URL: second}}
	pool := testdb.Connect(t, address)
	early := pgagui.NewCluster([]pgagui.Node{{Name: "a", Pool: pool}}, nil)
	store := pgagui.NewCluster([]pgagui.Node{{Name: "a", Pool: pool}, {Name: "b", Pool: testdb.Connect(t, second)}}, &pgagui.Config{Logger: quiet})
	for n := range 8 {
		mustAppend(t, early, fmt.Sprint("t", n), "r", rawEvents(started("r"), finished))
	}
	recorder := newRecorder(t, early, nil)
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t0", RunID: "s"}, pgagui.BeginOptions{Start: json.RawMessage(started("s"))})
	if _, err := store.Head(t.Context(), "t0"); err == nil {
		t.Error("two databases that are no nodes make a cluster")
	}
	admin := must.Have(cluster.Open(t.Context(), described))(t)
	t.Cleanup(admin.Close)
	admin.RemoveAfter = 100 * time.Millisecond
	must.Do(t, admin.Init(t.Context()))
	mustRecord(t, recording, token(1), finished)
	must.Report(t, recording.Close(t.Context()))
	page, err := store.Threads(t.Context(), pgagui.ThreadsOptions{})
	if err != nil || len(page.Threads) != 8 {
		t.Errorf("%d threads, error %v", len(page.Threads), err)
	}
	bucket := testdb.Ask[int](t, pool, `select agui.bucket('', 't1')`)
	must.Have(admin.Move(t.Context(), []int{bucket}, "b", cluster.MoveOptions{}))(t)
	if node, err := store.NodeOf(t.Context(), "t1"); err != nil || node != "b" {
		t.Errorf("the thread was moved to b, and is on %q (%v)", node, err)
	}
	mustAppend(t, store, "t1", "s", rawEvents(started("s"), finished))
	if _, err := early.Head(t.Context(), "t1"); err == nil || !strings.Contains(err.Error(), `no pool for it`) {
		t.Errorf("a node that the Store does not have: %v", err)
	}
	if alone := pgagui.New(pool, nil); true {
		_, err := alone.Head(t.Context(), "t1")
		var refused *pgagui.Error
		if !errors.Is(err, pgagui.ErrMoved) || !errors.As(err, &refused) || refused.Detail != "" || pgagui.IsTransient(err) {
			t.Errorf("a Store on one node: %v", err)
		}
	}
}

func TestATransactionIsOnOneNode(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 2)
	store := onNodes(nodes, nil)
	threads := threadsOn(t, nodes, 1)
	if got := store.Nodes(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("nodes %q", got)
	}
	if got := pgagui.New(nodes[0].Pool, nil).Nodes(); got != nil {
		t.Errorf("one database has nodes %q", got)
	}
	tx, err := nodes[0].Pool.Begin(t.Context())
	must.Do(t, err)
	defer tx.Rollback(context.Background())
	mustAppend(t, store.WithTx(tx), threads["a"][0], "r", rawEvents(started("r"), finished))
	if _, err := store.Head(t.Context(), threads["a"][0]); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("the transaction is not committed: %v", err)
	}
	must.Do(t, tx.Commit(t.Context()))
	if _, err := store.Head(t.Context(), threads["a"][0]); err != nil {
		t.Error(err)
	}
	if tx, err = nodes[0].Pool.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = store.WithTx(tx).Append(t.Context(), pgagui.RunRef{ThreadID: threads["b"][0], RunID: "r"}, rawEvents(started("r")), pgagui.AppendOptions{})
	if !errors.Is(err, pgagui.ErrMoved) {
		t.Error(err)
	}
	must.Do(t, tx.Rollback(t.Context()))
	mustAppend(t, store, threads["b"][0], "r", rawEvents(started("r"), finished))
	for name, ids := range threads {
		page, err := store.OnNode(name).Threads(t.Context(), pgagui.ThreadsOptions{})
		if err != nil || len(page.Threads) != 1 || page.Threads[0].ID != ids[0] {
			t.Errorf("node %s: %+v, error %v", name, page.Threads, err)
		}
	}
	for name, ids := range threads {
		if node, err := store.NodeOf(t.Context(), ids[0]); err != nil || node != name {
			t.Errorf("a thread of node %s is on %q (%v)", name, node, err)
		}
	}
	if node, err := pgagui.New(nodes[0].Pool, nil).NodeOf(t.Context(), "t"); err != nil || node != "" {
		t.Errorf("without a cluster a thread is on node %q (%v)", node, err)
	}
	if _, err := store.OnNode("b").Head(t.Context(), threads["a"][0]); !errors.Is(err, pgagui.ErrMoved) {
		t.Error(err)
	}
	if _, err := store.OnNode("x").Head(t.Context(), "t"); err == nil || !strings.Contains(err.Error(), `no node "x"`) {
		t.Error(err)
	}
}

// A server of many scopes: calls set their scope, recorders and followers have pools without it, whose role can do nothing else.
func TestRecordersOfAClusterNeedLittle(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 3)
	var list []pgagui.Node
	for _, node := range nodes {
		list = append(list, pgagui.Node{Name: node.Name, Pool: node.Pool, Live: recorderRole(t, node.URL)})
	}
	store := pgagui.NewCluster(list, &pgagui.Config{Scope: "a", SetScope: true})
	recorder := newRecorder(t, store, nil)
	var work errgroup.Group
	for n := range 12 {
		run, scope := pgagui.RunRef{ThreadID: fmt.Sprint("t", n), RunID: "r"}, []string{"a", "b"}[n%2]
		work.Go(func() error {
			events := 0
			for _, err := range store.InScope(scope).Follow(t.Context(), run.ThreadID, pgagui.FollowOptions{RunID: "r", Stay: true}) {
				if err != nil {
					return err
				}
				events++
			}
			if events != 3 {
				return fmt.Errorf("%d events of thread %s", events, run.ThreadID)
			}
			return nil
		})
		recording := mustBegin(t, recorder, run, pgagui.BeginOptions{Scope: scope})
		mustRecord(t, recording, started("r"), token(n), finished)
	}
	must.Report(t, recorder.Close(t.Context()))
	must.Report(t, work.Wait())
}

func TestSessionsOfSeveralNodes(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 3)
	store := onNodes(nodes, nil)
	threads := threadsOn(t, nodes, 2)
	var refs []pgagui.SessionRef
	var documents []json.RawMessage
	for i := range 2 {
		for _, node := range nodes {
			id := threads[node.Name][i]
			refs = append(refs, pgagui.SessionRef{ThreadID: id})
			documents = append(documents, json.RawMessage(fmt.Sprintf("\n"+`{"state":{"k":%d},"threadId":%q}`, len(refs), id)))
		}
	}
	versions, err := store.Sessions().SaveMany(t.Context(), documents)
	if err != nil || len(versions) != 6 || versions[5]["k"] != 1 {
		t.Fatalf("%v, error %v", versions, err)
	}
	if _, err := store.Sessions().SaveAll(t.Context(), documents[1]); err != nil {
		t.Error(err)
	}
	slices.Reverse(refs)
	loaded, err := store.Sessions().LoadMany(t.Context(), refs)
	if err != nil || len(loaded) != 6 {
		t.Fatalf("%d documents, error %v", len(loaded), err)
	}
	for i, document := range loaded {
		var read struct {
			ThreadID string
			State    map[string]int
		}
		if err := json.Unmarshal(document, &read); err != nil || read.ThreadID != refs[i].ThreadID || read.State["k"] != 6-i {
			t.Errorf("document %d: %s, error %v", i, document, err)
		}
	}
	for _, wrong := range []string{`{`, `[]`, `{"threadId":7}`, `{}`} {
		if _, err := store.Sessions().SaveAll(t.Context(), json.RawMessage(wrong)); !errors.Is(err, pgagui.ErrInvalidEvents) {
			t.Errorf("%s: %v", wrong, err)
		}
		if _, err := store.Sessions().SaveMany(t.Context(), []json.RawMessage{documents[0], json.RawMessage(wrong)}); !errors.Is(err, pgagui.ErrInvalidEvents) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
