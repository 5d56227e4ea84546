// Package ingest stores files of events, with the requests that began their runs.
package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/eventfile"
)

// Importer appends the events of files to the log, run by run, each run in its own transaction. So
// whatever ends an import, no run is stored in part.
//
// It passes to each append the seq that the previous append of the run returned, starting with 0.
// Events that are already in the log are therefore compared and not stored a second time. So an
// import may be repeated, and may continue after an interruption at any place.
type Importer struct {
	databaseOf cli.DatabaseOf
	scope      string
	Options    Options

	OnNotice   func(string)   // a message for the user
	OnProgress func(Imported) // after each call to the database

	begin   time.Time
	Done    Imported
	threads map[string]*ImportedThread
	halted  map[string]string // by thread: FILE:LINE of an error in an earlier file
	skipped map[string]bool   // threads of which this file has an event that was refused

	KeepsTimes    bool   // events are recorded at their timestamps; see chooseTimes
	Role          string // Role of the connection; "" before chooseTimes
	HasTimestamps bool   // an imported event has a timestamp
	InSeconds     int64  // how many have theirs in seconds
	WithoutTime   int64  // how many have one that no event is recorded at
	WithoutTimeAt string // FILE:LINE of the first of them

	file       string
	lastThread string       // thread of the last run that began in this file
	run        *importedRun // current run; nil if none has begun in this file
}

// Options are the flags of an import.
type Options struct {
	// Defaults are the ids to use if a file has none.
	Defaults RunName
	// LeaveOpen leaves a run without an end in progress, and stores its events as they are read.
	LeaveOpen bool
	// Now records all events as of now.
	Now bool
	// Requests are the inputs of the runs; nil if there are none.
	Requests *Requests
}

// Imported is the result of an import.
type Imported struct {
	Threads []*ImportedThread `json:"threads"` // in the order in which the files name them
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

// String is the summary of an import for people.
func (i Imported) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s, %s", cli.CountText(len(i.Threads), "thread"), cli.CountText(i.Runs, "run"), cli.CountText(i.Events, "event"))
	if i.AlreadyThere > 0 {
		fmt.Fprintf(&text, " (%s new, %s already there)", humanize.Comma(i.New), humanize.Comma(i.AlreadyThere))
	}
	fmt.Fprintf(&text, ", %s in %s", cli.BytesText(i.Bytes), cli.DurationText(i.Duration))
	if i.WithoutInput > 0 {
		fmt.Fprintf(&text, "; %s without input, so without the user's messages (--requests supplies them)", cli.CountText(i.WithoutInput, "run"))
	}
	return text.String()
}

// ImportedThread is the result of an import for one thread.
type ImportedThread struct {
	ThreadID string `json:"threadId"`
	Runs     int    `json:"runs"`
	Events   int64  `json:"events"`
	New      int64  `json:"new"`
}

// importedRun is a run of a file.
type importedRun struct {
	name    RunName
	line    int // of its first event
	request *Request

	// Contents of the log before the import.
	status      pgagui.Status // "" if the run was not in the log
	stored      int64         // number of events
	storedInput json.RawMessage

	hasStarted                bool // RUN_STARTED was read; its contents:
	carriesInput, namesParent bool

	pool  *pgxpool.Pool // of the database that has the thread
	tx    pgx.Tx        // nil before the first append
	sent  int64         // number of events appended or found in the log
	seq   int64         // seq of the last of them
	ended bool          // the file contains the end of the run

	pending      []eventfile.Event
	pendingBytes int
	isCounted    bool

	uncommitted struct{ events, new, bytes int64 }
}

const (
	// EventsPerCall is small enough that a compressed batch is stored inside its row.
	EventsPerCall = 200
	// BytesPerCall is far below the limit of 64 MB per append. A single event may be larger than
	// this.
	BytesPerCall = 4 << 20
)

// New returns an importer into a scope.
func New(databaseOf cli.DatabaseOf, scope string, options Options) *Importer {
	return &Importer{
		databaseOf: databaseOf,
		scope:      scope,
		Options:    options,
		OnNotice:   func(string) {},
		OnProgress: func(Imported) {},
		begin:      time.Now(),
		Done:       Imported{Threads: []*ImportedThread{}},
		threads:    map[string]*ImportedThread{},
		halted:     map[string]string{},
	}
}

