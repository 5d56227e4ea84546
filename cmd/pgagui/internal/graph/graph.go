// Package graph draws the runs of a thread as a tree for the terminal, as git log --graph draws commits: the newest run
// first, one lane for each branch. Where a branch began, its lane joins the one of the run that it forked from.
//
//   - run6 (head)
//   - run5
//     | * run4
//     | * run3
//     |/
//   - run2
//   - run1
package graph

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/internal/printable"
)

// A Run is a node of the tree.
type Run struct {
	ID string
	// Parent is the ID of the run that this one follows; empty for a root. A parent that is not among the runs that are drawn
	// lies below the picture: its lane ends at the lower edge in a colon.
	Parent string
	// Marks stand in parentheses after the ID, for instance "head".
	Marks []string
	// Label is the text after the ID and the marks.
	Label string
}

// Options say how to draw.
type Options struct {
	// Color gives each lane a color, by ANSI escape sequences.
	Color bool
}

// Write draws runs that are given oldest first, a parent before its children. Control characters in texts are shown as Go
// writes them (\n, \x1b), so that a text can neither break the picture nor control the terminal.
func Write(w io.Writer, runs []Run, options Options) error {
	parents, err := parentsOf(runs)
	if err != nil {
		return err
	}
	p := &picture{out: bufio.NewWriter(w), color: options.Color, ended: none}
	for number, run := range slices.Backward(runs) {
		at := p.laneTo(number)
		p.writeRun(at, run)
		p.follow(at, parents[number])
	}
	p.writeLowerEdge()
	return p.out.Flush()
}

// none is the parent of a root, and the index of no lane.
const none = -1

// parentsOf returns for each run the number of its parent: its index, or one beyond the runs if it is not among them.
func parentsOf(runs []Run) ([]int, error) {
	numbers := make(map[string]int, len(runs))
	for number, run := range runs {
		if _, twice := numbers[run.ID]; twice {
			return nil, fmt.Errorf("graph: run %q is given twice", run.ID)
		}
		numbers[run.ID] = number
	}
	parents := make([]int, len(runs))
	for number, run := range runs {
		if run.Parent == "" {
			parents[number] = none
			continue
		}
		parent, known := numbers[run.Parent]
		if !known {
			parent = len(numbers)
			numbers[run.Parent] = parent
		} else if parent >= number && parent < len(runs) {
			return nil, fmt.Errorf("graph: run %q is given before its parent %q", run.ID, run.Parent)
		}
		parents[number] = parent
	}
	return parents, nil
}

// picture is the state between two rows.
type picture struct {
	out    *bufio.Writer
	color  bool
	lanes  []lane  // from left to right; no two lead to the same run
	opened int     // lanes so far
	row    []glyph // the row in the making: lane n is at 2n, and 2n+1 is the gap to its right
	ended  int     // the index that the lane of the last run had, if that run was a root and the lane the last one
}

// lane is a line down to a run that is not drawn yet.
type lane struct {
	to    int // the number of the run
	color int
}

// laneTo returns the index of the lane to a run. If there is none, the run is the tip of a branch and gets a new one.
func (p *picture) laneTo(run int) int {
	at := p.find(run)
	if at == none {
		at = len(p.lanes)
		if p.ended == at {
			// Right below the root of another tree the run would look like its parent.
			p.startRow(at)
			p.writeRow()
		}
		p.lanes = append(p.lanes, lane{to: run, color: p.opened % len(laneColors)})
		p.opened++
	}
	p.ended = none
	return at
}

func (p *picture) find(run int) int {
	return slices.IndexFunc(p.lanes, func(l lane) bool { return l.to == run })
}

