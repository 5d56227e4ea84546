package rest

import (
	"net/http"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/face"
)

// getWaiting returns what waits for an answer in all threads.
func (s handler) getWaiting(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.WaitingOptions{Agent: q.Text("agent"), Limit: q.Limit()}
	if err := q.Check(); err != nil {
		return err
	}
	waiting, err := s.Tenant(r.Context()).Facts().Waiting(r.Context(), options)
	if err != nil {
		return err
	}
	return face.Answer(w, map[string]any{"waiting": waiting})
}

// defaultPeriod is that of a report without a time.
const defaultPeriod = 7 * 24 * time.Hour

// getReport returns what happened since a time.
func (s handler) getReport(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	since := q.Time("since")
	if err := q.Check(); err != nil {
		return err
	}
	if since.IsZero() {
		since = time.Now().Add(-defaultPeriod)
	}
	report, err := s.Tenant(r.Context()).Facts().Report(r.Context(), since)
	if err != nil {
		return err
	}
	return face.Answer(w, report)
}
