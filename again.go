package pgagui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// again makes a call until it succeeds, fails for good or ctx ends. One that is not answered within the timeout is given up, for the network may
// have lost it. report is told of each failure that is not for good, and with nil of a success.
func again[T any](
	ctx context.Context, timeout time.Duration, report func(error), call func(context.Context) (T, error),
) (result T, err error) {
	const (
		longest      = 2 * time.Second
		mostUpgrades = 3 // in a row
	)
	pause := 20 * time.Millisecond
	for upgrades := 0; ; {
		timed, cancel := context.WithTimeout(ctx, timeout)
		result, err = call(timed)
		cancel()
		switch {
		case err == nil:
			report(nil)
			return result, nil
		case isOfUpgrade(err) && upgrades < mostUpgrades:
			upgrades++
		case !isPassing(err):
			return result, err
		case ctx.Err() != nil:
			return result, endedBy(ctx, err)
		}
		report(err)
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

// isPassing reports whether a call that failed may well succeed when it is made again: the connection was lost or could not be had, the
// server is starting, stopping or short of something, or another transaction was in the way.
func isPassing(err error) bool {
	if unreadable := (pgx.ScanArgError{}); errors.Is(err, puddle.ErrClosedPool) || errors.As(err, &unreadable) {
		return false
	}
	var cause *pgconn.PgError
	if !errors.As(err, &cause) {
		return true
	}
	switch cause.Code[:2] {
	case "08", "40", "53", "55", "57", "58":
		return true
	}
	return cause.Code == "25006" // read-only: a standby, for the moment
}

// isOfUpgrade reports whether a call may have failed because the schema was upgraded while it ran: what it was about to use is gone, or has
// another form. Nothing of it is stored, and when it is made again it finds what is there now. Without an upgrade it fails again.
func isOfUpgrade(err error) bool {
	var cause *pgconn.PgError
	if !errors.As(err, &cause) {
		return false
	}
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

// outage tells the log once when the database cannot be reached, and once when it can again.
type outage struct {
	logger     *slog.Logger
	lost, back string // what the log says

	mu    sync.Mutex
	since time.Time
}

// report is told how calls went; nil: the database has answered.
func (o *outage) report(err error) {
	o.mu.Lock()
	since := o.since
	switch {
	case err == nil:
		o.since = time.Time{}
	case since.IsZero():
		o.since = time.Now()
	}
	o.mu.Unlock()
	switch {
	case err != nil && since.IsZero():
		o.logger.Warn(o.lost, "error", err)
	case err == nil && !since.IsZero():
		o.logger.Info(o.back, "after", time.Since(since))
	}
}
