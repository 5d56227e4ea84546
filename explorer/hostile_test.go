package explorer_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server/access"
)

// attacks are texts that must stay texts.
var attacks = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `'-alert(1)-'`, `{{.}}${1}`, `</textarea></title><script>alert(1)</script>`,
	`[x](javascript:alert(1))`, `[x](JaVaScRiPt:alert(1))`, `[x](&#106;avascript:alert(1))`, `[x](java` + "\n" + `script:alert(1))`, `![x](javascript:alert(1))`, `<javascript:alert(1)>`,
	`[x](data:text/html,<script>alert(1)</script>)`, `![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)`, `![x](https://elsewhere.example/x.png)`, `![x](//elsewhere.example/x.png)`,
	`[x](/logout)`, `[x](logout "t\" onclick=alert(1) \"")`, `<a href="https://elsewhere.example" onclick="alert(1)">x</a>`, `<iframe src="https://elsewhere.example"></iframe>`,
	`<style>*{background:url(https://elsewhere.example)}</style>`, `<form action=https://elsewhere.example><button>x</button></form>`, `<base href=https://elsewhere.example>`,
	"\u202etxt.exe\u202c \u2066hidden\u2069 \u200f", "a\u0000b\ufffe\x7f\x1b[31m", "<!--", "]]>", "&lt;script&gt;", "# <script>alert(1)</script>", "```html\n<script>alert(1)</script>\n```",
	"| a | b |\n|---|---|\n| <script>alert(1)</script> | [x](vbscript:x) |", "https://elsewhere.example/\"onmouseover=alert(1)", "<https://elsewhere.example/'onclick='alert(1)>",
}

// Whatever a conversation holds, it neither runs nor loads anything.
func TestHostileContent(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	long := strings.Repeat("<i>x</i>é", 110)[:1010]
	for n, attack := range attacks {
		attack = strings.ReplaceAll(attack, "\x00", "") // the log takes it only as an escape
		thread := attack[:min(len(attack), 900)]
		run := "run " + thread
		events := []rawMessage{started(thread, run, attack)}
		events = append(events, said("m"+attack, attack)...)
		events = append(events,
			event("REASONING_START", "messageId", "r"+attack), event("REASONING_MESSAGE_START", "messageId", "r"+attack, "role", "reasoning"),
			event("REASONING_MESSAGE_CONTENT", "messageId", "r"+attack, "delta", attack), event("REASONING_MESSAGE_END", "messageId", "r"+attack), event("REASONING_END", "messageId", "r"+attack),
			event("TOOL_CALL_START", "toolCallId", "c"+attack, "toolCallName", attack, "parentMessageId", "m"+attack), event("TOOL_CALL_ARGS", "toolCallId", "c"+attack, "delta", `{"broken": "`+attack),
			event("TOOL_CALL_END", "toolCallId", "c"+attack), event("TOOL_CALL_RESULT", "messageId", "t"+attack, "toolCallId", "c"+attack, "content", attack, "role", "tool"),
			event("ACTIVITY_SNAPSHOT", "messageId", "a"+attack, "activityType", attack, "content", map[string]any{attack: attack, "steps": []any{attack, map[string]any{"title": attack, "status": attack}}}),
			event("ACTIVITY_SNAPSHOT", "messageId", "p"+attack, "activityType", "PLAN", "content", map[string]any{"steps": []any{attack, map[string]any{"title": attack, "status": attack}}}),
			event("STATE_SNAPSHOT", "snapshot", map[string]any{attack: attack}), event("STEP_STARTED", "stepName", attack), event("STEP_FINISHED", "stepName", attack),
			event("SUBAGENT_STARTED", "subagentRunId", "s"+attack, "name", attack), event(attack, "x", attack),
		)
		if n%3 == 0 {
			events = append(events, event("RUN_ERROR", "message", attack, "code", attack))
		} else {
			events = append(events, event("RUN_FINISHED", "threadId", thread, "runId", run, "outcome", map[string]any{
				"type": "interrupt", "interrupts": []any{map[string]any{"id": "i" + attack, "reason": attack, "message": attack}},
			}))
		}
		appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: run}, events...)
		agent := attack[:min(len(attack), 1000)]
		must.Have(store.SetThread(t.Context(), thread, pgagui.ThreadChanges{Agent: &agent}))(t)
		if n%3 == 1 { // what waited was answered
			next := "next " + thread
			input := map[string]any{
				"threadId": thread, "runId": next, "state": map[string]any{}, "messages": []any{}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
				"resume": []any{map[string]any{"interruptId": "i" + attack, "status": "resolved", "payload": attack}},
			}
			appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: next}, event("RUN_STARTED", "threadId", thread, "runId", next, "parentRunId", run, "input", input), finished(thread, next))
		}
		id := url.QueryEscape(thread)
		for _, page := range []string{"thread?id=" + id, "thread?id=" + id + "&run=" + url.QueryEscape(run), "log?raw=1&id=" + id + "&run=" + url.QueryEscape(run), "times?id=" + id + "&run=" + url.QueryEscape(run), "compare?id=" + id,
			"time?id=" + id + "&run=" + url.QueryEscape(run), "?q=" + url.QueryEscape(attack), "?agent=" + url.QueryEscape(attack)} {
			got := s.get(nil, page)
			got.want(t, http.StatusOK)
			checkMarkup(t, page, got.text)
		}
		for _, page := range []string{"thread?id=x" + id, "thread?id=" + id + "&run=" + url.QueryEscape("x"+attack), "thread?id=" + id + "&seq=" + url.QueryEscape(attack), url.PathEscape(attack)} {
			got := s.get(nil, page)
			if got.StatusCode < 400 || got.StatusCode > 499 {
				t.Errorf("%s: %s", page, got.Status)
			}
			checkMarkup(t, page, got.text)
		}
	}
	for _, page := range []string{"./", "waiting", "health"} {
		got := s.get(nil, page)
		got.want(t, http.StatusOK)
		checkMarkup(t, page, got.text)
	}
	// Ids of 1 KB.
	appendEvents(t, store, pgagui.RunRef{ThreadID: long, RunID: long}, append(append([]rawMessage{started(long, long, "Long ids")}, said(long, "Answer")...), finished(long, long))...)
	got := s.get(nil, "thread?id="+url.QueryEscape(long))
	got.want(t, http.StatusOK, "Long ids", "Answer")
	checkMarkup(t, "long ids", got.text)
}

