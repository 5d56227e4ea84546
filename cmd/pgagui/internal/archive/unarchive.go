package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/threadrows"
)

// RestoreOptions say which threads [Unarchive] stores, and where.
type RestoreOptions struct {
	// Threads are ids of threads; none: all of the archive.
	Threads []string
	// Scope, if set, is the scope in which they are stored, instead of their own.
	Scope *string
	// Check only compares the files with the manifest.
	Check bool

	OnFailure  func(error)
	OnProgress func(Unarchived)
}

// Unarchived is the result of [Unarchive].
type Unarchived struct {
	// Threads are those that the database has now: Stored ones, and those AlreadyThere.
	Threads      int `json:"threads"`
	Stored       int `json:"stored"`
	AlreadyThere int `json:"alreadyThere"`
	// InProgress counts the stored threads with runs in progress.
	InProgress int           `json:"inProgress"`
	Runs       int64         `json:"runs"`
	Events     int64         `json:"events"`
	Failed     int           `json:"failed"`
	Duration   time.Duration `json:"nanoseconds"`
}

// Unarchive stores the threads of an archive in their databases, each in a transaction of its own. A
// thread that the database has as it is in the archive is left as it is. Threads of nodes that do not
// answer count as failed, and the error names the nodes.
func Unarchive(ctx context.Context, databaseOf cli.DatabaseOf, from *Directory, options RestoreOptions) (done Unarchived, err error) {
	begin := time.Now()
	defer func() { done.Duration = time.Since(begin) }()
	chosen, err := from.choose(options)
	if err != nil {
		return done, err
	}
	away := &cli.NodesError{}
	for _, thread := range chosen {
		isNew, err := from.unarchive(ctx, databaseOf, thread, options)
		var nodes *cli.NodesError
		switch {
		case errors.As(err, &nodes):
			done.Failed++
			away.Add(nodes)
			continue
		case err != nil && !isOfThread(err) && !isOfFile(err) && !errors.Is(err, errOtherContent):
			return done, err
		case err != nil:
			done.Failed++
			options.OnFailure(err)
			continue
		case isNew:
			done.Stored++
			if thread.InProgress > 0 {
				done.InProgress++
			}
		default:
			done.AlreadyThere++
		}
		done.Threads++
		done.Runs += int64(thread.Runs)
		done.Events += thread.Events
		options.OnProgress(done)
	}
	return done, away.OrNil()
}

func isOfFile(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file)
}

// choose returns the threads to store.
func (d *Directory) choose(options RestoreOptions) ([]Thread, error) {
	chosen := d.Threads()
	if len(options.Threads) > 0 {
		chosen = slices.DeleteFunc(chosen, func(thread Thread) bool { return !slices.Contains(options.Threads, thread.ThreadID) })
		for _, id := range options.Threads {
			if !slices.ContainsFunc(chosen, func(thread Thread) bool { return thread.ThreadID == id }) {
				return nil, &fs.PathError{Op: "unarchive", Path: d.Path, Err: fmt.Errorf("the archive has no thread %q", id)}
			}
		}
	}
	scopes := map[string]bool{}
	for _, thread := range chosen {
		scopes[thread.Scope] = true
	}
	if options.Scope != nil && len(scopes) > 1 {
		return nil, &fs.PathError{Op: "unarchive", Path: d.Path, Err: fmt.Errorf(
			"the archive has threads of %d scopes (%s), which cannot be stored in one: archive one of them alone, or leave out --scope",
			len(scopes), strings.Join(quoted(slices.Sorted(maps.Keys(scopes))), ", "))}
	}
	return chosen, nil
}

func quoted(texts []string) []string {
	for n, text := range texts {
		texts[n] = fmt.Sprintf("%q", text)
	}
	return texts
}

var errOtherContent = errors.New("the database has this thread with other content")

// unarchive stores a thread. isNew is false if the database had it.
func (d *Directory) unarchive(ctx context.Context, databaseOf cli.DatabaseOf, thread Thread, options RestoreOptions) (isNew bool, err error) {
	if options.Check {
		return false, d.Check(thread)
	}
	scope := thread.Scope
	if options.Scope != nil {
		scope = *options.Scope
	}
	if scope != thread.Scope && thread.IsChained {
		return false, &fs.PathError{Op: "unarchive", Path: d.path(thread), Err: fmt.Errorf(
			"%s has a chain of hashes, which covers its scope: it can only be stored in scope %q", thread, thread.Scope)}
	}
	defer func() {
		if err != nil && !isOfFile(err) {
			err = fmt.Errorf("%s: %w", name(scope, thread.ThreadID), pgagui.ErrorOf(err))
		}
	}()
	pool, err := databaseOf(ctx, scope, thread.ThreadID)
	if err != nil {
		return false, err
	}
	queries := db.New(pool)
	key, err := queries.ThreadKey(ctx, db.ThreadKeyParams{Scope: scope, ThreadID: thread.ThreadID})
	if err != nil {
		return false, err
	}
	tables := rawjson.Binary(thread.source.Tables)
	text, err := queries.ContentDigests(ctx, db.ContentDigestsParams{ThreadKey: key, Tables: tables})
	if err != nil {
		return false, err
	}
	var digests map[string]string
	if err := json.Unmarshal(text, &digests); err != nil {
		return false, err
	}
	if len(digests) > 0 {
		if differing := differences(digests, thread.Digests); len(differing) > 0 {
			return false, fmt.Errorf("%w (%s): erase it first, or store the archive in another scope", errOtherContent, strings.Join(differing, ", "))
		}
		return false, nil
	}
	return true, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// Between the statements the files of the archive are read.
		queries := db.New(tx)
		if err := queries.AllowIdleTransaction(ctx); err != nil {
			return err
		}
		return d.store(ctx, queries, thread, scope, tables)
	})
}

// differences names the parts in which threads differ. What lists show may be changed after a move,
// and tombstones of the database come to those of the archive.
func differences(stored, archived map[string]string) (names []string) {
	parts := maps.Clone(stored)
	maps.Copy(parts, archived)
	for part := range parts {
		if stored[part] != archived[part] && part != "agui.thread_activity" && part != "agui.erasure" {
			names = append(names, strings.TrimPrefix(part, "agui."))
		}
	}
	slices.Sort(names)
	return names
}

// store stores a thread that the database does not have.
func (d *Directory) store(ctx context.Context, queries *db.Queries, thread Thread, scope string, tables rawjson.Binary) error {
	var rows *threadrows.Writer
	isFirst := true
	err := d.Lines(thread, func(line []byte) error {
		switch {
		case isFirst:
			isFirst = false
			var begins beginning
			if err := json.Unmarshal(line, &begins); err != nil || begins.Scope != thread.Scope || begins.ThreadID != thread.ThreadID {
				return d.fileError(thread, errNoThread)
			}
			key, err := queries.BeginUnarchive(ctx, db.BeginUnarchiveParams{Scope: scope, ThreadID: thread.ThreadID, CreatedAt: begins.CreatedAt})
			rows = threadrows.NewWriter(queries, key)
			return err
		case line[0] == '{':
			var next tableLine
			if invalid := json.Unmarshal(line, &next); invalid != nil {
				return d.fileError(thread, errNoThread)
			}
			return rows.Table(ctx, next.Table, next.Columns)
		}
		return rows.Row(ctx, line)
	})
	if err == nil && isFirst {
		err = d.fileError(thread, errNoThread)
	}
	if err != nil {
		return err
	}
	return rows.Finish(ctx, tables, thread.Digests)
}
