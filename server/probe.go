package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/pgagui/pgagui/server/access"
)

// probePause is the time between the two events of a probe. A proxy that buffers delivers both at
// once.
const probePause = 500 * time.Millisecond

// maxProbeHeartbeats bounds how long a probe can last.
const maxProbeHeartbeats = 3

// probeEvent is what GET /probe says of the server, and of the token.
type probeEvent struct {
	Version          string        `json:"version,omitempty"`
	Time             time.Time     `json:"time"`
	Scope            string        `json:"scope"`
	Subject          string        `json:"subject"`
	Rights           access.Rights `json:"rights"`
	Expires          *time.Time    `json:"expires,omitempty"`
	HeartbeatSeconds float64       `json:"heartbeatSeconds"`
	PauseSeconds     float64       `json:"pauseSeconds"`
}

// registerProbe registers the endpoint of "pgagui doctor --server". Its stream has the headers of
// all others, and is flushed like them: one event, a pause, and a second event. With heartbeats=N,
// N of them follow, and a last event.
func (s *Server) registerProbe(mux *http.ServeMux) {
	const everyone = access.Rights(0)
	s.handle(mux, "GET /probe", everyone, func(w http.ResponseWriter, r *http.Request) error {
		heartbeats := 0
		if text := r.URL.Query().Get("heartbeats"); text != "" {
			var err error
			if heartbeats, err = strconv.Atoi(text); err != nil || heartbeats < 0 || heartbeats > maxProbeHeartbeats {
				return problemf(http.StatusBadRequest, "heartbeats is %.20q (expected 0 to %d)", text, maxProbeHeartbeats)
			}
		}
		who, _ := access.IdentityFrom(r.Context())
		event := probeEvent{
			Version: s.options.Version, Time: time.Now(), Scope: who.Scope, Subject: who.Subject, Rights: who.Rights,
			HeartbeatSeconds: s.options.Heartbeat.Seconds(), PauseSeconds: probePause.Seconds(),
		}
		if !who.Expires.IsZero() {
			event.Expires = &who.Expires
		}
		text, err := json.Marshal(event)
		if err != nil {
			return err
		}
		closeStream, ok := s.guard.OpenStream(w, r)
		if !ok {
			return nil
		}
		defer closeStream()

		writer := s.beginStream(w, frameFormat{})
		type step struct {
			pause time.Duration
			frame frame
		}
		steps := []step{{0, frame{event: text}}, {probePause, frame{event: json.RawMessage(`{"part":2}`)}}}
		for range heartbeats {
			steps = append(steps, step{s.options.Heartbeat, frame{}})
		}
		if heartbeats > 0 {
			steps = append(steps, step{0, frame{event: json.RawMessage(`{"part":3}`)}})
		}
		for _, step := range steps {
			select {
			case <-time.After(step.pause):
			case <-r.Context().Done():
				return nil
			case <-s.streaming.Done():
				panic(http.ErrAbortHandler)
			}
			if !writer.write(step.frame) || !writer.flush() {
				panic(http.ErrAbortHandler)
			}
		}
		return nil
	})
}
