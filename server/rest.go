package server

import (
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
)

// openAPI describes all endpoints over HTTP.
//
//go:embed openapi.yaml
var openAPI []byte

// registerREST registers pgagui's own face: what the Go package has, as resources of a thread.
func (s *Server) registerREST(mux *http.ServeMux) {
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	s.register(mux, "", endpoints{
		"GET /threads":                             {access.Read, s.getThreads},
		"GET /threads/{thread}":                    {access.Read, s.getThread},
		"PATCH /threads/{thread}":                  {access.Write, s.patchThread},
		"DELETE /threads/{thread}":                 {access.Delete, s.deleteThread},
		"GET /threads/{thread}/runs":               {access.Read, s.getRuns},
		"GET /threads/{thread}/runs/{run}":         {access.Read, s.getRun},
		"GET /threads/{thread}/runs/{run}/input":   {access.Read, s.getInput},
		"GET /threads/{thread}/head":               {access.Read, s.getRun},
		"GET /threads/{thread}/lineage":            {access.Read, s.getLineage},
		"GET /threads/{thread}/branches":           {access.Read, s.getBranches},
		"GET /threads/{thread}/merge-base":         {access.Read, s.getMergeBase},
		"GET /threads/{thread}/messages/{message}": {access.Read, s.getOrigin},

		"GET /threads/{thread}/conversation": {access.Read, s.getConversation},
		"GET /threads/{thread}/messages":     {access.Read, s.getMessages},
		"GET /threads/{thread}/state":        {access.Read, s.getState},
		"GET /threads/{thread}/interrupts":   {access.Read, s.getInterrupts},
		"GET /threads/{thread}/replay":       {access.Read, s.getReplay},
		"GET /threads/{thread}/diff":         {access.Read, s.getDiff},
		"GET /threads/{thread}/tool-calls":   {access.Read, s.getToolCalls},
		"GET /threads/{thread}/activities":   {access.Read, s.getActivities},
		"GET /threads/{thread}/history":      {access.Read, s.getHistory},

		"POST /threads/{thread}/runs/{run}/events": {access.Write, s.postEvents},
		"POST /append":                              {access.Write, s.postAppend},
		"POST /threads/{thread}/fork":               {access.Write, s.postFork},
		"POST /threads/{thread}/runs/{run}/abandon": {access.Stop, s.postAbandon},

		"GET /threads/{thread}/session-state":                    {access.Read, s.getSessionStates},
		"GET /threads/{thread}/session-state/{key}":              {access.Read, s.getSessionState},
		"GET /threads/{thread}/session-state/{key}/versions":     {access.Read, s.getSessionVersions},
		"PUT /threads/{thread}/session-state/{key}":              {access.Write, s.putSessionState},
		"DELETE /threads/{thread}/session-state/{key}":           {access.Write, s.deleteSessionState},
		"GET /threads/{thread}/checkpoints":                      {access.Read, s.getCheckpoints},
		"GET /threads/{thread}/checkpoints/{checkpoint}":         {access.Read, s.getCheckpoint},
		"GET /threads/{thread}/checkpoints/{checkpoint}/lineage": {access.Read, s.getCheckpointLineage},
		"PUT /threads/{thread}/checkpoints/{checkpoint}":         {access.Write, s.putCheckpoint},
		"GET /threads/{thread}/latest-checkpoint":                {access.Read, s.getCheckpoint},
	})
}

// runOf returns the run that the path of a request names. Without a run it is the head.
func runOf(r *http.Request) pgagui.RunRef {
	return pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: r.PathValue("run")}
}

// answerList answers with a list below a name. An empty list is a list, not null.
func answerList[T any](s *Server, w http.ResponseWriter, r *http.Request, name string, list []T) error {
	if list == nil {
		list = []T{}
	}
	var body object
	return s.answerJSON(w, r, body.value(name, list).end())
}

// answerTexts is the same with the JSON text of each item.
func answerTexts[T any](s *Server, w http.ResponseWriter, r *http.Request, name string, items []T, textOf func(T) json.RawMessage) error {
	texts := make([]json.RawMessage, len(items))
	for i, item := range items {
		texts[i] = textOf(item)
	}
	var body object
	return s.answerJSON(w, r, body.list(name, texts).end())
}

