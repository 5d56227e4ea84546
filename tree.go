package pgagui

import (
	"context"
	"time"

	"github.com/pgagui/pgagui/db"
)

// Status is where a run is in its life.
type Status string

// A run is running until RUN_FINISHED or RUN_ERROR. One that waits for an answer to an interrupt has finished.
const (
	Running  Status = "running"
	Finished Status = "finished"
	Failed   Status = "failed"
)

// Run is a node of a thread's tree.
type Run struct {
	ID     string `json:"runId"`
	Parent string `json:"parentRunId,omitempty"` // empty: a root
	Status Status `json:"status"`
	// Depth counts the runs from the root to this one; a root has 1.
	Depth int `json:"depth"`
	// Number counts the thread's runs 1, 2, 3, … as they began.
	Number    int       `json:"number"`
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq,omitempty"` // 0 while it is running
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero while it is running
}

// Branch is a leaf of a thread's tree with the lineage that leads to it.
type Branch struct {
	// RunID is the branch's last run.
	RunID string `json:"runId"`
	// Runs is the length of its lineage.
	Runs int `json:"runs"`
	// ForkedFrom is the last run that it shares with another branch; empty when there is none.
	ForkedFrom string `json:"forkedFrom,omitempty"`
	Status     Status `json:"status"`
	LastSeq    int64  `json:"lastSeq,omitempty"` // 0 while it is running
	// IsHead says that a run which names no parent goes on from here.
	IsHead bool `json:"isHead"`
}

// Lineage returns the runs from the root to a run (empty: the head), root first.
// Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) Lineage(ctx context.Context, threadID, runID string) ([]Run, error) {
	rows, err := s.queries.Lineage(ctx, db.LineageParams{ThreadID: threadID, RunID: orNull(runID), Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	runs := make([]Run, len(rows))
	for i, row := range rows {
		runs[i] = runOf(db.RunsRow(row))
	}
	return runs, nil
}

// Runs returns all runs of a thread in the order in which they began: its tree. Errors: ErrUnknownThread.
func (s *Store) Runs(ctx context.Context, threadID string) ([]Run, error) {
	rows, err := s.queries.Runs(ctx, db.RunsParams{ThreadID: threadID, Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	runs := make([]Run, len(rows))
	for i, row := range rows {
		runs[i] = runOf(row)
	}
	return runs, nil
}

// Branches returns the branches of a thread in the order in which their last runs began. Errors: ErrUnknownThread.
func (s *Store) Branches(ctx context.Context, threadID string) ([]Branch, error) {
	rows, err := s.queries.Branches(ctx, db.BranchesParams{ThreadID: threadID, Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	branches := make([]Branch, len(rows))
	for i, row := range rows {
		branches[i] = Branch{
			RunID: row.RunID, Runs: int(row.Runs), ForkedFrom: row.ForkedFrom,
			Status: Status(row.Status), LastSeq: row.LastSeq, IsHead: row.IsHead,
		}
	}
	return branches, nil
}

// Head returns the run begun last, which a new run follows when it names no parent. Errors: ErrUnknownThread.
func (s *Store) Head(ctx context.Context, threadID string) (runID string, err error) {
	runID, err = s.queries.Head(ctx, db.HeadParams{ThreadID: threadID, Scope: s.scope})
	return runID, refusal(err)
}

// MergeBase returns the last run that the lineages of two runs share; empty when they have different roots.
// Errors: ErrUnknownThread, ErrUnknownRun.
func (s *Store) MergeBase(ctx context.Context, threadID, runA, runB string) (runID string, err error) {
	runID, err = s.queries.MergeBase(ctx, db.MergeBaseParams{ThreadID: threadID, RunA: runA, RunB: runB, Scope: s.scope})
	return runID, refusal(err)
}

func runOf(row db.RunsRow) Run {
	run := Run{
		ID: row.RunID, Parent: row.ParentRunID, Status: Status(row.Status), Depth: int(row.Depth), Number: int(row.RunNo),
		FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt,
	}
	if run.Status != Running {
		run.EndedAt = row.EndedAt
	}
	return run
}

// orNull is a parameter of a query, NULL when it is zero: not given.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// timeOrNull is the same for a point in time, whose zero may be in any zone.
func timeOrNull(point time.Time) *time.Time {
	if point.IsZero() {
		return nil
	}
	return &point
}
