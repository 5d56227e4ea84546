package door

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/problem"
)

// errTooLong is the error of a statement that took longer than it may.
var errTooLong = problem.Errorf(http.StatusUnprocessableEntity, "the database took longer than a request that reads may take: ask for less of it, with a smaller limit, "+
	"for a part of the thread, or for fewer words; the operator of the server can raise --read-timeout, and run the jobs that make reads of long threads fast")

// timed returns the context of a statement: that of a request that reads ends when the statement takes too long. The driver then asks
// the server to cancel it. end is called when the rows are read.
func timed(ctx context.Context) (statement context.Context, end func()) {
	if held := readingOf(ctx); held != nil && held.StatementTime > 0 {
		return context.WithTimeoutCause(ctx, held.StatementTime, errTooLong)
	}
	return ctx, func() {}
}

// tooLong returns errTooLong in place of an error if it is why the statement has ended.
func tooLong(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errTooLong) {
		return cause
	}
	return err
}

// Counted returns a database whose rows take memory as they arrive, and whose statements have a time limit, if the context of the
// statement is that of a request that reads (see Door.Reading).
func Counted(database pgagui.DB) pgagui.DB { return counted{database} }

type counted struct{ pgagui.DB }

func (c counted) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	ctx, end := timed(ctx)
	rows, err := c.DB.Query(ctx, sql, arguments...)
	return countRows(ctx, rows, err, end)
}

func (c counted) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	rows, err := c.Query(ctx, sql, arguments...)
	return firstRow{rows, err}
}

func (c counted) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	ctx, end := timed(ctx)
	return countedResults{c.DB.SendBatch(ctx, batch), ctx, end}
}

// countedResults are results whose rows count.
type countedResults struct {
	pgx.BatchResults
	ctx context.Context
	end func()
}

func (r countedResults) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	return tag, tooLong(r.ctx, err)
}

func (r countedResults) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	return countRows(r.ctx, rows, err, func() {})
}

func (r countedResults) Close() error {
	defer r.end()
	return tooLong(r.ctx, r.BatchResults.Close())
}

func (r countedResults) QueryRow() pgx.Row {
	rows, err := r.Query()
	return firstRow{rows, err}
}

func countRows(ctx context.Context, rows pgx.Rows, err error, end func()) (pgx.Rows, error) {
	held := readingOf(ctx)
	switch {
	case held == nil:
		return rows, err
	case err != nil:
		defer end()
		return rows, tooLong(ctx, err)
	}
	return &countedRows{Rows: rows, held: held, ctx: ctx, end: end}, nil
}

// countedRows take memory for each row. If there is none, the connection is closed: to close the rows would be to receive the rest.
type countedRows struct {
	pgx.Rows
	held *Holding
	ctx  context.Context
	end  func()
	err  error
}

func (r *countedRows) Close() {
	r.Rows.Close()
	r.end()
}

func (r *countedRows) Next() bool {
	if r.err != nil {
		return false
	}
	if !r.Rows.Next() {
		r.end()
		return false
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

func (r *countedRows) Err() error {
	if r.err != nil {
		return r.err
	}
	return tooLong(r.ctx, r.Rows.Err())
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
