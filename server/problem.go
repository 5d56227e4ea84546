package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
)

// problem is the body of an answer with an error (RFC 9457).
type problem struct {
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

func (p *problem) Error() string { return p.Detail }

func problemf(status int, format string, arguments ...any) *problem {
	return &problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, arguments...)}
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
	{pgagui.ErrStaleVersion, http.StatusPreconditionFailed},
	{pgagui.ErrInvalidEvents, http.StatusBadRequest},
	{pgagui.ErrInvalidArgument, http.StatusBadRequest},
	{pgagui.ErrUnknownShape, http.StatusBadRequest},
	{pgagui.ErrLimitExceeded, http.StatusRequestEntityTooLarge},
	{pgagui.ErrFoldLimit, http.StatusUnprocessableEntity},
	{pgagui.ErrQuarantined, http.StatusUnprocessableEntity},
	{pgagui.ErrPermissionDenied, http.StatusForbidden},
	{errShutdown, http.StatusServiceUnavailable},
}

// problemOfError returns what an error tells a client. isOurs is true if it is an error of
// the server, which operators should know.
func problemOfError(err error) (known *problem, isOurs bool) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known, false
	case errors.As(err, &tooLarge):
		return problemf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit), false
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problemf(http.StatusRequestTimeout, "the body did not arrive within %s", bodyTimeout), false
	}
	for _, kind := range statusOf {
		if errors.Is(err, kind.kind) {
			known = problemf(kind.status, "%v", err)
			var refused *pgagui.Error
			if errors.As(err, &refused) {
				known.Detail, known.Code, known.Hint, known.CurrentVersion = refused.Message, refused.Code, refused.Hint, refused.CurrentVersion
			}
			return known, kind.status == http.StatusForbidden // the roles are not as they should be
		}
	}
	var refused *pgconn.PgError
	var unconnected *pgconn.ConnectError
	switch {
	case errors.As(err, &refused) && strings.HasPrefix(refused.Code, "22"): // data exception: a text with NUL, for example
		known = problemf(http.StatusBadRequest, "%s", refused.Message)
		known.Code, known.Hint = refused.Code, refused.Hint
		return known, false
	case refused != nil && pgagui.IsTransient(err):
		known = problemf(http.StatusServiceUnavailable, "the database cannot do this now: %s", refused.Message)
		known.Code, known.Hint = refused.Code, refused.Hint
		return known, true
	case errors.As(err, &unconnected):
		return problemf(http.StatusServiceUnavailable, "the database cannot be reached"), true
	}
	return problemf(http.StatusInternalServerError, "the request failed, see the log of the server"), true
}

// answerError answers a request that failed.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // the client is gone
	}
	known, isOurs := problemOfError(err)
	if isOurs {
		s.options.Logger.Error("a request failed", "route", r.Pattern, "error", err)
	}
	if known.Status == http.StatusServiceUnavailable || known.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, known.Status, "application/problem+json", known)
}

// answerRefusal answers a request that access refuses.
func (s *Server) answerRefusal(w http.ResponseWriter, _ *http.Request, refusal *access.Refusal) {
	s.metrics.refused.WithLabelValues(fmt.Sprint(refusal.Status())).Inc()
	refusal.SetHeaders(w.Header())
	writeJSON(w, refusal.Status(), "application/problem+json", problemf(refusal.Status(), "%s", refusal.Reason))
}
