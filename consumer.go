package pgagui

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
)

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
// Errors: ErrOtherHistory (the database was restored or failed over: Move to begin again), ErrInvalidArgument, ErrLimitExceeded.
func (c Consumer) Changes(ctx context.Context, limit int) ([]Change, error) {
	rows, err := c.store.queries.Consume(ctx, db.ConsumeParams{Consumer: c.name, MaxRows: pageSize(limit, 1000), Scope: c.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	changes := make([]Change, len(rows))
	for i, row := range rows {
		changes[i] = changeOf(row)
	}
	return changes, nil
}

// Move notes that the changes up to a position are processed. Empty: the consumer begins again, with all runs and all events. With
// WithTx it is a part of the transaction that processes them.
//
// Errors: ErrOtherHistory, ErrInvalidArgument (not a position, or the name is empty or longer than 200 bytes).
func (c Consumer) Move(ctx context.Context, position string) error {
	return ErrorOf(c.store.queries.MoveConsumer(ctx, db.MoveConsumerParams{Consumer: c.name, Position: orNull(position), Scope: c.scope}))
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
	return ErrorOf(c.store.queries.MarkRead(ctx, db.MarkReadParams{
		Consumer: c.name, ThreadID: change.ThreadID, Seq: seq, ThreadScope: change.Scope, ThreadUid: uid, Scope: c.scope,
	}))
}

// Remove forgets the consumer and its place. It reports whether there was one.
func (c Consumer) Remove(ctx context.Context) (wasKnown bool, err error) {
	wasKnown, err = c.store.queries.RemoveConsumer(ctx, db.RemoveConsumerParams{Consumer: c.name, Scope: c.scope})
	return wasKnown, ErrorOf(err)
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
// Errors: those of Consumer.Changes; ErrKeyCollision, ErrInvalidEvents, ErrLogDamaged (MarkRead goes on behind the damage).
func (c Consumer) Events(ctx context.Context) iter.Seq2[ChangedEvent, error] {
	return func(yield func(ChangedEvent, error) bool) {
		for {
			changes, err := c.Changes(ctx, 100)
			if err == nil && len(changes) > 0 {
				var goesOn bool
				if goesOn, err = c.eventsOf(ctx, changes, yield); !goesOn && err == nil {
					return
				}
				if err == nil {
					err = c.Move(ctx, changes[len(changes)-1].Position)
				}
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
		rows, err := c.store.queries.Poll(ctx, params)
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
			case row.Problem == "UI014": // erased in the meantime
				continue
			case row.Problem != "":
				return false, unknown(ErrOtherHistory, "the log of thread %q does not have event %d any more", thread.ThreadID, params.AfterSeqs[i])
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
	// Behind is how many changed runs and erased threads it has not processed. Not more than 10,000 are counted.
	Behind int64 `json:"behind"`
	// IsLost: the position is of another history of transactions (ErrOtherHistory). Remove the consumer, or Move it to "".
	IsLost    bool      `json:"isLost,omitzero"`
	CreatedAt time.Time `json:"createdAt"`
	MovedAt   time.Time `json:"movedAt"`
}

// Consumers returns the consumers of the scopes that the role sees. Those of all scopes come only for a role that sees all.
func (s *Store) Consumers(ctx context.Context) ([]ConsumerPlace, error) {
	rows, err := s.queries.Consumers(ctx)
	if err != nil {
		return nil, ErrorOf(err)
	}
	places := make([]ConsumerPlace, len(rows))
	for i, row := range rows {
		places[i] = ConsumerPlace(row)
	}
	return places, nil
}
