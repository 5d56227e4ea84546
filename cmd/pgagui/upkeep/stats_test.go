package upkeep

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/jobs"
)

func TestStatsShowsWhatWaits(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	before := clitest.Parse[jobs.Stats](commands, "stats")
	if before.Threads != 1 || before.Runs != 4 || before.FinishedRuns != 3 || before.FailedRuns != 1 || before.Events != 13 ||
		before.RunsToCompact != 4 || before.CompactionLag <= 0 || before.RunsToRepack != 0 {
		t.Errorf("before compaction: %+v", before)
	}
	commands.Must("job", "compact")
	after := clitest.Parse[jobs.Stats](commands, "stats")
	if after.RunsToCompact != 0 || after.CompactionLag != 0 || after.CompactedLogBytes == 0 || after.Events != 13 {
		t.Errorf("after compaction: %+v", after)
	}
	if exact := clitest.Parse[jobs.Stats](commands, "stats", "--exact"); !exact.IsExact || !exact.BacklogIsExact || exact.Runs != 4 {
		t.Errorf("exact: %+v", exact)
	}
	if text := commands.Must("stats"); !strings.Contains(text, "4: 3 finished, 0 interrupted, 0 cancelled, 1 failed, 0 cut off, 0 in progress") {
		t.Errorf("stats:\n%s", text)
	}
}
