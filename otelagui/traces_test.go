package otelagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/otelagui"
)

// noon is when the runs of the tests begin. Their events follow each other every second.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// add appends a run whose events are one second apart. An event is the inside of an object.
func add(t *testing.T, store *pgagui.Store, run pgagui.RunRef, options pgagui.AppendOptions, events ...string) (lastSeq int64) {
	t.Helper()
	options.TimesFromEvents = true
	var list []json.RawMessage
	for i, event := range events {
		list = append(list, json.RawMessage(fmt.Sprintf(`{%s,"timestamp":%d}`, event, noon.Add(time.Duration(i)*time.Second).UnixMilli())))
	}
	lastSeq = must.Have(store.Append(t.Context(), run, list, options))(t)
	return lastSeq
}

const (
	started  = `"type":"RUN_STARTED"`
	finished = `"type":"RUN_FINISHED"`
)

// send sends all runs behind a position.
func send(t *testing.T, traces *otelagui.Traces, after string) (next string) {
	t.Helper()
	for {
		next := must.Have(traces.Send(t.Context(), after))(t)
		if next == after {
			return next
		}
		after = next
	}
}

// sent returns the spans of all runs of a store.
func sent(t *testing.T, store *pgagui.Store, options otelagui.TracesOptions) tracetest.SpanStubs {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	send(t, otelagui.NewTraces(store, exporter, options), "")
	return exporter.GetSpans()
}

// picture draws spans as trees: name, seconds from noon, what failed, and some attributes.
func picture(spans tracetest.SpanStubs, attributes ...attribute.Key) string {
	var lines []string
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		for _, span := range spans {
			isRoot := !slices.ContainsFunc(spans, func(other tracetest.SpanStub) bool { return other.SpanContext.SpanID() == span.Parent.SpanID() })
			if span.Parent.SpanID() != parent && !(isRoot && !parent.IsValid()) {
				continue
			}
			line := fmt.Sprintf("%s%s %v-%v", indent, span.Name, span.StartTime.Sub(noon).Seconds(), span.EndTime.Sub(noon).Seconds())
			if span.Status.Code == codes.Error {
				line += fmt.Sprintf(" failed %q", span.Status.Description)
			}
			for _, key := range attributes {
				if value := valueOf(span, key); value != "" {
					line += fmt.Sprintf(" %s=%s", key, value)
				}
			}
			lines = append(lines, line)
			draw(span.SpanContext.SpanID(), indent+"  ")
		}
	}
	draw(trace.SpanID{}, "")
	return strings.Join(lines, "\n") + "\n"
}

