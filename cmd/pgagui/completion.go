package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/printable"
)

const (
	completionTimeout = 2 * time.Second // somebody holds the Tab key
	mostCompletions   = 200
)

// offerIDs has the shell complete the ids of threads and runs, wherever a command takes one.
func (p *program) offerIDs(command *cobra.Command) {
	for _, child := range command.Commands() {
		p.offerIDs(child)
	}
	offer := func(flag string, complete cobra.CompletionFunc) {
		if command.Flags().Lookup(flag) == nil {
			return
		}
		if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err)
		}
	}
	offer("thread", p.completeThread)
	if !strings.Contains(command.Use, "THREAD") {
		return
	}
	offer("run", p.completeRun)
	takesMany, takesFile := strings.Contains(command.Use, "THREAD…"), strings.Contains(command.Use, "FILE")
	command.ValidArgsFunction = func(
		command *cobra.Command, arguments []string, begun string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(arguments) == 0 || takesMany:
			return p.completeThread(command, arguments, begun)
		case takesFile:
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeThread offers the threads that were active last, with their titles, but for those that
// are named already.
func (p *program) completeThread(
	command *cobra.Command, arguments []string, begun string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.complete(command, begun, func(ctx context.Context, store *pgagui.Store) (offers [][2]string, err error) {
		page, err := store.Threads(ctx, pgagui.ThreadsOptions{Limit: mostCompletions, Archived: pgagui.WithArchived})
		for _, thread := range page.Threads {
			if !slices.Contains(arguments, thread.ID) {
				offers = append(offers, [2]string{thread.ID, thread.Title})
			}
		}
		return offers, err
	})
}

// completeRun offers the runs of the thread that is named, the youngest first.
func (p *program) completeRun(
	command *cobra.Command, arguments []string, begun string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.complete(command, begun, func(ctx context.Context, store *pgagui.Store) (offers [][2]string, err error) {
		runs, err := store.Runs(ctx, arguments[0])
		for _, run := range slices.Backward(runs) {
			begun := run.StartedAt.Local().Format("2006-01-02 15:04:05")
			offers = append(offers, [2]string{run.ID, string(run.Status) + ", begun " + begun})
		}
		return offers, err
	})
}

// complete makes completions of what a look into the database gives: ids, each with what it is.
// Without a database there are none.
func (p *program) complete(
	command *cobra.Command, begun string, look func(context.Context, *pgagui.Store) ([][2]string, error),
) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	var completions []cobra.Completion
	err := p.withStore(ctx, func(store *pgagui.Store) error {
		offers, err := look(ctx, store)
		for _, offer := range offers {
			id, what := offer[0], shorten(printable.Line(offer[1]), 60)
			// One that does not go through a line of text cannot be offered.
			if strings.HasPrefix(id, begun) && printable.Line(id) == id && len(completions) < mostCompletions {
				completions = append(completions, cobra.CompletionWithDesc(id, what))
			}
		}
		return err
	})
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completions, directive
}
