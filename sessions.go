package pgagui

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Sessions keeps session state: what the parts of an agent (memory, todo list, …) store of a
// conversation beside its events. It is a JSON document per thread, run and key, byte for byte.
//
// A run sees the documents of its lineage, so each branch has its own. The thread itself has session
// state too, under an empty RunID; a run sees it for those keys under which its lineage has nothing.
// The thread need not have runs.
type Sessions struct{ store *Store }

// Sessions returns the session state of the Store's scope. Package session builds on it.
func (s *Store) Sessions() Sessions { return Sessions{s} }

// SessionRef names the owner of session state: a thread, or a run of it.
type SessionRef struct {
	ThreadID string
	RunID    string // empty: the thread itself
}

// SessionKey names a document of session state.
type SessionKey struct {
	ThreadID string
	Key      string
}

// SessionState is a document of session state.
type SessionState struct {
	Key string `json:"key"`
	// RunID is the run that it was saved at, which may be an ancestor of the requested run.
	// Empty if it belongs to the thread.
	RunID string `json:"runId,omitempty"`
	// Version numbers the documents of a key in its thread 1, 2, 3, …, whatever run they were saved
	// at.
	Version int64     `json:"version"`
	SavedAt time.Time `json:"savedAt"`
	// JSON is the document, byte for byte. Among several versions nil means that this version
	// removed the document.
	JSON json.RawMessage `json:"document,omitempty"`
}

// SaveOptions say where a document is saved, and which version it replaces.
type SaveOptions struct {
	// RunID is the run that it is saved at. If empty, it belongs to the thread.
	RunID string
	// ExpectedVersion is the version that the writer has read at this run. 0 means that there was
	// none, and that there must be none now. If another version is the current one, the error is
	// ErrStaleVersion and Error.CurrentVersion names it.
	ExpectedVersion int64
	// Overwrite replaces any version. Then ExpectedVersion does not count.
	Overwrite bool
}

// LoadOptions say which document Load returns. The zero value is the thread's own.
type LoadOptions struct {
	// RunID is the run whose document it is: the one saved at it, at its nearest ancestor, or for
	// the thread.
	RunID string
	// Version is a certain version, whatever run it was saved at. The current one if zero.
	Version int64
}

// VersionsOptions say which versions Versions returns.
type VersionsOptions struct {
	// RunID is the run that they were saved at. If empty, those of the thread.
	RunID string
}

// Save saves a document and returns its version. If several writers replace the same version, one
// succeeds and the others get ErrStaleVersion. So does a writer that retries after it lost the
// answer: Load then tells whether the document is its own. The database setting
// agui.session_versions says how many versions of a document are kept, 10 unless set. In a
// transaction with Append, append first.
//
// Errors: ErrStaleVersion, ErrUnknownThread and ErrUnknownRun (if a run is named), ErrThreadErased,
// ErrInvalidEvents (invalid JSON, no key), ErrLimitExceeded (64 MB, 1,000 levels deep, keys of 1,024
// bytes), ErrKeyCollision.
func (s Sessions) Save(
	ctx context.Context, key SessionKey, document json.RawMessage, options SaveOptions,
) (version int64, err error) {
	version, err = s.store.of(key.ThreadID).SaveSessionState(ctx, db.SaveSessionStateParams{
		ThreadID: key.ThreadID, Key: key.Key, Document: rawjson.Text(document), RunID: orNull(options.RunID),
		ExpectedVersion: options.ExpectedVersion, Overwrite: options.Overwrite, Scope: s.store.scope,
	})
	return version, ErrorOf(err)
}

// Remove removes a document as of a run, or that of the thread. Ancestors of the run keep theirs. It
// returns the version that records the removal.
//
// Errors: ErrUnknownSessionState if there is nothing to remove; ErrStaleVersion, ErrUnknownThread and ErrUnknownRun (if a run is named), ErrThreadErased,
// ErrInvalidEvents (no key), ErrLimitExceeded (keys of 1,024 bytes), ErrKeyCollision.
func (s Sessions) Remove(ctx context.Context, key SessionKey, options SaveOptions) (version int64, err error) {
	version, err = s.store.of(key.ThreadID).RemoveSessionState(ctx, db.RemoveSessionStateParams{
		ThreadID: key.ThreadID, Key: key.Key, RunID: orNull(options.RunID),
		ExpectedVersion: options.ExpectedVersion, Overwrite: options.Overwrite, Scope: s.store.scope,
	})
	if err == nil && version == 0 {
		return 0, unknown(ErrUnknownSessionState, "thread %q has no session state %q", key.ThreadID, key.Key)
	}
	return version, ErrorOf(err)
}

