// Package jobs holds what keeps a store in shape: it folds ended runs into snapshots. The work is done in transactions of one
// thread each, so a job can be killed at any point, run on several machines at once, and be started again at any time.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui/db"
)

// CompactOptions are the settings of Compact. The zero value compacts everything with one worker.
type CompactOptions struct {
	// Workers is how many threads are compacted side by side, each on a connection of its own; 1 when 0.
	Workers int
	// MaxRuns ends the job after so many runs; 0: when all are done.
	MaxRuns int
	// RunningEvery, when not 0, gives runs in progress a snapshot too, and a new one after so many more events, so that a reload
	// in the middle of a long run stays quick.
	RunningEvery int
	// Progress, when set, is called after each thread with what is done so far. Calls do not overlap.
	Progress func(Compacted)
}

// Compacted says what Compact did.
type Compacted struct {
	// Threads, Runs and Events count what was processed.
	Threads int   `json:"threads"`
	Runs    int   `json:"runs"`
	Events  int64 `json:"events"`
	// LogBytes is what the log of these runs takes as stored.
	LogBytes int64 `json:"logBytes"`
	// Snapshots counts those written, Dropped those that were no longer needed.
	Snapshots int `json:"snapshots"`
	Dropped   int `json:"dropped"`
	// Waiting is how many runs waited for compaction when the job began.
	Waiting int64 `json:"waiting"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// Compact folds every ended run that has not been processed, parents before children, and keeps the snapshots that the rule of
// agui.is_worth_keeping asks for. Several calls may run side by side: a thread is claimed by one of them at a time.
//
// A thread that fails does not hold up the others; the errors are returned together in the end. What was committed stays.
func Compact(ctx context.Context, pool *pgxpool.Pool, options CompactOptions) (Compacted, error) {
	begin := time.Now()
	job := compactJob{pool: pool, progress: options.Progress}
	job.remaining.Store(int64(options.MaxRuns))
	if options.MaxRuns <= 0 {
		job.remaining.Store(1 << 62)
	}

	waiting, err := db.New(pool).CountRunsToCompact(ctx)
	if err != nil {
		return Compacted{}, err
	}
	job.done.Waiting = waiting

	group, groupContext := errgroup.WithContext(ctx)
	for range max(1, options.Workers) {
		group.Go(func() error { return job.work(groupContext) })
	}
	err = group.Wait()
	if err == nil && options.RunningEvery > 0 {
		err = db.New(pool).CompactRunning(ctx, int32(options.RunningEvery))
	}
	err = errors.Join(err, errors.Join(job.failures...))
	job.done.Duration = time.Since(begin)
	return job.done, err
}

type compactJob struct {
	pool      *pgxpool.Pool
	progress  func(Compacted)
	remaining atomic.Int64 // runs that may still be begun

	mutex    sync.Mutex
	done     Compacted
	failed   []pgtype.UUID // threads not to be claimed again
	failures []error
}

// runsPerTransaction bounds how long a transaction holds a thread. The next one goes on from the snapshots kept so far.
const runsPerTransaction = 1000

// work compacts one thread after another until there is none to claim.
func (j *compactJob) work(ctx context.Context) error {
	for {
		budget := takeBudget(&j.remaining, runsPerTransaction)
		if budget == 0 {
			return nil
		}
		claimed, result, err := j.compactNext(ctx, int32(budget))
		j.remaining.Add(budget - int64(result.Runs))
		if err != nil {
			return err
		}
		if !claimed {
			return nil
		}
		j.report(result)
	}
}

// compactNext claims a thread and compacts up to maxRuns of its runs. claimed is false when there is none to claim.
func (j *compactJob) compactNext(ctx context.Context, maxRuns int32) (claimed bool, result Compacted, err error) {
	var key pgtype.UUID
	err = pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
		queries := db.New(tx)
		// A commit need not wait for the disk: what a crash of the server takes back is made again from the log.
		if _, err := tx.Exec(ctx, "set local synchronous_commit = off"); err != nil {
			return err
		}
		var err error
		key, err = queries.ClaimThread(ctx, j.failedThreads())
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		claimed = true
		thread := threadCompaction{tx: tx, queries: queries, key: key, folds: map[int32]*runFold{}}
		result, err = thread.compact(ctx, maxRuns)
		return err
	})
	if err != nil && claimed && ctx.Err() == nil {
		j.setFailed(key, err)
		return true, Compacted{}, nil
	}
	if err != nil {
		return claimed, Compacted{}, err
	}
	return claimed, result, nil
}

func (j *compactJob) report(result Compacted) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if result.Runs > 0 {
		j.done.Threads++
	}
	j.done.Runs += result.Runs
	j.done.Events += result.Events
	j.done.LogBytes += result.LogBytes
	j.done.Snapshots += result.Snapshots
	j.done.Dropped += result.Dropped
	if j.progress != nil {
		j.progress(j.done)
	}
}

func (j *compactJob) failedThreads() []pgtype.UUID {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return append([]pgtype.UUID{}, j.failed...)
}

func (j *compactJob) setFailed(key pgtype.UUID, err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.failed = append(j.failed, key)
	j.failures = append(j.failures, fmt.Errorf("compact the thread with key %s: %w", key, err))
}

// takeBudget takes up to most from what remains and returns how much it took.
func takeBudget(remaining *atomic.Int64, most int64) int64 {
	for {
		have := remaining.Load()
		taken := max(0, min(have, most))
		if remaining.CompareAndSwap(have, have-taken) {
			return taken
		}
	}
}
