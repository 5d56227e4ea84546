package pgagui

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// AppendOptions say how Append stores events. The zero value appends behind whatever the run has.
type AppendOptions struct {
	// AfterSeq makes the call idempotent. It is the last seq of the run that the writer has seen, as
	// its last Append returned it; 0 if it has seen none. Append compares the events that the log
	// has behind it with those of the call, and does not store them a second time. If they differ,
	// it returns ErrConflictingRepeat. A retry may use batches of other sizes.
	AfterSeq *int64
	// ParentRunID is the parent of a new run, whatever RUN_STARTED names. If empty, RUN_STARTED
	// names the parent, or else the parent is the head. It counts in the call that begins the run.
	// If the run exists and has another parent, Append returns ErrConflictingRepeat.
	ParentRunID string
	// NoParent makes a new run a root, whatever ParentRunID and RUN_STARTED name.
	NoParent bool
	// Input is the input of the run (RunAgentInput), a JSON object, if RUN_STARTED does not carry
	// it. It comes with the call that begins the run, and with each retry of that call. The log
	// keeps its bytes; reads act as if RUN_STARTED carried it. If the run began without it, Append
	// returns ErrInvalidEvents; if a retry brings another input, ErrConflictingRepeat.
	Input json.RawMessage
	// Parallel lets the run begin while others are in progress in its thread. Its parent must have
	// ended.
	Parallel bool
	// Strict refuses what breaks the protocol and is stored otherwise: events behind the end of the
	// run (ErrRunEnded), a second RUN_STARTED (ErrRunIDInUse), a run that begins with another event
	// (ErrUnknownRun), and a RUN_STARTED that names another thread (ErrOtherThread).
	Strict bool
	// TimesFromEvents imports a run of the past. It records each event at the time that the event
	// names (timestamp), and an event without a time together with the one before it. Times never
	// fall along the log of a thread and are at most now. If the run has not ended, its lease
	// begins now. This takes the rights of agui_maintainer.
	TimesFromEvents bool
}

// Append appends events to a run and returns the seq of the last one. The log keeps their bytes as
// they are.
//
// RUN_STARTED begins the run, as a child of its parentRunId or else of the thread's head.
// RUN_FINISHED or RUN_ERROR ends it. All events of a call belong to one run; Append stores all of
// them or none.
//
// Some agents send events after the end of a run, and a second RUN_STARTED. The log takes them from
// a writer that has seen the end: in the call that ends the run, or in later calls with AfterSeq, as
// long as the run has no child. With AfterSeq 0 a run may begin with any event. The run stays ended.
//
// Errors:
//   - ErrInvalidEvents, ErrLimitExceeded (64 MB a call, 1,000 levels deep, ids of 1,024 bytes): the
//     log does not take such events.
//   - ErrUnknownRun: the first event of a new run is not RUN_STARTED.
//   - ErrRunIDInUse: the run exists, or RUN_STARTED names another one.
//   - ErrUnknownParent, ErrParentInProgress: the parent of a new run does not exist, or has not ended.
//   - ErrRunInProgress: another run of the thread is in progress. The error says until when its
//     lease lasts, and what to call.
//   - ErrRunEnded, ErrRunCutOff: the events come too late. They belong to a new run.
//   - ErrConflictingRepeat, ErrLogRewound: with AfterSeq, the log has other events than the writer
//     expects, or fewer.
//   - ErrThreadErased: the thread was erased. ErrKeyCollision: another thread has its key.
//   - ErrOtherThread: with Strict, RUN_STARTED names another thread.
//   - Any other error is that of the database or of the connection: a *pgconn.PgError if the
//     database answered. Then it may be unknown whether the events are stored. Retry with AfterSeq.
func (s *Store) Append(
	ctx context.Context, run RunRef, events []json.RawMessage, options AppendOptions,
) (lastSeq int64, err error) {
	params := db.AppendEventsParams{
		ThreadID: run.ThreadID, RunID: run.RunID, Events: rawjson.Array(events), AfterSeq: options.AfterSeq,
		ParentRunID: parentOf(options.ParentRunID, options.NoParent), Input: rawjson.Text(options.Input),
		Parallel: options.Parallel, Strict: options.Strict, Scope: s.scope,
	}
	if options.TimesFromEvents {
		lastSeq, err = s.of(run.ThreadID).ImportEvents(ctx, db.ImportEventsParams(params))
	} else {
		lastSeq, err = s.of(run.ThreadID).AppendEvents(ctx, params)
	}
	return lastSeq, ErrorOf(err)
}

// AppendCall is one of the calls of AppendMany.
type AppendCall struct {
	// Run is the run to append to. The runs of several calls may be of the same thread or of others.
	Run    RunRef
	Events []json.RawMessage
	// AfterSeq is the last seq of the run that the writer has seen, 0 if it has seen none. It makes
	// the call idempotent, as AppendOptions.AfterSeq does.
	AfterSeq int64
	// ParentRunID, NoParent, Input and Parallel are those of AppendOptions.
	ParentRunID string
	NoParent    bool
	Input       json.RawMessage
	Parallel    bool
}

// AppendManyOptions belong to AppendMany.
type AppendManyOptions struct {
	// Strict is AppendOptions.Strict, for all calls.
	Strict bool
}

