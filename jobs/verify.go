package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
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
	"github.com/pgagui/pgagui/internal/snapshot"
)

// VerifyOptions are the settings of [Verify]. The zero value checks all threads of all scopes with
// one worker.
type VerifyOptions struct {
	// Scope is the tenant or user whose threads are checked; nil means all scopes.
	Scope *string
	// Threads are the ids of the threads to check, in Scope (nil means the scope ""). If empty, all
	// threads are checked that the next three settings select.
	Threads []string
	// SampleThreads, if not 0, checks this number of threads, chosen at random.
	SampleThreads int
	// SampleShare, if not 0, is the probability with which each thread is checked: 0.05 checks
	// about one in twenty.
	SampleShare float64
	// Since, if not zero, checks only threads with events or snapshots from this time on.
	Since time.Time

	// Workers is the number of threads that are checked in parallel, each on a connection of its
	// own; 0 means 1.
	Workers int
	// InSQL folds with the reducer in SQL instead of the one in Go. It is many times slower, and finds
	// faults of the reducer in Go.
	InSQL bool
	// Repair rebuilds the snapshots of a thread and its entry in lists if these are damaged and its
	// log is sound. It never changes the log.
	Repair bool

	// Chain computes the hashes of chained logs (agui.enable_chain) from the events, and compares
	// them with the stored ones.
	Chain bool
	// Heads, with Chain, are heads that were kept outside of the database: the log must lead to
	// each of them. If all threads of a scope or of all scopes are checked, missing threads are
	// found too.
	Heads []Head

	// Report, if set, is called with each thread after its check. Calls do not overlap.
	Report func(VerifiedThread)
}

