// Package snapshot reads a database as of one point in time.
package snapshot

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// options begin a transaction that lasts, and is idle, as long as the work in it takes.
var options = pgx.TxOptions{BeginQuery: "begin isolation level repeatable read read only;\n" + db.AllowIdleTransaction}

// Read calls work with a transaction that sees the database as of one point in time. The timeouts of the server for transactions do
// not end it, because work computes between its statements.
func Read(ctx context.Context, pool *pgxpool.Pool, work func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, options, work)
}
