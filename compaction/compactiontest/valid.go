package compactiontest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// This file makes streams that the verifier of the official client accepts, and such that break its rules for the beginning and
// the end of a run alone. It keeps what that verifier keeps: what is open, and which agent owns an id.

// A run of a valid stream. Ids and subagents are JSON strings; the main agent is "".
type run struct {
	id         string
	subagents  []string
	finished   map[string]bool   // subagents
	open       map[entity]string // what a start opened and no end closed, with its owner
	ended      []entity          // what may be started anew
	owners     map[entity]string
	steps      map[step]bool
	activities []string
	last       string // of its events, the last that is one of the run itself
}

// An entity is what an id names; the same id may name one of each kind.
type entity struct{ kind, id string }

type step struct{ subagent, name string }

// The kinds of entities that begin and end. Of a span of reasoning and the messages in it, one owner is kept.
var (
	streamed = []string{"text", "tool", "reasoning"}
)

func (e entity) ownerKey() entity {
	if e.kind == "span" {
		return entity{"reasoning", e.id}
	}
	return e
}

func (e entity) idField() string {
	if e.kind == "tool" {
		return "toolCallId"
	}
	return "messageId"
}

func (g *generator) valid() {
	var r *run
	for len(g.events) < g.Events {
		r = g.newRun(r)
		if g.Broken && g.runs == 1 && g.chance(30) {
			g.steps(r, 1+g.IntN(5))
		}
		g.startRun(r)
		for range 5 + g.IntN(g.Events/2+1) {
			if g.steps(r, 1); g.Broken && g.chance(8) {
				g.breakRules(r)
			}
		}
		if !g.Broken || r.last == "RUN_STARTED" || g.chance(50) {
			g.endRun(r)
		}
		if g.Broken && g.chance(40) {
			g.steps(r, 1+g.IntN(5)) // also what the next run sends before its RUN_STARTED
		}
	}
}

func (g *generator) newRun(before *run) *run {
	g.runs++
	if before != nil && (before.last == "RUN_ERROR" || !before.hasOpen()) && g.chance(10) {
		g.runs-- // the same run, started anew
	}
	return &run{id: fmt.Sprintf(`"run-%d"`, g.runs), finished: map[string]bool{}, open: map[entity]string{}, owners: map[entity]string{}, steps: map[step]bool{}}
}

func (g *generator) steps(r *run, count int) {
	for range count {
		g.step(r)
	}
}

// breakRules ends or starts a run in its middle.
func (g *generator) breakRules(r *run) {
	switch g.IntN(3) {
	case 0:
		g.finishRun(r)
	case 1:
		g.failRun(r)
	default:
		if r.last == "RUN_ERROR" {
			g.close(r) // for this starts anew
		}
		g.startRun(r)
	}
}

func (g *generator) startRun(r *run) {
	r.last = "RUN_STARTED"
	g.closeLanes()
	input := ""
	if g.chance(50) {
		var list []string
		for _, id := range g.ids {
			if g.chance(30) {
				list = append(list, g.validMessage(r, id, false))
			}
		}
		list = append(list, g.userMessage(r))
		input = fmt.Sprintf(`{"threadId":"t","runId":%s,"messages":[%s],"tools":[],"context":[]}`, r.id, strings.Join(list, ","))
	}
	g.emit("RUN_STARTED", "threadId", `"t"`, "runId", r.id, "input", input)
}

func (g *generator) endRun(r *run) {
	if g.chance(10) {
		g.failRun(r) // whatever is open
		return
	}
	g.close(r)
	g.finishRun(r)
	if g.chance(5) {
		g.failRun(r)
	}
}

func (g *generator) finishRun(r *run) {
	r.last = "RUN_FINISHED"
	g.closeLanes()
	outcome := pick(g, "", `{"type":"success"}`, `{"type":"interrupt","interrupts":`+g.interrupts()+`}`)
	g.emit(r.last, "threadId", `"t"`, "runId", r.id, "outcome", outcome)
}

func (g *generator) failRun(r *run) {
	r.last = "RUN_ERROR"
	g.closeLanes()
	g.emit(r.last, "message", `"failed"`)
}

