package agui

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/problem"
)

// Face runs and connects with a RunAgentInput, streams a thread, and stops it.
var Face = face.Face{Name: "agui", Register: func(to *face.HTTP) {
	s := handler{to}
	s.Register("", face.Endpoints{
		"GET /agents":                  {access.Read, s.getAgents},
		"POST /agent/{agent}/run":      {access.Write, s.postRun},
		"POST /agent/{agent}/connect":  {access.Read, s.PostConnect},
		"GET /threads/{thread}/events": {access.Read, s.getEvents},
		"POST /threads/{thread}/stop":  {access.Stop, s.postStop},
	})
}}

// handler has the endpoints.
type handler struct{ *face.HTTP }

// getAgents returns the agents with their capabilities, sorted by name.
func (s handler) getAgents(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	type shown struct {
		Name         string          `json:"name"`
		Description  string          `json:"description,omitempty"`
		Capabilities json.RawMessage `json:"capabilities"`
	}
	agents := s.Agents()
	list := make([]shown, 0, len(agents))
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		capabilities, err := agents[name].AllCapabilities()
		if err != nil {
			return err
		}
		list = append(list, shown{name, agents[name].Description, capabilities})
	}
	return face.Answer(w, map[string]any{"agents": list})
}

// postRun starts a run and streams its events.
func (s handler) postRun(w http.ResponseWriter, r *http.Request) error {
	run, err := s.StartRun(r)
	if err != nil {
		return err
	}
	s.WriteRun(w, r, run)
	return nil
}

// getEvents is the same for a thread that exists. ?run= connects to another run than the head,
// ?stay=true waits for later runs, and ?protocol_version=1.0 names the protocol of the client, as the
// member of RunAgentInput does.
func (s handler) getEvents(w http.ResponseWriter, r *http.Request) error {
	if err := face.CheckAccept(r); err != nil {
		return err
	}
	q := face.QueryOf(r)
	options := core.ConnectOptions{RunID: q.Text("run"), Stays: q.Is("stay", false), Clients: core.ClientsOf(q.Text("protocol_version"))}
	last, custom := q.Text("last_event_id"), q.Text("custom")
	if err := q.Check(); err != nil {
		return err
	}
	var err error
	if options.Custom, err = core.ReadCustom(custom); err != nil {
		return problem.Errorf(http.StatusBadRequest, "the parameter custom: %v", err)
	}
	if options.After, err = face.PlaceOf(r, last); err != nil {
		return err
	}
	from, threadID := s.Tenant(r.Context()), r.PathValue("thread")
	if !options.Stays {
		if _, err := from.Thread(r.Context(), threadID); err != nil {
			return err
		}
	}
	sent, err := s.Connect(r.Context(), from, threadID, options)
	if err != nil {
		return err
	}
	s.WriteStream(w, r, sent, face.FrameFormat{})
	return nil
}

// postStop asks the runs of a thread to stop, or the run that the body names.
func (s handler) postStop(w http.ResponseWriter, r *http.Request) error {
	var body struct{ RunID, Reason string }
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: body.RunID}
	stopped, err := s.Tenant(r.Context()).RequestStop(r.Context(), run, pgagui.RequestStopOptions{Reason: body.Reason})
	if err != nil {
		return err
	}
	return face.Answer(w, map[string]int{"stopped": stopped})
}
