package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// RepackOptions are the settings of [Repack]. The zero value repacks all runs that are due.
type RepackOptions struct {
	// OlderThan is how long ago a run must have ended; nil means the setting repack_after of the
	// database (10 minutes unless set).
	OlderThan *time.Duration
	// Retry makes the job retry the runs in quarantine at once.
	Retry bool
	// MaxRuns ends the job after this number of runs; 0 means no limit.
	MaxRuns int
	// MaxTime ends the job after this time; 0 means no limit. It can also end within a run, after a
	// piece of 50,000 events.
	MaxTime time.Duration
	// Progress, if set, is called after each run with the totals so far.
	Progress func(Repacked)
}

// Repacked is the result of [Repack].
type Repacked struct {
	// Runs is the number of runs that were looked at.
	Runs int `json:"runs"`
	// Joined is the number of batches that were removed because their events are now in a larger
	// one.
	Joined int `json:"joined"`
	// Dropped is the number of snapshots that are not worth their space any more beside the smaller
	// log.
	Dropped int `json:"dropped"`
	// Quarantined is the number of runs at which repacking failed and that it retries later
	// (agui.quarantine).
	Quarantined int64 `json:"quarantined,omitempty"`
	// Busy is the number of threads that were left because other transactions held them.
	Busy int `json:"busy,omitempty"`
	// Stopped says why the job ended with work left; empty if it did all work.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (r Repacked) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("runs", r.Runs), slog.Int("joined", r.Joined), slog.Int("dropped", r.Dropped),
		slog.Int64("quarantined", r.Quarantined), slog.Int("busy", r.Busy), slog.String("stopped", string(r.Stopped)))
}

// Repack joins the batches of ended runs into larger ones, which take a fraction of the space.
// Events, their order and their times do not change: each transaction reads back what it wrote
// before it commits. Readers and repeated appends never see a difference. Repack needs the
// rights of agui_worker.
//
// A run that fails does not stop the others. It goes into quarantine (agui.quarantine), and Repack
// returns a [*RunsLeftError] at the end. A thread that another transaction holds is retried once,
// after all others.
func Repack(ctx context.Context, pool *pgxpool.Pool, options RepackOptions) (done Repacked, err error) {
	begin := time.Now()
	defer func() { done.Duration = time.Since(begin) }()
	stop := limits{begin, options.MaxTime, options.MaxRuns}
	queries := db.New(pool)
	if options.Retry {
		if _, err := queries.Retry(ctx, repackJobName); err != nil {
			return done, err
		}
	}
	var (
		thread      pgtype.UUID // the one at hand
		firstNo     int32       // the first of its runs
		afterNo     int32       // the one that was done last
		busy        []pgtype.UUID
		hasComeBack bool
		failures    []error
	)
	fail := func(at any, cause error) error {
		failures = append(failures, fmt.Errorf("repack %v: %w", at, cause))
		return ctx.Err()
	}
	reweigh := func() error {
		if !thread.Valid {
			return nil
		}
		dropped, err := inStep(ctx, pool, func(queries *db.Queries) (int32, error) {
			return queries.ReweighSnapshots(ctx, db.ReweighSnapshotsParams{ThreadKey: thread, FromNo: firstNo})
		})
		done.Dropped += int(dropped)
		if err != nil && !isLockTimeout(err) {
			return fail(fmt.Sprintf("the thread with key %s: its snapshots", thread), err)
		}
		return nil
	}
	for {
		// A note of the run is committed before it is begun.
		run, err := inStep(ctx, pool, func(queries *db.Queries) (db.NextToRepackRow, error) {
			run, err := queries.NextToRepack(ctx, db.NextToRepackParams{
				Near: thread, AfterNo: afterNo, OlderThan: options.OlderThan, PassedOver: append([]pgtype.UUID{}, busy...),
			})
			if err != nil {
				return run, err
			}
			if done.Stopped = stop.reached(ctx, done.Runs); done.Stopped != "" {
				return run, nil
			}
			return run, queries.NoteAttempt(ctx, db.NoteAttemptParams{Job: repackJobName, ThreadKey: run.ThreadKey, RunNo: run.RunNo})
		})
		isDone := errors.Is(err, pgx.ErrNoRows)
		if isDone && len(busy) > 0 && !hasComeBack {
			busy, hasComeBack = nil, true
			continue
		}
		if err != nil && !isDone {
			return done, withRunsLeft(err, failures)
		}
		if isDone || done.Stopped != "" {
			err := reweigh()
			done.Busy = len(busy)
			if err == nil {
				done.Quarantined, err = queries.Quarantined(ctx, repackJobName)
			}
			return done, withRunsLeft(err, failures)
		}
		if run.ThreadKey != thread {
			if err := reweigh(); err != nil {
				return done, withRunsLeft(err, failures)
			}
			thread, firstNo = run.ThreadKey, run.RunNo
		}
		firstNo, afterNo = min(firstNo, run.RunNo), run.RunNo
		joined, end, err := repackRun(ctx, pool, run, stop)
		done.Joined += joined
		switch {
		case err != nil:
			isCounted, ended := endAttempt(ctx, queries, db.NoteAttemptParams{Job: repackJobName, ThreadKey: run.ThreadKey, RunNo: run.RunNo}, err)
			if ended != nil {
				return done, withRunsLeft(ended, failures)
			}
			if !isCounted {
				busy = append(busy, run.ThreadKey)
			}
			if !isLockTimeout(err) {
				fail(fmt.Sprintf("run number %d of the thread with key %s", run.RunNo, run.ThreadKey), err)
			}
			continue
		case end == repackBusy:
			busy = append(busy, run.ThreadKey)
			continue
		case end == repackCut:
			continue // the check of the limit ends the job
		}
		done.Runs++
		if options.Progress != nil {
			options.Progress(done)
		}
	}
}

