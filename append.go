package pgagui

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// AppendOption changes what Append does.
type AppendOption func(*db.AppendEventsParams)

// AfterSeq makes an append safe to repeat. seq is the last one that the writer knows of its run, as its last Append returned it,
// 0 for none yet. Events that the log has after it are compared with those of the call and not stored again; ErrConflictingRepeat
// when they differ. The call may be repeated in batches of other sizes.
func AfterSeq(seq int64) AppendOption {
	return func(params *db.AppendEventsParams) { params.AfterSeq = &seq }
}

// Parallel lets the run begin although others are in progress in its thread. Its parent must have ended.
func Parallel() AppendOption {
	return func(params *db.AppendEventsParams) { params.Parallel = true }
}

// WithInput gives the input of the run (RunAgentInput), a JSON object, where RUN_STARTED does not carry it. It comes with the call
// that begins the run, and with those that repeat it; the log keeps its bytes as they are. What is read of the run is as if
// RUN_STARTED carried it. ErrInvalidEvents when the run has begun without the call, ErrConflictingRepeat when a repeat brings another.
func WithInput(input json.RawMessage) AppendOption {
	return func(params *db.AppendEventsParams) { params.Input = rawjson.Text(input) }
}

// WithParent names the run that a new run goes on from, whatever RUN_STARTED names; empty: as without the option. It counts in the
// call that begins the run. ErrConflictingRepeat when the run exists and goes on from another.
func WithParent(runID string) AppendOption {
	return func(params *db.AppendEventsParams) { params.ParentRunID = orNull(runID) }
}

// NoParent makes a new run a root, whatever RUN_STARTED names and although the thread may have other runs.
func NoParent() AppendOption {
	return func(params *db.AppendEventsParams) { params.ParentRunID = new("") }
}

// Strict refuses what breaks the protocol and is kept without it: events behind the end of the run (ErrRunEnded), a second
// RUN_STARTED (ErrRunIDInUse), a run that begins with another event (ErrUnknownRun), and a RUN_STARTED with the id of another thread (ErrOtherThread).
func Strict() AppendOption {
	return func(params *db.AppendEventsParams) { params.Strict = true }
}

// Append appends events to a run and returns the seq of the last one. The log keeps their bytes as they are.
//
// RUN_STARTED begins the run, as a child of its parentRunId or else of the thread's head. RUN_FINISHED or RUN_ERROR ends it. All
// events of a call belong to one run and are stored together or not at all.
//
// Some agents go on after that, and begin again: the call that ends a run may bring more events, and calls with AfterSeq may
// follow it, with another RUN_STARTED too, as long as no run went on from there. With AfterSeq(0) a run may begin with any event.
// The run stays ended.
//
// Errors:
//   - ErrInvalidEvents, ErrLimitExceeded (64 MB a call, nested 1,000 deep, ids of 1,024 bytes): the call is not one that the log takes.
//   - ErrUnknownRun: the first event of a new run is not RUN_STARTED. ErrRunIDInUse: the run exists, or RUN_STARTED names another one.
//   - ErrUnknownParent, ErrParentInProgress: of the run that a new run shall follow.
//   - ErrRunInProgress: another run of the thread is in progress. The error says until when, and what can be done.
//   - ErrRunEnded, ErrRunCutOff: the events come too late. They belong to a new run.
//   - ErrConflictingRepeat, ErrLogRewound: with AfterSeq, the log has other events than the writer takes it to have, or fewer.
//   - ErrThreadErased: the thread was erased. ErrKeyCollision: another thread has its key.
//   - ErrOtherThread: with Strict, RUN_STARTED names another thread.
//   - Any other error is that of the database or of the connection: a *pgconn.PgError where the database answered. It may be unknown
//     then whether the events are stored. With AfterSeq the call can be repeated.
func (s *Store) Append(
	ctx context.Context, threadID, runID string, events []json.RawMessage, options ...AppendOption,
) (int64, error) {
	seq, err := s.queries.AppendEvents(ctx, s.appendParams(threadID, runID, events, options))
	return seq, refusal(err)
}

// Import appends, as Append does, events of a run that took place before: they are recorded at the times that they name (timestamp), one
// without a time together with the event before it. Times never fall along the log of a thread and are at most now. A run that
// has not ended counts as alive from now on. It takes the rights of agui_maintainer.
func (s *Store) Import(
	ctx context.Context, threadID, runID string, events []json.RawMessage, options ...AppendOption,
) (int64, error) {
	seq, err := s.queries.ImportEvents(ctx, db.ImportEventsParams(s.appendParams(threadID, runID, events, options)))
	return seq, refusal(err)
}

func (s *Store) appendParams(threadID, runID string, events []json.RawMessage, options []AppendOption) db.AppendEventsParams {
	params := db.AppendEventsParams{ThreadID: threadID, RunID: runID, Events: jsonArray(events), Scope: s.scope}
	for _, option := range options {
		option(&params)
	}
	return params
}

// Abandon ends a run in progress whose writer will not come back, as failed: what it left open (messages, tool calls, reasoning,
// steps) is ended in the log, then a RUN_ERROR gives the reason. It returns the run's last seq. A run that has ended stays as it is.
func (s *Store) Abandon(ctx context.Context, threadID, runID, reason string) (int64, error) {
	return s.abandon(ctx, db.AbandonParams{ThreadID: threadID, RunID: runID, Reason: reason})
}

// AbandonImported is Abandon for a run that took place before (see Import): its end is dated as its last event, not as of now.
func (s *Store) AbandonImported(ctx context.Context, threadID, runID, reason string) (int64, error) {
	return s.abandon(ctx, db.AbandonParams{ThreadID: threadID, RunID: runID, Reason: reason, Imported: true})
}

func (s *Store) abandon(ctx context.Context, params db.AbandonParams) (int64, error) {
	params.Scope = s.scope
	seq, err := s.queries.Abandon(ctx, params)
	return seq, refusal(err)
}

// RunInput returns the input that is kept beside the events of a run, byte for byte (see WithInput); nil: there is none. run is one that
// Runs, Lineage or Children returned.
func (s *Store) RunInput(ctx context.Context, threadID string, run Run) (json.RawMessage, error) {
	rows, err := s.queries.RunInput(ctx, db.RunInputParams{ThreadID: threadID, RunNo: int32(run.Number), Scope: s.scope})
	if err != nil || len(rows) == 0 {
		return nil, refusal(err)
	}
	return json.RawMessage(rows[0]), nil
}

func jsonArray(elements []json.RawMessage) rawjson.Text {
	size := 2
	for _, element := range elements {
		size += len(element) + 1
	}
	var array bytes.Buffer
	array.Grow(size)
	array.WriteByte('[')
	for i, element := range elements {
		if i > 0 {
			array.WriteByte(',')
		}
		if len(bytes.TrimSpace(element)) == 0 {
			element = []byte("null") // or it would be left out
		}
		array.Write(element)
	}
	array.WriteByte(']')
	return array.Bytes()
}
