package pgagui

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Session state is what the parts of an agent (memory, todo list, …) keep of a conversation beside its events: a JSON document per
// thread, run and key, byte for byte. It is read along the lineage of a run, so a branch has its own. The thread itself has session state
// too, which a run sees under the keys that its lineage has nothing under; methods take an empty runID for that. The thread need not
// have runs.

// SessionState is a document of session state.
type SessionState struct {
	Key string `json:"key"`
	// RunID is the run that it was saved at, which may be one before the run that was asked for; empty: it is the thread's own.
	RunID string `json:"runId,omitempty"`
	// Version numbers the documents of a key in its thread 1, 2, 3, …, whatever run they were saved at. 0: there is none.
	Version int64     `json:"version"`
	SavedAt time.Time `json:"savedAt"`
	// Document holds its very bytes. nil: there is none, or, among several versions, this one says that it was removed.
	Document json.RawMessage `json:"document,omitempty"`
}

// SaveState says where a document is saved, and in the place of what.
type SaveState struct {
	// RunID is the run that it is saved at; empty: it is the thread's own.
	RunID string
	// ExpectedVersion is the version that the writer has read at this run; 0: there was none, and there must be none now.
	// When another one is the current version, ErrStaleVersion says which, in Error.CurrentVersion.
	ExpectedVersion int64
	// Overwrite saves whatever is there. ExpectedVersion does not count then.
	Overwrite bool
}

// SessionPlace is what session state belongs to: a thread, or a run of it.
type SessionPlace struct {
	ThreadID string
	RunID    string // empty: none, what is meant is the thread's own
}

// SaveSessionState saves a document and returns its version. Of several who save in the place of one version, one succeeds, the others get
// ErrStaleVersion. So does a writer who lost the answer and makes the call again: what LoadSessionState gives says whether the document is its own.
// How many versions are kept of a document says the setting agui.session_versions of the database, 10 unless set.
// In a transaction with Append, append first.
//
// Errors: ErrStaleVersion, ErrUnknownThread and ErrUnknownRun (for a run that is named), ErrThreadErased, ErrInvalidEvents (no JSON, no key),
// ErrLimitExceeded (64 MB, nested 1,000 deep, keys of 1,024 bytes).
func (s *Store) SaveSessionState(
	ctx context.Context, threadID, key string, document json.RawMessage, save SaveState,
) (version int64, err error) {
	version, err = s.queries.SaveSessionState(ctx, db.SaveSessionStateParams{
		ThreadID: threadID, Key: key, Document: rawjson.Text(document), RunID: orNull(save.RunID),
		ExpectedVersion: save.ExpectedVersion, Overwrite: save.Overwrite, Scope: s.scope,
	})
	return version, refusal(err)
}

// RemoveSessionState removes a document as of a run, or the thread's own: runs before it keep theirs. It returns the number of the version
// that says so, 0 when there was nothing to remove. Errors are those of SaveSessionState.
func (s *Store) RemoveSessionState(ctx context.Context, threadID, key string, save SaveState) (version int64, err error) {
	version, err = s.queries.RemoveSessionState(ctx, db.RemoveSessionStateParams{
		ThreadID: threadID, Key: key, RunID: orNull(save.RunID),
		ExpectedVersion: save.ExpectedVersion, Overwrite: save.Overwrite, Scope: s.scope,
	})
	return version, refusal(err)
}

// LoadSessionState returns the document that a run has under a key: what was saved at it, or at the nearest run before it on its lineage,
// or for the thread. Without a run it is the thread's own. Version is 0 and Document nil when there is none.
// Errors: ErrUnknownThread and ErrUnknownRun, for a run that is named.
func (s *Store) LoadSessionState(ctx context.Context, threadID, key, runID string) (SessionState, error) {
	return s.loadSessionState(ctx, threadID, key, runID, nil)
}

// LoadSessionStateVersion returns a version of a document, whatever run it was saved at; Version is 0 and Document nil when it is not kept
// any more, or never was.
func (s *Store) LoadSessionStateVersion(ctx context.Context, threadID, key string, version int64) (SessionState, error) {
	return s.loadSessionState(ctx, threadID, key, "", &version)
}

func (s *Store) loadSessionState(ctx context.Context, threadID, key, runID string, version *int64) (SessionState, error) {
	rows, err := s.queries.LoadSessionState(ctx, db.LoadSessionStateParams{
		ThreadID: threadID, Key: key, RunID: orNull(runID), Version: version, Scope: s.scope,
	})
	if err != nil || len(rows) == 0 {
		return SessionState{Key: key}, refusal(err)
	}
	return sessionStateOf(rows[0]), nil
}

