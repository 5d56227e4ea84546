package write

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/ingest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
	"github.com/pgagui/pgagui/internal/testdb"
)

// at adds a timestamp, in milliseconds, to an event.
func at(event string, when time.Time) string {
	return strings.TrimSuffix(event, "}") + fmt.Sprintf(`,"timestamp":%d}`, when.UnixMilli())
}

// datedRun returns a run of five events, one per second.
func datedRun(threadID, runID string, begin time.Time) []string {
	lines := clitest.Answer(threadID, runID, 1)
	for n, line := range lines {
		lines[n] = at(line, begin.Add(time.Duration(n)*time.Second))
	}
	return lines
}

func TestImportKeepsTheTimesOfTheEvents(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	begin := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	whole := clitest.WriteFile(t, "chat.ndjson", append(datedRun("t", "r1", begin), datedRun("t", "r2", begin.Add(time.Hour))...)...)
	cutOff := clitest.WriteFile(t, "cut.ndjson", datedRun("cut", "r1", begin)[:3]...)
	commands.Must("import", whole, cutOff)

	runs := clitest.Parse[[]runlog.Run](commands, "log", "t")
	if len(runs) != 2 || !runs[0].StartedAt.Equal(begin) || !runs[0].EndedAt.Equal(begin.Add(4*time.Second)) || !runs[1].StartedAt.Equal(begin.Add(time.Hour)) {
		t.Errorf("runs: %+v", runs)
	}
	// A run that the import closes ends at the time of its last event.
	if run := clitest.Parse[[]runlog.Run](commands, "log", "cut")[0]; !run.StartedAt.Equal(begin) || !run.EndedAt.Equal(begin.Add(2*time.Second)) || run.Status != pgagui.CutOff {
		t.Errorf("run: %+v", run)
	}
	if rows := strings.Count(commands.Must("events", "--page", "t", "--raw", "--since", "2025-03-01T12:30:00Z", "--json"), "\n"); rows != 5 {
		t.Errorf("history since then has %d rows, want 5", rows)
	}
	if out := commands.Must("erase", "--older-than", "30d", "--dry-run"); !strings.Contains(out, "would erase 2 threads") {
		t.Errorf("erase: %s", out)
	}

	// A second import adds nothing, with or without --now.
	for _, arguments := range [][]string{{whole, cutOff}, {whole, cutOff, "--now"}} {
		if got := clitest.Parse[ingest.Imported](commands, append([]string{"import"}, arguments...)...); got.New != 0 || got.AlreadyThere != 13 || got.Closed != 0 {
			t.Errorf("the second import: %+v", got)
		}
	}
	result := commands.Run("import", "--now", whole, cutOff, "--scope", "now")
	if result.Code != cli.ExitOK || strings.Contains(result.Messages, "recorded") {
		t.Errorf("--now: %+v", result)
	}
	for _, thread := range []string{"t", "cut"} {
		for _, run := range clitest.Parse[[]runlog.Run](commands, "log", thread, "--scope", "now") {
			if time.Since(run.StartedAt) > time.Hour || time.Since(run.EndedAt) > time.Hour {
				t.Errorf("--now: %+v", run)
			}
		}
	}
	commands.Must("verify")
}

// LlamaIndex writes seconds. Others write the clock of a process, which is no time.
func TestImportReadsTimesInSeconds(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	begin := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	dated := func(thread string, first float64) string {
		lines := clitest.Answer(thread, "r1", 1)
		for n, line := range lines {
			lines[n] = strings.TrimSuffix(line, "}") + fmt.Sprintf(`,"timestamp":%.3f}`, first+float64(n))
		}
		return clitest.WriteFile(t, thread+".ndjson", lines...)
	}
	result := commands.Run("import", dated("seconds", float64(begin.Unix())), dated("clock", 52.5), dated("old", 978307200000))
	if result.Code != cli.ExitOK || !strings.Contains(result.Messages, "5 events with a timestamp in seconds, not in milliseconds: recorded at it\n") ||
		!strings.Contains(result.Messages, "10 events with a timestamp before 2015 or out of range (first: ") || !strings.Contains(result.Messages, "clock.ndjson:1)") {
		t.Errorf("%+v", result)
	}
	if run := clitest.Parse[[]runlog.Run](commands, "log", "seconds")[0]; !run.StartedAt.Equal(begin) || !run.EndedAt.Equal(begin.Add(4*time.Second)) {
		t.Errorf("seconds: %v to %v", run.StartedAt, run.EndedAt)
	}
	for _, thread := range []string{"clock", "old"} {
		if run := clitest.Parse[[]runlog.Run](commands, "log", thread)[0]; time.Since(run.StartedAt) > time.Hour {
			t.Errorf("%s: %v, want the time of the import", thread, run.StartedAt)
		}
	}
	commands.Must("verify")
}

// A role that may only append imports as of now and gets a warning.
func TestImportWithoutTheRightToSetTimes(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	role := testdb.Role(t, pool, "importer", "agui_writer")
	writer := clitest.On(t, commands.DatabaseURL+"?role="+role)
	if strings.Contains(commands.DatabaseURL, "?") {
		writer.DatabaseURL = commands.DatabaseURL + "&role=" + role
	}
	begin := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	file := clitest.WriteFile(t, "chat.ndjson", datedRun("t", "r1", begin)...)
	want := "events are recorded as of now, not at their timestamps: this needs the role agui_maintainer, which " + role + " does not have\n"
	if result := writer.Run("import", file); result.Code != cli.ExitOK || result.Messages != want {
		t.Errorf("%+v, want %q", result, want)
	}
	if run := clitest.Parse[[]runlog.Run](commands, "log", "t")[0]; time.Since(run.StartedAt) > time.Hour {
		t.Errorf("run: %+v", run)
	}
	for _, arguments := range [][]string{{"import", file}, {"import", file, "--now", "--scope", "now"}} {
		if result := writer.Run(arguments...); result.Code != cli.ExitOK || result.Messages != "" {
			t.Errorf("%s: %+v", arguments, result)
		}
	}
}

func TestImportOfAnOldSessionKeepsItsTimes(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "session.json", `[
		{"event_type":"user","payload":"hello","created_at":"2025-05-05T10:00:00Z"},
		{"event_type":"assistant","payload":"hi","created_at":"2025-05-05T10:00:07Z"}]`)
	commands.Must("import", "--session-messages", "--thread", "old", file)
	run := clitest.Parse[[]runlog.Run](commands, "log", "old")[0]
	if begin := time.Date(2025, 5, 5, 10, 0, 0, 0, time.UTC); !run.StartedAt.Equal(begin) || !run.EndedAt.Equal(begin.Add(7*time.Second)) {
		t.Errorf("run: %+v", run)
	}
	commands.Must("import", "--session-messages", "--thread", "new", "--now", file)
	if run := clitest.Parse[[]runlog.Run](commands, "log", "new")[0]; time.Since(run.StartedAt) > time.Hour {
		t.Errorf("--now: %+v", run)
	}
}
