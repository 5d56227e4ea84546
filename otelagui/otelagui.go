// Package otelagui reports a store to OpenTelemetry: its jobs ([Observer]: a span and metrics for each time
// that a job runs), the recorders of a process ([ObserveRecorder]), and the runs of agents as traces
// ([Traces]).
//
//	observe, err := otelagui.Observer(otelagui.Options{})
//	…
//	worker.Run(ctx, pool, tasks, worker.Options{Observe: observe})
//
// If the connections of the pool have a tracer, such as that of otelpgx, the statements of a job are
// children of its span.
package otelagui

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
)

// scope is the name of this package in spans and metrics.
const scope = "github.com/pgagui/pgagui/otelagui"

// Attributes of spans and metrics.
const (
	// JobNameKey is the name of the job: "compact".
	JobNameKey = attribute.Key("pgagui.job.name")
	// JobOutcomeKey is the outcome: "done", "skipped" or "failed". "failed" comes with an error.type: an
	// SQLSTATE, or the type of the error in Go.
	JobOutcomeKey = attribute.Key("pgagui.job.outcome")
	errorTypeKey  = attribute.Key("error.type")
)

// Options are the providers of traces and metrics. The zero value means the global ones.
type Options struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

// Observer returns an observer for jobs.Job.Run and worker.Run. Its metrics:
//
//	pgagui.job.duration                 histogram, s: by job and outcome
//	pgagui.compact.runs                 counter, {run}: runs that were processed
//	pgagui.compact.events               counter, {event}: their events
//	pgagui.compact.log                  counter, By: stored size of their log
//	pgagui.compact.snapshots            counter, {snapshot}: snapshots written
//	pgagui.compact.dropped_snapshots    counter, {snapshot}: those that were no longer needed
//	pgagui.compact.left                 gauge, {run}: ended runs that wait for the next compaction
//	pgagui.compact.quarantined          gauge, {run}: runs at which compaction failed and that it retries later
//	pgagui.repack.quarantined           gauge, {run}: runs at which repacking failed and that it retries later
//	pgagui.repack.runs                  counter, {run}: ended runs that were looked at
//	pgagui.repack.joined                counter, {batch}: batches that were joined into larger ones
//	pgagui.reap.runs                    counter, {run}: stale runs that were closed
//	pgagui.reap.quarantined             gauge, {run}: runs at which reaping failed and that it retries later
//	pgagui.erase.threads                counter, {thread}: threads that were removed
//	pgagui.erase.events                 counter, {event}: their events
func Observer(options Options) (jobs.Observer, error) {
	if options.TracerProvider == nil {
		options.TracerProvider = otel.GetTracerProvider()
	}
	if options.MeterProvider == nil {
		options.MeterProvider = otel.GetMeterProvider()
	}
	tracer := options.TracerProvider.Tracer(scope)
	metrics, err := newInstruments(options.MeterProvider.Meter(scope))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, job string) (context.Context, func(jobs.Report, error)) {
		ctx, span := tracer.Start(ctx, "pgagui "+job, trace.WithAttributes(JobNameKey.String(job)))
		return ctx, func(report jobs.Report, err error) {
			outcome := outcomeOf(report, err)
			span.SetAttributes(outcome...)
			if err != nil {
				span.SetStatus(codes.Error, err.Error())
			}
			metrics.record(ctx, span, report.Result) // also for a job that failed: what it committed stays
			metrics.duration.Record(ctx, report.Duration.Seconds(), metric.WithAttributes(append(outcome, JobNameKey.String(job))...))
			span.End()
		}
	}, nil
}