// repackJobName is the name of the job in its notes.
const repackJobName = "repack"

// inStep makes calls in one of the transactions that a job consists of.
func inStep[T any](ctx context.Context, pool *pgxpool.Pool, call func(*db.Queries) (T, error)) (result T, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		queries := db.New(tx)
		if err := queries.BeginStep(ctx); err != nil {
			return err
		}
		result, err = call(queries)
		return err
	})
	return result, err
}

// repackEnd is how repackRun ended.
type repackEnd int

const (
	repackDone repackEnd = iota
	repackBusy           // another transaction holds the thread
	repackCut            // the job has to stop; the next one continues
)

// repackRun repacks a run piece by piece, each in a transaction of its own, because appends to the thread
// wait for it. The last transaction deletes the note of the run. If the run is not finished for a reason
// that does not lie in it, the note is taken back.
func repackRun(ctx context.Context, pool *pgxpool.Pool, run db.NextToRepackRow, stop limits) (joined int, end repackEnd, err error) {
	nextSeq := int64(1)
	for nextSeq > 0 {
		piece, err := inStep(ctx, pool, func(queries *db.Queries) (db.RepackRunRow, error) {
			piece, err := queries.RepackRun(ctx, db.RepackRunParams{ThreadKey: run.ThreadKey, RunNo: run.RunNo, AfterSeq: nextSeq - 1})
			if err != nil {
				return piece, err
			}
			switch {
			case piece.IsBusy:
				end = repackBusy
			case piece.NextSeq == 0:
				return piece, queries.NoteSuccess(ctx, db.NoteSuccessParams{Job: repackJobName, ThreadKey: run.ThreadKey, RunNo: run.RunNo})
			case stop.reached(ctx, 0) != "":
				end = repackCut
			default:
				return piece, nil
			}
			return piece, queries.TakeBackAttempt(ctx, db.TakeBackAttemptParams{Job: repackJobName, ThreadKey: run.ThreadKey, RunNo: run.RunNo})
		})
		if err != nil {
			return joined, end, err
		}
		joined += int(piece.Joined)
		if end != repackDone {
			return joined, end, nil
		}
		nextSeq = piece.NextSeq
	}
	return joined, repackDone, nil
}
