package address

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// NewPool is pgxpool.NewWithConfig for an address that may be a pooler's. A pooler in transaction mode gives each transaction another
// connection of the server, so what was prepared on one is unknown on the next: through a pooler the pool prepares nothing, unless
// the address says how to execute. The first connection of the pool finds out.
func NewPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	if saysHowToExecute(config.ConnString()) {
		return pgxpool.NewWithConfig(ctx, config)
	}
	var isDirect, isPooled atomic.Bool
	config.BeforeConnect = func(_ context.Context, connection *pgx.ConnConfig) error {
		if isPooled.Load() {
			connection.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		return nil
	}
	config.PrepareConn = func(ctx context.Context, connection *pgx.Conn) (isUsable bool, err error) {
		if isDirect.Load() {
			return true, nil
		}
		if !isPooled.Load() {
			process, err := processOf(ctx, connection)
			if err != nil {
				return false, err
			}
			isDirect.Store(process == connection.PgConn().PID())
			isPooled.Store(!isDirect.Load())
		}
		// One that was opened before this was known is closed, and the pool opens another one.
		return isDirect.Load() || connection.Config().DefaultQueryExecMode == pgx.QueryExecModeExec, nil
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func saysHowToExecute(address string) bool {
	return strings.Contains(address, "default_query_exec_mode")
}

// processOf is the process of the server that answers. Without a pooler it is the one that PgConn.PID names.
func processOf(ctx context.Context, database interface {
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}) (process uint32, err error) {
	err = database.QueryRow(ctx, `select pg_catalog.pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&process)
	return process, err
}

// ErrNoSession means that a connection goes through a pooler in transaction mode.
var ErrNoSession = errors.New("this is the address of a pooler in transaction mode, such as PgBouncer, which keeps no lock: use the address of the server itself")

// CheckSession fails with ErrNoSession if another client gets the server's process of the connection between its statements.
func CheckSession(ctx context.Context, connection *pgx.Conn) error {
	process, err := processOf(ctx, connection)
	if err != nil || process == connection.PgConn().PID() {
		return err
	}
	other, err := pgx.ConnectConfig(ctx, connection.Config())
	if err != nil {
		return err
	}
	defer other.Close(context.WithoutCancel(ctx))
	taken, err := processOf(ctx, other)
	if err == nil && taken == process {
		return ErrNoSession
	}
	return err
}
