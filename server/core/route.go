package core

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/server/access"
)

// Seen is what a request names as seen by its client: the answer must include it.
type Seen struct {
	ThreadID     string
	Seq          int64         // of an event of the thread
	Transactions []Transaction // of earlier requests that wrote
}

// Transaction is one that wrote.
type Transaction struct {
	Node string // of a cluster. Empty: the store is on one database
	ID   string
}

// route is the way of one request, if the server has a replica.
type route struct {
	reads bool
	note  func(Transaction) // notes a transaction for the client
	scope string

	mu        sync.Mutex
	onPrimary bool
	needs     Seen                     // what a standby must show; seq counts once there is a thread
	standbys  map[*replicated]*replica // those that answer the request, so that no part of it is older than one before
}

type routeKey struct{}

// routeOf returns the route of a request. nil: it has none.
func routeOf(ctx context.Context) *route {
	way, _ := ctx.Value(routeKey{}).(*route)
	return way
}

// HasReplica reports whether requests need a route.
func (s *Server) HasReplica() bool { return s.replicas != nil }

// UsesReplica reports whether reads go to a replica now.
func (s *Server) UsesReplica() bool {
	if s.replicas != nil {
		for r := range s.replicas.each {
			if r.usable.Load() != nil {
				return true
			}
		}
	}
	return false
}

// RouteRead returns the context of a request that reads, which a standby may answer.
func (s *Server) RouteRead(ctx context.Context, seen Seen) context.Context {
	who, _ := access.IdentityFrom(ctx)
	return context.WithValue(ctx, routeKey{}, &route{reads: true, scope: who.Scope, needs: seen, standbys: map[*replicated]*replica{}})
}

// readSince is door.Door.Replicas. A standby that may be used has what is older than a check of it can say.
func (s *Server) readSince(ctx context.Context, seen time.Time) (context.Context, *pgagui.Store) {
	if time.Since(seen) > s.Options.MaxReadLag+probeInterval+probeTimeout {
		ctx = s.RouteRead(ctx, Seen{})
	}
	return ctx, s.Tenant(ctx).Store
}

// RouteWrite returns the context of a request that may write. note gets the transactions that the
// client must see later.
func (s *Server) RouteWrite(ctx context.Context, note func(Transaction)) context.Context {
	return context.WithValue(ctx, routeKey{}, &route{note: note})
}

// needed is what a standby of a node must show.
func (way *route) needed(node string) db.IsShownParams {
	way.mu.Lock()
	defer way.mu.Unlock()
	needs := db.IsShownParams{Scope: way.scope, ThreadID: way.needs.ThreadID}
	if needs.ThreadID != "" {
		needs.Seq = way.needs.Seq
	}
	for _, transaction := range way.needs.Transactions {
		if transaction.Node == node {
			needs.TransactionID = transaction.ID
		}
	}
	return needs
}

// standbyOf returns the standby of a node that answers the request. nil: the primary does.
func (way *route) standbyOf(of *replicated) *replica {
	if way == nil || of == nil {
		return nil
	}
	way.mu.Lock()
	defer way.mu.Unlock()
	if way.onPrimary {
		return nil
	}
	r, isKnown := way.standbys[of]
	if !isKnown {
		r = of.next()
		way.standbys[of] = r
	}
	return r
}

// hasSeen makes a request wait for an event that its client has seen.
func (way *route) hasSeen(threadID string, seq int64) {
	if way == nil {
		return
	}
	way.mu.Lock()
	defer way.mu.Unlock()
	way.needs.ThreadID, way.needs.Seq = threadID, max(way.needs.Seq, seq)
}

func (way *route) isOnPrimary() bool {
	if way == nil {
		return true
	}
	way.mu.Lock()
	defer way.mu.Unlock()
	return way.onPrimary
}

// moveToPrimary makes the primary answer the rest of a request. It returns false if it did so
// before.
func (way *route) moveToPrimary() bool {
	if way == nil {
		return false
	}
	way.mu.Lock()
	defer way.mu.Unlock()
	wasOnPrimary := way.onPrimary || !way.reads
	way.onPrimary = true
	return !wasOnPrimary
}

// wrote notes a transaction for the client. Empty: none.
func (way *route) wrote(transaction Transaction) {
	if transaction.ID != "" {
		way.mu.Lock() // of a cluster, several nodes at a time
		defer way.mu.Unlock()
		way.note(transaction)
	}
}

// Tenant is the store of one scope, for the requests of those who may use it.
type Tenant struct {
	*pgagui.Store
	scope  string
	server *Server
}

// Tenant returns the store for a request, of which it has the context.
func (s *Server) Tenant(ctx context.Context) Tenant {
	var store *pgagui.Store
	switch way := routeOf(ctx); {
	case way == nil:
		store = s.Door.Store(ctx)
	case way.reads:
		store = s.Door.In(ctx, s.replicas.reads)
	default:
		store = s.Door.In(ctx, s.replicas.writes)
	}
	return Tenant{store, store.Scope(), s}
}

// onPrimary returns the store on the primary.
func (t Tenant) onPrimary() *pgagui.Store { return t.server.store.InScope(t.scope) }

// Follow is Store.Follow. For a request that reads it follows on the standby, unless this process
// records a run of the thread: then its events need no poll. If the standby is lost, or has no
// answer, the follower continues on the primary behind the last event.
func (t Tenant) Follow(ctx context.Context, threadID string, options pgagui.FollowOptions) iter.Seq2[pgagui.Event, error] {
	way := routeOf(ctx)
	if way == nil || !way.reads {
		return t.Store.Follow(ctx, threadID, options)
	}
	return func(yield func(pgagui.Event, error) bool) {
		if !t.server.records(t.scope, threadID) {
			if standby := t.standbyOf(ctx, way, threadID); standby != nil {
				if usable := standby.usable.Load(); usable != nil {
					if t.followStandby(ctx, standby, usable, threadID, &options, yield) {
						return
					}
					standby.metrics.moved.Inc()
				}
			}
		}
		way.moveToPrimary() // what the follower sees there, the standby may not have
		t.onPrimary().Follow(ctx, threadID, options)(yield)
	}
}

// standbyOf returns the standby that a request follows a thread on. nil: it follows on the primary.
func (t Tenant) standbyOf(ctx context.Context, way *route, threadID string) *replica {
	node, err := t.NodeOf(ctx, threadID)
	if err != nil { // the primary says why
		return nil
	}
	return way.standbyOf(t.server.replicas.nodes[node])
}

// followStandby follows on a standby. If it returns false, options say where to continue: on the
// primary, or, of a thread that was moved, on another node.
func (t Tenant) followStandby(
	ctx context.Context, standby *replica, usable *usage, threadID string, options *pgagui.FollowOptions, yield func(pgagui.Event, error) bool,
) (isOver bool) {
	timed, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(usable, cancel)()
	for event, err := range standby.store.InScope(t.scope).Follow(timed, threadID, *options) {
		switch {
		case err != nil && ctx.Err() != nil:
			yield(event, err)
			return true
		case err != nil:
			return false
		case event.Seq > 0:
			options.After = event.Position()
			options.NoLineage, options.History = options.NoLineage || options.History != "" && options.RunID != "", ""
		}
		if !yield(event, nil) {
			return true
		}
	}
	return true
}

// records reports whether this process records a run of a thread.
func (s *Server) records(scope, threadID string) bool {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	for run := range s.runs.all {
		if run.ThreadID == threadID && run.tenant.scope == scope {
			return true
		}
	}
	return false
}
