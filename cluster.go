package pgagui

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
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
	if err := checkNodes(nodes, config); err != nil {
		return New(failingWith(err), &Config{Scope: config.Scope})
	}
	places := newDirectory()
	store := &Store{caller: caller{config.Scope, config.SetScope}, backend: newCluster(nodes, places, func(node Node) DB { return node.Pool })}
	if nodes[0].Live != nil {
		store.liveBackend = newCluster(nodes, places, func(node Node) DB { return node.Live })
	}
	store.live = store.newHub(config)
	return store
}

// Nodes returns the names of the nodes of a cluster, in the order of NewCluster. nil: the Store is on
// one database.
func (s *Store) Nodes() []string {
	var names []string
	for _, node := range s.backend.nodes() {
		names = append(names, node.Name)
	}
	return names
}

// OnNode returns the Store on one node of the cluster, for what concerns a node: jobs, statistics, a
// consumer whose place is moved in a transaction (WithTx). It refuses threads of other nodes with
// ErrMoved, and has no followers and recorders (ErrNeedsPool). If there is no such node, its calls
// return an error.
func (s *Store) OnNode(name string) *Store {
	for _, node := range s.backend.nodes() {
		if node.Name == name {
			return s.alone(node.Pool)
		}
	}
	return s.alone(failingWith(fmt.Errorf("there is no node %q in the cluster", name)))
}

