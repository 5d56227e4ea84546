package server

import "context"

func messageOrigin(ctx context.Context, from tenant, threadID, runID, messageID string) (o struct{ RunID, ParentRunID string }, found bool, err error) {
	return o, false, nil
}
