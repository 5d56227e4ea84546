package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

var (
	randomCalls = flag.Int("random-calls", 600, "calls of TestRandomCallsOfTheDocument")
	firstSeed   = flag.Uint64("seed", 1, "seed of its calls, and of the requests of TestRandomRequests")
)

// secret is in all that belongs to another tenant.
const secret = "0nly-f0r-the-0ther-tenant"

// TestRandomCallsOfTheDocument makes calls from openapi.yaml, valid ones and others, by several
// clients at once. No answer is an error of the server, is other than the document says, or has
// anything of another tenant. Afterwards the log has no damage.
func TestRandomCallsOfTheDocument(t *testing.T) {
	t.Parallel()
	seed := *firstSeed
	t.Logf("-random-calls %d -seed %d", *randomCalls, seed)
	a := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ThreadID, RunID string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{started(in.ThreadID, in.RunID), start("a-" + in.RunID), content("a-"+in.RunID, "Hello"), end("a-" + in.RunID), finished(in.ThreadID, in.RunID)} {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}))
	t.Cleanup(a.Close)
	p := serve(t, testdb.Pool(t), server.Options{
		Agents: []server.Agent{{Name: "test", URL: a.URL}}, Recorder: pgagui.RecorderConfig{CheckEvery: time.Second},
		Access: named{
			"all":   {Scope: "mine", Subject: "all", Rights: access.Admin},
			"some":  {Scope: "mine", Subject: "some", Rights: access.Read | access.Write},
			"other": {Scope: "other", Subject: "other", Rights: access.Admin},
		},
	})
	must.Do(t, p.store.EnableSearch(t.Context(), "simple"))
	handler := asDocumented(t, p.server)
	others := newCaller(t, handler, "other", rand.New(rand.NewPCG(seed, 1)))
	others.texts = append(others.texts, secret)
	for i, thread := range []string{"t1", "t2", secret} { // the same ids as in the other scope
		body := fmt.Sprintf(`{"events":[%s,%s,%s,%s,{"type":"STATE_SNAPSHOT","snapshot":{"k":%q}},%s],"input":{"k":%q},"afterSeq":0}`,
			started(thread, "r1"), start(secret), content(secret, secret), end(secret), secret, finished(thread, "r1"), secret)
		for method, path := range map[string]string{
			"POST":  "/threads/" + thread + "/runs/r1/events",
			"PATCH": "/threads/" + thread,
			"PUT":   "/threads/" + thread + "/session-state/memory",
		} {
			sent := map[string]string{"POST": body, "PATCH": fmt.Sprintf(`{"title":%q,"createIfMissing":true}`, secret), "PUT": fmt.Sprintf("%q", secret)}[method]
			if status, answer := others.call(method, path, sent, nil); status >= 300 {
				t.Fatalf("thread %d: %s %s: %d %s", i, method, path, status, answer)
			}
		}
	}
	must.Have(p.pool().Exec(t.Context(), `call agui.project()`))(t)

	own := newCaller(t, handler, "all", rand.New(rand.NewPCG(seed, 0)))
	for _, thread := range []string{"t1", "t2"} {
		for _, run := range []string{"r1", "r2"} {
			body := fmt.Sprintf(`{"events":[%s,%s,%s,%s,%s],"input":{},"afterSeq":0}`, started(thread, run), start("a1"), content("a1", "x"), end("a1"), finished(thread, run))
			if status, answer := own.call("POST", "/threads/"+thread+"/runs/"+run+"/events", body, nil); status != 200 {
				t.Fatal(status, answer)
			}
		}
	}

	operations := operationsOfTheDocument(t)
	counts := map[string]map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	const clients = 4
	for client := range clients {
		wg.Go(func() {
			c := newCaller(t, handler, []string{"all", "all", "all", "some"}[client], rand.New(rand.NewPCG(seed, uint64(client)+2)))
			for range *randomCalls / clients {
				operation := operations[c.random.IntN(len(operations))]
				method, path, body, header := c.make(operation)
				status, answer := c.call(method, path, body, header)
				if status >= 500 || strings.Contains(answer, secret) {
					t.Errorf("%s %s %.300s: status %d, %.500s", method, path, body, status, answer)
				}
				mu.Lock()
				if counts[operation.name] == nil {
					counts[operation.name] = map[int]int{}
				}
				counts[operation.name][status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, operation := range operations {
		succeeded := 0
		for status, n := range counts[operation.name] {
			if status >= 200 && status < 400 {
				succeeded += n
			}
		}
		t.Log(operation.name, counts[operation.name])
		if succeeded == 0 && *randomCalls >= 10_000 {
			t.Errorf("no random call of %s succeeded: %v", operation.name, counts[operation.name])
		}
	}
	for _, scope := range []string{"mine", "other"} {
		for thread, err := range p.store.InScope(scope).ThreadIDs(t.Context()) {
			must.Do(t, err)
			problems := must.Have(p.store.InScope(scope).Maintenance().Verify(t.Context(), thread))(t)
			for _, problem := range problems {
				if problem.Severity == pgagui.Damage {
					t.Errorf("thread %q: %v", thread, problem)
				}
			}
		}
	}
}

// operation is an operation of the document.
type operation struct {
	name, method, path string
	item               *openapi3.PathItem
	*openapi3.Operation
}

func operationsOfTheDocument(t *testing.T) (operations []operation) {
	t.Helper()
	doc := must.Have(document())(t)
	for path, item := range doc.Paths.Map() {
		for method, one := range item.Operations() {
			operations = append(operations, operation{one.OperationID, method, path, item, one})
		}
	}
	slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.name, b.name) })
	return operations
}

// caller makes random calls.
type caller struct {
	t       *testing.T
	handler http.Handler
	token   string
	random  *rand.Rand
	texts   []string
}

func newCaller(t *testing.T, handler http.Handler, token string, random *rand.Rand) *caller {
	return &caller{t: t, handler: handler, token: token, random: random, texts: []string{
		"t1", "t1", "t1", "t2", "t3", "r1", "r1", "r1", "r2", "r3", "a1", "c1", "c1", "memory", "memory", "test",
	}}
}

// wild are texts that are seldom right.
var wild = []string{
	"", "\x00", "\xff", "é", `"`, "\\", "/", "..", ".", "%2F", "0", "-1", "9223372036854775808", "1e9", "4-17", "null", "true", "{}", "[]", "' or 1=1 --",
	strings.Repeat("x", 1100), "\u202e", "a\r\nb", "2026-01-31T12:00:00Z", "\U0001F600", "'; drop schema agui cascade; --", "{", "*", `"1"`,
}

func (c *caller) chance(percent int) bool { return c.random.IntN(100) < percent }

func (c *caller) text() string {
	if c.chance(8) {
		return wild[c.random.IntN(len(wild))]
	}
	return c.texts[c.random.IntN(len(c.texts))]
}

// make makes a call of an operation.
func (c *caller) make(o operation) (method, path, body string, header http.Header) {
	header, path = http.Header{}, o.path
	query := url.Values{}
	for _, list := range []openapi3.Parameters{o.item.Parameters, o.Parameters} {
		for _, parameter := range list {
			p := parameter.Value
			switch {
			case p.In == "path":
				value := c.text()
				if strings.Contains(strings.ToLower(o.name), "erasethread") || strings.Contains(o.name, "DeleteThread") {
					path = strings.ReplaceAll(path, "{thread}", fmt.Sprint("x", c.random.IntN(1000))) // or soon all are gone
				}
				if fit := map[string][]string{
					"agent": {"test"}, "thread": {"t1", "t2", "t3"}, "run": {"r1", "r2", "r3"}, "key": {"memory"}, "checkpoint": {"c1", "c2"}, "message": {"a1", "a-r1"},
				}[p.Name]; fit != nil && c.chance(75) {
					if c.chance(75) {
						value = fit[c.random.IntN(len(fit))]
					}
				}
				path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
			case !p.Required && !c.chance(25):
			case p.In == "header":
				if value := c.parameter(p.Name, p.Schema); !strings.ContainsAny(value, "\r\n\x00") {
					header.Set(p.Name, value)
				}
			default:
				value := ""
				if p.Schema != nil {
					value = c.parameter(p.Name, p.Schema)
				} else {
					text, _ := json.Marshal(c.value(p.Name, p.Content["application/json"].Schema, 0))
					value = string(text)
				}
				query.Add(p.Name, value)
			}
		}
	}
	if c.chance(2) {
		query.Add(c.text(), c.text())
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if o.RequestBody == nil {
		return o.method, path, "", header
	}
	header.Set("Content-Type", "application/json")
	schema := o.RequestBody.Value.Content["application/json"].Schema
	text, _ := json.Marshal(c.value("", schema, 0))
	body = string(text)
	if stream := o.RequestBody.Value.Content["application/x-ndjson"]; stream != nil && c.chance(20) {
		header.Set("Content-Type", []string{"application/x-ndjson", "text/event-stream"}[c.random.IntN(2)])
		body = c.stream(header.Get("Content-Type"))
	}
	if c.chance(3) && len(body) > 0 {
		body = body[:c.random.IntN(len(body))]
	}
	return o.method, path, body, header
}

func (c *caller) parameter(name string, schema *openapi3.SchemaRef) string {
	s := schema.Value
	switch {
	case c.chance(8):
		return c.text()
	case len(s.Enum) > 0:
		return fmt.Sprint(s.Enum[c.random.IntN(len(s.Enum))])
	case s.Type.Is("integer"):
		return fmt.Sprint(c.random.IntN(12))
	case s.Type.Is("boolean"):
		return fmt.Sprint(c.chance(50))
	case s.Format == "date-time":
		return time.Now().Add(time.Duration(c.random.IntN(3)-1) * time.Hour).Format(time.RFC3339Nano)
	case name == "metadata":
		return `{"k":"v"}`
	case name == "max_idle":
		return "2s"
	case strings.HasPrefix(name, "If-"):
		return []string{`"1"`, `"2"`, "*"}[c.random.IntN(3)]
	case strings.Contains(name, "cursor") || strings.Contains(strings.ToLower(name), "event"):
		return ""
	case strings.Contains(name, "run"):
		return []string{"r1", "r2", "r3"}[c.random.IntN(3)]
	default:
		return c.text()
	}
}

// events are events of a run that may be right.
func (c *caller) events() (events []any) {
	types := []string{"RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STATE_SNAPSHOT", "STATE_DELTA", "CUSTOM", "RUN_FINISHED", "RUN_ERROR", "TOOL_CALL_START", "MESSAGES_SNAPSHOT"}
	if c.chance(80) {
		events = append(events, map[string]any{"type": "RUN_STARTED"})
	}
	for range c.random.IntN(5) {
		event := map[string]any{"type": types[c.random.IntN(len(types))], "messageId": c.text(), "delta": c.text(), "snapshot": map[string]any{"k": c.text()}, "toolCallId": c.text(), "toolCallName": "f"}
		if event["type"] == "STATE_DELTA" {
			event["delta"] = []any{map[string]any{"op": "add", "path": "/" + c.text(), "value": c.random.IntN(9)}}
		}
		events = append(events, event)
	}
	if c.chance(80) {
		events = append(events, map[string]any{"type": "RUN_FINISHED"})
	}
	return events
}

func (c *caller) stream(media string) string {
	var text strings.Builder
	for _, event := range c.events() {
		line, _ := json.Marshal(event)
		if media == "text/event-stream" {
			fmt.Fprintf(&text, "data: %s\n\n", line)
		} else {
			fmt.Fprintf(&text, "%s\n", line)
		}
	}
	return text.String()
}

// value makes a value of a schema, seldom one of another type.
func (c *caller) value(name string, schema *openapi3.SchemaRef, depth int) any {
	s := schema.Value
	switch {
	case c.chance(3):
		return []any{nil, 1, -1, 1e300, true, "", "\x00", c.text(), []any{}, map[string]any{}, []any{map[string]any{"type": "CUSTOM"}}}[c.random.IntN(11)]
	case name == "events":
		return c.events()
	case name == "afterSeq":
		return []int{0, 0, 0, 1, 2, 5}[c.random.IntN(6)]
	case name == "input":
		return map[string]any{"messages": []any{map[string]any{"id": c.text(), "role": "user", "content": c.text()}}}
	case name == "messages":
		return []any{map[string]any{"id": fmt.Sprint("u", c.random.IntN(1e6)), "role": "user", "content": c.text()}}
	case name == "runId" && c.chance(30), name == "threadId" && c.chance(20):
		return fmt.Sprint("x", c.random.IntN(1e6))
	case name == "parentRunId" && c.chance(60):
		return nil
	case name == "method":
		return []string{"info", "agent/run", "agent/connect", "resource/request"}[c.random.IntN(4)]
	case len(s.Enum) > 0:
		return s.Enum[c.random.IntN(len(s.Enum))]
	case s.Type == nil || len(s.Type.Slice()) > 2:
		return []any{nil, true, 1.5, c.text(), []any{1}, map[string]any{"k": c.text()}}[c.random.IntN(6)]
	case s.Type.Includes("object"):
		object := map[string]any{}
		for property, of := range s.Properties {
			if slices.Contains(s.Required, property) && !c.chance(2) || c.chance(40) {
				object[property] = c.value(property, of, depth+1)
			}
		}
		if s.AdditionalProperties.Has == nil || *s.AdditionalProperties.Has || c.chance(2) {
			object["k"] = c.text()
			object["method"] = c.value("method", openapi3.NewStringSchema().NewRef(), depth+1)
			object["params"] = map[string]any{"agentId": "test", "threadId": c.text(), "path": "/threads", "httpMethod": "GET"}
		}
		if s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has && !c.chance(2) {
			for property := range object {
				if _, isKnown := s.Properties[property]; !isKnown {
					delete(object, property)
				}
			}
		}
		return object
	case s.Type.Includes("array"):
		list := []any{}
		for range 1 + c.random.IntN(3) {
			list = append(list, c.value("", s.Items, depth+1))
		}
		return list
	case s.Type.Includes("integer") || s.Type.Includes("number"):
		return c.random.IntN(10)
	case s.Type.Includes("boolean"):
		return c.chance(50)
	default:
		return c.text()
	}
}

// call makes a call. A stream is read for a moment.
func (c *caller) call(method, path, body string, header http.Header) (status int, answer string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	request := must.Have(http.NewRequestWithContext(ctx, method, "http://server"+path, strings.NewReader(body)))(c.t)
	maps.Copy(request.Header, header)
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.RequestURI, request.RemoteAddr = path, "192.0.2.1:1234"
	answered := httptest.NewRecorder()
	defer func() {
		if cause := recover(); cause != nil && !errors.Is(cause.(error), http.ErrAbortHandler) {
			panic(cause)
		}
		status, answer = answered.Code, answered.Body.String()
	}()
	c.handler.ServeHTTP(&shortStream{ResponseWriter: answered, cancel: cancel}, request)
	return
}

// shortStream ends a stream soon.
type shortStream struct {
	http.ResponseWriter
	cancel  func()
	isEnded bool
}

func (s *shortStream) Flush() {
	s.ResponseWriter.(http.Flusher).Flush()
	if !s.isEnded && strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream") {
		s.isEnded = true
		time.AfterFunc(20*time.Millisecond, s.cancel)
	}
}
