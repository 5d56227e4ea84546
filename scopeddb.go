package pgagui

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
)

// scopedDB names the scope of each statement, for row-level security: it sets agui.scope in the same message to the server, which makes one
// transaction of both where none is open. So neither takes a round trip of its own, and the setting is gone when the connection serves another one.
type scopedDB struct {
	db    DB
	scope string
}

// inScope returns what makes statements for the threads of a scope.
func inScope(database DB, scope string, setsScope bool) db.DBTX {
	if setsScope {
		return scopedDB{database, scope}
	}
	return database
}

// queriesIn returns the queries for the threads of a scope.
func queriesIn(database DB, scope string, setsScope bool) *db.Queries {
	return db.New(inScope(database, scope, setsScope))
}

func (d scopedDB) send(ctx context.Context, sql string, arguments []any) (pgx.BatchResults, error) {
	var batch pgx.Batch
	batch.Queue(`select pg_catalog.set_config('agui.scope', $1, true)`, d.scope)
	batch.Queue(sql, arguments...)
	results := d.db.SendBatch(ctx, &batch)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // it says the same
		return nil, err
	}
	return results, nil
}

func (d scopedDB) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	results, err := d.send(ctx, sql, arguments)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := results.Exec()
	if closeErr := results.Close(); err == nil {
		err = closeErr // that of the commit
	}
	return tag, err
}

func (d scopedDB) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	results, err := d.send(ctx, sql, arguments)
	if err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &scopedRows{Rows: rows, results: results}, nil
}

func (d scopedDB) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	rows, err := d.Query(ctx, sql, arguments...)
	return firstRow{rows, err}
}

// scopedRows are the rows of a statement, with the end of its transaction: the connection is free, and a change committed, when they are closed.
type scopedRows struct {
	pgx.Rows
	results  pgx.BatchResults
	isClosed bool
	err      error
}

func (r *scopedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *scopedRows) Close() {
	r.Rows.Close()
	if !r.isClosed {
		r.isClosed = true
		r.err = r.results.Close()
	}
}

func (r *scopedRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// firstRow is the first of rows.
type firstRow struct {
	rows pgx.Rows
	err  error
}

func (r firstRow) Scan(destinations ...any) error {
	if r.err != nil {
		return r.err
	}
	_, err := pgx.CollectOneRow(r.rows, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(destinations...)
	})
	return err
}
