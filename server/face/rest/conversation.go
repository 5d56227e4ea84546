package rest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// getConversation returns messages, state and interrupts at a point of a thread.
func (s handler) getConversation(w http.ResponseWriter, r *http.Request, at pgagui.At) error {
	restored, err := s.Tenant(r.Context()).Restore(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, restored.JSON)
}

// atPoint serves what is asked of a point of a thread, if the query names nothing else.
func atPoint(serve func(http.ResponseWriter, *http.Request, pgagui.At) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q := face.QueryOf(r)
		at := q.At("")
		if err := q.Check(); err != nil {
			return err
		}
		return serve(w, r, at)
	}
}

func (s handler) getMessages(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	at := q.At("")
	if q.Has("last") || q.Has("before") {
		return s.getLastMessages(w, r, q, at)
	}
	if err := q.Check(); err != nil {
		return err
	}
	messages, err := s.Tenant(r.Context()).Messages(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	return answerTexts(s, w, r, "messages", messages, func(message pgagui.Message) json.RawMessage { return message.JSON })
}

// getLastMessages returns the last messages, with their places in the log.
func (s handler) getLastMessages(w http.ResponseWriter, r *http.Request, q *face.Query, at pgagui.At) error {
	options := pgagui.LastMessagesOptions{At: at, Limit: q.Size("last"), Cursor: q.Text("before")}
	if err := q.Check(); err != nil {
		return err
	}
	messages, err := s.Tenant(r.Context()).LastMessages(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	places := make([]json.RawMessage, len(messages))
	for i, message := range messages {
		var place jsontext.Object
		place.Value("position", message.Position)
		if message.RunID != "" {
			place.Value("runId", message.RunID).Value("firstSeq", message.FirstSeq).Value("lastSeq", message.LastSeq).
				Value("startedAt", message.StartedAt).Value("updatedAt", message.UpdatedAt)
		}
		if message.Calls != nil {
			place.Value("toolCalls", message.Calls)
		}
		places[i] = place.Value("cursor", message.Cursor).End()
	}
	var more jsontext.Object
	return s.AnswerList(w, r, "messages", texts(messages, func(message pgagui.PlacedMessage) json.RawMessage { return message.JSON }), more.List("places", places))
}

func (s handler) getState(w http.ResponseWriter, r *http.Request, at pgagui.At) error {
	state, err := s.Tenant(r.Context()).State(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	var body jsontext.Object
	return s.AnswerJSON(w, r, body.Raw("state", state).End())
}

func (s handler) getAttachments(w http.ResponseWriter, r *http.Request, at pgagui.At) error {
	attachments, err := s.Tenant(r.Context()).Attachments(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "attachments", attachments)
}

func (s handler) getAttachment(w http.ResponseWriter, r *http.Request, at pgagui.At) error {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return problem.Errorf(http.StatusBadRequest, "%q is no number of an attachment (expected an integer, from 1)", r.PathValue("n"))
	}
	attachment, data, err := s.Tenant(r.Context()).AttachmentData(r.Context(), r.PathValue("thread"), n, at)
	if err != nil {
		return err
	}
	return s.AnswerFile(w, r, attachment.MIMEType, attachment.Filename, data)
}

func (s handler) getInterrupts(w http.ResponseWriter, r *http.Request, at pgagui.At) error {
	interrupts, err := s.Tenant(r.Context()).Interrupts(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	var body jsontext.Object
	texts, expired := make([]json.RawMessage, len(interrupts)), []string{}
	for i, interrupt := range interrupts {
		texts[i] = interrupt.JSON
		if interrupt.Expired {
			expired = append(expired, interrupt.ID)
		}
	}
	return s.AnswerJSON(w, r, body.List("interrupts", texts).Value("expired", expired).End())
}

// getReplay returns a short stream of events that brings a client to a point of a thread.
func (s handler) getReplay(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.ReplayOptions{
		At: q.At(""), Shape: compaction.Shape(q.OneOf("shape", string(compaction.SnapshotShape), string(compaction.StreamShape))),
	}
	if err := q.Check(); err != nil {
		return err
	}
	replayed, err := s.Tenant(r.Context()).Replay(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	return answerTexts(s, w, r, "events", replayed, func(event json.RawMessage) json.RawMessage { return event })
}

func (s handler) getDiff(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.DiffOptions{From: q.At("from_"), To: q.At("to_")}
	if err := q.Check(); err != nil {
		return err
	}
	diff, err := s.Tenant(r.Context()).Diff(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	text, err := json.Marshal(diff)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, text)
}

func (s handler) getToolCalls(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.ToolCallsOptions{At: q.At(""), AfterSeq: q.Number("after_seq"), NoLineage: !q.Is("lineage", true)}
	if err := q.Check(); err != nil {
		return err
	}
	calls, err := s.Tenant(r.Context()).ToolCalls(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "toolCalls", calls)
}

func (s handler) getActivities(w http.ResponseWriter, r *http.Request, at pgagui.At) error {
	activities, err := s.Tenant(r.Context()).Activities(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "activities", activities)
}

// getHistory returns a page of a thread's log. The payloads keep their bytes.
func (s handler) getHistory(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.HistoryOptions{
		AfterSeq: q.Number("after_seq"), Limit: q.Limit(), RunID: q.Text("run"), NoLineage: !q.Is("lineage", true),
		Types: q.Names("type"), Since: q.Time("since"), Until: q.Time("until"), Raw: q.Is("raw", false),
		MaxBytes: int(q.Number("max_bytes")), MaxIdle: q.Duration("max_idle"), PageBytes: s.Memory.PageBytes(),
	}
	if err := q.Check(); err != nil {
		return err
	}
	page, err := s.Tenant(r.Context()).History(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	var more jsontext.Object
	return s.AnswerList(w, r, "events", texts(page.Events, historyEvent), more.Value("afterSeq", page.AfterSeq).Value("hasMore", page.HasMore))
}

func historyEvent(event pgagui.HistoryEvent) json.RawMessage {
	var shown jsontext.Object
	shown.Value("seq", event.Seq).Value("lastSeq", event.LastSeq).Value("runId", event.RunID).Value("type", event.Type).
		Value("eventCount", event.Count).Value("createdAt", event.CreatedAt)
	if !event.CompletedAt.IsZero() {
		shown.Value("completedAt", event.CompletedAt)
	}
	return shown.Raw("payload", event.JSON).End()
}

// getLastEvents returns the last events of a lineage or of a run, as they were appended.
func (s handler) getLastEvents(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.LastEventsOptions{
		RunID: q.Text("run"), NoLineage: !q.Is("lineage", true), AtSeq: q.Number("at_seq"), Types: q.Names("type"), Limit: q.Limit(),
	}
	if err := q.Check(); err != nil {
		return err
	}
	page, err := s.Tenant(r.Context()).LastEventPage(r.Context(), r.PathValue("thread"), options, s.Memory.PageBytes())
	if err != nil {
		return err
	}
	return answerPage(s, w, r, "events", page.Events, page.HasMore, func(event pgagui.Event) json.RawMessage {
		return historyEvent(pgagui.HistoryEvent{
			Seq: event.Seq, LastSeq: event.Seq, RunID: event.RunID, Type: event.Type, Count: 1, CreatedAt: event.RecordedAt, JSON: event.JSON,
		})
	})
}

func (s handler) getErrors(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.LastErrorsOptions{RunID: q.Text("run"), NoLineage: !q.Is("lineage", true), AtSeq: q.Number("at_seq"), Limit: q.Limit()}
	if err := q.Check(); err != nil {
		return err
	}
	page, err := s.Tenant(r.Context()).LastErrors(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	return face.Answer(w, page)
}
