package pgagui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/refusal"
)

// EventsShape is the shape of a history that is the events themselves, as they were appended.
// AttachOptions alone take it.
const EventsShape compaction.Shape = "events"

// AttachOptions say which history Attach returns. The zero value is that of the head, as a
// snapshot.
type AttachOptions struct {
	// At is the run to attach to, and where its history ends.
	At At
	// Shape is the form of the history. compaction.SnapshotShape (if empty): the events that Replay
	// returns, which a client can take although it has seen some of them. compaction.StreamShape:
	// the compacted stream. EventsShape: the events.
	Shape compaction.Shape
	// AfterSeq leaves out the events up to this seq. For EventsShape only.
	AfterSeq int64
}

// CustomEvents says whose CUSTOM events a history repeats.
type CustomEvents string

// The runs whose CUSTOM events AttachPart repeats.
const (
	CustomOfHead    CustomEvents = "head"    // the run that is attached to
	CustomOfLineage CustomEvents = "lineage" // with its ancestors
	CustomOfNone    CustomEvents = "none"
)

// PartBytes is the size of a part of a history, in bytes, if PartOptions names none.
const PartBytes = 8 << 20

// PartOptions say which part of a history AttachPart returns. The zero value is the first part of
// that of the head.
type PartOptions struct {
	// At is the run, and the seq where its history ends. At.Time must be zero. For the parts behind
	// the first one, name the run and the seq that the first one returned.
	At At
	// Part counts from 1, which 0 means, too.
	Part int
	// Bytes is the size of a part. PartBytes if zero.
	Bytes int
	// Custom says whose CUSTOM events the last part repeats. CustomOfHead if empty.
	Custom CustomEvents
}

// Attachment is a conversation at one point in time: its history, and where to follow it from.
type Attachment struct {
	// RunID is the run that was attached to, and Status its status now. Both are empty if the thread
	// does not exist yet.
	RunID  string
	Status Status
	// Running names the runs of the thread that are in progress now. Events contains only those of
	// RunID's lineage.
	Running []string
	// Position is where to continue: FollowOptions.After.
	Position Position
	// Events is the history of the run's lineage up to Position. What is open there stays open, so
	// the next events join it.
	Events []json.RawMessage
	// NextPart is the number of the part behind this one (AttachPart). 0: there is none.
	NextPart int
}

// Attach returns the history of a conversation and the position behind it, in one consistent call.
// A server sends it to a client that connects, and then follows the thread. For a thread that does
// not exist yet it returns an empty history and the zero position.
//
// Errors: ErrUnknownThread if a run or AfterSeq is given; ErrUnknownRun; ErrUnknownShape, also for
// AfterSeq with another shape than EventsShape; ErrLogRewound if the log ends before AfterSeq;
// ErrInvalidEvents (a log that is no stream); ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Attach(ctx context.Context, threadID string, options AttachOptions) (*Attachment, error) {
	attachment, err := s.attach(ctx, threadID, options, false)
	return attachment, ErrorOf(err)
}

// attach is Attach without the conversion of the error. With allRuns the history ends where the first
// of several runs in progress began.
func (s *Store) attach(ctx context.Context, threadID string, options AttachOptions, allRuns bool) (*Attachment, error) {
	options.Shape = cmp.Or(options.Shape, compaction.SnapshotShape)
	row, err := s.of(threadID).Attach(ctx, db.AttachParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		AllRuns: allRuns, AfterSeq: options.AfterSeq, Shape: string(options.Shape), Scope: s.scope,
	})
	return attachmentOf(threadID, db.AttachPartRow{
		RunID: row.RunID, Status: row.Status, Running: row.Running, Seq: row.Seq, RecordedAt: row.RecordedAt, Events: row.Events,
	}, err)
}

// AttachPart returns one part of what Attach returns as a snapshot. A part is small, although a
// conversation may be large: a server needs little memory, and no event is larger than the official
// client takes, unless one message is. A client that applies all parts in their order has exactly the
// stored messages and state. Call it for the first part, then for the others (Attachment.NextPart).
//
// If a message or a value of the state is larger than a client takes, the last part ends with
// RUN_ERROR, whose code is MESSAGE_TOO_LARGE, STATE_TOO_LARGE or MESSAGE_NOT_SENT.
//
// Errors: ErrUnknownThread if a run is given; ErrUnknownRun; ErrInvalidArgument; ErrInvalidEvents (a log that is no stream); ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) AttachPart(ctx context.Context, threadID string, options PartOptions) (*Attachment, error) {
	row, err := s.of(threadID).AttachPart(ctx, db.AttachPartParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), Part: int32(max(options.Part, 1)),
		PartBytes: int32(cmp.Or(options.Bytes, PartBytes)), CustomsOf: string(cmp.Or(options.Custom, CustomOfHead)), Scope: s.scope,
	})
	attachment, err := attachmentOf(threadID, row, err)
	return attachment, ErrorOf(err)
}

