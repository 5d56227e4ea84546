// Package metrics has the metrics of serve and worker, beside those of package server.
// docs/reference/metrics.md lists all.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/worker"
)

// NewRegistry returns a registry with the metrics of every process: those of Go, of the process, and its version.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pgagui_build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": cli.Version(), "go": runtime.Version()},
	})
	build.Set(1)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return registry
}

// Listen listens on the address of --metrics-listen.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	return listener, nil
}

// URL returns the address of the metrics that are served on a listener.
func URL(listener net.Listener) string {
	return "http://" + listener.Addr().String() + "/metrics"
}

// NewServer serves the metrics of a registry.
func NewServer(registry *prometheus.Registry, logger *slog.Logger) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// JobMetrics counts what the jobs of this process do.
type JobMetrics struct {
	runs, duration           *prometheus.CounterVec
	running                  *prometheus.GaugeVec
	lastSuccess, lastFailure *prometheus.GaugeVec
}

// NewJobMetrics registers the metrics of jobs.
func NewJobMetrics(registry prometheus.Registerer, tasks []worker.Task) *JobMetrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pgagui_job_" + name, Help: help}, []string{"name"})
	}
	m := &JobMetrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgagui_job_runs_total", Help: "Times that a job ended: done, failed, or skipped because another process does it or the server is a standby.",
		}, []string{"name", "outcome"}),
		duration:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pgagui_job_seconds_total", Help: "Time that a job took."}, []string{"name"}),
		running:     gauge("in_progress", "1 while the job runs in this process."),
		lastSuccess: gauge("last_success_timestamp_seconds", "When the job last ended without an error. 0: not in this process."),
		lastFailure: gauge("last_failure_timestamp_seconds", "When the job last failed. 0: not in this process."),
	}
	for _, task := range tasks { // a rate needs the zero before the first one
		job := task.Job.Name
		for _, outcome := range []string{jobDone, jobSkipped, jobFailed} {
			m.runs.WithLabelValues(job, outcome)
		}
		m.duration.WithLabelValues(job)
		for _, gauge := range []*prometheus.GaugeVec{m.running, m.lastSuccess, m.lastFailure} {
			gauge.WithLabelValues(job)
		}
	}
	registry.MustRegister(m.runs, m.duration, m.running, m.lastSuccess, m.lastFailure)
	return m
}

const jobDone, jobSkipped, jobFailed = "done", "skipped", "failed"

// Observe is a jobs.Observer.
func (m *JobMetrics) Observe(ctx context.Context, job string) (context.Context, func(jobs.Report, error)) {
	m.running.WithLabelValues(job).Set(1)
	return ctx, func(report jobs.Report, err error) {
		m.running.WithLabelValues(job).Set(0)
		m.duration.WithLabelValues(job).Add(report.Duration.Seconds())
		outcome := jobDone
		switch {
		case err != nil:
			outcome = jobFailed
			m.lastFailure.WithLabelValues(job).SetToCurrentTime()
		case report.Skipped != "" && report.Skipped != jobs.SkippedIdle:
			outcome = jobSkipped
		default:
			m.lastSuccess.WithLabelValues(job).SetToCurrentTime()
		}
		m.runs.WithLabelValues(job, outcome).Inc()
	}
}

// OfNode returns the registry for the metrics of a node of a cluster: they get the label node. Without a
// name it is the registry.
func OfNode(registry prometheus.Registerer, node string) prometheus.Registerer {
	if node == "" {
		return registry
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"node": node}, registry)
}

// Pools are the connection pools of the process, by node and by their names. Without a cluster the node
// is empty.
type Pools map[string]poolMetrics

// Add adds a pool.
func (p Pools) Add(node, name string, pool *pgxpool.Pool) {
	if p[node] == nil {
		p[node] = poolMetrics{}
	}
	p[node][name] = pool
}

// AddStandby adds the pool to a standby of a node, the reads of requests, by the number of the standby.
func (p Pools) AddStandby(node string, number int, pool *pgxpool.Pool) {
	p.Add(node, fmt.Sprint(standbyPrefix, number), pool)
}