// A result of 1 MB is cut, and so is everything else that is large; the log has the whole.
func TestLargeContent(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	large := strings.Repeat("é large result ", 1<<20/16)
	events := []rawMessage{started("large", "r", large)}
	events = append(events, said("m", large)...)
	events = append(events,
		event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "fetch", "parentMessageId", "m"), event("TOOL_CALL_ARGS", "toolCallId", "c", "delta", large), event("TOOL_CALL_END", "toolCallId", "c"),
		event("TOOL_CALL_RESULT", "messageId", "t", "toolCallId", "c", "content", large, "role", "tool"), event("STATE_SNAPSHOT", "snapshot", map[string]any{"large": large}), event("RUN_ERROR", "message", large))
	appendEvents(t, store, pgagui.RunRef{ThreadID: "large", RunID: "r"}, events...)
	for _, page := range []string{"thread?id=large", "log?id=large", "log?id=large&raw=1", "times?id=large", "compare?id=large", "time?id=large", "./"} {
		got := s.get(nil, page)
		got.want(t, http.StatusOK)
		checkMarkup(t, page, got.text)
		if len(got.text) > 400_000 {
			t.Errorf("%s has %d bytes", page, len(got.text))
		}
	}
	s.get(nil, "thread?id=large").want(t, http.StatusOK, "more, in the log")
	got := s.get(nil, "ndjson?id=large&whole=1")
	lines := strings.Split(strings.TrimSuffix(got.text, "\n"), "\n")
	if len(lines) != len(events) {
		t.Fatalf("%d lines of %d events", len(lines), len(events))
	}
	for i, line := range lines {
		if line != string(events[i]) {
			t.Errorf("event %d differs", i+1)
		}
	}
}

// What a subagent says stands in it, under its name, and what it waits for at the end.
func TestSubagentsAndInterrupts(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	appendWaiting(t, store)
	got := s.get(nil, "thread?id=waits")
	got.want(t, http.StatusOK, `nested nested-1`, "<bdi>researcher</bdi>", "The order was paid twice", "Refund € 49.90 for order 4711?", "Until 2099-01-01", "<td>4711</td>", `href="https://example.com/rules"`, `class="depth-0 mark-4"`)
	s.get(nil, "waiting").want(t, http.StatusOK, "Refund € 49.90 for order 4711?", "Refund this, please")
}

// Without a message, the list of what waits says which call a question is about, with its arguments, or its metadata.
func TestQuestionsWithoutAMessage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	s := newSite(t, store, explorer.Options{Access: access.Anonymous("", access.Admin), Database: pool})
	const thread, run = "asks", "r"
	appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: run},
		event("RUN_STARTED", "threadId", thread, "runId", run),
		event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "erase"), event("TOOL_CALL_ARGS", "toolCallId", "c", "delta", `{"at": 4711}`), event("TOOL_CALL_END", "toolCallId", "c"),
		event("RUN_FINISHED", "threadId", thread, "runId", run, "outcome", map[string]any{"type": "interrupt", "interrupts": []any{
			map[string]any{"id": "i1", "reason": "approval", "toolCallId": "c"}, map[string]any{"id": "i2", "reason": "choice", "metadata": map[string]any{"of": "two"}},
			map[string]any{"id": "i3", "reason": "says nothing"},
		}}))
	s.get(nil, "waiting").want(t, http.StatusOK, "erase {&#34;at&#34;:4711}", "<code>approval</code>", "{&#34;of&#34;:&#34;two&#34;}", "says nothing")
}

