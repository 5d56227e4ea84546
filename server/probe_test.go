package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

func TestProbeIsAStreamInParts(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{
		Heartbeat: 50 * time.Millisecond, Version: "v1", Access: access.Anonymous("acme", access.Read), Limits: access.LimitOptions{Streams: 1, RequestsPerSecond: -1},
	})
	for _, heartbeats := range []string{"-1", "4", "x"} {
		p.json(http.StatusBadRequest, "GET", "/probe?heartbeats="+heartbeats, "")
	}
	answer := p.request("GET", "/probe?heartbeats=2", "")
	p.json(http.StatusTooManyRequests, "GET", "/probe", "") // it counts as a stream
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Header.Get("X-Accel-Buffering") != "no" || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v: %v", err, answer.Header)
	}
	first, rest, _ := strings.Cut(string(text), "\n\n")
	for _, want := range []string{`"version":"v1"`, `"scope":"acme"`, `"rights":"read"`, `"heartbeatSeconds":0.05`, `"pauseSeconds":0.5`} {
		if !strings.Contains(first, want) {
			t.Errorf("%s has no %s", first, want)
		}
	}
	if want := "data: {\"part\":2}\n\n: heartbeat\n\n: heartbeat\n\ndata: {\"part\":3}\n\n"; rest != want {
		t.Errorf("%q", rest)
	}
}
