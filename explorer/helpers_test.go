package explorer_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/testdata/recordings"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// prefix is where the tests mount the explorer.
const prefix = "/some/where"

// site is an explorer in a server.
type site struct {
	t     testing.TB
	pages *explorer.Handler
	url   string // ends with the slash of the prefix
	log   *bytes.Buffer
}

func newSite(t testing.TB, store *pgagui.Store, options explorer.Options) *site {
	t.Helper()
	s := &site{t: t, log: &bytes.Buffer{}}
	options.Limits.RequestsPerSecond = -1
	options.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	s.pages = explorer.New(store, options)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, s.pages))
	mux.Handle(prefix, http.StripPrefix(prefix, s.pages))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(s.pages.Close)
	s.url = server.URL + prefix + "/"
	return s
}

// newOpenSite is a site that takes every request, for a database with the recordings.
func newOpenSite(t testing.TB) (*site, *pgagui.Store) {
	t.Helper()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	importRecordings(t, store)
	return newSite(t, store, explorer.Options{Access: access.Anonymous("", access.Admin), Database: pool}), store
}

// answer is an answer of the explorer.
type answer struct {
	*http.Response
	text string
}

func (s *site) get(client *http.Client, page string) answer {
	s.t.Helper()
	return s.do(client, "GET", page, nil, nil)
}

func (s *site) post(client *http.Client, page string, form url.Values, headers ...string) answer {
	s.t.Helper()
	return s.do(client, "POST", page, form, headers)
}

func (s *site) do(client *http.Client, method, page string, form url.Values, headers []string) answer {
	s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request := must.Have(http.NewRequestWithContext(s.t.Context(), method, s.url+page, body))(s.t)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if client == nil {
		client = http.DefaultClient
	}
	response := must.Have(client.Do(request))(s.t)
	defer response.Body.Close()
	text := must.Have(io.ReadAll(response.Body))(s.t)
	return answer{response, string(text)}
}

// want checks an answer, and that it has all of some texts.
func (a answer) want(t testing.TB, status int, texts ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s: %s, want %d", a.Request.URL, a.Status, status)
	}
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			t.Errorf("%s lacks %q:\n%.2000s", a.Request.URL, text, a.text)
		}
	}
}

// newReader is a browser with cookies.
func newReader(t testing.TB) *http.Client {
	jar := must.Have(cookiejar.New(nil))(t)
	return &http.Client{Jar: jar}
}

// staying does not follow redirects.
func staying(client *http.Client) *http.Client {
	copied := *client
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

// importRecordings stores the recordings.
func importRecordings(t testing.TB, store *pgagui.Store) {
	t.Helper()
	for _, name := range []string{"trip-to-lisbon", "weather-tools", "release-approval", "recipe-card"} {
		file := must.Have(recordings.Files.Open(name + ".ndjson"))(t)
		defer file.Close()
		var run pgagui.RunRef
		var events []json.RawMessage
		flush := func() {
			if len(events) > 0 {
				appendEvents(t, store, run, events...)
			}
			events = nil
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var event struct{ Type, ThreadID, RunID string }
			must.Do(t, json.Unmarshal(lines.Bytes(), &event))
			if event.Type == "RUN_STARTED" {
				flush()
				run = pgagui.RunRef{ThreadID: event.ThreadID, RunID: event.RunID}
			}
			events = append(events, bytes.Clone(lines.Bytes()))
		}
		flush()
	}
}

func appendEvents(t testing.TB, store *pgagui.Store, run pgagui.RunRef, events ...json.RawMessage) {
	t.Helper()
	if _, err := store.Append(t.Context(), run, events, pgagui.AppendOptions{}); err != nil {
		t.Fatalf("%s: %v", run.RunID, err)
	}
}

// event is an event of a type, with members in JSON: their names and values alternate.
func event(eventType string, members ...any) json.RawMessage {
	object := map[string]any{"type": eventType}
	for i := 0; i+1 < len(members); i += 2 {
		object[fmt.Sprint(members[i])] = members[i+1]
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}

// started begins a run. With a question, its input has it.
func started(thread, run, question string) json.RawMessage {
	messages := []any{}
	if question != "" {
		messages = append(messages, map[string]any{"id": "user-" + run, "role": "user", "content": question})
	}
	return event("RUN_STARTED", "threadId", thread, "runId", run, "input", map[string]any{
		"threadId": thread, "runId": run, "state": map[string]any{}, "messages": messages, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
	})
}

func said(id, text string) []json.RawMessage {
	return []json.RawMessage{
		event("TEXT_MESSAGE_START", "messageId", id, "role", "assistant"), event("TEXT_MESSAGE_CONTENT", "messageId", id, "delta", text), event("TEXT_MESSAGE_END", "messageId", id),
	}
}

func finished(thread, run string) json.RawMessage {
	return event("RUN_FINISHED", "threadId", thread, "runId", run)
}

type rawMessage = json.RawMessage

// recorded is a request to a handler without a server.
func recorded(method, target string, form url.Values) (*httptest.ResponseRecorder, *http.Request) {
	request := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return httptest.NewRecorder(), request
}

// appendWaiting appends a thread that waits for an answer, with an attachment and a subagent.
func appendWaiting(t testing.TB, store *pgagui.Store) {
	t.Helper()
	const thread, run = "waits", "r"
	input := map[string]any{"threadId": thread, "runId": run, "state": map[string]any{}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{}, "messages": []any{
		map[string]any{"id": "u", "role": "user", "content": []any{
			map[string]any{"type": "text", "text": "Refund this, please"},
			map[string]any{"type": "image", "source": map[string]any{"type": "data", "mimeType": "image/png", "value": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}},
		}},
	}}
	appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: run}, append(append([]rawMessage{
		event("RUN_STARTED", "threadId", thread, "runId", run, "input", input),
		event("SUBAGENT_STARTED", "subagentRunId", "s", "name", "researcher"),
		event("TEXT_MESSAGE_START", "messageId", "m1", "role", "assistant", "subagentRunId", "s"), event("TEXT_MESSAGE_CONTENT", "messageId", "m1", "delta", "The order was paid twice.", "subagentRunId", "s"),
		event("TEXT_MESSAGE_END", "messageId", "m1", "subagentRunId", "s"), event("SUBAGENT_FINISHED", "subagentRunId", "s"),
		event("ACTIVITY_SNAPSHOT", "messageId", "a", "activityType", "PLAN", "content", map[string]any{"steps": []any{
			map[string]any{"title": "Look the order up", "status": "done"}, map[string]any{"title": "Ask for approval", "status": "running"}, map[string]any{"title": "Refund", "status": "pending"},
		}}),
	}, said("m2", "I can refund **€ 49.90**:\n\n| order | paid |\n|---|---|\n| 4711 | twice |\n\n```json\n{\"order\": 4711}\n```\n\nSee [the rules](https://example.com/rules).")...),
		event("RUN_FINISHED", "threadId", thread, "runId", run, "outcome", map[string]any{"type": "interrupt", "interrupts": []any{
			map[string]any{"id": "i", "reason": "approval", "message": "Refund € 49.90 for order 4711?", "expiresAt": "2099-01-01T00:00:00Z"},
		}}))...)
}
