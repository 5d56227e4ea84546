package pgagui

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// DB is what a Store works on: a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx.
type DB interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// Config holds the settings of a Store. The zero value is ready to use.
type Config struct {
	// Scope is the tenant or user whose threads the Store works on. Threads of different scopes never meet, even when they
	// have the same thread id. It is a name, not a protection: who may use which scope is the caller's to decide, or that of
	// row-level security (docs/security.md).
	Scope string
	// SetScope sets agui.scope to the scope for each call, in the transaction of the call. Row-level security asks for it where the role of the
	// pool is mapped with agui.map_pool; such a role has no threads of the scope "". It takes no further round trip. On a Store in a transaction
	// (WithTx) the setting stays until the transaction ends, or until the call of another Store in it.
	SetScope bool
	// PollInterval is how often Follow asks for news of a run in progress while there is some; while there is none it asks less often,
	// and for a thread without a run in progress much less. 20 ms when 0.
	PollInterval time.Duration
	// CallTimeout is after how long a query of Follow that the database does not answer is given up, to be made again on another connection.
	// 30 seconds when 0. How long the pool tries to connect is its own setting, connect_timeout.
	CallTimeout time.Duration
	// Logger gets a line when Follow cannot reach the database and when it can again. slog.Default() when nil.
	Logger *slog.Logger
}

// Store reads and writes the threads of a scope. It is safe for concurrent use when its DB is (a pool is).
type Store struct {
	db        DB
	scope     string
	setsScope bool
	queries   *db.Queries
	live      *hub // serves all followers; nil where there is no pool
}

// ErrNeedsPool is what Follow and the recordings of a Recorder return in a transaction (WithTx) or on a single connection: they make calls at
// any time, beside those of the caller. Use a Store on a pool.
var ErrNeedsPool = errors.New("a recorder or follower needs a pool, not a transaction or a single connection")

// New returns a Store on a database that has the schema agui. config may be nil. The pool stays the caller's to close.
func New(pool DB, config *Config) *Store {
	if config == nil {
		config = &Config{}
	}
	store := (&Store{setsScope: config.SetScope}).on(pool, config.Scope)
	switch pool.(type) {
	case pgx.Tx, *pgx.Conn, *pgxpool.Conn:
	default:
		store.live = newHub(pool, config)
	}
	return store
}

// on returns the Store on another database, or in another scope.
func (s *Store) on(database DB, scope string) *Store {
	bound := *s
	bound.db, bound.scope, bound.queries = database, scope, queriesIn(database, scope, s.setsScope)
	return &bound
}

// WithTx returns the Store in the caller's transaction: what its methods write is committed, or undone, together with the
// caller's own changes. An append holds its thread's lock until the transaction ends, so keep such transactions short.
func (s *Store) WithTx(tx pgx.Tx) *Store {
	inTx := s.on(tx, s.scope)
	inTx.live = nil
	return inTx
}

// InScope returns the Store for the threads of another scope.
func (s *Store) InScope(scope string) *Store { return s.on(s.db, scope) }