// Result returns the result so far.
func (i *Importer) Result() Imported {
	done := i.Done
	done.AlreadyThere = done.Events - done.New
	done.Duration = time.Since(i.begin)
	return done
}

// ImportFile imports the events of a file. A thread with an event that is refused is skipped from there: OnNotice says so, and
// the error is cli.ErrBadFiles at the end. Another error about an event is an *eventfile.Error, and ends the import of the file.
// The runs before that event are stored, and of its own run what had ended. Later files cannot continue the
// thread.
func (i *Importer) ImportFile(ctx context.Context, name string, content io.Reader) error {
	i.file, i.lastThread, i.run, i.skipped = name, "", nil, map[string]bool{}
	err := i.importEvents(ctx, name, content)
	if err != nil {
		i.leaveThread(ctx, err)
	} else if len(i.skipped) > 0 {
		err = cli.ErrBadFiles
	}
	return err
}

// leaveThread leaves the current run and its thread after an error.
func (i *Importer) leaveThread(ctx context.Context, err error) {
	if i.run != nil && i.run.tx != nil {
		_ = i.run.tx.Rollback(context.WithoutCancel(ctx)) // err has the cause
	}
	i.run = nil
	// A conflict means that another conversation has the same ids. It does not halt the thread.
	if where, ok := errors.AsType[*eventfile.Error](err); ok && i.lastThread != "" && !errors.Is(err, pgagui.ErrConflictingRepeat) && i.halted[i.lastThread] == "" {
		i.halted[i.lastThread] = fmt.Sprintf("%s:%d", where.File, where.Line)
	}
}

// skipThread goes on without a thread of which an event was refused. It returns all other errors. Requests without a runId are matched
// in order, so no run may be missing.
func (i *Importer) skipThread(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, isRefused := errors.AsType[*eventfile.Error](err); !isRefused || i.Options.Requests.HasUnnamed() {
		return err
	}
	i.leaveThread(ctx, err)
	i.skipped[i.lastThread] = true
	i.OnNotice(fmt.Sprintf("%s; skipped the rest of thread %q in this file", cli.Describe(err), i.lastThread))
	return nil
}

func (i *Importer) importEvents(ctx context.Context, name string, content io.Reader) error {
	split := Splitter{file: name, defaults: i.Options.Defaults}
	add := func(events []RunEvent, problem error) error {
		for _, event := range events {
			if err := i.skipThread(ctx, i.add(ctx, event)); err != nil {
				return err
			}
		}
		if problem != nil && i.Options.LeaveOpen && i.run != nil {
			if err := i.send(ctx); err != nil {
				return err
			}
		}
		return problem
	}
	lastLine := 0
	for event, err := range eventfile.Read(name, content) {
		var events []RunEvent
		if err == nil {
			lastLine = event.Line
			events, err = split.Add(event)
		}
		if err := add(events, err); err != nil {
			return err
		}
	}
	if err := add(split.End()); err != nil {
		return err
	}
	return i.skipThread(ctx, i.endRun(ctx, fmt.Sprintf("the imported log ends in line %d of %s", lastLine, name)))
}

func (i *Importer) add(ctx context.Context, event RunEvent) error {
	if i.run == nil || i.run.name != event.Run {
		err := i.endRun(ctx, fmt.Sprintf("the imported log continues with another run in line %d of %s", event.Line, i.file))
		if err := i.skipThread(ctx, err); err != nil {
			return err
		}
		if i.skipped[event.Run.ThreadID] {
			return nil
		}
		if err := i.beginRun(ctx, event); err != nil {
			return err
		}
	}
	run := i.run
	if len(run.pending) == EventsPerCall || run.pendingBytes+len(event.Raw) > BytesPerCall && len(run.pending) > 0 {
		if err := i.send(ctx); err != nil {
			return err
		}
	}
	i.readTime(event)
	run.pending = append(run.pending, event.Event)
	run.pendingBytes += len(event.Raw)
	switch event.eventType {
	case "RUN_STARTED":
		if !run.hasStarted {
			run.hasStarted, run.carriesInput, run.namesParent = true, eventjson.HasObject(event.Raw, "input"), eventjson.TextMember(event.Raw, "parentRunId") != ""
		}
	case "RUN_FINISHED", "RUN_ERROR":
		run.ended = true
		return i.commit(ctx) // the run stays complete even if the rest of the file has an error
	}
	return nil
}

