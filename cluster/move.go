package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/internal/buckets"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/snapshot"
	"github.com/pgagui/pgagui/internal/threadrows"
)

const (
	// parallelCopies is how many threads are copied at a time.
	parallelCopies = 4
	// page is how many threads are listed at a time.
	page = 500
	// clockError is more than the clocks of two machines differ by.
	clockError = time.Hour
	// otherMoveTimeout bounds how long a move waits for one that ends.
	otherMoveTimeout = 5 * time.Second
	// takeBackTimeout bounds the attempt to give a thread back that could not be copied.
	takeBackTimeout = 10 * time.Second
)

// Moved is what a move has done.
type Moved struct {
	Buckets int `json:"buckets"`
	Threads int `json:"threads"`
	// Left counts the threads whose rows are still where they were, because requests of webhooks about
	// them are waiting there. The next move removes them.
	Left int `json:"left"`
	// LongestPause is the longest time in which a thread was on neither of the nodes: calls for it
	// waited.
	LongestPause time.Duration `json:"longestPauseNanoseconds"`
	Duration     time.Duration `json:"nanoseconds"`
}

// Add adds what another move has done.
func (m *Moved) Add(other Moved) {
	m.Buckets += other.Buckets
	m.Threads += other.Threads
	m.Left += other.Left
	m.LongestPause = max(m.LongestPause, other.LongestPause)
	m.Duration += other.Duration
}

// MoveOptions belong to Move.
type MoveOptions struct {
	// OnProgress is called after each thread and each bucket.
	OnProgress func(Moved)
}

// ErrMoving says that another move of the cluster is in progress.
var ErrMoving = errors.New("another move is in progress in this cluster")

// Move moves buckets to a node, thread by thread, while they are in use. A call for a thread waits
// for the copy of this thread. Move may be interrupted at any time, also by the loss of a node: the
// next call finishes what it left, whatever it moves. Buckets that are there already stay there, and
// threads of them that were moved alone come back to them.
func (c *Cluster) Move(ctx context.Context, buckets []int, to string, options MoveOptions) (Moved, error) {
	return c.work(ctx, options, func(ctx context.Context, m *mover) error { return m.move(ctx, buckets, to) })
}

// MoveThread moves one thread, for example one that is used much more than others. Its bucket stays
// where it is; once that is moved, the thread goes along.
func (c *Cluster) MoveThread(ctx context.Context, scope, threadID, to string) (Moved, error) {
	return c.work(ctx, MoveOptions{}, func(ctx context.Context, m *mover) error { return m.moveThread(ctx, scope, threadID, to) })
}

// work calls f while no other move is in progress, and returns what it has moved.
func (c *Cluster) work(ctx context.Context, options MoveOptions, f func(context.Context, *mover) error) (Moved, error) {
	m := &mover{cluster: c, onProgress: options.OnProgress, token: rand.Int64()}
	begin := time.Now()
	err := m.alone(ctx, func(ctx context.Context) error { return f(ctx, m) })
	m.done.Duration = time.Since(begin)
	return m.done, err
}

// Rebalance moves buckets, as few as possible, until each node has as many as the others, or one more. It finishes what an interrupted
// move has left, also if there is nothing to move.
func (c *Cluster) Rebalance(ctx context.Context, options MoveOptions) (Moved, error) {
	return c.work(ctx, options, func(ctx context.Context, m *mover) error {
		plan, err := m.plan(ctx)
		if err != nil {
			return err
		}
		if len(plan) == 0 {
			plan[c.nodes[0].name] = nil
		}
		for _, to := range slices.Sorted(maps.Keys(plan)) {
			if err := m.move(ctx, plan[to], to); err != nil {
				return err
			}
		}
		return nil
	})
}

// plan returns the moves that give each node the same number of buckets, or one more, with as few
// moves as possible: the buckets to move, by the node that they are moved to.
func (m *mover) plan(ctx context.Context) (map[string][]int, error) {
	c := m.cluster
	places, err := m.places(ctx)
	if err != nil {
		return nil, err
	}
	has := map[string][]int{}
	for bucket, at := range places {
		has[at.Node] = append(has[at.Node], bucket)
	}
	byBuckets := slices.Clone(c.nodes)
	slices.SortStableFunc(byBuckets, func(a, b *node) int { return len(has[b.name]) - len(has[a.name]) })
	var surplus []int
	share := map[string]int{}
	for i, node := range byBuckets {
		share[node.name] = Buckets / len(c.nodes)
		if i < Buckets%len(c.nodes) { // those that have more keep one more
			share[node.name]++
		}
		if more := len(has[node.name]) - share[node.name]; more > 0 {
			surplus = append(surplus, has[node.name][len(has[node.name])-more:]...)
		}
	}
	plan := map[string][]int{}
	for _, node := range byBuckets {
		if missing := share[node.name] - len(has[node.name]); missing > 0 {
			plan[node.name], surplus = surplus[:missing], surplus[missing:]
		}
	}
	return plan, nil
}