func valueOf(span tracetest.SpanStub, key attribute.Key) string {
	set := attribute.NewSet(span.Attributes...)
	value, _ := set.Value(key)
	return value.String()
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestARunIsASpanWithItsToolsInIt(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), &pgagui.Config{Scope: "acme"})
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r1"}, pgagui.AppendOptions{},
		started,
		`"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"I search."`,
		`"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"search"`,
		`"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{}"`,
		`"type":"TOOL_CALL_END","toolCallId":"c1"`,
		`"type":"TOOL_CALL_RESULT","toolCallId":"c1","messageId":"m2","content":"found"`,
		finished+`,"usage":[{"provider":"openai","model":"gpt-5","inputTokens":100,"outputTokens":20,"reasoningTokens":5,"cachedInputTokens":60}]`)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r2"}, pgagui.AppendOptions{}, started, finished)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r3"}, pgagui.AppendOptions{}, started) // in progress
	must.Have(store.SetThread(t.Context(), "t", pgagui.ThreadChanges{Agent: new("helper")}))(t)

	spans := sent(t, store, otelagui.TracesOptions{})
	compare(t, picture(spans, "pgagui.status"), `
invoke_agent helper 0-6 pgagui.status=finished
  execute_tool search 2-5 pgagui.status=completed
invoke_agent helper 6-6 pgagui.status=finished`)

	attributes := func(span tracetest.SpanStub) (lines []string) {
		for _, one := range span.Attributes {
			lines = append(lines, string(one.Key)+"="+one.Value.String())
		}
		slices.Sort(lines)
		return lines
	}
	if got, want := attributes(spans[0]), []string{
		"gen_ai.agent.name=helper", "gen_ai.conversation.id=t", "gen_ai.operation.name=invoke_agent", "gen_ai.provider.name=openai",
		"gen_ai.request.model=gpt-5", "gen_ai.usage.cache_read.input_tokens=60", "gen_ai.usage.input_tokens=100", "gen_ai.usage.output_tokens=20",
		"gen_ai.usage.reasoning.output_tokens=5", "pgagui.run_id=r1", "pgagui.scope=acme", "pgagui.status=finished",
	}; !slices.Equal(got, want) {
		t.Errorf("attributes of the run:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := attributes(spans[1]), []string{
		"gen_ai.conversation.id=t", "gen_ai.operation.name=execute_tool", "gen_ai.tool.call.id=c1", "gen_ai.tool.name=search", "pgagui.status=completed",
	}; !slices.Equal(got, want) {
		t.Errorf("attributes of the call: %q, want %q", got, want)
	}
	if first := otelagui.RunSpanContext("acme", pgagui.RunRef{ThreadID: "t", RunID: "r1"}); !first.Equal(spans[0].SpanContext) {
		t.Errorf("the run has the ids %v, RunSpanContext says %v", spans[0].SpanContext, first)
	}
	if len(spans[0].Links) != 0 || len(spans[2].Links) != 1 || !spans[2].Links[0].SpanContext.Equal(spans[0].SpanContext) {
		t.Errorf("links: %v and %v, want none, and one to the first run", spans[0].Links, spans[2].Links)
	}
	if spans[0].SpanKind != trace.SpanKindInternal || spans[0].InstrumentationScope.Name != "github.com/pgagui/pgagui/otelagui" {
		t.Errorf("kind %v of %v", spans[0].SpanKind, spans[0].InstrumentationScope)
	}
}

func TestWhatFailedIsAnErrorOfTheConventions(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	add(t, store, pgagui.RunRef{ThreadID: "code", RunID: "r"}, pgagui.AppendOptions{}, started, `"type":"RUN_ERROR","message":"no quota","code":"rate_limit"`)
	add(t, store, pgagui.RunRef{ThreadID: "no code", RunID: "r"}, pgagui.AppendOptions{}, started, `"type":"RUN_ERROR","message":"it broke"`)
	add(t, store, pgagui.RunRef{ThreadID: "stopped", RunID: "r"}, pgagui.AppendOptions{}, started, finished+`,"outcome":{"type":"cancelled"}`)
	add(t, store, pgagui.RunRef{ThreadID: "cut off", RunID: "r"}, pgagui.AppendOptions{}, started,
		`"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"search"`)
	must.Have(store.Abandon(t.Context(), pgagui.RunRef{ThreadID: "cut off", RunID: "r"}, pgagui.AbandonOptions{Reason: "the agent is gone"}))(t)
	got := map[string]string{}
	for _, span := range sent(t, store, otelagui.TracesOptions{}) {
		got[valueOf(span, "gen_ai.conversation.id")+": "+span.Name] = fmt.Sprintf("%s %q %q %q", valueOf(span, "pgagui.status"), span.Status.Code,
			span.Status.Description, valueOf(span, "error.type"))
	}
	want := map[string]string{
		"code: invoke_agent":           `failed "Error" "no quota" "rate_limit"`,
		"no code: invoke_agent":        `failed "Error" "it broke" "_OTHER"`,
		"stopped: invoke_agent":        `cancelled "Unset" "" ""`,
		"cut off: invoke_agent":        `cut_off "Error" "the agent is gone" "cut_off"`,
		"cut off: execute_tool search": `cut_off "Error" "the run ended before its result" "cut_off"`,
	}
	if !maps.Equal(got, want) {
		t.Errorf("spans:\n%v\nwant\n%v", got, want)
	}
}

