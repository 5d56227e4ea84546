package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/internal/ambientv1"
)

// someMiB is a limit of bodies for tests of what does not depend on it.
const someMiB = 2

// bodies is a server with a limit of bodies, and with as much memory as the defaults have for that.
type bodies struct {
	*process
	agent *agent
	limit int
	url   string // without the check of the documentation, which holds bodies too
}

// serveBodies returns a server with a limit of bodies in MiB.
func serveBodies(t *testing.T, limit int) *bodies {
	t.Helper()
	b := &bodies{agent: newAgent(t), limit: limit << 20}
	who := named{}
	for _, name := range []string{"a", "b"} {
		who[name] = access.Identity{Scope: "s", Subject: name, Rights: access.Admin}
	}
	b.process = serve(t, testdb.Pool(t), server.Options{
		Agents: []server.Agent{{Name: "test", URL: b.agent.URL}}, Access: who, MaxBufferedBytes: int64(4 * b.limit),
		Limits:   access.LimitOptions{RequestsPerSecond: -1, Streams: -1, MaxBodyBytes: int64(b.limit)},
		Recorder: pgagui.RecorderConfig{CallTimeout: 10 * time.Minute}, // a busy machine takes minutes for 64 MiB
	})
	plain := httptest.NewServer(b.process.server)
	t.Cleanup(func() {
		plain.CloseClientConnections()
		plain.Close()
	})
	b.url = plain.URL
	return b
}

// noise returns a text of a size that is like the data of an image: the database cannot compress it.
func noise(size int) string {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	return base64.StdEncoding.EncodeToString(data)[:size]
}

// inputOf returns an input of a size.
func inputOf(thread, run string, size int) string {
	text := fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":[{"id":"m-%s","role":"user","content":"%%s"}]}`, thread, run, run)
	return fmt.Sprintf(text, noise(size-len(text)+len("%s")))
}

// post sends a body as an identity. The connection is new, because the server may close it.
func (b *bodies) post(ctx context.Context, identity, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, "POST", b.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+identity)
	return http.DefaultClient.Do(request)
}

// answerTo sends a body and returns the status and the text of the answer.
func (b *bodies) answerTo(identity, path string, body io.Reader) (int, string) {
	b.t.Helper()
	answer, err := b.post(b.t.Context(), identity, path, body)
	if err != nil {
		b.t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode == 503 && answer.Header.Get("Retry-After") == "" {
		b.t.Error("the refusal does not say when to retry")
	}
	return answer.StatusCode, string(text)
}

// released waits until nothing counts any more.
func (b *bodies) released(what string) {
	b.t.Helper()
	wait.For(b.t, "memory is released after "+what, func() bool { return b.server.MemoryUsed() == 0 })
}

func TestMemoryOfLargeBodies(t *testing.T) {
	t.Parallel()
	b := serveBodies(t, someMiB)
	b.server.SetPatience(wait.Patience)
	var peak atomic.Int64
	stop := make(chan struct{})
	var sampling, posts sync.WaitGroup
	sampling.Go(func() {
		for {
			peak.Store(max(peak.Load(), b.server.MemoryUsed()))
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
			}
		}
	})
	sampling.Go(func() {
		for {
			select {
			case <-stop:
				return
			case called := <-b.agent.calls:
				called.finish(fmt.Sprint("answer-", called.input["runId"]), "Hello")
			}
		}
	})
	for i, identity := range []string{"a", "a", "a", "b"} {
		posts.Go(func() {
			run := fmt.Sprint("run-", i)
			if code, text := b.answerTo(identity, "/agent/test/run", strings.NewReader(inputOf("thread-"+run, run, b.limit*15/16))); code != 200 || !strings.Contains(text, "RUN_FINISHED") {
				t.Errorf("%s: %d %.500s", run, code, text)
			}
		})
	}
	posts.Go(func() {
		events := `{"events":[` + started("appended", "r") + `,{"type":"CUSTOM","name":"n","value":"` + noise(b.limit*7/8) + `"}]}`
		if code, text := b.answerTo("b", "/threads/appended/runs/r/events", strings.NewReader(events)); code != 200 {
			t.Errorf("append: %d %.500s", code, text)
		}
	})
	posts.Wait()
	b.released("the runs")
	close(stop)
	sampling.Wait()
	t.Logf("at most %.1f of %d MiB counted", float64(peak.Load())/(1<<20), 4*b.limit>>20)
	if most := int64(4 * b.limit); peak.Load() > most || peak.Load() < most/4 {
		t.Errorf("at most %d bytes counted, want up to %d", peak.Load(), most)
	}
}

