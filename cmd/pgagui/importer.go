package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/eventfile"
)

// importer appends the events of files to the log, run by run, each run in its own transaction. So
// whatever ends an import, no run is stored in part.
//
// It passes to each append the seq that the previous append of the run returned, starting with 0.
// Events that are already in the log are therefore compared and not stored a second time. So an
// import may be repeated, and may continue after an interruption at any place.
type importer struct {
	pool    *pgxpool.Pool
	store   *pgagui.Store
	scope   string
	options importOptions

	onNotice   func(string)   // a message for the user
	onProgress func(imported) // after each call to the database

	begin   time.Time
	done    imported
	threads map[string]*importedThread
	halted  map[string]string // by thread: FILE:LINE of an error in an earlier file

	keepsTimes    bool   // events are recorded at their timestamps; see chooseTimes
	role          string // role of the connection; "" before chooseTimes
	hasTimestamps bool   // an imported event has a timestamp

	file       string
	lastThread string       // thread of the last run that began in this file
	run        *importedRun // current run; nil if none has begun in this file
}

type importOptions struct {
	// defaults are the ids to use if a file has none.
	defaults runName
	// leaveOpen leaves a run without an end in progress, and stores its events as they are read.
	leaveOpen bool
	// now records all events as of now.
	now bool
	// requests are the inputs of the runs; nil if there are none.
	requests *requests
}

// imported is the result of an import.
type imported struct {
	Threads []*importedThread `json:"threads"` // in the order in which the files name them
	Runs    int               `json:"runs"`
	// Events counts the events of the files: those New to the log and those AlreadyThere.
	Events       int64 `json:"events"`
	New          int64 `json:"new"`
	AlreadyThere int64 `json:"alreadyThere"`
	// Bytes is the size of these events.
	Bytes int64 `json:"bytes"`
	// Closed counts the runs without an end in the files, which the import closed.
	Closed int `json:"closed"`
	// WithoutInput counts the runs whose input is not in the log.
	WithoutInput int `json:"withoutInput"`
	// FailedFiles counts the files that were imported only in part or not at all.
	FailedFiles int           `json:"failedFiles"`
	Duration    time.Duration `json:"nanoseconds"`
}

// importedThread is the result of an import for one thread.
type importedThread struct {
	ThreadID string `json:"threadId"`
	Runs     int    `json:"runs"`
	Events   int64  `json:"events"`
	New      int64  `json:"new"`
}

// importedRun is a run of a file.
type importedRun struct {
	name    runName
	line    int // of its first event
	request *request

	// Contents of the log before the import.
	status      pgagui.Status // "" if the run was not in the log
	stored      int64         // number of events
	storedInput json.RawMessage

	hasStarted                bool // RUN_STARTED was read; its contents:
	carriesInput, namesParent bool

	tx    pgx.Tx // nil before the first append
	sent  int64  // number of events appended or found in the log
	seq   int64  // seq of the last of them
	ended bool   // the file contains the end of the run

	pending      []eventfile.Event
	pendingBytes int
	isCounted    bool

	uncommitted struct{ events, new, bytes int64 }
}

const (
	// eventsPerCall is small enough that a compressed batch is stored inside its row.
	eventsPerCall = 200
	// bytesPerCall is far below the limit of 64 MB per append. A single event may be larger than
	// this.
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
		done:       imported{Threads: []*importedThread{}},
		threads:    map[string]*importedThread{},
		halted:     map[string]string{},
	}
}

// result returns the result so far.
func (i *importer) result() imported {
	done := i.done
	done.AlreadyThere = done.Events - done.New
	done.Duration = time.Since(i.begin)
	return done
}

// importFile imports the events of a file. An error about an event is an *eventfile.Error. The runs
// before that event are stored, and of its own run what had ended. Later files cannot continue the
// thread.
func (i *importer) importFile(ctx context.Context, name string, content io.Reader) error {
	i.file, i.lastThread, i.run = name, "", nil
	err := i.importEvents(ctx, name, content)
	if i.run != nil && i.run.tx != nil {
		_ = i.run.tx.Rollback(context.WithoutCancel(ctx)) // err has the cause
	}
	var where *eventfile.Error
	// A conflict means that another conversation has the same ids. It does not halt the thread.
	if errors.As(err, &where) && i.lastThread != "" && !errors.Is(err, pgagui.ErrConflictingRepeat) && i.halted[i.lastThread] == "" {
		i.halted[i.lastThread] = fmt.Sprintf("%s:%d", where.File, where.Line)
	}
	return err
}

func (i *importer) importEvents(ctx context.Context, name string, content io.Reader) error {
	split := runSplitter{file: name, defaults: i.options.defaults}
	add := func(events []runEvent, problem error) error {
		for _, event := range events {
			if err := i.add(ctx, event); err != nil {
				return err
			}
		}
		if problem != nil && i.options.leaveOpen && i.run != nil {
			if err := i.send(ctx); err != nil {
				return err
			}
		}
		return problem
	}
	lastLine := 0
	for event, err := range eventfile.Read(name, content) {
		var events []runEvent
		if err == nil {
			lastLine = event.Line
			events, err = split.add(event)
		}
		if err := add(events, err); err != nil {
			return err
		}
	}
	if err := add(split.end()); err != nil {
		return err
	}
	return i.endRun(ctx, fmt.Sprintf("the imported log ends in line %d of %s", lastLine, name))
}

