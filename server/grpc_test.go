package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/internal/ambientv1"
)

// sessionClient calls the service as grpc-go does, over HTTP/2 without TLS.
type sessionClient struct {
	t          *testing.T
	connection *grpc.ClientConn
	metadata   metadata.MD
}

// grpc returns a client of a process. headers are name, value, name, value, …
func (p *process) grpc(headers ...string) *sessionClient {
	p.t.Helper()
	listener := must.Have(net.Listen("tcp", "127.0.0.1:0"))(p.t)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	service := &http.Server{Handler: p.server, Protocols: protocols, ReadHeaderTimeout: patience}
	go func() { _ = service.Serve(listener) }()
	connection := must.Have(grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(64<<10)))(p.t)
	p.t.Cleanup(func() {
		connection.Close()
		service.Close()
	})
	return &sessionClient{p.t, connection, metadata.Pairs(headers...)}
}

func (c *sessionClient) context() context.Context {
	return metadata.NewOutgoingContext(c.t.Context(), c.metadata)
}

func (c *sessionClient) call(method string, request, answer any) error {
	ctx, cancel := context.WithTimeout(c.context(), patience)
	defer cancel()
	return c.connection.Invoke(ctx, "/ambient.v1.SessionService/"+method, request, answer, grpc.MaxCallRecvMsgSize(64<<20))
}

func (c *sessionClient) pushEvent(session, kind, payload string) *ambientv1.SessionEvent {
	c.t.Helper()
	answer := &ambientv1.SessionEvent{}
	must.Do(c.t, c.call("PushSessionEvent", &ambientv1.PushSessionEventRequest{SessionId: session, EventType: kind, Payload: payload}, answer))
	return answer
}

func (c *sessionClient) pushMessage(session, kind, payload string) *ambientv1.SessionMessage {
	c.t.Helper()
	answer := &ambientv1.SessionMessage{}
	must.Do(c.t, c.call("PushSessionMessage", &ambientv1.PushSessionMessageRequest{SessionId: session, EventType: kind, Payload: payload}, answer))
	return answer
}

// watcher receives the messages of a session.
type watcher struct {
	t      *testing.T
	stream grpc.ClientStream
	cancel context.CancelFunc
}

func (c *sessionClient) watch(session string, afterSeq int64) *watcher {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.context())
	c.t.Cleanup(cancel)
	stream, err := c.connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/ambient.v1.SessionService/WatchSessionMessages")
	if err == nil {
		err = stream.SendMsg(&ambientv1.WatchSessionMessagesRequest{SessionId: session, AfterSeq: afterSeq})
	}
	if err == nil {
		err = stream.CloseSend()
	}
	must.Do(c.t, err)
	return &watcher{c.t, stream, cancel}
}

// receive returns the next message, or the error that ended the stream.
func (w *watcher) receive() (*ambientv1.SessionMessage, error) {
	timer := time.AfterFunc(patience, w.cancel)
	defer timer.Stop()
	message := &ambientv1.SessionMessage{}
	return message, w.stream.RecvMsg(message)
}

func (w *watcher) want(kind, payload string) *ambientv1.SessionMessage {
	w.t.Helper()
	message, err := w.receive()
	if err != nil || message.EventType != kind || message.Payload != payload {
		w.t.Fatalf("the message is %.200s (%v), want %s %.100s", message, err, kind, payload)
	}
	return message
}

func (w *watcher) wantEnd(code codes.Code) {
	w.t.Helper()
	if message, err := w.receive(); status.Code(err) != code {
		w.t.Fatalf("the stream ended with %v (%v), want %s", err, message, code)
	}
}

