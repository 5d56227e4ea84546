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
	// smallAnswer is the size up to which answers are not counted in the budget, in bytes.
	smallAnswer = 64 << 10
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

// answerJSON answers with a JSON text, byte for byte. It gives up a client that accepts it too
// slowly. If too many large answers are waiting for their clients, the answer is 503.
func (s *Server) answerJSON(w http.ResponseWriter, r *http.Request, text []byte) error {
	release, err := s.answers.take(r.Context(), len(text))
	if err != nil {
		return err
	}
	defer release()
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
	key, _ := json.Marshal(name)
	o.Write(key)
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

// budget bounds the memory of large answers that wait for their clients. An owner, the identity of a
// request, may have a part of it only, so that the others can go on.
type budget struct {
	limit, share int64

	mu      sync.Mutex
	used    int64
	byOwner map[access.Identity]int64
}

// sharesOfBudget is the number of owners among which the budget is enough for the share of each.
const sharesOfBudget = 4

func newBudget(limit int64) *budget {
	return &budget{limit: limit, share: limit / sharesOfBudget, byOwner: map[access.Identity]int64{}}
}

// take takes memory for the identity of a context until release is called. An answer that is larger than a share is
// possible if its owner has no other.
func (b *budget) take(ctx context.Context, size int) (release func(), err error) {
	if size <= smallAnswer {
		return func() {}, nil
	}
	who, _ := access.IdentityFrom(ctx)
	owner := access.Identity{Scope: who.Scope, Subject: who.Subject, Issuer: who.Issuer}
	n := int64(size)
	b.mu.Lock()
	defer b.mu.Unlock()
	if own := b.byOwner[owner]; own > 0 && own+n > b.share || b.used > 0 && b.used+n > b.limit {
		return nil, problemf(http.StatusServiceUnavailable, "too many large answers are waiting for their clients: retry, and read faster")
	}
	b.used += n
	b.byOwner[owner] += n
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used -= n
		if b.byOwner[owner] -= n; b.byOwner[owner] == 0 {
			delete(b.byOwner, owner)
		}
	}, nil
}

// requestBody is the body of a request. Its size is bounded, and it must arrive within bodyTimeout.
type requestBody struct {
	io.ReadCloser
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
	if err != nil { // also at the end: later, a read notices that the client is gone
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
