package copilotkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/problem"
)

// prefix begins the paths.
const prefix = "/copilotkit"

// Face is the CopilotKit runtime.
var Face = face.Face{Name: "copilotkit", Register: func(to *face.HTTP) {
	s := copilotKit{to}
	s.Register(prefix, face.Endpoints{
		"GET /info":                         {access.Read, s.info},
		"POST /agent/{agent}/run":           {access.Write, s.run},
		"POST /agent/{agent}/connect":       {access.Read, s.connect},
		"POST /agent/{agent}/stop/{thread}": {access.Stop, s.stop},
		"GET /threads":                      {access.Read, s.threads},
		"PATCH /threads/{thread}":           {access.Write, s.update},
		"DELETE /threads/{thread}":          {access.Delete, s.delete},
		"POST /threads/{thread}/archive":    {access.Write, s.archive},
		"GET /threads/{thread}/messages":    {access.Read, s.messages},
		"GET /threads/{thread}/events":      {access.Read, s.events},
		"GET /threads/{thread}/state":       {access.Read, s.state},
	})
	// The single route needs no right itself: the endpoint that it calls does.
	s.Handle("POST "+prefix, 0, s.single)
	s.Handle("POST "+prefix+"/{$}", 0, s.single)
}}

// copilotKit has the endpoints.
type copilotKit struct{ *face.HTTP }

// codeErased is the code of RUN_ERROR for a thread whose id was erased.
const codeErased = "THREAD_ERASED"

// runtimeVersion is the version of the runtime whose protocol the face has.
const runtimeVersion = "1.75.0"

func (s copilotKit) info(w http.ResponseWriter, _ *http.Request) error {
	agents := map[string]any{}
	for name, agent := range s.Agents() {
		capabilities, err := agent.AllCapabilities()
		if err != nil {
			return err
		}
		agents[name] = map[string]any{"name": name, "description": agent.Description, "className": "HttpAgent", "capabilities": capabilities}
	}
	endpoints := map[string]bool{"list": true, "inspect": true, "mutations": true, "realtimeMetadata": false}
	return face.Answer(w, map[string]any{
		"version": runtimeVersion, "agents": agents, "audioFileTranscriptionEnabled": false, "mode": "sse",
		"threadEndpoints": endpoints, "suggestions": false, "a2uiEnabled": false, "openGenerativeUIEnabled": false, "telemetryDisabled": true,
		"singleRoute": map[string]any{"resourceOperations": true, "threadEndpoints": endpoints},
	})
}

// run starts a run and streams its events, but a thread that was erased is an error in the stream, as the client expects it.
func (s copilotKit) run(w http.ResponseWriter, r *http.Request) error {
	run, err := s.StartRun(r)
	if errors.Is(err, pgagui.ErrThreadErased) {
		event, err := events.RunError{Message: "the thread was deleted", Code: codeErased}.Event()
		if err != nil {
			return err
		}
		return s.writeEvents(w, event)
	}
	if err != nil {
		return err
	}
	s.WriteRun(w, r, run)
	return nil
}

// connect is PostConnect, but a thread that was erased is an empty stream.
func (s copilotKit) connect(w http.ResponseWriter, r *http.Request) error {
	err := s.PostConnect(w, r)
	if errors.Is(err, pgagui.ErrThreadErased) {
		return s.writeEvents(w)
	}
	return err
}