func (i *importer) add(ctx context.Context, event runEvent) error {
	if i.run == nil || i.run.name != event.run {
		if err := i.endRun(ctx, fmt.Sprintf("the imported log continues with another run in line %d of %s", event.Line, i.file)); err != nil {
			return err
		}
		if err := i.beginRun(ctx, event); err != nil {
			return err
		}
	}
	run := i.run
	if len(run.pending) == eventsPerCall || run.pendingBytes+len(event.Raw) > bytesPerCall && len(run.pending) > 0 {
		if err := i.send(ctx); err != nil {
			return err
		}
	}
	i.hasTimestamps = i.hasTimestamps || bytes.Contains(event.Raw, []byte(`"timestamp"`))
	run.pending = append(run.pending, event.Event)
	run.pendingBytes += len(event.Raw)
	switch event.eventType {
	case "RUN_STARTED":
		if !run.hasStarted {
			run.hasStarted, run.carriesInput, run.namesParent = true, hasObject(event.Raw, "input"), textMember(event.Raw, "parentRunId") != ""
		}
	case "RUN_FINISHED", "RUN_ERROR":
		run.ended = true
		return i.commit(ctx) // the run stays complete even if the rest of the file has an error
	}
	return nil
}

// beginRun makes the run of an event the current run.
func (i *importer) beginRun(ctx context.Context, first runEvent) error {
	run := &importedRun{name: first.run, line: first.Line}
	i.lastThread = run.name.threadID
	if where := i.halted[run.name.threadID]; where != "" {
		return i.badInput(first.Line, fmt.Errorf("thread %q is incomplete since the error in %s, and its later runs must not come before the missing ones: correct that file and import all files again",
			run.name.threadID, where))
	}
	if err := i.chooseTimes(ctx); err != nil {
		return err
	}
	err := i.pool.QueryRow(ctx, `
		select
			run.status,
			(
				select coalesce(pg_catalog.sum(batch.n), 0)
				from agui.batch
				where batch.thread_key operator(pg_catalog.=) run.thread_key
					and batch.run_no operator(pg_catalog.=) run.run_no
					and batch.first_seq operator(pg_catalog.>=) run.first_seq
					and batch.first_seq operator(pg_catalog.<=) coalesce(run.last_seq, 9223372036854775807)
			),
			given.input
		from agui.run
		left join agui.run_input as given
			on given.thread_key operator(pg_catalog.=) run.thread_key and given.run_no operator(pg_catalog.=) run.run_no
		where run.thread_key operator(pg_catalog.=) agui.thread_key($1, $2) and run.run_id operator(pg_catalog.=) $3`,
		i.scope, run.name.threadID, run.name.runID).Scan(&run.status, &run.stored, &run.storedInput)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if run.request, err = i.options.requests.take(run.name); err != nil {
		return err
	}
	i.run = run
	return nil
}

// chooseTimes sets keepsTimes: whether the role may record events at their timestamps.
func (i *importer) chooseTimes(ctx context.Context) error {
	if i.role != "" {
		return nil
	}
	err := i.pool.QueryRow(ctx, `
		select current_user::pg_catalog.text, pg_catalog.has_function_privilege(oid, 'execute')
		from pg_catalog.pg_proc
		where pronamespace operator(pg_catalog.=) 'agui'::pg_catalog.regnamespace and proname operator(pg_catalog.=) 'import_events'`).Scan(&i.role, &i.keepsTimes)
	i.keepsTimes = i.keepsTimes && !i.options.now
	return err
}

// hasObject reports whether an event has a member that is an object.
func hasObject(event []byte, name string) bool {
	return bytes.HasPrefix(member(event, name), []byte("{"))
}

// send appends the pending events, in the transaction of the run unless leaveOpen is set.
func (i *importer) send(ctx context.Context) error {
	run := i.run
	if len(run.pending) == 0 {
		return nil
	}
	store := i.store
	if !i.options.leaveOpen {
		if run.tx == nil {
			var err error
			if run.tx, err = i.pool.Begin(ctx); err != nil {
				return err
			}
		}
		store = store.WithTx(run.tx)
	}
	events := make([]json.RawMessage, len(run.pending))
	for n, event := range run.pending {
		events[n] = event.Raw
	}
	options := pgagui.AppendOptions{AfterSeq: &run.seq, TimesFromEvents: i.keepsTimes}
	if run.seq == 0 {
		run.beginWith(&options)
	}
	seq, err := store.Append(ctx, run.name.ref(), events, options)
	if err != nil {
		return i.refused(err)
	}
	before := run.sent
	run.seq = seq
	run.sent += int64(len(events))
	run.uncommitted.events += int64(len(events))
	run.uncommitted.new += max(0, run.sent-max(before, run.stored))
	run.uncommitted.bytes += int64(run.pendingBytes)
	clear(run.pending) // releases the events, which may be large
	run.pending, run.pendingBytes = run.pending[:0], 0
	if i.options.leaveOpen {
		i.count(run)
	}
	progress := i.done
	progress.Events += run.uncommitted.events
	progress.Bytes += run.uncommitted.bytes
	i.onProgress(progress)
	return nil
}

