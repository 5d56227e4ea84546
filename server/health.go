package server

import (
	"context"
	"net/http"
	"time"
)

// readyTimeout bounds the check of /readyz.
const readyTimeout = 2 * time.Second

// registerHealth registers the endpoints for load balancers, which need no token.
func (s *Server) registerHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_ = answer(w, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := s.ready(ctx); err != nil {
			s.options.Logger.Warn("the server is not ready", "error", err)
			writeJSON(w, http.StatusServiceUnavailable, "application/json", map[string]string{"status": "not ready"})
			return
		}
		_ = answer(w, map[string]string{"status": "ready"})
	})
}

// ready returns why the server cannot take requests now.
func (s *Server) ready(ctx context.Context) error {
	if s.streaming.Err() != nil {
		return errShutdown
	}
	if s.options.Ready == nil {
		return nil
	}
	return s.options.Ready(ctx)
}
