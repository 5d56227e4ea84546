package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
)

// fastAPIError is what FastAPI answers to a body that its model does not fit.
const fastAPIError = `{"detail":[{"type":"missing","loc":["body","forwardedProps"],"msg":"Field required","input":{"threadId":"secret of the user"}}]}`

// What an agent answers in place of events is kept with its run, byte for byte, and no log and no client gets it.
func TestTheAnswerOfAnAgentIsKeptWithItsRun(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	var calls atomic.Int32
	released := make(chan struct{})
	answers := map[string]func(http.ResponseWriter){
		"fastapi": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, fastAPIError)
		},
		"long": func(w http.ResponseWriter) { // the last character is cut in two
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "secret "+strings.Repeat("é", 5000))
		},
		"binary": func(w http.ResponseWriter) {
			w.Header()["Content-Type"] = []string{"secret/\xff"}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte("secret\x00\xff\xfe"))
		},
		"page": func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html"); fmt.Fprint(w, "<p>secret") },
		"last": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "secret ", calls.Add(1))
		},
		"silent": func(w http.ResponseWriter) { // says a little, and then nothing
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "secret")
			_ = http.NewResponseController(w).Flush()
			<-released
		},
	}
	of := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answers[strings.TrimPrefix(r.URL.Path, "/")](w) }))
	t.Cleanup(of.Close)
	t.Cleanup(func() { close(released) })
	var agents []server.Agent
	for name := range answers {
		agents = append(agents, server.Agent{Name: name, URL: of.URL + "/" + name, Idempotent: name == "last"})
	}
	logged := &logOfServer{}
	p := serve(t, pool, server.Options{Logger: slog.New(slog.NewTextHandler(logged, nil)), Agents: agents})
	for name, want := range map[string]pgagui.AgentError{
		"fastapi": {Status: 422, ContentType: "application/json", Body: []byte(fastAPIError)},
		"long":    {Status: 500, ContentType: "text/plain; charset=utf-8", Body: []byte("secret " + strings.Repeat("é", 2044))},
		"binary":  {Status: 400, ContentType: "secret/\uFFFD", Body: []byte("secret\x00\xff\xfe")},
		"page":    {Status: 200, ContentType: "text/html", Body: []byte("<p>secret")},
		"last":    {Status: 502, ContentType: "text/plain; charset=utf-8", Body: []byte("secret 4")},
		"silent":  {Status: 403, ContentType: "text/plain; charset=utf-8", Body: []byte("secret")},
	} {
		run := pgagui.RunRef{ThreadID: name, RunID: "run"}
		c := p.stream("POST", "/agent/"+name+"/run", input(name, "run", "u1 user Hello"))
		c.rest()
		if last := c.events[len(c.events)-1]; !strings.Contains(last, fmt.Sprint("status ", want.Status)) || strings.Contains(fmt.Sprint(c.events), "secret") {
			t.Errorf("%s: the client received %q", name, c.events)
		}
		var got *pgagui.AgentError
		wait.For(t, "what the agent answered", func() (isThere bool) {
			var err error
			if got, err = p.store.AgentError(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			return got != nil
		})
		if got.Status != want.Status || got.ContentType != want.ContentType || !bytes.Equal(got.Body, want.Body) || got.RecordedAt.IsZero() {
			t.Errorf("%s: kept is %+v, want %+v", name, got, want)
		}
		text, err := json.Marshal(got)
		var read pgagui.AgentError
		if err != nil || json.Unmarshal(text, &read) != nil || !bytes.Equal(read.Body, want.Body) || strings.Contains(string(text), "bodyBase64") != (name == "binary") {
			t.Errorf("%s: as JSON it is %s (%v)", name, text, err)
		}
		wait.For(t, "the log", func() bool { return logged.count("run="+run.RunID) > 0 && logged.count("thread="+name) > 0 })
	}
	if logged.count("secret") > 0 {
		t.Errorf("the log has what an agent answered: %s", logged.text.String())
	}
	if n := testdb.Ask[int](t, pool, `select count(*) from agui.batch where events::text like '%secret%'`); n > 0 {
		t.Errorf("%d batches have what an agent answered", n)
	}
}
