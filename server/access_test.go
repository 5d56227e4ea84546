package server_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/wait"
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
	testfile.Write(t, name, []byte(file.String()))
	loaded := must.Have(access.LoadTokens(name))(t)
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
		`{"threadId":"t","runId":"r","parentRunId":"none"}`:                        404,
		`{"threadId":"t","runId":"r","forwardedProps":{"pgagui":{"history":"x"}}}`: 400, "{\"threadId\":\"\xff\",\"runId\":\"r\"}": 400,
		`{"threadId":"t\u0000","runId":"r"}`: 422, `{"threadId":"t","runId":"` + strings.Repeat("r", 2000) + `"}`: 413,
		`{"threadId":"t","runId":"r","x":"` + strings.Repeat("x", 20_000) + `"}`: 413,
	} {
		for _, path := range []string{"/agent/test/run", "/copilotkit/agent/test/run"} {
			if answer := p.json(want, "POST", path, body); answer["detail"] == "" {
				t.Errorf("%s: no detail: %v", body, answer)
			}
		}
	}
	for query, status := range map[string]int{"limit=0": 400, "limit=x": 400, "cursor=x": 422} {
		p.json(status, "GET", "/copilotkit/threads?"+query, "")
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
	options.Access = expiring{time.Second}
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run", "u1 user Hello")
	a.called(t).send(started("thread", "run"))
	c.wantAborted()
}

// The file of the tokens has the entry no more, or other rights.
func TestStreamsEndWhenTheirTokenIsWithdrawn(t *testing.T) {
	t.Parallel()
	token, hash := access.NewToken()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entry := func(name, hash, rights string) string {
		return fmt.Sprintf("- {name: %s, sha256: %s, scope: a, rights: [%s]}\n", name, hash, rights)
	}
	write := func(entries ...string) {
		t.Helper()
		testfile.Write(t, file, []byte(strings.Join(entries, "")))
	}
	_, other := access.NewToken()
	write(entry("mine", hash, "admin"), entry("other", other, "read"))
	loaded := must.Have(access.LoadTokens(file))(t)
	p := serve(t, testdb.Pool(t), server.Options{Access: loaded, Heartbeat: 20 * time.Millisecond})
	headers := []string{"Authorization", "Bearer " + token}
	for _, left := range []string{entry("other", other, "read"), entry("mine", hash, "read")} {
		write(entry("mine", hash, "admin"))
		must.Do(t, loaded.Reload())
		p.json(200, "POST", "/append", `{"appends":[{"threadId":"t","runId":"r","events":[{"type":"RUN_STARTED"}],"afterSeq":0}]}`, headers...)
		reader := p.stream("GET", "/threads/t/events", "", headers...)
		reader.want("RUN_STARTED")
		body, writer := io.Pipe()
		ended, run := make(chan int, 1), rand.Text()
		go func() {
			request, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/threads/t/runs/"+run+"/events?parallel=true&parent_run=", body)
			if err == nil {
				request.Header.Set("Authorization", "Bearer "+token)
				request.Header.Set("Content-Type", "application/x-ndjson")
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				ended <- 0
				return
			}
			answer.Body.Close()
			ended <- answer.StatusCode
		}()
		fmt.Fprintln(writer, `{"type":"RUN_STARTED"}`)
		wait.For(t, "the first event of the writer is stored", func() bool {
			return testdb.Ask[bool](t, p.db, `select exists (select from agui.run where run_id = $1)`, run)
		})
		write(left)
		must.Do(t, loaded.Reload())
		reader.wantAborted()
		if status := <-ended; status != 401 {
			t.Errorf("the stream of the writer: status %d", status)
		}
		writer.Close()
	}
}

// A writer whose stream is refused learns it although its body goes on.
func TestARefusedStreamIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	loaded, made := tokens(t, "a write")
	p := serve(t, testdb.Pool(t), server.Options{Access: loaded})
	for _, refused := range []struct {
		path, token string
		status      int
	}{
		{"/threads/t/runs/r/events", "none", 401}, {"/threads/t/runs/r/events?afterSeq=0", made[0], 400}, {"/nowhere", made[0], 404}, {"/threads/t", made[0], 405},
	} {
		body, writer := io.Pipe()
		defer writer.Close()
		go fmt.Fprintln(writer, `{"type":"RUN_STARTED"}`)
		request := must.Have(http.NewRequestWithContext(t.Context(), "POST", p.URL+refused.path, body))(t)
		request.Header.Set("Content-Type", "application/x-ndjson")
		request.Header.Set("Authorization", "Bearer "+refused.token)
		client := &http.Client{Timeout: patience}
		answer, err := client.Do(request)
		if err != nil || answer.StatusCode != refused.status {
			t.Fatalf("%s: %v, %v", refused.path, answer, err)
		}
		answer.Body.Close()
	}
}

// expiring gives each request a token that is valid for a time.
type expiring struct{ time.Duration }

func (e expiring) Authenticate(*http.Request) (access.Identity, error) {
	return access.Identity{Rights: access.Admin, Expires: time.Now().Add(e.Duration)}, nil
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
