package jobs

import (
	"context"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
)

// Stats says how much a database holds and what waits in it: the views agui.stats and agui.lag.
// A read of it reads all runs, and the last batch of each run in progress.
type Stats struct {
	Threads      int64 `json:"threads"`
	Runs         int64 `json:"runs"`
	FinishedRuns int64 `json:"finishedRuns"`
	FailedRuns   int64 `json:"failedRuns"`
	// Events is the number of events of the runs that have ended.
	Events       int64 `json:"events"`
	RepackedRuns int64 `json:"repackedRuns"`
	// CompactedLogBytes is the stored size of the batches of the compacted runs.
	CompactedLogBytes int64 `json:"compactedLogBytes"`
	// Bytes on disk, with indexes and dead rows.
	LogDiskBytes      int64 `json:"logDiskBytes"`
	SnapshotDiskBytes int64 `json:"snapshotDiskBytes"`
	TreeDiskBytes     int64 `json:"treeDiskBytes"`
	SessionDiskBytes  int64 `json:"sessionDiskBytes"`
	// ErasedThreads is the number of erased threads whose ids cannot be used until
	// agui.lift_erasure.
	ErasedThreads int64 `json:"erasedThreads"`

	Lag
}

// Lag says what waits in a database: the view agui.lag. A read of it reads the queues of the jobs,
// and the last batch of each run in progress.
type Lag struct {
	RunningRuns   int64 `json:"runningRuns"`
	RunsToCompact int64 `json:"runsToCompact"`
	RunsToRepack  int64 `json:"runsToRepack"`
	// StaleRuns are runs in progress without a sign of life within the lease.
	StaleRuns int64 `json:"staleRuns"`
	// QuarantinedRuns is the number of runs at which a job failed and that it retries later: rows
	// of agui.quarantine.
	QuarantinedRuns int64 `json:"quarantinedRuns"`
	// Ages in seconds, 0 if there is none: since the first run that waits has ended, and since the
	// last sign of life of the run in progress that is silent longest.
	CompactionLag    float64 `json:"compactionLagSeconds"`
	RepackLag        float64 `json:"repackLagSeconds"`
	OldestSignOfLife float64 `json:"oldestSignOfLifeSeconds"`
}

// ReadLag reads the view agui.lag.
func ReadLag(ctx context.Context, pool pgagui.DB) (Lag, error) {
	lag, err := db.New(pool).Lag(ctx)
	return Lag{
		RunningRuns: lag.RunningRuns, RunsToCompact: lag.RunsToCompact, RunsToRepack: lag.RunsToRepack, StaleRuns: lag.StaleRuns,
		QuarantinedRuns: lag.QuarantinedRuns, CompactionLag: lag.CompactionLag, RepackLag: lag.RepackLag, OldestSignOfLife: lag.OldestSignOfLife,
	}, err
}

// ReadStats reads the views agui.stats and agui.lag.
func ReadStats(ctx context.Context, pool pgagui.DB) (Stats, error) {
	stats, err := db.New(pool).Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	lag, err := ReadLag(ctx, pool)
	return Stats{
		Threads: stats.Threads, Runs: stats.Runs, FinishedRuns: stats.FinishedRuns,
		FailedRuns: stats.FailedRuns, Events: stats.Events, RepackedRuns: stats.RepackedRuns,
		CompactedLogBytes: stats.CompactedLogBytes, LogDiskBytes: stats.LogDiskBytes,
		SnapshotDiskBytes: stats.SnapshotDiskBytes, TreeDiskBytes: stats.TreeDiskBytes, SessionDiskBytes: stats.SessionDiskBytes,
		ErasedThreads: stats.ErasedThreads, Lag: lag,
	}, err
}
