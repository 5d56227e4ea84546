package read

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) feedCommand() *cobra.Command {
	var options pgagui.ChangesOptions
	var follow bool
	var every time.Duration
	command := &cobra.Command{
		Use:   "feed",
		Short: "Print the runs that began, ended or changed, of all threads of a scope",
		Long: `Prints the runs of all threads of a scope that began, ended, or took events after their end, one
JSON object a line: position, scope, threadId, runId, parentRunId, status, firstSeq, lastSeq,
startedAt, endedAt. Without --after all runs come first. With --follow it waits for those that
change, until Ctrl-C.

Each run comes at least once. A run whose transaction is in progress, or began after one that is,
comes later, so nothing is missed: keep the position of the last line that was processed, and begin
there with --after. Erased threads do not come. If the database was restored or failed over to a
standby, a position is refused (UI024): begin without one.`,
		Example: `  pgagui feed --follow --all-scopes
  pgagui feed --after "$(tail -n 1 feed.ndjson | jq -r .position)" >> feed.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if every <= 0 {
				return &cli.UsageError{Problem: "--every must be more than 0", Command: command.CommandPath()}
			}
			if err := checkAllScopes(command, options.AllScopes); err != nil {
				return err
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.feed(command.Context(), store, options, follow, every)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.After, "after", "", "begin behind this `position`, from an earlier line")
	flags.BoolVar(&follow, "follow", false, "wait for runs that change")
	flags.DurationVar(&every, "every", time.Second, "with --follow: how often to look for changes")
	addAllScopes(command, &options.AllScopes)
	return command
}

func (p *program) feed(ctx context.Context, store *pgagui.Store, options pgagui.ChangesOptions, follow bool, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		changes, err := store.Changes(ctx, options)
		if err != nil {
			return err
		}
		for _, change := range changes {
			if err := p.PrintJSON(change); err != nil {
				return err
			}
			options.After = change.Position
		}
		if len(changes) > 0 {
			continue
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return cli.ErrInterrupted
		case <-ticker.C:
		}
	}
}
