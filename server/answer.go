package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/pgagui/pgagui/server/access"
)

const (
	// smallSize is the size up to which requests and answers do not count in the budget, in bytes.
	smallSize = 64 << 10
	// leastRate is how fast a client must accept an answer, in bytes a second.
	leastRate = 64 << 10
	// bodyTimeout bounds the time to receive a body that is not a stream.
	bodyTimeout = time.Minute
)

// answer answers a request with a JSON value.
func answer(w http.ResponseWriter, value any) error {
	writeJSON(w, http.StatusOK, "application/json", value)
	return nil
}

func writeJSON(w http.ResponseWriter, status int, contentType string, value any) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the client may be gone
}

// answerJSON answers with a JSON text, byte for byte. If the client accepts it too slowly, it aborts
// the connection. If too many large requests and answers are in progress, the answer is 503.
func (s *Server) answerJSON(w http.ResponseWriter, r *http.Request, text []byte) error {
	held := s.memory.hold(r.Context())
	if err := held.resize(len(text)); err != nil {
		return err
	}
	defer held.release()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	limit := s.options.WriteTimeout + time.Duration(len(text)/leastRate)*time.Second
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(text); err != nil {
		panic(http.ErrAbortHandler) // a part of a document is no answer
	}
	if control.Flush() == nil {
		_ = control.SetWriteDeadline(time.Time{}) // for the next request of the connection
	}
	return nil
}

// object is a JSON object that is written member by member. Stored JSON texts keep their bytes.
type object struct{ bytes.Buffer }

// raw adds a member with a JSON text; null if it is empty.
func (o *object) raw(name string, text []byte) *object {
	if o.Len() == 0 {
		o.WriteByte('{')
	} else {
		o.WriteByte(',')
	}
	o.Write(quoted(name))
	o.WriteByte(':')
	if len(text) == 0 {
		text = []byte("null")
	}
	o.Write(text)
	return o
}

// value adds a member.
func (o *object) value(name string, value any) *object {
	text, _ := json.Marshal(value)
	return o.raw(name, text)
}

// list adds a member with an array of JSON texts.
func (o *object) list(name string, items []json.RawMessage) *object {
	o.raw(name, []byte("["))
	for i, item := range items {
		if i > 0 {
			o.WriteByte(',')
		}
		o.Write(item)
	}
	o.WriteByte(']')
	return o
}

// end returns the text of the object.
func (o *object) end() []byte {
	if o.Len() == 0 {
		o.WriteByte('{')
	}
	o.WriteByte('}')
	return o.Bytes()
}

// budget bounds the memory of large requests that arrive and of large answers that wait for their
// clients. An owner, the identity of a request, may have a part of it only, so that other owners are
// not blocked.
type budget struct {
	limit, share int64

	mu      sync.Mutex
	used    int64
	byOwner map[access.Identity]int64
}

// sharesOfBudget is the number of shares of the budget. An owner may have one of them.
const sharesOfBudget = 4

func newBudget(limit int64) *budget {
	return &budget{limit: limit, share: limit / sharesOfBudget, byOwner: map[access.Identity]int64{}}
}

// holding is the memory that a request has of the budget.
type holding struct {
	budget *budget
	owner  access.Identity
	size   int64
}

// hold returns the holding of a request, which has nothing yet. Call release at its end.
func (b *budget) hold(ctx context.Context) *holding {
	who, _ := access.IdentityFrom(ctx)
	return &holding{budget: b, owner: access.Identity{Scope: who.Scope, Subject: who.Subject, Issuer: who.Issuer}}
}

// resize makes the holding larger or smaller. Small sizes do not count. More than a share is
// possible if the owner has nothing else.
func (h *holding) resize(size int) error {
	if size <= smallSize {
		size = 0
	}
	b, n := h.budget, int64(size)-h.size
	if n == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.byOwner[h.owner]
	if n > 0 && (own > h.size && own+n > b.share || b.used > h.size && b.used+n > b.limit) {
		return problemf(http.StatusServiceUnavailable, "too many large requests and answers are in progress: retry, and send and read faster")
	}
	h.size += n
	b.used += n
	if b.byOwner[h.owner] += n; b.byOwner[h.owner] == 0 {
		delete(b.byOwner, h.owner)
	}
	return nil
}

func (h *holding) release() { _ = h.resize(0) }

// requestBody is the body of a request. Its size is bounded, it must arrive within bodyTimeout, and
// its memory counts until the request has been answered.
type requestBody struct {
	io.ReadCloser
	held    *holding
	size    int
	whole   io.ReadCloser // without a bound, for streams
	control *http.ResponseController
	isBegun bool
}

func (b *requestBody) Read(into []byte) (int, error) {
	if !b.isBegun {
		b.isBegun = true
		_ = b.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	n, err := b.ReadCloser.Read(into)
	b.size += n
	if full := b.held.resize(b.size); full != nil {
		_ = b.control.SetReadDeadline(time.Now()) // the answer would wait for more of the body
		return n, full
	}
	if err != nil { // also at the end: later, a read notices that the client is gone
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
