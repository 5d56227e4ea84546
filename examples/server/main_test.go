package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/pooler"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// steps is an agent that sends a word for each value that it receives, and ends when the channel closes.
type steps chan string

func (s steps) run(ctx context.Context, _ json.RawMessage, emit func(json.RawMessage) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case word, isOpen := <-s:
			if !isOpen {
				return nil
			}
			if err := emit(fmt.Appendf(nil, "{\"type\":\"TEXT_MESSAGE_CHUNK\",\n\"messageId\":\"a\",\"delta\":%q}", word)); err != nil {
				return err
			}
		}
	}
}

// start serves a database, as a process of its own would.
func start(t *testing.T, store *pgagui.Store, agent Agent) string {
	t.Helper()
	s := &server{ctx: t.Context(), store: store, recorder: store.NewRecorder(&pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond}), agent: agent}
	serves := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		serves.CloseClientConnections()
		serves.Close()
		s.runs.Wait()
		if err := s.recorder.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return serves.URL
}

// client reads server-sent events.
type client struct {
	t      *testing.T
	body   io.ReadCloser
	lines  *bufio.Scanner
	lastID string
}

func request(t *testing.T, method, url, body, lastID string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func connect(t *testing.T, method, url, body, lastID string) *client {
	t.Helper()
	response := request(t, method, url, body, lastID)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s: status %d", method, url, response.StatusCode)
	}
	return &client{t: t, body: response.Body, lines: bufio.NewScanner(response.Body)}
}

// next returns the next event; empty: the stream has ended.
func (c *client) next() string {
	var data []string
	for c.lines.Scan() {
		switch line := c.lines.Text(); {
		case strings.HasPrefix(line, "id: "):
			c.lastID = strings.TrimPrefix(line, "id: ")
		case strings.HasPrefix(line, "data: "):
			data = append(data, strings.TrimPrefix(line, "data: "))
		case line == "" && data != nil:
			return strings.Join(data, "\n")
		}
	}
	return ""
}

func (c *client) want(parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if event := c.next(); !strings.Contains(event, part) {
			c.t.Fatalf("event %s, want %s", event, part)
		}
	}
}

func input(runID, parent string) string {
	return fmt.Sprintf(`{"runId":%q,"parentRunId":%q,"messages":[{"id":"u-%s","role":"user","content":"Hello"}]}`, runID, parent, runID)
}

func TestAChatSurvivesReloads(t *testing.T) {
	t.Parallel()
	survivesReloads(t, testdb.Pool(t))
}

func TestAChatThroughAPooler(t *testing.T) {
	t.Parallel()
	survivesReloads(t, testdb.Connect(t, pooler.Start(t, testdb.New(t))+"&default_query_exec_mode=exec"))
}

func survivesReloads(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	store := pgagui.New(pool, nil)
	agent := make(steps)
	one, other := start(t, store, agent.run), start(t, store, echo)

	page := connect(t, "POST", one+"/threads/t/runs", input("r1", ""), "")
	page.want("RUN_STARTED")
	agent <- "first"
	page.want(`"delta":"first"`)
	page.body.Close() // the page reloads
	agent <- "second"

	reloaded := connect(t, "GET", other+"/threads/t/events", "", "")
	for event := ""; !strings.Contains(event, "second"); {
		if event = reloaded.next(); event == "" {
			t.Fatal("the history and the events behind it lack a word")
		}
	}
	resumed := connect(t, "GET", other+"/threads/t/events", "", page.lastID)
	resumed.want("\n\"messageId\":\"a\",\"delta\":\"second\"")

	if response := request(t, "POST", other+"/threads/t/runs", input("r2", ""), ""); response.StatusCode != http.StatusConflict {
		t.Errorf("a second run: status %d", response.StatusCode)
	}
	close(agent)
	for event := ""; !strings.Contains(event, "RUN_FINISHED"); { // the word may have been in the history
		if event = reloaded.next(); event == "" {
			t.Fatal("the stream ended without the end of the run")
		}
	}
	reloaded.want("")
	resumed.want("RUN_FINISHED", "")

	branch := connect(t, "POST", other+"/threads/t/runs", input("r3", "r1"), "")
	branch.want(`"parentRunId":"r1"`, "You", "said:", "Hello", "RUN_FINISHED", "")

	response := request(t, "GET", other+"/threads", "", "")
	var threads pgagui.ThreadPage
	if err := json.NewDecoder(response.Body).Decode(&threads); err != nil || len(threads.Threads) != 1 || threads.Threads[0].Runs != 2 {
		t.Errorf("threads %+v, error %v", threads, err)
	}
}

func TestAStopReachesTheProcessOfTheRun(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	one, other := start(t, store, make(steps).run), start(t, store, echo)
	page := connect(t, "POST", one+"/threads/t/runs", input("r1", ""), "")
	page.want("RUN_STARTED")
	response := request(t, "POST", other+"/threads/t/stop", "", "")
	if body, err := io.ReadAll(response.Body); err != nil || !bytes.Contains(body, []byte(`{"runs":1}`)) {
		t.Errorf("stop: %s, error %v", body, err)
	}
	page.want("asked to stop", "")
}

func TestErrorsHaveAStatus(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	url := start(t, store, echo)
	for _, test := range []struct {
		method, path, body, lastID string
		want                       int
	}{
		{"POST", "/threads/t/runs", "{", "", http.StatusBadRequest},
		{"POST", "/threads/t/runs", "{}", "", http.StatusBadRequest},
		{"POST", "/threads/t/runs", strings.Repeat(" ", 1<<21), "", http.StatusBadRequest},
		{"POST", "/threads/t/runs", input("r", "nobody"), "", http.StatusNotFound},
		{"POST", "/threads/unknown/stop", "", "", http.StatusNotFound},
		{"GET", "/threads/t/events", "", "x", http.StatusBadRequest},
		{"GET", "/threads/unknown/events", "", "", http.StatusOK}, // an empty conversation
	} {
		if response := request(t, test.method, url+test.path, test.body, test.lastID); response.StatusCode != test.want {
			t.Errorf("%s %s %.20q: status %d, want %d", test.method, test.path, test.body, response.StatusCode, test.want)
		}
	}
}
