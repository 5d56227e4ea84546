package testdb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/sql/schema"
)

const (
	templatePrefix = "pgagui_test_template_"

	// templateLock is held by the process that makes or removes templates. A template in use is locked too, by its name.
	templateLock = 0x61677569_74657374 // "aguitest"
)

// makeTemplate returns the name of a database that has the schema installed. The name has the hash of the migrations, so
// a template is made once for all processes and remade when the migrations change.
func (s *testServer) makeTemplate(ctx context.Context) (name string, err error) {
	name = fmt.Sprintf("%s%.12x", templatePrefix, sha256.Sum256([]byte(schema.UpSQL(0))))

	// This connection stays open, because its lock shows other processes that the template is in use.
	connection, err := pgx.Connect(ctx, s.address)
	if err != nil {
		return "", err
	}
	if _, err := connection.Exec(ctx, `select pg_advisory_lock($1)`, int64(templateLock)); err != nil {
		return "", err
	}
	defer func() {
		_, unlockErr := connection.Exec(ctx, `select pg_advisory_unlock($1)`, int64(templateLock))
		err = errors.Join(err, unlockErr)
	}()
	if _, err := connection.Exec(ctx, `select pg_advisory_lock_shared(hashtextextended($1, 0))`, name); err != nil {
		return "", err
	}
	if err := dropUnusedTemplates(ctx, connection, name); err != nil {
		return "", fmt.Errorf("drop old template databases: %w", err)
	}

	var finished bool
	err = connection.QueryRow(ctx, `select datistemplate from pg_database where datname = $1`, name).Scan(&finished)
	if finished || (err != nil && !errors.Is(err, pgx.ErrNoRows)) {
		return name, err
	}
	identifier := pgx.Identifier{name}.Sanitize()
	for _, statement := range []string{
		"drop database if exists " + identifier + " with (force)", // left unfinished
		"create database " + identifier + " template template0 encoding 'UTF8'",
	} {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	if err := schema.Up(ctx, s.databaseURL(name)); err != nil {
		return "", fmt.Errorf("install the schema in the template database: %w", err)
	}
	// A database that someone is connected to cannot be copied.
	_, err = connection.Exec(ctx, "alter database "+identifier+" with is_template true allow_connections false")
	return name, err
}

// dropUnusedTemplates drops the templates of other migrations, except those that another process uses now.
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