func TestCallsOfToolsEndAsTheyDidInTheRun(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{},
		started,
		`"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"chunked","delta":"{"`,
		`"type":"TOOL_CALL_CHUNK","delta":"}"`,
		`"type":"TOOL_CALL_RESULT","toolCallId":"c1","messageId":"m1","content":"\"Error: no such file\""`,
		`"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"refused"`,
		`"type":"TOOL_CALL_END","toolCallId":"c2"`,
		`"type":"TOOL_CALL_RESULT","toolCallId":"c2","messageId":"m2","content":"","error":"the user said no"`,
		`"type":"TOOL_CALL_START","toolCallId":"c3","toolCallName":"ofTheClient"`,
		`"type":"TOOL_CALL_END","toolCallId":"c3"`,
		`"type":"TOOL_CALL_START","toolCallId":"c4","toolCallName":"halfway"`,
		`"type":"TOOL_CALL_RESULT","toolCallId":"unknown","messageId":"m3","content":"of no call"`,
		finished)
	want := `
invoke_agent 0-11
  execute_tool chunked 1-3 failed %q pgagui.status=failed error.type=tool_error
  execute_tool refused 4-6 failed %q pgagui.status=failed error.type=tool_error
  execute_tool ofTheClient 7-8 pgagui.status=called
  execute_tool halfway 9-11 failed "the run ended before its result" pgagui.status=cut_off error.type=cut_off`
	want = strings.Replace(want, "0-11\n", "0-11 pgagui.status=finished\n", 1)
	compare(t, picture(sent(t, store, otelagui.TracesOptions{}), "pgagui.status", "error.type"), fmt.Sprintf(want, "", ""))
	compare(t, picture(sent(t, store, otelagui.TracesOptions{Contents: true}), "pgagui.status", "error.type"),
		fmt.Sprintf(want, "Error: no such file", "the user said no"))
}

// What a tool's result says of a failure is a rule of SQL, too.
func TestTheErrorsOfToolsAreThoseOfTheFacts(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	var events []string
	for i, members := range []string{
		`"content":"fine"`, `"content":"Error"`, `"content":"Error: x"`, `"content":"Errors are fine"`, `"content":"Error_x"`,
		`"content":" Error"`, `"content":"{\"error\":\"x\"}"`, `"content":" { \"error\" : \"x\"}"`, `"content":"{\"error\": null}"`,
		`"content":"{\"error\":false, \"isError\": true}"`, `"content":"{\"error\": \"\"}"`, `"content":"{\"ok\":1,\"error\":\"x\"}"`,
		`"content":"{\"ok\":1,\"isError\":true}"`, `"content":"[{\"isError\":true}]"`, `"content":"{\"isError\":false}"`, `"content":[{"type":"text","text":"Error"}]`,
		`"content":"x","error":"y"`, `"content":"Error: x","error":null`, `"content":"x","error":false`, `"content":"x","error":{"code":5}`, `"content":"x","error":""`,
		`"error":7`, `"content":5`,
	} {
		events = append(events, fmt.Sprintf(`"type":"TOOL_CALL_CHUNK","toolCallId":"c%d","toolCallName":"tool"`, i),
			fmt.Sprintf(`"type":"TOOL_CALL_RESULT","toolCallId":"c%d","messageId":"m%d",%s`, i, i, members))
	}
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{}, append(append([]string{started}, events...), finished)...)
	testdb.Exec(t, pool, `call agui.project()`)
	var failed int
	for i, span := range sent(t, store, otelagui.TracesOptions{Contents: true})[1:] {
		call := valueOf(span, "gen_ai.tool.call.id")
		want := testdb.Ask[string](t, pool, `select status || ' ' || coalesce(error, '') from agui.tool_fact where call_id = $1`, call)
		if got := valueOf(span, "pgagui.status") + " " + span.Status.Description; got != want {
			t.Errorf("call %s, %s: %q, agui.tool_fact says %q", call, events[2*i+1], got, want)
		}
		if strings.HasPrefix(want, "failed") {
			failed++
		}
	}
	if failed != 10 {
		t.Errorf("%d calls failed, want 10", failed)
	}
}

