package ambient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// Face is the Events API of the Ambient Platform, over HTTP and gRPC. A session is a thread.
var Face = face.Face{Name: "ambient", Register: func(to *face.HTTP) {
	registerEventsAPI(to)
	registerGRPC(to)
}}

// registerEventsAPI registers the Events API. The ids of frames are seqs, which serve after_seq.
func registerEventsAPI(to *face.HTTP) {
	s := eventsAPI{to}
	s.Register("/api/ambient/v1/sessions/{thread}", face.Endpoints{
		"GET /events":            {access.Read, s.events},
		"POST /events":           {access.Write, s.postEvent},
		"GET /events/history":    {access.Read, s.history},
		"GET /messages":          {access.Read, s.messages},
		"POST /messages":         {access.Write, s.postMessage},
		"POST /agui/run":         {access.Write, s.run},
		"GET /agui/events":       {access.Read, s.connect},
		"POST /agui/interrupt":   {access.Stop, s.interrupt},
		"POST /agui/feedback":    {access.Write, s.feedback},
		"GET /agui/tasks":        {access.Read, s.tasks},
		"GET /agui/capabilities": {access.Read, s.capabilities},
	})
}

// eventsAPI is the face of the Events API.
type eventsAPI struct{ *face.HTTP }

// events streams the events of all runs of a session as they are in the log: behind the one that the
// client has seen, or from the beginning of the run in progress, or those to come.
func (s eventsAPI) events(w http.ResponseWriter, r *http.Request) error {
	from, session := s.Tenant(r.Context()), r.PathValue("thread")
	q := face.QueryOf(r)
	after, err := cursorOf(r, q)
	stays := q.Is("stay", true)
	if err := errors.Join(err, q.Check()); err != nil {
		return err
	}
	if after > 0 {
		if _, err := from.EventAt(r.Context(), session, after); err != nil {
			return err
		}
	} else if head, err := from.Status(r.Context(), pgagui.RunRef{ThreadID: session}); err == nil {
		if after = head.LastSeq; head.Status == pgagui.Running {
			after = head.FirstSeq - 1
		}
	} else if !stays || !errors.Is(err, pgagui.ErrUnknownThread) {
		return err
	}
	s.WriteFrames(w, r, session, face.FrameFormat{OnlySeq: true}, func(ctx context.Context, to core.Frames) error {
		options := pgagui.FollowOptions{
			After: pgagui.Position{Seq: after}, Stay: stays, Heartbeat: s.Options.Heartbeat, OnIdle: func() { to.Flush() },
		}
		for event, err := range from.Follow(ctx, session, options) {
			if err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
			if !to.Write(core.Frame{Place: core.Place{Position: event.Position()}, Event: event.JSON}) {
				return nil
			}
		}
		to.Flush()
		return nil
	})
	return nil
}

// postEvent stores an event.
func (s eventsAPI) postEvent(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		EventType   string          `json:"event_type"`
		Payload     json.RawMessage `json:"payload"`
		CompletedAt time.Time       `json:"completed_at"`
		EventCount  *int64          `json:"event_count"`
		AfterSeq    *int64          `json:"after_seq"`
	}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	if len(body.Payload) == 0 {
		return problem.Errorf(http.StatusBadRequest, "the body has no payload (an AG-UI event)")
	}
	if body.AfterSeq != nil && *body.AfterSeq < 0 {
		return problem.Errorf(http.StatusBadRequest, "after_seq is %d (expected the last seq of the run that you have seen, 0 for a new run)", *body.AfterSeq)
	}
	event := pushedEvent{eventType: body.EventType, payload: body.Payload, completedAt: body.CompletedAt, eventCount: body.EventCount}
	if bytes.HasPrefix(body.Payload, []byte(`"`)) {
		event.payload = []byte(textOf(body.Payload))
	}
	stored, err := pushEvent(r.Context(), s.Server, s.Tenant(r.Context()), r.PathValue("thread"), event, body.AfterSeq)
	if err != nil {
		return err
	}
	face.WriteJSON(w, http.StatusCreated, "application/json", stored)
	return nil
}

