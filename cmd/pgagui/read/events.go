package read

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/compaction"
)

// eventsFlags are the flags of events that do not set an option of the store directly.
type eventsFlags struct {
	exportOptions
	follow, page bool
	after        int64
	since, until string
}

func (p *program) eventsCommand() *cobra.Command {
	var given eventsFlags
	var shape compaction.Shape
	var follow pgagui.FollowOptions
	var page pgagui.HistoryOptions
	command := &cobra.Command{
		Use:   "events [THREAD]",
		Short: "Print the events of a thread, as they are, as they arrive, or in pages",
		Long: `Prints the raw events of a thread, one a line, byte for byte. The events of a run come together, and
the runs in the order in which they began, so that "pgagui import" can read the output. With --run
it prints the lineage of that run; with --lineage=false only the run itself.

With --all it prints all threads of the scope, one after another, in the order of their ids, as of
when it comes to them. A thread that is erased meanwhile is left out. Titles, agents and metadata of
threads are no events: "pgagui threads --all --json" has them.

The log also keeps data beside the events: the inputs of the runs, byte for byte, and parents that
no event names; and, for roles with agui_diagnoser, what agents answered in place of events.
--requests writes them to a file, which "pgagui import --requests" reads. Without --requests lines
on stderr say how many were left out.

An event may contain line ends between its fields. Then use --null, which writes a NUL byte instead
of a line end after each event and each request.

With --compact the events of each run are replaced by fewer events with the same result. "stream"
gives each message and tool call as a start, one piece and an end. "snapshot" gives all messages and
the state as of the end of each run, so combine it with --lineage=false. RUN_STARTED then carries
the input of the run.

--follow prints first the events in the log and then new ones as they arrive, like tail -f, in the
order of seq. It ends when no run of the thread is in progress, or with --run when that run has
ended. If the connection to the database is lost, it waits until it is back. With --compact only the
past is replaced: what is open stays open, and the events that follow come one by one. With --json
each line is an object with seq, runId, type, recordedAt, and payload, which has the bytes of the
event. The events of a past that was replaced have no recordedAt, and only the last of them has a
seq. To continue after it, use --after.

--page prints a table of the log, all branches, in the order of seq. Consecutive pieces of one
message, or of the arguments of one tool call, are joined into one row with the number of events;
its seq is that of the first event. With --raw every event is a row. A page has 100 rows unless
--limit sets another number. If there are more, a line on stderr has the flag for the next page;
--all prints all pages. With --json each line is an object with seq, lastSeq, runId, type,
eventCount, createdAt, completedAt (if the row joins events) and payload, which has the bytes of a
single event.`,
		Example: `  pgagui events trip-to-lisbon --requests trip.requests.ndjson > trip.ndjson
  pgagui events trip-to-lisbon --run run-3 --compact stream
  pgagui events --all --scope acme --requests acme.requests.ndjson > acme.ndjson
  pgagui events trip-to-lisbon --follow
  pgagui events trip-to-lisbon --follow --run run-4 --compact snapshot --json
  pgagui events trip-to-lisbon --page --type TOOL_CALL_START --type TOOL_CALL_ARGS
  pgagui events trip-to-lisbon --page --since 2h --all --json | jq .payload`,
		Args: func(command *cobra.Command, arguments []string) error {
			if given.all && !given.page {
				return cli.NoArguments(command, arguments)
			}
			return cli.OneThread(command, arguments)
		},
		PreRunE: func(command *cobra.Command, _ []string) error {
			err := cmp.Or(
				cli.GoesWith(command, "--follow", given.follow, "stay"),
				cli.GoesWith(command, "--page", given.page, "type", "since", "until", "limit", "raw", "max-bytes", "max-idle"),
				cli.GoesWith(command, "--follow and --page", given.follow || given.page, "after"),
				cli.GoesWith(command, "the events as they are", !given.follow && !given.page, "requests"),
				cli.GoesWith(command, "the events as they are and --follow", !given.page, "compact"),
				cli.GoesWith(command, "the events as they are and --page", !given.follow, "all"),
			)
			if err != nil {
				return err
			}
			if err := given.complete(command, p.JSON, &page, &shape, time.Now()); err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			follow.RunID, follow.NoLineage, follow.After.Seq, follow.History = given.runID, !given.lineage, given.after, shape
			page.RunID, page.NoLineage, page.AfterSeq = given.runID, !given.lineage, given.after
			return nil
		},
		RunE: func(command *cobra.Command, threads []string) (err error) {
			if given.all && !given.page {
				threads, err = p.allThreads(command)
				if err = p.Partly(err); err != nil {
					return err
				}
			}
			ctx := command.Context()
			return p.WithStore(ctx, func(store *pgagui.Store) error {
				switch {
				case given.follow:
					return p.follow(ctx, store, threads[0], follow, given.null)
				case given.page:
					return p.history(ctx, store, threads[0], page, given.all, given.null)
				case given.compact != "":
					return p.exportCompacted(ctx, store, threads, given.exportOptions, shape)
				default:
					return p.export(ctx, store, threads, given.exportOptions)
				}
			})
		},
	}
	flags := command.Flags()
	flags.BoolVar(&given.follow, "follow", false, "also print new events as they arrive, like tail -f")
	flags.BoolVar(&given.page, "page", false, "print a table of the log in pages")
	flags.StringVar(&given.runID, "run", "", "`id` of a run: only the events of this run and of the runs before it in its lineage")
	flags.BoolVar(&given.lineage, "lineage", true, "include the runs before it; --lineage=false: only the events of the run itself (without --run: of the head)")
	flags.BoolVar(&given.all, "all", false, "print all threads of the scope; with --page: all pages")
	flags.StringVar(&given.compact, "compact", "", "`shape` of a shorter stream with the same result: stream or snapshot; with --follow: of the past")
	flags.StringVar(&given.requests, "requests", "", "`file` to write the inputs of the runs to, for import --requests")
	flags.BoolVar(&given.null, "null", false, "write a NUL byte instead of a line end after each event; with --page: after each row of --json")
	flags.Int64Var(&given.after, "after", 0, "with --follow and --page: start after this `seq`")
	flags.BoolVar(&follow.Stay, "stay", false, "with --follow: wait if the thread or the run does not exist yet, and for the next run of the thread")
	flags.StringArrayVar(&page.Types, "type", nil, "with --page: show only events of this `type`; may be repeated")
	flags.StringVar(&given.since, "since", "", "with --page: show only events since this `time`: "+cli.TimeFormats)
	flags.StringVar(&given.until, "until", "", "with --page: show only events before this `time`, in the same formats")
	flags.IntVar(&page.Limit, "limit", 100, "with --page: maximum `number` of rows, from 1 to 1000")
	flags.BoolVar(&page.Raw, "raw", false, "with --page: do not join pieces: one row per event")
	flags.IntVar(&page.MaxBytes, "max-bytes", 0, "with --page: join at most this `number` of bytes of text into a row; 0 means no limit")
	flags.DurationVar(&page.MaxIdle, "max-idle", 0, "with --page: do not join pieces with a longer pause between them, for example 5s; 0 means no limit")
	return command
}

