package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/metrics"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/sql/schema"
)

func (p *program) serveCommand() *cobra.Command {
	var file string
	var isCheck, untilStdinEnds bool
	command := &cobra.Command{
		Use:   "serve",
		Short: "Record agents, and stream their runs, over HTTP",
		Long: `Serves AG-UI clients over HTTP. A client posts its input to /agent/NAME/run. The server calls the
agent, stores its events, and streams each to the client once it is stored. If the client goes away,
the run continues, and any server of the same database resumes its stream.

Requests need a token: a static one of --token-file, or a JWT. --insecure needs none, but serves
this machine alone.

Each flag is also a variable of the environment, and a key of the file that --config or
$PGAGUI_CONFIG names, in YAML. Flags come before the environment, and the environment before the
file:

  --limits-streams 20   PGAGUI_LIMITS_STREAMS=20   limits: {streams: 20}
  --heartbeat 20s       PGAGUI_HEARTBEAT=20s       heartbeat: 20s

"pgagui help serve-settings" has those that one sets once: of jobs, of rights in JWTs, limits and
timeouts.

Agents have more settings in the file. Secrets stay in the environment:

  agents:
    - name: assistant
      url: https://agents.example.com/assistant
      headersFromEnv: {Authorization: ASSISTANT_AUTHORIZATION}
      forwardHeaders: [Accept-Language]
      history: full        # the client sends all messages; new: only new ones
      idleTimeout: 2m      # also: endTimeout, runTimeout, maxEventBytes, parallel, …
      onConcurrentRun: queue  # or supersede; without it a second run is refused
      repairToolCalls: true   # calls without a result get the result "interrupted"

On SIGHUP the server reloads the agents, the token file and the certificate. If the new ones cannot
be used, it keeps the old ones. On SIGTERM or Ctrl-C it aborts its streams, so that clients come
back to another server, gives agents --grace to finish, stores everything, and exits with 0. A
second signal ends it at once.

/explorer/ shows the conversations in a browser: a reader signs in with a token that has the right
to read, and sees the threads of its scope. --explorer=false leaves it out.

/healthz and /readyz need no token. If $OTEL_EXPORTER_OTLP_ENDPOINT is set, traces go there, by
http/protobuf. The server needs the role agui_writer. The role of --live-database-url needs only
agui_recorder. --read-database-url is the address of a streaming standby, which answers reads; its
role needs only agui_reader. Of a cluster, the description of the nodes has the standbys of each.

With --worker the process also runs the jobs of "pgagui worker". Their settings are in the section
worker of the file, and their role (agui_worker) can have an address of its own (not with --nodes):

  worker: {compact: '@every 30s', verify: off, databaseUrlFile: /etc/pgagui/worker}`,
		Example: `  pgagui serve --insecure --agent assistant=http://localhost:9000/
  pgagui serve --config /etc/pgagui/serve.yaml --check
  pgagui serve --token-file tokens.yaml --origins https://app.example.com --config agents.yaml`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := readServeConfig(file, command.Flags())
			if err == nil {
				err = config.check(cli.ScopeIsGiven(command))
			}
			if err != nil {
				return configError(command, err)
			}
			config.reread = func() (*serveConfig, error) { return readServeConfig(file, command.Flags()) }
			if isCheck {
				return p.checkServe(command, config)
			}
			ctx := command.Context()
			if untilStdinEnds {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				go func() {
					_, _ = io.Copy(io.Discard, p.In)
					cancel()
				}()
			}
			return p.serve(ctx, command, config)
		},
	}
	command.Flags().StringVar(&file, "config", "", "`file` with the configuration, in YAML (default: $PGAGUI_CONFIG)")
	command.Flags().BoolVar(&isCheck, "check", false, "check the configuration and exit, without the database")
	command.Flags().BoolVar(&untilStdinEnds, "until-stdin-ends", false, "stop when stdin ends, as on SIGTERM, for the program that started this one")
	_ = command.Flags().MarkHidden("until-stdin-ends")
	command.Flags().AddFlagSet((&serveConfig{}).settings())
	return command
}

