package core

import (
	"context"
	"iter"
	"sync"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/server/access"
)

// Seen is what a request names as seen by its client: the answer must include it.
type Seen struct {
	ThreadID      string
	Seq           int64  // of an event of the thread
	TransactionID string // of an earlier request that wrote
}

// route is the way of one request, if the server has a replica.
type route struct {
	reads bool
	note  func(transactionID string) // notes a transaction for the client

	mu        sync.Mutex
	onPrimary bool
	needs     db.IsShownParams // what the standby must show; seq counts once there is a thread
}

type routeKey struct{}

// routeOf returns the route of a request. nil: it has none.
func routeOf(ctx context.Context) *route {
	way, _ := ctx.Value(routeKey{}).(*route)
	return way
}

// HasReplica reports whether requests need a route.
func (s *Server) HasReplica() bool { return s.replica != nil }

// UsesReplica reports whether reads go to the replica now.
func (s *Server) UsesReplica() bool { return s.replica != nil && s.replica.usable.Load() != nil }

// RouteRead returns the context of a request that reads, which a standby may answer.
func (s *Server) RouteRead(ctx context.Context, seen Seen) context.Context {
	who, _ := access.IdentityFrom(ctx)
	return context.WithValue(ctx, routeKey{}, &route{reads: true, needs: db.IsShownParams{
		TransactionID: seen.TransactionID, Seq: seen.Seq, Scope: who.Scope, ThreadID: seen.ThreadID,
	}})
}

// RouteWrite returns the context of a request that may write. note gets the transactions that the
// client must see later.
func (s *Server) RouteWrite(ctx context.Context, note func(transactionID string)) context.Context {
	return context.WithValue(ctx, routeKey{}, &route{note: note})
}

// needed is what the standby must show.
func (way *route) needed() db.IsShownParams {
	way.mu.Lock()
	defer way.mu.Unlock()
	needs := way.needs
	if needs.ThreadID == "" {
		needs.Seq = 0
	}
	return needs
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
func (way *route) wrote(transactionID string) {
	if transactionID != "" {
		way.note(transactionID)
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
	who, _ := access.IdentityFrom(ctx)
	store := s.store
	if way := routeOf(ctx); way != nil && way.reads {
		store = s.replica.reads
	} else if way != nil {
		store = s.replica.writes
	}
	if s.connections != nil {
		store = store.WrapDB(func(database pgagui.DB) pgagui.DB { return share{database, s.connections, ownerOf(ctx)} })
	}
	return Tenant{store.InScope(who.Scope), who.Scope, s}
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
		if !way.isOnPrimary() && !t.server.records(t.scope, threadID) {
			if usable := t.server.replica.usable.Load(); usable != nil {
				if t.followStandby(ctx, usable, threadID, &options, yield) {
					return
				}
				t.server.replica.metrics.moved.Inc()
			}
		}
		way.moveToPrimary() // what the follower sees there, the standby may not have
		t.onPrimary().Follow(ctx, threadID, options)(yield)
	}
}

// followStandby follows on the standby. If it returns false, options say where to continue.
func (t Tenant) followStandby(
	ctx context.Context, usable *usage, threadID string, options *pgagui.FollowOptions, yield func(pgagui.Event, error) bool,
) (isOver bool) {
	timed, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(usable, cancel)()
	for event, err := range t.server.replica.store.InScope(t.scope).Follow(timed, threadID, *options) {
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