func TestARunWithSeveralModelsHasASpanForEach(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{}, started, finished+`,"usage":[
		{"provider":"openai","model":"gpt-5","inputTokens":100,"outputTokens":20},
		{"provider":"openai","model":"gpt-5-mini","inputTokens":10,"outputTokens":2,"cacheWriteInputTokens":4}]`)
	compare(t, picture(sent(t, store, otelagui.TracesOptions{}), "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.usage.input_tokens",
		"gen_ai.usage.output_tokens", "gen_ai.usage.cache_creation.input_tokens"), `
invoke_agent 0-1 gen_ai.operation.name=invoke_agent gen_ai.provider.name=openai gen_ai.usage.input_tokens=110 gen_ai.usage.output_tokens=22 gen_ai.usage.cache_creation.input_tokens=4
  chat gpt-5 0-1 gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=gpt-5 gen_ai.usage.input_tokens=100 gen_ai.usage.output_tokens=20
  chat gpt-5-mini 0-1 gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=gpt-5-mini gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=2 gen_ai.usage.cache_creation.input_tokens=4`)
}

func TestSubagentsAreSpansWithTheirToolsInThem(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{},
		started,
		`"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"delegate"`,
		`"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"researcher","parentToolCallId":"c1"`,
		`"type":"TOOL_CALL_CHUNK","toolCallId":"c2","toolCallName":"search","subagentRunId":"s1"`,
		`"type":"SUBAGENT_STARTED","subagentRunId":"s2","name":"reader","parentSubagentRunId":"s1"`,
		`"type":"TOOL_CALL_RESULT","toolCallId":"c2","messageId":"m2","content":"found"`,
		`"type":"SUBAGENT_ERROR","subagentRunId":"s2","message":"no such page","code":"404"`,
		`"type":"SUBAGENT_FINISHED","subagentRunId":"s1"`,
		`"type":"TOOL_CALL_RESULT","toolCallId":"c1","messageId":"m1","content":"done"`,
		// They name each other.
		`"type":"SUBAGENT_STARTED","subagentRunId":"s3","name":"first","parentToolCallId":"c3"`,
		`"type":"TOOL_CALL_CHUNK","toolCallId":"c3","toolCallName":"circle","subagentRunId":"s3"`,
		`"type":"SUBAGENT_STARTED","subagentRunId":"s4","name":"open","parentSubagentRunId":"unknown"`,
		finished)
	compare(t, picture(sent(t, store, otelagui.TracesOptions{}), "error.type"), `
invoke_agent 0-12
  invoke_agent first 9-12 failed "the run ended before it" error.type=cut_off
    execute_tool circle 10-10
  invoke_agent open 11-12 failed "the run ended before it" error.type=cut_off
  execute_tool delegate 1-8
    invoke_agent researcher 2-7
      invoke_agent reader 4-6 failed "no such page" error.type=404
      execute_tool search 3-5`)
}

