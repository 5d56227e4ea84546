package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgagui/pgagui/internal/must"
)

// failing is an Authenticator that returns an error.
type failing struct{ err error }

func (f failing) Authenticate(*http.Request) (Identity, error) { return Identity{}, f.err }

func TestGuardPassesOnTheIdentity(t *testing.T) {
	guard := Guard{Authenticator: Anonymous("acme", Read|Write)}
	var got Identity
	answer := serve(guard.Require(Read|Write, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, _ = IdentityFrom(r.Context())
	})), requestWith())
	if answer.StatusCode != http.StatusOK || got.Scope != "acme" || got.Subject != "anonymous" {
		t.Errorf("%s, %+v", answer.Status, got)
	}
	if _, isThere := IdentityFrom(t.Context()); isThere {
		t.Error("a context has an identity that nobody gave it")
	}
}

func TestARequestThatIsPassedOnCountsOnce(t *testing.T) {
	guard := Guard{Authenticator: Anonymous("a", Read), Limits: NewLimits(LimitOptions{RequestsPerSecond: 0.001, Burst: 2})}
	readers, writers := guard.Require(Read, noContent), guard.Require(Write, noContent)
	outer := guard.Require(0, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("write") {
			writers.ServeHTTP(w, r)
			return
		}
		readers.ServeHTTP(w, r)
	}))
	for i, want := range []int{http.StatusNoContent, http.StatusForbidden, http.StatusTooManyRequests} {
		path := []string{"/", "/?write", "/"}[i]
		if answer := serve(outer, httptest.NewRequest(http.MethodGet, path, nil)); answer.StatusCode != want {
			t.Errorf("request %d: %s, want %d", i, answer.Status, want)
		}
	}
	none := Guard{Authenticator: failing{badToken("r")}}
	if answer := serve(none.Require(0, noContent), requestWith()); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("no token: %s", answer.Status)
	}
}

func TestAnswersToRefusals(t *testing.T) {
	for _, tc := range []struct {
		err        error
		status     int
		challenge  string
		retryAfter string
	}{
		{&Refusal{Kind: ErrNoToken, Reason: "r"}, 401, `Bearer realm="pgagui"`, ""},
		{badToken("the token has expired"), 401, `Bearer realm="pgagui", error="invalid_token", error_description="the token has expired"`, ""},
		{&Refusal{Kind: ErrForbidden, Reason: "missing right: stop", Missing: Stop}, 403,
			`Bearer realm="pgagui", error="insufficient_scope", error_description="missing right: stop"`, ""},
		{&Refusal{Kind: ErrForbidden, Reason: "r"}, 403, "", ""},
		{&Refusal{Kind: ErrLimited, Reason: "r", RetryAfter: 1100 * time.Millisecond}, 429, "", "2"},
		{&Refusal{Kind: ErrUnavailable, Reason: "r", RetryAfter: time.Millisecond}, 503, "", "1"},
		{errors.New("an inner matter"), 500, "", ""},
	} {
		var log bytes.Buffer
		guard := Guard{Authenticator: failing{tc.err}, Audit: logTo(&log)}
		answer := serve(guard.Require(Read, noContent), requestWith())
		header := answer.Header
		if answer.StatusCode != tc.status || header.Get("WWW-Authenticate") != tc.challenge || header.Get("Retry-After") != tc.retryAfter {
			t.Errorf("%v: %s, %v", tc.err, answer.Status, header)
		}
		text, _ := io.ReadAll(answer.Body)
		var problem struct {
			Status        int
			Title, Detail string
		}
		if err := json.Unmarshal(text, &problem); err != nil || problem.Status != tc.status || problem.Title == "" || problem.Detail == "" ||
			header.Get("Content-Type") != "application/problem+json" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v: %v, %v, %s", tc.err, err, header, text)
		}
		if strings.Contains(string(text), "inner matter") || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%v: answer %s, log %s", tc.err, text, log.String())
		}
	}
}

