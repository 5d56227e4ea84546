package jobs

import (
	"context"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
)

// Stats says how much a database holds and what waits in it: agui.stats and agui.lag. Counts of a
// large store are estimates, see IsExact.
type Stats struct {
	Threads         int64 `json:"threads"`
	Runs            int64 `json:"runs"`
	FinishedRuns    int64 `json:"finishedRuns"`
	InterruptedRuns int64 `json:"interruptedRuns"`
	CancelledRuns   int64 `json:"cancelledRuns"`
	FailedRuns      int64 `json:"failedRuns"`
	CutOffRuns      int64 `json:"cutOffRuns"`
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
	// IsExact is false if the counts above are estimates, because the tables are large and StatsOptions
	// did not ask for exact ones. Bytes on disk are always exact.
	IsExact bool `json:"isExact"`

	Lag
}

// Lag says what waits in a database: agui.lag. A read of it reads the queues of the jobs, and the
// last batch of each run in progress.
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
	// BacklogIsExact is false if more than 100,000 runs wait in a queue and StatsOptions did not ask
	// for exact counts: RunsToCompact or RunsToRepack is then a lower bound.
	BacklogIsExact bool `json:"backlogIsExact"`
}

// StatsOptions are the options of ReadStats and ReadLag.
type StatsOptions struct {
	// Exact counts all rows, which takes the longer the more runs there are. Otherwise a call costs
	// the same in a store of any size.
	Exact bool
}

// Add adds what another node of a cluster holds. Ages are those of the node where they are greatest.
func (s *Stats) Add(other Stats) {
	s.Threads += other.Threads
	s.Runs += other.Runs
	s.FinishedRuns += other.FinishedRuns
	s.InterruptedRuns += other.InterruptedRuns
	s.CancelledRuns += other.CancelledRuns
	s.FailedRuns += other.FailedRuns
	s.CutOffRuns += other.CutOffRuns
	s.Events += other.Events
	s.RepackedRuns += other.RepackedRuns
	s.CompactedLogBytes += other.CompactedLogBytes
	s.LogDiskBytes += other.LogDiskBytes
	s.SnapshotDiskBytes += other.SnapshotDiskBytes
	s.TreeDiskBytes += other.TreeDiskBytes
	s.SessionDiskBytes += other.SessionDiskBytes
	s.ErasedThreads += other.ErasedThreads
	s.IsExact = s.IsExact && other.IsExact
	s.Lag.Add(other.Lag)
}

// Add adds what waits in another node of a cluster. Ages are those of the node where they are greatest.
func (l *Lag) Add(other Lag) {
	l.RunningRuns += other.RunningRuns
	l.RunsToCompact += other.RunsToCompact
	l.RunsToRepack += other.RunsToRepack
	l.StaleRuns += other.StaleRuns
	l.QuarantinedRuns += other.QuarantinedRuns
	l.CompactionLag = max(l.CompactionLag, other.CompactionLag)
	l.RepackLag = max(l.RepackLag, other.RepackLag)
	l.OldestSignOfLife = max(l.OldestSignOfLife, other.OldestSignOfLife)
	l.BacklogIsExact = l.BacklogIsExact && other.BacklogIsExact
}

// ReadLag calls agui.lag.
func ReadLag(ctx context.Context, pool pgagui.DB, options StatsOptions) (Lag, error) {
	lag, err := db.New(pool).Lag(ctx, options.Exact)
	return Lag{
		RunningRuns: lag.RunningRuns, RunsToCompact: lag.RunsToCompact, RunsToRepack: lag.RunsToRepack, StaleRuns: lag.StaleRuns,
		QuarantinedRuns: lag.QuarantinedRuns, CompactionLag: lag.CompactionLag, RepackLag: lag.RepackLag, OldestSignOfLife: lag.OldestSignOfLife,
		BacklogIsExact: lag.IsExact,
	}, err
}

// ReadStats calls agui.stats and agui.lag.
func ReadStats(ctx context.Context, pool pgagui.DB, options StatsOptions) (Stats, error) {
	stats, err := db.New(pool).Stats(ctx, options.Exact)
	if err != nil {
		return Stats{}, err
	}
	lag, err := ReadLag(ctx, pool, options)
	return Stats{
		Threads: stats.Threads, Runs: stats.Runs, FinishedRuns: stats.FinishedRuns,
		InterruptedRuns: stats.InterruptedRuns, CancelledRuns: stats.CancelledRuns, FailedRuns: stats.FailedRuns, CutOffRuns: stats.CutOffRuns, Events: stats.Events, RepackedRuns: stats.RepackedRuns,
		CompactedLogBytes: stats.CompactedLogBytes, LogDiskBytes: stats.LogDiskBytes,
		SnapshotDiskBytes: stats.SnapshotDiskBytes, TreeDiskBytes: stats.TreeDiskBytes, SessionDiskBytes: stats.SessionDiskBytes,
		ErasedThreads: stats.ErasedThreads, IsExact: stats.IsExact, Lag: lag,
	}, err
}
