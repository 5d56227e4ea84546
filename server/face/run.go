package face

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/problem"
)

// Several faces take a RunAgentInput and answer with AG-UI events.

// StartRun starts the run that a request describes.
func (s *HTTP) StartRun(r *http.Request) (*core.Started, error) {
	if err := CheckAccept(r); err != nil {
		return nil, err
	}
	agent, err := s.Agent(r.PathValue("agent"))
	if err != nil {
		return nil, err
	}
	in, err := readInput(r)
	if err != nil {
		return nil, err
	}
	return s.Start(r.Context(), s.Tenant(r.Context()), agent, in, r.Header)
}

// WriteRun streams the events of a run that was started.
func (s *HTTP) WriteRun(w http.ResponseWriter, r *http.Request, run *core.Started) {
	if run.ParentRunID != "" {
		w.Header().Set("Pgagui-Parent-Run", run.ParentRunID)
	}
	s.WriteStream(w, r, s.RunStream(s.Tenant(r.Context()), run), FrameFormat{})
}

// PostConnect streams the history of a thread and what follows it. A thread without runs is an
// empty stream.
func (s *HTTP) PostConnect(w http.ResponseWriter, r *http.Request) error {
	if err := CheckAccept(r); err != nil {
		return err
	}
	if _, err := s.Agent(r.PathValue("agent")); err != nil {
		return err
	}
	in, err := readInput(r)
	if err != nil {
		return err
	}
	after, err := PlaceOf(r, in.LastSeen)
	if err != nil {
		return err
	}
	sent, err := s.Connect(r.Context(), s.Tenant(r.Context()), in.ThreadID, core.ConnectOptions{
		After: after, Custom: in.Custom, Clients: core.ClientsOf(in.Protocol),
	})
	if err != nil {
		return err
	}
	s.WriteStream(w, r, sent, FrameFormat{})
	return nil
}

// ReadInputBody reads the body of a request that has a RunAgentInput.
func ReadInputBody(r *http.Request) ([]byte, error) {
	body, err := readAll(r)
	return body, InputError(err)
}

// InputError returns the error of reading a RunAgentInput. If the input is too large, it says how a
// client sends less.
func InputError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
		return err
	}
	known, _ := problem.Of(err)
	known.Detail += `: send only new messages, with "forwardedProps": {"pgagui": {"history": "new"}}`
	return known
}

// readInput reads the RunAgentInput of a request.
func readInput(r *http.Request) (*core.Input, error) {
	body, err := ReadInputBody(r)
	if err != nil {
		return nil, err
	}
	return InputOf(r, body)
}

// InputOf returns the RunAgentInput that was made of the body of a request.
func InputOf(r *http.Request, text []byte) (*core.Input, error) {
	if len(text) > core.MaxInput {
		return nil, InputError(&http.MaxBytesError{Limit: core.MaxInput})
	}
	in, err := core.ReadInput(text)
	if err != nil {
		return nil, problem.Errorf(http.StatusBadRequest, "%v", err)
	}
	in.Held = r.Body.(*requestBody).Held
	return in, nil
}

// PlaceOf returns where a client resumes: behind the frame of the header Last-Event-ID, or else of
// another id. Zero if there is none.
func PlaceOf(r *http.Request, otherwise string) (core.Place, error) {
	text := cmp.Or(r.Header.Get("Last-Event-ID"), otherwise)
	return core.ReadPlace(text)
}
