package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// tokens makes a token file and returns what reads it, and a token for each of the entries "scope rights".
func tokens(t *testing.T, entries ...string) (*access.Tokens, []string) {
	t.Helper()
	var file strings.Builder
	var made []string
	for i, entry := range entries {
		scope, rights, _ := strings.Cut(entry, " ")
		token, hash := access.NewToken()
		if sum := sha256.Sum256([]byte(token)); hex.EncodeToString(sum[:]) != hash {
			t.Fatal("NewToken returns another hash")
		}
		fmt.Fprintf(&file, "- {name: token-%d, sha256: %s, scope: %s, rights: [%s]}\n", i, hash, scope, rights)
		made = append(made, token)
	}
	name := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(name, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := access.LoadTokens(name)
	if err != nil {
		t.Fatal(err)
	}
	return loaded, made
}

// endpoints are all endpoints with the right that each needs.
var endpoints = []struct{ method, path, right string }{
	{"POST", "/agent/test/run", "write"}, {"POST", "/agent/test/connect", "read"}, {"GET", "/threads/mine/events", "read"},
	{"POST", "/threads/mine/stop", "stop"}, {"GET", "/copilotkit/info", "read"}, {"POST", "/copilotkit/agent/test/run", "write"},
	{"POST", "/copilotkit/agent/test/connect", "read"}, {"POST", "/copilotkit/agent/test/stop/mine", "stop"}, {"GET", "/copilotkit/threads", "read"},
	{"PATCH", "/copilotkit/threads/mine", "write"}, {"DELETE", "/copilotkit/threads/mine", "delete"},
	{"POST", "/copilotkit/threads/mine/archive", "write"}, {"GET", "/copilotkit/threads/mine/messages", "read"},
	{"GET", "/copilotkit/threads/mine/events", "read"}, {"GET", "/copilotkit/threads/mine/state", "read"},
}

func TestEveryEndpointNeedsATokenWithItsRight(t *testing.T) {
	t.Parallel()
	authenticator, made := tokens(t, "a read", "a write", "a stop", "a delete")
	token := map[string]string{"read": made[0], "write": made[1], "stop": made[2], "delete": made[3]}
	options := withAgent(newAgent(t))
	options.Access = authenticator
	p := serve(t, testdb.Pool(t), options)
	for _, endpoint := range endpoints {
		if answer := p.request(endpoint.method, endpoint.path, ""); answer.StatusCode != 401 || answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s without a token: %d", endpoint.method, endpoint.path, answer.StatusCode)
		}
		p.json(401, endpoint.method, endpoint.path, "", "Authorization", "Bearer "+made[0]+"x")
		for right, token := range token {
			answer := p.request(endpoint.method, endpoint.path, "x", "Authorization", "Bearer "+token)
			if isRefused := answer.StatusCode == 403; isRefused != (right != endpoint.right) {
				t.Errorf("%s %s with the right %s: %d", endpoint.method, endpoint.path, right, answer.StatusCode)
			}
		}
	}
	p.json(200, "GET", "/healthz", "")
	p.json(200, "GET", "/readyz", "")
}

func TestThreadsOfAnotherScopeAreUnknown(t *testing.T) {
	t.Parallel()
	authenticator, made := tokens(t, "a admin", "b admin")
	a := newAgent(t)
	options := withAgent(a)
	options.Access = authenticator
	p := serve(t, testdb.Pool(t), options)
	mine, theirs := []string{"Authorization", "Bearer " + made[0]}, []string{"Authorization", "Bearer " + made[1]}
	c := p.stream("POST", "/agent/test/run", input("mine", "run", "u1 user Hello"), mine...)
	a.called(t).finish("a1", "secret")
	c.rest()
	for _, endpoint := range endpoints {
		if endpoint.right == "write" && strings.HasSuffix(endpoint.path, "/run") {
			continue // it begins a thread of its own
		}
		body := ""
		if strings.HasSuffix(endpoint.path, "/connect") {
			body = connectInput("mine")
		}
		foreign := answerOf(t, p.request(endpoint.method, endpoint.path, body, theirs...))
		unknown := answerOf(t, p.request(endpoint.method, strings.ReplaceAll(endpoint.path, "mine", "none"), strings.ReplaceAll(body, "mine", "none"), theirs...))
		if strings.ReplaceAll(foreign, "mine", "none") != unknown || strings.Contains(foreign, "secret") {
			t.Errorf("%s %s: a foreign thread is answered as\n%s\nan unknown one as\n%s", endpoint.method, endpoint.path, foreign, unknown)
		}
	}
	// The same thread id in another scope is another thread.
	c = p.stream("POST", "/agent/test/run", input("mine", "run", "u1 user Hello"), theirs...)
	if ids := a.called(t); len(ids.messageIDs()) != 1 {
		t.Errorf("the agent received the messages of another scope: %v", ids.messageIDs())
	} else {
		ids.finish("a1", "other")
	}
	c.rest()
}

