package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/internal/ambientv1"
)

// registerGRPC registers the gRPC service of the Ambient Platform. Connect serves gRPC, gRPC-Web and
// JSON on the paths of the procedures.
func (s *Server) registerGRPC(mux *http.ServeMux) {
	errorWriter := connect.NewErrorWriter()
	guard := s.guard
	guard.Audit.Answer = func(w http.ResponseWriter, r *http.Request, refusal *access.Refusal) {
		s.metrics.refused.WithLabelValues(strconv.Itoa(refusal.Status())).Inc()
		refusal.SetHeaders(w.Header())
		_ = errorWriter.Write(w, r, connect.NewError(codeOf(refusal.Status()), errors.New(refusal.Reason)))
	}
	var options []connect.HandlerOption
	if limit := s.guard.Limits.MaxBodyBytes(); limit > 0 {
		options = append(options, connect.WithReadMaxBytes(int(limit)))
	}
	_, service := ambientv1.NewSessionServiceHandler(&sessionService{s}, options...)
	for procedure, right := range map[string]access.Rights{
		ambientv1.SessionServicePushSessionMessageProcedure:   access.Write,
		ambientv1.SessionServicePushSessionEventProcedure:     access.Write,
		ambientv1.SessionServiceWatchSessionMessagesProcedure: access.Read,
	} {
		mux.Handle(http.MethodPost+" "+procedure, guard.Require(right, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			service.ServeHTTP(&timedWriter{w, http.NewResponseController(w), s.options.WriteTimeout}, r)
		})))
	}
}

// sessionService implements the service.
type sessionService struct{ *Server }

// PushSessionMessage stores a message. The metadata idempotency-key is the header of that name.
func (s *sessionService) PushSessionMessage(ctx context.Context, request *ambientv1.PushSessionMessageRequest) (*ambientv1.SessionMessage, error) {
	switch {
	case request.SessionId == "":
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("session_id is missing"))
	case request.EventType == "":
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("event_type is missing"))
	}
	message := pushedMessage{eventType: request.EventType, payload: quoted(request.Payload)}
	stored, err := s.storeMessage(ctx, s.tenantFrom(ctx), request.SessionId, message, metadata(ctx, "Idempotency-Key"))
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
	stored, err := s.pushEvent(ctx, s.tenantFrom(ctx), request.SessionId, event, afterSeq)
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
	if s.guard.Limits != nil {
		release, ok := s.guard.Limits.AcquireStream(who)
		if !ok {
			return connect.NewError(connect.CodeResourceExhausted, errors.New("too many open streams"))
		}
		defer release()
	}
	ctx, end := s.streamContext(request)
	defer end()
	feed, err := newMessageFeed(ctx, s.tenantFrom(ctx), watched.SessionId, watched.AfterSeq)
	if err != nil && !errors.Is(err, pgagui.ErrUnknownThread) {
		return s.grpcError(request, err)
	}
	if err := to.Send(nil); err != nil { // the headers: the client learns that the stream is open
		return err
	}
	err = feed.follow(ctx, s.Server, func(messages []ambientMessage) bool { return sendMessages(to, messages) }, func() bool { return true })
	known, isOurs := problemOfError(err)
	switch {
	case request.Err() != nil:
		return connect.NewError(connect.CodeCanceled, request.Err())
	case errors.Is(err, errExpired):
		return connect.NewError(connect.CodeUnauthenticated, errExpired)
	case !isOurs && known.Status != http.StatusServiceUnavailable:
		return s.grpcError(request, err)
	}
	s.metrics.aborted.Inc()
	s.options.Logger.Info("a stream was aborted", "route", ambientv1.SessionServiceWatchSessionMessagesProcedure, "thread", watched.SessionId, "error", err)
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
func (s *Server) grpcError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return connect.NewError(connect.CodeCanceled, ctx.Err())
	}
	known, isOurs := problemOfError(err)
	if isOurs {
		s.options.Logger.Error("a request failed", "route", ambientv1.SessionServiceName, "error", err)
	}
	text := known.Detail
	if known.Hint != "" {
		text += ". " + known.Hint
	}
	return connect.NewError(codeOf(known.Status), errors.New(text))
}

// codeOf returns the code of gRPC for a status of HTTP.
func codeOf(status int) connect.Code {
	switch status {
	case http.StatusBadRequest:
		return connect.CodeInvalidArgument
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound, http.StatusGone:
		return connect.CodeNotFound
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity:
		return connect.CodeFailedPrecondition
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return connect.CodeResourceExhausted
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	default:
		return connect.CodeInternal
	}
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
