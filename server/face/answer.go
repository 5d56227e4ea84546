package face

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// Answer answers a request with a JSON value.
func Answer(w http.ResponseWriter, value any) error {
	WriteJSON(w, http.StatusOK, "application/json", value)
	return nil
}

// WriteJSON answers a request with a status and a JSON value.
func WriteJSON(w http.ResponseWriter, status int, contentType string, value any) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the client may be gone
}

// AnswerJSON answers with a JSON text, byte for byte. If the client accepts it too slowly, it aborts
// the connection. If too many large requests and answers are in progress, the answer is 503.
func (s *HTTP) AnswerJSON(w http.ResponseWriter, r *http.Request, text []byte) error {
	return s.Door.Answer(w, r, len(text), func() {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		if _, err := w.Write(text); err != nil {
			panic(http.ErrAbortHandler) // a part of a document is no answer
		}
	})
}

// AnswerList answers with a JSON object: a list below a name, and the members of more, if it is not nil. It writes each item as it is
// made of what the request has read, so the answer takes no memory of its own.
func (s *HTTP) AnswerList(w http.ResponseWriter, r *http.Request, name string, items iter.Seq[json.RawMessage], more *jsontext.Object) error {
	return s.Door.Answer(w, r, 0, func() {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		write := func(texts ...[]byte) {
			for _, text := range texts {
				if _, err := w.Write(text); err != nil {
					panic(http.ErrAbortHandler) // a part of a document is no answer
				}
			}
		}
		separator := []byte(nil)
		write([]byte("{"), jsontext.Quote(name), []byte(":["))
		for item := range items {
			write(separator, item)
			separator = []byte(",")
		}
		write([]byte("]"))
		if more == nil {
			write([]byte("}"))
			return
		}
		write([]byte(","), more.End()[1:])
	})
}

