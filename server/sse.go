package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pgagui/pgagui/server/access"
)

// errExpired ends a stream: the client comes back with a new token.
var errExpired = errors.New("the token has expired")

// writeStream answers a request with a stream of server-sent events. A client takes the clean end
// of a stream for the end of the run, so everything else aborts the connection.
func (s *Server) writeStream(w http.ResponseWriter, r *http.Request, sent *stream) {
	closeStream, ok := s.guard.OpenStream(w, r)
	if !ok {
		return
	}
	defer closeStream()
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.streaming, func() { cancel(errShutdown) })()
	if who, _ := access.IdentityFrom(ctx); !who.Expires.IsZero() {
		defer time.AfterFunc(time.Until(who.Expires), func() { cancel(errExpired) }).Stop()
	}

	writer := s.beginStream(w)
	defer func() { s.metrics.filter(sent) }()
	var err error
	if writer.flush() { // the client learns that the run is accepted
		err = sent.serve(ctx, writer)
	}
	if err = errors.Join(err, writer.failed); err == nil {
		return
	}
	if r.Context().Err() == nil {
		s.metrics.aborted.Inc()
		s.options.Logger.Info("a stream was aborted", "thread", sent.threadID, "run", sent.runID, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// beginStream begins to answer with a stream.
func (s *Server) beginStream(w http.ResponseWriter) *frameWriter {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &frameWriter{w: w, control: http.NewResponseController(w), timeout: s.options.WriteTimeout}
}

// maxBuffered bounds the frames that wait for a flush, in bytes.
const maxBuffered = 16 << 10

// frameWriter writes frames as server-sent events.
type frameWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buffer  []byte
	failed  error
}

func (w *frameWriter) write(f frame) bool {
	if f.place.Seq > 0 {
		w.buffer = append(append(append(w.buffer, "id: "...), f.place.String()...), '\n')
	}
	switch {
	case f.event != nil:
		w.data(f.event)
	case f.place.Seq == 0:
		w.buffer = append(w.buffer, ": heartbeat\n"...)
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
	if cap(w.buffer) > maxBuffered { // of one large event
		w.buffer = nil
	}
	w.buffer = w.buffer[:0]
	return w.failed == nil
}
