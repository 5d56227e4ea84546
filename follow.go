package pgagui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// Position is a place in a thread's log: that of the last event that a follower has seen.
type Position struct {
	// Seq is that event's; 0: before the first one.
	Seq int64 `json:"seq"`
	// RecordedAt is that event's. A log that was rewound is known by it, even when it has grown again since; zero: it is not looked at.
	RecordedAt time.Time `json:"recordedAt,omitzero"`
}

// Position is where a follower goes on that has seen this event.
func (e Event) Position() Position { return Position{e.Seq, e.RecordedAt} }

// FollowOptions say what Follow yields. The zero value follows all runs of a thread from its first event on, and ends when none is in progress.
type FollowOptions struct {
	// RunID is the run to follow, after the runs that it goes on from; empty: all runs of the thread, those on other branches too, in the order
	// of their seqs.
	RunID string
	// NoLineage leaves out what is before the run: the events of RunID (empty: the head) alone.
	NoLineage bool
	// After is the last event that the follower has seen: it goes on behind it. Restored.Seq is one, too.
	After Position
	// Stay waits for what does not exist yet: for the next run once none is in progress, for a thread or a run that has not begun. A run that
	// is followed by its id still ends the iteration when it ends, with all that the log has by then: an agent may go on after its end.
	Stay bool
	// History, when set, yields what has passed in short in place of the events themselves, as Attach does in this shape, for the run that is
	// followed or, when none is named, the head. Where all runs are followed and others than the head are in progress, it ends where the first
	// of them began, and from there on events come one by one. Only the last event of the history has a seq, the one to go on from. After must
	// be zero.
	History compaction.Shape
}

// Follow yields the events of a thread or a run, those in the log and then those that come, each once and in order. It may be called while a run is in
// progress, anywhere: in another process than the recorder's, on a standby, through PgBouncer in transaction mode.
//
// All followers of a Store (with those that InScope made of it) share one query for what is new; with SetScope, those of a scope do. A follower whose caller
// is slow reads from the database later on, and holds nobody up: it keeps no more than a page of up to 4 MB, or one batch that is larger. While the database
// cannot be reached, followers wait for it.
//
// An error ends the iteration: that of ctx; ErrUnknownThread and ErrUnknownRun, unless Stay; ErrLogRewound when the log has lost the event of the last
// position (a crash without synchronous_commit, a failover): what was seen is then not what the log says; ErrThreadErased. The payloads are
// shared with other followers and must not be changed.
func (s *Store) Follow(ctx context.Context, threadID string, options FollowOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if s.live == nil {
			yield(Event{}, fmt.Errorf("follow thread %q: %w", threadID, ErrNeedsPool))
			return
		}
		f := &follower{
			store: s, key: topicKey{s.scope, threadID}, options: options, run: options.RunID, position: options.After, yield: yield, page: minPage,
		}
		if err := f.follow(ctx); err != nil {
			yield(Event{}, err)
		}
	}
}

// Wake says that a thread has news, so that they reach its followers at once and not only when the Store asks next. Nothing needs it; it is for those
// who hear of news on another way. A Recorder of the same Store does it by itself.
func (s *Store) Wake(threadID string) { s.live.wake(s.scope, threadID) }

// follower is one iteration of Follow.
type follower struct {
	store    *Store
	key      topicKey
	options  FollowOptions
	position Position // of the last event that was looked at
	yield    func(Event, error) bool

	// page is how many batches it asks the database for at once.
	page int
	// run is the one that is followed; empty: all of them.
	run string
	// runs are the followed run and, for their past, those that it goes on from; nil: all runs of the thread.
	runs map[string]bool
	// awaits says that the followed run does not exist yet, and hasCome that its first event is behind the position.
	awaits, hasCome bool
	// mayHaveEnded says that nothing more may be to come: the database has to be asked at the end of the log.
	mayHaveEnded bool
	// lastSeq is the last seq to look at, once it is known where the iteration ends.
	lastSeq *int64
	// isLeft says that the caller wants no more.
	isLeft bool
}

