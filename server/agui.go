package server

import (
	"errors"
	"io"
	"net/http"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
)

// registerAGUI registers the face for AG-UI clients: run and connect with a RunAgentInput, the
// stream of a thread, and stop.
func (s *Server) registerAGUI(mux *http.ServeMux) {
	s.handle(mux, "POST /agent/{agent}/run", access.Write, s.postRun)
	s.handle(mux, "POST /agent/{agent}/connect", access.Read, s.postConnect)
	s.handle(mux, "GET /threads/{thread}/events", access.Read, s.getEvents)
	s.handle(mux, "POST /threads/{thread}/stop", access.Stop, s.postStop)
}

// postRun starts a run and streams its events.
func (s *Server) postRun(w http.ResponseWriter, r *http.Request) error {
	run, err := s.startFrom(r)
	if err != nil {
		return err
	}
	s.writeRun(w, r, run)
	return nil
}

// startFrom starts the run that a request describes.
func (s *Server) startFrom(r *http.Request) (*started, error) {
	agent, err := s.agentOf(r)
	if err != nil {
		return nil, err
	}
	in, err := readInputOf(r)
	if err != nil {
		return nil, err
	}
	return s.startInput(r, agent, in)
}

// startInput starts the run of an input.
func (s *Server) startInput(r *http.Request, agent *Agent, in *input) (*started, error) {
	if in.runID == "" {
		return nil, problemf(http.StatusBadRequest, `the body has no "runId"`)
	}
	to := s.tenantOf(r)
	run, err := s.start(r.Context(), to, agent, in, r.Header)
	if errors.Is(err, pgagui.ErrRunInProgress) {
		known, _ := problemOfError(err)
		known.RunID = s.runInProgress(r, to, in.threadID)
		return nil, known
	}
	return run, err
}

// runInProgress returns the id of a run that is in progress in a thread, or about to begin.
func (s *Server) runInProgress(r *http.Request, from tenant, threadID string) string {
	if attached, err := from.Status(r.Context(), pgagui.RunRef{ThreadID: threadID}); err == nil && attached.Status == pgagui.Running {
		return attached.RunID
	}
	if claims, err := from.Claims(r.Context(), threadID); err == nil && len(claims) > 0 {
		return claims[0].Run.RunID
	}
	return ""
}

// writeRun streams the events of a run that was started.
func (s *Server) writeRun(w http.ResponseWriter, r *http.Request, run *started) {
	if run.parentRunID != "" {
		w.Header().Set("Pgagui-Parent-Run", run.parentRunID)
	}
	s.writeStream(w, r, s.runStream(s.tenantOf(r), run))
}

// postConnect streams the history of a thread and what follows it. A thread without runs is an
// empty stream.
func (s *Server) postConnect(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.agentOf(r); err != nil {
		return err
	}
	in, err := readInputOf(r)
	if err != nil {
		return err
	}
	after, err := placeOf(r, in.lastSeen)
	if err != nil {
		return err
	}
	sent, err := s.connect(r.Context(), s.tenantOf(r), in.threadID, connectOptions{after: after, clients: clientsOf(in.protocol)})
	if err != nil {
		return err
	}
	s.writeStream(w, r, sent)
	return nil
}

// getEvents is the same for a thread that exists. ?run= connects to another run than the head,
// ?stay=true waits for later runs, and ?protocol_version=1.0 names the protocol of the client, as the
// member of RunAgentInput does.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := connectOptions{runID: q.text("run"), stays: q.is("stay", false), clients: clientsOf(q.text("protocol_version"))}
	last := q.text("last_event_id")
	if err := q.check(); err != nil {
		return err
	}
	var err error
	if options.after, err = placeOf(r, last); err != nil {
		return err
	}
	from, threadID := s.tenantOf(r), r.PathValue("thread")
	if !options.stays {
		if _, err := from.Thread(r.Context(), threadID); err != nil {
			return err
		}
	}
	sent, err := s.connect(r.Context(), from, threadID, options)
	if err != nil {
		return err
	}
	s.writeStream(w, r, sent)
	return nil
}

// postStop asks the runs of a thread to stop, or the run that the body names.
func (s *Server) postStop(w http.ResponseWriter, r *http.Request) error {
	var body struct{ RunID, Reason string }
	if err := errors.Join(queryOf(r).check(), readObject(r, &body)); err != nil {
		return err
	}
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: body.RunID}
	stopped, err := s.tenantOf(r).RequestStop(r.Context(), run, pgagui.RequestStopOptions{Reason: body.Reason})
	if err != nil {
		return err
	}
	return answer(w, map[string]int{"stopped": stopped})
}

// agentOf returns the agent that the path of a request names.
func (s *Server) agentOf(r *http.Request) (*Agent, error) {
	name := r.PathValue("agent")
	if agent, found := (*s.agents.Load())[name]; found {
		return agent, nil
	}
	return nil, problemf(http.StatusNotFound, "the server has no agent %q", name)
}

// readInputOf reads the RunAgentInput of a request.
func readInputOf(r *http.Request) (*input, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	in, err := readInput(body)
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "%v", err)
	}
	return in, nil
}

// placeOf returns where a client resumes: behind the frame of the header Last-Event-ID, or else of
// another id. Zero if there is none.
func placeOf(r *http.Request, otherwise string) (place, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = otherwise
	}
	return readPlace(text)
}
