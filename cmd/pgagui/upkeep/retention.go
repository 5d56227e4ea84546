package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) retentionCommand() *cobra.Command {
	retention := &cobra.Command{
		Use:   "retention",
		Short: "Set how long threads are kept, and do it",
		Long: `Rules in the database say what happens to threads without activity: to which nothing was appended
and in which nothing was saved for a time. There are three actions:

  archive             lists leave the thread out, until it is active again or "pgagui threads set
                      --archived=false" takes it back
  remove_checkpoints  the checkpoints of graphs and workflows are removed, the log stays
  erase               the thread is erased, as "pgagui erase" does

A rule is for a scope, or for all scopes. For each action, the rule of a scope comes before the rule
for all. "pgagui worker" obeys the rules every night (--retain), and so do "pgagui retention apply"
and, in SQL, "call agui.apply_retention()". A thread in progress stays. A thread that is held
("pgagui retention hold") is never erased and keeps its checkpoints.`,
		Example: `  pgagui retention set archive 90d --all-scopes
  pgagui retention set erase 365d --all-scopes
  pgagui retention set erase never --scope acme
  pgagui retention apply --dry-run`,
		Args: cli.NoArguments,
		RunE: cli.NeedsSubcommand("ls, set, rm, apply, hold or allow"),
	}
	all := cli.OfAllScopes(p.retentionListCommand(), p.retentionApplyCommand())
	retention.AddCommand(append(all, p.retentionSetCommand(), p.retentionRemoveCommand(), p.holdCommand(), p.allowCommand())...)
	return retention
}

var retentionActions = []string{string(jobs.RetainArchived), string(jobs.RetainWithoutCheckpoints), string(jobs.RetainNothing)}

func (p *program) retentionListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the rules",
		Long:    `Lists the rules, those for all scopes before those of single scopes.`,
		Example: `  pgagui retention --json`,
		Args:    cli.NoArguments,
		RunE: p.OnPools(func(ctx context.Context, pool *pgxpool.Pool, _ []string) error {
			rules, err := jobs.RetentionRules(ctx, pool)
			if err != nil {
				return err
			}
			heading := []string{"ACTION", "AFTER", "SCOPE", "SET AT", "SET BY"}
			return cli.PrintList(p.Program, rules, "there are no rules: all threads are kept", heading, func(rule jobs.RetentionRule) []string {
				return []string{
					string(rule.Action), cmp.Or(rule.OlderThan, "never"), cli.ScopeText(rule.Scope, rule.AllScopes), cli.TimeText(rule.SetAt), rule.SetBy,
				}
			}, 2, 4)
		}),
	}
}

// ruleScope reads the scope of a rule, which has to be given.
func (p *program) ruleScope(command *cobra.Command, all bool) error {
	if all == cli.ScopeIsGiven(command) {
		return cli.WrongUsage(command, "expected one of --scope and --all-scopes")
	}
	return nil
}

func (p *program) retentionSetCommand() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:   "set ACTION DURATION",
		Short: "Set a rule",
		Long: `Sets what happens to threads without activity for a time. The action is archive,
remove_checkpoints or erase. The duration is for example 90d, or an interval of PostgreSQL such as
"1 year"; never exempts the scope from the rule for all scopes. Nothing happens at once:
"pgagui retention apply --dry-run" says what the rules would do. The command needs the role
agui_maintainer.`,
		Example: `  pgagui retention set erase 90d --scope acme`,
		Args:    cli.Arguments(2, 2),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := p.ruleScope(command, all); err != nil {
				return err
			}
			rule := jobs.RetentionRule{Scope: p.Scope, AllScopes: all, Action: jobs.RetentionAction(arguments[0]), OlderThan: intervalText(arguments[1])}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				err := jobs.SetRetention(ctx, pool, rule)
				if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && (refusal.Code == "22007" || refusal.Code == "22008") { // what PostgreSQL does not read as an interval
					return fmt.Errorf(`%q is not a duration (expected for example 90d, 12h or "1 year", or never)`, arguments[1])
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.Out, "%s after %s, %s (pgagui retention apply --dry-run says what it concerns)\n", rule.Action, arguments[1], cli.ScopeText(rule.Scope, all))
				return err
			})
		},
		ValidArgs: retentionActions,
	}
	command.Flags().BoolVar(&all, "all-scopes", false, "set the rule for all scopes")
	return command
}