func attachmentOf(threadID string, row db.AttachPartRow, err error) (*Attachment, error) {
	if err != nil {
		return nil, err
	}
	events, err := split(row.Events)
	if err != nil {
		return nil, fmt.Errorf("attach to thread %q: %w", threadID, err)
	}
	return &Attachment{
		RunID: row.RunID, Status: Status(row.Status), Running: row.Running, Position: Position{row.Seq, row.RecordedAt}, Events: events, NextPart: int(row.NextPart),
	}, nil
}

// Position is a place in a thread's log: that of the last event that a follower has seen. Its text
// (MarshalText, String) is made for the id of a server-sent event and the header Last-Event-ID.
type Position struct {
	// Seq is the seq of that event. 0: before the first event.
	Seq int64
	// RecordedAt is when that event was recorded. By it, Follow notices that the log was rewound
	// even if it has grown again since. If zero, Follow compares only Seq.
	RecordedAt time.Time
}

// String returns the position as text: the seq, and, if RecordedAt is set, a minus sign and
// RecordedAt in microseconds since 1970.
func (p Position) String() string { return string(p.append(nil)) }

// MarshalText is String.
func (p Position) MarshalText() ([]byte, error) { return p.append(nil), nil }

// AppendText appends what MarshalText returns.
func (p Position) AppendText(text []byte) ([]byte, error) { return p.append(text), nil }

func (p Position) append(text []byte) []byte {
	text = strconv.AppendInt(text, p.Seq, 10)
	if !p.RecordedAt.IsZero() {
		text = append(text, '-')
		text = strconv.AppendInt(text, p.RecordedAt.UnixMicro(), 10)
	}
	return text
}

// UnmarshalText reads what String writes. An empty text is the zero position.
func (p *Position) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = Position{}
		return nil
	}
	seq, micros, hasTime := strings.Cut(string(text), "-")
	var position Position
	var err error
	if position.Seq, err = strconv.ParseInt(seq, 10, 64); err == nil && hasTime {
		var microseconds int64
		microseconds, err = strconv.ParseInt(micros, 10, 64)
		position.RecordedAt = time.UnixMicro(microseconds)
	}
	if err != nil || position.Seq < 0 || strings.HasPrefix(seq, "+") {
		return &Error{
			Kind: ErrInvalidArgument, Message: fmt.Sprintf("%q is no position", text),
			Hint: "A position is a seq, for example 17, or the id of an event as Position.String writes it",
		}
	}
	*p = position
	return nil
}

// FollowOptions say what Follow yields. The zero value follows all runs of a thread from its first
// event, until none is in progress.
type FollowOptions struct {
	// RunID is the run to follow, behind its ancestors. If empty, Follow yields all runs of the
	// thread, on all branches, in the order of seq.
	RunID string
	// NoLineage leaves out the ancestors: only the events of RunID, or of the head if it is empty.
	NoLineage bool
	// After is the last event that the follower has seen.
	After Position
	// Stay waits for what does not exist yet: for the next run if none is in progress, for a thread
	// or a run that has not begun. If RunID is set, the iteration nevertheless ends with the run,
	// after all that the log has at that time: an agent may continue after its end.
	Stay bool
	// History, if set, first yields the history in the shape that Attach has for it, of RunID or of
	// the head. If other runs than the head are in progress and RunID is empty, the history ends
	// where the first of them began, and events follow one by one. Only the last event of the
	// history has a seq. After must be zero.
	History compaction.Shape
	// Heartbeat yields an Event without JSON (Event.IsHeartbeat) after each pause of this length
	// without an event, so that a server can keep its connection open. None if zero, and none while
	// the database cannot be reached.
	Heartbeat time.Duration
	// OnIdle is called before Follow waits for new events or for the database. A caller that buffers
	// what it writes to its client writes it then. It is not called before Follow knows that there
	// is something to follow, so that ErrUnknownThread can still become another answer.
	OnIdle func()
}