// SessionStates returns all documents that a run has, one a key, in the order of the keys; without a run the thread's own.
// Errors: ErrUnknownThread and ErrUnknownRun, for a run that is named.
func (s *Store) SessionStates(ctx context.Context, threadID, runID string) ([]SessionState, error) {
	rows, err := s.queries.SessionStates(ctx, db.SessionStatesParams{ThreadID: threadID, RunID: orNull(runID), Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	states := make([]SessionState, len(rows))
	for i, row := range rows {
		states[i] = sessionStateOf(db.LoadSessionStateRow(row))
	}
	return states, nil
}

// SessionStateVersions returns the versions that are kept of a document of one run, or of the thread's own, newest first. Those of runs before
// it are not among them. Errors: ErrUnknownThread and ErrUnknownRun, for a run that is named.
func (s *Store) SessionStateVersions(ctx context.Context, threadID, key, runID string) ([]SessionState, error) {
	rows, err := s.queries.SessionVersions(ctx, db.SessionVersionsParams{
		ThreadID: threadID, Key: key, RunID: orNull(runID), Scope: s.scope,
	})
	if err != nil {
		return nil, refusal(err)
	}
	states := make([]SessionState, len(rows))
	for i, row := range rows {
		states[i] = sessionStateOf(db.LoadSessionStateRow(row))
	}
	return states, nil
}

func sessionStateOf(row db.LoadSessionStateRow) SessionState {
	return SessionState{
		Key: row.Key, RunID: row.RunID, Version: row.Version, SavedAt: row.SavedAt, Document: json.RawMessage(row.Document),
	}
}

// LoadSession returns all session state that a run has, or the thread's own, as one JSON document:
//
//	{"threadId": …, "runId": … or null, "state": {key: document, …}, "versions": {key: version, …}}
//
// Errors: ErrUnknownThread and ErrUnknownRun, for a run that is named.
func (s *Store) LoadSession(ctx context.Context, threadID, runID string) (json.RawMessage, error) {
	session, err := s.queries.LoadSession(ctx, db.LoadSessionParams{ThreadID: threadID, RunID: orNull(runID), Scope: s.scope})
	return json.RawMessage(session), refusal(err)
}

// LoadSessions returns several sessions, as LoadSession does, in the order of places.
func (s *Store) LoadSessions(ctx context.Context, places []SessionPlace) ([]json.RawMessage, error) {
	params := db.LoadSessionsParams{ThreadIds: make([]string, len(places)), RunIds: make([]string, len(places)), Scope: s.scope}
	for i, place := range places {
		params.ThreadIds[i], params.RunIds[i] = place.ThreadID, place.RunID
	}
	sessions, err := s.queries.LoadSessions(ctx, params)
	if err != nil {
		return nil, refusal(err)
	}
	return split(sessions)
}

// SaveSession saves a session as LoadSession gives it, all or nothing, and returns the versions that its keys have now. What has not changed
// is not written again.
//
// With versions each key is compared as by SaveSessionState: one that they do not name must be new, and one that they name and state has no
// more is removed. Without versions the session becomes what state says, whatever is there. White space around a document does not count.
// Errors are those of SaveSessionState; ErrInvalidEvents also for what is no session.
func (s *Store) SaveSession(ctx context.Context, session json.RawMessage) (versions map[string]int64, err error) {
	answer, err := s.queries.SaveSession(ctx, db.SaveSessionParams{Session: rawjson.Text(session), Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	if err := json.Unmarshal(answer, &versions); err != nil {
		return nil, fmt.Errorf("versions of the saved session: %w", err)
	}
	return versions, nil
}

// SaveSessions saves several sessions, of any threads, all or nothing, and returns the versions of each. Those of one thread are saved in the order
// given, as by one call of SaveSession after the other.
func (s *Store) SaveSessions(ctx context.Context, sessions []json.RawMessage) (versions []map[string]int64, err error) {
	answer, err := s.queries.SaveSessions(ctx, db.SaveSessionsParams{Sessions: jsonArray(sessions), Scope: s.scope})
	if err != nil {
		return nil, refusal(err)
	}
	if err := json.Unmarshal(answer, &versions); err != nil {
		return nil, fmt.Errorf("versions of the saved sessions: %w", err)
	}
	return versions, nil
}