func (s *Server) getThreads(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := pgagui.ThreadsOptions{
		Agent: q.text("agent"), Archived: pgagui.Archived(q.oneOf("archived", string(pgagui.OnlyArchived), string(pgagui.WithArchived))),
		Title: q.text("title"), Since: q.time("since"),
		Status: pgagui.Status(q.oneOf("status", string(pgagui.Running), string(pgagui.Finished), string(pgagui.Failed))),
		Stale:  q.is("stale", false), Metadata: q.object("metadata"), Cursor: q.text("cursor"), Limit: q.limit(),
	}
	if err := q.check(); err != nil {
		return err
	}
	page, err := s.tenantOf(r).Threads(r.Context(), options)
	if err != nil {
		return err
	}
	return answer(w, page)
}

func (s *Server) getThread(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).check(); err != nil {
		return err
	}
	thread, err := s.tenantOf(r).Thread(r.Context(), r.PathValue("thread"))
	if err != nil {
		return err
	}
	return answer(w, thread)
}

func (s *Server) patchThread(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Title           *string
		Agent           *string
		Archived        *bool
		Metadata        json.RawMessage
		CreateIfMissing bool
	}
	if err := errors.Join(queryOf(r).check(), readObject(r, &body)); err != nil {
		return err
	}
	thread, err := s.tenantOf(r).SetThread(r.Context(), r.PathValue("thread"), pgagui.ThreadChanges{
		Title: body.Title, Agent: body.Agent, Archived: body.Archived, Metadata: orNil(body.Metadata), CreateIfMissing: body.CreateIfMissing,
	})
	if err != nil {
		return err
	}
	return answer(w, thread)
}

// deleteThread stops the runs of a thread and erases it. If it is gone already, the answer is the
// same.
func (s *Server) deleteThread(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).check(); err != nil {
		return err
	}
	if err := s.erase(r.Context(), s.tenantOf(r), r.PathValue("thread")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) getRuns(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).check(); err != nil {
		return err
	}
	runs, err := s.tenantOf(r).Runs(r.Context(), r.PathValue("thread"))
	if err != nil {
		return err
	}
	return answerList(s, w, r, "runs", runs)
}

// getRun returns the state of a run and its writer.
func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).check(); err != nil {
		return err
	}
	status, err := s.tenantOf(r).Status(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	return answer(w, status)
}

// getInput returns the RunAgentInput that is stored beside the events of a run.
func (s *Server) getInput(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).check(); err != nil {
		return err
	}
	from, thread := s.tenantOf(r), r.PathValue("thread")
	lineage, err := from.Lineage(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	input, found, err := from.RunInput(r.Context(), thread, lineage[len(lineage)-1])
	if err != nil {
		return err
	}
	if !found {
		return problemf(http.StatusNotFound, "run %q of thread %q has no input beside its events", r.PathValue("run"), thread)
	}
	return s.answerJSON(w, r, input)
}

func (s *Server) getLineage(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: q.text("run")}
	if err := q.check(); err != nil {
		return err
	}
	runs, err := s.tenantOf(r).Lineage(r.Context(), run)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "runs", runs)
}

func (s *Server) getBranches(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).check(); err != nil {
		return err
	}
	branches, err := s.tenantOf(r).Branches(r.Context(), r.PathValue("thread"))
	if err != nil {
		return err
	}
	return answerList(s, w, r, "branches", branches)
}

// getMergeBase returns the last run that the lineages of two runs share.
func (s *Server) getMergeBase(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	pair := pgagui.RunPair{A: q.text("run"), B: q.text("other_run")}
	if pair.A == "" || pair.B == "" {
		q.refuse("other_run", "two runs: run and other_run")
	}
	if err := q.check(); err != nil {
		return err
	}
	runID, found, err := s.tenantOf(r).MergeBase(r.Context(), r.PathValue("thread"), pair)
	if err != nil {
		return err
	}
	var shared *string
	if found {
		shared = &runID
	}
	return answer(w, map[string]*string{"runId": shared})
}

// getOrigin returns the run that first brought a message. To edit or regenerate the message, a new
// run begins with the parent of that one.
func (s *Server) getOrigin(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: q.text("run")}
	if err := q.check(); err != nil {
		return err
	}
	origin, err := s.originOf(r, run, r.PathValue("message"))
	if err != nil {
		return err
	}
	return answer(w, map[string]any{"messageId": r.PathValue("message"), "run": origin})
}

func (s *Server) originOf(r *http.Request, run pgagui.RunRef, messageID string) (pgagui.Run, error) {
	origin, found, err := s.tenantOf(r).MessageOrigin(r.Context(), run, messageID)
	if err == nil && !found {
		err = problemf(http.StatusNotFound, "no run of the lineage brought a message %q", messageID)
	}
	return origin, err
}
