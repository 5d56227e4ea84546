package rest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// The ETag of a document of session state is its version, and that of a checkpoint its number.

// etag writes an ETag.
func etag(n int64) string { return `"` + strconv.FormatInt(n, 10) + `"` }

// preconditions returns what the headers If-Match and If-None-Match demand of a document that is to
// be replaced. Without them, every version is replaced.
func preconditions(r *http.Request) (expected int64, overwrite bool, err error) {
	match, noneMatch := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case match != "" && noneMatch != "":
		return 0, false, problem.Errorf(http.StatusUnprocessableEntity, "If-Match and If-None-Match exclude each other here")
	case noneMatch != "":
		if noneMatch != "*" {
			return 0, false, problem.Errorf(http.StatusUnprocessableEntity, "If-None-Match is %.100q (expected *: there must be no document)", noneMatch)
		}
		return 0, false, nil
	case match == "":
		return 0, true, nil
	}
	text, isQuoted := strings.CutPrefix(match, `"`)
	text, isClosed := strings.CutSuffix(text, `"`)
	expected, err = strconv.ParseInt(text, 10, 64)
	if err != nil || expected < 1 || !isQuoted || !isClosed {
		return 0, false, problem.Errorf(http.StatusUnprocessableEntity, `If-Match is %.100q (expected the ETag of a version, for example "3")`, match)
	}
	return expected, false, nil
}

// answerDocument answers with a document, or with 304 if the client has it.
func (s handler) answerDocument(w http.ResponseWriter, r *http.Request, version int64, savedAt time.Time, document json.RawMessage) error {
	w.Header().Set("ETag", etag(version))
	w.Header().Set("Last-Modified", savedAt.UTC().Format(http.TimeFormat))
	if r.Header.Get("If-None-Match") == etag(version) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.AnswerJSON(w, r, document)
}

// shownState is a document as lists show it.
func shownState(state pgagui.SessionState) json.RawMessage {
	var shown jsontext.Object
	shown.Value("key", state.Key)
	if state.RunID != "" {
		shown.Value("runId", state.RunID)
	}
	shown.Value("version", state.Version).Value("savedAt", state.SavedAt)
	return shown.Raw("document", state.JSON).End()
}

func (s handler) getSessionStates(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	session, after := pgagui.SessionRef{ThreadID: r.PathValue("thread"), RunID: q.Text("run")}, q.Text("after")
	if err := q.Check(); err != nil {
		return err
	}
	states, hasMore, err := s.Tenant(r.Context()).Sessions().ListPage(r.Context(), session, after, s.Memory.PageBytes())
	if err != nil {
		return err
	}
	return answerPage(s, w, r, "sessionState", states, hasMore, shownState)
}

func sessionKeyOf(r *http.Request) pgagui.SessionKey {
	return pgagui.SessionKey{ThreadID: r.PathValue("thread"), Key: r.PathValue("key")}
}

func (s handler) getSessionState(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.LoadOptions{RunID: q.Text("run"), Version: q.Number("version")}
	if err := q.Check(); err != nil {
		return err
	}
	state, err := s.Tenant(r.Context()).Sessions().Load(r.Context(), sessionKeyOf(r), options)
	if err != nil {
		return err
	}
	if state.JSON == nil {
		return problem.Errorf(http.StatusNotFound, "version %d removed the session state %q", state.Version, state.Key)
	}
	return s.answerDocument(w, r, state.Version, state.SavedAt, state.JSON)
}

func (s handler) getSessionVersions(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options, before := pgagui.VersionsOptions{RunID: q.Text("run")}, q.Number("before")
	if err := q.Check(); err != nil {
		return err
	}
	versions, hasMore, err := s.Tenant(r.Context()).Sessions().VersionsPage(r.Context(), sessionKeyOf(r), options, before, s.Memory.PageBytes())
	if err != nil {
		return err
	}
	return answerPage(s, w, r, "versions", versions, hasMore, shownState)
}

func (s handler) saveOptionsOf(r *http.Request) (options pgagui.SaveOptions, err error) {
	q := face.QueryOf(r)
	options.RunID = q.Text("run")
	if err := q.Check(); err != nil {
		return options, err
	}
	options.ExpectedVersion, options.Overwrite, err = preconditions(r)
	return options, err
}

