// Package door is what every request passes on its way to a store, whichever face it has: the limits of
// its identity, its share of the connections, and the memory for what it sends and reads.
package door

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
)

// Options configure a Door.
type Options struct {
	// Limits bound what one identity may use of this process.
	Limits access.LimitOptions
	// MaxBufferedBytes bounds the memory for large requests and answers. 256 MiB if zero.
	MaxBufferedBytes int64
	// WriteTimeout is how long a client may take to accept what is written to it. 30 seconds if zero.
	WriteTimeout time.Duration
	// ReadTimeout is how long a statement of a request that reads may take. 30 seconds if zero.
	ReadTimeout time.Duration
}

// Door is the way of requests to a store. All faces of a process share one.
type Door struct {
	// Limits bound the requests and streams of identities.
	Limits *access.Limits
	// Memory is for large requests and answers.
	Memory *Budget
	// WriteTimeout is how long a client may take to accept what is written to it.
	WriteTimeout time.Duration
	// BodyTimeout bounds the time to receive a body that is not a stream.
	BodyTimeout time.Duration
	// Replicas, if set, returns the context and the store for a request that a read replica may answer. The answer must have what was
	// written up to a time; zero: as old as replicas may be.
	Replicas func(ctx context.Context, seen time.Time) (context.Context, *pgagui.Store)

	readTimeout time.Duration
	store       *pgagui.Store
	connections *shares // nil: the store has no pool
}

// New returns the door of a store.
func New(store *pgagui.Store, options Options) *Door {
	return &Door{
		Limits: access.NewLimits(options.Limits), Memory: newBudget(cmp.Or(options.MaxBufferedBytes, 256<<20)),
		WriteTimeout: cmp.Or(options.WriteTimeout, 30*time.Second), BodyTimeout: time.Minute,
		readTimeout: cmp.Or(options.ReadTimeout, 30*time.Second), store: store, connections: newShares(store),
	}
}

// Store returns the store for a request, of which it has the context: that of the scope of its identity.
func (d *Door) Store(ctx context.Context) *pgagui.Store { return d.guard(ctx, d.store, true) }

// In is Store for a store of the same database that counts its rows itself.
func (d *Door) In(ctx context.Context, store *pgagui.Store) *pgagui.Store {
	return d.guard(ctx, store, false)
}

func (d *Door) guard(ctx context.Context, store *pgagui.Store, counts bool) *pgagui.Store {
	who, _ := access.IdentityFrom(ctx)
	return store.WrapDB(func(database pgagui.DB) pgagui.DB { return guarded{database, d.connections, ownerOf(ctx), counts} }).InScope(who.Scope)
}

type readingKey struct{}

// Reading returns the context of a request whose answer is in memory until the client has it: the rows that it reads count in held
// until that is released, and its statements have a time limit.
func (d *Door) Reading(ctx context.Context) (statements context.Context, held *Holding) {
	held = d.Memory.Hold(ctx)
	held.StatementTime = d.readTimeout
	return context.WithValue(ctx, readingKey{}, reading{held, true}), held
}

// reading is what a context says of a request that reads.
type reading struct {
	held   *Holding // nil: it does not read, or it streams
	counts bool     // whether its rows count in held
}

func readingOf(ctx context.Context) reading {
	of, _ := ctx.Value(readingKey{}).(reading)
	return of
}

// counted returns what the rows count in. nil: they do not count.
func (r reading) counted() *Holding {
	if r.counts {
		return r.held
	}
	return nil
}

// leastRate is how fast a client must accept an answer, in bytes a second.
const leastRate = 64 << 10

// Answer lets write answer a request with so many bytes, or with what the request has read if that is more. It takes memory for them, beside none that the request has for what it has
// read: that is what is written. write has so much time as the slowest of clients may take.
func (d *Door) Answer(w http.ResponseWriter, r *http.Request, size int, write func()) error {
	held := readingOf(r.Context()).counted()
	if held == nil {
		held = d.Memory.Hold(r.Context())
		defer held.Release()
	}
	size = max(size, int(held.read))
	if err := held.Resize(max(size, int(held.size))); err != nil {
		return err
	}
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(d.TimeToWrite(size))); err != nil && !errors.Is(err, http.ErrNotSupported) {
		panic(http.ErrAbortHandler)
	}
	write()
	if control.Flush() == nil {
		_ = control.SetWriteDeadline(time.Time{}) // for the next request of the connection
	}
	return nil
}

// TimeToWrite is how long a client may take to accept so many bytes.
func (d *Door) TimeToWrite(size int) time.Duration {
	return d.WriteTimeout + time.Duration(size/leastRate)*time.Second
}

// Streaming returns the context of a request whose answer is a stream. It gives back what the request has read so far, and nothing
// counts that it reads from then on: a stream holds a part of it at a time, and counts that itself.
func Streaming(ctx context.Context) context.Context { return uncounted(ctx, nil) }

// InPages is Streaming for a request that goes through a log and keeps little of it, before it answers: each of its statements has the
// time limit of the request.
func InPages(ctx context.Context) context.Context { return uncounted(ctx, readingOf(ctx).held) }

func uncounted(ctx context.Context, held *Holding) context.Context {
	if before := readingOf(ctx).counted(); before != nil {
		before.Release()
	}
	return context.WithValue(ctx, readingKey{}, reading{held: held})
}
