package core

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// Pushing is for agents that another process runs: they send their events one by one, most of them
// without saying which run they belong to. Each push is one append, so it is stored whole or not at
// all, and pushes of several clients have an order. It goes to
//
//   - the run that RUN_STARTED begins;
//   - the run that the event names (runId), also if that has ended, as long as none continues from it;
//   - the head, if it is in progress;
//   - otherwise a run of its own, which ends with it.
//
// A run whose writer sends heartbeats takes no pushes: they would end its recording.

// pushPatience is how long a push looks for its run, while other writers begin and end runs.
const pushPatience = 5 * time.Second

// Push stores an event, and returns its seq. With afterSeq, the seq of the last event of the run
// that the client has seen, a repeated push stores it once.
func (s *Server) Push(ctx context.Context, to Tenant, threadID string, event json.RawMessage, afterSeq *int64) (seq int64, err error) {
	release, err := s.admitSoon(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	kind := compaction.EventType(event)
	own := pgagui.RunRef{ThreadID: threadID}
	if own.RunID, err = runIDOf(event); err != nil {
		return 0, err
	}
	if kind == "RUN_STARTED" {
		if own.RunID == "" {
			return 0, problem.Errorf(http.StatusBadRequest, `RUN_STARTED has no "runId"`)
		}
		return s.Append(ctx, to, own, []json.RawMessage{withIDs(event, own)}, pgagui.AppendOptions{AfterSeq: afterSeq})
	}
	isEnd := kind == "RUN_FINISHED" || kind == "RUN_ERROR"
	return retryPush(ctx, func() (int64, error) {
		run, options := own, pgagui.AppendOptions{AfterSeq: afterSeq}
		status, err := to.Status(ctx, own)
		isNamed, mustExist := own.RunID != "", own.RunID != "" || isEnd || afterSeq != nil
		switch {
		case err != nil && (mustExist || !errors.Is(err, pgagui.ErrUnknownThread)):
			return 0, backoff.Permanent(err)
		case err == nil && isRecorded(status) && (mustExist || !status.Stale):
			return 0, backoff.Permanent(recordedElsewhere(status.RunID))
		case err == nil && (mustExist || takesPushes(status)):
			run.RunID = status.RunID
		default:
			seq, err := s.PushRun(ctx, to, own.ThreadID, "", []json.RawMessage{event}, false)
			return seq, permanentBut(err, pgagui.ErrRunInProgress)
		}
		isLate := isNamed && afterSeq == nil && status.Status != pgagui.Running
		if isLate {
			options.AfterSeq = &status.LastSeq
		}
		seq, err := s.Append(ctx, to, run, []json.RawMessage{withIDs(event, run)}, options)
		switch {
		case isLate: // another late event was stored first
			return seq, permanentBut(err, pgagui.ErrConflictingRepeat)
		case isNamed && afterSeq == nil:
			return seq, permanentBut(err, pgagui.ErrRunEnded)
		case mustExist:
			return seq, permanentBut(err)
		default:
			return seq, permanentBut(err, pgagui.ErrRunEnded, pgagui.ErrRunCutOff)
		}
	})
}

// Message is a message that a client pushes, as events.
type Message struct {
	// Alone are its events in a run of its own.
	Alone []json.RawMessage
	// EndsRun is true if they end the run.
	EndsRun bool
	// Within are its events in a run in progress.
	Within []json.RawMessage
}

// PushMessage stores a message, and returns the seq of its first event. With a key, it becomes a run
// of that id, so a repeated push stores it once.
func (s *Server) PushMessage(ctx context.Context, to Tenant, threadID string, message Message, key string) (seq int64, err error) {
	release, err := s.admitSoon(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	if key != "" {
		return s.PushRun(ctx, to, threadID, key, message.Alone, message.EndsRun)
	}
	return retryPush(ctx, func() (int64, error) {
		status, err := to.Status(ctx, pgagui.RunRef{ThreadID: threadID})
		switch {
		case err != nil && !errors.Is(err, pgagui.ErrUnknownThread):
			return 0, backoff.Permanent(err)
		case err == nil && isRecorded(status) && !status.Stale:
			return 0, backoff.Permanent(recordedElsewhere(status.RunID))
		case err != nil || !takesPushes(status):
			seq, err := s.PushRun(ctx, to, threadID, "", message.Alone, message.EndsRun)
			return seq, permanentBut(err, pgagui.ErrRunInProgress)
		}
		last, err := s.Append(ctx, to, pgagui.RunRef{ThreadID: threadID, RunID: status.RunID}, message.Within, pgagui.AppendOptions{})
		return last - int64(len(message.Within)) + 1, permanentBut(err, pgagui.ErrRunEnded, pgagui.ErrRunCutOff)
	})
}

// PushRun stores events as a run of their own, and returns the seq of the first of them. A repeated
// call with the same run id stores them once. If the run id is empty, it makes a new one.
func (s *Server) PushRun(ctx context.Context, to Tenant, threadID, runID string, middle []json.RawMessage, hasEnd bool) (seq int64, err error) {
	var options pgagui.AppendOptions
	if runID != "" {
		options.AfterSeq = new(int64(0))
	}
	run := pgagui.RunRef{ThreadID: threadID, RunID: cmp.Or(runID, "push-"+rand.Text())}
	start, err := events.RunStarted{ThreadID: threadID, RunID: run.RunID}.Event()
	if err != nil {
		return 0, err
	}
	all := append([]json.RawMessage{start}, middle...)
	if !hasEnd {
		end, err := events.RunFinished{ThreadID: threadID, RunID: run.RunID}.Event()
		if err != nil {
			return 0, err
		}
		all = append(all, end)
	}
	last, err := s.Append(ctx, to, run, all, options)
	return last - int64(len(all)) + 2, err
}

// isRecorded reports whether a run is in progress and has a writer that sends heartbeats, or has sent
// them. If it is stale, the next run closes it.
func isRecorded(run *pgagui.RunStatus) bool { return run.Status == pgagui.Running && run.HasHeartbeat }

// takesPushes reports whether a run is in progress and has no such writer.
func takesPushes(run *pgagui.RunStatus) bool {
	return run.Status == pgagui.Running && !run.HasHeartbeat
}

func recordedElsewhere(runID string) error {
	known := problem.Errorf(http.StatusConflict, "run %q is in progress, and the server that calls its agent writes it", runID)
	known.Hint, known.RunID = "Push when it has ended, or stop it.", runID
	return known
}

// permanentBut marks an error as permanent, unless it is one of some kinds: those say that another
// writer has begun or ended a run meanwhile.
func permanentBut(err error, kinds ...error) error {
	if err == nil || slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		return err
	}
	return backoff.Permanent(err)
}

func retryPush(ctx context.Context, attempt func() (seq int64, err error)) (seq int64, err error) {
	return backoff.Retry(ctx, attempt, backoff.WithMaxElapsedTime(pushPatience), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 5 * time.Millisecond, MaxInterval: 100 * time.Millisecond, Multiplier: 2, RandomizationFactor: 0.5,
	}))
}

