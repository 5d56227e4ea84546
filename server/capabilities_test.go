package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// everyCapability has each member of the official schema, so that the settings take all of them.
const everyCapability = `{
	"identity":{"name":"Planner","type":"langgraph","description":"Plans","version":"1.2.0","provider":"us","documentationUrl":"https://e.com","metadata":{"a":1}},
	"tools":{"supported":true,"items":[{"name":"book","description":"Books","parameters":{}}],"parallelCalls":true,"clientProvided":true},
	"output":{"structuredOutput":true,"supportedMimeTypes":["text/plain"]},
	"state":{"deltas":true,"memory":false,"persistentState":false},
	"multiAgent":{"supported":true,"delegation":true,"handoffs":false,"subagents":[{"name":"reader","description":"reads"}]},
	"reasoning":{"supported":true,"streaming":true,"encrypted":false},
	"multimodal":{"input":{"image":true,"audio":false,"video":false,"pdf":true,"file":false},"output":{"image":false,"audio":false}},
	"execution":{"codeExecution":true,"sandboxed":true,"maxIterations":9,"maxExecutionTime":1000},
	"humanInTheLoop":{"supported":true,"approvals":true,"interventions":false,"feedback":false,"interrupts":true,"approveWithEdits":false},
	"custom":{"anything":[1]}}`

// Both lists of agents name the same capabilities, and the official schema takes them.
func TestCapabilitiesAreThoseOfTheOfficialSchema(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{
		{Name: "plain", URL: "http://localhost:1/", Description: "Answers"},
		{Name: "rich", URL: "http://localhost:1/", Capabilities: json.RawMessage(everyCapability)},
		{Name: "slow", URL: "http://localhost:1/", Capabilities: json.RawMessage(`{"execution":{"maxExecutionTime":9007199254740991},"custom":{}}`)},
	}})
	type agent struct {
		Name, Description string
		Capabilities      json.RawMessage
	}
	var listed struct{ Agents []agent }
	var info struct{ Agents map[string]agent }
	for path, into := range map[string]any{"/agents": &listed, "/copilotkit/info": &info} {
		answer := must.Have(http.Get(p.URL + path))(t)
		defer answer.Body.Close()
		must.Do(t, json.NewDecoder(answer.Body).Decode(into))
	}
	if len(listed.Agents) != 3 || listed.Agents[0].Name != "plain" || listed.Agents[0].Description != "Answers" {
		t.Fatalf("%+v", listed)
	}
	wantJSON(t, listed.Agents[0].Capabilities, `{"identity":{"name":"plain","description":"Answers"},"transport":{"streaming":true,"resumable":true},
		"state":{"snapshots":true,"persistentState":true},"execution":{"maxExecutionTime":3600000}}`)
	rich := strings.Replace(everyCapability, `"state":{`, `"transport":{"streaming":true,"resumable":true},"state":{"snapshots":true,`, 1)
	wantJSON(t, listed.Agents[1].Capabilities, rich)
	wantJSON(t, listed.Agents[2].Capabilities, `{"identity":{"name":"slow"},"transport":{"streaming":true,"resumable":true},
		"state":{"snapshots":true,"persistentState":true},"execution":{"maxExecutionTime":3600000},"custom":{}}`)

	var question bytes.Buffer
	for _, agent := range listed.Agents {
		wantJSON(t, info.Agents[agent.Name].Capabilities, string(agent.Capabilities))
		question.Write(append(agent.Capabilities, '\n'))
	}
	const oracle = "../test/oracle"
	if _, err := os.Stat(filepath.Join(oracle, "node_modules")); err != nil {
		testneeds.Skip(t, testneeds.Node, "the official client is not installed: npm ci in test/oracle")
	}
	schema := exec.Command("node", filepath.Join(oracle, "schema.mjs"), "AgentCapabilities")
	schema.Stdin = &question
	schema.Stderr = os.Stderr
	problems, err := schema.Output()
	if err != nil || string(problems) != "\n\n\n" {
		t.Errorf("the official schema: %s %v", problems, err)
	}
}

func TestCapabilitiesThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`null`:                                "null",
		`[]`:                                  "cannot unmarshal array",
		`{"transport":{"websocket":true}}`:    `unknown field "transport"`,
		`{"humanInTheLop":{}}`:                `unknown field "humanInTheLop"`,
		`{"state":{"delta":true}}`:            `unknown field "delta"`,
		`{"state":{"deltas":"yes"}}`:          "state.Deltas",
		`{"execution":{"maxIterations":1.5}}`: "number 1.5",
	} {
		options := server.Options{
			Access: access.Anonymous("", access.Admin), Agents: []server.Agent{{Name: "a", URL: "http://localhost:1/", Capabilities: json.RawMessage(text)}},
		}
		if _, err := server.New(pgagui.New(nil, nil), options); err == nil || !strings.Contains(err.Error(), `agent "a": its capabilities`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A client that takes events in protobuf alone is refused before a run begins; any other gets server-sent events.
func TestStreamsAreServerSentEventsOnly(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{{Name: "test", URL: a.URL}}})
	const proto = "application/vnd.ag-ui.event+proto"
	ask := func(method, path string, accept ...string) int {
		t.Helper()
		request := must.Have(http.NewRequest(method, p.URL+path, strings.NewReader(`{"threadId":"none","runId":"r","messages":[]}`)))(t)
		request.Header["Accept"] = accept
		answer := must.Have(http.DefaultClient.Do(request))(t)
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, accept := range [][]string{{proto}, {proto + ";q=0.5, application/json"}, {proto, "text/event-stream;q=0, */*"}, {"text/html", proto}} {
		for _, stream := range []string{
			"POST /agent/test/run", "POST /agent/test/connect", "GET /threads/none/events", "POST /copilotkit/agent/test/run", "POST /copilotkit/agent/test/connect",
		} {
			method, path, _ := strings.Cut(stream, " ")
			if status := ask(method, path, accept...); status != http.StatusNotAcceptable {
				t.Errorf("%s, accept %q: %d", stream, accept, status)
			}
		}
	}
	if len(a.calls) > 0 {
		t.Error("a run began")
	}
	for _, accept := range [][]string{nil, {""}, {"application/json"}, {proto + ", text/event-stream;q=0.1"}, {proto, "*/*"}, {proto + ", text/*"}, {"nonsense;;"}} {
		if status := ask("POST", "/agent/test/connect", accept...); status != http.StatusOK {
			t.Errorf("accept %q: %d", accept, status)
		}
	}
}