// configError is an error of the configuration. One of a file, or of the database, has its own exit
// code.
func configError(command *cobra.Command, err error) error {
	if code := cli.ExitCode(err); code == cli.ExitInput || code == cli.ExitUnavailable {
		return err
	}
	return cli.WrongUsage(command, err.Error())
}

// check reports settings that contradict each other.
func (c *serveConfig) check(hasScope bool) error {
	usesJWT := c.usesJWT()
	switch {
	case c.insecure && (c.tokenFile != "" || usesJWT):
		return errors.New("--insecure takes requests without a token: leave it out, or the token file and the settings of JWTs")
	case c.insecure:
		if err := access.CheckLoopback(c.listen); err != nil {
			return fmt.Errorf("--insecure: %w", err)
		}
	case c.tokenFile == "" && !usesJWT:
		return errors.New("the server would refuse every request: give it static tokens (--token-file; pgagui token makes one), " +
			"JWTs (--jwt-jwks-url or --jwt-key-file), or, for this machine alone, --insecure")
	case hasScope:
		return errors.New("--scope is for --insecure: otherwise the token of a request says the scope")
	}
	switch {
	case (c.tlsCertificate == "") != (c.tlsKey == ""):
		return errors.New("--tls-certificate and --tls-key go together")
	case c.logFormat != "text" && c.logFormat != "json":
		return fmt.Errorf("--log-format is %q (expected text or json)", c.logFormat)
	case c.connections < 1 || c.liveConnections < 1 || c.readConnections < 1:
		return errors.New("--database-connections, --live-database-connections and --read-database-connections must be 1 or more")
	case c.liveDatabaseURL != "" && c.liveDatabaseURLFile != "":
		return errors.New("--live-database-url and --live-database-url-file exclude each other")
	case c.readDatabaseURL != "" && c.readDatabaseURLFile != "":
		return errors.New("--read-database-url and --read-database-url-file exclude each other")
	case min(c.maxReadLag, c.readHeaderTimeout, c.idleTimeout, c.writeTimeout, c.readTimeout, c.heartbeat, c.grace, c.jwt.RefreshInterval) <= 0:
		return errors.New("a time or an interval is not positive (expected for example 10s)")
	case min(c.maxConcurrentStreams, c.maxHeaderBytes, c.maxAppends) < 1 || c.maxBufferedBytes < 1:
		return errors.New("--max-concurrent-streams, --max-header-bytes, --max-appends and --max-buffered-bytes must be 1 or more")
	case c.shutdownTimeout <= c.grace:
		return fmt.Errorf("--shutdown-timeout is %s (it must be longer than --grace, %s)", c.shutdownTimeout, c.grace)
	}
	c.networks = nil
	for _, text := range c.agentNetworks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--agent-networks has %q (expected a network such as 10.0.0.0/8)", text)
		}
		c.networks = append(c.networks, network)
	}
	for file, address := range map[string]*string{c.liveDatabaseURLFile: &c.liveDatabaseURL, c.readDatabaseURLFile: &c.readDatabaseURL} {
		if file == "" {
			continue
		}
		if err := (&cli.AddressFile{Address: address}).Set(file); err != nil {
			return err
		}
	}
	return c.checkWorker()
}

func (c *serveConfig) checkWorker() error {
	if !c.isWorker {
		return nil
	}
	if err := c.upkeep.Check(); err != nil {
		return errors.New(schedule.WithPrefix(workerPrefix, err.Error()))
	}
	switch {
	case c.upkeep.Erases() && !c.upkeep.AllScopes: // --scope is that of requests
		return errors.New("--worker-erase needs --worker-all-scopes")
	case c.upkeep.Grace >= c.shutdownTimeout:
		return fmt.Errorf("--shutdown-timeout is %s (it must be longer than --worker-grace, %s)", c.shutdownTimeout, c.upkeep.Grace)
	case c.workerDatabaseURL != "" && c.workerDatabaseURLFile != "":
		return errors.New("--worker-database-url and --worker-database-url-file exclude each other")
	case c.workerDatabaseURLFile != "":
		return (&cli.AddressFile{Address: &c.workerDatabaseURL}).Set(c.workerDatabaseURLFile)
	}
	return nil
}

