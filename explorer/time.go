package explorer

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/problem"
	"github.com/pgagui/pgagui/timeline"
)

// messagesAtAPoint is how many of the last messages a step through a run shows.
const messagesAtAPoint = 30

type timePage struct {
	Head        threadHead
	First, Last int64 // of the run
	Place, Size int   // which event of the run it is, from 1, and how many there are
	Marks       []mark
	Previous    string
	Next        string
	// What was, at the event.
	Event        shownEvent
	Skipped      string // why the event has no effect
	Conversation conversation
	State        template.HTML
	IsStateCut   bool
	Changed      []string
	Open         []timeline.OpenPart
}

// mark is an event of the slider that matters.
type mark struct {
	X     int // of 1000
	Class string
}

// mostMarks bounds the marks of a slider: more than that cannot be told from each other.
const mostMarks = 1000

// showTime shows a run at one of its events.
func (h *Handler) showTime(q *request) error {
	head, _, err := q.readThread("time")
	if err != nil {
		return err
	}
	ctx, err := q.inPages()
	if err != nil {
		return err
	}
	line, err := h.timelines.Open(ctx, q.store, pgagui.RunRef{ThreadID: head.ID, RunID: head.Run.ID})
	if err != nil {
		return err
	}
	events := line.Marks()
	if len(events) == 0 {
		return problem.Errorf(http.StatusNotFound, "run %.200q has no events", head.Run.ID)
	}
	at := cmp.Or(head.Seq, events[len(events)-1].Seq)
	if text := q.text("n"); text != "" { // of the slider
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(events) {
			return problem.Errorf(http.StatusNotFound, "n is %.40q (expected a number from 1 to %d)", text, len(events))
		}
		at = events[n-1].Seq
	}
	moment, err := line.At(ctx, at)
	switch {
	case errors.Is(err, timeline.ErrNotInRun):
		return problem.Errorf(http.StatusNotFound, "event %d is not of run %.200q", at, head.Run.ID)
	case err != nil:
		return err
	}
	place := func(seq int64) string {
		if seq == 0 {
			return ""
		}
		return link("time", "id", head.ID, "run", head.Run.ID, "seq", seq)
	}
	body := timePage{
		Head: head, First: events[0].Seq, Last: events[len(events)-1].Seq, Place: moment.Index + 1, Size: len(events),
		Marks: marksOf(events), Previous: place(moment.Previous), Next: place(moment.Next), Changed: moment.StatePaths, Open: moment.Open,
	}
	body.Head.Seq = at
	body.Event = shownEvent{
		HistoryEvent: pgagui.HistoryEvent{Seq: moment.Event.Seq, Type: moment.Event.Type, CreatedAt: moment.Event.RecordedAt, JSON: moment.Event.JSON},
		Number:       head.Run.Number, Class: classOfEvent(moment.Event.Type),
	}
	body.Event.Text, body.Event.Cut = cut(pretty(moment.Event.JSON))
	if n := len(moment.Skipped); n > 0 && moment.Skipped[n-1].Seq == at {
		body.Skipped = moment.Skipped[n-1].Problem
	}
	begin := max(len(moment.Messages)-messagesAtAPoint, 0)
	body.Conversation = conversation{Earlier: begin, EarlierLink: link("thread", "id", head.ID, "run", head.Run.ID, "seq", at)}
	body.Conversation.Parts = partsOf(said{
		thread: head.ID, messages: moment.Messages[begin:], interrupts: moment.Interrupts, first: begin + 1, isRunning: true,
	})
	state, isCut := stateLines(moment.State, moment.StatePaths)
	body.State, body.IsStateCut = stateHTML(state), isCut
	return q.write("time", "Step through "+cmp.Or(head.Title, head.ID), body)
}

// marksOf returns the marks of a run.
func marksOf(events []timeline.Mark) (marks []mark) {
	for i, event := range events {
		class := markOfEvent(event.Type)
		x := i * 1000 / max(len(events)-1, 1)
		if class == "" || len(marks) > 0 && marks[len(marks)-1] == (mark{x, class}) {
			continue
		}
		marks = append(marks, mark{x, class})
	}
	if len(marks) > mostMarks { // errors first
		slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(btoi(b.Class == "bad"), btoi(a.Class == "bad")) })
		marks = marks[:mostMarks]
	}
	return marks
}
