package server_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
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
		stored, err := p.store.RunInput(t.Context(), pgagui.RunRef{ThreadID: "thread", RunID: "run " + test.name})
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
	refusing := newStatusAgent(t, http.StatusInternalServerError, "no \x1b[31mway")
	p := serve(t, pool, server.Options{Agents: []server.Agent{
		{Name: "test", URL: a.URL, MaxEventBytes: 10_000}, {Name: "gone", URL: "http://127.0.0.1:1/"}, {Name: "refusing", URL: refusing.URL},
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
		{"broken off", "test", "AGENT_INCOMPLETE", func(c *call) { c.send(started("t", "r")); p.waitForSeq("thread broken off", 1); close(c.breaks) }},
		{"no JSON", "test", "AGENT_PROTOCOL", func(c *call) { c.send(started("t", "r"), `{"type":`) }},
		{"a list", "test", "AGENT_PROTOCOL", func(c *call) { c.send(`[]`) }},
		{"no UTF-8", "test", "AGENT_PROTOCOL", func(c *call) { c.send(started("t", "r"), "{\"type\":\"CUSTOM\",\"name\":\"\xff\"}") }},
		{"a broken event", "test", "AGENT_PROTOCOL", func(c *call) { c.send(started("t", "r"), `{"type":"CUSTOM","name":`) }},
		{"a broken end", "test", "AGENT_PROTOCOL", func(c *call) { c.send(started("t", "r"), `{"type":"RUN_FINISHED","threadId":`) }},
		{"no type", "test", "AGENT_PROTOCOL", func(c *call) { c.send(started("t", "r"), `{"type":5}`) }},
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

// An agent, or who speaks for it, leads the server nowhere else, and its client hears nothing of what the answer said.
func TestAnAgentLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Add(1)
		fmt.Fprint(w, "secret of the inside")
	}))
	t.Cleanup(inside.Close)
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
			http.Redirect(w, r, inside.URL, status)
			return
		}
		w.Header().Set("Content-Type", "text/secret")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "secret of the agent")
	}))
	t.Cleanup(redirecting.Close)
	logged := &logOfServer{}
	p := serve(t, testdb.Pool(t), server.Options{
		Logger: slog.New(slog.NewTextHandler(logged, nil)),
		Agents: []server.Agent{
			{Name: "303", URL: redirecting.URL + "/303"}, {Name: "307", URL: redirecting.URL + "/307"}, {Name: "308", URL: redirecting.URL + "/308"},
			{Name: "refusing", URL: redirecting.URL + "/"}, {Name: "metadata", URL: "http://169.254.169.254/latest/meta-data/"}, {Name: "link-local", URL: "http://[fe80::1%25lo]:80/"},
		},
	})
	for agent, code := range map[string]string{
		"303": "AGENT_STATUS", "307": "AGENT_STATUS", "308": "AGENT_STATUS", "refusing": "AGENT_STATUS", "metadata": "AGENT_UNREACHABLE", "link-local": "AGENT_UNREACHABLE",
	} {
		c := p.stream("POST", "/agent/"+agent+"/run", input("thread "+agent, "run", "u1 user Hello"))
		c.rest()
		last := c.events[len(c.events)-1]
		if !strings.Contains(last, `"code":"`+code+`"`) || strings.Contains(last, "secret") || strings.Contains(last, "127.0.0.1") || strings.Contains(last, "169.254") {
			t.Errorf("%s: the client received %q, want %s", agent, last, code)
		}
	}
	if n := called.Load(); n > 0 {
		t.Errorf("%d requests were sent to another address", n)
	}
	wait.For(t, "the log says which statuses the agents answered", func() bool { // it does after the end of a run
		return logged.count("status 418") == 1 && logged.count(inside.URL) == 3
	})
}

