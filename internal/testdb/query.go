package testdb

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Exec(ctx context.Context, statement string, arguments ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, query string, arguments ...any) pgx.Row
}

// Exec executes a statement.
func Exec(t testing.TB, db Querier, statement string, arguments ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), statement, arguments...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Ask returns the value of a query.
func Ask[T any](t testing.TB, db Querier, query string, arguments ...any) (value T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query, arguments...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// State returns the SQLSTATE of an error, or "" if it has none.
func State(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}
