package pgagui

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// What the database refuses, one error for each SQLSTATE of class UI, ErrInvalidArgument for 22023 and ErrPermissionDenied for 42501. Test for them with errors.Is.
var (
	ErrUnknownThread     = errors.New("unknown thread")
	ErrUnknownRun        = errors.New("unknown run")
	ErrUnknownParent     = errors.New("unknown parent run")
	ErrParentInProgress  = errors.New("parent run is in progress")
	ErrRunEnded          = errors.New("run has already ended")
	ErrRunInProgress     = errors.New("another run is in progress")
	ErrConflictingRepeat = errors.New("repeated call differs from the log")
	ErrInvalidEvents     = errors.New("events are not a JSON array of objects with a type")
	ErrRunIDInUse        = errors.New("run id is in use or not that of RUN_STARTED")
	ErrLogImmutable      = errors.New("the log is append-only")
	ErrLimitExceeded     = errors.New("over a limit")
	ErrKeyCollision      = errors.New("thread key stands for another thread")
	ErrUnknownShape      = errors.New("unknown shape of compacted events")
	ErrThreadErased      = errors.New("thread was erased")
	ErrLogDamaged        = errors.New("the log is damaged")
	ErrRunCutOff         = errors.New("run was cut off")
	ErrLogRewound        = errors.New("the log was rewound")
	ErrStaleVersion      = errors.New("session state was saved by another writer meanwhile")
	ErrUnknownCheckpoint = errors.New("unknown checkpoint")
	ErrOtherThread       = errors.New("RUN_STARTED names another thread")
	ErrQuarantined       = errors.New("run in quarantine")
	ErrFoldLimit         = compaction.ErrLimit
	ErrInvalidArgument   = errors.New("invalid argument")
	ErrPermissionDenied  = errors.New("permission denied")
)

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
	"UI021": ErrOtherThread,
	"UI022": ErrQuarantined,
	"UI023": ErrFoldLimit,
	"22023": ErrInvalidArgument,
	"42501": ErrPermissionDenied, // the role has not the right, or, under row-level security, not the scope
	// Raised by PostgreSQL itself while it reads the events, before any function of the schema sees them: no JSON, no UTF-8,
	// a character that the database cannot hold, nested deeper than the server's stack.
	"22P02": ErrInvalidEvents,
	"22021": ErrInvalidEvents,
	"22P05": ErrInvalidEvents,
	"54001": ErrLimitExceeded,
}

// Error is a refusal. It is one of the Err variables of this package to errors.Is, and, where the database refused, its *pgconn.PgError
// to errors.As.
type Error struct {
	// Kind is one of the Err variables.
	Kind error
	// Message says what was refused, naming thread and run.
	Message string
	// Detail and Hint say more about it and what to do; they may be empty.
	Detail, Hint string
	// CurrentVersion comes with ErrStaleVersion: the version of the document that there is now, 0 when there is none.
	CurrentVersion int64

	cause *pgconn.PgError
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + ". " + strings.TrimSuffix(e.Detail, ".")
}

func (e *Error) Unwrap() []error {
	if e.cause == nil { // or errors.As would find a *pgconn.PgError that is nil
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// refusal makes an *Error of what the database refused, and of what was not sent to it, and leaves any other error as it is.
func refusal(err error) error {
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
	refused := &Error{Kind: kind, Message: cause.Message, Detail: cause.Detail, Hint: cause.Hint, cause: cause}
	if version, isVersion := strings.CutPrefix(cause.Detail, "current version "); isVersion && kind == ErrStaleVersion {
		refused.CurrentVersion, _ = strconv.ParseInt(version, 10, 64)
		refused.Detail = "" // the message says it
	}
	return refused
}

// refusalOf is the same for a call among many.
func refusalOf(answer db.AppendManyRow) error {
	return refusal(&pgconn.PgError{
		Severity: "ERROR", Code: answer.ErrorCode, Message: answer.Error, Detail: answer.Detail, Hint: answer.Hint,
	})
}
