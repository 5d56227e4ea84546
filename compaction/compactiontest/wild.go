package compactiontest

import "strings"

// This file makes streams of events in any order.

var (
	// Some ids name messages as well as calls, so that they meet.
	messageIDs = []string{"m1", "m2", "m3", "c1", "m4"}
	callIDs    = []string{"c1", "c2", "m1"}
)

func (g *generator) wild() {
	for len(g.events) < g.Events {
		if g.Malformed && g.chance(10) {
			g.malformed()
			continue
		}
		if g.Proposals && g.chance(15) {
			g.proposed()
			continue
		}
		g.wildEvent()
	}
}

func (g *generator) messageID() string { return g.spelled(pick(g, messageIDs...)) }
func (g *generator) callID() string    { return g.spelled(pick(g, callIDs...)) }

// spelled writes an id, sometimes in another way that means the same.
func (g *generator) spelled(id string) string {
	if g.Unicode && g.chance(5) {
		return strings.Replace(quoted(id), "1", `\u0031`, 1)
	}
	return quoted(id)
}

func (g *generator) subagent() string {
	return pick(g, "", "", "", "", g.orNull(`"s1"`), `"s1"`, `"s2"`, `""`)
}

func (g *generator) wildEvent() {
	switch g.IntN(32) {
	case 0, 1:
		g.emitWild("TEXT_MESSAGE_START", "messageId", g.messageID(), "role", pick(g, "", `"user"`, `"assistant"`, `"system"`), "name", pick(g, "", "", `"n"`))
	case 2, 3, 4:
		g.emitWild("TEXT_MESSAGE_CONTENT", "messageId", g.messageID(), "delta", g.text())
	case 5:
		g.emitWild("TEXT_MESSAGE_END", "messageId", g.messageID())
	case 6:
		g.emitWild("REASONING_MESSAGE_START", "messageId", g.messageID(), "role", `"reasoning"`)
	case 7:
		g.emitWild("REASONING_MESSAGE_CONTENT", "messageId", g.messageID(), "delta", g.text())
	case 8:
		g.emitWild(pick(g, "REASONING_MESSAGE_END", "REASONING_START", "REASONING_END"), "messageId", g.messageID())
	case 9, 10:
		g.emitWild("TOOL_CALL_START", "toolCallId", g.callID(), "toolCallName", pick(g, `"f"`, `"g"`), "parentMessageId", pick(g, "", `""`, g.messageID(), g.messageID()))
	case 11, 12:
		g.emitWild("TOOL_CALL_ARGS", "toolCallId", g.callID(), "delta", g.text())
	case 13:
		g.emitWild("TOOL_CALL_END", "toolCallId", g.callID())
	case 14, 15:
		g.emitWild("TOOL_CALL_RESULT", "messageId", g.messageID(), "toolCallId", g.callID(), "content", pick(g, g.text(), `[{"type":"text","text":"t"}]`),
			"role", pick(g, "", "", `"tool"`, `""`))
	case 16:
		g.emitWild("STATE_SNAPSHOT", "snapshot", pick(g, g.object(3), g.object(3), g.value(2)))
	case 17, 18, 19:
		g.emitWild("STATE_DELTA", "delta", g.patch())
	case 20:
		g.closeLanes()
		g.emit("MESSAGES_SNAPSHOT", "messages", g.messages(append(messageIDs, pick(g, messageIDs...)), callIDs), "metadata", g.authority())
	case 21:
		g.emitWild("ACTIVITY_SNAPSHOT", "messageId", g.messageID(), "activityType", pick(g, `"PLAN"`, `"SEARCH"`), "content", g.object(3), "replace", pick(g, "", "", "true", "false"))
	case 22, 23:
		g.emitWild("ACTIVITY_DELTA", "messageId", g.messageID(), "activityType", pick(g, `"PLAN"`, `"SEARCH"`), "patch", g.patch())
	case 24:
		g.emitWild("REASONING_ENCRYPTED_VALUE", "subtype", pick(g, `"tool-call"`, `"message"`), "entityId", pick(g, g.messageID(), g.callID()), "encryptedValue", g.text())
	case 25:
		g.closeLanes()
		g.runEvent()
	case 26:
		g.emitWild(pick(g, "RAW", "CUSTOM", "STEP_STARTED", "STEP_FINISHED", "SUBAGENT_STARTED", "THINKING_START", "THINKING_TEXT_MESSAGE_CONTENT", "FUTURE"),
			"name", `"n"`, "stepName", `"n"`, "value", g.value(1), "event", g.value(1))
	case 27:
		g.emitWild(pick(g, "SUBAGENT_FINISHED", "SUBAGENT_ERROR"), "message", `"m"`)
	default:
		g.wildChunk()
	}
}

