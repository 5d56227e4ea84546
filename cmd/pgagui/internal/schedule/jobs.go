package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/jobs"
)

// DefaultGrace is shorter than the time between SIGTERM and SIGKILL: 30 seconds with Kubernetes, 90
// with systemd.
const DefaultGrace = 20 * time.Second

// WebhookFlags are the flags about the endpoints of webhooks, which worker and webhook test share.
type WebhookFlags struct {
	networks  []string
	allowHTTP bool
}

// AddFlags adds the flags.
func (w *WebhookFlags) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&w.networks, "webhook-networks", nil, "`networks` in which webhooks may be, as 10.0.0.0/8, beside public addresses")
	flags.BoolVar(&w.allowHTTP, "webhook-http", false, "also send webhooks to URLs that begin with http://")
}

// Options returns the options of the job, or says what is wrong with the flags.
func (w *WebhookFlags) Options() (options jobs.WebhookOptions, err error) {
	options.AllowHTTP = w.allowHTTP
	for _, text := range w.networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return options, fmt.Errorf("--webhook-networks has %q (expected a network such as 10.0.0.0/8)", text)
		}
		options.Networks = append(options.Networks, network.Masked())
	}
	return options, nil
}

// CompactFlags are the flags about compaction, which compact and worker share.
type CompactFlags struct {
	Workers   int
	OlderThan time.Duration
	Running   bool
	every     int
}

// AddFlags adds the flags.
func (c *CompactFlags) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&c.Workers, "workers", min(4, runtime.NumCPU()), "`number` of threads to compact in parallel, each on its own connection")
	flags.Var((*cli.Age)(&c.OlderThan), "older-than", "compact only runs that ended at least this long ago, for example 30m or 12h")
	flags.BoolVar(&c.Running, "running", c.Running, "also write snapshots of long runs in progress")
	flags.IntVar(&c.every, "every", 1000, "with --running: `number` of events between two snapshots of a run")
}

// Check reports values that cannot be.
func (c *CompactFlags) Check() error {
	if c.Workers < 1 || c.every < 1 {
		return errors.New("--workers and --every must be 1 or more")
	}
	return nil
}

// Options returns the options of the job.
func (c *CompactFlags) Options() jobs.CompactOptions {
	options := jobs.CompactOptions{Workers: c.Workers, OlderThan: c.OlderThan}
	if c.Running {
		options.RunningEvery = c.every
	}
	return options
}

// CompactJob returns the job that compacts.
func CompactJob(pool *pgxpool.Pool, options jobs.CompactOptions) jobs.Job {
	return jobs.Job{Name: "compact", Work: func(ctx context.Context) (any, error) { return jobs.Compact(ctx, pool, options) }}
}

// ReapJob returns the job that closes stale runs.
func ReapJob(pool *pgxpool.Pool, options jobs.ReapOptions) jobs.Job {
	return jobs.Job{Name: "reap", Work: func(ctx context.Context) (any, error) { return jobs.Reap(ctx, pool, options) }}
}

// RepackJob returns the job that repacks.
func RepackJob(pool *pgxpool.Pool, options jobs.RepackOptions) jobs.Job {
	return jobs.Job{Name: "repack", Work: func(ctx context.Context) (any, error) { return jobs.Repack(ctx, pool, options) }}
}

// ProjectJob returns the job that keeps the facts.
func ProjectJob(pool *pgxpool.Pool, options jobs.ProjectOptions) jobs.Job {
	return jobs.Job{Name: "project", Work: func(ctx context.Context) (any, error) { return jobs.Project(ctx, pool, options) }}
}

// RetainJob returns the job that does what the rules of retention say.
func RetainJob(pool *pgxpool.Pool, options jobs.RetainOptions) jobs.Job {
	return jobs.Job{Name: "retain", Work: func(ctx context.Context) (any, error) { return jobs.Retain(ctx, pool, options) }}
}

// WebhooksJob returns the job that sends the requests of webhooks.
func WebhooksJob(pool *pgxpool.Pool, options jobs.WebhookOptions) jobs.Job {
	return jobs.Job{
		Name:    "webhooks",
		HasWork: func(ctx context.Context) (bool, error) { return jobs.HasWebhooksToSend(ctx, pool, options) },
		Work:    func(ctx context.Context) (any, error) { return jobs.SendWebhooks(ctx, pool, options) },
	}
}