func (f *follower) follow(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	hub := f.store.live
	topic := hub.join(f.key)
	defer hub.leave(topic)
	var asked <-chan struct{} // the signal of the topic at which the database had nothing behind the position
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
		chunks, changed, isAhead := hub.after(topic, f.position)
		switch {
		case chunks != nil:
			f.pass(chunks)
		case changed == nil || isAhead && changed != asked: // the topic does not reach to here
			chunks, isMore, err := hub.read(ctx, f.key, f.position, f.page)
			if err != nil {
				return err
			}
			f.pass(chunks)
			f.page = pageLike(chunks)
			if f.isLeft || f.hasCome || isMore || hub.isInProgress(topic, f.position, f.run) {
				continue
			}
			running, err := f.findEnd(ctx)
			if err != nil {
				return err
			}
			hub.open(topic, f.position, running)
			asked = changed
		case f.mayHaveEnded && !hub.isInProgress(topic, f.position, f.run):
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

// begin finds where to begin, and yields what has passed when it shall be short. A run that is waited for is looked for once more when it begins.
func (f *follower) begin(ctx context.Context) error {
	f.mayHaveEnded, f.awaits = true, false
	switch {
	case f.options.History == "" && f.options.RunID == "" && !f.options.NoLineage:
		return nil
	case f.options.History != "" && f.options.After.Seq != 0:
		return errors.New("follow: After and History exclude each other: who has seen a part of the log goes on from there")
	case f.options.History != "" && f.options.NoLineage:
		return errors.New("follow: NoLineage and History exclude each other: a history is that of the lineage")
	}
	// Asked first, for a run that begins in between is behind the end of the log that this tells; and it waits for a standby that lags. Without
	// Stay, and from the beginning, neither matters.
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
		// What was in the log before the run begins is looked at then.
		f.awaits = true
		f.goTo(logEnd)
		return nil
	}
	return err
}

// beginRun looks up the run that is followed, or else the head.
func (f *follower) beginRun(ctx context.Context) error {
	if f.options.History != "" {
		return f.attach(ctx)
	}
	lineage, err := asked(ctx, f, func(ctx context.Context) ([]Run, error) {
		return f.store.Lineage(ctx, f.key.threadID, f.options.RunID)
	})
	if err != nil {
		return err
	}
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

// attach yields the history in short.
func (f *follower) attach(ctx context.Context) error {
	attached, err := asked(ctx, f, func(ctx context.Context) (*Attachment, error) {
		options := AttachOptions{At: At{RunID: f.options.RunID}, Shape: f.options.History}
		return f.store.attach(ctx, f.key.threadID, options, f.options.RunID == "")
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
		event := Event{Type: compaction.EventType(payload), Payload: payload}
		if event.Type == "RUN_STARTED" {
			runID = cmp.Or(textMember(payload, "runId"), runID)
		}
		event.RunID = runID
		if i == len(attached.Events)-1 {
			event.Seq, event.RecordedAt = attached.Position.Seq, attached.Position.RecordedAt
		}
		if f.isLeft = !f.yield(event, nil); f.isLeft {
			return nil
		}
	}
	f.position = attached.Position
	return nil
}

// textMember is the value of a member of an object; empty where it is no string.
func textMember(object json.RawMessage, name string) (text string) {
	for member, value := range compaction.Members(object) {
		if member == name {
			_ = json.Unmarshal(value, &text)
		}
	}
	return text
}

// goTo passes over the events up to a seq.
func (f *follower) goTo(seq int64) {
	if f.position.Seq < seq {
		f.position = Position{Seq: seq}
	}
}

// pass yields what is new of the followed runs.
func (f *follower) pass(chunks []chunk) {
	for _, chunk := range chunks {
		for _, event := range chunk.events {
			if event.Seq <= f.position.Seq {
				continue
			}
			isFollowed := f.run == "" || event.RunID == f.run
			if f.hasCome = f.awaits && isFollowed; f.hasCome {
				return
			}
			f.position = event.Position()
			if f.awaits || f.runs != nil && !f.runs[event.RunID] {
				continue
			}
			if isFollowed && (event.Type == "RUN_FINISHED" || event.Type == "RUN_ERROR") {
				f.mayHaveEnded = true
			}
			if f.isLeft = !f.yield(event, nil); f.isLeft {
				return
			}
		}
	}
}

// findEnd asks which runs are in progress, and finds out whether the iteration has an end.
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
			Kind: ErrUnknownThread, Message: fmt.Sprintf("thread %q is unknown", f.key.threadID),
			Hint: "A thread exists once a run of it has begun. Is it in another scope?",
		}
	case len(progress.RunIds) == 0:
		f.lastSeq = &progress.LogEnd
	}
	return progress.RunIds, nil
}

// wait waits for news.
func (f *follower) wait(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// progress asks where the log ends and which runs are in progress. A standby may have less than the follower has seen elsewhere: it is
// waited for, as what it says of the runs is older than that.
func (f *follower) progress(ctx context.Context) (db.RunsInProgressRow, error) {
	const longest = time.Second
	for pause := f.store.live.interval; ; pause = min(2*pause, longest) {
		progress, err := asked(ctx, f, func(ctx context.Context) (db.RunsInProgressRow, error) {
			return f.store.queries.RunsInProgress(ctx, db.RunsInProgressParams{Scope: f.key.scope, ThreadID: f.key.threadID})
		})
		if err != nil || progress.LogEnd >= f.position.Seq {
			return progress, err
		}
		if _, _, err := f.store.live.read(ctx, f.key, f.position, 1); err != nil {
			return progress, err // it is no standby: the log was rewound
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return progress, ctx.Err()
		}
	}
}

// asked asks the database again while it cannot be reached.
func asked[T any](ctx context.Context, f *follower, ask func(context.Context) (T, error)) (T, error) {
	answer, err := again(ctx, f.store.live.attempts(), ask)
	return answer, refusal(err)
}

// cannotFollow says why a thread cannot be followed from a position, given the SQLSTATE of the problem.
func cannotFollow(key topicKey, after Position, problem string) error {
	switch kind := errorOfState[problem]; kind {
	case ErrThreadErased:
		return &Error{Kind: kind, Message: fmt.Sprintf("thread %q was erased", key.threadID)}
	case ErrKeyCollision:
		return &Error{Kind: kind, Message: fmt.Sprintf("thread %q has the same key as another thread", key.threadID)}
	default:
		return &Error{
			Kind:    kind,
			Message: fmt.Sprintf("thread %q: its log was rewound: it ends before seq %d, or has another event there than was seen", key.threadID, after.Seq),
			Hint:    "A crash without synchronous_commit, or a failover, took events back. Restore the thread and follow it from there.",
		}
	}
}
