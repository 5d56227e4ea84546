package pgagui

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Thread is a conversation as lists show it.
type Thread struct {
	ID string `json:"threadId"`
	// Title is the one that SetThread set, or else the beginning of the first user message. Empty if
	// neither is known.
	Title string `json:"title,omitempty"`
	Agent string `json:"agent,omitempty"` // empty: not set
	// Metadata is a JSON object that an application keeps with the thread.
	Metadata  json.RawMessage `json:"metadata"`
	Archived  bool            `json:"archived"`
	CreatedAt time.Time       `json:"createdAt"`
	// ActiveAt is when a run of the thread last began or ended.
	ActiveAt time.Time `json:"activeAt"`
	// HeadRunID is the head, the run that began last, and Status its status. Both are empty if there
	// are no runs.
	HeadRunID string `json:"headRunId,omitempty"`
	Status    Status `json:"status,omitempty"`
	// Stale is true if the head is running and its lease has expired.
	Stale bool `json:"stale,omitempty"`
	// RunEnd says why the head ended so; a text of more than 1,000 characters is cut.
	RunEnd
	// Runs is the number of runs of the thread, Branches the number of its leaves.
	Runs     int `json:"runs"`
	Branches int `json:"branches"`
	// Cursor is the place of the thread in lists: ThreadsOptions.Cursor for a page that begins behind
	// it.
	Cursor string `json:"cursor"`
}

// Archived says whether a list contains archived threads.
type Archived string

const (
	NotArchived  Archived = ""     // those that are not archived
	OnlyArchived Archived = "only" // those that are
	WithArchived Archived = "with" // all
)

// ThreadsOptions say which threads Threads returns. The zero value is the first 50 that are not
// archived.
type ThreadsOptions struct {
	// Agent narrows the list to threads of this agent. All if empty.
	Agent string
	// Archived says whether the list contains archived threads.
	Archived Archived
	// Title narrows it to threads whose title contains this text; the case does not matter. All if
	// empty.
	Title string
	// Since narrows it to threads that were active then or later. No bound if zero.
	Since time.Time
	// Status narrows it to threads whose head has this status or, for Cancelled, Failed and CutOff, of
	// which any run ended so, at or after Since. All if empty.
	Status Status
	// HeadOnly narrows it to threads whose head has the Status, whatever that is.
	HeadOnly bool
	// Stale narrows it to threads whose head is running and whose lease has expired.
	Stale bool
	// Metadata narrows it to threads whose metadata contains this JSON object. All if nil.
	Metadata json.RawMessage

	// Cursor is ThreadPage.Cursor of the page before. Empty: the first page.
	Cursor string
	// Limit is the maximum number of threads of a page. 50 if zero; more than 1,000 is
	// ErrLimitExceeded.
	Limit int
}

// ThreadPage is a page of threads, newest activity first.
type ThreadPage struct {
	Threads []Thread `json:"threads"`
	// Cursor is the cursor of the next page: ThreadsOptions.Cursor for it. Empty on the last page.
	Cursor string `json:"cursor,omitempty"`
	// HasMore is false on the last page. A page that follows one with HasMore may be empty. If Agent,
	// Title, Status or Metadata narrow the list, a page ends after 10,000 threads were examined: then
	// it may be short, or empty, and HasMore is true.
	HasMore bool `json:"hasMore"`
	// SearchedTo is the activity of the last thread examined, if the page ended for that reason. Else
	// zero.
	SearchedTo time.Time `json:"searchedTo,omitzero"`
}

// ThreadChanges is what SetThread sets. It leaves a nil field as it is.
type ThreadChanges struct {
	// Title and Agent are removed by an empty text. Without a title of their own, lists show the
	// beginning of the first user message.
	Title, Agent *string
	Archived     *bool
	// Metadata is a JSON object that is merged into the stored one: member by member, never deep;
	// null removes a member.
	Metadata json.RawMessage
	// CreateIfMissing creates a thread that has no runs yet. Otherwise an unknown thread is
	// ErrUnknownThread.
	CreateIfMissing bool
}

