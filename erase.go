package pgagui

import (
	"context"

	"github.com/pgagui/pgagui/db"
)

// Erased says what Erase removed.
type Erased struct {
	Runs   int   `json:"runs"`
	Events int64 `json:"events"`
}

// Erase removes a thread for good: its log, runs, snapshots, session state and checkpoints, all or nothing. What stays is a row in agui.erasure: when, by
// whom, the reason, which may be empty, and a salted hash that the thread is known by. Appends to the thread fail with ErrThreadErased until Allow. It takes the rights of agui_maintainer.
//
// The space is free for other threads after the next vacuum. Backups and archived WAL hold the thread until they expire.
// Errors: ErrUnknownThread.
func (s *Store) Erase(ctx context.Context, threadID, reason string) (Erased, error) {
	row, err := s.queries.Erase(ctx, db.EraseParams{ThreadID: threadID, Scope: s.scope, Reason: orNull(reason)})
	return Erased{Runs: int(row.Runs), Events: row.Events}, refusal(err)
}

// Allow lets an erased thread begin anew, from seq 1. It reports whether appends to it were refused. It takes the rights of
// agui_maintainer.
func (s *Store) Allow(ctx context.Context, threadID string) (bool, error) {
	refused, err := s.queries.Allow(ctx, db.AllowParams{ThreadID: threadID, Scope: s.scope})
	return refused, refusal(err)
}
