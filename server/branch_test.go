package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
)

// TestTheMessagesOfAClientSayWhereARunContinues tests the choice of the parent in a thread of three
// runs: u1 a1, u2 a2, u3 a3.
func TestTheMessagesOfAClientSayWhereARunContinues(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	turns := []string{"u1 user One", "a1 assistant First", "u2 user Two", "a2 assistant Second", "u3 user Three", "a3 assistant Third"}
	for _, test := range []struct {
		name      string
		messages  []string
		member    string // of the body
		parent    string // run-1 … run-3; empty: none
		agentGets []string
	}{
		{"a new message", []string{"u4 user Four"}, "", "run-3", []string{"u1", "a1", "u2", "a2", "u3", "a3", "u4"}},
		{"all messages and a new one", append(slices.Clone(turns), "u4 user Four"), "", "run-3", []string{"u1", "a1", "u2", "a2", "u3", "a3", "u4"}},
		{"nothing new", turns, "", "run-3", []string{"u1", "a1", "u2", "a2", "u3", "a3"}},
		{"regenerate the last answer", turns[:5], "", "run-2", []string{"u1", "a1", "u2", "a2", "u3"}},
		{"regenerate the first answer", turns[:1], "", "", []string{"u1"}},
		{"edit the last message", append(slices.Clone(turns[:4]), "u3 user Other"), "", "run-2", []string{"u1", "a1", "u2", "a2", "u3"}},
		{"edit it, with a new id", append(slices.Clone(turns[:4]), "u4 user Other"), "", "run-2", []string{"u1", "a1", "u2", "a2", "u4"}},
		{"edit the first message", []string{"u1 user Other"}, "", "", []string{"u1"}},
		{"instructions do not count", append([]string{"s9 system New"}, turns[:5]...), "", "run-2", []string{"s9", "u1", "a1", "u2", "a2", "u3"}},
		{"trimmed at the beginning", append(slices.Clone(turns[2:]), "u4 user Four"), "", "run-3", []string{"u2", "a2", "u3", "a3", "u4"}},
		{"another parent, as it says", append(slices.Clone(turns), "u4 user Four"), `"parentRunId":"run-1",`, "run-1", []string{"u1", "a1", "u2", "a2", "u3", "a3", "u4"}},
		{"no parent, as it says", []string{"u4 user Four"}, `"parentRunId":"",`, "", []string{"u4"}},
	} {
		thread := "thread " + test.name
		for i := 0; i < len(turns); i += 2 {
			c := p.run(thread, "run-"+string(rune('1'+i/2)), turns[i])
			id, text, _ := strings.Cut(turns[i+1], " assistant ")
			a.called(t).finish(id, text)
			c.rest()
		}
		body := strings.Replace(input(thread, "new", test.messages...), "{", "{"+test.member, 1)
		c := p.stream("POST", "/agent/test/run", body)
		called := a.called(t)
		if got := called.messageIDs(); !slices.Equal(got, test.agentGets) {
			t.Errorf("%s: the agent received %v, want %v", test.name, got, test.agentGets)
		}
		if got := c.answer.Header.Get("Pgagui-Parent-Run"); got != test.parent {
			t.Errorf("%s: the header names run %q, want %q", test.name, got, test.parent)
		}
		called.finish("new-answer", "x")
		c.rest()
		if got := mustRun(t, p, thread, "new").ParentRunID; got != test.parent {
			t.Errorf("%s: the run continues from %q, want %q", test.name, got, test.parent)
		}
	}
}

