package pgagui

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
)

// DB is the connection that a Store uses: a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type DB interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// Config holds the settings of a Store. The zero value is ready to use.
type Config struct {
	// Scope is the tenant or user that the threads of the Store belong to. The same thread id in
	// two scopes names two threads. A scope is a name, it does not authorise access: the caller
	// decides who may use which scope, or row-level security does (docs/security.md).
	Scope string
	// SetScope sets agui.scope to the scope for each call, in the transaction of the call.
	// Row-level security needs it if the role of the pool is mapped with agui.map_pool; such a
	// role has no threads of the scope "". It takes no additional round trip. On a Store in a
	// transaction (WithTx) the setting stays until the transaction ends, or until another Store
	// makes a call in it.
	SetScope bool
	// Live is the pool of recorders and followers. The pool of the Store if nil. A server of many
	// scopes has a pool of its own here, without SetScope: its role needs the rights of
	// agui_recorder alone, and under row-level security it is an operator (agui.map_operator). Then
	// the runs of all scopes share commits, and their followers one query.
	Live DB
	// PollInterval is how often Follow polls for new events while a run streams. It polls less
	// often while a run in progress is quiet, and much less often if no run is in progress.
	// 20 ms if zero.
	PollInterval time.Duration
	// CallTimeout is how long Follow waits for the answer to a query before it retries it on
	// another connection. 30 seconds if zero. How long the pool tries to connect is a setting of
	// the pool, connect_timeout.
	CallTimeout time.Duration
	// Logger gets a line when Follow cannot reach the database, and one when it can reach it
	// again. slog.Default() if nil.
	Logger *slog.Logger
}

// Store reads and writes the threads of a scope. It is safe for concurrent use if its DB is (a pool
// is).
type Store struct {
	caller
	backend     backend
	liveBackend backend   // of recorders and followers; nil: backend
	live        *live.Hub // serves all followers; nil where there is no pool
}

// RunRef names a run of a thread.
type RunRef struct {
	ThreadID string
	// RunID is the run. Methods that read take the head of the thread if it is empty.
	RunID string
}

// At names a point in a thread. The zero value is the end of the head. If both Seq and Time are
// given, the earlier of the two counts.
type At struct {
	// RunID is the run to read at. The head if empty.
	RunID string
	// Seq goes back in time: only the events of the run's lineage up to this seq count. All of
	// them if zero.
	Seq int64
	// Time goes back to what had been appended by then. No bound if zero.
	Time time.Time
}

// New returns a Store on a database that has the schema agui. config may be nil. The caller closes
// the pool.
func New(pool DB, config *Config) *Store {
	if config == nil {
		config = &Config{}
	}
	store := &Store{caller: caller{config.Scope, config.SetScope}, backend: oneDatabase{pool}}
	if config.Live != nil {
		store.liveBackend = oneDatabase{config.Live}
	}
	switch pool.(type) {
	case interface{ Conn() *pgx.Conn }, interface{ PgConn() *pgconn.PgConn }: // one connection, or what embeds one
	default:
		store.live = store.newHub(config)
	}
	return store
}

// newHub returns the hub of the followers.
func (s *Store) newHub(config *Config) *live.Hub {
	backend, as := s.forLive()
	return live.NewHub(live.HubConfig{
		Calls:     func(scope string) live.Calls { return backend.ofMany(caller{scope, as.setsScope}) },
		SetsScope: as.setsScope, Lanes: backend.lanes(as),
		Interval: config.PollInterval, CallTimeout: config.CallTimeout, Logger: config.Logger,
	})
}

// forLive returns what makes the calls of recorders and followers.
func (s *Store) forLive() (backend, caller) {
	if s.liveBackend == nil {
		return s.backend, s.caller
	}
	return s.liveBackend, caller{scope: s.scope}
}

// of returns the calls for a thread of the scope.
func (s *Store) of(threadID string) *db.Queries { return s.ofScope(s.scope, threadID) }

// ofScope returns the calls for a thread of any scope.
func (s *Store) ofScope(scope, threadID string) *db.Queries {
	return s.backend.of(s.caller, live.Key{Scope: scope, ThreadID: threadID})
}

// alone returns the Store on one database, without recorders and followers.
func (s *Store) alone(database DB) *Store {
	return &Store{caller: s.caller, backend: oneDatabase{database}}
}

// WithTx returns the Store in the caller's transaction: what its methods write is committed, or
// rolled back, together with the caller's own changes. An append holds the lock of its thread until
// the transaction ends, so keep such transactions short.
//
// In a cluster the transaction is one on a node. Calls for threads of other nodes fail with ErrMoved,
// and lists are those of the node.
func (s *Store) WithTx(tx pgx.Tx) *Store { return s.alone(tx) }

// Scope returns the scope of the Store's threads.
func (s *Store) Scope() string { return s.scope }

// InScope returns the Store for the threads of another scope.
func (s *Store) InScope(scope string) *Store {
	bound := *s
	bound.scope = scope
	return &bound
}

// WrapDB returns the Store with its calls through another DB, which wrap makes of the one that it
// has, or of that of each node of a cluster, in the order of Nodes: one that counts the calls, or
// sends them to another server. Followers still poll on the pool of the Store, and share the polls with its other followers.
func (s *Store) WrapDB(wrap func(DB) DB) *Store {
	wrapped := *s
	wrapped.backend = s.backend.wrap(wrap)
	return &wrapped
}

// threadKey returns the key of a thread, as agui.thread_key does.
func threadKey(key live.Key) (id [16]byte) {
	scope, thread := sha256.Sum256([]byte(key.Scope)), sha256.Sum256([]byte(key.Scope+"\x00"+key.ThreadID))
	copy(id[:8], scope[:8])
	copy(id[8:], thread[:8])
	return id
}

// pageSize is the number of rows of a page that a caller asks for, as a query takes it. 0: usual.
func pageSize(limit, usual int) int32 {
	if limit == 0 {
		return int32(usual)
	}
	return int32(max(math.MinInt32, min(limit, math.MaxInt32)))
}

// listOf returns the values of the rows of a call, or its error.
func listOf[R, T any](rows []R, err error, valueOf func(R) T) ([]T, error) {
	if err != nil {
		return nil, ErrorOf(err)
	}
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = valueOf(row)
	}
	return values, nil
}

// untilMark is a page without its last value, if that is a mark which says that there are more.
func untilMark[T any](page []T, err error, isMark func(last T) bool) (values []T, hasMore bool, _ error) {
	if last := len(page) - 1; last >= 0 && isMark(page[last]) {
		return page[:last], true, err
	}
	return page, false, err
}

// orNull is a parameter of a query: NULL, not given, if the value is zero.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// timeOrNull is the same for a point in time, whose zero may be in any zone.
func timeOrNull(point time.Time) *time.Time {
	if point.IsZero() {
		return nil
	}
	return &point
}
