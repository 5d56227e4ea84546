package upkeep

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

func TestWebhooksAreAddedTestedAndSent(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	var mu sync.Mutex
	var bodies []string
	status := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
		w.WriteHeader(status)
	}))
	defer server.Close()
	answer := func(with int) {
		mu.Lock()
		defer mu.Unlock()
		status = with
	}
	received := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(bodies, func(body string) bool { return strings.Contains(body, text) })
	}
	expect := func(want string, arguments ...string) {
		t.Helper()
		if got := commands.Must(arguments...); !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("pgagui %s prints\n%s\nwant %s", strings.Join(arguments, " "), got, want)
		}
	}

	expect("there are no webhooks", "webhook", "ls")
	expect("webhook crm is added, all scopes its secret, which is not shown again: whsec_", "webhook", "add", "crm", server.URL, "--all-scopes", "--kinds", "run.finished,run.waiting")
	secret := clitest.Parse[struct{ Secret string }](commands, "webhook", "add", "other", "https://example.com", "--scope", "acme").Secret
	if !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("secret %q", secret)
	}
	list := commands.Must("webhook", "ls")
	if strings.Contains(list, "whsec_") || strings.Contains(commands.Must("webhook", "ls", "--json"), "whsec_") {
		t.Errorf("the list has secrets: %s", list)
	}
	expect("crm "+server.URL+" all scopes run.finished,run.waiting enabled 0 0", "webhook", "list")
	expect(`other https://example.com "acme" all enabled 0 0`, "webhook", "ls")
	for _, wrong := range [][]string{
		{"webhook"}, {"webhook", "add", "x", "https://example.com"}, {"webhook", "add", "x", "--all-scopes"}, {"webhook", "ls", "--scope", "a"},
		{"webhook", "test", "crm", "--webhook-networks", "here"}, {"webhook", "failures", "--limit", "-1"}, {"webhook", "failures", "--retry"}, {"webhook", "rotate"}, {"webhook", "rotate", "crm", "--keep-old", "-1s"}, {"webhook", "take-over", "a", "b"},
		{"worker", "--webhook-networks", "10.0.0.1"},
	} {
		commands.MustFail(cli.ExitUsage, wrong...)
	}
	for because, wrong := range map[string][]string{
		`there is a webhook "crm" already`:                       {"webhook", "add", "crm", "https://example.com", "--all-scopes"},
		`its kinds must be some of`:                              {"webhook", "add", "x", "https://example.com", "--all-scopes", "--kinds", "run.started"},
		`its URL must begin with https://`:                       {"webhook", "add", "x", "example.com", "--all-scopes"},
		`there is no webhook "x"`:                                {"webhook", "rm", "x"},
		`there is no webhook "y"`:                                {"webhook", "set", "y", "--enabled"},
		`there is no webhook "z" (pgagui webhook ls lists them)`: {"webhook", "test", "z"},
		`there is no webhook "w"`:                                {"webhook", "rotate", "w"},
		`http:// is not allowed`:                                 {"webhook", "test", "crm"},
		`the address is not public`:                              {"webhook", "test", "crm", "--webhook-http"},
	} {
		if text := commands.MustFail(cli.ExitRefused, wrong...); !strings.Contains(text, because) {
			t.Errorf("%q: %s", wrong, text)
		}
	}
	if rotated := clitest.Parse[struct{ Secret string }](commands, "webhook", "rotate", "other").Secret; rotated == secret || !strings.HasPrefix(rotated, "whsec_") {
		t.Errorf("the new secret: %q", rotated)
	}
	expect("the new secret of webhook other, which is not shown again: whsec_", "webhook", "rotate", "other", "--keep-old", "0s")
	expect("this database now also sends the requests of 0 webhooks", "webhook", "take-over")
	must.Have(testdb.Connect(t, commands.DatabaseURL).Exec(t.Context(), `update agui.webhook set sends_from = '1/1' where name = 'other'`))(t)
	expect(`"acme" all of another database 0 0`, "webhook", "ls")
	expect("this database now also sends the requests of 1 webhook", "webhook", "take-over", "other")
	expect("webhook other is disabled", "webhook", "set", "other", "--enabled=false")
	expect(`"acme" all disabled 0 0`, "webhook", "ls")
	expect("webhook other is removed", "webhook", "rm", "other")

	here := []string{"--webhook-http", "--webhook-networks", "127.0.0.0/8,10.0.0.0/8"}
	if text := commands.MustFail(cli.ExitRefused, append([]string{"webhook", "test", "crm"}, here...)...); !strings.Contains(text, "did not take the request: 500 Internal Server Error") {
		t.Error(text)
	}
	answer(http.StatusNoContent)
	expect("webhook crm works: 204 No Content", append([]string{"webhook", "test", "crm"}, here...)...)
	if !received(`"type":"webhook.test"`) {
		t.Errorf("received %q", bodies)
	}

	// The worker sends, and somebody looks after what fails.
	answer(http.StatusInternalServerError)
	importRun := func(thread string) {
		t.Helper()
		commands.Must("import", clitest.WriteFile(t, thread+".ndjson", `{"type":"RUN_STARTED","threadId":"`+thread+`","runId":"r"}`, `{"type":"RUN_FINISHED"}`))
	}
	importRun("first")
	expect("no request has failed", "webhook", "failures")
	process := commands.Start(append([]string{"worker", "--webhooks", "@every 1s"}, here...)...)
	wait.For(t, "a failure", func() bool {
		return strings.Contains(commands.Must("webhook", "failures", "crm"), "500 Internal Server Error")
	})
	failure := clitest.Parse[jobs.WebhookFailure](commands, "webhook", "failures", "--limit", "1")
	if failure.ThreadID != "first" || failure.RunID != "r" || failure.Kind != jobs.WebhookRunFinished || !strings.HasPrefix(failure.EventID, "evt_") {
		t.Errorf("failure: %+v", failure)
	}
	expect("0 requests dropped", "webhook", "failures", "--drop", "crm", "evt_other")
	answer(http.StatusOK)
	expect("1 request will be sent at once", "webhook", "failures", "--retry", "crm", failure.EventID)
	wait.For(t, "the retry", func() bool { return strings.Contains(commands.Must("webhook", "failures"), "no request has failed") })
	importRun("second")
	wait.For(t, "the second", func() bool { return received(`"threadId":"second"`) })
	process.Terminate(t)
	if code := process.End(t); code != 0 {
		t.Errorf("the worker ends with %d", code)
	}
}