// TestWhatAMissingMessageMeans tests threads of one run, whose answer ends with a reasoning message: u0 a0 z0.
func TestWhatAMissingMessageMeans(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := server.Options{Agents: []server.Agent{
		{Name: "test", URL: a.URL}, {Name: "new", URL: a.URL, History: server.NewMessages}, {Name: "full", URL: a.URL, History: server.FullHistory},
	}}
	p := serve(t, testdb.Pool(t), options)
	for _, test := range []struct {
		name      string
		agent     string
		history   string // of the request; empty: as the agent has it
		messages  []string
		parent    string // empty: none
		agentGets []string
	}{
		{"new: only new messages", "test", "new", []string{"u1 user More"}, "run-0", []string{"u0", "a0", "z0", "u1"}},
		{"new: reasoning behind the last answer", "test", "new", []string{"z0 reasoning Why", "u1 user More"}, "run-0", []string{"u0", "a0", "z0", "u1"}},
		{"new: the same by the agent", "new", "", []string{"z0 reasoning Why", "u1 user More"}, "run-0", []string{"u0", "a0", "z0", "u1"}},
		{"new: the question alone", "test", "new", []string{"u0 user Hi"}, "run-0", []string{"u0", "a0", "z0"}},
		{"new: the answer is missing", "test", "new", []string{"u0 user Hi", "u1 user More"}, "run-0", []string{"u0", "a0", "z0", "u1"}},
		{"new: an edit", "test", "new", []string{"u0 user Other"}, "", []string{"u0"}},
		{"default: reasoning alone says nothing", "test", "", []string{"z0 reasoning Why", "u1 user More"}, "run-0", []string{"u0", "a0", "z0", "u1"}},
		{"full: an edit of the first message, with a new id", "test", "full", []string{"u1 user Other"}, "", []string{"u1"}},
		{"full: the same by the agent", "full", "", []string{"u1 user Other"}, "", []string{"u1"}},
		{"full: the request decides, not the agent", "full", "new", []string{"u1 user More"}, "run-0", []string{"u0", "a0", "z0", "u1"}},
		{"full: no messages", "full", "", nil, "run-0", nil},
		{"full: all messages", "full", "", []string{"u0 user Hi", "a0 assistant Hello", "z0 reasoning Why", "u1 user More"}, "run-0", []string{"u0", "a0", "z0", "u1"}},
		{"full: all but the reasoning", "full", "", []string{"u0 user Hi", "a0 assistant Hello", "u1 user More"}, "run-0", []string{"u0", "a0", "u1"}},
	} {
		thread := "thread " + test.name
		c := p.run(thread, "run-0", "u0 user Hi")
		called := a.called(t)
		called.send(started(thread, "run-0"), start("a0"), content("a0", "Hello"), end("a0"),
			`{"type":"REASONING_MESSAGE_START","messageId":"z0","role":"reasoning"}`,
			`{"type":"REASONING_MESSAGE_CONTENT","messageId":"z0","delta":"Why"}`,
			`{"type":"REASONING_MESSAGE_END","messageId":"z0"}`, finished(thread, "run-0"))
		close(called.answers)
		c.rest()
		body := input(thread, "new", test.messages...)
		if test.history != "" {
			body = strings.Replace(body, `"forwardedProps":{}`, fmt.Sprintf(`"forwardedProps":{"pgagui":{"history":%q}}`, test.history), 1)
		}
		c = p.stream("POST", "/agent/"+test.agent+"/run", body)
		called = a.called(t)
		if got := called.messageIDs(); !slices.Equal(got, test.agentGets) {
			t.Errorf("%s: the agent received %v, want %v", test.name, got, test.agentGets)
		}
		called.finish("new-answer", "x")
		c.rest()
		if got := mustRun(t, p, thread, "new").ParentRunID; got != test.parent {
			t.Errorf("%s: the run continues from %q, want %q", test.name, got, test.parent)
		}
	}
}

// An agent lists an image as a part of protocol 0.x; the client shows and sends it as one of 1.0.
func TestAnImageThatTheAgentListsInItsOldFormIsNoEdit(t *testing.T) {
	t.Parallel()
	const (
		image  = `{"id":"u0","role":"user","content":[{"type":"text","text":"See"},{"type":"image","source":{"type":"data","value":"iVBO","mimeType":"image/png"}}]}`
		binary = `{"id":"u0","role":"user","content":[{"type":"text","text":"See"},{"type":"binary","mimeType":"image/png","data":"iVBO"}]}`
		byID   = `{"id":"u0","role":"user","content":[{"type":"text","text":"See"},{"type":"binary","mimeType":"image/png","id":"file"}]}`
		noFile = `{"id":"u0","role":"user","content":[{"type":"text","text":"See"}]}`
		other  = `{"id":"u0","role":"user","content":[{"type":"text","text":"See"},{"type":"binary","mimeType":"image/png","data":"AAAA"}]}`
		answer = `{"id":"a0","role":"assistant","content":"Hello"}`
		next   = `{"id":"u1","role":"user","content":"More"}`
	)
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	body := func(thread, run string, messages ...string) string {
		return strings.Replace(input(thread, run), `"messages":[]`, `"messages":[`+strings.Join(messages, ",")+`]`, 1)
	}
	for _, test := range []struct {
		name                string
		first, listed, sent string
		parent              string // empty: none
	}{
		{"listed as binary, sent as an image", image, binary, image, "run-0"},
		{"listed and sent as binary", image, binary, binary, "run-0"},
		{"sent first as binary", binary, binary, image, "run-0"},
		{"listed by its id alone", byID, byID, noFile, "run-0"},
		{"another image", image, binary, other, ""},
	} {
		thread := "thread " + test.name
		c := p.stream("POST", "/agent/test/run", body(thread, "run-0", test.first))
		called := a.called(t)
		called.send(started(thread, "run-0"), start("a0"), content("a0", "Hello"), end("a0"),
			`{"type":"MESSAGES_SNAPSHOT","messages":[`+test.listed+","+answer+`]}`, finished(thread, "run-0"))
		close(called.answers)
		c.rest()
		c = p.stream("POST", "/agent/test/run", body(thread, "run-1", test.sent, answer, next))
		a.called(t).finish("a1", "x")
		c.rest()
		if got := mustRun(t, p, thread, "run-1").ParentRunID; got != test.parent {
			t.Errorf("%s: the run continues from %q, want %q", test.name, got, test.parent)
		}
	}
	thread := "thread listed as binary, sent as an image"
	c := p.stream("POST", "/agent/test/run", body(thread, "run-2", `{"id":"u2","role":"user","content":"Alone"}`))
	called := a.called(t)
	if got := fmt.Sprint(called.input["messages"]); strings.Contains(got, "binary") || !strings.Contains(got, "image/png") {
		t.Errorf("the agent received %s", got)
	}
	called.finish("a2", "x")
	c.rest()
}

