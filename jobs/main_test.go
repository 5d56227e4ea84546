package jobs_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// With both set, the test binary is a process that does one job and prints a line after each thread or run: one to be killed.
const (
	jobToDo     = "PGAGUI_TEST_JOB"
	jobDatabase = "PGAGUI_TEST_JOB_DATABASE"
)

// killable are the jobs that a process of their own can do.
var killable = map[string]func(context.Context, *pgxpool.Pool, func()) error{
	"compact": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		_, err := jobs.Compact(ctx, pool, jobs.CompactOptions{Workers: 2, Progress: func(jobs.Compacted) { progress() }})
		return err
	},
	"compact-alone": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		_, err := jobs.Compact(ctx, pool, jobs.CompactOptions{})
		return err
	},
	"compact-with-four": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		_, err := jobs.Compact(ctx, pool, jobs.CompactOptions{Workers: 4})
		return err
	},
	"verify-with-four": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		_, err := jobs.Verify(ctx, pool, jobs.VerifyOptions{Workers: 4})
		return err
	},
	"repack": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		_, err := jobs.Repack(ctx, pool, jobs.RepackOptions{OlderThan: new(time.Duration), Progress: func(jobs.Repacked) { progress() }})
		return err
	},
	"reap": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		_, err := jobs.Reap(ctx, pool, jobs.ReapOptions{Progress: func(jobs.Reaped) { progress() }})
		return err
	},
	"webhooks": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		progress()
		_, err := jobs.SendWebhooks(ctx, pool, toLoopback)
		return err
	},
	"erase": func(ctx context.Context, pool *pgxpool.Pool, progress func()) error {
		_, err := jobs.Erase(ctx, pool, jobs.EraseOptions{OlderThan: time.Microsecond, AllScopes: true, Each: func(jobs.ErasedThread) { progress() }})
		return err
	},
}

// scale says how large the threads are that cost much, and how often something is repeated. What a test shows holds for each scale; make
// test-long looks at a larger one.
var scale = flag.Int("scale", 1, "size of what costs much; make test-long has 4")

// scaled is n at the scale 4, and in proportion at others, but never less than least.
func scaled(n, least int) int { return max(n**scale/4, least) }

func TestMain(m *testing.M) {
	job, known := killable[os.Getenv(jobToDo)]
	if !known {
		testdb.Main(m)
		return
	}
	pool, err := pgxpool.New(context.Background(), os.Getenv(jobDatabase))
	if err == nil {
		err = job(context.Background(), pool, func() { fmt.Println("done") })
		fmt.Println("peak", memory.Peak(os.Getpid()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