const (
	usualHistory = 100  // events of a page
	mostHistory  = 1000 // the limit of the store
)

// history returns a page of the history of a session.
func (s eventsAPI) history(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.HistoryOptions{
		AfterSeq: q.Number("after_seq"), Limit: cmp.Or(q.Limit(), usualHistory), Since: q.Time("start_time"), Until: q.Time("end_time"),
		Raw: !q.Is("compressed", true), PageBytes: s.Memory.PageBytes(),
	}
	for _, list := range q.List("event_type") {
		options.Types = append(options.Types, strings.FieldsFunc(list, func(r rune) bool { return r == ',' })...)
	}
	if err := q.Check(); err != nil {
		return err
	}
	from, session := s.Tenant(r.Context()), r.PathValue("thread")
	page, err := from.History(r.Context(), session, options)
	if err != nil {
		return err
	}
	total, err := from.CountEvents(r.Context(), session)
	if err != nil {
		return err
	}
	cutCleanly(&page)
	items := make([]ambientEvent, len(page.Events))
	for i, event := range page.Events {
		items[i] = ambientEventOf(session, event)
	}
	w.Header().Set("Pgagui-After-Seq", strconv.FormatInt(page.AfterSeq, 10))
	var body jsontext.Object
	return s.AnswerJSON(w, r, body.Value("items", items).Value("page", 1).Value("size", options.Limit).Value("total", total).End())
}

// cutCleanly shortens a page so that the seq of its last item is a cursor, too: behind it there is
// no piece of a joined event of the page. Clients of the platform continue behind the last item. A
// page of nothing but joined events stays as it is.
func cutCleanly(page *pgagui.HistoryPage) {
	var lastSeq, cut int64
	items := 0
	for i, event := range page.Events {
		if lastSeq = max(lastSeq, event.LastSeq); lastSeq == event.Seq {
			items, cut = i+1, lastSeq
		}
	}
	if items > 0 {
		page.Events, page.AfterSeq = page.Events[:items], cut
	}
}

// messages returns the conversation, or streams it.
func (s eventsAPI) messages(w http.ResponseWriter, r *http.Request) error {
	session, q := r.PathValue("thread"), face.QueryOf(r)
	after, err := cursorOf(r, q)
	if err := errors.Join(err, q.Check()); err != nil {
		return err
	}
	wantsStream := face.Accepts(r, "text/event-stream")
	feed, err := core.NewMessageFeed(r.Context(), s.Tenant(r.Context()), session, after)
	if err != nil && !(wantsStream && errors.Is(err, pgagui.ErrUnknownThread)) {
		return err
	}
	if !wantsStream {
		messages, err := feed.Read(r.Context())
		if err != nil {
			return err
		}
		text, err := json.Marshal(ambientMessagesOf(session, messages))
		if err != nil {
			return err
		}
		return s.AnswerJSON(w, r, text)
	}
	s.WriteFrames(w, r, session, face.FrameFormat{OnlySeq: true, Comment: "ping"}, func(ctx context.Context, to core.Frames) error {
		return feed.Follow(ctx, func(messages []pgagui.SessionMessage) bool {
			return writeMessages(to, ambientMessagesOf(session, messages))
		}, func() bool { return to.Write(core.Frame{}) && to.Flush() })
	})
	return nil
}

// writeMessages writes messages as frames. Of those that one event brought, only the last one has
// the id: a client that resumes there has all of them.
func writeMessages(to core.Frames, messages []ambientMessage) bool {
	for i, message := range messages {
		text, err := json.Marshal(message)
		if err != nil {
			return false
		}
		next := core.Frame{Event: text}
		if i == len(messages)-1 || messages[i+1].Seq != message.Seq {
			next.Place.Seq = message.Seq
		}
		if !to.Write(next) {
			return false
		}
	}
	return to.Flush()
}

