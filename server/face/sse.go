package face

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/pgagui/pgagui/server/core"
)

// WriteStream answers a request with the stream of runs.
func (s *HTTP) WriteStream(w http.ResponseWriter, r *http.Request, sent *core.Stream, format FrameFormat) {
	s.WriteFrames(w, r, sent.ThreadID, format, sent.Serve)
}

// WriteFrames answers a request with a stream of server-sent events. A client takes the clean end
// of a stream for the end of the run, so everything else aborts the connection.
func (s *HTTP) WriteFrames(w http.ResponseWriter, r *http.Request, threadID string, format FrameFormat, serve func(context.Context, core.Frames) error) {
	closeStream, ok := s.Guard.OpenStream(w, r)
	if !ok {
		return
	}
	defer closeStream()
	if body, isRead := r.Body.(*requestBody); isRead {
		body.Held.Release() // a stream may last long
	}
	ctx, end := s.StreamContext(r.Context())
	defer end()

	writer := s.BeginStream(w, format)
	var err error
	if writer.Flush() { // the client learns that the request is accepted
		err = serve(ctx, writer)
	}
	if err = errors.Join(err, writer.failed); err == nil {
		return
	}
	if r.Context().Err() == nil {
		s.Aborted(r.Pattern, threadID, err)
	}
	panic(http.ErrAbortHandler)
}

// Aborted counts and logs a stream that was aborted.
func (s *HTTP) Aborted(route, threadID string, err error) {
	s.metrics.aborted.Inc()
	s.Options.Logger.Info("a stream was aborted", "route", route, "thread", threadID, "error", err)
}

// BeginStream begins to answer with a stream.
func (s *HTTP) BeginStream(w http.ResponseWriter, format FrameFormat) *FrameWriter {
	for {
		compressed, is := w.(*gzhttp.GzipResponseWriter)
		if !is {
			break
		}
		w = compressed.Unwrap() // it sends the headers with the first bytes only
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &FrameWriter{w: w, control: http.NewResponseController(w), timeout: s.WriteTimeout, FrameFormat: format}
}

// maxBuffered bounds the frames that wait for a flush, in bytes.
const maxBuffered = 16 << 10

// FrameFormat says how frames are written.
type FrameFormat struct {
	// OnlySeq makes the id of a frame the seq alone, which names no history.
	OnlySeq bool
	// Comment is what a heartbeat says. "heartbeat" if empty.
	Comment string
}

// FrameWriter writes frames as server-sent events.
type FrameWriter struct {
	FrameFormat
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buffer  []byte
	failed  error
}

func (w *FrameWriter) Write(f core.Frame) bool {
	id := f.ID
	if f.Place.Seq > 0 {
		if id = f.Place.String(); w.OnlySeq {
			id = strconv.FormatInt(f.Place.Seq, 10)
		}
	}
	if id != "" {
		w.buffer = append(append(append(w.buffer, "id: "...), id...), '\n')
	}
	switch {
	case f.Event != nil:
		w.data(f.Event)
	case id == "":
		w.buffer = append(append(append(w.buffer, ": "...), cmp.Or(w.Comment, "heartbeat")...), '\n')
	}
	w.buffer = append(w.buffer, '\n')
	return len(w.buffer) < maxBuffered || w.Flush()
}

// data writes an event. A line break can only be between two tokens of its JSON text.
func (w *FrameWriter) data(event []byte) {
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
func (w *FrameWriter) Flush() bool {
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
