package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// outcomeAgent ends a run as the id of its thread says. Of the thread stopped it does not end the
// run; begun then gets a value.
func outcomeAgent(t *testing.T, begun chan<- struct{}) string {
	t.Helper()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input struct{ ThreadID, RunID string }
		must.Report(t, json.NewDecoder(r.Body).Decode(&input))
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(event string) {
			_, _ = io.WriteString(w, "data: "+event+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		send(clitest.Started(input.ThreadID, input.RunID))
		switch input.ThreadID {
		case "failed":
			send(`{"type":"RUN_ERROR","code":"MODEL_DOWN","message":"the model does not answer"}`)
		case "interrupted":
			send(fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q,"outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}`,
				input.ThreadID, input.RunID))
		case "stopped":
			begun <- struct{}{}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(func() {
		agent.CloseClientConnections()
		agent.Close()
	})
	return agent.URL
}

// A run that is stopped by request, one whose agent fails, one that waits for an answer, an imported
// one that was cancelled elsewhere, and one that is cut off: SQL, HTTP and the command line say the
// same of each.
func TestSQLAndHTTPAndCommandsAgreeOnHowRunsEnded(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	begun := make(chan struct{}, 1)
	s := commands.Serve("--insecure", "--agent", "assistant="+outcomeAgent(t, begun))
	get := func(path string, answer any) {
		t.Helper()
		got, text := s.Request(http.DefaultClient, "", "GET", path, "")
		if got.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s %s", path, got.Status, text)
		}
		if err := json.Unmarshal([]byte(text), answer); err != nil {
			t.Fatalf("GET %s: %v: %s", path, err, text)
		}
	}
	post := func(path, body string) {
		t.Helper()
		if answer, text := s.Request(http.DefaultClient, "", "POST", path, body); answer.StatusCode != http.StatusOK {
			t.Fatalf("POST %s: %s %s", path, answer.Status, text)
		}
	}

	requests := make(chan error, 1)
	go func() { // its answer ends with the run
		answer, err := http.Post(s.URL+"/agent/assistant/run", "application/json", strings.NewReader(clitest.RunInput("stopped", "r", "Hello")))
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		requests <- err
	}()
	select {
	case <-begun:
	case <-time.After(wait.Patience):
		t.Fatal("the agent was not called")
	}
	post("/threads/stopped/stop", `{"reason":"changed my mind"}`)
	must.Do(t, <-requests)
	post("/agent/assistant/run", clitest.RunInput("failed", "r", "Hello"))
	post("/agent/assistant/run", clitest.RunInput("interrupted", "r", "Hello"))
	commands.Must("import", clitest.WriteFile(t, "cancelled.ndjson",
		`{"type":"RUN_STARTED","threadId":"imported","runId":"r","timestamp":1714064100000}`,
		`{"type":"RUN_FINISHED","outcome":{"type":"cancelled"},"result":{"stopped":true,"reason":"too slow"},"timestamp":1714064101000}`))
	clitest.LeaveRun(t, commands, "cut", "r")
	testdb.Exec(t, pool, `select agui.abandon('cut', 'r', reason => 'power cut')`)

	type ended struct {
		Status pgagui.Status
		pgagui.RunEnd
	}
	want := map[string]ended{
		"stopped":     {pgagui.Cancelled, pgagui.RunEnd{StopReason: "changed my mind"}},
		"failed":      {pgagui.Failed, pgagui.RunEnd{ErrorCode: "MODEL_DOWN", ErrorMessage: "the model does not answer"}},
		"interrupted": {pgagui.Interrupted, pgagui.RunEnd{}},
		"imported":    {pgagui.Cancelled, pgagui.RunEnd{StopReason: "too slow"}},
		"cut":         {pgagui.CutOff, pgagui.RunEnd{ErrorCode: "RUN_CUT_OFF", ErrorMessage: "The run was cut off: power cut", CutOffReason: "power cut"}},
	}
	for thread, want := range want {
		got := map[string]ended{}
		for name, call := range map[string]string{
			"agui.status":    `agui.status($1)`,
			"agui.runs":      `agui.runs($1)`,
			"agui.lineage":   `agui.lineage($1)`,
			"agui.list_runs": `(select * from agui.list_runs('{failed,cut_off,cancelled,interrupted}') where thread_id = $1)`,
			"agui.threads":   `(select * from agui.threads() where thread_id = $1)`,
		} {
			var is ended
			if err := pool.QueryRow(t.Context(), `
				select status, coalesce(error_code, ''), coalesce(error_message, ''), coalesce(stop_reason, ''), coalesce(cut_off_reason, '')
				from `+call+` as run`, thread).Scan(&is.Status, &is.ErrorCode, &is.ErrorMessage, &is.StopReason, &is.CutOffReason); err != nil {
				t.Errorf("%s of %s: %v", name, thread, err)
			}
			got[name] = is
		}

		for _, path := range []string{"/threads/" + thread + "/runs/r", "/threads/" + thread + "/head", "/threads/" + thread} {
			var is ended
			get(path, &is)
			got["GET "+path] = is
		}
		var list struct{ Runs []ended }
		get("/threads/"+thread+"/runs", &list)
		if len(list.Runs) == 1 {
			got["GET runs of the thread"] = list.Runs[0]
		}
		var page pgagui.RunPage
		get("/runs?status="+string(want.Status), &page)
		listed := slices.IndexFunc(page.Runs, func(run pgagui.ListedRun) bool { return run.ThreadID == thread })
		if listed < 0 {
			t.Errorf("GET /runs?status=%s does not list %s", want.Status, thread)
		} else {
			got["GET /runs"] = ended{page.Runs[listed].Status, page.Runs[listed].RunEnd}
		}
		for _, run := range page.Runs {
			if run.Status != want.Status {
				t.Errorf("GET /runs?status=%s lists %+v", want.Status, run)
			}
		}

		got["pgagui show --status"] = clitest.Parse[ended](commands, "show", "--status", thread)
		showed, _, _ := strings.Cut(commands.Must("show", thread, "--json"), "\n")
		var show ended
		must.Do(t, json.Unmarshal([]byte(showed), &show))
		got["pgagui show"] = show
		for _, row := range clitest.Lines[pgagui.Thread](t, commands.Must("threads", "--json")) {
			if row.ID == thread {
				got["pgagui threads"] = ended{row.Status, row.RunEnd}
			}
		}
		if runs := clitest.Parse[[]runlog.Run](commands, "log", thread); len(runs) == 1 {
			got["pgagui log"] = ended{runs[0].Status, runs[0].RunEnd}
		}
		for _, run := range clitest.Lines[pgagui.ListedRun](t, commands.Must("log", "--all-threads", "--status", string(want.Status), "--json")) {
			if run.ThreadID == thread {
				got["pgagui log --all-threads"] = ended{run.Status, run.RunEnd}
			}
			// The same row, with the same cursor.
			if !slices.Contains(page.Runs, run) {
				t.Errorf("pgagui log --all-threads has %+v, GET /runs %+v", run, page.Runs)
			}
		}
		if len(got) != 15 {
			t.Errorf("%s: %d answers: %v", thread, len(got), got)
		}
		for where, got := range got {
			if got != want {
				t.Errorf("%s of %s: %+v, want %+v", where, thread, got, want)
			}
		}
	}
	var failures pgagui.RunPage // those without a status are failures: not what was stopped or waits
	get("/runs", &failures)
	if len(failures.Runs) != 2 || failures.Runs[0].ThreadID != "cut" || failures.Runs[1].ThreadID != "failed" {
		t.Errorf("GET /runs: %+v", failures.Runs)
	}
	commands.Must("verify")
	s.Terminate(t)
	if code := s.End(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
}
