package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/internal/legacysession"
)

func (p *program) importCommand() *cobra.Command {
	var (
		options         importOptions
		requestsFile    string
		sessionMessages bool
	)
	command := &cobra.Command{
		Use:   "import FILE…",
		Short: "Append the events of files to the log",
		Long: `Appends the events of files to the log, their bytes as they are. A file holds JSON objects (NDJSON, or separated by NUL as export
--null writes them), a JSON array, or the body of a server-sent event stream; - is stdin.

RUN_STARTED names thread and run, and what follows belongs to that run, behind its end too, up to the RUN_STARTED of another one. (Behind an
interrupt, what comes before the next RUN_STARTED belongs to the run that it begins.) A run that the file cuts off, so without RUN_FINISHED
or RUN_ERROR, is closed: what it left open is ended in the log, then a RUN_ERROR says why.

Importing a file again adds nothing, and finishes an import that was interrupted. A line that cannot be used ends its file: the runs before
it are stored, its own run as far as that had ended, and the import goes on with the next file. In the end the exit code is 3; repeat the
import once the file is mended.

Most servers do not repeat what the user asked in RUN_STARTED. --requests brings it: a file with the body of each request (RunAgentInput), one
JSON object a line. It belongs to the run that its threadId and runId name; requests without a runId go to the other runs in order.

Events are recorded at the times that they name (timestamp), which takes the rights of agui_maintainer beside those of agui_writer; without them, and with
--now, as of now.

With --session-messages the file holds the messages of a session from before AG-UI in place of events: objects {event_type, payload,
created_at, message_id}, of the types user, assistant, tool_use, tool_result, system and error. They become runs of --thread, one for each
message of the user; all of them are stored or none.`,
		Example: `  pgagui import chat.ndjson
  pgagui import chat.ndjson --requests chat.requests.ndjson
  curl -N … | pgagui import --leave-open -
  pgagui import --session-messages --thread session-7 session-7.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			if sessionMessages {
				if options.defaults.threadID == "" || len(files) > 1 || requestsFile != "" {
					return &usageError{problem: "--session-messages needs --thread, and takes one file and no --requests", command: command.CommandPath()}
				}
				return p.importSessionMessages(command.Context(), options.defaults.threadID, files[0], options.now)
			}
			if requestsFile != "" {
				content, name, err := p.open(requestsFile)
				if err != nil {
					return err
				}
				defer content.Close()
				if options.requests, err = readRequests(name, content); err != nil {
					return err
				}
				defer options.requests.close()
			}
			return p.importFiles(command.Context(), files, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.defaults.threadID, "thread", "", "thread of the runs whose RUN_STARTED names none")
	flags.StringVar(&options.defaults.runID, "run", "", "run of the events whose RUN_STARTED is missing or names none")
	flags.StringVar(&requestsFile, "requests", "", "file with the inputs of the runs, as their clients sent them")
	flags.BoolVar(&options.leaveOpen, "leave-open", false, "leave a run that a file cuts off in progress, to go on with it later;\nwhat there is of it is stored as it comes, up to a line that cannot be used")
	flags.BoolVar(&options.now, "now", false, "record events as of now, whatever times they name")
	flags.BoolVar(&sessionMessages, "session-messages", false, "the file holds messages of a session from before AG-UI")
	return command
}

// maxSessionBytes is how large an old session may be: as large as one append.
const maxSessionBytes = 64 << 20

// importSessionMessages appends an old session to a thread.
func (p *program) importSessionMessages(ctx context.Context, threadID, name string, now bool) error {
	content, name, err := p.open(name)
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
				"a session may have %d MB, for all of it is stored or nothing, and this one has more", maxSessionBytes>>20)}
		}
		messages = append(messages, message.Raw)
	}
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	importer := newImporter(pool, p.scope, importOptions{now: now})
	if err := importer.chooseTimes(ctx); err != nil {
		return err
	}
	lastSeq, err := legacysession.Append(ctx, pool, legacysession.Session{
		Scope: p.scope, ThreadID: threadID, RunPrefix: "session-run-", Messages: messages, KeepTimes: importer.keepsTimes,
	})
	if err != nil {
		return err
	}
	for _, message := range messages {
		importer.namesTimes = importer.namesTimes || textMember(message, "created_at") != ""
	}
	p.hintAtTimes(importer)
	if p.json {
		return p.printJSON(map[string]any{"threadId": threadID, "messages": len(messages), "lastSeq": lastSeq})
	}
	_, err = fmt.Fprintf(p.out, "%s, up to seq %d\n", countText(len(messages), "message"), lastSeq)
	return err
}

// hintAtTimes says that events were not recorded at the times that they name, unless that was asked for.
func (p *program) hintAtTimes(importer *importer) {
	if importer.namesTimes && !importer.keepsTimes && !importer.options.now {
		fmt.Fprintf(p.messages, "events are recorded as of now, not at the times that they name: that takes the role agui_maintainer, which %s does not have\n", importer.role)
	}
}

func (p *program) importFiles(ctx context.Context, files []string, options importOptions) error {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()

	line := p.newProgress()
	importer := newImporter(pool, p.scope, options)
	importer.onNotice = func(notice string) {
		line.clear()
		fmt.Fprintln(p.messages, notice)
	}
	importer.onProgress = func(done imported) {
		line.show(func() string {
			return fmt.Sprintf("%s, %s, %s", countText(done.Runs, "run"), countText(done.Events, "event"), bytesText(done.Bytes))
		})
	}
	failure := p.importAll(ctx, importer, files)
	line.clear()

	// Also after a failure: it says what is stored.
	result := importer.result()
	if result.New > 0 {
		p.hintAtTimes(importer)
	}
	if rest := options.requests.unused(); failure == nil && len(rest) > 0 {
		fmt.Fprintf(p.messages, "%s:%d: %s belong to no run that was imported; this is the first\n",
			options.requests.file, rest[0].line, countText(len(rest), "request"))
	}
	if p.json {
		err = p.printJSON(result)
	} else if failure == nil || result.Events > 0 {
		err = p.printImported(result)
	}
	if failure != nil {
		return failure
	}
	return err
}

// importAll imports the files. What is wrong with one is said on stderr, and the next ones are imported all the same.
func (p *program) importAll(ctx context.Context, importer *importer, files []string) (failure error) {
	for n, name := range files {
		err := p.importFile(ctx, importer, name)
		if err != nil && exitCode(err) != exitInput {
			return err
		}
		if err != nil {
			importer.onNotice(describe(err))
			importer.done.FailedFiles++
			failure = errBadFiles
			if rest := len(files) - n - 1; rest > 0 && importer.options.requests.hasUnnamed() {
				// They would go to other runs than they are meant for.
				importer.onNotice(fmt.Sprintf("%s behind it left out, for some requests name no run and are matched in order", countText(rest, "file")))
				importer.done.FailedFiles += rest
				return failure
			}
		}
	}
	return failure
}

func (p *program) importFile(ctx context.Context, importer *importer, name string) error {
	content, name, err := p.open(name)
	if err != nil {
		return err
	}
	defer content.Close()
	return importer.importFile(ctx, name, content)
}

// open opens a file, and says what errors call it; - is stdin, which stays open.
func (p *program) open(name string) (content io.ReadCloser, called string, err error) {
	if name == "-" {
		return io.NopCloser(p.in), "stdin", nil
	}
	file, err := os.Open(name)
	return file, name, err
}

// shownThreads is how many threads the table of an import has; with --json it has all.
const shownThreads = 20

// printImported prints the threads of the files, and a summary.
func (p *program) printImported(result imported) error {
	rows := [][]string{{"THREAD", "RUNS", "EVENTS", "NEW"}}
	for _, thread := range result.Threads[:min(len(result.Threads), shownThreads)] {
		rows = append(rows, []string{thread.ThreadID, humanize.Comma(int64(thread.Runs)), humanize.Comma(thread.Events), humanize.Comma(thread.New)})
	}
	if len(rows) > 1 {
		if err := p.printTable(rows); err != nil {
			return err
		}
	}
	if more := len(result.Threads) - shownThreads; more > 0 {
		fmt.Fprintf(p.out, "… and %s more (pgagui threads lists them)\n", humanize.Comma(int64(more)))
	}
	_, err := fmt.Fprintln(p.out, result)
	return err
}

// String is the summary of an import for people.
func (i imported) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s, %s", countText(len(i.Threads), "thread"), countText(i.Runs, "run"), countText(i.Events, "event"))
	if i.AlreadyThere > 0 {
		fmt.Fprintf(&text, " (%s new, %s already there)", humanize.Comma(i.New), humanize.Comma(i.AlreadyThere))
	}
	fmt.Fprintf(&text, ", %s in %s", bytesText(i.Bytes), durationText(i.Duration))
	if i.WithoutInput > 0 {
		fmt.Fprintf(&text, "; %s came without input, so without the user's words (--requests brings them)", countText(i.WithoutInput, "run"))
	}
	return text.String()
}