// Follow yields the events of a thread or a run: those in the log, then those that are appended,
// each once and in order. It works while a run is in progress and in any process: on another
// machine than the recorder, on a standby, through PgBouncer in transaction mode.
//
// All followers of a Store, with those of the Stores that InScope made of it, share one query for
// new events; with SetScope, those of a scope share one. A slow caller delays no other follower: it
// reads from the database later, and Follow buffers at most a page of 4 MB for it, or one batch
// that is larger. While the database cannot be reached, Follow retries.
//
// An error ends the iteration. The JSON of the events is shared with other followers and must not
// be changed.
//
// Errors: that of ctx; ErrUnknownThread and ErrUnknownRun, unless Stay is set; ErrLogRewound if the
// log has lost the event of the last position (a crash without synchronous_commit, a failover), so
// that the log differs from what the caller has seen; ErrThreadErased; ErrNeedsPool; with History
// also those of Attach.
func (s *Store) Follow(ctx context.Context, threadID string, options FollowOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if s.live == nil {
			yield(Event{}, fmt.Errorf("follow thread %q: %w", threadID, ErrNeedsPool))
			return
		}
		f := &follower{
			store: s, key: live.Key{Scope: s.scope, ThreadID: threadID}, options: options, run: options.RunID, position: options.After, yield: yield, page: live.MinPage,
		}
		if err := f.follow(ctx); err != nil {
			yield(Event{}, err)
		}
	}
}

// ErrNeedsPool is the error of Follow, and of a Recorder, on a Store in a transaction (WithTx) or
// on a single connection. Both make calls at any time, beside those of the caller. Use a Store on a
// pool.
var ErrNeedsPool = errors.New("a recorder or follower needs a pool, not a transaction or a single connection")

// Wake makes the followers of a thread poll for new events at once. It is optional: for programs
// that learn of new events in another way, for example by LISTEN. A Recorder of the same Store does
// it by itself.
func (s *Store) Wake(threadID string) {
	if s.live != nil {
		s.live.Wake(live.Key{Scope: s.scope, ThreadID: threadID})
	}
}

// follower is one iteration of Follow.
type follower struct {
	store    *Store
	key      live.Key
	options  FollowOptions
	position Position // of the last event that was examined
	yield    func(Event, error) bool

	// page is the number of batches that it reads from the database in one query.
	page int
	// run is the run that is followed. Empty: all of them.
	run string
	// runs are the followed run and its ancestors. nil: all runs of the thread.
	runs map[string]bool
	// awaits is true if the followed run does not exist yet, hasCome if its first event is behind
	// the position.
	awaits, hasCome bool
	// mayHaveEnded is true if the iteration may end here. Then the follower queries the database at
	// the end of the log.
	mayHaveEnded bool
	// lastSeq is where the iteration ends, once that is known.
	lastSeq *int64
	// isKnown is true once an event was yielded, or the database or the hub has said what is in progress.
	isKnown bool
	// pauseBegan is when the follower first waited after the last event or heartbeat. Zero: it has not.
	pauseBegan time.Time
	// isLeft is true if the caller has left the loop.
	isLeft bool
}

