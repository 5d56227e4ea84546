package pgagui

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/refusal"
)

// backend is where a Store has its threads: one database, or the nodes of a cluster (cluster.go). It
// decides on which of them a call is made.
type backend interface {
	// of returns the calls for one thread, and ofMany those for many threads at once.
	of(as caller, key live.Key) *db.Queries
	ofMany(as caller) live.Calls
	// lanes are the databases that recorders and followers call one by one. nil: there is one.
	lanes(as caller) live.Lanes
	// split makes a call for n items at the same time on the databases that have their threads, and
	// returns the errors of the items. Those of one thread stay in their order. call returns the items
	// that its database refuses because another one has their threads.
	split(ctx context.Context, as caller, n int, keyOf func(item int) live.Key, call callForItems) []error
	// each makes a call on all databases at the same time. If some do not answer, the error is an
	// *UnansweredError.
	each(ctx context.Context, as caller, call func(ctx context.Context, on part) error) error
	// wrap returns the backend with its calls through other DBs (Store.WrapDB).
	wrap(wrap func(DB) DB) backend
	// positions reads a position of changes.
	positions(text string) (positions, error)
	// nodes are those of a cluster, and nodeOf names the one that has a thread (Store.NodeOf).
	nodes() []Node
	nodeOf(ctx context.Context, as caller, threadID string) (node string, err error)
}

// part is a database of a backend, in a call on all of them.
type part struct {
	*db.Queries
	name   string // empty: there is one
	number int    // from 0
}

type callForItems func(ctx context.Context, on *db.Queries, items []int) (refused []refusedItem, err error)

// refusedItem is an item whose thread another node has. detail is that of UI027; empty: it does not say
// which node.
type refusedItem struct {
	item   int
	detail string
}

// caller says for which scope calls are made, and whether they set agui.scope to it.
type caller struct {
	scope     string
	setsScope bool
}

// statementsOn returns what makes statements on a database. With setsScope each names the scope, for
// row-level security: it sets agui.scope in the same message to the server, which makes one transaction
// of both where none is open. So neither takes a round trip of its own, and the setting is gone when the
// connection serves another one.
func (c caller) statementsOn(database DB) db.DBTX {
	if !c.setsScope {
		return database
	}
	return statements(func(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
		var batch pgx.Batch
		batch.Queue(`select pg_catalog.set_config('agui.scope', $1, true)`, c.scope)
		batch.Queue(sql, arguments...)
		results := database.SendBatch(ctx, &batch)
		_, err := results.Exec()
		var rows pgx.Rows
		if err == nil {
			rows, err = results.Query()
		}
		if err != nil {
			_ = results.Close() // it says the same
			return nil, err
		}
		return &scopedRows{Rows: rows, results: results}, nil
	})
}

func (c caller) queriesOn(database DB) *db.Queries { return db.New(c.statementsOn(database)) }

// oneDatabase is the backend of a Store on one database: a pool, a connection or a transaction.
type oneDatabase struct{ db DB }

func (o oneDatabase) of(as caller, _ live.Key) *db.Queries { return as.queriesOn(o.db) }

func (o oneDatabase) ofMany(as caller) live.Calls { return as.queriesOn(o.db) }

func (oneDatabase) lanes(caller) live.Lanes { return nil }

func (o oneDatabase) split(ctx context.Context, as caller, n int, _ func(int) live.Key, call callForItems) []error {
	_, err := call(ctx, as.queriesOn(o.db), firstNumbers(n))
	return slices.Repeat([]error{err}, n)
}

func (o oneDatabase) each(ctx context.Context, as caller, call func(context.Context, part) error) error {
	return ErrorOf(call(ctx, part{Queries: as.queriesOn(o.db)}))
}

func (o oneDatabase) wrap(wrap func(DB) DB) backend { return oneDatabase{wrap(o.db)} }

func (oneDatabase) positions(text string) (positions, error) { return positions{"": text}, nil }

func (oneDatabase) nodes() []Node { return nil }

func (oneDatabase) nodeOf(context.Context, caller, string) (string, error) { return "", nil }

// gather makes a call on all databases of a Store at the same time, and returns their answers. An error
// that comes with answers is an *UnansweredError.
func gather[T any](ctx context.Context, s *Store, call func(ctx context.Context, on part) (T, error)) (answers []T, err error) {
	all := make([]*T, max(1, len(s.backend.nodes())))
	err = s.backend.each(ctx, s.caller, func(ctx context.Context, on part) error {
		answer, err := call(ctx, on)
		if err == nil {
			all[on.number] = &answer
		}
		return err
	})
	if _, isPartial := errors.AsType[*UnansweredError](err); err != nil && !isPartial {
		return nil, err
	}
	for _, answer := range all {
		if answer != nil {
			answers = append(answers, *answer)
		}
	}
	return answers, err
}

