package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"golang.org/x/term"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/printable"
)

// Notice prints a notice of the server on stderr.
func (p *Program) Notice(text string) { fmt.Fprintln(p.Messages, OneLine("pgagui: "+text)) }

// PrintJSON writes a result as a line of JSON.
func (p *Program) PrintJSON(result any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return err
	}
	text := bytes.TrimSpace(line.Bytes())
	if p.namesNode {
		var err error
		if text, err = withNode(p.Node, text); err != nil {
			return err
		}
	}
	_, err := p.Out.Write(append(text, '\n'))
	return err
}

// PrintResult prints a result as a line of JSON with --json, and otherwise the text.
func (p *Program) PrintResult(result any, format string, arguments ...any) error {
	if p.JSON {
		return p.PrintJSON(result)
	}
	_, err := fmt.Fprintf(p.Out, format, arguments...)
	return err
}

// PrintTable writes rows in columns. It escapes control characters, which ids and titles may
// contain. On a terminal, unless --wide is set, it cuts cells of the flexible columns (from 0), so
// that the lines fit.
func (p *Program) PrintTable(rows [][]string, flexible ...int) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable.Line(cell)
		}
	}
	if width := p.TerminalWidth(); width > 0 && !p.Wide {
		fitTable(rows, width, flexible)
	}
	table := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		// No trailing tab: the last column is not padded.
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// PrintList prints items as the rows of a table below its heading, or with --json each as a line. If
// there are none, the text none replaces the table, unless it is "".
func PrintList[T any](p *Program, items []T, none string, heading []string, row func(T) []string, flexible ...int) error {
	if p.JSON {
		for _, item := range items {
			if err := p.PrintJSON(item); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 && none != "" {
		_, err := fmt.Fprintln(p.Out, none)
		return err
	}
	rows := [][]string{heading}
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return p.PrintTable(rows, flexible...)
}

// fitTable cuts cells of the flexible columns, the longest first, until a line has at most width
// characters or each of these columns has only a few.
func fitTable(rows [][]string, width int, flexible []int) {
	const fewest = 8
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for total > width {
		longest := -1
		for _, i := range flexible {
			if i < len(widths) && widths[i] > fewest && (longest < 0 || widths[i] > widths[longest]) {
				longest = i
			}
		}
		if longest < 0 {
			break
		}
		widths[longest]--
		total--
	}
	for _, row := range rows {
		for _, i := range flexible {
			if i < len(row) {
				row[i] = cut(row[i], widths[i])
			}
		}
	}
}

// cut cuts a text to a maximum number of characters.
func cut(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// TerminalWidth returns the number of columns of the terminal, or 0 if results go elsewhere.
func (p *Program) TerminalWidth() int {
	if p.Terminal == nil {
		return 0
	}
	width, _, err := term.GetSize(int(p.Terminal.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// TerminalOf returns the reader or writer as a terminal, or nil if it is none.
func TerminalOf(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// Styled is the output for writers that add colors and escape all other control characters
// themselves.
func (p *Program) Styled() io.Writer {
	if p.Terminal != nil {
		return p.Terminal
	}
	return p.Out
}

// Colored reports whether results are colored: on a terminal, unless NO_COLOR is set
// (https://no-color.org).
func (p *Program) Colored() bool {
	return p.Terminal != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Progress is a line on the terminal with the progress of a long command. Without a terminal it
// shows nothing.
type Progress struct {
	terminal io.Writer // nil if there is none
	shownAt  time.Time
	shown    bool
}

// NewProgress returns an empty line.
func (p *Program) NewProgress() *Progress {
	if p.MessageTerminal == nil {
		return &Progress{}
	}
	return &Progress{terminal: p.MessageTerminal, shownAt: time.Now()}
}

const (
	EraseLine        = "\r\x1b[K"
	progressInterval = 100 * time.Millisecond
)

// Show replaces the line, at most once per progressInterval.
func (l *Progress) Show(line func() string) {
	if l.terminal == nil || time.Since(l.shownAt) < progressInterval {
		return
	}
	l.shownAt, l.shown = time.Now(), true
	fmt.Fprint(l.terminal, EraseLine, printable.Line(line()))
}

// Clear removes the line so that other output can take its place.
func (l *Progress) Clear() {
	if l.shown {
		l.shown = false
		fmt.Fprint(l.terminal, EraseLine)
	}
}

// Bar draws a progress bar.
func Bar(done, whole int64) string {
	const width = 24
	filled := int64(width)
	if whole > 0 {
		filled = min(done, whole) * width / whole
	}
	return strings.Repeat("█", int(filled)) + strings.Repeat("░", width-int(filled))
}

// BytesText formats a number of bytes with three digits: 612 B, 25.4 kB, 1.20 MB.
func BytesText(bytes int64) string { return humanize.BytesN(uint64(bytes), 3) }

// CountText formats a number with its noun: 1 run, 12,345 runs.
func CountText[N int | int64](count N, noun string) string {
	if count != 1 {
		noun += "s"
	}
	return humanize.Comma(int64(count)) + " " + noun
}

// TimeText formats a time as that of this machine, in seconds.
func TimeText(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// TimeOrDash is TimeText, or "-" for no time.
func TimeOrDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return TimeText(t)
}

// DurationText formats a duration: 8 ms, 1.25 s, 3m12s.
func DurationText(duration time.Duration) string {
	switch {
	case duration < time.Second:
		return fmt.Sprintf("%d ms", max(1, duration.Milliseconds()))
	case duration < time.Minute:
		return fmt.Sprintf("%.2f s", duration.Seconds())
	default:
		return duration.Round(time.Second).String()
	}
}

// PrintProblem writes a problem of a log as a line.
func (p *Program) PrintProblem(where string, problem pgagui.Problem) error {
	if problem.RunID != "" {
		where += ", run " + problem.RunID
	}
	_, err := fmt.Fprintf(p.Out, "%s: %s\n", where, OneLine(problem.Problem))
	return err
}

// Logger returns a logger on stderr, which writes JSON with --json.
func (p *Program) Logger() *slog.Logger {
	if p.JSON {
		return slog.New(slog.NewJSONHandler(p.Messages, nil))
	}
	return slog.New(slog.NewTextHandler(p.Messages, nil))
}

// OrDash returns an id for a table: "-" if it is empty.
func OrDash(id string) string {
	if id == "" {
		return "-"
	}
	return id
}

// Joined joins the lines of a text.
func Joined(text string) string { return strings.Join(strings.Fields(text), " ") }

// Shorten joins the lines of a text and cuts it to a maximum number of characters.
func Shorten(text string, limit int) string { return cut(Joined(text), limit) }

// WithoutEmptyColumn removes the last column of a table if only its heading says something.
func WithoutEmptyColumn(rows [][]string, column int) [][]string {
	for _, row := range rows[1:] {
		if row[column] != "" {
			return rows
		}
	}
	for i := range rows {
		rows[i] = rows[i][:column]
	}
	return rows
}