// Threads returns a page of the scope's threads, newest activity first.
//
// A thread that becomes active moves to the top. Later pages show no thread twice; a thread that has
// moved up since is on the first page, or in a list with the ActiveAt of the first thread seen as
// Since. To list all threads as of one point in time, read the pages in a transaction of the
// isolation level REPEATABLE READ (WithTx), or use ThreadIDs.
//
// Errors: ErrLimitExceeded, ErrInvalidArgument (a text that is no cursor). In a cluster an
// *UnansweredError comes with the threads of the nodes that answered; later pages do not have the others.
func (s *Store) Threads(ctx context.Context, options ThreadsOptions) (ThreadPage, error) {
	parameters := db.ThreadPageParams{
		Agent: orNull(options.Agent), Title: orNull(options.Title), Status: orNull(string(options.Status)), HeadOnly: options.HeadOnly, Since: timeOrNull(options.Since),
		Metadata: rawjson.Binary(options.Metadata), MaxRows: pageSize(options.Limit, 50), Cursor: orNull(options.Cursor), Scope: s.scope,
	}
	if options.Archived != WithArchived {
		parameters.Archived = new(options.Archived == OnlyArchived)
	}
	if options.Stale {
		parameters.Status = new("stale")
	}
	pages, err := gather(ctx, s, func(ctx context.Context, on part) (ThreadPage, error) {
		rows, err := on.ThreadPage(ctx, parameters)
		return threadPageOf(rows), err
	})
	if pages == nil {
		return ThreadPage{}, err
	}
	lists := make([]listPage[Thread], len(pages))
	for i, page := range pages {
		lists[i] = listPage[Thread]{page.Threads, page.Cursor}
	}
	merged := threadOrder.merge(lists, int(parameters.MaxRows))
	all := ThreadPage{Threads: merged.items, Cursor: merged.next, HasMore: merged.next != ""}
	for _, page := range pages {
		if page.Cursor == all.Cursor && len(all.Threads) < int(parameters.MaxRows) {
			all.SearchedTo = page.SearchedTo
		}
	}
	return all, err
}

var threadOrder = listOrder[Thread]{
	cursorOf: func(thread Thread) string { return thread.Cursor },
	keyOf:    func(thread Thread) any { return thread.ID },
	compare:  compareRecent,
}

func threadPageOf(rows []db.ThreadPageRow) ThreadPage {
	page := ThreadPage{Threads: []Thread{}}
	for _, row := range rows {
		page.Cursor, page.HasMore, page.SearchedTo = row.NextCursor, row.NextCursor != "", row.SearchedTo
		if row.ThreadID == "" {
			continue // a page without threads
		}
		page.Threads = append(page.Threads, threadOf(db.GetThreadRow{
			ThreadID: row.ThreadID, Title: row.Title, Agent: row.Agent, Metadata: row.Metadata, Archived: row.Archived,
			CreatedAt: row.CreatedAt, ActiveAt: row.ActiveAt, HeadRunID: row.HeadRunID, Status: row.Status,
			IsStale: row.IsStale, Runs: row.Runs, Branches: row.Branches, Cursor: row.Cursor,
			ErrorCode: row.ErrorCode, ErrorMessage: row.ErrorMessage, StopReason: row.StopReason, CutOffReason: row.CutOffReason,
		}))
	}
	return page
}