func TestAgentsOfSomeNetworks(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	for networks, isReached := range map[string]bool{"127.0.0.0/8": true, "10.0.0.0/8": false} {
		p := serve(t, testdb.Pool(t), server.Options{
			Agents: []server.Agent{{Name: "test", URL: a.URL}}, AgentNetworks: []netip.Prefix{netip.MustParsePrefix(networks)},
		})
		c := p.stream("POST", "/agent/test/run", input("thread", "run", "u1 user Hello"))
		if isReached {
			a.called(t).finish("a1", "Hi")
		}
		c.rest()
		if last := c.events[len(c.events)-1]; strings.Contains(last, "RUN_FINISHED") != isReached {
			t.Errorf("networks %s: the client received %q", networks, last)
		}
	}
}

func TestAnEventThatTheDatabaseRefusesEndsTheRun(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	tooDeep := `{"type":"CUSTOM","name":"n","value":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`
	for _, test := range []struct {
		thread string
		sent   []string
		want   pgagui.Status // of a run that began
	}{
		{"the first event", []string{tooDeep}, ""},
		{"a later event", []string{started("t", "r"), tooDeep}, pgagui.CutOff},
	} {
		p.run(test.thread, "run", "u1 user Hello")
		called := a.called(t)
		for i, event := range test.sent {
			if i > 0 { // the events before it are in the log
				p.waitForSeq(test.thread, int64(i))
			}
			called.send(event)
		}
		select {
		case <-called.context.Done():
		case <-time.After(patience):
			t.Errorf("%s: the agent was not stopped", test.thread)
		}
		if test.want != "" {
			if status := p.waitForEnd(test.thread, "run"); status.Status != test.want || !strings.Contains(status.CutOffReason, "1000 levels") {
				t.Errorf("%s: the run is %s (%s)", test.thread, status.Status, status.CutOffReason)
			}
		}
		// Nothing of the run blocks the next one.
		wait.For(t, test.thread+": the next run begins", func() bool {
			return p.request("POST", "/agent/test/run", input(test.thread, "next", "u1 user Hello")).StatusCode == http.StatusOK
		})
		a.called(t).finish("a1", "Hi")
		if status := p.waitForEnd(test.thread, "next"); status.Status != pgagui.Finished {
			t.Errorf("%s: the next run is %s", test.thread, status.Status)
		}
	}
}

func TestAnAgentThatSendsWithoutEndAfterItsError(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	called.send(started("thread", "run"), `{"type":"RUN_ERROR","message":"no"}`)
	for megabytes, sent := 0, true; sent; megabytes++ {
		if megabytes > 100+cap(called.answers) {
			t.Fatal("the server took 100 MB")
		}
		select {
		case called.answers <- "data: " + content("a1", strings.Repeat("x", 1_000_000)) + "\n\n":
		case <-called.context.Done():
			sent = false
		case <-time.After(patience):
			t.Fatal("the agent was not stopped")
		}
	}
	c.want("RUN_STARTED", "RUN_ERROR")
	if status := p.waitForEnd("thread", "run"); status.Status != pgagui.Failed {
		t.Errorf("the run is %s", status.Status)
	}
}

// TestAnAgentIsNotIdleWhileTheDatabaseIsSlow has an agent that sends a whole run at once, and a
// database that takes longer than the idle timeout to store the beginning.
func TestAnAgentIsNotIdleWhileTheDatabaseIsSlow(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Agents[0].IdleTimeout = time.Second
	p := serve(t, testdb.Pool(t), options)
	p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	slow := testdb.Begin(t, p.db)
	defer slow.Rollback(context.Background())
	testdb.Exec(t, slow, "lock table agui.batch in exclusive mode")
	called.finish("a1", "Hi")
	wait.For(t, "the end of the run waits for the lock", func() bool {
		return testdb.Ask[bool](t, slow, "select count(*) > 0 from pg_locks where relation = 'agui.batch'::regclass and not granted")
	})
	time.Sleep(2 * options.Agents[0].IdleTimeout)
	must.Do(t, slow.Commit(t.Context()))
	if status := p.waitForEnd("thread", "run"); status.Status != pgagui.Finished {
		t.Errorf("the run is %s", status.Status)
	}
}