// An agent streams its answer with one id and lists it with another at the end. A page that stopped before has the first one.
func TestAMessageThatTheAgentRenamedIsNoEdit(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	for _, test := range []struct {
		name     string
		messages []string
		parent   string // empty: none
	}{
		{"the streamed id", []string{"u0 user Hi", "a0 assistant Hello", "u1 user More", "streamed-1 assistant Fir", "u2 user Next"}, "run-1"},
		{"both streamed ids", []string{"u0 user Hi", "a0 assistant Hello", "u1 user More", "streamed-1 assistant First", "streamed-2 assistant Sec", "u2 user Next"}, "run-1"},
		{"the listed ids", []string{"u0 user Hi", "a0 assistant Hello", "u1 user More", "listed-1 assistant First", "listed-2 assistant Second", "u2 user Next"}, "run-1"},
		{"regenerate", []string{"u0 user Hi", "a0 assistant Hello", "u1 user More"}, "run-0"},
		{"an edit", []string{"u0 user Hi", "a0 assistant Hello", "u2 user Else", "streamed-1 assistant First"}, "run-0"},
		{"an answer that no run brought", []string{"u0 user Hi", "a0 assistant Hello", "u1 user More", "own assistant Own", "u2 user Next"}, "run-0"},
	} {
		thread := "thread " + test.name
		c := p.run(thread, "run-0", "u0 user Hi")
		a.called(t).finish("a0", "Hello")
		c.rest()
		c = p.run(thread, "run-1", "u0 user Hi", "a0 assistant Hello", "u1 user More")
		called := a.called(t)
		called.send(started(thread, "run-1"), start("streamed-1"), content("streamed-1", "First"), end("streamed-1"),
			start("streamed-2"), content("streamed-2", "Second"), end("streamed-2"),
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u0","role":"user","content":"Hi"},{"id":"a0","role":"assistant","content":"Hello"},{"id":"u1","role":"user","content":"More"},`+
				`{"id":"listed-1","role":"assistant","content":"First"},{"id":"listed-2","role":"assistant","content":"Second"}]}`, finished(thread, "run-1"))
		close(called.answers)
		c.rest()
		c = p.run(thread, "new", test.messages...)
		a.called(t).finish("new-answer", "x")
		c.rest()
		if got := mustRun(t, p, thread, "new").ParentRunID; got != test.parent {
			t.Errorf("%s: the run continues from %q, want %q", test.name, got, test.parent)
		}
	}
}

// A tool call without a parent makes a message with the id of the call, which may be that of a question or
// of an activity.
func TestTheMessageWhereARunContinuesSharesItsID(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("t", "run-1", "u1 user One")
	called := a.called(t)
	called.send(started("t", "run-1"), `{"type":"ACTIVITY_SNAPSHOT","messageId":"plan","activityType":"PLAN","content":{}}`)
	called.finish("a1", "First")
	c.rest()
	c = p.run("t", "run-2", "u1 user One", "a1 assistant First", "u2 user Two")
	called = a.called(t)
	called.send(started("t", "run-2"), `{"type":"TOOL_CALL_START","toolCallId":"u1","toolCallName":"look"}`, `{"type":"TOOL_CALL_END","toolCallId":"u1"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"plan","toolCallName":"look"}`, `{"type":"TOOL_CALL_END","toolCallId":"plan"}`,
		start("a2"), content("a2", "Second"), end("a2"), finished("t", "run-2"))
	close(called.answers)
	c.rest()
	c = p.run("t", "run-3", "u1 user One", "a1 assistant First", "u2 user Two")
	a.called(t).finish("a3", "Else")
	c.rest()
	if got := mustRun(t, p, "t", "run-3").ParentRunID; got != "run-1" {
		t.Errorf("the run continues from %q, want run-1", got)
	}
}