func (r *run) hasOpen() bool {
	return len(r.open) > 0 || len(r.steps) > 0 || slices.ContainsFunc(r.subagents, func(s string) bool { return !r.finished[s] })
}

// close ends all that is open.
func (g *generator) close(r *run) {
	for _, e := range slices.SortedFunc(maps.Keys(r.open), func(a, b entity) int { return strings.Compare(a.kind+a.id, b.kind+b.id) }) {
		g.end(r, e)
	}
	for _, s := range slices.SortedFunc(maps.Keys(r.steps), func(a, b step) int { return strings.Compare(a.subagent+a.name, b.subagent+b.name) }) {
		g.act(s.subagent, "STEP_FINISHED", "stepName", s.name)
	}
	clear(r.steps)
	for _, s := range r.subagents {
		if !r.finished[s] {
			g.finishSubagent(r, s)
		}
	}
}

func (g *generator) newID(prefix string) string {
	g.fresh++
	id := fmt.Sprintf(`"%s-%d"`, prefix, g.fresh)
	g.ids = append(g.ids, id)
	return id
}

// anyID returns a new id or, sometimes, one that the stream has used for anything.
func (g *generator) anyID(prefix string) string {
	if len(g.ids) > 0 && g.chance(30) {
		return pick(g, g.ids[max(0, len(g.ids)-8):]...)
	}
	return g.newID(prefix)
}

// act emits an event of an agent, which ends its stream of chunks.
func (g *generator) act(subagent, eventType string, fields ...string) {
	delete(g.lanes, subagent)
	g.emit(eventType, append(fields, "subagentRunId", subagent)...)
}

// goOn emits an event about something that is open. Only the start of something needs to name the agent.
func (g *generator) goOn(subagent, eventType string, fields ...string) {
	if g.chance(15) {
		subagent = ""
	}
	g.act(subagent, eventType, fields...)
}

// mayStart reports whether an agent may start something, by an event or by a chunk.
func (g *generator) mayStart(r *run, e entity, subagent string, byChunk bool) bool {
	if owner, ok := r.owners[e.ownerKey()]; ok && owner != subagent {
		return false
	}
	for lane, open := range g.lanes {
		if open.kind == e.kind && quoted(open.id) == e.id && (byChunk || lane != subagent) {
			return false
		}
	}
	_, isOpen := r.open[e]
	return !isOpen
}

// parent returns a message that a new call of an agent may belong to, or none.
func (g *generator) parent(r *run, call entity, subagent string) string {
	if g.chance(40) {
		return ""
	}
	id := g.anyID("text")
	owner, ok := r.owners[entity{"text", id}]
	if !ok && r.owners[call] == subagent || ok && owner == subagent {
		r.owners[entity{"text", id}] = subagent
		return id
	}
	return ""
}

func (g *generator) start(r *run, kind, subagent string) {
	e := entity{kind, g.anyID(kind)}
	if len(r.ended) > 0 && g.chance(25) {
		e = pick(g, r.ended...)
		kind, subagent = e.kind, r.owners[e.ownerKey()]
	}
	if !g.mayStart(r, e, subagent, false) {
		return
	}
	eventType, fields := pick(g, typesOf("start", kind)...), []string{e.idField(), e.id}
	switch kind {
	case "text":
		fields = append(fields, "role", pick(g, "", `"assistant"`), "metadata", g.metadata())
	case "tool":
		fields = append(fields, "toolCallName", pick(g, `"search"`, `"search"`, `"find"`), "parentMessageId", g.parent(r, e, subagent), "metadata", g.metadata())
	case "reasoning":
		fields = append(fields, "role", `"reasoning"`)
	}
	g.act(subagent, eventType, fields...)
	r.open[e], r.owners[e.ownerKey()] = subagent, subagent
}

func (g *generator) end(r *run, e entity) {
	g.goOn(r.open[e], pick(g, typesOf("end", e.kind)...), e.idField(), e.id, "metadata", g.metadata())
	delete(r.open, e)
	r.ended = append(r.ended, e)
}

