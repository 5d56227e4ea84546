package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
)

// Server is the handler of all requests. It records the runs that it accepted until Shutdown.
type Server struct {
	store    *pgagui.Store
	replica  *replica // nil: none
	options  Options
	agents   atomic.Pointer[map[string]*Agent]
	recorder *pgagui.Recorder
	client   *http.Client // of the agents
	guard    access.Guard
	metrics  *metrics
	handler  http.Handler
	runs     runs
	memory   *budget       // of large requests and answers
	appends  chan struct{} // has an item for each append in progress

	// background is the context of all runs: it ends when Shutdown gives them up.
	background context.Context
	giveUp     context.CancelCauseFunc
	// streaming is the context of all streams: it ends when Shutdown begins.
	streaming   context.Context
	stopStreams context.CancelFunc
}

// New returns a server for the threads of a store. The database must have the schema of package
// sql/schema.
//
// Each request works on store.InScope with the scope of its token. With pgagui.Config.SetScope,
// row-level security enforces the same in the database; see docs/server.md for the two roles.
func New(store *pgagui.Store, options Options) (*Server, error) {
	options.setDefaults()
	agents, err := completed(options.Agents)
	if options.Access == nil {
		err = errors.Join(errors.New("Options.Access is missing: without it, every request would be refused"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	cors, err := access.CORS(options.Origins, options.headersOfAgents()...)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &Server{
		store: store, options: options, recorder: store.NewRecorder(&options.Recorder),
		client: &http.Client{Transport: options.WrapTransport(transport())},
		runs:   runs{all: map[*recordedRun]struct{}{}}, memory: newBudget(options.MaxBufferedBytes), appends: make(chan struct{}, options.MaxAppends),
	}
	s.keepAgents(agents)
	s.background, s.giveUp = context.WithCancelCause(context.Background())
	s.streaming, s.stopStreams = context.WithCancel(context.Background())
	if s.metrics, err = newMetrics(options.Metrics, s.recorder); err != nil {
		return nil, fmt.Errorf("server: metrics: %w", err)
	}
	s.guard = access.Guard{
		Authenticator: options.Access, Limits: access.NewLimits(options.Limits),
		Audit: access.Audit{Logger: options.Logger, Answer: s.answerRefusal},
	}
	if options.Reads != nil {
		if s.replica, err = newReplica(store, options.Reads, &options); err != nil {
			return nil, fmt.Errorf("server: metrics: %w", err)
		}
		s.replica.start()
	}
	mux := http.NewServeMux()
	s.registerHealth(mux)
	s.registerProbe(mux)
	s.registerAGUI(mux)
	s.registerCopilotKit(mux, "/copilotkit")
	s.registerREST(mux)
	s.registerEventsAPI(mux, "/api/ambient/v1")
	s.registerGRPC(mux)
	s.handler = s.measured(cors(s.routed(mux)))
	return s, nil
}

// SetAgents replaces the agents. Runs in progress continue with the agents that they began with. The
// request headers that scripts of Options.Origins may send stay those of New.
func (s *Server) SetAgents(agents []Agent) error {
	agents, err := completed(agents)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.keepAgents(agents)
	return nil
}

func (s *Server) keepAgents(agents []Agent) {
	byName := map[string]*Agent{}
	for i := range agents {
		byName[agents[i].Name] = &agents[i]
	}
	s.agents.Store(&byName)
}

// transport returns the transport of the requests to agents. Each request has a connection of its
// own. A server may close an idle connection at any time (gunicorn after 2 seconds, Node and uvicorn
// after 5, a proxy as its operator has set). If a request is on its way at that time, the agent may
// have received it or not, so the request cannot be repeated and the run fails. A run holds its
// connection for seconds or minutes. To open a connection takes 0.1 ms and a round trip; with TLS, 4
// ms of CPU and two round trips.
func transport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	transport.DisableCompression = true // a compressed stream would be delayed
	return transport
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Shutdown ends the server without loss. It aborts all streams, so that clients come back to
// another process, and refuses new runs. Agents have Options.Grace to finish; after that, runs in
// progress end with RUN_ERROR. Everything that was received is stored. Call Shutdown before
// http.Server.Shutdown. It returns an error if not everything could be stored before ctx ended.
func (s *Server) Shutdown(ctx context.Context) error {
	s.runs.mu.Lock()
	s.runs.isClosed = true
	s.runs.mu.Unlock()
	s.stopStreams()

	ended := make(chan struct{})
	go func() {
		s.runs.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(s.options.Grace):
	case <-ctx.Done():
	}
	s.giveUp(errShutdown)
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = errors.New("server: some runs did not end in time")
	}
	if s.replica != nil {
		s.replica.close()
	}
	return errors.Join(err, s.recorder.Close(ctx))
}

// endpoints are the endpoints of a face, by method and path, each with the right that it needs.
type endpoints map[string]struct {
	right access.Rights
	serve func(http.ResponseWriter, *http.Request) error
}

// register registers the endpoints of a face below a prefix.
func (s *Server) register(mux *http.ServeMux, prefix string, face endpoints) {
	for pattern, endpoint := range face {
		method, path, _ := strings.Cut(pattern, " ")
		s.handle(mux, method+" "+prefix+path, endpoint.right, endpoint.serve)
	}
}

// handle registers an endpoint with the right that it needs.
func (s *Server) handle(mux *http.ServeMux, pattern string, right access.Rights, endpoint func(http.ResponseWriter, *http.Request) error) {
	mux.Handle(pattern, s.guard.Require(right, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := s.memory.hold(r.Context())
		defer held.release()
		r.Body = &requestBody{
			ReadCloser: http.MaxBytesReader(w, r.Body, s.guard.Limits.MaxBodyBytes()), held: held, whole: r.Body, control: http.NewResponseController(w),
		}
		err := checkPath(r)
		if err == nil && s.replica != nil {
			r, err = withRoute(w, r, right)
		}
		if err == nil {
			err = endpoint(w, r)
		}
		if err != nil {
			s.answerError(w, r, err)
		}
	})))
}

// routed answers a request that no endpoint of mux is for. It does not redirect: a client would send
// its token and repeat a POST as a GET.
func (s *Server) routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isClean(r.URL.EscapedPath()) {
			s.answerError(w, r, problemf(http.StatusNotFound, `the path has an empty part, or "." or ".." (escape ids)`))
			return
		}
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		answered := refusal{header: http.Header{}}
		handler.ServeHTTP(&answered, r)
		if answered.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", answered.header.Get("Allow"))
			s.answerError(w, r, problemf(http.StatusMethodNotAllowed, "%s is not possible here (expected %s)", r.Method, answered.header.Get("Allow")))
			return
		}
		s.answerError(w, r, problemf(http.StatusNotFound, "there is no such endpoint (GET /openapi.yaml describes all endpoints)"))
	})
}

// isClean reports whether a ServeMux takes a path as it is.
func isClean(escaped string) bool {
	clean := path.Clean(escaped)
	return escaped == clean || escaped == clean+"/"
}

// refusal keeps the answer of a ServeMux to a request without an endpoint.
type refusal struct {
	header http.Header
	status int
}

func (r *refusal) Header() http.Header                { return r.header }
func (r *refusal) WriteHeader(status int)             { r.status = status }
func (r *refusal) Write(text []byte) (n int, _ error) { return len(text), nil }
