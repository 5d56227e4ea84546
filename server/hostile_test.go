package server_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// dial opens a connection to a server and sends a request by hand.
func (p *process) dial(request string) net.Conn {
	p.t.Helper()
	connection := must.Have(net.Dial("tcp", p.Listener.Addr().String()))(p.t)
	p.t.Cleanup(func() { connection.Close() })
	must.Have(io.WriteString(connection, request))(p.t)
	return connection
}

func TestASlowReaderIsAbortedAndDelaysNobody(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.WriteTimeout = 300 * time.Millisecond
	registry := prometheus.NewRegistry()
	options.Metrics = registry
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	called.send(started("thread", "run"), start("a1"))
	c.want("RUN_STARTED", "TEXT_MESSAGE_START")
	slow := p.dial("GET /threads/thread/events HTTP/1.1\r\nHost: x\r\n\r\n")
	text := strings.Repeat("x", 100_000)
	go func() {
		for range 100 {
			called.send(content("a1", text))
		}
		called.send(end("a1"), finished("thread", "run"))
		close(called.answers)
	}()
	if types := c.rest(); len(types) != 102 {
		t.Errorf("the other client received %d events, want 102", len(types))
	}
	// The slow one has read nothing so far. What it gets now breaks off.
	waitForStreams(t, registry, 0)
	answer := must.Have(http.ReadResponse(bufio.NewReader(slow), nil))(t)
	if received, err := io.ReadAll(answer.Body); err == nil || strings.Contains(string(received), "RUN_FINISHED") {
		t.Errorf("the slow client received %d bytes with a clean end (%v)", len(received), err)
	}
}

func TestHalfClosedAndBrokenConnections(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	body := input("thread", "run", "u1 user Hello")
	// The client has sent all and only listens.
	half := p.dial(fmt.Sprintf("POST /agent/test/run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	called := a.called(t)
	must.Do(t, half.(*net.TCPConn).CloseWrite())
	// The request breaks off in its body: nothing begins.
	p.dial(fmt.Sprintf("POST /agent/test/run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body)+10, strings.Replace(body, "thread", "other", 1))).Close()
	called.finish("a1", "Hi")
	p.waitForEnd("thread", "run")
	if len(a.calls) > 0 {
		t.Error("half a request called the agent")
	}
	p.json(404, "GET", "/threads/other/events", "")
	// It is the client's error, not the server's.
	for _, path := range []string{"POST /agent/test/run", "POST /append", "POST /threads/other/runs/run/events", "PUT /threads/other/session-state/key", "POST /copilotkit"} {
		for _, rest := range []string{"Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\nno size\r\n"} {
			broken := p.dial(path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + rest)
			must.Do(t, broken.(*net.TCPConn).CloseWrite())
			answer, err := http.ReadResponse(bufio.NewReader(broken), nil)
			if err != nil {
				t.Fatalf("%s %q: %v", path, rest, err)
			}
			text, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%s %q: %s %s", path, rest, answer.Status, text)
			}
		}
	}
}

// TestRandomRequests sends requests that were mixed from valid ones. None is answered with an error
// of the server.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	go func() {
		for called := range a.calls {
			called.finish("a1", "x")
		}
	}()
	t.Cleanup(func() { close(a.calls) })
	texts := []string{
		"", "t", "run", "\x00", "\xff", "é", `"`, "\\", "/", "..", "%2F", "0", "-1", "99999999999999999999", "4-17", "null", "true", "{}", "[]", "' or 1=1 --",
		strings.Repeat("x", 3000), "\u202e", "a\r\nb",
	}
	seed := *firstSeed
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	text := func() string { return pick(texts...) }
	value := func() string {
		return pick("null", "1", "1e400", `""`, `"t"`, `"\u0000"`, `"\ud800"`, "{}", "[]", `[{"id":"a"}]`, `{"pgagui":{"parentRunId":"run"}}`, `{"pgagui":1}`, strings.Repeat("[", 2000)+strings.Repeat("]", 2000))
	}
	for i := range 800 {
		path := pick("/agent/", "/copilotkit/agent/", "/threads/", "/copilotkit/threads/", "/copilotkit", "/", "/healthz") +
			pick("", "test", url.PathEscape(text())) + pick("", "/run", "/connect", "/events", "/stop", "/stop/t", "/messages", "/state", "/archive") +
			pick("", "?", "?limit="+url.QueryEscape(text()), "?cursor="+url.QueryEscape(text()), "?run="+url.QueryEscape(text()), "?last_event_id="+url.QueryEscape(text()), "?agentId="+url.QueryEscape(text()))
		var members []string
		for range random.IntN(6) {
			members = append(members, fmt.Sprintf("%q:%s", pick("threadId", "runId", "messages", "state", "forwardedProps", "parentRunId", "lastSeenEventId", "method", "params", "body", "name", "archived", "reason", "x"), value()))
		}
		body := "{" + strings.Join(members, ",") + "}"
		if random.IntN(10) == 0 {
			body = body[:random.IntN(len(body))]
		}
		request, err := http.NewRequestWithContext(t.Context(), pick("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"), p.URL+path, strings.NewReader(body))
		if err != nil {
			continue
		}
		request.Header.Set("Last-Event-ID", pick("", "", "", "x", "1", "3-17", "-1"))
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("seed %d, request %d: %s %s %s: %v", seed, i, request.Method, path, body, err)
		}
		if answer.StatusCode >= 500 {
			t.Errorf("seed %d, request %d: %s %s %s: status %d", seed, i, request.Method, path, body, answer.StatusCode)
		}
		_, _ = io.CopyN(io.Discard, answer.Body, 100_000)
		answer.Body.Close()
	}
}
