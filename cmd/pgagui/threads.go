package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
)

// threadsFlags are those that are not options of the store as they are.
type threadsFlags struct {
	archived, since, status, metadata string
	all                               bool
}

func (p *program) threadsCommand() *cobra.Command {
	options := pgagui.ThreadsOptions{}
	given := threadsFlags{}
	command := &cobra.Command{
		Use:   "threads",
		Short: "List the threads of a scope, newest activity first",
		Long: `Lists the threads of a scope, newest activity first: a run of them began or ended then. The title is
the one that was set ("pgagui threads set"), else the beginning of the first user message. The
status is that of the head, stale where it is in progress without a sign of life.

A list has 50 threads unless --limit says otherwise. Where there are more, the way to the next ones
is on stderr. A thread that becomes active moves to the top, so lists that go on from a --cursor do
not show it; --all shows the threads as they are at one moment.

With --json each line is an object with threadId, title, agent, metadata, archived, createdAt,
activeAt, headRunId, status, stale, runs, branches, and cursor, the place that --cursor goes on from.`,
		Example: `  pgagui threads --since 24h --status failed
  pgagui threads --title lisbon --all --json | jq -r .threadId`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := given.complete(&options, command.Flags().Changed("limit"), time.Now()); err != nil {
				return &usageError{problem: err.Error(), command: command.CommandPath()}
			}
			pool, err := p.connect(command.Context(), 1)
			if err != nil {
				return err
			}
			defer pool.Close()
			return p.threads(command.Context(), pool, options, given.all)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Agent, "agent", "", "only threads of this agent")
	flags.StringVar(&given.archived, "archived", "", "only archived threads; --archived=any: those too")
	flags.Lookup("archived").NoOptDefVal = "only"
	flags.StringVar(&options.Title, "title", "", "only threads with this text in their title")
	flags.StringVar(&given.since, "since", "",
		"only threads active since then:\nso long ago, as in 24h or 7d, or a time, as in 2006-01-02T15:04:05Z")
	flags.StringVar(&given.status, "status", "", "only threads whose head is running, stale, finished or failed")
	flags.StringVar(&given.metadata, "metadata", "",
		`only threads whose metadata contains this JSON object, as in '{"folder":"trips"}'`)
	flags.StringVar(&options.Cursor, "cursor", "", "begin behind this place")
	flags.IntVar(&options.Limit, "limit", 50, "threads at most, up to 1000")
	flags.BoolVar(&given.all, "all", false, "all threads, however many")
	for flag, values := range map[string][]string{
		"archived": {"only", "any"},
		"status":   {"running", "stale", "finished", "failed"},
	} {
		if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err)
		}
	}
	command.AddCommand(p.threadsSetCommand())
	return command
}

// complete reads the flags into the options, and makes sure that they go together.
func (f threadsFlags) complete(options *pgagui.ThreadsOptions, limited bool, now time.Time) (err error) {
	switch {
	case options.Limit < 1 || options.Limit > 1000:
		return fmt.Errorf("--limit must be from 1 to 1000, not %d", options.Limit)
	case f.all && limited:
		return errors.New("--all and --limit exclude each other")
	case f.metadata != "" && !isJSONObject(f.metadata):
		return fmt.Errorf("--metadata %s: give a JSON object", f.metadata)
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
		return fmt.Errorf("--archived=%s: give --archived, or --archived=any", f.archived)
	}
	switch f.status {
	case "", "running", "finished", "failed":
		options.Status = pgagui.Status(f.status)
	case "stale":
		options.Stale = true
	default:
		return fmt.Errorf("--status %s: give running, stale, finished or failed", f.status)
	}
	if f.metadata != "" {
		options.Metadata = json.RawMessage(f.metadata)
	}
	options.Since, err = pointInTime("--since", f.since, now)
	return err
}

func isJSONObject(text string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &members) == nil && members != nil
}

