package compactiontest

import (
	"fmt"
	"slices"
)

// This file makes streams that the verifier of the official client accepts.

// A producer is the main agent or a subagent, with what it has open.
type producer struct {
	subagent  string // as a JSON string, "" for the main agent
	texts     []string
	reasoning []string
	calls     []string
	steps     []string
	ended     bool
}

// A run of a valid stream.
type run struct {
	producers  []*producer
	parents    []string // messages of the main agent
	called     []string // calls that are finished
	activities []string
}

func (g *generator) valid() {
	for number := 1; len(g.events) < g.Events; number++ {
		r := &run{producers: []*producer{{}}}
		input := ""
		if g.chance(50) {
			id := g.newID("user")
			input = fmt.Sprintf(`{"threadId":"t","runId":"run-%d","messages":[{"id":%s,"role":"user","content":%s}],"tools":[],"context":[]}`, number, id, g.text())
		}
		g.emit("RUN_STARTED", "threadId", `"t"`, "runId", fmt.Sprintf(`"run-%d"`, number), "input", input)
		for range 5 + g.IntN(g.Events/2+1) {
			g.step(r)
		}
		if g.chance(10) {
			g.closeLanes()
			g.emit("RUN_ERROR", "message", `"failed"`)
		} else {
			g.finish(r)
		}
	}
}

func (g *generator) newID(prefix string) string {
	g.fresh++
	return fmt.Sprintf(`"%s-%d"`, prefix, g.fresh)
}

// act emits an event of a producer, which ends its stream of chunks.
func (g *generator) act(p *producer, eventType string, fields ...string) {
	delete(g.lanes, p.subagent)
	g.emit(eventType, append(fields, "subagentRunId", p.subagent)...)
}

func (g *generator) step(r *run) {
	var active []*producer
	for _, p := range r.producers {
		if !p.ended {
			active = append(active, p)
		}
	}
	p := pick(g, active...)
	switch g.IntN(30) {
	case 0, 1:
		id := g.newID("text")
		g.act(p, "TEXT_MESSAGE_START", "messageId", id, "role", pick(g, "", `"assistant"`), "metadata", g.metadata())
		p.texts = append(p.texts, id)
		if p.subagent == "" {
			r.parents = append(r.parents, id)
		}
	case 2, 3, 4, 5, 6:
		if len(p.texts) > 0 {
			g.act(p, "TEXT_MESSAGE_CONTENT", "messageId", pick(g, p.texts...), "delta", g.text(), "metadata", g.metadata())
		}
	case 7:
		if id, ok := takeFirst(&p.texts); ok {
			g.act(p, "TEXT_MESSAGE_END", "messageId", id, "metadata", g.metadata())
		}
	case 8:
		id := g.newID("reasoning")
		g.act(p, "REASONING_MESSAGE_START", "messageId", id, "role", `"reasoning"`)
		p.reasoning = append(p.reasoning, id)
	case 9, 10:
		if len(p.reasoning) > 0 {
			g.act(p, "REASONING_MESSAGE_CONTENT", "messageId", pick(g, p.reasoning...), "delta", g.text())
		}
	case 11:
		if id, ok := takeFirst(&p.reasoning); ok {
			g.act(p, "REASONING_MESSAGE_END", "messageId", id)
		}
	case 12, 13:
		id, parent := g.newID("call"), ""
		if p.subagent == "" && len(r.parents) > 0 && g.chance(60) {
			parent = pick(g, r.parents...)
		}
		g.act(p, "TOOL_CALL_START", "toolCallId", id, "toolCallName", `"search"`, "parentMessageId", parent, "metadata", g.metadata())
		p.calls = append(p.calls, id)
	case 14, 15:
		if len(p.calls) > 0 {
			g.act(p, "TOOL_CALL_ARGS", "toolCallId", pick(g, p.calls...), "delta", g.text())
		}
	case 16:
		if id, ok := takeFirst(&p.calls); ok {
			g.act(p, "TOOL_CALL_END", "toolCallId", id, "metadata", g.metadata())
			r.called = append(r.called, id)
		}
	case 17:
		if len(r.called) > 0 {
			g.act(p, "TOOL_CALL_RESULT", "messageId", g.newID("result"), "toolCallId", pick(g, r.called...), "content", g.text(), "role", `"tool"`)
		}
	case 18:
		g.act(p, "STATE_SNAPSHOT", "snapshot", g.object(3))
	case 19, 20:
		g.act(p, "STATE_DELTA", "delta", g.patch())
	case 21:
		name := g.newID("step")
		g.act(p, "STEP_STARTED", "stepName", name)
		p.steps = append(p.steps, name)
	case 22:
		if name, ok := takeFirst(&p.steps); ok {
			g.act(p, "STEP_FINISHED", "stepName", name)
		}
	case 23:
		id := g.newID("activity")
		g.emit("ACTIVITY_SNAPSHOT", "messageId", id, "activityType", `"PLAN"`, "content", g.object(3), "metadata", g.metadata())
		r.activities = append(r.activities, id)
	case 24:
		if len(r.activities) > 0 {
			g.emit("ACTIVITY_DELTA", "messageId", pick(g, r.activities...), "activityType", `"PLAN"`, "patch", g.patch())
		}
	case 25:
		if g.chance(50) {
			g.emit("RAW", "event", g.value(1))
		} else {
			g.act(p, "CUSTOM", "name", `"n"`, "value", g.value(1))
		}
	case 26:
		if len(r.producers) < 4 {
			subagent := g.newID("subagent")
			g.emit("SUBAGENT_STARTED", "subagentRunId", subagent, "name", `"helper"`)
			r.producers = append(r.producers, &producer{subagent: subagent})
		} else if p.subagent != "" {
			g.endProducer(r, p)
			delete(g.lanes, p.subagent)
			g.emit("SUBAGENT_FINISHED", "subagentRunId", p.subagent)
			p.ended = true
		}
	case 27:
		if g.chance(20) {
			g.closeLanes()
			g.emit("MESSAGES_SNAPSHOT", "messages", fmt.Sprintf(`[{"id":%s,"role":"user","content":"from the server"}]`, g.newID("snapshot")))
		}
	default:
		g.validChunk(p)
	}
}

