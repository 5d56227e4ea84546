// Package session keeps the state that the parts of an agent need between the runs of a conversation: chat
// history, memory, a todo list. It needs no database.
//
// # State and behaviour
//
// A [Session] is plain data. Its states are JSON documents, each under a key. So any common serializer
// writes and reads sessions, alone or within lists and structs, without a method to call:
//
//	text, err := json.Marshal(sessions)     // or cbor.Marshal, of github.com/fxamacker/cbor
//	err = json.Unmarshal(text, &sessions)
//
// A behaviour is what works with a state, for example a message store with the client of a database. A
// document cannot hold it. So the first use makes it from the state, and the session keeps it. A
// [Registry] in the context of the agent says how:
//
//	registry := session.NewRegistry()
//	session.Register(registry, "ChatHistory", func(ctx context.Context, history *ChatHistory) (MessageStore, error) {
//		return &store{history, client}, nil
//	})
//	ctx = session.WithRegistry(ctx, registry)
//
//	store, err := session.Behaviour[MessageStore](ctx, &s)
//
// The behaviour and the session share the state: the session writes what the behaviour changed. The agent
// and its callers get the same behaviour, from any goroutine. [StateOf] returns the state without the
// behaviour. [RegisterSerializer] is for behaviours with a method that writes their state.
//
// A state belongs to the registration that its member $type names, else its member type, else its key. A
// state that nothing is registered for stays as it was read. If a session has no state for a behaviour,
// it gets a new one, whose first member is its type.
//
// # Nothing is lost
//
// A session is written as it was read, byte for byte: the order of members, the spelling of numbers and
// strings, white space, unknown members. In a state that a behaviour changed, only the changed parts
// differ; members that its Go type lacks stay. json.Marshal removes white space, and escapes <, > and &,
// in what any MarshalJSON returns. If the exact bytes matter, call [Session.MarshalJSON]. A json.Encoder
// with SetEscapeHTML(false) changes only the white space.
//
// In CBOR, a value is written as CBOR if that can express the same, and as JSON text otherwise, so that
// JSON comes back byte for byte. This takes 20 to 30 % less than compact JSON; with long texts less is
// saved (5 % of a history whose messages have 400 bytes). A document with white space between its
// members, as Python's json.dumps writes it, becomes JSON text as a whole, and a few bytes longer.
//
// # Shapes
//
// A [Session] reads the documents of several frameworks. It recognizes them by their members, and writes
// the shape that it read:
//
//	{"threadId":…,"runId":…,"state":{…},"versions":{…}}                           pgagui; the shape of a new session
//	{"conversationId":…,"stateBag":{…}}                                           Microsoft Agent Framework, .NET
//	{"type":"session","session_id":…,"service_session_id":…,"state":{…}}          Microsoft Agent Framework, Python
//
// # Other documents
//
// A [ThreadSnapshot] is what a client gets of a thread; the private state of the agent is kept apart. A
// [Checkpoint] holds what is needed to store a checkpoint of a workflow or graph.
package session
