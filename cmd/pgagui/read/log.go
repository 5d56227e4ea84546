package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
)

func (p *program) logCommand() *cobra.Command {
	var drawGraph, branches, allThreads bool
	var options pgagui.ListRunsOptions
	var given endedRuns
	command := &cobra.Command{
		Use:   "log [THREAD]",
		Short: "Show the runs of a thread, or those that failed of all",
		Long: `Shows the runs of a thread: the parent of each run, its status, the seqs of its events, and the
message of the user if the input of the run is stored. The seqs of runs in parallel interleave. *
marks the head, from which a new run without a parent continues. Of runs that did not finish, the
log says why.

--branches lists the branches instead: the runs that have no children, the number of runs in their
lineages, and the run at which they leave other branches.

--all-threads lists the runs of all threads of a scope that failed or were cut off, and why, those
that ended last first. --status lists others: cancelled (stopped) or interrupted (waits, or waited,
for answers). A list has 50 runs unless --limit sets another number. If there are more, a line on
stderr has the flag for the next page. --all shows all runs as of one point in time. With --json
each line is an object with threadId, runId, parentRunId, status, title, agent, firstSeq, lastSeq,
startedAt, endedAt, errorCode, errorMessage, stopReason, cutOffReason, cursor (the value for
--cursor), and agentError: what the agent of a run answered in place of events, for roles with
agui_diagnoser.`,
		Example: `  pgagui log trip-to-lisbon
  pgagui log trip-to-lisbon --graph
  pgagui log --all-threads --since 2d
  pgagui log --all-threads --status failed --all --json | jq -r .errorCode | sort | uniq -c`,
		Args: func(command *cobra.Command, arguments []string) error {
			if allThreads {
				return cobra.NoArgs(command, arguments)
			}
			return cli.OneThread(command, arguments)
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			if cli.Several(drawGraph, branches, allThreads) {
				return cli.WrongUsage(command, "--graph, --branches and --all-threads exclude each other")
			}
			if err := cli.GoesWith(command, "--all-threads", allThreads, "status", "since", "cursor", "limit", "all"); err != nil {
				return err
			}
			if allThreads {
				if err := given.complete(&options, command.Flags().Changed("limit"), time.Now()); err != nil {
					return cli.WrongUsage(command, err.Error())
				}
				return p.WithSnapshot(command.Context(), func(store *pgagui.Store, tx pgx.Tx) error {
					return p.runs(command.Context(), store, tx, options, given.all, cli.ScopeIsGiven(command))
				})
			}
			if branches {
				return p.WithStore(command.Context(), func(store *pgagui.Store) error { return p.branches(command.Context(), store, arguments[0]) })
			}
			return p.WithDatabases(command.Context(), func(of cli.DatabaseOf) error {
				pool, err := of(command.Context(), p.Scope, arguments[0])
				if err != nil {
					return err
				}
				return p.log(command.Context(), pool, arguments[0], drawGraph)
			})
		},
	}
	flags := command.Flags()
	flags.BoolVar(&drawGraph, "graph", false, "draw the tree, newest run first")
	flags.BoolVar(&branches, "branches", false, "list the branches")
	flags.BoolVar(&allThreads, "all-threads", false, "list the runs that failed, of all threads of the scope")
	flags.StringSliceVar(&given.status, "status", []string{"failed", "cut_off"}, "list runs with this `status`: "+strings.Join(endedNames, ", "))
	flags.StringVar(&given.since, "since", "", "list only runs that ended since this `time`: "+cli.TimeFormats)
	flags.StringVar(&options.Cursor, "cursor", "", "start after this `cursor`, from an earlier page")
	flags.IntVar(&options.Limit, "limit", 50, "maximum `number` of runs, from 1 to 1000")
	flags.BoolVar(&given.all, "all", false, "list all runs")
	if err := command.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(endedNames, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	return command
}

func (p *program) log(ctx context.Context, pool *pgxpool.Pool, threadID string, drawGraph bool) error {
	runs, err := runlog.Read(ctx, pool, p.Scope, threadID)
	if err != nil {
		return err
	}
	switch {
	case p.JSON:
		return p.PrintJSON(runs)
	case drawGraph:
		return runlog.WriteGraph(p.Styled(), runs, p.Colored())
	default:
		return p.PrintTable(cli.WithoutEmptyColumn(logTable(runs), 7), 1, 2, 6, 7)
	}
}

func logTable(runs []runlog.Run) [][]string {
	rows := [][]string{{" ", "RUN", "FOLLOWS", "STATUS", "SEQ", "STARTED", "INPUT", "WHY"}}
	for _, run := range runs {
		rows = append(rows, []string{
			headMark(run.IsHead), run.ID, cli.OrDash(run.ParentRunID), cli.StatusText(run.Status),
			fmt.Sprintf("%d–%s", run.FirstSeq, lastSeqText(run.LastSeq)),
			cli.TimeText(run.StartedAt), cli.Joined(run.Input), cli.Joined(cli.WhyText(run.Status, run.RunEnd)),
		})
	}
	return rows
}
