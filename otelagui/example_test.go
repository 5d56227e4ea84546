package otelagui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/otelagui"
	"github.com/pgagui/pgagui/worker"
)

// A program runs the background jobs itself, and reports them to OpenTelemetry's global providers.
func Example() {
	ctx, cancel := context.WithCancel(context.Background()) // or signal.NotifyContext
	defer cancel()
	pool, closePool := testdb.Example() // pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	defer closePool()
	_, err := pgagui.New(pool, nil).Append(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`),
		json.RawMessage(`{"type":"RUN_FINISHED","threadId":"thread-1","runId":"run-1"}`),
	}, pgagui.AppendOptions{})
	if err != nil {
		log.Fatal(err)
	}

	observe, err := otelagui.Observer(otelagui.Options{})
	if err != nil {
		log.Fatal(err)
	}
	compact := jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
		compacted, err := jobs.Compact(ctx, pool, jobs.CompactOptions{Workers: 2})
		fmt.Println(compacted.Runs, "run compacted")
		cancel() // here one round is enough
		return compacted, err
	}}
	tasks := []worker.Task{{Schedule: "@every 1s", Job: compact}}
	if err := worker.Run(ctx, pool, tasks, worker.Options{Grace: 20 * time.Second, Observe: observe}); err != nil {
		log.Fatal(err)
	}
	// Output: 1 run compacted
}

// A program sends the runs that end to a collector of OpenTelemetry.
func ExampleTraces() {
	ctx := context.Background()
	pool, closePool := testdb.Example() // pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	defer closePool()
	store := pgagui.New(pool, nil)
	_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}`),
		json.RawMessage(`{"type":"TOOL_CALL_START","toolCallId":"call-1","toolCallName":"search"}`),
		json.RawMessage(`{"type":"TOOL_CALL_END","toolCallId":"call-1"}`),
		json.RawMessage(`{"type":"TOOL_CALL_RESULT","toolCallId":"call-1","messageId":"m1","content":"found"}`),
		json.RawMessage(`{"type":"RUN_FINISHED","threadId":"thread-1","runId":"run-1"}`),
	}, pgagui.AppendOptions{})
	if err != nil {
		log.Fatal(err)
	}

	exporter := tracetest.NewInMemoryExporter() // otlptracehttp.New(ctx)
	traces := otelagui.NewTraces(store, exporter, otelagui.TracesOptions{MaxAge: time.Hour})
	if _, err := traces.Send(ctx, ""); err != nil { // or Run, until the program ends
		log.Fatal(err)
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// invoke_agent
	// execute_tool search
}
