package pgagui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// attempts say how a call is repeated.
type attempts struct {
	// timeout is after how long an attempt that is not answered is given up, for the network may have lost it.
	timeout time.Duration
	// report is called after each failure that is followed by another attempt, and with nil after a success.
	report func(error)
	// isSuspect, when set, reports whether the call itself is to blame for a failure of an attempt that began then. It ends the attempts.
	isSuspect func(err error, began time.Time) bool
}

// again makes a call until it succeeds, fails for good or ctx ends.
func again[T any](ctx context.Context, how attempts, call func(context.Context) (T, error)) (result T, err error) {
	const (
		longest      = 2 * time.Second
		mostDoubtful = 3 // in a row
	)
	pause := 20 * time.Millisecond
	for doubtful := 0; ; {
		began := time.Now()
		timed, cancel := context.WithTimeout(ctx, how.timeout)
		result, err = call(timed)
		cancel()
		if err == nil {
			how.report(nil)
			return result, nil
		}
		if ctx.Err() != nil {
			return result, endedBy(ctx, err)
		}
		if how.isSuspect != nil && how.isSuspect(err, began) {
			return result, err
		}
		switch prospectOf(err) {
		case permanent:
			return result, err
		case doubtable:
			if doubtful++; doubtful > mostDoubtful {
				return result, err
			}
		case transient:
			doubtful = 0
		}
		how.report(err)
		select {
		case <-time.After(pause/2 + rand.N(pause)): // many recorders must not come back at once
		case <-ctx.Done():
			return result, endedBy(ctx, err)
		}
		pause = min(2*pause, longest)
	}
}

// endedBy is the error of a ctx that ended while calls failed.
func endedBy(ctx context.Context, failure error) error {
	if errors.Is(failure, ctx.Err()) {
		return failure
	}
	return fmt.Errorf("%w, while the database did not answer: %w", ctx.Err(), failure)
}

// prospect says whether a call that failed may succeed when it is repeated.
type prospect int

const (
	// permanent: it fails each time.
	permanent prospect = iota
	// doubtable: it may succeed, but may as well fail each time. It is repeated a few times.
	doubtable
	// transient: the connection was lost or could not be had, the server is starting, stopping or short of something, or another
	// transaction was in the way. It is repeated until it succeeds.
	transient
)

func prospectOf(err error) prospect {
	if cause := (*pgconn.PgError)(nil); errors.As(err, &cause) {
		return prospectOfState(cause)
	}
	var (
		unreadable pgx.ScanArgError
		network    net.Error
		connect    *pgconn.ConnectError
		system     syscall.Errno
	)
	switch {
	case errors.Is(err, puddle.ErrClosedPool), errors.Is(err, pgx.ErrTxClosed), errors.As(err, &unreadable):
		return permanent
	// pgx has no types for these: an argument that does not fit its parameter, and a connection that another goroutine uses.
	case strings.Contains(err.Error(), "failed to encode args"), strings.Contains(err.Error(), "conn busy"):
		return permanent
	case errors.As(err, &network), errors.As(err, &connect), errors.As(err, &system), errors.Is(err, net.ErrClosed),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), pgconn.SafeToRetry(err):
		return transient
	default:
		return doubtable
	}
}

func prospectOfState(cause *pgconn.PgError) prospect {
	switch cause.Code {
	case "40001", "40003", "40P01", // serialization failure, deadlock
		"53000", "53100", "53300", // the disk is full, too many connections
		"55006", "55P03", // another transaction is in the way
		"57000", "57P01", "57P02", "57P03", "57P05", // the server is stopping or starting, or has closed the connection
		"58000", "58030",
		"25006": // read-only: a standby, for the moment
		return transient
	case "57014", // statement_timeout, or somebody has cancelled it
		"53200", "53400", // out of memory
		"55000", "57P04", "58P01", "58P02":
		return doubtable
	}
	switch {
	case strings.HasPrefix(cause.Code, "08"):
		return transient
	case isOfUpgrade(cause):
		return doubtable
	default:
		return permanent
	}
}

// isOfUpgrade reports whether a call may have failed because the schema was upgraded while it ran: what it was about to use is gone, or has
// another form. Nothing of it is stored, and an attempt after that finds what is there now. Without an upgrade it fails each time.
func isOfUpgrade(cause *pgconn.PgError) bool {
	switch cause.Code {
	case "42883", "42704", "42703", "42804": // no such function, type or column; another type than was expected
		return true
	case "0A000": // cached plan must not change result type
		return strings.HasPrefix(cause.Message, "cached plan")
	case "XX000": // cache lookup failed for type 16385
		return strings.HasPrefix(cause.Message, "cache lookup failed")
	}
	return false
}

// isCostly reports whether a call failed because it takes too long or too much of the server's memory.
func isCostly(err error) bool {
	var cause *pgconn.PgError
	return errors.As(err, &cause) && (cause.Code == "57014" || cause.Code == "53200" || cause.Code == "53400")
}

// isTimeout reports whether an attempt was given up that had a connection.
func isTimeout(err error) bool {
	var connect *pgconn.ConnectError
	return pgconn.Timeout(err) && errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &connect)
}

// outage says in the log when calls begin to fail, once a minute that they still do, with the last cause, and when they succeed.
type outage struct {
	logger            *slog.Logger
	lost, still, back string // what the log says

	mu     sync.Mutex
	since  time.Time // zero: they succeed
	logged time.Time // when it was last said
	cause  error     // the last one
}

const outageLogInterval = time.Minute

// state is since when calls fail, and why; zero: they succeed.
func (o *outage) state() (since time.Time, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.cause
}

// report takes note of how a call went; nil: it succeeded.
func (o *outage) report(err error) {
	now := time.Now()
	o.mu.Lock()
	since := o.since
	isNews := since.IsZero() == (err != nil)
	isDue := isNews || err != nil && now.Sub(o.logged) >= outageLogInterval
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
	case isNews:
		o.logger.Warn(o.lost, "error", err)
	default:
		o.logger.Error(o.still, "error", err, "since", since, "for", now.Sub(since).Round(time.Second))
	}
}
