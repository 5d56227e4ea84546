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

	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	writer := &frameWriter{w: w, control: http.NewResponseController(w), timeout: s.options.WriteTimeout}
	w.WriteHeader(http.StatusOK)
	err := writer.flush() // the client learns that the run is accepted
	if err == nil {
		err = sent.serve(ctx, func(f frame) bool { return writer.write(f) == nil })
		err = errors.Join(err, writer.failed)
	}
	if err == nil {
		return
	}
	if r.Context().Err() == nil {
		s.metrics.aborted.Inc()
		s.options.Logger.Info("a stream was aborted", "thread", sent.threadID, "run", sent.runID, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// frameWriter writes frames as server-sent events.
type frameWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buffer  bytes.Buffer
	failed  error
}

var newline = []byte("\n")

func (w *frameWriter) write(f frame) error {
	w.buffer.Reset()
	if f.position.Seq > 0 {
		w.buffer.WriteString("id: ")
		w.buffer.WriteString(f.position.String())
		w.buffer.WriteByte('\n')
	}
	switch {
	case f.event != nil:
		// A line break can only be between two tokens of the JSON text.
		for line := range bytes.SplitSeq(bytes.ReplaceAll(f.event, []byte("\r"), newline), newline) {
			w.buffer.WriteString("data: ")
			w.buffer.Write(line)
			w.buffer.WriteByte('\n')
		}
	case f.position.Seq == 0:
		w.buffer.WriteString(": heartbeat\n")
	}
	w.buffer.WriteByte('\n')
	_, err := w.w.Write(w.buffer.Bytes())
	if err == nil {
		err = w.flush()
	}
	w.failed = err
	return err
}

// flush sends what was written. A client that does not accept it in time is too slow.
func (w *frameWriter) flush() error {
	if err := w.control.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return w.control.Flush()
}