// maxMessageBytes bounds the body of a message.
const maxMessageBytes = 1 << 20

// postMessage stores a message of the user.
func (s eventsAPI) postMessage(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxMessageBytes)
	body := struct {
		EventType string          `json:"event_type"`
		Payload   json.RawMessage `json:"payload"`
	}{EventType: "user", Payload: json.RawMessage(`""`)}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	switch {
	case body.EventType != "user":
		return problem.Errorf(http.StatusBadRequest, "event_type is %.40q (expected user: other messages come by gRPC)", body.EventType)
	case !bytes.HasPrefix(body.Payload, []byte(`"`)):
		return problem.Errorf(http.StatusBadRequest, "the payload is no text")
	}
	message := pushedMessage{eventType: body.EventType, payload: body.Payload}
	stored, err := storeMessage(r.Context(), s.Server, s.Tenant(r.Context()), r.PathValue("thread"), message, r.Header.Get("Idempotency-Key"))
	if err != nil {
		return err
	}
	face.WriteJSON(w, http.StatusCreated, "application/json", stored)
	return nil
}

// pushEvent stores an event and returns what history shows of it.
func pushEvent(ctx context.Context, s *core.Server, to core.Tenant, session string, pushed pushedEvent, afterSeq *int64) (ambientEvent, error) {
	event, err := pushed.event()
	if err != nil {
		return ambientEvent{}, err
	}
	seq, err := s.Push(ctx, to, session, event, afterSeq)
	if err != nil {
		return ambientEvent{}, err
	}
	stored, err := to.EventAt(ctx, session, seq)
	return ambientEventOf(session, stored), err
}

// storeMessage stores a message, or the event that an older runner pushes as one.
func storeMessage(ctx context.Context, s *core.Server, to core.Tenant, session string, message pushedMessage, key string) (ambientMessage, error) {
	if isEventType(message.eventType) {
		event := pushedEvent{eventType: message.eventType, payload: []byte(textOf(message.payload))}
		stored, err := pushEvent(ctx, s, to, session, event, nil)
		return ambientMessage{stored.ID, session, stored.Seq, stored.EventType, jsontext.Quote(stored.Payload), stored.CreatedAt}, err
	}
	message.id = cmp.Or(key, "message-"+rand.Text())
	seq, err := s.PushMessage(ctx, to, session, message.asEvents(), key)
	if err != nil {
		return ambientMessage{}, err
	}
	stored, err := to.EventAt(ctx, session, seq)
	return ambientMessage{ambientID(session, seq), session, seq, message.eventType, message.payload, stored.CreatedAt.UTC()}, err
}

// run starts a run. It answers with the events, or with the ids of the run for a client that accepts
// JSON: the events come on GET events then.
func (s eventsAPI) run(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	named := q.Text("agent")
	if err := q.Check(); err != nil {
		return err
	}
	in, agentName, err := readAmbientInput(r)
	if err != nil {
		return err
	}
	agent, err := s.agentFor(r, cmp.Or(named, agentName))
	if err != nil {
		return err
	}
	run, err := s.Start(r.Context(), s.Tenant(r.Context()), agent, in, r.Header)
	if err != nil {
		return err
	}
	if !face.Accepts(r, "text/event-stream") {
		return face.Answer(w, map[string]string{"runId": in.RunID, "threadId": in.ThreadID})
	}
	run.LacksHistory = false // clients of sessions read what is older from the stream of the session
	sent := s.RunStream(s.Tenant(r.Context()), run)
	s.WriteStream(w, r, sent, face.FrameFormat{OnlySeq: true})
	return nil
}

