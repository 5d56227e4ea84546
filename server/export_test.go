package server

import (
	"context"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
)

// UsesReplica reports whether reads go to the replica now.
func (s *Server) UsesReplica() bool { return s.core.UsesReplica() }

// ForRead returns the context of a request that reads, and the store that it uses.
func (s *Server) ForRead(ctx context.Context) (context.Context, *pgagui.Store) {
	ctx = s.core.RouteRead(ctx, core.Seen{})
	return ctx, s.core.Tenant(ctx).Store
}

// MemoryUsed returns what counts of the memory for large requests and answers.
func (s *Server) MemoryUsed() int64 { return s.core.Memory.Used() }

// SetPatience bounds how long requests wait for memory.
func (s *Server) SetPatience(patience time.Duration) { s.core.Memory.Patience = patience }

// Patterns are those of the endpoints.
func (s *Server) Patterns() []string { return s.handler.(*face.HTTP).Patterns() }
