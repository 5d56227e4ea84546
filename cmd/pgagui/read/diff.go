package read

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/compaction"
)

func (p *program) diffCommand() *cobra.Command {
	var options pgagui.DiffOptions
	var fromAt, toAt string
	command := &cobra.Command{
		Use:   "diff THREAD",
		Short: "Show what changed between two points of a conversation",
		Long: `Compares the messages and the state at two points of a thread. The points may be on different
branches.

Messages are compared by id: "+" means added, "-" removed, "~" changed, ">" moved. A changed message
is shown as it was and as it is. The state is shown as the operations of a JSON Patch (RFC 6902),
with old and new values. With --json the output also has a JSON Merge Patch (RFC 7396) of the state;
it is null if a merge patch cannot express the change.`,
		Example: `  pgagui diff trip-to-lisbon --from run-1
  pgagui diff trip-to-lisbon --from run-2 --to run-3
  pgagui diff trip-to-lisbon --from-at 2h`,
		Args: cli.OneThread,
		PreRunE: func(command *cobra.Command, _ []string) error {
			if err := readPoint(command, "from-at", fromAt, &options.From); err != nil {
				return err
			}
			if err := readPoint(command, "to-at", toAt, &options.To); err != nil {
				return err
			}
			if options.From == options.To {
				return cli.WrongUsage(command, "expected two different points, for example --from RUN")
			}
			return nil
		},
		RunE: p.OnStore(func(ctx context.Context, store *pgagui.Store, arguments []string) error {
			return p.diff(ctx, store, arguments[0], options)
		}),
	}
	flags := command.Flags()
	flags.StringVar(&options.From.RunID, "from", "", "`id` of the run whose result is the old point (default: the head)")
	flags.StringVar(&fromAt, "from-at", "", "earlier `point` in the lineage of --from: a seq such as 100, "+cli.TimeFormats)
	flags.StringVar(&options.To.RunID, "to", "", "`id` of the run whose result is the new point (default: the head)")
	flags.StringVar(&toAt, "to-at", "", "earlier `point` in the lineage of --to, in the same formats")
	return command
}

func (p *program) diff(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.DiffOptions) error {
	diff, err := store.Diff(ctx, threadID, options)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(diff)
	}
	var lines []string
	for _, message := range diff.Messages {
		lines = append(lines, messageDiffLines(message)...)
	}
	number := 0
	for operation, err := range compaction.Split(diff.StatePatch) {
		if err != nil {
			return err
		}
		line, err := operationLine(operation, diff.StateBefore[number])
		if err != nil {
			return err
		}
		number++
		lines = append(lines, line)
	}
	if lines == nil {
		lines = []string{"no difference"}
	}
	header := fmt.Sprintf("--- %s, seq %d\n+++ %s, seq %d", diff.From.RunID, diff.From.Seq, diff.To.RunID, diff.To.Seq)
	_, err = fmt.Fprintf(p.Out, "%s\n%s\n", header, strings.Join(lines, "\n"))
	return err
}

// diffWidth is the maximum number of characters shown of a message or a value.
const diffWidth = 100

// messageDiffLines is a line for a message, and two more with the old and the new content if it
// changed.
func messageDiffLines(diff pgagui.MessageDiff) []string {
	sign := map[pgagui.MessageChange]string{
		pgagui.MessageAdded: "+", pgagui.MessageRemoved: "-", pgagui.MessageChanged: "~", pgagui.MessageMoved: ">",
	}[diff.Change]
	message := diff.To
	if message == nil {
		message = diff.From
	}
	role, content := messageParts(message)
	head := fmt.Sprintf("%s %s %s", sign, role, diff.ID)
	if diff.Change != pgagui.MessageChanged {
		return []string{strings.TrimRight(fmt.Sprintf("%s: %s", head, cli.Shorten(content, diffWidth)), ": ")}
	}
	_, before := messageParts(diff.From)
	if before == content { // another member differs
		before, content = string(diff.From), string(diff.To)
	}
	before, content = aroundDifference(before, content)
	return []string{head, "    - " + before, "    + " + content}
}

// messageParts returns the role of a message and its content: its text, or the JSON of another value.
func messageParts(message []byte) (role, content string) {
	var fields struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(message, &fields) // fields of another type stay empty
	content = string(fields.Content)
	var text string
	if json.Unmarshal(fields.Content, &text) == nil {
		content = text
	}
	return fields.Role, content
}

// aroundDifference shortens two texts to where they differ.
func aroundDifference(a, b string) (string, string) {
	before, after := []rune(strings.Join(strings.Fields(a), " ")), []rune(strings.Join(strings.Fields(b), " "))
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	const context = 20
	from, mark := 0, ""
	if max(len(before), len(after)) > diffWidth && same > context {
		from, mark = same-context, "…"
	}
	return mark + cli.Shorten(string(before[from:]), diffWidth), mark + cli.Shorten(string(after[from:]), diffWidth)
}

func operationLine(operation, before []byte) (string, error) {
	var fields struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(operation, &fields); err != nil {
		return "", err
	}
	switch fields.Op {
	case "add":
		return fmt.Sprintf("+ state%s %s", fields.Path, cli.Shorten(string(fields.Value), diffWidth)), nil
	case "remove":
		return fmt.Sprintf("- state%s %s", fields.Path, cli.Shorten(string(before), diffWidth)), nil
	default:
		return fmt.Sprintf("~ state%s %s → %s", fields.Path, cli.Shorten(string(before), diffWidth), cli.Shorten(string(fields.Value), diffWidth)), nil
	}
}
