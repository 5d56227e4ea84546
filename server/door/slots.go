package door

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/problem"
)

// Slots bound the appends in progress. An owner, the identity of a request, may have half of them, so
// that its locked threads do not stop the appends of others.
type Slots struct {
	limit, share int

	room    room
	used    int
	byOwner map[access.Identity]int
}

// NewSlots returns the slots of a server.
func NewSlots(limit int) *Slots {
	return &Slots{limit: limit, share: max(1, limit/2), byOwner: map[access.Identity]int{}}
}

// Take takes a slot until release is called. It waits for one as long as patience; then the writer
// retries later, for it would only wait for the same connections of the database.
func (s *Slots) Take(ctx context.Context, patience time.Duration) (release func(), err error) {
	owner := ownerOf(ctx)
	err = s.room.wait(ctx, patience, func() bool {
		isFree := s.used < s.limit && s.byOwner[owner] < s.share
		if isFree {
			s.used++
			s.byOwner[owner]++
		}
		return isFree
	})
	if errors.Is(err, errNoRoom) {
		err = errBusy
	}
	if err != nil {
		return nil, err
	}
	return func() { s.release(owner) }, nil
}

var errBusy = problem.Errorf(http.StatusTooManyRequests, "too many appends are in progress: retry with the same after_seq")

func (s *Slots) release(owner access.Identity) {
	s.room.Lock()
	defer s.room.Unlock()
	s.used--
	if s.byOwner[owner]--; s.byOwner[owner] == 0 {
		delete(s.byOwner, owner)
	}
	s.room.wakeUp()
}