// ThreadIDs yields the ids of all threads of the scope, archived ones too, in an order without
// meaning. It reads a page at a time. A thread that exists all the time is yielded once, whatever
// becomes active meanwhile. An error ends the iteration. In a cluster an *UnansweredError comes last,
// behind the threads of the nodes that answered.
func (s *Store) ThreadIDs(ctx context.Context) iter.Seq2[string, error] {
	const page = 1000
	return func(yield func(string, error) bool) {
		order := listOrder[db.ThreadIDsRow]{
			cursorOf: func(row db.ThreadIDsRow) string { return string(row.ThreadKey.Bytes[:]) },
			keyOf:    func(row db.ThreadIDsRow) any { return row.ThreadKey },
			compare:  strings.Compare,
		}
		after := pgtype.UUID{Valid: true}
		var missing UnansweredError
		for {
			merged, err := gatherPage(ctx, s, order, page, func(ctx context.Context, on part) ([]db.ThreadIDsRow, error) {
				return on.ThreadIDs(ctx, db.ThreadIDsParams{Scope: s.scope, After: after, Page: page})
			})
			if err = missing.take(err); err != nil {
				yield("", err)
				return
			}
			for _, row := range merged.items {
				if !yield(row.ThreadID, nil) {
					return
				}
			}
			if merged.next == "" {
				break
			}
			copy(after.Bytes[:], merged.next)
		}
		if err := missing.orNil(); err != nil {
			yield("", err)
		}
	}
}

// Thread returns a thread as lists show it.
//
// Errors: ErrUnknownThread, ErrKeyCollision.
func (s *Store) Thread(ctx context.Context, threadID string) (Thread, error) {
	row, err := s.of(threadID).GetThread(ctx, db.GetThreadParams{ThreadID: threadID, Scope: s.scope})
	return threadOf(row), ErrorOf(err)
}

// SetThread sets title, agent, metadata and whether the thread is archived, and returns the thread.
// It is no activity: the thread keeps its place in lists. In a transaction it holds the lock of the
// thread until the end, as Append does.
//
// Errors: ErrUnknownThread; ErrLimitExceeded (a title or an agent of more than 1,024 bytes, metadata
// of more than 64 KB); ErrInvalidEvents (an empty thread id); ErrInvalidArgument (metadata that is no
// object); ErrThreadErased; ErrKeyCollision.
func (s *Store) SetThread(ctx context.Context, threadID string, changes ThreadChanges) (Thread, error) {
	row, err := s.of(threadID).SetThread(ctx, db.SetThreadParams{
		ThreadID: threadID, Title: changes.Title, Agent: changes.Agent, Archived: changes.Archived,
		Metadata: rawjson.Binary(changes.Metadata), CreateIfMissing: changes.CreateIfMissing, Scope: s.scope,
	})
	return threadOf(db.GetThreadRow(row)), ErrorOf(err)
}

func threadOf(row db.GetThreadRow) Thread {
	return Thread{
		ID: row.ThreadID, Title: row.Title, Agent: row.Agent, Metadata: json.RawMessage(row.Metadata), Archived: row.Archived,
		CreatedAt: row.CreatedAt, ActiveAt: row.ActiveAt, HeadRunID: row.HeadRunID, Status: Status(row.Status), Stale: row.IsStale,
		Runs: int(row.Runs), Branches: int(row.Branches), Cursor: row.Cursor,
		RunEnd: RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason},
	}
}