// readTime counts what the user must know about the timestamp of an event.
func (i *Importer) readTime(event RunEvent) {
	if !bytes.Contains(event.Raw, []byte(`"timestamp"`)) {
		return
	}
	i.HasTimestamps = true
	var stated struct{ Timestamp *float64 }
	if json.Unmarshal(event.Raw, &stated) != nil || stated.Timestamp == nil {
		return
	}
	at, inSeconds, ok := events.TimeOf(*stated.Timestamp)
	if ok = ok && !at.Before(events.EarliestTime); !ok {
		i.WithoutTime++
		i.WithoutTimeAt = cmp.Or(i.WithoutTimeAt, fmt.Sprintf("%s:%d", i.file, event.Line))
	}
	if ok && inSeconds {
		i.InSeconds++
	}
}

// beginRun makes the run of an event the current run.
func (i *Importer) beginRun(ctx context.Context, first RunEvent) error {
	run := &importedRun{name: first.Run, line: first.Line}
	i.lastThread = run.name.ThreadID
	if where := i.halted[run.name.ThreadID]; where != "" {
		return i.badInput(first.Line, fmt.Errorf("thread %q is incomplete since the error in %s, and its later runs must not come before the missing ones: correct that file and import all files again",
			run.name.ThreadID, where))
	}
	var err error
	if run.pool, err = i.databaseOf(ctx, i.scope, run.name.ThreadID); err != nil {
		return err
	}
	if err := i.ChooseTimes(ctx, run.pool); err != nil {
		return err
	}
	err = run.pool.QueryRow(ctx, `
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
		left join agui.input as given
			on given.thread_key operator(pg_catalog.=) run.thread_key and given.run_no operator(pg_catalog.=) run.run_no
		where run.thread_key operator(pg_catalog.=) agui.thread_key($1, $2) and run.run_id operator(pg_catalog.=) $3`,
		i.scope, run.name.ThreadID, run.name.RunID).Scan(&run.status, &run.stored, &run.storedInput)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if run.request, err = i.Options.Requests.take(run.name); err != nil {
		return err
	}
	i.run = run
	return nil
}

// ChooseTimes sets KeepsTimes: whether the role may record events at their timestamps.
func (i *Importer) ChooseTimes(ctx context.Context, pool *pgxpool.Pool) error {
	if i.Role != "" {
		return nil
	}
	err := pool.QueryRow(ctx, `
		select current_user::pg_catalog.text, pg_catalog.has_function_privilege(oid, 'execute')
		from pg_catalog.pg_proc
		where pronamespace operator(pg_catalog.=) 'agui'::pg_catalog.regnamespace and proname operator(pg_catalog.=) 'import_events'`).Scan(&i.Role, &i.KeepsTimes)
	i.KeepsTimes = i.KeepsTimes && !i.Options.Now
	return err
}

func (i *Importer) storeOf(run *importedRun) *pgagui.Store {
	return pgagui.New(run.pool, &pgagui.Config{Scope: i.scope, SetScope: i.scope != ""})
}

// send appends the pending events, in the transaction of the run unless LeaveOpen is set.
func (i *Importer) send(ctx context.Context) error {
	run := i.run
	if len(run.pending) == 0 {
		return nil
	}
	store := i.storeOf(run)
	if !i.Options.LeaveOpen {
		if run.tx == nil {
			var err error
			if run.tx, err = run.pool.Begin(ctx); err != nil {
				return err
			}
			// The next events may be slow to come.
			if err := db.New(run.tx).AllowIdleTransaction(ctx); err != nil {
				return err
			}
		}
		store = store.WithTx(run.tx)
	}
	events := make([]json.RawMessage, len(run.pending))
	for n, event := range run.pending {
		events[n] = event.Raw
	}
	options := pgagui.AppendOptions{AfterSeq: &run.seq, TimesFromEvents: i.KeepsTimes}
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
	if i.Options.LeaveOpen {
		i.count(run)
	}
	progress := i.Done
	progress.Events += run.uncommitted.events
	progress.Bytes += run.uncommitted.bytes
	i.OnProgress(progress)
	return nil
}

// beginWith sets the input and the parent for the append that begins the run.
func (r *importedRun) beginWith(options *pgagui.AppendOptions) {
	options.Input = r.storedInput // a repeated import does not need the requests
	if r.request != nil {
		if r.request.input != nil {
			options.Input = r.request.input
		}
		switch parent := r.request.Parent; {
		case parent == nil, r.request.IsBody && r.namesParent:
		case *parent == "":
			options.NoParent = true
		default:
			options.ParentRunID = *parent
		}
	}
}

