// Package jobs does the upkeep of a store: it compacts ended runs into snapshots, repacks batches,
// closes runs whose writers are gone, erases old threads and verifies what is stored.
//
// Each transaction works on one thread. So a job can be killed at any point, started at any time,
// and run on several machines in parallel. A [Job] is for schedulers, which want one process at a
// time to do it.
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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
)

// CompactOptions are the settings of [Compact]. The zero value compacts everything with one worker.
type CompactOptions struct {
	// Workers is the number of threads that are compacted in parallel, each on a connection of its
	// own; 0 means 1.
	Workers int
	// MaxRuns ends the job after this number of runs; 0 means no limit.
	MaxRuns int
	// MaxTime ends the job after this time, also within a thread; 0 means no limit. The runs that
	// are done by then are kept. If no run of the thread is done, the job finishes one first, so
	// that each call makes progress. A single run is folded to its end, which takes seconds for a
	// million events.
	MaxTime time.Duration
	// OlderThan skips runs that ended less than this time ago.
	OlderThan time.Duration
	// Retry makes the job retry the runs in quarantine at once.
	Retry bool
	// RunningEvery, if not 0, makes a snapshot of runs in progress too, and a new one after each
	// this number of events. So a reload in the middle of a long run stays fast.
	RunningEvery int
	// Progress, if set, is called after each thread with the totals so far. Calls do not overlap.
	Progress func(Compacted)
}

// Compacted is the result of [Compact].
type Compacted struct {
	// Threads, Runs and Events are the numbers of what was processed.
	Threads int   `json:"threads"`
	Runs    int   `json:"runs"`
	Events  int64 `json:"events"`
	// LogBytes is the stored size of the log of these runs.
	LogBytes int64 `json:"logBytes"`
	// Snapshots is the number of snapshots written, Dropped of those that were no longer needed.
	Snapshots int `json:"snapshots"`
	Dropped   int `json:"dropped"`
	// Waiting is the number of runs that waited for compaction when the job began, Left when it
	// ended.
	Waiting int64 `json:"waiting"`
	Left    int64 `json:"left"`
	// Quarantined is the number of runs at which compaction failed and that it retries later
	// (agui.quarantine). The runs that continue from them wait too.
	Quarantined int64 `json:"quarantined,omitempty"`
	// Busy is the number of threads that were left because other transactions held them.
	Busy int `json:"busy,omitempty"`
	// Stopped says why the job ended with work left; empty if it did all work.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (c Compacted) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("threads", c.Threads), slog.Int("runs", c.Runs), slog.Int64("events", c.Events), slog.Int64("logBytes", c.LogBytes),
		slog.Int("snapshots", c.Snapshots), slog.Int("dropped", c.Dropped), slog.Int64("left", c.Left), slog.Int64("quarantined", c.Quarantined),
		slog.Int("busy", c.Busy), slog.String("stopped", string(c.Stopped)),
	)
}

// Compact folds every ended run that has not been processed, parents before children and the oldest
// first. It keeps the snapshots for which agui_internal.is_worth_keeping is true. Several calls may
// run in parallel: one of them at a time claims a thread.
//
// A run that fails does not stop the others. It goes into quarantine (agui.quarantine) and is retried
// with backoff, and Compact returns a [*RunsLeftError] at the end. If a process is killed, a note of
// its thread stays, and the next call compacts that thread last, run by run. Committed work stays.
func Compact(ctx context.Context, pool *pgxpool.Pool, options CompactOptions) (Compacted, error) {
	job := compactJob{pool: pool, options: options, inHand: map[pgtype.UUID]int{}, isWide: map[pgtype.UUID]bool{}, readsAll: map[pgtype.UUID]bool{}, limits: limits{begin: time.Now(), maxTime: options.MaxTime}}
	job.memory = newMemory(max(1, options.Workers))
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
	if options.Retry {
		if _, err := queries.Retry(ctx, compactJobName); err != nil {
			return Compacted{}, err
		}
	}
	var err error
	if job.foldLimits, err = pgagui.New(pool, nil).Maintenance().FoldLimits(ctx); err != nil {
		return Compacted{}, err
	}
	if err := applyRules(ctx, pool, job.limits); err != nil {
		return Compacted{}, err
	}
	if job.done.Waiting, err = queries.CountRunsToCompact(ctx, job.dueBy); err != nil {
		return Compacted{}, err
	}

	// Before runs are folded, because a fold takes from parts only what is new.
	if err := job.splitInputs(ctx); err != nil {
		return Compacted{}, err
	}
	group, groupContext := errgroup.WithContext(ctx)
	for range max(1, options.Workers) {
		group.Go(func() error { return panics.Catch(nil, func() error { return job.work(groupContext) }) })
	}
	err = group.Wait()
	if err == nil {
		err = job.compactRunning(ctx)
	}
	job.done.Left = max(0, job.done.Waiting-int64(job.done.Runs))
	if err == nil {
		job.done.Left, err = queries.CountRunsToCompact(ctx, job.dueBy)
	}
	if err == nil {
		job.done.Quarantined, err = queries.Quarantined(ctx, compactJobName)
	}
	if job.done.Left == 0 {
		job.done.Stopped = ""
	}
	job.done.Busy = len(job.busy)
	job.done.Duration = time.Since(job.limits.begin)
	return job.done, withRunsLeft(err, job.failures)
}

