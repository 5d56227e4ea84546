// Command goose brings a database up to date with goose: the tables of an application and the schema of pgagui, in
// one chain of migrations.
//
//	DATABASE_URL=postgres://… go run ./examples/goose
//
// The address is that of the server itself: a pooler in transaction mode loses the statements that pgx prepares.
//
// The folder migrations has those of the application. Those of pgagui come from its module, so no copy of them is in
// the repository of the application.
package main

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"
	"log"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/pgagui/pgagui/sql/schema"
)

//go:embed migrations
var own embed.FS

// A step is a migration of the chain that brings pgagui from one version to that of the next step, or to the newest.
type step struct {
	number int64 // in the chain
	from   uint  // the version of pgagui that databases have before it
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
	chain, err := open(url, steps)
	if err != nil {
		return err
	}
	defer chain.Close()
	if _, err := chain.Up(ctx); err != nil {
		return err
	}
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	return schema.Check(ctx, connection) // says if a step is missing
}

func open(url string, steps []step) (*goose.Provider, error) {
	files, err := fs.Sub(own, "migrations")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, goose.WithGoMigrations(migrationsOf(steps)...))
}

// migrationsOf are the steps as migrations in Go, each in a transaction.
func migrationsOf(steps []step) (migrations []*goose.Migration) {
	for i, step := range steps {
		up, down := schema.UpSQL(step.from), schema.DownSQL(step.from)
		if i+1 < len(steps) {
			up = strings.TrimSuffix(up, schema.UpSQL(steps[i+1].from))
			down = strings.TrimPrefix(down, schema.DownSQL(steps[i+1].from))
		}
		migrations = append(migrations, goose.NewGoMigration(step.number, run(up), run(down)))
	}
	return migrations
}

func run(text string) *goose.GoFunc {
	return &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}}
}
