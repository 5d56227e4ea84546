package corpus

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// writer generates the events of a conversation as the server of an agent would stream them.
type writer struct {
	*rand.Rand
	reader
	perEvent int // bytes of text in an event

	conversation Conversation
	clock        clock
	messages     []message
	state        state
}

// clock gives the events their timestamps. It has its own random numbers, so that the number of
// events does not change the other random values.
type clock struct {
	random *rand.Rand
	now    int64 // milliseconds since 1970
}

// tick advances the clock by a random time from low up to high, in milliseconds, and returns it.
func (c *clock) tick(low, high int64) int64 {
	c.now += low + c.random.Int64N(high-low)
	return c.now
}

// message is a message as MESSAGES_SNAPSHOT has it.
type message struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// state is a document such as agents share with their UIs: a growing list, and values that change.
type state struct {
	Title string `json:"title"`
	Steps int    `json:"steps"`
	Notes []note `json:"notes"`
	// size is the size of the notes as JSON, in bytes.
	size int
}

type note struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	Status string `json:"status"`
}

// operation is an operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (c *Corpus) writer(seed uint64, perEvent int) *writer {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &writer{
		Rand: random, reader: reader{paragraphs: c.paragraphs, next: random.IntN(len(c.paragraphs))}, perEvent: perEvent,
		clock: clock{rand.New(rand.NewPCG(seed, 1)), 1_790_000_000_000},
		state: state{Title: "Notes", Notes: []note{}},
	}
	w.conversation.ThreadID = "thread_" + w.randomHex(12)
	return w
}

func (w *writer) chance(percent int) bool { return w.IntN(100) < percent }

func (w *writer) randomHex(size int) string {
	random := make([]byte, size)
	for i := range random {
		random[i] = byte(w.IntN(256))
	}
	return hex.EncodeToString(random)
}

func (w *writer) uuid() string {
	digits := w.randomHex(16)
	return digits[:8] + "-" + digits[8:12] + "-4" + digits[13:16] + "-a" + digits[17:20] + "-" + digits[20:]
}

func (w *writer) messageID() string { return "msg_" + w.randomHex(25) }
func (w *writer) callID() string    { return "call_" + w.randomHex(12) }

// emit appends an event with a timestamp and these fields: names and values alternately.
func (w *writer) emit(eventType string, fields ...any) {
	event := fmt.Appendf(nil, `{"type":%q,"timestamp":%d`, eventType, w.clock.tick(5, 40))
	for i := 0; i < len(fields); i += 2 {
		event = fmt.Appendf(event, `,%q:`, fields[i])
		event = append(event, jsonText(fields[i+1])...)
	}
	run := &w.conversation.Runs[len(w.conversation.Runs)-1]
	run.Events = append(run.Events, append(event, '}'))
}

