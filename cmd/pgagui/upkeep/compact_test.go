package upkeep

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/jobs"
)

func TestCompactFoldsEndedRuns(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	first := commands.Run("compact", "--limit", "1")
	if first.Code != cli.ExitWorkLeft || first.Messages != "" || !strings.HasSuffix(first.Out, "; 3 runs left (stopped: limit)\n") {
		t.Errorf("--limit 1: exit code %d, %s%s", first.Code, first.Out, first.Messages)
	}
	if rest := clitest.Parse[jobs.Compacted](commands, "compact", "--workers", "2"); rest.Runs != 3 || rest.Threads != 1 {
		t.Errorf("the rest: %+v", rest)
	}
	if out := commands.Must("compact"); !strings.HasPrefix(out, "0 runs of 0 threads, ") {
		t.Errorf("nothing to do: %s", out)
	}
	commands.MustFail(cli.ExitUsage, "compact", "--workers", "0")
}
