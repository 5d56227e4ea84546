package pgagui

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
)

// Event is an event of the log.
type Event struct {
	// Seq is its place in the log of its thread: 1, 2, 3, … in commit order.
	Seq   int64
	RunID string
	// Type is its type, for example TEXT_MESSAGE_CONTENT.
	Type string
	// RecordedAt is when it was appended.
	RecordedAt time.Time
	// JSON is the event, byte for byte.
	JSON json.RawMessage
}

// Position is where a follower that has seen this event continues.
func (e Event) Position() Position { return Position{e.Seq, e.RecordedAt} }

// IsHeartbeat reports whether this is no event, but what Follow yields after a pause without one
// (FollowOptions.Heartbeat).
func (e Event) IsHeartbeat() bool { return e.JSON == nil }

// EventsOptions say which events of a thread Events yields. The zero value is all events of the
// head's lineage.
type EventsOptions struct {
	// RunID is the run to read at. The head if empty.
	RunID string
	// NoLineage leaves out the ancestors of the run.
	NoLineage bool
	// AfterSeq is a cursor: only events with a greater seq.
	AfterSeq int64
}

// Events yields the events of a run's lineage, in order. It reads a few batches at a time, up to 16
// MB or one batch that is larger, and holds no connection while the caller works. An error ends the
// iteration.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrLogDamaged.
func (s *Store) Events(ctx context.Context, threadID string, options EventsOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		runs, err := s.of(threadID).RunSpans(ctx, db.RunSpansParams{
			ThreadID: threadID, RunID: orNull(options.RunID), Scope: s.scope, Lineage: !options.NoLineage, AfterSeq: options.AfterSeq,
		})
		if err != nil {
			yield(Event{}, ErrorOf(err))
			return
		}
		for _, run := range runs {
			if Status(run.Status) != Running && run.LastSeq <= options.AfterSeq {
				continue
			}
			for event, err := range s.runEvents(ctx, threadID, run, options.AfterSeq) {
				if !yield(event, err) || err != nil {
					return
				}
			}
		}
	}
}

// runEvents yields the events of one run.
func (s *Store) runEvents(ctx context.Context, threadID string, run db.RunSpansRow, afterSeq int64) iter.Seq2[Event, error] {
	const (
		page      = 50
		pageBytes = 16 << 20
	)
	return func(yield func(Event, error) bool) {
		afterSeq := max(run.FirstSeq-1, afterSeq)
		for {
			batches, err := s.of(threadID).Batches(ctx, db.BatchesParams{
				Scope: s.scope, ThreadID: threadID, RunNo: run.RunNo, AfterSeq: afterSeq, Page: page, PageBytes: pageBytes,
			})
			if err != nil {
				yield(Event{}, ErrorOf(err))
				return
			}
			for _, row := range batches {
				batch := live.Batch{
					ThreadID: threadID, RunID: run.RunID, FirstSeq: row.FirstSeq, RecordedAt: row.RecordedAt, EarlierUs: row.EarlierUs, Events: row.Events,
				}
				for event, err := range batch.All() {
					if event.Seq <= afterSeq && err == nil {
						continue
					}
					if err != nil {
						yield(Event{}, unknown(ErrLogDamaged, "%v", err))
						return
					}
					if !yield(Event(event), nil) {
						return
					}
				}
				afterSeq = row.FirstSeq + int64(row.N) - 1
			}
			if len(batches) == 0 || !batches[len(batches)-1].HasMore {
				return
			}
		}
	}
}

