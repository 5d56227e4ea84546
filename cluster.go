package pgagui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/buckets"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/refusal"
)

// Node is a database of a cluster (docs/scale.md).
type Node struct {
	// Name is the name that the database has in the cluster (agui.join_cluster).
	Name string
	// Pool is the pool of the Store for this node.
	Pool DB
	// Live is the pool of recorders and followers for this node, as Config.Live is for one database.
	// Either all nodes have one, or none.
	Live DB
}

// NewCluster returns a Store on several databases, each of which has some of the threads. It has the
// methods of a Store on one database. config may be nil; Config.Live must be nil. The caller closes
// the pools.
//
// A call for one thread goes to the node that has it. The Store reads the map of the cluster at the
// first call, and learns from a node that refuses a thread because another one has it. While a thread
// is being moved, its calls wait, up to 10 seconds; then they return ErrMoved. A node that does not
// answer holds up the calls for its own threads only, also those of recorders and followers.
//
// Lists, searches, changes and facts come from all nodes, in one order. Where some do not answer, the
// result is that of the others, and the error an *UnansweredError. In the seconds until a moved thread
// is removed from the node that had it, it may come on two pages of a list, and count twice in facts.
//
// If the nodes cannot be those of a cluster, each call returns an error that says why.
func NewCluster(nodes []Node, config *Config) *Store {
	if config == nil {
		config = &Config{}
	}
	store := &Store{scope: config.Scope, setsScope: config.SetScope}
	var err error
	if store.cluster, err = newCluster(nodes, config); err != nil {
		return New(failing{err}, &Config{Scope: config.Scope})
	}
	store.live = store.newHub(config)
	return store
}

// Nodes returns the names of the nodes of a cluster, in the order of NewCluster. nil: the Store is on
// one database.
func (s *Store) Nodes() []string {
	if s.cluster == nil {
		return nil
	}
	names := make([]string, len(s.cluster.members))
	for i, m := range s.cluster.members {
		names[i] = m.name
	}
	return names
}

// OnNode returns the Store on one node of the cluster, for what concerns a node: jobs, statistics, a
// consumer whose place is moved in a transaction (WithTx). It refuses threads of other nodes with
// ErrMoved, and has no followers and recorders (ErrNeedsPool). If there is no such node, its calls
// return an error.
func (s *Store) OnNode(name string) *Store {
	var database DB = failing{fmt.Errorf("there is no node %q in the cluster", name)}
	if s.cluster != nil && s.cluster.byName[name] != nil {
		database = s.cluster.byName[name].db
	}
	return s.alone(database)
}

// NodeOf returns the node of the cluster that has a thread, or would have it, for calls in a transaction
// (WithTx). If the thread is moved afterwards, these fail with ErrMoved. Empty: the Store is on one
// database. An error may come with the node that should have the thread.
//
// Errors: ErrKeyCollision, ErrMoved.
func (s *Store) NodeOf(ctx context.Context, threadID string) (node string, err error) {
	if s.cluster == nil {
		return "", nil
	}
	ended := again(ctx, func() (isMoved bool) {
		var m *member
		if m, err = s.cluster.memberOf(ctx, live.Key{Scope: s.scope, ThreadID: threadID}); m == nil {
			return false
		}
		node = m.name
		if err == nil { // another node would refuse this
			_, err = queriesIn(m.db, s.scope, s.setsScope).Claims(ctx, db.ClaimsParams{ThreadID: threadID, Scope: s.scope})
		}
		return s.cluster.noteFailure(ctx, m, err)
	})
	return node, ErrorOf(cmp.Or(ended, err))
}

// UnansweredError says which nodes of a cluster did not answer a call that is for all of them. The
// result of the call is that of the others.
type UnansweredError struct {
	// Nodes are the errors, by the name of the node.
	Nodes map[string]error
}