// standbyPrefix begins the names of pools to standbys.
const standbyPrefix = "reads "

// Register registers the metrics of the pools, and of nodes whether they answer.
func (p Pools) Register(registry prometheus.Registerer) {
	for node, pools := range p {
		OfNode(registry, node).MustRegister(pools)
		if node != "" {
			OfNode(registry, node).MustRegister(newNodeUp(pools))
		}
	}
}

// newNodeUp returns a metric that says whether a node answers.
func newNodeUp(pools poolMetrics) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pgagui_node_up", Help: "1 if the node of the cluster answers within a second."}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
		defer cancel()
		for name, pool := range pools {
			if !strings.HasPrefix(name, standbyPrefix) && pool.Ping(ctx) == nil {
				return 1
			}
		}
		return 0
	})
}

// poolMetrics reports the connection pools of a database, by their names.
type poolMetrics map[string]*pgxpool.Pool

var (
	poolConnections = newDesc("pool_connections", "Connections of the pool, by state: idle, in_use, or constructing.", "pool", "state")
	poolMax         = newDesc("pool_max_connections", "Most connections that the pool may have.", "pool")
	poolAcquires    = newDesc("pool_acquires_total", "Times that a connection was taken from the pool.", "pool")
	poolWaits       = newDesc("pool_waits_total", "Times that no connection was free, so that the caller had to wait.", "pool")
	poolWaited      = newDesc("pool_wait_seconds_total", "Time that callers waited because no connection was free.", "pool")
	poolCancelled   = newDesc("pool_cancelled_acquires_total", "Times that the caller gave up waiting for a connection.", "pool")
	poolOpened      = newDesc("pool_connections_opened_total", "Connections that the pool has opened.", "pool")
)

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pgagui_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (p poolMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{poolConnections, poolMax, poolAcquires, poolWaits, poolWaited, poolCancelled, poolOpened} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (p poolMetrics) Collect(to chan<- prometheus.Metric) {
	for name, pool := range p {
		stat := pool.Stat()
		gauge := func(desc *prometheus.Desc, value int32, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{name}, labels...)...)
		}
		counter := func(desc *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, name)
		}
		gauge(poolConnections, stat.IdleConns(), "idle")
		gauge(poolConnections, stat.AcquiredConns(), "in_use")
		gauge(poolConnections, stat.ConstructingConns(), "constructing")
		gauge(poolMax, stat.MaxConns())
		counter(poolAcquires, float64(stat.AcquireCount()))
		counter(poolWaits, float64(stat.EmptyAcquireCount()))
		counter(poolWaited, stat.EmptyAcquireWaitTime().Seconds())
		counter(poolCancelled, float64(stat.CanceledAcquireCount()))
		counter(poolOpened, float64(stat.NewConnsCount()))
	}
}

// StoreMetrics reports what the database holds and what waits in it: agui.lag and agui.stats. A scrape gets what was read last, and waits scrapePatience at most.
type StoreMetrics struct {
	pool   *pgxpool.Pool
	cancel context.CancelFunc
	lag    reading[lag]
	stats  reading[jobs.Stats]
}

// NewStoreMetrics opens a pool of its own, so that a scrape shows what waits also when requests
// have taken all other connections. It does not connect yet.
func NewStoreMetrics(ctx context.Context, databaseURL string, logger *slog.Logger) (*StoreMetrics, error) {
	pool, err := cli.OpenPool(ctx, databaseURL, 2) // one for each function
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &StoreMetrics{pool: pool, cancel: cancel}
	m.lag = reading[lag]{
		view: "lag", ctx: ctx, logger: logger, every: 5 * time.Second, timeout: 5 * time.Second, keep: time.Minute,
		read: func(ctx context.Context) (read lag, err error) {
			if read.Lag, err = jobs.ReadLag(ctx, pool, jobs.StatsOptions{}); err == nil {
				read.consumers, err = pgagui.New(pool, nil).Consumers(ctx)
			}
			return read, err
		},
	}
	// Sizes change slowly, so they are read seldom.
	m.stats = reading[jobs.Stats]{
		view: "stats", ctx: ctx, logger: logger, every: 5 * time.Minute, timeout: time.Minute, keep: 15 * time.Minute,
		read: func(ctx context.Context) (jobs.Stats, error) {
			stats, err := jobs.ReadStats(ctx, pool, jobs.StatsOptions{})
			if err == nil && stats.LogDiskBytes == 0 {
				err = errOneScope
			}
			return stats, err
		},
	}
	return m, nil
}

