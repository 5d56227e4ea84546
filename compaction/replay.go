package compaction

import (
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Replay returns a short stream of events that gives any AG-UI client, from an empty state, what
// the fold means: the RUN_STARTED of the run without the messages of its input, a
// MESSAGES_SNAPSHOT, a STATE_SNAPSHOT, and the end of the run. A run in progress has no end;
// instead its open streams of chunks and of thinking are reopened, except those whose message or call is gone.
//
// started is the RUN_STARTED of the last run of the fold, or a bare one (threadId, runId) if the
// run has none. ended is its last RUN_FINISHED or RUN_ERROR, nil while it is in progress. Open
// interrupts of an earlier run come first, as the end of that run.
func (f *Fold) Replay(started, ended json.RawMessage) []json.RawMessage {
	var e event
	if !e.scanWhole(started, nil) {
		e.clear()
	}
	var events []json.RawMessage
	after := New()
	after.Apply(ended)
	questions := sources(f.interrupts)
	switch {
	case string(after.interrupts) == string(f.interrupts):
	case len(questions) > 0 && EventType(ended) == "RUN_FINISHED": // the run asked
	default:
		events = append(events, f.interrupted(started, questions)...)
		questions = nil
	}
	events = append(events, withoutMessages(started, &e), newEvent("MESSAGES_SNAPSHOT", eventField{"messages", bodies(f.Messages())}), newEvent("STATE_SNAPSHOT", eventField{"snapshot", f.State()}))
	if id := f.thinking.message; id != nil && f.knows(lane{kind: thinkingStream, id: id}) {
		events = append(events, newEvent("REASONING_MESSAGE_START", eventField{"messageId", id}, eventField{"role", []byte(`"reasoning"`)}))
	}
	for _, l := range f.lanes {
		if f.knows(l) {
			events = append(events, streamOf(l.kind, l.id, f).chunk(l.subagent))
		}
	}
	if events = append(events, questions...); ended != nil {
		return append(events, ended)
	}
	for _, interrupt := range f.asked {
		events = append(events, rawjson.MemberOf(interrupt, "source"))
	}
	return events
}

// interrupted writes an earlier run that ended with the interrupts: it asked the questions, or had them as its outcome.
func (f *Fold) interrupted(started json.RawMessage, questions []json.RawMessage) []json.RawMessage {
	thread := eventField{"threadId", rawjson.MemberOf(started, "threadId")}
	run := eventField{"runId", rawjson.MemberOf(started, "parentRunId")}
	if run.value == nil || kindOf(run.value) != isString {
		run.value = rawjson.MemberOf(started, "runId")
	}
	if len(questions) > 0 {
		return slices.Concat([]json.RawMessage{newEvent("RUN_STARTED", thread, run)}, questions, []json.RawMessage{newEvent("RUN_FINISHED", thread, run)})
	}
	outcome := append([]byte(`{"type":"interrupt","interrupts":`), f.interrupts...)
	return []json.RawMessage{
		newEvent("RUN_STARTED", thread, run),
		newEvent("RUN_FINISHED", thread, run, eventField{"outcome", append(outcome, '}')}),
	}
}

func withoutMessages(started json.RawMessage, e *event) json.RawMessage {
	if input := e.values[fieldInput]; input != nil && kindOf(input) == isObject {
		if list := rawjson.MemberOf(input, "messages"); list != nil && list[0] == '[' {
			return withMessages(started, []byte("[]"))
		}
	}
	return started
}

// knows reports whether the fold has a message or call with the id of a stream.
func (f *Fold) knows(l lane) bool {
	id, _ := jsontree.StringValue(jsontree.Raw(l.id))
	if l.kind == toolStream {
		_, ok := f.findCall([]byte(id))
		return ok
	}
	return f.find([]byte(id)) >= 0
}
