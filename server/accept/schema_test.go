package accept_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/server/accept"
)

// wellFormed are events that come after the start of everything, with all members that they may have.
var wellFormed = []string{
	`{"type":"TEXT_MESSAGE_START","messageId":"n","role":"user","name":"x"}`,
	`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`,
	`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
	`{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"x","role":"assistant","name":"x"}`,
	`{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"f","parentMessageId":"m"}`,
	`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"x"}`,
	`{"type":"TOOL_CALL_END","toolCallId":"c"}`,
	`{"type":"TOOL_CALL_CHUNK","toolCallId":"d","toolCallName":"f","parentMessageId":"m","delta":"x"}`,
	`{"type":"TOOL_CALL_RESULT","messageId":"n","toolCallId":"c","content":"x","role":"tool"}`,
	`{"type":"REASONING_START","messageId":"n"}`,
	`{"type":"REASONING_END","messageId":"r"}`,
	`{"type":"REASONING_MESSAGE_START","messageId":"n","role":"reasoning"}`,
	`{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"x"}`,
	`{"type":"REASONING_MESSAGE_END","messageId":"r"}`,
	`{"type":"REASONING_MESSAGE_CHUNK","messageId":"n","delta":"x"}`,
	`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"x"}`,
	`{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"x"}`,
	`{"type":"THINKING_TEXT_MESSAGE_END"}`,
	`{"type":"THINKING_END"}`,
	`{"type":"STATE_SNAPSHOT","snapshot":{}}`,
	`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]}`,
	`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"x"}]}`,
	`{"type":"ACTIVITY_SNAPSHOT","messageId":"n","activityType":"A","content":{},"replace":true}`,
	`{"type":"ACTIVITY_DELTA","messageId":"n","activityType":"A","patch":[{"op":"remove","path":"/a"}]}`,
	`{"type":"RAW","event":{},"source":"x"}`,
	`{"type":"CUSTOM","name":"x","value":{}}`,
	`{"type":"STEP_STARTED","stepName":"n"}`,
	`{"type":"STEP_FINISHED","stepName":"s"}`,
	`{"type":"SUBAGENT_STARTED","subagentRunId":"b","name":"x","description":"x","parentSubagentRunId":"a","parentToolCallId":"c","parentMessageId":"m"}`,
	`{"type":"SUBAGENT_FINISHED","subagentRunId":"a","result":1,"outcome":{"type":"suspended","interruptIds":["i"]}}`,
	`{"type":"SUBAGENT_ERROR","subagentRunId":"a","message":"x","code":"x"}`,
	`{"type":"RUN_ERROR","message":"x","code":"x","usage":[{"provider":"p","inputTokens":1}]}`,
	`{"type":"FUTURE"}`,
}

var beginning = []string{
	`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`,
	`{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"x"}`,
	`{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
	`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`,
	`{"type":"REASONING_START","messageId":"r"}`,
	`{"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning"}`,
	`{"type":"THINKING_START"}`,
	`{"type":"THINKING_TEXT_MESSAGE_START"}`,
	`{"type":"STEP_STARTED","stepName":"s"}`,
}

// A schemaCase is a stream that ends with the event in question.
type schemaCase struct {
	before []string
	event  string
}

