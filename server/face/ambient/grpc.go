package ambient

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/refusal"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/internal/ambientv1"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// registerGRPC registers the gRPC service of the Ambient Platform. Connect serves gRPC, gRPC-Web and
// JSON on the paths of the procedures.
func registerGRPC(s *face.HTTP) {
	errorWriter := connect.NewErrorWriter()
	guard := s.GuardWith(func(w http.ResponseWriter, r *http.Request, refusal *access.Refusal) {
		_ = errorWriter.Write(w, r, connect.NewError(codeOf[refusal.Status()], errors.New(refusal.Reason)))
	})
	var options []connect.HandlerOption
	if limit := s.Guard.Limits.MaxBodyBytes(); limit > 0 {
		options = append(options, connect.WithReadMaxBytes(int(limit)))
	}
	options = append(options, connect.WithInterceptors(connect.UnaryInterceptorFunc(countMessage)))
	_, service := ambientv1.NewSessionServiceHandler(&sessionService{s}, options...)
	for procedure, right := range map[string]access.Rights{
		ambientv1.SessionServicePushSessionMessageProcedure:   access.Write,
		ambientv1.SessionServicePushSessionEventProcedure:     access.Write,
		ambientv1.SessionServiceWatchSessionMessagesProcedure: access.Read,
	} {
		s.Mux.Handle(http.MethodPost+" "+procedure, guard.Require(right, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := countedBody{s.CountBody(r)}
			defer body.Held.Release()
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
			r.Body = body
			service.ServeHTTP(&timedWriter{w, http.NewResponseController(w), s.WriteTimeout}, r)
		})))
	}
	// Tools such as grpcurl read here which calls there are.
	described := grpcreflect.NewStaticReflector(ambientv1.SessionServiceName)
	for _, register := range []func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){grpcreflect.NewHandlerV1, grpcreflect.NewHandlerV1Alpha} {
		path, reflection := register(described, options...)
		s.Mux.Handle(http.MethodPost+" "+path, guard.Require(access.Read, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
			defer cancel()
			reflection.ServeHTTP(&timedWriter{w, http.NewResponseController(w), s.WriteTimeout}, r.WithContext(ctx))
		})))
	}
}

// bodyKey is the key of the body of a call in its context.
type bodyKey struct{}

// countedBody is a body whose errors are those of gRPC.
type countedBody struct{ *face.CountedBody }

func (b countedBody) Read(into []byte) (int, error) {
	n, err := b.CountedBody.Read(into)
	return n, memoryError(err)
}

// memoryError returns the error of a call for which there is no memory.
func memoryError(err error) error {
	if known, ok := errors.AsType[*problem.Details](err); ok {
		err = connect.NewError(cmp.Or(codeOf[known.Status], connect.CodeInternal), known)
	}
	return err
}

// countMessage counts the memory of a message that was larger than its body, which was compressed.
func countMessage(call connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		message, isMessage := request.Any().(proto.Message)
		body, isCounted := ctx.Value(bodyKey{}).(countedBody)
		if isMessage && isCounted {
			if err := body.Grow(ctx, proto.Size(message)); err != nil {
				return nil, memoryError(err)
			}
		}
		return call(ctx, request)
	}
}

// sessionService implements the service.
type sessionService struct{ *face.HTTP }

// PushSessionMessage stores a message. The metadata idempotency-key is the header of that name.
func (s *sessionService) PushSessionMessage(ctx context.Context, request *ambientv1.PushSessionMessageRequest) (*ambientv1.SessionMessage, error) {
	switch {
	case request.SessionId == "":
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("session_id is missing"))
	case request.EventType == "":
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("event_type is missing"))
	}
	message := pushedMessage{eventType: request.EventType, payload: jsontext.Quote(request.Payload)}
	stored, err := storeMessage(ctx, s.Server, s.Tenant(ctx), request.SessionId, message, metadata(ctx, "Idempotency-Key"))
	if err != nil {
		return nil, s.grpcError(ctx, err)
	}
	return protoMessage(stored), nil
}

// PushSessionEvent stores an event. The metadata after-seq is after_seq of the same call over HTTP.
func (s *sessionService) PushSessionEvent(ctx context.Context, request *ambientv1.PushSessionEventRequest) (*ambientv1.SessionEvent, error) {
	if request.SessionId == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("session_id is missing"))
	}
	event := pushedEvent{eventType: request.EventType, payload: []byte(request.Payload)}
	if request.CompletedAt != nil {
		if err := request.CompletedAt.CheckValid(); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, err)
		}
		event.completedAt = request.CompletedAt.AsTime()
	}
	if request.EventCount != nil {
		event.eventCount = new(int64(*request.EventCount))
	}
	var afterSeq *int64
	if text := metadata(ctx, "After-Seq"); text != "" {
		seq, err := readSeq(text)
		if err != nil {
			return nil, s.grpcError(ctx, err)
		}
		afterSeq = &seq
	}
	stored, err := pushEvent(ctx, s.Server, s.Tenant(ctx), request.SessionId, event, afterSeq)
	if err != nil {
		return nil, s.grpcError(ctx, err)
	}
	answer := &ambientv1.SessionEvent{
		Id: stored.ID, SessionId: stored.SessionID, Seq: stored.Seq, EventType: stored.EventType, Payload: stored.Payload,
		CreatedAt: timestamppb.New(stored.CreatedAt), EventCount: int32(stored.EventCount),
	}
	if stored.CompletedAt != nil {
		answer.CompletedAt = timestamppb.New(*stored.CompletedAt)
	}
	return answer, nil
}