// beginWith sets the input and the parent for the append that begins the run.
func (r *importedRun) beginWith(options *pgagui.AppendOptions) {
	options.Input = r.storedInput // a repeated import does not need the requests
	if r.request != nil {
		if r.request.input != nil {
			options.Input = r.request.input
		}
		switch parent := r.request.parent; {
		case parent == nil, r.request.isBody && r.namesParent:
		case *parent == "":
			options.NoParent = true
		default:
			options.ParentRunID = *parent
		}
	}
}

// commit appends the pending events and commits the transaction of the run.
func (i *importer) commit(ctx context.Context) error {
	if err := i.send(ctx); err != nil {
		return err
	}
	run := i.run
	if run.tx != nil {
		if err := run.tx.Commit(ctx); err != nil {
			return err
		}
		run.tx = nil
		i.count(run)
	}
	return nil
}

// count adds the committed events of a run to the result.
func (i *importer) count(run *importedRun) {
	thread := i.threads[run.name.threadID]
	if thread == nil {
		thread = &importedThread{ThreadID: run.name.threadID}
		i.threads[run.name.threadID] = thread
		i.done.Threads = append(i.done.Threads, thread)
	}
	if !run.isCounted {
		run.isCounted = true
		i.done.Runs++
		thread.Runs++
		if !run.carriesInput && run.storedInput == nil && (run.request == nil || run.request.input == nil) {
			i.done.WithoutInput++
		}
	}
	i.done.Events += run.uncommitted.events
	i.done.New += run.uncommitted.new
	i.done.Bytes += run.uncommitted.bytes
	thread.Events += run.uncommitted.events
	thread.New += run.uncommitted.new
	run.uncommitted.events, run.uncommitted.new, run.uncommitted.bytes = 0, 0, 0
}

// endRun appends the rest of the current run. If the file has no end of the run, it closes the run.
func (i *importer) endRun(ctx context.Context, cutOff string) error {
	run := i.run
	if run == nil {
		return nil
	}
	if err := i.send(ctx); err != nil {
		return err
	}
	name := fmt.Sprintf("%s:%d: %s", i.file, run.line, run.name)
	switch {
	case run.ended || run.status == pgagui.Finished || run.status == pgagui.Failed:
	case run.stored > run.sent:
		i.onNotice(name + " is in progress, and the log has more events of it than this file")
	case i.options.leaveOpen:
		i.onNotice(name + " has no end and stays in progress")
	default:
		if err := i.close(ctx, run, cutOff); err != nil {
			return i.refused(err)
		}
		i.done.Closed++
		i.onNotice(name + " has no end: closed as failed (" + cutOff + ")")
	}
	if err := i.commit(ctx); err != nil {
		return err
	}
	i.run = nil
	return nil
}

// close closes a run that has no end in the file.
func (i *importer) close(ctx context.Context, run *importedRun, cutOff string) error {
	store := i.store
	if run.tx != nil {
		store = store.WithTx(run.tx)
	}
	_, err := store.Abandon(ctx, run.name.ref(), pgagui.AbandonOptions{Reason: cutOff, TimesFromEvents: i.keepsTimes})
	return err
}

func (i *importer) badInput(line int, err error) error {
	return &eventfile.Error{File: i.file, Line: line, Err: err}
}

var eventOfCall = regexp.MustCompile(`event (\d+) of the call`)

// refused adds to an error of the database the line of the event that it refused. It returns other
// errors, and a missing privilege, which concerns all lines, unchanged.
func (i *importer) refused(err error) error {
	var refusal *pgagui.Error
	if !errors.As(err, &refusal) || errors.Is(err, pgagui.ErrPermissionDenied) {
		return err
	}
	run := i.run
	if errors.Is(err, pgagui.ErrConflictingRepeat) {
		refusal.Hint = "If this is another conversation with the same ids, import it into another --scope."
		if strings.HasSuffix(refusal.Message, "the call brings one") {
			refusal.Hint = "An input can only be stored when the run begins: erase the thread first, or import into another --scope."
		}
	}
	if errors.Is(err, pgagui.ErrRunCutOff) {
		refusal.Hint = "An earlier import of a shorter file may have closed the run; --leave-open prevents that."
	}
	// If the message names no event, report the first event that is new to the log, or the whole
	// run.
	position := max(0, run.stored-run.sent)
	if match := eventOfCall.FindStringSubmatch(refusal.Message); match != nil {
		position, _ = strconv.ParseInt(match[1], 10, 64)
		position--
	} else if len(run.pending) == 0 || errors.Is(err, pgagui.ErrConflictingRepeat) {
		return i.badInput(run.line, err)
	}
	position = min(position, int64(len(run.pending)-1))
	return i.badInput(run.pending[position].Line, err)
}
