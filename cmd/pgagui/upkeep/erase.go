package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) eraseCommand() *cobra.Command {
	var olderThan time.Duration
	var options jobs.EraseOptions
	yes := false
	command := &cobra.Command{
		Use:   "erase THREAD… | --older-than DURATION",
		Short: "Permanently remove threads",
		Long: `Removes threads permanently: their events, runs, snapshots, session state and checkpoints, each
thread in its own transaction. With --older-than it removes the threads of the scope, or of all
scopes, to which nothing was appended and in which nothing was saved for this time. A tombstone
remains in the table agui.erasure: when, by whom and why, without the name of the thread. Appends to
an erased thread are refused until "pgagui retention allow" permits them.

The command asks for confirmation; without a terminal it needs --yes. It needs the role
agui_maintainer. Backups, archived WAL and server logs keep parts of a thread for some time
(docs/erasure.md).

Exit code 6 means that work is left: it stopped at --limit or --max-time, or other transactions held
threads.`,
		Example: `  pgagui erase trip-to-lisbon --reason "requested by the user"
  pgagui erase --all-scopes --older-than 90d --dry-run`,
		RunE: func(command *cobra.Command, threads []string) error {
			switch {
			case (len(threads) > 0) == (olderThan > 0):
				return cli.WrongUsage(command, "expected either threads or --older-than")
			case options.MaxThreads < 0 || options.MaxTime < 0 || olderThan < 0:
				return cli.WrongUsage(command, "--limit, --max-time and --older-than must not be negative")
			case len(threads) > 0 && (options.AllScopes || options.MaxThreads > 0 || options.MaxTime > 0):
				return cli.WrongUsage(command, "--all-scopes, --limit and --max-time go with --older-than")
			case options.AllScopes && cli.ScopeIsGiven(command):
				return cli.WrongUsage(command, "--scope and --all-scopes exclude each other")
			}
			options.OlderThan, options.Scope = olderThan, p.Scope
			if !options.DryRun && !yes {
				what := cli.CountText(len(threads), "thread")
				if len(threads) == 0 {
					what = "all threads without changes for " + olderThan.String()
				}
				if options.AllScopes {
					what += ", of all scopes"
				}
				fmt.Fprintf(p.Messages, "This permanently removes %s.\n", what)
				if err := p.Confirm(command, "nothing was deleted"); err != nil {
					return err
				}
			}
			if len(threads) > 0 {
				return p.EachPoolOf(command.Context(), 1, threads, func(ctx context.Context, pool *pgxpool.Pool, threads []string) error {
					return p.eraseThreads(ctx, pool, threads, options)
				})
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				return p.eraseOlder(ctx, pool, options, cli.ScopeIsGiven(command))
			})
		},
	}
	command.Flags().Var((*cli.Age)(&olderThan), "older-than", "erase the threads in which nothing was stored for at least this long, for example 12h or 90d")
	command.Flags().BoolVar(&options.AllScopes, "all-scopes", false, "with --older-than: erase threads of all scopes")
	command.Flags().StringVar(&options.Reason, "reason", "", "`text` to keep in agui.erasure")
	command.Flags().BoolVar(&options.DryRun, "dry-run", false, "list what would be removed, and remove nothing")
	command.Flags().IntVar(&options.MaxThreads, "limit", 0, "with --older-than: stop after this `number` of threads; 0 means no limit")
	command.Flags().DurationVar(&options.MaxTime, "max-time", 0, "with --older-than: stop after this time, for example 50s; 0 means no limit")
	command.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return command
}

// eraseThreads erases the named threads. If one does not exist, it still erases the others.
func (p *program) eraseThreads(ctx context.Context, pool *pgxpool.Pool, threads []string, options jobs.EraseOptions) error {
	begin := time.Now()
	done := jobs.Erased{DryRun: options.DryRun}
	var failures []error
	for _, threadID := range threads {
		erased, err := p.eraseThread(ctx, pool, threadID, options)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		done.Threads++
		done.Events += erased.Events
		if err := p.printErased(jobs.ErasedThread{Scope: p.Scope, ThreadID: threadID, Events: erased.Events}, options.DryRun); err != nil {
			return err
		}
	}
	done.Duration = time.Since(begin)
	return p.finishErase(done, errors.Join(failures...))
}

// eraseThread erases a thread. A dry run rolls the transaction back.
func (p *program) eraseThread(ctx context.Context, pool *pgxpool.Pool, threadID string, options jobs.EraseOptions) (pgagui.Erased, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return pgagui.Erased{}, err
	}
	defer tx.Rollback(ctx)
	erased, err := p.Store(pool).WithTx(tx).Erase(ctx, threadID, pgagui.EraseOptions{Reason: options.Reason})
	if err != nil || options.DryRun {
		return erased, err
	}
	return erased, tx.Commit(ctx)
}

// eraseOlder erases old threads. If no scope is given, it reports the threads that it skipped
// because they belong to other scopes.
func (p *program) eraseOlder(ctx context.Context, pool *pgxpool.Pool, options jobs.EraseOptions, scopeIsGiven bool) error {
	var failure error
	options.Each = func(thread jobs.ErasedThread) {
		failure = errors.Join(failure, p.printErased(thread, options.DryRun))
	}
	done, err := jobs.Erase(ctx, pool, options)
	err = p.finishErase(done, errors.Join(err, failure))
	if (err == nil || errors.Is(err, cli.ErrWorkLeft)) && !options.AllScopes && !scopeIsGiven {
		err = errors.Join(err, p.HintAtOtherScopes(ctx, pool, "were skipped (--scope NAME or --all-scopes includes them)"))
	}
	return err
}

func (p *program) printErased(thread jobs.ErasedThread, dryRun bool) error {
	if p.JSON {
		return nil
	}
	verb, where := "erased", "thread "+thread.ThreadID
	if dryRun {
		verb = "would erase"
	}
	if thread.Scope != "" {
		where += " of scope " + thread.Scope
	}
	_, err := fmt.Fprintf(p.Out, "%s %s, %s\n", verb, where, cli.CountText(thread.Events, "event"))
	return err
}

func (p *program) finishErase(done jobs.Erased, failure error) error {
	var err error
	if p.JSON {
		err = p.PrintJSON(done)
	} else if failure == nil {
		verb := "erased"
		if done.DryRun {
			verb = "would erase"
		}
		_, err = fmt.Fprintf(p.Out, "%s %s with %s, in %s%s\n",
			verb, cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"), cli.DurationText(done.Duration), leftText(0, done.Busy))
	}
	if failure == nil && err == nil && (done.Stopped != "" || done.Busy > 0) {
		return cli.ErrWorkLeft
	}
	return errors.Join(failure, err)
}

func (p *program) allowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "allow THREAD",
		Short: "Permit appends to an erased thread",
		Long: `Permits appends to a thread that was erased. The thread starts again at seq 1. The command needs the
role agui_maintainer.`,
		Example: `  pgagui retention allow trip-to-lisbon`,
		Args:    cli.OneThread,
		RunE: p.OnStore(func(ctx context.Context, store *pgagui.Store, arguments []string) error {
			refused, err := store.Maintenance().LiftErasure(ctx, arguments[0])
			if err != nil {
				return err
			}
			text := "thread %s accepts appends again\n"
			if !refused {
				text = "nothing to allow: appends to thread %s were not refused\n"
			}
			return p.PrintResult(map[string]any{"threadId": arguments[0], "wasRefused": refused}, text, arguments[0])
		}),
	}
}
