package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestCopilotKitThreads(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	const face = "/copilotkit"
	for _, thread := range []string{"thread-1", "thread 2/ä"} {
		c := p.stream("POST", face+"/agent/test/run", input(thread, "run-"+thread, "u1 user Hello "+thread))
		called := a.called(t)
		called.send(started(thread, "run-"+thread), `{"type":"TOOL_CALL_START","toolCallId":"t1","toolCallName":"look","parentMessageId":"a1"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"t1","delta":"{}"}`, `{"type":"TOOL_CALL_END","toolCallId":"t1"}`,
			`{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}`, finished(thread, "run-"+thread))
		close(called.answers)
		c.rest()
	}

	list := func(query string) (ids []string, next any) {
		page := p.json(200, "GET", face+"/threads?agentId=test"+query, "")
		for _, item := range page["threads"].([]any) {
			thread := item.(map[string]any)
			ids = append(ids, fmt.Sprintf("%v %v %v", thread["id"], thread["name"], thread["archived"]))
			for _, name := range []string{"agentId", "organizationId", "createdById", "createdAt", "updatedAt", "lastRunAt"} {
				if _, isThere := thread[name]; !isThere {
					t.Errorf("a thread has no %s: %v", name, thread)
				}
			}
		}
		return ids, page["nextCursor"]
	}
	want := func(query string, want ...string) {
		t.Helper()
		if ids, _ := list(query); !slices.Equal(ids, want) {
			t.Errorf("list %q: %q, want %q", query, ids, want)
		}
	}
	want("", "thread 2/ä Hello thread 2/ä false", "thread-1 Hello thread-1 false")
	first, next := list("&limit=1")
	if second, end := list("&limit=1&cursor=" + fmt.Sprint(next)); len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("pages %v, %v, %v", first, second, end)
	}
	path := face + "/threads/thread%202%2F%C3%A4"
	if renamed := p.json(200, "PATCH", path, `{"agentId":"test","name":"New name"}`); renamed["name"] != "New name" {
		t.Errorf("rename: %v", renamed)
	}
	p.json(200, "POST", path+"/archive", `{"agentId":"test"}`)
	want("", "thread-1 Hello thread-1 false")
	want("&includeArchived=true", "thread 2/ä New name true", "thread-1 Hello thread-1 false")
	p.json(200, "PATCH", path, `{"agentId":"test","archived":false}`)

	messages, _ := json.Marshal(p.json(200, "GET", path+"/messages", "")["messages"])
	if want := `[{"content":"Hello thread 2/ä","id":"u1","role":"user"},{"id":"a1","role":"assistant","toolCalls":[{"args":"{}","id":"t1","name":"look"}]}]`; string(messages) != want {
		t.Errorf("messages: %s", messages)
	}
	if state := p.json(200, "GET", path+"/state", "")["state"]; fmt.Sprint(state) != "map[n:1]" {
		t.Errorf("state: %v", state)
	}
	if events := p.json(200, "GET", path+"/events", "")["events"].([]any); len(events) < 5 {
		t.Errorf("events: %v", events)
	}
	for path, want := range map[string]string{"/messages": "map[messages:[]]", "/events": "map[events:[]]", "/state": "map[state:<nil>]"} {
		if got := fmt.Sprint(p.json(200, "GET", face+"/threads/none"+path, "")); got != want {
			t.Errorf("an unknown thread: %s: %s", path, got)
		}
	}
}