func (c *serveConfig) usesJWT() bool {
	return c.jwt.JWKSURL != "" || c.jwt.KeyFile != "" || c.jwt.Issuer != "" || len(c.jwt.Algorithms) > 0 || len(c.jwt.Audiences) > 0
}

// checkServe checks a configuration, and prints that it is valid.
func (p *program) checkServe(command *cobra.Command, config *serveConfig) error {
	ctx, cancel := context.WithCancel(command.Context())
	defer cancel()
	s, err := p.newService(ctx, config, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return configError(command, err)
	}
	defer s.close()
	_, err = fmt.Fprintf(p.Out, "the configuration is valid: %s\n", cli.CountText(len(config.agents), "agent"))
	return err
}

func (p *program) serve(ctx context.Context, command *cobra.Command, config *serveConfig) error {
	tracing, err := newTracingFromEnvironment(ctx)
	if err != nil {
		return configError(command, err)
	}
	s, err := p.newService(ctx, config, p.serveLogger(config), tracing)
	if err != nil {
		return configError(command, err)
	}
	defer s.close()
	if err := s.checkSchemas(ctx); err != nil {
		return err
	}
	if s.worker != nil && s.nodes == nil { // a cluster works while nodes are away
		if err := s.worker.Check(ctx); err != nil {
			return fmt.Errorf("the database of the worker: %w", err)
		}
	}
	if err := s.listen(); err != nil {
		return configError(command, err)
	}
	return s.run(ctx)
}

// checkSchemas fails if the database cannot be used. Of a cluster one node has to answer, and no node
// may have a schema that this program cannot use.
func (s *service) checkSchemas(ctx context.Context) error {
	if s.pool != nil {
		return cli.CheckSchema(ctx, s.pool)
	}
	answered, failures := false, []error{}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		err := cli.CheckSchema(ctx, s.nodes[name])
		if err != nil {
			err = fmt.Errorf("node %q: %w", name, err)
		}
		switch {
		case err == nil:
			answered = true
		case cli.IsUnfit(err):
			return err
		default:
			failures = append(failures, err)
		}
	}
	if answered {
		for _, err := range failures {
			s.logger.Warn("a node of the cluster cannot be used now", "error", err)
		}
		return nil
	}
	return errors.Join(failures...)
}

// serveLogger returns the log of the server.
func (p *program) serveLogger(config *serveConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: config.logLevel}
	if config.logFormat == "json" || p.JSON {
		return slog.New(slog.NewJSONHandler(p.Messages, options))
	}
	return slog.New(slog.NewTextHandler(p.Messages, options))
}

// service is a server with what it uses.
type service struct {
	config       *serveConfig
	logger       *slog.Logger
	pool         *pgxpool.Pool              // nil: nodes
	nodes        cli.NodePools              // of a cluster; nil: pool
	live         *pgxpool.Pool              // nil: pool
	reads        *pgxpool.Pool              // of the replica; nil: none
	nodeReads    map[string][]*pgxpool.Pool // of the standbys of nodes
	worker       *schedule.Worker           // nil: this process does no jobs
	stores       metrics.Stores
	tokens       *access.Tokens // nil: none
	certificates *certificates  // nil: no TLS
	registry     *prometheus.Registry
	tracing      *tracing // nil: none
	core         *server.Server
	explorer     *explorer.Handler // nil: none
	handler      http.Handler

	listener, metricsListener net.Listener // metricsListener is nil without metrics
	hasRun                    bool
	stopJobs                  context.CancelFunc
	jobsEnded                 chan struct{} // closed when the worker has ended
}