// TestTheStateOfAnAbandonedBranch tests what a client's state becomes that comes from the branch
// that the client leaves with an edit.
func TestTheStateOfAnAbandonedBranch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		agent    bool   // the setting of the agent
		props    string // forwardedProps.pgagui
		messages []string
		state    string // what the client sends
		agentHas string
		first    []string // the events behind RUN_STARTED
		after    string   // the state of the thread
	}{
		{"without the option, as the client says", false, `{}`, []string{"u1 user One", "a1 assistant Hi", "u3 user Edited"}, `{"step":2}`, `map[step:2]`, nil, `{"step":2}`},
		{"an edit", true, `{}`, []string{"u1 user One", "a1 assistant Hi", "u3 user Edited"}, `{"step":2}`, `map[step:1]`, []string{`{"step":1}`}, `{"step":1}`},
		{"by the request", false, `{"branchState":true}`, []string{"u1 user One", "a1 assistant Hi", "u3 user Edited"}, `{"step":2}`, `map[step:1]`, []string{`{"step":1}`}, `{"step":1}`},
		{"not by the request", true, `{"branchState":false}`, []string{"u1 user One", "a1 assistant Hi", "u3 user Edited"}, `{"step":2}`, `map[step:2]`, nil, `{"step":2}`},
		{"regenerate", true, `{}`, []string{"u1 user One", "a1 assistant Hi", "u2 user Two"}, `{"step":2}`, `map[step:1]`, []string{`{"step":1}`}, `{"step":1}`},
		{"an edit of the first message", true, `{}`, []string{"u1 user Other"}, `{"step":2}`, `map[]`, []string{`{}`}, `{}`},
		{"a client that has the state of the branch", true, `{}`, []string{"u1 user One", "a1 assistant Hi", "u3 user Edited"}, `{"step": 1}`, `map[step:1]`, nil, `{"step":1}`},
		{"a client that has no state", true, `{}`, []string{"u1 user One", "a1 assistant Hi", "u3 user Edited"}, `null`, `map[step:1]`, nil, `{"step":1}`},
		{"no branch", true, `{}`, []string{"u1 user One", "a1 assistant Hi", "u2 user Two", "a2 assistant Hi", "u3 user Three"}, `{"step":"mine"}`, `map[step:mine]`, nil, `{"step":"mine"}`},
		{"a parent that the client names", true, `{"parentRunId":"run-1"}`, []string{"u1 user One", "a1 assistant Hi", "u3 user Three"}, `{"step":"mine"}`, `map[step:mine]`, nil, `{"step":"mine"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{{Name: "test", URL: a.URL, BranchState: test.agent}}})
			for i, turn := range []string{"u1 user One", "u2 user Two"} {
				run := fmt.Sprintf("run-%d", i+1)
				c := p.run("thread", run, turn)
				called := a.called(t)
				called.send(started("thread", run), fmt.Sprintf(`{"type":"STATE_SNAPSHOT","snapshot":{"step":%d}}`, i+1))
				answer := fmt.Sprintf("a%d", i+1)
				called.send(start(answer), content(answer, "Hi"), end(answer), finished("thread", run))
				close(called.answers)
				c.rest()
			}
			body := strings.Replace(input("thread", "new", test.messages...), `"state":{}`, `"state":`+test.state, 1)
			body = strings.Replace(body, `"forwardedProps":{}`, `"forwardedProps":{"pgagui":`+test.props+`}`, 1)
			for _, part := range []string{`"state":` + test.state, test.props} {
				if !strings.Contains(body, part) {
					t.Fatalf("the body lacks %s: %s", part, body)
				}
			}
			c := p.stream("POST", "/agent/test/run", body)
			called := a.called(t)
			if got := fmt.Sprint(called.input["state"]); got != test.agentHas {
				t.Errorf("the agent received the state %s, want %s", got, test.agentHas)
			}
			called.finish("a3", "x")
			c.rest()
			var snapshots []string
			for i, event := range c.events {
				if snapshot, isSnapshot := strings.CutPrefix(event, `{"type":"STATE_SNAPSHOT","snapshot":`); isSnapshot {
					if i != 1 {
						t.Errorf("the state comes as event %d", i)
					}
					snapshots = append(snapshots, strings.ReplaceAll(strings.TrimSuffix(snapshot, "}"), " ", ""))
				}
			}
			if !slices.Equal(snapshots, test.first) {
				t.Errorf("the stream has the states %q, want %q", snapshots, test.first)
			}
			state, err := p.store.State(t.Context(), "thread", pgagui.At{RunID: "new"})
			if got := strings.ReplaceAll(string(state), " ", ""); err != nil || got != test.after {
				t.Errorf("the state after the run is %s, %v; want %s", got, err, test.after)
			}
			// The same request comes twice: the run has the input as the client sent it.
			again := p.stream("POST", "/agent/test/run", body)
			if again.answer.StatusCode != 200 {
				t.Errorf("the repeated request: %s", again.answer.Status)
			}
			again.rest()
		})
	}
}
