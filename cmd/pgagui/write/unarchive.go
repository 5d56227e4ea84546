package write

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/archive"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/internal/printable"
)

func (p *program) unarchiveCommand() *cobra.Command {
	var options archive.RestoreOptions
	command := &cobra.Command{
		Use:   "unarchive DIRECTORY [THREAD…]",
		Short: "Store the threads of an archive in the database",
		Long: `Stores the threads of a directory that "pgagui archive" wrote, or the named ones of them, each as a
whole in a transaction of its own. The database may have another version of pgagui or of PostgreSQL,
but not an older schema with fewer columns. Before a thread is committed, its rows are compared with
hashes from the source. Its snapshots come with the next compaction.

Threads are stored in their scopes. With --scope NAME they are stored in that scope instead, if they
are all of one scope and none has a chain of hashes, which covers the scope.

Repeat the command to complete one that was interrupted: threads that are there as the archive has
them stay as they are. A thread is not stored if its file is damaged, if the database has it with
other content, or if it was erased from the database. One line on stderr says so for each, the other
threads are stored, and the command exits with 3.

A run that was in progress is in progress here, too, until its lease has ended and a job closes it
as cut off. With --check the command only compares the files with the manifest, without a database.
It needs the role agui_maintainer.`,
		Example: `  pgagui unarchive acme.archive
  pgagui unarchive acme.archive trip-to-lisbon --scope restored
  pgagui unarchive acme.archive --check`,
		Args: cli.Arguments(1, math.MaxInt),
		RunE: func(command *cobra.Command, arguments []string) error {
			options.Threads = arguments[1:]
			if cli.ScopeIsGiven(command) {
				options.Scope = &p.Scope
			}
			from, err := archive.Open(arguments[0])
			if err != nil {
				return err
			}
			if options.Check {
				return p.unarchive(command.Context(), nil, from, options)
			}
			return p.WithDatabases(command.Context(), func(databaseOf cli.DatabaseOf) error {
				return p.unarchive(command.Context(), databaseOf, from, options)
			})
		},
	}
	command.ValidArgsFunction = completeArchived
	command.Flags().BoolVar(&options.Check, "check", false, "only compare the files with the manifest, and store nothing")
	return command
}

// completeArchived completes the directory, and the ids of the threads in it.
func completeArchived(_ *cobra.Command, arguments []string, prefix string) (ids []cobra.Completion, directive cobra.ShellCompDirective) {
	if len(arguments) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	from, err := archive.Open(arguments[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, thread := range from.Threads() {
		if id := thread.ThreadID; strings.HasPrefix(id, prefix) && printable.Line(id) == id && !slices.Contains(arguments, id) {
			ids = append(ids, id)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) unarchive(ctx context.Context, databaseOf cli.DatabaseOf, from *archive.Directory, options archive.RestoreOptions) error {
	line := p.NewProgress()
	options.OnFailure = func(err error) {
		line.Clear()
		fmt.Fprintln(p.Messages, cli.Describe(err))
	}
	options.OnProgress = func(done archive.Unarchived) {
		line.Show(func() string {
			return fmt.Sprintf("%s, %s", cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"))
		})
	}
	done, failure := archive.Unarchive(ctx, databaseOf, from, options)
	line.Clear()
	// Print the result after a failure, too: it says what was stored.
	var err error
	switch {
	case p.JSON:
		err = p.PrintJSON(done)
	case options.Check:
		_, err = fmt.Fprintf(p.Out, "%s with %s are as they were written, %s not\n",
			cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"), cli.CountText(done.Failed, "thread"))
	case failure == nil || done.Threads > 0:
		_, err = fmt.Fprintf(p.Out, "%s with %s (%d stored, %d already there), in %s\n",
			cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"), done.Stored, done.AlreadyThere, cli.DurationText(done.Duration))
	}
	switch {
	case failure != nil:
		return failure
	case err != nil:
		return err
	case done.Failed > 0:
		return cli.ErrBadFiles
	}
	if done.InProgress > 0 {
		fmt.Fprintf(p.Messages, "%s with runs in progress: without a writer here, a job closes these runs when their lease has ended\n", cli.CountText(done.InProgress, "thread"))
	}
	return nil
}