// newService makes a server of a configuration. It does not connect to the database. Keys of JWTs
// are fetched until ctx ends. tracing may be nil.
func (p *program) newService(ctx context.Context, config *serveConfig, logger *slog.Logger, tracing *tracing) (_ *service, err error) {
	s := &service{config: config, logger: logger, registry: metrics.NewRegistry(), tracing: tracing}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	authenticator, err := s.authenticator(ctx, p.Scope)
	if err != nil {
		return nil, err
	}
	if config.tlsCertificate != "" {
		s.certificates = &certificates{certificate: config.tlsCertificate, key: config.tlsKey}
		if err := s.certificates.reload(); err != nil {
			return nil, err
		}
		s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pgagui_server_certificate_not_after_timestamp_seconds", Help: "When the certificate of the server expires.",
		}, func() float64 { return float64(s.certificates.current.Load().Leaf.NotAfter.Unix()) }))
	}
	if p.Nodes != "" {
		if config.liveDatabaseURL != "" || config.readDatabaseURL != "" || config.workerDatabaseURL != "" {
			return nil, errors.New("with --nodes there is no --live-database-url, --read-database-url (a node may have \"standbys\") or --worker-database-url")
		}
		s.nodes, err = p.OpenNodes(ctx, config.connections)
	} else {
		s.pool, err = cli.OpenPool(ctx, p.DatabaseURL, config.connections)
	}
	if err != nil {
		return nil, err
	}
	storeConfig := pgagui.Config{SetScope: config.rowSecurity, Logger: logger}
	if config.liveDatabaseURL != "" {
		if s.live, err = cli.OpenPool(ctx, config.liveDatabaseURL, config.liveConnections); err != nil {
			return nil, err
		}
		storeConfig.Live = s.live
	}
	if config.readDatabaseURL != "" {
		if s.reads, err = cli.OpenPool(ctx, config.readDatabaseURL, config.readConnections); err != nil {
			return nil, err
		}
	}
	databases, err := p.Databases()
	if err == nil && s.nodes != nil {
		err = s.openStandbys(ctx, databases)
	}
	if err == nil {
		err = s.addUpkeep(ctx, databases)
	}
	if err != nil {
		return nil, err
	}
	options := server.Options{
		Agents: config.agents, AgentNetworks: config.networks, Access: authenticator, Limits: config.limits, Origins: config.origins, Heartbeat: config.heartbeat,
		WriteTimeout: config.writeTimeout, ReadTimeout: config.readTimeout, Grace: config.grace, MaxBufferedBytes: config.maxBufferedBytes, MaxAppends: config.maxAppends, Ready: (&readiness{pool: s.pool, nodes: s.nodes, live: s.live}).check,
		Logger: logger, Metrics: s.registry, Version: cli.Version(),
	}
	options.MaxReadLag = config.maxReadLag
	readConfig := &pgagui.Config{SetScope: config.rowSecurity, Logger: logger.With("database", "replica")}
	if s.reads != nil {
		options.Reads = pgagui.New(s.reads, readConfig)
	}
	if s.nodes != nil {
		options.NodeReads = map[string][]*pgagui.Store{}
		for node, pools := range s.nodeReads {
			for _, pool := range pools {
				options.NodeReads[node] = append(options.NodeReads[node], pgagui.New(pool, readConfig))
			}
		}
	}
	if s.tracing != nil {
		options.WrapTransport, options.ObserveRun = s.tracing.transport, s.tracing.observeRun
	}
	store := s.newStore(&storeConfig)
	if s.core, err = server.New(store, options); err != nil {
		return nil, err
	}
	s.handler = s.core
	if config.explorer {
		s.addExplorer(store, authenticator)
	}
	s.handler = withFrontPage(s.handler, config.explorer)
	if config.insecure {
		s.handler = access.LocalOnly(access.Audit{Logger: logger}, s.handler)
	}
	if s.tracing != nil {
		s.handler = s.tracing.handler(s.handler)
	}
	return s, nil
}

