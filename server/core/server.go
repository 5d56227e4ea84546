package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/problem"
)

// Server records the runs that it accepted until Shutdown, and follows and stops runs.
type Server struct {
	// Options are those of New, with their defaults.
	Options Options
	// Door is what requests pass on their way to the store.
	*door.Door

	store    *pgagui.Store
	replicas *replicas // nil: none
	agents   atomic.Pointer[map[string]*Agent]
	recorder *pgagui.Recorder
	client   *http.Client // of the agents
	metrics  *metrics
	runs     runs
	folded   foldedRuns
	appends  *door.Slots
	queues   queues

	// background is the context of all runs: it ends when Shutdown gives them up.
	background context.Context
	giveUp     context.CancelCauseFunc
	// streaming is the context of all streams: it ends when Shutdown begins.
	streaming   context.Context
	stopStreams context.CancelFunc
}

// New returns a server for the threads of a store, which has a door.
func New(store *pgagui.Store, entry *door.Door, options Options) (*Server, error) {
	options.setDefaults()
	agents, err := completed(options.Agents)
	if err != nil {
		return nil, err
	}
	s := &Server{
		store: store, Options: options, recorder: store.NewRecorder(&options.Recorder),
		client: &http.Client{
			Transport: options.WrapTransport(transport(options.AgentNetworks)),
			// A redirect would take the conversation, and the headers of the agent, to where it says.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		runs: runs{all: map[*recordedRun]struct{}{}}, folded: foldedRuns{all: map[foldedName]*foldedRun{}}, Door: entry,
		appends: door.NewSlots(options.MaxAppends), queues: queues{all: map[threadKey][]chan struct{}{}},
	}
	s.keepAgents(agents)
	s.background, s.giveUp = context.WithCancelCause(context.Background())
	s.streaming, s.stopStreams = context.WithCancel(context.Background())
	if s.metrics, err = newMetrics(options.Metrics, s.recorder, s.Memory); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if s.replicas, err = newReplicas(store, &options); err != nil {
		return nil, err
	}
	if s.replicas != nil {
		entry.Replicas = s.readSince
	}
	return s, nil
}

// SetAgents replaces the agents. Runs in progress continue with the agents that they began with.
func (s *Server) SetAgents(agents []Agent) error {
	agents, err := completed(agents)
	if err == nil {
		s.keepAgents(agents)
	}
	return err
}

func (s *Server) keepAgents(agents []Agent) {
	byName := map[string]*Agent{}
	for i := range agents {
		byName[agents[i].Name] = &agents[i]
	}
	s.agents.Store(&byName)
}

// Agents returns the agents by their names.
func (s *Server) Agents() map[string]*Agent { return *s.agents.Load() }

// Agent returns the agent with a name.
func (s *Server) Agent(name string) (*Agent, error) {
	if agent, found := s.Agents()[name]; found {
		return agent, nil
	}
	return nil, problem.Errorf(http.StatusNotFound, "the server has no agent %q", name)
}

// transport returns the transport of the requests to agents. Each request has a connection of its
// own. A server may close an idle connection at any time (gunicorn after 2 seconds, Node and uvicorn
// after 5, a proxy as its operator has set). If a request is on its way at that time, the agent may
// have received it or not, so the request cannot be repeated and the run fails. A run holds its
// connection for seconds or minutes. To open a connection takes 0.1 ms and a round trip; with TLS, 4
// ms of CPU and two round trips.
func transport(networks []netip.Prefix) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: allowed(networks)}).DialContext
	transport.DisableKeepAlives = true
	transport.DisableCompression = true // a compressed stream would be delayed
	return transport
}

// errNotAllowed is why a connection to an agent is not made.
var errNotAllowed = errors.New("the address is in no network in which agents may be")

// metadata are addresses at which clouds give credentials to each process, beside link-local ones.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
}

// allowed returns what checks the addresses of connections: they must be in one of the networks. If there are none, all are allowed
// except link-local ones and those of metadata services.
func allowed(networks []netip.Prefix) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := to.Addr().Unmap().WithZone("")
		isAllowed := slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip) })
		if len(networks) == 0 {
			isAllowed = !ip.IsLinkLocalUnicast() && !ip.IsMulticast() && !slices.Contains(metadata, ip)
		}
		if !isAllowed {
			return fmt.Errorf("%s: %w", ip, errNotAllowed)
		}
		return nil
	}
}

// Streaming returns a context that ends when the server begins to shut down.
func (s *Server) Streaming() context.Context { return s.streaming }

// Shutdown ends all streams, gives agents Options.Grace to finish, and then ends the runs in progress.
// It returns an error if not everything could be stored before ctx ended.
func (s *Server) Shutdown(ctx context.Context) error {
	s.runs.mu.Lock()
	s.runs.isClosed = true
	s.runs.mu.Unlock()
	s.stopStreams()

	ended := make(chan struct{})
	go panics.Task(s.Options.Logger, func() {
		s.runs.ended.Wait()
		close(ended)
	}, nil)()
	select {
	case <-ended:
	case <-time.After(s.Options.Grace):
	case <-ctx.Done():
	}
	s.giveUp(ErrShutdown)
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = errors.New("server: some runs did not end in time")
	}
	if s.replicas != nil {
		s.replicas.close()
	}
	return errors.Join(err, s.recorder.Close(ctx))
}
