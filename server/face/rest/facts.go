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

// getSearch returns the messages whose texts match a query.
func (s handler) getSearch(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	query := q.Text("q")
	options := pgagui.SearchOptions{Role: q.OneOf("role", "user", "assistant", "tool"), Since: q.Time("since"), Cursor: q.Text("cursor"), Limit: q.Limit()}
	if query == "" {
		q.Refuse("q", "the words to search")
	}
	if err := q.Check(); err != nil {
		return err
	}
	page, err := s.Tenant(r.Context()).Search(r.Context(), query, options)
	if err != nil {
		return err
	}
	return face.Answer(w, page)
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
