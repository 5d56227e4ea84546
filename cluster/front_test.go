package cluster_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// newFront returns a front of the cluster, in a database with PL/Proxy.
func (c *three) newFront() *pgxpool.Pool {
	c.t.Helper()
	pool := testdb.Connect(c.t, testdb.Empty(c.t))
	var isThere bool
	if err := pool.QueryRow(c.t.Context(), `select exists (select from pg_available_extensions where name = 'plproxy')`).Scan(&isThere); err != nil {
		c.t.Fatal(err)
	}
	if !isThere {
		testneeds.Skip(c.t, testneeds.PLProxy, "the server has no PL/Proxy")
	}
	c.makeFront(pool)
	return pool
}

func (c *three) makeFront(pool *pgxpool.Pool) {
	c.t.Helper()
	var text bytes.Buffer
	if err := c.Front(c.t.Context(), &text); err != nil {
		c.t.Fatal(err)
	}
	if path := os.Getenv("FRONT_OUT"); path != "" {
		os.WriteFile(path, text.Bytes(), 0o600)
	}
	if _, err := pool.Exec(c.t.Context(), text.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
		c.t.Fatal(err)
	}
}

func TestFront(t *testing.T) {
	c := newThree(t, nil)
	front := c.newFront()
	_ = front
}
