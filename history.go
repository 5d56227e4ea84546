package pgagui

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/pgagui/pgagui/db"
)

// HistoryOptions says which part of a thread's log History returns, and how. The zero value is its first 100 events, joined.
type HistoryOptions struct {
	// AfterSeq is where the page begins: behind this seq. 0: at the beginning of the log.
	AfterSeq int64
	// Limit is how many rows a page has at most. 100 when 0; more than 1,000 is ErrLimitExceeded.
	Limit int
	// RunID narrows it to the lineage of a run; empty: all runs of the thread, whatever their branch.
	RunID string
	// NoLineage narrows it further, to the run (empty: the head) alone.
	NoLineage bool
	// Types narrows it to events of these types, for example TOOL_CALL_START; empty: all.
	Types []string
	// Since and Until narrow it to events appended at Since or later, and before Until. Zero: no bound.
	Since, Until time.Time

	// Raw returns every event as it was appended. Otherwise the pieces of a message, or of the arguments of a tool call, that stream in one
	// after the other are one event.
	Raw bool
	// MaxBytes bounds the text of a joined event; one that would be longer is followed by another. 0: no bound.
	MaxBytes int
	// MaxIdle is the longest pause between two pieces that are joined. 0: no bound.
	MaxIdle time.Duration
}

// HistoryPage is a page of a thread's history.
type HistoryPage struct {
	Events []HistoryEvent
	// AfterSeq is where the next page begins: HistoryOptions.AfterSeq for it. Whatever is appended meanwhile, no event is missed and none comes
	// twice. A page with fewer events than Limit is the last one for the moment.
	AfterSeq int64
}

// HistoryEvent is an event of the log, or several of one message or tool call that were joined.
type HistoryEvent struct {
	// Seq is that of the (first) event in the log. Where events are joined there are gaps between the numbers.
	Seq int64 `json:"seq"`
	// LastSeq is the seq of the last of several events. Others, of what streamed beside it, may be in between.
	LastSeq int64  `json:"lastSeq"`
	RunID   string `json:"runId"`
	Type    string `json:"type"`
	// Count says how many events it is: 1 for one as it was appended, unless it says that it stands for several: a writer that joins events
	// before it appends them puts event_count, created_at and completed_at into them.
	Count int64 `json:"eventCount"`
	// CreatedAt is when the (first) event was appended.
	CreatedAt time.Time `json:"createdAt"`
	// CompletedAt is when the last of several events was appended; zero when there is only one.
	CompletedAt time.Time `json:"completedAt,omitzero"`
	// Payload is the event: its very bytes, or, of several, the first with the text of all.
	Payload json.RawMessage `json:"payload"`
}

// History returns a page of the thread's whole log, all branches in the order of seq. To read what one branch says, use Events.
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded.
func (s *Store) History(ctx context.Context, threadID string, options HistoryOptions) (HistoryPage, error) {
	parameters := db.HistoryParams{
		ThreadID: threadID, Scope: s.scope, RunID: orNull(options.RunID), AfterSeq: options.AfterSeq,
		MaxRows: 100, Compressed: !options.Raw, Lineage: !options.NoLineage, MaxBytes: orNull(int32(min(options.MaxBytes, math.MaxInt32))),
		MaxIdle: orNull(options.MaxIdle), Since: timeOrNull(options.Since), Until: timeOrNull(options.Until),
	}
	if len(options.Types) > 0 {
		parameters.Types = options.Types
	}
	if options.Limit != 0 {
		parameters.MaxRows = int32(min(options.Limit, math.MaxInt32))
	}
	page := HistoryPage{AfterSeq: options.AfterSeq}
	rows, err := s.queries.History(ctx, parameters)
	if err != nil {
		return page, refusal(err)
	}
	page.Events = make([]HistoryEvent, len(rows))
	for i, row := range rows {
		page.Events[i] = HistoryEvent{
			Seq: row.Seq, LastSeq: row.LastSeq, RunID: row.RunID, Type: row.Type, Count: row.EventCount,
			CreatedAt: row.CreatedAt, CompletedAt: row.CompletedAt, Payload: json.RawMessage(row.Payload),
		}
		page.AfterSeq = max(page.AfterSeq, row.LastSeq)
	}
	return page, nil
}
