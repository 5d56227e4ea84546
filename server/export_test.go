package server

import (
	"context"

	"github.com/pgagui/pgagui"
)

// UsesReplica reports whether reads go to the replica now.
func (s *Server) UsesReplica() bool { return s.replica.usable.Load() != nil }

// ForRead returns the context of a request that reads, and the store that it uses.
func (s *Server) ForRead(ctx context.Context) (context.Context, *pgagui.Store) {
	return context.WithValue(ctx, routeKey{}, &route{reads: true}), s.replica.reads
}
