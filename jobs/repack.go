package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// RepackOptions are the settings of Repack. The zero value repacks all runs that are due.
type RepackOptions struct {
	// OlderThan is how long ago a run must have ended; nil: the database's setting agui_internal.repack_after (10 minutes unless set).
	OlderThan *time.Duration
	// MaxRuns ends the job after so many runs; 0: when all are done.
	MaxRuns int
	// MaxTime ends the job after so long; 0: when all are done.
	MaxTime time.Duration
	// Progress, when set, is called after each run with what is done so far.
	Progress func(Repacked)
}

// Repacked says what Repack did.
type Repacked struct {
	// Runs counts the runs that were looked at.
	Runs int `json:"runs"`
	// Joined counts the batches that are gone, because their events are now part of a larger one.
	Joined int `json:"joined"`
	// Dropped counts the snapshots that the smaller log does not pay for any more.
	Dropped int `json:"dropped"`
	// Stopped says what ended the job with work left; empty when it did all there was to do.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue makes a group of the counts, for slog.
func (r Repacked) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("runs", r.Runs), slog.Int("joined", r.Joined), slog.Int("dropped", r.Dropped), slog.String("stopped", string(r.Stopped)))
}

// Repack joins the batches of ended runs into larger ones, which take a fraction of the space. Events, their order and their times stay
// as they are; each transaction reads back what it wrote before it commits. Readers and repeated appends see no difference at any moment.
// It takes the rights of agui_maintainer.
func Repack(ctx context.Context, pool *pgxpool.Pool, options RepackOptions) (done Repacked, err error) {
	begin := time.Now()
	defer func() { done.Duration = time.Since(begin) }()
	stop := limits{begin, options.MaxTime, options.MaxRuns}
	queries := db.New(pool)
	var thread pgtype.UUID // the one at hand
	reweigh := func() error {
		if !thread.Valid {
			return nil
		}
		dropped, err := queries.ReweighSnapshots(ctx, thread)
		done.Dropped += int(dropped)
		return err
	}
	for {
		run, err := queries.NextToRepack(ctx, db.NextToRepackParams{Near: thread, OlderThan: options.OlderThan})
		if errors.Is(err, pgx.ErrNoRows) {
			return done, reweigh()
		}
		if err != nil {
			return done, err
		}
		if done.Stopped = stop.reached(ctx, done.Runs); done.Stopped != "" {
			return done, reweigh()
		}
		if run.ThreadKey != thread {
			if err := reweigh(); err != nil {
				return done, err
			}
			thread = run.ThreadKey
		}
		joined, err := repackRun(ctx, queries, run)
		done.Joined += joined
		if err != nil {
			return done, err
		}
		done.Runs++
		if options.Progress != nil {
			options.Progress(done)
		}
	}
}

// MayRepack reports whether the role of the pool's connections has the rights that Repack takes.
func MayRepack(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	return db.New(pool).MayRepack(ctx)
}

// repackRun repacks a run piece by piece, each in a transaction of its own, for appends to the thread wait meanwhile.
func repackRun(ctx context.Context, queries *db.Queries, run db.NextToRepackRow) (joined int, err error) {
	nextSeq := int64(1)
	for nextSeq > 0 {
		piece, err := queries.RepackRun(ctx, db.RepackRunParams{ThreadKey: run.ThreadKey, RunNo: run.RunNo, AfterSeq: nextSeq - 1})
		if err != nil {
			return joined, err
		}
		joined += int(piece.Joined)
		nextSeq = piece.NextSeq
	}
	return joined, nil
}
