package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

// corsServer is a server that requires a token.
func corsServer(t *testing.T, origins ...string) http.Handler {
	t.Helper()
	allow := must.Have(CORS(origins, "X-Agent"))(t)
	mux := http.NewServeMux()
	mux.Handle("/", Guard{Authenticator: &JWT{}}.Require(Read, noContent))
	mux.Handle("/open", noContent)
	return allow(mux)
}

func preflight(origin, method, headers string) *http.Request {
	request := httptest.NewRequest(http.MethodOptions, "/threads", nil)
	request.Header.Set("Origin", origin)
	request.Header.Set("Access-Control-Request-Method", method)
	if headers != "" {
		request.Header.Set("Access-Control-Request-Headers", headers)
	}
	return request
}

func TestCORSPreflightNeedsNoToken(t *testing.T) {
	server := corsServer(t, "https://app.example.com", "http://localhost:3000")
	for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
		answer := serve(server, preflight("https://app.example.com", method, "authorization,cache-control,content-type,idempotency-key,if-match,last-event-id,traceparent,tracestate,x-agent,x-run-id"))
		header := answer.Header
		if answer.StatusCode != http.StatusNoContent || header.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
			header.Get("Access-Control-Allow-Methods") != method || !strings.Contains(header.Get("Access-Control-Allow-Headers"), "authorization") ||
			header.Get("Access-Control-Allow-Credentials") != "true" || !strings.Contains(strings.Join(header.Values("Vary"), ","), "Origin") {
			t.Errorf("%s: %s, %v", method, answer.Status, header)
		}
	}
	for name, request := range map[string]*http.Request{
		"another origin": preflight("https://evil.example.com", "GET", ""),
		"a longer host":  preflight("https://app.example.com.evil.com", "GET", ""),
		"another port":   preflight("http://localhost:3001", "GET", ""),
		"another scheme": preflight("http://app.example.com", "GET", ""),
		"null":           preflight("null", "GET", ""),
		"another header": preflight("https://app.example.com", "GET", "cookie"),
		"another method": preflight("https://app.example.com", "TRACE", ""),
	} {
		if header := serve(server, request).Header; header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", name, header)
		}
	}
}

func TestCORSRequests(t *testing.T) {
	server := corsServer(t, "https://app.example.com")
	request := httptest.NewRequest(http.MethodGet, "/open", nil)
	request.Header.Set("Origin", "https://app.example.com")
	header := serve(server, request).Header
	if header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || header.Get("Access-Control-Expose-Headers") != "Etag, Location, Pgagui-Parent-Run, Pgagui-Position, Retry-After" {
		t.Error(header)
	}
	request.Header.Set("Origin", "https://evil.example.com")
	if header := serve(server, request).Header; header.Get("Access-Control-Allow-Origin") != "" {
		t.Error(header)
	}
}

func TestCORSForAllOriginsHasNoCredentials(t *testing.T) {
	header := serve(corsServer(t, "*"), preflight("https://any.example.com", "GET", "authorization")).Header
	if header.Get("Access-Control-Allow-Origin") != "*" || header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error(header)
	}
}

func TestCORSForAnyPortOfThisMachine(t *testing.T) {
	server := corsServer(t, "http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*")
	for origin, isAllowed := range map[string]bool{
		"http://localhost:3000": true, "http://127.0.0.1:5173": true, "http://[::1]:8081": true,
		"http://localhost.evil.com:3000": false, "https://localhost:3000": false, "http://127.0.0.2:3000": false,
	} {
		if got := serve(server, preflight(origin, "POST", "authorization")).Header.Get("Access-Control-Allow-Origin"); (got == origin) != isAllowed {
			t.Errorf("%s: allowed for %q", origin, got)
		}
	}
}

func TestNoOriginsMeansNoCORS(t *testing.T) {
	answer := serve(corsServer(t), preflight("https://app.example.com", "GET", "authorization"))
	if answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%s, %v", answer.Status, answer.Header)
	}
}

func TestCORSOriginsAreChecked(t *testing.T) {
	for _, origins := range [][]string{
		{"*", "https://a.com"}, {"https://*.example.com"}, {"example.com"}, {"https://a.com/"}, {"https://a.com/path"}, {"https://u@a.com"}, {"null"}, {""},
		{"https://a.com:443"}, {"http://a.com:80"}, {"https://a.com, https://b.com"}, {"https://:80"}, {"https://a.com?"}, {"HTTPS://a.com"}, {"https://a.com#"},
		{"https://a.com:*"}, {"http://localhost:3000:*"}, {"http://*:*"}, {"http://localhost.a.com:*"}, {"http://localhost/:*"}, {"localhost:*"},
	} {
		if _, err := CORS(origins); err == nil || !strings.HasPrefix(err.Error(), "cors: ") {
			t.Errorf("%q: %v", origins, err)
		}
	}
	if _, err := CORS([]string{"https://a.com:8443", "http://[::1]:3000", "capacitor://localhost", "http://a.com:443"}); err != nil {
		t.Error(err)
	}
	if _, err := CORS([]string{"https://a.com"}, "*"); err == nil {
		t.Error("all request headers were allowed")
	}
}
