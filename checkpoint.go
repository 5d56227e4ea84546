package pgagui

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Checkpoint is the state of a workflow engine at some point of a conversation.
type Checkpoint struct {
	// ID is the engine's name for it, unique in its namespace.
	ID string
	// Namespace keeps the checkpoints of several workflows of a thread apart. It may be empty.
	Namespace string
	// ParentID is the checkpoint, of the same namespace, that it goes on from; empty: none.
	ParentID string
	// Document holds its very bytes.
	Document json.RawMessage

	// Number counts the checkpoints of the thread 1, 2, 3, … in commit order: who has read up to N and sees N+1 has missed nothing.
	Number int64
	// SavedAt is when it was saved.
	SavedAt time.Time
}

// SaveCheckpoint saves a checkpoint and returns its number; Number and SavedAt of what is given do not count. The same checkpoint again gives
// the same answer. The thread need not have runs.
//
// Errors: ErrUnknownParent, ErrConflictingRepeat (the id has another document or parent), ErrThreadErased, ErrInvalidEvents (no JSON, no id),
// ErrLimitExceeded (64 MB, nested 1,000 deep, ids of 1,024 bytes).
func (s *Store) SaveCheckpoint(ctx context.Context, threadID string, checkpoint Checkpoint) (number int64, err error) {
	number, err = s.queries.SaveCheckpoint(ctx, db.SaveCheckpointParams{
		ThreadID: threadID, CheckpointID: checkpoint.ID, Document: rawjson.Text(checkpoint.Document), ParentID: orNull(checkpoint.ParentID),
		Namespace: checkpoint.Namespace, Scope: s.scope,
	})
	return number, refusal(err)
}

// LoadCheckpoint returns a checkpoint; with an empty id the one saved last in the namespace, whose Number is 0 while there is none.
// Errors: ErrUnknownCheckpoint.
func (s *Store) LoadCheckpoint(ctx context.Context, threadID, checkpointID, namespace string) (Checkpoint, error) {
	rows, err := s.queries.LoadCheckpoint(ctx, db.LoadCheckpointParams{
		ThreadID: threadID, CheckpointID: orNull(checkpointID), Namespace: namespace, Scope: s.scope,
	})
	if err != nil || len(rows) == 0 {
		return Checkpoint{}, refusal(err)
	}
	return checkpointOf(db.CheckpointsRow(rows[0])), nil
}

// Checkpoints returns the checkpoints of a thread, of one namespace or (nil) of all, in commit order: parents before their children.
func (s *Store) Checkpoints(ctx context.Context, threadID string, namespace *string) ([]Checkpoint, error) {
	rows, err := s.queries.Checkpoints(ctx, db.CheckpointsParams{ThreadID: threadID, Namespace: namespace, Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	checkpoints := make([]Checkpoint, len(rows))
	for i, row := range rows {
		checkpoints[i] = checkpointOf(row)
	}
	return checkpoints, nil
}

// CheckpointLineage returns the checkpoints from the root to one of them, root first; with an empty id to the one saved last in the namespace.
// Errors: ErrUnknownCheckpoint.
func (s *Store) CheckpointLineage(ctx context.Context, threadID, checkpointID, namespace string) ([]Checkpoint, error) {
	rows, err := s.queries.CheckpointLineage(ctx, db.CheckpointLineageParams{
		ThreadID: threadID, CheckpointID: orNull(checkpointID), Namespace: namespace, Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	checkpoints := make([]Checkpoint, len(rows))
	for i, row := range rows {
		checkpoints[i] = checkpointOf(db.CheckpointsRow(row))
	}
	return checkpoints, nil
}

func checkpointOf(row db.CheckpointsRow) Checkpoint {
	return Checkpoint{
		ID: row.CheckpointID, Namespace: row.Namespace, ParentID: row.ParentID, Document: json.RawMessage(row.Document),
		Number: row.CheckpointNo, SavedAt: row.SavedAt,
	}
}
