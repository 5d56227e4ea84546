package otelagui_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/otelagui"
	"github.com/pgagui/pgagui/worker"
)

// A program that does the upkeep itself, and shows it in the traces and metrics of OpenTelemetry's global providers.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, "postgres://agui@localhost/agui")
	if err != nil {
		log.Fatal(err)
	}
	observe, err := otelagui.Observer(otelagui.Options{})
	if err != nil {
		log.Fatal(err)
	}
	compact := jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) {
		return jobs.Compact(ctx, pool, jobs.CompactOptions{Workers: 2, RunningEvery: 1000})
	}}
	tasks := []worker.Task{{Schedule: "@every 1m", Job: compact}}
	if err := worker.Run(ctx, pool, tasks, worker.Options{Grace: 20 * time.Second, Observe: observe}); err != nil {
		log.Fatal(err)
	}
}
