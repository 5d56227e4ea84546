package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) jobCommand() *cobra.Command {
	var (
		how                    schedule.CompactFlags
		limit                  int
		maxTime, grace         time.Duration
		repack, retry, rebuild bool
	)
	const expected = "compact, project, reap or repack"
	names := []string{"compact", "project", "reap", "repack"}
	command := &cobra.Command{
		Use:   "job NAME",
		Short: "Run a maintenance job once: " + expected,
		Long: `Runs a job on the threads of all scopes. "pgagui worker" runs all of them on schedules.

  compact   folds every ended run that has not been compacted, oldest first, and keeps the snapshots
            that make reading cheap. Then it repacks the runs that are due, unless --repack=false is
            set or the role may not repack. The log keeps its contents. With --running, long runs in
            progress also get a snapshot, and a new one after every --every events
  project   keeps the facts about the runs, so that a question about all conversations reads no log:
            the views agui.run_fact, agui.tool_fact, agui.interrupt_fact and agui.usage_fact. It
            reads the runs that have ended or changed since the last call, in groups, and commits
            after each. The first call reads all runs, and so does --rebuild, after which the facts
            are those of the log again
  reap      closes stale runs: runs in progress whose writer has given no sign of life within the
            lease (the settings lease and heartbeat_lease; see the view agui.setting). It appends
            events that end what the run left open, then a RUN_ERROR with the reason. Without it a
            stale run stays in progress for all readers until the next run of its thread begins. If
            the writer returns later, its appends are refused
  repack    joins the batches of ended runs into larger ones, which need a fraction of the space.
            Events, their order and their times stay the same: each transaction reads back what it
            wrote before it commits. The space becomes free for other rows at the next vacuum.
            compact also repacks, so you rarely need this job

Run it from cron. It can be stopped or killed at any time; what it has committed stays. While the
same job is in progress elsewhere, and on a standby, it does nothing and exits with 0. On SIGTERM or
Ctrl-C compact finishes the threads in progress, for up to --grace, and exits with 130. A job needs
the role agui_worker, with --rebuild also agui_maintainer.

If a job fails to process a run, or is killed while it processes one, the run goes into quarantine
(select * from agui.quarantine). Such runs come after all others and are retried with backoff;
--retry retries them at once.

Exit code 6 means that work is left: the job stopped at --limit or --max-time, other transactions
held threads, or runs are in quarantine. Run it again.

With --json the result is one line. That of compact has these members:

    threads, runs, events   what was processed
    logBytes                stored size of the log of these runs, in bytes
    snapshots, dropped      snapshots written, and snapshots dropped because they became superfluous
    waiting, left           runs to compact at the beginning and at the end
    quarantined             runs in quarantine
    busy                    threads that other transactions held
    stopped                 why the job stopped with runs left: "limit", "time" or "interrupted";
                            absent if it did not
    repacked                the result of repacking, as of the job repack; absent if none
    skipped                 why the job did nothing; absent if it ran
    nanoseconds             duration`,
		Example: `  pgagui job compact --running --max-time 50s
  pgagui job compact --older-than 1h --workers 2 --json
  pgagui job reap --max-time 50s`,
		ValidArgs: names,
		Args: func(command *cobra.Command, arguments []string) error {
			if len(arguments) != 1 || !slices.Contains(names, arguments[0]) {
				return errors.New("expected one job: " + expected)
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			name, ctx := arguments[0], command.Context()
			isCompact := name == "compact"
			if err := cmp.Or(
				cli.GoesWith(command, "compact", isCompact, "workers", "running", "every", "repack", "grace"),
				cli.GoesWith(command, "compact and repack", isCompact || name == "repack", "older-than"),
				cli.GoesWith(command, "project", name == "project", "rebuild"),
				cli.GoesWith(command, "compact, reap and repack", name != "project", "limit"),
			); err != nil {
				return err
			}
			if err := how.Check(); err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			if limit < 0 || maxTime < 0 || grace < 0 || how.OlderThan < 0 {
				return cli.WrongUsage(command, "--limit, --max-time, --grace and --older-than must not be negative")
			}
			if isCompact {
				options := how.Options()
				options.MaxRuns, options.MaxTime, options.Retry = limit, maxTime, retry
				ctx, cancel := jobs.WithGrace(ctx, grace)
				defer cancel()
				return p.EachPool(ctx, options.Workers, func(ctx context.Context, pool *pgxpool.Pool) error { return p.compact(ctx, pool, options, repack) })
			}
			return p.EachPool(ctx, 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				switch name {
				case "project":
					return p.project(ctx, pool, jobs.ProjectOptions{MaxTime: maxTime, Retry: retry, Rebuild: rebuild})
				case "reap":
					return p.reap(ctx, pool, jobs.ReapOptions{MaxRuns: limit, MaxTime: maxTime, Retry: retry})
				}
				options := jobs.RepackOptions{MaxRuns: limit, MaxTime: maxTime, Retry: retry}
				if command.Flags().Changed("older-than") {
					options.OlderThan = &how.OlderThan
				}
				return p.repack(ctx, pool, options)
			})
		},
	}
	flags := command.Flags()
	how.AddFlags(flags)
	flags.Lookup("older-than").Usage = "compact or repack only runs that ended at least this long ago, for example 30m or 7d (default of repack: the setting agui.repack_after, or 10m)"
	flags.IntVar(&limit, "limit", 0, "stop after this `number` of runs; 0 means no limit")
	flags.DurationVar(&maxTime, "max-time", 0, "stop after this time, for example 50s; compact finishes the runs in progress; 0 means no limit")
	flags.BoolVar(&retry, "retry", false, "retry the runs in quarantine at once")
	flags.BoolVar(&repack, "repack", true, "with compact: also repack the runs that are due")
	flags.BoolVar(&rebuild, "rebuild", false, "with project: read all runs, not only those that were changed")
	flags.DurationVar(&grace, "grace", schedule.DefaultGrace, "with compact: after SIGTERM, wait this long for the threads in progress")
	return command
}

// jobEnd is the result of a job, in the form that all commands which run one report it.
type jobEnd struct {
	report  jobs.Report
	failure error
	// result is printed with --json.
	result any
	// print prints the summary without --json.
	print func() error
	// runs is the number of runs processed.
	runs int
	// stopped is the reason why the job stopped with work left, if it did.
	stopped jobs.StopReason
	// left is true if runs are in quarantine or other transactions held threads.
	left bool
}

// finishJob prints the result of a job and returns the error of its command.
func (p *program) finishJob(end jobEnd) error {
	var err error
	// Print the result after a failure, too: it says what was committed.
	switch {
	case p.JSON:
		err = p.PrintJSON(end.result)
	case end.report.Skipped != "":
		_, err = fmt.Fprintf(p.Out, "nothing done: %s\n", end.report.Skipped)
	case end.failure == nil || end.runs > 0:
		err = end.print()
	}
	switch {
	case end.failure != nil:
		return end.failure
	case err != nil:
		return err
	case end.stopped == jobs.StoppedOnCall:
		return cli.ErrInterrupted
	case end.stopped != "" || end.left:
		return cli.ErrWorkLeft
	}
	return nil
}
