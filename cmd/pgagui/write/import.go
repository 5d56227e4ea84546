package write

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/ingest"
	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/internal/legacysession"
)

func (p *program) importCommand() *cobra.Command {
	var (
		options         ingest.Options
		requestsFile    string
		sessionMessages bool
	)
	command := &cobra.Command{
		Use:   "import FILE…",
		Short: "Append the events of files to the log",
		Long: `Appends the events of files to the log, byte for byte. A file contains JSON objects (NDJSON, or
separated by NUL bytes as export --null writes them), a JSON array, or the body of a server-sent
event stream. The name - means stdin.

RUN_STARTED names the thread and the run. The events after it belong to that run, even after its
end, until the RUN_STARTED of another run. One exception: after an interrupt, the events before the
next RUN_STARTED belong to the run that it begins. If the file ends before RUN_FINISHED or
RUN_ERROR, the run is cut off: events are appended that end what it left open, then a RUN_ERROR with
the reason.

A second import of a file adds nothing, and completes an import that was interrupted. A thread of
which the database refuses an event, because it was erased, say, is skipped from there, and a line
on stderr has the reason. The other threads of the file are stored, and the import exits with 3. A
line that cannot be read ends the import of its file. The runs before it are stored, and of its own
run what had ended. The import continues with the next file and exits with 3. Correct the file and
repeat the import.

Most servers do not repeat the user's messages in RUN_STARTED. --requests supplies them: a file with
the body of each request (RunAgentInput), one JSON object a line. A request belongs to the run that
its threadId and runId name. Requests without a runId belong to the other runs, in order.

Events are recorded at the times in their member timestamp, which needs the role agui_maintainer
besides agui_writer. Without that role, or with --now, they are recorded as of now.

With --session-messages the file contains the messages of a legacy session instead of events:
objects {event_type, payload, created_at, message_id} with the types user, assistant, tool_use,
tool_result, system and error. They become runs of --thread, one per message of the user. All of
them are stored, or none.`,
		Example: `  pgagui import chat.ndjson
  pgagui import chat.ndjson --requests chat.requests.ndjson
  curl -N … | pgagui import --leave-open -
  pgagui import --session-messages --thread session-7 session-7.json`,
		Args: cli.Arguments(1, math.MaxInt),
		RunE: func(command *cobra.Command, files []string) error {
			if sessionMessages {
				if options.Defaults.ThreadID == "" || len(files) > 1 || requestsFile != "" {
					return cli.WrongUsage(command, "--session-messages needs --thread and exactly one file, and excludes --requests")
				}
				return p.importSessionMessages(command.Context(), options.Defaults.ThreadID, files[0], options.Now)
			}
			if requestsFile != "" {
				content, name, err := p.Open(requestsFile)
				if err != nil {
					return err
				}
				defer content.Close()
				if options.Requests, err = ingest.ReadRequests(name, content); err != nil {
					return err
				}
				defer options.Requests.Close()
			}
			return p.WithDatabases(command.Context(), func(databaseOf cli.DatabaseOf) error {
				return p.importFiles(command.Context(), databaseOf, files, options)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Defaults.ThreadID, "thread", "", "`id` of the thread if RUN_STARTED has none")
	flags.StringVar(&options.Defaults.RunID, "run", "", "`id` of the run if RUN_STARTED is missing or has none")
	flags.StringVar(&requestsFile, "requests", "", "`file` with the inputs of the runs, as the clients sent them")
	flags.BoolVar(&options.LeaveOpen, "leave-open", false,
		"do not close a run without an end, so that a later import can continue it; its events are stored as they are read, up to a line that cannot be used")
	flags.BoolVar(&options.Now, "now", false, "record all events as of now, and ignore their timestamps")
	flags.BoolVar(&sessionMessages, "session-messages", false, "the file contains the messages of a legacy session")
	return command
}

// maxSessionBytes limits the size of a legacy session to that of one append.
const maxSessionBytes = 64 << 20

// importSessionMessages appends a legacy session to a thread.
func (p *program) importSessionMessages(ctx context.Context, threadID, name string, now bool) error {
	content, name, err := p.Open(name)
	if err != nil {
		return err
	}
	defer content.Close()
	var messages []json.RawMessage
	bytes := 0
	for message, err := range eventfile.Read(name, content) {
		if err != nil {
			return err
		}
		if bytes += len(message.Raw); bytes > maxSessionBytes {
			return &eventfile.Error{File: name, Line: message.Line, Err: fmt.Errorf(
				"the session is larger than %d MB (it is stored in one transaction, so it must not be larger)", maxSessionBytes>>20)}
		}
		messages = append(messages, message.Raw)
	}
	importer := ingest.New(nil, p.Scope, ingest.Options{Now: now})
	var lastSeq int64
	err = p.WithDatabases(ctx, func(databaseOf cli.DatabaseOf) error {
		pool, err := databaseOf(ctx, p.Scope, threadID)
		if err != nil {
			return err
		}
		if err := importer.ChooseTimes(ctx, pool); err != nil {
			return err
		}
		lastSeq, err = legacysession.Append(ctx, pool, legacysession.Session{
			Scope: p.Scope, ThreadID: threadID, RunPrefix: "session-run-", Messages: messages, KeepTimes: importer.KeepsTimes,
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, message := range messages {
		importer.HasTimestamps = importer.HasTimestamps || eventjson.TextMember(message, "created_at") != ""
	}
	p.warnAboutTimes(importer)
	return p.PrintResult(map[string]any{"threadId": threadID, "messages": len(messages), "lastSeq": lastSeq},
		"%s, up to seq %d\n", cli.CountText(len(messages), "message"), lastSeq)
}

// warnAboutTimes says where the times of the events are not plainly those of their timestamps, unless
// --now is set.
func (p *program) warnAboutTimes(importer *ingest.Importer) {
	if importer.KeepsTimes && importer.InSeconds > 0 {
		fmt.Fprintf(p.Messages, "%s with a timestamp in seconds, not in milliseconds: recorded at it\n", cli.CountText(int(importer.InSeconds), "event"))
	}
	if importer.KeepsTimes && importer.WithoutTime > 0 {
		fmt.Fprintf(p.Messages, "%s with a timestamp before 2015 or out of range (first: %s): recorded at the time of the event before it, or as of now\n",
			cli.CountText(int(importer.WithoutTime), "event"), importer.WithoutTimeAt)
	}
	if importer.HasTimestamps && !importer.KeepsTimes && !importer.Options.Now {
		fmt.Fprintf(p.Messages, "events are recorded as of now, not at their timestamps: this needs the role agui_maintainer, which %s does not have\n", importer.Role)
	}
}

func (p *program) importFiles(ctx context.Context, databaseOf cli.DatabaseOf, files []string, options ingest.Options) (err error) {
	line := p.NewProgress()
	importer := ingest.New(databaseOf, p.Scope, options)
	importer.OnNotice = func(notice string) {
		line.Clear()
		fmt.Fprintln(p.Messages, notice)
	}
	importer.OnProgress = func(done ingest.Imported) {
		line.Show(func() string {
			return fmt.Sprintf("%s, %s, %s", cli.CountText(done.Runs, "run"), cli.CountText(done.Events, "event"), cli.BytesText(done.Bytes))
		})
	}
	failure := p.importAll(ctx, importer, files)
	line.Clear()

	// Print the result after a failure, too: it says what was stored.
	result := importer.Result()
	if result.New > 0 {
		p.warnAboutTimes(importer)
	}
	if rest := options.Requests.Unused(); failure == nil && len(rest) > 0 {
		fmt.Fprintf(p.Messages, "%s:%d: no imported run matches this request (unmatched requests: %s)\n",
			options.Requests.File, rest[0].Line, humanize.Comma(int64(len(rest))))
	}
	if p.JSON {
		err = p.PrintJSON(result)
	} else if failure == nil || result.Events > 0 {
		err = p.printImported(result)
	}
	if failure != nil {
		return failure
	}
	return err
}

// importAll imports the files. If a file has an error, it prints the error and continues with the
// next file.
func (p *program) importAll(ctx context.Context, importer *ingest.Importer, files []string) (failure error) {
	for n, name := range files {
		err := p.importFile(ctx, importer, name)
		if err != nil && cli.ExitCode(err) != cli.ExitInput {
			return err
		}
		if err != nil {
			if text := cli.Describe(err); text != "" {
				importer.OnNotice(text)
			}
			importer.Done.FailedFiles++
			failure = cli.ErrBadFiles
			if rest := len(files) - n - 1; rest > 0 && importer.Options.Requests.HasUnnamed() {
				// The requests without a run would be matched with the wrong runs.
				importer.OnNotice(fmt.Sprintf("skipped the next %s: requests without a runId are matched in order, and runs are missing", cli.CountText(rest, "file")))
				importer.Done.FailedFiles += rest
				return failure
			}
		}
	}
	return failure
}

func (p *program) importFile(ctx context.Context, importer *ingest.Importer, name string) error {
	content, name, err := p.Open(name)
	if err != nil {
		return err
	}
	defer content.Close()
	return importer.ImportFile(ctx, name, content)
}

// shownThreads limits the table of an import. With --json all threads are printed.
const shownThreads = 20

func (p *program) printImported(result ingest.Imported) error {
	rows := [][]string{{"THREAD", "RUNS", "EVENTS", "NEW"}}
	for _, thread := range result.Threads[:min(len(result.Threads), shownThreads)] {
		rows = append(rows, []string{thread.ThreadID, humanize.Comma(int64(thread.Runs)), humanize.Comma(thread.Events), humanize.Comma(thread.New)})
	}
	if len(rows) > 1 {
		if err := p.PrintTable(rows); err != nil {
			return err
		}
	}
	if more := len(result.Threads) - shownThreads; more > 0 {
		fmt.Fprintf(p.Out, "… and %s more (pgagui threads lists them)\n", humanize.Comma(int64(more)))
	}
	_, err := fmt.Fprintln(p.Out, result)
	return err
}
