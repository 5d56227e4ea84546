package otelagui

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
)

// Attributes of the spans of runs, beside those of the conventions.
const (
	ScopeKey       = attribute.Key("pgagui.scope")
	RunIDKey       = attribute.Key("pgagui.run_id")
	ParentRunIDKey = attribute.Key("pgagui.parent_run_id")
	// StatusKey is how a run, a subagent or a tool call ended, as pgagui.Status, pgagui.SubagentStatus and
	// the column status of agui.tool_fact say it.
	StatusKey = attribute.Key("pgagui.status")
)

// RunSpanContext returns the trace and the span that Traces makes of a run of a scope, for a link to it. If
// the run names a traceparent, its trace is that one and only the id of the span is right.
func RunSpanContext(scope string, run pgagui.RunRef) trace.SpanContext {
	return spanContext(runName{scope, run.ThreadID, run.RunID}, trace.SpanContext{})
}

// spanContext returns the span of a run. remote is its caller, if it is valid.
func spanContext(name runName, remote trace.SpanContext) trace.SpanContext {
	sum := hashOf("run", name)
	config := trace.SpanContextConfig{TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled}
	if remote.IsValid() {
		config.TraceID, config.TraceFlags, config.TraceState = remote.TraceID(), remote.TraceFlags(), remote.TraceState()
	}
	return trace.NewSpanContext(config)
}

// hashOf is where ids come from. The length of a part stands before it, so that no two names have one text.
func hashOf(kind string, name runName, parts ...string) (sum [sha256.Size]byte) {
	var text []byte
	for _, part := range append([]string{kind, name.scope, name.threadID, name.runID}, parts...) {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}

// chosenIDs gives a span the ids that its context carries.
type (
	chosenIDs struct{}
	chosen    struct{}
)

func withID(ctx context.Context, span trace.SpanContext) context.Context {
	return context.WithValue(ctx, chosen{}, span)
}

func (chosenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	span := ctx.Value(chosen{}).(trace.SpanContext)
	return span.TraceID(), span.SpanID()
}

func (chosenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	return ctx.Value(chosen{}).(trace.SpanContext).SpanID()
}

// makeSpans makes the spans of a run, those of its parts last.
func (t *Traces) makeSpans(run *tracedRun) {
	self := t.remember(run.name(), run.remote)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), run.remote)
	options := []trace.SpanStartOption{
		trace.WithTimestamp(run.StartedAt), trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(t.attributesOf(run)...),
	}
	if run.parent.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: run.parent}))
	}
	_, span := t.tracer.Start(withID(ctx, self), join("invoke_agent", run.agent), options...)
	switch run.Status {
	case pgagui.Failed:
		fail(span, run.ErrorCode, run.ErrorMessage)
	case pgagui.CutOff:
		fail(span, string(run.Status), run.CutOffReason)
	}
	span.End(trace.WithTimestamp(run.EndedAt))

	parts := parts{tracer: t.tracer, run: run, span: span.SpanContext(), began: map[trace.SpanID]int64{}}
	for _, subagent := range run.subagents {
		parts.began[parts.id("subagent", subagent.ID)] = subagent.FirstSeq
	}
	for _, call := range run.calls {
		parts.began[parts.id("call", call.id)] = call.seq
	}
	for _, subagent := range run.subagents {
		parts.makeSubagent(subagent)
	}
	for _, call := range run.calls {
		parts.makeCall(call, t.options.Contents)
	}
	if len(run.usage) > 1 {
		for _, usage := range run.usage {
			parts.makeModel(usage)
		}
	}
}

func join(operation, name string) string { return strings.TrimSuffix(operation+" "+name, " ") }

// fail says that what a span stands for failed. A code that is missing is the "other" of the conventions.
func fail(span trace.Span, code, message string) {
	kind := semconv.ErrorTypeOther
	if code != "" {
		kind = semconv.ErrorTypeKey.String(code)
	}
	span.SetAttributes(kind)
	span.SetStatus(codes.Error, message)
}

func (t *Traces) attributesOf(run *tracedRun) []attribute.KeyValue {
	of := []attribute.KeyValue{
		semconv.GenAIOperationNameInvokeAgent, semconv.GenAIConversationID(run.ThreadID), RunIDKey.String(run.RunID), StatusKey.String(string(run.Status)),
	}
	of = appendText(of, semconv.GenAIAgentNameKey, run.agent)
	of = appendText(of, ScopeKey, run.Scope)
	of = appendText(of, ParentRunIDKey, run.ParentRunID)
	of = appendUsage(of, totalOf(run.usage))
	if t.options.Contents {
		of = appendMessages(of, semconv.GenAIInputMessagesKey, inputMessages(run.input))
		of = appendMessages(of, semconv.GenAIOutputMessagesKey, outputMessages(run))
	}
	return of
}

