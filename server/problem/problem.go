// Package problem says what an error tells a client.
//
// Code that refuses a request returns an [Errorf] with one of the statuses of HTTP, which all faces
// know how to tell in their protocol. [Of] gives a status to any other error: to the refusals of the
// database, and to failures of the server, which a client learns no more of than that.
package problem

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
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

// statusOf are the statuses of the refusals of the database. Others are errors of the server.
var statusOf = []struct {
	kind   error
	status int
}{
	{pgagui.ErrNotFound, http.StatusNotFound},
	{pgagui.ErrUnknownParent, http.StatusNotFound},
	{pgagui.ErrThreadErased, http.StatusGone},
	{pgagui.ErrRunInProgress, http.StatusConflict},
	{pgagui.ErrParentInProgress, http.StatusConflict},
	{pgagui.ErrConflictingRepeat, http.StatusConflict},
	{pgagui.ErrRunIDInUse, http.StatusConflict},
	{pgagui.ErrRunEnded, http.StatusConflict},
	{pgagui.ErrRunCutOff, http.StatusConflict},
	{pgagui.ErrLogRewound, http.StatusConflict},
	{pgagui.ErrKeyCollision, http.StatusConflict},
	{pgagui.ErrThreadHeld, http.StatusConflict},
	{pgagui.ErrOtherThread, http.StatusConflict},
	{pgagui.ErrLogImmutable, http.StatusConflict},
	{pgagui.ErrPatchFailed, http.StatusUnprocessableEntity},
	{pgagui.ErrLogDamaged, http.StatusUnprocessableEntity},
	{pgagui.ErrMoved, http.StatusServiceUnavailable},
	{pgagui.ErrSearchOff, http.StatusNotImplemented},
	{pgagui.ErrStaleVersion, http.StatusPreconditionFailed},
	{pgagui.ErrInvalidEvents, http.StatusBadRequest},
	{pgagui.ErrInvalidArgument, http.StatusBadRequest},
	{pgagui.ErrUnknownShape, http.StatusBadRequest},
	{pgagui.ErrLimitExceeded, http.StatusRequestEntityTooLarge},
	{pgagui.ErrFoldLimit, http.StatusUnprocessableEntity},
	{pgagui.ErrOtherHistory, http.StatusGone},
	{pgagui.ErrQuarantined, http.StatusUnprocessableEntity},
	{pgagui.ErrPermissionDenied, http.StatusForbidden},
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
	for _, kind := range statusOf {
		if errors.Is(err, kind.kind) {
			known = Errorf(kind.status, "%v", err)
			if refused, ok := errors.AsType[*pgagui.Error](err); ok {
				known.Detail, known.Code, known.Hint, known.CurrentVersion = refused.Message, refused.Code, hintOf(refused.Code, refused.Hint), refused.CurrentVersion
			}
			// Roles and nodes that are not as they should be, and damage, are for operators.
			return known, kind.status == http.StatusForbidden || kind.status == http.StatusServiceUnavailable || kind.kind == pgagui.ErrLogDamaged
		}
	}
	var refused *pgconn.PgError
	var unconnected *pgconn.ConnectError
	switch {
	case errors.As(err, &refused) && strings.HasPrefix(refused.Code, "22"): // data exception: a text with NUL, for example
		known = Errorf(http.StatusBadRequest, "%s", refused.Message)
		known.Code, known.Hint = refused.Code, hintOf(refused.Code, refused.Hint)
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