// NodeOf returns the node of the cluster that has a thread, or would have it, for calls in a transaction
// (WithTx). If the thread is moved afterwards, these fail with ErrMoved. Empty: the Store is on one
// database. An error may come with the node that should have the thread.
//
// Errors: ErrKeyCollision, ErrMoved.
func (s *Store) NodeOf(ctx context.Context, threadID string) (node string, err error) {
	node, err = s.backend.nodeOf(ctx, s.caller, threadID)
	return node, ErrorOf(err)
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

// take adds the nodes of an error that says which ones did not answer. It returns any other error.
func (e *UnansweredError) take(err error) error {
	unanswered, isPartial := errors.AsType[*UnansweredError](err)
	if !isPartial {
		return err
	}
	if e.Nodes == nil {
		e.Nodes = map[string]error{}
	}
	maps.Copy(e.Nodes, unanswered.Nodes)
	return nil
}

// orNil returns the error if it has nodes.
func (e *UnansweredError) orNil() error {
	if len(e.Nodes) == 0 {
		return nil
	}
	return e
}

// cluster is the backend of a Store on several databases.
type cluster struct {
	members   []*member // in the order of NewCluster
	directory *directory
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

func checkNodes(nodes []Node, config *Config) error {
	live := 0
	for i, node := range nodes {
		switch isNamed := func(other Node) bool { return other.Name == node.Name }; {
		case node.Name == "":
			return fmt.Errorf("cluster: node %d has no name", i+1)
		case node.Pool == nil:
			return fmt.Errorf("cluster: node %q has no pool", node.Name)
		case slices.IndexFunc(nodes, isNamed) != i:
			return fmt.Errorf("cluster: two nodes are named %q", node.Name)
		case node.Live != nil:
			live++
		}
	}
	switch {
	case len(nodes) == 0:
		return errors.New("cluster: it has no nodes")
	case config.Live != nil:
		return errors.New("cluster: Config.Live is for one database: set Live of each node")
	case live != 0 && live != len(nodes):
		return errors.New("cluster: some nodes have a pool for recorders and followers (Live), and some have none")
	}
	return nil
}

func newCluster(nodes []Node, places *directory, poolOf func(Node) DB) *cluster {
	c := &cluster{directory: places}
	for _, node := range nodes {
		c.members = append(c.members, &member{node.Name, poolOf(node), &introduction{asking: make(chan struct{}, 1)}})
	}
	return c
}

func (c *cluster) wrap(wrap func(DB) DB) backend {
	wrapped := &cluster{directory: c.directory}
	for _, m := range c.members {
		wrapped.members = append(wrapped.members, &member{m.name, wrap(m.db), m.introduction})
	}
	return wrapped
}

func (c *cluster) nodes() (nodes []Node) {
	for _, m := range c.members {
		nodes = append(nodes, Node{Name: m.name, Pool: m.db})
	}
	return nodes
}

// nodeOf makes a small call for the thread, which finds it.
func (c *cluster) nodeOf(ctx context.Context, as caller, threadID string) (string, error) {
	key := live.Key{Scope: as.scope, ThreadID: threadID}
	_, err := c.of(as, key).Claims(ctx, db.ClaimsParams{ThreadID: threadID, Scope: as.scope})
	m, unknown := c.named(c.directory.nodeOf(key))
	if unknown != nil {
		return "", cmp.Or(err, unknown)
	}
	return m.name, err
}

func (c *cluster) positions(text string) (p positions, err error) {
	if text == "" {
		return positions{}, nil
	}
	document, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(document, &p)
	}
	switch {
	case err == nil && p != nil:
		return p, nil
	case strings.Contains(text, " all ") || strings.Contains(text, " changed "):
		return nil, &Error{
			Kind: ErrOtherHistory, Message: fmt.Sprintf("changes: the position %.100q is one of a single database", text),
			Hint: "Begin with no position, which returns all runs.",
		}
	default:
		return nil, &Error{
			Kind: ErrInvalidArgument, Message: fmt.Sprintf("changes: %.100q is not a position of a cluster", text),
			Hint: "Use the position of a change; none begins with all runs.",
		}
	}
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
	for _, m := range c.members {
		if m.name == name {
			return m, nil
		}
	}
	switch {
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

// of makes the statements on the node that has the thread. A statement that is refused has changed
// nothing, so it can be repeated.
func (c *cluster) of(as caller, key live.Key) *db.Queries {
	return db.New(statements(func(ctx context.Context, sql string, arguments ...any) (rows pgx.Rows, err error) {
		ended := again(ctx, func() (isMoved bool) {
			var m *member
			if m, err = c.memberOf(ctx, key); err != nil {
				return false
			}
			if rows, err = as.statementsOn(m.db).Query(ctx, sql, arguments...); err == nil {
				// A refusal comes with the first row, or instead of it.
				begun := &begunRows{Rows: rows, hasRow: rows.Next()}
				rows = begun
				if !begun.hasRow {
					err = begun.Err()
				}
			}
			return c.noteFailure(ctx, m, err)
		})
		return rows, cmp.Or(ended, err)
	}))
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

// each makes the call on the nodes that can be introduced.
func (c *cluster) each(ctx context.Context, as caller, call func(ctx context.Context, on part) error) error {
	errs := make([]error, len(c.members))
	var calls sync.WaitGroup
	for i, m := range c.members {
		calls.Go(panics.Task(nil, func() {
			if errs[i] = c.introduce(ctx, m); errs[i] == nil {
				errs[i] = call(ctx, part{as.queriesOn(m.db), m.name, i})
			}
		}, func(err error) { errs[i] = err }))
	}
	calls.Wait()
	unanswered := &UnansweredError{map[string]error{}}
	for i, m := range c.members {
		err := ErrorOf(errs[i])
		if _, isAnswer := errors.AsType[*Error](err); isAnswer {
			return err
		}
		if err != nil {
			unanswered.Nodes[m.name] = err
		}
	}
	return unanswered.orNil()
}

// split repeats the call for the items that a node refuses. If it refuses a whole call (UI027), these
// are all of its items.
func (c *cluster) split(ctx context.Context, as caller, n int, keyOf func(item int) live.Key, call callForItems) []error {
	var mu sync.Mutex // guards left
	errs, left := make([]error, n), firstNumbers(n)
	keys := make([]live.Key, n)
	for i := range keys {
		keys[i] = keyOf(i)
	}
	ended := again(ctx, func() (isMoved bool) {
		places := map[live.Key]*member{} // one place for all items of a thread
		parts := map[*member][]int{}
		for _, i := range left {
			m := places[keys[i]]
			if m == nil {
				if m, errs[i] = c.memberOf(ctx, keys[i]); errs[i] != nil {
					continue
				}
				places[keys[i]] = m
			}
			parts[m] = append(parts[m], i)
		}
		left = nil
		var calls sync.WaitGroup
		for m, items := range parts {
			setErr := func(err error) {
				for _, i := range items {
					errs[i] = err
				}
			}
			calls.Go(panics.Task(nil, func() {
				refused, err := call(ctx, as.queriesOn(m.db), items)
				setErr(err)
				isRefused := c.noteFailure(ctx, m, err)
				mu.Lock()
				defer mu.Unlock()
				if isRefused {
					left = append(left, items...)
				}
				for _, one := range refused {
					left = append(left, one.item)
					if one.detail == "" { // the next node is tried
						c.directory.put(keys[one.item], c.after(m).name)
					} else {
						c.directory.learn(one.detail)
					}
				}
			}, setErr))
		}
		calls.Wait()
		slices.Sort(left)
		return len(left) > 0
	})
	if ended != nil {
		for _, i := range left {
			errs[i] = ended
		}
	}
	return errs
}

// after returns the next node, behind the last one the first.
func (c *cluster) after(m *member) *member {
	return c.members[(slices.Index(c.members, m)+1)%len(c.members)]
}

// spread makes calls for threads of several nodes.
type spread struct {
	cluster *cluster
	as      caller
}

func (c *cluster) ofMany(as caller) live.Calls { return spread{c, as} }

func (s spread) AppendMany(ctx context.Context, params db.AppendManyParams) ([]db.AppendManyRow, error) {
	answers, errs := appendMany(ctx, s.cluster, s.as, params)
	return answers, firstError(errs)
}

func (s spread) KeepAlive(ctx context.Context, params db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	signals, errs := splitRows(ctx, s.cluster, s.as, params.Scopes, params.ThreadIds, func(ctx context.Context, on *db.Queries, items []int) ([]db.KeepAliveRow, error) {
		return on.KeepAlive(ctx, db.KeepAliveParams{
			ThreadIds: pick(params.ThreadIds, items), RunIds: pick(params.RunIds, items), Scopes: pick(params.Scopes, items), Detach: params.Detach,
		})
	}, func(row *db.KeepAliveRow) *int32 { return &row.CallNo }, func(db.KeepAliveRow) (bool, string) { return false, "" })
	return signals, firstError(errs)
}

// A poll does not say which node has a thread that was moved: the next one is tried.
func (s spread) Poll(ctx context.Context, params db.PollParams) ([]db.PollRow, error) {
	news, errs := splitRows(ctx, s.cluster, s.as, params.Scopes, params.ThreadIds, func(ctx context.Context, on *db.Queries, items []int) ([]db.PollRow, error) {
		return on.Poll(ctx, db.PollParams{
			ThreadIds: pick(params.ThreadIds, items), Scopes: pick(params.Scopes, items),
			AfterSeqs: pick(params.AfterSeqs, items), AfterTimes: pick(params.AfterTimes, items),
			MaxRows: params.MaxRows, PageBytes: params.PageBytes,
		})
	}, func(row *db.PollRow) *int32 { return &row.ThreadNo }, func(row db.PollRow) (bool, string) { return row.Problem == refusal.Moved.State, "" })
	return news, firstError(errs)
}

// nodeLanes are the nodes, for recorders and followers.
type nodeLanes struct {
	cluster   *cluster
	setsScope bool
}

func (c *cluster) lanes(as caller) live.Lanes { return nodeLanes{c, as.setsScope} }

func (n nodeLanes) LaneOf(key live.Key) string { return n.cluster.directory.nodeOf(key) }

func (n nodeLanes) OnLane(node, scope string) live.Calls {
	if node == "" && len(n.cluster.members) > 1 {
		return nowhere{n.cluster}
	}
	m, err := n.cluster.named(node)
	if err != nil {
		return db.New(failingWith(err))
	}
	return onNode{n.cluster, m, caller{scope, n.setsScope}.queriesOn(m.db)}
}

// onNode makes calls on one node, and learns from what it refuses. It repeats nothing.
type onNode struct {
	cluster *cluster
	member  *member
	queries *db.Queries
}

func (n onNode) AppendMany(ctx context.Context, params db.AppendManyParams) ([]db.AppendManyRow, error) {
	return callNode(ctx, n, func() ([]db.AppendManyRow, error) {
		answers, err := n.queries.AppendMany(ctx, params)
		for _, answer := range answers {
			if answer.ErrorCode == refusal.Moved.State {
				n.cluster.directory.learn(answer.Detail)
			}
		}
		return answers, err
	})
}

func (n onNode) KeepAlive(ctx context.Context, params db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	return callNode(ctx, n, func() ([]db.KeepAliveRow, error) { return n.queries.KeepAlive(ctx, params) })
}

func (n onNode) Poll(ctx context.Context, params db.PollParams) ([]db.PollRow, error) {
	return callNode(ctx, n, func() ([]db.PollRow, error) { return n.queries.Poll(ctx, params) })
}

func callNode[T any](ctx context.Context, n onNode, call func() (T, error)) (answer T, err error) {
	if err = n.cluster.introduce(ctx, n.member); err == nil {
		answer, err = call()
	}
	n.cluster.noteFailure(ctx, n.member, err)
	return answer, err
}

// nowhere refuses all threads, once the map is known that says where they are.
type nowhere struct{ cluster *cluster }

func (n nowhere) AppendMany(ctx context.Context, params db.AppendManyParams) (answers []db.AppendManyRow, err error) {
	for i := range params.ThreadIds {
		answers = append(answers, db.AppendManyRow{CallNo: int32(i + 1), ErrorCode: refusal.Moved.State})
	}
	return answers, n.cluster.load(ctx)
}

func (n nowhere) KeepAlive(ctx context.Context, params db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	if err := n.cluster.load(ctx); err != nil || len(params.ThreadIds) == 0 {
		return nil, err
	}
	return nil, &pgconn.PgError{Code: refusal.Moved.State, Message: "the threads are on nodes of the cluster"}
}

func (n nowhere) Poll(ctx context.Context, params db.PollParams) (news []db.PollRow, err error) {
	for i := range params.ThreadIds {
		news = append(news, db.PollRow{ThreadNo: int32(i + 1), Problem: refusal.Moved.State})
	}
	return news, n.cluster.load(ctx)
}

// failing is a DB whose calls return an error.
type failing struct {
	statements
	results failedResults
}

func (f failing) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults { return f.results }

func failingWith(err error) DB {
	return failing{func(context.Context, string, ...any) (pgx.Rows, error) { return nil, err }, failedResults{err}}
}

type failedResults struct{ err error }

func (f failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f failedResults) Query() (pgx.Rows, error)         { return nil, f.err }
func (f failedResults) QueryRow() pgx.Row                { return firstRow{nil, f.err} }
func (f failedResults) Close() error                     { return f.err }
func (f failedResults) Tx() pgx.Tx                       { return nil }
