// Package jobs holds what keeps a store in shape: it folds ended runs into snapshots. The work is done in transactions of one
// thread each, so a job can be killed at any point, run on several machines at once, and be started again at any time. A Job is
// for schedulers, which want it done by one process at a time.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// MaxTime ends the job after so much time; what is begun by then is finished. 0: when all are done.
	MaxTime time.Duration
	// OlderThan leaves runs alone that ended less than so long ago.
	OlderThan time.Duration
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
	// Waiting is how many runs waited for compaction when the job began, Left how many when it ended.
	Waiting int64 `json:"waiting"`
	Left    int64 `json:"left"`
	// Stopped says what ended the job with work left; empty when it did all there was to do.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue makes a group of the counts, for slog.
func (c Compacted) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("threads", c.Threads), slog.Int("runs", c.Runs), slog.Int64("events", c.Events), slog.Int64("logBytes", c.LogBytes),
		slog.Int("snapshots", c.Snapshots), slog.Int("dropped", c.Dropped), slog.Int64("left", c.Left), slog.String("stopped", string(c.Stopped)),
	)
}

// Compact folds every ended run that has not been processed, parents before children and the oldest first, and keeps the snapshots
// that the rule of agui_internal.is_worth_keeping asks for. Several calls may run side by side: a thread is claimed by one of them at a time.
//
// A thread that fails does not hold up the others; the errors are returned together in the end. What was committed stays.
func Compact(ctx context.Context, pool *pgxpool.Pool, options CompactOptions) (Compacted, error) {
	job := compactJob{pool: pool, options: options, limits: limits{begin: time.Now(), maxTime: options.MaxTime}}
	job.remaining.Store(int64(options.MaxRuns))
	if options.MaxRuns <= 0 {
		job.remaining.Store(1 << 62)
	}
	queries := db.New(pool)
	if options.OlderThan > 0 {
		dueBy, err := queries.TimeAgo(ctx, options.OlderThan)
		if err != nil {
			return Compacted{}, err
		}
		job.dueBy = &dueBy
	}
	var err error
	if job.done.Waiting, err = queries.CountRunsToCompact(ctx, job.dueBy); err != nil {
		return Compacted{}, err
	}

	group, groupContext := errgroup.WithContext(ctx)
	for range max(1, options.Workers) {
		group.Go(func() error { return job.work(groupContext) })
	}
	err = group.Wait()
	if err == nil {
		err = job.compactRunning(ctx)
	}
	job.done.Left = max(0, job.done.Waiting-int64(job.done.Runs))
	if err == nil {
		job.done.Left, err = queries.CountRunsToCompact(ctx, job.dueBy)
	}
	if job.done.Left == 0 {
		job.done.Stopped = ""
	}
	job.done.Duration = time.Since(job.limits.begin)
	return job.done, errors.Join(err, errors.Join(job.failures...))
}

type compactJob struct {
	pool      *pgxpool.Pool
	options   CompactOptions
	limits    limits
	dueBy     *time.Time   // runs that ended later are left alone; nil: none is
	remaining atomic.Int64 // runs that may still be begun

	mutex    sync.Mutex
	done     Compacted
	failed   []pgtype.UUID // threads not to be claimed again
	failures []error
}

// runsPerTransaction bounds how long a transaction holds a thread. The next one goes on from the snapshots kept so far.
const runsPerTransaction = 1000

// work compacts one thread after another until there is none to claim, or the job is to stop.
func (j *compactJob) work(ctx context.Context) error {
	var from *time.Time // where the last claim was
	for {
		if reason := j.limits.reached(ctx, 0); reason != "" {
			j.stop(reason)
			return nil
		}
		budget := takeBudget(&j.remaining, runsPerTransaction)
		if budget == 0 {
			j.stop(StoppedAtLimit)
			return nil
		}
		claimedAt, result, err := j.compactNext(ctx, from, int32(budget))
		j.remaining.Add(budget - int64(result.Runs))
		if err != nil {
			return err
		}
		if claimedAt == nil && from == nil {
			return nil
		}
		from = claimedAt // none: once more from the beginning, for what was held before may be free now
		j.report(result)
	}
}

// compactRunning gives the runs in progress their snapshots, in the time that is left.
func (j *compactJob) compactRunning(ctx context.Context) error {
	if j.options.RunningEvery <= 0 || j.limits.reached(ctx, 0) != "" {
		return nil
	}
	settings := db.CompactRunningParams{EveryEvents: int32(j.options.RunningEvery)}
	if j.options.MaxTime > 0 {
		settings.MaxTime = new(j.options.MaxTime - time.Since(j.limits.begin))
	}
	return db.New(j.pool).CompactRunning(ctx, settings)
}

// compactNext claims a thread, from a place in the queue on, and compacts up to maxRuns of its runs. claimedAt is the place of the thread;
// nil when there was none to claim.
func (j *compactJob) compactNext(ctx context.Context, from *time.Time, maxRuns int32) (claimedAt *time.Time, result Compacted, err error) {
	var claim db.ClaimThreadRow
	err = pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) error {
		queries := db.New(tx)
		// A commit need not wait for the disk: what a crash of the server takes back is made again from the log.
		if _, err := tx.Exec(ctx, "set local synchronous_commit = off"); err != nil {
			return err
		}
		var err error
		claim, err = queries.ClaimThread(ctx, db.ClaimThreadParams{FromAt: from, DueBy: j.dueBy, Failed: j.failedThreads()})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		claimedAt = &claim.EndedAt
		thread := threadCompaction{tx: tx, queries: queries, key: claim.ThreadKey, dueBy: j.dueBy, folds: map[int32]*runFold{}}
		if result, err = thread.compact(ctx, maxRuns); err != nil {
			return err
		}
		return queries.FillTitle(ctx, claim.ThreadKey) // last: appends wait for what it locks
	})
	if err != nil && claimedAt != nil && ctx.Err() == nil {
		j.setFailed(claim.ThreadKey, err)
		return claimedAt, Compacted{}, nil
	}
	if err != nil {
		return claimedAt, Compacted{}, err
	}
	return claimedAt, result, nil
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
	if j.options.Progress != nil {
		j.options.Progress(j.done)
	}
}

func (j *compactJob) stop(reason StopReason) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.done.Stopped = reason
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
