package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) webhookCommand() *cobra.Command {
	hook := &cobra.Command{
		Use:   "webhook",
		Short: "Send an HTTP request when a run has ended or waits for an answer",
		Long: `A webhook is an endpoint of yours that gets an HTTP POST when a run has ended, or has stopped to ask
a person. "pgagui worker" and "pgagui serve --worker" send the requests (--webhooks). There are four
kinds:

  run.finished    the run has finished
  run.failed      it has failed, or was cut off because its writer was gone
  run.cancelled   it was cancelled
  run.waiting     it ended with an interrupt, or with a tool call that has no result, and waits

A request names the run and says how it ended; it has no messages. It is signed as Standard Webhooks
has it, and comes at least once. If the endpoint does not take it with a status of 2xx, it is
repeated, 8 times in about a day. docs/guides/webhooks.md shows how to receive and verify it.`,
		Example: `  pgagui webhook add crm https://example.com/hooks --all-scopes --kinds run.failed,run.waiting
  pgagui webhook test crm
  pgagui webhook failures crm`,
		Args: cli.NoArguments,
		RunE: cli.NeedsSubcommand("add, ls, rm, set, rotate, take-over, test or failures"),
	}
	all := cli.OfAllScopes(
		p.webhookListCommand(), p.webhookRemoveCommand(), p.webhookSetCommand(), p.webhookRotateCommand(), p.webhookTakeOverCommand(), p.webhookTestCommand(),
		p.webhookFailuresCommand(),
	)
	hook.AddCommand(append(all, p.webhookAddCommand())...)
	return hook
}

func (p *program) webhookAddCommand() *cobra.Command {
	var all bool
	var kinds []string
	command := &cobra.Command{
		Use:   "add NAME URL",
		Short: "Add a webhook, and print its secret once",
		Long: `Adds a webhook for the runs of a scope, or of all scopes, that end from now on. It prints the secret
with which the endpoint verifies the signatures, and no command prints it again. The URL begins with
https://; with http:// the worker needs --webhook-http, and if the address of the endpoint is not
public, --webhook-networks. The nodes of a cluster get the same secret. If one of them does not
answer, add the webhook there later (--node), and "pgagui webhook rotate" gives all one secret. The
command needs the role agui_maintainer.`,
		Example: `  pgagui webhook add crm https://example.com/hooks --all-scopes
  pgagui webhook add pager https://example.com/pager --scope acme --kinds run.failed`,
		Args: cli.Arguments(2, 2),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := p.ruleScope(command, all); err != nil {
				return err
			}
			hook := jobs.Webhook{Name: arguments[0], URL: arguments[1], Scope: p.Scope, AllScopes: all}
			for _, kind := range kinds {
				hook.Kinds = append(hook.Kinds, jobs.WebhookKind(kind))
			}
			secret := "" // that of the first node is that of all
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				added, err := jobs.AddWebhook(ctx, pool, hook, secret)
				if err != nil {
					return err
				}
				secret = added
				return p.PrintResult(map[string]any{"name": hook.Name, "secret": secret},
					"webhook %s is added, %s\nits secret, which is not shown again: %s\n", hook.Name, cli.ScopeText(p.Scope, all), secret)
			})
		},
	}
	command.Flags().BoolVar(&all, "all-scopes", false, "for the runs of all scopes")
	command.Flags().StringSliceVar(&kinds, "kinds", nil, "`kinds` of ends, as run.failed,run.waiting (default: all)")
	return command
}

func (p *program) webhookListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the webhooks",
		Long: `Lists the webhooks, without their secrets. TO SEND counts the requests that wait or are being sent,
FAILED those that failed for good. The command needs the role agui_maintainer.`,
		Example: `  pgagui webhook ls --json`,
		Args:    cli.NoArguments,
		RunE: p.OnPools(func(ctx context.Context, pool *pgxpool.Pool, _ []string) error {
			hooks, err := jobs.Webhooks(ctx, pool)
			if err != nil {
				return err
			}
			heading := []string{"NAME", "URL", "SCOPE", "KINDS", "STATE", "TO SEND", "FAILED"}
			return cli.PrintList(p.Program, hooks, "there are no webhooks", heading, func(hook jobs.Webhook) []string {
				return []string{
					hook.Name, hook.URL, cli.ScopeText(hook.Scope, hook.AllScopes), kindsText(hook.Kinds), webhookState(hook),
					fmt.Sprint(hook.ToSend), fmt.Sprint(hook.Failed),
				}
			}, 1, 3, 4)
		}),
	}
}

func kindsText(kinds []jobs.WebhookKind) string {
	if len(kinds) == len(jobs.WebhookKinds) {
		return "all"
	}
	var texts []string
	for _, kind := range kinds {
		texts = append(texts, string(kind))
	}
	return strings.Join(texts, ",")
}

func webhookState(hook jobs.Webhook) string {
	switch {
	case hook.Enabled && hook.IsElsewhere:
		return "of another database"
	case hook.Enabled:
		return "enabled"
	case hook.DisabledBecause != "":
		return "disabled: " + hook.DisabledBecause
	default:
		return "disabled"
	}
}

