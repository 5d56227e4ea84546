// Package pgagui stores AG-UI event streams in PostgreSQL: an append-only log of what agents stream to
// their UIs, the git-like tree of runs in it, and snapshots that restore a conversation at once.
//
// # Model
//
// A thread is a conversation (threadId). A run is what an agent did between RUN_STARTED and RUN_FINISHED
// or RUN_ERROR. Runs form a tree: a run continues its parent (parentRunId), or else the head, the run
// that began last. seq numbers the events of a thread 1, 2, 3, … in commit order. A scope is the tenant
// or user that a thread belongs to.
//
// # Store
//
// A [Store] works on a database that has the schema agui. Package sql/schema installs it, and so does any
// other migration tool:
//
//	store := pgagui.New(pool, nil)
//
// A process that runs agents has one [Recorder]. It stores what they send, batched over all its runs:
//
//	recorder := store.NewRecorder(nil)
//	recording, err := recorder.Begin(ctx, pgagui.RunRef{ThreadID: "thread-1", RunID: "run-1"}, pgagui.BeginOptions{})
//	err = recording.Record(ctx, event)
//	err = recording.Close(ctx)
//
// Any process attaches a client, also while the run streams, and resumes at any position:
//
//	attached, err := store.Attach(ctx, "thread-1", pgagui.AttachOptions{})  // history, as a snapshot
//	for event, err := range store.Follow(ctx, "thread-1", pgagui.FollowOptions{After: attached.Position}) { … }
//
// # Methods
//
//   - Write: [Store.NewRecorder], [Store.Append], [Store.Abandon], [Store.RequestStop], [Store.Claim].
//     Package events makes the events that a backend writes itself.
//   - Follow a run: [Store.Attach], [Store.Follow], [Store.Status].
//   - Lists: [Store.Threads], [Store.Thread], [Store.SetThread], [Store.ThreadIDs], [Store.Erase].
//   - Read a conversation at any point of its tree ([At]): [Store.Restore], [Store.Messages],
//     [Store.State], [Store.Interrupts], [Store.Replay], [Store.ToolCalls], [Store.Activities],
//     [Store.SessionMessages], [Store.Diff].
//   - Read the log: [Store.Events], [Store.History], [Store.RunInput].
//   - The tree: [Store.Runs], [Store.Lineage], [Store.Branches], [Store.Head], [Store.MergeBase],
//     [Store.MessageOrigin].
//   - What agents and workflow engines keep beside the log: [Store.Sessions], [Store.Checkpoints].
//   - Check and repair: [Store.Maintenance]. Package jobs has the jobs of the background: compaction,
//     repack, reap.
//
// Nearly every method is one call of a function of the schema, so the same can be done from SQL and from
// any other language.
//
// # Contracts
//
// A method that returns one thing returns an error of the family [ErrNotFound] if there is none. A list
// without elements is no error, and a field that does not apply has its zero value.
//
// A cursor (AfterSeq, Cursor) names the last element that the caller has seen; its zero value is the
// beginning. Limit bounds a page, and HasMore says whether another one follows.
//
// A field JSON holds a JSON text byte for byte, as the database stores it.
//
// A call that the database refuses is an [*Error], which wraps one of the Err variables. Methods list
// those that they can return. In addition, each can return ErrPermissionDenied, the errors of ctx and of
// the connection.
package pgagui