// pickOpen returns something of a kind that is open.
func (g *generator) pickOpen(r *run, kinds ...string) (entity, bool) {
	var open []entity
	for e := range r.open {
		if slices.Contains(kinds, e.kind) {
			open = append(open, e)
		}
	}
	if len(open) == 0 {
		return entity{}, false
	}
	slices.SortFunc(open, func(a, b entity) int { return strings.Compare(a.kind+a.id, b.kind+b.id) })
	return pick(g, open...), true
}

func (g *generator) step(r *run) {
	subagent := ""
	if len(r.subagents) > 0 && g.chance(50) {
		subagent = pick(g, r.subagents...) // one that has finished may have events left
	}
	switch g.IntN(34) {
	case 0, 1:
		g.start(r, "text", subagent)
	case 2, 3, 4, 5, 6, 7, 8:
		if e, ok := g.pickOpen(r, streamed...); ok {
			g.goOn(r.open[e], pick(g, typesOf("continue", e.kind)...), e.idField(), e.id, "delta", g.text(), "metadata", g.metadata())
		}
	case 9, 10, 11:
		if e, ok := g.pickOpen(r, "text", "tool", "reasoning", "span"); ok {
			g.end(r, e)
		}
	case 12:
		g.start(r, "reasoning", subagent)
	case 13:
		g.start(r, "span", subagent)
	case 14, 15:
		g.start(r, "tool", subagent)
	case 16:
		if calls := g.called(r); len(calls) > 0 {
			id := g.anyID("result")
			if owner, ok := r.owners[entity{"text", id}]; !ok || owner == subagent {
				g.act(subagent, "TOOL_CALL_RESULT", "messageId", id, "toolCallId", pick(g, calls...), "content", g.text(), "role", `"tool"`)
				r.owners[entity{"text", id}] = subagent
			}
		}
	case 17:
		if calls := g.called(r); len(calls) > 0 {
			id := pick(g, calls...)
			g.encrypt("tool-call", id, r.owners[entity{"tool", id}])
		}
	case 18:
		e := entity{pick(g, "text", "reasoning"), g.anyID("text")}
		if owner, ok := r.owners[entity{"text", e.id}]; ok {
			g.encrypt("message", e.id, owner)
		} else {
			g.encrypt("message", e.id, r.owners[entity{"reasoning", e.id}])
		}
	case 19:
		g.act(subagent, "STATE_SNAPSHOT", "snapshot", g.object(3))
	case 20, 21:
		g.act(subagent, "STATE_DELTA", "delta", g.patch())
	case 22:
		s := step{subagent, pick(g, `"plan"`, `"act"`)}
		if r.steps[s] {
			g.act(subagent, "STEP_FINISHED", "stepName", s.name)
			delete(r.steps, s)
		} else {
			g.act(subagent, "STEP_STARTED", "stepName", s.name)
			r.steps[s] = true
		}
	case 23, 24:
		g.activity(r, subagent)
	case 25:
		if g.chance(50) {
			g.emit("RAW", "event", g.value(1))
		} else {
			g.act(subagent, "CUSTOM", "name", `"n"`, "value", g.value(1))
		}
	case 26:
		if len(r.subagents) < 3 {
			started := g.newID("subagent")
			g.emit("SUBAGENT_STARTED", "subagentRunId", started, "name", `"helper"`)
			r.subagents = append(r.subagents, started)
		} else if subagent != "" && !r.finished[subagent] {
			g.finishSubagent(r, subagent)
		}
	case 27:
		g.snapshot(r)
	default:
		g.validChunk(r, subagent)
	}
}

