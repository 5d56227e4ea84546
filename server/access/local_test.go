package access

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

func TestLocalOnly(t *testing.T) {
	handler := LocalOnly(Audit{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, noContent)
	status := func(host string, origins ...string) int {
		request := requestWith()
		request.Host = host
		request.Header["Origin"] = origins
		return serve(handler, request).StatusCode
	}
	for _, host := range []string{"localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080"} {
		if got := status(host); got != http.StatusNoContent {
			t.Errorf("Host %s: %d", host, got)
		}
	}
	for _, host := range []string{
		"", "example.com", "example.com:8080", "localhost.example.com", "localhost.", "127.0.0.1.nip.io", "127.1", "0.0.0.0:80", "[::]:80", "[::1",
		"::1", "[fe80::1]:80", "10.0.0.1", "127.0.0.2", "localhost@example.com", "[::ffff:127.0.0.1]", "localhost:80:80", "2130706433",
	} {
		if got := status(host); got != http.StatusForbidden {
			t.Errorf("Host %s: %d", host, got)
		}
	}
	for _, origin := range []string{"http://localhost", "http://localhost:3000", "https://127.0.0.1:1", "http://[::1]:3000"} {
		if got := status("localhost:8080", origin); got != http.StatusNoContent {
			t.Errorf("Origin %s: %d", origin, got)
		}
	}
	for _, origin := range []string{
		"", "null", "https://example.com", "http://localhost.example.com", "http://localhost@example.com", "http://example.com/localhost", "localhost",
		"file://", "chrome-extension://localhost", "http://[::2]", "http://\x00",
	} {
		if got := status("localhost:8080", origin); got != http.StatusForbidden {
			t.Errorf("Origin %q: %d", origin, got)
		}
	}
	if got := status("localhost", "http://localhost", "https://example.com"); got != http.StatusForbidden {
		t.Errorf("a second Origin: %d", got)
	}
}

func TestCheckLoopback(t *testing.T) {
	for _, address := range []string{"localhost:80", "127.0.0.1:0", "127.8.9.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"} {
		must.Report(t, CheckLoopback(address))
	}
	for _, address := range []string{"", ":80", "0.0.0.0:80", "[::]:80", "example.com:80", "10.0.0.1:80", "127.0.0.1", "::1:80:", "[::ffff:10.0.0.1]:80"} {
		if err := CheckLoopback(address); err == nil {
			t.Errorf("%q passed", address)
		}
	}
}