// complete sets the options from the flags, and checks their combination.
func (f eventsFlags) complete(command *cobra.Command, asJSON bool, page *pgagui.HistoryOptions, shape *compaction.Shape, now time.Time) (err error) {
	switch {
	case f.follow && f.page:
		return errors.New("--follow and --page exclude each other")
	case f.after < 0:
		return errors.New("--after must be 0 or more")
	case f.page && f.null && !asJSON:
		return errors.New("--null needs --json")
	case f.page && (page.Limit < 1 || page.Limit > 1000):
		return fmt.Errorf("--limit must be from 1 to 1000, not %d", page.Limit)
	case page.MaxBytes < 0 || page.MaxIdle < 0:
		return errors.New("--max-bytes and --max-idle must be 0 or more")
	case f.all && command.Flags().Changed("limit"):
		return errors.New("--all and --limit exclude each other")
	case f.all && !f.page && (f.runID != "" || !f.lineage):
		return errors.New("--all excludes --run and --lineage: it prints all runs of all threads")
	case f.compact != "" && f.requests != "":
		return errors.New("--compact and --requests exclude each other: --compact writes the inputs into RUN_STARTED")
	case f.follow && f.compact != "" && !f.lineage:
		return errors.New("--follow --compact and --lineage=false exclude each other: a past that is replaced is that of the whole lineage")
	case f.follow && f.compact != "" && command.Flags().Changed("after"):
		return errors.New("--follow --compact and --after exclude each other: a past that is replaced begins with the first event")
	case f.all:
		page.Limit = 1000
	}
	if f.compact != "" {
		if *shape, err = compaction.ParseShape(f.compact); err != nil {
			return errors.New(`--compact must be "stream" or "snapshot"`)
		}
	}
	if page.Since, err = cli.PointInTime("--since", f.since, now); err != nil {
		return err
	}
	page.Until, err = cli.PointInTime("--until", f.until, now)
	return err
}
