package read

import (
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestRestoreAtAnyPoint(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	tests := []struct {
		arguments []string
		runID     string
		seq       int64
		messages  int
		state     string
	}{
		{nil, "r4", 13, 1, `{}`},
		{[]string{"--run", "r3"}, "r3", 11, 2, `{"a":2}`},
		{[]string{"--run", "r3", "--at", "4"}, "r3", 4, 1, `{"a":1}`},
		{[]string{"--at", "0s"}, "r4", 13, 1, `{}`},
		{[]string{"--run", "r3", "--at", time.Now().Add(time.Hour).Format("2006-01-02T15:04")}, "r3", 11, 2, `{"a":2}`},
		{[]string{"--at", "1h"}, "r4", 0, 0, `{}`},
		{[]string{"--at", "2020-01-01T00:00:00+02:00"}, "r4", 0, 0, `{}`},
	}
	for range 2 {
		for _, test := range tests {
			restored := clitest.Parse[pgagui.Restored](commands, append([]string{"show", "t", "--document"}, test.arguments...)...)
			if restored.RunID != test.runID || restored.Seq != test.seq || len(restored.Messages) != test.messages || string(restored.State) != test.state {
				t.Errorf("show --document %s: %+v, state %s", test.arguments, restored, restored.State)
			}
		}
		commands.Must("job", "compact") // the second round restores from snapshots
	}
	for _, at := range []string{"0", "-1", "", "yesterday", "2026-13-01T00:00", "-2h"} {
		for _, command := range []string{"--document", "--full"} {
			if message := commands.MustFail(cli.ExitUsage, "show", "t", command, "--at="+at); !strings.Contains(message, "--at "+at) {
				t.Errorf("message: %s", message)
			}
		}
	}
}
