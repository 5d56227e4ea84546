package read

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
)

func (p *program) logCommand() *cobra.Command {
	var drawGraph bool
	command := &cobra.Command{
		Use:   "log THREAD",
		Short: "Show the runs of a thread, as a table or a tree",
		Long: `Shows the runs of a thread: the parent of each run, its status, the seqs of its events, and the
message of the user if the input of the run is stored. The seqs of runs in parallel interleave. *
marks the head, from which a new run without a parent continues. Of runs that did not finish, the
log says why.`,
		Example: `  pgagui log trip-to-lisbon
  pgagui log trip-to-lisbon --graph`,
		Args: cli.OneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.WithDatabases(command.Context(), func(of cli.DatabaseOf) error {
				pool, err := of(command.Context(), p.Scope, arguments[0])
				if err != nil {
					return err
				}
				return p.log(command.Context(), pool, arguments[0], drawGraph)
			})
		},
	}
	command.Flags().BoolVar(&drawGraph, "graph", false, "draw the tree, newest run first")
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
