package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/problem"
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

// probeFace has the endpoint of "pgagui doctor --server". version is Options.Version.
func probeFace(version string) face.Face {
	const everyone = access.Rights(0)
	return face.Face{Name: "probe", Register: func(to *face.HTTP) {
		to.Handle("GET /probe", everyone, probe{to, version}.get)
	}}
}

type probe struct {
	*face.HTTP
	version string
}

// get answers with a stream that has the headers of all others, and is flushed like them: one event,
// a pause, and a second event. With heartbeats=N, N of them follow, and a last event.
func (s probe) get(w http.ResponseWriter, r *http.Request) error {
	heartbeats := 0
	if text := r.URL.Query().Get("heartbeats"); text != "" {
		var err error
		if heartbeats, err = strconv.Atoi(text); err != nil || heartbeats < 0 || heartbeats > maxProbeHeartbeats {
			return problem.Errorf(http.StatusBadRequest, "heartbeats is %.20q (expected 0 to %d)", text, maxProbeHeartbeats)
		}
	}
	who, _ := access.IdentityFrom(r.Context())
	event := probeEvent{
		Version: s.version, Time: time.Now(), Scope: who.Scope, Subject: who.Subject, Rights: who.Rights,
		HeartbeatSeconds: s.Options.Heartbeat.Seconds(), PauseSeconds: probePause.Seconds(),
	}
	if !who.Expires.IsZero() {
		event.Expires = &who.Expires
	}
	text, err := json.Marshal(event)
	if err != nil {
		return err
	}
	closeStream, ok := s.Guard.OpenStream(w, r)
	if !ok {
		return nil
	}
	defer closeStream()

	writer := s.BeginStream(w, face.FrameFormat{})
	type step struct {
		pause time.Duration
		frame core.Frame
	}
	steps := []step{{0, core.Frame{Event: text}}, {probePause, core.Frame{Event: json.RawMessage(`{"part":2}`)}}}
	for range heartbeats {
		steps = append(steps, step{s.Options.Heartbeat, core.Frame{}})
	}
	if heartbeats > 0 {
		steps = append(steps, step{0, core.Frame{Event: json.RawMessage(`{"part":3}`)}})
	}
	for _, step := range steps {
		select {
		case <-time.After(step.pause):
		case <-r.Context().Done():
			return nil
		case <-s.Streaming().Done():
			panic(http.ErrAbortHandler)
		}
		if !writer.Write(step.frame) || !writer.Flush() {
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}
