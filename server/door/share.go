package door

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
)

// shares bound how many connections of a pool an owner, the identity of a request, uses at once. A
// quarter of them is left for others, one at least. So its statements that wait, for the locks of its
// threads or for long folds, do not stop others.
type shares struct {
	size int64 // of a share

	mu      sync.Mutex
	byOwner map[access.Identity]*ownShare
}

// ownShare is the share of an owner, while statements of it wait or are in progress.
type ownShare struct {
	*semaphore.Weighted
	users int
}

// newShares returns the shares of the pool of a store. nil: it has none.
func newShares(store *pgagui.Store) (s *shares) {
	store.WrapDB(func(database pgagui.DB) pgagui.DB {
		if pool, isPool := database.(*pgxpool.Pool); isPool {
			size := int64(pool.Config().MaxConns)
			s = &shares{size: max(1, size-max(1, size/4)), byOwner: map[access.Identity]*ownShare{}}
		}
		return database
	})
	return s
}

// take waits until the owner may use one more connection, and counts it until release is called.
func (s *shares) take(ctx context.Context, owner access.Identity) (release func(), err error) {
	s.mu.Lock()
	own := s.byOwner[owner]
	if own == nil {
		own = &ownShare{Weighted: semaphore.NewWeighted(s.size)}
		s.byOwner[owner] = own
	}
	own.users++
	s.mu.Unlock()
	if err := own.Acquire(ctx, 1); err != nil {
		s.leave(owner, own)
		return nil, err
	}
	return func() {
		own.Release(1)
		s.leave(owner, own)
	}, nil
}

func (s *shares) leave(owner access.Identity, own *ownShare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.byOwner, owner)
	}
}

// share is a pgagui.DB on which the statements of an owner wait for its share of the connections.
type share struct {
	database    pgagui.DB
	connections *shares
	owner       access.Identity
}

func (s share) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	release, err := s.connections.take(ctx, s.owner)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer release()
	return s.database.Exec(ctx, sql, arguments...)
}

func (s share) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	release, err := s.connections.take(ctx, s.owner)
	if err != nil {
		return nil, err
	}
	rows, err := s.database.Query(ctx, sql, arguments...)
	if err != nil {
		release()
		return nil, err
	}
	return sharedRows{rows, sync.OnceFunc(release)}, nil
}

func (s share) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	release, err := s.connections.take(ctx, s.owner)
	if err != nil {
		return firstRow{err: err}
	}
	return sharedRow{s.database.QueryRow(ctx, sql, arguments...), release}
}

func (s share) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	release, err := s.connections.take(ctx, s.owner)
	if err != nil {
		return failedResults{err}
	}
	return sharedResults{s.database.SendBatch(ctx, batch), sync.OnceFunc(release)}
}

// sharedRows release their part of the share with their connection: when they are closed, or read to their end.
type sharedRows struct {
	pgx.Rows
	release func()
}

func (r sharedRows) Next() bool {
	hasNext := r.Rows.Next()
	if !hasNext {
		r.release()
	}
	return hasNext
}

func (r sharedRows) Close() {
	r.Rows.Close()
	r.release()
}

type sharedRow struct {
	pgx.Row
	release func()
}

func (r sharedRow) Scan(destinations ...any) error {
	defer r.release()
	return r.Row.Scan(destinations...)
}

type sharedResults struct {
	pgx.BatchResults
	release func()
}

func (r sharedResults) Close() error {
	defer r.release()
	return r.BatchResults.Close()
}

// failedResults are those of a batch that was not sent.
type failedResults struct{ err error }

func (r failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, r.err }
func (r failedResults) Query() (pgx.Rows, error)         { return nil, r.err }
func (r failedResults) QueryRow() pgx.Row                { return firstRow{err: r.err} }
func (r failedResults) Close() error                     { return r.err }
func (r failedResults) Tx() pgx.Tx                       { return nil }
