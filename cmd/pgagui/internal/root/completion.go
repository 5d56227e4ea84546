package root

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/internal/printable"
)

const (
	completionTimeout = 2 * time.Second // the user waits in the shell
	maxCompletions    = 200
)

// completeIDs registers the completion of thread ids and run ids for all commands that take them.
func (p *program) completeIDs(command *cobra.Command) {
	for _, child := range command.Commands() {
		p.completeIDs(child)
	}
	register := func(flag string, complete cobra.CompletionFunc) {
		if command.Flags().Lookup(flag) == nil {
			return
		}
		if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err)
		}
	}
	register("thread", p.completeThread)
	if !strings.Contains(command.Use, "THREAD") || command.ValidArgsFunction != nil {
		return
	}
	register("run", p.completeRun)
	takesMany, takesFile, takesFolder := strings.Contains(command.Use, "THREAD…"), strings.Contains(command.Use, "FILE"), strings.Contains(command.Use, "DIRECTORY")
	command.ValidArgsFunction = func(
		command *cobra.Command, arguments []string, prefix string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case takesFolder && len(arguments) == 0:
			return nil, cobra.ShellCompDirectiveFilterDirs
		case len(arguments) == 0 || takesMany:
			return p.completeThread(command, arguments, prefix)
		case takesFile:
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// A candidate is an id that the shell may offer, with its description.
type candidate struct{ id, description string }

// completeThread completes thread ids, most recently active first, described by their titles. It
// leaves out the threads that the command line already names.
func (p *program) completeThread(
	command *cobra.Command, arguments []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(command, prefix, func(ctx context.Context, store *pgagui.Store) (candidates []candidate, err error) {
		page, err := store.Threads(ctx, pgagui.ThreadsOptions{Limit: maxCompletions, Archived: pgagui.WithArchived})
		for _, thread := range page.Threads {
			if !slices.Contains(arguments, thread.ID) {
				candidates = append(candidates, candidate{thread.ID, thread.Title})
			}
		}
		return candidates, err
	})
}

// completeRun completes the run ids of the thread on the command line, newest first.
func (p *program) completeRun(
	command *cobra.Command, arguments []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.complete(command, prefix, func(ctx context.Context, store *pgagui.Store) (candidates []candidate, err error) {
		runs, err := store.Runs(ctx, arguments[0])
		for _, run := range slices.Backward(runs) {
			startedAt := cli.TimeText(run.StartedAt)
			candidates = append(candidates, candidate{run.ID, cli.StatusText(run.Status) + ", started " + startedAt})
		}
		return candidates, err
	})
}

// complete reads candidates from the database and returns those that begin with prefix. If the
// database is not reachable, it returns none.
func (p *program) complete(
	command *cobra.Command, prefix string, read func(context.Context, *pgagui.Store) ([]candidate, error),
) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	var completions []cobra.Completion
	err := p.WithStore(ctx, func(store *pgagui.Store) error {
		candidates, err := read(ctx, store)
		for _, one := range candidates {
			// The shell reads one completion per line, so an id with control characters is left
			// out.
			if strings.HasPrefix(one.id, prefix) && printable.Line(one.id) == one.id && len(completions) < maxCompletions {
				completions = append(completions, cobra.CompletionWithDesc(one.id, cli.Shorten(printable.Line(one.description), 60)))
			}
		}
		return err
	})
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
	}
	if err != nil && len(completions) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completions, directive
}