// TestAnAgentThatClosesIdleConnections has an agent that closes a connection when the second request
// arrives on it, as a server does whose timeout for idle connections ends then.
func TestAnAgentThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	listener := must.Have(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go answerOnce(connection.(*net.TCPConn))
		}
	}()
	p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{{Name: "test", URL: "http://" + listener.Addr().String()}}})
	for i := range 5 {
		run := fmt.Sprint("run-", i)
		if types := p.run("thread", run, fmt.Sprintf("u%d user Hello", i)).rest(); types[len(types)-1] != "RUN_FINISHED" {
			t.Errorf("%s ended with %v: %s", run, types, p.logOf("thread", run))
		}
	}
}

// answerOnce answers one request, and resets the connection when more arrives.
func answerOnce(connection *net.TCPConn) {
	defer connection.Close()
	_ = connection.SetLinger(0)
	requests := bufio.NewReader(connection)
	request, err := http.ReadRequest(requests)
	if err != nil {
		return
	}
	var in struct{ ThreadID, RunID string }
	_ = json.NewDecoder(request.Body).Decode(&in)
	_, _ = io.Copy(io.Discard, request.Body)
	frames := fmt.Sprintf("data: %s\n\ndata: %s\n\n", started(in.ThreadID, in.RunID), finished(in.ThreadID, in.RunID))
	_, _ = fmt.Fprintf(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(frames), frames)
	_, _ = requests.ReadByte()
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

// Some agents send a RUN_FINISHED for each turn of the model, and go on when they have called a tool.
func TestARunGoesOnAfterAnEnd(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Agents[0].EndTimeout = time.Minute
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	early := `{"type":"RUN_FINISHED","threadId":"thread","runId":"run","result":"early"}`
	called.send(started("thread", "run"), early)
	c.want("RUN_STARTED")
	time.Sleep(1200 * time.Millisecond) // the tool takes its time
	called.send(start("a1"), content("a1", "Hi"))
	c.want("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT") // at once, and in a run in progress
	p.json(409, "POST", "/agent/test/run", input("thread", "run-2", "u2 user More"))
	called.send(end("a1"), finished("thread", "run"))
	close(called.answers)
	c.want("TEXT_MESSAGE_END", "RUN_FINISHED")
	c.rest()
	want := []string{started("thread", "run"), start("a1"), content("a1", "Hi"), end("a1"), early, finished("thread", "run")}
	if stored := p.logOf("thread", "run"); !slices.Equal(stored, want) {
		t.Errorf("the log has %q, want %q", stored, want)
	}

	// If it breaks off, that end was not the end.
	c = p.run("thread", "run-3", "u1 user Hello", "a1 assistant Hi", "u3 user More")
	called = a.called(t)
	called.send(started("thread", "run-3"), finished("thread", "run-3"), start("a3"))
	c.want("RUN_STARTED", "TEXT_MESSAGE_START")
	close(called.breaks)
	if types := c.rest(); !slices.Contains(types, "RUN_ERROR") {
		t.Errorf("the client received %v", types)
	}
	if status := p.waitForEnd("thread", "run-3"); status.Status != pgagui.Failed {
		t.Errorf("the run is %s", status.Status)
	}
}

// Some agents give the result of a tool call the id of the message that called. Clients send both back.
func TestMessagesThatShareAnID(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("thread", "run-1", "u1 user Hello")
	called := a.called(t)
	called.send(started("thread", "run-1"), `{"type":"TOOL_CALL_START","toolCallId":"t1","toolCallName":"look","parentMessageId":"a1"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"t1"}`, `{"type":"TOOL_CALL_RESULT","messageId":"a1","toolCallId":"t1","content":"42"}`, finished("thread", "run-1"))
	close(called.answers)
	c.rest()
	c = p.run("thread", "run-2", "u1 user Hello", "a1 assistant x", "a1 tool 42", "u2 user More")
	called = a.called(t)
	if ids := called.messageIDs(); !slices.Equal(ids, []string{"u1", "a1", "a1", "u2"}) {
		t.Errorf("the agent received the messages %q", ids)
	}
	if parent := c.answer.Header.Get("Pgagui-Parent-Run"); parent != "run-1" {
		t.Errorf("the run continues %q", parent)
	}
	called.finish("a2", "Hi")
	c.rest()
	c = p.run("thread", "run-3", "u3 user And more") // filled in
	called = a.called(t)
	if ids := called.messageIDs(); !slices.Equal(ids, []string{"u1", "a1", "a1", "u2", "a2", "u3"}) {
		t.Errorf("the agent received the messages %q", ids)
	}
	called.finish("a3", "Hi")
	c.rest()
}

func TestAnAgentThatKeepsItsAnswerOpenAfterTheEnd(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Agents[0].IdleTimeout = 200 * time.Millisecond
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run", "u1 user Hello")
	a.called(t).send(started("thread", "run"), finished("thread", "run"))
	c.want("RUN_STARTED", "RUN_FINISHED")
	c.rest()
	if status := p.waitForEnd("thread", "run"); status.Status != pgagui.Finished {
		t.Errorf("the run is %s", status.Status)
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

// The label outcome of pgagui_server_runs_total is the status that the store has of the run.
func TestRunsAreCountedByTheirStatus(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	registry := prometheus.NewPedanticRegistry()
	options.Metrics = registry
	p := serve(t, testdb.Pool(t), options)
	ending := func(outcome string) string {
		return `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":` + outcome + `}`
	}
	const interrupt = `{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}`
	want := map[string]float64{}
	for i, test := range []struct {
		ends []string
		want pgagui.Status
	}{
		{[]string{ending(`null`)}, pgagui.Finished},
		{[]string{ending(`{"type":"success"}`)}, pgagui.Finished},
		{[]string{ending(`"cancelled"`)}, pgagui.Finished},
		{[]string{ending(`{"Type":"cancelled"}`)}, pgagui.Finished},
		{[]string{ending(`{"type":"interrupt"}`)}, pgagui.Finished},
		{[]string{ending(`{"type":"interrupt","interrupts":null}`)}, pgagui.Finished},
		{[]string{ending(`{"type":"interrupt","interrupts":{}}`)}, pgagui.Finished},
		{[]string{ending(interrupt)}, pgagui.Interrupted},
		{[]string{ending(`{"type":"interrupt","interrupts":[]}`)}, pgagui.Interrupted},
		{[]string{ending(`{"type":"cancelled"}`)}, pgagui.Cancelled},
		{[]string{`{"type":"RUN_ERROR","message":"no answer"}`}, pgagui.Failed},
		{[]string{ending(`{"type":"cancelled"}`), `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, ending(interrupt)}, pgagui.Interrupted},
		{[]string{ending(interrupt), `{"type":"RUN_ERROR","message":"no answer"}`}, pgagui.Failed},
		{[]string{`{"type":"RUN_ERROR","message":"no answer"}`, `{"type":"STATE_SNAPSHOT","snapshot":{}}`, ending(`null`)}, pgagui.Failed},
		{[]string{`{"type":"RUN_ERROR","message":"no answer"}`, `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, ending(`null`)}, pgagui.Finished},
		{nil, pgagui.Cancelled}, // by request
	} {
		thread := fmt.Sprint("thread-", i)
		p.run(thread, "run", "u1 user Hello")
		called := a.called(t)
		called.send(append([]string{started(thread, "run")}, test.ends...)...)
		if test.ends == nil {
			p.json(200, "POST", "/threads/"+thread+"/stop", "")
		} else {
			close(called.answers)
		}
		if status := p.waitForEnd(thread, "run").Status; status != test.want {
			t.Errorf("%s: the run is %s, want %s", test.ends, status, test.want)
		}
		want[string(test.want)]++
	}
	got := map[string]float64{}
	wait.Until(func() bool {
		families := must.Have(registry.Gather())(t)
		clear(got)
		for _, family := range families {
			if family.GetName() != "pgagui_server_runs_total" {
				continue
			}
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() == "outcome" {
						got[label.GetValue()] += metric.GetCounter().GetValue()
					}
				}
			}
		}
		return maps.Equal(got, want)
	})
	if !maps.Equal(got, want) {
		t.Errorf("the outcomes are %v, want %v", got, want)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	registry := prometheus.NewPedanticRegistry()
	options.Metrics = registry
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	called.send(started("other", "run"), content("never started", "x"), finished("thread", "run"))
	close(called.answers)
	c.rest()
	p.json(404, "GET", "/threads/none/events", "")
	p.waitForEnd("thread", "run")
	want := map[string]float64{
		"pgagui_server_runs_total": 1, "pgagui_server_events_total": 3, "pgagui_server_ids_replaced_total": 1, "pgagui_server_runs_in_progress": 0,
		"pgagui_server_streams": 0, "pgagui_server_stream_events_changed_total": 1, "pgagui_server_events_buffered": 0, "pgagui_server_retries_total": 0,
	}
	got := map[string]float64{}
	wait.Until(func() bool {
		families := must.Have(registry.Gather())(t)
		got = map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if _, isWanted := want[family.GetName()]; isWanted {
					got[family.GetName()] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
				}
			}
		}
		return maps.Equal(got, want)
	})
	if !maps.Equal(got, want) {
		t.Errorf("metrics: %v, want %v", got, want)
	}
}

