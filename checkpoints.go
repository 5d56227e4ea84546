package pgagui

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Checkpoints keeps the states of workflow engines beside the log of a thread. A thread need not
// have runs for it.
type Checkpoints struct{ store *Store }

// Checkpoints returns the checkpoints of the Store's scope.
func (s *Store) Checkpoints() Checkpoints { return Checkpoints{s} }

// CheckpointRef names a checkpoint of a thread.
type CheckpointRef struct {
	// Namespace keeps the checkpoints of several workflows of a thread apart. It may be empty.
	Namespace string
	// ID is the engine's name for the checkpoint, unique in its namespace. If empty, the one that
	// was saved last in the namespace, or at RunID.
	ID string
	// RunID names a run instead of an ID: the checkpoint that was saved last at the run, or else at
	// the nearest run before it on its lineage. So a branch of the conversation leads to the state
	// that belongs to it. Only Load takes it.
	RunID string
}

// Checkpoint is the state of a workflow engine at some point of a conversation.
type Checkpoint struct {
	// ID is the engine's name for it, unique in its namespace.
	ID string
	// Namespace keeps the checkpoints of several workflows of a thread apart. It may be empty.
	Namespace string
	// ParentID is the checkpoint of the same namespace that it follows. Empty if there is none.
	ParentID string
	// RunID is the run of the log that the engine is working on, whether it has begun or not. Empty
	// if none is named.
	RunID string
	// JSON is the checkpoint, byte for byte.
	JSON json.RawMessage

	// Number counts the checkpoints of the thread 1, 2, 3, … in commit order: a reader that has read
	// up to N and sees N+1 has missed nothing. Checkpoints of graphs (agui.put_checkpoint) are an
	// exception: they get their number when a child or a write names them, and may be stored later.
	Number int64
	// SavedAt is when it was saved.
	SavedAt time.Time
}

// CheckpointsOptions say which checkpoints List returns. The zero value is all.
type CheckpointsOptions struct {
	// Namespace narrows the list to one namespace, which may be empty. All namespaces if nil.
	Namespace *string
}

// Save saves a checkpoint and returns its number. It ignores Number and SavedAt. It is idempotent:
// to save the same checkpoint a second time returns the same number.
//
// Errors: ErrUnknownParent, ErrConflictingRepeat (the id has another document or parent),
// ErrInvalidEvents (invalid JSON, no id), ErrLimitExceeded (64 MB, 1,000 levels deep, ids of 1,024
// bytes), ErrKeyCollision, ErrThreadErased.
func (c Checkpoints) Save(ctx context.Context, threadID string, checkpoint Checkpoint) (number int64, err error) {
	number, err = c.store.of(threadID).SaveCheckpoint(ctx, db.SaveCheckpointParams{
		ThreadID: threadID, CheckpointID: checkpoint.ID, Document: rawjson.Text(checkpoint.JSON), ParentID: orNull(checkpoint.ParentID),
		Namespace: checkpoint.Namespace, RunID: orNull(checkpoint.RunID), Scope: c.store.scope,
	})
	return number, ErrorOf(err)
}

// Load returns a checkpoint.
//
// Errors: ErrUnknownCheckpoint, ErrInvalidEvents (an empty thread id, or both an ID and a RunID),
// ErrUnknownThread and ErrUnknownRun (if RunID is set), ErrKeyCollision.
func (c Checkpoints) Load(ctx context.Context, threadID string, checkpoint CheckpointRef) (Checkpoint, error) {
	rows, err := c.store.of(threadID).LoadCheckpoint(ctx, db.LoadCheckpointParams{
		ThreadID: threadID, CheckpointID: orNull(checkpoint.ID), Namespace: checkpoint.Namespace, RunID: orNull(checkpoint.RunID), Scope: c.store.scope,
	})
	switch {
	case err != nil:
		return Checkpoint{}, ErrorOf(err)
	case len(rows) == 0 && checkpoint.RunID != "":
		return Checkpoint{}, unknown(ErrUnknownCheckpoint, "thread %q has no checkpoint in the namespace %q on the lineage of run %q", threadID, checkpoint.Namespace, checkpoint.RunID)
	case len(rows) == 0:
		return Checkpoint{}, unknown(ErrUnknownCheckpoint, "thread %q has no checkpoint in the namespace %q", threadID, checkpoint.Namespace)
	}
	return checkpointOf(db.CheckpointsRow(rows[0])), nil
}

