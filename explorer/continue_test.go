package explorer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// echo is an agent that repeats the last message that it receives. It ends a run once the test allows it.
type echo struct {
	*httptest.Server
	inputs chan map[string]any
	ends   chan struct{}
}

func newEcho(t *testing.T) *echo {
	a := &echo{inputs: make(chan map[string]any, 100), ends: make(chan struct{}, 100)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input map[string]any
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
			t.Errorf("the agent received no JSON: %v", err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(events ...rawMessage) {
			for _, event := range events {
				fmt.Fprintf(w, "data: %s\n\n", event)
			}
			_ = http.NewResponseController(w).Flush()
		}
		messages, _ := input["messages"].([]any)
		last, _ := messages[len(messages)-1].(map[string]any)
		send(event("RUN_STARTED", "threadId", input["threadId"], "runId", input["runId"]))
		id := fmt.Sprint("echo-of-", input["runId"])
		send(event("TEXT_MESSAGE_START", "messageId", id, "role", "assistant"), event("TEXT_MESSAGE_CONTENT", "messageId", id, "delta", fmt.Sprint("You said: ", last["content"])))
		a.inputs <- input
		select {
		case <-a.ends:
		case <-r.Context().Done():
			return
		}
		send(event("TEXT_MESSAGE_END", "messageId", id), event("RUN_FINISHED", "threadId", input["threadId"], "runId", input["runId"]))
	}))
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// newAgents is a server with the agent.
func newAgents(t *testing.T, store *pgagui.Store, a *echo, authenticator access.Authenticator) *server.Server {
	t.Helper()
	handler, err := server.New(store, server.Options{
		Agents: []server.Agent{{Name: "echo", URL: a.URL}, {Name: "other", URL: a.URL}}, Access: authenticator, Grace: 10 * time.Millisecond,
	})
	must.Do(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait.Patience)
		defer cancel()
		must.Report(t, handler.Shutdown(ctx))
	})
	return handler
}

// appendTwoRuns appends a thread: a question, an answer with a tool call and one behind it, and a
// second question with its answer.
func appendTwoRuns(t *testing.T, store *pgagui.Store, thread string) {
	t.Helper()
	appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r1"}, slices.Concat([]rawMessage{started(thread, "r1", "First question"), event("STATE_SNAPSHOT", "snapshot", map[string]any{"step": 1})},
		said("m1", "Let me look"), []rawMessage{
			event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "look", "parentMessageId", "m1"), event("TOOL_CALL_ARGS", "toolCallId", "c", "delta", "{}"), event("TOOL_CALL_END", "toolCallId", "c"),
			event("TOOL_CALL_RESULT", "messageId", "t1", "toolCallId", "c", "content", "found", "role", "tool"),
			event("STATE_SNAPSHOT", "snapshot", map[string]any{"step": 2}),
		}, said("m2", "First answer"), []rawMessage{event("STATE_SNAPSHOT", "snapshot", map[string]any{"step": 3}), finished(thread, "r1")})...)
	appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r2"}, slices.Concat([]rawMessage{
		event("RUN_STARTED", "threadId", thread, "runId", "r2", "input", map[string]any{
			"threadId": thread, "runId": "r2", "state": map[string]any{"step": 3}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
			"messages": []any{map[string]any{"id": "u2", "role": "user", "content": "Second question"}},
		})}, said("m3", "Second answer"), []rawMessage{event("STATE_SNAPSHOT", "snapshot", map[string]any{"step": 4}), finished(thread, "r2")})...)
}

// formOf returns the fields of the form of a page.
func formOf(text string) url.Values {
	form := url.Values{}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(text, -1) {
		form.Set(field[1], field[2])
	}
	return form
}

