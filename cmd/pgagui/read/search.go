package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/internal/printable"
)

func (p *program) searchCommand() *cobra.Command {
	var options pgagui.SearchOptions
	var since, language string
	var off bool
	command := &cobra.Command{
		Use:   "search QUERY",
		Short: "Search in what was said in all threads of a scope",
		Long: `Prints the messages whose texts match a query, the best first, with the words that match between
asterisks: words, "words in order", or, -not. It searches the texts of users, assistants and tools,
of all branches.

Search is off until --enable turns it on, with a text search configuration of PostgreSQL such as
english, or simple for words as they are. Then "pgagui job project", or the worker, indexes the
texts of all messages. They take about as much space as the log. --disable removes them. Both
concern all scopes and need the role agui_maintainer.

With --json each line is an object with scope, threadId, runId, messageId, role, seq, saidAt, rank
and snippet, a list of pieces with text and isMatch.`,
		Example: `  pgagui search --enable english
  pgagui search refund --since 30d --role user
  pgagui search '"late delivery" -refund' --all-scopes --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, arguments []string) error {
			isSetting := off || language != ""
			switch {
			case off && language != "":
				return cli.WrongUsage(command, "--enable and --disable exclude each other")
			case isSetting != (len(arguments) == 0):
				return cli.WrongUsage(command, "expected a query, or one of --enable and --disable")
			case options.Limit < 1:
				return cli.WrongUsage(command, "--limit must be 1 or more")
			}
			if since != "" {
				var err error
				if options.Since, err = cli.PointInTime("--since", since, time.Now()); err != nil {
					return cli.WrongUsage(command, err.Error())
				}
			}
			if err := checkAllScopes(command, options.AllScopes); err != nil {
				return err
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				switch {
				case off:
					_, err := store.DisableSearch(command.Context())
					return err
				case language != "":
					err := store.EnableSearch(command.Context(), language)
					if err == nil {
						fmt.Fprintln(p.Messages, "search is on: pgagui job project, or the worker, indexes the texts of all messages")
					}
					return err
				}
				return p.search(command.Context(), store, strings.Join(arguments, " "), options)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Role, "role", "", "only what this `role` said: user, assistant or tool")
	flags.StringVar(&since, "since", "", "only what was said since this `time`: "+cli.TimeFormats)
	flags.IntVar(&options.Limit, "limit", 20, "maximum `number` of messages, up to 1000")
	flags.StringVar(&language, "enable", "", "turn search on in this `language`, or change it")
	flags.BoolVar(&off, "disable", false, "turn search off and remove its index")
	addAllScopes(command, &options.AllScopes)
	return command
}

func (p *program) search(ctx context.Context, store *pgagui.Store, query string, options pgagui.SearchOptions) error {
	page, err := store.Search(ctx, query, options)
	if err = p.Partly(err); err != nil {
		return err
	}
	for _, found := range page.Messages {
		if p.JSON {
			err = p.PrintJSON(found)
		} else {
			heading := []string{cli.TimeText(found.SaidAt), found.ThreadID, found.RunID, found.Role}
			if options.AllScopes {
				heading = append(heading, fmt.Sprintf("scope %q", found.Scope))
			}
			_, err = fmt.Fprintf(p.Out, "%s\n    %s\n", printable.Line(strings.Join(heading, "  ")), p.snippetText(found.Snippet))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case len(page.Messages) == 0:
		fmt.Fprintln(p.Messages, "no message matches")
	case !page.SearchedTo.IsZero():
		fmt.Fprintf(p.Messages, "more than 10,000 messages match: only those since %s were ranked\n", cli.TimeText(page.SearchedTo))
	}
	return nil
}

// snippetText returns a snippet on one line, with its matches between asterisks, or in bold.
func (p *program) snippetText(parts []pgagui.SnippetPart) string {
	begin, end := "*", "*"
	if p.Colored() {
		begin, end = "\x1b[1m", "\x1b[0m"
	}
	var text strings.Builder
	for _, part := range parts {
		piece := printable.Line(strings.Join(strings.FieldsFunc(part.Text, func(r rune) bool { return r == '\n' || r == '\r' }), " "))
		if part.IsMatch {
			piece = begin + piece + end
		}
		text.WriteString(piece)
	}
	return text.String()
}