func (g *generator) validChunk(p *producer) {
	delta := pick(g, "", g.text(), g.text(), g.text())
	if open, ok := g.lanes[p.subagent]; ok && g.chance(75) {
		g.chunk(open.kind, pick(g, "", quoted(open.id)), p.subagent, delta, "")
		return
	}
	kind := pick(g, "text", "tool", "reasoning")
	id := g.newID("chunked")
	g.lanes[p.subagent] = stream{kind, id[1 : len(id)-1]}
	g.chunk(kind, id, p.subagent, delta, `"search"`)
}

// endProducer closes what a producer has open.
func (g *generator) endProducer(r *run, p *producer) {
	for _, id := range p.texts {
		g.act(p, "TEXT_MESSAGE_END", "messageId", id)
	}
	for _, id := range p.reasoning {
		g.act(p, "REASONING_MESSAGE_END", "messageId", id)
	}
	for _, id := range p.calls {
		g.act(p, "TOOL_CALL_END", "toolCallId", id)
		r.called = append(r.called, id)
	}
	for _, name := range p.steps {
		g.act(p, "STEP_FINISHED", "stepName", name)
	}
	*p = producer{subagent: p.subagent}
}

func (g *generator) finish(r *run) {
	for _, p := range r.producers {
		if !p.ended {
			g.endProducer(r, p)
			if p.subagent != "" {
				g.emit("SUBAGENT_FINISHED", "subagentRunId", p.subagent)
			}
		}
	}
	g.closeLanes()
	outcome := pick(g, "", `{"type":"success"}`, `{"type":"interrupt","interrupts":`+g.interrupts()+`}`)
	g.emit("RUN_FINISHED", "threadId", `"t"`, "runId", fmt.Sprintf(`"run-%d"`, g.fresh), "outcome", outcome)
}

func takeFirst(list *[]string) (string, bool) {
	if len(*list) == 0 {
		return "", false
	}
	first := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	return first, true
}
