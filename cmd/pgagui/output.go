package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/term"

	"github.com/pgagui/pgagui/internal/printable"
)

// printJSON writes a result as a line of JSON.
func (p *program) printJSON(result any) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

// printTable writes rows in columns. It escapes control characters, which ids and titles may
// contain.
func (p *program) printTable(rows [][]string) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable.Line(cell)
		}
		// No trailing tab: the last column is not padded.
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// terminalOf returns the reader or writer as a terminal, or nil if it is none.
func terminalOf(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// styled is the output for writers that add colors and escape all other control characters
// themselves.
func (p *program) styled() io.Writer {
	if p.terminal != nil {
		return p.terminal
	}
	return p.out
}

// colored reports whether results are colored: on a terminal, unless NO_COLOR is set
// (https://no-color.org).
func (p *program) colored() bool {
	return p.terminal != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// progress is a line on the terminal with the progress of a long command. Without a terminal it
// shows nothing.
type progress struct {
	terminal io.Writer // nil if there is none
	shownAt  time.Time
	shown    bool
}

func (p *program) newProgress() *progress {
	if p.messageTerminal == nil {
		return &progress{}
	}
	return &progress{terminal: p.messageTerminal, shownAt: time.Now()}
}

const (
	eraseLine        = "\r\x1b[K"
	progressInterval = 100 * time.Millisecond
)

// show replaces the line, at most once per progressInterval.
func (l *progress) show(line func() string) {
	if l.terminal == nil || time.Since(l.shownAt) < progressInterval {
		return
	}
	l.shownAt, l.shown = time.Now(), true
	fmt.Fprint(l.terminal, eraseLine, printable.Line(line()))
}

// clear removes the line so that other output can take its place.
func (l *progress) clear() {
	if l.shown {
		l.shown = false
		fmt.Fprint(l.terminal, eraseLine)
	}
}

// bar draws a progress bar.
func bar(done, whole int64) string {
	const width = 24
	filled := int64(width)
	if whole > 0 {
		filled = min(done, whole) * width / whole
	}
	return strings.Repeat("█", int(filled)) + strings.Repeat("░", width-int(filled))
}

// bytesText formats a number of bytes with three digits: 612 B, 25.4 kB, 1.20 MB.
func bytesText(bytes int64) string { return humanize.BytesN(uint64(bytes), 3) }

// countText formats a number with its noun: 1 run, 12,345 runs.
func countText[N int | int64](count N, noun string) string {
	if count != 1 {
		noun += "s"
	}
	return humanize.Comma(int64(count)) + " " + noun
}

// durationText formats a duration: 8 ms, 1.25 s, 3m12s.
func durationText(duration time.Duration) string {
	switch {
	case duration < time.Second:
		return fmt.Sprintf("%d ms", max(1, duration.Milliseconds()))
	case duration < time.Minute:
		return fmt.Sprintf("%.2f s", duration.Seconds())
	default:
		return duration.Round(time.Second).String()
	}
}
