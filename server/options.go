package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
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
	// ReadTimeout is how long a statement of a request that reads may take. Then it is cancelled, and the
	// answer is 422. 30 seconds if zero.
	ReadTimeout time.Duration
	// Grace is how long Shutdown lets agents finish their runs. 10 seconds if zero.
	Grace time.Duration
	// MaxBufferedBytes bounds the memory of large requests, with the copies that are made of them, of
	// inputs that agents have not received yet, and of large answers that wait for slow clients. What
	// does not fit waits a while, then the answer is 503, and the client retries. One identity may have
	// a quarter. It should be four times Limits.MaxBodyBytes or more. 256 MiB if zero.
	MaxBufferedBytes int64
	// AgentNetworks are the networks in which agents may be: their addresses are checked when the server
	// connects. If empty, all are allowed except link-local ones and those of metadata services. With an
	// HTTP proxy in the environment, it is the address of the proxy that is checked.
	AgentNetworks []netip.Prefix
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
	// NodeReads are, for a store on a cluster, stores on streaming standbys of its nodes (pgagui.New), by
	// the names of the nodes. Requests use the standbys of a node in turn.
	NodeReads map[string][]*pgagui.Store
	// MaxReadLag is how far a standby may be behind. If it is further, reads go to the primary. 10
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

// What options consist of.
type (
	// Agent is an AG-UI agent that the server calls over HTTP.
	Agent = core.Agent
	// History says which messages an agent receives.
	History = core.History
	// ConcurrentRun says what a request does while another run of its thread is in progress.
	ConcurrentRun = core.ConcurrentRun
	// RunObserver watches the runs that the server records.
	RunObserver = core.RunObserver
	// ObservedRun is a run that an observer watches.
	ObservedRun = core.ObservedRun
)

// The values of History.
const (
	// FillHistory compares the messages of the client with the stored ones, by id. If the client
	// sent none of them, the agent receives the stored messages before those of the client.
	FillHistory = core.FillHistory
	// NewMessages says that clients send only new messages: the agent always receives the stored
	// ones before them, and a message that is missing was not removed.
	NewMessages = core.NewMessages
	// FullHistory says that clients send all messages: the agent receives what the client sent. If
	// it sent none of the stored ones, the run begins a new root.
	FullHistory = core.FullHistory
)

// The values of ConcurrentRun.
const (
	// RefuseRun refuses the request with 409.
	RefuseRun = core.RefuseRun
	// SupersedeRun requests the other run to stop, and begins when that has ended.
	SupersedeRun = core.SupersedeRun
	// QueueRun waits until the other run has ended, and continues from it.
	QueueRun = core.QueueRun
)