func TestGRPC(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	c := p.grpc()
	early := c.watch("s", 0) // before the session exists
	must.Have(early.stream.Header())(t)
	hello := c.pushMessage("s", "user", "Hello \x00 😀")
	if hello.Id != "s:2" || hello.SessionId != "s" || hello.Seq != 2 || hello.EventType != "user" || hello.Payload != "Hello \x00 😀" || time.Since(hello.CreatedAt.AsTime()) > patience {
		t.Errorf("the message is %v", hello)
	}
	if got := early.want("user", "Hello \x00 😀"); got.Id != hello.Id || !got.CreatedAt.AsTime().Equal(hello.CreatedAt.AsTime()) {
		t.Errorf("the watcher received %v, the one who pushed %v", got, hello)
	}
	c.pushEvent("s", "RUN_STARTED", `{"runId":"r"}`)
	c.pushEvent("s", "TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
	completed := time.Date(2026, 5, 21, 10, 0, 2, 0, time.UTC)
	joined := &ambientv1.SessionEvent{}
	if err := c.call("PushSessionEvent", &ambientv1.PushSessionEventRequest{
		SessionId: "s", EventType: "TEXT_MESSAGE_CONTENT", Payload: `{"messageId":"m","delta":"Hi"}`, CompletedAt: timestamppb.New(completed), EventCount: new(int32(8)),
	}, joined); err != nil {
		t.Fatal(err)
	}
	if joined.Id != "s:8" || joined.Seq != 8 || joined.EventCount != 8 || !joined.CompletedAt.AsTime().Equal(completed) || joined.EventType != "TEXT_MESSAGE_CONTENT" ||
		!strings.Contains(joined.Payload, `"delta":"Hi"`) {
		t.Errorf("the joined event is %v", joined)
	}
	single := c.pushEvent("s", "TEXT_MESSAGE_END", `{"messageId":"m"}`)
	if single.EventCount != 1 || single.CompletedAt != nil {
		t.Errorf("the single event is %v", single)
	}
	early.want("assistant", "Hi")
	// What the agent says about its own events is kept beside the conversation.
	if summary := c.pushMessage("s", "assistant", "Hi"); summary.Seq != 10 || summary.EventType != "assistant" || summary.Payload != "Hi" {
		t.Errorf("the summary is %v", summary)
	}
	c.pushEvent("s", "RUN_FINISHED", `{}`)
	// Without a run, messages are the conversation.
	c.pushMessage("s", "tool_use", `{"tool":"Read","tool_call_id":"t","input":{"path":"x"}}`)
	c.pushMessage("s", "tool_result", `{"tool_call_id":"t","result":"y"}`)
	c.pushMessage("s", "tool_use", `Read(path="x")`) // has no place there
	c.pushMessage("s", "lifecycle", `{"event":"run_started"}`)
	c.pushMessage("s", "system", "careful")
	c.pushMessage("s", "error", "broken")
	c.pushMessage("s", "TEXT_MESSAGE_CHUNK", `{"message_id":"old","role":"assistant","delta":"of an older runner"}`)
	all := []*ambientv1.SessionMessage{hello}
	for _, w := range []*watcher{early, c.watch("s", 9)} {
		w.want("tool_use", `{"id":"t","name":"Read","input":{"path":"x"}}`)
		w.want("tool_result", `{"tool_use_id":"t","content":"y"}`)
		w.want("system", "careful")
		w.want("error", "broken")
		w.want("assistant", "of an older runner")
	}
	whole := c.watch("s", 0)
	for range 7 {
		message := must.Have(whole.receive())(t)
		all = append(all, message)
	}
	all = all[1:]
	for i, message := range all {
		if i+1 < len(all) {
			c.watch("s", message.Seq).want(all[i+1].EventType, all[i+1].Payload)
		}
	}
	custom := items(p.json(200, "GET", sessions+"s/events/history?event_type=CUSTOM", ""))
	if len(custom) != 3 || custom[0]["payload"] != `{"type":"CUSTOM","name":"ambient:message","value":{"event_type":"assistant","payload":"Hi"}}` {
		t.Errorf("beside the conversation there is %v", custom)
	}
	if messages := p.list(sessions + "s/messages"); len(messages) != 7 {
		t.Errorf("over HTTP the messages are %v", messages)
	}
	early.cancel()
	early.wantEnd(codes.Canceled)
}

// TestMessagesOfOneEventByGRPC resumes between messages that one event brought.
func TestMessagesOfOneEventByGRPC(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	run := p.run("s", "run", "u1 user One", "u2 assistant Two", "u3 user Three")
	a.called(t).finish("a1", "Four")
	run.rest()
	c := p.grpc()
	var ids []string
	for received := range 4 { // so many messages, then the connection breaks
		w := c.watch("s", 0)
		var last int64
		seen := map[string]bool{}
		for range received {
			message := must.Have(w.receive())(t)
			last = max(last, message.Seq)
			seen[message.Id] = true
		}
		w.cancel()
		w = c.watch("s", last)
		ids = nil
		for len(seen) < 4 {
			message := must.Have(w.receive())(t)
			seen[message.Id] = true
			ids = append(ids, message.Id)
		}
	}
	if !slices.Equal(ids, []string{"s:2"}) {
		t.Errorf("behind three messages came %v", ids)
	}
}

func TestErrorsOfGRPC(t *testing.T) {
	t.Parallel()
	authenticator, made := tokens(t, "a read", "a write", "a admin", "b admin")
	p := serve(t, testdb.Pool(t), server.Options{Access: authenticator, Limits: access.LimitOptions{RequestsPerSecond: -1, Streams: 1, MaxBodyBytes: 100_000}})
	reader, writer, admin, foreign := p.grpc("authorization", "Bearer "+made[0]), p.grpc("authorization", "Bearer "+made[1]),
		p.grpc("authorization", "Bearer "+made[2]), p.grpc("authorization", "Bearer "+made[3])
	admin.pushEvent("s", "RUN_STARTED", `{"runId":"r"}`)
	event := func(kind, payload string) *ambientv1.PushSessionEventRequest {
		return &ambientv1.PushSessionEventRequest{SessionId: "s", EventType: kind, Payload: payload}
	}
	for name, call := range map[string]struct {
		client  *sessionClient
		method  string
		request any
		want    codes.Code
	}{
		"no token":          {p.grpc(), "PushSessionEvent", event("CUSTOM", "{}"), codes.Unauthenticated},
		"wrong token":       {p.grpc("authorization", "Bearer x"), "PushSessionEvent", event("CUSTOM", "{}"), codes.Unauthenticated},
		"no right":          {reader, "PushSessionEvent", event("CUSTOM", "{}"), codes.PermissionDenied},
		"no right, message": {reader, "PushSessionMessage", &ambientv1.PushSessionMessageRequest{SessionId: "s", EventType: "user"}, codes.PermissionDenied},
		"too large":         {admin, "PushSessionEvent", event("CUSTOM", `{"value":"`+strings.Repeat("x", 200_000)+`"}`), codes.ResourceExhausted},
		"no session":        {admin, "PushSessionEvent", &ambientv1.PushSessionEventRequest{EventType: "CUSTOM", Payload: "{}"}, codes.InvalidArgument},
		"no session, msg":   {admin, "PushSessionMessage", &ambientv1.PushSessionMessageRequest{EventType: "user"}, codes.InvalidArgument},
		"no type, msg":      {admin, "PushSessionMessage", &ambientv1.PushSessionMessageRequest{SessionId: "s"}, codes.InvalidArgument},
		"no type":           {admin, "PushSessionEvent", event("", "{}"), codes.InvalidArgument},
		"no JSON":           {admin, "PushSessionEvent", event("CUSTOM", "x"), codes.InvalidArgument},
		"no count":          {admin, "PushSessionEvent", &ambientv1.PushSessionEventRequest{SessionId: "s", EventType: "CUSTOM", Payload: "{}", EventCount: new(int32(0))}, codes.InvalidArgument},
		"odd time": {admin, "PushSessionEvent", &ambientv1.PushSessionEventRequest{SessionId: "s", EventType: "CUSTOM", Payload: "{}",
			CompletedAt: &timestamppb.Timestamp{Seconds: 1 << 60}}, codes.InvalidArgument},
		"another run":     {admin, "PushSessionEvent", event("RUN_STARTED", `{"runId":"two"}`), codes.FailedPrecondition},
		"unknown run":     {admin, "PushSessionEvent", event("CUSTOM", `{"runId":"two"}`), codes.NotFound},
		"foreign session": {foreign, "PushSessionEvent", event("CUSTOM", `{"runId":"r"}`), codes.NotFound},
		"unknown method":  {admin, "GetSession", event("CUSTOM", `{}`), codes.Unimplemented},
	} {
		err := call.client.call(call.method, call.request, &ambientv1.SessionEvent{})
		if status.Code(err) != call.want {
			t.Errorf("%s: %v, want %s", name, err, call.want)
		}
	}
	writer.pushEvent("s", "CUSTOM", `{"name":"n","value":1}`)
	writer.watch("s", 0).wantEnd(codes.PermissionDenied)
	p.grpc().watch("s", 0).wantEnd(codes.Unauthenticated)
	admin.watch("", 0).wantEnd(codes.InvalidArgument)
	admin.watch("s", -1).wantEnd(codes.InvalidArgument)
	first := reader.watch("s", 0)
	must.Have(first.stream.Header())(t)
	reader.watch("s", 0).wantEnd(codes.ResourceExhausted)
	// The sessions of another scope are others.
	theirs := foreign.watch("s", 0)
	admin.pushMessage("s", "user", "secret")
	first.want("user", "secret")
	foreign.pushMessage("s", "user", "theirs")
	theirs.want("user", "theirs")
}

// TestDroppedStreamsAreUnavailable drops the stream of a client in each way.
func TestDroppedStreamsAreUnavailable(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	c := p.grpc()
	c.pushMessage("s", "user", "Hello")
	w := c.watch("s", 0)
	w.want("user", "Hello")
	waiting := c.watch("none", 0)
	must.Have(waiting.stream.Header())(t)
	must.Report(t, p.server.Shutdown(t.Context()))
	w.wantEnd(codes.Unavailable)
	waiting.wantEnd(codes.Unavailable)

	other := serve(t, p.pool(), server.Options{Access: expiring{time.Second}})
	expired := other.grpc().watch("s", 0)
	expired.want("user", "Hello")
	expired.wantEnd(codes.Unauthenticated)

	third := serve(t, p.pool(), server.Options{})
	broken := third.grpc().watch("s", 0)
	broken.want("user", "Hello")
	must.Have(p.pool().Exec(t.Context(), `alter function agui.status(text, text, text) rename to status_before`))(t)
	if _, err := p.store.Append(t.Context(), pgagui.RunRef{ThreadID: "s", RunID: "r"},
		[]json.RawMessage{json.RawMessage(started("s", "r")), json.RawMessage(finished("s", "r"))}, pgagui.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	broken.wantEnd(codes.Unavailable)
}

// TestASlowWatcherIsDropped aborts a client that reads nothing. It continues without a gap.
func TestASlowWatcherIsDropped(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	p := serve(t, testdb.Pool(t), server.Options{WriteTimeout: 4 * time.Second, Metrics: registry}) // the other is no slow one, on a busy machine either
	c := p.grpc()
	slow, other := c.watch("s", 0), p.grpc().watch("s", 0)
	waitForStreams(t, registry, 2)
	const messages = 10
	text := strings.Repeat("x", 50_000)
	for n := range messages {
		c.pushMessage("s", "user", fmt.Sprint(n, text))
		other.want("user", fmt.Sprint(n, text))
	}
	waitForStreams(t, registry, 1)
	var last int64
	received := 0
	for {
		message, err := slow.receive()
		if err != nil {
			if code := status.Code(err); code != codes.Internal { // as gRPC shows a reset
				t.Errorf("the slow stream ended with %v", err)
			}
			break
		}
		last, received = message.Seq, received+1
	}
	if received == messages {
		t.Fatal("the slow client received everything")
	}
	resumed := p.grpc().watch("s", last)
	for n := received; n < messages; n++ {
		resumed.want("user", fmt.Sprint(n, text))
	}
}

// TestIdleStreamsStayOpen waits for longer than a write may take, over HTTP/2.
func TestIdleStreamsStayOpen(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{WriteTimeout: 500 * time.Millisecond, Heartbeat: time.Hour})
	c := p.grpc()
	w := c.watch("s", 0)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	request := must.Have(http.NewRequestWithContext(t.Context(), "GET", "http://"+c.connection.Target()+sessions+"s/events", nil))(t)
	answer := must.Have(client.Do(request))(t)
	defer answer.Body.Close()
	for n := range 2 {
		time.Sleep(time.Second)
		c.pushMessage("s", "user", fmt.Sprint(n))
		w.want("user", fmt.Sprint(n))
		text := make([]byte, 0, 10_000)
		for !strings.Contains(string(text), "RUN_FINISHED") {
			read, err := answer.Body.Read(text[len(text):cap(text)])
			if err != nil {
				t.Fatalf("the stream ended with %v after %d messages", err, n)
			}
			text = text[:len(text)+read]
		}
	}
}

func TestErasedSessionsEndTheirStreams(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	c := p.grpc()
	c.pushMessage("s", "user", "Hello")
	w := c.watch("s", 0)
	w.want("user", "Hello")
	p.json(200, "DELETE", "/copilotkit/threads/s", "{}")
	w.wantEnd(codes.NotFound)
	if err := c.call("PushSessionMessage", &ambientv1.PushSessionMessageRequest{SessionId: "s", EventType: "user"}, &ambientv1.SessionMessage{}); status.Code(err) != codes.NotFound {
		t.Errorf("a message for an erased session: %v", err)
	}
}

// TestRepeatedCallsOfGRPC are stored once.
func TestRepeatedCallsOfGRPC(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for range 2 {
		if seq := p.grpc("idempotency-key", "one").pushMessage("s", "user", "Hello").Seq; seq != 2 {
			t.Errorf("the message has seq %d", seq)
		}
		if seq := p.grpc("after-seq", "0").pushEvent("s", "RUN_STARTED", `{"runId":"r"}`).Seq; seq != 6 {
			t.Errorf("RUN_STARTED has seq %d", seq)
		}
		if seq := p.grpc("after-seq", "6").pushEvent("s", "RUN_FINISHED", `{}`).Seq; seq != 7 {
			t.Errorf("RUN_FINISHED has seq %d", seq)
		}
	}
	err := p.grpc("after-seq", "x").call("PushSessionEvent", &ambientv1.PushSessionEventRequest{SessionId: "s", EventType: "CUSTOM", Payload: "{}"}, &ambientv1.SessionEvent{})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("after-seq x: %v", err)
	}
}

func TestGRPCReflection(t *testing.T) {
	t.Parallel()
	loaded, made := tokens(t, "a read", "a write")
	p := serve(t, testdb.Pool(t), server.Options{Access: loaded})
	ask := func(token string) (*reflection.ServerReflectionResponse, error) {
		t.Helper()
		c := p.grpc()
		stream, err := reflection.NewServerReflectionClient(c.connection).ServerReflectionInfo(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token))
		if err != nil {
			return nil, err
		}
		_ = stream.Send(&reflection.ServerReflectionRequest{ // Recv says why it failed
			MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "ambient.v1.SessionService"},
		})
		return stream.Recv()
	}
	answer := must.Have(ask(made[0]))(t)
	var file descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(answer.GetFileDescriptorResponse().GetFileDescriptorProto()[0], &file); err != nil || file.GetService()[0].GetMethod()[0].GetName() != "PushSessionMessage" {
		t.Errorf("the server describes %v (%v)", &file, err)
	}
	for _, token := range []string{made[1], "none"} {
		if _, err := ask(token); status.Code(err) != codes.PermissionDenied && status.Code(err) != codes.Unauthenticated {
			t.Errorf("without the right to read: %v", err)
		}
	}
}