func (g *generator) runEvent() {
	switch g.IntN(4) {
	case 0, 1:
		messages := ""
		if g.chance(60) {
			messages = `"messages":` + g.messages(messageIDs, callIDs)
		}
		g.emit("RUN_STARTED", "threadId", `"t"`, "runId", `"r"`, "input", pick(g, "", "{"+messages+"}"))
	case 2:
		g.emit("RUN_FINISHED", "threadId", `"t"`, "runId", `"r"`, "outcome",
			pick(g, "", `{"type":"success"}`, `{"type":"cancelled"}`, `{"type":"interrupt","interrupts":`+g.interrupts()+`}`, `{"type":"interrupt","interrupts":`+g.interrupts()+`}`))
	default:
		g.emit("RUN_ERROR", "message", `"failed"`)
	}
}

// emitWild emits an event of any lane.
func (g *generator) emitWild(eventType string, fields ...string) {
	subagent := g.subagent()
	switch eventType {
	case "RAW", "SUBAGENT_STARTED", "THINKING_START", "THINKING_TEXT_MESSAGE_CONTENT", "FUTURE", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE":
	case "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
		if subagent != "" && subagent != "null" {
			delete(g.lanes, subagent)
		}
	default:
		delete(g.lanes, laneOf(subagent))
	}
	g.emit(eventType, append(fields, "subagentRunId", subagent, "metadata", g.metadata())...)
}

func (g *generator) closeLanes() { clear(g.lanes) }

func laneOf(subagent string) string {
	if subagent == "null" {
		return ""
	}
	return subagent
}

// wildChunk emits a chunk that opens a stream or continues one; unless refused ones are wanted, one that the client accepts.
func (g *generator) wildChunk() {
	kind, subagent := pick(g, "text", "text", "tool", "reasoning"), g.subagent()
	lane := laneOf(subagent)
	delta := pick(g, "", g.text(), g.text(), g.text())
	if g.RefusedChunks && g.chance(30) {
		g.chunk(kind, pick(g, "", g.messageID()), subagent, delta, pick(g, "", `"f"`))
		return
	}
	open, isOpen := g.lanes[lane]
	if isOpen && g.chance(70) {
		g.chunk(open.kind, pick(g, "", "", quoted(open.id)), subagent, delta, "")
		return
	}
	id := pick(g, messageIDs...)
	if kind == "tool" {
		id = pick(g, callIDs...)
	}
	for other, o := range g.lanes {
		if o.kind != kind || other == lane {
			continue
		}
		if o.id == id && lane != "" {
			return // a chunk whose subagent contradicts that of the open stream
		}
		if o.id == id || lane == "" && open.kind != kind && g.open(kind) == 1 {
			// It continues the stream of a subagent without naming that, nor the stream if it is the only one of its kind.
			named := quoted(o.id)
			if open.kind != kind && g.open(kind) == 1 {
				named = pick(g, "", named)
			}
			g.chunk(kind, named, subagent, delta, "")
			return
		}
	}
	if isOpen && open.kind == kind && open.id == id {
		g.chunk(kind, quoted(id), subagent, delta, "")
		return
	}
	g.lanes[lane] = stream{kind, id}
	g.chunk(kind, quoted(id), subagent, delta, `"f"`)
}

// open counts the open streams of a kind.
func (g *generator) open(kind string) (n int) {
	for _, o := range g.lanes {
		if o.kind == kind {
			n++
		}
	}
	return n
}

