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

// Append appends events to a run and returns the seq of the last one. The log keeps their bytes as they are.
//
// RUN_STARTED must come first; it begins the run, as a child of its parentRunId or else of the thread's head. RUN_FINISHED or
// RUN_ERROR ends it. All events of a call belong to one run and are stored together or not at all.
//
// Errors: ErrUnknownRun, ErrUnknownParent, ErrParentInProgress, ErrRunEnded, ErrRunInProgress, ErrConflictingRepeat,
// ErrInvalidEvents, ErrRunIDInUse, ErrLimitExceeded (64 MB a call, nested 1,000 deep).
func (s *Store) Append(
	ctx context.Context, threadID, runID string, events []json.RawMessage, options ...AppendOption,
) (int64, error) {
	params := db.AppendEventsParams{ThreadID: threadID, RunID: runID, Events: jsonArray(events), Scope: s.scope}
	for _, option := range options {
		option(&params)
	}
	seq, err := s.queries.AppendEvents(ctx, params)
	return seq, refusal(err)
}

// Abandon ends a run in progress whose writer will not come back, as failed: what it left open (messages, tool calls, reasoning,
// steps) is ended in the log, then a RUN_ERROR gives the reason. It returns the run's last seq. A run that has ended stays as it is.
func (s *Store) Abandon(ctx context.Context, threadID, runID, reason string) (int64, error) {
	seq, err := s.queries.Abandon(ctx, db.AbandonParams{ThreadID: threadID, RunID: runID, Reason: reason, Scope: s.scope})
	return seq, refusal(err)
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