// A thread whose agent asks by a tool call is in the list of what waits, with the call.
func TestCallsWait(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	s := newSite(t, store, explorer.Options{Access: access.Anonymous("", access.Admin), Database: pool})
	testdb.Exec(t, pool, `select agui.set_setting('call_delay', '0')`)
	const thread, run = "asks", "r"
	appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: run},
		event("RUN_STARTED", "threadId", thread, "runId", run),
		event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "<erase>"), event("TOOL_CALL_ARGS", "toolCallId", "c", "delta", `{"at":"<b>"}`), event("TOOL_CALL_END", "toolCallId", "c"),
		event("RUN_FINISHED", "threadId", thread, "runId", run))
	wait.For(t, "what waits", func() bool {
		testdb.Exec(t, pool, `call agui.project()`)
		return testdb.Ask[int](t, pool, `select count(*) from agui.waiting()`) == 1
	})
	got := s.get(nil, "waiting")
	got.want(t, http.StatusOK, "&lt;erase&gt;", "{&#34;at&#34;:&#34;&lt;b&gt;&#34;}")
	if strings.Contains(got.text, "without saying for what") {
		t.Error("it says nothing of the call")
	}
}

// The messages of a lineage stand below their runs, with what was answered and what failed, and lead to their events.
func TestTheConversationOfALineage(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	got := s.get(nil, "thread?id=trip-to-lisbon&run=run-4")
	got.want(t, http.StatusOK,
		`id="begin-1"`, `id="begin-2"`, `id="begin-3"`, `id="answers-3"`, "<strong>Answered</strong>", "Book Casa do Miradouro, 3 nights, €372?", "&#34;approvedBy&#34;: &#34;Inês&#34;", `id="begin-4"`,
		`href="time?id=trip-to-lisbon&amp;run=run-1&amp;seq=13"`, // the tool call
	)
	restored := must.Have(store.Restore(t.Context(), "trip-to-lisbon", pgagui.At{RunID: "run-4"}))(t)
	if places := strings.Count(got.text, `class="place"`); places < len(restored.Messages)-4 {
		t.Errorf("%d of %d messages have a place", places, len(restored.Messages))
	}
	for _, link := range linksOf(t, got.text) {
		if strings.HasPrefix(link, "time?") {
			s.get(nil, link).want(t, http.StatusOK)
		}
	}
	// A run that failed, and one that continues from there.
	appendEvents(t, store, pgagui.RunRef{ThreadID: "retried", RunID: "1"}, append(append([]rawMessage{started("retried", "1", "Try")}, said("m1", "Half an ans")...), event("RUN_ERROR", "message", "the model broke", "code", "broken"))...)
	appendEvents(t, store, pgagui.RunRef{ThreadID: "retried", RunID: "2"}, append(append([]rawMessage{started("retried", "2", "Once more")}, said("m2", "The answer")...), finished("retried", "2"))...)
	text := s.get(nil, "thread?id=retried").text
	at := func(part string) int {
		index := strings.Index(text, part)
		if index < 0 {
			t.Errorf("it lacks %q", part)
		}
		return index
	}
	if !(at("Half an ans") < at(`id="end-1"`) && at(`id="end-1"`) < at("<bdi>the model broke") && at("<bdi>the model broke") < at("Once more") && at("Once more") < at("The answer")) {
		t.Errorf("the order is another one:\n%s", text)
	}
	if strings.Contains(text, `class="notice bad"><strong>failed`) {
		t.Error("the head of the page says that the thread failed")
	}
}

// Messages as no client sends them, but a log may hold.
func TestOddMessages(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	odd := `[null, 1, "text", {}, {"role":5}, {"id":"a","role":"user","content":{"x":1}}, {"id":"a","role":"assistant","content":null,"toolCalls":[{},{"id":"c","function":{"name":"f","arguments":5}}]},
		{"id":"b","role":"tool","content":[{"type":"text","text":"x"}]}, {"id":"","role":"` + strings.Repeat("é", 2000) + `","content":"role"}, {"id":"i","role":"user","content":[{"type":"image","source":{"type":"data","value":"iVBORw0KGgo=","mimeType":"image/png"}},
		{"type":"document","source":{"type":"data","value":"PHNjcmlwdD4=","mimeType":"text/html"}}]}]`
	appendEvents(t, store, pgagui.RunRef{ThreadID: "odd", RunID: "r"}, started("odd", "r", ""), json.RawMessage(`{"type":"MESSAGES_SNAPSHOT","messages":`+odd+`}`), finished("odd", "r"))
	got := s.get(nil, "thread?id=odd")
	got.want(t, http.StatusOK, "image/png", `<img src="attachment?`)
	checkMarkup(t, "odd", got.text)
	attached, err := store.Attachments(t.Context(), "odd", pgagui.At{})
	if err != nil || len(attached) != 2 {
		t.Fatalf("%v %v", attached, err)
	}
	image, page := s.get(nil, "attachment?id=odd&n=1"), s.get(nil, "attachment?id=odd&n=2")
	if image.Header.Get("Content-Type") != "image/png" || image.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(image.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("the image: %v", image.Header)
	}
	if page.text != "<script>" || page.Header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(page.Header.Get("Content-Disposition"), "attachment") || page.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the page: %q %v", page.text, page.Header)
	}
}
