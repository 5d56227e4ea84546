package otelagui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/protocol"
)

// runName names a run in all scopes.
type runName struct{ scope, threadID, runID string }

// tracedRun is what the spans of a run say. It is read from the log: facts come later, and have no contents.
type tracedRun struct {
	pgagui.Change
	pgagui.RunEnd
	agent     string
	usage     []pgagui.ModelUsage
	calls     []*toolCall // in the order in which they began
	subagents []pgagui.Subagent
	remote    trace.SpanContext // of traceparent; not valid if there is none
	parent    trace.SpanContext // of the run that it continues; not valid if there is none

	// With contents.
	input  []json.RawMessage // messages of AG-UI
	output [][]byte          // what the assistant said, by message
}

func (r *tracedRun) name() runName { return runName{r.Scope, r.ThreadID, r.RunID} }

// toolCall is a tool call as the events of its run tell it. The rules are those of agui.tool_fact.
type toolCall struct {
	id, tool, subagent          string
	seq                         int64 // of its first event
	startedAt, lastAt           time.Time
	hasStart, hasEnd, hasResult bool
	arguments                   []byte
	result, errorText           string
	isError                     bool
}

func (c *toolCall) status(run pgagui.Status) string {
	switch {
	case c.isError:
		return "failed"
	case c.hasResult:
		return "completed"
	case run == pgagui.Cancelled || run == pgagui.Failed || run == pgagui.CutOff || c.hasStart && !c.hasEnd:
		return "cut_off"
	default:
		return "called"
	}
}

// read reads a run that has ended.
func (t *Traces) read(ctx context.Context, change pgagui.Change) (*tracedRun, error) {
	store := t.store.InScope(change.Scope)
	run := &tracedRun{Change: change}
	if change.Status == pgagui.Failed || change.Status == pgagui.CutOff {
		status, err := store.Status(ctx, pgagui.RunRef{ThreadID: change.ThreadID, RunID: change.RunID})
		if err != nil {
			return nil, err
		}
		run.RunEnd = status.RunEnd
	}
	thread, err := store.Thread(ctx, change.ThreadID)
	if err != nil {
		return nil, err
	}
	run.agent = thread.Agent
	usage, err := store.Usage(ctx, change.ThreadID, pgagui.UsageOptions{RunID: change.RunID, NoLineage: true})
	if err != nil {
		return nil, err
	}
	run.usage = usage.Models
	if err := t.readEvents(ctx, store, run); err != nil {
		return nil, err
	}
	if change.ParentRunID != "" {
		run.parent, err = t.spanOf(ctx, store, runName{change.Scope, change.ThreadID, change.ParentRunID})
	}
	return run, err
}

// eventTypes are the types of the events that spans are made of.
type eventTypes struct {
	tool, text, subagent protocol.Part
	results              []string
}

var typesOfSpans = sync.OnceValue(func() (types eventTypes) {
	list := protocol.Events()
	parts := map[string]*protocol.Part{"tool": &types.tool, "text": &types.text, "subagent": &types.subagent}
	for _, part := range list.Parts {
		if wanted := parts[part.Name]; wanted != nil {
			*wanted = part
		}
	}
	for _, t := range list.Types {
		if t.Does == "add result" {
			types.results = append(types.results, t.Name)
		}
	}
	return types
})

// readEvents reads the events of a run that its spans are made of.
func (t *Traces) readEvents(ctx context.Context, store *pgagui.Store, run *tracedRun) error {
	reader := runReader{
		run: run, contents: t.options.Contents, types: typesOfSpans(), calls: map[string]*toolCall{}, lastChunks: map[string]string{}, texts: map[string]int{},
	}
	for event, err := range store.Events(ctx, run.ThreadID, pgagui.EventsOptions{RunID: run.RunID, NoLineage: true}) {
		if err != nil {
			return err
		}
		reader.take(event)
	}
	run.calls = slices.DeleteFunc(run.calls, func(call *toolCall) bool { return call.tool == "" })
	if t.options.Contents && !reader.hasInput {
		input, err := store.RunInput(ctx, pgagui.RunRef{ThreadID: run.ThreadID, RunID: run.RunID})
		switch {
		case err == nil:
			reader.takeInput(input)
		case !errors.Is(err, pgagui.ErrUnknownInput):
			return err
		}
	}
	if !reader.hasSubagents {
		return nil
	}
	var err error
	run.subagents, err = store.Subagents(ctx, run.ThreadID, pgagui.SubagentsOptions{At: pgagui.At{RunID: run.RunID}, NoLineage: true})
	return err
}

