package door

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/server/access"
)

const mib = 1 << 20

// holdingOf returns a holding of an identity.
func holdingOf(b *Budget, subject string) *Holding {
	return b.Hold(access.WithIdentity(context.Background(), access.Identity{Subject: subject}))
}

func TestSharesOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(256 * mib)
		first, second, small, other, third := holdingOf(b, "a"), holdingOf(b, "a"), holdingOf(b, "a"), holdingOf(b, "b"), holdingOf(b, "c")
		for _, h := range []*Holding{first, other} { // two identities with a whole body each
			must.Do(t, h.Wait(t.Context(), 64*mib))
		}
		if small.Resize(SmallSize) != nil || small.Resize(SmallSize+1) == nil {
			t.Error("small sizes count, or large ones do not")
		}
		begin := time.Now()
		if err := second.Wait(t.Context(), 60*mib); !errors.Is(err, errMemory) || time.Since(begin) != b.Patience {
			t.Errorf("a second body of an identity: %v after %s", err, time.Since(begin))
		}
		if err := third.Wait(t.Context(), mib); !errors.Is(err, errMemory) {
			t.Errorf("more than all: %v", err)
		}
		// The copies have memory of their own.
		if err := first.Copy(t.Context()); err != nil || b.Used() != 256*mib {
			t.Fatalf("copies: %v, %d bytes", err, b.Used())
		}
		copied := make(chan error)
		go func() { copied <- other.Copy(t.Context()) }()
		time.Sleep(time.Second)
		moved := first.Move()
		first.Release()
		if b.Used() != 256*mib {
			t.Errorf("%d bytes after a move", b.Used())
		}
		moved.DropCopies()
		if err := <-copied; err != nil {
			t.Errorf("copies that waited: %v", err)
		}
		moved.Release()
		other.Release()
		if b.Used() != 0 || len(b.byOwner) != 0 {
			t.Errorf("%d bytes of %d identities at the end", b.Used(), len(b.byOwner))
		}
		// What is larger than everything comes in alone.
		must.Report(t, first.Wait(t.Context(), 500*mib))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := other.Wait(ctx, mib); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that ended: %v", err)
		}
	})
}

// Requests that hold memory and wait for more do not wait for each other.
func TestMemoryNeverStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(256 * mib)
		b.Patience = time.Hour
		var group sync.WaitGroup
		for range 200 {
			group.Go(func() {
				h := holdingOf(b, string(rune('a'+rand.IntN(5))))
				defer h.Release()
				must.Report(t, errors.Join(h.Wait(t.Context(), rand.IntN(64*mib)), h.Copy(t.Context())))
				if used := b.Used(); used > 256*mib {
					t.Errorf("%d bytes", used)
				}
				time.Sleep(time.Second)
			})
		}
		group.Wait()
		if b.Used() != 0 {
			t.Errorf("%d bytes at the end", b.Used())
		}
	})
}

// An identity that sends one body after the other does not keep others out, however large theirs are.
func TestNoIdentityKeepsOthersOut(t *testing.T) {
	for _, size := range []int{mib, 4 * mib, 64 * mib} { // of the bodies of the one
		for _, other := range []int{mib, 64 * mib} {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(256 * mib)
				ctx, end := context.WithCancel(t.Context())
				var group sync.WaitGroup
				for range 200 {
					group.Go(func() {
						for ctx.Err() == nil {
							h := holdingOf(b, "a")
							if h.Wait(ctx, size) == nil && h.Copy(ctx) == nil {
								time.Sleep(rand.N(100 * time.Millisecond)) // of the database
							}
							h.Release()
						}
					})
				}
				for range 5 {
					time.Sleep(rand.N(time.Second))
					h, begin := holdingOf(b, "b"), time.Now()
					err := errors.Join(h.Wait(t.Context(), other), h.Copy(t.Context()))
					if waited := time.Since(begin); err != nil || waited > 2*time.Second {
						t.Errorf("%d MiB beside bodies of %d MiB: %v after %s", other/mib, size/mib, err, waited)
					}
					h.Release()
				}
				end()
				group.Wait()
				if b.Used() != 0 || len(b.copiers) != 0 {
					t.Errorf("%d bytes, and %d wait, at the end", b.Used(), len(b.copiers))
				}
			})
		}
	}
}

// A request that gives up waiting for copies makes way for those behind it.
func TestCopiesComeInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(256 * mib)
		first, large, small := holdingOf(b, "a"), holdingOf(b, "b"), holdingOf(b, "c")
		for h, size := range map[*Holding]int{first: 40 * mib, large: 60 * mib, small: mib} {
			must.Do(t, h.Wait(t.Context(), size))
		}
		must.Do(t, first.Copy(t.Context()))
		refused := make(chan error, 1)
		go func() { refused <- large.Copy(t.Context()) }()
		time.Sleep(time.Second)
		begin := time.Now()
		if err := small.Copy(t.Context()); err != nil || time.Since(begin) != b.Patience-time.Second {
			t.Errorf("the small one: %v after %s", err, time.Since(begin))
		}
		if err := <-refused; !errors.Is(err, errMemory) || b.Refused() != 1 {
			t.Errorf("the large one: %v, %d refused", err, b.Refused())
		}
	})
}
