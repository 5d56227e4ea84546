package main

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
)

func TestDiffOfTwoPoints(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	out := commands.must("diff", "t", "--from", "r3")
	for _, line := range []string{"--- r3, seq 11\n+++ r4, seq 13\n", "\n- ", "\n- state/a\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("diff: %s, want %q", out, line)
		}
	}
	if out := commands.must("diff", "t", "--from", "r4", "--to-at", "13"); !strings.HasSuffix(out, "\nno difference\n") {
		t.Errorf("diff of the same: %s", out)
	}
	diff := parse[pgagui.Diff](commands, "diff", "t", "--from", "r3", "--from-at", "4", "--to", "r3")
	if diff.From.Seq != 4 || diff.To.Seq != 11 || len(diff.Messages) == 0 || string(diff.StateMergePatch) != `{"a":2}` {
		t.Errorf("diff: %+v", diff)
	}
	for arguments, code := range map[string]int{"diff t": exitUsage, "diff t --from-at x": exitUsage, "diff t --from no": exitRefused, "diff no --from r1": exitRefused} {
		if result := commands.run(strings.Fields(arguments)...); result.code != code {
			t.Errorf("%s: exit code %d, %s", arguments, result.code, result.messages)
		}
	}
}
