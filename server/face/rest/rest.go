package rest

import (
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/internal/jsontext"
)

// Face has what the Go package has, as resources of a thread.
var Face = face.Face{Name: "rest", Register: func(to *face.HTTP) {
	s := handler{to}
	s.Register("", face.Endpoints{
		"GET /threads":                             {access.Read, s.getThreads},
		"GET /runs":                                {access.Read, s.getListedRuns},
		"GET /waiting":                             {access.Read, s.getWaiting},
		"GET /report":                              {access.Read, s.getReport},
		"GET /search":                              {access.Read, s.getSearch},
		"GET /feed":                                {access.Read, s.getFeed},
		"GET /consumers":                           {access.Read, s.getConsumers},
		"PUT /consumers/{consumer}":                {access.Write, s.putConsumer},
		"DELETE /consumers/{consumer}":             {access.Write, s.deleteConsumer},
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

		"GET /threads/{thread}/conversation": {access.Read, atPoint(s.getConversation)},
		"GET /threads/{thread}/messages":     {access.Read, s.getMessages},
		"GET /threads/{thread}/state":        {access.Read, atPoint(s.getState)},
		"GET /threads/{thread}/interrupts":   {access.Read, atPoint(s.getInterrupts)},

		"GET /threads/{thread}/attachments":     {access.Read, atPoint(s.getAttachments)},
		"GET /threads/{thread}/attachments/{n}": {access.Read, atPoint(s.getAttachment)},

		"GET /threads/{thread}/replay":      {access.Read, s.getReplay},
		"GET /threads/{thread}/diff":        {access.Read, s.getDiff},
		"GET /threads/{thread}/tool-calls":  {access.Read, s.getToolCalls},
		"GET /threads/{thread}/activities":  {access.Read, atPoint(s.getActivities)},
		"GET /threads/{thread}/subagents":   {access.Read, s.getSubagents},
		"GET /threads/{thread}/usage":       {access.Read, s.getUsage},
		"GET /threads/{thread}/history":     {access.Read, s.getHistory},
		"GET /threads/{thread}/last-events": {access.Read, s.getLastEvents},
		"GET /threads/{thread}/errors":      {access.Read, s.getErrors},

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
}}

// handler has the endpoints.
type handler struct{ *face.HTTP }

// runOf returns the run that the path of a request names. Without a run it is the head.
func runOf(r *http.Request) pgagui.RunRef {
	return pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: r.PathValue("run")}
}

// answerList answers with a list below a name. An empty list is a list, not null.
func answerList[T any](s handler, w http.ResponseWriter, r *http.Request, name string, list []T) error {
	if list == nil {
		list = []T{}
	}
	var body jsontext.Object
	return s.AnswerJSON(w, r, body.Value(name, list).End())
}

// answerTexts is the same with the JSON text of each item.
func answerTexts[T any](s handler, w http.ResponseWriter, r *http.Request, name string, items []T, textOf func(T) json.RawMessage) error {
	return s.AnswerList(w, r, name, texts(items, textOf), nil)
}

// answerPage is answerTexts for a page that the bytes of its items may have ended.
func answerPage[T any](s handler, w http.ResponseWriter, r *http.Request, name string, items []T, hasMore bool, textOf func(T) json.RawMessage) error {
	var more jsontext.Object
	return s.AnswerList(w, r, name, texts(items, textOf), more.Value("hasMore", hasMore))
}

// texts yields the JSON text of each item.
func texts[T any](items []T, textOf func(T) json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for _, item := range items {
			if !yield(textOf(item)) {
				return
			}
		}
	}
}

// statuses are those of runs.
var statuses = []string{
	string(pgagui.Running), string(pgagui.Finished), string(pgagui.Interrupted), string(pgagui.Cancelled), string(pgagui.Failed), string(pgagui.CutOff),
}

func (s handler) getThreads(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.ThreadsOptions{
		Agent: q.Text("agent"), Archived: pgagui.Archived(q.OneOf("archived", string(pgagui.OnlyArchived), string(pgagui.WithArchived))),
		Title: q.Text("title"), Since: q.Time("since"),
		Status: pgagui.Status(q.OneOf("status", statuses...)), HeadOnly: q.Is("head_only", false),
		Stale: q.Is("stale", false), Metadata: q.Object("metadata"), Cursor: q.Text("cursor"), Limit: q.Limit(),
	}
	if err := q.Check(); err != nil {
		return err
	}
	page, err := s.Tenant(r.Context()).Threads(r.Context(), options)
	if err != nil {
		return err
	}
	return face.Answer(w, page)
}

