// Package refusal is the table of errors: what each is called, and what HTTP, the command line and retries make of it. Its source is
// protocol/errors.json.
package refusal

import "strings"

// A Kind is one of the Err variables of package pgagui.
type Kind struct {
	State string // its SQLSTATE; "": it has none, because the database returns no row
	Text  string
	// Family is the error that it is an error of; nil: of none.
	Family *Kind
	Status int // of HTTP
	Exit   int // of the command line

	// SQL is what to do, if the database does not say it. HTTP and CLI are what to do there; "": what the database says.
	SQL, HTTP, CLI string
	// ForOperators: those of a server should know.
	ForOperators bool
}

func (k *Kind) Error() string { return k.Text }

func (k *Kind) Unwrap() error {
	if k.Family == nil {
		return nil // and no *Kind that is nil
	}
	return k.Family
}

// Retry says whether a repetition of a call that failed may succeed.
type Retry int

const (
	// Permanent: each attempt fails.
	Permanent Retry = iota
	// Uncertain: a retry may succeed, or each attempt may fail. The call is retried a few times.
	Uncertain
	// Transient: the connection was lost or could not be opened, the server is starting, stopping or
	// lacks a resource, or another transaction holds a lock. The call is retried until it succeeds.
	Transient
)

// A State is an SQLSTATE that PostgreSQL itself raises and that is no Kind, or the class of several.
type State struct {
	code, message string // what they begin with
	Retry         Retry
	Exit          int
	CLI           string
}

// IsOfValue reports whether an SQLSTATE is of the class of values that the database cannot take: a text with NUL, for example, or a
// cursor that it has not given.
func IsOfValue(state string) bool { return strings.HasPrefix(state, "22") }

// StateOf returns what the table says of an error of PostgreSQL. Of most it says nothing.
func StateOf(code, message string) State {
	for _, state := range states {
		if strings.HasPrefix(code, state.code) && strings.HasPrefix(message, state.message) {
			return state
		}
	}
	return State{}
}