// commit appends the pending events and commits the transaction of the run.
func (i *Importer) commit(ctx context.Context) error {
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
func (i *Importer) count(run *importedRun) {
	thread := i.threads[run.name.ThreadID]
	if thread == nil {
		thread = &ImportedThread{ThreadID: run.name.ThreadID}
		i.threads[run.name.ThreadID] = thread
		i.Done.Threads = append(i.Done.Threads, thread)
	}
	if !run.isCounted {
		run.isCounted = true
		i.Done.Runs++
		thread.Runs++
		if !run.carriesInput && run.storedInput == nil && (run.request == nil || run.request.input == nil) {
			i.Done.WithoutInput++
		}
	}
	i.Done.Events += run.uncommitted.events
	i.Done.New += run.uncommitted.new
	i.Done.Bytes += run.uncommitted.bytes
	thread.Events += run.uncommitted.events
	thread.New += run.uncommitted.new
	run.uncommitted.events, run.uncommitted.new, run.uncommitted.bytes = 0, 0, 0
}

// endRun appends the rest of the current run. If the file has no end of the run, it closes the run.
func (i *Importer) endRun(ctx context.Context, cutOff string) error {
	run := i.run
	if run == nil {
		return nil
	}
	if err := i.send(ctx); err != nil {
		return err
	}
	name := fmt.Sprintf("%s:%d: %s", i.file, run.line, run.name)
	switch {
	case run.ended || run.status != "" && run.status != pgagui.Running: // the file or the log has its end
	case run.stored > run.sent:
		i.OnNotice(name + " is in progress, and the log has more events of it than this file")
	case i.Options.LeaveOpen:
		i.OnNotice(name + " has no end and stays in progress")
	default:
		if err := i.close(ctx, run, cutOff); err != nil {
			return i.refused(err)
		}
		i.Done.Closed++
		i.OnNotice(name + " has no end: closed as cut off (" + cutOff + ")")
	}
	if run.request != nil && run.request.AgentError != nil {
		if err := i.inTransactionOf(run).KeepAgentError(ctx, run.name.ref(), *run.request.AgentError); err != nil {
			return i.refused(err)
		}
	}
	if err := i.commit(ctx); err != nil {
		return err
	}
	i.run = nil
	return nil
}

// inTransactionOf returns the store in the transaction of a run, if there is one.
func (i *Importer) inTransactionOf(run *importedRun) *pgagui.Store {
	store := i.storeOf(run)
	if run.tx != nil {
		store = store.WithTx(run.tx)
	}
	return store
}

// close closes a run that has no end in the file.
func (i *Importer) close(ctx context.Context, run *importedRun, cutOff string) error {
	_, err := i.inTransactionOf(run).Abandon(ctx, run.name.ref(), pgagui.AbandonOptions{Reason: cutOff, TimesFromEvents: i.KeepsTimes})
	return err
}

func (i *Importer) badInput(line int, err error) error {
	return &eventfile.Error{File: i.file, Line: line, Err: err}
}

// refused adds to an error of the database the line of the event that it refused. It returns other
// errors, and a missing privilege, which concerns all lines, unchanged.
func (i *Importer) refused(err error) error {
	var refusal *pgagui.Error
	if !errors.As(err, &refusal) || errors.Is(err, pgagui.ErrPermissionDenied) {
		return err
	}
	run := i.run
	if errors.Is(err, pgagui.ErrConflictingRepeat) {
		refusal.Hint = "If this is another conversation with the same ids, import it into another --scope. An input can only be stored when the run begins: to add one, erase the thread first."
	}
	if errors.Is(err, pgagui.ErrRunCutOff) {
		refusal.Hint = "An earlier import of a shorter file may have closed the run; --leave-open prevents that."
	}
	// If the error is of no single event, report the first event that is new to the log, or the whole
	// run.
	position := max(0, run.stored-run.sent)
	if refusal.Event > 0 {
		position = int64(refusal.Event) - 1
	} else if len(run.pending) == 0 || errors.Is(err, pgagui.ErrConflictingRepeat) {
		return i.badInput(run.line, err)
	}
	position = min(position, int64(len(run.pending)-1))
	return i.badInput(run.pending[position].Line, err)
}
