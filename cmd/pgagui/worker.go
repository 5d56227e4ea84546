package main

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/worker"
)

func (p *program) workerCommand() *cobra.Command {
	var (
		how           upkeep
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

All jobs work on all scopes, except --erase, which needs --scope or --all-scopes.

The worker logs to stderr, with --json as JSON. It needs the role agui_worker, and with --erase also
agui_maintainer. "pgagui serve --worker" runs the same jobs in the process of the server.`,
		Example: `  pgagui worker --json
  pgagui worker --compact '@every 30s' --verify off
  pgagui worker --erase '30 3 * * *' --erase-after 90d --all-scopes`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.work(command, &how, metricsListen) },
	}
	flags := command.Flags()
	flags.AddFlagSet(how.flags())
	flags.StringVar(&metricsListen, "metrics-listen", "", "`address` that serves Prometheus metrics at /metrics, without a token (default: none)")
	return command
}

func (p *program) work(command *cobra.Command, how *upkeep, metricsListen string) error {
	wrong := func(err error) error { return &usageError{problem: err.Error(), command: command.CommandPath()} }
	if err := how.check(); err != nil {
		return wrong(err)
	}
	if hasScope := scopeIsGiven(command); hasScope && !how.erases() || how.erases() && how.allScopes == hasScope {
		return wrong(errors.New("--erase needs one of --scope and --all-scopes; all other jobs work on all scopes"))
	}
	ctx, logger := command.Context(), p.logger()
	pool, err := p.connect(ctx, how.connections())
	if err != nil {
		return err
	}
	defer pool.Close()
	options := worker.Options{Grace: how.grace, Logger: logger}
	if metricsListen != "" {
		registry := newRegistry()
		tasks := how.tasks(pool, p.scope)
		options.Observe = newJobMetrics(registry, tasks).observe
		store, err := newStoreMetrics(ctx, p.databaseURL, logger)
		if err != nil {
			return err
		}
		defer store.close()
		registry.MustRegister(store, poolMetrics{"worker": pool})
		listener, err := listenMetrics(metricsListen)
		if err != nil {
			return wrong(err)
		}
		server := metricsServer(registry, logger)
		defer server.Close()
		go func() { _ = server.Serve(listener) }()
		logger.Info("serving metrics", "url", metricsURL(listener))
	}
	return worker.Run(ctx, pool, how.tasks(pool, p.scope), options)
}

func (p *program) logger() *slog.Logger {
	if p.json {
		return slog.New(slog.NewJSONHandler(p.messages, nil))
	}
	return slog.New(slog.NewTextHandler(p.messages, nil))
}
