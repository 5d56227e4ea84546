package upkeep

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestWorkerSendsTraces(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 2)
	var runs atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/traces" && strings.Contains(string(body), "service.version") {
			runs.Add(int64(strings.Count(string(body), "pgagui.run_id")))
		}
	}))
	defer collector.Close()
	work := func(flags ...string) *clitest.Running {
		command := commands.Program(os.Args[0], append([]string{"worker", "--traces", "@every 1s", "--json"}, flags...)...)
		command.Env = append(command.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
		return clitest.StartProcess(t, command)
	}
	end := func(worker *clitest.Running) {
		worker.Terminate(t)
		if code := worker.End(t); code != cli.ExitOK {
			t.Errorf("exit code %d:\n%s", code, worker.Log)
		}
	}

	first := work()
	first.WaitForLine(t, `"msg":"job done","job":"traces"`, `"runs":2`)
	end(first)
	place := clitest.Parse[pgagui.ConsumerPlace](commands, "feed", "consumers")
	if runs.Load() != 2 || place.Consumer != "traces" || !place.AllScopes {
		t.Errorf("%d runs were sent, consumer %+v", runs.Load(), place)
	}

	// Another process goes on there.
	commands.Must("import", clitest.WriteFile(t, "more.ndjson", clitest.Answer("more", "r", 3)...))
	second := work("--traces-max-age", "1h", "--traces-contents")
	second.WaitForLine(t, `"msg":"job done","job":"traces"`, `"runs":1`)
	end(second)
	if runs.Load() != 3 {
		t.Errorf("%d runs were sent, want 3", runs.Load())
	}

	command := commands.Program(os.Args[0], "worker", "--traces", "@every 1s")
	command.Env = append(command.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=")
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "$OTEL_EXPORTER_OTLP_ENDPOINT") || command.ProcessState.ExitCode() != cli.ExitUsage {
		t.Errorf("without an address: %v, %s", err, out)
	}
}