// WatchSessionMessages streams messages until the client leaves.
func (s *sessionService) WatchSessionMessages(request context.Context, watched *ambientv1.WatchSessionMessagesRequest, to *connect.ServerStream[ambientv1.SessionMessage]) error {
	switch {
	case watched.SessionId == "":
		return connect.NewError(connect.CodeInvalidArgument, errors.New("session_id is missing"))
	case watched.AfterSeq < 0:
		return connect.NewError(connect.CodeInvalidArgument, errors.New("after_seq is negative"))
	}
	who, _ := access.IdentityFrom(request)
	if s.Guard.Limits != nil {
		release, ok := s.Guard.Limits.AcquireStream(who)
		if !ok {
			return connect.NewError(connect.CodeResourceExhausted, errors.New("too many open streams"))
		}
		defer release()
	}
	ctx, end := s.StreamContext(request)
	defer end()
	feed, err := core.NewMessageFeed(ctx, s.Tenant(ctx), watched.SessionId, watched.AfterSeq)
	if err != nil && !errors.Is(err, pgagui.ErrUnknownThread) {
		return s.grpcError(request, err)
	}
	if err := to.Send(nil); err != nil { // the headers: the client learns that the stream is open
		return err
	}
	err = feed.Follow(ctx, func(messages []pgagui.SessionMessage) bool {
		return sendMessages(to, ambientMessagesOf(watched.SessionId, messages))
	}, func() bool { return true })
	known, isOurs := problem.Of(err)
	switch {
	case request.Err() != nil:
		return connect.NewError(connect.CodeCanceled, request.Err())
	case errors.Is(err, core.ErrExpired):
		return connect.NewError(connect.CodeUnauthenticated, core.ErrExpired)
	case !isOurs && known.Status != http.StatusServiceUnavailable:
		return s.grpcError(request, err)
	}
	s.Aborted(ambientv1.SessionServiceWatchSessionMessagesProcedure, watched.SessionId, err)
	return connect.NewError(connect.CodeUnavailable, errors.New("the server dropped the stream: watch behind the last message"))
}

// sendMessages sends messages. Of those that one event brought, all but the last one have the seq
// before: a client that watches behind the last message it has gets those that it lacks.
func sendMessages(to *connect.ServerStream[ambientv1.SessionMessage], messages []ambientMessage) bool {
	for i, message := range messages {
		sent := protoMessage(message)
		if i+1 < len(messages) && messages[i+1].Seq == message.Seq {
			sent.Seq--
		}
		if to.Send(sent) != nil {
			return false
		}
	}
	return true
}

func protoMessage(message ambientMessage) *ambientv1.SessionMessage {
	return &ambientv1.SessionMessage{
		Id: message.ID, SessionId: message.SessionID, Seq: message.Seq, EventType: message.EventType, Payload: textOf(message.Payload),
		CreatedAt: timestamppb.New(message.CreatedAt),
	}
}

// metadata returns a header of a call.
func metadata(ctx context.Context, name string) string {
	info, _ := connect.CallInfoForHandlerContext(ctx)
	return info.RequestHeader().Get(name)
}

// grpcError returns what an error tells a client.
func (s *sessionService) grpcError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return connect.NewError(connect.CodeCanceled, ctx.Err())
	}
	known, isOurs := problem.Of(err)
	if isOurs {
		s.Options.Logger.Error("a request failed", "route", ambientv1.SessionServiceName, "error", err)
	}
	text := known.Detail
	if known.Hint != "" {
		text += ". " + known.Hint
	}
	code := cmp.Or(codeOf[known.Status], connect.CodeInternal)
	if known.Status == http.StatusUnprocessableEntity && (known.Code == "" || refusal.IsOfValue(known.Code)) {
		code = connect.CodeInvalidArgument // the fault is in the call, not in what is stored
	}
	return connect.NewError(code, errors.New(text))
}

// timedWriter gives the client a time for each write.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) Write(text []byte) (int, error) {
	defer w.limit()()
	return w.ResponseWriter.Write(text)
}

// Flush is what connect requires of the writer of a stream.
func (w *timedWriter) Flush() {
	defer w.limit()()
	_ = w.control.Flush()
}

// limit bounds the time of a write until it returns. In HTTP/2 a deadline would end a stream that is
// idle.
func (w *timedWriter) limit() (end func()) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // some writers have none
	return func() { _ = w.control.SetWriteDeadline(time.Time{}) }
}