// readAmbientInput reads the input of a run. It may lack the session and the id of the run, and may
// name the agent.
func readAmbientInput(r *http.Request) (in *core.Input, agent string, err error) {
	body, err := face.ReadInputBody(r)
	if err != nil {
		return nil, "", err
	}
	if fault := faultOf(body); fault != "" {
		return nil, "", problem.Errorf(http.StatusBadRequest, "the body %s (expected a RunAgentInput)", fault)
	}
	ids := map[string]string{"threadId": r.PathValue("thread"), "runId": "run-" + rand.Text()}
	for name, value := range compaction.Members(body) {
		switch name = cmp.Or(aguiNames[name], name); name {
		case "threadId", "runId":
			id, err := jsontext.ReadString(value)
			if err != nil {
				return nil, "", problem.Errorf(http.StatusBadRequest, "the member %q of the body: %v", name, err)
			}
			ids[name] = cmp.Or(id, ids[name])
		case "agent":
			if agent, err = jsontext.ReadString(value); err != nil {
				return nil, "", problem.Errorf(http.StatusBadRequest, "the member %q of the body: %v", name, err)
			}
		}
	}
	if ids["threadId"] != r.PathValue("thread") {
		return nil, "", problem.Errorf(http.StatusUnprocessableEntity, "threadId is %q (expected the session, %q)", ids["threadId"], r.PathValue("thread"))
	}
	var made jsontext.Object
	made.Raw("threadId", jsontext.Quote(ids["threadId"])).Raw("runId", jsontext.Quote(ids["runId"]))
	for name, value := range compaction.Members(body) {
		switch own := cmp.Or(aguiNames[name], name); own {
		case "threadId", "runId", "agent":
		default:
			made.Raw(own, value)
		}
	}
	in, err = face.InputOf(r, made.End())
	return in, agent, err
}

// agentFor returns the agent that runs in a session: the one with a name, or that of the session, or
// the only one.
func (s eventsAPI) agentFor(r *http.Request, name string) (*core.Agent, error) {
	agents := s.Agents()
	if name != "" {
		return s.Agent(name)
	}
	thread, err := s.Tenant(r.Context()).Thread(r.Context(), r.PathValue("thread"))
	if err != nil && !errors.Is(err, pgagui.ErrUnknownThread) {
		return nil, err
	}
	if agent, found := agents[thread.Agent]; found {
		return agent, nil
	}
	for _, agent := range agents {
		if len(agents) == 1 {
			return agent, nil
		}
	}
	known := problem.Errorf(http.StatusBadRequest, "the server has %d agents, and the session has none of them", len(agents))
	known.Hint = "Name one: ?agent=NAME."
	return nil, known
}

// connect streams the conversation as a snapshot, and then the events of all runs to come.
func (s eventsAPI) connect(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := core.ConnectOptions{Stays: q.Is("stay", true), Clients: core.ClientsOf(q.Text("protocol_version"))}
	if err := q.Check(); err != nil {
		return err
	}
	from, session := s.Tenant(r.Context()), r.PathValue("thread")
	if !options.Stays {
		if _, err := from.Thread(r.Context(), session); err != nil {
			return err
		}
	}
	sent, err := s.Connect(r.Context(), from, session, options)
	if err != nil {
		return err
	}
	s.WriteStream(w, r, sent, face.FrameFormat{OnlySeq: true})
	return nil
}

// interrupt asks the runs of a session to stop.
func (s eventsAPI) interrupt(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		RunID      string
		SnakeRunID string `json:"run_id"`
	}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadBody(r, &body)); err != nil {
		return err
	}
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: cmp.Or(body.RunID, body.SnakeRunID)}
	stopped, err := s.Tenant(r.Context()).RequestStop(r.Context(), run, pgagui.RequestStopOptions{Reason: "interrupted by the user"})
	if err != nil {
		return err
	}
	if stopped == 0 {
		return face.Answer(w, map[string]string{"message": "No run is in progress"})
	}
	return face.Answer(w, map[string]string{"message": "Interrupt signal sent"})
}

