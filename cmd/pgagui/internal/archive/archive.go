package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/snapshot"
	"github.com/pgagui/pgagui/internal/threadrows"
)

// Options say which threads [Archive] writes.
type Options struct {
	// Program is the version of the program.
	Program string
	// Threads are ids of threads of the scope; none: all of it, or with AllScopes of all scopes.
	Threads   []string
	Scope     string
	AllScopes bool
	// OlderThan leaves out threads in which something was appended or saved since.
	OlderThan time.Duration

	// OnFailure is called with the error of a thread that was not archived. The others are.
	OnFailure func(error)
	// OnProgress is called after each thread.
	OnProgress func(Archived)
}

// Archived is the result of [Archive].
type Archived struct {
	// Threads are those that the archive has now, of those that were to be archived: Written ones,
	// and Unchanged ones, which it had.
	Threads   int `json:"threads"`
	Written   int `json:"written"`
	Unchanged int `json:"unchanged"`
	// InProgress counts the threads with runs in progress.
	InProgress int   `json:"inProgress"`
	Runs       int64 `json:"runs"`
	Events     int64 `json:"events"`
	// FileBytes is the size of the files of the threads, Bytes that before compression.
	FileBytes int64 `json:"fileBytes"`
	Bytes     int64 `json:"bytes"`
	// Failed counts the threads that were not archived because of an error.
	Failed   int           `json:"failed"`
	Duration time.Duration `json:"nanoseconds"`
}

// archiver writes threads of a database to a directory.
type archiver struct {
	pool   *pgxpool.Pool
	to     *Directory
	tables rawjson.Binary
	done   Archived
}

// Archive writes threads to a directory, each as of one point in time. Threads that it has
// unchanged are not written once more.
func Archive(ctx context.Context, pool *pgxpool.Pool, path string, options Options) (done Archived, err error) {
	begin := time.Now()
	tables, err := db.New(pool).ArchivedTables(ctx)
	if err != nil {
		return done, err
	}
	var compact bytes.Buffer // as the manifest has it
	if err := json.Compact(&compact, tables); err != nil {
		return done, err
	}
	connection := pool.Config().ConnConfig
	a := archiver{pool: pool, tables: compact.Bytes()}
	a.to, err = Begin(path, Source{
		Program: options.Program, At: begin.UTC(), Tables: compact.Bytes(),
		Database: fmt.Sprintf("%s on %s:%d", connection.Database, connection.Host, connection.Port),
	})
	if err != nil {
		return done, err
	}
	defer func() {
		done = a.done
		done.Duration = time.Since(begin)
		err = errors.Join(err, a.to.Close())
	}()
	return done, a.each(ctx, options, func(key pgtype.UUID, scope, threadID string) error {
		err := a.archive(ctx, key, scope, threadID)
		switch {
		case errors.Is(err, pgagui.ErrUnknownThread) && len(options.Threads) == 0: // it was erased meanwhile
			return nil
		case err != nil && !isOfThread(err):
			return err
		case err != nil:
			a.done.Failed++
			options.OnFailure(err)
		}
		options.OnProgress(a.done)
		return nil
	})
}

// each calls archive with the threads to archive.
func (a *archiver) each(ctx context.Context, options Options, archive func(key pgtype.UUID, scope, threadID string) error) error {
	queries := db.New(a.pool)
	for _, threadID := range options.Threads {
		key, err := queries.ThreadKey(ctx, db.ThreadKeyParams{Scope: options.Scope, ThreadID: threadID})
		if err == nil {
			err = archive(key, options.Scope, threadID)
		}
		if err != nil {
			return err
		}
	}
	if len(options.Threads) > 0 {
		return nil
	}
	const page = 1000
	scope := &options.Scope
	if options.AllScopes {
		scope = nil
	}
	var after pgtype.UUID
	for {
		threads, err := queries.ThreadsWithoutNews(ctx, db.ThreadsWithoutNewsParams{OlderThan: options.OlderThan, Scope: scope, After: after, Page: page})
		if err != nil {
			return err
		}
		for _, thread := range threads {
			if err := archive(thread.ThreadKey, thread.Scope, thread.ThreadID); err != nil {
				return err
			}
			after = thread.ThreadKey
		}
		if len(threads) < page {
			return nil
		}
	}
}

