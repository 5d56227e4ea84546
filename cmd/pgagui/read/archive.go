package read

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/archive"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) archiveCommand() *cobra.Command {
	var options archive.Options
	command := &cobra.Command{
		Use:   "archive DIRECTORY [THREAD…]",
		Short: "Write whole threads to a directory, to store them in another database",
		Long: `Writes threads to compressed files in a directory, with a manifest: the named ones, or all of the
scope, or with --all-scopes of all scopes. "pgagui unarchive" stores them in a database again, byte
for byte: events with their seqs and times, runs, inputs, titles, agents, metadata, session state,
checkpoints, what failed agents answered, and the chain of hashes. Snapshots are not written,
because compaction makes them anew.
The threads stay in the database ("pgagui erase" removes them).

Each thread is written as of one point in time. A run in progress is in progress in the archive,
too, and a line on stderr says how many threads have one.

Repeat the command to complete an archive that was interrupted, or to bring it up to date: threads
that have changed are written anew, those that are unchanged are kept. Threads of the archive that
the database does not have any more stay in it. Do not run it twice at a time for one directory.

The files are not encrypted. They can be read by the user who wrote them only. The command needs the
role agui_maintainer.`,
		Example: `  pgagui archive acme.archive --scope acme
  pgagui archive old.archive --all-scopes --older-than 365d`,
		Args: cli.Arguments(1, math.MaxInt),
		RunE: func(command *cobra.Command, arguments []string) error {
			options.Threads, options.Scope, options.Program = arguments[1:], p.Scope, cli.Version()
			switch {
			case options.AllScopes && cli.ScopeIsGiven(command):
				return cli.WrongUsage(command, "--scope and --all-scopes exclude each other")
			case len(options.Threads) > 0 && (options.AllScopes || options.OlderThan > 0):
				return cli.WrongUsage(command, "--all-scopes and --older-than exclude threads")
			}
			return p.EachPoolOf(command.Context(), 1, options.Threads, func(ctx context.Context, pool *pgxpool.Pool, threads []string) error {
				options := options
				options.Threads = threads
				return p.archive(ctx, pool, arguments[0], options, cli.ScopeIsGiven(command))
			})
		},
	}
	command.Flags().BoolVar(&options.AllScopes, "all-scopes", false, "archive threads of all scopes")
	command.Flags().Var((*cli.Age)(&options.OlderThan), "older-than", "archive only threads in which nothing was stored for at least this long, for example 90d")
	return command
}

func (p *program) archive(ctx context.Context, pool *pgxpool.Pool, directory string, options archive.Options, scopeIsGiven bool) error {
	line := p.NewProgress()
	var failures []error
	options.OnFailure = func(err error) { failures = append(failures, err) }
	options.OnProgress = func(done archive.Archived) {
		line.Show(func() string {
			return fmt.Sprintf("%s, %s, %s", cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"), cli.BytesText(done.FileBytes))
		})
	}
	done, err := archive.Archive(ctx, pool, directory, options)
	line.Clear()
	// Print the result after a failure, too: the archive has these threads.
	if p.JSON {
		err = errors.Join(err, p.PrintJSON(done))
	} else if err == nil || done.Threads > 0 {
		_, printing := fmt.Fprintf(p.Out, "%s with %s (%d written, %d unchanged), %s, compressed %s, in %s\n",
			cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"), done.Written, done.Unchanged,
			cli.BytesText(done.Bytes), cli.BytesText(done.FileBytes), cli.DurationText(done.Duration))
		err = errors.Join(err, printing)
	}
	if err != nil {
		return err
	}
	if done.InProgress > 0 {
		fmt.Fprintf(p.Messages, "%s with runs in progress: archived as of now; repeat the command once they have ended\n", cli.CountText(done.InProgress, "thread"))
	}
	if !options.AllScopes && len(options.Threads) == 0 && (done.Threads == 0 || !scopeIsGiven) {
		err = p.HintAtOtherScopes(ctx, pool, "are not archived (--scope NAME or --all-scopes includes them)")
	}
	return errors.Join(append(failures, err)...)
}
