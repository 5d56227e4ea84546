package pgagui

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Thread is a conversation as lists show it.
type Thread struct {
	ID string `json:"threadId"`
	// Title is the one that SetThread set, else the beginning of the first user message; empty:
	// neither is known.
	Title string `json:"title,omitempty"`
	Agent string `json:"agent,omitempty"` // empty: not set
	// Metadata is what an application keeps with the thread, a JSON object.
	Metadata  json.RawMessage `json:"metadata"`
	Archived  bool            `json:"archived"`
	CreatedAt time.Time       `json:"createdAt"`
	// ActiveAt is when a run of the thread last began or ended.
	ActiveAt time.Time `json:"activeAt"`
	// HeadRunID is the head, the run begun last, and Status its status. Both are empty while there
	// are no runs.
	HeadRunID string `json:"headRunId,omitempty"`
	Status    Status `json:"status,omitempty"`
	// Stale says that the head is running, but gave no sign of life within the lease.
	Stale bool `json:"stale,omitempty"`
	// Runs and Branches count the runs of the thread, and those that no other goes on from.
	Runs     int `json:"runs"`
	Branches int `json:"branches"`
	// Cursor is the place of the thread in lists: ThreadsOptions.Cursor to go on behind it.
	Cursor string `json:"cursor"`
}

// Archived says whether a list has archived threads.
type Archived string

const (
	NotArchived  Archived = ""     // those that are not archived
	OnlyArchived Archived = "only" // those that are
	WithArchived Archived = "with" // all
)

// ThreadsOptions says which threads Threads returns. The zero value is the first 50 that are not
// archived.
type ThreadsOptions struct {
	// Agent narrows the list to threads of this agent; empty: all.
	Agent string
	// Archived says whether archived threads are in the list.
	Archived Archived
	// Title narrows it to threads with this text in the title, in upper or lower case; empty: all.
	Title string
	// Since narrows it to threads that were active then or later. Zero: no bound.
	Since time.Time
	// Status narrows it to threads whose head has this status; empty: all.
	Status Status
	// Stale narrows it to threads whose head is running, but gave no sign of life within the lease.
	Stale bool
	// Metadata narrows it to threads whose metadata contains this JSON object; nil: all.
	Metadata json.RawMessage

	// Cursor is where the page begins: ThreadPage.Cursor of the page before. Empty: at the top.
	Cursor string
	// Limit is how many threads a page has at most. 50 when 0; more than 1,000 is ErrLimitExceeded.
	Limit int
}

// ThreadPage is a page of threads, newest activity first.
type ThreadPage struct {
	Threads []Thread `json:"threads"`
	// Cursor is where the next page begins; empty: this is the last one. Only that says so: a page
	// of a list that Agent, Title, Status or Metadata narrows ends once 10,000 threads were looked
	// at, and may be short, or empty.
	Cursor string `json:"cursor,omitempty"`
}

// ThreadChanges is what SetThread sets. Nil leaves things as they are.
type ThreadChanges struct {
	// Title and Agent are taken away by an empty text. Without a title that was set, lists show the
	// beginning of the first user message.
	Title, Agent *string
	Archived     *bool
	// Metadata is a JSON object that is merged into the one that is kept: member by member, never
	// deep; null removes a member.
	Metadata json.RawMessage
	// CreateIfMissing makes a thread that has no runs yet. Otherwise an unknown thread is
	// ErrUnknownThread.
	CreateIfMissing bool
}

