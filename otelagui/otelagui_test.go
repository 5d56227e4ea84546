package otelagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/otelagui"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestJobsShowInTracesAndMetrics(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for _, run := range []string{"a", "b"} {
		if _, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: run}, []json.RawMessage{
			json.RawMessage(`{"type":"RUN_STARTED"}`), json.RawMessage(`{"type":"RUN_FINISHED"}`),
		}, pgagui.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	spans := tracetest.NewSpanRecorder()
	reader := sdkmetric.NewManualReader()
	observe, err := otelagui.Observer(otelagui.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	must.Do(t, err)

	compact := jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
		return jobs.Compact(ctx, pool, jobs.CompactOptions{MaxRuns: 1})
	}}
	failing := jobs.Job{Name: "repack", Work: func(context.Context) (any, error) { return jobs.Repacked{Joined: 3}, errors.New("no luck") }}
	busy := jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
		return compact.Run(ctx, pool, observe) // which is skipped, in a span within
	}}
	reap := jobs.Job{Name: "reap", Work: func(context.Context) (any, error) { return jobs.Reaped{Runs: 2}, nil }}
	for _, job := range []jobs.Job{compact, failing, busy, reap} {
		if _, err := job.Run(t.Context(), pool, observe); (err != nil) != (job.Name == "repack") {
			t.Errorf("job %s: error %v", job.Name, err)
		}
	}

	var got []string
	for _, span := range spans.Ended() {
		attributes := attribute.NewSet(span.Attributes()...)
		outcome, _ := attributes.Value(otelagui.JobOutcomeKey)
		runs, _ := attributes.Value("pgagui.compact.runs")
		got = append(got, fmt.Sprintf("%s %s, runs %d, error %t, inside another %t",
			span.Name(), outcome.AsString(), runs.AsInt64(), span.Status().Code == codes.Error, span.Parent().IsValid()))
	}
	want := []string{
		"pgagui compact done, runs 1, error false, inside another false",
		"pgagui repack failed, runs 0, error true, inside another false",
		"pgagui compact skipped, runs 0, error false, inside another true",
		"pgagui compact done, runs 0, error false, inside another false",
		"pgagui reap done, runs 0, error false, inside another false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("spans:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	var collected metricdata.ResourceMetrics
	must.Do(t, reader.Collect(t.Context(), &collected))
	values := map[string]string{}
	for _, metric := range collected.ScopeMetrics[0].Metrics {
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			values[metric.Name] = fmt.Sprint(data.DataPoints[0].Value, metric.Unit)
		case metricdata.Gauge[int64]:
			values[metric.Name] = fmt.Sprint(data.DataPoints[0].Value, metric.Unit)
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				job, _ := point.Attributes.Value(otelagui.JobNameKey)
				outcome, _ := point.Attributes.Value(otelagui.JobOutcomeKey)
				values[metric.Name+" "+job.AsString()+" "+outcome.AsString()] = fmt.Sprint(point.Count, metric.Unit)
			}
		}
	}
	for name, want := range map[string]string{
		"pgagui.compact.runs": "1{run}", "pgagui.compact.events": "2{event}", "pgagui.compact.left": "1{run}",
		"pgagui.compact.quarantined": "0{run}", "pgagui.repack.quarantined": "0{run}", "pgagui.reap.quarantined": "0{run}",
		"pgagui.repack.joined":                "3{batch}",
		"pgagui.reap.runs":                    "2{run}",
		"pgagui.job.duration compact done":    "2s",
		"pgagui.job.duration compact skipped": "1s",
		"pgagui.job.duration repack failed":   "1s",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q; all: %v", name, values[name], want, values)
		}
	}
}

func TestARecorderShowsInMetrics(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	options := otelagui.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}
	quiet := slog.New(slog.DiscardHandler)

	stored := pgagui.New(testdb.Pool(t), nil).NewRecorder(nil)
	away := pgagui.New(unreachable{testdb.Pool(t)}, nil).NewRecorder(&pgagui.RecorderConfig{Logger: quiet, CloseTimeout: time.Millisecond})
	for name, recorder := range map[string]*pgagui.Recorder{"stored": stored, "away": away} {
		stop := must.Have(otelagui.ObserveRecorder(recorder, options, attribute.String("recorder", name)))(t)
		defer stop()
		recording, err := recorder.Begin(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
		must.Do(t, err)
		err = recording.Record(t.Context(), json.RawMessage(`{"type":"RUN_STARTED"}`), json.RawMessage(`{"type":"RUN_FINISHED"}`))
		must.Do(t, err)
	}
	must.Do(t, stored.Close(t.Context()))
	wait.For(t, "two retries", func() bool { return away.Stats().Retries >= 2 })

	var collected metricdata.ResourceMetrics
	must.Do(t, reader.Collect(t.Context(), &collected))
	values := map[string]float64{}
	for _, metric := range collected.ScopeMetrics[0].Metrics {
		add := func(set attribute.Set, value float64) {
			recorder, _ := set.Value("recorder")
			values[metric.Name+" "+recorder.AsString()] = value
		}
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				add(point.Attributes, float64(point.Value))
			}
		case metricdata.Gauge[int64]:
			for _, point := range data.DataPoints {
				add(point.Attributes, float64(point.Value))
			}
		case metricdata.Gauge[float64]:
			for _, point := range data.DataPoints {
				add(point.Attributes, point.Value)
			}
		}
	}
	for name, want := range map[string]float64{
		"pgagui.recorder.events stored": 2, "pgagui.recorder.batches stored": 1, "pgagui.recorder.commits stored": 1,
		"pgagui.recorder.buffered stored": 0, "pgagui.recorder.repeating stored": 0, "pgagui.recorder.repeats stored": 0,
		"pgagui.recorder.buffered away": 2, "pgagui.recorder.events away": 0, "pgagui.recorder.failed away": 0,
	} {
		if got, found := values[name]; got != want || !found {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if values["pgagui.recorder.repeating away"] <= 0 || values["pgagui.recorder.repeats away"] < 2 {
		t.Errorf("the one that repeats: %v", values)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := away.Close(ended); err == nil {
		t.Error("it has stored what it could not")
	}
}

// unreachable is a database that does not answer.
type unreachable struct{ *pgxpool.Pool }

func (unreachable) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, io.EOF }

// A caller that imports the packages of the core builds nothing of OpenTelemetry or of the scheduler.
func TestTheCoreIsFreeOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/pgagui/pgagui", "github.com/pgagui/pgagui/compaction",
		"github.com/pgagui/pgagui/db", "github.com/pgagui/pgagui/jobs").Output()
	must.Do(t, err)
	if !strings.Contains(string(output), "github.com/jackc/pgx/v5\n") {
		t.Fatalf("go list -deps: %s", output)
	}
	for dependency := range strings.FieldsSeq(string(output)) {
		if strings.HasPrefix(dependency, "go.opentelemetry.io/") || strings.HasPrefix(dependency, "github.com/robfig/cron") {
			t.Errorf("the core depends on %s", dependency)
		}
	}
}
