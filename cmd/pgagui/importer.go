package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/eventfile"
)

// importer appends the events of files to the log, one run after another.
//
// It gives every call the seq that the last one of its run returned, beginning with 0. So events that the log has already are
// compared with it and not stored again, however often a file is imported and wherever an import before was interrupted.
type importer struct {
	pool    *pgxpool.Pool
	store   *pgagui.Store
	scope   string
	options importOptions

	onNotice   func(string)   // something that the user should know
	onProgress func(imported) // after each call to the database

	begin   time.Time
	threads map[string]bool // those that done has the ids of
	done    imported

	file string
	run  *importedRun // the one that the events belong to at the moment; nil: none has begun in this file
}

type importOptions struct {
	// threadID and runID stand in for ids that a file does not give.
	threadID, runID string
	// leaveOpen leaves a run that a file cuts off in progress.
	leaveOpen bool
}

// imported is what an import did.
type imported struct {
	Threads int `json:"threads"`
	// ThreadIDs are theirs, in the order in which they came.
	ThreadIDs []string `json:"threadIds"`
	Runs      int      `json:"runs"`
	// Events counts those of the files; some are New to the log, the others were AlreadyThere.
	Events       int64 `json:"events"`
	New          int64 `json:"new"`
	AlreadyThere int64 `json:"alreadyThere"`
	// Bytes is the size of these events.
	Bytes int64 `json:"bytes"`
	// Closed counts the runs that the files cut off and that were closed for that.
	Closed   int           `json:"closed"`
	Duration time.Duration `json:"nanoseconds"`
}

// importedRun is a run of a file.
type importedRun struct {
	threadID, runID string
	line            int // of its first event

	// What the log had of it before.
	status pgagui.Status // empty: nothing
	stored int64         // events

	sent  int64 // events appended or found in the log
	seq   int64 // of the last of them
	ended bool  // the file has its end

	pending      []eventfile.Event
	pendingBytes int
}

const (
	// eventsPerCall makes batches that stay in their row when compressed.
	eventsPerCall = 200
	// bytesPerCall is far below the 64 MB that a call takes. A single event may be larger than this.
	bytesPerCall = 4 << 20
)

func newImporter(pool *pgxpool.Pool, scope string, options importOptions) *importer {
	return &importer{
		pool:       pool,
		store:      pgagui.New(pool, &pgagui.Config{Scope: scope}),
		scope:      scope,
		options:    options,
		onNotice:   func(string) {},
		onProgress: func(imported) {},
		begin:      time.Now(),
		threads:    map[string]bool{},
	}
}

// result is what was done so far.
func (i *importer) result() imported {
	done := i.done
	done.Threads = len(done.ThreadIDs)
	done.ThreadIDs = append([]string{}, done.ThreadIDs...)
	done.AlreadyThere = done.Events - done.New
	done.Duration = time.Since(i.begin)
	return done
}

// importFile imports the events of a file. Errors that concern an event are *eventfile.Error.
func (i *importer) importFile(ctx context.Context, name string, content io.Reader) error {
	i.file, i.run = name, nil
	lastLine := 0
	for event, err := range eventfile.Read(name, content) {
		if err != nil {
			return err
		}
		if err := i.add(ctx, event); err != nil {
			return err
		}
		lastLine = event.Line
	}
	return i.endRun(ctx, fmt.Sprintf("the imported log ends in line %d of %s", lastLine, name))
}

func (i *importer) add(ctx context.Context, event eventfile.Event) error {
	kind := compaction.EventType(event.Raw)
	if kind == "" {
		return i.badInput(event.Line, errors.New(`an event must have a "type", which is a string`))
	}
	if kind == "RUN_STARTED" || i.run == nil {
		if err := i.endRun(ctx, fmt.Sprintf("the imported log goes on with another run in line %d of %s", event.Line, i.file)); err != nil {
			return err
		}
		if err := i.beginRun(ctx, event, kind); err != nil {
			return err
		}
	}
	run := i.run
	if len(run.pending) == eventsPerCall || run.pendingBytes+len(event.Raw) > bytesPerCall && len(run.pending) > 0 {
		if err := i.send(ctx); err != nil {
			return err
		}
	}
	run.pending = append(run.pending, event)
	run.pendingBytes += len(event.Raw)
	if kind == "RUN_FINISHED" || kind == "RUN_ERROR" {
		run.ended = true
		return i.send(ctx) // whatever is wrong with the rest of the file, this run is complete
	}
	return nil
}

// beginRun makes the run of its first event the current one.
func (i *importer) beginRun(ctx context.Context, event eventfile.Event, kind string) error {
	run := &importedRun{threadID: i.options.threadID, runID: i.options.runID, line: event.Line}
	if kind == "RUN_STARTED" {
		if err := run.readIDs(event.Raw); err != nil {
			return i.badInput(event.Line, err)
		}
	} else if run.threadID == "" || run.runID == "" {
		return i.badInput(event.Line, fmt.Errorf("%s before any RUN_STARTED: name its run with --thread and --run", kind))
	}

	err := i.pool.QueryRow(ctx, `
		select run.status, sum(batch.n)
		from agui.run
		join agui.batch using (thread_key, run_no)
		where run.thread_key = agui.thread_key($1, $2)
		    and run.run_id = $3
		    and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
		group by run.status`, i.scope, run.threadID, run.runID).Scan(&run.status, &run.stored)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	i.run = run
	return nil
}