func (p *program) threads(ctx context.Context, pool *pgxpool.Pool, options pgagui.ThreadsOptions, all bool) error {
	var threads []pgagui.Thread
	// A page of a search may be short, so there may be several also without --all. They are of one
	// moment.
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, pool, moment, func(tx pgx.Tx) error {
		store := p.store(pool).WithTx(tx)
		limit := options.Limit
		for {
			page, err := store.Threads(ctx, options)
			if err != nil {
				return err
			}
			threads = append(threads, page.Threads...)
			if options.Cursor = page.Cursor; page.Cursor == "" || !all && len(threads) == limit {
				return nil
			}
			if !all {
				options.Limit = limit - len(threads)
			}
		}
	})
	if err != nil {
		return err
	}
	if err := p.printThreads(threads); err != nil {
		return err
	}
	switch {
	case options.Cursor != "":
		_, err = fmt.Fprintf(p.messages, "there is more: go on with --cursor %s, or give --all\n", options.Cursor)
	case len(threads) == 0:
		err = p.hintAtOtherScopes(ctx, pool, "are not listed")
	}
	return err
}

func (p *program) printThreads(threads []pgagui.Thread) error {
	rows := [][]string{{"THREAD", "TITLE", "AGENT", "STATUS", "RUNS", "BRANCHES", "ACTIVE"}}
	for _, thread := range threads {
		if p.json {
			if err := p.printJSON(thread); err != nil {
				return err
			}
			continue
		}
		status := orDash(string(thread.Status))
		if thread.Stale {
			status = "stale"
		}
		if thread.Archived {
			status += ", archived"
		}
		rows = append(rows, []string{
			thread.ID, shorten(orDash(thread.Title), 50), orDash(thread.Agent), status,
			fmt.Sprint(thread.Runs), fmt.Sprint(thread.Branches), thread.ActiveAt.Local().Format("2006-01-02 15:04:05"),
		})
	}
	if p.json {
		return nil
	}
	return p.printTable(rows)
}

func (p *program) threadsSetCommand() *cobra.Command {
	var title, agent, metadata string
	var archived bool
	var changes pgagui.ThreadChanges
	command := &cobra.Command{
		Use:   "set THREAD",
		Short: "Set title, agent and metadata of a thread, or archive it",
		Long: `Sets what lists show of a thread, and prints the thread. What no flag names stays as it is, and so
does the place of the thread in lists.

--metadata takes a JSON object that is merged into the one that is kept, member by member; null
removes a member.`,
		Example: `  pgagui threads set trip-to-lisbon --title "Three days in Lisbon" --metadata '{"folder":"trips"}'
  pgagui threads set trip-to-lisbon --archived`,
		Args: oneThread,
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
					return &usageError{problem: fmt.Sprintf("--metadata %s: give a JSON object", metadata), command: command.CommandPath()}
				}
				changes.Metadata = json.RawMessage(metadata)
			}
			nothing := changes.Title == nil && changes.Agent == nil && changes.Archived == nil && changes.Metadata == nil
			if nothing && !changes.CreateIfMissing {
				return &usageError{
					problem: "say what to set: --title, --agent, --archived or --metadata", command: command.CommandPath(),
				}
			}
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				thread, err := store.SetThread(command.Context(), arguments[0], changes)
				if err != nil {
					return err
				}
				return p.printThreads([]pgagui.Thread{thread})
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&title, "title", "", `the title; "" takes it away, and lists show the beginning of the first user message`)
	flags.StringVar(&agent, "agent", "", `the agent that the thread belongs to; "" takes it away`)
	flags.BoolVar(&archived, "archived", false, "leave it out of lists; --archived=false takes that back")
	flags.StringVar(&metadata, "metadata", "", "JSON object to merge into the metadata")
	flags.BoolVar(&changes.CreateIfMissing, "create", false, "make the thread if there is none; it has no runs then")
	return command
}