// writeRun writes the row of a run.
func (p *picture) writeRun(at int, run Run) {
	p.startRow(len(p.lanes))
	p.row[2*at].character = '*'
	p.writeGlyphs()
	p.writeColored(idColor, printable.Line(run.ID))
	if len(run.Marks) > 0 {
		_ = p.out.WriteByte(' ')
		p.writeColored(markColor, "("+printable.Line(strings.Join(run.Marks, ", "))+")")
	}
	if run.Label != "" {
		_, _ = p.out.WriteString(" " + printable.Line(run.Label))
	}
	_ = p.out.WriteByte('\n')
}

// follow leads a lane on from the run that was just drawn to its parent. Two lanes to one run join in the left one.
func (p *picture) follow(at, parent int) {
	if parent == none {
		p.endLane(at)
		return
	}
	other := p.find(parent)
	p.lanes[at].to = parent
	if other != none {
		p.join(min(at, other), max(at, other))
	}
}

// endLane takes away the lane of a root. The lanes to the right move up.
func (p *picture) endLane(at int) {
	if at == len(p.lanes)-1 {
		p.lanes = p.lanes[:at]
		p.ended = at
		return
	}
	p.startRow(at)
	p.moveUp(at)
	p.writeRow()
}

// join leads the lane from into the lane to. The lanes to the right of from move up.
func (p *picture) join(to, from int) {
	color := p.lanes[from].color
	p.startRow(from)
	p.put(2*from-1, '/', color)
	if from == to+1 {
		p.moveUp(from)
		p.writeRow()
		return
	}
	// The lane crosses those between, in a second row: | |_|/
	//                                                 |/| |
	for gap := 2*to + 3; gap < 2*from-1; gap += 2 {
		p.put(gap, '_', color)
	}
	p.moveUp(from)
	p.writeRow()
	p.startRow(len(p.lanes))
	p.put(2*to+1, '/', color)
	p.writeRow()
}

// moveUp takes away a lane and lets those to its right take a step to the left in the row.
func (p *picture) moveUp(removed int) {
	for at := removed + 1; at < len(p.lanes); at++ {
		p.put(2*at-1, '/', p.lanes[at].color)
	}
	p.lanes = slices.Delete(p.lanes, removed, removed+1)
}

// writeLowerEdge ends the lanes that lead to runs below the picture.
func (p *picture) writeLowerEdge() {
	if len(p.lanes) == 0 {
		return
	}
	p.startRow(len(p.lanes))
	for at := range p.lanes {
		p.row[2*at].character = ':'
	}
	p.writeRow()
}

// glyph is a character of a row, in the color of its lane.
type glyph struct {
	character byte
	color     int
}

// startRow starts a row with so many lanes going straight down.
func (p *picture) startRow(lanes int) {
	p.row = p.row[:0]
	for _, l := range p.lanes[:lanes] {
		p.row = append(p.row, glyph{'|', l.color}, glyph{character: ' '})
	}
}

// put sets a glyph of the row.
func (p *picture) put(at int, character byte, color int) {
	for len(p.row) <= at {
		p.row = append(p.row, glyph{character: ' '})
	}
	p.row[at] = glyph{character, color}
}

// writeRow writes the row as a line.
func (p *picture) writeRow() {
	for len(p.row) > 0 && p.row[len(p.row)-1].character == ' ' {
		p.row = p.row[:len(p.row)-1]
	}
	p.writeGlyphs()
	_ = p.out.WriteByte('\n')
}

func (p *picture) writeGlyphs() {
	for _, g := range p.row {
		if g.character == ' ' {
			_ = p.out.WriteByte(' ')
		} else {
			p.writeColored(laneColors[g.color], string(rune(g.character)))
		}
	}
}

// Colors, as parameters of the ANSI escape sequence that selects them.
const (
	idColor   = "33"
	markColor = "1;36"
)

var laneColors = [...]string{"31", "32", "34", "35", "36", "33"}

func (p *picture) writeColored(color, text string) {
	if p.color {
		text = "\x1b[" + color + "m" + text + "\x1b[m"
	}
	_, _ = p.out.WriteString(text) // the writer keeps the first error for Flush
}