func schemaCases() (cases []schemaCase) {
	wrong := []string{`null`, `-7`, `1.5`, `9007199254740992`, `true`, `"other"`, `[]`, `[7]`, `{}`}
	vary := func(before []string, event string) {
		object, _ := rawjson.ParseObject([]byte(event))
		cases = append(cases, schemaCase{before, event})
		for _, name := range append(object.Keys(), "timestamp", "metadata", "rawEvent", "subagentRunId", "vendor", "toString") {
			if name == "type" {
				continue
			}
			changed := object.Clone()
			changed.Remove(name)
			cases = append(cases, schemaCase{before, string(changed.Text())})
			for _, value := range wrong {
				if name == "subagentRunId" && value[0] == '"' || name == "messageId" && value[0] == '"' ||
					name == "toolCallId" && value[0] == '"' || name == "parentSubagentRunId" && value[0] == '"' ||
					name == "stepName" && value[0] == '"' {
					continue // it would name something else
				}
				changed := object.Clone()
				changed.Set(name, json.RawMessage(value))
				cases = append(cases, schemaCase{before, string(changed.Text())})
			}
		}
	}
	for _, event := range wellFormed {
		vary(beginning, event)
	}
	// In the events of runs and in lists there is more.
	one := beginning[:1]
	add := func(before []string, format string, values ...string) {
		for _, value := range values {
			cases = append(cases, schemaCase{before, fmt.Sprintf(format, value)})
		}
	}
	vary(nil, `{"type":"RUN_STARTED","threadId":"t","runId":"r","parentRunId":"p","protocolVersion":"1.0","input":{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[]}}`)
	vary(one, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":1,"outcome":{"type":"success"},"usage":[]}`)
	inputs := []string{
		`{"threadId":"t","runId":"r","messages":[]}`, `{"threadId":"t","runId":"r","messages":[],"tools":[]}`, `{"threadId":"t","messages":[],"tools":[],"context":[]}`,
	}
	for _, more := range []string{
		`"state":null`, `"state":7`, `"forwardedProps":null`, `"forwardedProps":{}`, `"tools":null`, `"tools":[{}]`, `"tools":[{"name":"n","description":"d"}]`,
		`"tools":[{"name":"n","description":"d","parameters":null,"metadata":{}}]`, `"tools":[{"name":"n","description":"d","metadata":null}]`, `"context":[{"description":"d","value":"v"}]`,
		`"context":[{"description":"d"}]`, `"resume":[]`, `"resume":null`, `"resume":[{"interruptId":"i","status":"resolved","payload":null}]`, `"resume":[{"interruptId":"i","status":"x"}]`,
		`"protocolVersion":7`, `"protocolVersion":"1.0"`, `"parentRunId":null`, `"vendor":1`, `"messages":[7]`, `"messages":[{"id":"u","role":"user","content":"x"}]`,
	} {
		inputs = append(inputs, `{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[],`+more+`}`)
	}
	add(nil, `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":%s}`, inputs...)
	add(one, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":%s}`,
		`{"type":"success","more":1}`, `{"type":"success","pendingToolCallIds":["c"]}`, `{"type":"success","pendingToolCallIds":7}`, `{"type":"cancelled"}`, `{}`, `{"type":7}`,
		`{"type":"interrupt"}`, `{"type":"interrupt","interrupts":[]}`, `{"type":"interrupt","interrupts":[ ]}`, `{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}]}`,
		`{"type":"interrupt","interrupts":[{"id":"i","reason":"x"}],"more":1}`, `{"type":"interrupt","interrupts":[{"id":"i","reason":"x","more":1}]}`,
		`{"type":"interrupt","interrupts":[{"id":"i"}]}`, `{"type":"interrupt","interrupts":[{"id":"i","reason":"x","message":null}]}`,
		`{"type":"interrupt","interrupts":[{"id":"i","reason":"x","subagentRunId":null}]}`, `{"type":"interrupt","interrupts":[{"id":"i","reason":"x","metadata":{},"responseSchema":{},"expiresAt":"x","toolCallId":"c"}]}`)
	add(one, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":[%s]}`,
		`{}`, `{"more":1}`, `{"provider":7}`, `{"inputTokens":1.5}`, `{"outputTokens":-1}`, `{"totalTokens":-0}`, `{"totalTokens":1e3}`, `{"totalTokens":1e300}`, `{"cacheWriteInputTokens":-1}`, `{"cachedInputTokens":null}`)
	add(beginning, `{"type":"SUBAGENT_FINISHED","subagentRunId":"a","outcome":%s}`,
		`{"type":"success"}`, `{"type":"success","more":1}`, `{"type":"suspended"}`, `{"type":"suspended","interruptIds":null}`, `{"type":"suspended","interruptIds":[7]}`, `{"type":"suspended","more":1}`, `{"type":"x"}`)
	patches := []string{
		`[]`, `{}`, `[{"op":"add","path":"/a","value":null}]`, `[{"op":"add","path":"/a"}]`, `[{"op":"spam","path":7}]`, `[{"path":"/a"}]`, `[null]`, `[[]]`, `["x"]`,
		`[{"op":"remove","path":"a"}]`, `[{"op":"remove","path":"/a~2"}]`, `[{"op":"remove","path":"/a~"}]`, `[{"op":"remove","path":"/~0~1//"}]`, `[{"op":"remove","path":7}]`, `[{"op":"remove"}]`,
		`[{"op":"move","from":"/b","path":"/a"}]`, `[{"op":"move","path":"/a"}]`, `[{"op":"copy","from":"","path":"/a"}]`, `[{"op":"test","path":"/a","value":1,"more":1}]`, `[{"op":7}]`,
	}
	add(beginning, `{"type":"STATE_DELTA","delta":%s}`, patches...)
	add(beginning, `{"type":"ACTIVITY_DELTA","messageId":"n","activityType":"A","patch":%s}`, patches...)
	parts := []string{
		`[]`, `[{"type":"text","text":"x"}]`, `[{"type":"text"}]`, `[{"type":"text","text":"x","id":7}]`, `[{"type":"text","text":"x","metadata":null}]`, `[{"type":"text","text":"x","more":1}]`,
		`[{"type":"other"}]`, `[{}]`, `["x"]`, `[{"type":"image","source":{"type":"data","value":"x","mimeType":"m"}}]`, `[{"type":"image","source":{"type":"data","value":"x"}}]`,
		`[{"type":"audio","source":{"type":"url","value":"x"}}]`, `[{"type":"audio","source":{"type":"url","value":"x","mimeType":null}}]`, `[{"type":"video","source":{"type":"file","value":"x","provider":"p"}}]`,
		`[{"type":"video","source":{"type":"other","value":"x"}}]`, `[{"type":"document","source":7}]`, `[{"type":"document","metadata":null,"source":{"type":"url","value":"x"}}]`,
		`[{"type":"document","metadata":7,"source":{"type":"url","value":"x"},"id":"i"}]`, `[{"type":"document"}]`,
		`[{"type":"binary","mimeType":"m","url":"x"}]`, `[{"type":"binary","mimeType":"m"}]`, `[{"type":"binary","mimeType":"m","id":"x"}]`, `[{"type":"binary","mimeType":"m","data":"x","filename":"f"}]`,
	}
	add(beginning, `{"type":"TOOL_CALL_RESULT","messageId":"n","toolCallId":"c","content":%s}`, parts...)
	add(beginning, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":%s}]}`, parts...)
	add(beginning, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"tool","toolCallId":"c","content":%s}]}`, parts...)
	for _, message := range []string{
		`"role":"user"`, `"role":"user","content":null`, `"role":"user","content":"x","name":7`, `"role":"user","content":"x","vendor":1`, `"role":"other"`, `"role":7`, `"content":"x"`,
		`"role":"assistant"`, `"role":"assistant","content":null`, `"role":"assistant","content":[]`, `"role":"assistant","toolCalls":null`, `"role":"assistant","toolCalls":[7]`,
		`"role":"assistant","toolCalls":[{"id":"d","type":"function","function":{"name":"f","arguments":""}}]`, `"role":"assistant","toolCalls":[{"id":"d","function":{"name":"f","arguments":""}}]`,
		`"role":"assistant","toolCalls":[{"id":"d","type":"function","function":{"name":"f","arguments":{}}}]`, `"role":"assistant","toolCalls":[{"id":"d","type":"function","metadata":null,"function":{"name":"f","arguments":""}}]`,
		`"role":"system","content":"x"`, `"role":"developer"`, `"role":"tool","content":"x"`, `"role":"tool","content":"x","toolCallId":"c","error":"e"`, `"role":"tool","content":"x","toolCallId":"c","name":7`,
		`"role":"activity","activityType":"A","content":{}`, `"role":"activity","content":{}`, `"role":"activity","activityType":"A","content":[]`, `"role":"reasoning","content":"x"`, `"role":"reasoning"`,
		`"role":"reasoning","content":"x","encryptedValue":7`, `"role":"user","content":"x","subagentRunId":null`, `"role":"user","content":"x","subagentRunId":"a"`, `"role":"user","content":"x","metadata":[]`,
	} {
		add(beginning, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u",%s}]}`, message)
		add(beginning, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":7,%s}]}`, message)
	}
	add(beginning, `%s`, `{}`, `{"type":7}`, `{"type":"toString"}`, `{"type":""}`)
	return cases
}

