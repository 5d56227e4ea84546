package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/face/agui"
	"github.com/pgagui/pgagui/server/face/ambient"
	"github.com/pgagui/pgagui/server/face/copilotkit"
	"github.com/pgagui/pgagui/server/face/rest"
)

// faces are the protocols of clients.
var faces = []face.Face{agui.Face, copilotkit.Face, rest.Face, ambient.Face}

// Server is the handler of all requests. It records the runs that it accepted until Shutdown.
type Server struct {
	core    *core.Server
	handler http.Handler
}

// New returns a server for the threads of a store. The database must have the schema of package
// sql/schema.
//
// Each request works on store.InScope with the scope of its token. With pgagui.Config.SetScope,
// row-level security enforces the same in the database; see docs/server.md for the two roles.
func New(store *pgagui.Store, options Options) (*Server, error) {
	if options.Access == nil {
		return nil, errors.New("server: Options.Access is missing: without it, every request would be refused")
	}
	entry := door.New(store, door.Options{Limits: options.Limits, MaxBufferedBytes: options.MaxBufferedBytes, WriteTimeout: options.WriteTimeout, ReadTimeout: options.ReadTimeout})
	runs, err := core.New(store, entry, core.Options{
		Agents: options.Agents, Heartbeat: options.Heartbeat, Grace: options.Grace,
		AgentNetworks: options.AgentNetworks, MaxAppends: options.MaxAppends, Reads: options.Reads, NodeReads: options.NodeReads, MaxReadLag: options.MaxReadLag, Recorder: options.Recorder,
		Logger: options.Logger, Metrics: options.Metrics, WrapTransport: options.WrapTransport, ObserveRun: options.ObserveRun,
	})
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	own := []face.Face{healthFace(options.Ready), probeFace(options.Version), openAPIFace}
	handler, err := face.New(runs, face.Options{Access: options.Access, Origins: options.Origins}, append(own, faces...)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: %w", err), runs.Shutdown(context.Background()))
	}
	return &Server{runs, handler}, nil
}

// SetAgents replaces the agents. Runs in progress continue with the agents that they began with. The
// request headers that scripts of Options.Origins may send stay those of New.
func (s *Server) SetAgents(agents []Agent) error {
	if err := s.core.SetAgents(agents); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// Door is what requests pass on their way to the store: for other handlers of the same process, such as an explorer.
func (s *Server) Door() *door.Door { return s.core.Door }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Shutdown ends the server without loss. It aborts all streams, so that clients come back to
// another process, and refuses new runs. Agents have Options.Grace to finish; after that, runs in
// progress end with RUN_ERROR. Everything that was received is stored. Call Shutdown before
// http.Server.Shutdown. It returns an error if not everything could be stored before ctx ended.
func (s *Server) Shutdown(ctx context.Context) error { return s.core.Shutdown(ctx) }