// The agent has sent the end, and its answer stays open: the client does not wait for it.
func TestAnEndThatNothingFollowsIsStored(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Agents[0].EndTimeout = 50 * time.Millisecond
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run-1", "u1 user Hello")
	first := a.called(t)
	first.send(started("thread", "run-1"), start("a1"), content("a1", "Hi"), end("a1"), finished("thread", "run-1"))
	if c.rest(); c.events[len(c.events)-1] != finished("thread", "run-1") {
		t.Errorf("the stream ended with %v", c.events)
	}
	if status := p.waitForEnd("thread", "run-1"); status.Status != pgagui.Finished {
		t.Errorf("the run is %s", status.Status)
	}

	// What the agent sends then are late events.
	first.send(`{"type":"CUSTOM","name":"late","value":1}`, finished("thread", "run-1"))
	wait.For(t, "the late events are in the log", func() bool { return len(p.logOf("thread", "run-1")) == 7 })

	// Another run continues from there: then they are refused, and the log of that run has nothing of it.
	p.run("thread", "run-2", "u1 user Hello", "a1 assistant Hi", "u2 user More")
	a.called(t).finish("a2", "Yes")
	p.waitForEnd("thread", "run-2")
	first.send(`{"type":"CUSTOM","name":"too late","value":1}`)
	close(first.answers)
	must.Report(t, p.server.Shutdown(t.Context()))
	if log := p.logOf("thread", "run-1"); len(log) != 7 {
		t.Errorf("the log of the first run has %v", log)
	}
	if runs := testdb.Ask[int](t, p.db, `select count(*) from agui.run`); runs != 2 {
		t.Errorf("there are %d runs", runs)
	}
}

