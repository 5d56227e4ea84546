package read

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
)

func TestStatusSaysHowARunIs(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	clitest.LeaveRun(t, commands, "t", "open")

	text := commands.Must("show", "--status", "t")
	for name, want := range map[string]string{"run": "open", "status": "in progress", "seq": "14–15", "ended": "", "stop requested": "", "cut off": ""} {
		if got := clitest.Field(t, text, name); got != want {
			t.Errorf("%s is %q, want %q, in\n%s", name, got, want, text)
		}
	}
	if alive := clitest.Field(t, text, "last sign of life"); !strings.HasSuffix(alive, " ago)") {
		t.Errorf("last sign of life: %q", alive)
	}
	if got := clitest.Parse[pgagui.RunStatus](commands, "show", "--status", "t"); got.RunID != "open" || got.Status != pgagui.Running || got.LastSeq != 15 || got.Stale {
		t.Errorf("JSON: %+v", got)
	}
	text = commands.Must("show", "--status", "t", "--run", "r2")
	if clitest.Field(t, text, "status") != "finished" || clitest.Field(t, text, "seq") != "3–6" || clitest.Field(t, text, "ended") == "" || clitest.Field(t, text, "last sign of life") != "" {
		t.Errorf("a run that has ended:\n%s", text)
	}

	clitest.SetLease(t, commands, "0")
	if got := clitest.Field(t, commands.Must("show", "--status", "t"), "status"); !strings.HasPrefix(got, "in progress, but stale") {
		t.Errorf("beyond the lease: %q", got)
	}
	commands.Must("job", "reap")
	text = commands.Must("show", "--status", "t")
	if clitest.Field(t, text, "status") != "cut off" || clitest.Field(t, text, "cut off") != "no sign of life for 00:00:00" || clitest.Field(t, text, "seq") != "14–17" {
		t.Errorf("after reap:\n%s", text)
	}
}