// TestSchemasAreThoseOfTheClients: an event passes unchanged exactly if the client takes it.
func TestSchemasAreThoseOfTheClients(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	cases := schemaCases()
	streams := make([][][]byte, len(cases))
	for i, c := range cases {
		for _, event := range c.before {
			streams[i] = append(streams[i], []byte(event))
		}
		streams[i] = append(streams[i], []byte(c.event))
	}
	outcomes := judge(t, streams)
	var passed [][][]byte
	var clients []int
	var origins []string
	for i, c := range cases {
		for j, client := range []accept.Clients{accept.Client0, accept.Client1} {
			f := accept.New(run, client)
			var sent [][]byte
			for _, event := range streams[i] {
				before, send := f.Push(event)
				if sent = append(sent, before...); send != nil {
					sent = append(sent, send)
				}
			}
			sent = append(sent, f.End("")...)
			stats := f.Stats()
			isUnchanged := stats.Malformed+stats.Changed+stats.Misplaced == 0
			isAccepted := outcomes[i][j].Error == ""
			if isUnchanged != isAccepted {
				t.Errorf("client %d on %s: accepted %v (%.200s), unchanged %v (%+v)", j, c.event, isAccepted, outcomes[i][j].Error, isUnchanged, stats)
			}
			if !isUnchanged {
				passed = append(passed, sent)
				clients = append(clients, j)
				origins = append(origins, fmt.Sprintf("for client %d: %s", j, c.event))
			}
		}
	}
	t.Logf("%d events", len(cases))
	after := judge(t, passed)
	for i := range passed {
		if outcome := after[i][clients[i]]; outcome.Error != "" {
			t.Errorf("refused: %.200s: %s\n%s", outcome.Error, origins[i], printed(passed[i]))
		}
	}
}