func TestABodyIsTooLarge(t *testing.T) {
	t.Parallel()
	b := serveBodies(t, someMiB)
	large := inputOf("t", "r", b.limit+1)
	envelope := `{"method":"agent/run","params":{"agentId":"test"},"body":` + large + `}`
	for _, test := range []struct {
		path string
		body io.Reader
		want string
	}{
		{"/agent/test/run", strings.NewReader(large), `: send only new messages, with "forwardedProps": {"pgagui": {"history": "new"}}`},
		{"/agent/test/run", struct{ io.Reader }{strings.NewReader(large)}, `: send only new messages, with "forwardedProps": {"pgagui": {"history": "new"}}`},
		{"/copilotkit/agent/test/run", strings.NewReader(large), `: send only new messages, with "forwardedProps": {"pgagui": {"history": "new"}}`},
		{"/copilotkit", strings.NewReader(envelope), `: send only new messages, with "forwardedProps": {"pgagui": {"history": "new"}}`},
		{"/api/ambient/v1/sessions/t/agui/run", strings.NewReader(large), `: send only new messages, with "forwardedProps": {"pgagui": {"history": "new"}}`},
		{"/threads/t/runs/r/events", strings.NewReader(large), ""},
	} {
		code, text := b.answerTo("a", test.path, test.body)
		var known struct{ Detail string }
		if err := json.Unmarshal([]byte(text), &known); err != nil || code != 413 ||
			known.Detail != fmt.Sprintf("the body has more than %d bytes", b.limit)+test.want {
			t.Errorf("%s: %d %s, %v", test.path, code, text, err)
		}
	}
	b.released("refusals")
}

// Whatever is accepted can be stored.
func TestABodyAtTheLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	b := serveBodies(t, 64)
	b.server.SetPatience(10 * time.Minute)
	for _, test := range []struct {
		beyond, eventBeyond int
		code                int
		want                string
	}{
		{0, 0, 200, "RUN_FINISHED"},
		{0, 1, 200, "AGENT_PROTOCOL"},
		{1, 0, 413, fmt.Sprintf("the body has more than %d bytes: send only new messages", core.MaxInput)},
	} {
		thread := fmt.Sprintf("t%d%d", test.beyond, test.eventBeyond)
		answered := make(chan struct{})
		go func() {
			select {
			case called := <-b.agent.calls:
				start := strings.TrimSuffix(started(thread, "r"), "}") + `,"more":"`
				called.send(start+noise(64<<20-core.MaxInput-test.beyond-len("[]")-len(start)-len(`"}`)+test.eventBeyond)+`"}`, finished(thread, "r"))
				close(called.answers)
			case <-answered:
			}
		}()
		input := inputOf(thread, "r", core.MaxInput+test.beyond)
		code, text := b.answerTo("a", "/agent/test/run", strings.NewReader(input))
		close(answered)
		if code != test.code || !strings.Contains(text, test.want) {
			t.Errorf("%+v: %d %.300s", test, code, text)
		}
		if code != 200 {
			continue
		}
		if stored, err := b.store.InScope("s").RunInput(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "r"}); err != nil || string(stored) != input {
			t.Errorf("%+v: %d bytes are stored, %v", test, len(stored), err)
		}
	}
	for beyond, want := range []int{200, 413} {
		head, tail := `{"events":[`+started("appended", "r")+`,{"type":"RAW","event":"`, `"}]}`
		events := head + noise(b.limit+beyond-len(head)-len(tail)) + tail
		if code, text := b.answerTo("a", "/threads/appended/runs/r/events", strings.NewReader(events)); code != want {
			t.Errorf("an append of %d bytes: %d %.300s", len(events), code, text)
		}
	}
	b.released("bodies at the limit")
}

// A single-route request of CopilotKit counts once.
func TestABodyInAnEnvelope(t *testing.T) {
	t.Parallel()
	b := serveBodies(t, someMiB)
	b.server.SetPatience(wait.Patience)
	go func() { (<-b.agent.calls).finish("a1", "Hello") }()
	envelope := `{"method":"agent/run","params":{"agentId":"test"},"body":` + inputOf("t", "r", b.limit-1000) + `}`
	if code, text := b.answerTo("a", "/copilotkit", strings.NewReader(envelope)); code != 200 || !strings.Contains(text, "RUN_FINISHED") {
		t.Errorf("%d %.500s", code, text)
	}
	b.released("the run")
}