// List returns the checkpoints of a thread in the order of their numbers. Parents come before their
// children, except for checkpoints of graphs whose children were stored first.
//
// Errors: ErrKeyCollision.
func (c Checkpoints) List(ctx context.Context, threadID string, options CheckpointsOptions) ([]Checkpoint, error) {
	checkpoints, _, err := c.ListPage(ctx, threadID, options, 0, 0)
	return checkpoints, err
}

// ListPage is List behind the checkpoint with a number, with a bound of the bytes of the checkpoints: there is one at least. It has
// no bound if pageBytes is zero.
//
// Errors: those of List.
func (c Checkpoints) ListPage(
	ctx context.Context, threadID string, options CheckpointsOptions, after int64, pageBytes int,
) (checkpoints []Checkpoint, hasMore bool, err error) {
	rows, err := c.store.of(threadID).Checkpoints(ctx, db.CheckpointsParams{
		ThreadID: threadID, Namespace: options.Namespace, AfterNo: orNull(after), PageBytes: orNull(pageSize(pageBytes, 0)), Scope: c.store.scope,
	})
	return checkpointsOf(rows, err)
}

// Lineage returns the checkpoints from the root to one of them. The root comes first.
//
// Errors: ErrUnknownCheckpoint, ErrInvalidEvents (an empty thread id), ErrKeyCollision.
func (c Checkpoints) Lineage(ctx context.Context, threadID string, checkpoint CheckpointRef) ([]Checkpoint, error) {
	checkpoints, _, err := c.LineagePage(ctx, threadID, checkpoint, 0, 0)
	return checkpoints, err
}

// LineagePage is Lineage behind the checkpoint of it with a number, with a bound of the bytes of the checkpoints: there is one at
// least. It begins with the root if after is zero, and has no bound if pageBytes is zero.
//
// Errors: those of Lineage.
func (c Checkpoints) LineagePage(
	ctx context.Context, threadID string, checkpoint CheckpointRef, after int64, pageBytes int,
) (checkpoints []Checkpoint, hasMore bool, err error) {
	rows, err := c.store.of(threadID).CheckpointLineage(ctx, db.CheckpointLineageParams{
		ThreadID: threadID, CheckpointID: orNull(checkpoint.ID), Namespace: checkpoint.Namespace, AfterNo: orNull(after),
		PageBytes: orNull(pageSize(pageBytes, 0)), Scope: c.store.scope,
	})
	if err == nil && len(rows) == 0 && after == 0 {
		return nil, false, unknown(ErrUnknownCheckpoint, "thread %q has no checkpoint in the namespace %q", threadID, checkpoint.Namespace)
	}
	return checkpointsOf(rows, err)
}

// checkpointsOf is a page of checkpoints. A last row without a number says that there are more.
func checkpointsOf[Row db.CheckpointsRow | db.CheckpointLineageRow](rows []Row, err error) (checkpoints []Checkpoint, hasMore bool, _ error) {
	checkpoints, err = listOf(rows, err, func(row Row) Checkpoint { return checkpointOf(db.CheckpointsRow(row)) })
	return untilMark(checkpoints, err, func(last Checkpoint) bool { return last.Number == 0 })
}

func checkpointOf(row db.CheckpointsRow) Checkpoint {
	return Checkpoint{
		ID: row.CheckpointID, Namespace: row.Namespace, ParentID: row.ParentID, JSON: json.RawMessage(row.Document),
		RunID: row.RunID, Number: row.CheckpointNo, SavedAt: row.SavedAt,
	}
}