// putSessionState replaces a document. With If-Match it replaces that version only.
func (s handler) putSessionState(w http.ResponseWriter, r *http.Request) error {
	options, err := s.saveOptionsOf(r)
	if err != nil {
		return err
	}
	document, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	version, err := s.Tenant(r.Context()).Sessions().Save(r.Context(), sessionKeyOf(r), document, options)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(version))
	return face.Answer(w, map[string]int64{"version": version})
}

// deleteSessionState removes a document. It is no error if there is none.
func (s handler) deleteSessionState(w http.ResponseWriter, r *http.Request) error {
	options, err := s.saveOptionsOf(r)
	if err != nil {
		return err
	}
	_, err = s.Tenant(r.Context()).Sessions().Remove(r.Context(), sessionKeyOf(r), options)
	if err != nil && !errors.Is(err, pgagui.ErrUnknownSessionState) {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// shownCheckpoint is a checkpoint as lists show it.
func shownCheckpoint(checkpoint pgagui.Checkpoint) json.RawMessage {
	var shown jsontext.Object
	shown.Value("checkpointId", checkpoint.ID).Value("namespace", checkpoint.Namespace)
	if checkpoint.ParentID != "" {
		shown.Value("parentId", checkpoint.ParentID)
	}
	if checkpoint.RunID != "" {
		shown.Value("runId", checkpoint.RunID)
	}
	shown.Value("number", checkpoint.Number).Value("savedAt", checkpoint.SavedAt)
	return shown.Raw("document", checkpoint.JSON).End()
}

func (s handler) getCheckpoints(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	var options pgagui.CheckpointsOptions
	if namespace := q.Text("namespace"); q.Has("namespace") {
		options.Namespace = &namespace
	}
	after := q.Number("after")
	if err := q.Check(); err != nil {
		return err
	}
	checkpoints, hasMore, err := s.Tenant(r.Context()).Checkpoints().ListPage(r.Context(), r.PathValue("thread"), options, after, s.Memory.PageBytes())
	if err != nil {
		return err
	}
	return answerPage(s, w, r, "checkpoints", checkpoints, hasMore, shownCheckpoint)
}

// getCheckpoint returns a checkpoint, or the one that was saved last: in the thread, or at a run.
func (s handler) getCheckpoint(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	reference := pgagui.CheckpointRef{Namespace: q.Text("namespace"), ID: r.PathValue("checkpoint")}
	if reference.ID == "" {
		reference.RunID = q.Text("run")
	}
	if err := q.Check(); err != nil {
		return err
	}
	checkpoint, err := s.Tenant(r.Context()).Checkpoints().Load(r.Context(), r.PathValue("thread"), reference)
	if err != nil {
		return err
	}
	return s.answerDocument(w, r, checkpoint.Number, checkpoint.SavedAt, shownCheckpoint(checkpoint))
}

func (s handler) getCheckpointLineage(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	reference, after := pgagui.CheckpointRef{Namespace: q.Text("namespace"), ID: r.PathValue("checkpoint")}, q.Number("after")
	if err := q.Check(); err != nil {
		return err
	}
	lineage, hasMore, err := s.Tenant(r.Context()).Checkpoints().LineagePage(r.Context(), r.PathValue("thread"), reference, after, s.Memory.PageBytes())
	if err != nil {
		return err
	}
	return answerPage(s, w, r, "checkpoints", lineage, hasMore, shownCheckpoint)
}

// putCheckpoint saves a checkpoint. It is idempotent.
func (s handler) putCheckpoint(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Document json.RawMessage
		ParentID string
		RunID    string
	}
	q := face.QueryOf(r)
	checkpoint := pgagui.Checkpoint{ID: r.PathValue("checkpoint"), Namespace: q.Text("namespace")}
	if err := errors.Join(q.Check(), face.ReadObject(r, &body)); err != nil {
		return err
	}
	checkpoint.JSON, checkpoint.ParentID, checkpoint.RunID = body.Document, body.ParentID, body.RunID
	number, err := s.Tenant(r.Context()).Checkpoints().Save(r.Context(), r.PathValue("thread"), checkpoint)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(number))
	return face.Answer(w, map[string]int64{"number": number})
}
