package upkeep

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	commands.Must("import", clitest.WriteFile(t, "other.ndjson", clitest.Answer("other", "r", 1)...))
	commands.Must("import", clitest.WriteFile(t, "mine.ndjson", clitest.Answer("t", "r", 1)...), "--scope", "mine")
	commands.Must("job", "compact")
	if out := commands.Must("verify"); !strings.HasPrefix(out, "3 threads, ") || !strings.Contains(out, ": no problem, in ") {
		t.Errorf("verify: %s", out)
	}
	for threads, arguments := range map[int][]string{
		0: {"--since", "2999-01-01T00:00:00Z"}, 1: {"--sample", "1"}, 2: {"--since", "1h", "--sample", "100%", "--scope", ""}, 3: {"--workers", "3"},
	} {
		if got := clitest.Parse[verified](commands, append([]string{"verify"}, arguments...)...); got.Threads != threads || len(got.Reports) != threads {
			t.Errorf("verify %v: %+v, want %d threads", arguments, got, threads)
		}
	}

	pool := testdb.Connect(t, commands.DatabaseURL)
	testdb.Exec(t, pool, `
		update agui.snapshot set state = '{"a":3}' where thread_key = agui.thread_key('', 't') and run_no = 4;
		update agui.snapshot set state = '{"a":3}' where thread_key = agui.thread_key('mine', 't');
		update agui.run set status = 'failed' where thread_key = agui.thread_key('', 'other')`)
	const wrongStatus = "thread other, run r: the run is marked as failed, by its log it is finished\n"
	for _, check := range []struct {
		arguments, out, messages string
		code                     int
	}{
		{"verify t", "thread t, run r4: the snapshot is not what the log says: the state differs\n", ": 1 problem, in ", cli.ExitProblems},
		{"verify t --in-sql", "thread t, run r4: the snapshot is not what the log says: the state differs\n", ": 1 problem, in ", cli.ExitProblems},
		{"verify --sample 100% t", "", "do not name threads as well", cli.ExitUsage},
		{"verify --repair t", "thread t, run r4: repaired: the snapshot is not what the log says: the state differs\n", "", cli.ExitOK},
		{"verify t", "", "", cli.ExitOK},
		{"verify other --repair", wrongStatus, ": 1 problem, in ", cli.ExitProblems},
		{"verify other t", wrongStatus, "2 threads, ", cli.ExitProblems},
	} {
		result := commands.Run(strings.Fields(check.arguments)...)
		if result.Code != check.code || !strings.HasPrefix(result.Out, check.out) || !strings.Contains(result.Messages, check.messages) {
			t.Errorf("%s: exit code %d, %s%s", check.arguments, result.Code, result.Out, result.Messages)
		}
	}
	result := commands.Run("verify", "--workers", "1")
	for _, line := range []string{wrongStatus, "scope mine, thread t, run r: the snapshot is not what the log says: the state differs\n"} {
		if !strings.Contains(result.Out, line) {
			t.Errorf("verify: %s, want %s", result.Out, line)
		}
	}
	result = commands.Run("verify", "other", "--json")
	if result.Code != cli.ExitProblems || result.Messages != "" {
		t.Errorf("JSON: exit code %d, %s", result.Code, result.Messages)
	}
	var got verified
	must.Do(t, json.Unmarshal([]byte(result.Out), &got))
	want := jobs.ThreadProblem{Problem: pgagui.Problem{
		RunID: "r", Problem: "the run is marked as failed, by its log it is finished", Severity: pgagui.Damage,
	}}
	if len(got.Reports) != 1 || got.Reports[0].ThreadID != "other" || got.Reports[0].Runs != 1 || got.Reports[0].Events != 5 || got.Reports[0].Snapshots != 1 ||
		len(got.Reports[0].Problems) != 1 || got.Reports[0].Problems[0] != want {
		t.Errorf("JSON: %s", result.Out)
	}
	for _, arguments := range []string{"--sample 0", "--sample 101%", "--sample x", "--since yesterday", "--workers 0"} {
		commands.MustFail(cli.ExitUsage, append([]string{"verify"}, strings.Fields(arguments)...)...)
	}
}