// compactJobName is the name of the job in its notes.
const compactJobName = "compact"

type compactJob struct {
	pool      *pgxpool.Pool
	options   CompactOptions
	limits    limits
	dueBy     *time.Time   // runs that ended later are left alone; nil: none is
	remaining atomic.Int64 // runs that may still be begun
	// foldLimits are those of the database when the job began.
	foldLimits compaction.Limits
	memory     *memory

	mutex    sync.Mutex
	done     Compacted
	failures []error
	// busy are the threads that other transactions hold. They are retried once, after all others.
	busy        []pgtype.UUID
	hasComeBack bool
	lost        []pgtype.UUID // threads at which a connection was lost: this call does not retry them
	// inHand counts the workers at each thread. A note of one of them was not left by a killed process.
	inHand map[pgtype.UUID]int
	// choosing is held while a worker chooses among the threads with notes, until inHand has its choice.
	choosing sync.Mutex
	// readsAll are the threads where a fold needed a message of an input that was not read: all are read.
	readsAll map[pgtype.UUID]bool
	// isWide are the threads whose runs do not fit into memory together: they are compacted one by one.
	isWide map[pgtype.UUID]bool
}

// A target is what a worker does next. A note of it is committed.
type target struct {
	key   pgtype.UUID
	runNo int32      // 0: all runs of the thread
	place *time.Time // in the queue; nil: at its beginning
	// afterNo is the last run that the transaction before did. The runs after it come first, so that the search skips those that
	// are done.
	afterNo int32
	// carriedNo is the run whose snapshot the transaction before kept so that this one continues from it. 0: none.
	carriedNo int32
}

// runsPerTransaction bounds how long a transaction holds a thread. The next transaction
// continues from the snapshots kept so far, one of which is that of the last run.
const runsPerTransaction = 1000

// work compacts one thread after another until there is none to claim, or the job has to stop.
func (j *compactJob) work(ctx context.Context) (err error) {
	var from *time.Time // where the last claim was
	var next *target
	var counted pgtype.UUID // the last thread of which runs were compacted
	defer func() {
		if next != nil {
			j.letGo(next.key)
			err = errors.Join(err, j.takeBack(ctx, *next)) // it was not begun
		}
	}()
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
		if next == nil {
			if next, err = j.chooseAlone(ctx, target{}, from); err != nil {
				return err
			}
		}
		if next == nil {
			j.remaining.Add(budget)
			if from == nil && !j.comesBack() {
				return nil
			}
			from = nil // from the beginning, because other transactions may have released threads
			continue
		}
		from = next.place
		result, following, err := j.compactNext(ctx, *next, int32(budget))
		if result.Runs > 0 && next.key != counted {
			result.Threads, counted = 1, next.key
		}
		j.letGo(next.key)
		next = following
		j.remaining.Add(budget - int64(result.Runs))
		if err != nil {
			return err
		}
		j.report(result)
	}
}

// compactRunning makes the snapshots of runs in progress, in the time that is left.
func (j *compactJob) compactRunning(ctx context.Context) error {
	if j.options.RunningEvery <= 0 || j.limits.reached(ctx, 0) != "" {
		return nil
	}
	return db.New(j.pool).CompactRunning(ctx, db.CompactRunningParams{EveryEvents: int32(j.options.RunningEvery), MaxTime: j.timeLeft()})
}

// splitInputs stores inputs in parts, in half of the time: at least those of one step, so that each call makes progress.
func (j *compactJob) splitInputs(ctx context.Context) error {
	if hasToStop(ctx) {
		return nil
	}
	most := j.timeLeft()
	if most != nil {
		*most /= 2
	}
	return db.New(j.pool).SplitInputs(ctx, most)
}

// timeLeft returns nil if there is no limit.
func (j *compactJob) timeLeft() *time.Duration {
	if j.options.MaxTime <= 0 {
		return nil
	}
	return new(j.options.MaxTime - time.Since(j.limits.begin))
}

