package main

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

func TestHeads(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	pool := testdb.Connect(t, commands.databaseURL)
	execute := func(statement string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	execute(`select agui.enable_chain()`)
	importTree(t, commands)
	commands.must("import", writeFile(t, "mine.ndjson", answer("mine", "r", 1)...), "--scope", "me")

	heads := commands.must("heads")
	if lines := strings.Split(strings.TrimSpace(heads), "\n"); len(lines) != 2 || !strings.Contains(heads, `"threadId":"mine"`) {
		t.Errorf("heads: %s", heads)
	}
	if mine := commands.must("heads", "--scope", "me"); strings.Count(mine, "\n") != 1 || !strings.Contains(heads, mine) {
		t.Errorf("heads of a scope: %s", mine)
	}
	kept := writeFile(t, "heads.ndjson", strings.TrimSpace(heads))
	if out := commands.must("verify", "--chain", "--heads", kept); !strings.HasPrefix(out, "2 threads, ") || !strings.Contains(out, ": no problem") {
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
		{[]string{"verify", "--chain"}, "scope me, thread mine, run r: chain: from seq 1 to ", exitProblems},
		{[]string{"verify", "--chain", "--scope", ""}, "1 thread, ", exitOK},
		{[]string{"verify", "--heads", kept}, "", exitUsage},
		{[]string{"verify", "--chain", "--heads", writeFile(t, "no.ndjson", `{"threadId":"t","seq":1,"hash":"ab"}`)}, "", exitInput},
		{[]string{"verify", "--chain", "--heads", writeFile(t, "gone.ndjson", strings.ReplaceAll(strings.TrimSpace(heads), `"mine"`, `"gone"`))},
			"scope me, thread gone: chain: the thread is gone", exitProblems},
	} {
		if result := commands.run(check.arguments...); result.code != check.code || !strings.Contains(result.out, check.out) {
			t.Errorf("%v: exit code %d, %s%s", check.arguments, result.code, result.out, result.messages)
		}
	}
}
