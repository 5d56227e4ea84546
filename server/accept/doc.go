// Package accept knows what of a live stream of AG-UI events the official client accepts, and keeps
// the stream valid for it.
//
// The client (@ag-ui/client) parses each event with a schema, expands chunks, and passes the result
// to a verifier. What the schema or the verifier refuses ends the client's run with an error. The
// log keeps whatever an agent sends; a [Filter] stands between the log and one client:
//
//   - A valid stream passes unchanged, byte for byte. Only RUN_FINISHED waits until the caller says
//     that the agent's answer ended ([Filter.End]), because agents send events after it.
//   - The filter adds what is missing: the start of a run, the second start of a message, of a tool
//     call or of reasoning that has ended and goes on, and the ends of what is open before
//     RUN_FINISHED.
//   - The filter leaves out what a client refuses. The caller sends the position alone. It also
//     leaves out a patch that moves a value into itself: the client's state gets a cycle, and the
//     client fails when it copies that.
//   - The filter leaves out what the folds of the log skip but a client would show ([Filter.Consult]):
//     a patch that fails, and a piece of a message or call that is not there.
//   - What is left out still ends the chunks that its agent has open. The client gets a patch without
//     operations for that.
//   - If members of an event are the problem, and the event means the same without them, it loses
//     these members: optional ones that are null, and times that are no integer. A MESSAGES_SNAPSHOT
//     loses the messages that a client refuses. The events that begin and end a run always pass.
//
// The filter is for 0.0.59 and 1.0.0, unless the caller names one of them ([Clients]). They differ:
//
//   - 0.0.59 refuses unknown types of events; 1.0.0 drops them. Both are left out here.
//   - 1.0.0 checks that reasoning is opened and closed, 0.0.59 that thinking is. 1.0.0 rewrites
//     THINKING_* to REASONING_*, with new ids.
//   - 1.0.0 refuses a timestamp that is no integer, a patch with a path that is no JSON pointer, a
//     CUSTOM without value, a RAW without event, a STATE_SNAPSHOT without snapshot, a chunk that
//     contradicts the first of its message, a token count over 2^53, and a frame over 10 MiB.
//   - 0.0.59 refuses unknown roles of messages and kinds of content (1.0.0 drops them), and what is
//     new in protocol 1.0: tool results with parts, sources of type "file", the outcome "cancelled",
//     other members of an outcome, and an input without tools or context.
//
// # Memory
//
// A filter remembers what is open, and of what was open or was in a list of messages which subagent
// it belongs to: 128 bytes and the id each. Beyond 256 KiB it forgets what is closed. From then on it
// cannot see that an event contradicts a forgotten owner. If what is open takes 256 KiB alone, no
// more can be opened: such events are left out.
package accept
