package pgagui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/refusal"
)

// Error is a call that the database refused. errors.Is finds one of the Err variables of this
// package in it, and errors.As the *pgconn.PgError, if the database sent one.
type Error struct {
	// Kind is one of the Err variables.
	Kind error
	// Code is the SQLSTATE, for example UI005. Empty if the error does not come from the database.
	Code string
	// Message says what was refused, and names the thread and the run.
	Message string
	// Detail says more about the cause, Hint what to do. They may be empty.
	Detail, Hint string
	// CurrentVersion comes with ErrStaleVersion: the current version of the document, 0 if there is
	// none.
	CurrentVersion int64
	// Event is the place in the call of the event that was refused, from 1 on. 0: it was no single one.
	Event int

	cause *pgconn.PgError
}

// Error returns message, detail and hint as one line.
func (e *Error) Error() string {
	text := e.Message
	for _, more := range []string{strings.TrimSuffix(e.Detail, "."), e.Hint} {
		if more != "" {
			text = strings.TrimSuffix(text, ".") + ". " + more
		}
	}
	return text
}

// Unwrap returns the kind, and the error of the database if there is one.
func (e *Error) Unwrap() []error {
	if e.cause == nil { // or errors.As would find a *pgconn.PgError that is nil
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// ErrorOf makes an *Error of the error of a call that a function of the schema refused, and returns
// any other error as it is. The methods of this package have done that; it is for programs that
// call functions of the schema with pgx or sqlc.
func ErrorOf(err error) error {
	for _, unsent := range []struct {
		cause, kind error
		code        string
	}{{rawjson.ErrUnstorable, ErrInvalidEvents, "22P05"}, {rawjson.ErrInvalid, ErrInvalidEvents, ""}, {rawjson.ErrTooDeep, ErrLimitExceeded, ""}} {
		if errors.Is(err, unsent.cause) {
			return &Error{Kind: unsent.kind, Code: unsent.code, Message: "a JSON text of the call cannot be stored: " + unsent.cause.Error()}
		}
	}
	var cause *pgconn.PgError
	if !errors.As(err, &cause) {
		return err
	}
	kind := refusal.OfState[cause.Code]
	if kind == nil {
		return err
	}
	refused := &Error{
		Kind: kind, Code: cause.Code, Message: cause.Message, Detail: cause.Detail, Hint: cmp.Or(cause.Hint, kind.SQL), cause: cause,
	}
	if cause.Code == "22021" { // its words are about bytes of the connection
		refused.Message = `an id or a text of the call holds NUL (\u0000) or is not UTF-8: PostgreSQL cannot store it`
	}
	if json.Valid([]byte(cause.Detail)) { // it is for programs; that of ErrMoved is a list
		refused.Detail = ""
		_ = json.Unmarshal([]byte(cause.Detail), &struct {
			CurrentVersion *int64
			Event          *int
		}{&refused.CurrentVersion, &refused.Event})
	}
	return refused
}

// IsTransient reports whether a retry of a call that failed with err may succeed: the database
// cannot be reached, starts, stops, is currently a standby, or lacks a resource; another transaction
// was in the way; a timeout ended the call; or the schema was upgraded meanwhile. Recorders and
// followers retry such errors themselves.
func IsTransient(err error) bool { return live.IsTransient(err) }

// errorOfCall is the same for a call of append_many.
func errorOfCall(answer db.AppendManyRow) error {
	return ErrorOf(&pgconn.PgError{
		Severity: "ERROR", Code: answer.ErrorCode, Message: answer.Error, Detail: answer.Detail, Hint: answer.Hint,
	})
}

// unknown is an error of the family ErrNotFound for which the database returns no row.
func unknown(kind error, format string, arguments ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}
