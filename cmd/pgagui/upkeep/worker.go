package upkeep

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/metrics"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
)

func (p *program) workerCommand() *cobra.Command {
	var (
		how           schedule.Jobs
		metricsListen string
	)
	command := &cobra.Command{
		Use:   "worker",
		Short: "Run all maintenance jobs on schedules, in one process",
		Long: `Runs the maintenance jobs, each on its own schedule. A schedule is a line of five fields as in a
crontab ('0 3 * * *', in local time), '@every 90s', '@hourly' or '@daily'; 'off' disables a job. If
a job fails, the worker logs the error and runs the job again when it is next due. Several workers,
cron and pg_cron may serve one database: only one of them runs a job at a time. On a standby the
jobs do nothing until it is promoted.

On SIGTERM or Ctrl-C the worker starts no more jobs, waits up to --grace for those in progress, and
exits with 0.

With --nodes it runs the jobs of each node of a cluster. A node that does not answer holds up no
other: its jobs wait, the log names it, and they begin when it answers.

All jobs work on all scopes, except --erase, which needs --scope or --all-scopes.

The worker logs to stderr, with --json as JSON. It needs the role agui_worker, and to erase, or if
there are rules of retention, also agui_maintainer; with --traces also agui_writer. "pgagui serve
--worker" runs the same jobs in the process of the server.

With --traces each run that ended becomes a trace of OpenTelemetry: the run, its subagents, its tool
calls and its tokens. The consumer "traces" keeps the place ("pgagui feed consumers"). The variables
of the environment are the standard ones, such as $OTEL_EXPORTER_OTLP_HEADERS.`,
		Example: `  pgagui worker --json
  pgagui worker --compact '@every 30s' --verify off
  OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 pgagui worker --traces '@every 10s'
  pgagui worker --erase '30 3 * * *' --erase-after 90d --all-scopes`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return p.work(command, &how, metricsListen) },
	}
	flags := command.Flags()
	flags.AddFlagSet(how.Flags())
	flags.StringVar(&metricsListen, "metrics-listen", "", "`address` that serves Prometheus metrics at /metrics, without a token (default: none)")
	return command
}

func (p *program) work(command *cobra.Command, how *schedule.Jobs, metricsListen string) error {
	if err := how.Check(); err != nil {
		return cli.WrongUsage(command, err.Error())
	}
	if hasScope := cli.ScopeIsGiven(command); hasScope && !how.Erases() || how.Erases() && how.AllScopes == hasScope {
		return cli.WrongUsage(command, "--erase needs one of --scope and --all-scopes; all other jobs work on all scopes")
	}
	ctx, logger := command.Context(), p.Logger()
	databases, err := p.Databases()
	if err != nil {
		return err
	}
	registry := metrics.NewRegistry()
	worker, err := how.NewWorker(ctx, databases, p.Scope, logger, registry)
	switch {
	case cli.ExitCode(err) == cli.ExitUnavailable:
		return err
	case err != nil:
		return cli.WrongUsage(command, err.Error())
	}
	defer worker.Close()
	if p.Nodes == "" { // a cluster works while nodes are away
		if err := worker.Check(ctx); err != nil {
			return err
		}
	}
	if metricsListen != "" {
		stores, err := metrics.RegisterStores(ctx, registry, databases, logger)
		if err != nil {
			return err
		}
		defer stores.Close()
		pools := metrics.Pools{}
		worker.AddTo(pools)
		pools.Register(registry)
		listener, err := metrics.Listen(metricsListen)
		if err != nil {
			return cli.WrongUsage(command, err.Error())
		}
		server := metrics.NewServer(registry, logger)
		defer server.Close()
		go func() { _ = server.Serve(listener) }()
		logger.Info("serving metrics", "url", metrics.URL(listener))
	}
	return worker.Run(ctx)
}
