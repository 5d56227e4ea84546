package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/metrics"
	"github.com/pgagui/pgagui/internal/live"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/worker"
)

// Worker runs the jobs of a database, or of each node of a cluster. Each has its own connections, locks
// and schedule, so that one that does not answer holds up no other.
type Worker struct {
	grace     time.Duration
	databases []*database
}

// database is one of a Worker.
type database struct {
	node    string // empty: it has no name
	pool    *pgxpool.Pool
	tasks   []worker.Task
	observe jobs.Observer
	logger  *slog.Logger
	// failed has an item if a job failed since the database was last looked at.
	failed chan struct{}
}

// NewWorker returns the worker of databases: the nodes of a cluster, or one without a name. It does not
// connect yet. The erasure is for scope, unless AllScopes is set. The registry gets the metrics of the
// jobs; nil: none.
func (u *Jobs) NewWorker(ctx context.Context, databases []cluster.Node, scope string, logger *slog.Logger, registry prometheus.Registerer) (_ *Worker, err error) {
	w := &Worker{grace: u.Grace}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	for _, described := range databases {
		d := &database{node: described.Name, logger: logger, failed: make(chan struct{}, 1)}
		if described.Name != "" {
			d.logger = logger.With("node", described.Name)
		}
		if d.pool, err = cli.OpenPool(ctx, described.URL, u.Connections()); err != nil {
			return nil, ofNode(described.Name, err)
		}
		w.databases = append(w.databases, d)
		if d.tasks, err = u.Tasks(ctx, d.pool, scope, d.logger); err != nil {
			return nil, err
		}
		if registry != nil {
			d.observe = metrics.NewJobMetrics(metrics.OfNode(registry, described.Name), d.tasks).Observe
		}
	}
	return w, nil
}

func ofNode(node string, err error) error {
	if node == "" {
		return err
	}
	return fmt.Errorf("node %q: %w", node, err)
}

// AddTo adds the pools of the worker.
func (w *Worker) AddTo(pools metrics.Pools) {
	for _, d := range w.databases {
		pools.Add(d.node, "worker", d.pool)
	}
}

// Check fails if a database cannot be used now.
func (w *Worker) Check(ctx context.Context) error {
	for _, d := range w.databases {
		if err := cli.CheckSchema(ctx, d.pool); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the jobs until ctx ends, and returns when those in progress have ended. The jobs of a
// database that cannot be used wait until it can.
func (w *Worker) Run(ctx context.Context) error {
	errs := make(chan error, len(w.databases))
	for _, d := range w.databases {
		go panics.Task(d.logger, func() { errs <- d.run(ctx, w.grace) }, func(err error) { errs <- err })()
	}
	var failure error
	for range w.databases {
		if err := <-errs; err != nil {
			failure = err
		}
	}
	return failure
}

// Close closes the connections. A connection that a job did not give back would be waited for.
func (w *Worker) Close() {
	for _, d := range w.databases {
		if d.pool.Stat().AcquiredConns() == 0 {
			d.pool.Close()
		}
	}
}

func (d *database) run(ctx context.Context, grace time.Duration) error {
	isUsable := func(ctx context.Context) error { return cli.CheckSchema(ctx, d.pool) }
	for d.await(ctx, isUsable) {
		running, stop := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(panics.Task(d.logger, func() {
			if d.watch(running) {
				stop()
			}
		}, nil))
		err := worker.Run(running, d.pool, d.tasks, worker.Options{Grace: grace, Logger: d.logger, Observe: d.observeJob})
		stop()
		watching.Wait()
		if err != nil {
			return err
		}
		isUsable = d.pool.Ping // its schema may be upgraded while programs run
	}
	return nil
}

const (
	// awayTimeout bounds a look at a database.
	awayTimeout = 5 * time.Second
	// The pauses between attempts to reach a database.
	shortestPause, longestPause = time.Second, 30 * time.Second
)

// await returns when the database can be used; false: ctx has ended.
func (d *database) await(ctx context.Context, isUsable func(context.Context) error) bool {
	pauses := live.Pauses(shortestPause, longestPause)
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := d.look(ctx, isUsable)
		if err == nil {
			if attempt > 1 {
				d.logger.Info("the database can be used, its jobs begin")
			}
			return true
		}
		pause := pauses.NextBackOff()
		if ctx.Err() == nil {
			d.logger.Warn("the database cannot be used, its jobs wait", "error", err, "retryIn", pause.Round(time.Millisecond))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return false
}

func (d *database) look(ctx context.Context, isUsable func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, awayTimeout)
	defer cancel()
	return isUsable(ctx)
}

// watch looks at the database after each failure of a job. It returns true if the database is away,
// false when ctx ends.
func (d *database) watch(ctx context.Context) (isAway bool) {
	for {
		select {
		case <-d.failed:
			if err := d.look(ctx, d.pool.Ping); err != nil && ctx.Err() == nil {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// observeJob notes failures, beside what the observer does.
func (d *database) observeJob(ctx context.Context, job string) (context.Context, func(jobs.Report, error)) {
	ended := func(jobs.Report, error) {}
	if d.observe != nil {
		ctx, ended = d.observe(ctx, job)
	}
	return ctx, func(report jobs.Report, err error) {
		ended(report, err)
		if err != nil {
			select {
			case d.failed <- struct{}{}:
			default: // one look is enough
			}
		}
	}
}
