package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/internal/refusal"
)

// RetryPolicy says how a call is retried.
type RetryPolicy struct {
	// Timeout is how long an attempt waits for its answer, which the network may have lost.
	Timeout time.Duration
	// report, if set, is called before each retry with the error of the attempt before, and with nil
	// after a success.
	report func(error)
	// isOwnFault, if set, reports whether the call itself caused the failure of an attempt that began
	// then. Then there is no further attempt.
	isOwnFault func(err error, began time.Time) bool
}

// Retry makes a call until it succeeds, fails permanently or ctx ends.
func Retry[T any](ctx context.Context, policy RetryPolicy, call func(context.Context) (T, error)) (T, error) {
	report := policy.report
	if report == nil {
		report = func(error) {}
	}
	const maxUncertain = 3 // failures in a row
	uncertainFailures := 0
	var last error
	attempt := func() (T, error) {
		began := time.Now()
		timed, cancel := context.WithTimeout(ctx, policy.Timeout)
		defer cancel()
		result, err := call(timed)
		last = err
		if err == nil {
			report(nil)
			return result, nil
		}
		if ctx.Err() != nil || policy.isOwnFault != nil && policy.isOwnFault(err, began) {
			return result, backoff.Permanent(err)
		}
		switch classify(err) {
		case refusal.Permanent:
			return result, backoff.Permanent(err)
		case refusal.Uncertain:
			if uncertainFailures++; uncertainFailures > maxUncertain {
				return result, backoff.Permanent(err)
			}
		case refusal.Transient:
			uncertainFailures = 0
		}
		return result, err
	}
	result, err := backoff.Retry(ctx, attempt,
		backoff.WithBackOff(Pauses(20*time.Millisecond, 2*time.Second)), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) { report(err) }))
	if err != nil && ctx.Err() != nil {
		return result, endedBy(ctx, last)
	}
	return result, err
}

// Pauses grow from shortest to longest. They are random, so that many recorders do not return at
// the same time.
func Pauses(shortest, longest time.Duration) *backoff.ExponentialBackOff {
	pauses := &backoff.ExponentialBackOff{
		InitialInterval: shortest, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: longest,
	}
	pauses.Reset()
	return pauses
}

// endedBy is the error of a ctx that ended while calls failed.
func endedBy(ctx context.Context, failure error) error {
	if failure == nil || errors.Is(failure, ctx.Err()) {
		return ctx.Err()
	}
	return fmt.Errorf("%w, while the database did not answer: %w", ctx.Err(), failure)
}

// IsTransient reports whether a retry of a call that failed with err may succeed.
func IsTransient(err error) bool {
	if err == nil {
		return false
	}
	var refused *pgconn.PgError
	class := classify(err)
	return class == refusal.Transient || class == refusal.Uncertain && errors.As(err, &refused)
}

func classify(err error) refusal.Retry {
	if cause, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.StateOf(cause.Code, cause.Message).Retry
	}
	var (
		unreadable pgx.ScanArgError
		network    net.Error
		connect    *pgconn.ConnectError
		system     syscall.Errno
	)
	switch {
	case errors.Is(err, puddle.ErrClosedPool), errors.Is(err, pgx.ErrTxClosed), errors.As(err, &unreadable),
		errors.Is(err, rawjson.ErrInvalid), errors.Is(err, rawjson.ErrTooDeep), errors.Is(err, panics.Err):
		return refusal.Permanent
	case errors.As(err, &network), errors.As(err, &connect), errors.As(err, &system), errors.Is(err, net.ErrClosed),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, pgconn.ErrConnClosed):
		return refusal.Transient
	// Not pgconn.SafeToRetry: it also holds for a connection that another goroutine uses, where each attempt may fail.
	default:
		return refusal.Uncertain
	}
}

func isMoved(err error) bool {
	var cause *pgconn.PgError
	return errors.As(err, &cause) && cause.Code == refusal.Moved.State
}

// isCostly reports whether a call failed because it takes too long or too much of the server's
// memory.
func isCostly(err error) bool {
	var cause *pgconn.PgError
	return errors.As(err, &cause) && (cause.Code == "57014" || cause.Code == "53200" || cause.Code == "53400")
}

// isTimeout reports whether an attempt that had a connection got no answer in time.
func isTimeout(err error) bool {
	var connect *pgconn.ConnectError
	return pgconn.Timeout(err) && errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &connect)
}

// outage logs when calls begin to fail, once a minute while they fail, with the last cause, and when
// they succeed again.
type outage struct {
	logger            *slog.Logger
	lost, still, back string // the messages of the log

	mu     sync.Mutex
	since  time.Time // of the first failure; zero: calls succeed
	logged time.Time // when a message was last logged
	cause  error     // the last one
}

const outageLogInterval = time.Minute

// state returns since when calls fail, and why. since is zero if they succeed.
func (o *outage) state() (since time.Time, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.cause
}

// report records the result of a call.
func (o *outage) report(err error) {
	now := time.Now()
	o.mu.Lock()
	since := o.since
	isChange := since.IsZero() == (err != nil)
	isDue := isChange || err != nil && now.Sub(o.logged) >= outageLogInterval
	switch {
	case err == nil:
		o.since = time.Time{}
	case since.IsZero():
		o.since = now
	}
	if isDue {
		o.logged = now
	}
	o.cause = err
	o.mu.Unlock()
	switch {
	case !isDue:
	case err == nil:
		o.logger.Info(o.back, "after", now.Sub(since))
	case isChange:
		o.logger.Warn(o.lost, "error", err)
	default:
		o.logger.Error(o.still, "error", err, "since", since, "for", now.Sub(since).Round(time.Second))
	}
}
