package pgagui

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/refusal"
)

// Change is a run that began, ended, or took events after its end, as it was when it was read; or a thread that was erased.
type Change struct {
	// Position goes on behind the change (ChangesOptions.After).
	Position    string    `json:"position"`
	Scope       string    `json:"scope"`
	ThreadID    string    `json:"threadId"`
	RunID       string    `json:"runId"`
	ParentRunID string    `json:"parentRunId,omitempty"`
	Status      Status    `json:"status"`
	FirstSeq    int64     `json:"firstSeq"`
	LastSeq     int64     `json:"lastSeq,omitzero"` // 0 while it is running
	StartedAt   time.Time `json:"startedAt"`
	EndedAt     time.Time `json:"endedAt,omitzero"` // zero while it is running
	// ThreadUID is a random id of the thread, another one if it is erased and begun again. What was copied of a thread is recognized by
	// it when it is erased.
	ThreadUID string `json:"threadUid"`
	// IsErased: the thread was erased. Only Position and ThreadUID are set, for its name is not kept.
	IsErased bool `json:"isErased,omitzero"`
	// ReadSeq is up to where a consumer has processed the events of the thread (Consumer.MarkRead).
	ReadSeq int64 `json:"readSeq,omitzero"`
}

// MarshalJSON leaves out what an erased thread does not have.
func (c Change) MarshalJSON() ([]byte, error) {
	if c.IsErased {
		return json.Marshal(struct {
			Position  string `json:"position"`
			ThreadUID string `json:"threadUid"`
			IsErased  bool   `json:"isErased"`
		}{c.Position, c.ThreadUID, true})
	}
	type run Change
	return json.Marshal(run(c))
}

// ChangesOptions belong to Changes.
type ChangesOptions struct {
	// After is the position of the last change that was read. Empty: all runs come first, then those that change.
	After string
	// AllScopes reads the changes of all scopes that the role sees, not only of the Store's.
	AllScopes bool
	// Limit is how many changes are returned at most, up to 10,000; 0: 1,000.
	Limit int
}

// Changes returns the runs of all threads of the scope that began, ended or took events after their end, behind a position, each at least
// once. A reader that keeps the position of the last change can stop at any time and misses nothing: a run whose transaction is in
// progress, or began after one that is, comes later. No change: nothing has happened, so call again later. Read the events of a run with
// Store.Events. Threads that are erased come as well (Change.IsErased).
//
// In a cluster a position is that of all nodes, and those of a single database do not count. A thread that was moved comes with all of its
// runs.
//
// Errors: ErrOtherHistory (the database was restored or failed over, so begin again), ErrInvalidArgument (not a position),
// ErrLimitExceeded. In a cluster an *UnansweredError comes with the changes of the nodes that answered. The others continue from where they
// were.
func (s *Store) Changes(ctx context.Context, options ChangesOptions) ([]Change, error) {
	var scope *string
	if !options.AllScopes {
		scope = &s.scope
	}
	after, err := s.backend.positions(options.After)
	if err != nil {
		return nil, err
	}
	return s.changes(ctx, after, options.Limit, func(ctx context.Context, on part, limit int32) ([]Change, error) {
		rows, err := on.Changes(ctx, db.ChangesParams{After: orNull(after[on.name]), MaxRows: limit, Scope: scope})
		return listOf(rows, err, func(row db.ChangesRow) Change { return changeOf(db.ConsumeRow(row)) })
	})
}

// changes reads a page of changes behind positions, a share of it on each database, and takes them from
// the databases in turn.
func (s *Store) changes(
	ctx context.Context, after positions, limit int, read func(ctx context.Context, on part, limit int32) ([]Change, error),
) ([]Change, error) {
	most := pageSize(limit, 1000)
	share := most
	if n := int32(len(s.backend.nodes())); n > 0 && most >= 1 && most <= 10_000 { // another limit is refused
		share = (most + n - 1) / n
	}
	type page struct {
		of      string
		changes []Change
	}
	pages, err := gather(ctx, s, func(ctx context.Context, on part) (page, error) {
		changes, err := read(ctx, on, share)
		return page{on.name, changes}, err
	})
	if pages == nil {
		return nil, err
	}
	changes := []Change{}
	at := maps.Clone(after)
	for i, isMore := 0, true; isMore; i++ {
		isMore = false
		for _, page := range pages {
			if i < len(page.changes) && len(changes) < int(most) {
				isMore = true
				change := page.changes[i]
				at[page.of] = change.Position
				change.Position = at.String()
				changes = append(changes, change)
			}
		}
	}
	return changes, err
}

