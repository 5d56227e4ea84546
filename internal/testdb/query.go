package testdb

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Exec(ctx context.Context, statement string, arguments ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, query string, arguments ...any) pgx.Row
}

// ConnectWith returns a pool of connections to a database, whose configuration the function changes. It is closed when the test ends.
func ConnectWith(t testing.TB, databaseURL string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal("testdb:", err)
	}
	change(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal("testdb:", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Acquire returns a connection of a pool, which is released when the test ends.
func Acquire(t testing.TB, pool *pgxpool.Pool) *pgxpool.Conn {
	t.Helper()
	connection, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal("testdb:", err)
	}
	t.Cleanup(connection.Release)
	return connection
}

// Begin begins a transaction.
func Begin(t testing.TB, db interface {
	Begin(context.Context) (pgx.Tx, error)
}) pgx.Tx {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal("testdb:", err)
	}
	return tx
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

// List returns the values of a query.
func List[T any](t testing.TB, db interface {
	Query(ctx context.Context, query string, arguments ...any) (pgx.Rows, error)
}, query string, arguments ...any) []T {
	t.Helper()
	rows, _ := db.Query(t.Context(), query, arguments...) // CollectRows returns the error
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}

// State returns the SQLSTATE of an error, or "" if it has none.
func State(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}
