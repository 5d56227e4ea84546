// Package live is the part of package pgagui that keeps working between calls: the [Hub] polls for
// new events and passes them to followers, the [Sender] stores what agents send while they run.
// Package pgagui is their face: it has the public types, the errors and the calls to begin and end.
package live

import (
	"context"

	"github.com/pgagui/pgagui/db"
)

// Calls are what hubs and senders call: methods of *db.Queries.
type Calls interface {
	AppendMany(ctx context.Context, params db.AppendManyParams) ([]db.AppendManyRow, error)
	KeepAlive(ctx context.Context, params db.KeepAliveParams) ([]db.KeepAliveRow, error)
	Poll(ctx context.Context, params db.PollParams) ([]db.PollRow, error)
}

// Lanes are the nodes of a cluster, each of which is called by itself, so that one that does not
// answer holds up its own threads only. One database has no Lanes.
type Lanes interface {
	// LaneOf names the node that has a thread, as far as that is known. Hub and sender call it with
	// their locks.
	LaneOf(key Key) string
	// OnLane returns the calls on a node, as those of a scope. A thread that the node refuses because
	// another one has it (UI027) is called without lanes then, by the Calls that find it.
	OnLane(lane, scope string) Calls
}

// laneOf names the lane of a thread. Empty: one database, or not known.
func laneOf(lanes Lanes, key Key) string {
	if lanes == nil {
		return ""
	}
	return lanes.LaneOf(key)
}

// wakeUp wakes what waits on a channel of capacity 1, now or next.
func wakeUp(sleeper chan<- struct{}) {
	select {
	case sleeper <- struct{}{}:
	default:
	}
}
