package pgagui

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/pgagui/pgagui/db"
)

// HistoryOptions say which part of a thread's log History returns, and in which form. The zero value
// is the first 100 events, joined.
type HistoryOptions struct {
	// AfterSeq is the cursor: HistoryPage.AfterSeq of the page before. 0: the beginning of the log.
	AfterSeq int64
	// Limit is the maximum number of events of a page. 100 if zero; more than 1,000 is
	// ErrLimitExceeded.
	Limit int
	// PageBytes bounds the bytes of the events of a page, which has one event at least. No bound if zero.
	PageBytes int
	// RunID narrows it to the lineage of a run. If empty, all runs of the thread, on all branches.
	RunID string
	// NoLineage narrows it to the run alone, or to the head if RunID is empty.
	NoLineage bool
	// Types narrows it to events of these types, for example TOOL_CALL_START. All if empty.
	Types []string
	// Since and Until narrow it to events appended at Since or later, and before Until. No bound if
	// zero.
	Since, Until time.Time

	// Raw returns every event as it was appended. Otherwise consecutive pieces of a message, or of
	// the arguments of a tool call, are joined to one event.
	Raw bool
	// MaxBytes bounds the text of a joined event; a longer text becomes several events. No bound if
	// zero.
	MaxBytes int
	// MaxIdle is the longest pause between two pieces that are joined. No bound if zero.
	MaxIdle time.Duration
}

// HistoryPage is a page of a thread's history.
type HistoryPage struct {
	Events []HistoryEvent
	// AfterSeq is the cursor of the next page: HistoryOptions.AfterSeq for it. It is valid on the
	// last page too, to read later what has been appended since. Across pages no event is missing
	// and none is repeated.
	AfterSeq int64
	// HasMore is false on the last page. A page that follows one with HasMore may be empty.
	HasMore bool
}

// HistoryEvent is an event of the log, or several pieces of one message or tool call that were
// joined.
type HistoryEvent struct {
	// Seq is the seq of the (first) event. Joined events leave gaps between the numbers.
	Seq int64 `json:"seq"`
	// LastSeq is the seq of the last of several events. Events of other messages that streamed at
	// the same time may lie in between.
	LastSeq int64  `json:"lastSeq"`
	RunID   string `json:"runId"`
	Type    string `json:"type"`
	// Count is the number of events that it stands for. It is 1 for an event as it was appended,
	// unless a writer has joined events before it appended them and says so in the event, in
	// event_count, created_at and completed_at.
	Count int64 `json:"eventCount"`
	// CreatedAt is when the (first) event was appended.
	CreatedAt time.Time `json:"createdAt"`
	// CompletedAt is when the last of several events was appended. Zero if there is one only.
	CompletedAt time.Time `json:"completedAt,omitzero"`
	// JSON is the event, byte for byte, or, for several, the first with the text of all.
	JSON json.RawMessage `json:"payload"`
}

// History returns a page of a thread's log, all branches in the order of seq. To read one branch,
// use Events.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded, ErrKeyCollision.
func (s *Store) History(ctx context.Context, threadID string, options HistoryOptions) (HistoryPage, error) {
	parameters := db.HistoryParams{
		ThreadID: threadID, Scope: s.scope, RunID: orNull(options.RunID), AfterSeq: options.AfterSeq,
		MaxRows: pageSize(options.Limit, 100), Compressed: !options.Raw, Lineage: !options.NoLineage, MaxBytes: orNull(int32(min(options.MaxBytes, math.MaxInt32))),
		MaxIdle: orNull(options.MaxIdle), Since: timeOrNull(options.Since), Until: timeOrNull(options.Until),
		PageBytes: orNull(int32(min(options.PageBytes, math.MaxInt32))),
	}
	if len(options.Types) > 0 {
		parameters.Types = options.Types
	}
	page := HistoryPage{AfterSeq: options.AfterSeq}
	rows, err := s.of(threadID).History(ctx, parameters)
	if err != nil {
		return page, ErrorOf(err)
	}
	page.HasMore = len(rows) >= int(parameters.MaxRows)
	if last := len(rows) - 1; last >= 0 && rows[last].Seq == 0 {
		rows, page.HasMore = rows[:last], true
	}
	page.Events = make([]HistoryEvent, len(rows))
	for i, row := range rows {
		page.Events[i] = HistoryEvent{
			Seq: row.Seq, LastSeq: row.LastSeq, RunID: row.RunID, Type: row.Type, Count: row.EventCount,
			CreatedAt: row.CreatedAt, CompletedAt: row.CompletedAt, JSON: json.RawMessage(row.Payload),
		}
		page.AfterSeq = max(page.AfterSeq, row.LastSeq)
	}
	return page, nil
}
