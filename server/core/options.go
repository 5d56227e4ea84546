package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
)

// Options configure a Server. They are those of server.Options that do not belong to HTTP, which
// says what they mean.
type Options struct {
	Agents        []Agent
	AgentNetworks []netip.Prefix
	Heartbeat     time.Duration
	Grace         time.Duration
	MaxAppends    int
	Reads         *pgagui.Store
	NodeReads     map[string][]*pgagui.Store
	MaxReadLag    time.Duration
	Recorder      pgagui.RecorderConfig
	Logger        *slog.Logger
	Metrics       prometheus.Registerer
	WrapTransport func(http.RoundTripper) http.RoundTripper
	ObserveRun    RunObserver
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
	// Capabilities are what the agent can do, as AG-UI 1.0 names it: a JSON object of the categories,
	// without transport. See AllCapabilities.
	Capabilities json.RawMessage
	// History says which of the stored messages the agent receives. See History.
	History History
	// BranchState says that a run which branches off because a message was edited or an answer is
	// regenerated begins with the state of its branch, not with that of the client, which comes from
	// the branch that the client leaves.
	BranchState bool
	// Parallel lets several runs of a thread be in progress at once.
	Parallel bool
	// OnConcurrentRun says what a request does while another run of its thread is in progress. Those of
	// one process wait in the order in which they came. A request whose client leaves while it waits leaves no trace.
	OnConcurrentRun ConcurrentRun
	// QueueTimeout bounds how long a request waits for its turn. A minute if zero.
	QueueTimeout time.Duration
	// RepairToolCalls gives the calls of tools that have no result the result "interrupted" before the
	// agent receives the messages: most providers of models refuse calls without one.
	RepairToolCalls bool
	// Idempotent says that a request can be repeated although the agent may have received it. Then
	// the server retries after the statuses 502, 503 and 504.
	Idempotent bool
	// ForwardHeaders are the names of the request headers that the agent receives. None if empty:
	// not even Authorization.
	ForwardHeaders []string
	// Headers are sent with each request, for example an API key.
	Headers http.Header
	// MaxEventBytes bounds an event of the agent. 10 MiB if zero: the official client takes no larger
	// one.
	MaxEventBytes int
	// IdleTimeout bounds the time in which the agent sends nothing, not even a comment. 5 minutes
	// if zero.
	IdleTimeout time.Duration
	// EndTimeout is how long nothing may follow RUN_FINISHED or RUN_ERROR until the run has ended.
	// What comes later are late events. 2 seconds if zero. If negative, the run ends with the answer
	// of the agent.
	EndTimeout time.Duration
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
	// ones before them, and a message that is missing was not removed.
	NewMessages History = "new"
	// FullHistory says that clients send all messages: the agent receives what the client sent. If
	// it sent none of the stored ones, the run begins a new root.
	FullHistory History = "full"
)

func (o *Options) setDefaults() {
	setDefault(&o.Heartbeat, 15*time.Second)
	setDefault(&o.Grace, 10*time.Second)
	setDefault(&o.MaxReadLag, 10*time.Second)
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
		setDefault(&agent.MaxEventBytes, 10<<20)
		setDefault(&agent.IdleTimeout, 5*time.Minute)
		setDefault(&agent.EndTimeout, 2*time.Second)
		setDefault(&agent.RunTimeout, time.Hour)
		setDefault(&agent.QueueTimeout, time.Minute)
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
	if !slices.Contains([]ConcurrentRun{RefuseRun, SupersedeRun, QueueRun}, a.OnConcurrentRun) {
		return fmt.Errorf(`its onConcurrentRun is %q (expected "supersede", "queue", or nothing)`, a.OnConcurrentRun)
	}
	address, err := url.Parse(a.URL)
	if err != nil {
		return fmt.Errorf("its URL: %w", err)
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("its URL is %q (expected http://… or https://…)", a.URL)
	}
	return checkCapabilities(a.Capabilities)
}
