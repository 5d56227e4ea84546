package protocol

import (
	_ "embed"
	"fmt"
)

//go:embed errors.json
var errorSource []byte

// ErrorTable is what errors.json says, in its order. README.md describes the members.
type ErrorTable struct {
	Statuses []struct {
		Status int
		GRPC   string
	}
	Refusals []Refusal
	States   []State
}

// A Refusal is an error that has a name in Go.
type Refusal struct {
	Name, Family, Text, Cause, Remedy, SQL, HTTP, CLI string
	States                                            []string
	Status, Exit                                      int
	ForOperators                                      bool
}

// A State is an SQLSTATE of PostgreSQL, or the class of several, that has no name in Go. Code and message are what they begin with.
type State struct {
	Code, Message, Meaning, Retry, CLI string
	Exit                               int
}

// Errors returns the table of this checkout. What refers to nothing does not compile; this looks for what is missing.
func Errors() *ErrorTable {
	table := &ErrorTable{}
	if err := strictly(errorSource, table); err != nil {
		panic(fmt.Errorf("errors.json: %w", err)) // a test reads it
	}
	for i := range table.Refusals {
		r := &table.Refusals[i]
		if r.Name == "" || r.Text == "" || r.Status == 0 || r.States != nil && (r.Cause == "" || r.Remedy == "") {
			panic(fmt.Sprintf("errors.json: %q lacks its name, text, status, cause or remedy", r.Name))
		}
		if r.Exit == 0 {
			r.Exit = 4 // refused by the database
		}
	}
	return table
}
