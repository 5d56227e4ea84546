// Package pgagui keeps AG-UI event streams in PostgreSQL: an append-only log of what agents stream to their UIs, the git-like
// tree of runs in it, and snapshots that give a conversation back at once.
//
// A [Store] works on a database that has the schema agui (package sql/schema installs it, and so does any other migration tool):
//
//	store := pgagui.New(pool, nil)
//	seq, err := store.Append(ctx, "thread-1", "run-1", events)
//	restored, err := store.Restore(ctx, "thread-1", pgagui.At{})
//
// A thread is a conversation (threadId), a run is what an agent did between RUN_STARTED and RUN_FINISHED or RUN_ERROR. Runs form
// a tree: a run goes on from its parent (parentRunId), or from the head, the run begun last. seq numbers the events of a thread
// 1, 2, 3, … in commit order.
//
// While a run is in progress, a [Recorder] stores what its agent emits, together with the other runs of the process, and [Store.Follow] yields it
// in any other one, from any position on, until the run ends:
//
//	recording := recorder.Begin(ctx, "thread-1", "run-1", pgagui.RecordOptions{})
//	err = recording.Record(ctx, event)
//
//	for event, err := range store.Follow(ctx, "thread-1", pgagui.FollowOptions{}) { … }
//
// [Store.Attach] gives what a page shows when it is loaded, and the position to follow from, in one
// consistent call.
//
// [Store.Threads] lists the threads of a scope, newest activity first, and [Store.SetThread] gives one a
// title, an agent or metadata.
//
// [Store.History] pages through all that happened in a thread, with the tokens of a message joined; [Store.ToolCalls] and [Store.SessionMessages] tell of a
// conversation with its places in the log. What an agent keeps for itself between runs is session state ([Store.SaveSessionState],
// [Store.LoadSession]); the package session gives it behaviours.
//
// Every other method is one call of a function of the schema, so anything done here can be done from SQL and in any other language.
// Errors can be told apart with errors.Is and the Err variables of this package.
package pgagui
