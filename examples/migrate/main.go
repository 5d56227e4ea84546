// Command migrate brings a database up to date with golang-migrate: the tables of an application and the schema of
// pgagui, in one chain of migrations.
//
//	DATABASE_URL=postgres://… go run ./examples/migrate
//
// The address is that of the server itself: a pooler in transaction mode does not keep the lock that golang-migrate takes.
//
// The folder migrations has those of the application. Those of pgagui come from its module, so no copy of them is in
// the repository of the application.
package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"strings"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	driver "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/sql/schema"
)

//go:embed migrations
var own embed.FS

// A step is a migration of the chain that brings pgagui from one version to that of the next step, or to the newest.
type step struct {
	number int  // in the chain
	from   uint // the version of pgagui that databases have before it
}

// An upgrade of the module pgagui is one more step. Its "from" is what "pgagui migrate status" prints before.
var steps = []step{
	{number: 2, from: 0},
	// {number: 4, from: 2},
}

func main() {
	if err := up(context.Background(), os.Getenv("DATABASE_URL"), steps); err != nil {
		log.Fatal(err)
	}
}

// up runs the migrations that are missing, and checks that pgagui is of the version that the module needs.
func up(ctx context.Context, url string, steps []step) error {
	chain, db, err := open(url, steps)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := chain.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return err
	}
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	return schema.Check(ctx, connection) // says if a step is missing
}

func open(url string, steps []step) (*migrate.Migrate, *sql.DB, error) {
	files, err := chainOf(steps)
	if err != nil {
		return nil, nil, err
	}
	source, err := iofs.New(files, "migrations")
	if err != nil {
		return nil, nil, err
	}
	db, err := sql.Open("pgx/v5", url)
	if err != nil {
		return nil, nil, err
	}
	database, err := driver.WithInstance(db, &driver.Config{})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	chain, err := migrate.NewWithInstance("iofs", source, "pgx5", database)
	return chain, db, err
}

// chainOf is the folder migrations with the files of the steps, in memory.
func chainOf(steps []step) (fs.FS, error) {
	files := fstest.MapFS{}
	names, err := fs.Glob(own, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := own.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	for i, step := range steps {
		up, down := schema.UpSQL(step.from), schema.DownSQL(step.from)
		if i+1 < len(steps) {
			up = strings.TrimSuffix(up, schema.UpSQL(steps[i+1].from))
			down = strings.TrimPrefix(down, schema.DownSQL(steps[i+1].from))
		}
		name := fmt.Sprintf("migrations/%04d_pgagui.", step.number)
		files[name+"up.sql"] = &fstest.MapFile{Data: []byte(up)}
		files[name+"down.sql"] = &fstest.MapFile{Data: []byte(down)}
	}
	return files, nil
}
