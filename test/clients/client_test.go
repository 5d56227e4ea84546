package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// versions are those of the AG-UI client. Frameworks pin one of them.
var versions = []string{"1.0.0", "0.0.59"}

// process is a server as one process has it.
type process struct {
	*httptest.Server
	handler *server.Server
	store   *pgagui.Store
}

// serve starts a server of a database, for agents by their names.
func serve(t *testing.T, pool *pgxpool.Pool, agents map[string]string) *process {
	t.Helper()
	return serveWithGrace(t, pool, agents, time.Millisecond)
}

func serveWithGrace(t *testing.T, pool *pgxpool.Pool, agents map[string]string, grace time.Duration) *process {
	t.Helper()
	store := pgagui.New(pool, nil)
	if command := os.Getenv("PGAGUI_TEST_SERVE"); command != "" {
		return &process{&httptest.Server{URL: serveBy(t, strings.Fields(command), pool, agents)}, nil, store}
	}
	options := server.Options{
		Access: access.Anonymous("", access.Admin), Limits: access.LimitOptions{RequestsPerSecond: -1, Streams: -1}, Grace: grace,
		Logger: slog.New(slog.DiscardHandler),
	}
	options.Recorder.CheckEvery = 20 * time.Millisecond
	for name, url := range agents {
		options.Agents = append(options.Agents, server.Agent{Name: name, URL: url})
	}
	handler := must.Have(server.New(store, options))(t)
	p := &process{httptest.NewServer(handler), handler, store}
	t.Cleanup(func() { p.shutDown(t) })
	return p
}

// serveBy starts another server, which gets the address of the database and the agents, and writes its own address.
func serveBy(t *testing.T, command []string, pool *pgxpool.Pool, agents map[string]string) (url string) {
	t.Helper()
	text := must.Have(json.Marshal(agents))(t)
	server := exec.Command(command[0], append(command[1:], pool.Config().ConnString(), string(text))...)
	server.Stderr = os.Stderr
	out := must.Have(server.StdoutPipe())(t)
	must.Do(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	must.Have(fmt.Fscanln(out, &url))(t)
	return url
}

func (p *process) shutDown(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.handler.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	p.CloseClientConnections()
	p.Close()
}

// waitForSeq waits until the log of a thread has so many events.
func (p *process) waitForSeq(t *testing.T, thread string, seq int64) {
	t.Helper()
	wait.For(t, fmt.Sprintf("event %d of thread %s", seq, thread), func() bool {
		status, err := p.store.Status(t.Context(), pgagui.RunRef{ThreadID: thread})
		return err == nil && status.LastSeq >= seq
	})
}

// wantStatus compares how a run ended.
func (p *process) wantStatus(t *testing.T, thread, run string, want pgagui.Status) {
	t.Helper()
	status := must.Have(p.store.Status(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run}))(t)
	if status.Status != want {
		t.Errorf("run %s of thread %s is %s, want %s", run, thread, status.Status, want)
	}
}

// meaning is what a client holds, and what the store restores.
type meaning struct {
	Messages   any `json:"messages"`
	State      any `json:"state"`
	Interrupts any `json:"interrupts"`
}

func (m meaning) String() string {
	text, _ := json.Marshal(m)
	return string(text)
}

// restored returns what the log means to a page at a run; at the head if runID is empty. A page has no list of what CUSTOM events ask.
func (p *process) restored(t *testing.T, thread, runID string) meaning {
	t.Helper()
	restored := must.Have(p.store.Restore(t.Context(), thread, pgagui.At{RunID: runID}))(t)
	var m meaning
	must.Do(t, json.Unmarshal(restored.JSON, &m))
	m.Interrupts = slices.DeleteFunc(m.Interrupts.([]any), func(interrupt any) bool {
		source, _ := interrupt.(map[string]any)["source"].(map[string]any)
		return source["type"] == "CUSTOM"
	})
	return m
}

// client is a stock client in the host.
type client struct {
	t    *testing.T
	host *nodeHost
	kind string         // agui or copilotkit
	args map[string]any // those of every call
}

// view is what a client shows.
type view struct {
	meaning
	IsRunning bool
	LastID    string
	Breaks    int
	Headers   map[string]string
}

// seq is that of the last frame with an id.
func (v view) seq() int64 {
	seq, _, _ := strings.Cut(v.LastID, "-")
	n, _ := strconv.ParseInt(seq, 10, 64)
	return n
}

// clientOptions say which client opens, and where.
type clientOptions struct {
	Version, Thread string
	Base            string   // of the server, or of a proxy before it
	Agent           string   // "test" if empty
	Connect         *request // instead of POST /agent/{agent}/connect
	Bases           []string // where the client resumes when a connection breaks
	Follow          string   // the path that it resumes with, instead of that of the run
	State           any
}

type request struct {
	Method string `json:"method"`
	URL    string `json:"url"`
}

