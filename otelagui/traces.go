package otelagui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pgagui/pgagui"
)

// Traces sends the runs that have ended to OpenTelemetry, as spans after its conventions for generative
// AI:
//
//	invoke_agent {agent}    a run: its agent, conversation, tokens, and model if there is one
//	invoke_agent {name}     a subagent
//	execute_tool {tool}     a tool call, in the span of its subagent or of the run
//	chat {model}            all calls of a model, if the run used several
//
// Start and end are those in the log. The trace and the spans of a run have the ids that [RunSpanContext]
// makes of its scope, its thread and its id, so a run that is sent twice has the same ids. A run that
// continues another is a trace of its own, with a link to the span of that run. If the metadata of
// RUN_STARTED, or the forwardedProps in its input, have a member traceparent (W3C), the run belongs to that
// trace, as a child of that span, and is sampled with it.
//
// A tool call without a result in its run ends with its own last event, or with the run if that cut it off.
// Results that a client sends with the next run come too late for the trace.
//
// The methods may be called at the same time, and then wait for one another.
type Traces struct {
	store    *pgagui.Store
	exporter sdktrace.SpanExporter
	options  TracesOptions

	mutex  sync.Mutex
	tracer trace.Tracer
	ended  endedSpans
	// The runs that were read last.
	known map[runName]knownRun
	// Those whose spans the exporter does not have yet, up to which seq.
	unsent map[runName]int64
}

// knownRun saves reading a run another time.
type knownRun struct {
	span trace.SpanContext
	// sentSeq is up to where the run was sent. 0: it was not.
	sentSeq int64
}

// TracesOptions belong to NewTraces. The zero value sends all runs of the Store's scope, without contents.
type TracesOptions struct {
	// AllScopes sends the runs of all scopes that the role sees, not only of the Store's.
	AllScopes bool
	// Consumer is the name of the consumer that keeps the place of SendNew and Run (Store.Consumer). "traces"
	// if empty.
	Consumer string
	// MaxAge leaves out runs that ended longer ago. Most services refuse old spans. 0: all runs are sent.
	MaxAge time.Duration
	// Contents adds what users, models and tools say: the last messages of the input, the answers, and
	// the arguments and results of tools. Without it the spans have names, ids, times and counts, and the
	// messages of RUN_ERROR. A content that is longer than 128 Ki characters is cut, unless
	// OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT sets another length.
	Contents bool
	// Resource describes what sends the spans. nil: resource.Default, which reads OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES.
	Resource *resource.Resource
	// Interval is the time between two looks of Run at the store. 5 seconds if zero.
	Interval time.Duration
	// Logger gets the errors of Run. slog.Default() if nil.
	Logger *slog.Logger
}

// TracesSent is the result of Traces.SendNew.
type TracesSent struct {
	// Runs is the number of runs that were sent.
	Runs int `json:"runs"`
	// Left is true if there may be more.
	Left bool `json:"left,omitempty"`
}

// LogValue returns the counts as a group for slog.
func (s TracesSent) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("runs", s.Runs), slog.Bool("left", s.Left))
}

const (
	defaultInterval = 5 * time.Second
	maxPause        = time.Minute

	// Of one call of the exporter. Collectors take messages of some megabytes.
	mostSpans   = 512
	mostText    = 1 << 20
	mostContent = 128 << 10 // characters of one attribute

	mostKnown = 10_000
)

// NewTraces returns a Traces that reads from store and gives its spans to exporter, such as that of
// otlptracehttp. The caller shuts the exporter down. The sampler is that of the environment
// (OTEL_TRACES_SAMPLER); it decides alike each time that a run is sent.
func NewTraces(store *pgagui.Store, exporter sdktrace.SpanExporter, options TracesOptions) *Traces {
	options.Consumer = cmp.Or(options.Consumer, "traces")
	if options.Interval == 0 {
		options.Interval = defaultInterval
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Resource == nil {
		options.Resource = resource.Default()
	}
	limits := sdktrace.NewSpanLimits() // of the environment
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = mostContent
	}
	t := &Traces{store: store, exporter: exporter, options: options, known: map[runName]knownRun{}, unsent: map[runName]int64{}}
	t.tracer = sdktrace.NewTracerProvider(
		sdktrace.WithIDGenerator(chosenIDs{}), sdktrace.WithSpanProcessor(&t.ended),
		sdktrace.WithRawSpanLimits(limits), sdktrace.WithResource(options.Resource),
	).Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	return t
}

// Send sends the runs that ended behind a position that the caller keeps, up to 1,000 changes of them, and
// returns the position to continue from. Empty: it begins with all runs. If next is after, there is nothing to
// send now. It only reads the database, so it works on a standby.
//
// The exporter has taken all spans of the runs up to next, also if Send returns an error: continue there.
// A run that took events after its end is sent once more, with the same ids. So is any run, if its position
// is lost; the same Traces leaves out those that it has sent last. A run that cannot be read, because its log is
// damaged, is logged and left out.
//
// Errors: ErrOtherHistory (the database was restored or failed over, so begin with ""), ErrInvalidArgument
// (not a position), and those of the exporter.
func (t *Traces) Send(ctx context.Context, after string) (next string, err error) {
	changes, err := t.store.Changes(ctx, pgagui.ChangesOptions{After: after, AllScopes: t.options.AllScopes})
	if err != nil {
		return after, fmt.Errorf("traces: %w", err)
	}
	next, _, err = t.send(ctx, after, changes)
	return next, err
}

