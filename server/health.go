package server

import (
	"context"
	"net/http"
	"time"

	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
)

// readyTimeout bounds the check of /readyz.
const readyTimeout = 2 * time.Second

// healthFace has the endpoints for load balancers, which need no token. ready is Options.Ready.
func healthFace(ready func(context.Context) error) face.Face {
	return face.Face{Name: "health", Register: func(to *face.HTTP) {
		to.Mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
			_ = face.Answer(w, map[string]string{"status": "ok"})
		})
		to.Mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
			defer cancel()
			var err error
			switch {
			case to.Streaming().Err() != nil:
				err = core.ErrShutdown
			case ready != nil:
				err = ready(ctx)
			}
			if err != nil {
				to.Options.Logger.Warn("the server is not ready", "error", err)
				face.WriteJSON(w, http.StatusServiceUnavailable, "application/json", map[string]string{"status": "not ready"})
				return
			}
			_ = face.Answer(w, map[string]string{"status": "ready"})
		})
	}}
}