// compactNext compacts the run of a target, or up to maxRuns runs of its thread, and chooses the
// next target in the same transaction.
func (j *compactJob) compactNext(ctx context.Context, at target, maxRuns int32) (result Compacted, next *target, err error) {
	isBegun := false
	err = j.memory.do(ctx, func(room room) (err error) {
		if j.is(j.isWide, at.key) {
			maxRuns = 1
		}
		result, next, err = j.compactIn(ctx, room, at, maxRuns)
		isBegun = !errors.Is(err, errTooLarge) && !errors.Is(err, compaction.ErrMissingMessage)
		return err
	})
	switch {
	case errors.Is(err, errTooLarge):
		j.mark(j.isWide, at.key)
		return j.compactNext(ctx, at, 1)
	case errors.Is(err, compaction.ErrMissingMessage):
		j.mark(j.readsAll, at.key)
		return j.compactNext(ctx, at, maxRuns)
	case err != nil && !isBegun:
		err = errors.Join(err, j.takeBack(ctx, at))
	}
	return result, next, err
}

// compactIn does the work of compactNext within a budget of memory. If the work does not fit, it
// fails with errTooLarge and has no effect.
func (j *compactJob) compactIn(ctx context.Context, room room, at target, maxRuns int32) (result Compacted, next *target, err error) {
	isHeld, isLost := false, false
	err = inTransaction(ctx, j.pool, func(connection *pgx.Conn) error {
		err := panics.Catch(nil, func() error {
			thread := threadCompaction{
				connection: connection, queries: db.New(connection), key: at.key, dueBy: j.dueBy, foldLimits: j.foldLimits, meter: meter{room: room},
				carriedNo: at.carriedNo, readsAll: j.is(j.readsAll, at.key), folds: map[int32]*runFold{}, isOver: j.limits.isOver,
			}
			isOurs, err := thread.begin(ctx, at, maxRuns)
			if err != nil {
				return err
			}
			if isHeld = !isOurs; isHeld {
				return thread.queries.TakeBackAttempt(ctx, db.TakeBackAttemptParams{Job: compactJobName, ThreadKey: at.key, RunNo: at.runNo})
			}
			if err := thread.compact(ctx); err != nil {
				return err
			}
			var end pgx.Batch
			thread.queueEnd(&end)
			// The title comes last, because appends wait for what it locks.
			end.Queue(db.FillTitle, at.key)
			end.Queue(db.NoteSuccess, compactJobName, at.key, at.runNo)
			next, err = j.choose(at.place, at.key, func(passedOver []pgtype.UUID) (next *target, err error) {
				var choice *pgx.QueuedQuery
				if at.runNo > 0 {
					choice = end.Queue(db.ChooseToCompact, at.key, at.place, j.dueBy, passedOver, at.runNo)
				} else {
					choice = end.Queue(db.ChooseThreadToCompact, at.place, j.dueBy, passedOver)
				}
				choice.Query(func(rows pgx.Rows) (err error) {
					next, err = targetOf(pgx.CollectOneRow(rows, pgx.RowToStructByPos[db.ChooseToCompactRow]))
					return err
				})
				err = connection.SendBatch(ctx, &end).Close()
				return next, err
			})
			if next != nil && next.key == at.key {
				next.afterNo, next.carriedNo = thread.lastRunNo, thread.carriesNo
			}
			result = thread.result
			return err
		})
		isLost = connection.IsClosed()
		return err
	})
	if err != nil && next != nil {
		j.letGo(next.key) // the note of it was not committed
		next = nil
	}
	switch {
	case err == nil && isHeld:
		j.setBusy(at.key)
		return Compacted{}, nil, nil
	case err == nil:
		return result, next, nil
	case errors.Is(err, errTooLarge), errors.Is(err, compaction.ErrMissingMessage):
		return Compacted{}, nil, err
	case ctx.Err() != nil || isForbidden(err):
		return Compacted{}, nil, errors.Join(err, j.takeBack(ctx, at))
	}
	next, err = j.failed(ctx, at, err, isLost)
	return Compacted{}, next, err
}

// inTransaction calls work, which begins a transaction together with its first statements, because each round trip costs about as much
// as folding a short run. It commits what work did, or rolls it back.
func inTransaction(ctx context.Context, pool *pgxpool.Pool, work func(*pgx.Conn) error) error {
	acquired, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// It closes a connection that is left in a transaction.
	defer acquired.Release()
	connection := acquired.Conn()
	if err = work(connection); err == nil {
		// Apart from the statements before: a job that is cancelled in those does not commit.
		var done pgconn.CommandTag
		if done, err = connection.Exec(ctx, "commit"); err == nil && done.String() != "COMMIT" {
			err = pgx.ErrTxCommitRollback
		}
	} else if !connection.IsClosed() {
		_, _ = connection.Exec(ctx, "rollback")
	}
	if connection.IsClosed() {
		// When the context ended, the driver asks the server to cancel. Until it has, that holds the thread and those chosen next.
		select {
		case <-connection.PgConn().CleanupDone():
		case <-time.After(closeTimeout):
		}
	}
	return err
}