// writeEvents answers with a stream of some events that are in no log.
func (s copilotKit) writeEvents(w http.ResponseWriter, events ...json.RawMessage) error {
	writer := s.BeginStream(w, face.FrameFormat{})
	for _, event := range events {
		writer.Write(core.Frame{Event: event})
	}
	if !writer.Flush() {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s copilotKit) stop(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.Agent(r.PathValue("agent")); err != nil {
		return err
	}
	var body struct{ RunID string }
	if err := face.ReadBody(r, &body); err != nil {
		return err
	}
	thread := r.PathValue("thread")
	stopped, err := s.Tenant(r.Context()).RequestStop(r.Context(), pgagui.RunRef{ThreadID: thread, RunID: body.RunID}, pgagui.RequestStopOptions{Reason: "by the user"})
	if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
		return err
	}
	if stopped == 0 {
		return face.Answer(w, map[string]any{"stopped": false, "message": "No active run for thread '" + thread + "'."})
	}
	return face.Answer(w, map[string]any{
		"stopped": true, "interrupt": map[string]string{"type": "RUN_ERROR", "message": "Run stopped by user", "code": "STOPPED"},
	})
}

// copilotThread is a thread as the client lists it.
type copilotThread struct {
	ID             string    `json:"id"`
	Name           *string   `json:"name"`
	AgentID        string    `json:"agentId"`
	OrganizationID string    `json:"organizationId"`
	CreatedByID    string    `json:"createdById"`
	Archived       bool      `json:"archived"`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
	LastRunAt      time.Time `json:"lastRunAt,omitzero"`
}

func copilotThreadOf(thread pgagui.Thread) copilotThread {
	shown := copilotThread{
		ID: thread.ID, AgentID: thread.Agent, Archived: thread.Archived, CreatedAt: thread.CreatedAt, UpdatedAt: thread.ActiveAt,
	}
	if thread.Title != "" {
		shown.Name = &thread.Title
	}
	if thread.HeadRunID != "" {
		shown.LastRunAt = thread.ActiveAt
	}
	return shown
}

func (s copilotKit) threads(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	options := pgagui.ThreadsOptions{Agent: query.Get("agentId"), Cursor: query.Get("cursor")}
	if query.Get("includeArchived") == "true" {
		options.Archived = pgagui.WithArchived
	}
	if limit := query.Get("limit"); limit != "" {
		var err error
		if options.Limit, err = strconv.Atoi(limit); err != nil || options.Limit < 1 {
			return problem.Errorf(http.StatusBadRequest, "limit is %q (expected a number from 1 on)", limit)
		}
	}
	page, err := s.Tenant(r.Context()).Threads(r.Context(), options)
	if err != nil {
		return err
	}
	threads := make([]copilotThread, len(page.Threads))
	for i, thread := range page.Threads {
		threads[i] = copilotThreadOf(thread)
	}
	var next *string
	if page.HasMore {
		next = &page.Cursor
	}
	return face.Answer(w, map[string]any{"threads": threads, "nextCursor": next})
}

func (s copilotKit) update(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name     *string
		Archived *bool
	}
	if err := face.ReadBody(r, &body); err != nil {
		return err
	}
	thread, err := s.Tenant(r.Context()).SetThread(r.Context(), r.PathValue("thread"), pgagui.ThreadChanges{Title: body.Name, Archived: body.Archived})
	if err != nil {
		return err
	}
	return face.Answer(w, copilotThreadOf(thread))
}

func (s copilotKit) archive(w http.ResponseWriter, r *http.Request) error {
	isArchived := true
	thread, err := s.Tenant(r.Context()).SetThread(r.Context(), r.PathValue("thread"), pgagui.ThreadChanges{Archived: &isArchived})
	if err != nil {
		return err
	}
	return face.Answer(w, map[string]any{"threadId": thread.ID, "archived": thread.Archived})
}

// delete stops the runs of a thread and erases it. If the thread is gone already, the answer is the
// same.
func (s copilotKit) delete(w http.ResponseWriter, r *http.Request) error {
	thread := r.PathValue("thread")
	if err := s.Erase(r.Context(), s.Tenant(r.Context()), thread); err != nil {
		return err
	}
	return face.Answer(w, map[string]any{"threadId": thread, "deleted": true})
}