// lag is what waits: for jobs, and for the consumers of the feed.
type lag struct {
	jobs.Lag
	consumers []pgagui.ConsumerPlace
}

// errOneScope means that the functions would count one tenant only.
var errOneScope = errors.New("row-level security shows this role one scope only: grant pg_monitor to it, " +
	"or let the jobs have an operator's role (--worker-database-url)")

// Stores are the metrics of the stores of databases.
type Stores []*StoreMetrics

// RegisterStores registers the metrics of what databases hold: nodes of a cluster, or one without a name.
func RegisterStores(ctx context.Context, registry prometheus.Registerer, databases []cluster.Node, logger *slog.Logger) (stores Stores, err error) {
	for _, database := range databases {
		of := logger
		if database.Name != "" {
			of = logger.With("node", database.Name)
		}
		store, err := NewStoreMetrics(ctx, database.URL, of)
		if err != nil {
			stores.Close()
			return nil, err
		}
		stores = append(stores, store)
		OfNode(registry, database.Name).MustRegister(store)
	}
	return stores, nil
}

// Close ends the reading.
func (s Stores) Close() {
	for _, store := range s {
		store.Close()
	}
}

// Close ends the reading. The pool closes when the connections are back.
func (m *StoreMetrics) Close() {
	m.cancel()
	go m.pool.Close()
}

var (
	storeUp          = newDesc("store_up", "1 if agui.lag or agui.stats could be read lately; else its metrics are missing.", "view")
	storeToCompact   = newDesc("store_runs_to_compact", "Ended runs that compaction has not processed yet, counted up to 100,000.")
	storeCompactLag  = newDesc("store_compaction_lag_seconds", "Time since the oldest run that waits for compaction ended. 0: none waits.")
	storeToRepack    = newDesc("store_runs_to_repack", "Ended runs that are due to be repacked, counted up to 100,000.")
	storeRepackLag   = newDesc("store_repack_lag_seconds", "Time since the oldest run that is due to be repacked ended. 0: none waits.")
	storeRunning     = newDesc("store_runs_in_progress", "Runs in progress, of all writers.")
	storeStale       = newDesc("store_runs_stale", "Runs in progress without a sign of life within their lease: their writers are gone.")
	storeSilence     = newDesc("store_longest_silence_seconds", "Longest time since the last sign of life of a run in progress. 0: none is in progress.")
	storeQuarantined = newDesc("store_runs_quarantined", "Runs that a job failed to process and retries with backoff (agui.quarantine).")
	storeBehind      = newDesc("store_consumer_behind_runs", "Changed runs that a consumer of the feed has not processed, counted up to 10,000. +Inf: its place is of before a restore. The scope of one of all scopes is *.", "consumer", "scope")
	storeThreads     = newDesc("store_threads", "Threads. Estimated if there are many.")
	storeErased      = newDesc("store_threads_erased", "Erased threads whose erasure was not lifted. Estimated if there are many.")
	storeRuns        = newDesc("store_runs", "Runs that have ended, by outcome: finished, interrupted, cancelled, failed or cut_off. Estimated if there are many.", "outcome")
	storeEvents      = newDesc("store_events", "Events of the runs that have ended. Estimated if there are many.")
	storeBytes       = newDesc("store_disk_bytes", "Bytes on disk with indexes and dead rows, by part: log, snapshots, tree, or session.", "part")
)