// failed notes that a target failed. It returns what to do next: the runs of the thread one by one.
func (j *compactJob) failed(ctx context.Context, at target, cause error, isLost bool) (*target, error) {
	if server := (*pgconn.PgError)(nil); isLost && !errors.As(cause, &server) {
		// This run may have crashed the server: the note stays, as if this process had been killed.
		j.setFailed(at, cause)
		j.setLost(at.key)
		return nil, nil
	}
	isCounted, err := noteFailure(ctx, db.New(j.pool), compactJobName, at.key, at.runNo, cause)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	if !isCounted {
		j.setBusy(at.key)
		if !isLockTimeout(cause) {
			j.setFailed(at, cause)
		}
		return nil, nil
	}
	if at.runNo > 0 {
		j.setFailed(at, cause)
	}
	return j.chooseAlone(ctx, at, at.place)
}

// chooseAlone chooses a target, and notes it, in a transaction of its own. The thread of the target before comes first.
func (j *compactJob) chooseAlone(ctx context.Context, before target, from *time.Time) (*target, error) {
	return j.choose(from, before.key, func(passedOver []pgtype.UUID) (*target, error) {
		return inStep(ctx, j.pool, func(queries *db.Queries) (*target, error) {
			return targetOf(queries.ChooseToCompact(ctx, db.ChooseToCompactParams{
				Near: before.key, AfterNo: before.runNo, FromAt: from, DueBy: j.dueBy, PassedOver: passedOver,
			}))
		})
	})
}

// choose calls ask, which chooses a target outside of the threads passed over, and marks the target
// as in hand. own is the thread that the caller works on.
func (j *compactJob) choose(from *time.Time, own pgtype.UUID, ask func(passedOver []pgtype.UUID) (*target, error)) (*target, error) {
	if from == nil {
		// Only from the beginning on are threads with notes chosen.
		j.choosing.Lock()
		defer j.choosing.Unlock()
	}
	next, err := ask(j.passedOver(own))
	if err != nil {
		return nil, err
	}
	if next != nil {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.inHand[next.key]++
	}
	return next, nil
}

// letGo notes that a worker has finished the thread of a target.
func (j *compactJob) letGo(key pgtype.UUID) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.inHand[key]--; j.inHand[key] == 0 {
		delete(j.inHand, key)
	}
}

// targetOf converts the answer of ChooseToCompact; nil means that there is nothing to do.
func targetOf(row db.ChooseToCompactRow, err error) (*target, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	next := &target{key: row.ThreadKey, runNo: row.RunNo}
	if row.Place.Year() > 1 {
		next.place = &row.Place
	}
	return next, nil
}

// takeBack deletes the note of a target that was not begun, or was stopped without an error of its
// own.
func (j *compactJob) takeBack(ctx context.Context, at target) error {
	return takeBackAttempt(ctx, db.New(j.pool), db.TakeBackAttemptParams{Job: compactJobName, ThreadKey: at.key, RunNo: at.runNo})
}

func (j *compactJob) report(result Compacted) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.done.Threads += result.Threads
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

// passedOver returns the threads that a worker at the thread own must not choose now.
func (j *compactJob) passedOver(own pgtype.UUID) []pgtype.UUID {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	keys := append(append([]pgtype.UUID{}, j.busy...), j.lost...)
	for key := range j.inHand {
		if key != own {
			keys = append(keys, key)
		}
	}
	return keys
}

func (j *compactJob) setBusy(key pgtype.UUID) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.busy = append(j.busy, key)
}

func (j *compactJob) setLost(key pgtype.UUID) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lost = append(j.lost, key)
}

// is reports whether a thread is marked in isWide or readsAll.
func (j *compactJob) is(marked map[pgtype.UUID]bool, key pgtype.UUID) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return marked[key]
}

func (j *compactJob) mark(marked map[pgtype.UUID]bool, key pgtype.UUID) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	marked[key] = true
}

// comesBack reports whether it is time to retry the threads that were left, which happens once.
func (j *compactJob) comesBack() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.hasComeBack || len(j.busy) == 0 {
		return false
	}
	j.hasComeBack, j.busy = true, nil
	return true
}

func (j *compactJob) setFailed(at target, err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	what := fmt.Sprintf("run number %d of the thread with key %s", at.runNo, at.key)
	if at.runNo == 0 {
		what = fmt.Sprintf("the thread with key %s", at.key)
	}
	j.failures = append(j.failures, fmt.Errorf("compact %s: %w", what, err))
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
