// Package testdb gives every test a fresh database, quickly enough that each test can have one: a copy of a template, which is
// dropped some time after the test. All test processes of a run share one server:
//
//   - the one of PGAGUI_TEST_DATABASE_URL, when set: its user must be allowed to create databases;
//   - else a container, when PGAGUI_TEST_POSTGRES is docker:TAG, for instance docker:17;
//   - else a private server of this machine, of the major version PGAGUI_TEST_POSTGRES when that is set.
//
// The command withserver starts the server once for all packages. A plain "go test ./some/package" starts one of its own.
//
// With PGAGUI_TEST_KEEP set, the databases of failed tests stay, and withserver keeps its server until it is interrupted.
package testdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

// connectionsPerPool is few, so that many tests can run at once.
const connectionsPerPool = 8

// Main runs the tests of a package and stops the server afterwards, if the package started one:
//
//	func TestMain(m *testing.M) { testdb.Main(m) }
//
// A package that does without it leaves no server behind either, only less orderly. Goroutines that the tests left running
// are a failure.
func Main(m *testing.M) {
	code := m.Run()
	err := closeServer()
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testdb:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Empty makes a database with nothing in it and returns its address.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, mustServer(t), "template0")
}

// Connect returns a pool of connections to a database, which is closed when the test ends.
func Connect(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal("testdb:", err)
	}
	config.MaxConns = connectionsPerPool
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal("testdb:", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			pool.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Error("testdb: a connection of the pool is still in use: rows or a transaction were not closed")
		}
	})
	return pool
}

// create makes a database from a template, given as SQL, and returns its address.
func create(t testing.TB, server *testServer, template string) string {
	t.Helper()
	name := databaseName(t)
	identifier := pgx.Identifier{name}.Sanitize()
	// A copy of the files would take less by itself, but needs checkpoints, which write what all other tests have changed.
	if _, err := server.pool.Exec(t.Context(), "create database "+identifier+" template "+template+" encoding 'UTF8' strategy wal_log"); err != nil {
		t.Fatal("testdb:", err)
	}
	address := server.databaseURL(name)
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("PGAGUI_TEST_KEEP") != "" && !server.private {
			t.Logf("testdb: kept the database: psql '%s'", address)
			return
		}
		if err := server.drop(identifier); err != nil {
			t.Error("testdb:", err)
		}
	})
	return address
}

// dropsAtOnce is how many databases are dropped at a time. Each drop makes the server write what its databases have changed; of those
// dropped right after, that is nothing.
const dropsAtOnce = 12

// drop drops a database that no test needs any more, now or with later ones.
func (s *testServer) drop(identifier string) error {
	s.dropping.Lock()
	defer s.dropping.Unlock()
	s.unused = append(s.unused, identifier)
	if len(s.unused) < dropsAtOnce {
		return nil
	}
	return s.dropUnused()
}

func (s *testServer) dropUnused() (err error) {
	for _, identifier := range s.unused {
		_, dropErr := s.pool.Exec(context.Background(), "drop database "+identifier+" with (force)")
		err = errors.Join(err, dropErr)
	}
	s.unused = nil
	return err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName names the test that the database belongs to, in the 63 bytes that PostgreSQL allows.
func databaseName(t testing.TB) string {
	test := notInNames.ReplaceAllString(strings.ToLower(t.Name()), "_")
	return fmt.Sprintf("pgagui_%.42s_%.10s", test, strings.ToLower(rand.Text()))
}

func mustServer(t testing.TB) *testServer {
	t.Helper()
	server, err := sharedServer()
	if err != nil {
		t.Fatal("testdb:", err)
	}
	return server
}

// testServer is the server of this process's tests.
type testServer struct {
	address string        // of the maintenance database
	pool    *pgxpool.Pool // on the maintenance database
	private bool          // started by this process
	stop    func() error

	dropping sync.Mutex
	unused   []string // names of databases, as SQL
}

var (
	sharedServer = sync.OnceValues(openServer)
	// closeServer is what Main calls in the end; it does nothing unless a test needed the server.
	closeServer = func() error { return nil }
)

func openServer() (*testServer, error) {
	ctx := context.Background()
	server := &testServer{address: os.Getenv(URLVariable), stop: func() error { return nil }}
	if server.address == "" {
		var err error
		if server.address, server.stop, err = StartServer(ctx); err != nil {
			return nil, err
		}
		server.private = true
	}
	if err := requireURL(server.address); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, server.address)
	if err != nil {
		return nil, errors.Join(err, server.stop())
	}
	server.pool = pool
	closeServer = func() error {
		var err error
		if !server.private {
			err = server.dropUnused()
		}
		pool.Close()
		return errors.Join(err, server.stop())
	}
	return server, nil
}