func (g *generator) chunk(kind, id, subagent, delta, name string) {
	common := []string{"delta", delta, "subagentRunId", subagent, "metadata", g.metadata()}
	switch kind {
	case "text":
		if name != "" {
			name = pick(g, "", `"n"`)
		}
		g.emit("TEXT_MESSAGE_CHUNK", append(common, "messageId", id, "name", name)...)
	case "tool":
		g.emit("TOOL_CALL_CHUNK", append(common, "toolCallId", id, "toolCallName", name)...)
	default:
		g.emit("REASONING_MESSAGE_CHUNK", append(common, "messageId", id)...)
	}
}

// proposed emits events as the proposals spell them, and what else the client does not read.
func (g *generator) proposed() {
	switch g.IntN(6) {
	case 0:
		g.emitWild("STATE_DELTA", "patch", pick(g, g.patch(), g.operation()))
	case 1:
		g.emitWild("STATE_SNAPSHOT", "state", g.object(3))
	case 2:
		g.emit("ACTIVITY", "messageId", g.messageID(), "activityType", `"PLAN"`, "snapshot", pick(g, "", g.object(3)), "patch", pick(g, "", g.patch(), g.operation()),
			"subagentRunId", g.subagent(), "metadata", g.metadata())
	case 3:
		g.closeLanes()
		g.emit("RUN_STARTED", "threadId", `"t"`, "runId", `"r"`, "input", `{"messages":["Tell me","about Paris"]}`)
	case 4:
		g.closeLanes()
		g.emit("RUN_STARTED", "threadId", `"t"`, "runId", `"r"`, "input", `{"state":`+pick(g, "null", g.object(3))+`,"messages":`+g.messages(messageIDs, callIDs)+`}`)
	default:
		g.closeLanes()
		g.emit("MESSAGES_SNAPSHOT", "messages", pick(g, `[{"role":"user","content":"no id"}]`, `[{"role":"user","content":"no id"},{"id":"m1","role":"user","content":"x"},"text"]`))
	}
}

// malformed emits an event that is skipped.
func (g *generator) malformed() {
	wrong := pick(g, "7", "true", "{}", "[]", "null")
	switch g.IntN(16) {
	case 0:
		g.emit("TEXT_MESSAGE_START", "messageId", wrong)
	case 1:
		g.emit("TEXT_MESSAGE_CONTENT", "messageId", g.messageID(), "delta", wrong)
	case 2:
		g.emit("TEXT_MESSAGE_CONTENT", "delta", g.text())
	case 3:
		g.emit("TOOL_CALL_START", "toolCallId", g.callID())
	case 4:
		g.emit("TOOL_CALL_ARGS", "toolCallId", g.callID(), "delta", wrong)
	case 5:
		g.emit("TOOL_CALL_RESULT", "messageId", g.messageID(), "toolCallId", g.callID(), "content", pick(g, "", "null", "7", "{}"))
	case 6:
		g.emit("STATE_SNAPSHOT")
	case 7:
		g.emit("STATE_DELTA", "delta", pick(g, "", "7", "{}", `"x"`))
	case 8:
		g.emit("MESSAGES_SNAPSHOT", "messages", pick(g, "", "7", "{}", `"x"`, "null"))
	case 9:
		g.emit("ACTIVITY_SNAPSHOT", "messageId", g.messageID(), "activityType", `"PLAN"`, "content", pick(g, "", "7", "[]", `"x"`, "null"))
	case 10:
		g.emit("ACTIVITY_DELTA", "messageId", g.messageID(), "activityType", wrong, "patch", g.patch())
	case 11:
		g.emit("REASONING_ENCRYPTED_VALUE", "subtype", `"message"`, "entityId", g.messageID(), "encryptedValue", wrong)
	case 12:
		g.emit("TEXT_MESSAGE_CONTENT", "messageId", g.messageID(), "delta", g.text(), "metadata", pick(g, "7", "[]", `"x"`))
	case 13:
		g.emit("TEXT_MESSAGE_START", "messageId", g.messageID(), "subagentRunId", pick(g, "7", "[]", "{}"))
	case 14:
		g.events = append(g.events, []byte(pick(g, `{}`, `{"type":7}`, `{"type":null}`, `{"type":"toString"}`, `{"type":""}`)))
	default:
		g.closeLanes()
		g.emit("RUN_FINISHED", "outcome", pick(g, `{"type":"interrupt"}`, `{"type":"interrupt","interrupts":7}`, `{"type":"interrupt","interrupts":null}`))
	}
}
