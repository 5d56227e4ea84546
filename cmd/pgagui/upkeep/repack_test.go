package upkeep

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestRepackJoinsBatches(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	if text := commands.Must("repack"); !strings.HasPrefix(text, "0 runs: 0 batches joined") {
		t.Errorf("runs that ended just now: %q", text)
	}
	if text := commands.Must("repack", "--older-than", "0s"); !strings.HasPrefix(text, "4 runs: ") {
		t.Errorf("all runs: %q", text)
	}
	commands.Must("verify")
}
