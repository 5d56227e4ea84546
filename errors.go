package pgagui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// ErrNotFound is the family of the errors that say that something does not exist: errors.Is(err,
// ErrNotFound) is true for ErrUnknownThread, ErrUnknownRun, ErrUnknownCheckpoint and those below that
// have no SQLSTATE, because the database returns no row.
var ErrNotFound = errors.New("not found")

// The reasons why the database refuses a call, one for each SQLSTATE of class UI,
// ErrInvalidArgument for 22023 and ErrPermissionDenied for 42501. Test for them with errors.Is.
var (
	ErrUnknownThread       = absent("unknown thread")                                       // UI001
	ErrUnknownRun          = absent("unknown run")                                          // UI002
	ErrUnknownParent       = errors.New("unknown parent run")                               // UI003
	ErrParentInProgress    = errors.New("parent run is in progress")                        // UI004
	ErrRunEnded            = errors.New("run has already ended")                            // UI005
	ErrRunInProgress       = errors.New("another run is in progress")                       // UI006
	ErrConflictingRepeat   = errors.New("repeated call differs from the log")               // UI007
	ErrInvalidEvents       = errors.New("invalid events or invalid JSON")                   // UI008
	ErrRunIDInUse          = errors.New("run id is in use or not that of RUN_STARTED")      // UI009
	ErrLogImmutable        = errors.New("the log is append-only")                           // UI010
	ErrLimitExceeded       = errors.New("over a limit")                                     // UI011
	ErrKeyCollision        = errors.New("thread key belongs to another thread")             // UI012
	ErrUnknownShape        = errors.New("unknown shape of compacted events")                // UI013
	ErrThreadErased        = errors.New("thread was erased")                                // UI014
	ErrLogDamaged          = errors.New("the log is damaged")                               // UI015
	ErrRunCutOff           = errors.New("run was cut off")                                  // UI016
	ErrLogRewound          = errors.New("the log was rewound")                              // UI017
	ErrStaleVersion        = errors.New("another writer has saved the session state since") // UI018
	ErrUnknownCheckpoint   = absent("unknown checkpoint")                                   // UI019
	ErrPatchFailed         = errors.New("the JSON Patch fails")                             // UI020
	ErrOtherThread         = errors.New("RUN_STARTED names another thread")                 // UI021
	ErrQuarantined         = errors.New("run in quarantine")                                // UI022
	ErrFoldLimit           = compaction.ErrLimit                                            // UI023
	ErrOtherHistory        = errors.New("position of another history of transactions")      // UI024
	ErrThreadHeld          = errors.New("thread is held")                                   // UI025
	ErrSearchOff           = errors.New("search is off")                                    // UI026
	ErrMoved               = errors.New("another node of the cluster has the thread")       // UI027
	ErrInvalidArgument     = errors.New("invalid argument")                                 // 22023
	ErrPermissionDenied    = errors.New("permission denied")                                // 42501
	ErrPreparedStatement   = errors.New("a pooler lost a prepared statement")               // 26000, 42P05
	ErrUnknownSessionState = absent("unknown session state")                                // no SQLSTATE
	ErrUnknownInput        = absent("no input beside the events")                           // no SQLSTATE
	ErrUnknownMessage      = absent("unknown message")                                      // no SQLSTATE
	ErrUnknownAttachment   = absent("unknown attachment")                                   // no SQLSTATE
	ErrUnrelatedRuns       = absent("the runs have no run in common")                       // no SQLSTATE
)

// absence is an error of the family ErrNotFound.
type absence struct{ text string }

func absent(text string) error { return &absence{text} }

func (a *absence) Error() string { return a.text }
func (a *absence) Unwrap() error { return ErrNotFound }

var errorOfState = map[string]error{
	"UI001": ErrUnknownThread,
	"UI002": ErrUnknownRun,
	"UI003": ErrUnknownParent,
	"UI004": ErrParentInProgress,
	"UI005": ErrRunEnded,
	"UI006": ErrRunInProgress,
	"UI007": ErrConflictingRepeat,
	"UI008": ErrInvalidEvents,
	"UI009": ErrRunIDInUse,
	"UI010": ErrLogImmutable,
	"UI011": ErrLimitExceeded,
	"UI012": ErrKeyCollision,
	"UI013": ErrUnknownShape,
	"UI014": ErrThreadErased,
	"UI015": ErrLogDamaged,
	"UI016": ErrRunCutOff,
	"UI017": ErrLogRewound,
	"UI018": ErrStaleVersion,
	"UI019": ErrUnknownCheckpoint,
	"UI020": ErrPatchFailed,
	"UI021": ErrOtherThread,
	"UI022": ErrQuarantined,
	"UI023": ErrFoldLimit,
	"UI024": ErrOtherHistory,
	"UI025": ErrThreadHeld,
	"UI026": ErrSearchOff,
	"UI027": ErrMoved,
	"22023": ErrInvalidArgument,
	"42501": ErrPermissionDenied, // the role lacks the right, or, under row-level security, the scope
	// PostgreSQL itself raises these when it reads the events, before a function of the schema sees
	// them: invalid JSON, invalid UTF-8, a character that the database cannot store, JSON that is
	// nested deeper than the server's stack.
	"22P02": ErrInvalidEvents,
	"22021": ErrInvalidEvents,
	"22P05": ErrInvalidEvents,
	"54001": ErrLimitExceeded,
	// Of a pooler in transaction mode: the next statement runs on another connection of the server.
	"26000": ErrPreparedStatement,
	"42P05": ErrPreparedStatement,
}

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
	for unsent, kind := range map[error]error{rawjson.ErrInvalid: ErrInvalidEvents, rawjson.ErrTooDeep: ErrLimitExceeded} {
		if errors.Is(err, unsent) {
			return &Error{Kind: kind, Message: "a JSON text of the call cannot be stored: " + unsent.Error()}
		}
	}
	var cause *pgconn.PgError
	if !errors.As(err, &cause) {
		return err
	}
	kind, known := errorOfState[cause.Code]
	if !known {
		return err
	}
	refused := &Error{
		Kind: kind, Code: cause.Code, Message: cause.Message, Detail: cause.Detail, Hint: cause.Hint, cause: cause,
	}
	if cause.Code == "22021" { // its words are about bytes of the connection
		refused.Message = `an id or a text of the call holds NUL (\u0000) or is not UTF-8: PostgreSQL cannot store it`
	}
	if kind == ErrPreparedStatement {
		refused.Hint = "Add default_query_exec_mode=exec to the address of the pool (or set it in its pgx.ConnConfig): a pooler in transaction mode, such as PgBouncer, loses prepared statements"
	}
	if kind == ErrStaleVersion && json.Unmarshal([]byte(cause.Detail), &struct{ CurrentVersion *int64 }{&refused.CurrentVersion}) == nil {
		refused.Detail = "" // the message says it
	}
	if kind == ErrMoved {
		refused.Detail = "" // it is for programs
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
