package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
)

func TestClientsReceiveWhatTheAgentSendsAfterItIsStored(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	sent := []string{
		started("thread", "run"), start("a1"), `{ "type" : "TEXT_MESSAGE_CONTENT", "delta":"\u00e9\ud83d","messageId":"a1", "unknown": 1.50 }`,
		end("a1"), finished("thread", "run"),
	}
	called.send(sent[:3]...)
	for range 3 {
		c.event()
	}
	if stored := p.logOf("thread", "run"); !slices.Equal(stored, sent[:3]) {
		t.Errorf("the client has events that the log does not have:\n%q\nlog:\n%q", c.events, stored)
	}
	called.send(sent[3:]...)
	close(called.answers)
	c.rest()
	if !slices.Equal(c.events, sent) || !slices.Equal(p.logOf("thread", "run"), sent) {
		t.Errorf("the agent sent\n%q\nthe client received\n%q\nthe log has\n%q", sent, c.events, p.logOf("thread", "run"))
	}
	if !strings.HasPrefix(c.lastID, "5-") {
		t.Errorf("the last position is %q, want 5-…", c.lastID)
	}
}

func TestARunContinuesWhenItsClientGoesAway(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	called.send(started("thread", "run"))
	c.want("RUN_STARTED")
	c.answer.Body.Close()
	called.send(start("a1"), content("a1", "more"), end("a1"), finished("thread", "run"))
	close(called.answers)
	if status := p.waitForEnd("thread", "run"); status.LastSeq != 5 {
		t.Errorf("the log has %d events, want 5", status.LastSeq)
	}
}

func TestHistoryIsFilledIn(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	first := p.run("thread", "run-1", "s1 system Be brief", "u1 user Hello")
	a.called(t).finish("a1", "Hi")
	first.rest()

	for _, test := range []struct {
		name     string
		messages []string
		history  string
		want     []string
	}{
		{"a new message", []string{"u2 user More"}, "", []string{"s1", "u1", "a1", "u2"}},
		{"its own system message", []string{"s2 system Be long", "u2 user More"}, "", []string{"u1", "a1", "s2", "u2"}},
		{"all messages", []string{"u1 user Hello", "a1 assistant Hi", "u2 user More"}, "", []string{"u1", "a1", "u2"}},
		{"no messages", nil, "", []string{"s1", "u1", "a1"}},
		{"only new ones, as it says", []string{"u1 user Hello", "u2 user More"}, "new", []string{"s1", "u1", "a1", "u2"}},
		{"all, as it says", []string{"u2 user More"}, "full", []string{"u2"}},
	} {
		body := strings.Replace(input("thread", "run "+test.name, test.messages...), `"forwardedProps":{}`,
			fmt.Sprintf(`"forwardedProps":{"pgagui":{"parentRunId":"run-1","history":%q}}`, test.history), 1)
		body = strings.Replace(body, `,"history":""`, "", 1)
		c := p.stream("POST", "/agent/test/run", body)
		called := a.called(t)
		if got := called.messageIDs(); !slices.Equal(got, test.want) {
			t.Errorf("%s: the agent received %v, want %v", test.name, got, test.want)
		}
		called.finish("a-"+test.name, "More")
		c.rest()
		stored, _, err := p.store.RunInput(t.Context(), "thread", mustRun(t, p, "thread", "run "+test.name))
		if err != nil || string(stored) != body {
			t.Errorf("%s: the log has the input %s, want %s (%v)", test.name, stored, body, err)
		}
	}
}

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("thread", "run-1", "u1 user Hello")
	called := a.called(t)
	// Before the first event, and after it.
	for _, begin := range []func(){func() {}, func() { called.send(started("thread", "run-1")); c.want("RUN_STARTED") }} {
		begin()
		if refused := p.json(409, "POST", "/agent/test/run", input("thread", "run-2", "u2 user More")); refused["runId"] != "run-1" {
			t.Errorf("the refusal names run %v, want run-1", refused["runId"])
		}
		if refused := p.json(409, "POST", "/agent/test/run", input("thread", "run-1", "u2 user More")); refused["sqlstate"] != "UI007" {
			t.Errorf("another input for the same run: %v", refused)
		}
	}
	// The same request attaches, on another process too.
	other := serve(t, p.pool(), withAgent(a))
	again, elsewhere := p.run("thread", "run-1", "u1 user Hello"), other.run("thread", "run-1", "u1 user Hello")
	called.send(start("a1"), content("a1", "Hi"), end("a1"), finished("thread", "run-1"))
	close(called.answers)
	c.rest()
	again.rest()
	elsewhere.rest()
	if !slices.Equal(again.events, c.events) || !slices.Equal(elsewhere.events, c.events) {
		t.Errorf("three clients of one run received\n%q\n%q\n%q", c.events, again.events, elsewhere.events)
	}
	if len(a.calls) > 0 {
		t.Error("the agent was called twice for one run")
	}
}

