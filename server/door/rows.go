package door

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
)

// Counted returns a database whose rows take memory as they arrive, if the context of the statement is that of a request that reads
// (see Door.Reading).
func Counted(database pgagui.DB) pgagui.DB { return counted{database} }

type counted struct{ pgagui.DB }

func (c counted) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	rows, err := c.DB.Query(ctx, sql, arguments...)
	return countRows(ctx, rows, err)
}

func (c counted) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	rows, err := c.Query(ctx, sql, arguments...)
	return firstRow{rows, err}
}

func (c counted) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	return countedResults{c.DB.SendBatch(ctx, batch), ctx}
}

// countedResults are results whose rows count.
type countedResults struct {
	pgx.BatchResults
	ctx context.Context
}

func (r countedResults) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	return countRows(r.ctx, rows, err)
}

func (r countedResults) QueryRow() pgx.Row {
	rows, err := r.Query()
	return firstRow{rows, err}
}

func countRows(ctx context.Context, rows pgx.Rows, err error) (pgx.Rows, error) {
	if held := readingOf(ctx); held != nil && err == nil {
		return &countedRows{Rows: rows, held: held}, nil
	}
	return rows, err
}

// countedRows take memory for each row. If there is none, the connection is closed: to close the rows would be to receive the rest.
type countedRows struct {
	pgx.Rows
	held *Holding
	err  error
}

func (r *countedRows) Next() bool {
	if r.err != nil || !r.Rows.Next() {
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
	return r.Rows.Err()
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
