package server

import (
	"encoding/json"
	"net/http"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
)

// getConversation returns messages, state and interrupts at a point of a thread.
func (s *Server) getConversation(w http.ResponseWriter, r *http.Request) error {
	at, err := atOf(r)
	if err != nil {
		return err
	}
	restored, err := s.tenantOf(r).Restore(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, restored.JSON)
}

// atOf returns the point of a thread that a request names, if that is all that it names.
func atOf(r *http.Request) (pgagui.At, error) {
	q := queryOf(r)
	return q.at(""), q.check()
}

func (s *Server) getMessages(w http.ResponseWriter, r *http.Request) error {
	at, err := atOf(r)
	if err != nil {
		return err
	}
	messages, err := s.tenantOf(r).Messages(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	return answerTexts(s, w, r, "messages", messages, func(message pgagui.Message) json.RawMessage { return message.JSON })
}

func (s *Server) getState(w http.ResponseWriter, r *http.Request) error {
	at, err := atOf(r)
	if err != nil {
		return err
	}
	state, err := s.tenantOf(r).State(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	var body object
	return s.answerJSON(w, r, body.raw("state", state).end())
}

func (s *Server) getInterrupts(w http.ResponseWriter, r *http.Request) error {
	at, err := atOf(r)
	if err != nil {
		return err
	}
	interrupts, err := s.tenantOf(r).Interrupts(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	var body object
	return s.answerJSON(w, r, body.list("interrupts", interrupts).end())
}

// getReplay returns a short stream of events that brings a client to a point of a thread.
func (s *Server) getReplay(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := pgagui.ReplayOptions{
		At: q.at(""), Shape: compaction.Shape(q.oneOf("shape", string(compaction.SnapshotShape), string(compaction.StreamShape))),
	}
	if err := q.check(); err != nil {
		return err
	}
	replayed, err := s.tenantOf(r).Replay(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	var body object
	return s.answerJSON(w, r, body.list("events", replayed).end())
}

func (s *Server) getDiff(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := pgagui.DiffOptions{From: q.at("from_"), To: q.at("to_")}
	if err := q.check(); err != nil {
		return err
	}
	diff, err := s.tenantOf(r).Diff(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	text, err := json.Marshal(diff)
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, text)
}

func (s *Server) getToolCalls(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := pgagui.ToolCallsOptions{At: q.at(""), AfterSeq: q.number("after_seq")}
	if err := q.check(); err != nil {
		return err
	}
	calls, err := s.tenantOf(r).ToolCalls(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "toolCalls", calls)
}

func (s *Server) getActivities(w http.ResponseWriter, r *http.Request) error {
	at, err := atOf(r)
	if err != nil {
		return err
	}
	activities, err := s.tenantOf(r).Activities(r.Context(), r.PathValue("thread"), at)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "activities", activities)
}

// getHistory returns a page of a thread's log. The payloads keep their bytes.
func (s *Server) getHistory(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := pgagui.HistoryOptions{
		AfterSeq: q.number("after_seq"), Limit: q.limit(), RunID: q.text("run"), NoLineage: !q.is("lineage", true),
		Types: q.names("type"), Since: q.time("since"), Until: q.time("until"), Raw: q.is("raw", false),
		MaxBytes: int(q.number("max_bytes")), MaxIdle: q.duration("max_idle"),
	}
	if err := q.check(); err != nil {
		return err
	}
	page, err := s.tenantOf(r).History(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	events := make([]json.RawMessage, len(page.Events))
	for i, event := range page.Events {
		var shown object
		shown.value("seq", event.Seq).value("lastSeq", event.LastSeq).value("runId", event.RunID).value("type", event.Type).
			value("eventCount", event.Count).value("createdAt", event.CreatedAt)
		if !event.CompletedAt.IsZero() {
			shown.value("completedAt", event.CompletedAt)
		}
		events[i] = shown.raw("payload", event.JSON).end()
	}
	var body object
	return s.answerJSON(w, r, body.list("events", events).value("afterSeq", page.AfterSeq).value("hasMore", page.HasMore).end())
}