func answerOf(t *testing.T, answer *http.Response) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintln(&text, answer.StatusCode, answer.Header.Get("Content-Type"))
	buffer := make([]byte, 10_000)
	n, _ := answer.Body.Read(buffer)
	text.Write(buffer[:n])
	return text.String()
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	options := withAgent(newAgent(t))
	options.Limits = access.LimitOptions{RequestsPerSecond: -1, Streams: -1, MaxBodyBytes: 10_000}
	p := serve(t, testdb.Pool(t), options)
	for body, want := range map[string]int{
		"": 400, "{": 400, "[]": 400, "null": 400, "{}": 400, `{"threadId":1}`: 400, `{"threadId":"t"}`: 400, `{"threadId":"","runId":"r"}`: 400,
		`{"threadId":"t","runId":"r","messages":{}}`: 400, `{"threadId":"t","runId":"r","messages":[1]}`: 400,
		`{"threadId":"t","runId":"r","messages":[{"id":"a","role":"user"},{"id":"a","role":"user"}]}`: 400, `{"threadId":"t","runId":"r","parentRunId":"none"}`: 404,
		`{"threadId":"t","runId":"r","forwardedProps":{"pgagui":{"history":"x"}}}`: 400, "{\"threadId\":\"\xff\",\"runId\":\"r\"}": 400,
		`{"threadId":"t\u0000","runId":"r"}`: 400, `{"threadId":"t","runId":"` + strings.Repeat("r", 2000) + `"}`: 413,
		`{"threadId":"t","runId":"r","x":"` + strings.Repeat("x", 20_000) + `"}`: 413,
	} {
		for _, path := range []string{"/agent/test/run", "/copilotkit/agent/test/run"} {
			if answer := p.json(want, "POST", path, body); answer["detail"] == "" {
				t.Errorf("%s: no detail: %v", body, answer)
			}
		}
	}
	for _, path := range []string{"/copilotkit/threads?limit=0", "/copilotkit/threads?limit=x", "/copilotkit/threads?cursor=x"} {
		p.json(400, "GET", path, "")
	}
}

func TestLimitsOfRequestsAndStreams(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Limits = access.LimitOptions{RequestsPerSecond: 0.001, Burst: 3, Streams: 1}
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run", "u1 user Hello")
	a.called(t).send(started("thread", "run"))
	c.want("RUN_STARTED")
	if refused := p.request("GET", "/threads/thread/events", ""); refused.StatusCode != 429 || refused.Header.Get("Retry-After") == "" {
		t.Errorf("a second stream: %d", refused.StatusCode)
	}
	p.json(404, "GET", "/threads/none/events", "")
	p.json(429, "GET", "/threads/none/events", "")
}

func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Access = expiring{time.Now().Add(time.Second)}
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run", "u1 user Hello")
	a.called(t).send(started("thread", "run"))
	c.wantAborted()
}

type expiring struct{ at time.Time }

func (e expiring) Authenticate(*http.Request) (access.Identity, error) {
	return access.Identity{Rights: access.Admin, Expires: e.at}, nil
}

func TestAgentsReceiveOnlyTheListedHeaders(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{{
		Name: "test", URL: a.URL, ForwardHeaders: []string{"x-tenant"}, Headers: http.Header{"x-key": {"k"}},
	}}})
	p.stream("POST", "/agent/test/run", input("thread", "run"), "Authorization", "Bearer secret", "Cookie", "a=b", "X-Tenant", "acme", "X-Other", "no")
	called := a.called(t)
	for name, want := range map[string]string{"Authorization": "", "Cookie": "", "X-Other": "", "X-Tenant": "acme", "X-Key": "k", "Content-Type": "application/json"} {
		if got := called.header.Get(name); got != want {
			t.Errorf("the agent received %s: %q, want %q", name, got, want)
		}
	}
	called.finish("a1", "x")
}
