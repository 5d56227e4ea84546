// Package cli is what the commands share: the connection and the flags of every command, output,
// failures and their exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/sql/schema"
)

// Program is one invocation of pgagui: its input and output, and the flags that all commands share.
type Program struct {
	In       io.Reader
	Out      io.Writer // results
	Messages io.Writer // everything else
	// The terminals behind out and messages, for colors and progress lines; nil if there is none.
	Terminal, MessageTerminal *os.File

	DatabaseURL string
	Scope       string
	JSON        bool
	Wide        bool
}

// AddFlags adds the flags that all commands share to the root of the commands.
func (p *Program) AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.DatabaseURL, "database-url", os.Getenv("DATABASE_URL"),
		"`address` of the database: postgres://user@host/name (default: $DATABASE_URL, then $PGHOST, $PGDATABASE, … as in libpq)")
	flags.Lookup("database-url").DefValue = "" // the environment may hold a password, which help must not show
	flags.Var(&AddressFile{Address: &p.DatabaseURL}, "database-url-file",
		"`file` with the address of the database, which may contain a password (see: pgagui help connection)")
	root.MarkFlagsMutuallyExclusive("database-url", "database-url-file")
	flags.StringVar(&p.Scope, "scope", "", "`name` of the tenant or user whose threads to use (see: pgagui help scopes)")
	flags.BoolVar(&p.JSON, "json", false, "print results as JSON")
	flags.BoolVar(&p.Wide, "wide", false, "do not cut the cells of tables to the width of the terminal")
}

// Connect opens a pool with up to this many connections. It fails if the database is not reachable
// or does not have the schema of this program.
func (p *Program) Connect(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	pool, err := OpenPool(ctx, p.DatabaseURL, connections)
	if err != nil {
		return nil, err
	}
	if err := CheckSchema(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// CheckSchema fails if the database is not reachable or does not have the schema of this program.
func CheckSchema(ctx context.Context, pool *pgxpool.Pool) error {
	err := schema.Check(ctx, pool)
	var refusal *pgconn.PgError
	if err == nil || IsUnfit(err) || errors.As(err, &refusal) && !isUnavailable(err) {
		return err
	}
	return &UnavailableError{Err: err}
}

// OpenPool opens a pool without a check of the schema.
func OpenPool(ctx context.Context, databaseURL string, connections int) (*pgxpool.Pool, error) {
	if _, err := address.Parse(databaseURL); err != nil {
		return nil, &UnavailableError{Err: err}
	}
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, &UnavailableError{Err: err}
	}
	config.MaxConns = int32(connections)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pgagui"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, &UnavailableError{Err: err}
	}
	return pool, nil
}

// WithStore calls work with the store of the scope, on a single connection.
func (p *Program) WithStore(ctx context.Context, work func(*pgagui.Store) error) error {
	pool, err := p.Connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	return work(p.Store(pool))
}

// Store returns the store of the scope.
func (p *Program) Store(pool *pgxpool.Pool) *pgagui.Store {
	return pgagui.New(pool, &pgagui.Config{Scope: p.Scope})
}

// OneThread requires a single argument, the thread id.
func OneThread(_ *cobra.Command, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("expected one thread id, got %s", CountText(len(arguments), "argument"))
	}
	return nil
}
