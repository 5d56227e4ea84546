// Package compaction says what a stream of AG-UI events means, and writes shorter streams that mean
// the same. It needs no database.
//
// # The words
//
// A fold is what the events up to some point mean: the messages, the state and the open interrupts.
// A [Fold] takes events one after another, as raw JSON. The reducer in SQL (sql/functions/fold)
// gives the same result, to the byte.
//
// A snapshot is a fold as data ([Snapshot]). It can be stored. [Resume] makes a fold of it, which
// takes the events that come next.
//
// A compacted stream has fewer events than the stream that it was made from, and means the same.
// [CompactEvents] makes one in either of two shapes. The shape "stream" gives each message and each
// tool call as a start, one piece and an end. The shape "snapshot" gives one MESSAGES_SNAPSHOT and
// one STATE_SNAPSHOT. [Fold.Replay] writes a fold as events without the stream that it came from.
//
// A lineage is a run with its ancestors. A run folds onto what its parent meant: where a lineage
// branches, the caller clones the fold of the parent ([Fold.Clone]).
//
// # The rules
//
// The reference is the official client, @ag-ui/client: its transformChunks, then its
// defaultApplyEvents. docs/reference/events.md lists the rules by event type and field. This package goes
// beyond the client in these points:
//
//   - The state that a run was started with, input.state of RUN_STARTED, is the state from there on.
//   - The spellings of the AG-UI proposals count too: STATE_DELTA with patch, STATE_SNAPSHOT with
//     state, ACTIVITY with snapshot and patch, and plain strings in input.messages.
//   - JSON stays as it was written, but for white space. Strings are joined as JSON text, so two
//     halves of an emoji become one character, and \u0000 and lone surrogates survive. Numbers keep
//     their spelling, messages their unknown fields.
//   - No event is an error. An event is skipped when its type is unknown, when a field that the
//     reducer needs is missing or has the wrong type, and when it is a chunk that continues no
//     stream or more than one. A field that is null counts as absent, except for a state. Elements
//     of a list of messages that are neither objects nor strings are left out.
//   - Patches follow RFC 6902 strictly, within [Limits]. A patch is applied as a whole or not at all.
//   - A fold has [Limits] too. A fold that exceeds them takes no more events; [Fold.Err] says why.
//
// A fold and its clones share the parts that they have in common. All of them belong to one
// goroutine at a time.
//
// # The files
//
// Reading events:
//
//   - batch.go: the events of a JSON array, the members of an object
//   - event.go: the fields of an event that the reducer reads, and their types
//
// The reducer:
//
//   - fold.go: Fold, Snapshot and Resume
//   - fold_rules.go: the table from each event type to the function that folds it
//   - fold_messages.go, fold_toolcalls.go, fold_activities.go, fold_runs.go: these functions
//   - thinking.go: the events of thinking that protocol 0 had, as those of reasoning
//   - fold_chunks.go: the chunk events, and the streams that they open
//   - message.go, message_list.go, message_index.go: a message, the list, finding one by its id
//   - limits.go, memory.go: what a fold may take, and what it takes
//
// The compactor:
//
//   - compact.go: the definition of the compacted form, and CompactEvents
//   - compact_run.go, compact_forms.go: what the events of one run are about, and the forms in which
//     it can be written
//   - repair.go: the events that a run lacks by the protocol
//   - replay.go: a fold as events
//
// internal/jsontree has the JSON values that patches change, internal/rawjson the JSON scanner.
package compaction
