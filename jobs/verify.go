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
)

// VerifyOptions are the settings of Verify. The zero value checks all threads of all scopes with one worker.
type VerifyOptions struct {
	// Scope is the tenant or user whose threads to check; nil: those of all scopes.
	Scope *string
	// Threads are the ids of the threads of Scope (nil: of the scope "") to check; none: all that the next three settings let through.
	Threads []string
	// SampleThreads, when not 0, checks so many threads, chosen at random.
	SampleThreads int
	// SampleShare, when not 0, checks each thread with this probability: 0.05 checks about one in twenty.
	SampleShare float64
	// Since, when not zero, checks threads with events or snapshots from then on.
	Since time.Time

	// Workers is how many threads are checked side by side, each on a connection of its own; 1 when 0.
	Workers int
	// InSQL folds with the reducer in SQL in place of that in Go: many times slower, and a second opinion.
	InSQL bool
	// Repair makes the snapshots of a thread, and its place in lists, again where something is wrong
	// with them and its log is sound. The log is never touched.
	Repair bool

	// Chain computes the hashes of chained logs (agui.enable_chain) anew from what was appended, and compares them with those stored.
	Chain bool
	// Heads, with Chain, are heads that were kept outside of the database: the log must still lead to each of them. Where all threads of a scope, or of
	// all, are checked, a thread that is gone is found, too.
	Heads []Head

	// Report, when set, is called with each thread once it is checked. Calls do not overlap.
	Report func(VerifiedThread)
}

// Verified says what Verify found.
type Verified struct {
	// Threads, Runs, Events and Snapshots count what was checked.
	Threads   int   `json:"threads"`
	Runs      int   `json:"runs"`
	Events    int64 `json:"events"`
	Snapshots int   `json:"snapshots"`
	// Problems counts what is wrong, Repaired what was wrong and is no more.
	Problems int `json:"problems"`
	Repaired int `json:"repaired"`
	// Notes counts what agents or their writers did against the protocol.
	Notes int `json:"notes"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue makes a group of the counts, for slog.
func (v Verified) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("threads", v.Threads), slog.Int64("events", v.Events), slog.Int("snapshots", v.Snapshots),
		slog.Int("problems", v.Problems), slog.Int("repaired", v.Repaired), slog.Int("notes", v.Notes))
}

// VerifiedThread is what Verify found in a thread.
type VerifiedThread struct {
	// ThreadKey is the key of its rows.
	ThreadKey string `json:"threadKey"`
	Scope     string `json:"scope"`
	// ThreadID is empty where rows have a key that belongs to no thread; Scope says nothing then.
	ThreadID string `json:"threadId"`

	Runs      int   `json:"runs"`
	Events    int64 `json:"events"`
	Snapshots int   `json:"snapshots"`

	// Problems are what is wrong, Repaired what was wrong before the snapshots were made again.
	Problems []ThreadProblem `json:"problems"`
	Repaired []ThreadProblem `json:"repaired,omitempty"`
	// Notes are what agents or their writers did against the protocol. It is kept as it was appended, and is no damage.
	Notes []pgagui.Problem `json:"notes,omitempty"`
}

// ThreadProblem is something wrong with a thread.
type ThreadProblem struct {
	pgagui.Problem
	// Repairable says that making the thread's snapshots again puts it right.
	Repairable bool `json:"repairable"`
}

// Verify checks threads like git fsck: the log (seqs, batches, bounds and life cycles of runs), the tree of runs, and every snapshot
// against a fold of the raw log from its beginning. Without Threads, SampleThreads, SampleShare and Since it also finds rows that
// belong to no thread. What it finds is no error. Each thread is read in a transaction of its own and as it stood at one
// moment, so others may write meanwhile.
//
// A thread that cannot be checked does not hold up the others; the errors are returned together in the end. Errors:
// pgagui.ErrUnknownThread for one of Threads.
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
		defer close(threads)
		return job.choose(groupContext, threads)
	})
	for range max(1, options.Workers) {
		group.Go(func() error {
			for thread := range threads {
				if err := job.check(groupContext, thread); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err = group.Wait(); err == nil {
		err = job.findMissing(ctx)
	}
	err = errors.Join(err, errors.Join(job.failures...))
	job.done.Duration = time.Since(begin)
	return job.done, err
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
				// There is nothing of it; the error is that of anyone who asks for it.
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

// check verifies a thread, repairs it where that is wanted and possible, and reports it.
func (j *verifyJob) check(ctx context.Context, thread db.ThreadsToVerifyRow) error {
	found, err := j.verify(ctx, thread)
	if err == nil && j.options.Repair && slices.ContainsFunc(found.Problems, func(p ThreadProblem) bool { return p.Repairable }) {
		var again VerifiedThread
		_, err = pgagui.New(j.pool, &pgagui.Config{Scope: thread.Scope}).Maintenance().RebuildSnapshots(ctx, thread.ThreadID)
		if err == nil {
			again, err = j.verify(ctx, thread)
		}
		if err == nil {
			again.Repaired = repaired(found.Problems, again.Problems)
			found = again
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

// repaired are the problems of before that are no more.
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

// verify checks a thread as it stands at one moment.
func (j *verifyJob) verify(ctx context.Context, thread db.ThreadsToVerifyRow) (VerifiedThread, error) {
	found := VerifiedThread{ThreadKey: thread.ThreadKey.String(), Scope: thread.Scope, ThreadID: thread.ThreadID, Problems: []ThreadProblem{}}
	var inLog, inSnapshots []pgagui.Problem
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, j.pool, moment, func(tx pgx.Tx) (err error) {
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
				return guarded(func() error {
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
			if err == nil {
				inLog = append(inLog, wrong...)
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
		// What a damaged log has lost may be left in a snapshot: that is not made again then.
		found.Problems = append(found.Problems, ThreadProblem{Problem: problem, Repairable: isSound})
	}
	return found, nil
}

// headsOf returns the heads that somebody kept of a thread that is there.
func (j *verifyJob) headsOf(name threadName) []Head {
	heads := j.heads[name]
	if len(heads) > 0 {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.checked[name] = true
	}
	return heads
}

// findMissing reports the threads that heads name and that were not there to be checked.
func (j *verifyJob) findMissing(ctx context.Context) error {
	if !j.options.Chain || len(j.options.Threads) > 0 || j.options.SampleThreads > 0 || j.options.SampleShare > 0 || !j.options.Since.IsZero() {
		return nil
	}
	for name := range j.heads {
		if j.checked[name] || j.options.Scope != nil && *j.options.Scope != name.scope {
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

// asProblems takes the rows of a query that answers with problems.
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

// damageIn is the error of a statement that failed because of what it read: corrupted data, a value that is none. It is nil for
// others, for instance of the connection or because of a time limit.
func damageIn(err error) *pgconn.PgError {
	var server *pgconn.PgError
	if errors.As(err, &server) && (strings.HasPrefix(server.Code, "XX") || strings.HasPrefix(server.Code, "22")) {
		return server
	}
	return nil
}