// openStandbys opens a pool to each standby of the nodes.
func (s *service) openStandbys(ctx context.Context, nodes []cluster.Node) error {
	s.nodeReads = map[string][]*pgxpool.Pool{}
	for _, node := range nodes {
		for i, address := range node.Standbys {
			pool, err := cli.OpenPool(ctx, address, s.config.readConnections)
			if err != nil {
				return fmt.Errorf("standby %d of node %q: %w", i+1, node.Name, err)
			}
			s.nodeReads[node.Name] = append(s.nodeReads[node.Name], pool)
		}
	}
	return nil
}

func (s *service) newStore(config *pgagui.Config) *pgagui.Store {
	if s.nodes != nil {
		return pgagui.NewCluster(s.nodes.Members(), config)
	}
	return pgagui.New(s.pool, config)
}

// explorerPrefix is where the explorer is.
const explorerPrefix = "/explorer"

// addExplorer puts the explorer before the server. Only --insecure, which serves this machine alone,
// shows the whole database: the token of a tenant must not.
func (s *service) addExplorer(store *pgagui.Store, authenticator access.Authenticator) {
	options := explorer.Options{Access: authenticator, Agents: s.core, Door: s.core.Door(), Logger: s.logger}
	if s.pool != nil && (s.config.insecure || s.config.isDevelopment) {
		options.Database, options.Examine = s.pool, examine(s.pool.Config().ConnString())
	}
	s.explorer = explorer.New(store, options)
	pages, rest := http.StripPrefix(explorerPrefix, s.explorer), s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == explorerPrefix || strings.HasPrefix(r.URL.Path, explorerPrefix+"/") {
			pages.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// withFrontPage adds an answer at / for people: where to go.
func withFrontPage(rest http.Handler, hasExplorer bool) http.Handler {
	line := "pgagui serve: the explorer is at " + explorerPrefix + "/, the description of the API at /openapi.yaml"
	if !hasExplorer {
		line = "pgagui serve: the description of the API is at /openapi.yaml; without --explorer=false the explorer is at " + explorerPrefix + "/"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			rest.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, line)
	})
}

// addUpkeep prepares the jobs, and the metrics of what they leave.
func (s *service) addUpkeep(ctx context.Context, databases []cluster.Node) (err error) {
	pools := metrics.Pools{}
	if s.config.isWorker {
		if s.config.workerDatabaseURL != "" {
			databases = []cluster.Node{{Name: databases[0].Name, URL: s.config.workerDatabaseURL}}
		}
		if s.worker, err = s.config.upkeep.NewWorker(ctx, databases, "", s.logger, s.registry); err != nil {
			return err
		}
		s.worker.AddTo(pools)
	}
	for name, pool := range s.nodes {
		pools.Add(name, "requests", pool)
	}
	for name, standbys := range s.nodeReads {
		for i, pool := range standbys {
			pools.AddStandby(name, i+1, pool)
		}
	}
	for name, pool := range map[string]*pgxpool.Pool{"requests": s.pool, "live": s.live, "reads": s.reads} {
		if pool != nil {
			pools.Add(databases[0].Name, name, pool)
		}
	}
	pools.Register(s.registry)
	if s.config.metricsListen == "" || s.nodes != nil && !s.config.isWorker { // the worker has the metrics of the stores
		return nil
	}
	s.stores, err = metrics.RegisterStores(ctx, s.registry, databases, s.logger)
	return err
}

// startJobs runs the jobs until stopJobs. If one fails, the log says so and the server continues.
func (s *service) startJobs(ctx context.Context) {
	ctx, s.stopJobs = context.WithCancel(ctx)
	s.jobsEnded = make(chan struct{})
	if s.worker == nil {
		close(s.jobsEnded)
		return
	}
	go func() {
		defer close(s.jobsEnded)
		if err := s.worker.Run(ctx); err != nil {
			s.logger.Error("the worker ended", "error", err)
		}
	}()
}

