package door

import (
	"context"
	"sync"

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