// Load returns a document.
//
// Errors: ErrUnknownSessionState if there is none, or the version is not kept any more;
// ErrUnknownThread and ErrUnknownRun if a run is named; ErrInvalidEvents (an empty thread id),
// ErrKeyCollision.
func (s Sessions) Load(ctx context.Context, key SessionKey, options LoadOptions) (SessionState, error) {
	rows, err := s.store.of(key.ThreadID).LoadSessionState(ctx, db.LoadSessionStateParams{
		ThreadID: key.ThreadID, Key: key.Key, RunID: orNull(options.RunID), Version: orNull(options.Version), Scope: s.store.scope,
	})
	switch {
	case err != nil:
		return SessionState{}, ErrorOf(err)
	case len(rows) == 0 && options.Version != 0:
		return SessionState{}, unknown(ErrUnknownSessionState, "thread %q has no version %d of the session state %q",
			key.ThreadID, options.Version, key.Key)
	case len(rows) == 0:
		return SessionState{}, unknown(ErrUnknownSessionState, "thread %q has no session state %q", key.ThreadID, key.Key)
	}
	return sessionStateOf(rows[0]), nil
}

// List returns all documents that a run sees, or those of the thread, in the order of their keys.
//
// Errors: ErrUnknownThread and ErrUnknownRun (if a run is named), ErrInvalidEvents (an empty thread
// id), ErrKeyCollision.
func (s Sessions) List(ctx context.Context, session SessionRef) ([]SessionState, error) {
	states, _, err := s.ListPage(ctx, session, "", 0)
	return states, err
}

// ListPage is List behind a key, with a bound of the bytes of the documents: there is one at least. It begins with the first one if
// after is empty, and has no bound if pageBytes is zero.
//
// Errors: those of List.
func (s Sessions) ListPage(ctx context.Context, session SessionRef, after string, pageBytes int) (states []SessionState, hasMore bool, err error) {
	rows, err := s.store.of(session.ThreadID).SessionStates(ctx, db.SessionStatesParams{
		ThreadID: session.ThreadID, RunID: orNull(session.RunID), AfterKey: orNull(after), PageBytes: orNull(pageSize(pageBytes, 0)), Scope: s.store.scope,
	})
	return statesOf(rows, err)
}

// Versions returns the versions that are kept of a document, newest first. Those of other runs,
// ancestors too, are not among them.
//
// Errors: ErrUnknownThread and ErrUnknownRun (if a run is named), ErrInvalidEvents (an empty thread
// id), ErrKeyCollision.
func (s Sessions) Versions(ctx context.Context, key SessionKey, options VersionsOptions) ([]SessionState, error) {
	versions, _, err := s.VersionsPage(ctx, key, options, 0, 0)
	return versions, err
}

// VersionsPage is Versions before a version, with a bound of the bytes of the documents: there is one at least. It begins with the
// newest one if before is zero, and has no bound if pageBytes is zero.
//
// Errors: those of Versions.
func (s Sessions) VersionsPage(
	ctx context.Context, key SessionKey, options VersionsOptions, before int64, pageBytes int,
) (versions []SessionState, hasMore bool, err error) {
	rows, err := s.store.of(key.ThreadID).SessionVersions(ctx, db.SessionVersionsParams{
		ThreadID: key.ThreadID, Key: key.Key, RunID: orNull(options.RunID), BeforeVersion: orNull(before), PageBytes: orNull(pageSize(pageBytes, 0)),
		Scope: s.store.scope,
	})
	return statesOf(rows, err)
}

// statesOf is a page of documents. A last row without a version says that there are more.
func statesOf[Row db.SessionStatesRow | db.SessionVersionsRow](rows []Row, err error) (states []SessionState, hasMore bool, _ error) {
	states, err = listOf(rows, err, func(row Row) SessionState { return sessionStateOf(db.LoadSessionStateRow(row)) })
	return untilMark(states, err, func(last SessionState) bool { return last.Version == 0 })
}