// authenticator returns the Authenticator of the configuration.
func (s *service) authenticator(ctx context.Context, scope string) (access.Authenticator, error) {
	if s.config.insecure {
		return access.Anonymous(scope, access.Admin), nil
	}
	if s.config.tokenFile != "" {
		var err error
		if s.tokens, err = access.LoadTokens(s.config.tokenFile); err != nil {
			return nil, err
		}
	}
	if !s.config.usesJWT() {
		return s.tokens, nil
	}
	options := s.config.jwt
	options.Logger = s.logger
	jwt, err := access.NewJWT(ctx, options)
	switch {
	case err != nil:
		return nil, err
	case s.tokens == nil:
		return jwt, nil
	default:
		return access.Both(s.tokens, jwt), nil
	}
}

// listen opens the addresses of the server.
func (s *service) listen() (err error) {
	if s.listener, err = net.Listen("tcp", s.config.listen); err != nil {
		return fmt.Errorf("the server cannot listen: %w", err)
	}
	if s.config.insecure { // localhost is what the hosts file says
		if err := access.CheckLoopback(s.listener.Addr().String()); err != nil {
			return errors.Join(fmt.Errorf("--insecure: %w", err), s.listener.Close())
		}
	}
	if s.config.metricsListen != "" {
		if s.metricsListener, err = metrics.Listen(s.config.metricsListen); err != nil {
			return errors.Join(err, s.listener.Close())
		}
	}
	return nil
}

// url returns the address of the server.
func (s *service) url() string {
	if s.certificates != nil {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// run serves until ctx ends, and then shuts down in order.
func (s *service) run(ctx context.Context) error {
	s.hasRun = true
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100) // main has more, for imports; the memory of a server is that of its streams
	}
	main := s.httpServer(s.handler)
	servers := []*http.Server{main}
	if s.explorer != nil {
		main.RegisterOnShutdown(s.explorer.Close)
	}
	failed := make(chan error, 2)
	if s.certificates != nil {
		main.TLSConfig = &tls.Config{GetCertificate: s.certificates.get, MinVersion: tls.VersionTLS12}
		go func() { failed <- main.ServeTLS(s.listener, "", "") }()
	} else {
		go func() { failed <- main.Serve(s.listener) }()
	}
	if s.metricsListener != nil {
		scraped := metrics.NewServer(s.registry, s.logger)
		servers = append(servers, scraped)
		go func() { failed <- scraped.Serve(s.metricsListener) }()
		s.logger.Info("serving metrics", "url", metrics.URL(s.metricsListener))
	}
	s.startJobs(ctx)
	s.logger.Info("serving", "url", s.url(), "agents", len(s.config.agents), "version", cli.Version())

	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	for {
		select {
		case <-ctx.Done():
			return s.shutDown(context.WithoutCancel(ctx), servers)
		case err := <-failed:
			return errors.Join(err, s.shutDown(context.WithoutCancel(ctx), servers))
		case <-reload:
			s.reload()
		}
	}
}

func (s *service) httpServer(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: handler, Protocols: protocols,
		// A client that has vanished acknowledges no ping. Then its streams end.
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: s.config.maxConcurrentStreams, SendPingTimeout: s.config.heartbeat, PingTimeout: s.config.writeTimeout},
		ReadHeaderTimeout: s.config.readHeaderTimeout, IdleTimeout: s.config.idleTimeout, MaxHeaderBytes: s.config.maxHeaderBytes,
		// No WriteTimeout: it would bound streams. The handler sets a deadline for each write.
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
}

