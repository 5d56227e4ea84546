package upkeep

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestHeads(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	execute := func(statement string) {
		t.Helper()
		testdb.Exec(t, pool, statement)
	}
	execute(`select agui.enable_chain()`)
	clitest.ImportTree(t, commands)
	commands.Must("import", clitest.WriteFile(t, "mine.ndjson", clitest.Answer("mine", "r", 1)...), "--scope", "me")

	heads := commands.Must("verify", "--print-heads")
	if lines := strings.Split(strings.TrimSpace(heads), "\n"); len(lines) != 2 || !strings.Contains(heads, `"threadId":"mine"`) {
		t.Errorf("heads: %s", heads)
	}
	if mine := commands.Must("verify", "--print-heads", "--scope", "me"); strings.Count(mine, "\n") != 1 || !strings.Contains(heads, mine) {
		t.Errorf("heads of a scope: %s", mine)
	}
	kept := clitest.WriteFile(t, "heads.ndjson", strings.TrimSpace(heads))
	if out := commands.Must("verify", "--chain", "--heads", kept); !strings.HasPrefix(out, "2 threads, ") || !strings.Contains(out, ": no problem") {
		t.Errorf("verify: %s", out)
	}

	execute(`
		begin;
		select agui_internal.allow_log_change(true);
		update agui.batch set recorded_at = recorded_at - interval '1 microsecond' where thread_key = agui.thread_key('me', 'mine') and first_seq = 1;
		commit`)
	for _, check := range []struct {
		arguments []string
		out       string
		code      int
	}{
		{[]string{"verify", "--chain"}, "scope me, thread mine, run r: chain: from seq 1 to ", cli.ExitProblems},
		{[]string{"verify", "--chain", "--scope", ""}, "1 thread, ", cli.ExitOK},
		{[]string{"verify", "--heads", kept}, "", cli.ExitUsage},
		{[]string{"verify", "--chain", "--heads", clitest.WriteFile(t, "no.ndjson", `{"threadId":"t","seq":1,"hash":"ab"}`)}, "", cli.ExitInput},
		{[]string{"verify", "--chain", "--heads", clitest.WriteFile(t, "gone.ndjson", strings.ReplaceAll(strings.TrimSpace(heads), `"mine"`, `"gone"`))},
			"scope me, thread gone: chain: the thread is gone", cli.ExitProblems},
	} {
		if result := commands.Run(check.arguments...); result.Code != check.code || !strings.Contains(result.Out, check.out) {
			t.Errorf("%v: exit code %d, %s%s", check.arguments, result.Code, result.Out, result.Messages)
		}
	}
}
