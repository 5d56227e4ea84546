package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
)

func (p *program) diffCommand() *cobra.Command {
	var options pgagui.DiffOptions
	var fromAt, toAt string
	command := &cobra.Command{
		Use:   "diff THREAD",
		Short: "Show what changed between two points of a conversation",
		Long: `Shows how messages and state at one point of a thread differ from those at another. The points may be on different branches.

Messages are compared by id: "+" was added, "-" removed, "~" changed, ">" moved. The state is shown as the operations of a JSON Patch
(RFC 6902). With --json the state has a JSON Merge Patch (RFC 7396), too; it is null where a merge patch cannot say it.`,
		Example: `  pgagui diff trip-to-lisbon --from run-1
  pgagui diff trip-to-lisbon --from run-2 --to run-3
  pgagui diff trip-to-lisbon --from-at 2h`,
		Args: oneThread,
		PreRunE: func(command *cobra.Command, _ []string) error {
			if err := readPoint(command, "from-at", fromAt, &options.From); err != nil {
				return err
			}
			if err := readPoint(command, "to-at", toAt, &options.To); err != nil {
				return err
			}
			if options.From == options.To {
				return &usageError{problem: "give two points to compare, for instance --from RUN", command: command.CommandPath()}
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.diff(command.Context(), store, arguments[0], options)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.From.RunID, "from", "", "compare with what was after this run, instead of the head")
	flags.StringVar(&fromAt, "from-at", "", "back in time there: a seq, so long ago, as in 2h or 7d, or a time, as in 2006-01-02T15:04")
	flags.StringVar(&options.To.RunID, "to", "", "show what it is after this run, instead of the head")
	flags.StringVar(&toAt, "to-at", "", "the same for --to")
	return command
}

func (p *program) diff(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.DiffOptions) error {
	diff, err := store.Diff(ctx, threadID, options)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(diff)
	}
	var lines []string
	for _, message := range diff.Messages {
		lines = append(lines, messageDiffLine(message))
	}
	for operation, err := range compaction.Split(diff.StatePatch) {
		if err != nil {
			return err
		}
		line, err := operationLine(operation)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	if lines == nil {
		lines = []string{"no difference"}
	}
	header := fmt.Sprintf("--- %s, seq %d\n+++ %s, seq %d", diff.From.RunID, diff.From.Seq, diff.To.RunID, diff.To.Seq)
	_, err = fmt.Fprintf(p.out, "%s\n%s\n", header, strings.Join(lines, "\n"))
	return err
}

// shownOfDiff is how many characters of a message or a value are shown.
const shownOfDiff = 100

func messageDiffLine(diff pgagui.MessageDiff) string {
	sign := map[pgagui.MessageChange]string{
		pgagui.MessageAdded: "+", pgagui.MessageRemoved: "-", pgagui.MessageChanged: "~", pgagui.MessageMoved: ">",
	}[diff.Change]
	message := diff.To
	if message == nil {
		message = diff.From
	}
	var fields struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(message, &fields) // what is of another type is shown as it is
	content := string(fields.Content)
	var text string
	if json.Unmarshal(fields.Content, &text) == nil {
		content = text
	}
	return strings.TrimRight(fmt.Sprintf("%s %s %s: %s", sign, fields.Role, diff.ID, shorten(content, shownOfDiff)), ": ")
}

func operationLine(operation []byte) (string, error) {
	var fields struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(operation, &fields); err != nil {
		return "", err
	}
	sign := map[string]string{"add": "+", "remove": "-", "replace": "~"}[fields.Op]
	return strings.TrimRight(fmt.Sprintf("%s state%s %s", sign, fields.Path, shorten(string(fields.Value), shownOfDiff)), " "), nil
}