func TestAuditLine(t *testing.T) {
	token, hash := NewToken()
	tokens := must.Have(LoadTokens(writeFile(t, `[{name: viewer, sha256: `+hash+`, scope: acme, rights: [read]}]`)))(t)
	var log bytes.Buffer
	mux := http.NewServeMux()
	mux.Handle("POST /threads/{id}", Guard{Authenticator: tokens, Audit: logTo(&log)}.Require(Write|Read|Delete, noContent))
	unknown, _ := NewToken()
	for token, want := range map[string]map[string]any{
		unknown: {"status": 401.0, "reason": "unknown token"},
		token:   {"status": 403.0, "reason": "missing right: write delete", "subject": "viewer"},
	} {
		log.Reset()
		request := httptest.NewRequest(http.MethodPost, "/threads/thread-7?key=in-the-query", strings.NewReader("in the body"))
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("X-Forwarded-For", "10.9.8.7")
		serve(mux, request)
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, log.String())
		}
		want["level"], want["msg"], want["method"], want["route"], want["remote"] = "WARN", "access refused", "POST", "POST /threads/{id}", "192.0.2.1:1234"
		at := line["time"]
		delete(line, "time")
		if len(line) != len(want) || at == nil {
			t.Errorf("got %v, want %v", line, want)
		}
		for name, value := range want {
			if line[name] != value {
				t.Errorf("%s: got %v, want %v", name, line[name], value)
			}
		}
		for _, secret := range []string{token, token[7:20], "in-the-query", "in the body", "thread-7"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log has %q: %s", secret, log.String())
			}
		}
	}
}

func TestControlCharactersDoNotReachTheLog(t *testing.T) {
	const evil = "a\nlevel=INFO msg=fine\r\x1b[31m\u009b1m\x7f\u2028\u202e\x00b"
	handlers := map[string]func(io.Writer) slog.Handler{
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"JSON": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		"raw":  func(w io.Writer) slog.Handler { return rawHandler{w} },
	}
	for name, handler := range handlers {
		var log bytes.Buffer
		audit := Audit{Logger: slog.New(handler(&log))}
		host := requestWith()
		host.Host = evil
		serve(LocalOnly(audit, noContent), host)
		origin := requestWith()
		origin.Host = "localhost"
		origin.Header["Origin"] = []string{evil + strings.Repeat("x", 5000)}
		serve(LocalOnly(audit, noContent), origin)
		serve(Guard{Authenticator: failing{&Refusal{Kind: ErrBadToken, Reason: "r", Subject: evil}}, Audit: audit}.Require(Read, noContent), requestWith())
		text := log.String()
		if strings.Count(text, "\n") != 3 || strings.ContainsAny(text, "\r\x1b\u009b\x7f\u2028\u202e\x00") || !strings.Contains(text, "fine") || len(text) > 3000 {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// rawHandler quotes nothing.
type rawHandler struct{ w io.Writer }

func (h rawHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h rawHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h rawHandler) WithGroup(string) slog.Handler            { return h }
func (h rawHandler) Handle(_ context.Context, record slog.Record) error {
	line := record.Message
	record.Attrs(func(attribute slog.Attr) bool {
		line += " " + attribute.Key + "=" + attribute.Value.String()
		return true
	})
	_, err := io.WriteString(h.w, line+"\n")
	return err
}

func TestGuardLimitsRequestsAndStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		guard := Guard{
			Authenticator: Anonymous("a", Read), Limits: NewLimits(LimitOptions{RequestsPerSecond: 0.5, Burst: 2, Streams: 1}), Audit: logTo(&log),
		}
		streams := make(chan int, 9)
		var open func()
		handler := guard.Require(Read, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if release, ok := guard.OpenStream(w, r); ok {
				open = release
			}
			streams <- 1
		}))
		if answer := serve(handler, requestWith()); answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status)
		}
		answer := serve(handler, requestWith())
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "5" || !strings.Contains(log.String(), `"reason":"too many open streams: the limit of an identity is 1","subject":"anonymous"`) {
			t.Errorf("a second stream: %s, %v, %s", answer.Status, answer.Header, log.String())
		}
		answer = serve(handler, requestWith())
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "2" || len(streams) != 2 {
			t.Errorf("a third request: %s, %v", answer.Status, answer.Header)
		}
		open()
		time.Sleep(2 * time.Second)
		if answer := serve(handler, requestWith()); answer.StatusCode != http.StatusOK {
			t.Error(answer.Status)
		}
	})
	unlimited := Guard{Authenticator: Anonymous("a", Read)}
	if release, ok := unlimited.OpenStream(nil, requestWith()); !ok {
		t.Error("no limits refused a stream")
	} else {
		release()
	}
}