func appendText(of []attribute.KeyValue, key attribute.Key, value string) []attribute.KeyValue {
	if value == "" {
		return of
	}
	return append(of, key.String(value))
}

func appendUsage(of []attribute.KeyValue, usage pgagui.ModelUsage) []attribute.KeyValue {
	of = appendText(of, semconv.GenAIProviderNameKey, usage.Provider)
	of = appendText(of, semconv.GenAIRequestModelKey, usage.Model)
	for _, count := range []struct {
		key   attribute.Key
		value *int64
	}{
		{semconv.GenAIUsageInputTokensKey, usage.InputTokens},
		{semconv.GenAIUsageOutputTokensKey, usage.OutputTokens},
		{semconv.GenAIUsageReasoningOutputTokensKey, usage.ReasoningTokens},
		{semconv.GenAIUsageCacheReadInputTokensKey, usage.CachedInputTokens},
		{semconv.GenAIUsageCacheCreationInputTokensKey, usage.CacheWriteInputTokens},
	} {
		if count.value != nil {
			of = append(of, count.key.Int64(*count.value))
		}
	}
	return of
}

// totalOf adds up what a run used. Provider and model are named if they are the same in all.
func totalOf(usage []pgagui.ModelUsage) (total pgagui.ModelUsage) {
	add := func(to **int64, count *int64) {
		switch {
		case count == nil:
		case *to == nil:
			*to = new(*count)
		default:
			**to += *count
		}
	}
	for i, one := range usage {
		if i == 0 {
			total.Provider, total.Model = one.Provider, one.Model
		}
		if one.Provider != total.Provider {
			total.Provider = ""
		}
		if one.Model != total.Model {
			total.Model = ""
		}
		add(&total.InputTokens, one.InputTokens)
		add(&total.OutputTokens, one.OutputTokens)
		add(&total.ReasoningTokens, one.ReasoningTokens)
		add(&total.CachedInputTokens, one.CachedInputTokens)
		add(&total.CacheWriteInputTokens, one.CacheWriteInputTokens)
	}
	return total
}

// parts makes the spans within that of a run.
type parts struct {
	tracer trace.Tracer
	run    *tracedRun
	span   trace.SpanContext
	began  map[trace.SpanID]int64 // seqs of the subagents and calls of the run
}

func (p *parts) id(kind string, names ...string) trace.SpanID {
	sum := hashOf(kind, p.run.name(), names...)
	return trace.SpanID(sum[:8])
}

// start starts a span. Its parent is the first of several that began before seq, or else the run: what names
// each other as parents makes no circle.
func (p *parts) start(id trace.SpanID, seq int64, parents []trace.SpanID, name string, at time.Time, kind trace.SpanKind, of ...attribute.KeyValue) trace.Span {
	parent := p.span
	for _, candidate := range parents {
		if began, isKnown := p.began[candidate]; isKnown && began < seq {
			parent = parent.WithSpanID(candidate)
			break
		}
	}
	of = append(of, semconv.GenAIConversationID(p.run.ThreadID))
	ctx := withID(trace.ContextWithSpanContext(context.Background(), parent), p.span.WithSpanID(id))
	_, span := p.tracer.Start(ctx, name, trace.WithTimestamp(at), trace.WithSpanKind(kind), trace.WithAttributes(of...))
	return span
}

func (p *parts) makeSubagent(subagent pgagui.Subagent) {
	parents := []trace.SpanID{p.id("call", subagent.ParentToolCallID), p.id("subagent", subagent.ParentID)}
	span := p.start(p.id("subagent", subagent.ID), subagent.FirstSeq, parents, join("invoke_agent", subagent.Name), subagent.StartedAt,
		trace.SpanKindInternal, appendText([]attribute.KeyValue{
			semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentID(subagent.ID), StatusKey.String(string(subagent.Status)),
		}, semconv.GenAIAgentNameKey, subagent.Name)...)
	switch subagent.Status {
	case pgagui.SubagentFailed:
		fail(span, subagent.ErrorCode, subagent.ErrorMessage)
	case pgagui.SubagentCutOff:
		fail(span, string(subagent.Status), "the run ended before it")
	}
	end := subagent.EndedAt
	if end.IsZero() { // it waits
		end = p.run.EndedAt
	}
	span.End(trace.WithTimestamp(notBefore(subagent.StartedAt, end)))
}

