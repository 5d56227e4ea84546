package testdb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

const (
	templatePrefix = "pgagui_test_template_"

	// templateLock is held by the process that makes or removes templates. A template in use is locked too, by its name.
	templateLock = 0x61677569_74657374 // "aguitest"
)

// Template is a database that tests get copies of. It is made once for all processes, when a test first needs it.
type Template struct {
	name    string
	install func(ctx context.Context, databaseURL string) error
	made    func() error
	// lock is open as long as this process runs: its lock shows other processes that the template is in use. Without a reference to
	// it, garbage collection closes it.
	lock *pgx.Conn
}

// NewTemplate describes a template that install fills. The contents say what install does, for instance the SQL that it executes:
// when they change, another template is made.
func NewTemplate(contents string, install func(ctx context.Context, databaseURL string) error) *Template {
	t := &Template{name: fmt.Sprintf("%s%.12x", templatePrefix, sha256.Sum256([]byte(contents))), install: install}
	t.made = sync.OnceValue(t.make)
	return t
}

// New makes a copy of the template and returns its address.
func (t *Template) New(test testing.TB) string {
	test.Helper()
	server := mustServer(test)
	if err := t.made(); err != nil {
		test.Fatal("testdb:", err)
	}
	return create(test, server, pgx.Identifier{t.name}.Sanitize())
}

// make makes the template on the server of the tests, unless another process has made it.
func (t *Template) make() (err error) {
	server, err := sharedServer()
	if err != nil {
		return err
	}
	ctx := context.Background()

	connection, err := pgx.Connect(ctx, server.address)
	if err != nil {
		return err
	}
	t.lock = connection
	if _, err := connection.Exec(ctx, `select pg_advisory_lock($1)`, int64(templateLock)); err != nil {
		return err
	}
	defer func() {
		_, unlockErr := connection.Exec(ctx, `select pg_advisory_unlock($1)`, int64(templateLock))
		err = errors.Join(err, unlockErr)
	}()
	if _, err := connection.Exec(ctx, `select pg_advisory_lock_shared(hashtextextended($1, 0))`, t.name); err != nil {
		return err
	}
	if err := dropUnusedTemplates(ctx, connection, t.name); err != nil {
		return fmt.Errorf("drop old template databases: %w", err)
	}

	var finished bool
	err = connection.QueryRow(ctx, `select datistemplate from pg_database where datname = $1`, t.name).Scan(&finished)
	if finished || (err != nil && !errors.Is(err, pgx.ErrNoRows)) {
		return err
	}
	identifier := pgx.Identifier{t.name}.Sanitize()
	for _, statement := range []string{
		"drop database if exists " + identifier + " with (force)", // left unfinished
		"create database " + identifier + " template template0 encoding 'UTF8'",
	} {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := t.install(ctx, server.databaseURL(t.name)); err != nil {
		return fmt.Errorf("fill the template database: %w", err)
	}
	// A database that someone is connected to cannot be copied.
	_, err = connection.Exec(ctx, "alter database "+identifier+" with is_template true allow_connections false")
	return err
}

// dropUnusedTemplates drops the templates of other contents, except those that another process uses now.
func dropUnusedTemplates(ctx context.Context, connection *pgx.Conn, keep string) error {
	rows, err := connection.Query(ctx, `select datname from pg_database where starts_with(datname, $1) and datname <> $2`,
		templatePrefix, keep)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		var unused bool
		if err := connection.QueryRow(ctx, `select pg_try_advisory_lock(hashtextextended($1, 0))`, name).Scan(&unused); err != nil {
			return err
		}
		if !unused {
			continue
		}
		identifier := pgx.Identifier{name}.Sanitize()
		for _, statement := range []string{
			"alter database " + identifier + " with is_template false",
			"drop database " + identifier + " with (force)",
		} {
			if _, err := connection.Exec(ctx, statement); err != nil {
				return err
			}
		}
		if _, err := connection.Exec(ctx, `select pg_advisory_unlock(hashtextextended($1, 0))`, name); err != nil {
			return err
		}
	}
	return nil
}

// databaseURL is the address of another database of the server.
func (s *testServer) databaseURL(name string) string {
	address, err := url.Parse(s.address)
	if err != nil {
		panic(err) // openServer has checked it
	}
	address.Path = "/" + name
	return address.String()
}
