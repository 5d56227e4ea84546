package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/refusal"
	"github.com/pgagui/pgagui/server/problem"
)

// replicas are the standbys of the database, or of the nodes of a cluster.
//
// A statement of a request goes to a standby first (send). If the standby fails, or does not have
// what is requested, the primary answers this statement and the rest of the request: by then, the
// standby may be behind what the client has seen. The same holds for followers (tenant.Follow).
type replicas struct {
	reads  *pgagui.Store // for requests that read
	writes *pgagui.Store // for others: it notes what a client must see later, see route
	nodes  map[string]*replicated
}

// replicated is the database, or a node of a cluster, with its standbys.
type replicated struct {
	node     string // empty: the database is no node
	primary  pgagui.DB
	standbys []*replica
	turn     atomic.Uint32
}

// replica is a standby, which reads go to while it can be used: it answers, it is a standby, and it is
// not too far behind. One goroutine (watch) decides that; requests only report that something failed,
// so none of them waits for a server that is gone.
type replica struct {
	store   *pgagui.Store // on the standby alone: its followers poll there
	primary pgagui.DB
	standby pgagui.DB

	maxLag  time.Duration
	logger  *slog.Logger
	metrics *replicaMetrics

	// usable is a context that ends when the standby cannot be used any more. nil: it cannot.
	usable  atomic.Pointer[usage]
	suspect chan struct{} // a statement failed: check the standby now
	stop    context.CancelFunc
	stopped chan struct{}

	// unseen are samples of the primary that the standby has not shown yet, the oldest one first.
	// isPlaced is true once the standby has shown one of them. Only watch uses both.
	unseen   []sample
	isPlaced bool
}

// usage is a period in which the standby can be used.
type usage struct {
	context.Context
	end context.CancelFunc
}

// sample is how far the primary had come at a time: transactions before next had begun.
type sample struct {
	at   time.Time
	next int64
}

const (
	// probeInterval is how often the standby is checked while it can be used; after a failure it is
	// checked at once, but never more often than shortestProbePause allows. While it cannot be used,
	// the pauses grow to longestProbePause. They are reset once it could be used for steadyAfter, so a
	// standby that comes and goes is used rarely.
	probeInterval      = 500 * time.Millisecond
	shortestProbePause = 20 * time.Millisecond
	longestProbePause  = 5 * time.Second
	steadyAfter        = 10 * time.Second
	// probeTimeout bounds a check. Then the statements that wait for the standby go to the primary.
	probeTimeout = time.Second
	// replicaLogInterval is how often a line says that the standby still cannot be used.
	replicaLogInterval = time.Minute
	// maxSamples bounds what is kept of a standby that does not catch up.
	maxSamples = 1000
)

// newReplicas begins to watch the standbys of the options. It returns nil if there are none. Until the
// first check of a standby, reads go to its primary.
func newReplicas(store *pgagui.Store, options *Options) (*replicas, error) {
	names, standbysOf := store.Nodes(), options.NodeReads
	if options.Reads != nil {
		if names != nil || standbysOf != nil {
			return nil, errors.New("Options.Reads is for one database: for a cluster, set Options.NodeReads alone")
		}
		standbysOf = map[string][]*pgagui.Store{"": {options.Reads}}
	}
	if names == nil {
		names = []string{""}
	}
	all := &replicas{nodes: map[string]*replicated{}}
	position := 0
	all.writes = store.WrapDB(func(primary pgagui.DB) pgagui.DB {
		of := &replicated{node: names[position], primary: primary}
		all.nodes[of.node] = of
		position++
		return sender(of.sendWrite)
	})
	position = 0
	all.reads = store.WrapDB(func(pgagui.DB) pgagui.DB {
		of := all.nodes[names[position]]
		position++
		return sender(of.send)
	})
	hasAny := false
	for name, standbys := range standbysOf {
		of := all.nodes[name]
		if of == nil {
			return nil, fmt.Errorf("Options.NodeReads has standbys of the node %q, which the store does not have", name)
		}
		for i, standby := range standbys {
			r, err := newReplica(of, standby, i, options)
			if err != nil {
				return nil, err
			}
			of.standbys, hasAny = append(of.standbys, r), true
		}
	}
	if !hasAny {
		return nil, nil
	}
	for r := range all.each {
		r.start()
	}
	return all, nil
}

