package access

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

// requestWith returns a request with these Authorization headers.
func requestWith(authorization ...string) *http.Request {
	request := httptest.NewRequest(http.MethodGet, "/threads/t?secret=query", nil)
	for _, value := range authorization {
		request.Header.Add("Authorization", value)
	}
	return request
}

func bearer(token string) *http.Request { return requestWith("Bearer " + token) }

// wantRefusal checks that err is a refusal of a kind for a reason.
func wantRefusal(t *testing.T, err, kind error, reason string) *Refusal {
	t.Helper()
	refusal, isRefusal := errors.AsType[*Refusal](err)
	if !isRefusal || !errors.Is(err, kind) || refusal.Reason != reason {
		t.Fatalf("got %v, want %v: %s", err, kind, reason)
	}
	return refusal
}

func mustAuthenticate(t *testing.T, authenticator Authenticator, r *http.Request) Identity {
	t.Helper()
	identity := must.Have(authenticator.Authenticate(r))(t)
	return identity
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	testfile.Write(t, file, []byte(text))
	return file
}

// logTo returns an Audit whose lines end up in the buffer.
func logTo(buffer *bytes.Buffer) Audit {
	return Audit{Logger: slog.New(slog.NewJSONHandler(buffer, nil))}
}

// serve returns the answer of a handler.
func serve(handler http.Handler, r *http.Request) *http.Response {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return recorder.Result()
}

var noContent = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