func (h *nodeHost) open(t *testing.T, options clientOptions) *client {
	t.Helper()
	args := map[string]any{"version": options.Version, "thread": options.Thread, "base": options.Base, "agent": options.Agent}
	if options.Agent == "" {
		args["agent"] = "test"
	}
	if options.Connect != nil {
		args["connect"] = options.Connect
	}
	if options.Bases != nil {
		args["bases"] = options.Bases
	}
	if options.Follow != "" {
		args["follow"] = options.Follow
	}
	if options.State != nil {
		args["state"] = options.State
	}
	return h.openKind(t, "agui", args)
}

func (h *nodeHost) openKind(t *testing.T, kind string, args map[string]any) *client {
	t.Helper()
	key := must.Have(h.ask(kind+".open", args))(t)
	c := &client{t, h, kind, map[string]any{"client": key}}
	t.Cleanup(func() {
		if _, err := h.ask(kind+".close", c.args); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *client) with(args map[string]any) map[string]any {
	all := map[string]any{}
	for _, part := range []map[string]any{c.args, args} {
		maps.Copy(all, part)
	}
	return all
}

func (c *client) ask(op string, args map[string]any) json.RawMessage {
	c.t.Helper()
	answer := must.Have(c.host.ask(c.kind+"."+op, c.with(args)))(c.t)
	return answer
}

// ending is a call that ends with its stream.
type ending struct {
	t      *testing.T
	op     string
	answer <-chan hostAnswer
}

func (c *client) begin(op string, args map[string]any) *ending {
	return &ending{c.t, op, c.host.begin(c.kind+"."+op, c.with(args))}
}

// run begins a run with new messages of the user, and parameters of runAgent.
func (c *client) run(runID string, parameters map[string]any, messages ...any) *ending {
	args := map[string]any{"runId": runID, "messages": messages}
	maps.Copy(args, parameters)
	return c.begin("run", args)
}

func (c *client) connect() *ending { return c.begin("connect", nil) }

// failure waits for the end, and returns the error of the client.
func (e *ending) failure() string {
	e.t.Helper()
	return e.failureWithin(patience)
}

func (e *ending) failureWithin(patience time.Duration) string {
	e.t.Helper()
	select {
	case answer := <-e.answer:
		var outcome struct{ Error string }
		if answer.Error == "" {
			_ = json.Unmarshal(answer.Result, &outcome)
		}
		if answer.Error != "" {
			e.t.Fatalf("%s: %s", e.op, answer.Error)
		}
		return outcome.Error
	case <-time.After(patience):
		e.t.Fatalf("%s did not end", e.op)
		return ""
	}
}

// succeed waits for the end, which must not be an error: the client's verifier accepted the stream.
func (e *ending) succeed() {
	e.t.Helper()
	if failure := e.failure(); failure != "" {
		e.t.Fatalf("%s failed: %s", e.op, failure)
	}
}

func (c *client) look() (v view) {
	c.t.Helper()
	must.Do(c.t, json.Unmarshal(c.ask("look", nil), &v))
	return v
}

// frames returns the frames with events that the client received.
func (c *client) frames() (frames []string) {
	c.t.Helper()
	must.Do(c.t, json.Unmarshal(c.ask("frames", nil), &frames))
	return frames
}

// hold waits until the client holds something.
func (c *client) hold(want meaning) {
	c.t.Helper()
	c.wait(0, want)
}

// wait waits until the client has received an event, and made of the stream what the log means up to there.
func (c *client) wait(seq int64, want meaning) {
	c.t.Helper()
	var seen view
	if !wait.Until(func() bool {
		seen = c.look()
		return seen.seq() >= seq && reflect.DeepEqual(seen.meaning, want)
	}) {
		c.t.Fatalf("the client received event %d of %d, and holds\n%s\nthe log means\n%s", seen.seq(), seq, seen.meaning, want)
	}
}

// waitForEvents waits until the client has received so many events.
func (c *client) waitForEvents(n int) {
	c.t.Helper()
	if !wait.Until(func() bool { return len(c.frames()) >= n }) {
		c.t.Fatalf("the client received %q, not %d events", c.frames(), n)
	}
}

func (c *client) setMessages(messages []any) {
	c.t.Helper()
	c.ask("setMessages", map[string]any{"messages": messages})
}

// want compares what the client holds.
func (c *client) want(want meaning) {
	c.t.Helper()
	if got := c.look().meaning; !reflect.DeepEqual(got, want) {
		c.t.Errorf("the client holds\n%s\nwanted is\n%s\nit received\n%s", got, want, strings.Join(c.frames(), "\n"))
	}
}

// user is a message of the user.
func user(id, text string) any {
	return map[string]any{"id": id, "role": "user", "content": text}
}

// forwarded are parameters of runAgent with members of forwardedProps.pgagui.
func forwarded(members map[string]any) map[string]any {
	return map[string]any{"forwardedProps": map[string]any{"pgagui": members}}
}

// pathOf is the path of the stream of a thread.
func pathOf(thread string) string { return "/threads/" + url.PathEscape(thread) + "/events" }
