package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pgagui/pgagui/server/access"
)

// errExpired ends a stream: the client must reconnect with a new token.
var errExpired = errors.New("the token has expired")

// writeStream answers a request with the stream of runs.
func (s *Server) writeStream(w http.ResponseWriter, r *http.Request, sent *stream) {
	defer func() { s.metrics.filter(sent) }()
	s.writeFrames(w, r, sent.threadID, frameFormat{onlySeq: sent.onlySeq}, func(ctx context.Context, to frames) error {
		if err := sent.serve(ctx, to); err != nil {
			return fmt.Errorf("run %q: %w", sent.runID, err)
		}
		return nil
	})
}

// writeFrames answers a request with a stream of server-sent events. A client takes the clean end
// of a stream for the end of the run, so everything else aborts the connection.
func (s *Server) writeFrames(w http.ResponseWriter, r *http.Request, threadID string, format frameFormat, serve func(context.Context, frames) error) {
	closeStream, ok := s.guard.OpenStream(w, r)
	if !ok {
		return
	}
	defer closeStream()
	if body, isRead := r.Body.(*requestBody); isRead {
		body.held.release() // a stream may last long
	}
	ctx, end := s.streamContext(r.Context())
	defer end()

	writer := s.beginStream(w, format)
	var err error
	if writer.flush() { // the client learns that the request is accepted
		err = serve(ctx, writer)
	}
	if err = errors.Join(err, writer.failed); err == nil {
		return
	}
	if r.Context().Err() == nil {
		s.metrics.aborted.Inc()
		s.options.Logger.Info("a stream was aborted", "route", r.Pattern, "thread", threadID, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// streamContext returns the context of a stream, which ends with the server and with the token of
// the client. The context's cause says why it ended.
func (s *Server) streamContext(request context.Context) (_ context.Context, end func()) {
	s.metrics.streams.Inc()
	ctx, cancel := context.WithCancelCause(request)
	stopWaiting := context.AfterFunc(s.streaming, func() { cancel(errShutdown) })
	var expiry *time.Timer
	if who, _ := access.IdentityFrom(ctx); !who.Expires.IsZero() {
		expiry = time.AfterFunc(time.Until(who.Expires), func() { cancel(errExpired) })
	}
	return ctx, func() {
		s.metrics.streams.Dec()
		stopWaiting()
		if expiry != nil {
			expiry.Stop()
		}
		cancel(nil)
	}
}

// beginStream begins to answer with a stream.
func (s *Server) beginStream(w http.ResponseWriter, format frameFormat) *frameWriter {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &frameWriter{w: w, control: http.NewResponseController(w), timeout: s.options.WriteTimeout, frameFormat: format}
}

// maxBuffered bounds the frames that wait for a flush, in bytes.
const maxBuffered = 16 << 10

// frameFormat says how frames are written.
type frameFormat struct {
	// onlySeq makes the id of a frame the seq alone, which names no history.
	onlySeq bool
	// comment is what a heartbeat says. "heartbeat" if empty.
	comment string
}

// frameWriter writes frames as server-sent events.
type frameWriter struct {
	frameFormat
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buffer  []byte
	failed  error
}

func (w *frameWriter) write(f frame) bool {
	if f.place.Seq > 0 {
		id := f.place.String()
		if w.onlySeq {
			id = strconv.FormatInt(f.place.Seq, 10)
		}
		w.buffer = append(append(append(w.buffer, "id: "...), id...), '\n')
	}
	switch {
	case f.event != nil:
		w.data(f.event)
	case f.place.Seq == 0:
		w.buffer = append(append(append(w.buffer, ": "...), cmp.Or(w.comment, "heartbeat")...), '\n')
	}
	w.buffer = append(w.buffer, '\n')
	return len(w.buffer) < maxBuffered || w.flush()
}

// data writes an event. A line break can only be between two tokens of its JSON text.
func (w *frameWriter) data(event []byte) {
	for {
		end := bytes.IndexAny(event, "\r\n")
		if end < 0 {
			end = len(event)
		}
		w.buffer = append(append(append(w.buffer, "data: "...), event[:end]...), '\n')
		if end == len(event) {
			return
		}
		event = event[end+1:]
	}
}

// flush sends what was written. A client that does not accept it in time is too slow.
func (w *frameWriter) flush() bool {
	if w.failed != nil {
		return false
	}
	w.failed = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
	if errors.Is(w.failed, http.ErrNotSupported) {
		w.failed = nil
	}
	if w.failed == nil {
		_, w.failed = w.w.Write(w.buffer)
	}
	if w.failed == nil {
		w.failed = w.control.Flush()
	}
	if w.failed == nil { // in HTTP/2 the deadline would end a stream that is idle
		_ = w.control.SetWriteDeadline(time.Time{})
	}
	if cap(w.buffer) > maxBuffered { // of one large event
		w.buffer = nil
	}
	w.buffer = w.buffer[:0]
	return w.failed == nil
}