// A run continues from a message: the agent gets the conversation up to there and the state that was,
// and the branch has both. What was said before stays.
func TestContinue(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	anybody := access.Anonymous("", access.Admin)
	a := newEcho(t)
	s := newSite(t, store, explorer.Options{Access: anybody, Agents: newAgents(t, store, a, anybody)})
	appendTwoRuns(t, store, "t")
	before := must.Have(store.Messages(t.Context(), "t", pgagui.At{RunID: "r2"}))(t)
	for _, test := range []struct {
		run, message string
		prefilled    string
		parent       string
		received     []string
		step         float64 // of the state; 0: none
	}{
		{"r2", "m3", "", "r2", []string{"user-r1", "m1", "t1", "m2", "u2", "m3"}, 4},
		{"r1", "m2", "", "r1", []string{"user-r1", "m1", "t1", "m2"}, 3},
		{"r1", "m1", "", "", []string{"user-r1", "m1", "t1"}, 1},
		{"r2", "u2", "Second question", "r1", []string{"user-r1", "m1", "t1", "m2"}, 3},
		{"r1", "user-r1", "First question", "", nil, 0},
	} {
		link := "continue?" + url.Values{"id": {"t"}, "run": {test.run}, "message": {test.message}}.Encode()
		if got := s.get(nil, "thread?id=t&run=r2"); !strings.Contains(got.text, `href="`+strings.ReplaceAll(link, "&", "&amp;")+`"`) {
			t.Errorf("the conversation has no link %s", link)
		}
		page := s.get(nil, link)
		page.want(t, http.StatusOK, "<textarea", ">\n"+test.prefilled+"</textarea>", `<option value="echo"`)
		checkMarkup(t, link, page.text)
		form := formOf(page.text)
		form.Set("agent", "echo")
		form.Set("text", "Something else\r\n& more")
		run := form.Get("as")
		got := s.post(nil, "continue", form)
		got.want(t, http.StatusOK)
		wait.For(t, "the answer", func() bool {
			return strings.Contains(s.get(nil, "thread?id=t&run="+run).text, "You said: Something else")
		})
		if at := got.Request.URL.Query(); at.Get("run") != run || at.Get("id") != "t" {
			t.Errorf("%s: it leads to %s", test.message, got.Request.URL)
		}
		input := <-a.inputs
		var ids []string
		for _, message := range input["messages"].([]any) {
			ids = append(ids, fmt.Sprint(message.(map[string]any)["id"]))
		}
		if !slices.Equal(ids, append(slices.Clone(test.received), "user-of-"+run)) {
			t.Errorf("%s: the agent received %v, want %v and the new one", test.message, ids, test.received)
		}
		state, _ := input["state"].(map[string]any)
		if step, _ := state["step"].(float64); step != test.step {
			t.Errorf("%s: the agent received the state %v", test.message, state)
		}
		// The same form once more is the same run.
		s.post(nil, "continue", form).want(t, http.StatusOK)
		a.ends <- struct{}{}
		wait.For(t, "the end of the run", func() bool {
			status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: run})
			return err == nil && status.Status == pgagui.Finished && status.ParentRunID == test.parent
		})
		messages := must.Have(store.Messages(t.Context(), "t", pgagui.At{RunID: run}))(t)
		ids = nil
		for _, message := range messages {
			ids = append(ids, message.ID)
		}
		if want := append(slices.Clone(test.received), "user-of-"+run, "echo-of-"+run); !slices.Equal(ids, want) {
			t.Errorf("%s: the branch has %v, want %v", test.message, ids, want)
		}
		if text := string(messages[len(messages)-2].JSON); !strings.Contains(text, `Something else\n\u0026 more`) && !strings.Contains(text, `Something else\n& more`) {
			t.Errorf("%s: the message is %s", test.message, text)
		}
	}
	after, err := store.Messages(t.Context(), "t", pgagui.At{RunID: "r2"})
	if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("what was said before changed (%v)", err)
	}
	if len(a.inputs) != 0 {
		t.Error("a repeated form called the agent")
	}
}

// What cannot be continued says why.
func TestWhatCannotBeContinued(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	anybody := access.Anonymous("", access.Admin)
	a := newEcho(t)
	s := newSite(t, store, explorer.Options{Access: anybody, Agents: newAgents(t, store, a, anybody)})
	appendTwoRuns(t, store, "t")
	appendEvents(t, store, pgagui.RunRef{ThreadID: "open", RunID: "r"}, slices.Concat([]rawMessage{started("open", "r", "Question")}, said("m", "Let me look"), []rawMessage{
		event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "look", "parentMessageId", "m"), event("TOOL_CALL_END", "toolCallId", "c"), finished("open", "r")})...)
	appendEvents(t, store, pgagui.RunRef{ThreadID: "busy", RunID: "r"}, append([]rawMessage{started("busy", "r", "Question")}, said("m", "I am on it")...)...)
	for link, want := range map[string]struct {
		status int
		text   string
	}{
		"?id=t&run=r1&message=gone": {404, "brought no message"}, "?id=t&run=r2&message=m1": {404, "brought no message"}, "?id=gone&run=r1&message=m1": {404, "gone"}, "?id=t&run=gone&message=m1": {404, "gone"},
		"?id=t&run=r1": {400, "lacks the parameter message"}, "?id=t&message=m1": {400, "lacks the parameter run"}, "?id=t&run=r1&message=t1": {409, "has the role"}, "?id=open&run=r&message=m": {409, "has no result"},
	} {
		s.get(nil, "continue"+link).want(t, want.status, want.text)
		s.get(nil, "input"+link+"&as=x").want(t, want.status, want.text)
	}
	form := func(changes ...string) url.Values {
		form := url.Values{"id": {"t"}, "run": {"r2"}, "message": {"m3"}, "as": {"new"}, "agent": {"echo"}, "text": {"Hello"}}
		for i := 0; i < len(changes); i += 2 {
			form.Set(changes[i], changes[i+1])
		}
		return form
	}
	s.post(nil, "continue", form("text", " \n")).want(t, 400, "lacks a text")
	s.post(nil, "continue", form("agent", "unknown")).want(t, 404, "unknown")
	s.post(nil, "continue", form("agent", "../agents")).want(t, 404)
	s.post(nil, "continue", form("as", "r1")).want(t, 409)
	s.post(nil, "continue", form("id", "busy", "run", "r", "message", "m")).want(t, 409, "in progress")
	runs, err := store.Runs(t.Context(), "t")
	if err != nil || len(runs) != 2 || len(a.inputs) != 0 {
		t.Errorf("%d runs, and %d calls of the agent (%v)", len(runs), len(a.inputs), err)
	}
}