// SendNew does the same with the place of a consumer, which it moves. The first call begins with all runs. If
// the database was restored or failed over, the consumer begins again. It needs the rights of agui_writer. Let one
// process at a time call it, for instance in a jobs.Job: two may both send a run.
func (t *Traces) SendNew(ctx context.Context) (TracesSent, error) {
	consumer := t.store.Consumer(t.options.Consumer)
	if t.options.AllScopes {
		consumer = t.store.ConsumerOfAllScopes(t.options.Consumer)
	}
	changes, err := consumer.Changes(ctx, 0)
	if errors.Is(err, pgagui.ErrOtherHistory) {
		t.options.Logger.Warn("traces: the consumer begins again with all runs", "consumer", t.options.Consumer, "error", err)
		return TracesSent{Left: true}, consumer.Move(ctx, "")
	}
	if err != nil {
		return TracesSent{}, fmt.Errorf("traces: %w", err)
	}
	next, runs, err := t.send(ctx, "", changes)
	if next != "" {
		err = errors.Join(err, consumer.Move(ctx, next))
	}
	return TracesSent{Runs: runs, Left: len(changes) > 0}, err
}

// Run calls SendNew until ctx ends, and then returns. If sending fails, Run logs the error and retries with
// backoff, up to a minute. What the exporter does not take is not left out: a run that a service refuses for
// ever stops the runs behind it.
func (t *Traces) Run(ctx context.Context) {
	pause := t.options.Interval
	for {
		sent, err := t.SendNew(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			t.options.Logger.Error("traces were not sent", "error", err, "retry_after", pause.String())
		case sent.Left:
			continue
		default:
			pause = t.options.Interval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err != nil {
			pause = min(2*pause, max(maxPause, t.options.Interval))
		}
	}
}

// send sends the runs of changes, and returns the position of the last one that the exporter has, else after.
func (t *Traces) send(ctx context.Context, after string, changes []pgagui.Change) (next string, runs int, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	defer func() {
		t.ended.take()
		clear(t.unsent)
	}()
	for i, change := range changes {
		if err := t.sendRun(ctx, change); err != nil {
			return after, runs, err
		}
		if i == len(changes)-1 || t.ended.isLarge() {
			n := len(t.unsent)
			if err := t.export(ctx); err != nil {
				return after, runs, fmt.Errorf("traces up to run %q of thread %q: %w", change.RunID, change.ThreadID, err)
			}
			after, runs = change.Position, runs+n
		}
	}
	return after, runs, nil
}

// sendRun makes the spans of a run that has ended.
func (t *Traces) sendRun(ctx context.Context, change pgagui.Change) error {
	isOld := t.options.MaxAge > 0 && time.Since(change.EndedAt) > t.options.MaxAge
	name := runName{change.Scope, change.ThreadID, change.RunID}
	if change.IsErased || change.Status == pgagui.Running || isOld || t.known[name].sentSeq == change.LastSeq || t.unsent[name] == change.LastSeq {
		return nil
	}
	run, err := t.read(ctx, change)
	switch {
	case errors.Is(err, pgagui.ErrUnknownThread), errors.Is(err, pgagui.ErrUnknownRun):
		return nil // it was erased meanwhile
	case isOfRun(err):
		t.options.Logger.Error("traces: a run is left out, because it cannot be read", "scope", change.Scope, "thread", change.ThreadID, "run", change.RunID, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("traces: read run %q of thread %q: %w", change.RunID, change.ThreadID, err)
	}
	t.makeSpans(run)
	t.unsent[name] = change.LastSeq
	return nil
}

// isOfRun reports whether an error comes from what a run contains, and would come each time.
func isOfRun(err error) bool {
	for _, kind := range []error{pgagui.ErrLogDamaged, pgagui.ErrLimitExceeded, pgagui.ErrFoldLimit} {
		if errors.Is(err, kind) {
			return true
		}
	}
	var server *pgconn.PgError
	return errors.As(err, &server) && slices.Contains([]string{"22", "54", "XX"}, server.Code[:min(2, len(server.Code))])
}

func (t *Traces) export(ctx context.Context) error {
	spans := t.ended.take()
	for len(spans) > 0 {
		n, text := 0, 0
		for n < len(spans) && n < mostSpans && (n == 0 || text < mostText) {
			text += sizeOf(spans[n])
			n++
		}
		if err := t.exporter.ExportSpans(ctx, spans[:n]); err != nil {
			return err
		}
		spans = spans[n:]
	}
	for name, seq := range t.unsent {
		if run, isKnown := t.known[name]; isKnown {
			t.known[name] = knownRun{run.span, seq}
		}
	}
	clear(t.unsent)
	return nil
}
