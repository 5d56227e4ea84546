package transcript

import (
	"bufio"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/pgagui/pgagui/internal/printable"
)

// A Line is what a [Renderer] makes of an activity. Its texts may have any length and any
// characters, line ends too: the writer wraps them, and escapes what would act on a terminal.
type Line struct {
	Depth int // levels of indentation, from 0
	Mark  Mark
	Text  string
	Note  string // after the text, dimmed
}

// Mark is a sign before the text of a line.
type Mark uint8

// The marks of list elements and of steps.
const (
	NoMark  Mark = iota
	Bullet       // - an element of a list
	Pending      // ◦ not begun
	Active       // ▸ under way
	Done         // ✓
	Failed       // ✗
	Skipped      // ~ will not be done
)

// Styles, as parameters of the ANSI escape sequence that selects them.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// span is a text in one style.
type span struct{ text, style string }

// marks are as wide as a level of indentation.
var marks = [...]span{
	NoMark:  {"", ""},
	Bullet:  {"- ", ""},
	Pending: {"◦ ", dim},
	Active:  {"▸ ", yellow},
	Done:    {"✓ ", green},
	Failed:  {"✗ ", red},
	Skipped: {"~ ", dim},
}

const indent = "  " // a level of indentation

// Margins stand at the left of the lines of a part.
var (
	noMargin = span{"", ""}
	indented = span{indent, ""}
	deeper   = span{indent + indent, ""}
	quoted   = span{indent + "┆ ", dim}
	framed   = span{indent + "│ ", dim}
)

// page is where lines are laid out.
type page struct {
	out   *bufio.Writer // keeps the first error for Flush
	width int           // 0: not bounded
	color bool
	begun bool
	// outer stands before the margin: the indentation of a subagent.
	outer string
}

// mostOuter bounds the levels at which subagents of subagents are indented further.
const mostOuter = 6

// indentTo sets the level of indentation of what follows.
func (p *page) indentTo(level int) {
	level = min(max(level, 0), mostOuter)
	if p.width > 0 { // half of a line is for the text
		level = min(level, p.width/2/len(indent))
	}
	p.outer = strings.Repeat(indent, level)
}

// gap is the empty line between two parts.
func (p *page) gap() {
	if p.begun {
		_ = p.out.WriteByte('\n')
	}
}

// head writes the line that a part begins with. Line ends in it are escaped, so that nothing in a name looks like another part.
func (p *page) head(margin span, mark Mark, spans ...span) {
	for i := range spans {
		spans[i].text = printable.Line(spans[i].text)
	}
	p.put(margin, Line{Mark: mark}, spans)
}

// body writes the lines of a part, all of them behind its margin.
func (p *page) body(margin span, lines []Line) {
	for _, line := range lines {
		spans := []span{{printable.Text(line.Text), ""}}
		if line.Note != "" {
			between := "  "
			if line.Text == "" {
				between = ""
			}
			spans = append(spans, span{between + printable.Text(line.Note), dim})
		}
		p.put(margin, line, spans)
	}
}

// put writes a line with these spans as its text, wrapped. What wraps stands below the text, not below the mark.
func (p *page) put(margin span, line Line, spans []span) {
	p.begun = true
	var text strings.Builder
	ends := make([]int, len(spans)) // where the spans end in the text
	for i, s := range spans {
		text.WriteString(s.text)
		ends[i] = text.Len()
	}
	all := text.String()
	mark := marks[line.Mark]
	below := "" // stands below the mark, and at the left edge, where nothing but heads begins
	if line.Mark != NoMark || margin == noMargin {
		below = indent
	}
	before := strings.Repeat(indent, max(line.Depth, 0))
	room := 0
	if p.width > 0 {
		room = p.width - len(p.outer) - uniseg.StringWidth(margin.text)
		if most := room / 2 / len(indent) * len(indent); len(before) > most {
			before = before[:most]
		}
		room -= len(before) + len(below)
	}
	for i, row := range wrap(all, room) {
		if i == 1 {
			mark = span{below, ""}
		}
		line := []span{{p.outer, ""}, margin, {before, ""}, mark, {strings.Repeat(" ", row.indent), ""}}
		at := row.start
		for i, end := range ends {
			if end = min(end, row.end); at < end {
				line = append(line, span{all[at:end], spans[i].style})
				at = end
			}
		}
		p.write(line)
	}
}

// write writes a line, without the spaces at its end.
func (p *page) write(line []span) {
	for len(line) > 0 {
		last := &line[len(line)-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			break
		}
		line = line[:len(line)-1]
	}
	for _, s := range line {
		if p.color && s.style != "" && s.text != "" {
			s.text = "\x1b[" + s.style + "m" + s.text + "\x1b[m"
		}
		_, _ = p.out.WriteString(s.text)
	}
	_ = p.out.WriteByte('\n')
}

// row is a part of a text that stands on a line of its own.
type row struct {
	start, end int
	indent     int // in columns
}

// wrap breaks a text into rows of at most so many columns (0: any number), where Unicode allows a line to be broken, and anywhere in what is longer than
// a line. What wraps keeps the indentation that its line has in the text, and stands below the text of an element of a list.
func wrap(text string, room int) []row {
	var rows []row
	start := 0
	for line := range strings.SplitSeq(text, "\n") {
		end := start + len(strings.TrimRight(line, " "))
		rows = appendRows(rows, text, start, end, room)
		start += len(line) + len("\n")
	}
	return rows
}

var listMark = regexp.MustCompile(`^([-*+]|\d+[.)]) +`)

func appendRows(rows []row, text string, start, end, room int) []row {
	if room <= 0 || uniseg.StringWidth(text[start:end]) <= room {
		return append(rows, row{start, end, 0})
	}
	line := strings.TrimLeft(text[start:end], " ")
	indentation := end - start - len(line)
	hanging := min(indentation+len(listMark.FindString(line)), room/3)
	indentation = min(indentation, room/3)
	begin, column := end-len(line), indentation // of the row at hand
	breakAt := func(at int) {
		rows = append(rows, row{begin, begin + len(strings.TrimRight(text[begin:at], " ")), indentation})
		begin, column, indentation = at, hanging, hanging
	}
	state := -1
	for rest := line; rest != ""; {
		var word string // with the spaces after it
		word, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
		at := end - len(rest) - len(word)
		for {
			wanted := len(strings.TrimRight(word, " "))
			fits := fitting(word[:wanted], room-column)
			if fits == wanted {
				break
			}
			if at == begin { // longer than a whole row
				_, oneRune := utf8.DecodeRuneInString(word)
				fits = max(fits, oneRune)
				at, word = at+fits, word[fits:]
			}
			breakAt(at)
		}
		column += uniseg.StringWidth(word)
	}
	breakAt(end)
	return rows
}

// fitting is the length in bytes of the first characters of a text that fit into so many columns.
func fitting(text string, room int) int {
	// Marks without end on one letter are a single character. Only so much is looked at, for the sake of time.
	if most := 64 * max(room, 1); len(text) > most {
		for !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	length, state := 0, -1
	for rest := text; rest != ""; {
		var character string
		var width int
		character, rest, width, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if width > room {
			if length == 0 {
				return fittingRunes(character, room)
			}
			break
		}
		room -= width
		length += len(character)
	}
	return length
}

func fittingRunes(character string, room int) int {
	for at, r := range character {
		if room -= uniseg.StringWidth(string(r)); room < 0 {
			return at
		}
	}
	return len(character)
}
