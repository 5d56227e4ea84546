package server

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/server/access"
)

// positionHeader names, in a request, what the answer must include: values of this header in earlier
// answers (transactions), or ids of frames of the thread, separated by commas. Answers of requests
// that wrote have the header.
const positionHeader = "Pgagui-Position"

// writePrefix begins a position that names a transaction.
const writePrefix = "tx-"

// route is the way of one request, if the server has a replica.
type route struct {
	reads  bool
	header http.Header // of the answer

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

// withRoute gives a request its route. right is what its endpoint needs: if that is access.Read, a
// standby may answer the request.
func withRoute(w http.ResponseWriter, r *http.Request, right access.Rights) (*http.Request, error) {
	way := &route{reads: right == access.Read, header: w.Header()}
	r = r.WithContext(context.WithValue(r.Context(), routeKey{}, way))
	if !way.reads {
		return r, nil
	}
	return r, way.readPositions(r)
}

// readPositions reads what a request names as seen.
func (way *route) readPositions(r *http.Request) error {
	who, _ := access.IdentityFrom(r.Context())
	way.needs.Scope = who.Scope
	way.needs.ThreadID = r.PathValue("thread")
	for text := range strings.SplitSeq(r.Header.Get(positionHeader), ",") {
		text = strings.TrimSpace(text)
		if id, isWrite := strings.CutPrefix(text, writePrefix); isWrite {
			if _, err := strconv.ParseUint(id, 10, 63); err != nil {
				return problemf(http.StatusBadRequest, "%s: %.100q is not a position that an answer had", positionHeader, text)
			}
			way.needs.TransactionID = id
			continue
		}
		seen, err := readPlace(text)
		if err != nil {
			return err
		}
		way.needs.Seq = max(way.needs.Seq, seen.Seq)
	}
	query := r.URL.Query()
	named := []string{r.Header.Get("Last-Event-ID")}
	for _, name := range []string{"last_event_id", "after_seq", "at_seq", "from_at_seq", "to_at_seq"} {
		named = append(named, query.Get(name))
	}
	for _, text := range named {
		if seen, err := readPlace(text); err == nil { // otherwise the endpoint refuses it
			way.needs.Seq = max(way.needs.Seq, seen.Seq)
		}
	}
	return nil
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
		way.header.Set(positionHeader, writePrefix+transactionID)
	}
}

// tenant is the store of one scope, for the requests of those who may use it.
type tenant struct {
	*pgagui.Store
	scope  string
	server *Server
}

// tenantOf returns the store for the requests of an identity.
func (s *Server) tenantOf(r *http.Request) tenant { return s.tenantFrom(r.Context()) }

// tenantFrom is the same for the context of a request.
func (s *Server) tenantFrom(ctx context.Context) tenant {
	who, _ := access.IdentityFrom(ctx)
	store := s.store
	if way := routeOf(ctx); way != nil && way.reads {
		store = s.replica.reads
	} else if way != nil {
		store = s.replica.writes
	}
	return tenant{store.InScope(who.Scope), who.Scope, s}
}

// onPrimary returns the store on the primary.
func (t tenant) onPrimary() *pgagui.Store { return t.server.store.InScope(t.scope) }

// Follow is Store.Follow. For a request that reads it follows on the standby, unless this process
// records a run of the thread: then its events need no poll. If the standby is lost, or has no
// answer, the follower continues on the primary behind the last event.
func (t tenant) Follow(ctx context.Context, threadID string, options pgagui.FollowOptions) iter.Seq2[pgagui.Event, error] {
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
func (t tenant) followStandby(
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