func TestARunThatTakesLateEventsIsSentOnceMoreWithTheSameIDs(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	exporter := tracetest.NewInMemoryExporter()
	traces := otelagui.NewTraces(store, exporter, otelagui.TracesOptions{})
	call := `"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"search"`
	last := add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{}, started, call, finished)
	position := send(t, traces, "")
	first := exporter.GetSpans()
	if len(first) != 2 {
		t.Fatalf("%d spans", len(first))
	}

	wait.For(t, "nothing to be sent", func() bool { // a run may be sent again while an older transaction is in progress
		exporter.Reset()
		before := position
		position = send(t, traces, position)
		return position == before && len(exporter.GetSpans()) == 0
	})
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{AfterSeq: &last}, `"type":"RUN_ERROR","message":"too late"`)
	// Another process.
	traces = otelagui.NewTraces(store, exporter, otelagui.TracesOptions{})
	wait.For(t, "the run once more", func() bool { // a change comes when no older transaction is in progress
		position = send(t, traces, position)
		return len(exporter.GetSpans()) > 0
	})
	second := exporter.GetSpans()
	if len(second) != 2 || second[0].Status.Description != "too late" {
		t.Fatalf("sent once more: %s", picture(second))
	}
	for i := range second {
		if !second[i].SpanContext.Equal(first[i].SpanContext) || second[i].Name != first[i].Name {
			t.Errorf("span %s is %v, and was %v", second[i].Name, second[i].SpanContext, first[i].SpanContext)
		}
	}
}

const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
	caller      = `"traceparent":"00-` + callerTrace + "-" + callerSpan + `-01"`
)

func TestARunBelongsToTheTraceThatItNames(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	call := `"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"search"`
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "by metadata"}, pgagui.AppendOptions{}, started+`,"metadata":{`+caller+`}`, call, finished)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "by input"}, pgagui.AppendOptions{}, started+`,"input":{"forwardedProps":{`+caller+`}}`, finished)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "wrong"}, pgagui.AppendOptions{}, started+`,"metadata":{"traceparent":"00-1-2-3"}`, finished)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "not sampled"}, pgagui.AppendOptions{},
		started+`,"metadata":{"traceparent":"00-`+callerTrace+"-"+callerSpan+`-00"}`, call, finished)
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "last"}, pgagui.AppendOptions{}, started, finished)

	exporter := tracetest.NewInMemoryExporter()
	send(t, otelagui.NewTraces(store, exporter, otelagui.TracesOptions{}), "")
	got := map[string]string{}
	for _, span := range exporter.GetSpans() {
		inTrace := "its own"
		if span.SpanContext.TraceID().String() == callerTrace {
			inTrace = "the caller's"
		}
		of := "none"
		if span.Parent.IsValid() {
			of = "the run"
			if span.Parent.SpanID().String() == callerSpan {
				of = "the caller"
			}
		}
		link := ""
		for _, one := range span.Links {
			link = " link to trace " + one.SpanContext.TraceID().String()
		}
		got[span.Name+" "+valueOf(span, "pgagui.run_id")] = "trace: " + inTrace + ", parent: " + of + link
	}
	want := map[string]string{
		"invoke_agent by metadata": "trace: the caller's, parent: the caller",
		"execute_tool search ":     "trace: the caller's, parent: the run",
		"invoke_agent by input":    "trace: the caller's, parent: the caller link to trace " + callerTrace,
		"invoke_agent wrong":       "trace: its own, parent: none link to trace " + callerTrace, // the trace of "by input"
		"invoke_agent last":        "trace: its own, parent: none link to trace " + callerTrace,
	}
	if !maps.Equal(got, want) {
		t.Errorf("spans:\n%v\nwant\n%v", got, want)
	}

	// A process that has not sent the parent reads it.
	exporter.Reset()
	changes := must.Have(store.Changes(t.Context(), pgagui.ChangesOptions{}))(t)
	i := slices.IndexFunc(changes, func(change pgagui.Change) bool { return change.RunID == "by metadata" })
	send(t, otelagui.NewTraces(store, exporter, otelagui.TracesOptions{}), changes[i].Position)
	for _, span := range exporter.GetSpans() {
		if valueOf(span, "pgagui.run_id") == "by input" {
			if len(span.Links) != 1 || span.Links[0].SpanContext.TraceID().String() != callerTrace {
				t.Errorf("links of a run whose parent is not sent: %v", span.Links)
			}
		}
	}
}

func TestContentsAreSentIfTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	input := ` {"messages":[
		{"id":"1","role":"user","content":"the first question"},{"id":"2","role":"assistant","content":"the first answer"},
		{"id":"3","role":"tool","toolCallId":"c0","content":"42"},
		{"id":"4","role":"user","content":[{"type":"text","text":"What is in\u0000 it?"},{"type":"image","source":{"type":"data","value":"c2VjcmV0","mimeType":"image/png"}}]}]}`
	events := []string{
		started + `,"input":` + input,
		`"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"`,
		`"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"A secret"`,
		`"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":" cat."`,
		`"type":"TEXT_MESSAGE_END","messageId":"m"`,
		`"type":"TEXT_MESSAGE_CHUNK","messageId":"u","role":"user","delta":"secret of the user"`,
		`"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"search"`,
		`"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"q\":"`,
		`"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\"secret\"}"`,
		`"type":"TOOL_CALL_END","toolCallId":"c"`,
		`"type":"TOOL_CALL_RESULT","toolCallId":"c","messageId":"m2","content":"Error: secret"`,
		finished,
	}
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "in the event"}, pgagui.AppendOptions{}, events...)
	events[0] = started
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "beside"}, pgagui.AppendOptions{Input: json.RawMessage(input)}, events...)

	without := must.Have(json.Marshal(sent(t, store, otelagui.TracesOptions{})))(t)
	if strings.Contains(string(without), "secret") || strings.Contains(string(without), "answer") {
		t.Errorf("contents were sent: %s", without)
	}
	spans := sent(t, store, otelagui.TracesOptions{Contents: true})
	if len(spans) != 4 {
		t.Fatalf("%d spans", len(spans))
	}
	for i := 0; i < len(spans); i += 2 {
		for key, want := range map[attribute.Key]string{
			"gen_ai.input.messages": `[{"role":"tool","parts":[{"type":"tool_call_response","id":"c0","response":"42"}]},` +
				`{"role":"user","parts":[{"type":"text","content":"What is in\u0000 it?"},{"type":"image"}]}]`,
			"gen_ai.output.messages":     `[{"role":"assistant","parts":[{"type":"text","content":"A secret cat."}],"finish_reason":"stop"}]`,
			"gen_ai.tool.call.arguments": `{"q":"secret"}`,
			"gen_ai.tool.call.result":    "Error: secret",
		} {
			if got := valueOf(spans[i], key) + valueOf(spans[i+1], key); got != want {
				t.Errorf("%s of run %q is\n%s\nwant\n%s", key, valueOf(spans[i], "pgagui.run_id"), got, want)
			}
		}
	}
}

func TestScopesAreApart(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	one, other := pgagui.New(pool, &pgagui.Config{Scope: "one"}), pgagui.New(pool, &pgagui.Config{Scope: "other"})
	for _, store := range []*pgagui.Store{one, other} {
		add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{}, started, finished)
	}
	if spans := sent(t, one, otelagui.TracesOptions{}); len(spans) != 1 || valueOf(spans[0], "pgagui.scope") != "one" {
		t.Errorf("of one scope: %s", picture(spans, "pgagui.scope"))
	}
	spans := sent(t, one, otelagui.TracesOptions{AllScopes: true})
	if len(spans) != 2 || spans[0].SpanContext.TraceID() == spans[1].SpanContext.TraceID() {
		t.Errorf("of all scopes: %s", picture(spans, "pgagui.scope"))
	}
	if old := sent(t, one, otelagui.TracesOptions{AllScopes: true, MaxAge: time.Hour}); len(old) != 0 {
		t.Errorf("too old, but sent: %s", picture(old))
	}
}

// fragile is an exporter that can be made to fail.
type fragile struct {
	tracetest.InMemoryExporter
	mutex   sync.Mutex
	fails   bool
	largest int
}

