package explorer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pgagui/pgagui"
)

const (
	// leastFolded is how many runs a straight stretch must have to be drawn as one row.
	leastFolded = 3
	// mostLanes bounds the width of the picture. Lanes beyond it are drawn at its edge.
	mostLanes = 10

	laneWidth, rowHeight = 14, 28
)

// treeRow is a row of the tree: a run, or a stretch of runs.
type treeRow struct {
	pgagui.Run
	IsHead, IsSelected bool
	// OnLineage: it is an ancestor of the selected run, or that run.
	OnLineage bool
	Why       string
	// Folded is how many runs the row stands for, of which Run is the oldest; 0: the run alone.
	Folded int
	// Lane is the lane of the run. Lines pass all lanes left of it.
	Lane int

	hasChild, hasParent, isJoined bool
	// childOnLineage: so is the run above, in the same lane. passing are the lanes left of it that are drawn,
	// true where the line leads from one ancestor of the selected run to the next.
	childOnLineage bool
	passing        []bool
}

// drawTree lays runs out as "git log --graph --topo-order" does: the newest branch first, a parent
// below its children, each branch as one stretch beside the lane that it came from. Runs come in
// the order in which they began. Straight stretches are folded, except those whose oldest run is in
// open.
func drawTree(runs []pgagui.Run, head, selected string, open map[int]bool) []treeRow {
	at := make(map[string]int, len(runs))
	for i, run := range runs {
		at[run.ID] = i
	}
	const none = -1
	parents := make([]int, len(runs))
	children := make([][]int, len(runs))
	var roots []int
	for i, run := range runs {
		parent, isThere := at[run.ParentRunID]
		if run.ParentRunID == "" || !isThere || parent >= i {
			parents[i] = none
			roots = append(roots, i)
			continue
		}
		parents[i] = parent
		children[parent] = append(children[parent], i)
	}
	newest := make([]int, len(runs)) // the newest run of what begins with a run
	for i := len(runs) - 1; i >= 0; i-- {
		newest[i] = max(newest[i], i)
		if parents[i] != none {
			newest[parents[i]] = max(newest[parents[i]], newest[i])
		}
	}
	onHead, onLineage := markLineage(at, parents, head), markLineage(at, parents, selected)
	first := func(a, b int) int { // the lane of the head goes straight down
		if onHead[a] != onHead[b] {
			return cmp.Compare(btoi(onHead[b]), btoi(onHead[a]))
		}
		return cmp.Compare(newest[b], newest[a])
	}

	var rows []treeRow
	// What is left to do: a run is laid out when its children are.
	type visit struct {
		run, lane  int
		isJoined   bool
		isExpanded bool
	}
	slices.SortFunc(roots, first)
	var lanes []bool // whether the last run in a lane is on the lineage
	var left []visit
	for _, root := range slices.Backward(roots) {
		left = append(left, visit{run: root})
	}
	for len(left) > 0 {
		next := &left[len(left)-1]
		below := children[next.run]
		if !next.isExpanded && len(below) > 0 {
			next.isExpanded = true
			lane := next.lane
			slices.SortFunc(below, first)
			for i, child := range slices.Backward(below) {
				left = append(left, visit{run: child, lane: lane + btoi(i > 0), isJoined: i > 0})
			}
			continue
		}
		run := runs[next.run]
		rows = append(rows, treeRow{
			Run: run, IsHead: run.ID == head, IsSelected: run.ID == selected, OnLineage: onLineage[next.run], Lane: next.lane,
			hasChild: len(below) > 0, hasParent: parents[next.run] != none, isJoined: next.isJoined,
		})
		row := &rows[len(rows)-1]
		row.passing = slices.Clone(lanes[:min(row.Lane, len(lanes), mostLanes)])
		row.childOnLineage = row.hasChild && lanes[row.Lane]
		lanes = append(lanes[:row.Lane], row.OnLineage)
		if run.Status == pgagui.Failed || run.Status == pgagui.CutOff || run.Status == pgagui.Cancelled {
			row.Why = why(run.RunEnd)
		}
		left = left[:len(left)-1]
	}
	return fold(rows, func(row treeRow) bool { return len(children[at[row.ID]]) == 1 }, open)
}

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

// markLineage marks the ancestors of a run, and it.
func markLineage(at map[string]int, parents []int, run string) []bool {
	marked := make([]bool, len(parents))
	if i, isThere := at[run]; isThere {
		for ; i >= 0; i = parents[i] {
			marked[i] = true
		}
	}
	return marked
}

// fold joins the rows of straight stretches.
func fold(rows []treeRow, isInner func(treeRow) bool, open map[int]bool) (folded []treeRow) {
	isPlain := func(row treeRow) bool {
		return isInner(row) && row.hasParent && !row.isJoined && !row.IsHead && !row.IsSelected &&
			(row.Status == pgagui.Finished || row.Status == pgagui.Interrupted)
	}
	for begin := 0; begin < len(rows); {
		end := begin
		for end < len(rows) && isPlain(rows[end]) && rows[end].Lane == rows[begin].Lane && rows[end].OnLineage == rows[begin].OnLineage {
			end++
		}
		if end-begin < leastFolded || open[rows[end-1].Number] || open[0] {
			end = max(end, begin+1)
			folded = append(folded, rows[begin:end]...)
		} else {
			stretch := rows[end-1]
			stretch.Folded, stretch.hasChild, stretch.childOnLineage = end-begin, true, rows[begin].childOnLineage
			folded = append(folded, stretch)
		}
		begin = end
	}
	return folded
}

// Width is that of the picture in the row.
func (r treeRow) Width() int { return laneWidth * (min(r.Lane, mostLanes) + 1) }

// X is where the run is.
func (r treeRow) X() int { return laneX(r.Lane) }

func laneX(lane int) int { return min(lane, mostLanes)*laneWidth + laneWidth/2 }

// line is a part of the picture in a row.
type line struct {
	Path      string
	OnLineage bool
}

// Lines are those of a row: the lanes that pass, and the lane of the run.
func (r treeRow) Lines() (lines []line) {
	var paths [2]strings.Builder // those off and on the lineage
	path := func(onLineage bool) *strings.Builder { return &paths[btoi(onLineage)] }
	for lane, onLineage := range r.passing {
		fmt.Fprintf(path(onLineage), "M%d 0V%d", laneX(lane), rowHeight)
	}
	x, middle := r.X(), rowHeight/2
	if r.hasChild {
		fmt.Fprintf(path(r.childOnLineage), "M%d 0V%d", x, middle)
	}
	switch parent := laneX(r.Lane - 1); {
	case r.isJoined:
		fmt.Fprintf(path(r.OnLineage), "M%d %dC%d %d %d %d %d %d", x, middle, x, rowHeight-3, parent, middle+3, parent, rowHeight)
	case r.hasParent:
		fmt.Fprintf(path(r.OnLineage), "M%d %dV%d", x, middle, rowHeight)
	}
	for i := range paths {
		if paths[i].Len() > 0 {
			lines = append(lines, line{paths[i].String(), i == 1})
		}
	}
	return lines
}
