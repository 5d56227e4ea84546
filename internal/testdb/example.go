package testdb

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Example is Pool for an Example function, which has no testing.TB. The caller calls drop in the end. It
// panics if there is no database.
func Example() (pool *pgxpool.Pool, drop func()) {
	e := &example{}
	return Pool(e), func() {
		for i := len(e.cleanups) - 1; i >= 0; i-- {
			e.cleanups[i]()
		}
	}
}

// example is as much of a testing.TB as Pool needs.
type example struct {
	testing.TB
	cleanups []func()
}

func (e *example) Helper()                  {}
func (e *example) Name() string             { return "Example" }
func (e *example) Context() context.Context { return context.Background() }
func (e *example) Cleanup(cleanup func())   { e.cleanups = append(e.cleanups, cleanup) }
func (e *example) Failed() bool             { return false }
func (e *example) Error(arguments ...any)   { panic(fmt.Sprintln(arguments...)) }
func (e *example) Fatal(arguments ...any)   { panic(fmt.Sprintln(arguments...)) }
func (e *example) Logf(string, ...any)      {}
func (e *example) Skip(arguments ...any)    { panic(fmt.Sprintln(arguments...)) }