// forAll makes a call for several threads on the databases that have them, and returns the results in
// the order of the threads.
func forAll[T any](
	ctx context.Context, s *Store, n int, threadOf func(item int) string, call func(ctx context.Context, on *db.Queries, items []int) ([]T, error),
) ([]T, error) {
	results := make([]T, n)
	keyOf := func(item int) live.Key { return live.Key{Scope: s.scope, ThreadID: threadOf(item)} }
	errs := s.backend.split(ctx, s.caller, n, keyOf, func(ctx context.Context, on *db.Queries, items []int) ([]refusedItem, error) {
		part, err := call(ctx, on, items)
		if err == nil && len(part) != len(items) {
			err = fmt.Errorf("the database answered for %d of %d threads", len(part), len(items))
		}
		if err == nil {
			for i, item := range items {
				results[item] = part[i]
			}
		}
		return nil, err
	})
	if err := firstError(errs); err != nil {
		return nil, ErrorOf(err)
	}
	return results, nil
}

// splitRows is split for a call that answers with rows, which name their item by a number from 1 on.
// refusalOf says whether a row refuses its item because another database has the thread.
func splitRows[R any](
	ctx context.Context, b backend, as caller, scopes, threadIDs []string, call func(ctx context.Context, on *db.Queries, items []int) ([]R, error),
	numberOf func(*R) *int32, refusalOf func(R) (isRefused bool, detail string),
) (rows []R, errs []error) {
	rowsOf := make([][]R, len(threadIDs))
	keyOf := func(item int) live.Key { return live.Key{Scope: scopes[item], ThreadID: threadIDs[item]} }
	errs = b.split(ctx, as, len(threadIDs), keyOf, func(ctx context.Context, on *db.Queries, items []int) (refused []refusedItem, err error) {
		answer, err := call(ctx, on, items)
		for _, item := range items {
			rowsOf[item] = nil // of an earlier call
		}
		for _, row := range answer {
			number := numberOf(&row)
			item := items[*number-1]
			*number = int32(item + 1)
			rowsOf[item] = append(rowsOf[item], row)
			if isRefused, detail := refusalOf(row); isRefused {
				refused = append(refused, refusedItem{item, detail})
			}
		}
		return refused, err
	})
	for i, err := range errs {
		if err == nil {
			rows = append(rows, rowsOf[i]...)
		}
	}
	return rows, errs
}

// appendMany makes a call of agui.append_many on the databases that have its threads. It returns the
// answers, and the errors of the items that have none.
func appendMany(ctx context.Context, b backend, as caller, params db.AppendManyParams) ([]db.AppendManyRow, []error) {
	return splitRows(ctx, b, as, params.Scopes, params.ThreadIds, func(ctx context.Context, on *db.Queries, items []int) ([]db.AppendManyRow, error) {
		return on.AppendMany(ctx, db.AppendManyParams{
			ThreadIds: pick(params.ThreadIds, items), RunIds: pick(params.RunIds, items), Events: pick(params.Events, items),
			AfterSeqs: pick(params.AfterSeqs, items), Inputs: pick(params.Inputs, items), ParentRunIds: pick(params.ParentRunIds, items),
			Parallel: pick(params.Parallel, items), Scopes: pick(params.Scopes, items),
			Strict: params.Strict, Wait: params.Wait, Durable: params.Durable,
		})
	}, func(row *db.AppendManyRow) *int32 { return &row.CallNo }, func(row db.AppendManyRow) (bool, string) {
		return row.ErrorCode == refusal.Moved.State, row.Detail
	})
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// firstNumbers are 0, 1, 2, … below n.
func firstNumbers(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// pick returns the items with these numbers. No list has none.
func pick[T any](list []T, items []int) (picked []T) {
	if list == nil {
		return nil
	}
	for _, i := range items {
		picked = append(picked, list[i])
	}
	return picked
}

// statements is a db.DBTX made of its Query.
type statements func(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error)

func (s statements) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	return s(ctx, sql, arguments...)
}

func (s statements) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	rows, err := s(ctx, sql, arguments...)
	return firstRow{rows, err}
}

func (s statements) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	rows, err := s(ctx, sql, arguments...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
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
