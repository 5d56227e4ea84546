package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/pgagui/pgagui/bench/peers"
)

// Store is a row of the table of stores of conversations.
type Store struct {
	Name string `json:"name"`
	// Text is a conversation with two tool calls in each turn, Image one of fewer turns that begins with an image.
	Text  StoreFigures `json:"text"`
	Image StoreFigures `json:"image"`
}

// StoreFigures are what one kind of conversation costs in a store.
type StoreFigures struct {
	KB         float64   `json:"kb"`         // that one more conversation takes on disk
	Write      []float64 `json:"write"`      // milliseconds of a turn, a value for each round
	Restore    []float64 `json:"restore"`    // milliseconds
	Statements float64   `json:"statements"` // of a turn
}

// stores compares what Python frameworks keep conversations in with pgagui. All run in one process of Python and with one driver,
// each with both kinds of conversations in databases of their own, and take turns.
func (b *bench) stores(ctx context.Context) (err error) {
	process, err := peers.StartPython(ctx, b.PythonPeers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Close()) }()
	if b.report.Machine.Peers == nil {
		b.report.Machine.Peers = map[string]string{}
	}
	maps.Copy(b.report.Machine.Peers, process.Versions)
	text := filepath.Join(b.folder, "text")
	if err := os.WriteFile(text, []byte(b.corpus.Text()), 0o600); err != nil {
		return err
	}
	var known struct{ Stores []string }
	if err := process.Do(ctx, map[string]any{"do": "stores"}, &known); err != nil {
		return err
	}

	count := cmp.Or(b.Conversations, b.sizes.conversations)
	rows := make([]Store, len(known.Stores))
	for _, image := range []bool{false, true} {
		kind, conversations, turns := "text", count, b.sizes.conversationTurns
		if image {
			kind, conversations, turns = "image", (count+9)/10, (2*turns+4)/5
		}
		var databases []*database
		do := func(i int, command string, arguments map[string]any, answer any) error {
			sent := map[string]any{"do": command, "store": known.Stores[i], "image": image}
			maps.Copy(sent, arguments)
			return process.Do(ctx, sent, answer)
		}
		for i, name := range known.Stores {
			b.Progress(fmt.Sprintf("peers: %d conversations, %s: %s", conversations, kind, name))
			database, err := b.server.create(ctx, 1)
			if err != nil {
				return err
			}
			databases = append(databases, database)
			address, err := database.url()
			if err != nil {
				return err
			}
			var filled struct{ Bytes float64 }
			if err := do(i, "open", map[string]any{"url": address, "turns": turns, "text": text}, nil); err != nil {
				return err
			}
			if err := do(i, "fill", map[string]any{"conversations": conversations}, &filled); err != nil {
				return err
			}
			rows[i].Name = name
			rows[i].figures(image).KB = filled.Bytes / 1024
		}
		for round := range 1 + b.Repeat {
			b.Progress(fmt.Sprintf("peers: %s, round %d of %d", kind, round, b.Repeat))
			for i := range rows {
				if round%2 == 1 {
					i = len(rows) - 1 - i
				}
				var measured struct{ Write, Restore, Statements float64 }
				if err := do(i, "round", map[string]any{"reads": b.sizes.reads}, &measured); err != nil {
					return err
				}
				if figures := rows[i].figures(image); round > 0 {
					figures.Write, figures.Restore = append(figures.Write, measured.Write), append(figures.Restore, measured.Restore)
					figures.Statements = measured.Statements
				}
			}
		}
		for _, database := range databases {
			if err := database.drop(ctx); err != nil {
				return err
			}
		}
	}
	b.report.Stores = rows
	b.compareStores()
	return nil
}

func (s *Store) figures(image bool) *StoreFigures {
	if image {
		return &s.Image
	}
	return &s.Text
}

// compareStores adds the rows that have targets: what a writer of whole inputs costs beside one that sends new messages only, and what
// a restore costs before compaction.
func (b *bench) compareStores() {
	rows := map[string]*Store{}
	for i := range b.report.Stores {
		rows[strings.TrimPrefix(b.report.Stores[i].Name, "pgagui, ")] = &b.report.Stores[i]
	}
	const least, settled, before = "new messages only, compacted", ", settled behind each run", ", before compaction"
	for _, image := range []bool{false, true} {
		conversation := map[bool]string{false: "text", true: "an image"}[image]
		compare := func(name, figure, unit string, target *Target, of func(*StoreFigures) []float64) {
			b.report.add(Measurement{
				Phase: "peers", What: fmt.Sprintf("%s of %s, %s", figure, conversation, name), Unit: unit,
				Ours: Side{Name: "pgagui"}, Against: Side{Name: least}, Target: target,
			}, of(rows[name].figures(image)), of(rows[least].figures(image)))
		}
		restore := func(f *StoreFigures) []float64 { return f.Restore }
		const whole = "whole input, compacted"
		compare(whole, "restore", "ms", atMost("P1", 1.2), restore)
		compare(whole, "disk", "KB", atMost("P1", 1.1), func(f *StoreFigures) []float64 { return []float64{f.KB} })
		compare("new messages only"+settled, "restore", "ms", atMost("P2", 4), restore)
		compare("whole input"+settled, "restore", "ms", atMost("P2", 6), restore)
		compare("new messages only"+before, "restore", "ms", atMost("P2", 8), restore)
		compare("whole input"+before, "restore", "ms", atMost("P2", 12), restore)
	}
}

// writeStores writes the table of stores: text / image, medians with their spread.
func writeStores(out io.Writer, stores []Store) error {
	times := func(values []float64) string {
		spread := SpreadOf(values)
		return fmt.Sprintf("%s [%s … %s]", number3(spread.Median), number3(spread.Min), number3(spread.Max))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nstore\tKB text / image\twrite a turn, ms\trestore, ms\tstatements a turn\t")
	for _, s := range stores {
		fmt.Fprintf(table, "%s\t%s / %s\t%s / %s\t%s / %s\t%v / %v\t\n", s.Name, number3(s.Text.KB), number3(s.Image.KB),
			times(s.Text.Write), times(s.Image.Write), times(s.Text.Restore), times(s.Image.Restore), s.Text.Statements, s.Image.Statements)
	}
	return table.Flush()
}
