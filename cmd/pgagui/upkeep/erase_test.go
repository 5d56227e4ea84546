package upkeep

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestEraseNeedsConfirmation(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	for _, arguments := range [][]string{
		{"erase"}, {"erase", "t", "--older-than", "1d", "--yes"}, {"erase", "--older-than", "soon", "--yes"}, {"erase", "t", "--limit", "1", "--yes"},
	} {
		commands.MustFail(cli.ExitUsage, arguments...)
	}
	if result := commands.Run("erase", "t"); result.Code != cli.ExitUsage || !strings.Contains(result.Messages, "use --yes") {
		t.Errorf("without --yes: %+v", result)
	}
	if text := commands.Must("erase", "t", "--dry-run"); !strings.Contains(text, "would erase thread t, 13 events") {
		t.Errorf("dry run: %q", text)
	}
	if text := commands.Must("erase", "--older-than", "7d", "--yes", "--all-scopes"); !strings.Contains(text, "erased 0 threads") {
		t.Errorf("nothing is that old: %q", text)
	}
	if result := commands.Run("erase", "t", "unknown", "--yes", "--reason", "retention"); result.Code != cli.ExitRefused ||
		result.Out != "erased thread t, 13 events\n" || !strings.Contains(result.Messages, `thread "unknown" is unknown. A thread exists once a run of it has begun. Is it in another scope (--scope NAME)?`) {
		t.Errorf("one of two: %+v", result)
	}
	file := clitest.WriteFile(t, "new.ndjson", clitest.Started("t", "r9"), clitest.Finished)
	if text := commands.MustFail(cli.ExitInput, "import", file); !strings.Contains(text, "was erased") {
		t.Errorf("import of an erased thread: %q", text)
	}
	if text := commands.Must("retention", "allow", "t"); text != "thread t accepts appends again\n" {
		t.Errorf("allow: %q", text)
	}
	commands.Must("import", file)
}
