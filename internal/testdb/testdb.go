// Package testdb gives every test a fresh database with the schema installed, on the server of package devpg/testdb, which says what
// server that is.
package testdb

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/devpg/testdb"
	"github.com/pgagui/pgagui/sql/schema"
)

// What tests need besides a database with the schema.
var (
	// Main runs the tests of a package and stops the server afterwards.
	Main = testdb.Main
	// Empty makes a database with nothing in it and returns its address.
	Empty = testdb.Empty
	// Connect returns a pool of connections to a database, which is closed when the test ends.
	Connect = testdb.Connect
)

var template = sync.OnceValue(func() *testdb.Template {
	return testdb.NewTemplate(schema.InstallSQL(), func(ctx context.Context, databaseURL string) error { return schema.Up(ctx, databaseURL) })
})

// New makes a database with the schema installed and returns its address.
func New(t testing.TB) string {
	t.Helper()
	return template().New(t)
}

// Pool makes a database with the schema installed and returns a pool of connections to it.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Connect(t, New(t))
}

// UpForEver makes a database believe that its server has always been up. Otherwise the lease of a run that a test makes an hour old
// begins with the server, a moment ago.
func UpForEver(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		create or replace function agui_internal.reachable_since() returns timestamptz language sql stable parallel safe
		return (select uptime.up_since from agui_internal.uptime as uptime)`)
	if err != nil {
		t.Fatal("testdb:", err)
	}
}
