package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/jobs"
)

func (p *program) compactCommand() *cobra.Command {
	options := jobs.CompactOptions{}
	running, every := false, 1000
	command := &cobra.Command{
		Use:   "compact",
		Short: "Fold ended runs into snapshots",
		Long: `Folds every ended run that was not processed yet, of all scopes, and keeps the snapshots that make reading cheap. It can be stopped at
any time, run on several machines at once, and scheduled with cron. The log stays as it is.

With --running, long runs that are still in progress get a snapshot too, and a new one after so many more events.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.Workers < 1 || options.MaxRuns < 0 || every < 1 {
				return &usageError{problem: "--workers and --every must be 1 or more, --max-runs 0 or more", command: command.CommandPath()}
			}
			if running {
				options.RunningEvery = every
			}
			return p.compact(command.Context(), options)
		},
	}
	command.Flags().IntVar(&options.Workers, "workers", min(4, runtime.NumCPU()), "threads to compact side by side, each on a connection of its own")
	command.Flags().IntVar(&options.MaxRuns, "max-runs", 0, "stop after so many runs; 0: when all are done")
	command.Flags().BoolVar(&running, "running", false, "make snapshots of long runs in progress too")
	command.Flags().IntVar(&every, "every", every, "with --running: events between two snapshots of a run")
	return command
}

func (p *program) compact(ctx context.Context, options jobs.CompactOptions) error {
	pool, err := p.connect(ctx, options.Workers)
	if err != nil {
		return err
	}
	defer pool.Close()
	line := p.newProgress()
	options.Progress = func(done jobs.Compacted) {
		line.show(func() string {
			whole := max(done.Waiting, int64(done.Runs))
			return fmt.Sprintf("%s  %s of %s, %s", bar(int64(done.Runs), whole), thousands(int64(done.Runs)), countText(whole, "run"),
				countText(done.Events, "event"))
		})
	}
	done, failure := jobs.Compact(ctx, pool, options)
	line.clear()
	// Also after a failure: the threads that did not fail are done.
	if p.json {
		err = p.printJSON(done)
	} else if failure == nil || done.Runs > 0 {
		_, err = fmt.Fprintf(p.out, "%s of %s, %s, %s of log: %s written, %d dropped, in %s\n",
			countText(done.Runs, "run"), countText(done.Threads, "thread"), countText(done.Events, "event"), bytesText(done.LogBytes),
			countText(done.Snapshots, "snapshot"), done.Dropped, durationText(done.Duration))
	}
	if failure != nil {
		return failure
	}
	return err
}