type mover struct {
	cluster    *Cluster
	onProgress func(Moved)
	token      int64          // names the move on the nodes
	tables     rawjson.Binary // and columns, of which rows are moved

	mu   sync.Mutex
	done Moved
}

func (m *mover) note(change func(*Moved)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.done)
	if m.onProgress != nil {
		m.onProgress(m.done)
	}
}

// alone calls f while no other move runs: a session on each node has a lock for it. What an earlier move has sent there is committed
// by then, or refused: it has lost its lock.
func (m *mover) alone(ctx context.Context, f func(context.Context) error) error {
	for i, node := range m.cluster.nodes {
		connection, err := node.pool.Acquire(ctx)
		if err != nil {
			return inNode(node, err)
		}
		defer connection.Release()
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
			defer cancel()
			if _, err := connection.Exec(ctx, `select pg_catalog.pg_advisory_unlock_all()`); err != nil {
				_ = connection.Conn().Close(ctx) // which frees them too
			}
		}()
		if err := address.CheckSession(ctx, connection.Conn()); err != nil {
			return inNode(node, err)
		}
		if err := m.begin(ctx, node, db.New(connection), i == 0); err != nil {
			return err
		}
	}
	tables, err := m.cluster.nodes[0].queries.ArchivedTables(ctx)
	if err != nil {
		return inNode(m.cluster.nodes[0], err)
	}
	m.tables = rawjson.Binary(tables)
	return f(ctx)
}

// begin takes the lock of a node. The lock of the first node decides who may move. On the other nodes, a move that is ending may still
// have it, so begin waits for it there.
func (m *mover) begin(ctx context.Context, node *node, session *db.Queries, isFirst bool) error {
	pauses := live.Pauses(20*time.Millisecond, 500*time.Millisecond)
	for end := time.Now().Add(otherMoveTimeout); ; {
		isAlone, err := session.BeginMove(ctx, m.token)
		if err == nil && !isAlone && (isFirst || time.Now().After(end)) {
			err = ErrMoving
		}
		if err != nil || isAlone {
			return inNode(node, err)
		}
		if err := sleep(ctx, pauses.NextBackOff()); err != nil {
			return inNode(node, err)
		}
	}
}

// step calls f with a transaction on a node, unless the move has lost the lock of the node. All changes of a move are such steps.
func (m *mover) step(ctx context.Context, node *node, f func(*db.Queries) error) error {
	return inNode(node, pgx.BeginFunc(ctx, node.pool, func(tx pgx.Tx) error {
		queries := db.New(tx)
		if err := queries.BeginMoveStep(ctx, m.token); err != nil {
			return err
		}
		return f(queries)
	}))
}

// places returns the newest places of all buckets, and completes moves of buckets of which not all
// nodes know.
func (m *mover) places(ctx context.Context) (newest buckets.Places, err error) {
	known := make([]buckets.Places, len(m.cluster.nodes))
	for i, node := range m.cluster.nodes {
		own, err := node.readMap(ctx)
		if err != nil {
			return newest, err
		}
		if own.Node == "" {
			return newest, fmt.Errorf("node %q has not joined the cluster: run pgagui cluster add", node.name)
		}
		known[i].Take(own)
		newest.Take(own)
	}
	for bucket, at := range newest {
		if _, err := m.cluster.node(at.Node); err != nil {
			return newest, fmt.Errorf("bucket %d is on node %q, which is not among the given nodes", bucket, at.Node)
		}
	}
	if err := m.announce(ctx, known, newest); err != nil {
		return newest, err
	}
	return newest, m.announcePins(ctx, newest)
}

