package face

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/problem"
)

// Face is one protocol of clients.
type Face struct {
	// Name is the name of its package.
	Name string
	// Register registers its endpoints.
	Register func(*HTTP)
}

// HTTP serves a core over HTTP: it lets requests in, and has what the endpoints of all faces read
// and answer with.
type HTTP struct {
	*core.Server
	// Guard decides which requests reach an endpoint.
	Guard access.Guard
	// Mux has the endpoints.
	Mux *http.ServeMux

	patterns   []string
	metrics    *metrics
	handler    http.Handler
	compressed func(http.Handler) http.HandlerFunc
}

// Options configure an HTTP. server.Options says what they mean.
type Options struct {
	Access  access.Authenticator
	Origins []string
}

// New returns the HTTP of a core, with the endpoints of faces.
func New(server *core.Server, options Options, faces ...Face) (*HTTP, error) {
	cors, err := access.CORS(options.Origins, headersOf(server.Options.Agents)...)
	if err != nil {
		return nil, err
	}
	s := &HTTP{Server: server, Mux: http.NewServeMux()}
	if s.metrics, err = newMetrics(server.Options.Metrics); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s.compressed, err = gzhttp.NewWrapper(gzhttp.ContentTypes(compressedTypes), gzhttp.KeepAcceptRanges(), gzhttp.EnableZstd(false))
	if err != nil {
		return nil, err
	}
	s.Guard = access.Guard{
		Authenticator: options.Access, Limits: server.Limits, Audit: access.Audit{Logger: server.Options.Logger},
	}
	s.Guard = s.GuardWith(answerRefusal)
	for _, face := range faces {
		face.Register(s)
	}
	s.handler = s.measured(cors(s.Routed()))
	return s, nil
}

// compressedTypes are the types of answers that are compressed if the client accepts it. A stream is
// not: a proxy on the way would wait for the end of a block.
var compressedTypes = []string{"application/json", "application/problem+json", "application/x-ndjson", "application/yaml", "text/plain", "text/markdown"}

// GuardWith returns the guard with another form of the answers to requests that it refuses. answer
// need not set the headers of a refusal.
func (s *HTTP) GuardWith(answer func(http.ResponseWriter, *http.Request, *access.Refusal)) access.Guard {
	guard := s.Guard
	guard.Audit.Answer = func(w http.ResponseWriter, r *http.Request, refusal *access.Refusal) {
		s.metrics.refused.WithLabelValues(strconv.Itoa(refusal.Status())).Inc()
		refusal.SetHeaders(w.Header())
		answer(w, r, refusal)
	}
	return guard
}

// headersOf returns the request headers that agents receive, which scripts may send.
func headersOf(agents []core.Agent) (names []string) {
	for _, agent := range agents {
		names = append(names, agent.ForwardHeaders...)
	}
	return names
}

// ServeHTTP answers a request.
func (s *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength >= 0 || r.ProtoMajor > 1 {
		s.handler.ServeHTTP(w, r)
		return
	}
	// The body is a stream, in HTTP/1. net/http would read on before it answers, so a writer whose stream is
	// refused would never get the answer. What the writer still sends is read afterwards.
	control, stream := http.NewResponseController(w), r.Body
	_ = control.EnableFullDuplex()
	s.handler.ServeHTTP(w, r)
	if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(DrainTimeout)) == nil {
		if _, err := io.CopyN(io.Discard, stream, MaxDrained); errors.Is(err, io.EOF) {
			_ = control.SetReadDeadline(time.Time{}) // for the next request of the connection
		}
	}
}

// Endpoints are the endpoints of a face, by method and path, each with the right that it needs.
type Endpoints map[string]struct {
	Right access.Rights
	Serve func(http.ResponseWriter, *http.Request) error
}

// Register registers endpoints below a prefix.
func (s *HTTP) Register(prefix string, endpoints Endpoints) {
	for pattern, endpoint := range endpoints {
		method, path, _ := strings.Cut(pattern, " ")
		s.Handle(method+" "+prefix+path, endpoint.Right, endpoint.Serve)
	}
}

// Handle registers an endpoint with the right that it needs.
func (s *HTTP) Handle(pattern string, right access.Rights, endpoint func(http.ResponseWriter, *http.Request) error) {
	s.patterns = append(s.patterns, pattern)
	s.Mux.Handle(pattern, s.Guard.Require(right, s.compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, isCounted := r.Body.(*requestBody)
		if !isCounted {
			body = s.bodyOf(w, r)
			defer body.Held.Release()
			r.Body = body
		}
		if right == access.Read {
			reading, held := s.Reading(r.Context())
			defer held.Release()
			r = r.WithContext(reading)
		}
		err := cmp.Or(checkPath(r), body.checkEncoding(r))
		if err == nil && s.HasReplica() {
			r, err = s.withRoute(w, r, right)
		}
		if err == nil {
			err = endpoint(w, r)
		}
		if err != nil {
			body.answerRefused(w, func() { s.AnswerError(w, r, err) })
		}
	}))))
}

// Patterns are those of the endpoints that Handle has registered.
func (s *HTTP) Patterns() []string { return s.patterns }

// Routed returns the handler of all endpoints, which answers a request that none is for, too. It does
// not redirect: a client would send its token and repeat a POST as a GET.
func (s *HTTP) Routed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isClean(r.URL.EscapedPath()) {
			s.AnswerError(w, r, problem.Errorf(http.StatusNotFound, `the path has an empty part, or "." or ".." (escape ids)`))
			return
		}
		handler, pattern := s.Mux.Handler(r)
		if pattern != "" {
			s.Mux.ServeHTTP(w, r)
			return
		}
		answered := refusal{header: http.Header{}}
		handler.ServeHTTP(&answered, r)
		if answered.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", answered.header.Get("Allow"))
			s.AnswerError(w, r, problem.Errorf(http.StatusMethodNotAllowed, "%s is not possible here (expected %s)", r.Method, answered.header.Get("Allow")))
			return
		}
		s.AnswerError(w, r, problem.Errorf(http.StatusNotFound, "there is no such endpoint (GET /openapi.yaml describes all endpoints)"))
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
