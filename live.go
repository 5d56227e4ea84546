package pgagui

import (
	"context"
	"time"

	"github.com/pgagui/pgagui/db"
)

// RunStatus is how a run is, and whether its writer is still there.
type RunStatus struct {
	RunID  string `json:"runId"`
	Parent string `json:"parentRunId,omitempty"` // empty: a root
	Status Status `json:"status"`
	// FirstSeq and LastSeq are the seqs of its first event and of its last one so far.
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero while it is running
	// AliveAt is its last sign of life: when its writer last appended an event, or said that it is there.
	AliveAt time.Time `json:"aliveAt"`
	// Stale says that it is running, but gave no sign of life within its lease (docs/settings.md).
	// pgagui reap will close it, or the next run.
	Stale bool `json:"stale,omitempty"`
	// StopRequestedAt is when RequestStop was first called for it; zero: it was not.
	StopRequestedAt time.Time `json:"stopRequestedAt,omitzero"`
	StopReason      string    `json:"stopReason,omitempty"`
	// CutOffReason says why it was ended in its writer's place; empty: it was not.
	CutOffReason string `json:"cutOffReason,omitempty"`
}

// Status returns how a run is; with an empty run id the head. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) Status(ctx context.Context, threadID, runID string) (*RunStatus, error) {
	row, err := s.queries.RunStatus(ctx, db.RunStatusParams{ThreadID: threadID, RunID: orNull(runID), Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	return &RunStatus{
		RunID: row.RunID, Parent: row.ParentRunID, Status: Status(row.Status), FirstSeq: row.FirstSeq, LastSeq: row.LastSeq,
		StartedAt: row.StartedAt, EndedAt: row.EndedAt, AliveAt: row.AliveAt, Stale: row.IsStale,
		StopRequestedAt: row.StopRequestedAt, StopReason: row.StopReason, CutOffReason: row.CutOffReason,
	}, nil
}

// RequestStop asks the writer of a run to stop, in whichever process it is; with an empty run id the writers of all runs in progress of
// the thread. A Recorder cancels the run's context then, within about a second. Returns how many runs are asked to stop now; 0: none is in
// progress. Each run ends itself; reason, which may be empty, is for its writer to read. Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) RequestStop(ctx context.Context, threadID, runID, reason string) (runs int, err error) {
	n, err := s.queries.RequestStop(ctx, db.RequestStopParams{
		ThreadID: threadID, RunID: orNull(runID), Reason: orNull(reason), Scope: s.scope,
	})
	return int(n), refusal(err)
}