// shutDown ends the server: first the streams and the runs, then the connections.
func (s *service) shutDown(ctx context.Context, servers []*http.Server) error {
	s.logger.Info("the server stops", "grace", s.config.grace)
	ctx, cancel := context.WithTimeout(ctx, s.config.shutdownTimeout)
	defer cancel()
	s.stopJobs()
	err := s.core.Shutdown(ctx)
	for _, one := range servers {
		err = errors.Join(err, one.Shutdown(ctx))
	}
	select {
	case <-s.jobsEnded:
	case <-ctx.Done():
		err = errors.Join(err, errors.New("the jobs in progress did not end in time"))
	}
	if err != nil {
		for _, one := range servers {
			_ = one.Close()
		}
		s.logger.Error("the server did not stop in order", "error", err)
		return err
	}
	s.logger.Info("the server stopped")
	return nil
}

// Close releases what the service uses. Do not call it after a shutdown that failed: a pool would
// wait for its connections, and the process ends anyway.
func (s *service) close() {
	if s.core != nil && !s.hasRun {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // there is nothing to wait for
		_ = s.core.Shutdown(ctx)
	}
	s.tracing.shutDown()
	s.stores.Close()
	if s.worker != nil {
		s.worker.Close()
	}
	pools := append(slices.Collect(maps.Values(s.nodes)), s.pool, s.live, s.reads)
	for _, pool := range slices.Concat(append(slices.Collect(maps.Values(s.nodeReads)), pools)...) {
		if pool != nil && pool.Stat().AcquiredConns() == 0 {
			pool.Close()
		}
	}
}

// reload reads the agents, the tokens and the certificate. What cannot be used does not replace what
// the server has.
func (s *service) reload() {
	report := func(what string, err error, attributes ...any) {
		if err != nil {
			s.logger.Error("reload: "+what+" cannot be used, the server keeps the old ones", "error", err)
			return
		}
		s.logger.Info("reload: "+what+" read", attributes...)
	}
	if s.config.reread != nil {
		config, err := s.config.reread()
		if err == nil {
			err = s.core.SetAgents(config.agents)
		}
		var agents []string
		if err == nil {
			for _, agent := range config.agents {
				agents = append(agents, agent.Name)
			}
		}
		report("the agents", err, "agents", agents)
	}
	if s.tokens != nil {
		report("the tokens", s.tokens.Reload(), "file", s.config.tokenFile, "tokens", s.tokens.Len())
	}
	if s.certificates != nil {
		report("the certificate", s.certificates.reload(), "file", s.config.tlsCertificate)
	}
	s.logger.Info("reload: other settings need a restart")
}

// certificates has the certificate of the server, which can change while it runs.
type certificates struct {
	certificate, key string
	current          atomic.Pointer[tls.Certificate]
}

// reload reads the files. If that fails, the certificate before stays.
func (c *certificates) reload() error {
	loaded, err := tls.LoadX509KeyPair(c.certificate, c.key)
	if err != nil {
		return fmt.Errorf("the certificate %s with the key %s: %w", c.certificate, c.key, err)
	}
	c.current.Store(&loaded)
	return nil
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// readiness checks the databases for /readyz, once in readyInterval at most.
type readiness struct {
	pool, live *pgxpool.Pool
	nodes      cli.NodePools // in place of pool: one of them has to answer

	mu      sync.Mutex
	checked time.Time
	err     error
}

const (
	readyInterval = 3 * time.Second
	readyTimeout  = 2 * time.Second
)

func (r *readiness) check(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.checked.IsZero() && time.Since(r.checked) < readyInterval {
		return r.err
	}
	// Not the context of the request: a client that goes away must not make the next one fail.
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if r.pool != nil {
		r.err = schema.Check(ctx, r.pool)
	} else {
		r.err = r.anyNode(ctx)
	}
	if r.err == nil && r.live != nil { // its role cannot read the version
		r.err = r.live.Ping(ctx)
	}
	r.checked = time.Now()
	return r.err
}

func (r *readiness) anyNode(ctx context.Context) error {
	answers := make(chan error, len(r.nodes))
	for name, pool := range r.nodes {
		go func() {
			err := schema.Check(ctx, pool)
			if err != nil {
				err = fmt.Errorf("node %q: %w", name, err)
			}
			answers <- err
		}()
	}
	var failures []error
	for range r.nodes {
		err := <-answers
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
