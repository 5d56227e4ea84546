// Package session keeps what the parts of an agent remember of a conversation between runs: chat history, memory, a todo list.
//
// # State and behaviour
//
// What is remembered is plain data, the states of a [Session], a JSON document each under a key of its own. So any serialiser of the
// standard kind writes and reads sessions, alone or in lists and structs, with no method to call:
//
//	text, err := json.Marshal(sessions)     // or cbor.Marshal, of github.com/fxamacker/cbor
//	err = json.Unmarshal(text, &sessions)
//
// What works with a state is a behaviour: a message store with the client of a database, say. It cannot be written to a document, so it
// is made of its state when it is first asked for, and kept. What an agent runs in knows how, by a [Registry]; a session does not:
//
//	registry := session.NewRegistry()
//	session.Register(registry, "ChatHistory", func(ctx context.Context, history *ChatHistory) (MessageStore, error) {
//		return &store{history, client}, nil
//	})
//	ctx = session.WithRegistry(ctx, registry)
//
//	store, err := session.Behaviour[MessageStore](ctx, &s)
//
// The behaviour and the session share the state: what the behaviour changes in it, the session writes. The agent and its
// callers ask for a behaviour in the same way, and get the same one, from whichever goroutine; there is no time at which a session
// that was read is incomplete. [StateOf] gives the state without the behaviour. Behaviours that have methods to serialise
// themselves fit in by [RegisterSerializer].
//
// A state belongs to the registration that its member $type names, or its member type, or its key. One that nothing
// is registered for is kept as it came. Where a session has no state for a behaviour yet, it gets one, which says its type first.
//
// # Nothing is lost
//
// A session is written as it was read, byte for byte: the order of members, the spelling of numbers and strings, white space, members that
// nobody here knows. A state that a behaviour changed is changed where it stands, and only in what the behaviour changed; what its Go
// type does not know, such as members that another program added, stays. Note that json.Marshal makes compact, and escapes
// <, > and &, whatever a MarshalJSON gives it: where the very bytes count, call [Session.MarshalJSON], or use a json.Encoder with
// SetEscapeHTML(false) for all but the white space.
//
// In CBOR, values are CBOR's own wherever those say the same, and JSON text otherwise, so that JSON comes back byte for byte too. That saves
// 20 to 30 % of compact JSON, less where texts are long (5 % of a history whose messages have 400 bytes). White space between
// members, as Python's json.dumps writes it, makes all of a document JSON text, and a few bytes longer.
//
// # Shapes
//
// A Session reads the documents of several frameworks, told by their members, and writes the shape that it read:
//
//	{"threadId":…,"runId":…,"state":{…},"versions":{…}}                           pgagui; what a new session is written as
//	{"conversationId":…,"stateBag":{…}}                                           Microsoft Agent Framework, .NET
//	{"type":"session","session_id":…,"service_session_id":…,"state":{…}}          Microsoft Agent Framework, Python
//
// # Other documents
//
// [ThreadSnapshot] is what a client gets of a thread, from which the private state of the agent is kept apart. [Checkpoint] is what is needed
// to store the checkpoints of workflows and graphs.
package session