// intervalText returns a duration of the command line as PostgreSQL reads it; empty: never.
func intervalText(text string) string {
	var age cli.Age
	switch {
	case text == "never":
		return ""
	case age.Set(text) != nil: // PostgreSQL reads it
		return text
	case time.Duration(age)%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", time.Duration(age)/(24*time.Hour))
	}
	return fmt.Sprintf("%f seconds", time.Duration(age).Seconds())
}

func (p *program) retentionRemoveCommand() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:     "rm ACTION",
		Short:   "Remove a rule",
		Long:    `Removes the rule of an action. The command needs the role agui_maintainer.`,
		Example: `  pgagui retention rm erase --all-scopes`,
		Args:    cli.Arguments(1, 1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := p.ruleScope(command, all); err != nil {
				return err
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				wasSet, err := jobs.RemoveRetention(ctx, pool, jobs.RetentionRule{Scope: p.Scope, AllScopes: all, Action: jobs.RetentionAction(arguments[0])})
				if err != nil {
					return err
				}
				text := "removed: %s, %s\n"
				if !wasSet {
					text = "nothing to remove: there is no rule %s, %s\n"
				}
				_, err = fmt.Fprintf(p.Out, text, arguments[0], cli.ScopeText(p.Scope, all))
				return err
			})
		},
		ValidArgs: retentionActions,
	}
	command.Flags().BoolVar(&all, "all-scopes", false, "remove the rule for all scopes")
	return command
}

// planRetention prints what the rules would do now.
func (p *program) planRetention(ctx context.Context, pool *pgxpool.Pool, options jobs.RetainOptions, threads bool) error {
	var failure error
	if threads {
		options.Each = func(thread jobs.RetainedThread) {
			if failure == nil {
				failure = p.printRetained(thread)
			}
		}
	}
	done, err := jobs.Retain(ctx, pool, options)
	if err == nil {
		err = failure
	}
	if err != nil || threads && p.JSON {
		return err
	}
	return p.printRetention(done)
}

func (p *program) printRetained(thread jobs.RetainedThread) error {
	if p.JSON {
		return p.PrintJSON(thread)
	}
	where, kept := "thread "+thread.ThreadID, ""
	if thread.Scope != "" {
		where += " of scope " + thread.Scope
	}
	if thread.KeptBecause != "" {
		kept = ", not done: it is " + thread.KeptBecause
	}
	_, err := fmt.Fprintf(p.Out, "%s %s, %s, last active %s%s\n",
		thread.Action, where, cli.CountText(thread.Events, "event"), cli.TimeText(thread.LastActivityAt), kept)
	return err
}

// printRetention prints the counts of each rule.
func (p *program) printRetention(done jobs.Retained) error {
	if p.JSON {
		return p.PrintJSON(done)
	}
	if len(done.Rules) == 0 {
		_, err := fmt.Fprintln(p.Out, "no thread is due")
		return err
	}
	rows := [][]string{{"ACTION", "AFTER", "SCOPE", "THREADS", "EVENTS", "LOG", "HELD", "IN PROGRESS"}}
	for _, rule := range done.Rules {
		rows = append(rows, []string{
			string(rule.Action), rule.OlderThan, cli.ScopeText(rule.Scope, rule.AllScopes), fmt.Sprint(rule.Threads), fmt.Sprint(rule.Events),
			cli.BytesText(rule.Bytes), fmt.Sprint(rule.Held), fmt.Sprint(rule.InProgress),
		})
	}
	return p.PrintTable(rows, 2)
}

// retainResult is the JSON output of apply.
type retainResult struct {
	jobs.Retained
	Skipped jobs.SkipReason `json:"skipped,omitempty"`
}