// getListedRuns returns a page of the runs of all threads that ended with some statuses.
func (s handler) getListedRuns(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.ListRunsOptions{Since: q.Time("since"), Cursor: q.Text("cursor"), Limit: q.Limit()}
	listed := []pgagui.Status{pgagui.Interrupted, pgagui.Cancelled, pgagui.Failed, pgagui.CutOff}
	for _, name := range q.Names("status") {
		if !slices.Contains(listed, pgagui.Status(name)) {
			q.Refuse("status", "interrupted, cancelled, failed or cut_off")
		}
		options.Status = append(options.Status, pgagui.Status(name))
	}
	if err := q.Check(); err != nil {
		return err
	}
	page, err := s.Tenant(r.Context()).ListRuns(r.Context(), options)
	if err != nil {
		return err
	}
	return face.Answer(w, page)
}

func (s handler) getThread(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	thread, err := s.Tenant(r.Context()).Thread(r.Context(), r.PathValue("thread"))
	if err != nil {
		return err
	}
	return face.Answer(w, thread)
}

func (s handler) patchThread(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Title           *string
		Agent           *string
		Archived        *bool
		Metadata        json.RawMessage
		CreateIfMissing bool
	}
	if err := errors.Join(face.QueryOf(r).Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	thread, err := s.Tenant(r.Context()).SetThread(r.Context(), r.PathValue("thread"), pgagui.ThreadChanges{
		Title: body.Title, Agent: body.Agent, Archived: body.Archived, Metadata: orNil(body.Metadata), CreateIfMissing: body.CreateIfMissing,
	})
	if err != nil {
		return err
	}
	return face.Answer(w, thread)
}

// deleteThread stops the runs of a thread and erases it. If it is gone already, the answer is the
// same.
func (s handler) deleteThread(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	if err := s.Erase(r.Context(), s.Tenant(r.Context()), r.PathValue("thread")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s handler) getRuns(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	runs, err := s.Tenant(r.Context()).Runs(r.Context(), r.PathValue("thread"))
	if err != nil {
		return err
	}
	return answerList(s, w, r, "runs", runs)
}

// getRun returns the state of a run and its writer.
func (s handler) getRun(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	from := s.Tenant(r.Context())
	status, err := from.Status(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	answer := struct {
		*pgagui.RunStatus
		PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
	}{RunStatus: status}
	if status.Status == pgagui.Finished {
		ref := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: status.RunID}
		if answer.PendingToolCallIDs, err = from.PendingToolCalls(r.Context(), ref); err != nil {
			return err
		}
	}
	return face.Answer(w, answer)
}

// getInput returns the RunAgentInput that is stored beside the events of a run.
func (s handler) getInput(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	input, err := s.Tenant(r.Context()).RunInput(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, input)
}

func (s handler) getLineage(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: q.Text("run")}
	if err := q.Check(); err != nil {
		return err
	}
	runs, err := s.Tenant(r.Context()).Lineage(r.Context(), run)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "runs", runs)
}

func (s handler) getBranches(w http.ResponseWriter, r *http.Request) error {
	if err := face.QueryOf(r).Check(); err != nil {
		return err
	}
	branches, err := s.Tenant(r.Context()).Branches(r.Context(), r.PathValue("thread"))
	if err != nil {
		return err
	}
	return answerList(s, w, r, "branches", branches)
}

// getMergeBase returns the last run that the lineages of two runs share.
func (s handler) getMergeBase(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	pair := pgagui.RunPair{A: q.Text("run"), B: q.Text("other_run")}
	if pair.A == "" || pair.B == "" {
		q.Refuse("other_run", "two runs: run and other_run")
	}
	if err := q.Check(); err != nil {
		return err
	}
	runID, err := s.Tenant(r.Context()).MergeBase(r.Context(), r.PathValue("thread"), pair)
	if errors.Is(err, pgagui.ErrUnrelatedRuns) {
		return face.Answer(w, map[string]any{"runId": nil})
	}
	if err != nil {
		return err
	}
	return face.Answer(w, map[string]string{"runId": runID})
}

// getOrigin returns the run that first brought a message. To edit or regenerate the message, a new
// run begins with the parent of that one.
func (s handler) getOrigin(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	run := pgagui.RunRef{ThreadID: r.PathValue("thread"), RunID: q.Text("run")}
	if err := q.Check(); err != nil {
		return err
	}
	origin, err := s.Tenant(r.Context()).MessageOrigin(r.Context(), run, r.PathValue("message"))
	if err != nil {
		return err
	}
	return face.Answer(w, map[string]any{"messageId": r.PathValue("message"), "run": origin})
}