func TestCopilotKitDeleteStopsAndErases(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.stream("POST", "/copilotkit/agent/test/run", input("thread", "run", "u1 user Hello"))
	called := a.called(t)
	called.send(started("thread", "run"), start("a1"))
	c.want("RUN_STARTED", "TEXT_MESSAGE_START")
	for range 2 { // the second time it is gone
		if deleted := p.json(200, "DELETE", "/copilotkit/threads/thread", `{"agentId":"test"}`); deleted["deleted"] != true {
			t.Errorf("delete: %v", deleted)
		}
	}
	p.json(200, "DELETE", "/copilotkit/threads/never", `{"agentId":"test"}`)
	<-called.context.Done()

	again := p.stream("POST", "/copilotkit/agent/test/run", input("thread", "run-2", "u2 user More"))
	if again.rest(); len(again.events) != 1 || !strings.Contains(again.events[0], `"code":"THREAD_ERASED"`) {
		t.Errorf("a run in a thread that was deleted: %q", again.events)
	}
	if types := p.stream("POST", "/copilotkit/agent/test/connect", connectInput("thread")).rest(); len(types) > 0 {
		t.Errorf("connect to a thread that was deleted: %v", types)
	}
	p.json(410, "POST", "/agent/test/run", input("thread", "run-2", "u2 user More"))
	if _, err := p.store.Thread(t.Context(), "thread"); err == nil {
		t.Error("the thread exists")
	}
}

func TestCopilotKitStop(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	if answer := p.json(200, "POST", "/copilotkit/agent/test/stop/thread", ""); answer["stopped"] != false {
		t.Errorf("stop without a run: %v", answer)
	}
	c := p.run("thread", "run", "u1 user Hello")
	a.called(t).send(started("thread", "run"))
	c.want("RUN_STARTED")
	if answer := p.json(200, "POST", "/copilotkit/agent/test/stop/thread", `{"runId":"other"}`); answer["stopped"] != false {
		t.Errorf("stop of another run: %v", answer)
	}
	answer := p.json(200, "POST", "/copilotkit/agent/test/stop/thread", "")
	if answer["stopped"] != true || fmt.Sprint(answer["interrupt"]) != "map[code:STOPPED message:Run stopped by user type:RUN_ERROR]" {
		t.Errorf("stop: %v", answer)
	}
	c.rest()
	if status := p.waitForEnd("thread", "run"); status.Status != pgagui.Cancelled {
		t.Errorf("the run is %s", status.Status)
	}
}

func TestCopilotKitSingleRoute(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Heartbeat = time.Hour // the answer begins before the agent's first event
	p := serve(t, testdb.Pool(t), options)
	post := func(method, params, body string) *client {
		return p.stream("POST", "/copilotkit", fmt.Sprintf(`{"method":%q,"params":%s,"body":%s}`, method, params, body))
	}
	info := p.json(200, "POST", "/copilotkit/", `{"method":"info"}`)
	if direct := p.json(200, "GET", "/copilotkit/info", ""); fmt.Sprint(info) != fmt.Sprint(direct) || fmt.Sprint(info["mode"]) != "sse" {
		t.Errorf("info: %v, on its own path %v", info, direct)
	}
	c := post("agent/run", `{"agentId":"test"}`, input("thread", "run", "u1 user Hello"))
	a.called(t).finish("a1", "Hi")
	c.rest()
	if types := post("agent/connect", `{"agentId":"test"}`, connectInput("thread")).rest(); len(types) < 3 {
		t.Errorf("connect: %v", types)
	}
	stop := p.json(200, "POST", "/copilotkit", `{"method":"agent/stop","params":{"agentId":"test","threadId":"thread"}}`)
	if stop["stopped"] != false {
		t.Errorf("stop: %v", stop)
	}
	page := p.json(200, "POST", "/copilotkit", `{"method":"resource/request","params":{"path":"/threads?agentId=test","httpMethod":"GET"}}`)
	if len(page["threads"].([]any)) != 1 {
		t.Errorf("threads: %v", page)
	}
	p.json(200, "POST", "/copilotkit", `{"method":"resource/request","params":{"path":"/threads/thread","httpMethod":"PATCH"},"body":{"name":"x"}}`)
	for body, status := range map[string]int{
		``: 400, `{`: 400, `[]`: 400, `{"method":"other"}`: 400,
		`{"method":"resource/request","params":{"path":"/../../threads/x/events","httpMethod":"GET"}}`: 422,
	} {
		p.json(status, "POST", "/copilotkit", body)
	}
}