func newReplica(of *replicated, standby *pgagui.Store, i int, options *Options) (*replica, error) {
	r := &replica{
		store: standby, primary: of.primary, maxLag: options.MaxReadLag, logger: options.Logger, suspect: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	standby.WrapDB(func(standby pgagui.DB) pgagui.DB {
		r.standby = standby
		return standby
	})
	registry := options.Metrics
	if of.node != "" {
		number := strconv.Itoa(i + 1)
		r.logger = r.logger.With("node", of.node, "standby", number)
		if registry != nil {
			registry = prometheus.WrapRegistererWith(prometheus.Labels{"node": of.node, "standby": number}, registry)
		}
	}
	var err error
	if r.metrics, err = newReplicaMetrics(registry); err != nil {
		err = fmt.Errorf("metrics: %w", err)
	}
	return r, err
}

// each calls yield with each standby.
func (all *replicas) each(yield func(*replica) bool) {
	for _, of := range all.nodes {
		for _, r := range of.standbys {
			if !yield(r) {
				return
			}
		}
	}
}

func (all *replicas) close() {
	for r := range all.each {
		r.stop()
	}
	for r := range all.each {
		<-r.stopped
	}
}

// next returns the standby for a request: one that can be used, in turn, or else any. nil: the node has
// none.
func (of *replicated) next() *replica {
	n := len(of.standbys)
	if n == 0 {
		return nil
	}
	first := int(of.turn.Add(1) % uint32(n))
	for i := range n {
		if r := of.standbys[(first+i)%n]; r.usable.Load() != nil {
			return r
		}
	}
	return of.standbys[first]
}

// start begins to watch the standby.
func (r *replica) start() {
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go panics.Task(r.logger, func() { r.watch(ctx) }, nil)()
}

// watch checks the standby until ctx ends.
func (r *replica) watch(ctx context.Context) {
	defer close(r.stopped)
	defer r.cannotBeUsed()
	probes, closeProbes := r.ownConnection(ctx)
	defer closeProbes()
	pauses := &backoff.ExponentialBackOff{
		InitialInterval: probeInterval / 5, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: longestProbePause,
	}
	pauses.Reset()
	var since, logged time.Time // when the standby became usable or unusable; when that was last logged
	for {
		err := panics.Catch(r.logger, func() error { return r.check(ctx, probes) })
		if ctx.Err() != nil {
			return
		}
		now, wasUsable := time.Now(), r.usable.Load() != nil
		if wasUsable != (err == nil) || since.IsZero() {
			since = now
		}
		pause := probeInterval
		switch {
		case err != nil:
			r.cannotBeUsed()
			if wasUsable || now.Sub(logged) >= replicaLogInterval {
				logged = now
				r.logger.Warn("the replica cannot be used, reads go to the primary", "error", err, "for", now.Sub(since).Round(time.Second))
			}
			pause = pauses.NextBackOff()
		case !wasUsable:
			r.canBeUsed()
			logged = time.Time{}
			r.logger.Info("reads go to the replica")
		case now.Sub(since) > steadyAfter:
			pauses.Reset()
		}
		select {
		case <-time.After(pause):
		case <-r.suspect:
			time.Sleep(shortestProbePause)
		case <-ctx.Done():
			return
		}
	}
}

func (r *replica) canBeUsed() {
	ctx, end := context.WithCancel(context.Background())
	r.usable.Store(&usage{ctx, end})
	r.metrics.usable.Set(1)
}

func (r *replica) cannotBeUsed() {
	if ended := r.usable.Swap(nil); ended != nil {
		ended.end()
	}
	r.metrics.usable.Set(0)
}

// failed makes watch check the standby now.
func (r *replica) failed() {
	select {
	case r.suspect <- struct{}{}:
	default:
	}
}

// ownConnection returns a connection to the standby for the checks: a pool whose connections are all
// in use is no reason to leave the standby.
func (r *replica) ownConnection(ctx context.Context) (pgagui.DB, func()) {
	pool, isPool := r.standby.(*pgxpool.Pool)
	if !isPool {
		return r.standby, func() {}
	}
	config := pool.Config()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 1
	own, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil { // the configuration is that of a pool
		return r.standby, func() {}
	}
	return own, own.Close
}

// check returns why the standby cannot be used.
func (r *replica) check(ctx context.Context, probes pgagui.DB) error {
	at := time.Now()
	timed, cancel := context.WithTimeout(ctx, probeTimeout)
	primary, unknown := db.New(r.primary).PrimaryState(timed)
	cancel()
	var known db.StandbyStateParams
	if unknown == nil {
		known = db.StandbyStateParams{DatabaseOid: &primary.DatabaseOid, StartedAt: &primary.StartedAt}
	}
	timed, cancel = context.WithTimeout(ctx, probeTimeout)
	standby, err := db.New(probes).StandbyState(timed, known)
	cancel()
	switch {
	case err != nil:
		return err
	case standby.Problem != "":
		return errors.New(standby.Problem)
	case unknown != nil: // without the primary, nothing is new that the standby could lack
		return nil
	}
	lag := r.lagBehind(sample{at, primary.NextTransaction}, standby.NextTransaction)
	r.metrics.lag.Set(lag.Seconds())
	switch {
	case lag > r.maxLag:
		return fmt.Errorf("it is %s behind the primary (more than %s)", lag.Round(time.Millisecond), r.maxLag)
	case !r.isPlaced:
		return errors.New("it has not shown yet how far it is behind the primary")
	}
	return nil
}

// lagBehind returns how long ago the primary had what the standby does not show. It compares
// transactions, not times: clocks differ, and a primary without writes is no lag.
func (r *replica) lagBehind(now sample, shown int64) time.Duration {
	if n := len(r.unseen); n > 0 && now.next < r.unseen[n-1].next {
		r.unseen, r.isPlaced = nil, false // another server is the primary now, and lost the end
	}
	if len(r.unseen) < maxSamples {
		r.unseen = append(r.unseen, now)
	} else {
		r.unseen[maxSamples-1] = now
	}
	for len(r.unseen) > 0 && r.unseen[0].next <= shown {
		r.unseen, r.isPlaced = r.unseen[1:], true
	}
	if len(r.unseen) == 0 {
		return 0
	}
	return time.Since(r.unseen[0].at)
}

// What became of a statement that the standby should answer.
const (
	byReplica     = "replica"     // it answered
	isUnavailable = "unavailable" // it cannot be used
	isBehind      = "behind"      // it did not have the position in time
	isUnknown     = "unknown"     // it has no such thread, run or document
	hasFailed     = "failed"
)

// send sends the statements of a request to a standby, or else to the primary.
func (of *replicated) send(ctx context.Context, statements ...statement) ([]*result, error) {
	way := routeOf(ctx)
	r := way.standbyOf(of)
	if r == nil {
		return run(ctx, of.primary, statements...)
	}
	list, outcome, err := r.fromStandby(ctx, way.needed(of.node), statements)
	r.metrics.reads.WithLabelValues(outcome).Inc()
	if outcome == byReplica {
		return list, err
	}
	way.moveToPrimary()
	return run(ctx, of.primary, statements...)
}

// patience is how long a read waits until the standby has the position that the request names.
const patience = 200 * time.Millisecond

// fromStandby sends statements to the standby. If the outcome is another one than byReplica, the
// primary must answer them.
func (r *replica) fromStandby(ctx context.Context, needed db.IsShownParams, statements []statement) (list []*result, outcome string, err error) {
	usable := r.usable.Load()
	if usable == nil {
		return nil, isUnavailable, nil
	}
	timed, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(usable, cancel)()

	// The check travels with the statement, in its transaction: it costs no round trip, and holds for
	// the server that answers, if several are behind one address.
	last := len(statements) - 1
	all, waits := statements, needed.Seq > 0 || needed.TransactionID != ""
	if waits {
		check := statement{db.IsShown, []any{needed.TransactionID, needed.Seq, needed.Scope, needed.ThreadID}}
		all = append(append(append([]statement{}, statements[:last]...), check), statements[last])
	}
	deadline, pause := time.Now().Add(patience), 2*time.Millisecond
	for isShown := !waits; ; {
		sent := all
		if !isShown && list != nil {
			sent = all[:last+1] // the check alone
		}
		if list, err = run(timed, r.standby, sent...); err != nil {
			return nil, r.outcomeOf(ctx, err), err
		}
		isShown = !waits || isTrue(list[last])
		switch {
		case isShown && len(list) == len(all):
			if waits {
				list = append(list[:last], list[last+1])
			}
			if lacks(statements[last].sql, list[last]) {
				return nil, isUnknown, nil
			}
			return list, byReplica, nil
		case isShown:
		case time.Now().Add(pause).After(deadline):
			return nil, isBehind, nil
		default:
			select {
			case <-time.After(pause):
			case <-timed.Done(): // the next attempt says why
			}
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}

func isTrue(a *result) bool {
	return len(a.values) == 1 && len(a.values[0][0]) == 1 && (a.values[0][0][0] == 1 || a.values[0][0][0] == 't')
}

// lacks reports whether the answer to a statement says that what was requested does not exist.
// Other statements raise an error.
func lacks(sql string, a *result) bool {
	switch sql {
	case db.Attach, db.AttachPart: // no run: the thread does not exist
		return len(a.values) == 1 && len(a.values[0][0]) == 0
	case db.LoadSessionState, db.LoadCheckpoint:
		return len(a.values) == 0
	default:
		return false
	}
}

// outcomeOf says what the error of a statement means. Errors that the primary would return as well
// are an answer of the standby, because some of them are costly to repeat.
func (r *replica) outcomeOf(ctx context.Context, err error) string {
	var refused *pgconn.PgError
	_, isRefusedHere := errors.AsType[*problem.Details](err)
	switch {
	case ctx.Err() != nil || isRefusedHere:
		return byReplica // the client is gone, or there is no memory for the answer
	case !errors.As(err, &refused):
		r.failed()
		return hasFailed
	}
	switch refusal.OfState[refused.Code] {
	case refusal.InvalidEvents, refusal.LimitExceeded, refusal.KeyCollision, refusal.UnknownShape, refusal.Quarantined, refusal.FoldLimit:
		return byReplica
	}
	switch refused.Code {
	case "57014", "53200", "53400": // it takes too long, or too much memory
		return byReplica
	case "40001", "40P01": // a conflict with what the standby replays
		return hasFailed
	}
	switch {
	case strings.HasPrefix(refused.Code, "UI"):
		return isUnknown
	case refusal.IsOfValue(refused.Code):
		return byReplica
	}
	r.failed()
	return hasFailed
}

// sendWrite sends the statements of a request that may write to the primary, and notes the
// transaction in the request's route.
func (of *replicated) sendWrite(ctx context.Context, statements ...statement) ([]*result, error) {
	way := routeOf(ctx)
	if way == nil {
		return run(ctx, of.primary, statements...)
	}
	list, err := run(ctx, of.primary, append(append([]statement{}, statements...), statement{sql: db.CurrentTransaction})...)
	if err != nil {
		return nil, err
	}
	way.wrote(Transaction{of.node, string(list[len(statements)].values[0][0])})
	return list[:len(statements)], nil
}

// replicaMetrics are the metrics of a replica.
type replicaMetrics struct {
	usable, lag prometheus.Gauge
	reads       *prometheus.CounterVec // by outcome
	moved       prometheus.Counter
}

func newReplicaMetrics(registry prometheus.Registerer) (*replicaMetrics, error) {
	m := &replicaMetrics{
		usable: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pgagui_server_replica_usable", Help: "1: reads go to the replica. 0: it cannot be used now, reads go to the primary.",
		}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pgagui_server_replica_lag_seconds", Help: "How long ago the primary had what the replica does not show yet.",
		}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgagui_server_replica_reads_total",
			Help: "Statements of requests that read, by outcome: replica (it answered), or why the primary did: unavailable, " +
				"behind (a position that the request named), unknown (a thread, a run), failed.",
		}, []string{"outcome"}),
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pgagui_server_replica_followers_moved_total", Help: "Followers that moved from the replica to the primary.",
		}),
	}
	for _, outcome := range []string{byReplica, isUnavailable, isBehind, isUnknown, hasFailed} {
		m.reads.WithLabelValues(outcome)
	}
	if registry == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.usable, m.lag, m.reads, m.moved} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}
