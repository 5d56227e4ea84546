package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/internal/printable"
)

func (p *program) importCommand() *cobra.Command {
	var (
		options         importOptions
		sessionMessages bool
	)
	command := &cobra.Command{
		Use:   "import FILE…",
		Short: "Append the events of files to the log",
		Long: `Appends the events of files to the log, their bytes as they are. A file holds JSON objects (NDJSON, or separated by NUL as export
--null writes them), a JSON array, or the body of a server-sent event stream; - is stdin.

RUN_STARTED names thread and run; the events up to the next one belong to that run. A run that the file cuts off, so without
RUN_FINISHED or RUN_ERROR, is closed: what it left open is ended in the log, then a RUN_ERROR says why.

Importing a file again adds nothing, and finishes an import that was interrupted. When it meets a bad line, the runs before it are
stored; repeat the import once the file is mended.

With --session-messages the file holds the messages of a session from before AG-UI in place of events: objects {event_type, payload,
created_at, message_id}, of the types user, assistant, tool_use, tool_result, system and error. They become runs of --thread, one for each
message of the user; all of them are stored or none.`,
		Example: `  pgagui import chat.ndjson
  curl -N … | pgagui import --leave-open -
  pgagui import --session-messages --thread session-7 session-7.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			if sessionMessages {
				if options.threadID == "" || len(files) > 1 {
					return &usageError{problem: "--session-messages needs --thread, and takes one file", command: command.CommandPath()}
				}
				return p.importSessionMessages(command.Context(), options.threadID, files[0])
			}
			return p.importFiles(command.Context(), files, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.threadID, "thread", "", "thread of the runs whose RUN_STARTED names none")
	flags.StringVar(&options.runID, "run", "", "run of the events whose RUN_STARTED is missing or names none")
	flags.BoolVar(&options.leaveOpen, "leave-open", false, "leave a run that a file cuts off in progress, to go on with it later")
	flags.BoolVar(&sessionMessages, "session-messages", false, "the file holds messages of a session from before AG-UI")
	return command
}

// importSessionMessages appends an old session to a thread.
func (p *program) importSessionMessages(ctx context.Context, threadID, name string) error {
	content, name, err := p.open(name)
	if err != nil {
		return err
	}
	defer content.Close()
	var messages []json.RawMessage
	for message, err := range eventfile.Read(name, content) {
		if err != nil {
			return err
		}
		messages = append(messages, message.Raw)
	}
	return p.withStore(ctx, func(store *pgagui.Store) error {
		lastSeq, err := store.AppendSessionMessages(ctx, threadID, "session-run-", messages)
		if err != nil {
			return err
		}
		if p.json {
			return p.printJSON(map[string]any{"threadId": threadID, "messages": len(messages), "lastSeq": lastSeq})
		}
		_, err = fmt.Fprintf(p.out, "%s, up to seq %d\n", countText(len(messages), "message"), lastSeq)
		return err
	})
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
	failure := importAll(ctx, importer, files, p)
	line.clear()

	// Also after a failure: it says what is stored.
	result := importer.result()
	if p.json {
		err = p.printJSON(result)
	} else if failure == nil || result.Events > 0 {
		_, err = fmt.Fprintln(p.out, result)
	}
	if failure != nil {
		return failure
	}
	return err
}

func importAll(ctx context.Context, importer *importer, files []string, p *program) error {
	for _, name := range files {
		content, name, err := p.open(name)
		if err != nil {
			return err
		}
		err = importer.importFile(ctx, name, content)
		content.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens a file, and says what errors call it; - is stdin, which stays open.
func (p *program) open(name string) (content io.ReadCloser, called string, err error) {
	if name == "-" {
		return io.NopCloser(p.in), "stdin", nil
	}
	file, err := os.Open(name)
	return file, name, err
}

// shownThreadIDs is how many ids the summary of an import has; with --json it has all.
const shownThreadIDs = 20

// String is the summary of an import for people.
func (i imported) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s, %s", countText(i.Threads, "thread"), countText(i.Runs, "run"), countText(i.Events, "event"))
	if i.AlreadyThere > 0 {
		fmt.Fprintf(&text, " (%s new, %s already there)", thousands(i.New), thousands(i.AlreadyThere))
	}
	fmt.Fprintf(&text, ", %s in %s", bytesText(i.Bytes), durationText(i.Duration))
	for n, threadID := range i.ThreadIDs {
		if n == shownThreadIDs {
			fmt.Fprintf(&text, "\n  … and %s more (pgagui threads lists them)", thousands(int64(len(i.ThreadIDs)-n)))
			break
		}
		text.WriteString("\n  " + printable.Line(threadID))
	}
	return text.String()
}