// feedback stores what the user thinks of an answer: a RAW event in the log, as upstream has it.
func (s eventsAPI) feedback(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Type     string
		MetaType string
		Payload  json.RawMessage
	}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadBody(r, &body)); err != nil {
		return err
	}
	switch {
	case body.Type != "META":
		return problem.Errorf(http.StatusBadRequest, "type is %.40q (expected META)", body.Type)
	case !slices.Contains([]string{"thumbs_up", "thumbs_down"}, body.MetaType):
		return problem.Errorf(http.StatusBadRequest, "metaType is %.40q (expected thumbs_up or thumbs_down)", body.MetaType)
	case !bytes.HasPrefix(body.Payload, []byte("{")):
		return problem.Errorf(http.StatusBadRequest, "payload is no object")
	}
	session, to := r.PathValue("thread"), s.Tenant(r.Context())
	if _, err := to.Thread(r.Context(), session); err != nil {
		return err
	}
	var err error
	event := json.RawMessage(fmt.Sprintf(`{"type":"RAW","event":{"name":"ambient:feedback","metaType":%q,"payload":%s}}`, body.MetaType, body.Payload))
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		_, err = s.PushRun(r.Context(), to, session, key, []json.RawMessage{event}, false)
	} else {
		_, err = s.Push(r.Context(), to, session, event, nil)
	}
	if err != nil {
		return err
	}
	return face.Answer(w, map[string]string{"message": "Feedback submitted", "status": "sent"})
}

// tasks returns the tasks that the agent works on in the background, as its CUSTOM events task:started,
// task:progress and task:completed say.
func (s eventsAPI) tasks(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	tasks := []map[string]json.RawMessage{}
	places := map[string]int{}
	options := pgagui.HistoryOptions{Types: []string{"CUSTOM"}, Limit: mostHistory, Raw: true, PageBytes: s.Memory.PageBytes()}
	for hasMore := true; hasMore; {
		page, err := s.Tenant(r.Context()).History(r.Context(), r.PathValue("thread"), options)
		if err != nil {
			return err
		}
		options.AfterSeq, hasMore = page.AfterSeq, page.HasMore
		for _, event := range page.Events {
			var custom struct {
				Name  string
				Value json.RawMessage
			}
			var id struct {
				TaskID string `json:"task_id"`
			}
			_ = json.Unmarshal(event.JSON, &custom)
			step, isTask := strings.CutPrefix(custom.Name, "task:")
			if !isTask || json.Unmarshal(custom.Value, &id) != nil || id.TaskID == "" {
				continue
			}
			if _, isKnown := places[id.TaskID]; !isKnown {
				places[id.TaskID] = len(tasks)
				tasks = append(tasks, map[string]json.RawMessage{})
			}
			task := tasks[places[id.TaskID]]
			task["status"] = json.RawMessage(`"running"`)
			if step == "completed" {
				task["status"] = json.RawMessage(`"completed"`)
			}
			for name, value := range compaction.Members(custom.Value) {
				task[name] = value
			}
		}
	}
	return face.Answer(w, map[string]any{"tasks": tasks, "total": len(tasks)})
}

// capabilities returns what a session can do here.
func (s eventsAPI) capabilities(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	session := r.PathValue("thread")
	if _, err := s.Tenant(r.Context()).Thread(r.Context(), session); err != nil {
		return err
	}
	return face.Answer(w, map[string]any{
		"framework": "pgagui", "agent_features": []string{}, "platform_features": []string{"feedback"}, "file_system": false, "mcp": false,
		"tracing": nil, "session_persistence": true, "model": nil, "session_id": session,
	})
}

// cursorOf returns the seq that a client has seen: that of the header Last-Event-ID, or else after_seq.
func cursorOf(r *http.Request, q *face.Query) (after int64, err error) {
	after = q.Number("after_seq")
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		if after, err = readSeq(text); err != nil {
			err = problem.Errorf(http.StatusBadRequest, "Last-Event-ID: %v", err)
		}
	}
	return after, err
}

// readSeq reads a seq, or 0.
func readSeq(text string) (int64, error) {
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		return 0, problem.Errorf(http.StatusBadRequest, "%.40q is no seq (expected a number from 0 on)", text)
	}
	return seq, nil
}
