package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tmaxmax/go-sse"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// readsBeside gives each server of the tests a store for reads, on the same database: requests then
// take the way that they take with a replica.
var readsBeside = flag.Bool("reads-beside", false, "serve reads from a pool of their own")

func TestMain(m *testing.M) {
	runAsProcess()
	testdb.Main(m)
}

// inCluster serves each database of the tests as one of three nodes, which has the thread "t".
var inCluster = flag.Bool("cluster", false, "serve a cluster of three nodes")

// patience bounds what a test waits for.
const patience = wait.Patience

// agent is an agent that does what a test says.
type agent struct {
	*httptest.Server
	calls chan *call
}

// call is a request to the agent. The test sends what the agent answers.
type call struct {
	input   map[string]any
	header  http.Header
	context context.Context // ends when the server ends the call
	answers chan string     // raw text; closing it ends the answer
	breaks  chan struct{}   // closing it breaks the connection
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{calls: make(chan *call, 100)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{header: r.Header, context: r.Context(), answers: make(chan string, 100), breaks: make(chan struct{})}
		if err := json.NewDecoder(r.Body).Decode(&c.input); err != nil {
			t.Errorf("the agent received no JSON: %v", err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		control := http.NewResponseController(w)
		_ = control.Flush()
		a.calls <- c
		for {
			select {
			case text, isOpen := <-c.answers:
				if !isOpen {
					return
				}
				_, _ = io.WriteString(w, text)
				_ = control.Flush()
			case <-c.breaks:
				panic(http.ErrAbortHandler)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// called returns the next call of the agent.
func (a *agent) called(t *testing.T) *call {
	t.Helper()
	select {
	case c := <-a.calls:
		return c
	case <-time.After(patience):
		t.Fatal("the agent was not called")
		return nil
	}
}

// send sends events.
func (c *call) send(events ...string) {
	for _, event := range events {
		c.answers <- "data: " + event + "\n\n"
	}
}

// finish answers with a whole run: a message with a text.
func (c *call) finish(messageID, text string) {
	run := c.input["runId"]
	c.send(started(c.input["threadId"], run), start(messageID), content(messageID, text), end(messageID), finished(c.input["threadId"], run))
	close(c.answers)
}

// messageIDs returns the ids of the messages that the agent received.
func (c *call) messageIDs() (ids []string) {
	messages, _ := c.input["messages"].([]any)
	for _, message := range messages {
		ids = append(ids, fmt.Sprint(message.(map[string]any)["id"]))
	}
	return ids
}

func started(thread, run any) string {
	return fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, thread, run)
}

func finished(thread, run any) string {
	return fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q}`, thread, run)
}

func start(id string) string {
	return fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, id)
}

func content(id, delta string) string {
	return fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":%q}`, id, delta)
}

func end(id string) string { return fmt.Sprintf(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, id) }

// process is a server as one process has it.
type process struct {
	*httptest.Server
	t      *testing.T
	db     *pgxpool.Pool
	server *server.Server
	store  *pgagui.Store
}

// serve starts a server of a database.
func serve(t *testing.T, pool *pgxpool.Pool, options server.Options) *process {
	t.Helper()
	if *readsBeside && options.Reads == nil {
		options.Reads = pgagui.New(testdb.Connect(t, pool.Config().ConnString()), nil)
	}
	store := pgagui.New(pool, nil)
	if *inCluster {
		store = clusterAround(t, pool)
	}
	p := serveStore(t, store, options)
	if options.Reads != nil {
		p.waitForReplica()
	}
	p.db = pool
	return p
}

// serveStore starts a server of a store.
func serveStore(t *testing.T, store *pgagui.Store, options server.Options) *process {
	t.Helper()
	if options.Access == nil {
		options.Access = access.Anonymous("", access.Admin)
	}
	if options.Limits == (access.LimitOptions{}) {
		options.Limits = access.LimitOptions{RequestsPerSecond: -1, Streams: -1}
	}
	options.Recorder.CheckEvery = cmp.Or(options.Recorder.CheckEvery, 20*time.Millisecond)
	if options.Grace == 0 {
		options.Grace = 10 * time.Millisecond
	}
	handler := must.Have(server.New(store, options))(t)
	p := &process{Server: httptest.NewServer(asDocumented(t, handler)), t: t, server: handler, store: store}
	t.Cleanup(p.shutDown)
	return p
}

// pool is the pool of the process, for another one on the same database.
func (p *process) pool() *pgxpool.Pool { return p.db }

func (p *process) shutDown() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		p.t.Errorf("shutdown: %v", err)
	}
	p.CloseClientConnections()
	p.Close()
}

// httpClient gives up on an answer that does not begin.
var httpClient = func() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = patience
	return &http.Client{Transport: transport}
}()

// request sends a request. body may be empty, headers are name, value, name, value, …
func (p *process) request(method, path, body string, headers ...string) *http.Response {
	p.t.Helper()
	request := must.Have(http.NewRequestWithContext(p.t.Context(), method, p.URL+path, strings.NewReader(body)))(p.t)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer := must.Have(httpClient.Do(request))(p.t)
	p.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// json sends a request and returns the answer, which must have a status.
func (p *process) json(status int, method, path, body string, headers ...string) map[string]any {
	p.t.Helper()
	answer := p.request(method, path, body, headers...)
	var value map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&value); err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.StatusCode != status {
		p.t.Fatalf("%s %s: status %d, want %d: %v", method, path, answer.StatusCode, status, value)
	}
	return value
}