// announce tells each node the places that it does not know, the node that gets a bucket first.
func (m *mover) announce(ctx context.Context, known []buckets.Places, newest buckets.Places) error {
	for _, areOwn := range []bool{true, false} {
		for i, node := range m.cluster.nodes {
			var news []buckets.Range
			for bucket, at := range newest {
				if known[i][bucket].Epoch != at.Epoch && (at.Node == node.name) == areOwn {
					news = append(news, buckets.Range{First: bucket, Last: bucket, Node: at.Node, Epoch: at.Epoch})
				}
			}
			if err := m.tell(ctx, node, news, time.Time{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell tells a node the places of buckets. Of those that are its own now, the node first gets to know
// what the others know of their threads, and which threads were erased there since a time.
func (m *mover) tell(ctx context.Context, node *node, news []buckets.Range, since time.Time) error {
	if len(news) == 0 {
		return nil
	}
	var own []int32
	for _, r := range news {
		if r.Node == node.name {
			own = append(own, int32(r.First))
		}
	}
	for _, other := range m.cluster.nodes {
		if other == node || len(own) == 0 {
			continue
		}
		elsewhere, err := other.queries.ThreadsElsewhere(ctx, db.ThreadsElsewhereParams{Buckets: own, ToNode: node.name})
		if err != nil {
			return inNode(other, err)
		}
		if err := m.copyErasures(ctx, other, node, elsewhere, since); err != nil {
			return err
		}
	}
	return m.receive(ctx, node, db.ReceiveBucketsParams{Map: textOf(news), Elsewhere: none, Erasures: none})
}

var none = rawjson.Text("[]")

// copyErasures gives the target the tombstones that the source has recorded since a time, and the
// threads that are elsewhere.
func (m *mover) copyErasures(ctx context.Context, source, target *node, elsewhere rawjson.Text, since time.Time) error {
	erasures, err := source.queries.ErasuresSince(ctx, since)
	if err != nil {
		return inNode(source, err)
	}
	return m.receive(ctx, target, db.ReceiveBucketsParams{Map: textOf(nil), Elsewhere: elsewhere, Erasures: erasures})
}

func (m *mover) receive(ctx context.Context, node *node, news db.ReceiveBucketsParams) error {
	return m.step(ctx, node, func(queries *db.Queries) error { return queries.ReceiveBuckets(ctx, news) })
}

func inNode(node *node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("node %q: %w", node.name, err)
}

func (m *mover) move(ctx context.Context, buckets []int, to string) error {
	target, err := m.cluster.node(to)
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		if bucket < 0 || bucket >= Buckets {
			return fmt.Errorf("there is no bucket %d (they are numbered from 0 to %d)", bucket, Buckets-1)
		}
	}
	places, err := m.places(ctx)
	if err != nil {
		return err
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	numbers := make([]int32, len(buckets))
	for i, bucket := range buckets {
		numbers[i] = int32(bucket)
	}
	for _, source := range m.cluster.nodes {
		var ofSource []int32
		for _, bucket := range numbers {
			if places[bucket].Node == source.name && source != target {
				ofSource = append(ofSource, bucket)
			}
		}
		if err := m.moveBuckets(ctx, source, target, ofSource); err != nil {
			return err
		}
	}
	for areAlone := true; areAlone; {
		for _, source := range m.cluster.nodes {
			if err := m.bring(ctx, source, target, numbers); err != nil {
				return err
			}
		}
		if areAlone, err = m.forget(ctx, target, numbers); err != nil {
			return err
		}
	}
	return m.clear(ctx)
}

// forget lets the nodes forget where threads of buckets are that were moved alone: they are all on the target. Threads that are born
// again on another node have to be moved first.
func (m *mover) forget(ctx context.Context, target *node, buckets []int32) (areAlone bool, err error) {
	others := slices.DeleteFunc(slices.Clone(m.cluster.nodes), func(node *node) bool { return node == target })
	for _, node := range append(others, target) {
		if err := m.fence(ctx, node, func(ctx context.Context, queries *db.Queries) error {
			left, err := queries.ForgetMovedThreads(ctx, buckets)
			areAlone = left > 0
			return err
		}); err != nil || areAlone {
			return areAlone, err
		}
	}
	return false, nil
}

// finish completes what an interrupted move has left: threads that are fenced, and may not be copied.
func (m *mover) finish(ctx context.Context) error {
	return m.eachSent(ctx, func(ctx context.Context, source *node, thread db.SentThreadsRow) error {
		isHere, err := m.hasOnlyCopy(ctx, source, thread.ThreadKey)
		if err != nil || !isHere {
			return err
		}
		target, err := m.cluster.node(thread.Node)
		if err != nil {
			return err
		}
		return m.copyThread(ctx, source, target, db.ThreadsHereRow{
			ThreadKey: thread.ThreadKey, Scope: thread.Scope, ThreadID: thread.ThreadID, CreatedAt: thread.CreatedAt,
		}, false)
	})
}

// hasOnlyCopy says whether the rows of a thread on a node that sends its calls to another one are the only copy. It follows the calls:
// if a node has the thread, it names itself. If no node does, the one that sent it on last was interrupted, and has the only copy: others
// have rows that were not removed yet.
func (m *mover) hasOnlyCopy(ctx context.Context, source *node, key pgtype.UUID) (bool, error) {
	at := source
	for range m.cluster.nodes {
		name, err := at.queries.NodeOfThread(ctx, key)
		if err != nil {
			return false, inNode(at, err)
		}
		if name == at.name {
			return false, nil
		}
		if at, err = m.cluster.node(name); err != nil {
			return false, err
		}
	}
	var last *node
	var sentAt time.Time
	for _, node := range m.cluster.nodes {
		threads, err := node.queries.SentThreads(ctx, db.SentThreadsParams{After: keyBefore(key), Page: 1})
		if err != nil {
			return false, inNode(node, err)
		}
		if len(threads) > 0 && threads[0].ThreadKey == key && threads[0].MovedAt.After(sentAt) {
			last, sentAt = node, threads[0].MovedAt
		}
	}
	return last == source, nil
}

// keyBefore returns the key before one.
func keyBefore(key pgtype.UUID) pgtype.UUID {
	for i := len(key.Bytes) - 1; i >= 0; i-- {
		key.Bytes[i]--
		if key.Bytes[i] != 0xff {
			break
		}
	}
	return key
}

// bring moves the threads of buckets that were moved alone to the node that has the buckets, and tells it which were erased there.
func (m *mover) bring(ctx context.Context, source, target *node, buckets []int32) error {
	if source == target || len(buckets) == 0 {
		return nil
	}
	pauses := live.Pauses(5*time.Millisecond, 500*time.Millisecond)
	for {
		var found atomic.Int64
		before := m.done.Threads
		if err := m.eachThread(ctx, source, buckets, func(ctx context.Context, thread db.ThreadsHereRow) error {
			found.Add(1)
			return m.moveOne(ctx, source, target, thread)
		}); err != nil {
			return err
		}
		if found.Load() == 0 {
			return m.copyErasures(ctx, source, target, none, time.Time{})
		}
		if m.done.Threads > before {
			pauses.Reset()
			continue
		}
		if err := sleep(ctx, pauses.NextBackOff()); err != nil { // a run of them is claimed
			return err
		}
	}
}

// moveBuckets moves the threads of buckets, those that are born meanwhile too, and then the buckets.
func (m *mover) moveBuckets(ctx context.Context, source, target *node, buckets []int32) error {
	if len(buckets) == 0 {
		return nil
	}
	since := time.Now().Add(-clockError)
	if err := m.copyErasures(ctx, source, target, none, time.Time{}); err != nil {
		return err
	}
	pauses := live.Pauses(5*time.Millisecond, 500*time.Millisecond)
	for len(buckets) > 0 {
		before := m.done.Threads + m.done.Buckets
		if err := m.eachThread(ctx, source, buckets, func(ctx context.Context, thread db.ThreadsHereRow) error {
			return m.moveOne(ctx, source, target, thread)
		}); err != nil {
			return err
		}
		given, err := m.handOver(ctx, source, target, buckets, since)
		if err != nil {
			return err
		}
		// Of those that are left a thread was born, or a run is claimed, or they are written to.
		buckets = slices.DeleteFunc(buckets, func(bucket int32) bool { return given[bucket] })
		if m.done.Threads+m.done.Buckets > before {
			pauses.Reset()
			continue
		}
		if err := sleep(ctx, pauses.NextBackOff()); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// eachThread calls f with the threads of buckets that a node has, several at a time.
func (m *mover) eachThread(ctx context.Context, node *node, buckets []int32, f func(context.Context, db.ThreadsHereRow) error) error {
	return inPages(ctx, func(after pgtype.UUID) ([]db.ThreadsHereRow, error) {
		threads, err := node.queries.ThreadsHere(ctx, db.ThreadsHereParams{Buckets: buckets, After: after, Page: page})
		return threads, inNode(node, err)
	}, func(thread db.ThreadsHereRow) pgtype.UUID { return thread.ThreadKey }, f)
}

// eachSent calls f with the threads of all nodes that are on another one, or about to be, and still have rows, several at a time.
func (m *mover) eachSent(ctx context.Context, f func(context.Context, *node, db.SentThreadsRow) error) error {
	for _, node := range m.cluster.nodes {
		if err := inPages(ctx, func(after pgtype.UUID) ([]db.SentThreadsRow, error) {
			threads, err := node.queries.SentThreads(ctx, db.SentThreadsParams{After: after, Page: page})
			return threads, inNode(node, err)
		}, func(thread db.SentThreadsRow) pgtype.UUID { return thread.ThreadKey }, func(ctx context.Context, thread db.SentThreadsRow) error {
			return f(ctx, node, thread)
		}); err != nil {
			return err
		}
	}
	return nil
}

// inPages calls f with the items of a list that is read in pages behind a key, several at a time.
func inPages[T any](
	ctx context.Context, list func(after pgtype.UUID) ([]T, error), keyOf func(T) pgtype.UUID, f func(context.Context, T) error,
) error {
	after := pgtype.UUID{Valid: true}
	for {
		items, err := list(after)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		var working sync.WaitGroup
		next := make(chan T)
		for range parallelCopies {
			working.Go(panics.Task(nil, func() {
				for item := range next {
					if err := f(ctx, item); err != nil {
						cancel(err)
						return
					}
				}
			}, cancel))
		}
		for _, item := range items {
			select {
			case next <- item:
			case <-ctx.Done():
			}
		}
		close(next)
		working.Wait()
		err = context.Cause(ctx)
		cancel(nil)
		if err != nil || len(items) < page {
			return err
		}
		after = keyOf(items[len(items)-1])
	}
}

// moveOne moves a thread, if no run of it is claimed.
func (m *mover) moveOne(ctx context.Context, source, target *node, thread db.ThreadsHereRow) error {
	var fenced []pgtype.UUID
	err := m.fence(ctx, source, func(ctx context.Context, queries *db.Queries) (err error) {
		fenced, err = queries.FenceThreads(ctx, db.FenceThreadsParams{ThreadKeys: []pgtype.UUID{thread.ThreadKey}, ToNode: target.name})
		return err
	})
	if err != nil || len(fenced) == 0 {
		return err
	}
	return m.copyThread(ctx, source, target, thread, true)
}

// fence is a step that takes the lock of a bucket alone. It waits for writers for a moment only, because others wait behind it, and
// tries again.
func (m *mover) fence(ctx context.Context, source *node, f func(context.Context, *db.Queries) error) error {
	pauses := live.Pauses(20*time.Millisecond, 2*time.Second)
	for {
		err := m.step(ctx, source, func(queries *db.Queries) error {
			if err := queries.SetFenceTimeout(ctx); err != nil {
				return err
			}
			return f(ctx, queries)
		})
		var refusal *pgconn.PgError
		if err == nil || !errors.As(err, &refusal) || refusal.Code != lockNotAvailable && refusal.Code != deadlockDetected {
			return err
		}
		if err := sleep(ctx, pauses.NextBackOff()); err != nil {
			return inNode(source, errors.Join(err, refusal))
		}
	}
}

// SQLSTATEs.
const (
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// copyThread stores a fenced thread on the target, unless it is there. The source takes a thread back
// that the target has not got for certain. Otherwise it stays fenced, and the next move goes on with
// it.
func (m *mover) copyThread(ctx context.Context, source, target *node, thread db.ThreadsHereRow, isFencedNow bool) error {
	begin := time.Now()
	progress, err := m.store(ctx, source, target, thread)
	isAbsent := progress == begun || progress == notBegun && isFencedNow
	if err != nil && isAbsent {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
		defer cancel()
		err = errors.Join(err, m.step(ctx, source, func(queries *db.Queries) error { return queries.TakeBackThread(ctx, thread.ThreadKey) }))
	}
	if err != nil {
		return fmt.Errorf("thread %q of scope %q: %w", thread.ThreadID, thread.Scope, err)
	}
	if progress == sent {
		m.note(func(done *Moved) {
			done.Threads++
			done.LongestPause = max(done.LongestPause, time.Since(begin))
		})
	}
	return nil
}

// progress is how far a copy has come.
type progress int

const (
	notBegun progress = iota // also if the target has the thread
	begun                    // the target does not have the thread, and there is no commit
	sent                     // the commit was sent
)

func (m *mover) store(ctx context.Context, source, target *node, thread db.ThreadsHereRow) (come progress, err error) {
	err = snapshot.Read(ctx, source.pool, func(from pgx.Tx) error {
		return m.step(ctx, target, func(queries *db.Queries) error {
			key, err := queries.ReceiveThread(ctx, db.ReceiveThreadParams{Scope: thread.Scope, ThreadID: thread.ThreadID, CreatedAt: thread.CreatedAt})
			if err != nil || !key.Valid {
				return err
			}
			come = begun
			rows := threadrows.NewWriter(queries, key)
			digests, err := threadrows.Read(ctx, from, thread.ThreadKey, m.tables,
				func(name string, columns []string) error { return rows.Table(ctx, name, columns) },
				func(row []byte) error { return rows.Row(ctx, row) })
			if err == nil {
				err = rows.Finish(ctx, m.tables, digests)
			}
			var readers rawjson.Text
			if err == nil {
				readers, err = db.New(from).ReadersOfThread(ctx, thread.ThreadKey)
			}
			if err == nil {
				err = queries.ReceiveReaders(ctx, db.ReceiveReadersParams{ThreadKey: key, Readers: readers})
			}
			if err == nil {
				come = sent
			}
			return err
		})
	})
	return come, err
}

// handOver gives those of the buckets to the target that have no threads, and returns them.
func (m *mover) handOver(ctx context.Context, source, target *node, numbers []int32, since time.Time) (given map[int32]bool, err error) {
	var text rawjson.Text
	if err := m.step(ctx, source, func(queries *db.Queries) (err error) {
		text, err = queries.HandOverBuckets(ctx, db.HandOverBucketsParams{Buckets: numbers, ToNode: target.name})
		return err
	}); err != nil {
		return nil, err
	}
	moved, err := buckets.Read(text)
	if err != nil {
		return nil, inNode(source, err)
	}
	if err := m.tell(ctx, target, moved.Buckets, since); err != nil {
		return nil, err
	}
	for _, node := range m.cluster.nodes {
		if node == source || node == target {
			continue
		}
		if err := m.tell(ctx, node, moved.Buckets, since); err != nil {
			return nil, err
		}
	}
	given = map[int32]bool{}
	for _, r := range moved.Buckets {
		given[int32(r.First)] = true
	}
	m.note(func(done *Moved) { done.Buckets += len(given) })
	return given, nil
}

// clear removes the rows of threads that are on other nodes.
func (m *mover) clear(ctx context.Context) error {
	if err := sleep(ctx, m.cluster.RemoveAfter); err != nil {
		return err
	}
	return m.eachSent(ctx, func(ctx context.Context, node *node, thread db.SentThreadsRow) error {
		return m.step(ctx, node, func(queries *db.Queries) error {
			isRemoved, err := queries.RemoveMovedThread(ctx, thread.ThreadKey)
			if err == nil && !isRemoved {
				m.note(func(done *Moved) { done.Left++ })
			}
			return err
		})
	})
}

func (m *mover) moveThread(ctx context.Context, scope, threadID, to string) error {
	target, err := m.cluster.node(to)
	if err != nil {
		return err
	}
	if _, err := m.places(ctx); err != nil {
		return err
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	key, err := target.queries.ThreadKey(ctx, db.ThreadKeyParams{Scope: scope, ThreadID: threadID})
	if err != nil {
		return inNode(target, err)
	}
	for _, source := range m.cluster.nodes {
		thread, isHere, err := m.find(ctx, source, key)
		if err != nil {
			return err
		}
		if !isHere {
			continue
		}
		if source == target {
			return nil
		}
		if err := m.moveOne(ctx, source, target, thread); err != nil {
			return err
		}
		if _, isHere, err = m.find(ctx, source, key); err != nil {
			return err
		} else if isHere {
			return fmt.Errorf("thread %q of scope %q: a run of it is claimed: try again when it has begun", threadID, scope)
		}
		return m.clear(ctx)
	}
	return fmt.Errorf("there is no thread %q in scope %q", threadID, scope)
}

// find returns a thread that a node has.
func (m *mover) find(ctx context.Context, node *node, key pgtype.UUID) (thread db.ThreadsHereRow, isHere bool, err error) {
	threads, err := node.queries.ThreadHere(ctx, db.ThreadHereParams{ThreadKey: key, Before: keyBefore(key)})
	if err != nil || len(threads) == 0 {
		return thread, false, inNode(node, err)
	}
	return db.ThreadsHereRow(threads[0]), true, nil
}