// called returns the calls of a run.
func (g *generator) called(r *run) (ids []string) {
	for e := range r.owners {
		if e.kind == "tool" {
			ids = append(ids, e.id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (g *generator) encrypt(subtype, id, owner string) {
	g.emit("REASONING_ENCRYPTED_VALUE", "subtype", quoted(subtype), "entityId", id, "encryptedValue", g.text(), "subagentRunId", pick(g, "", owner))
}

func (g *generator) activity(r *run, subagent string) {
	e := entity{"activity", ""}
	if len(r.activities) > 0 && g.chance(60) {
		e.id = pick(g, r.activities...)
		if g.chance(70) {
			g.emit("ACTIVITY_DELTA", "messageId", e.id, "activityType", `"PLAN"`, "patch", g.patch(), "subagentRunId", pick(g, "", r.owners[e]))
			return
		}
	} else {
		e.id = g.anyID("activity")
		r.activities = append(r.activities, e.id)
	}
	replace := pick(g, "", "", "true", "false")
	g.emit("ACTIVITY_SNAPSHOT", "messageId", e.id, "activityType", `"PLAN"`, "content", g.object(3), "replace", replace, "subagentRunId", subagent, "metadata", g.metadata())
	if _, ok := r.owners[e]; !ok || replace != "false" {
		r.owners[e] = subagent
	}
}

func (g *generator) finishSubagent(r *run, subagent string) {
	if g.chance(20) {
		g.act(subagent, "SUBAGENT_ERROR", "message", `"failed"`)
	} else {
		g.act(subagent, "SUBAGENT_FINISHED")
	}
	r.finished[subagent] = true
}

// snapshot emits a list of messages: some that the stream has, also while they are open, and a new one.
func (g *generator) snapshot(r *run) {
	g.closeLanes()
	var list []string
	for _, id := range g.ids {
		if g.chance(50) {
			list = append(list, g.validMessage(r, id, true))
		}
	}
	if g.chance(50) {
		list = append(list, g.userMessage(r))
	}
	g.emit("MESSAGES_SNAPSHOT", "messages", "["+strings.Join(list, ",")+"]")
}

// userMessage writes a new message for a snapshot or an input.
func (g *generator) userMessage(r *run) string {
	id := g.newID("user")
	r.owners[entity{"text", id}] = ""
	return fmt.Sprintf(`{"id":%s,"role":"user","content":%s}`, id, g.text())
}

// validMessage writes a message with an id, for a snapshot or an input, with the owner that the run knows.
func (g *generator) validMessage(r *run, id string, isSnapshot bool) string {
	kind, role, more := "text", pick(g, "assistant", "assistant", "user", "reasoning", "activity"), `,"content":`+g.text()
	switch role {
	case "reasoning":
		kind = role
	case "activity":
		kind, more = role, `,"activityType":"PLAN","content":`+g.object(2)
	}
	e := entity{kind, id}
	owner, known := r.owners[e]
	if !known {
		owner = pick(g, append([]string{"", ""}, r.subagents...)...)
	}
	if known && isSnapshot && g.chance(10) && r.open[e] == "" && r.open[entity{"span", id}] == "" {
		owner = "" // a list says anew whose its messages are
	}
	var calls []string
	for _, call := range g.ids {
		c := entity{"tool", call}
		callOwner, called := r.owners[c]
		if role == "assistant" && (called && callOwner == owner && g.chance(40) || !called && g.chance(3)) {
			calls = append(calls, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":"search","arguments":%s}}`, call, g.text()))
			r.owners[c] = owner
		}
	}
	r.owners[e] = owner
	if len(calls) > 0 {
		more += `,"toolCalls":[` + strings.Join(calls, ",") + "]"
	}
	if owner != "" {
		more += `,"subagentRunId":` + owner
	}
	return fmt.Sprintf(`{"id":%s,"role":%s%s}`, id, quoted(role), more)
}

func (g *generator) validChunk(r *run, subagent string) {
	delta := pick(g, "", g.text(), g.text(), g.text())
	if open, ok := g.lanes[subagent]; ok && g.chance(75) {
		g.chunk(open.kind, pick(g, "", quoted(open.id)), subagent, delta, "")
		return
	}
	e := entity{kind: pick(g, streamed...)}
	e.id = g.anyID("chunked")
	if !g.mayStart(r, e, subagent, true) {
		return
	}
	r.owners[e] = subagent
	g.lanes[subagent] = stream{e.kind, e.id[1 : len(e.id)-1]}
	g.chunk(e.kind, e.id, subagent, delta, `"search"`)
}
