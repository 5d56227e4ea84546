package door

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/problem"
)

// errTooLong is the error of a statement that took longer than it may.
var errTooLong = problem.Errorf(http.StatusUnprocessableEntity, "the database took longer than a request that reads may take: ask for less of it, with a smaller limit, "+
	"for a part of the thread, or for fewer words; the operator of the server can raise --read-timeout, and run the jobs that make reads of long threads fast")

// tooLong returns errTooLong in place of an error if it is why the statement has ended.
func tooLong(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errTooLong) {
		return cause
	}
	return err
}

// guarded is a database whose statements pass the door.
type guarded struct {
	database    pgagui.DB
	connections *shares // whose share of its owner each statement waits for. nil: none
	owner       access.Identity
	counts      bool // the statements of a request that reads (see Door.Reading) have a time limit, and their rows take memory as they arrive
}

// Counted returns a database whose rows take memory as they arrive, and whose statements have a time limit, if the context of the
// statement is that of a request that reads (see Door.Reading).
func Counted(database pgagui.DB) pgagui.DB { return guarded{database: database, counts: true} }

// begin returns the context of a statement and what its rows count in, nil if they do not count. When the time of the statement is over,
// the driver asks the server to cancel it. end is called when the rows are read, perhaps more than once.
func (g guarded) begin(ctx context.Context) (statement context.Context, held *Holding, end func(), err error) {
	release := func() {}
	if g.connections != nil {
		if release, err = g.connections.take(ctx, g.owner); err != nil {
			return ctx, nil, nil, err
		}
	}
	var of reading
	if g.counts {
		of = readingOf(ctx)
	}
	held = of.counted()
	if of.held == nil || of.held.StatementTime <= 0 {
		return ctx, held, sync.OnceFunc(release), nil
	}
	statement, cancel := context.WithTimeoutCause(ctx, of.held.StatementTime, errTooLong)
	return statement, held, sync.OnceFunc(func() {
		cancel()
		release()
	}), nil
}

func (g guarded) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	ctx, _, end, err := g.begin(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer end()
	tag, err := g.database.Exec(ctx, sql, arguments...)
	return tag, tooLong(ctx, err)
}

func (g guarded) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	ctx, held, end, err := g.begin(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := g.database.Query(ctx, sql, arguments...)
	return guardRows(ctx, rows, err, held, end)
}

func (g guarded) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	return FirstRow(g.Query(ctx, sql, arguments...))
}

func (g guarded) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	ctx, held, end, err := g.begin(ctx)
	if err != nil {
		return failedResults{err}
	}
	return guardedResults{g.database.SendBatch(ctx, batch), ctx, held, end}
}

// guardedResults are the results of a guarded database.
type guardedResults struct {
	pgx.BatchResults
	ctx  context.Context
	held *Holding
	end  func()
}

func (r guardedResults) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	return tag, tooLong(r.ctx, err)
}

func (r guardedResults) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	return guardRows(r.ctx, rows, err, r.held, func() {})
}

func (r guardedResults) QueryRow() pgx.Row { return FirstRow(r.Query()) }

func (r guardedResults) Close() error {
	defer r.end()
	return tooLong(r.ctx, r.BatchResults.Close())
}

// failedResults are those of a batch that was not sent.
type failedResults struct{ err error }

func (r failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, r.err }
func (r failedResults) Query() (pgx.Rows, error)         { return nil, r.err }
func (r failedResults) QueryRow() pgx.Row                { return FirstRow(nil, r.err) }
func (r failedResults) Close() error                     { return r.err }
func (r failedResults) Tx() pgx.Tx                       { return nil }

func guardRows(ctx context.Context, rows pgx.Rows, err error, held *Holding, end func()) (pgx.Rows, error) {
	if err != nil {
		end()
		return rows, tooLong(ctx, err)
	}
	return &guardedRows{Rows: rows, held: held, ctx: ctx, end: end}, nil
}

// guardedRows take memory for each row, if held is set. If there is none, the connection is closed: to close the rows would be to
// receive the rest.
type guardedRows struct {
	pgx.Rows
	held *Holding
	ctx  context.Context
	end  func() // when they are closed, or read to their end
	err  error
}

func (r *guardedRows) Close() {
	r.Rows.Close()
	r.end()
}

func (r *guardedRows) Next() bool {
	if r.err != nil {
		return false
	}
	if !r.Rows.Next() {
		r.end()
		return false
	}
	if r.held == nil {
		return true
	}
	size := 0
	for _, value := range r.RawValues() {
		size += len(value)
	}
	if r.err = r.held.Read(size); r.err != nil {
		_ = r.Conn().PgConn().Conn().Close()
		r.Close()
	}
	return r.err == nil
}

func (r *guardedRows) Err() error {
	if r.err != nil {
		return r.err
	}
	return tooLong(r.ctx, r.Rows.Err())
}

// FirstRow returns the first of the rows of a query, or its error.
func FirstRow(rows pgx.Rows, err error) pgx.Row { return firstRow{rows, err} }

type firstRow struct {
	rows pgx.Rows
	err  error
}

func (r firstRow) Scan(destinations ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(destinations...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