// messages returns the messages with the tool calls of their assistant in the form of the
// inspector.
func (s copilotKit) messages(w http.ResponseWriter, r *http.Request) error {
	stored, err := s.Tenant(r.Context()).Messages(r.Context(), r.PathValue("thread"), pgagui.At{})
	if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
		return err
	}
	type toolCall struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Args string `json:"args"`
	}
	messages := []map[string]any{}
	for _, message := range stored {
		shown := map[string]any{"id": message.ID, "role": message.Role}
		for name, value := range compaction.Members(message.JSON) {
			switch name {
			case "content", "toolCallId":
				shown[name] = json.RawMessage(value)
			case "toolCalls":
				var calls []struct {
					ID       string
					Function struct{ Name, Arguments string }
				}
				if json.Unmarshal(value, &calls) != nil || len(calls) == 0 {
					continue
				}
				short := make([]toolCall, len(calls))
				for i, call := range calls {
					short[i] = toolCall{call.ID, call.Function.Name, call.Function.Arguments}
				}
				shown["toolCalls"] = short
			}
		}
		messages = append(messages, shown)
	}
	return face.Answer(w, map[string]any{"messages": messages})
}

// events returns the compacted stream of the head's lineage.
func (s copilotKit) events(w http.ResponseWriter, r *http.Request) error {
	replayed, err := s.Tenant(r.Context()).Replay(r.Context(), r.PathValue("thread"), pgagui.ReplayOptions{Shape: compaction.StreamShape})
	if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
		return err
	}
	if replayed == nil {
		replayed = []json.RawMessage{}
	}
	return face.Answer(w, map[string]any{"events": replayed})
}

func (s copilotKit) state(w http.ResponseWriter, r *http.Request) error {
	state, err := s.Tenant(r.Context()).State(r.Context(), r.PathValue("thread"), pgagui.At{})
	if err != nil && !errors.Is(err, pgagui.ErrNotFound) {
		return err
	}
	if !bytes.HasPrefix(state, []byte("{")) {
		state = nil
	}
	return face.Answer(w, map[string]any{"state": state})
}

// single unpacks the envelope of a client that uses one path for all requests, and serves the
// request in it.
func (s copilotKit) single(w http.ResponseWriter, r *http.Request) error {
	inner, err := s.unpack(r)
	if err != nil {
		return err
	}
	s.Routed().ServeHTTP(w, inner)
	return nil
}

func (s copilotKit) unpack(r *http.Request) (*http.Request, error) {
	var envelope struct {
		Method string
		Params struct{ AgentID, ThreadID, Path, HTTPMethod string }
		Body   json.RawMessage
	}
	if err := face.ReadBody(r, &envelope); err != nil {
		return nil, face.InputError(err)
	}
	method, agent := http.MethodPost, "/agent/"+url.PathEscape(envelope.Params.AgentID)
	var path string
	switch envelope.Method {
	case "info":
		method, path = http.MethodGet, "/info"
	case "agent/run":
		path = agent + "/run"
	case "agent/connect":
		path = agent + "/connect"
	case "agent/stop":
		path = agent + "/stop/" + url.PathEscape(envelope.Params.ThreadID)
	case "resource/request":
		method, path = strings.ToUpper(envelope.Params.HTTPMethod), envelope.Params.Path
		if !strings.HasPrefix(path, "/threads") {
			return nil, problem.Errorf(http.StatusUnprocessableEntity, "the resource %q is no path below /threads", path)
		}
	default:
		return nil, problem.Errorf(http.StatusBadRequest, "the method %q is unknown", envelope.Method)
	}
	target, err := url.Parse(prefix + path)
	if err != nil {
		return nil, problem.Errorf(http.StatusUnprocessableEntity, "the path %q: %v", path, err)
	}
	inner := r.Clone(r.Context())
	inner.Method, inner.URL, inner.RequestURI, inner.Pattern = method, target, target.RequestURI(), ""
	face.WithBody(inner, r, envelope.Body)
	return inner, nil
}
