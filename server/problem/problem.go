// Package problem says what an error tells a client.
//
// Code that refuses a request returns an [Errorf] with one of the statuses of HTTP, which all faces
// know how to tell in their protocol. [Of] gives a status to any other error: to the refusals of the
// database, and to failures of the server, which a client learns no more of than that.
package problem

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/refusal"
)

// Details are what a client learns of an error: a problem document (RFC 9457).
type Details struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Code is the SQLSTATE of the database's refusal.
	Code string `json:"sqlstate,omitempty"`
	Hint string `json:"hint,omitempty"`
	// RunID is the run that is in the way of another one.
	RunID string `json:"runId,omitempty"`
	// CurrentVersion is the version of a document that is not the expected one.
	CurrentVersion int64 `json:"currentVersion,omitempty"`
}

// Error returns the detail.
func (d *Details) Error() string { return d.Detail }

// Errorf returns an error with a status of HTTP.
func Errorf(status int, format string, arguments ...any) *Details {
	return &Details{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, arguments...)}
}

// Of returns what an error tells a client. isOurs is true if it is an error of the server, which
// operators should know.
func Of(err error) (known *Details, isOurs bool) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known, false
	case errors.As(err, &tooLarge):
		return Errorf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit), false
	}
	if kind, ok := errors.AsType[*refusal.Kind](err); ok && kind.Status != http.StatusInternalServerError {
		refused, isOfDatabase := errors.AsType[*pgagui.Error](err)
		status := kind.Status
		if isOfDatabase && refusal.IsOfValue(refused.Code) {
			status = http.StatusUnprocessableEntity
		}
		known = Errorf(status, "%v", err)
		if isOfDatabase {
			known.Detail, known.Code, known.CurrentVersion = refused.Message, refused.Code, refused.CurrentVersion
			known.Hint = cmp.Or(kind.HTTP, refused.Hint)
		}
		return known, kind.ForOperators
	}
	var refused *pgconn.PgError
	var unconnected *pgconn.ConnectError
	switch {
	case errors.As(err, &refused) && refusal.IsOfValue(refused.Code):
		known = Errorf(http.StatusUnprocessableEntity, "%s", refused.Message)
		known.Code = refused.Code
		return known, false
	case refused != nil && pgagui.IsTransient(err):
		known = Errorf(http.StatusServiceUnavailable, "the database cannot do this now")
		known.Code = refused.Code // its words may name what is not for clients
		return known, true
	case errors.As(err, &unconnected):
		return Errorf(http.StatusServiceUnavailable, "the database cannot be reached"), true
	}
	return Errorf(http.StatusInternalServerError, "the request failed, see the log of the server"), true
}
