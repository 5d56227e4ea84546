package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// threadsFlags are the flags that do not set an option of the store directly.
type threadsFlags struct {
	archived, since, status, metadata string
	all                               bool
}

func (p *program) threadsCommand() *cobra.Command {
	options := pgagui.ThreadsOptions{}
	given := threadsFlags{}
	command := &cobra.Command{
		Use:   "threads",
		Short: "List the threads of a scope, most recently active first",
		Long: `Lists the threads of a scope, most recently active first. A thread is active when a run of it begins
or ends. The title is the one set by "pgagui threads set", otherwise the beginning of the first
message of the user. The status is that of the head, or stale if the head is in progress without a
sign of life; of a head that did not finish, the list says why.

--status running, stale, finished or interrupted (waits for answers) finds threads whose head has
that status. --status cancelled, failed or cut_off finds threads of which any run ended so, within
--since if that is set; with --head, those whose head ended so. "pgagui log --all-threads" lists
such runs.

A list has 50 threads unless --limit sets another number. If there are more, a line on stderr has
the flag for the next page. A thread that becomes active moves to the top, so the pages after a
--cursor do not show it. --all shows all threads as of one point in time.

With --json each line is an object with threadId, title, agent, metadata, archived, createdAt,
activeAt, headRunId, status, stale, errorCode, errorMessage, stopReason, cutOffReason, runs,
branches, and cursor, the value for --cursor.`,
		Example: `  pgagui threads --since 24h --status failed
  pgagui threads --title lisbon --all --json | jq -r .threadId`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := given.complete(&options, command.Flags().Changed("limit"), time.Now()); err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			return p.WithSnapshot(command.Context(), func(store *pgagui.Store, tx pgx.Tx) error {
				return p.threads(command.Context(), store, tx, options, given.all, cli.ScopeIsGiven(command))
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Agent, "agent", "", "list only threads of this agent, by `name`")
	flags.StringVar(&given.archived, "archived", "", "list only archived threads; --archived=any lists archived threads as well")
	flags.Lookup("archived").NoOptDefVal = "only"
	flags.StringVar(&options.Title, "title", "", "list only threads with this `text` in their title")
	flags.StringVar(&given.since, "since", "", "list only threads active since this `time`: "+cli.TimeFormats)
	flags.StringVar(&given.status, "status", "", "list only threads with this `status`: running, stale, finished, interrupted, cancelled, failed or cut_off")
	flags.BoolVar(&options.HeadOnly, "head", false, "with --status cancelled, failed or cut_off: list only threads whose head ended so")
	flags.StringVar(&given.metadata, "metadata", "",
		"list only threads whose metadata contains this JSON `object`, for example '{\"folder\":\"trips\"}'")
	flags.StringVar(&options.Cursor, "cursor", "", "start after this `cursor`, from an earlier page")
	flags.IntVar(&options.Limit, "limit", 50, "maximum `number` of threads, from 1 to 1000")
	flags.BoolVar(&given.all, "all", false, "list all threads")
	for flag, values := range map[string][]string{
		"archived": {"only", "any"},
		"status":   append([]string{"stale"}, statusNames...),
	} {
		if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
	command.AddCommand(p.threadsSetCommand())
	return command
}

// complete sets the options from the flags, and checks their combination.
func (f threadsFlags) complete(options *pgagui.ThreadsOptions, limited bool, now time.Time) (err error) {
	switch {
	case options.Limit < 1 || options.Limit > 1000:
		return fmt.Errorf("--limit must be from 1 to 1000, not %d", options.Limit)
	case f.all && limited:
		return errors.New("--all and --limit exclude each other")
	case f.metadata != "" && !isJSONObject(f.metadata):
		return fmt.Errorf("--metadata %s: not a JSON object", f.metadata)
	case f.all:
		options.Limit = 1000
	}
	switch f.archived {
	case "":
	case "only":
		options.Archived = pgagui.OnlyArchived
	case "any":
		options.Archived = pgagui.WithArchived
	default:
		return fmt.Errorf("--archived=%s: unknown value (expected only or any)", f.archived)
	}
	switch f.status {
	case "":
	case "stale":
		options.Stale = true
	default:
		if options.Status, err = readStatus(f.status, statusNames); err != nil {
			return err
		}
	}
	if f.metadata != "" {
		options.Metadata = json.RawMessage(f.metadata)
	}
	options.Since, err = cli.PointInTime("--since", f.since, now)
	return err
}

func isJSONObject(text string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &members) == nil && members != nil
}

// threads prints threads. hasScope: the command line sets it.
func (p *program) threads(ctx context.Context, store *pgagui.Store, tx pgx.Tx, options pgagui.ThreadsOptions, all, hasScope bool) error {
	threads, cursor, err := p.listThreads(ctx, store, options, all)
	if err != nil {
		return err
	}
	if err := p.printThreads(threads); err != nil {
		return err
	}
	if cursor != "" {
		_, err = fmt.Fprintf(p.Messages, "more threads follow: continue with --cursor %s, or use --all\n", cursor)
	}
	if err == nil && tx != nil && (len(threads) == 0 || !hasScope) {
		err = p.HintAtOtherScopes(ctx, tx, "are not listed")
	}
	return err
}

// listThreads returns the threads, and the cursor to continue from: "" if there are no more. With all it ignores the limit.
func (p *program) listThreads(ctx context.Context, store *pgagui.Store, options pgagui.ThreadsOptions, all bool) (threads []pgagui.Thread, cursor string, err error) {
	// A search may return pages with fewer threads than the limit, so it may need several pages
	// even without --all.
	limit := options.Limit
	for {
		page, err := store.Threads(ctx, options)
		if err = p.Partly(err); err != nil {
			return nil, "", err
		}
		threads = append(threads, page.Threads...)
		if options.Cursor = page.Cursor; page.Cursor == "" || !all && len(threads) == limit {
			return threads, options.Cursor, nil
		}
		if !all {
			options.Limit = limit - len(threads)
		}
	}
}

func (p *program) printThreads(threads []pgagui.Thread) error {
	rows := [][]string{{"THREAD", "TITLE", "AGENT", "STATUS", "RUNS", "BRANCHES", "ACTIVE", "WHY"}}
	for _, thread := range threads {
		if p.JSON {
			if err := p.PrintJSON(thread); err != nil {
				return err
			}
			continue
		}
		status := cli.OrDash(cli.StatusText(thread.Status))
		if thread.Stale {
			status = "stale"
		}
		if thread.Archived {
			status += ", archived"
		}
		rows = append(rows, []string{
			thread.ID, cli.Joined(cli.OrDash(thread.Title)), cli.OrDash(thread.Agent), status,
			fmt.Sprint(thread.Runs), fmt.Sprint(thread.Branches), cli.TimeText(thread.ActiveAt),
			cli.Joined(cli.WhyText(thread.Status, thread.RunEnd)),
		})
	}
	if p.JSON {
		return nil
	}
	return p.PrintTable(cli.WithoutEmptyColumn(rows, 7), 0, 1, 2, 7)
}

func (p *program) threadsSetCommand() *cobra.Command {
	var title, agent, metadata string
	var archived bool
	var changes pgagui.ThreadChanges
	command := &cobra.Command{
		Use:   "set THREAD",
		Short: "Set the title, agent or metadata of a thread, or archive it",
		Long: `Sets the values that lists show of a thread, and prints the thread. Values without a flag stay, and
so does the place of the thread in lists.

--metadata takes a JSON object and merges it, member by member, into the stored one. null removes a
member.`,
		Example: `  pgagui threads set trip-to-lisbon --title "Three days in Lisbon" --metadata '{"folder":"trips"}'
  pgagui threads set trip-to-lisbon --archived`,
		Args: cli.OneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			flags := command.Flags()
			if flags.Changed("title") {
				changes.Title = &title
			}
			if flags.Changed("agent") {
				changes.Agent = &agent
			}
			if flags.Changed("archived") {
				changes.Archived = &archived
			}
			if flags.Changed("metadata") {
				if !isJSONObject(metadata) {
					return cli.WrongUsage(command, fmt.Sprintf("--metadata %s: not a JSON object", metadata))
				}
				changes.Metadata = json.RawMessage(metadata)
			}
			nothing := changes.Title == nil && changes.Agent == nil && changes.Archived == nil && changes.Metadata == nil
			if nothing && !changes.CreateIfMissing {
				return cli.WrongUsage(command, "nothing to set (expected --title, --agent, --archived or --metadata)")
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				thread, err := store.SetThread(command.Context(), arguments[0], changes)
				if err != nil {
					return err
				}
				return p.printThreads([]pgagui.Thread{thread})
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&title, "title", "", "set the title to this `text`; \"\" removes it, and lists show the first message of the user")
	flags.StringVar(&agent, "agent", "", "set the agent by `name`; \"\" removes it")
	flags.BoolVar(&archived, "archived", false, "archive the thread, so that lists leave it out; with false: restore it")
	flags.StringVar(&metadata, "metadata", "", "merge this JSON `object` into the metadata")
	flags.BoolVar(&changes.CreateIfMissing, "create", false, "create the thread, without runs, if it does not exist")
	return command
}