func TestMemoryIsUsedUp(t *testing.T) {
	t.Parallel()
	b := serveBodies(t, someMiB)
	b.server.SetPatience(50 * time.Millisecond)
	document := `{"events":["` + noise(b.limit*3/4) + `"]}`
	body, send := io.Pipe()
	disconnect := func() { send.CloseWithError(io.ErrUnexpectedEOF) }
	defer disconnect()
	request := must.Have(http.NewRequestWithContext(t.Context(), "POST", b.url+"/threads/t/runs/r/events", body))(t)
	request.Header.Set("Authorization", "Bearer a")
	request.ContentLength = int64(len(document))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
		}
	}()
	go func() { _, _ = io.WriteString(send, document[:1000]) }() // and the rest never comes
	wait.For(t, "the slow body counts", func() bool { return b.server.MemoryUsed() >= int64(len(document)) })

	for _, body := range []io.Reader{strings.NewReader(document), struct{ io.Reader }{strings.NewReader(document)}} { // with and without Content-Length
		if code, text := b.answerTo("a", "/threads/t/runs/r/events", body); code != 503 || !strings.Contains(text, "too many large requests and answers are in progress") {
			t.Errorf("a second body of the identity: %d %s", code, text)
		}
	}
	if code, text := b.answerTo("b", "/threads/t/runs/r/events", strings.NewReader(document)); code != 400 {
		t.Errorf("a body of another identity: %d %s", code, text)
	}
	push := func(identity string) codes.Code {
		event := &ambientv1.PushSessionEventRequest{
			SessionId: "pushed-" + identity, EventType: "CUSTOM", Payload: `{"name":"n","value":"` + noise(b.limit*3/4) + `"}`,
		}
		err := b.grpc("authorization", "Bearer "+identity).call("PushSessionEvent", event, &ambientv1.SessionEvent{})
		return status.Code(err)
	}
	if a, b := push("a"), push("b"); a != codes.Unavailable || b != codes.OK {
		t.Errorf("over gRPC: %s and %s", a, b)
	}
	disconnect()
	<-gone
	b.released("a disconnect, and an error")
}

// The input of a run counts until the agent and the log have it, although its client is gone.
func TestMemoryOfARunThatBegins(t *testing.T) {
	t.Parallel()
	b := serveBodies(t, someMiB)
	b.server.SetPatience(50 * time.Millisecond)
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	input := inputOf("t", "r", b.limit*3/4)
	answer, err := b.post(ctx, "a", "/agent/test/run", strings.NewReader(input))
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v, %v", answer, err)
	}
	called := b.agent.called(t)
	disconnect()
	answer.Body.Close()
	if used := b.server.MemoryUsed(); used != int64(len(input)) {
		t.Errorf("%d bytes count before the run has begun, want %d", used, len(input))
	}
	if code, text := b.answerTo("a", "/agent/test/run", strings.NewReader(inputOf("t2", "r", b.limit*3/4))); code != 503 {
		t.Errorf("a second run of the identity: %d %s", code, text)
	}
	called.send(started("t", "r"))
	b.released("the beginning of the run")

	// With new messages only, what the agent receives counts: the stored messages are in it.
	called.send(finished("t", "r"))
	close(called.answers)
	wait.For(t, "the run has ended", func() bool {
		code, _ := b.answerTo("a", "/agent/test/connect", strings.NewReader(`{"threadId":"t","messages":[]}`))
		return code == 200
	})
	var second sync.WaitGroup
	second.Go(func() {
		b.answerTo("a", "/agent/test/run", strings.NewReader(`{"threadId":"t","runId":"r2","messages":[{"id":"m2","role":"user","content":"x"}],"forwardedProps":{"pgagui":{"history":"new"}}}`))
	})
	called = b.agent.called(t)
	if ids := strings.Join(called.messageIDs(), " "); ids != "m-r m2" {
		t.Errorf("the agent received the messages %s", ids)
	}
	if used := b.server.MemoryUsed(); used < int64(len(input)) {
		t.Errorf("%d bytes count, want at least %d", used, len(input))
	}
	called.finish("a2", "Hello")
	second.Wait()
	b.released("the second run")
}