// The clients wait as long as the agent is set to.
func TestAnEndIsHeldAsLongAsTheAgentSays(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Agents[0].EndTimeout = -1
	p := serve(t, testdb.Pool(t), options)
	c := p.run("thread", "run-1", "u1 user Hello")
	call := a.called(t)
	call.send(started("thread", "run-1"), finished("thread", "run-1"), `{"type":"CUSTOM","name":"more","value":1}`)
	c.want("RUN_STARTED", "CUSTOM")
	close(call.answers)
	c.want("RUN_FINISHED")
	if log := p.logOf("thread", "run-1"); len(log) != 3 || typeOf(log[2]) != "RUN_FINISHED" {
		t.Errorf("the log is %v", log)
	}
}

// A compressed answer is not unpacked: a megabyte of it may hold a gigabyte.
func TestCompressedAnswersOfAgentsAreRefused(t *testing.T) {
	t.Parallel()
	bomb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the server accepts %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = fmt.Fprintf(packed, "data: {\"type\":\"CUSTOM\",\"value\":%q}\n\n", strings.Repeat("0", 100<<20))
		_ = packed.Close()
	}))
	defer bomb.Close()
	p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{{Name: "test", URL: bomb.URL}}})
	c := p.run("thread", "run", "u1 user Hello")
	c.rest()
	if end := c.events[len(c.events)-1]; typeOf(end) != "RUN_ERROR" || !strings.Contains(end, "compressed its answer") {
		t.Errorf("the run ended with %s", end)
	}
}