// Describe implements prometheus.Collector.
func (m *StoreMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		storeUp, storeToCompact, storeCompactLag, storeToRepack, storeRepackLag, storeRunning, storeStale, storeSilence, storeQuarantined, storeBehind,
		storeThreads, storeErased, storeRuns, storeEvents, storeBytes,
	} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *StoreMetrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	up := func(view string, isUp bool) {
		value := 0.0
		if isUp {
			value = 1
		}
		gauge(storeUp, value, view)
	}
	deadline := time.After(scrapePatience)
	statsRead, lagRead := m.stats.refresh(), m.lag.refresh()
	for _, read := range []<-chan struct{}{statsRead, lagRead} {
		select {
		case <-read:
		case <-deadline:
			deadline = closed // for both
		}
	}
	stats, err := m.stats.last()
	up("stats", err == nil)
	isOneScope := errors.Is(err, errOneScope) // then the other function counts one scope, too
	if err == nil {
		gauge(storeThreads, float64(stats.Threads))
		gauge(storeErased, float64(stats.ErasedThreads))
		gauge(storeRuns, float64(stats.FinishedRuns), "finished")
		gauge(storeRuns, float64(stats.InterruptedRuns), "interrupted")
		gauge(storeRuns, float64(stats.CancelledRuns), "cancelled")
		gauge(storeRuns, float64(stats.FailedRuns), "failed")
		gauge(storeRuns, float64(stats.CutOffRuns), "cut_off")
		gauge(storeEvents, float64(stats.Events))
		gauge(storeBytes, float64(stats.LogDiskBytes), "log")
		gauge(storeBytes, float64(stats.SnapshotDiskBytes), "snapshots")
		gauge(storeBytes, float64(stats.TreeDiskBytes), "tree")
		gauge(storeBytes, float64(stats.SessionDiskBytes), "session")
	}
	lag, err := m.lag.last()
	isUp := err == nil && !isOneScope
	up("lag", isUp)
	if isUp {
		gauge(storeToCompact, float64(lag.RunsToCompact))
		gauge(storeCompactLag, lag.CompactionLag)
		gauge(storeToRepack, float64(lag.RunsToRepack))
		gauge(storeRepackLag, lag.RepackLag)
		gauge(storeRunning, float64(lag.RunningRuns))
		gauge(storeStale, float64(lag.StaleRuns))
		gauge(storeSilence, lag.OldestSignOfLife)
		gauge(storeQuarantined, float64(lag.QuarantinedRuns))
		for _, place := range lag.consumers {
			behind, scope := float64(place.Behind), place.Scope
			if place.IsLost {
				behind = math.Inf(1)
			}
			if place.AllScopes {
				scope = "*"
			}
			gauge(storeBehind, behind, place.Consumer, scope)
		}
	}
}

// scrapePatience is how long a scrape waits for what it reads from the database.
const scrapePatience = time.Second

// closed is a channel from which everyone receives at once.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// reading is a value that is read from the database in the background.
type reading[T any] struct {
	view   string
	ctx    context.Context // ends with the process
	logger *slog.Logger
	read   func(context.Context) (T, error)
	// every is how long a value counts as new. keep is how long it is reported while a newer one is
	// read.
	every, timeout, keep time.Duration

	mu    sync.Mutex
	value T
	err   error         // of the last attempt
	at    time.Time     // of the last attempt; zero: none has ended
	ended chan struct{} // closed when the attempt in progress ends; nil: none is
}

// retryAfter is the pause before a retry, after a value could not be read.
const retryAfter = 30 * time.Second

// refresh begins to read the value if it is old. The channel is closed when that has ended.
func (r *reading[T]) refresh() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return r.ended
	}
	ended := make(chan struct{})
	interval := r.every
	if r.err != nil {
		interval = min(interval, retryAfter)
	}
	if !r.at.IsZero() && time.Since(r.at) < interval {
		close(ended)
		return ended
	}
	r.ended = ended
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(r.ctx, r.timeout)
		defer cancel()
		value, err := r.read(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil && r.err == nil && r.ctx.Err() == nil {
			r.logger.Warn("metrics: agui."+r.view+" cannot be read", "error", err)
		}
		r.value, r.err, r.at, r.ended = value, err, time.Now(), nil
	}()
	return ended
}

// last returns what was read last.
func (r *reading[T]) last() (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && (r.at.IsZero() || time.Since(r.at) > r.keep) {
		return r.value, errors.New("not read lately")
	}
	return r.value, r.err
}
