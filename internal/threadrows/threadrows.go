// Package threadrows reads the rows of a whole thread, and stores them in another database: through
// an archive, or between the nodes of a cluster.
package threadrows

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Read calls table with each table that has rows of a thread, and its columns, and row with each of
// the rows. tables are the tables and columns that the source has. It returns the digests of the
// thread, which [Writer.Finish] compares. The transaction has one snapshot.
func Read(
	ctx context.Context, tx pgx.Tx, key pgtype.UUID, tables rawjson.Binary, table func(name string, columns []string) error, row func([]byte) error,
) (digests map[string]string, err error) {
	var columns map[string][]string
	if err := json.Unmarshal(tables, &columns); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, "select table_name, item from agui_internal.archived_rows($1)", key)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	name := ""
	for rows.Next() {
		values := rows.RawValues()
		if name != string(values[0]) {
			name = string(values[0])
			if err := table(name, columns[name]); err != nil {
				return nil, err
			}
		}
		if err := row(values[1]); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	text, err := db.New(tx).ContentDigests(ctx, db.ContentDigestsParams{ThreadKey: key, Tables: tables})
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &digests)
	return digests, err
}

// maxRows and maxBytes limit a call of the database.
const (
	maxRows  = 1000
	maxBytes = 4 << 20
)

// Writer stores the rows of a thread, which the transaction of its queries has created.
type Writer struct {
	queries *db.Queries
	params  db.UnarchiveRowsParams
	items   bytes.Buffer
	rows    int
}

// NewWriter returns a writer of the rows of the thread with a key.
func NewWriter(queries *db.Queries, key pgtype.UUID) *Writer {
	return &Writer{queries: queries, params: db.UnarchiveRowsParams{ThreadKey: key}}
}

// Table says which table the next rows are of, and their columns.
func (w *Writer) Table(ctx context.Context, name string, columns []string) error {
	err := w.flush(ctx)
	w.params.TableName, w.params.Columns = name, columns
	return err
}

// Row stores a row: a JSON array of the texts of its columns.
func (w *Writer) Row(ctx context.Context, row []byte) error {
	if w.rows == maxRows || w.items.Len()+len(row) > maxBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.items.WriteByte("[,"[min(w.rows, 1)])
	w.items.Write(row)
	w.rows++
	return nil
}

func (w *Writer) flush(ctx context.Context) error {
	if w.rows == 0 {
		return nil
	}
	w.items.WriteByte(']')
	w.params.Items = w.items.Bytes()
	err := w.queries.UnarchiveRows(ctx, w.params)
	w.items.Reset()
	w.rows = 0
	return err
}

// Finish compares what is stored with the digests of the source, over these tables and columns. The
// caller then commits.
func (w *Writer) Finish(ctx context.Context, tables rawjson.Binary, digests map[string]string) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(digests)
	if err != nil {
		return err
	}
	return w.queries.FinishUnarchive(ctx, db.FinishUnarchiveParams{ThreadKey: w.params.ThreadKey, Tables: tables, Digests: rawjson.Binary(text)})
}