// Who may only read sees how to call instead, and so does everybody where there is no agent. What is
// shown works: a server takes it.
func TestContinueElsewhere(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	tokens, authenticator, _ := tokenFile(t, [3]string{"reads", "acme", "read"}, [3]string{"writes", "acme", "read, write"}, [3]string{"other", "globex", "read, write"})
	a := newEcho(t)
	agents := newAgents(t, store, a, authenticator)
	s := newSite(t, store, explorer.Options{Access: authenticator, Agents: agents})
	appendTwoRuns(t, store.InScope("acme"), "t")
	const link = "?id=t&run=r1&message=m1"
	form := url.Values{"id": {"t"}, "run": {"r1"}, "message": {"m1"}, "as": {"new"}, "agent": {"echo"}, "text": {"Hello"}}

	reads := newReader(t)
	signIn(s, reads, tokens["reads"]).want(t, http.StatusOK)
	page := s.get(reads, "continue"+link)
	page.want(t, http.StatusOK, "lacks the right to run agents: write", `curl -N`, `href="input?`)
	if strings.Contains(page.text, "<textarea") {
		t.Error("a reader without the right sees the form")
	}
	s.post(reads, "continue", form).want(t, http.StatusForbidden, "lacks the right: write")
	other := newReader(t)
	signIn(s, other, tokens["other"]).want(t, http.StatusOK)
	s.get(other, "continue"+link).want(t, http.StatusNotFound)
	s.get(other, "input"+link+"&as=x").want(t, http.StatusNotFound)
	s.post(other, "continue", form).want(t, http.StatusNotFound)
	writes := newReader(t)
	signIn(s, writes, tokens["writes"]).want(t, http.StatusOK)
	s.get(writes, "continue"+link).want(t, http.StatusOK, "<textarea")
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		s.post(writes, "continue", form, headers...).want(t, http.StatusForbidden, "from a page of another site")
	}
	if len(a.inputs) != 0 {
		t.Error("the agent was called")
	}

	// Without agents: what the page shows is the call.
	bare := newSite(t, store, explorer.Options{Access: authenticator})
	signIn(bare, writes, tokens["writes"]).want(t, http.StatusOK)
	bare.get(writes, "continue"+link).want(t, http.StatusOK, "No agent is configured here", `curl -N`)
	bare.post(writes, "continue", form).want(t, http.StatusNotFound, "there are no agents here")
	input := bare.get(writes, "input"+link+"&as=by-curl")
	input.want(t, http.StatusOK, `"parentRunId":""`, "First question")
	served := httptest.NewServer(agents)
	t.Cleanup(served.Close)
	a.ends <- struct{}{}
	request := must.OrPanic(http.NewRequestWithContext(t.Context(), "POST", served.URL+"/agent/echo/run", strings.NewReader(input.text)))
	request.Header.Set("Authorization", "Bearer "+tokens["writes"])
	request.Header.Set("Content-Type", "application/json")
	answered := must.OrPanic(http.DefaultClient.Do(request))
	answered.Body.Close()
	if answered.StatusCode != http.StatusOK {
		t.Errorf("the call: %s", answered.Status)
	}
	wait.For(t, "the run", func() bool {
		status, err := store.InScope("acme").Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "by-curl"})
		return err == nil && status.Status == pgagui.Finished
	})
}

// The whole way in a browser: from a message over the form to the page on which the answer streams in.
func TestContinueInABrowser(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	anybody := access.Anonymous("", access.Admin)
	a := newEcho(t)
	s := newSite(t, store, explorer.Options{Access: anybody, Agents: newAgents(t, store, a, anybody)})
	appendTwoRuns(t, store, "t")
	b := newBrowser(t)
	b.open(s.url + "thread?id=t")
	eval[int](b, `document.querySelector('.from[href*="message=m1"]').focus(), 0`)
	b.click(`.from[href*="message=m1"]`)
	b.waitFor(`document.querySelector("textarea") && document.activeElement === document.querySelector("textarea")`)
	b.run(chromedp.KeyEvent("And at night?"))
	b.click(`button.primary`)
	b.waitFor(`document.querySelector("live-thread")?.textContent.includes("You said: And at night?")`)
	if text := eval[string](b, `document.querySelector("live-thread").textContent`); strings.Contains(text, "First answer") || !strings.Contains(text, "Let me look") {
		t.Errorf("the branch has %s", text)
	}
	if status := eval[string](b, `document.querySelector(".thread-head .status").textContent`); status != "running" {
		t.Errorf("the run is %s", status)
	}
	b.waitFor(`document.querySelector("live-thread").source?.readyState === 1`)
	a.ends <- struct{}{}
	b.waitFor(`document.querySelector(".thread-head .status").textContent === "finished" && document.querySelectorAll(".tree li").length === 3`)
	b.checkQuiet(s.url)
}
