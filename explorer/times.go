package explorer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/protocol"
)

// mostSpans bounds what a page of times shows.
const mostSpans = 500

type timesPage struct {
	Head       threadHead
	Spans      []span
	Gaps       []gap
	Total      string
	FirstToken string
	Ticks      []tick
	Height     int
	IsCut      bool
}

// span is a step, a message, … of a run in time.
type span struct {
	Kind, Name string
	Begin, End time.Time
	FirstSeq   int64
	IsOpen     bool
	IsBad      bool

	X, Width, Y int // of the picture, whose width is 1000
	Took, At    string
	Link        string
}

// gap is a time in which nothing came.
type gap struct {
	Begin, End time.Time
	AfterSeq   int64
	X, Width   int
	Took       string
	Link       string
}

// tick is a line of the axis.
type tick struct {
	X    int
	Text string
}

const (
	timesWidth = 1000
	spanHeight = 24
	// leastGap is the shortest time without an event that counts as a gap.
	leastGap = time.Second
)

// showTimes shows what took how long in a run.
func (h *Handler) showTimes(q *request) error {
	head, _, err := q.readThread("times")
	if err != nil {
		return err
	}
	body := timesPage{Head: head}
	line := timeLine{open: map[string]int{}}
	options := pgagui.HistoryOptions{RunID: head.Run.ID, NoLineage: true, Limit: 1000, MaxBytes: 4096, PageBytes: h.door.Memory.PageBytes()}
	for {
		read, err := q.store.History(q.Context(), head.ID, options)
		if err != nil {
			return err
		}
		for _, event := range read.Events {
			line.add(event)
		}
		if !read.HasMore || len(line.spans) > mostSpans {
			break
		}
		options.AfterSeq = read.AfterSeq
		q.held.Release() // what was read is not kept
	}
	body.IsCut = len(line.spans) > mostSpans
	line.draw(&body)
	return q.write("times", "Times of "+cmp.Or(head.Title, head.ID), body)
}

// timeLine collects the spans of a run.
type timeLine struct {
	spans       []span
	open        map[string]int // by kind and id
	gaps        []gap
	first, last time.Time
	lastSeq     int64
	firstToken  time.Time
	// shift is from when an event was stored to when it happened, by the last event that says so.
	shift time.Duration
}

func (l *timeLine) add(event pgagui.HistoryEvent) {
	var of struct {
		Timestamp                               float64
		StepName, MessageID, ToolCallID         string
		ToolCallName, Role, Name, SubagentRunID string
	}
	_ = json.Unmarshal(event.JSON, &of)
	if at, _, ok := events.TimeOf(of.Timestamp); ok { // when it happened; the log says when it was stored
		l.shift = at.Sub(event.CreatedAt)
	}
	begin := event.CreatedAt.Add(l.shift)
	end := begin
	if !event.CompletedAt.IsZero() {
		end = event.CompletedAt.Add(l.shift)
	}
	if l.first.IsZero() {
		l.first, l.last = begin, begin
	}
	if pause := begin.Sub(l.last); pause >= leastGap && l.lastSeq > 0 {
		l.gaps = append(l.gaps, gap{Begin: l.last, End: begin, AfterSeq: l.lastSeq})
	}
	if end.After(l.last) {
		l.last = end
	}
	l.lastSeq = event.LastSeq
	start := func(kind, id, name string) {
		if at, isOpen := l.open[kind+" "+id]; isOpen {
			l.spans[at].End = end
			return
		}
		l.open[kind+" "+id] = len(l.spans)
		l.spans = append(l.spans, span{Kind: kind, Name: name, Begin: begin, End: end, FirstSeq: event.Seq, IsOpen: true})
	}
	extend := func(kind, id string, isEnd bool) {
		at, isOpen := l.open[kind+" "+id]
		if !isOpen {
			return
		}
		l.spans[at].End = end
		if isEnd {
			l.spans[at].IsOpen = false
			delete(l.open, kind+" "+id)
		}
	}
	does, part, _ := protocol.RoleOf(event.Type)
	switch strings.TrimSpace(does + " " + part) {
	case "start step":
		start("step", of.StepName, of.StepName)
	case "end step":
		extend("step", of.StepName, true)
	case "start text":
		start("message", of.MessageID, cmp.Or(of.Name, of.Role, "message"))
	case "chunk text":
		start("message", of.MessageID, cmp.Or(of.Name, of.Role, "message"))
		l.token(begin)
	case "continue text":
		extend("message", of.MessageID, false)
		l.token(begin)
	case "end text":
		extend("message", of.MessageID, true)
	case "start span", "start reasoning", "chunk reasoning":
		start("reasoning", of.MessageID, "reasoning")
	case "continue reasoning", "end reasoning":
		extend("reasoning", of.MessageID, false)
	case "end span":
		extend("reasoning", of.MessageID, true)
	case "start tool", "chunk tool":
		start("tool", of.ToolCallID, cmp.Or(of.ToolCallName, "tool"))
	case "continue tool", "end tool":
		extend("tool", of.ToolCallID, false)
	case "add result":
		extend("tool", of.ToolCallID, true)
	case "start subagent":
		start("subagent", of.SubagentRunID, cmp.Or(of.Name, "subagent"))
	case "end subagent":
		extend("subagent", of.SubagentRunID, true)
	case "fail run":
		for _, at := range l.open {
			l.spans[at].IsBad = true
		}
	}
}

func (l *timeLine) token(at time.Time) {
	if l.firstToken.IsZero() {
		l.firstToken = at
	}
}

// draw lays the spans out.
func (l *timeLine) draw(body *timesPage) {
	total := max(l.last.Sub(l.first), time.Millisecond)
	x := func(at time.Time) int {
		return min(max(int(float64(at.Sub(l.first))/float64(total)*timesWidth), 0), timesWidth)
	}
	slices.SortStableFunc(l.spans, func(a, b span) int { return a.Begin.Compare(b.Begin) })
	for i, s := range l.spans[:min(len(l.spans), mostSpans)] {
		s.X = min(x(s.Begin), timesWidth-3)
		s.Width, s.Y = max(x(s.End)-s.X, 3), i*spanHeight
		s.Took, s.At = durationText(s.End.Sub(s.Begin)), durationText(s.Begin.Sub(l.first))
		s.Link = link("time", "id", body.Head.ID, "run", body.Head.Run.ID, "seq", s.FirstSeq)
		body.Spans = append(body.Spans, s)
	}
	for _, g := range l.gaps {
		g.X = x(g.Begin)
		g.Width, g.Took = max(x(g.End)-g.X, 1), durationText(g.End.Sub(g.Begin))
		g.Link = link("time", "id", body.Head.ID, "run", body.Head.Run.ID, "seq", g.AfterSeq)
		body.Gaps = append(body.Gaps, g)
	}
	slices.SortFunc(body.Gaps, func(a, b gap) int { return cmp.Compare(b.End.Sub(b.Begin), a.End.Sub(a.Begin)) })
	body.Gaps = body.Gaps[:min(len(body.Gaps), 20)]
	body.Height = max(len(body.Spans), 1) * spanHeight
	body.Total = durationText(total)
	if !l.firstToken.IsZero() {
		body.FirstToken = durationText(l.firstToken.Sub(l.first))
	}
	for quarter := range 5 {
		body.Ticks = append(body.Ticks, tick{timesWidth * quarter / 4, durationText(total * time.Duration(quarter) / 4)})
	}
}
