package read

import (
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestBranchesListsTheLeaves(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	want := "   BRANCH  STATUS    RUNS  LEAVES AT  LAST SEQ\n" +
		"   r3      finished  3     r1         11\n" +
		"*  r4      failed    2     r1         13\n"
	if table := commands.Must("log", "--branches", "t"); table != want {
		t.Errorf("table:\n%s\nwant\n%s", table, want)
	}
	branches := clitest.Parse[[]pgagui.Branch](commands, "log", "--branches", "t")
	if len(branches) != 2 || branches[0].RunID != "r3" || branches[0].Runs != 3 || !branches[1].IsHead {
		t.Errorf("JSON: %+v", branches)
	}
}