// readIDs takes the ids that a RUN_STARTED has and requires that none is missing then.
func (r *importedRun) readIDs(event []byte) error {
	// Not a struct: encoding/json would take "THREADID" for "threadId".
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(event, &fields); err != nil {
		return err
	}
	for _, id := range []struct {
		field, flag string
		value       *string
	}{{"threadId", "--thread", &r.threadID}, {"runId", "--run", &r.runID}} {
		if raw, ok := fields[id.field]; ok {
			if err := json.Unmarshal(raw, id.value); err != nil {
				return fmt.Errorf("the %s of RUN_STARTED must be a string, not %s", id.field, raw)
			}
			if !isText(raw, *id.value) {
				return fmt.Errorf("the %s of RUN_STARTED holds what no text in PostgreSQL can, \\u0000 or half a surrogate pair: %s", id.field, raw)
			}
		}
		if *id.value == "" {
			return fmt.Errorf("RUN_STARTED has no %s: give one with %s", id.field, id.flag)
		}
	}
	return nil
}

// isText reports whether a JSON string, given as it is written and as Go decoded it, can be an id in the database.
func isText(raw []byte, decoded string) bool {
	if strings.ContainsRune(decoded, 0) {
		return false
	}
	// Go makes U+FFFD of a surrogate that stands alone; ids that differ would become the same one.
	isEscaped := strings.Contains(strings.ToLower(string(raw)), `\ud`)
	return !(isEscaped && strings.ContainsRune(decoded, utf8.RuneError))
}

// send appends the pending events.
func (i *importer) send(ctx context.Context) error {
	run := i.run
	if len(run.pending) == 0 {
		return nil
	}
	events := make([]json.RawMessage, len(run.pending))
	for n, event := range run.pending {
		events[n] = event.Raw
	}
	seq, err := i.store.Append(ctx, run.threadID, run.runID, events, pgagui.AfterSeq(run.seq))
	if err != nil {
		return i.refused(err)
	}
	if run.sent == 0 {
		i.done.Runs++
		if !i.threads[run.threadID] {
			i.threads[run.threadID] = true
			i.done.ThreadIDs = append(i.done.ThreadIDs, run.threadID)
		}
	}
	before := run.sent
	run.seq = seq
	run.sent += int64(len(events))
	i.done.Events += int64(len(events))
	i.done.New += max(0, run.sent-max(before, run.stored))
	i.done.Bytes += int64(run.pendingBytes)
	run.pending, run.pendingBytes = run.pending[:0], 0
	i.onProgress(i.done)
	return nil
}

// endRun appends what is left of the current run, and closes the run when the file does not.
func (i *importer) endRun(ctx context.Context, cutOff string) error {
	run := i.run
	if run == nil {
		return nil
	}
	if err := i.send(ctx); err != nil {
		return err
	}
	i.run = nil
	if run.ended || run.status == pgagui.Finished || run.status == pgagui.Failed {
		return nil
	}
	name := fmt.Sprintf("%s:%d: run %q of thread %q", i.file, run.line, run.runID, run.threadID)
	switch {
	case run.stored > run.sent:
		i.onNotice(name + " is in progress, and the log has more of it than this file")
	case i.options.leaveOpen:
		i.onNotice(name + " has no end and stays in progress")
	default:
		if _, err := i.store.Abandon(ctx, run.threadID, run.runID, cutOff); err != nil {
			return err
		}
		i.done.Closed++
		i.onNotice(name + " has no end: closed as failed (" + cutOff + ")")
	}
	return nil
}

func (i *importer) badInput(line int, err error) error {
	return &eventfile.Error{File: i.file, Line: line, Err: err}
}

var eventOfCall = regexp.MustCompile(`event (\d+) of the call`)

// refused names the line of the event that the database did not take. An error that is no refusal stays as it is.
func (i *importer) refused(err error) error {
	var refusal *pgagui.Error
	if !errors.As(err, &refusal) {
		return err
	}
	run := i.run
	// Where no event is named, it is the first one that the log does not have.
	position := max(0, run.stored-run.sent)
	if match := eventOfCall.FindStringSubmatch(refusal.Message); match != nil {
		position, _ = strconv.ParseInt(match[1], 10, 64)
		position--
	}
	position = min(position, int64(len(run.pending)-1))
	if errors.Is(err, pgagui.ErrConflictingRepeat) {
		refusal.Hint = "Is this another conversation with the same ids? Give it a --scope."
	}
	if errors.Is(err, pgagui.ErrRunCutOff) {
		refusal.Hint = "Was the run imported when this file was shorter? It was closed then; --leave-open does not."
	}
	return i.badInput(run.pending[position].Line, err)
}
