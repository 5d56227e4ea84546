package pgagui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"time"

	"github.com/pgagui/pgagui/db"
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
