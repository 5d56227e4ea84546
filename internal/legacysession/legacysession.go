// Package legacysession imports sessions of the time before AG-UI into threads.
package legacysession

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Session is a legacy session to import.
type Session struct {
	Scope    string
	ThreadID string
	// RunPrefix begins the ids of the runs; a number follows it. Each message of the user begins a run.
	RunPrefix string
	// Messages are objects {event_type (or type), payload, message_id (or id), created_at} of the types
	// of pgagui.SessionMessage. An error ends its run.
	Messages []json.RawMessage
	// KeepTimes records each message at its created_at, not as of now. It takes the rights of
	// agui_maintainer.
	KeepTimes bool
}

// Append appends a session to its thread, all messages or none, and returns the last seq. It is
// idempotent.
//
// Errors: pgagui.ErrInvalidEvents, and those of pgagui.Store.Append.
func Append(ctx context.Context, pool db.DBTX, session Session) (lastSeq int64, err error) {
	messages := rawjson.Text("[" + string(bytes.Join(asBytes(session.Messages), []byte(","))) + "]")
	params := db.AppendSessionMessagesParams{
		ThreadID: session.ThreadID, RunPrefix: session.RunPrefix, Messages: messages, Scope: session.Scope,
	}
	if session.KeepTimes {
		lastSeq, err = db.New(pool).ImportSessionMessages(ctx, db.ImportSessionMessagesParams(params))
	} else {
		lastSeq, err = db.New(pool).AppendSessionMessages(ctx, params)
	}
	return lastSeq, pgagui.ErrorOf(err)
}

func asBytes(messages []json.RawMessage) [][]byte {
	texts := make([][]byte, len(messages))
	for i, message := range messages {
		texts[i] = message
	}
	return texts
}
