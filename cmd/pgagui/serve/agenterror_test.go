package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// What an agent answers in place of events is for those who have a right to it, and goes where its thread goes.
func TestWhatAnAgentAnsweredIsForOperators(t *testing.T) {
	t.Parallel()
	const body = `{"detail":[{"type":"missing","loc":["body","forwardedProps"],"msg":"Field required"}]}`
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(agent.Close)
	commands := clitest.NewCommandLine(t)
	owner := testdb.Connect(t, commands.DatabaseURL)
	as := func(name, roles, mapping string) clitest.CommandLine { // a command line with a role of its own
		return clitest.On(t, testdb.As(t, commands.DatabaseURL, testdb.Role(t, owner, name, roles, mapping)))
	}
	web := as("web", "agui_writer, agui_diagnoser", `select agui.map_pool('%s')`)
	recorder := as("recorder", "agui_recorder", `select agui.map_operator('%s')`)
	operator := as("operator", "agui_diagnoser", `select agui.map_tenant('%s', 'acme')`)
	reader := as("reader", "agui_reader", `select agui.map_tenant('%s', 'acme')`)
	other := as("other", "agui_diagnoser", `select agui.map_tenant('%s', 'globex')`)
	testdb.Exec(t, owner, `call agui.enable_row_security()`)

	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	token := map[string]string{}
	for name, rights := range map[string]string{"user": "read,write", "operator": "read,diagnose", "admin": "admin"} {
		token[name] = web.Token(tokens, name, "acme", rights)
	}
	token["other"] = web.Token(tokens, "other", "globex", "read,diagnose")
	s := web.Serve("--agent", "fastapi="+agent.URL, "--token-file", tokens, "--database-row-security", "--live-database-url", recorder.DatabaseURL)
	s.Request(http.DefaultClient, token["user"], "POST", "/agent/fastapi/run", clitest.RunInput("t", "r", "Hello"))

	const scoped, text = "acme", "422 application/json: " + body
	status := func(of clitest.CommandLine, scope string) string {
		t.Helper()
		return clitest.Field(t, of.Must("show", "--status", "t", "--scope", scope), "agent answered")
	}
	wait.For(t, "what the agent answered", func() bool { return status(operator, scoped) != "" })
	if got := status(operator, scoped); got != text {
		t.Errorf("an operator sees %q, want %q", got, text)
	}
	if got := operator.Must("log", "--all-threads", "--scope", scoped); !strings.Contains(got, "AGENT_STATUS") || !strings.Contains(got, text) {
		t.Errorf("an operator lists %s", got)
	}
	for command, of := range map[string]func(clitest.CommandLine) string{
		"status": func(of clitest.CommandLine) string {
			return of.Must("show", "--status", "t", "--scope", scoped, "--json")
		},
		"runs": func(of clitest.CommandLine) string {
			return of.Must("log", "--all-threads", "--scope", scoped, "--json")
		},
	} {
		type shown struct {
			ErrorCode  string             `json:"errorCode"`
			AgentError *pgagui.AgentError `json:"agentError"`
		}
		got := clitest.Lines[shown](t, of(operator))
		if len(got) != 1 || got[0].AgentError == nil || got[0].AgentError.Status != 422 || string(got[0].AgentError.Body) != body {
			t.Errorf("%s: an operator gets %+v", command, got)
		}
		if got := clitest.Lines[shown](t, of(reader)); len(got) != 1 || got[0].ErrorCode != "AGENT_STATUS" || got[0].AgentError != nil {
			t.Errorf("%s: a reader gets %+v", command, got)
		}
	}
	if got := reader.Must("show", "--status", "t", "--scope", scoped) + reader.Must("log", "--all-threads", "--scope", scoped); strings.Contains(got, "Field required") {
		t.Errorf("a reader sees %s", got)
	}
	if got := other.Run("show", "--status", "t", "--scope", scoped); got.Code == cli.ExitOK || strings.Contains(got.Out, "422") {
		t.Errorf("another tenant sees %+v", got)
	}

	// The explorer goes by the rights of the token.
	for name, want := range map[string]int{"user": 0, "operator": 1, "admin": 1, "other": 0} {
		if _, page := s.Request(http.DefaultClient, token[name], "GET", "/explorer/thread?id=t", ""); strings.Count(page, "Field required") != want {
			t.Errorf("the explorer shows %q:\n%s", name, page)
		}
	}

	// It goes where the thread goes.
	requests := filepath.Join(t.TempDir(), "requests.ndjson")
	exported := clitest.WriteFile(t, "t.ndjson", strings.TrimSpace(commands.Must("events", "t", "--scope", scoped, "--requests", requests)))
	commands.Must("import", exported, "--requests", requests, "--scope", "copy")
	if got := status(commands, "copy"); got != text {
		t.Errorf("after an import: %q", got)
	}
	if left := commands.Run("events", "t", "--scope", scoped); !strings.Contains(left.Messages, "1 answer of agents") {
		t.Errorf("an export without requests says %q", left.Messages)
	}
	archive := filepath.Join(t.TempDir(), "archive")
	commands.Must("archive", archive, "--scope", scoped)
	restored := clitest.NewCommandLine(t)
	restored.Must("unarchive", archive)
	if got := status(restored, scoped); got != text {
		t.Errorf("after an archive: %q", got)
	}
	commands.Must("erase", "t", "--scope", scoped, "--yes")
	if n := testdb.Ask[int](t, owner, `select count(*) from agui.agent_error where thread_key = agui.thread_key('acme', 't')`); n != 0 {
		t.Error("an erasure leaves what the agent answered")
	}
	s.Terminate(t)
	s.End(t)
	if strings.Contains(s.Log, "Field required") || !strings.Contains(s.Log, "status 422") {
		t.Errorf("the log:\n%s", s.Log)
	}
}