// runIDOf returns the run that an event names. Empty: none.
func runIDOf(event json.RawMessage) (id string, err error) {
	for name, value := range compaction.Members(event) {
		if name == "runId" {
			if id, err = jsontext.ReadString(value); err != nil {
				return "", problem.Errorf(http.StatusBadRequest, `the member "runId" of the event: %v`, err)
			}
		}
	}
	return id, nil
}

// withIDs returns an event with the ids of its thread and its run, if it begins or finishes the run:
// there AG-UI requires them.
func withIDs(event json.RawMessage, run pgagui.RunRef) json.RawMessage {
	kind := compaction.EventType(event)
	event, _ = ownIDs(event, kind, run)
	if kind != "RUN_STARTED" && kind != "RUN_FINISHED" {
		return event
	}
	ids := map[string]string{"threadId": run.ThreadID, "runId": run.RunID}
	for name := range compaction.Members(event) {
		delete(ids, name)
	}
	for _, name := range []string{"threadId", "runId"} {
		if id, isMissing := ids[name]; isMissing {
			open := bytes.TrimSuffix(bytes.TrimRight(event, " \t\r\n"), []byte{'}'})
			event = slices.Concat(open, []byte(`,"`+name+`":`), jsontext.Quote(id), []byte{'}'})
		}
	}
	return event
}

// EventAt returns an event that a client has seen.
func (t Tenant) EventAt(ctx context.Context, threadID string, seq int64) (pgagui.HistoryEvent, error) {
	page, err := t.History(ctx, threadID, pgagui.HistoryOptions{AfterSeq: seq - 1, Limit: 1, Raw: true})
	if err == nil && len(page.Events) == 0 {
		err = problem.Errorf(http.StatusConflict, "the log of thread %q ends before event %d", threadID, seq)
	}
	if err != nil {
		return pgagui.HistoryEvent{}, err
	}
	return page.Events[0], nil
}

// mostEvents is the limit of the store for a page of history.
const mostEvents = 1000

// CountEvents returns the number of events of a thread: the seq of the last one.
func (t Tenant) CountEvents(ctx context.Context, threadID string) (int64, error) {
	head, err := t.Status(ctx, pgagui.RunRef{ThreadID: threadID})
	if err != nil {
		return 0, err
	}
	last := head.LastSeq
	for { // what runs in parallel to the head
		page, err := t.History(ctx, threadID, pgagui.HistoryOptions{AfterSeq: last, Limit: mostEvents, Raw: true})
		if err != nil || len(page.Events) == 0 {
			return last, err
		}
		last = page.AfterSeq
	}
}
