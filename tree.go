package pgagui

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Run is a node of a thread's tree.
type Run struct {
	ID          string `json:"runId"`
	ParentRunID string `json:"parentRunId,omitempty"` // empty: a root
	Status      Status `json:"status"`
	// Depth counts the runs from the root to this one. The depth of a root is 1.
	Depth int `json:"depth"`
	// Number counts the runs of the thread 1, 2, 3, … in the order in which they began.
	Number    int       `json:"number"`
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq,omitempty"` // 0 while it is running
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero while it is running
	// RunEnd says why it ended so; a text of more than 1,000 characters is cut.
	RunEnd
}

// Branch is a leaf of a thread's tree with the lineage that leads to it.
type Branch struct {
	// RunID is the last run of the branch.
	RunID string `json:"runId"`
	// Runs is the length of its lineage.
	Runs int `json:"runs"`
	// ForkedFrom is the last run that it shares with another branch. Empty if there is none.
	ForkedFrom string `json:"forkedFrom,omitempty"`
	Status     Status `json:"status"`
	LastSeq    int64  `json:"lastSeq,omitempty"` // 0 while it is running
	// IsHead is true if a run that names no parent continues this branch.
	IsHead bool `json:"isHead"`
}

// RunPair is two runs of a thread to compare. Their order does not matter.
type RunPair struct{ A, B string }

// Runs returns all runs of a thread in the order in which they began: its tree.
//
// Errors: ErrUnknownThread, ErrKeyCollision.
func (s *Store) Runs(ctx context.Context, threadID string) ([]Run, error) {
	rows, err := s.of(threadID).Runs(ctx, db.RunsParams{ThreadID: threadID, Scope: s.scope})
	return listOf(rows, err, runOf)
}

// Lineage returns the runs from the root to a run, or to the head if run.RunID is empty. The root
// comes first.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Lineage(ctx context.Context, run RunRef) ([]Run, error) {
	rows, err := s.of(run.ThreadID).Lineage(ctx, db.LineageParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	return listOf(rows, err, func(row db.LineageRow) Run { return runOf(db.RunsRow(row)) })
}

// Branches returns the branches of a thread in the order in which their last runs began.
//
// Errors: ErrUnknownThread, ErrKeyCollision.
func (s *Store) Branches(ctx context.Context, threadID string) ([]Branch, error) {
	rows, err := s.of(threadID).Branches(ctx, db.BranchesParams{ThreadID: threadID, Scope: s.scope})
	return listOf(rows, err, func(row db.BranchesRow) Branch {
		return Branch{
			RunID: row.RunID, Runs: int(row.Runs), ForkedFrom: row.ForkedFrom,
			Status: Status(row.Status), LastSeq: row.LastSeq, IsHead: row.IsHead,
		}
	})
}

// Head returns the run that began last. A new run that names no parent becomes its child.
//
// Errors: ErrUnknownThread (also if the thread has no run yet), ErrKeyCollision.
func (s *Store) Head(ctx context.Context, threadID string) (runID string, err error) {
	runID, err = s.of(threadID).Head(ctx, db.HeadParams{ThreadID: threadID, Scope: s.scope})
	return runID, ErrorOf(err)
}

// MergeBase returns the last run that the lineages of two runs share.
//
// Errors: ErrUnrelatedRuns if the runs have different roots; ErrUnknownThread, ErrUnknownRun,
// ErrKeyCollision.
func (s *Store) MergeBase(ctx context.Context, threadID string, runs RunPair) (runID string, err error) {
	runID, err = s.of(threadID).MergeBase(ctx, db.MergeBaseParams{ThreadID: threadID, RunA: runs.A, RunB: runs.B, Scope: s.scope})
	if err == nil && runID == "" {
		return "", unknown(ErrUnrelatedRuns, "runs %q and %q of thread %q have different roots", runs.A, runs.B, threadID)
	}
	return runID, ErrorOf(err)
}

// MessageOrigin returns the run that first brought a message, in its events or in its input, on the
// lineage of a run; of the head if run.RunID is empty. To edit or regenerate the message, begin a
// run with the parent of this one (Run.ParentRunID; if empty, NoParent). It reads the ids of the
// thread's stored messages and the log between two snapshots, however long the log is.
//
// Errors: ErrUnknownMessage if no run of the lineage brought it; ErrUnknownThread, ErrUnknownRun,
// ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) MessageOrigin(ctx context.Context, run RunRef, messageID string) (Run, error) {
	rows, err := s.of(run.ThreadID).MessageOrigin(ctx, db.MessageOriginParams{
		ThreadID: run.ThreadID, MessageID: messageID, RunID: orNull(run.RunID), Scope: s.scope,
	})
	switch {
	case err != nil:
		return Run{}, ErrorOf(err)
	case len(rows) == 0:
		return Run{}, unknown(ErrUnknownMessage, "no run of the lineage brought a message %q", messageID)
	}
	return runOf(db.RunsRow(rows[0])), nil
}

// Question says what an answer is to.
type Question struct {
	AskedBy      string          // the run that the client takes for the one that asks
	InterruptIDs []string        // that the answer names
	Value        json.RawMessage // of the CUSTOM event that asked, if the answer repeats it
}

// Answer says which run asks, and whether it is answered.
type Answer struct {
	AskingRunID string    // empty: no run of the lineage asks that
	RunID       string    // the run that answered it; empty: it is open
	At          time.Time // when that began
}

// Answered says whether a question is answered in the lineage of a run; of the head if run.RunID is empty.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Answered(ctx context.Context, run RunRef, question Question) (Answer, error) {
	row, err := s.of(run.ThreadID).Answered(ctx, db.AnsweredParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), AskedBy: orNull(question.AskedBy), InterruptIds: question.InterruptIDs, Question: rawjson.Text(question.Value), Scope: s.scope,
	})
	return Answer{row.AskingRunID, row.AnsweredBy, row.AnsweredAt}, ErrorOf(err)
}

func runOf(row db.RunsRow) Run {
	run := Run{
		ID: row.RunID, ParentRunID: row.ParentRunID, Status: Status(row.Status), Depth: int(row.Depth), Number: int(row.RunNo),
		FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt,
		RunEnd: RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason},
	}
	if run.Status != Running {
		run.EndedAt = row.EndedAt
	}
	return run
}
