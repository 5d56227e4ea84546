package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) eraseCommand() *cobra.Command {
	var olderThan time.Duration
	var options jobs.EraseOptions
	yes := false
	command := &cobra.Command{
		Use:   "erase THREAD… | --older-than TIME",
		Short: "Remove threads for good",
		Long: `Removes threads entirely: their events, runs, snapshots, session state and checkpoints, each thread in a transaction of its own. With
--older-than those of the scope, or of all scopes, to which nothing was appended, and in which nothing was saved, for so long. What stays
of a thread is a row in the table agui.erasure: when, by whom and why, without its name. Appends to an erased thread
are refused until "pgagui allow" lets it begin anew.

It asks first; where there is no terminal to ask on, it needs --yes. It takes the rights of the role agui_maintainer. Backups, archived
WAL and logs hold parts of a thread for a while (docs/erasure.md).`,
		RunE: func(command *cobra.Command, threads []string) error {
			wrong := func(problem string) error { return &usageError{problem: problem, command: command.CommandPath()} }
			switch {
			case (len(threads) > 0) == (olderThan > 0):
				return wrong("name threads, or say with --older-than which ones")
			case options.MaxThreads < 0 || options.MaxTime < 0 || olderThan < 0:
				return wrong("--limit, --max-time and --older-than must not be negative")
			case len(threads) > 0 && (options.AllScopes || options.MaxThreads > 0 || options.MaxTime > 0):
				return wrong("--all-scopes, --limit and --max-time go with --older-than")
			case options.AllScopes && scopeIsGiven(command):
				return wrong("--scope and --all-scopes exclude each other")
			}
			options.OlderThan, options.Scope = olderThan, p.scope
			if !options.DryRun && !yes {
				what := countText(len(threads), "thread")
				if len(threads) == 0 {
					what = "all threads without news for " + olderThan.String()
				}
				if options.AllScopes {
					what += ", of all scopes,"
				}
				fmt.Fprintf(p.messages, "This removes %s for good.\n", what)
				if err := p.confirm(command); err != nil {
					return err
				}
			}
			if len(threads) > 0 {
				return p.eraseThreads(command.Context(), threads, options)
			}
			return p.eraseOlder(command.Context(), options, scopeIsGiven(command))
		},
	}
	command.Flags().Var((*age)(&olderThan), "older-than", "threads without an event or anything saved for so long, as in 12h or 90d")
	command.Flags().BoolVar(&options.AllScopes, "all-scopes", false, "with --older-than: threads of all scopes")
	command.Flags().StringVar(&options.Reason, "reason", "", "noted in agui.erasure")
	command.Flags().BoolVar(&options.DryRun, "dry-run", false, "only say what would be removed")
	command.Flags().IntVar(&options.MaxThreads, "limit", 0, "with --older-than: stop after so many threads; 0: when all are gone")
	command.Flags().DurationVar(&options.MaxTime, "max-time", 0, "with --older-than: stop after so long; 0: when all are gone")
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return command
}

// eraseThreads erases the threads that are named. One that does not exist does not keep the others.
func (p *program) eraseThreads(ctx context.Context, threads []string, options jobs.EraseOptions) error {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
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
		if err := p.printErased(jobs.ErasedThread{Scope: p.scope, ThreadID: threadID, Events: erased.Events}, options.DryRun); err != nil {
			return err
		}
	}
	done.Duration = time.Since(begin)
	return p.finishErase(done, errors.Join(failures...))
}

// eraseThread erases a thread; a dry run does so too, and takes it back.
func (p *program) eraseThread(ctx context.Context, pool *pgxpool.Pool, threadID string, options jobs.EraseOptions) (pgagui.Erased, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return pgagui.Erased{}, err
	}
	defer tx.Rollback(ctx)
	erased, err := p.store(pool).WithTx(tx).Erase(ctx, threadID, pgagui.EraseOptions{Reason: options.Reason})
	if err != nil || options.DryRun {
		return erased, err
	}
	return erased, tx.Commit(ctx)
}

// eraseOlder says which threads it passed over, unless the scope was given and so meant.
func (p *program) eraseOlder(ctx context.Context, options jobs.EraseOptions, scopeIsGiven bool) error {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	var failure error
	options.Each = func(thread jobs.ErasedThread) {
		failure = errors.Join(failure, p.printErased(thread, options.DryRun))
	}
	done, err := jobs.Erase(ctx, pool, options)
	err = p.finishErase(done, errors.Join(err, failure))
	if (err == nil || errors.Is(err, errWorkLeft)) && !options.AllScopes && !scopeIsGiven {
		err = errors.Join(err, p.hintAtOtherScopes(ctx, pool, "were passed over: --scope NAME or --all-scopes takes them"))
	}
	return err
}

func (p *program) printErased(thread jobs.ErasedThread, dryRun bool) error {
	if p.json {
		return nil
	}
	verb, where := "erased", "thread "+thread.ThreadID
	if dryRun {
		verb = "would erase"
	}
	if thread.Scope != "" {
		where += " of scope " + thread.Scope
	}
	_, err := fmt.Fprintf(p.out, "%s %s, %s\n", verb, where, countText(thread.Events, "event"))
	return err
}

func (p *program) finishErase(done jobs.Erased, failure error) error {
	var err error
	if p.json {
		err = p.printJSON(done)
	} else if failure == nil {
		verb := "erased"
		if done.DryRun {
			verb = "would erase"
		}
		_, err = fmt.Fprintf(p.out, "%s %s with %s, in %s%s\n",
			verb, countText(done.Threads, "thread"), countText(done.Events, "event"), durationText(done.Duration), leftText(0, done.Busy))
	}
	if failure == nil && err == nil && (done.Stopped != "" || done.Busy > 0) {
		return errWorkLeft
	}
	return errors.Join(failure, err)
}

func (p *program) allowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "allow THREAD",
		Short: "Let an erased thread begin anew",
		Long:  `Lets new events into a thread that was erased. It begins anew, from seq 1. It takes the rights of the role agui_maintainer.`,
		Args:  oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				refused, err := store.Maintenance().LiftErasure(command.Context(), arguments[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(map[string]any{"threadId": arguments[0], "wasRefused": refused})
				}
				text := "thread %s may begin anew\n"
				if !refused {
					text = "thread %s was not refused: there was nothing to allow\n"
				}
				_, err = fmt.Fprintf(p.out, text, arguments[0])
				return err
			})
		},
	}
}