// Threads returns a page of the scope's threads, newest activity first.
//
// A thread that becomes active moves to the top. Pages that go on from a cursor show no thread
// twice, and do not show one that has moved up meanwhile: the first page does, and so does a list
// with the ActiveAt of the first thread seen as Since. To list all threads as they are at one
// moment, read the pages in a transaction of the isolation level REPEATABLE READ (WithTx).
// ThreadIDs yields all of them in any case.
//
// Errors: ErrLimitExceeded, ErrInvalidArgument for a text that is no cursor.
func (s *Store) Threads(ctx context.Context, options ThreadsOptions) (ThreadPage, error) {
	parameters := db.ThreadPageParams{
		Agent: orNull(options.Agent), Title: orNull(options.Title), Status: orNull(string(options.Status)),
		Metadata: rawjson.Binary(options.Metadata), MaxRows: 50, Cursor: orNull(options.Cursor), Scope: s.scope,
	}
	if !options.Since.IsZero() {
		parameters.Since = &options.Since
	}
	if options.Archived != WithArchived {
		parameters.Archived = new(options.Archived == OnlyArchived)
	}
	if options.Stale {
		parameters.Status = new("stale")
	}
	if options.Limit != 0 {
		parameters.MaxRows = int32(min(options.Limit, math.MaxInt32))
	}
	rows, err := s.queries.ThreadPage(ctx, parameters)
	if err != nil {
		return ThreadPage{}, refusal(err)
	}
	page := ThreadPage{Threads: []Thread{}}
	for _, row := range rows {
		page.Cursor = row.NextCursor
		if row.ThreadID == "" {
			continue // a page without threads
		}
		page.Threads = append(page.Threads, threadOf(db.GetThreadRow{
			ThreadID: row.ThreadID, Title: row.Title, Agent: row.Agent, Metadata: row.Metadata, Archived: row.Archived,
			CreatedAt: row.CreatedAt, ActiveAt: row.ActiveAt, HeadRunID: row.HeadRunID, Status: row.Status,
			IsStale: row.IsStale, Runs: row.Runs, Branches: row.Branches, Cursor: row.Cursor,
		}))
	}
	return page, nil
}

// ThreadIDs yields the ids of all threads of the scope, archived ones too, in no order that means
// anything, reading them a page at a time. A thread that is there all the while comes once,
// whatever becomes active meanwhile. An error ends the iteration.
func (s *Store) ThreadIDs(ctx context.Context) iter.Seq2[string, error] {
	const page = 1000
	return func(yield func(string, error) bool) {
		after := pgtype.UUID{Valid: true}
		for {
			rows, err := s.queries.ThreadIDs(ctx, db.ThreadIDsParams{Scope: s.scope, After: after, Page: page})
			if err != nil {
				yield("", err)
				return
			}
			for _, row := range rows {
				if !yield(row.ThreadID, nil) {
					return
				}
				after = row.ThreadKey
			}
			if len(rows) < page {
				return
			}
		}
	}
}

// Thread returns a thread as lists show it. Errors: ErrUnknownThread.
func (s *Store) Thread(ctx context.Context, threadID string) (Thread, error) {
	row, err := s.queries.GetThread(ctx, db.GetThreadParams{ThreadID: threadID, Scope: s.scope})
	if err != nil {
		return Thread{}, refusal(err)
	}
	return threadOf(row), nil
}

// SetThread sets what lists show of a thread, and returns the thread. It is no activity: the thread
// stays at its place. In a transaction it keeps other writers from the thread until the end, as
// Append does.
//
// Errors: ErrUnknownThread; ErrLimitExceeded for a title or an agent of more than 1,024 bytes or
// metadata of more than 64 KB; ErrInvalidArgument for metadata that is no object; ErrThreadErased.
func (s *Store) SetThread(ctx context.Context, threadID string, changes ThreadChanges) (Thread, error) {
	row, err := s.queries.SetThread(ctx, db.SetThreadParams{
		ThreadID: threadID, Title: changes.Title, Agent: changes.Agent, Archived: changes.Archived,
		Metadata: rawjson.Binary(changes.Metadata), CreateIfMissing: changes.CreateIfMissing, Scope: s.scope,
	})
	if err != nil {
		return Thread{}, refusal(err)
	}
	return threadOf(db.GetThreadRow(row)), nil
}

func threadOf(row db.GetThreadRow) Thread {
	return Thread{
		ID: row.ThreadID, Title: row.Title, Agent: row.Agent, Metadata: json.RawMessage(row.Metadata), Archived: row.Archived,
		CreatedAt: row.CreatedAt, ActiveAt: row.ActiveAt, HeadRunID: row.HeadRunID, Status: Status(row.Status), Stale: row.IsStale,
		Runs: int(row.Runs), Branches: int(row.Branches), Cursor: row.Cursor,
	}
}
