package explorer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/problem"
)

// eventsPerPage is how many events a page of the log shows.
const eventsPerPage = 200

type logPage struct {
	Head   threadHead
	Events []shownEvent
	// Runs is which runs are shown: the one of the page, its lineage, or all.
	Runs       []choice
	Types      []choice
	IsRaw      bool
	After      int64
	NewerLink  string // behind the page
	FirstLink  string // empty: this is the first page
	NDJSON     string // the events of the page, byte for byte
	WholeRun   string // those of the run
	IsNarrowed bool
}

// shownEvent is an event of the log.
type shownEvent struct {
	pgagui.HistoryEvent
	Preview   string
	Text, Cut string
	Step      string // where to step through from here
	Number    int    // of the run
	Class     string
}

// logOptions reads which events a page of the log shows.
func (q *request) logOptions(head threadHead) (options pgagui.HistoryOptions, err error) {
	if options.AfterSeq, err = q.seq("after"); err != nil {
		return options, err
	}
	options.RunID, options.NoLineage, options.Raw = head.Run.ID, true, q.text("raw") != ""
	options.Limit, options.MaxBytes, options.PageBytes = eventsPerPage, 64<<10, q.handler.door.Memory.PageBytes()
	switch q.text("runs") {
	case "lineage":
		options.NoLineage = false
	case "all":
		options.RunID, options.NoLineage = "", false
	}
	for _, group := range eventGroups() {
		if group.name == q.text("type") {
			options.Types = group.types
		}
	}
	if name := q.text("type"); name != "" && options.Types == nil {
		options.Types = []string{name}
	}
	return options, nil
}

// showLog shows the events of a thread.
func (h *Handler) showLog(q *request) error {
	head, runs, err := q.readThread("log")
	if err != nil {
		return err
	}
	options, err := q.logOptions(head)
	if err != nil {
		return err
	}
	read, err := q.store.History(q.Context(), head.ID, options)
	if err != nil {
		return err
	}
	body := logPage{Head: head, IsRaw: options.Raw, After: options.AfterSeq, IsNarrowed: q.text("type") != ""}
	body.Runs = chosen([]choice{{Text: "This run"}, {Value: "lineage", Text: "With its ancestors"}, {Value: "all", Text: "All runs"}}, q.text("runs"))
	body.Types = []choice{{Text: "All types"}}
	for _, group := range eventGroups() {
		body.Types = append(body.Types, choice{Value: group.name, Text: group.name})
	}
	if name := q.text("type"); name != "" && !slices.ContainsFunc(body.Types, func(c choice) bool { return c.Value == name }) {
		body.Types = append(body.Types, choice{Value: name, Text: name})
	}
	body.Types = chosen(body.Types, q.text("type"))
	numbers := map[string]int{}
	for _, run := range runs {
		numbers[run.ID] = run.Number
	}
	for _, event := range read.Events {
		shown := shownEvent{HistoryEvent: event, Preview: previewOfEvent(event.JSON), Number: numbers[event.RunID], Class: classOfEvent(event.Type)}
		shown.Text, shown.Cut = cut(pretty(event.JSON))
		shown.Step = link("time", "id", head.ID, "run", event.RunID, "seq", event.Seq)
		body.Events = append(body.Events, shown)
	}
	place := func(page string, after int64) string {
		return link(page, "id", head.ID, "run", q.text("run"), "runs", q.text("runs"), "type", q.text("type"), "raw", q.text("raw"), "after", after)
	}
	if read.HasMore {
		body.NewerLink = place("log", read.AfterSeq)
	}
	if options.AfterSeq > 0 {
		body.FirstLink = place("log", 0)
	}
	body.NDJSON = place("ndjson", options.AfterSeq)
	body.WholeRun = link("ndjson", "id", head.ID, "run", head.Run.ID, "whole", "1")
	return q.write("log", "Log of "+cmp.Or(head.Title, head.ID), body)
}

// previewOfEvent returns what an event says, without its type, on one line.
func previewOfEvent(event json.RawMessage) string {
	if len(event) > 4000 {
		return short(string(event[:4000]), 200) // it is cut anyway
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(event, &members) != nil {
		return short(string(event), 200)
	}
	var parts []string
	for _, name := range []string{"delta", "content", "toolCallName", "stepName", "name", "message", "value", "snapshot", "outcome", "result", "toolCallId", "messageId", "runId"} {
		value, isThere := members[name]
		if !isThere || len(parts) == 2 {
			continue
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		parts = append(parts, text)
	}
	return short(strings.Join(parts, " · "), 200)
}

// sendNDJSON sends events byte for byte, one a line: those of a page of the log, or with whole those
// of a run.
func (h *Handler) sendNDJSON(q *request) error {
	head, _, err := q.readThread("log")
	if err != nil {
		return err
	}
	options, err := q.logOptions(head)
	if err != nil {
		return err
	}
	header := q.w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8") // a browser shows it
	if q.text("whole") == "" {
		options.Raw, options.MaxBytes = true, 0
		read, err := q.store.History(q.Context(), head.ID, options)
		if err != nil {
			return err
		}
		if read.HasMore {
			header.Set("Link", "<"+link("ndjson", "id", head.ID, "run", q.text("run"), "runs", q.text("runs"), "type", q.text("type"), "after", read.AfterSeq)+`>; rel="next"`)
		}
		size := 0
		for _, event := range read.Events {
			if err := checkLine(event.JSON); err != nil {
				return err
			}
			size += len(event.JSON) + 1
		}
		return h.door.Answer(q.w, q.Request, size, func() {
			out := bufio.NewWriter(q.w)
			for _, event := range read.Events {
				_, _ = out.Write(event.JSON)
				_ = out.WriteByte('\n')
			}
			_ = out.Flush() // the client may be gone
		})
	}
	ctx, err := q.inPages()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(q.w)
	control := http.NewResponseController(q.w)
	header.Set("Content-Disposition", `attachment; filename="events.ndjson"`)
	for event, err := range q.store.Events(ctx, head.ID, pgagui.EventsOptions{RunID: head.Run.ID, NoLineage: true}) {
		if err == nil {
			err = checkLine(event.JSON)
		}
		if err == nil {
			_ = control.SetWriteDeadline(time.Now().Add(h.door.TimeToWrite(len(event.JSON))))
			_, _ = out.Write(event.JSON)
			err = out.WriteByte('\n') // it remembers the error of the client, too
		}
		if err != nil && out.Buffered() == 0 {
			return err
		} else if err != nil {
			panic(http.ErrAbortHandler) // the client must not take a part for the whole
		}
	}
	_ = out.Flush() // the client may be gone
	_ = control.SetWriteDeadline(time.Time{})
	return nil
}

// checkLine returns an error if an event is not on one line.
func checkLine(event json.RawMessage) error {
	if bytes.IndexByte(event, '\n') >= 0 {
		return problem.Errorf(http.StatusUnprocessableEntity, "an event contains a line end, so it does not fit on one line: use pgagui events --null")
	}
	return nil
}