// ListedRun is a run in a list over the threads of a scope.
type ListedRun struct {
	ThreadID    string `json:"threadId"`
	RunID       string `json:"runId"`
	ParentRunID string `json:"parentRunId,omitempty"` // empty: a root
	Status      Status `json:"status"`
	// Title and Agent are those of the thread, as lists of threads show them.
	Title     string    `json:"title,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	// RunEnd says why it ended so; a text of more than 1,000 characters is cut.
	RunEnd
	// Cursor is the place of the run in lists: ListRunsOptions.Cursor for a page that begins behind it.
	Cursor string `json:"cursor"`
}

// ListRunsOptions say which runs ListRuns returns. The zero value is the last 50 that failed or were
// cut off.
type ListRunsOptions struct {
	// Status are the statuses: Failed, CutOff, Cancelled and Interrupted. Failed and CutOff if empty.
	Status []Status
	// Since narrows the list to runs that ended then or later. No bound if zero.
	Since time.Time

	// Cursor is RunPage.Cursor of the page before. Empty: the first page.
	Cursor string
	// Limit is the maximum number of runs of a page. 50 if zero; more than 1,000 is ErrLimitExceeded.
	Limit int
}

// RunPage is a page of runs, those that ended last first.
type RunPage struct {
	Runs []ListedRun `json:"runs"`
	// Cursor is the cursor of the next page: ListRunsOptions.Cursor for it. Empty on the last page.
	Cursor string `json:"cursor,omitempty"`
	// HasMore is false on the last page. A page that follows one with HasMore may be empty.
	HasMore bool `json:"hasMore"`
}

// ListRuns returns a page of the runs of all threads of the scope that ended as options.Status says,
// those that ended last first. It reads the runs that it returns, and the end of each.
//
// Errors: ErrLimitExceeded, ErrInvalidArgument (another status; a text that is no cursor). In a cluster
// an *UnansweredError comes with the runs of the nodes that answered; later pages do not have the
// others.
func (s *Store) ListRuns(ctx context.Context, options ListRunsOptions) (RunPage, error) {
	parameters := db.ListRunsParams{
		Status: []string{string(Failed), string(CutOff)}, Since: timeOrNull(options.Since),
		MaxRows: pageSize(options.Limit, 50), Cursor: orNull(options.Cursor), Scope: s.scope,
	}
	if len(options.Status) > 0 {
		parameters.Status = nil
		for _, status := range options.Status {
			parameters.Status = append(parameters.Status, string(status))
		}
	}
	merged, err := gatherPage(ctx, s, runOrder, int(parameters.MaxRows), func(ctx context.Context, on part) ([]ListedRun, error) {
		rows, err := on.ListRuns(ctx, parameters)
		return listOf(rows, err, listedRunOf)
	})
	return RunPage{Runs: merged.items, Cursor: merged.next, HasMore: merged.next != ""}, err
}

var runOrder = listOrder[ListedRun]{
	cursorOf: func(run ListedRun) string { return run.Cursor },
	keyOf:    func(run ListedRun) any { return RunRef{run.ThreadID, run.RunID} },
	compare:  compareRecent,
}

func listedRunOf(row db.ListRunsRow) ListedRun {
	return ListedRun{
		ThreadID: row.ThreadID, RunID: row.RunID, ParentRunID: row.ParentRunID, Status: Status(row.Status), Title: row.Title, Agent: row.Agent,
		FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, EndedAt: row.EndedAt,
		RunEnd: RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason}, Cursor: row.Cursor,
	}
}

// EraseOptions belong to Erase.
type EraseOptions struct {
	// Reason is kept in agui.erasure. It may be empty.
	Reason string
}

// Erased is what Erase removed.
type Erased struct {
	Runs   int   `json:"runs"`
	Events int64 `json:"events"`
}

// Erase removes a thread for good: its log, runs, snapshots, session state and checkpoints, all of
// it or nothing. What stays is a row in agui.erasure: the time, the role, the reason, and a salted
// hash of the thread's name. Later appends to the thread fail with ErrThreadErased until
// Maintenance.LiftErasure. It takes the rights of agui_maintainer.
//
// The space is free for other threads after the next vacuum. Backups and archived WAL contain the
// thread until they expire (docs/erasure.md).
//
// Errors: ErrUnknownThread, ErrKeyCollision; ErrThreadHeld until Maintenance.LiftHold.
func (s *Store) Erase(ctx context.Context, threadID string, options EraseOptions) (Erased, error) {
	row, err := s.of(threadID).Erase(ctx, db.EraseParams{ThreadID: threadID, Scope: s.scope, Reason: orNull(options.Reason)})
	return Erased{Runs: int(row.Runs), Events: row.Events}, ErrorOf(err)
}
