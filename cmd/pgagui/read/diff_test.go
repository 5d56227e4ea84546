package read

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestDiffOfTwoPoints(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	out := commands.Must("diff", "t", "--from", "r3")
	for _, line := range []string{"--- r3, seq 11\n+++ r4, seq 13\n", "\n- ", "\n- state/a "} {
		if !strings.Contains(out, line) {
			t.Errorf("diff: %s, want %q", out, line)
		}
	}
	if out := commands.Must("diff", "t", "--from", "r4", "--to-at", "13"); !strings.HasSuffix(out, "\nno difference\n") {
		t.Errorf("diff of the same: %s", out)
	}
	diff := clitest.Parse[pgagui.Diff](commands, "diff", "t", "--from", "r3", "--from-at", "4", "--to", "r3")
	if diff.From.Seq != 4 || diff.To.Seq != 11 || len(diff.Messages) == 0 || string(diff.StateMergePatch) != `{"a":2}` {
		t.Errorf("diff: %+v", diff)
	}
	for arguments, code := range map[string]int{"diff t": cli.ExitUsage, "diff t --from-at x": cli.ExitUsage, "diff t --from no": cli.ExitRefused, "diff no --from r1": cli.ExitRefused} {
		if result := commands.Run(strings.Fields(arguments)...); result.Code != code {
			t.Errorf("%s: exit code %d, %s", arguments, result.Code, result.Messages)
		}
	}
}

func TestDiffShowsOldAndNewValues(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	long := strings.Repeat("the same words, ", 20)
	commands.Must("import", clitest.WriteFile(t, "edits.ndjson",
		clitest.Started("t", "r1"), `{"type":"STATE_SNAPSHOT","snapshot":{"city":"Lisbon","days":3,"notes":{"a":1},"/":"x"}}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m1","role":"user","content":"Three days"},{"id":"m2","role":"assistant","content":"`+long+`by train"},`+
			`{"id":"m3","role":"assistant","content":"gone"},{"id":"m4","role":"user","content":"as it was","name":"a"}]}`, clitest.Finished,
		clitest.Started("t", "r2"), `{"type":"STATE_SNAPSHOT","snapshot":{"city":"Porto","days":3,"guests":[1,2],"/":"y"}}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m1","role":"user","content":"Four\ndays"},{"id":"m2","role":"assistant","content":"`+long+`by bus"},`+
			`{"id":"m4","role":"user","content":"as it was","name":"b"},{"id":"m5","role":"assistant","content":"new"}]}`, clitest.Finished,
	))
	out := commands.Must("diff", "t", "--from", "r1")
	for _, lines := range []string{
		"--- r1, seq 4\n+++ r2, seq 8\n",
		"\n~ user m1\n    - Three days\n    + Four days\n",
		"\n~ assistant m2\n    - …the same words, by train\n    + …the same words, by bus\n",
		"\n- assistant m3: gone\n",
		"\n~ user m4\n    - {\"id\":\"m4\"",
		"\n+ assistant m5: new\n",
		"\n~ state/city \"Lisbon\" → \"Porto\"\n",
		"\n- state/notes {\"a\":1}\n",
		"\n+ state/guests [1,2]\n",
		"\n~ state/~1 \"x\" → \"y\"\n",
	} {
		if !strings.Contains(out, lines) {
			t.Errorf("diff has no %q:\n%s", lines, out)
		}
	}
	if strings.Contains(out, "days 3") || strings.Contains(out, "state/days") {
		t.Errorf("diff shows what did not change:\n%s", out)
	}
	diff := clitest.Parse[pgagui.Diff](commands, "diff", "t", "--from", "r1")
	var before []string
	for _, value := range diff.StateBefore {
		before = append(before, string(value))
	}
	slices.Sort(before)
	if want := []string{`"Lisbon"`, `"x"`, `null`, `{"a":1}`}; !slices.Equal(before, want) {
		t.Errorf("the values before are %q, want %q", before, want)
	}
}
