package pgagui

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgagui/pgagui/db"
)

// Status is the state of a run.
type Status string

// A run is running until RUN_FINISHED or RUN_ERROR. Its status is then that of its last end, even if
// events follow it.
const (
	Running     Status = "running"
	Finished    Status = "finished"    // RUN_FINISHED
	Interrupted Status = "interrupted" // RUN_FINISHED with the outcome interrupt: it waits for answers
	Cancelled   Status = "cancelled"   // RUN_FINISHED with the outcome cancelled: it was stopped
	Failed      Status = "failed"      // RUN_ERROR
	CutOff      Status = "cut_off"     // it was ended on behalf of its writer, which was gone
)

// RunEnd says why a run ended as it did. Each field is empty if it does not apply.
type RunEnd struct {
	// ErrorCode and ErrorMessage are those of the RUN_ERROR that ended the run.
	ErrorCode    string `json:"errorCode,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
	// StopReason is the reason given with RequestStop, or in the result of a cancelled run.
	StopReason string `json:"stopReason,omitempty"`
	// CutOffReason says why the run was ended on behalf of its writer.
	CutOffReason string `json:"cutOffReason,omitempty"`
}

// RunStatus is the state of a run and of its writer.
type RunStatus struct {
	RunID       string `json:"runId"`
	ParentRunID string `json:"parentRunId,omitempty"` // empty: a root
	Status      Status `json:"status"`
	// FirstSeq and LastSeq are the seqs of its first event and of its last one so far.
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero while it is running
	// AliveAt is when its writer last appended an event or sent a heartbeat.
	AliveAt time.Time `json:"aliveAt"`
	// Stale is true if the run is running and its lease has expired (docs/settings.md). pgagui reap
	// closes it, or the next run of the thread does.
	Stale bool `json:"stale,omitempty"`
	// HasHeartbeat is true if its writer sends heartbeats, as a Recorder does. Such a writer appends with
	// AfterSeq, so an event of another writer would end its recording.
	HasHeartbeat bool `json:"hasHeartbeat,omitempty"`
	// StopRequestedAt is when RequestStop was first called for the run. Zero if it was not.
	StopRequestedAt time.Time `json:"stopRequestedAt,omitzero"`
	RunEnd
}

// Status returns the state of a run, or of the head if run.RunID is empty.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Status(ctx context.Context, run RunRef) (*RunStatus, error) {
	row, err := s.of(run.ThreadID).RunStatus(ctx, db.RunStatusParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	return &RunStatus{
		RunID: row.RunID, ParentRunID: row.ParentRunID, Status: Status(row.Status), FirstSeq: row.FirstSeq, LastSeq: row.LastSeq,
		StartedAt: row.StartedAt, EndedAt: row.EndedAt, AliveAt: row.AliveAt, Stale: row.IsStale, HasHeartbeat: row.HasHeartbeat,
		StopRequestedAt: row.StopRequestedAt, RunEnd: RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason},
	}, nil
}

// RequestStopOptions belong to RequestStop.
type RequestStopOptions struct {
	// Reason is for the writer of the run to read. It may be empty.
	Reason string
}

// RequestStop requests the writer of a run to stop, in any process. If run.RunID is empty, it
// requests the writers of all runs in progress of the thread. A Recorder then cancels the context of
// the run within about a second; the writer ends the run. RequestStop returns the number of runs
// that were requested to stop; 0 if none is in progress.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) RequestStop(ctx context.Context, run RunRef, options RequestStopOptions) (runs int, err error) {
	n, err := s.of(run.ThreadID).RequestStop(ctx, db.RequestStopParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), Reason: orNull(options.Reason), Scope: s.scope,
	})
	return int(n), ErrorOf(err)
}

// AgentError is what the agent of a run answered in place of a stream of events.
type AgentError struct {
	Status      int    // of HTTP
	ContentType string // empty: none
	// Body is the first 4 KB of the body, in whatever encoding it came.
	Body       []byte
	RecordedAt time.Time // when it was stored
}

type agentErrorJSON struct {
	Status      int       `json:"status"`
	ContentType string    `json:"contentType,omitempty"`
	Body        string    `json:"body,omitempty"`
	BodyBase64  []byte    `json:"bodyBase64,omitempty"` // in place of body, if that is not UTF-8
	RecordedAt  time.Time `json:"recordedAt,omitzero"`
}

// MarshalJSON returns {"status", "contentType", "body", "recordedAt"}. A body that is not UTF-8 is "bodyBase64".
func (e AgentError) MarshalJSON() ([]byte, error) {
	text := agentErrorJSON{Status: e.Status, ContentType: e.ContentType, RecordedAt: e.RecordedAt}
	if utf8.Valid(e.Body) {
		text.Body = string(e.Body)
	} else {
		text.BodyBase64 = e.Body
	}
	return json.Marshal(text)
}

// UnmarshalJSON reads what MarshalJSON returns.
func (e *AgentError) UnmarshalJSON(text []byte) error {
	var read agentErrorJSON
	err := json.Unmarshal(text, &read)
	*e = AgentError{read.Status, read.ContentType, append(read.BodyBase64, read.Body...), read.RecordedAt}
	return err
}

// Text is the body for people to read: bytes that are not UTF-8 are U+FFFD.
func (e AgentError) Text() string { return strings.ToValidUTF8(string(e.Body), "\uFFFD") }

// KeepAgentError keeps with a run what its agent answered in place of a stream of events, in place of an earlier answer. At most the first
// 4 KB of the body are kept, and RecordedAt is the time of the call.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) KeepAgentError(ctx context.Context, run RunRef, answer AgentError) error {
	return ErrorOf(s.of(run.ThreadID).KeepAgentError(ctx, db.KeepAgentErrorParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), Status: int32(answer.Status),
		ContentType: strings.ToValidUTF8(strings.ReplaceAll(answer.ContentType, "\x00", ""), "\uFFFD"), Body: answer.Body, Scope: s.scope,
	}))
}

// AgentError returns what the agent of a run answered in place of a stream of events. It is nil if there is no such answer, or if the
// role of the database lacks agui_diagnoser.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) AgentError(ctx context.Context, run RunRef) (*AgentError, error) {
	rows, err := s.of(run.ThreadID).AgentError(ctx, db.AgentErrorParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	if err != nil || len(rows) == 0 {
		return nil, ErrorOf(err)
	}
	row := rows[0]
	return &AgentError{int(row.Status), row.ContentType, row.Body, row.RecordedAt}, nil
}