// RunInput returns the input that was stored beside the events of a run, byte for byte (see
// AppendOptions.Input); that of the head if run.RunID is empty.
//
// Errors: ErrUnknownInput if there is none: many agents send it in RUN_STARTED. ErrUnknownThread,
// ErrUnknownRun, ErrKeyCollision.
func (s *Store) RunInput(ctx context.Context, run RunRef) (json.RawMessage, error) {
	rows, err := s.of(run.ThreadID).RunInput(ctx, db.RunInputParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	switch {
	case err != nil:
		return nil, ErrorOf(err)
	case len(rows) == 0:
		return nil, unknown(ErrUnknownInput, "run %q of thread %q has no input beside its events", run.RunID, run.ThreadID)
	}
	return json.RawMessage(rows[0]), nil
}

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

// LastEventsOptions say which events LastEvents returns. The zero value is the last 100 of the head's
// lineage.
type LastEventsOptions struct {
	// RunID is the run to read at. The head if empty.
	RunID string
	// NoLineage leaves out the ancestors of the run.
	NoLineage bool
	// AtSeq is the greatest seq. No bound if zero. For the page before another one, it is the seq of
	// that page's first event minus 1, if that is not 0.
	AtSeq int64
	// Types narrows it to events of these types. All if empty.
	Types []string
	// Limit is the maximum number of events. 100 if zero; more than 1,000 is ErrLimitExceeded.
	Limit int
}

// LastEvents returns the last events of the lineage of a run, or of the run alone, up to a seq, in the
// order of seq. Fewer than the limit are the first ones. It reads the log backwards as far as the page
// needs; a page of a rare type may read all of it.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded, ErrKeyCollision.
func (s *Store) LastEvents(ctx context.Context, threadID string, options LastEventsOptions) ([]Event, error) {
	page, err := s.LastEventPage(ctx, threadID, options, 0)
	return page.Events, err
}

// EventPage is a page of the last events of a lineage.
type EventPage struct {
	// Events are in the order of seq.
	Events []Event
	// HasMore is false if there are none before them. A page before one with HasMore may be empty.
	HasMore bool
}

// LastEventPage is LastEvents with a bound of the bytes of the events: there is one at least. No bound if pageBytes is zero.
//
// Errors: those of LastEvents.
func (s *Store) LastEventPage(ctx context.Context, threadID string, options LastEventsOptions, pageBytes int) (page EventPage, err error) {
	parameters := db.LastEventsParams{
		ThreadID: threadID, RunID: orNull(options.RunID), AtSeq: orNull(options.AtSeq), MaxRows: pageSize(options.Limit, 100),
		Lineage: !options.NoLineage, PageBytes: orNull(int32(min(pageBytes, math.MaxInt32))), Scope: s.scope,
	}
	if len(options.Types) > 0 {
		parameters.Types = options.Types
	}
	rows, err := s.of(threadID).LastEvents(ctx, parameters)
	if err != nil {
		return page, ErrorOf(err)
	}
	page.HasMore = len(rows) >= int(parameters.MaxRows)
	if last := len(rows) - 1; last >= 0 && rows[last].Seq == 0 {
		rows, page.HasMore = rows[:last], true
	}
	page.Events = make([]Event, len(rows))
	for i, row := range rows {
		page.Events[i] = Event{Seq: row.Seq, RunID: row.RunID, Type: row.Type, RecordedAt: row.RecordedAt, JSON: json.RawMessage(row.Payload)}
	}
	return page, nil
}

// ThreadErrorKind says what went wrong.
type ThreadErrorKind string

// A run ended with an error, or was cut off or cancelled; or the result of a tool call is an error.
const (
	RunFailed    ThreadErrorKind = "failed"
	RunCutOff    ThreadErrorKind = "cut_off"
	RunCancelled ThreadErrorKind = "cancelled"
	ToolFailed   ThreadErrorKind = "tool"
)

// ThreadError is something that went wrong in a thread.
type ThreadError struct {
	// Seq is the seq of the event that says so: the end of the run, or the result of the call. For a
	// result that the client sent, it is the beginning of the run whose input has it.
	Seq   int64           `json:"seq"`
	RunID string          `json:"runId"`
	Kind  ThreadErrorKind `json:"kind"`
	// RunEnd says why the run ended. Of a tool call, ErrorMessage is what failed, in up to 1,000
	// characters.
	RunEnd
	// ToolCallID and Tool are the call and the name of its function. Tool is empty if neither the run
	// nor its parent made the call.
	ToolCallID string    `json:"toolCallId,omitempty"`
	Tool       string    `json:"tool,omitempty"`
	RecordedAt time.Time `json:"recordedAt"` // when the event was appended
}

// LastErrorsOptions say which errors LastErrors returns. The zero value is the last 100 of the thread.
type LastErrorsOptions struct {
	// RunID narrows it to the lineage of a run. If empty, all runs of the thread, on all branches.
	RunID string
	// NoLineage narrows it to the run alone, or to the head if RunID is empty.
	NoLineage bool
	// AtSeq is the greatest seq. No bound if zero. For the next page, it is ErrorPage.NextSeq.
	AtSeq int64
	// Limit is the maximum number of errors, but for those of one seq. 100 if zero; more than 1,000 is
	// ErrLimitExceeded.
	Limit int
}

// ErrorPage is a page of the errors of a thread.
type ErrorPage struct {
	// Errors are in the order of seq.
	Errors []ThreadError `json:"errors"`
	// NextSeq is LastErrorsOptions.AtSeq of the page before this one. 0: there is none. A page that has
	// one may be empty.
	NextSeq int64 `json:"nextSeq,omitzero"`
}

// LastErrors returns the last errors of a thread: runs that failed, were cut off or were cancelled, and
// tool calls whose result is an error, as in Facts. Of runs that pgagui job project has read, it reads the
// log only where a tool call failed; of the others it reads the log, of up to 200 runs for a page.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded, ErrKeyCollision.
func (s *Store) LastErrors(ctx context.Context, threadID string, options LastErrorsOptions) (ErrorPage, error) {
	rows, err := s.of(threadID).LastErrors(ctx, db.LastErrorsParams{
		ThreadID: threadID, RunID: orNull(options.RunID), AtSeq: orNull(options.AtSeq), MaxRows: pageSize(options.Limit, 100),
		Lineage: !options.NoLineage, Scope: s.scope,
	})
	if err != nil {
		return ErrorPage{}, ErrorOf(err)
	}
	page := ErrorPage{Errors: []ThreadError{}}
	for _, row := range rows {
		page.NextSeq = row.NextSeq
		if row.Seq == 0 {
			continue // the page has no errors
		}
		page.Errors = append(page.Errors, ThreadError{
			Seq: row.Seq, RunID: row.RunID, Kind: ThreadErrorKind(row.Kind),
			RunEnd:     RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason},
			ToolCallID: row.ToolCallID, Tool: row.Tool, RecordedAt: row.RecordedAt,
		})
	}
	return page, nil
}