func (f *fragile) set(fails bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.fails = fails
}

func (f *fragile) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.fails {
		return errors.New("the collector is away")
	}
	f.largest = max(f.largest, len(spans))
	return f.InMemoryExporter.ExportSpans(ctx, spans)
}

func TestThePositionIsThatOfWhatTheExporterTook(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	events := []string{started}
	for i := range 700 {
		events = append(events, fmt.Sprintf(`"type":"TOOL_CALL_CHUNK","toolCallId":"c%d","toolCallName":"tool"`, i))
	}
	for i := range 3 {
		add(t, store, pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint("r", i)}, pgagui.AppendOptions{}, append(events, finished)...)
	}
	exporter := &fragile{fails: true}
	traces := otelagui.NewTraces(store, exporter, otelagui.TracesOptions{})
	if next, err := traces.Send(t.Context(), ""); next != "" || err == nil || !strings.Contains(err.Error(), `run "r0" of thread "t": the collector is away`) {
		t.Errorf("the exporter fails: %q, %v", next, err)
	}
	exporter.set(false)
	send(t, traces, "")
	if n := len(exporter.GetSpans()); n != 3*701 || exporter.largest > 512 {
		t.Errorf("%d spans, up to %d at once", n, exporter.largest)
	}
}

func TestRunSendsUntilItEndsAndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	run := func(i int) pgagui.RunRef { return pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint("r", i)} }
	add(t, store, run(0), pgagui.AppendOptions{}, started, finished)
	exporter := &fragile{fails: true}
	options := otelagui.TracesOptions{Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler), AllScopes: true}
	// Runs may be sent again while a transaction is in progress anywhere in the server.
	sent := func(want ...string) func() bool {
		return func() bool {
			have := map[string]bool{}
			for _, span := range exporter.GetSpans() {
				have[valueOf(span, "pgagui.run_id")] = true
			}
			return !slices.ContainsFunc(want, func(id string) bool { return !have[id] })
		}
	}
	begin := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			otelagui.NewTraces(store, exporter, options).Run(ctx)
		}()
		return func() { cancel(); <-ended }
	}
	place := func() pgagui.ConsumerPlace {
		places, err := store.Consumers(t.Context())
		if err != nil || len(places) > 1 {
			t.Fatal(places, err)
		}
		return append(places, pgagui.ConsumerPlace{})[0]
	}

	end := begin()
	exporter.set(false)
	wait.For(t, "the first run", sent("r0"))
	add(t, store, run(1), pgagui.AppendOptions{}, started, finished)
	wait.For(t, "the second run", sent("r1"))
	wait.For(t, "its place", func() bool { return strings.Contains(place().Position, "changed") && place().Behind == 0 })
	end()
	if place := place(); place.Consumer != "traces" || !place.AllScopes {
		t.Errorf("the place is %+v", place)
	}

	// Another process goes on there, and begins again in another history.
	add(t, store, run(2), pgagui.AppendOptions{}, started, finished)
	exporter.Reset()
	end = begin()
	wait.For(t, "the third run", sent("r2"))
	end()
	elsewhere := "1/1 " + strings.SplitN(place().Position, " ", 2)[1]
	if next, err := otelagui.NewTraces(store, exporter, options).Send(t.Context(), elsewhere); !errors.Is(err, pgagui.ErrOtherHistory) || next != elsewhere {
		t.Errorf("of another history: %q, %v", next, err)
	}
	testdb.Exec(t, pool, `update agui.consumer set position = $1`, elsewhere)
	exporter.Reset()
	end = begin()
	wait.For(t, "all runs", sent("r0", "r1", "r2"))
	end()
}

