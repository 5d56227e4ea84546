package core

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/server/problem"
)

// Fork makes a new branch, and so the head of the thread: an empty run with a parent. The next run
// that names no parent continues there. An empty parent makes the run a root. Fork is idempotent.
func (s *Server) Fork(ctx context.Context, to Tenant, run pgagui.RunRef, parentRunID string) (*pgagui.RunStatus, error) {
	start, err := events.RunStarted{ThreadID: run.ThreadID, RunID: run.RunID, ParentRunID: parentRunID}.Event()
	if err != nil {
		return nil, err
	}
	end, err := events.RunFinished{ThreadID: run.ThreadID, RunID: run.RunID}.Event()
	if err != nil {
		return nil, err
	}
	if _, err := to.Thread(ctx, run.ThreadID); err != nil { // a fork makes no thread
		return nil, err
	}
	_, err = s.Append(ctx, to, run, []json.RawMessage{start, end}, pgagui.AppendOptions{
		AfterSeq: new(int64(0)), ParentRunID: parentRunID, NoParent: parentRunID == "",
	})
	if err != nil {
		return nil, err
	}
	return to.Status(ctx, run)
}

// ForkBefore is Fork with the parent of the run that brought a message: the branch lacks the message.
func (s *Server) ForkBefore(ctx context.Context, to Tenant, run pgagui.RunRef, messageID string) (*pgagui.RunStatus, error) {
	parent, err := to.runBefore(ctx, run, messageID)
	if err != nil {
		return nil, err
	}
	return s.Fork(ctx, to, run, parent)
}

// runBefore returns the parent for a fork before a message: that of the run that brought the message.
// If the request is a repeat, the head may be on the new branch, which lacks the message. Then the
// message is on another branch from the same parent.
func (t Tenant) runBefore(ctx context.Context, fork pgagui.RunRef, messageID string) (string, error) {
	existing, err := t.Status(ctx, fork)
	switch {
	case errors.Is(err, pgagui.ErrUnknownRun):
		origin, err := t.MessageOrigin(ctx, pgagui.RunRef{ThreadID: fork.ThreadID}, messageID)
		return origin.ParentRunID, err
	case err != nil:
		return "", err
	}
	runs, err := t.Runs(ctx, fork.ThreadID)
	if err != nil {
		return "", err
	}
	for _, run := range runs {
		if run.ParentRunID != existing.ParentRunID || run.ID == fork.RunID {
			continue
		}
		origin, err := t.MessageOrigin(ctx, pgagui.RunRef{ThreadID: fork.ThreadID, RunID: run.ID}, messageID)
		if errors.Is(err, pgagui.ErrUnknownMessage) {
			continue
		}
		if err != nil || origin.ID == run.ID {
			return existing.ParentRunID, err
		}
	}
	return "", problem.Errorf(http.StatusConflict, "run %q exists and is not a fork before message %q", fork.RunID, messageID)
}