func noWebhook(name string) error {
	return fmt.Errorf("there is no webhook %q (pgagui webhook ls lists them)", name)
}

// refuseUnknownWebhook returns an error if no webhook has the name. Commands that found no requests of a webhook say so with it.
func refuseUnknownWebhook(ctx context.Context, pool *pgxpool.Pool, name string) error {
	hooks, err := jobs.Webhooks(ctx, pool)
	if err == nil && !slices.ContainsFunc(hooks, func(hook jobs.Webhook) bool { return hook.Name == name }) {
		err = noWebhook(name)
	}
	return err
}

func (p *program) webhookRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Remove a webhook",
		Long: `Removes a webhook, with its requests that wait or have failed. The command needs the role
agui_maintainer.`,
		Example: `  pgagui webhook rm crm`,
		Args:    cli.Arguments(1, 1),
		RunE: p.OnPools(func(ctx context.Context, pool *pgxpool.Pool, arguments []string) error {
			isKnown, err := jobs.RemoveWebhook(ctx, pool, arguments[0])
			if err == nil && !isKnown {
				err = noWebhook(arguments[0])
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "webhook %s is removed\n", arguments[0])
			return err
		}),
	}
}

func (p *program) webhookSetCommand() *cobra.Command {
	var enabled bool
	command := &cobra.Command{
		Use:   "set NAME",
		Short: "Enable or disable a webhook",
		Long: `Enables a webhook that was disabled by hand, or because its endpoint answered 410 Gone, or disables
it (--enabled=false). Its requests, and what happens meanwhile, wait until it is enabled; what is
older than 30 days is dropped. The command needs the role agui_maintainer.`,
		Example: `  pgagui webhook set crm --enabled=false
  pgagui webhook set crm --enabled`,
		Args: cli.Arguments(1, 1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if !command.Flags().Changed("enabled") {
				return cli.WrongUsage(command, "nothing to set (expected --enabled or --enabled=false)")
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				isKnown, err := jobs.EnableWebhook(ctx, pool, arguments[0], enabled)
				if err == nil && !isKnown {
					err = noWebhook(arguments[0])
				}
				if err != nil {
					return err
				}
				state := "disabled"
				if enabled {
					state = "enabled"
				}
				_, err = fmt.Fprintf(p.Out, "webhook %s is %s\n", arguments[0], state)
				return err
			})
		},
	}
	command.Flags().BoolVar(&enabled, "enabled", false, "enable it; with false: disable it")
	return command
}

func (p *program) webhookRotateCommand() *cobra.Command {
	var keepOld time.Duration
	command := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Give a webhook another secret, and print it once",
		Long: `Makes another secret, and prints it. For the time of --keep-old each request has two signatures, one
of the old secret too, so that the endpoint can be changed meanwhile. If the old secret is known to
others, give --keep-old 0. The command needs the role agui_maintainer.`,
		Example: `  pgagui webhook rotate crm --keep-old 72h`,
		Args:    cli.Arguments(1, 1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if keepOld < 0 {
				return cli.WrongUsage(command, "--keep-old must not be negative")
			}
			secret := "" // that of the first node is that of all
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				rotated, err := jobs.RotateWebhookSecret(ctx, pool, arguments[0], secret, keepOld)
				if err != nil {
					return err
				}
				if secret = rotated; p.JSON {
					return p.PrintJSON(map[string]any{"name": arguments[0], "secret": secret})
				}
				_, err = fmt.Fprintf(p.Out, "the new secret of webhook %s, which is not shown again: %s\n", arguments[0], secret)
				return err
			})
		},
	}
	command.Flags().DurationVar(&keepOld, "keep-old", 24*time.Hour, "how long the old secret signs, too")
	return command
}

func (p *program) webhookTakeOverCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "take-over [NAME]",
		Short: "Send the requests of webhooks from this database",
		Long: `Makes this database the one that sends the requests of a webhook, or of all. A database that was
restored from a dump of another one sends nothing, because that one may still send, until this
command says that it has replaced it. What happened in this one meanwhile is sent, unless it is
older than 30 days. The command needs the role agui_maintainer.`,
		Example: `  pgagui webhook take-over`,
		Args:    cli.Arguments(0, 1),
		RunE: p.OnPools(func(ctx context.Context, pool *pgxpool.Pool, arguments []string) error {
			taken, err := jobs.TakeOverWebhooks(ctx, pool, strings.Join(arguments, ""))
			switch {
			case err != nil:
				return err
			case p.JSON:
				return p.PrintJSON(map[string]any{"webhooks": taken})
			}
			_, err = fmt.Fprintf(p.Out, "this database now also sends the requests of %s\n", cli.CountText(taken, "webhook"))
			return err
		}),
	}
}