// client is a client of a stream.
type client struct {
	t      *testing.T
	answer *http.Response
	next   chan sse.Event
	failed chan error // gets the error of the stream, nil for a clean end
	lastID string
	events []string
}

// stream opens a stream.
func (p *process) stream(method, path, body string, headers ...string) *client {
	p.t.Helper()
	answer := p.request(method, path, body, headers...)
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		p.t.Fatalf("%s %s: status %d: %s", method, path, answer.StatusCode, text)
	}
	c := &client{t: p.t, answer: answer, next: make(chan sse.Event, 10_000), failed: make(chan error, 1)}
	go func() {
		defer close(c.next)
		for event, err := range sse.Read(answer.Body, &sse.ReadConfig{MaxEventSize: 64 << 20}) {
			if err != nil {
				c.failed <- err
				return
			}
			c.next <- event
		}
		c.failed <- nil
	}()
	return c
}

// run posts a run with messages, "id role text" each.
func (p *process) run(thread, run string, messages ...string) *client {
	p.t.Helper()
	return p.stream("POST", "/agent/test/run", input(thread, run, messages...))
}

// input returns a RunAgentInput.
func input(thread, run string, messages ...string) string {
	list := []map[string]string{}
	for _, message := range messages {
		part := strings.SplitN(message, " ", 3)
		list = append(list, map[string]string{"id": part[0], "role": part[1], "content": part[2]})
	}
	body, _ := json.Marshal(map[string]any{
		"threadId": thread, "runId": run, "messages": list, "tools": []any{}, "context": []any{}, "state": map[string]any{}, "forwardedProps": map[string]any{},
	})
	return string(body)
}

// event returns the next event; empty: the stream has ended.
func (c *client) event() string {
	c.t.Helper()
	for {
		select {
		case event, isOpen := <-c.next:
			if !isOpen {
				return ""
			}
			if event.LastEventID != "" {
				c.lastID = event.LastEventID
			}
			if event.Data != "" {
				c.events = append(c.events, event.Data)
				return event.Data
			}
		case <-time.After(patience):
			c.t.Fatalf("no event came; before: %v", c.events)
		}
	}
}

// want reads events and compares their types.
func (c *client) want(types ...string) {
	c.t.Helper()
	for _, want := range types {
		if event := c.event(); compaction.EventType([]byte(event)) != want {
			c.t.Fatalf("event %s, want %s", event, want)
		}
	}
}

// until reads events up to one of a type.
func (c *client) until(kind string) {
	c.t.Helper()
	for event := c.event(); compaction.EventType([]byte(event)) != kind; event = c.event() {
		if event == "" {
			c.t.Fatalf("the stream ended without %s: %v", kind, c.events)
		}
	}
}

// rest reads the stream to its clean end, and returns the types of the events.
func (c *client) rest() (types []string) {
	c.t.Helper()
	for event := c.event(); event != ""; event = c.event() {
		types = append(types, compaction.EventType([]byte(event)))
	}
	if err := <-c.failed; err != nil {
		c.t.Fatalf("the stream ended with %v after %v", err, c.events)
	}
	return types
}

// wantAborted reads the stream to its end, which must be an abort.
func (c *client) wantAborted() {
	c.t.Helper()
	for event := c.event(); event != ""; event = c.event() {
	}
	if err := <-c.failed; err == nil {
		c.t.Fatalf("the stream ended cleanly after %v", c.events)
	}
}

// logOf returns the events of a run as they are in the log.
func (p *process) logOf(thread, run string) (events []string) {
	p.t.Helper()
	for event, err := range p.store.Events(p.t.Context(), thread, pgagui.EventsOptions{RunID: run, NoLineage: true}) {
		must.Do(p.t, err)
		events = append(events, string(event.JSON))
	}
	return events
}

// waitForEnd waits for the end of a run.
func (p *process) waitForEnd(thread, run string) *pgagui.RunStatus {
	p.t.Helper()
	var status *pgagui.RunStatus
	wait.For(p.t, "the end of run "+run, func() bool {
		var err error
		status, err = p.store.Status(p.t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run})
		return err == nil && status.Status != pgagui.Running
	})
	return status
}

// withAgent is the options for an agent with the name test.
func withAgent(a *agent) server.Options {
	return server.Options{Agents: []server.Agent{{Name: "test", URL: a.URL}}}
}

func typeOf(event string) string { return compaction.EventType([]byte(event)) }

func mustRun(t *testing.T, p *process, thread, run string) pgagui.Run {
	t.Helper()
	lineage := must.Have(p.store.Lineage(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run}))(t)
	return lineage[len(lineage)-1]
}

// newStatusAgent returns an agent that answers every request with a status.
func newStatusAgent(t *testing.T, status int, body string) *httptest.Server {
	t.Helper()
	a := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(a.Close)
	return a
}

// waitForSeq waits until the log of a thread has so many events.
func (p *process) waitForSeq(thread string, seq int64) {
	p.t.Helper()
	wait.For(p.t, fmt.Sprintf("event %d of thread %s", seq, thread), func() bool {
		status, err := p.store.Status(p.t.Context(), pgagui.RunRef{ThreadID: thread})
		return err == nil && status.LastSeq >= seq
	})
}

// waitForReplica waits until reads go to the replica.
func (p *process) waitForReplica() {
	p.t.Helper()
	wait.For(p.t, "reads of the replica", p.server.UsesReplica)
}