// archive writes a thread, unless the directory has it as it is.
func (a *archiver) archive(ctx context.Context, key pgtype.UUID, scope, threadID string) error {
	err := snapshot.Read(ctx, a.pool, func(tx pgx.Tx) error {
		queries := db.New(tx)
		now, err := queries.ThreadToArchive(ctx, db.ThreadToArchiveParams{ThreadKey: key, Tables: a.tables})
		if errors.Is(err, pgx.ErrNoRows) {
			return &pgagui.Error{Kind: pgagui.ErrUnknownThread, Message: name(scope, threadID) + " is unknown"}
		}
		if err != nil {
			return err
		}
		thread := Thread{
			Scope: scope, ThreadID: threadID, At: time.Now().UTC(), Runs: int(now.Runs), InProgress: int(now.InProgress),
			Events: now.Events, IsChained: now.IsChained,
		}
		if err := json.Unmarshal(now.Digests, &thread.Digests); err != nil {
			return err
		}
		if kept, ok := a.to.threads[threadName{scope, threadID}]; ok && a.isUnchanged(kept, thread) {
			a.count(kept)
			a.done.Unchanged++
			return nil
		}
		thread, err = a.to.Add(thread, key.String(), func(lines io.Writer, thread *Thread) error {
			return a.writeRows(ctx, tx, key, now.CreatedAt, lines, thread)
		})
		if err == nil {
			a.count(thread)
			a.done.Written++
		}
		return err
	})
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		err = fmt.Errorf("%s: %w", name(scope, threadID), pgagui.ErrorOf(err))
	}
	return err
}

// isUnchanged reports whether the directory has the thread as it is now. Events and inputs are never
// changed, so it is sufficient to compare the rest.
func (a *archiver) isUnchanged(kept, now Thread) bool {
	rest := maps.Clone(kept.Digests)
	maps.DeleteFunc(rest, func(part, _ string) bool { return part == "events" || part == "inputs" })
	return kept.Events == now.Events && maps.Equal(rest, now.Digests) && string(kept.source.Tables) == string(a.tables) && a.to.Check(kept) == nil
}

func (a *archiver) count(thread Thread) {
	a.done.Threads++
	a.done.Runs += int64(thread.Runs)
	a.done.Events += thread.Events
	a.done.Bytes += thread.Bytes
	a.done.FileBytes += thread.FileBytes
	if thread.InProgress > 0 {
		a.done.InProgress++
	}
}

// beginning is the first line of the file of a thread.
type beginning struct {
	Scope     string    `json:"scope"`
	ThreadID  string    `json:"threadId"`
	CreatedAt time.Time `json:"createdAt"`
}

// tableLine is a line of the file of a thread: the rows of a table follow, each as a JSON array of
// the texts of these columns.
type tableLine struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
}

// writeRows writes the lines of a thread, and adds the digests of its log.
func (a *archiver) writeRows(ctx context.Context, tx pgx.Tx, key pgtype.UUID, createdAt time.Time, lines io.Writer, thread *Thread) error {
	encoder := json.NewEncoder(lines)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(beginning{thread.Scope, thread.ThreadID, createdAt.UTC()}); err != nil {
		return err
	}
	var err error
	thread.Digests, err = threadrows.Read(ctx, tx, key, a.tables,
		func(table string, columns []string) error { return encoder.Encode(tableLine{table, columns}) },
		func(row []byte) error {
			_, err := lines.Write(append(row[:len(row):len(row)], '\n'))
			return err
		})
	return err
}

// isOfThread reports whether an error concerns one thread, so that the others can be done.
func isOfThread(err error) bool {
	var refusal *pgconn.PgError
	switch {
	case errors.Is(err, pgagui.ErrPermissionDenied), pgagui.IsTransient(err):
		return false
	case errors.Is(err, pgagui.ErrUnknownThread), errors.As(err, &refusal):
		return true
	}
	return false
}
