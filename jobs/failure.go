package jobs

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/refusal"
)

// RunsLeftError means that a job failed at some runs or threads, and did all others. The failed runs
// are in agui.quarantine, unless something else caused the failure (a full disk, for example).
type RunsLeftError struct {
	// Failures are the errors, each with its run or thread.
	Failures []error
}

func (e *RunsLeftError) Error() string { return errors.Join(e.Failures...).Error() }

func (e *RunsLeftError) Unwrap() []error { return e.Failures }

// withRunsLeft returns the error of a job that ended with err, and with failures of single runs or
// threads.
func withRunsLeft(err error, failures []error) error {
	if len(failures) == 0 {
		return err
	}
	left := &RunsLeftError{failures}
	if err == nil {
		return left
	}
	return errors.Join(err, left)
}

// noteFailure notes that an attempt at a run failed, and reports whether that counts. It does not
// count if the run had no part in it.
func noteFailure(
	ctx context.Context, queries *db.Queries, job string, key pgtype.UUID, runNo int32, cause error,
) (isCounted bool, err error) {
	failure := db.NoteFailureParams{Job: job, ThreadKey: key, RunNo: runNo, Error: strings.ToValidUTF8(strings.ReplaceAll(cause.Error(), "\x00", ""), "?")}
	var server *pgconn.PgError
	if errors.As(cause, &server) {
		failure.Code, failure.Error = &server.Code, server.Message
	} else {
		failure.Code = stateOf(cause)
	}
	return queries.NoteFailure(ctx, failure)
}

// stateOf returns the SQLSTATE of an error that does not come from the server; nil: it comes from the
// reducer. What an SQLSTATE says of a run is in agui_internal.failure_kind.
func stateOf(cause error) *string {
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(cause, compaction.ErrLimit):
		return &refusal.FoldLimit.State // as the reducer in SQL raises it
	case errors.Is(cause, panics.Err):
		return new("XX000") // an internal error
	case errors.As(cause, &connect):
		return new("08001") // no connection
	case live.IsTransient(cause):
		return new("08006") // a connection that was lost
	}
	return nil
}

// endAttempt notes that an attempt at a run failed, and reports whether that counts, as noteFailure does.
// If the job was cancelled or lacks a privilege, it takes the note back and returns the cause.
func endAttempt(ctx context.Context, queries *db.Queries, attempt db.NoteAttemptParams, cause error) (isCounted bool, err error) {
	if ctx.Err() != nil || isForbidden(cause) {
		return false, errors.Join(cause, takeBackAttempt(ctx, queries, db.TakeBackAttemptParams(attempt)))
	}
	isCounted, err = noteFailure(ctx, queries, attempt.Job, attempt.ThreadKey, attempt.RunNo, cause)
	if err != nil {
		return false, errors.Join(cause, err)
	}
	return isCounted, nil
}

// takeBackAttempt deletes the note of a run that was not begun, even after ctx has ended.
func takeBackAttempt(ctx context.Context, queries *db.Queries, attempt db.TakeBackAttemptParams) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return queries.TakeBackAttempt(ctx, attempt)
}

// eachThread acts on the threads of all pages until the job has to stop. Those that other transactions
// hold are retried once, after all others; it returns how many stay. A thread that fails does not stop the
// others.
func eachThread[T any](
	ctx context.Context, reached func() StopReason, page func(after pgtype.UUID, rows int32) ([]T, error), keyOf func(T) pgtype.UUID, act func(T) error,
) (stopped StopReason, held int, err error) {
	const rows = 100
	var left []T
	var failures []error
	actOn := func(threads []T) error {
		for _, thread := range threads {
			if stopped = reached(); stopped != "" {
				return nil
			}
			err := act(thread)
			switch {
			case isLockTimeout(err):
				left = append(left, thread)
			case isForbidden(err):
				return err
			case err != nil:
				if failures = append(failures, err); ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		return nil
	}
	var after pgtype.UUID
	for hasMore := true; hasMore && stopped == ""; {
		threads, err := page(after, rows)
		if err == nil {
			err = actOn(threads)
		}
		if err != nil {
			return stopped, 0, withRunsLeft(err, failures)
		}
		if hasMore = len(threads) == rows; hasMore {
			after = keyOf(threads[rows-1])
		}
	}
	if later := left; stopped == "" {
		left = nil
		err = actOn(later)
	}
	return stopped, len(left), withRunsLeft(err, failures)
}

// isForbidden reports whether the role lacks a privilege: then all other threads would fail too.
func isForbidden(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == refusal.PermissionDenied.State
}

// isLockTimeout reports whether a statement waited too long for a lock.
func isLockTimeout(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "55P03"
}