// Error names the nodes in one line.
func (e *UnansweredError) Error() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(e.Nodes)) {
		texts = append(texts, fmt.Sprintf("node %q did not answer: %v", name, e.Nodes[name]))
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors of the nodes.
func (e *UnansweredError) Unwrap() []error { return slices.Collect(maps.Values(e.Nodes)) }

// cluster are the nodes of a Store.
type cluster struct {
	members   []*member // in the order of NewCluster
	byName    map[string]*member
	directory *directory
	// live are the pools of recorders and followers; nil: these.
	live *cluster
}

// member is a node that a Store calls.
type member struct {
	name string
	db   DB
	*introduction
}

// introduction says whether the database of a node was seen to be that node. Otherwise threads could
// be written to a database that does not have them. All Stores with a pool share it.
type introduction struct {
	asking chan struct{} // holds one while the node is queried
	isDone atomic.Bool
}

func newCluster(nodes []Node, config *Config) (*cluster, error) {
	live := 0
	for i, node := range nodes {
		switch isNamed := func(other Node) bool { return other.Name == node.Name }; {
		case node.Name == "":
			return nil, fmt.Errorf("cluster: node %d has no name", i+1)
		case node.Pool == nil:
			return nil, fmt.Errorf("cluster: node %q has no pool", node.Name)
		case slices.IndexFunc(nodes, isNamed) != i:
			return nil, fmt.Errorf("cluster: two nodes are named %q", node.Name)
		case node.Live != nil:
			live++
		}
	}
	switch {
	case len(nodes) == 0:
		return nil, errors.New("cluster: it has no nodes")
	case config.Live != nil:
		return nil, errors.New("cluster: Config.Live is for one database: set Live of each node")
	case live != 0 && live != len(nodes):
		return nil, errors.New("cluster: some nodes have a pool for recorders and followers (Live), and some have none")
	}
	places := newDirectory()
	c := &cluster{directory: places}
	c.setMembers(nodes, func(node Node) DB { return node.Pool })
	if live > 0 {
		c.live = &cluster{directory: places}
		c.live.setMembers(nodes, func(node Node) DB { return node.Live })
	}
	return c, nil
}

func (c *cluster) setMembers(nodes []Node, poolOf func(Node) DB) {
	c.byName = map[string]*member{}
	for _, node := range nodes {
		m := &member{name: node.Name, db: poolOf(node), introduction: &introduction{asking: make(chan struct{}, 1)}}
		c.members, c.byName[node.Name] = append(c.members, m), m
	}
}

// wrap returns the cluster with the calls of each node through another DB.
func (c *cluster) wrap(wrap func(DB) DB) *cluster {
	wrapped := &cluster{directory: c.directory, live: c.live, byName: map[string]*member{}}
	for _, m := range c.members {
		through := &member{m.name, wrap(m.db), m.introduction}
		wrapped.members, wrapped.byName[m.name] = append(wrapped.members, through), through
	}
	return wrapped
}

// introduce makes sure that the database of a node is that node, and learns its map.
func (c *cluster) introduce(ctx context.Context, m *member) error {
	if m.isDone.Load() {
		return nil
	}
	select {
	case m.asking <- struct{}{}:
		defer func() { <-m.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.isDone.Load() {
		return nil
	}
	err := c.askMap(ctx, m)
	m.isDone.Store(err == nil)
	return err
}

// askMap learns the map of a node.
func (c *cluster) askMap(ctx context.Context, m *member) error {
	answer, err := db.New(m.db).ClusterMap(ctx)
	if err != nil {
		return err
	}
	known, err := buckets.Read(answer)
	switch {
	case err != nil:
		return fmt.Errorf("the map of node %q: %w", m.name, err)
	case known.Node == "" && len(c.members) == 1:
	case known.Node == "":
		return fmt.Errorf("the database of node %q is no node of a cluster (agui.join_cluster makes it one)", m.name)
	case known.Node != m.name:
		return fmt.Errorf("the database of node %q is node %q of the cluster", m.name, known.Node)
	}
	c.directory.take(known)
	return nil
}

// load makes sure that the map of a node is known.
func (c *cluster) load(ctx context.Context) error {
	if c.directory.isLoaded() {
		return nil
	}
	type answer struct {
		node string
		err  error
	}
	answers := make(chan answer, len(c.members))
	for _, m := range c.members {
		go panics.Task(nil, func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mapTimeout)
			defer cancel()
			answers <- answer{m.name, c.introduce(ctx, m)}
		}, func(err error) { answers <- answer{m.name, err} })()
	}
	failed := &UnansweredError{map[string]error{}}
	for range c.members {
		select {
		case answered := <-answers:
			if answered.err == nil {
				return nil
			}
			failed.Nodes[answered.node] = answered.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, err := range failed.Nodes {
		if !live.IsTransient(err) { // it answered
			return err
		}
	}
	return failed
}

const (
	// mapTimeout bounds the query for the map of a node.
	mapTimeout = 5 * time.Second
	// mapPause is the pause between queries for the maps of all nodes after one has failed.
	mapPause = 5 * time.Second
)

// refresh learns the maps of the other nodes after one did not answer: it may have left the cluster.
func (c *cluster) refresh(ctx context.Context, failed *member) {
	if ctx.Err() != nil || !c.directory.mayRefresh() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mapTimeout)
	defer cancel()
	var others sync.WaitGroup
	for _, m := range c.members {
		if m != failed {
			others.Go(panics.Task(nil, func() { _ = c.askMap(ctx, m) }, nil))
		}
	}
	others.Wait()
}

// memberOf returns the node that has a thread, as far as that is known.
func (c *cluster) memberOf(ctx context.Context, key live.Key) (*member, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	m, err := c.named(c.directory.nodeOf(key))
	if err != nil {
		return nil, err
	}
	return m, c.introduce(ctx, m)
}

// named returns the node with a name of the map.
func (c *cluster) named(name string) (*member, error) {
	m := c.byName[name]
	switch {
	case m != nil:
		return m, nil
	case name == "" && len(c.members) == 1: // it is no node
		return c.members[0], nil
	case name == "":
		return nil, errors.New("cluster: the map does not say which node has the thread")
	default:
		return nil, fmt.Errorf("cluster: the map has a node %q, and the Store has no pool for it", name)
	}
}

// noteFailure learns from the error of a call on a node, and reports whether the node refused it
// because another one has its threads.
func (c *cluster) noteFailure(ctx context.Context, m *member, err error) (isMoved bool) {
	var cause *pgconn.PgError
	switch {
	case err == nil:
	case errors.As(err, &cause):
		if cause.Code == refusal.Moved.State {
			c.directory.learn(cause.Detail)
			return true
		}
	case live.IsTransient(err):
		c.refresh(ctx, m)
	}
	return false
}

// patience is how long a call is repeated whose thread is being moved.
const patience = 10 * time.Second

// again repeats a call while nodes refuse it because other nodes have its threads: at once the first
// time, because the first answer says where, and then with pauses. It returns the error of ctx if that
// ends it.
func again(ctx context.Context, call func() (isMoved bool)) error {
	pauses := live.Pauses(5*time.Millisecond, 250*time.Millisecond)
	end := time.Now().Add(patience)
	for attempt := 0; call() && time.Now().Before(end); attempt++ {
		if attempt == 0 {
			continue
		}
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// routed makes the statements for one thread on the node that has it. A statement that is refused has
// changed nothing, so it can be repeated.
type routed struct {
	cluster   *cluster
	key       live.Key
	scope     string // of the Store
	setsScope bool
}

func route[T any](ctx context.Context, r routed, call func(db.DBTX) (T, error)) (answer T, err error) {
	ended := again(ctx, func() (isMoved bool) {
		var m *member
		if m, err = r.cluster.memberOf(ctx, r.key); err != nil {
			return false
		}
		answer, err = call(inScope(m.db, r.scope, r.setsScope))
		return r.cluster.noteFailure(ctx, m, err)
	})
	if ended != nil {
		err = ended
	}
	return answer, err
}

func (r routed) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	return route(ctx, r, func(on db.DBTX) (pgconn.CommandTag, error) { return on.Exec(ctx, sql, arguments...) })
}

func (r routed) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	return route(ctx, r, func(on db.DBTX) (pgx.Rows, error) {
		rows, err := on.Query(ctx, sql, arguments...)
		if err != nil {
			return nil, err
		}
		// A refusal comes with the first row, or instead of it.
		if hasRow := rows.Next(); hasRow || rows.Err() == nil {
			return &begunRows{Rows: rows, hasRow: hasRow}, nil
		}
		return nil, rows.Err()
	})
}

func (r routed) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	rows, err := r.Query(ctx, sql, arguments...)
	return firstRow{rows, err}
}

// begunRows are rows of which the first was read.
type begunRows struct {
	pgx.Rows
	isBegun, hasRow bool
}

func (r *begunRows) Next() bool {
	if !r.isBegun {
		r.isBegun = true
		return r.hasRow
	}
	return r.Rows.Next()
}

// failing is a DB whose calls return an error.
type failing struct{ err error }

func (f failing) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, f.err
}

func (f failing) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, f.err }

func (f failing) QueryRow(context.Context, string, ...any) pgx.Row { return firstRow{nil, f.err} }

func (f failing) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults { return failedResults(f) }

type failedResults struct{ err error }

func (f failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f failedResults) Query() (pgx.Rows, error)         { return nil, f.err }
func (f failedResults) QueryRow() pgx.Row                { return firstRow{nil, f.err} }
func (f failedResults) Close() error                     { return f.err }
func (f failedResults) Tx() pgx.Tx                       { return nil }