// runReader takes the events of a run.
type runReader struct {
	run                    *tracedRun
	contents               bool
	types                  eventTypes
	calls                  map[string]*toolCall
	lastChunks             map[string]string // by subagent: the call or message of its last chunk
	texts                  map[string]int    // by messageId: the place in run.output
	hasInput, hasSubagents bool
}

// members are those of an event that spans are made of.
type members map[string]json.RawMessage

func membersOf(object []byte) members {
	of := members{}
	if object = bytes.TrimLeft(object, " \t\r\n"); isObject(object) {
		for name, value := range compaction.Members(object) {
			of[name] = value
		}
	}
	return of
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// text returns a member that is a string.
func (m members) text(name string) (text string, isText bool) {
	if value := m[name]; len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return "", false
	}
	return text, true
}

func (r *runReader) take(event pgagui.Event) {
	is := func(types []string) bool { return slices.Contains(types, event.Type) }
	part := r.types.tool
	isOfCall := is(part.Starts) || is(part.Continues) || is(part.Ends) || is(part.Chunks) || is(r.types.results)
	part = r.types.text
	isOfText := r.contents && (is(part.Starts) || is(part.Continues) || is(part.Chunks))
	switch {
	case event.Type == "RUN_STARTED":
		of := membersOf(event.JSON)
		if !r.run.remote.IsValid() {
			r.run.remote = remoteSpan(of)
		}
		if isObject(of["input"]) && r.contents && !r.hasInput {
			r.takeInput(of["input"])
		}
	case is(r.types.subagent.Starts):
		r.hasSubagents = true
	case isOfCall:
		r.takeCall(event, membersOf(event.JSON))
	case isOfText:
		r.takeText(membersOf(event.JSON), is(part.Chunks))
	}
}

// partOf returns the id of the message or tool call that an event is about. A chunk without an id continues
// the chunk before it.
func (r *runReader) partOf(of members, name string, isChunk bool) string {
	id, hasID := of.text(name)
	if isChunk {
		lane := name + string(of["subagentRunId"])
		if !hasID {
			return r.lastChunks[lane]
		}
		r.lastChunks[lane] = id
	}
	return id
}

func (r *runReader) takeText(of members, isChunk bool) {
	id := r.partOf(of, r.types.text.ID, isChunk)
	place, isKnown := r.texts[id]
	if !isKnown {
		if role, hasRole := of.text("role"); hasRole && role != "assistant" {
			place = -1
		} else {
			place = len(r.run.output)
			r.run.output = append(r.run.output, nil)
		}
		r.texts[id] = place
	}
	if delta, _ := of.text("delta"); place >= 0 {
		r.run.output[place] = append(r.run.output[place], delta...)
	}
}

func (r *runReader) takeCall(event pgagui.Event, of members) {
	id := r.partOf(of, r.types.tool.ID, slices.Contains(r.types.tool.Chunks, event.Type))
	if id == "" {
		return
	}
	call := r.calls[id]
	if call == nil {
		call = &toolCall{id: id, seq: event.Seq}
		r.calls[id] = call
		r.run.calls = append(r.run.calls, call)
	}
	if slices.Contains(r.types.results, event.Type) {
		call.hasResult, call.lastAt = true, event.RecordedAt
		call.result, _ = of.text("content")
		call.result = cmp.Or(call.result, string(of["content"]))
		call.errorText, call.isError = toolError(of)
		return
	}
	if name, isNamed := of.text("toolCallName"); isNamed && call.tool == "" {
		call.tool, call.startedAt = name, event.RecordedAt
		call.subagent, _ = of.text(r.types.subagent.ID)
	}
	call.hasStart = call.hasStart || slices.Contains(r.types.tool.Starts, event.Type)
	call.hasEnd = call.hasEnd || slices.Contains(r.types.tool.Ends, event.Type)
	if delta, _ := of.text("delta"); r.contents {
		call.arguments = append(call.arguments, delta...)
	}
	if !call.hasResult {
		call.lastAt = event.RecordedAt
	}
}

