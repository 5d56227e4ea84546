package face

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/door"
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
	ctx, end := s.StreamContext(door.Streaming(r.Context()))
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
const maxBuffered = 32 << 10

// frameBuffers are for the frames of all streams, so that one that is idle holds none. They begin
// small: most streams write a token at a time.
var frameBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

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
	buffer  *bytes.Buffer // nil: nothing waits
	failed  error
}

func (w *FrameWriter) Write(f core.Frame) bool {
	if w.buffer == nil {
		w.buffer = frameBuffers.Get().(*bytes.Buffer)
	}
	var scratch [64]byte
	id := scratch[:0]
	switch {
	case f.Place.Seq == 0:
		id = append(id, f.ID...)
	case w.OnlySeq:
		id = strconv.AppendInt(id, f.Place.Seq, 10)
	default:
		id = f.Place.Append(id)
	}
	if len(id) > 0 {
		w.field("id: ", id)
	}
	switch {
	case f.Event != nil:
		w.data(f.Event)
	case len(id) == 0:
		w.field(": ", []byte(cmp.Or(w.Comment, "heartbeat")))
	}
	w.buffer.WriteByte('\n')
	return w.buffer.Len() < maxBuffered || w.Flush()
}

// field writes a line.
func (w *FrameWriter) field(name string, value []byte) {
	w.buffer.WriteString(name)
	w.buffer.Write(value)
	w.buffer.WriteByte('\n')
}

// data writes an event. A line break can only be between two tokens of its JSON text.
func (w *FrameWriter) data(event []byte) {
	for {
		end := bytes.IndexAny(event, "\r\n")
		if end < 0 {
			w.field("data: ", event)
			return
		}
		w.field("data: ", event[:end])
		event = event[end+1:]
	}
}

// Flush sends what was written. A client that does not accept it in time is too slow.
func (w *FrameWriter) Flush() bool {
	if w.failed != nil {
		return false
	}
	w.failed = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
	if errors.Is(w.failed, http.ErrNotSupported) {
		w.failed = nil
	}
	if w.failed == nil && w.buffer != nil {
		_, w.failed = w.w.Write(w.buffer.Bytes())
	}
	if w.failed == nil {
		w.failed = w.control.Flush()
	}
	if w.failed == nil { // in HTTP/2 the deadline would end a stream that is idle
		_ = w.control.SetWriteDeadline(time.Time{})
	}
	// After a failure HTTP/2 may still be reading the buffer, and one large event may have made it large.
	if w.failed == nil && w.buffer != nil && w.buffer.Cap() <= 2*maxBuffered {
		w.buffer.Reset()
		frameBuffers.Put(w.buffer)
	}
	w.buffer = nil
	return w.failed == nil
}