func (f *follower) follow(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	hub := f.store.live
	topic := hub.Join(f.key)
	defer hub.Leave(topic)
	var queried <-chan struct{} // the signal of the topic at which the database had no event behind the position
	for !f.isLeft && (f.lastSeq == nil || f.position.Seq < *f.lastSeq) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.hasCome {
			f.hasCome, f.position = false, f.options.After
			if err := f.begin(ctx); err != nil {
				return err
			}
			continue
		}
		chunks, changed, isAhead := hub.After(topic, live.Position(f.position))
		switch {
		case chunks != nil:
			f.pass(chunks)
		case changed == nil || isAhead && changed != queried: // the topic does not reach to here
			f.idle()
			chunks, isMore, err := f.read(ctx, f.page)
			if err != nil {
				return err
			}
			f.pass(chunks)
			f.page = live.PageLike(chunks)
			if f.isLeft || f.hasCome || isMore || hub.IsInProgress(topic, live.Position(f.position), f.run) {
				continue
			}
			running, err := f.findEnd(ctx)
			if err != nil {
				return err
			}
			f.isKnown = true
			hub.Open(topic, live.Position(f.position), running)
			queried = changed
		case f.mayHaveEnded && !hub.IsInProgress(topic, live.Position(f.position), f.run):
			f.idle()
			if _, err := f.findEnd(ctx); err != nil {
				return err
			}
		default:
			if err := f.wait(ctx, changed); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin finds the first position, and emits the history if the options have one. It is called a
// second time when an awaited run begins.
func (f *follower) begin(ctx context.Context) error {
	f.mayHaveEnded, f.awaits = true, false
	switch {
	case f.options.History == "" && f.options.RunID == "" && !f.options.NoLineage:
		return nil
	case f.options.History != "" && f.options.After.Seq != 0:
		return errors.New("follow: After and History exclude each other: a follower that has seen a part of the log continues from there")
	case f.options.History != "" && f.options.NoLineage:
		return errors.New("follow: NoLineage and History exclude each other: a history is that of the lineage")
	}
	// This query comes first: a run that begins between the two queries is behind this end of the
	// log. It also waits for a standby that lags. Without Stay, and from the beginning, neither
	// matters.
	var logEnd int64
	if f.options.Stay || f.position.Seq > 0 {
		progress, err := f.progress(ctx)
		if err != nil {
			return err
		}
		logEnd = progress.LogEnd
	}
	err := f.beginRun(ctx)
	if f.options.Stay && (errors.Is(err, ErrUnknownThread) || errors.Is(err, ErrUnknownRun)) {
		// begin examines what was in the log before the run when the run begins.
		f.awaits = true
		f.goTo(logEnd)
		return nil
	}
	return err
}

// beginRun looks up the followed run, or the head.
func (f *follower) beginRun(ctx context.Context) error {
	if f.options.History != "" {
		return f.attach(ctx)
	}
	lineage, err := query(ctx, f, func(ctx context.Context) ([]Run, error) {
		return f.store.Lineage(ctx, RunRef{ThreadID: f.key.ThreadID, RunID: f.options.RunID})
	})
	if err != nil {
		return err
	}
	f.isKnown = true
	run := lineage[len(lineage)-1]
	if f.options.NoLineage {
		lineage = lineage[len(lineage)-1:]
	}
	f.run, f.runs = run.ID, map[string]bool{}
	for _, ancestor := range lineage {
		f.runs[ancestor.ID] = true
	}
	if run.Status != Running {
		f.lastSeq = &run.LastSeq
	}
	f.goTo(lineage[0].FirstSeq - 1)
	return nil
}

// attach emits the history.
func (f *follower) attach(ctx context.Context) error {
	attached, err := query(ctx, f, func(ctx context.Context) (*Attachment, error) {
		options := AttachOptions{At: At{RunID: f.options.RunID}, Shape: f.options.History}
		return f.store.attach(ctx, f.key.ThreadID, options, f.options.RunID == "")
	})
	if err != nil {
		return err
	}
	if f.options.RunID != "" {
		f.runs = map[string]bool{f.run: true}
		if attached.Status != Running {
			f.lastSeq = &attached.Position.Seq
		}
	}
	runID := attached.RunID
	for i, payload := range attached.Events {
		event := Event{Type: compaction.EventType(payload), JSON: payload}
		if event.Type == "RUN_STARTED" {
			runID = cmp.Or(textMember(payload, "runId"), runID)
		}
		event.RunID = runID
		if i == len(attached.Events)-1 {
			event.Seq, event.RecordedAt = attached.Position.Seq, attached.Position.RecordedAt
		}
		if f.emit(event); f.isLeft {
			return nil
		}
	}
	f.position = attached.Position
	return nil
}

// textMember returns the value of a member of an object. Empty if it is no string.
func textMember(object json.RawMessage, name string) (text string) {
	_ = json.Unmarshal(rawjson.MemberOf(object, name), &text)
	return text
}

// goTo skips the events up to a seq.
func (f *follower) goTo(seq int64) {
	if f.position.Seq < seq {
		f.position = Position{Seq: seq}
	}
}

// pass emits the new events of the followed runs.
func (f *follower) pass(chunks []live.Chunk) {
	for _, chunk := range chunks {
		for _, event := range chunk.Events {
			if event.Seq <= f.position.Seq {
				continue
			}
			isFollowed := f.run == "" || event.RunID == f.run
			if f.hasCome = f.awaits && isFollowed; f.hasCome {
				return
			}
			f.position = Event(event).Position()
			if f.awaits || f.runs != nil && !f.runs[event.RunID] {
				continue
			}
			if isFollowed && (event.Type == "RUN_FINISHED" || event.Type == "RUN_ERROR") {
				f.mayHaveEnded = true
			}
			if f.emit(Event(event)); f.isLeft {
				return
			}
		}
	}
}

// findEnd queries which runs are in progress, and determines whether the iteration has an end.
func (f *follower) findEnd(ctx context.Context) (running []string, err error) {
	progress, err := f.progress(ctx)
	if err != nil {
		return nil, err
	}
	f.mayHaveEnded = false
	switch {
	case f.run != "":
		if !f.awaits && !slices.Contains(progress.RunIds, f.run) {
			f.lastSeq = &progress.LogEnd
		}
	case f.options.Stay:
	case progress.LogEnd == 0:
		return nil, &Error{
			Kind: ErrUnknownThread, Message: fmt.Sprintf("thread %q is unknown", f.key.ThreadID),
			Hint: "A thread exists once a run of it has begun. Is it in another scope?",
		}
	case len(progress.RunIds) == 0:
		f.lastSeq = &progress.LogEnd
	}
	return progress.RunIds, nil
}

// emit yields an event or a heartbeat.
func (f *follower) emit(event Event) {
	f.isKnown = true
	f.pauseBegan = time.Time{}
	f.isLeft = !f.yield(event, nil)
}

// idle is called before the follower waits.
func (f *follower) idle() {
	if f.options.OnIdle != nil && f.isKnown {
		f.options.OnIdle()
	}
}

// wait waits for new events, and emits heartbeats meanwhile.
func (f *follower) wait(ctx context.Context, changed <-chan struct{}) error {
	f.isKnown = true // to the hub
	for !f.isLeft {
		f.idle()
		var heartbeat <-chan time.Time
		if f.options.Heartbeat > 0 {
			if f.pauseBegan.IsZero() {
				f.pauseBegan = time.Now()
			}
			heartbeat = time.After(time.Until(f.pauseBegan.Add(f.options.Heartbeat)))
		}
		select {
		case <-changed:
			return nil
		case <-heartbeat:
			f.emit(Event{})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// progress queries where the log ends and which runs are in progress. A standby may lag behind what
// the follower has seen elsewhere, and so may its answer about the runs: progress waits for it.
func (f *follower) progress(ctx context.Context) (db.RunsInProgressRow, error) {
	pauses := live.Pauses(f.store.live.Interval(), time.Second)
	for {
		progress, err := query(ctx, f, func(ctx context.Context) (db.RunsInProgressRow, error) {
			return f.store.of(f.key.ThreadID).RunsInProgress(ctx, db.RunsInProgressParams{Scope: f.key.Scope, ThreadID: f.key.ThreadID})
		})
		if err != nil || progress.LogEnd >= f.position.Seq {
			return progress, err
		}
		if _, _, err := f.read(ctx, 1); err != nil {
			return progress, err // it is no standby: the log was rewound
		}
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-ctx.Done():
			return progress, ctx.Err()
		}
	}
}

// read queries the events behind the position, at most page batches.
func (f *follower) read(ctx context.Context, page int) (chunks []live.Chunk, isMore bool, err error) {
	chunks, isMore, err = f.store.live.Read(ctx, f.key, live.Position(f.position), page)
	if problem, ok := errors.AsType[*live.Problem](err); ok {
		err = cannotFollow(f.key, f.position, problem.SQLState)
	}
	return chunks, isMore, ErrorOf(err)
}

// query makes a call to the database, and retries it while the database cannot be reached.
func query[T any](ctx context.Context, f *follower, call func(context.Context) (T, error)) (T, error) {
	answer, err := live.Retry(ctx, f.store.live.RetryPolicy(f.key), call)
	return answer, ErrorOf(err)
}

// cannotFollow returns the error for a thread that cannot be followed from a position. problem is
// its SQLSTATE.
func cannotFollow(key live.Key, after Position, problem string) error {
	switch kind := refusal.OfState[problem]; kind {
	case refusal.Moved:
		return &Error{
			Kind: kind, Message: fmt.Sprintf("thread %q is on another node of the cluster", key.ThreadID),
			Hint: "Repeat the call. If a move of the thread was interrupted, repeat the move (pgagui cluster move).",
		}
	case refusal.ThreadErased:
		return &Error{Kind: kind, Message: fmt.Sprintf("thread %q was erased", key.ThreadID)}
	case refusal.KeyCollision:
		return &Error{Kind: kind, Message: fmt.Sprintf("thread %q has the same key as another thread", key.ThreadID)}
	default:
		return &Error{
			Kind:    kind,
			Message: fmt.Sprintf("thread %q: its log was rewound: it ends before seq %d, or has another event there than was seen", key.ThreadID, after.Seq),
			Hint:    "A crash without synchronous_commit, or a failover, took events back. Restore the thread and follow it from there.",
		}
	}
}
