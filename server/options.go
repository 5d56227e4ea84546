package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
)

// Options configure a Server. Agents and Access are required.
type Options struct {
	// Agents are the agents that clients can run.
	Agents []Agent
	// Access says who has sent a request, and what the sender may do.
	Access access.Authenticator
	// Limits bound what one identity may use of this process.
	Limits access.LimitOptions
	// Origins are the web origins whose scripts may call the server, for example
	// https://app.example.com. None if empty.
	Origins []string
	// Heartbeat is the interval of comments on streams without events. 15 seconds if zero.
	Heartbeat time.Duration
	// WriteTimeout is how long a client may take to accept what is written to it. Then the
	// connection is aborted, and the client can resume. 30 seconds if zero.
	WriteTimeout time.Duration
	// Grace is how long Shutdown lets agents finish their runs. 10 seconds if zero.
	Grace time.Duration
	// MaxBufferedBytes bounds the memory of large requests that arrive and of large answers that wait
	// for slow clients. Beyond it, the answer to a large request is 503, and the client retries. One
	// identity may have a quarter. 256 MiB if zero.
	MaxBufferedBytes int64
	// MaxAppends bounds the appends over HTTP that are in progress at once. Beyond it, the answer to
	// an append is 429, and the client retries. 64 if zero.
	MaxAppends int
	// Ready checks whether requests can be served now, for /readyz: for example that the schema is
	// the expected one. No check if nil.
	Ready func(context.Context) error
	// Reads is a store on a streaming standby of the database, with the same pgagui.Config. While the
	// standby can be used, it answers requests that read, and streams follow the log there. See "Read
	// replicas" in docs/server.md. If nil, the primary answers all requests.
	Reads *pgagui.Store
	// MaxReadLag is how far the standby may be behind. If it is further, reads go to the primary. 10
	// seconds if zero.
	MaxReadLag time.Duration
	// Version is the version of the program, which GET /probe names. It may be empty.
	Version string
	// Recorder configures the recorder of the runs.
	Recorder pgagui.RecorderConfig
	// Logger gets what operators should know. slog.Default() if nil.
	Logger *slog.Logger
	// Metrics registers the metrics of the server. None if nil.
	Metrics prometheus.Registerer
	// WrapTransport wraps the transport of the requests to agents, for example in one that traces. If
	// nil, the transport is not wrapped.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// ObserveRun watches the runs that the server records. It may be nil.
	ObserveRun RunObserver
}

// RunObserver is called when the server has accepted a run, with the context of the request. It
// returns the context of the run, derived from background: requests to the agent have its values.
// The server calls ended when the end of the run is committed, or could not be.
type RunObserver func(request, background context.Context, run ObservedRun) (ctx context.Context, ended func(outcome string, err error))

// ObservedRun is a run that an observer watches.
type ObservedRun struct {
	pgagui.RunRef
	// Agent is the name of the agent.
	Agent string
	// Scope is the tenant or user of the thread.
	Scope string
	// ParentRunID is the run that it continues. Empty: none.
	ParentRunID string
}

// Agent is an AG-UI agent that the server calls over HTTP.
type Agent struct {
	// Name is the name of the agent in the paths of requests.
	Name string
	// URL receives a POST request with a RunAgentInput, and answers with server-sent events.
	URL string
	// Description is for people.
	Description string
	// History says which of the stored messages the agent receives. See History.
	History History
	// Parallel lets several runs of a thread be in progress at once.
	Parallel bool
	// Idempotent says that a request can be repeated although the agent may have received it. Then
	// the server retries after the statuses 502, 503 and 504.
	Idempotent bool
	// ForwardHeaders are the names of the request headers that the agent receives. None if empty:
	// not even Authorization.
	ForwardHeaders []string
	// Headers are sent with each request, for example an API key.
	Headers http.Header
	// MaxEventBytes bounds an event of the agent. 8 MB if zero.
	MaxEventBytes int
	// IdleTimeout bounds the time in which the agent sends nothing, not even a comment. 5 minutes
	// if zero.
	IdleTimeout time.Duration
	// RunTimeout bounds a run. An hour if zero.
	RunTimeout time.Duration
}

// History says which messages an agent receives.
type History string

const (
	// FillHistory compares the messages of the client with the stored ones, by id. If the client
	// sent none of them, the agent receives the stored messages before those of the client.
	FillHistory History = ""
	// NewMessages says that clients send only new messages: the agent always receives the stored
	// ones before them.
	NewMessages History = "new"
	// FullHistory says that clients send all messages: the agent receives what the client sent.
	FullHistory History = "full"
)

func (o *Options) setDefaults() {
	setDefault(&o.Heartbeat, 15*time.Second)
	setDefault(&o.WriteTimeout, 30*time.Second)
	setDefault(&o.Grace, 10*time.Second)
	setDefault(&o.MaxReadLag, 10*time.Second)
	setDefault(&o.MaxBufferedBytes, 256<<20)
	setDefault(&o.MaxAppends, 64)
	setDefault(&o.Logger, slog.Default())
	setDefault(&o.Recorder.Logger, o.Logger)
	if o.WrapTransport == nil {
		o.WrapTransport = func(transport http.RoundTripper) http.RoundTripper { return transport }
	}
	if o.ObserveRun == nil {
		o.ObserveRun = func(_, background context.Context, _ ObservedRun) (context.Context, func(string, error)) {
			return background, func(string, error) {}
		}
	}
}

func setDefault[T comparable](setting *T, value T) {
	var zero T
	if *setting == zero {
		*setting = value
	}
}

// completed returns agents with their defaults, and what is wrong with them.
func completed(agents []Agent) ([]Agent, error) {
	var problems []error
	agents = slices.Clone(agents)
	names := map[string]bool{}
	for i := range agents {
		agent := &agents[i]
		setDefault(&agent.MaxEventBytes, 8<<20)
		setDefault(&agent.IdleTimeout, 5*time.Minute)
		setDefault(&agent.RunTimeout, time.Hour)
		if err := agent.check(); err != nil {
			problems = append(problems, fmt.Errorf("agent %q: %w", agent.Name, err))
		}
		if names[agent.Name] {
			problems = append(problems, fmt.Errorf("agent %q: there are two agents with this name", agent.Name))
		}
		names[agent.Name] = true
	}
	return agents, errors.Join(problems...)
}

func (a *Agent) check() error {
	if a.Name == "" {
		return errors.New("it has no name")
	}
	if !slices.Contains([]History{FillHistory, NewMessages, FullHistory}, a.History) {
		return fmt.Errorf(`its history is %q (expected "new", "full", or nothing)`, a.History)
	}
	address, err := url.Parse(a.URL)
	if err != nil {
		return fmt.Errorf("its URL: %w", err)
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("its URL is %q (expected http://… or https://…)", a.URL)
	}
	return nil
}

// headersOfAgents returns the request headers that agents receive, which scripts may send.
func (o *Options) headersOfAgents() (names []string) {
	for _, agent := range o.Agents {
		names = append(names, agent.ForwardHeaders...)
	}
	return names
}
