package core

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/door"
)

// statement is a statement of a Store.
type statement struct {
	sql       string
	arguments []any
}

// sender is a pgagui.DB that passes on statements in one message, and returns the results once all
// have arrived. So after a failure no caller has seen a part of them, and the statements can be sent
// to another server.
type sender func(context.Context, ...statement) ([]*result, error)

func (send sender) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	statements := make([]statement, batch.Len())
	for i, queued := range batch.QueuedQueries {
		statements[i] = statement{queued.SQL, queued.Arguments}
	}
	list, err := send(ctx, statements...)
	return &results{list, err}
}

func (send sender) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	list, err := send(ctx, statement{sql, arguments})
	return (&results{list, err}).Query()
}

func (send sender) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	list, err := send(ctx, statement{sql, arguments})
	return (&results{list, err}).QueryRow()
}

func (send sender) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	list, err := send(ctx, statement{sql, arguments})
	return (&results{list, err}).Exec()
}

// run sends statements to a server in one message, which makes one transaction of them.
func run(ctx context.Context, on pgagui.DB, statements ...statement) ([]*result, error) {
	batch := &pgx.Batch{}
	for _, s := range statements {
		batch.Queue(s.sql, s.arguments...)
	}
	sent := door.Counted(on).SendBatch(ctx, batch)
	list := make([]*result, len(statements))
	for i := range list {
		rows, err := sent.Query()
		if err == nil {
			list[i], err = read(rows)
		}
		if err != nil {
			_ = sent.Close() // it says the same
			return nil, err
		}
	}
	return list, sent.Close()
}

// result is what a server has answered to a statement.
type result struct {
	fields []pgconn.FieldDescription
	values [][][]byte // by row and column
	tag    pgconn.CommandTag
}

// read reads an answer to its end.
func read(rows pgx.Rows) (*result, error) {
	defer rows.Close()
	all := &result{}
	for rows.Next() {
		if all.fields == nil {
			all.fields = slices.Clone(rows.FieldDescriptions())
		}
		row := slices.Clone(rows.RawValues())
		size := 0
		for _, value := range row {
			size += len(value)
		}
		text := make([]byte, 0, size) // one allocation for all values
		for i, value := range row {
			if value != nil {
				begin := len(text)
				text = append(text, value...)
				row[i] = text[begin:len(text):len(text)]
			}
		}
		all.values = append(all.values, row)
	}
	all.tag = rows.CommandTag()
	return all, rows.Err()
}

// results are pgx.BatchResults that have arrived.
type results struct {
	list []*result
	err  error
}

var errNoResult = errors.New("more results were read than statements were sent")

func (r *results) next() (*result, error) {
	if r.err != nil {
		return nil, r.err
	}
	if len(r.list) == 0 {
		return nil, errNoResult
	}
	first := r.list[0]
	r.list = r.list[1:]
	return first, nil
}

func (r *results) Exec() (pgconn.CommandTag, error) {
	first, err := r.next()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return first.tag, nil
}

func (r *results) Query() (pgx.Rows, error) {
	first, err := r.next()
	if err != nil {
		return nil, err
	}
	return &resultRows{result: first, types: pgtype.NewMap(), at: -1}, nil
}

func (r *results) QueryRow() pgx.Row { return door.FirstRow(r.Query()) }

func (r *results) Close() error { return r.err }
func (r *results) Tx() pgx.Tx   { return nil }

// resultRows are the pgx.Rows of an answer.
type resultRows struct {
	*result
	types *pgtype.Map // of its own, because the connection serves others by now
	at    int
	err   error
	// plans are those of the columns for destinations of the types scanned: rows of one answer are
	// scanned alike.
	plans   []pgtype.ScanPlan
	scanned []reflect.Type
}

func (r *resultRows) Next() bool {
	r.at++
	return r.err == nil && r.at < len(r.values)
}

func (r *resultRows) Scan(destinations ...any) error {
	row := r.values[r.at]
	if len(destinations) != len(row) {
		return fmt.Errorf("a row has %d values for %d destinations", len(row), len(destinations))
	}
	if r.plans == nil {
		r.plans, r.scanned = make([]pgtype.ScanPlan, len(row)), make([]reflect.Type, len(row))
	}
	for i, destination := range destinations {
		if destination == nil {
			continue
		}
		if kind := reflect.TypeOf(destination); r.scanned[i] != kind {
			r.plans[i], r.scanned[i] = r.types.PlanScan(r.fields[i].DataTypeOID, r.fields[i].Format, destination), kind
		}
		if err := r.plans[i].Scan(row[i], destination); err != nil {
			r.err = pgx.ScanArgError{ColumnIndex: i, FieldName: r.fields[i].Name, Err: err}
			return r.err
		}
	}
	return nil
}

func (r *resultRows) Values() ([]any, error) {
	values := make([]any, len(r.fields))
	for i, field := range r.fields {
		if err := r.types.Scan(field.DataTypeOID, field.Format, r.values[r.at][i], &values[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (r *resultRows) RawValues() [][]byte                          { return r.values[r.at] }
func (r *resultRows) FieldDescriptions() []pgconn.FieldDescription { return r.fields }
func (r *resultRows) CommandTag() pgconn.CommandTag                { return r.tag }
func (r *resultRows) Err() error                                   { return r.err }
func (r *resultRows) Close()                                       {}
func (r *resultRows) Conn() *pgx.Conn                              { return nil }
func (r *resultRows) TypeMap() *pgtype.Map                         { return r.types }