func TestWhatAgentsDoWrongEndsTheRunWithAReason(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	a := newAgent(t)
	gone := newAgent(t)
	gone.Close()
	refusing := newStatusAgent(t, http.StatusInternalServerError, "no \x1b[31mway")
	p := serve(t, pool, server.Options{Agents: []server.Agent{
		{Name: "test", URL: a.URL, MaxEventBytes: 10_000}, {Name: "gone", URL: gone.URL}, {Name: "refusing", URL: refusing.URL},
		{Name: "idle", URL: a.URL, IdleTimeout: 50 * time.Millisecond}, {Name: "long", URL: a.URL, RunTimeout: 100 * time.Millisecond},
	}})
	for _, test := range []struct {
		name, agent, code string
		do                func(*call)
	}{
		{"unreachable", "gone", "AGENT_UNREACHABLE", nil},
		{"status", "refusing", "AGENT_STATUS", nil},
		{"no events", "test", "AGENT_INCOMPLETE", func(c *call) { close(c.answers) }},
		{"no end", "test", "AGENT_INCOMPLETE", func(c *call) { c.send(started("t", "r"), start("a1")); close(c.answers) }},
		{"broken off", "test", "AGENT_INCOMPLETE", func(c *call) { c.send(started("t", "r")); time.Sleep(20 * time.Millisecond); close(c.breaks) }},
		{"no JSON", "test", "AGENT_PROTOCOL", func(c *call) { c.send(started("t", "r"), `{"type":`) }},
		{"a list", "test", "AGENT_PROTOCOL", func(c *call) { c.send(`[]`) }},
		{"too large", "test", "AGENT_PROTOCOL", func(c *call) { c.send(content("a1", strings.Repeat("x", 20_000))) }},
		{"idle", "idle", "AGENT_TIMEOUT", func(c *call) { c.send(started("t", "r")) }},
		{"too long", "long", "AGENT_TIMEOUT", func(c *call) {
			go func() {
				for c.context.Err() == nil {
					c.send(content("a1", "x"))
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			thread := "thread " + test.name
			c := p.stream("POST", "/agent/"+test.agent+"/run", input(thread, "run", "u1 user Hello"))
			if test.do != nil {
				test.do(a.called(t))
			}
			types := c.rest()
			last := c.events[len(c.events)-1]
			if types[0] != "RUN_STARTED" || !strings.Contains(last, `"code":"`+test.code+`"`) || strings.Contains(last, "127.0.0.1") {
				t.Errorf("the client received %q, want a RUN_ERROR with %s at the end", c.events, test.code)
			}
			if status := p.waitForEnd(thread, "run"); status.Status != "failed" {
				t.Errorf("the run is %s", status.Status)
			}
		})
	}
}

func TestIDsOfTheAgentAreReplaced(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("thread \"é\"", "run", "u1 user Hello")
	called := a.called(t)
	called.send(`{"threadId" : "mine", "x":[1, 2], "type":"RUN_STARTED","runId":"also mine", "z":1.0}`, finished("mine", "run"))
	close(called.answers)
	c.rest()
	want := `{"threadId" : "thread \"é\"", "x":[1, 2], "type":"RUN_STARTED","runId":"run", "z":1.0}`
	if stored := p.logOf("thread \"é\"", "run"); stored[0] != want {
		t.Errorf("the log has %s, want %s", stored[0], want)
	}
}

func TestWhatFollowsTheEndIsStoredBehindIt(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	sent := []string{started("thread", "run"), finished("thread", "run"), `{"type":"CUSTOM","name":"late","value":1}`}
	called.send(sent...)
	// The agent does not end its answer: the server does.
	c.rest()
	if stored := p.logOf("thread", "run"); !slices.Equal(stored, sent) {
		t.Errorf("the log has %q, want %q", stored, sent)
	}
	if last := c.events[len(c.events)-1]; !strings.Contains(last, "RUN_FINISHED") {
		t.Errorf("the client received %q, want RUN_FINISHED last", c.events)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	other := serve(t, p.pool(), withAgent(a))
	for _, test := range []struct {
		name string
		sent []string
		want []string
	}{
		{"before the first event", nil, []string{"RUN_STARTED", "RUN_FINISHED"}},
		{"in a message", []string{started("x", "run"), start("a1"), content("a1", "x")},
			[]string{"RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"}},
	} {
		thread := "thread " + test.name
		c := p.stream("POST", "/agent/test/run", input(thread, "run", "u1 user Hello"))
		called := a.called(t)
		called.send(test.sent...)
		for range test.sent {
			c.event()
		}
		if stopped := other.json(200, "POST", "/threads/"+thread+"/stop", `{"reason":"enough"}`); fmt.Sprint(stopped["stopped"]) != "1" {
			t.Errorf("%s: %v", test.name, stopped)
		}
		c.rest()
		var types []string
		for _, event := range p.logOf(thread, "run") {
			types = append(types, typeOf(event))
		}
		if !slices.Equal(types, test.want) {
			t.Errorf("%s: the log has %v, want %v", test.name, types, test.want)
		}
		select {
		case <-called.context.Done():
		case <-time.After(patience):
			t.Errorf("%s: the call of the agent did not end", test.name)
		}
	}
}
