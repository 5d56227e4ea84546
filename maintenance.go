package pgagui

import (
	"context"
	"time"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// Maintenance checks and repairs the threads of a Store's scope. Package jobs has what runs on a
// schedule.
type Maintenance struct{ store *Store }

// Maintenance returns the calls that check and repair threads. Those that write take the rights of
// agui_maintainer.
func (s *Store) Maintenance() Maintenance { return Maintenance{s} }

// Problem is a finding of Verify.
type Problem struct {
	RunID   string `json:"runId,omitempty"` // empty: it concerns no single run
	Problem string `json:"problem"`
	// Severity is Damage or Note.
	Severity Severity `json:"severity"`
}

// Severity says how bad a Problem is.
type Severity string

const (
	// Damage is what the database should not hold.
	Damage Severity = "damage"
	// Note is what an agent or its writer did against the protocol. The log keeps it as it was
	// appended.
	Note Severity = "note"
)

// Verify checks a thread: its log, the tree of its runs, and every snapshot against a fold of the
// log. The thread is sound if no problem has the severity Damage. jobs.Verify checks many threads,
// several times faster.
//
// Errors: ErrUnknownThread, ErrKeyCollision.
func (m Maintenance) Verify(ctx context.Context, threadID string) ([]Problem, error) {
	rows, err := m.store.of(threadID).Verify(ctx, db.VerifyParams{ThreadID: threadID, Scope: m.store.scope})
	return listOf(rows, err, func(row db.VerifyRow) Problem {
		return Problem{RunID: row.RunID, Problem: row.Problem, Severity: Severity(row.Severity)}
	})
}

// RebuildSnapshots replaces the snapshots of a thread by new ones, folded from its log, and returns
// how many there are now. It repairs what Verify finds wrong with snapshots.
//
// Errors: ErrUnknownThread, ErrKeyCollision, ErrFoldLimit; ErrLogDamaged if Verify finds damage in
// the log itself: then nothing changes, because a snapshot may hold what the log has lost.
func (m Maintenance) RebuildSnapshots(ctx context.Context, threadID string) (int, error) {
	snapshots, err := m.store.of(threadID).RebuildSnapshots(ctx, db.RebuildSnapshotsParams{ThreadID: threadID, Scope: m.store.scope})
	return int(snapshots), ErrorOf(err)
}

// LiftErasure lets an erased thread begin again from seq 1. It reports whether the thread was
// erased.
//
// Errors: ErrKeyCollision.
func (m Maintenance) LiftErasure(ctx context.Context, threadID string) (wasErased bool, err error) {
	wasErased, err = m.store.of(threadID).LiftErasure(ctx, db.LiftErasureParams{ThreadID: threadID, Scope: m.store.scope})
	return wasErased, ErrorOf(err)
}

// Hold is a thread that cannot be erased.
type Hold struct {
	Scope    string    `json:"scope"`
	ThreadID string    `json:"threadId"`
	Reason   string    `json:"reason"`
	HeldAt   time.Time `json:"heldAt"`
	HeldBy   string    `json:"heldBy"`
}

// SetHold holds a thread: until LiftHold it cannot be erased. A second call replaces the reason,
// which must not be empty.
//
// Errors: ErrUnknownThread, ErrKeyCollision, ErrInvalidArgument.
func (m Maintenance) SetHold(ctx context.Context, threadID, reason string) (Hold, error) {
	row, err := m.store.of(threadID).SetHold(ctx, db.SetHoldParams{ThreadID: threadID, Reason: reason, Scope: m.store.scope})
	return Hold{m.store.scope, threadID, row.Reason, row.HeldAt, row.HeldBy}, ErrorOf(err)
}

// LiftHold permits a held thread to be erased. It reports whether the thread was held.
//
// Errors: ErrKeyCollision.
func (m Maintenance) LiftHold(ctx context.Context, threadID string) (wasHeld bool, err error) {
	wasHeld, err = m.store.of(threadID).LiftHold(ctx, db.LiftHoldParams{ThreadID: threadID, Scope: m.store.scope})
	return wasHeld, ErrorOf(err)
}

// Holds returns the threads of the scope that are held, the oldest hold first. In a cluster an
// *UnansweredError comes with those of the nodes that answered.
func (m Maintenance) Holds(ctx context.Context) ([]Hold, error) {
	answers, err := gather(ctx, m.store, func(ctx context.Context, on part) ([]Hold, error) {
		rows, err := on.Holds(ctx, m.store.scope)
		return listOf(rows, err, func(row db.HoldsRow) Hold { return Hold(row) })
	})
	return mergeRows(
		answers, func(hold Hold) string { return hold.ThreadID }, func(*Hold, Hold) {}, func(a, b Hold) int { return a.HeldAt.Compare(b.HeldAt) },
	), err
}

// FoldLimits returns the limits of folds in this database (docs/settings.md), for programs that fold
// events themselves. In a cluster they are those of a node that answers: all nodes should have the same.
func (m Maintenance) FoldLimits(ctx context.Context) (compaction.Limits, error) {
	answers, err := gather(ctx, m.store, func(ctx context.Context, on part) (db.FoldLimitsRow, error) {
		return on.FoldLimits(ctx, compaction.Rules)
	})
	if answers == nil {
		return compaction.Limits{}, err
	}
	row := answers[0]
	return compaction.Limits{
		DocumentBytes:     row.DocumentBytes,
		DocumentDepth:     int(row.DocumentDepth),
		PatchOperations:   int(row.PatchOperations),
		PatchCopiedBytes:  row.PatchCopiedBytes,
		PatchShiftedItems: row.PatchShiftedItems,
		FoldBytes:         row.FoldBytes,
		FoldMessages:      int(row.FoldMessages),
		FoldLanes:         int(row.FoldLanes),
		FoldFuel:          row.FoldFuel,
	}, nil
}