func (p *program) retentionApplyCommand() *cobra.Command {
	var options jobs.RetainOptions
	yes, threads := false, false
	command := &cobra.Command{
		Use:   "apply",
		Short: "Do what the rules say",
		Long: `Does what the rules say to all threads for which it is due, each in its own transaction. A thread
that became active since the plan stays as it is. The command asks for confirmation; without a
terminal it needs --yes. While another apply is in progress, and on a standby, it does nothing and
exits with 0. Exit code 6 means that work is left: it stopped at --limit or --max-time, or other
transactions held threads. It needs the role agui_maintainer.

With --dry-run it changes nothing. It prints for each rule how many threads it concerns now, with
their events and the stored size of their logs, and how many stay because they are held or in
progress. --threads lists the threads with the time of their last activity.`,
		Example: `  pgagui retention apply --dry-run --threads
  pgagui retention apply --yes --max-time 10m`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.MaxThreads < 0 || options.MaxTime < 0 {
				return cli.WrongUsage(command, "--limit and --max-time must not be negative")
			}
			if err := cmp.Or(
				cli.GoesWith(command, "--dry-run", options.DryRun, "threads"),
				cli.GoesWith(command, "a call without --dry-run", !options.DryRun, "limit", "max-time"),
			); err != nil {
				return err
			}
			if options.DryRun {
				return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
					return p.planRetention(ctx, pool, options, threads)
				})
			}
			if !yes {
				fmt.Fprintln(p.Messages, "This does what the rules say. It permanently removes threads if a rule says so (pgagui retention apply --dry-run).")
				if err := p.Confirm(command, "nothing was changed"); err != nil {
					return err
				}
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				report, failure := schedule.RetainJob(pool, options).Run(ctx, pool, nil)
				done, _ := report.Result.(jobs.Retained) // nil if the job was skipped
				return p.finishJob(jobEnd{
					report: report, failure: failure, result: retainResult{done, report.Skipped}, runs: done.Threads, stopped: done.Stopped,
					left: done.Busy > 0,
					print: func() error {
						if err := p.printRetention(done); err != nil {
							return err
						}
						_, err := fmt.Fprintf(p.Out, "done in %s%s\n", cli.DurationText(done.Duration), leftText(0, done.Busy))
						return err
					},
				})
			})
		},
	}
	command.Flags().IntVar(&options.MaxThreads, "limit", 0, "stop after this `number` of threads; 0 means no limit")
	command.Flags().DurationVar(&options.MaxTime, "max-time", 0, "stop after this time, for example 50s; 0 means no limit")
	command.Flags().BoolVar(&options.DryRun, "dry-run", false, "say what the rules would do now, and change nothing")
	command.Flags().BoolVar(&threads, "threads", false, "with --dry-run: list the threads; with --json only these, one a line")
	command.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return command
}

func (p *program) holdCommand() *cobra.Command {
	var reason string
	var lift bool
	command := &cobra.Command{
		Use:   "hold [THREAD]",
		Short: "Keep a thread from being erased, or list those that are held",
		Long: `Holds a thread: it cannot be erased, neither by "pgagui erase" nor by a rule, until --lift permits
it. Its log can be continued. A second call replaces the reason. Without THREAD the threads of the
scope that are held are listed, the oldest hold first. To hold and to lift, the command needs the
role agui_maintainer.`,
		Example: `  pgagui retention hold trip-to-lisbon --reason "case 4711"
  pgagui retention hold --scope acme --json
  pgagui retention hold trip-to-lisbon --lift`,
		Args: cli.Arguments(0, 1),
		RunE: func(command *cobra.Command, arguments []string) error {
			hasReason := command.Flags().Changed("reason")
			switch {
			case len(arguments) == 0 && (lift || hasReason):
				return cli.WrongUsage(command, "expected one thread id")
			case lift && hasReason:
				return cli.WrongUsage(command, "--lift and --reason exclude each other")
			case len(arguments) == 1 && !lift && strings.TrimSpace(reason) == "":
				return cli.WrongUsage(command, "--reason is missing")
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				switch ctx, holds := command.Context(), store.Maintenance(); {
				case len(arguments) == 0:
					return p.listHolds(ctx, holds)
				case lift:
					return p.liftHold(ctx, holds, arguments[0])
				default:
					held, err := holds.SetHold(ctx, arguments[0], reason)
					if err != nil {
						return err
					}
					return p.PrintResult(held, "thread %s is held\n", arguments[0])
				}
			})
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "`text` that says why")
	command.Flags().BoolVar(&lift, "lift", false, "permit the thread to be erased")
	return command
}

func (p *program) liftHold(ctx context.Context, holds pgagui.Maintenance, threadID string) error {
	wasHeld, err := holds.LiftHold(ctx, threadID)
	if err != nil {
		return err
	}
	text := "thread %s is not held any more\n"
	if !wasHeld {
		text = "nothing to lift: thread %s was not held\n"
	}
	return p.PrintResult(map[string]any{"threadId": threadID, "wasHeld": wasHeld}, text, threadID)
}

func (p *program) listHolds(ctx context.Context, of pgagui.Maintenance) error {
	holds, err := of.Holds(ctx)
	if err = p.Partly(err); err != nil {
		return err
	}
	return cli.PrintList(p.Program, holds, "", []string{"THREAD", "SINCE", "BY", "REASON"}, func(held pgagui.Hold) []string {
		return []string{held.ThreadID, cli.TimeText(held.HeldAt), held.HeldBy, cli.Joined(held.Reason)}
	}, 0, 3)
}