func sessionStateOf(row db.LoadSessionStateRow) SessionState {
	return SessionState{
		Key: row.Key, RunID: row.RunID, Version: row.Version, SavedAt: row.SavedAt, JSON: json.RawMessage(row.Document),
	}
}

// LoadAll returns all session state that a run sees, or that of the thread, as one JSON document:
//
//	{"threadId": …, "runId": … or null, "state": {key: document, …}, "versions": {key: version, …}}
//
// Errors: ErrUnknownThread and ErrUnknownRun (if a run is named), ErrInvalidEvents (an empty thread
// id), ErrKeyCollision.
func (s Sessions) LoadAll(ctx context.Context, session SessionRef) (json.RawMessage, error) {
	document, err := s.store.of(session.ThreadID).LoadSession(ctx, db.LoadSessionParams{
		ThreadID: session.ThreadID, RunID: orNull(session.RunID), Scope: s.store.scope,
	})
	return json.RawMessage(document), ErrorOf(err)
}

// LoadMany returns several documents as LoadAll does, in the given order, in one call; in a cluster, one
// for each node.
//
// Errors: those of LoadAll.
func (s Sessions) LoadMany(ctx context.Context, sessions []SessionRef) ([]json.RawMessage, error) {
	threadOf := func(i int) string { return sessions[i].ThreadID }
	return forAll(ctx, s.store, len(sessions), threadOf, func(ctx context.Context, on *db.Queries, items []int) ([]json.RawMessage, error) {
		params := db.LoadSessionsParams{ThreadIds: make([]string, len(items)), RunIds: make([]string, len(items)), Scope: s.store.scope}
		for i, item := range items {
			params.ThreadIds[i], params.RunIds[i] = sessions[item].ThreadID, sessions[item].RunID
		}
		documents, err := on.LoadSessions(ctx, params)
		if err != nil {
			return nil, err
		}
		return split(documents)
	})
}

// SaveAll saves a document as LoadAll returns it, all keys or none, and returns the versions that
// its keys have now. It does not write what has not changed; white space around a document is no
// change.
//
// If the document has the member versions, SaveAll compares each key as Save does: a key that
// versions does not name must be new, and a key that versions names and state lacks is removed.
// Without versions the session state becomes what the member state says, whatever there was.
//
// Errors: those of Save; ErrInvalidEvents also for a document of another form.
func (s Sessions) SaveAll(ctx context.Context, document json.RawMessage) (versions map[string]int64, err error) {
	answer, err := s.store.of(sessionThread(document)).SaveSession(ctx, db.SaveSessionParams{Session: rawjson.Text(document), Scope: s.store.scope})
	return savedVersions[map[string]int64](answer, err)
}

// SaveMany saves several documents as SaveAll does, of any threads, all of them or none, and returns
// the versions of each. It saves those of one thread in the given order. In a cluster it saves all or
// none of those of a node: after an error, load them to see which nodes have saved theirs.
//
// Errors: those of SaveAll.
func (s Sessions) SaveMany(ctx context.Context, documents []json.RawMessage) (versions []map[string]int64, err error) {
	threadOf := func(i int) string { return sessionThread(documents[i]) }
	return forAll(ctx, s.store, len(documents), threadOf, func(ctx context.Context, on *db.Queries, items []int) (versions []map[string]int64, err error) {
		answer, err := on.SaveSessions(ctx, db.SaveSessionsParams{Sessions: rawjson.Array(pick(documents, items)), Scope: s.store.scope})
		return savedVersions[[]map[string]int64](answer, err)
	})
}

func savedVersions[T any](answer []byte, err error) (versions T, _ error) {
	if err != nil {
		return versions, ErrorOf(err)
	}
	if err := json.Unmarshal(answer, &versions); err != nil {
		return versions, fmt.Errorf("versions of the saved session state: %w", err)
	}
	return versions, nil
}

// sessionThread returns the thread of a document. Empty: it does not say, and is refused.
func sessionThread(document json.RawMessage) string {
	if !json.Valid(document) {
		return ""
	}
	return textMember(document, "threadId")
}