// AnswerFile answers with data that a user has sent, as AnswerJSON does. The browser neither guesses its type nor runs anything in
// it. Requests may ask for ranges of it, and whether it is still the same.
func (s *HTTP) AnswerFile(w http.ResponseWriter, r *http.Request, mimeType, filename string, data []byte) error {
	disposition := "inline"
	mimeType, isSafe := safeType(mimeType)
	if !isSafe {
		disposition = "attachment"
	}
	return s.Door.Answer(w, r, len(data), func() {
		header := w.Header()
		header.Set("Content-Type", mimeType)
		header.Set("Content-Disposition", Disposition(disposition, filename))
		header.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "private, no-cache") // a copy may be kept, and is compared by its ETag
		header.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(data)))
		if len(data) == 0 || !strings.HasPrefix(r.Header.Get("Range"), "bytes=") { // ServeContent refuses other units, and answers with a range of nothing
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// Disposition returns a Content-Disposition (inline, attachment) with the name of a file that a user has sent: without folders, and
// without characters that hide what the name is (controls, marks that change the direction of text).
func Disposition(disposition, filename string) string {
	filename = filename[strings.LastIndexAny(filename, `/\`)+1:]
	filename = strings.TrimLeft(strings.Map(func(character rune) rune {
		if unicode.In(character, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return character
	}, filename), ". ")
	parameters := map[string]string{}
	if filename != "" {
		parameters["filename"] = filename
	}
	return mime.FormatMediaType(disposition, parameters)
}

// safeTypes are those that a browser may show: none of them can hold a script that it would run.
var safeTypes = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp",
	"audio/mpeg", "audio/mp4", "audio/ogg", "audio/wav", "audio/webm", "audio/aac", "audio/flac",
	"video/mp4", "video/webm", "video/ogg",
	"text/plain", "text/csv", "application/json",
}

// safeType returns the type of data that a client calls mimeType, and whether a browser may show it. Others are saved.
func safeType(mimeType string) (name string, isSafe bool) {
	name, _, err := mime.ParseMediaType(mimeType)
	if err != nil || !slices.Contains(safeTypes, name) {
		return "application/octet-stream", false
	}
	if strings.HasPrefix(name, "text/") {
		name += "; charset=utf-8"
	}
	return name, true
}

// CountedBody is the body of a request whose memory counts. From its end on, the copies that are made
// of it count, too.
type CountedBody struct {
	io.ReadCloser
	// Held is the memory. Release it at the end of the request, or before.
	Held *door.Holding

	context  context.Context
	expected int // bytes; at most 0: unknown
	size     int
	isBegun  bool
}

// CountBody makes the body of a request count.
func (s *HTTP) CountBody(r *http.Request) *CountedBody {
	expected := int(min(r.ContentLength, s.Guard.Limits.MaxBodyBytes()))
	return &CountedBody{ReadCloser: r.Body, Held: s.Memory.Hold(r.Context()), context: r.Context(), expected: expected}
}

func (b *CountedBody) Read(into []byte) (int, error) {
	if !b.isBegun { // memory for the whole body: those that have begun do not wait for each other
		b.isBegun = true
		if err := b.Held.Wait(b.context, b.expected); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(into)
	b.size += n
	if full := b.Held.Resize(max(b.size, b.expected)); full != nil {
		return n, full
	}
	if err == io.EOF {
		err = cmp.Or(b.Held.Copy(b.context), err)
	}
	return n, err
}

// readAll reads the body of a request. When its memory counts, with the first read, it takes what the
// request says at once: a buffer that grows is copied several times.
func readAll(r *http.Request) ([]byte, error) {
	var text bytes.Buffer
	_, err := io.CopyN(&text, r.Body, bytes.MinRead)
	if err == nil {
		text.Grow(int(max(0, min(r.ContentLength, MaxDrained))) + bytes.MinRead)
		_, err = text.ReadFrom(r.Body)
	}
	if err == io.EOF {
		err = nil
	}
	return text.Bytes(), err
}

// Grow counts what was decompressed of a body, if it is larger.
func (b *CountedBody) Grow(ctx context.Context, size int) error {
	if size <= b.size {
		return nil
	}
	if err := b.Held.Wait(ctx, size); err != nil {
		return err
	}
	return b.Held.Copy(ctx)
}

// requestBody is the body of a request that counts. Its size is bounded, and it must arrive within
// timeout.
type requestBody struct {
	*CountedBody
	timeout   time.Duration
	control   *http.ResponseController
	whole     io.ReadCloser // without a bound, for streams
	tooLarge  error         // Content-Length says so
	isBegun   bool
	isRefused bool // the body may have a rest
}

// bodyOf returns the body of a request that is answered with w.
func (s *HTTP) bodyOf(w http.ResponseWriter, r *http.Request) *requestBody {
	body := &requestBody{CountedBody: s.CountBody(r), timeout: s.BodyTimeout, control: http.NewResponseController(w), whole: r.Body}
	limit := s.Guard.Limits.MaxBodyBytes()
	body.ReadCloser = timedBody{http.MaxBytesReader(w, r.Body, limit), body}
	if r.ContentLength > limit {
		body.tooLarge = &http.MaxBytesError{Limit: limit}
	}
	return body
}

// checkEncoding refuses a body that is compressed.
func (b *requestBody) checkEncoding(r *http.Request) error {
	encoding := r.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") || r.ContentLength == 0 {
		return nil
	}
	b.isRefused = true
	return problem.Errorf(http.StatusUnsupportedMediaType, "the body has the Content-Encoding %q: send it without compression", encoding)
}

func (b *requestBody) Read(into []byte) (n int, err error) {
	if err = b.tooLarge; err == nil {
		n, err = b.CountedBody.Read(into)
	}
	b.isRefused = b.isRefused || err != nil && err != io.EOF
	return n, err
}

// timedBody is a body with a bound of its time, which begins with the first read.
type timedBody struct {
	io.ReadCloser
	of *requestBody
}

func (b timedBody) Read(into []byte) (int, error) {
	if !b.of.isBegun {
		b.of.isBegun = true
		_ = b.of.control.SetReadDeadline(time.Now().Add(b.of.timeout))
	}
	n, err := b.ReadCloser.Read(into)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil, err == io.EOF, errors.As(err, &tooLarge), errors.Is(err, http.ErrBodyReadAfterClose):
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = problem.Errorf(http.StatusRequestTimeout, "the body did not arrive within %s", b.of.timeout)
	default: // of the client's connection
		err = problem.Errorf(http.StatusBadRequest, "the body breaks off or is not as its header says: send the request again")
	}
	if err != nil { // also at the end: later, a read notices that the client is gone
		_ = b.of.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// answerRefused calls answer. If the body has a rest, it reads that afterwards, for a while: a client
// whose connection is reset while it sends does not see the answer.
func (b *requestBody) answerRefused(w http.ResponseWriter, answer func()) {
	if !b.isRefused {
		answer()
		return
	}
	_ = b.control.EnableFullDuplex() // the answer does not wait for more of the body
	w.Header().Set("Connection", "close")
	answer()
	if b.control.Flush() == nil {
		_ = b.control.SetReadDeadline(time.Now().Add(DrainTimeout))
		_, _ = io.CopyN(io.Discard, b.whole, MaxDrained)
	}
}

// DrainTimeout and MaxDrained bound what is read of a body that was refused.
const (
	DrainTimeout = 2 * time.Second
	MaxDrained   = 64 << 20
)

// WholeBody returns the body of a request without a bound of its size and of its time, for a stream.
// Its memory does not count.
func WholeBody(r *http.Request) io.Reader { return r.Body.(*requestBody).whole }

// WithBody makes a part of the body of a request, which was read to its end, the body of another
// request. It counts already.
func WithBody(r, from *http.Request, part []byte) {
	body := from.Body.(*requestBody)
	body.ReadCloser, body.expected, body.size = io.NopCloser(bytes.NewReader(part)), len(part), 0
	r.Body, r.ContentLength = body, int64(len(part))
}

// AnswerError answers a request that failed.
func (s *HTTP) AnswerError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the client is gone
	}
	known, isOurs := problem.Of(err)
	if isOurs {
		s.Options.Logger.Error("a request failed", "route", r.Pattern, "error", err)
	}
	if known.Status == http.StatusServiceUnavailable || known.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	WriteJSON(w, known.Status, "application/problem+json", known)
}

// answerRefusal answers a request that access refuses.
func answerRefusal(w http.ResponseWriter, _ *http.Request, refusal *access.Refusal) {
	WriteJSON(w, refusal.Status(), "application/problem+json", problem.Errorf(refusal.Status(), "%s", refusal.Reason))
}
