package pgagui

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui/db"
)

// SubagentStatus is the progress of a subagent.
type SubagentStatus string

// A suspended subagent waits for answers to its interrupts; a later run may continue it. It is cut
// off if its run ends first.
const (
	SubagentRunning   SubagentStatus = "running"
	SubagentFinished  SubagentStatus = "finished"
	SubagentSuspended SubagentStatus = "suspended"
	SubagentFailed    SubagentStatus = "failed"
	SubagentCutOff    SubagentStatus = "cut_off"
)

// Subagent is an invocation of a subagent.
type Subagent struct {
	// ID is its subagentRunId.
	ID string `json:"subagentRunId"`
	// Depth is 1 for a subagent of the main agent, 2 for a subagent of that, and so on. A subagent
	// whose parent is unknown, or began later, has depth 1.
	Depth int `json:"depth"`
	// Name, Description and the parents are those of its first SUBAGENT_STARTED. Empty if it does
	// not name them.
	Name             string `json:"name,omitempty"`
	Description      string `json:"description,omitempty"`
	ParentID         string `json:"parentSubagentRunId,omitempty"`
	ParentToolCallID string `json:"parentToolCallId,omitempty"`
	ParentMessageID  string `json:"parentMessageId,omitempty"`

	Status SubagentStatus `json:"status"`
	// RunID and LastRunID are the runs of its first and its last event. They differ if it was
	// suspended and resumed.
	RunID     string `json:"runId"`
	LastRunID string `json:"lastRunId"`
	FirstSeq  int64  `json:"firstSeq"`
	LastSeq   int64  `json:"lastSeq"`
	// EventCount is the number of events that name it.
	EventCount int64 `json:"eventCount"`
	// StartedAt is the timestamp of its first event, or when that was appended if it has none.
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is when it ended or was cut off. Zero before that.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// DurationMs is the time between its first and its last event in each run, added up, in
	// milliseconds. The wait while it is suspended does not count.
	DurationMs int64 `json:"durationMs"`

	// Result is what it returned when it finished. nil if nothing.
	Result json.RawMessage `json:"result,omitempty"`
	// InterruptIDs are the interrupts for whose answers it waits while it is suspended. They may be
	// empty: then a subagent of it waits.
	InterruptIDs []string `json:"interruptIds,omitempty"`
	// ErrorMessage and ErrorCode say why it failed.
	ErrorMessage string `json:"errorMessage,omitempty"`
	ErrorCode    string `json:"errorCode,omitempty"`
	// Usage is the list of that name in its last end, if there is one. AG-UI 1.0 has it in the ends
	// of runs only, where it includes subagents: see Store.Usage.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// SubagentsOptions say which subagents Subagents returns. The zero value is those of the head's
// lineage.
type SubagentsOptions struct {
	At At
	// NoLineage narrows it to the run alone.
	NoLineage bool
}

// Subagents returns the subagents of a conversation at a point of a thread, in the order of a tree:
// each before the subagents that it began. It reads the log of the lineage.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Subagents(ctx context.Context, threadID string, options SubagentsOptions) ([]Subagent, error) {
	rows, err := s.of(threadID).Subagents(ctx, db.SubagentsParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		Lineage: !options.NoLineage, Scope: s.scope,
	})
	return listOf(rows, err, func(row db.SubagentsRow) Subagent {
		return Subagent{
			ID: row.SubagentRunID, Depth: int(row.Depth), Name: row.Name, Description: row.Description,
			ParentID: row.ParentSubagentRunID, ParentToolCallID: row.ParentToolCallID, ParentMessageID: row.ParentMessageID,
			Status: SubagentStatus(row.Status), RunID: row.RunID, LastRunID: row.LastRunID,
			FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, EventCount: row.EventCount,
			StartedAt: row.StartedAt, EndedAt: row.EndedAt, DurationMs: row.Duration.Milliseconds(),
			Result: json.RawMessage(row.Result), InterruptIDs: row.InterruptIds, ErrorMessage: row.ErrorMessage, ErrorCode: row.ErrorCode,
			Usage: json.RawMessage(row.Usage),
		}
	})
}
