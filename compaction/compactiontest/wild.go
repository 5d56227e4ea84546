package compactiontest

import (
	"slices"
	"strings"
)

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
		if g.Field && g.chance(15) {
			g.ofTheField()
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

// An eventType is what protocol/events.json says of a type; protocol_generated.go has all of them.
type eventType struct {
	name, does, part      string
	closes                string // the lanes, for the reducer
	isCurrent, isProposed bool
	fields                []fieldType
}

type fieldType struct {
	name, kind string
	isRequired bool   // by the protocol
	takes      string // the JSON types that the reducer takes; "": any, or it does not read the field
	isNeeded   bool   // by the reducer
}

// often are what streams consist of most of the time. Other events come once where these come so many times.
var often = map[string]int{
	"start": 2, "continue": 4, "end": 2, "chunk": 4, "add result": 4, "set state": 2, "patch state": 6, "patch activity": 4, "list messages": 2,
	"show activity": 2, "encrypt": 2, "start run": 2,
}

// wildTypes are the types of wild streams, each as many times as it comes more often than the rarest.
var wildTypes = func() (types []*eventType) {
	for _, t := range eventTypes {
		times := max(1, often[t.does])
		if t.isProposed {
			times = 0
		}
		for range times {
			types = append(types, t)
		}
	}
	return types
}()

// typesOf returns the types of today's protocol that do something to a part.
func typesOf(does, part string) (names []string) {
	for _, t := range eventTypes {
		if t.does == does && t.part == part && t.isCurrent {
			names = append(names, t.name)
		}
	}
	return names
}

func (g *generator) wildEvent() {
	switch t := pick(g, wildTypes...); {
	case t.does == "chunk":
		g.wildChunk()
	case g.chance(1):
		g.emit("FUTURE", "messageId", g.messageID(), "delta", g.text(), "subagentRunId", g.subagent())
	default:
		g.emitType(t)
	}
}

// emitType emits an event of a type. Fields with other values may be given.
func (g *generator) emitType(t *eventType, given ...string) {
	var fields []string
	for _, f := range t.fields {
		value := g.fieldValue(t, f)
		for i := 0; i < len(given); i += 2 {
			if given[i] == f.name {
				value = given[i+1]
			}
		}
		fields = append(fields, f.name, value)
		if f.name == "subagentRunId" {
			g.closes(t, value)
		}
	}
	if t.closes == "all" {
		g.closeLanes()
	}
	g.emit(t.name, fields...)
}

// closes takes note of the streams of chunks that an event ends.
func (g *generator) closes(t *eventType, subagent string) {
	if t.closes == "own" || t.closes == "named" && subagent != "" && subagent != "null" {
		delete(g.lanes, laneOf(subagent))
	}
}

// fieldValue makes a value of a field; "" leaves it out.
func (g *generator) fieldValue(t *eventType, f fieldType) string {
	switch f.name {
	case "messageId":
		return g.messageID()
	case "toolCallId":
		return g.callID()
	case "entityId":
		return pick(g, g.messageID(), g.callID())
	case "subagentRunId":
		return g.subagent()
	case "parentMessageId":
		return pick(g, "", `""`, g.messageID(), g.messageID())
	case "toolCallName":
		return pick(g, `"f"`, `"g"`)
	case "role":
		switch {
		case t.part == "reasoning":
			return `"reasoning"`
		case t.does == "add result":
			return pick(g, "", "", `"tool"`, `""`)
		}
		return pick(g, "", `"user"`, `"assistant"`, `"system"`)
	case "name":
		if f.isRequired {
			return `"n"`
		}
		return pick(g, "", "", `"n"`)
	case "subtype":
		return pick(g, `"tool-call"`, `"message"`)
	case "delta", "encryptedValue":
		if f.kind == "array" {
			return g.patch()
		}
		return g.text()
	case "patch":
		return g.patch()
	case "activityType":
		return pick(g, `"PLAN"`, `"SEARCH"`)
	case "content":
		if f.kind == "object" {
			return g.object(3)
		}
		return pick(g, g.text(), `[{"type":"text","text":"t"}]`)
	case "replace":
		return pick(g, "", "", "true", "false")
	case "snapshot":
		return pick(g, g.object(3), g.object(3), g.value(2))
	case "messages":
		return g.messages(append(messageIDs, pick(g, messageIDs...)), callIDs)
	case "metadata":
		if t.does == "list messages" {
			return g.authority()
		}
		return g.metadata()
	case "input":
		messages := ""
		if g.chance(60) {
			messages = `"messages":` + g.messages(messageIDs, callIDs)
		}
		return pick(g, "", "{"+messages+"}")
	case "outcome":
		if t.part != "" {
			return ""
		}
		interrupted := `{"type":"interrupt","interrupts":` + g.interrupts() + `}`
		return pick(g, "", `{"type":"success"}`, `{"type":"cancelled"}`, interrupted, interrupted)
	}
	switch {
	case !f.isRequired && g.chance(50):
		return ""
	case f.kind == "string":
		return `"n"`
	case f.kind == "array":
		return "[]"
	case f.kind == "object":
		return g.object(1)
	default:
		return g.value(1)
	}
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
	eventType := pick(g, typesOf("chunk", kind)...)
	switch kind {
	case "text":
		if name != "" {
			name = pick(g, "", `"n"`)
		}
		g.emit(eventType, append(common, "messageId", id, "name", name)...)
	case "tool":
		g.emit(eventType, append(common, "toolCallId", id, "toolCallName", name)...)
	default:
		g.emit(eventType, append(common, "messageId", id)...)
	}
}

// emitOwn emits an event that ends the stream of chunks of its lane.
func (g *generator) emitOwn(eventType string, fields ...string) {
	subagent := g.subagent()
	delete(g.lanes, laneOf(subagent))
	g.emit(eventType, append(fields, "subagentRunId", subagent, "metadata", g.metadata())...)
}

// proposed emits events as the proposals spell them, and what else the client does not read.
func (g *generator) proposed() {
	switch g.IntN(6) {
	case 0:
		g.emitOwn("STATE_DELTA", "patch", pick(g, g.patch(), g.operation()))
	case 1:
		g.emitOwn("STATE_SNAPSHOT", "state", g.object(3))
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

// ofTheField emits events as agents of frameworks send them.
func (g *generator) ofTheField() {
	end := func(fields ...string) {
		g.closeLanes()
		g.emit("RUN_FINISHED", append([]string{"threadId", `"t"`, "runId", `"r"`}, fields...)...)
	}
	switch g.IntN(8) {
	case 0: // LangGraph, CrewAI and Mastra ask
		g.emitOwn("CUSTOM", "name", `"on_interrupt"`, "value", pick(g, `"Erase it?"`, `{"id":"i1","reason":"asks","message":"Erase it?","toolCallId":null}`,
			`"{\"toolCallId\":\"c1\",\"runId\":\"r\"}"`, `{"message":"Erase it?"}`, "null"))
		if g.chance(40) {
			end("outcome", pick(g, "", "", "null", `{"type":"interrupt","interrupts":`+g.interrupts()+`}`))
		}
	case 1:
		end("outcome", `{"type":"interrupt","interrupts":[{"id":"i1","reason":"confirm","message":null,"toolCallId":null,"responseSchema":null,"expiresAt":null,"metadata":null}]}`)
	case 2:
		end("result", g.value(2), "usage", pick(g, `[{"inputTokens":1,"outputTokens":2}]`, `{"promptTokens":1,"completionTokens":2,"totalTokens":3}`, "null"))
	case 3:
		g.emitOwn("CUSTOM", "name", `"usage"`, "value", `{"input_token_count":1,"output_token_count":2}`)
	case 4: // Agent Framework's images, and members that are null
		g.closeLanes()
		g.emit("MESSAGES_SNAPSHOT", "messages", `[{"id":"m1","role":"user","content":[{"type":"text","text":"part"},{"type":"binary","mimeType":"`+
			pick(g, "image/png", "audio/wav", "video/mp4", "application/pdf")+`",`+pick(g, `"data":"AA=="`, `"url":"https://example.com/a"`)+`}]},`+
			`{"id":"m2","role":"assistant","content":null,"toolCalls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},`+
			`{"id":"m3","role":"assistant","content":"text","toolCalls":null,"name":null}]`)
	case 5: // LangGraph goes on after its error
		g.closeLanes()
		g.emit("RUN_ERROR", "message", `"failed"`)
		g.emitOwn("STATE_SNAPSHOT", "snapshot", g.object(2))
		end()
		if g.chance(70) {
			g.emit("RUN_STARTED", "threadId", `"t"`, "runId", `"r"`)
		}
	case 6: // TanStack AI gives a result the id of the message of its call
		message, call := g.messageID(), g.callID()
		g.emitOwn("TOOL_CALL_START", "toolCallId", call, "toolCallName", `"f"`, "parentMessageId", message)
		g.emitOwn("TOOL_CALL_ARGS", "toolCallId", call, "delta", g.text())
		g.emitOwn("TOOL_CALL_RESULT", "messageId", message, "toolCallId", call, "content", g.text())
	default: // what the client's library applies and RFC 6902 refuses
		g.emitOwn("STATE_DELTA", "delta", "["+pick(g, `{"op":"_get","path":"/a"}`, `{"op":"move","from":"/items/0","path":"/items/9"}`, `{"op":"add","path":"/items/01","value":1}`,
			`{"op":"add","path":"/items/","value":1}`, `{"op":"add","path":"/items/4294967296","value":1}`, `{"op":"add","path":"/__proto__/a","value":1}`,
			`{"op":"add","path":"/constructor","value":1}`, `{"op":"test","path":"/a","value":9007199254740993}`, `{"op":"add","path":"/a/b/c","value":1}`)+"]")
	}
}

// malformed emits an event that is skipped: it has a field of a type that the reducer does not take, or lacks one that it needs.
func (g *generator) malformed() {
	if g.chance(10) {
		g.events = append(g.events, []byte(pick(g, `{}`, `{"type":7}`, `{"type":null}`, `{"type":"toString"}`, `{"type":""}`)))
		return
	}
	if g.chance(10) {
		g.closeLanes()
		g.emit("RUN_FINISHED", "outcome", pick(g, `{"type":"interrupt"}`, `{"type":"interrupt","interrupts":7}`, `{"type":"interrupt","interrupts":null}`))
		return
	}
	t := pick(g, wildTypes...)
	f := pick(g, t.fields...)
	var wrong []string
	for kind, values := range map[string][]string{"string": {`"x"`}, "number": {"7"}, "boolean": {"true"}, "object": {"{}"}, "array": {"[]"}, "null": nil} {
		if kind == "null" && f.isNeeded {
			wrong = append(wrong, "null", "")
		} else if f.takes != "" && !strings.Contains(f.takes, kind) {
			wrong = append(wrong, values...)
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong) // the order of a map is not that of the seed
		skipped := *t
		skipped.closes = ""
		g.emitType(&skipped, f.name, pick(g, wrong...))
	}
}
