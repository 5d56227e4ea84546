package door

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/problem"
)

const (
	// SmallSize is the size up to which requests and answers do not count in the budget, in bytes.
	SmallSize = 64 << 10
	// sharesOfBudget is the number of shares of the budget. An owner may have one of them.
	sharesOfBudget = 4
	// copiesOfBody is how many copies are made of a body at most, at the same time: a parsed one, or
	// that in the message to the agent, and those in the driver's parameters and its send buffer.
	copiesOfBody = 2
)

// Budget bounds the memory of large requests, of the inputs of runs that begin, and of large answers
// that wait for their clients. One half is for what is held while clients send and read and agents
// are called. An owner, the identity of a request, may have a half of that only, so that other owners
// are not blocked. The other half is for the copies of bodies. A request that holds copies waits for
// no client, so the next one gets them soon. They get them in their order, because many small bodies
// of an owner would leave no place for the large one of another.
type Budget struct {
	// Patience bounds how long a request waits for memory.
	Patience time.Duration

	limit, share int64

	room         room
	held, copies int64
	byOwner      map[access.Identity]int64
	copiers      []*Holding // those that wait for copies, in their order
	refused      int64      // how often there was no memory
}

// PageBytes is how much of stored documents a page of a list has, beside a first one that is larger: an
// identity may request several at once.
func (b *Budget) PageBytes() int { return int(min(b.share/4, 16<<20)) }

func newBudget(limit int64) *Budget {
	return &Budget{Patience: 10 * time.Second, limit: limit / 2, share: limit / sharesOfBudget, byOwner: map[access.Identity]int64{}}
}

// Limit returns the memory of the budget, in bytes.
func (b *Budget) Limit() int64 { return 2 * b.limit }

// Used returns the memory that counts now, in bytes.
func (b *Budget) Used() int64 {
	b.room.Lock()
	defer b.room.Unlock()
	return b.held + b.copies
}

// Refused returns how many requests and answers got no memory.
func (b *Budget) Refused() int64 {
	b.room.Lock()
	defer b.room.Unlock()
	return b.refused
}

// Holding is the memory that a request or a run has of the budget.
type Holding struct {
	// StatementTime is how long a statement of a request that reads may take. 0: as long as it needs.
	StatementTime time.Duration

	budget       *Budget
	owner        access.Identity
	size, copies int64
	read         int64 // of the rows that Read has counted
}

// Hold returns the holding of a request, which has nothing yet. Call Release at its end.
func (b *Budget) Hold(ctx context.Context) *Holding {
	return &Holding{budget: b, owner: ownerOf(ctx)}
}

// ownerOf returns the identity of a request, without what changes from one of its tokens to the next.
func ownerOf(ctx context.Context) access.Identity {
	who, _ := access.IdentityFrom(ctx)
	return access.Identity{Scope: who.Scope, Subject: who.Subject, Issuer: who.Issuer}
}

// errTooLarge is the error of an answer that would not even fit alone.
var errTooLarge = problem.Errorf(http.StatusUnprocessableEntity, "the answer is larger than the memory of the server for one answer: ask for less of it, with a smaller limit, "+
	"or for a part of the thread; the operator of the server can raise --max-buffered-bytes")

var errMemory = problem.Errorf(http.StatusServiceUnavailable, "too many large requests and answers are in progress: retry, and send and read faster")

// Resize makes the holding larger or smaller. Small sizes do not count. More than a share is
// possible if the owner has nothing else.
func (h *Holding) Resize(size int) error {
	h.budget.room.Lock()
	defer h.budget.room.Unlock()
	if !h.resize(int64(size)) {
		h.budget.refused++
		return errMemory
	}
	return nil
}

// Wait is Resize, but waits a while for memory. A holding that has some does not wait for more: two of
// them could wait for each other.
func (h *Holding) Wait(ctx context.Context, size int) error {
	if h.size > 0 {
		return h.Resize(size)
	}
	return h.budget.wait(ctx, h.budget.Patience, func() bool { return h.resize(int64(size)) })
}

// Read makes the holding larger by rows that have arrived from the database. What all of them take may
// not exceed what is held of the budget at most.
func (h *Holding) Read(size int) error {
	h.budget.room.Lock()
	defer h.budget.room.Unlock()
	h.read += int64(size)
	err := errMemory
	if h.read > h.budget.limit {
		err = errTooLarge
	} else if h.read <= h.size || h.resize(h.read) {
		return nil
	}
	h.budget.refused++
	return err
}

// resize reports whether the holding has a size now. The caller has the lock.
func (h *Holding) resize(size int64) bool {
	if size <= SmallSize {
		size = 0
	}
	b, n := h.budget, size-h.size
	own := b.byOwner[h.owner]
	if n > 0 && (own > h.size && own+n > b.share || b.held > h.size && b.held+n > b.limit) {
		return false
	}
	h.size += n
	b.held += n
	if b.byOwner[h.owner] += n; b.byOwner[h.owner] == 0 {
		delete(b.byOwner, h.owner)
	}
	if n < 0 {
		b.room.wakeUp()
	}
	return true
}

// Copy counts the copies that are made of what is held, until DropCopies or Release. It waits a while
// for memory.
func (h *Holding) Copy(ctx context.Context) error { return h.CopyWithin(ctx, h.budget.Patience) }

// CopyWithin is Copy with another bound of the time that it waits.
func (h *Holding) CopyWithin(ctx context.Context, patience time.Duration) error {
	b := h.budget
	b.room.Lock()
	b.copiers = append(b.copiers, h)
	b.room.Unlock()
	defer func() {
		b.room.Lock()
		defer b.room.Unlock()
		b.copiers = slices.DeleteFunc(b.copiers, func(other *Holding) bool { return other == h })
		b.room.wakeUp()
	}()
	return b.wait(ctx, patience, func() bool {
		n := copiesOfBody*h.size - h.copies
		if n > 0 && (b.copiers[0] != h || b.copies > h.copies && b.copies+n > b.limit) {
			return false
		}
		h.resizeCopies(n)
		return true
	})
}

// DropCopies says that there are no copies any more.
func (h *Holding) DropCopies() {
	h.budget.room.Lock()
	defer h.budget.room.Unlock()
	h.resizeCopies(-h.copies)
}

func (h *Holding) resizeCopies(n int64) {
	h.copies += n
	h.budget.copies += n
	if n < 0 {
		h.budget.room.wakeUp()
	}
}

// Release gives everything back.
func (h *Holding) Release() {
	h.budget.room.Lock()
	defer h.budget.room.Unlock()
	h.read = 0
	h.resize(0)
	h.resizeCopies(-h.copies)
}

// Move returns another holding that has what this one had.
func (h *Holding) Move() *Holding {
	h.budget.room.Lock()
	defer h.budget.room.Unlock()
	moved := *h
	h.size, h.copies = 0, 0
	return &moved
}

// wait waits until try returns true, which it calls with the lock.
func (b *Budget) wait(ctx context.Context, patience time.Duration, try func() bool) error {
	err := b.room.wait(ctx, patience, try)
	if errors.Is(err, errNoRoom) {
		b.room.Lock()
		defer b.room.Unlock()
		b.refused++
		return errMemory
	}
	return err
}
