package explorer

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/problem"
)

// messagesAtAPoint is how many of the last messages a step through a run shows.
const messagesAtAPoint = 30

type timePage struct {
	Head        threadHead
	First, Last int64
	Marks       []mark
	Previous    string
	Next        string
	// The point.
	Event        shownEvent
	Conversation conversation
	State        []stateLine
	IsStateCut   bool
	Changed      []string
	Open         []openThing
	Interrupts   []part
}

// mark is an event of the slider that matters.
type mark struct {
	X     int // of 1000
	Class string
}

// openThing is a message, a tool call or a step that has begun and not ended.
type openThing struct{ Kind, ID string }

// markedTypes are the events with a mark on the slider, and the class of its color.
var markedTypes = map[string]string{
	"TOOL_CALL_START": "tool", "TOOL_CALL_RESULT": "tool", "STATE_SNAPSHOT": "state", "STATE_DELTA": "state", "RUN_ERROR": "bad",
}

// mostMarks bounds the marks of a slider.
const mostMarks = 1000

// showTime shows a run at one of its events.
func (h *Handler) showTime(q *request) error {
	head, _, err := q.readThread("time")
	if err != nil {
		return err
	}
	status, err := q.store.Status(q.Context(), pgagui.RunRef{ThreadID: head.ID, RunID: head.Run.ID})
	if err != nil {
		return err
	}
	body := timePage{Head: head, First: status.FirstSeq, Last: status.LastSeq}
	at := cmp.Or(head.Seq, body.Last)
	body.Head.Seq = at
	m, err := q.readMoment(head, at, body.First, body.Last)
	if err != nil {
		return err
	}
	place := func(seq int64) string {
		if seq == 0 {
			return ""
		}
		return link("time", "id", head.ID, "run", head.Run.ID, "seq", seq)
	}
	body.Previous, body.Next = place(m.previous), place(m.next)
	if body.Marks, err = q.readMarks(head, body.First, body.Last); err != nil {
		return err
	}
	body.Event = shownEvent{HistoryEvent: m.event, Number: head.Run.Number, Class: classOfEvent(m.event.Type)}
	body.Event.Text, body.Event.Cut = cut(pretty(m.event.JSON))
	begin := max(len(m.messages)-messagesAtAPoint, 0)
	body.Conversation = conversation{Earlier: begin, EarlierLink: link("thread", "id", head.ID, "run", head.Run.ID, "seq", at)}
	body.Conversation.Parts = partsOf(said{thread: head.ID, messages: m.messages[begin:], interrupts: m.interrupts, first: begin, isRunning: true})
	body.Changed, body.Open = m.changed, m.open
	body.State, body.IsStateCut = stateLines(m.state, m.changed)
	return q.write("time", "Step through "+cmp.Or(head.Title, head.ID), body)
}

// readMarks returns the marks of a run.
func (q *request) readMarks(head threadHead, first, last int64) (marks []mark, err error) {
	types := make([]string, 0, len(markedTypes))
	for name := range markedTypes {
		types = append(types, name)
	}
	read, err := q.store.History(q.Context(), head.ID, pgagui.HistoryOptions{
		RunID: head.Run.ID, NoLineage: true, Types: types, Raw: true, Limit: mostMarks,
	})
	if err != nil {
		return nil, err
	}
	for _, event := range read.Events {
		marks = append(marks, mark{
			X: int((event.Seq - first) * 1000 / max(last-first, 1)), Class: markedTypes[event.Type],
		})
	}
	return marks, nil
}

// moment is a run at one of its events.
type moment struct {
	event          pgagui.HistoryEvent
	previous, next int64 // the events of the run beside it; 0: there is none
	messages       []json.RawMessage
	state          json.RawMessage
	interrupts     []json.RawMessage
	changed        []string
	open           []openThing
}

// readMoment returns a run at one of its events.
func (q *request) readMoment(head threadHead, at, first, last int64) (m moment, err error) {
	read, err := q.store.History(q.Context(), head.ID, pgagui.HistoryOptions{RunID: head.Run.ID, NoLineage: true, Raw: true, AfterSeq: at - 1, Limit: 2})
	if err != nil {
		return m, err
	}
	if len(read.Events) == 0 || read.Events[0].Seq != at {
		return m, problem.Errorf(http.StatusNotFound, "event %d is not of run %.200q", at, head.Run.ID)
	}
	m.event = read.Events[0]
	if len(read.Events) > 1 {
		m.next = read.Events[1].Seq
	}
	if at > first {
		m.previous = at - 1
	}
	restored, err := q.store.Restore(q.Context(), head.ID, pgagui.At{RunID: head.Run.ID, Seq: at})
	if err != nil {
		return m, err
	}
	m.messages, m.state, m.interrupts = restored.Messages, restored.State, restored.Interrupts
	m.changed, err = q.changedBy(head, m.event)
	return m, err
}

// changedBy returns the paths of the state that an event changed. A patch names them; of a snapshot,
// the states before and after it are compared.
func (q *request) changedBy(head threadHead, event pgagui.HistoryEvent) (paths []string, err error) {
	type operation struct{ Path, From string }
	var operations []operation
	switch event.Type {
	case "STATE_DELTA":
		var of struct{ Delta, Patch []operation }
		if json.Unmarshal(event.JSON, &of) != nil {
			return nil, nil
		}
		operations = append(of.Delta, of.Patch...)
	case "STATE_SNAPSHOT":
		if event.Seq == 1 {
			return nil, nil
		}
		diff, err := q.store.Diff(q.Context(), head.ID, pgagui.DiffOptions{
			From: pgagui.At{RunID: head.Run.ID, Seq: event.Seq - 1}, To: pgagui.At{RunID: head.Run.ID, Seq: event.Seq},
		})
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(diff.StatePatch, &operations); err != nil {
			return nil, err
		}
	}
	for _, operation := range operations {
		paths = append(paths, strings.TrimSuffix(operation.Path, "/-"))
	}
	return paths, nil
}