// Verified is the result of [Verify].
type Verified struct {
	// Threads, Runs, Events and Snapshots are the numbers of what was checked.
	Threads   int   `json:"threads"`
	Runs      int   `json:"runs"`
	Events    int64 `json:"events"`
	Snapshots int   `json:"snapshots"`
	// Problems is the number of problems left, Repaired of those that were repaired.
	Problems int `json:"problems"`
	Repaired int `json:"repaired"`
	// Notes is the number of breaches of the protocol by agents or their writers.
	Notes int `json:"notes"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (v Verified) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("threads", v.Threads), slog.Int64("events", v.Events), slog.Int("snapshots", v.Snapshots),
		slog.Int("problems", v.Problems), slog.Int("repaired", v.Repaired), slog.Int("notes", v.Notes))
}

// VerifiedThread is what [Verify] found in a thread.
type VerifiedThread struct {
	// ThreadKey is the key of the rows of the thread.
	ThreadKey string `json:"threadKey"`
	Scope     string `json:"scope"`
	// ThreadID is empty if the key of the rows belongs to no thread; Scope then has no meaning.
	ThreadID string `json:"threadId"`

	Runs      int   `json:"runs"`
	Events    int64 `json:"events"`
	Snapshots int   `json:"snapshots"`

	// Problems are the problems left, Repaired those that were there before the snapshots were
	// rebuilt.
	Problems []ThreadProblem `json:"problems"`
	Repaired []ThreadProblem `json:"repaired,omitempty"`
	// Notes are breaches of the protocol by agents or their writers. The log keeps them as they
	// were appended; they are not damage.
	Notes []pgagui.Problem `json:"notes,omitempty"`
}

// ThreadProblem is a problem of a thread.
type ThreadProblem struct {
	pgagui.Problem
	// Repairable says that rebuilding the snapshots of the thread repairs the problem.
	Repairable bool `json:"repairable"`
}

// Verify checks threads as git fsck checks a repository: the log (seqs, batches, bounds and life
// cycles of runs), the tree of runs, and each snapshot against a fold of the raw log from its first
// event. Without Threads, SampleThreads, SampleShare and Since it also finds rows that belong to no
// thread. Problems are part of the result; they are not errors. Each thread is read in a
// transaction of its own, as of one point in time, so others may write at the same time.
//
// A thread that cannot be checked does not stop the others; Verify returns all such errors at the
// end. If one of Threads does not exist, the error is pgagui.ErrUnknownThread.
func Verify(ctx context.Context, pool *pgxpool.Pool, options VerifyOptions) (Verified, error) {
	begin := time.Now()
	foldLimits, err := pgagui.New(pool, nil).Maintenance().FoldLimits(ctx)
	if err != nil {
		return Verified{}, err
	}
	job := verifyJob{
		pool: pool, options: options, foldLimits: foldLimits, memory: newMemory(max(1, options.Workers)), heads: keptHeads(options.Heads), checked: map[threadName]bool{},
	}
	threads := make(chan db.ThreadsToVerifyRow)
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error {
		return panics.Catch(nil, func() error {
			defer close(threads)
			return job.choose(groupContext, threads)
		})
	})
	for range max(1, options.Workers) {
		group.Go(func() error { return panics.Catch(nil, func() error { return job.checkAll(groupContext, threads) }) })
	}
	if err = group.Wait(); err == nil {
		err = job.findMissing(ctx)
	}
	err = errors.Join(err, errors.Join(job.failures...))
	job.done.Duration = time.Since(begin)
	return job.done, err
}

// checkAll checks threads until there are no more.
func (j *verifyJob) checkAll(ctx context.Context, threads <-chan db.ThreadsToVerifyRow) error {
	for thread := range threads {
		if err := j.check(ctx, thread); err != nil {
			return err
		}
	}
	return nil
}

type verifyJob struct {
	pool       *pgxpool.Pool
	options    VerifyOptions
	foldLimits compaction.Limits
	memory     *memory
	heads      map[threadName][]Head

	mutex    sync.Mutex
	checked  map[threadName]bool // of the threads that heads were kept of
	done     Verified
	failures []error
}

const threadsPerPage = 1000

// choose sends the threads to check.
func (j *verifyJob) choose(ctx context.Context, threads chan<- db.ThreadsToVerifyRow) error {
	send := func(thread db.ThreadsToVerifyRow) error {
		select {
		case threads <- thread:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	queries := db.New(j.pool)
	var since *time.Time
	if !j.options.Since.IsZero() {
		since = &j.options.Since
	}

	if len(j.options.Threads) > 0 {
		scope := ""
		if j.options.Scope != nil {
			scope = *j.options.Scope
		}
		for _, threadID := range j.options.Threads {
			keys, err := queries.ThreadKeys(ctx, db.ThreadKeysParams{ThreadID: threadID, Scope: scope})
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				// No row has its key: the error is the usual one.
				_, err := pgagui.New(j.pool, &pgagui.Config{Scope: scope}).Head(ctx, threadID)
				if err != nil {
					return err
				}
			}
			for _, key := range keys {
				if err := send(db.ThreadsToVerifyRow{ThreadKey: key, Scope: scope, ThreadID: threadID}); err != nil {
					return err
				}
			}
		}
		return nil
	}

	if j.options.SampleThreads > 0 {
		sample, err := queries.RandomThreads(ctx, db.RandomThreadsParams{Scope: j.options.Scope, Since: since, N: int32(j.options.SampleThreads)})
		if err != nil {
			return err
		}
		for _, thread := range sample {
			if err := send(db.ThreadsToVerifyRow(thread)); err != nil {
				return err
			}
		}
		return nil
	}

	next := db.ThreadsToVerifyParams{After: pgtype.UUID{Valid: true}, Scope: j.options.Scope, Since: since, Page: threadsPerPage}
	if j.options.SampleShare > 0 {
		next.Share = &j.options.SampleShare
	}
	for {
		page, err := queries.ThreadsToVerify(ctx, next)
		if err != nil {
			return err
		}
		for _, thread := range page {
			if err := send(thread); err != nil {
				return err
			}
			next.After = thread.ThreadKey
		}
		if len(page) < threadsPerPage {
			break
		}
	}
	if next.Share != nil || since != nil {
		return nil
	}
	orphans, err := queries.OrphanedKeys(ctx, j.options.Scope)
	if err != nil {
		return err
	}
	for _, key := range orphans {
		if err := send(db.ThreadsToVerifyRow{ThreadKey: key}); err != nil {
			return err
		}
	}
	return nil
}

// check verifies a thread, repairs it if that is requested and possible, and reports it.
func (j *verifyJob) check(ctx context.Context, thread db.ThreadsToVerifyRow) error {
	found, err := j.verify(ctx, thread)
	if err == nil && j.options.Repair && slices.ContainsFunc(found.Problems, func(p ThreadProblem) bool { return p.Repairable }) {
		var rechecked VerifiedThread
		_, err = pgagui.New(j.pool, &pgagui.Config{Scope: thread.Scope}).Maintenance().RebuildSnapshots(ctx, thread.ThreadID)
		if err == nil {
			rechecked, err = j.verify(ctx, thread)
		}
		if err == nil {
			rechecked.Repaired = repaired(found.Problems, rechecked.Problems)
			found = rechecked
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if err != nil {
		name := fmt.Sprintf("thread %q", thread.ThreadID)
		if thread.ThreadID == "" {
			name = fmt.Sprintf("the thread with key %s", thread.ThreadKey)
		}
		j.failures = append(j.failures, fmt.Errorf("verify %s: %w", name, err))
		if found.ThreadKey == "" {
			return nil
		}
	}
	j.count(found)
	return nil
}

// count adds up and reports what was found in a thread. The caller holds the mutex.
func (j *verifyJob) count(found VerifiedThread) {
	j.done.Threads++
	j.done.Runs += found.Runs
	j.done.Events += found.Events
	j.done.Snapshots += found.Snapshots
	j.done.Problems += len(found.Problems)
	j.done.Repaired += len(found.Repaired)
	j.done.Notes += len(found.Notes)
	if j.options.Report != nil {
		j.options.Report(found)
	}
}

// repaired returns the problems before that are gone after.
func repaired(before, after []ThreadProblem) []ThreadProblem {
	remaining := map[ThreadProblem]bool{}
	for _, problem := range after {
		remaining[problem] = true
	}
	var gone []ThreadProblem
	for _, problem := range before {
		if !remaining[problem] {
			gone = append(gone, problem)
		}
	}
	return gone
}

// verify checks a thread as of one point in time.
func (j *verifyJob) verify(ctx context.Context, thread db.ThreadsToVerifyRow) (VerifiedThread, error) {
	found := VerifiedThread{ThreadKey: thread.ThreadKey.String(), Scope: thread.Scope, ThreadID: thread.ThreadID, Problems: []ThreadProblem{}}
	var inLog, inSnapshots []pgagui.Problem
	err := snapshot.Read(ctx, j.pool, func(tx pgx.Tx) (err error) {
		queries := db.New(tx)
		size, err := queries.ThreadSize(ctx, thread.ThreadKey)
		if err != nil {
			return err
		}
		found.Runs, found.Events, found.Snapshots = int(size.Runs), size.Events, int(size.Snapshots)

		if inLog, err = asProblems(queries.VerifyLog(ctx, thread.ThreadKey)); err != nil {
			return err
		}
		if inSnapshots, err = asProblems(queries.VerifyReferences(ctx, thread.ThreadKey)); err != nil {
			return err
		}
		var wrong []pgagui.Problem
		if j.options.InSQL {
			wrong, err = asProblems(queries.VerifySnapshots(ctx, thread.ThreadKey))
		} else {
			err = j.memory.do(ctx, func(room room) error {
				check := snapshotCheck{queries: queries, key: thread.ThreadKey, foldLimits: j.foldLimits, meter: meter{room: room}}
				return panics.Catch(nil, func() error {
					wrong, err = check.run(ctx)
					return err
				})
			})
		}
		inSnapshots = append(inSnapshots, wrong...)
		if err != nil || !j.options.Chain || thread.ThreadID == "" {
			return err
		}
		heads := j.headsOf(threadName{thread.Scope, thread.ThreadID})
		return j.memory.do(ctx, func(room room) error {
			check := chainCheck{queries: queries, key: thread.ThreadKey, room: room, heads: heads}
			wrong, err := check.run(ctx)
			for _, problem := range wrong {
				if !slices.Contains(inLog, problem) { // agui_internal.verify_chain finds some of them, too
					inLog = append(inLog, problem)
				}
			}
			return err
		})
	})
	if damage := damageIn(err); damage != nil {
		inLog = append(inLog, pgagui.Problem{Problem: "the thread cannot be read: " + damage.Message, Severity: pgagui.Damage})
	} else if err != nil {
		return VerifiedThread{}, err
	}

	for _, problem := range inLog {
		if problem.Severity == pgagui.Note {
			found.Notes = append(found.Notes, problem)
		} else {
			found.Problems = append(found.Problems, ThreadProblem{Problem: problem})
		}
	}
	isSound := len(found.Problems) == 0
	for _, problem := range inSnapshots {
		// A snapshot may hold what a damaged log has lost, so it is not rebuilt.
		found.Problems = append(found.Problems, ThreadProblem{Problem: problem, Repairable: isSound})
	}
	return found, nil
}

// headsOf returns the heads that were kept of an existing thread.
func (j *verifyJob) headsOf(name threadName) []Head {
	heads := j.heads[name]
	if len(heads) > 0 {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.checked[name] = true
	}
	return heads
}

// findMissing reports the threads that heads name and that do not exist. Those of other nodes of a
// cluster are no matter of this one.
func (j *verifyJob) findMissing(ctx context.Context) error {
	if !j.options.Chain || len(j.options.Threads) > 0 || j.options.SampleThreads > 0 || j.options.SampleShare > 0 || !j.options.Since.IsZero() {
		return nil
	}
	for name := range j.heads {
		if j.checked[name] || j.options.Scope != nil && *j.options.Scope != name.scope {
			continue
		}
		if _, err := pgagui.New(j.pool, &pgagui.Config{Scope: name.scope}).Head(ctx, name.threadID); errors.Is(err, pgagui.ErrMoved) {
			continue
		}
		found, err := j.missing(ctx, name)
		if err != nil {
			return err
		}
		j.mutex.Lock()
		j.count(found)
		j.mutex.Unlock()
	}
	return nil
}

// asProblems converts the rows of a query that returns problems.
func asProblems[Row ~struct {
	RunID    string
	Problem  string
	Severity string
}](rows []Row, err error) ([]pgagui.Problem, error) {
	problems := make([]pgagui.Problem, len(rows))
	for i, row := range rows {
		fields := struct{ RunID, Problem, Severity string }(row)
		problems[i] = pgagui.Problem{RunID: fields.RunID, Problem: fields.Problem, Severity: pgagui.Severity(fields.Severity)}
	}
	return problems, err
}

// damageIn returns the error of a statement that failed because of the data that it read. It returns nil
// for other errors, such as a lost connection or a time limit.
func damageIn(err error) *pgconn.PgError {
	var server *pgconn.PgError
	if errors.As(err, &server) && (strings.HasPrefix(server.Code, "XX") || strings.HasPrefix(server.Code, "22")) {
		return server
	}
	return nil
}
