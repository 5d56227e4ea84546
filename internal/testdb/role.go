package testdb

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Role makes a role that is a member of others, executes statements about it, each with one %s for its name, and returns the name. Roles
// belong to the whole server: it is dropped when the test ends.
func Role(t testing.TB, pool *pgxpool.Pool, name, memberOf string, statements ...string) string {
	t.Helper()
	name = fmt.Sprintf("pgagui_%s_%s", name, strings.ToLower(rand.Text()[:8]))
	Exec(t, pool, `create role `+name+` login password 'secret' in role `+memberOf)
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), `drop role `+name); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range statements {
		Exec(t, pool, fmt.Sprintf(statement, name))
	}
	return name
}

// As returns the address of a database with which a role of Role logs in.
func As(t testing.TB, address, role string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(role, "secret")
	return parsed.String()
}
