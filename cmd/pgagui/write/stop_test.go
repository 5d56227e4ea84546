package write

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestStopRequestsThatRunsStop(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	for _, arguments := range [][]string{{"stop", "t"}, {"stop", "t", "--run", "r2"}} {
		if text := commands.Must(arguments...); text != "nothing to stop: no run is in progress\n" {
			t.Errorf("pgagui %s: %q", arguments, text)
		}
	}
	store := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil)
	for _, run := range []string{"a", "b", "c"} {
		event := json.RawMessage(clitest.StartedFrom("t", run, "r3"))
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: run}, []json.RawMessage{event}, pgagui.AppendOptions{Parallel: true}))(t)
	}
	if text := commands.Must("stop", "t", "--run", "b", "--reason", "out of\nbudget"); text != "requested a stop of 1 run\n" {
		t.Errorf("one run: %q", text)
	}
	if got := clitest.Parse[stopResult](commands, "stop", "t", "--reason", "maintenance"); got.Runs != 3 {
		t.Errorf("all runs: %+v", got)
	}
	for run, reason := range map[string]string{"a": "maintenance", "b": "out of budget", "c": "maintenance"} {
		text := commands.Must("show", "--status", "t", "--run", run)
		if request := clitest.Field(t, text, "stop requested"); !strings.HasSuffix(request, " ago): "+reason) || clitest.Field(t, text, "status") != "in progress" {
			t.Errorf("run %s:\n%s", run, text)
		}
	}
}