func jsonText(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // this package passes only values that can be encoded
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// begin starts a run with a message of the user. If parentID is "", the parent is the run before
// it.
func (w *writer) begin(parentID string) {
	if runs := w.conversation.Runs; parentID == "" && len(runs) > 0 {
		parentID = runs[len(runs)-1].RunID
	}
	w.clock.tick(20_000, 80_000)
	runID, threadID := w.uuid(), w.conversation.ThreadID
	w.conversation.Runs = append(w.conversation.Runs, Run{RunID: runID, ParentRunID: parentID})
	question := message{ID: w.uuid(), Role: "user", Content: w.read(60 + w.IntN(120))}
	w.messages = append(w.messages, question)
	fields := []any{"threadId", threadID, "runId", runID}
	if parentID != "" {
		fields = append(fields, "parentRunId", parentID)
	}
	w.emit("RUN_STARTED", append(fields, "input", map[string]any{
		"threadId": threadID, "runId": runID, "messages": []message{question}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
	})...)
}

func (w *writer) finish() {
	run := w.conversation.Runs[len(w.conversation.Runs)-1]
	w.emit("RUN_FINISHED", "threadId", w.conversation.ThreadID, "runId", run.RunID)
}

func (w *writer) fail() {
	w.emit("RUN_ERROR", "message", "The model did not answer in time.", "code", "timeout")
}

func (w *writer) step(name string, events func()) {
	w.emit("STEP_STARTED", "stepName", name)
	events()
	w.emit("STEP_FINISHED", "stepName", name)
}

// answer streams a message of the assistant with size bytes of text.
func (w *writer) answer(size int) {
	id, text := w.messageID(), w.read(size)
	w.emit("TEXT_MESSAGE_START", "messageId", id, "role", "assistant")
	for _, piece := range pieces(text, w.perEvent) {
		w.emit("TEXT_MESSAGE_CONTENT", "messageId", id, "delta", piece)
	}
	w.emit("TEXT_MESSAGE_END", "messageId", id)
	w.messages = append(w.messages, message{ID: id, Role: "assistant", Content: text})
}

func (w *writer) answerInChunks(size int) {
	id, text := w.messageID(), w.read(size)
	for i, piece := range pieces(text, w.perEvent) {
		if i == 0 {
			w.emit("TEXT_MESSAGE_CHUNK", "messageId", id, "role", "assistant", "delta", piece)
			continue
		}
		w.emit("TEXT_MESSAGE_CHUNK", "messageId", id, "delta", piece)
	}
	w.messages = append(w.messages, message{ID: id, Role: "assistant", Content: text})
}

func (w *writer) reasoning(size int) (id string) {
	id = w.messageID()
	w.emit("REASONING_START", "messageId", id)
	w.emit("REASONING_MESSAGE_START", "messageId", id, "role", "reasoning")
	for _, piece := range pieces(w.read(size), w.perEvent) {
		w.emit("REASONING_MESSAGE_CONTENT", "messageId", id, "delta", piece)
	}
	w.emit("REASONING_MESSAGE_END", "messageId", id)
	w.emit("REASONING_END", "messageId", id)
	return id
}

func (w *writer) reasoningInChunks(size int) {
	id := w.messageID()
	for _, piece := range pieces(w.read(size), w.perEvent) {
		w.emit("REASONING_MESSAGE_CHUNK", "messageId", id, "delta", piece)
	}
}

// encryptedValue emits a value that the provider requires back with its reasoning.
func (w *writer) encryptedValue(messageID string) {
	w.emit("REASONING_ENCRYPTED_VALUE", "subtype", "message", "entityId", messageID, "encryptedValue", w.randomHex(100))
}

// toolCall streams the arguments of a tool call and emits its result.
func (w *writer) toolCall(argumentSize, resultSize int) {
	id, arguments := w.callID(), w.arguments(argumentSize)
	w.emit("TOOL_CALL_START", "toolCallId", id, "toolCallName", "search_documents")
	for _, piece := range pieces(arguments, w.perEvent) {
		w.emit("TOOL_CALL_ARGS", "toolCallId", id, "delta", piece)
	}
	w.emit("TOOL_CALL_END", "toolCallId", id)
	w.result(id, arguments, resultSize)
}

func (w *writer) toolCallInChunks(argumentSize, resultSize int) {
	id, arguments := w.callID(), w.arguments(argumentSize)
	for i, piece := range pieces(arguments, w.perEvent) {
		if i == 0 {
			w.emit("TOOL_CALL_CHUNK", "toolCallId", id, "toolCallName", "search_documents", "delta", piece)
			continue
		}
		w.emit("TOOL_CALL_CHUNK", "toolCallId", id, "delta", piece)
	}
	w.result(id, arguments, resultSize)
}

func (w *writer) arguments(size int) string {
	return string(jsonText(map[string]any{"query": w.read(size), "limit": 1 + w.IntN(20)}))
}

func (w *writer) result(callID, arguments string, size int) {
	id := w.messageID()
	content := string(jsonText(map[string]any{"found": w.IntN(50), "text": w.read(size)}))
	w.emit("TOOL_CALL_RESULT", "messageId", id, "toolCallId", callID, "content", content, "role", "tool")
	// A tool call without a parent message becomes a message with the id of the call.
	w.messages = append(w.messages,
		message{ID: callID, Role: "assistant", ToolCalls: []toolCall{{callID, "function", function{"search_documents", arguments}}}},
		message{ID: id, Role: "tool", Content: content, ToolCallID: callID})
}

// activity emits a plan whose steps are completed one by one.
func (w *writer) activity(steps int) {
	type planStep struct {
		Title  string `json:"title"`
		Status string `json:"status"`
	}
	id, plan := w.messageID(), make([]planStep, steps)
	for i := range plan {
		plan[i] = planStep{w.read(40), "pending"}
	}
	w.emit("ACTIVITY_SNAPSHOT", "messageId", id, "activityType", "PLAN", "content", map[string]any{"steps": plan})
	for i := range plan {
		w.emit("ACTIVITY_DELTA", "messageId", id, "activityType", "PLAN",
			"patch", []operation{{"replace", fmt.Sprintf("/steps/%d/status", i), "done"}})
	}
}

// subagent emits a subagent that writes a message.
func (w *writer) subagent(size int, failing bool) {
	subagent, id, text := w.uuid(), w.messageID(), w.read(size)
	w.emit("SUBAGENT_STARTED", "subagentRunId", subagent, "name", "researcher")
	w.emit("TEXT_MESSAGE_START", "messageId", id, "role", "assistant", "subagentRunId", subagent)
	for _, piece := range pieces(text, w.perEvent) {
		w.emit("TEXT_MESSAGE_CONTENT", "messageId", id, "delta", piece, "subagentRunId", subagent)
	}
	w.emit("TEXT_MESSAGE_END", "messageId", id, "subagentRunId", subagent)
	if failing {
		w.emit("SUBAGENT_ERROR", "subagentRunId", subagent, "message", "The source is not reachable.")
	} else {
		w.emit("SUBAGENT_FINISHED", "subagentRunId", subagent)
	}
	w.messages = append(w.messages, message{ID: id, Role: "assistant", Content: text})
}

func (w *writer) messagesSnapshot() {
	w.emit("MESSAGES_SNAPSHOT", "messages", w.messages)
}

func (w *writer) stateSnapshot() {
	w.emit("STATE_SNAPSHOT", "snapshot", w.state)
}

// firstState emits the initial state as a delta instead of a snapshot.
func (w *writer) firstState() {
	w.emit("STATE_DELTA", "delta", []operation{
		{"add", "/title", w.state.Title}, {"add", "/steps", w.state.Steps}, {"add", "/notes", w.state.Notes},
	})
}

func (w *writer) newNote() note {
	added := note{ID: w.uuid(), Title: w.read(30), Text: w.read(150 + w.IntN(150)), Status: "open"}
	w.state.Notes = append(w.state.Notes, added)
	w.state.size += len(jsonText(added)) + 1
	return added
}

// fillState adds notes, without events, until the state has about size bytes.
func (w *writer) fillState(size int) {
	for w.state.size < size {
		w.newNote()
	}
}

// growState adds notes, one event each, until the state has about size bytes.
func (w *writer) growState(size int) {
	for w.state.size < size {
		w.changeState(1, 0)
	}
}

// changeState emits deltas: some that add a note, others that change a value.
func (w *writer) changeState(added, changed int) {
	for range added {
		w.emit("STATE_DELTA", "delta", []operation{{"add", "/notes/-", w.newNote()}})
	}
	for i := range changed {
		if len(w.state.Notes) == 0 || i%3 == 0 {
			w.state.Steps++
			w.emit("STATE_DELTA", "delta", []operation{{"replace", "/steps", w.state.Steps}})
			continue
		}
		number := w.IntN(len(w.state.Notes))
		status := []string{"open", "done", "dropped"}[w.IntN(3)]
		w.state.Notes[number].Status = status
		w.emit("STATE_DELTA", "delta", []operation{{"replace", fmt.Sprintf("/notes/%d/status", number), status}})
	}
}
