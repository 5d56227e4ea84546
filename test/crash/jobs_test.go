package crash

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/jobs"
)

// jobsTask is what a process that does the upkeep has to do: one job after the other.
type jobsTask struct {
	URL string `json:"url"`
}

func (t jobsTask) databaseURL() string { return t.URL }

// jobsLine is what such a process prints.
type jobsLine struct {
	// Problem is what must not happen.
	Problem string `json:"problem"`
}

func keepUp(_ jobsTask, pool *pgxpool.Pool, stage *stage) error {
	for stage.finish.Err() == nil {
		for _, err := range doJobs(stage.finish, pool) {
			// Outages and damaged threads fail jobs, and nothing else does.
			if err != nil && strings.Contains(err.Error(), "panic") {
				stage.print(jobsLine{Problem: err.Error()})
			}
		}
		stage.pause(10 * time.Millisecond)
	}
	return nil
}

// doJobs does each job once, in Go and in SQL.
func doJobs(ctx context.Context, pool *pgxpool.Pool) (errs []error) {
	for _, job := range []jobs.Job{
		{Name: "compact", Work: func(ctx context.Context) (any, error) {
			return jobs.Compact(ctx, pool, jobs.CompactOptions{Workers: 2, RunningEvery: 20})
		}},
		{Name: "repack", Work: func(ctx context.Context) (any, error) {
			return jobs.Repack(ctx, pool, jobs.RepackOptions{OlderThan: new(time.Duration)})
		}},
		{Name: "reap", Work: func(ctx context.Context) (any, error) { return jobs.Reap(ctx, pool, jobs.ReapOptions{}) }},
	} {
		if _, err := job.Run(ctx, pool, nil); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", job.Name, err))
		}
	}
	for _, call := range []string{`agui.compact(20)`, `agui.compact_running(20)`, `agui.repack(20)`, `agui.reap()`} {
		if _, err := pool.Exec(ctx, `call `+call); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", call, err))
		}
	}
	return errs
}
