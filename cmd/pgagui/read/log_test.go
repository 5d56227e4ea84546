package read

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
)

func TestLogShowsTheRuns(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	table := strings.Split(commands.Must("log", "t"), "\n")
	for row, want := range []string{
		"RUN FOLLOWS STATUS SEQ STARTED INPUT WHY",
		"r1 - finished 1–2 Where to?",
		"r2 r1 finished 3–6",
		"r3 r2 finished 7–11",
		"* r4 r1 failed 12–13 no answer",
	} {
		if got := clitest.WithoutTimes(table[row]); got != want {
			t.Errorf("row %d is %q, want %q", row, got, want)
		}
	}
	graph := commands.Must("log", "t", "--graph")
	const want = "* r4 (head, failed: no answer)\n" +
		"| * r3\n" +
		"| * r2\n" +
		"|/\n" +
		"* r1 Where to?\n"
	if graph != want {
		t.Errorf("graph:\n%s\nwant\n%s", graph, want)
	}
	runs := clitest.Parse[[]runlog.Run](commands, "log", "t")
	if len(runs) != 4 || runs[0].Input != "Where\nto?" || runs[3].ParentRunID != "r1" || !runs[3].IsHead || runs[2].IsHead || runs[2].LastSeq != 11 {
		t.Errorf("JSON: %+v", runs)
	}
}
