package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pgagui/pgagui"
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
		return 0, false, problemf(http.StatusBadRequest, "If-Match and If-None-Match exclude each other here")
	case noneMatch != "":
		if noneMatch != "*" {
			return 0, false, problemf(http.StatusBadRequest, "If-None-Match is %.100q (expected *: there must be no document)", noneMatch)
		}
		return 0, false, nil
	case match == "":
		return 0, true, nil
	}
	text, isQuoted := strings.CutPrefix(match, `"`)
	text, isClosed := strings.CutSuffix(text, `"`)
	expected, err = strconv.ParseInt(text, 10, 64)
	if err != nil || expected < 1 || !isQuoted || !isClosed {
		return 0, false, problemf(http.StatusBadRequest, `If-Match is %.100q (expected the ETag of a version, for example "3")`, match)
	}
	return expected, false, nil
}

// answerDocument answers with a document, or with 304 if the client has it.
func (s *Server) answerDocument(w http.ResponseWriter, r *http.Request, version int64, savedAt time.Time, document json.RawMessage) error {
	w.Header().Set("ETag", etag(version))
	w.Header().Set("Last-Modified", savedAt.UTC().Format(http.TimeFormat))
	if r.Header.Get("If-None-Match") == etag(version) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.answerJSON(w, r, document)
}

// shownState is a document as lists show it.
func shownState(state pgagui.SessionState) json.RawMessage {
	var shown object
	shown.value("key", state.Key)
	if state.RunID != "" {
		shown.value("runId", state.RunID)
	}
	shown.value("version", state.Version).value("savedAt", state.SavedAt)
	return shown.raw("document", state.JSON).end()
}

func (s *Server) getSessionStates(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	session := pgagui.SessionRef{ThreadID: r.PathValue("thread"), RunID: q.text("run")}
	if err := q.check(); err != nil {
		return err
	}
	states, err := s.tenantOf(r).Sessions().List(r.Context(), session)
	if err != nil {
		return err
	}
	return answerTexts(s, w, r, "sessionState", states, shownState)
}

func sessionKeyOf(r *http.Request) pgagui.SessionKey {
	return pgagui.SessionKey{ThreadID: r.PathValue("thread"), Key: r.PathValue("key")}
}

func (s *Server) getSessionState(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := pgagui.LoadOptions{RunID: q.text("run"), Version: q.number("version")}
	if err := q.check(); err != nil {
		return err
	}
	state, err := s.tenantOf(r).Sessions().Load(r.Context(), sessionKeyOf(r), options)
	if err != nil {
		return err
	}
	if state.JSON == nil {
		return problemf(http.StatusNotFound, "version %d removed the session state %q", state.Version, state.Key)
	}
	return s.answerDocument(w, r, state.Version, state.SavedAt, state.JSON)
}

func (s *Server) getSessionVersions(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	options := pgagui.VersionsOptions{RunID: q.text("run")}
	if err := q.check(); err != nil {
		return err
	}
	versions, err := s.tenantOf(r).Sessions().Versions(r.Context(), sessionKeyOf(r), options)
	if err != nil {
		return err
	}
	return answerTexts(s, w, r, "versions", versions, shownState)
}

func (s *Server) saveOptionsOf(r *http.Request) (options pgagui.SaveOptions, err error) {
	q := queryOf(r)
	options.RunID = q.text("run")
	if err := q.check(); err != nil {
		return options, err
	}
	options.ExpectedVersion, options.Overwrite, err = preconditions(r)
	return options, err
}

// putSessionState replaces a document. With If-Match it replaces that version only.
func (s *Server) putSessionState(w http.ResponseWriter, r *http.Request) error {
	options, err := s.saveOptionsOf(r)
	if err != nil {
		return err
	}
	document, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	version, err := s.tenantOf(r).Sessions().Save(r.Context(), sessionKeyOf(r), document, options)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(version))
	return answer(w, map[string]int64{"version": version})
}

// deleteSessionState removes a document. It is no error if there is none.
func (s *Server) deleteSessionState(w http.ResponseWriter, r *http.Request) error {
	options, err := s.saveOptionsOf(r)
	if err != nil {
		return err
	}
	if _, _, err := s.tenantOf(r).Sessions().Remove(r.Context(), sessionKeyOf(r), options); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// shownCheckpoint is a checkpoint as lists show it.
func shownCheckpoint(checkpoint pgagui.Checkpoint) json.RawMessage {
	var shown object
	shown.value("checkpointId", checkpoint.ID).value("namespace", checkpoint.Namespace)
	if checkpoint.ParentID != "" {
		shown.value("parentId", checkpoint.ParentID)
	}
	if checkpoint.RunID != "" {
		shown.value("runId", checkpoint.RunID)
	}
	shown.value("number", checkpoint.Number).value("savedAt", checkpoint.SavedAt)
	return shown.raw("document", checkpoint.JSON).end()
}

func (s *Server) getCheckpoints(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	var options pgagui.CheckpointsOptions
	if namespace := q.text("namespace"); q.values.Has("namespace") {
		options.Namespace = &namespace
	}
	if err := q.check(); err != nil {
		return err
	}
	checkpoints, err := s.tenantOf(r).Checkpoints().List(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	return answerTexts(s, w, r, "checkpoints", checkpoints, shownCheckpoint)
}

// getCheckpoint returns a checkpoint, or the one that was saved last: in the thread, or at a run.
func (s *Server) getCheckpoint(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	reference := pgagui.CheckpointRef{Namespace: q.text("namespace"), ID: r.PathValue("checkpoint")}
	if reference.ID == "" {
		reference.RunID = q.text("run")
	}
	if err := q.check(); err != nil {
		return err
	}
	checkpoint, err := s.tenantOf(r).Checkpoints().Load(r.Context(), r.PathValue("thread"), reference)
	if err != nil {
		return err
	}
	return s.answerDocument(w, r, checkpoint.Number, checkpoint.SavedAt, shownCheckpoint(checkpoint))
}

func (s *Server) getCheckpointLineage(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	reference := pgagui.CheckpointRef{Namespace: q.text("namespace"), ID: r.PathValue("checkpoint")}
	if err := q.check(); err != nil {
		return err
	}
	lineage, err := s.tenantOf(r).Checkpoints().Lineage(r.Context(), r.PathValue("thread"), reference)
	if err != nil {
		return err
	}
	return answerTexts(s, w, r, "checkpoints", lineage, shownCheckpoint)
}

// putCheckpoint saves a checkpoint. It is idempotent.
func (s *Server) putCheckpoint(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Document json.RawMessage
		ParentID string
		RunID    string
	}
	q := queryOf(r)
	checkpoint := pgagui.Checkpoint{ID: r.PathValue("checkpoint"), Namespace: q.text("namespace")}
	if err := errors.Join(q.check(), readObject(r, &body)); err != nil {
		return err
	}
	checkpoint.JSON, checkpoint.ParentID, checkpoint.RunID = body.Document, body.ParentID, body.RunID
	number, err := s.tenantOf(r).Checkpoints().Save(r.Context(), r.PathValue("thread"), checkpoint)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(number))
	return answer(w, map[string]int64{"number": number})
}