// ObserveRecorder reports what a recorder does, until stop is called:
//
//	pgagui.recorder.events       counter, {event}: events that were stored
//	pgagui.recorder.batches      counter, {batch}: rows that hold them
//	pgagui.recorder.commits      counter, {commit}: transactions that stored them
//	pgagui.recorder.repeats      counter, {call}: retries of calls
//	pgagui.recorder.failed       counter, {recording}: recordings that ended early
//	pgagui.recorder.buffered     gauge, {event}: events that wait to be stored
//	pgagui.recorder.repeating    gauge, s: how long the call that has been retried longest has failed; 0: none is retried
//
// The attributes distinguish the recorders of a process. They may be empty.
func ObserveRecorder(recorder *pgagui.Recorder, options Options, attributes ...attribute.KeyValue) (stop func() error, err error) {
	if options.MeterProvider == nil {
		options.MeterProvider = otel.GetMeterProvider()
	}
	meter := options.MeterProvider.Meter(scope)
	var (
		failures    []error
		instruments []metric.Observable
		observe     []func(metric.Observer, pgagui.RecorderStats)
	)
	set := metric.WithAttributes(attributes...)
	counter := func(name, unit, description string, value func(pgagui.RecorderStats) int64) {
		made, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failures, instruments = append(failures, err), append(instruments, made)
		observe = append(observe, func(to metric.Observer, stats pgagui.RecorderStats) { to.ObserveInt64(made, value(stats), set) })
	}
	counter("pgagui.recorder.events", "{event}", "Events that were stored.", func(s pgagui.RecorderStats) int64 { return s.Events })
	counter("pgagui.recorder.batches", "{batch}", "Rows that hold the events.", func(s pgagui.RecorderStats) int64 { return s.Batches })
	counter("pgagui.recorder.commits", "{commit}", "Transactions that stored events.", func(s pgagui.RecorderStats) int64 { return s.Commits })
	counter("pgagui.recorder.repeats", "{call}", "Retries of calls.", func(s pgagui.RecorderStats) int64 { return s.Retries })
	counter("pgagui.recorder.failed", "{recording}", "Recordings that ended early.", func(s pgagui.RecorderStats) int64 { return s.Failed })

	buffered, err := meter.Int64ObservableGauge("pgagui.recorder.buffered", metric.WithUnit("{event}"),
		metric.WithDescription("Events that wait to be stored."))
	failures = append(failures, err)
	repeating, err := meter.Float64ObservableGauge("pgagui.recorder.repeating", metric.WithUnit("s"),
		metric.WithDescription("For how long the call has failed that has been repeated longest."))
	failures = append(failures, err)
	observe = append(observe, func(to metric.Observer, stats pgagui.RecorderStats) {
		to.ObserveInt64(buffered, stats.Buffered, set)
		var seconds float64
		if !stats.RetryingSince.IsZero() {
			seconds = time.Since(stats.RetryingSince).Seconds()
		}
		to.ObserveFloat64(repeating, seconds, set)
	})
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		stats := recorder.Stats()
		for _, one := range observe {
			one(to, stats)
		}
		return nil
	}, append(instruments, buffered, repeating)...)
	if err != nil {
		return nil, err
	}
	return registration.Unregister, nil
}

func outcomeOf(report jobs.Report, err error) []attribute.KeyValue {
	switch {
	case err != nil:
		return []attribute.KeyValue{JobOutcomeKey.String("failed"), errorTypeKey.String(errorType(err))}
	case report.Skipped != "":
		return []attribute.KeyValue{JobOutcomeKey.String("skipped")}
	default:
		return []attribute.KeyValue{JobOutcomeKey.String("done")}
	}
}

func errorType(err error) string {
	var server *pgconn.PgError
	switch {
	case errors.As(err, &server):
		return server.Code
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return fmt.Sprintf("%T", err)
	}
}