// positions are those of a reader of changes, by the name of the database (part.name).
type positions map[string]string

func (p positions) String() string {
	if text, isOne := p[""]; isOne || len(p) == 0 {
		return text
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // of texts
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func changeOf(row db.ConsumeRow) Change {
	return Change{
		Position: row.Position, Scope: row.Scope, ThreadID: row.ThreadID, RunID: row.RunID, ParentRunID: row.ParentRunID,
		Status: Status(row.Status), FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, EndedAt: row.EndedAt,
		ThreadUID: row.ThreadUid.String(), IsErased: row.IsErased, ReadSeq: row.ReadSeq,
	}
}

// Consumer is a reader of Changes with a name, whose place the database keeps. It can stop at any time and go on in another process. Two
// processes that use one consumer at once may both get a change.
type Consumer struct {
	store *Store
	name  string
	scope *string
}

// Consumer returns the consumer of the Store's scope with a name. It exists once it was moved.
func (s *Store) Consumer(name string) Consumer { return Consumer{s, name, &s.scope} }

// ConsumerOfAllScopes returns the consumer of all scopes with a name. With row-level security, the role must be an operator.
func (s *Store) ConsumerOfAllScopes(name string) Consumer { return Consumer{s, name, nil} }

// Changes returns the changes behind the place of the consumer, as Store.Changes does, up to a limit (0: 1,000). The place stays until Move.
//
// Errors: ErrOtherHistory (the database was restored or failed over: Move to begin again), ErrInvalidArgument, ErrLimitExceeded. In a
// cluster an *UnansweredError comes with the changes of the nodes that answered.
func (c Consumer) Changes(ctx context.Context, limit int) ([]Change, error) {
	return c.store.changes(ctx, positions{}, limit, func(ctx context.Context, on part, limit int32) ([]Change, error) {
		rows, err := on.Consume(ctx, db.ConsumeParams{Consumer: c.name, MaxRows: limit, Scope: c.scope})
		return listOf(rows, err, changeOf)
	})
}

// Move notes that the changes up to a position are processed. Empty: the consumer begins again, with all runs and all events. With
// WithTx it is a part of the transaction that processes them. In a cluster each node keeps the place in its own changes, so a consumer that
// moves with WithTx is one for each node (Store.OnNode).
//
// Errors: ErrOtherHistory, ErrInvalidArgument (not a position, or the name is empty or longer than 200 bytes). After an *UnansweredError the
// changes of those nodes come once more.
func (c Consumer) Move(ctx context.Context, position string) error {
	at, err := c.store.backend.positions(position)
	if err != nil {
		return err
	}
	return c.store.backend.each(ctx, c.store.caller, func(ctx context.Context, on part) error {
		if at[on.name] == "" && position != "" { // the position is from before a change of this database
			places, err := on.Consumers(ctx)
			if err != nil || slices.ContainsFunc(places, c.isAt) {
				return err
			}
		}
		return on.MoveConsumer(ctx, db.MoveConsumerParams{Consumer: c.name, Position: orNull(at[on.name]), Scope: c.scope})
	})
}

// isAt says whether a place is that of the consumer.
func (c Consumer) isAt(place db.ConsumersRow) bool {
	isOfAll := c.scope == nil
	return place.Consumer == c.name && place.AllScopes == isOfAll && (isOfAll || place.Scope == *c.scope)
}

// MarkRead notes that the events of a thread up to a seq are processed, which Changes then returns as ReadSeq. Events calls it. change
// names the thread: Scope, ThreadID and ThreadUID. If the thread was erased since, it notes nothing.
//
// Errors: ErrInvalidArgument (the thread is of another scope than the consumer, or the name is empty or longer than 200 bytes),
// ErrKeyCollision.
func (c Consumer) MarkRead(ctx context.Context, change Change, seq int64) error {
	var uid pgtype.UUID
	if change.ThreadUID != "" {
		if err := uid.Scan(change.ThreadUID); err != nil {
			return unknown(ErrInvalidArgument, "ThreadUID: %v", err)
		}
	}
	return ErrorOf(c.store.ofScope(change.Scope, change.ThreadID).MarkRead(ctx, db.MarkReadParams{
		Consumer: c.name, ThreadID: change.ThreadID, Seq: seq, ThreadScope: change.Scope, ThreadUid: uid, Scope: c.scope,
	}))
}

// Remove forgets the consumer and its place, in a cluster on all nodes. It reports whether there was one. After an *UnansweredError, repeat
// the call.
func (c Consumer) Remove(ctx context.Context) (wasKnown bool, err error) {
	known, err := gather(ctx, c.store, func(ctx context.Context, on part) (bool, error) {
		return on.RemoveConsumer(ctx, db.RemoveConsumerParams{Consumer: c.name, Scope: c.scope})
	})
	return slices.Contains(known, true), err
}

// ChangedEvent is an event of a thread that changed; or a thread that was erased.
type ChangedEvent struct {
	Scope    string
	ThreadID string
	// ThreadUID and IsErased are those of Change: with IsErased, all else is empty.
	ThreadUID string
	IsErased  bool
	Event
}

// Events yields the events of all threads that the consumer has not processed: those of a thread in the order of seq, each once. They come
// when a run of the thread begins or ends, not one by one. For a thread that is erased it yields one with IsErased: remove all that has
// its ThreadUID. The place of the consumer moves as the caller goes on: an event counts as
// processed when the caller wants the next one. After a break the event of the break comes
// once more; after an error or the end of the process, those of a page may. The iteration
// ends when there is none left; call it again later.
//
// In a cluster the events of a thread that was moved may come once more, and an *UnansweredError comes last, behind the events of the nodes
// that answered.
//
// Errors: those of Consumer.Changes; ErrKeyCollision, ErrInvalidEvents, ErrLogDamaged (MarkRead goes on behind the damage), ErrMoved
// (no node of the cluster has the thread).
func (c Consumer) Events(ctx context.Context) iter.Seq2[ChangedEvent, error] {
	return func(yield func(ChangedEvent, error) bool) {
		var missing UnansweredError
		for {
			changes, err := c.Changes(ctx, 100)
			err = missing.take(err)
			if err == nil && len(changes) > 0 {
				var goesOn bool
				if goesOn, err = c.eventsOf(ctx, changes, yield); !goesOn && err == nil {
					return
				}
				if err == nil {
					err = missing.take(c.Move(ctx, changes[len(changes)-1].Position))
				}
			}
			if err == nil && len(changes) == 0 {
				err = missing.orNil()
			}
			if err != nil {
				yield(ChangedEvent{}, err)
				return
			}
			if len(changes) == 0 {
				return
			}
		}
	}
}

// eventsOf yields the events of the threads of a page of changes that are not processed.
func (c Consumer) eventsOf(ctx context.Context, changes []Change, yield func(ChangedEvent, error) bool) (goesOn bool, err error) {
	known := map[string]bool{}
	var threads []Change
	params := db.PollParams{MaxRows: 100, PageBytes: 16 << 20}
	for _, change := range changes {
		switch {
		case known[change.ThreadUID]:
			continue
		case change.IsErased:
			if !yield(ChangedEvent{ThreadUID: change.ThreadUID, IsErased: true}, nil) {
				return false, nil
			}
		default:
			threads = append(threads, change)
			params.Scopes, params.ThreadIds = append(params.Scopes, change.Scope), append(params.ThreadIds, change.ThreadID)
			params.AfterSeqs = append(params.AfterSeqs, change.ReadSeq)
			params.AfterTimes = append(params.AfterTimes, time.Time{})
		}
		known[change.ThreadUID] = true
	}
	if len(threads) == 0 {
		return true, nil
	}
	for {
		rows, err := c.store.backend.ofMany(c.store.caller).Poll(ctx, params)
		if err != nil {
			return false, ErrorOf(err)
		}
		read := map[int32]bool{}
		markRead := func() error {
			for i := range read {
				if err := c.MarkRead(ctx, threads[i], params.AfterSeqs[i]); err != nil {
					return err
				}
			}
			return nil
		}
		for _, row := range rows {
			i := row.ThreadNo - 1
			thread := threads[i]
			batch := live.Batch{
				ThreadID: thread.ThreadID, RunID: row.RunID, FirstSeq: row.FirstSeq, RecordedAt: row.RecordedAt, EarlierUs: row.EarlierUs, Events: row.Events,
			}
			switch {
			case row.Problem == refusal.ThreadErased.State: // erased in the meantime
				continue
			case row.Problem == refusal.LogRewound.State:
				return false, unknown(ErrOtherHistory, "the log of thread %q does not have event %d any more", thread.ThreadID, params.AfterSeqs[i])
			case row.Problem != "":
				return false, cannotFollow(live.Key{Scope: thread.Scope, ThreadID: thread.ThreadID}, Position{Seq: params.AfterSeqs[i]}, row.Problem)
			}
			for event, err := range batch.All() {
				if err != nil {
					return false, unknown(ErrLogDamaged, "%v", err)
				}
				if !yield(ChangedEvent{thread.Scope, thread.ThreadID, thread.ThreadUID, false, Event(event)}, nil) {
					_ = markRead() // if it fails, these come once more
					return false, nil
				}
				params.AfterSeqs[i], read[i] = event.Seq, true
			}
		}
		if len(read) == 0 {
			return true, nil
		}
		if err := markRead(); err != nil {
			return false, err
		}
	}
}

// ConsumerPlace is how far a consumer has come.
type ConsumerPlace struct {
	// AllScopes: it reads all scopes, else the one of Scope.
	AllScopes bool   `json:"allScopes,omitzero"`
	Scope     string `json:"scope"`
	Consumer  string `json:"consumer"`
	// Position is up to where it has processed the changes. Empty: none.
	Position string `json:"position,omitempty"`
	// Behind is how many changed runs and erased threads it has not processed. Not more than 10,000 are counted, of each node.
	Behind int64 `json:"behind"`
	// IsLost: the position is of another history of transactions (ErrOtherHistory). Remove the consumer, or Move it to "".
	IsLost    bool      `json:"isLost,omitzero"`
	CreatedAt time.Time `json:"createdAt"`
	MovedAt   time.Time `json:"movedAt"`
}

// Consumers returns the consumers of the scopes that the role sees. Those of all scopes come only for a role that sees all. In a cluster a
// consumer is behind by the changes of all nodes; an *UnansweredError comes with what those that answered say.
func (s *Store) Consumers(ctx context.Context) ([]ConsumerPlace, error) {
	answers, err := gather(ctx, s, func(ctx context.Context, on part) ([]ConsumerPlace, error) {
		rows, err := on.Consumers(ctx)
		return listOf(rows, err, func(row db.ConsumersRow) ConsumerPlace {
			if row.Position != "" {
				row.Position = positions{on.name: row.Position}.String()
			}
			return ConsumerPlace(row)
		})
	})
	type name struct {
		allScopes       bool
		scope, consumer string
	}
	nameOf := func(place ConsumerPlace) name { return name{place.AllScopes, place.Scope, place.Consumer} }
	return mergeRows(answers, nameOf, func(sum *ConsumerPlace, place ConsumerPlace) {
		sum.Behind += place.Behind
		sum.IsLost = sum.IsLost || place.IsLost
		at, _ := s.backend.positions(sum.Position)
		more, _ := s.backend.positions(place.Position)
		maps.Copy(at, more)
		sum.Position = at.String()
		if place.CreatedAt.Before(sum.CreatedAt) {
			sum.CreatedAt = place.CreatedAt
		}
		if place.MovedAt.After(sum.MovedAt) {
			sum.MovedAt = place.MovedAt
		}
	}, func(a, b ConsumerPlace) int {
		return cmp.Or(compareBool(a.AllScopes, b.AllScopes), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Consumer, b.Consumer))
	}), err
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	if a == b {
		return 0
	}
	if b {
		return -1
	}
	return 1
}
