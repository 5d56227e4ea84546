package serve

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/telemetry"
	"github.com/pgagui/pgagui/server"
)

// tracing makes the spans of the server, for OpenTelemetry: those of requests, of runs, and of the
// requests to agents, which receive the context of the trace (W3C).
type tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	options  []otelhttp.Option
}

// newTracingFromEnvironment returns what the standard variables of OpenTelemetry ask for, or nil if
// they name no endpoint. The sampler reads the other variables.
func newTracingFromEnvironment(ctx context.Context) (*tracing, error) {
	if !telemetry.IsOn() {
		return nil, nil
	}
	exporter, described, err := telemetry.Exporter(ctx, cli.Version())
	if err != nil {
		return nil, err
	}
	return newTracing(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))), nil
}

func newTracing(provider *sdktrace.TracerProvider) *tracing {
	return &tracing{
		provider: provider, tracer: provider.Tracer("github.com/pgagui/pgagui/cmd/pgagui"),
		options: []otelhttp.Option{otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{})},
	}
}

// handler makes a span of each request but the checks of load balancers.
func (t *tracing) handler(next http.Handler) http.Handler {
	return otelhttp.NewHandler(next, "request", append(t.options, otelhttp.WithFilter(func(r *http.Request) bool {
		return r.URL.Path != "/healthz" && r.URL.Path != "/readyz"
	}))...)
}

// transport makes a span of each request to an agent.
func (t *tracing) transport(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next, t.options...)
}

// observeRun makes a span of a run, which ends when the end of the run is committed. It belongs to
// the trace of the request. The request usually ends first, so its span has a link to that of the
// run.
func (t *tracing) observeRun(request, background context.Context, run server.ObservedRun) (context.Context, func(string, error)) {
	poster := trace.SpanFromContext(request)
	ctx, span := t.tracer.Start(trace.ContextWithSpan(background, poster), "run "+run.Agent, trace.WithAttributes(
		attribute.String("pgagui.agent", run.Agent), attribute.String("pgagui.scope", run.Scope),
		attribute.String("pgagui.thread_id", run.ThreadID), attribute.String("pgagui.run_id", run.RunID),
		attribute.String("pgagui.parent_run_id", run.ParentRunID),
	))
	poster.AddLink(trace.Link{SpanContext: span.SpanContext()})
	return ctx, func(outcome string, err error) {
		span.SetAttributes(attribute.String("pgagui.outcome", outcome))
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// traceFlushTimeout bounds the export of the last spans.
const traceFlushTimeout = 5 * time.Second

// shutDown exports the last spans.
func (t *tracing) shutDown() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceFlushTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // the exporter reports its errors
}