type instruments struct {
	duration metric.Float64Histogram

	compactedRuns, compactedEvents, compactedLog, snapshots, droppedSnapshots metric.Int64Counter
	left, compactQuarantined, repackQuarantined, reapQuarantined              metric.Int64Gauge
	repackedRuns, joinedBatches                                               metric.Int64Counter
	reapedRuns                                                                metric.Int64Counter
	erasedThreads, erasedEvents                                               metric.Int64Counter
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	var failures []error
	counter := func(name, unit, description string) metric.Int64Counter {
		made, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failures = append(failures, err)
		return made
	}
	made := &instruments{
		compactedRuns:    counter("pgagui.compact.runs", "{run}", "Ended runs that compaction processed."),
		compactedEvents:  counter("pgagui.compact.events", "{event}", "Events of the runs that compaction processed."),
		compactedLog:     counter("pgagui.compact.log", "By", "Stored size of the log of the processed runs."),
		snapshots:        counter("pgagui.compact.snapshots", "{snapshot}", "Snapshots that were written."),
		droppedSnapshots: counter("pgagui.compact.dropped_snapshots", "{snapshot}", "Snapshots that were dropped because they were no longer needed."),
		repackedRuns:     counter("pgagui.repack.runs", "{run}", "Ended runs that repacking looked at."),
		joinedBatches:    counter("pgagui.repack.joined", "{batch}", "Batches that were joined into larger ones."),
		reapedRuns:       counter("pgagui.reap.runs", "{run}", "Runs that were closed because they gave no sign of life."),
		erasedThreads:    counter("pgagui.erase.threads", "{thread}", "Threads that were removed for good."),
		erasedEvents:     counter("pgagui.erase.events", "{event}", "Events of the threads that were removed."),
	}
	var err error
	made.left, err = meter.Int64Gauge("pgagui.compact.left", metric.WithUnit("{run}"),
		metric.WithDescription("Ended runs that wait for the next compaction."))
	failures = append(failures, err)
	made.compactQuarantined, err = meter.Int64Gauge("pgagui.compact.quarantined", metric.WithUnit("{run}"),
		metric.WithDescription("Runs that compaction failed at and tries later."))
	failures = append(failures, err)
	made.repackQuarantined, err = meter.Int64Gauge("pgagui.repack.quarantined", metric.WithUnit("{run}"),
		metric.WithDescription("Runs that repacking failed at and tries later."))
	failures = append(failures, err)
	made.reapQuarantined, err = meter.Int64Gauge("pgagui.reap.quarantined", metric.WithUnit("{run}"),
		metric.WithDescription("Runs that reaping failed at and tries later."))
	failures = append(failures, err)
	made.duration, err = meter.Float64Histogram("pgagui.job.duration", metric.WithUnit("s"), metric.WithDescription("How long jobs took."),
		metric.WithExplicitBucketBoundaries(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600))
	failures = append(failures, err)
	return made, errors.Join(failures...)
}

// record adds what a job did to the metrics and to its span.
func (i *instruments) record(ctx context.Context, span trace.Span, result any) {
	count := func(counter metric.Int64Counter, attributeName string, value int64) {
		counter.Add(ctx, value)
		span.SetAttributes(attribute.Int64(attributeName, value))
	}
	switch done := result.(type) {
	case jobs.Compacted:
		count(i.compactedRuns, "pgagui.compact.runs", int64(done.Runs))
		count(i.compactedEvents, "pgagui.compact.events", done.Events)
		count(i.compactedLog, "pgagui.compact.log", done.LogBytes)
		count(i.snapshots, "pgagui.compact.snapshots", int64(done.Snapshots))
		count(i.droppedSnapshots, "pgagui.compact.dropped_snapshots", int64(done.Dropped))
		if done != (jobs.Compacted{}) { // else it failed before it looked
			i.left.Record(ctx, done.Left)
			i.compactQuarantined.Record(ctx, done.Quarantined)
			span.SetAttributes(attribute.Int64("pgagui.compact.left", done.Left))
		}
	case jobs.Repacked:
		count(i.repackedRuns, "pgagui.repack.runs", int64(done.Runs))
		count(i.joinedBatches, "pgagui.repack.joined", int64(done.Joined))
		i.repackQuarantined.Record(ctx, done.Quarantined)
	case jobs.Reaped:
		count(i.reapedRuns, "pgagui.reap.runs", int64(done.Runs))
		i.reapQuarantined.Record(ctx, done.Quarantined)
	case jobs.Erased:
		if !done.DryRun {
			count(i.erasedThreads, "pgagui.erase.threads", int64(done.Threads))
			count(i.erasedEvents, "pgagui.erase.events", done.Events)
		}
	}
}