// takeInput keeps what the run was asked: the messages of its input behind the last one of the assistant.
// Clients send the whole conversation with each run.
func (r *runReader) takeInput(input []byte) {
	r.hasInput = true
	messages := membersOf(input)["messages"]
	for message, err := range compaction.Split(messages) {
		if err != nil {
			return // it is no array
		}
		if role, _ := membersOf(message).text("role"); role == "assistant" {
			r.run.input = nil
			continue
		}
		r.run.input = append(r.run.input, message)
	}
}

var (
	// Some agents write the result as JSON, and then as the JSON of that text.
	saysErrorInString = regexp.MustCompile(`^\s*"(Error|\s*\{)`)

	saysError    = regexp.MustCompile(`^Error($|[^\pL\pN_])`)
	hasError     = regexp.MustCompile(`^\s*\{\s*"error"\s*:\s*`)
	isErrorOfMCP = regexp.MustCompile(`"isError"\s*:\s*true`)
)

// toolError returns what failed according to a result: the same as agui_internal.tool_error.
func toolError(result members) (text string, isError bool) {
	switch value := string(result["error"]); value {
	case "", "null", "false", `""`:
	default:
		if text, isText := result.text("error"); isText {
			return text, true
		}
		return value, true
	}
	content, _ := result.text("content")
	if saysErrorInString.MatchString(content) {
		var inner string
		if json.Unmarshal([]byte(content), &inner) == nil {
			content = inner
		}
	}
	isNothing := func(value string) bool {
		return strings.HasPrefix(value, "null") || strings.HasPrefix(value, "false") || strings.HasPrefix(value, `""`)
	}
	isError = saysError.MatchString(content)
	if strings.HasPrefix(strings.TrimSpace(content), "{") {
		head := hasError.FindString(content)
		isError = head != "" && !isNothing(content[len(head):]) || isErrorOfMCP.MatchString(content)
	}
	if !isError {
		content = ""
	}
	return content, isError
}

// remoteSpan returns the span that RUN_STARTED names as the caller of the run.
func remoteSpan(started members) trace.SpanContext {
	for _, of := range []members{membersOf(started["metadata"]), membersOf(membersOf(started["input"])["forwardedProps"])} {
		carrier := propagation.MapCarrier{}
		for _, name := range (propagation.TraceContext{}).Fields() {
			if value, isText := of.text(name); isText {
				carrier[name] = value
			}
		}
		caller := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
		if caller.IsValid() {
			return caller
		}
	}
	return trace.SpanContext{}
}

// spanOf returns the span of a run. Its trace is only known from the beginning of its log.
func (t *Traces) spanOf(ctx context.Context, store *pgagui.Store, name runName) (trace.SpanContext, error) {
	if run, isKnown := t.known[name]; isKnown {
		return run.span, nil
	}
	page, err := store.History(ctx, name.threadID, pgagui.HistoryOptions{
		RunID: name.runID, NoLineage: true, Types: []string{"RUN_STARTED"}, Limit: 1, Raw: true,
	})
	if err != nil {
		return trace.SpanContext{}, err
	}
	var remote trace.SpanContext
	if len(page.Events) > 0 {
		remote = remoteSpan(membersOf(page.Events[0].JSON))
	}
	return t.remember(name, remote), nil
}

func (t *Traces) remember(name runName, remote trace.SpanContext) trace.SpanContext {
	if len(t.known) >= mostKnown {
		clear(t.known)
	}
	run := knownRun{span: spanContext(name, remote), sentSeq: t.known[name].sentSeq}
	t.known[name] = run
	return run.span
}