// AppendResult is the result of one call of AppendMany.
type AppendResult struct {
	// LastSeq is the seq of the last event of the call. 0 if the call was refused.
	LastSeq int64
	// Err says why the call was refused: an *Error of the kinds that Append returns. nil if its
	// events are stored. In a cluster also why the node of its thread did not answer; then it may be
	// unknown whether they are stored.
	Err error
}

// AppendMany appends to several runs in one commit, for writers of many runs at once. It returns one
// result for each call, in their order. A call that is refused does not stop the others. The calls
// must not exceed 1,000, nor 64 MB together.
//
// In a cluster it makes one commit for each node that has some of the threads. If a node does not
// answer, the results of its calls say so, and those of the others are as usual.
//
// Errors: ErrLimitExceeded, for all calls (too many, too large). Results have it for one call, and
// ErrInvalidEvents, ErrInvalidArgument, ErrUnknownRun, ErrUnknownParent, ErrParentInProgress,
// ErrRunEnded, ErrRunInProgress, ErrConflictingRepeat, ErrRunIDInUse, ErrRunCutOff, ErrLogRewound,
// ErrThreadErased, ErrKeyCollision, ErrOtherThread, ErrMoved. Any other error is that of the database or of
// the connection. Then it may be unknown whether the events are stored. Retry with the same calls.
func (s *Store) AppendMany(ctx context.Context, calls []AppendCall, options AppendManyOptions) ([]AppendResult, error) {
	results := make([]AppendResult, len(calls))
	params := db.AppendManyParams{Strict: options.Strict, Wait: true, Durable: true}
	var numbers []int // of the calls that are sent
	for i, call := range calls {
		events := rawjson.Array(call.Events)
		if results[i].Err = errors.Join(checkText(events), checkText(rawjson.Text(call.Input))); results[i].Err != nil {
			continue // it would make the whole statement fail
		}
		numbers = append(numbers, i)
		params.ThreadIds = append(params.ThreadIds, call.Run.ThreadID)
		params.RunIds = append(params.RunIds, call.Run.RunID)
		params.Events = append(params.Events, string(events))
		params.AfterSeqs = append(params.AfterSeqs, call.AfterSeq)
		params.Inputs = append(params.Inputs, orNull(string(call.Input)))
		params.ParentRunIds = append(params.ParentRunIds, parentOf(call.ParentRunID, call.NoParent))
		params.Parallel = append(params.Parallel, call.Parallel)
		params.Scopes = append(params.Scopes, s.scope)
	}
	answers, errs := appendMany(ctx, s.backend, s.caller, params)
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return nil, ErrorOf(errs[0])
	}
	for i, err := range errs {
		results[numbers[i]].Err = ErrorOf(err)
	}
	for _, answer := range answers {
		result := &results[numbers[answer.CallNo-1]]
		if answer.ErrorCode != "" {
			result.Err = errorOfCall(answer)
		} else {
			result.LastSeq = answer.LastSeq
		}
	}
	return results, nil
}

// checkText returns ErrInvalidEvents or ErrLimitExceeded for a text that the database cannot read.
func checkText(text rawjson.Text) error {
	_, err := text.Value()
	return ErrorOf(err)
}

// AbandonOptions say how Abandon ends a run.
type AbandonOptions struct {
	// Reason is in the message of the RUN_ERROR that ends the run, or in the result of a cancelled one.
	Reason string
	// TimesFromEvents dates the end as the run's last event, not as of now. It belongs to
	// AppendOptions.TimesFromEvents, and takes the rights of agui_maintainer.
	TimesFromEvents bool
	// Cancelled is for the writer of a run that was requested to stop: the run ends with RUN_FINISHED,
	// whose outcome is cancelled, and its status is Cancelled.
	Cancelled bool
}

// Abandon ends a run in progress whose writer will not come back: its status is then CutOff. It ends
// what the run left open (messages, tool calls, reasoning, steps) in the log, then appends a
// RUN_ERROR with the reason, and returns the run's last seq. A run that has ended stays as it is.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrInvalidEvents (an empty id or reason),
// ErrLimitExceeded, ErrLogDamaged.
func (s *Store) Abandon(ctx context.Context, run RunRef, options AbandonOptions) (lastSeq int64, err error) {
	lastSeq, err = s.of(run.ThreadID).Abandon(ctx, db.AbandonParams{
		ThreadID: run.ThreadID, RunID: run.RunID, Reason: options.Reason, Imported: options.TimesFromEvents, Cancelled: options.Cancelled, Scope: s.scope,
	})
	return lastSeq, ErrorOf(err)
}

// parentOf returns the parent of a new run as the functions of the schema take it: nil if
// RUN_STARTED names it, a pointer to an empty text if the run is a root.
func parentOf(parentRunID string, noParent bool) *string {
	if noParent {
		return new("")
	}
	return orNull(parentRunID)
}

// Settle compacts what has ended in a thread, so that its next reload is fast before the compaction
// job runs. Call it behind the end of a run, outside of the transaction that appends; a Recorder
// does. It does one bounded step, which appends do not wait for. isDone is false if more is left, or
// if another transaction holds the thread: the next call or the job does the rest. What is too small
// to be worth a step is left to the job.
//
// Errors: ErrFoldLimit, ErrKeyCollision. Nothing has changed then.
func (s *Store) Settle(ctx context.Context, threadID string) (isDone bool, err error) {
	isDone, err = s.of(threadID).Settle(ctx, db.SettleParams{ThreadID: threadID, Scope: s.scope})
	return isDone, ErrorOf(err)
}