func (p *program) webhookTestCommand() *cobra.Command {
	var flags schedule.WebhookFlags
	command := &cobra.Command{
		Use:   "test NAME",
		Short: "Send a test request to the endpoint of a webhook",
		Long: `Sends a signed request of the type webhook.test from this machine, and prints the answer. Exit code
4 means that the endpoint did not take it. Give the same --webhook- flags as to the worker. The
command needs the role agui_maintainer.`,
		Example: `  pgagui webhook test crm`,
		Args:    cli.Arguments(1, 1),
		RunE: func(command *cobra.Command, arguments []string) error {
			options, err := flags.Options()
			if err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				done, err := jobs.TestWebhook(ctx, pool, arguments[0], options)
				switch {
				case errors.Is(err, pgagui.ErrNotFound):
					return noWebhook(arguments[0])
				case err != nil:
					return err
				case p.JSON:
					err = p.PrintJSON(done)
				case done.IsTaken:
					_, err = fmt.Fprintf(p.Out, "webhook %s works: %s\n", arguments[0], done.Outcome)
				}
				if err == nil && !done.IsTaken {
					err = fmt.Errorf("the endpoint of webhook %s did not take the request: %s", arguments[0], done.Outcome)
				}
				return err
			})
		},
	}
	flags.AddFlags(command.Flags())
	return command
}

func (p *program) webhookFailuresCommand() *cobra.Command {
	var limit int
	var retry, drop bool
	command := &cobra.Command{
		Use:   "failures [NAME [ID]]",
		Short: "List the requests that failed, send them once more, or drop them",
		Long: `Lists the requests of a webhook, or of all, that failed: those that are repeated (NEXT says when)
and those that failed for good (NEXT is -). They stay for 30 days after the end of their run. The
command needs the role agui_maintainer.

With --retry the failed requests of a webhook, all or the one with an id, are due at once, with as
many attempts as at first: the worker sends them with its next run. With --drop they are not sent
any more.`,
		Example: `  pgagui webhook failures crm
  pgagui webhook failures --json | jq -r .runId
  pgagui webhook failures crm --retry
  pgagui webhook failures crm evt_1c0f3b5ce3a14b5c8f3d2d0a6ab1f1c2 --drop`,
		Args: cli.Arguments(0, 2),
		RunE: func(command *cobra.Command, arguments []string) error {
			switch {
			case limit < 0:
				return cli.WrongUsage(command, "--limit must not be negative")
			case retry && drop:
				return cli.WrongUsage(command, "--retry and --drop exclude each other")
			case (retry || drop) && len(arguments) == 0:
				return cli.WrongUsage(command, "expected NAME [ID], got 0 arguments")
			case !retry && !drop && len(arguments) == 2:
				return cli.WrongUsage(command, "an ID goes with --retry and --drop")
			}
			if err := cli.GoesWith(command, "a list", !retry && !drop, "limit"); err != nil {
				return err
			}
			return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				switch {
				case retry:
					return p.handleFailures(ctx, pool, arguments, "will be sent at once", jobs.RetryWebhookFailures)
				case drop:
					return p.handleFailures(ctx, pool, arguments, "dropped", jobs.DropWebhookFailures)
				}
				return p.listFailures(ctx, pool, arguments, limit)
			})
		},
	}
	command.Flags().IntVar(&limit, "limit", 100, "list at most this `number` of requests; 0 means all")
	command.Flags().BoolVar(&retry, "retry", false, "send the requests once more")
	command.Flags().BoolVar(&drop, "drop", false, "drop the requests")
	return command
}

func (p *program) listFailures(ctx context.Context, pool *pgxpool.Pool, arguments []string, limit int) error {
	failures, err := jobs.WebhookFailures(ctx, pool, strings.Join(arguments, ""), limit)
	if err == nil && len(failures) == 0 && len(arguments) > 0 {
		err = refuseUnknownWebhook(ctx, pool, arguments[0])
	}
	if err != nil {
		return err
	}
	heading := []string{"WEBHOOK", "ID", "KIND", "SCOPE", "THREAD", "RUN", "ATTEMPTS", "OUTCOME", "NEXT"}
	return cli.PrintList(p.Program, failures, "no request has failed", heading, func(failure jobs.WebhookFailure) []string {
		return []string{
			failure.Webhook, failure.EventID, string(failure.Kind), failure.Scope, failure.ThreadID, failure.RunID,
			fmt.Sprint(failure.Attempts), failure.Outcome, cli.TimeOrDash(failure.NextAttemptAt),
		}
	}, 3, 4, 5, 7)
}

// handleFailures does something to failed requests of a webhook, and says that it is done.
func (p *program) handleFailures(
	ctx context.Context, pool *pgxpool.Pool, arguments []string, done string, do func(ctx context.Context, pool *pgxpool.Pool, name, eventID string) (int64, error),
) error {
	count, err := do(ctx, pool, arguments[0], strings.Join(arguments[1:], ""))
	if err == nil && count == 0 {
		err = refuseUnknownWebhook(ctx, pool, arguments[0])
	}
	if err != nil {
		return err
	}
	return p.PrintResult(map[string]any{"requests": count}, "%s %s\n", cli.CountText(count, "request"), done)
}