func TestSendNewMovesBehindWhatTheExporterTook(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), &pgagui.Config{Scope: "acme"})
	add(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AppendOptions{}, started, finished)
	exporter := &fragile{fails: true}
	traces := otelagui.NewTraces(store, exporter, otelagui.TracesOptions{Consumer: "mine"})
	if sent, err := traces.SendNew(t.Context()); err == nil || sent.Runs != 0 {
		t.Errorf("the exporter fails: %+v, %v", sent, err)
	}
	if places, err := store.Consumers(t.Context()); err != nil || len(places) != 0 {
		t.Errorf("places: %+v, %v", places, err)
	}
	exporter.set(false)
	if sent, err := traces.SendNew(t.Context()); err != nil || sent != (otelagui.TracesSent{Runs: 1, Left: true}) {
		t.Errorf("%+v, %v", sent, err)
	}
	if places, err := store.Consumers(t.Context()); err != nil || len(places) != 1 || places[0].Consumer != "mine" || places[0].Scope != "acme" {
		t.Errorf("places: %+v, %v", places, err)
	}
}

func TestAnErasedRunIsLeftOut(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	for _, thread := range []string{"erased", "kept"} {
		add(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.AppendOptions{}, started, finished)
	}
	// It is erased when its change was read.
	gone := store.WrapDB(func(database pgagui.DB) pgagui.DB { return &erasing{DB: database, store: store} })
	spans := sent(t, gone, otelagui.TracesOptions{})
	if len(spans) != 1 || valueOf(spans[0], "gen_ai.conversation.id") != "kept" {
		t.Errorf("sent: %s", picture(spans, "gen_ai.conversation.id"))
	}
}

// A run whose log is damaged holds up no other; a database that is away does.
func TestARunThatCannotBeReadIsLeftOut(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for _, run := range []string{"broken", "kept"} {
		add(t, store, pgagui.RunRef{ThreadID: run, RunID: "r"}, pgagui.AppendOptions{}, started, finished)
	}
	var log strings.Builder
	options := otelagui.TracesOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	failing := func(err error) *pgagui.Store {
		return store.WrapDB(func(database pgagui.DB) pgagui.DB { return broken{database, err} })
	}
	spans := sent(t, failing(&pgconn.PgError{Code: "XX001", Message: "invalid page"}), options)
	if len(spans) != 1 || valueOf(spans[0], "gen_ai.conversation.id") != "kept" || !strings.Contains(log.String(), "thread=broken") {
		t.Errorf("sent: %slogged: %s", picture(spans, "gen_ai.conversation.id"), log.String())
	}
	exporter := tracetest.NewInMemoryExporter()
	next, err := otelagui.NewTraces(failing(io.ErrUnexpectedEOF), exporter, options).Send(t.Context(), "")
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), `read run "r" of thread "broken"`) || next != "" || len(exporter.GetSpans()) != 0 {
		t.Errorf("away: %v, position %q, %d spans", err, next, len(exporter.GetSpans()))
	}

	log.Reset()
	testdb.Exec(t, pool, `
		alter table agui.batch disable trigger all;
		update agui.batch set events = '{}' where thread_key = agui.thread_key('', 'broken')`)
	if spans := sent(t, store, options); len(spans) != 1 || !strings.Contains(log.String(), "thread=broken") {
		t.Errorf("a damaged batch: sent: %slogged: %s", picture(spans, "gen_ai.conversation.id"), log.String())
	}
}

// broken fails to read the events of a thread.
type broken struct {
	pgagui.DB
	err error
}

func (b broken) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "agui.batch") && slices.Contains(arguments, any("broken")) {
		return nil, b.err
	}
	return b.DB.Query(ctx, sql, arguments...)
}

// erasing erases a thread before the first question about a run.
type erasing struct {
	pgagui.DB
	store *pgagui.Store
	once  sync.Once
}

func (e *erasing) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if !strings.Contains(sql, "agui.changes(") {
		e.once.Do(func() { _, _ = e.store.Erase(ctx, "erased", pgagui.EraseOptions{Reason: "test"}) })
	}
	return e.DB.Query(ctx, sql, arguments...)
}