func (p *parts) makeCall(call *toolCall, contents bool) {
	status := call.status(p.run.Status)
	span := p.start(p.id("call", call.id), call.seq, []trace.SpanID{p.id("subagent", call.subagent)}, join("execute_tool", call.tool), call.startedAt,
		trace.SpanKindInternal, semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(call.tool), semconv.GenAIToolCallID(call.id),
		StatusKey.String(status))
	end, message := call.lastAt, ""
	if contents {
		span.SetAttributes(appendText(appendText(nil, semconv.GenAIToolCallArgumentsKey, string(call.arguments)), semconv.GenAIToolCallResultKey, call.result)...)
		message = call.errorText
	}
	switch status {
	case "failed":
		fail(span, "tool_error", message)
	case "cut_off":
		fail(span, status, "the run ended before its result")
		end = p.run.EndedAt
	}
	span.End(trace.WithTimestamp(notBefore(call.startedAt, end)))
}

// makeModel makes a span of all calls of a model. AG-UI reports no single calls, so it takes as long as the
// run.
func (p *parts) makeModel(usage pgagui.ModelUsage) {
	span := p.start(p.id("model", usage.Provider, usage.Model), 0, nil, join("chat", usage.Model), p.run.StartedAt, trace.SpanKindClient,
		appendUsage([]attribute.KeyValue{semconv.GenAIOperationNameChat}, usage)...)
	span.End(trace.WithTimestamp(p.run.EndedAt))
}

// notBefore returns end, or start if that is later: times in events are those of other clocks.
func notBefore(start, end time.Time) time.Time {
	if end.Before(start) {
		return start
	}
	return end
}

// chatMessage and messagePart are the form that messages have in the conventions.
type chatMessage struct {
	Role         string        `json:"role"`
	Parts        []messagePart `json:"parts"`
	FinishReason string        `json:"finish_reason,omitempty"`
}

type messagePart struct {
	Type     string `json:"type"`
	Content  string `json:"content,omitempty"`
	ID       string `json:"id,omitempty"`
	Response string `json:"response,omitempty"`
}

func appendMessages(of []attribute.KeyValue, key attribute.Key, messages []chatMessage) []attribute.KeyValue {
	if len(messages) == 0 {
		return of
	}
	text, err := json.Marshal(messages)
	if err != nil {
		panic(err) // they are strings
	}
	return append(of, key.String(string(text)))
}

func inputMessages(messages []json.RawMessage) (of []chatMessage) {
	for _, message := range messages {
		m := membersOf(message)
		role, _ := m.text("role")
		of = append(of, chatMessage{Role: role, Parts: partsOf(m)})
	}
	return of
}

// partsOf returns the parts of a message. Images and the like have their type alone.
func partsOf(message members) []messagePart {
	content, isText := message.text("content")
	if id, isResult := message.text("toolCallId"); isResult {
		return []messagePart{{Type: "tool_call_response", ID: id, Response: content}}
	}
	if isText {
		return []messagePart{{Type: "text", Content: content}}
	}
	parts := []messagePart{}
	for item, err := range compaction.Split(message["content"]) {
		if err != nil {
			break
		}
		part := membersOf(item)
		kind, _ := part.text("type")
		content, _ := part.text("text")
		parts = append(parts, messagePart{Type: kind, Content: content})
	}
	return parts
}

func outputMessages(run *tracedRun) (of []chatMessage) {
	reason := "stop"
	if run.Status == pgagui.Failed || run.Status == pgagui.CutOff {
		reason = "error"
	}
	for _, text := range run.output {
		of = append(of, chatMessage{Role: "assistant", Parts: []messagePart{{Type: "text", Content: string(text)}}, FinishReason: reason})
	}
	return of
}

// endedSpans is a processor that keeps the spans until they are exported. A position is only passed when the
// exporter has taken them, which no processor of the SDK reports.
type endedSpans struct {
	spans []sdktrace.ReadOnlySpan
	size  int // of their texts
}

func (e *endedSpans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (e *endedSpans) Shutdown(context.Context) error                  { return nil }
func (e *endedSpans) ForceFlush(context.Context) error                { return nil }

func (e *endedSpans) OnEnd(span sdktrace.ReadOnlySpan) {
	e.spans = append(e.spans, span)
	e.size += sizeOf(span)
}

func (e *endedSpans) isLarge() bool { return len(e.spans) >= mostSpans || e.size >= mostText }

func (e *endedSpans) take() (spans []sdktrace.ReadOnlySpan) {
	spans, e.spans, e.size = e.spans, nil, 0
	return spans
}

// sizeOf is the size of the texts of a span, about.
func sizeOf(span sdktrace.ReadOnlySpan) (size int) {
	for _, a := range span.Attributes() {
		if a.Value.Type() == attribute.STRING {
			size += len(a.Value.AsString())
		}
	}
	return size
}
