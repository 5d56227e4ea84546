package read

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/testdb"
)

const (
	failedWithCode = `{"type":"RUN_ERROR","message":"no answer\nat all","code":"E1"}`
	interrupted    = `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}`
	cancelled      = `{"type":"RUN_FINISHED","outcome":{"type":"cancelled"},"result":{"stopped":true,"reason":"too slow"}}`
)

// importOutcomes creates a thread for each way in which a run can end: failed, interrupted,
// cancelled, stopped and cut; in the thread recovered a run has failed, and the next one finished.
func importOutcomes(t *testing.T, commands clitest.CommandLine) {
	t.Helper()
	var lines []string
	for _, thread := range []struct{ id, end string }{{"failed", failedWithCode}, {"interrupted", interrupted}, {"cancelled", cancelled}} {
		lines = append(lines, clitest.Started(thread.id, "r"), thread.end)
	}
	lines = append(lines, clitest.Started("recovered", "r"), failedWithCode, clitest.Started("recovered", "r2"), clitest.Finished)
	commands.Must("import", clitest.WriteFile(t, "outcomes.ndjson", lines...))
	clitest.LeaveRun(t, commands, "stopped", "r")
	clitest.LeaveRun(t, commands, "cut", "r")
	commands.Must("stop", "stopped", "--reason", "by hand")
	pool := testdb.Connect(t, commands.DatabaseURL)
	testdb.Exec(t, pool, `select agui.append('stopped', 'r', json_build_array($1::json)), agui.abandon('cut', 'r', reason => 'power cut')`, cancelled)
}

// whyOf is why the runs of importOutcomes ended.
var whyOf = map[string]struct {
	status pgagui.Status
	text   string
}{
	"failed":      {pgagui.Failed, "E1: no answer at all"},
	"interrupted": {pgagui.Interrupted, ""},
	"cancelled":   {pgagui.Cancelled, "too slow"},
	"stopped":     {pgagui.Cancelled, "by hand"},
	"cut":         {pgagui.CutOff, "power cut"},
	"recovered":   {pgagui.Finished, ""},
}

func TestCommandsSayWhyARunEnded(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	importOutcomes(t, commands)
	list := commands.Must("threads")
	for thread, want := range whyOf {
		status := cli.StatusText(want.status)
		for label, text := range map[string]string{
			"error": commands.Must("show", "--status", thread), "cut off": commands.Must("show", "--status", thread), "stopped": commands.Must("show", "--status", thread),
		} {
			shown := clitest.Field(t, text, label)
			isIt := label == map[string]string{"failed": "error", "cut": "cut off", "cancelled": "stopped"}[thread]
			if isIt != (shown != "") || isIt && shown != want.text || clitest.Field(t, text, "status") != status {
				t.Errorf("status %s: %s is %q in\n%s", thread, label, shown, text)
			}
		}
		title, _, _ := strings.Cut(clitest.FirstTimeAs("TIME", commands.Must("show", thread)), "\n")
		title, _, _ = strings.Cut(title+"; ", "; calls to answer")
		if !strings.Contains(title, "(head): "+status+", seq ") || want.text != "" && !strings.HasSuffix(strings.TrimSuffix(title, "; "), "TIME; "+want.text) ||
			want.text == "" && !strings.HasSuffix(title, "TIME; ") {
			t.Errorf("show %s begins with %q", thread, title)
		}
		log := strings.Split(strings.TrimSuffix(commands.Must("log", thread), "\n"), "\n")
		if row := log[len(log)-1]; !strings.Contains(row, "  "+status+"  ") || !strings.HasSuffix(row, want.text) {
			t.Errorf("log %s ends with %q", thread, row)
		}
		for row := range strings.Lines(list) {
			if strings.HasPrefix(row, thread+"  ") && (!strings.Contains(row, "  "+status+"  ") || !strings.HasSuffix(row, want.text+"\n")) {
				t.Errorf("threads has the row %q", row)
			}
		}
		if count := strings.Count("\n"+list, "\n"+thread+"  "); count != 1 {
			t.Errorf("threads has %d rows of %s:\n%s", count, thread, list)
		}
	}
	if requested := clitest.Field(t, commands.Must("show", "--status", "stopped"), "stop requested"); !strings.HasSuffix(requested, " ago): by hand") {
		t.Errorf("status stopped: stop requested %q", requested)
	}
	for thread, want := range map[string]string{"failed": "✗ failed: E1: no answer", "cut": "✗ cut off: power cut"} {
		if text := commands.Must("show", thread); !strings.Contains(text, "\n\n"+want) {
			t.Errorf("show %s does not end with %q:\n%s", thread, want, text)
		}
	}
	for arguments, want := range map[string][]string{"--status failed": {"failed", "recovered"}, "--status failed --head": {"failed"}} {
		if got := slices.Sorted(slices.Values(threadLines(commands, strings.Fields(arguments)...))); !slices.Equal(got, want) {
			t.Errorf("threads %s: %q, want %q", arguments, got, want)
		}
	}
	// The row is that of the head, which has not failed.
	for row := range strings.Lines(commands.Must("threads", "--status", "failed")) {
		if strings.HasPrefix(row, "recovered ") && (!strings.Contains(row, "  finished  ") || strings.Contains(row, "no answer")) {
			t.Errorf("the row of a thread whose head finished: %q", row)
		}
	}
	// Of an earlier run, and at an earlier point, the head line tells how the run ended later.
	title, _, _ := strings.Cut(clitest.FirstTimeAs("TIME", commands.Must("show", "recovered", "--run", "r", "--at", "1")), "\n")
	if title != "thread recovered, run r: failed, seq 1 of 2, TIME; E1: no answer at all" {
		t.Errorf("show of an earlier point begins with %q", title)
	}
}

// listedRuns runs "pgagui log --all-threads --json".
func listedRuns(c clitest.CommandLine, arguments ...string) []pgagui.ListedRun {
	c.T.Helper()
	return clitest.Lines[pgagui.ListedRun](c.T, c.Must(append([]string{"log", "--all-threads", "--json"}, arguments...)...))
}

func TestRuns(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	commands.Must("import", clitest.WriteFile(t, "other.ndjson", clitest.Started("other", "r"), failedWithCode), "--scope", "elsewhere")
	if empty := commands.Run("log", "--all-threads"); strings.Count(empty.Out, "\n") > 1 || !strings.Contains(empty.Messages, "1 thread of another scope is not listed") {
		t.Errorf("without runs: %s%s", empty.Out, empty.Messages)
	}
	importOutcomes(t, commands)
	// A year ago, by its own times.
	year := time.Now().AddDate(-1, 0, 0).UnixMilli()
	commands.Must("import", clitest.WriteFile(t, "old.ndjson",
		fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"old","runId":"r","timestamp":%d}`, year), fmt.Sprintf(`{"type":"RUN_ERROR","message":"no disk","timestamp":%d}`, year+1000)))
	names := func(runs []pgagui.ListedRun) string {
		var list []string
		for _, run := range runs {
			list = append(list, run.ThreadID+" "+run.RunID)
		}
		slices.Sort(list)
		return strings.Join(list, ", ")
	}
	for arguments, want := range map[string]string{
		"":                                   "cut r, failed r, old r, recovered r",
		"--status failed":                    "failed r, old r, recovered r",
		"--status failed --since 2d":         "failed r, recovered r",
		"--status cut_off":                   "cut r",
		"--status cancelled":                 "cancelled r, stopped r",
		"--status interrupted":               "interrupted r",
		"--status interrupted,cancelled":     "cancelled r, interrupted r, stopped r",
		"--status failed --status cut_off":   "cut r, failed r, old r, recovered r",
		"--since 2999-01-01T00:00:00Z":       "",
		"--scope elsewhere":                  "other r",
		"--scope elsewhere --status cut_off": "",
		"--all":                              "cut r, failed r, old r, recovered r",
	} {
		if got := names(listedRuns(commands, strings.Fields(arguments)...)); got != want {
			t.Errorf("runs %s: %s, want %s", arguments, got, want)
		}
	}

	table := strings.Split(strings.TrimSuffix(commands.Must("log", "--all-threads", "--since", "2d"), "\n"), "\n")
	if len(table) != 4 || clitest.WithoutTimes(table[0]) != "ENDED THREAD RUN AGENT STATUS WHY" {
		t.Fatalf("the table is\n%s", strings.Join(table, "\n"))
	}
	var rows []string
	for _, row := range table[1:] {
		rows = append(rows, clitest.WithoutTimes(row))
	}
	if rows[0] != "cut r - cut off power cut" { // the last one
		t.Errorf("the first row is %q", rows[0])
	}
	slices.Sort(rows)
	if want := []string{"cut r - cut off power cut", "failed r - failed E1: no answer at all", "recovered r - failed E1: no answer at all"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}

	// Page by page.
	var paged []pgagui.ListedRun
	arguments := []string{"log", "--all-threads", "--json", "--limit", "2"}
	for page := range 2 {
		result := commands.Run(arguments...)
		if result.Code != cli.ExitOK || strings.Count(result.Out, "\n") != 2 {
			t.Fatalf("page %d: %s%s", page, result.Out, result.Messages)
		}
		paged = append(paged, clitest.Lines[pgagui.ListedRun](t, result.Out)...)
		cursor := paged[len(paged)-1].Cursor
		if page == 0 && result.Messages != "more runs may follow: continue with --cursor "+cursor+", or use --all\nscope \"\": 1 thread of another scope is not listed\n" {
			t.Errorf("page %d: %q", page, result.Messages)
		}
		arguments = []string{"log", "--all-threads", "--json", "--limit", "2", "--cursor", cursor}
	}
	if all := listedRuns(commands, "--all"); !slices.Equal(paged, all) {
		t.Errorf("the pages are %+v, all runs %+v", paged, all)
	}
	for arguments, code := range map[string]int{
		"log --all-threads failed":            cli.ExitUsage,
		"log --all-threads --status finished": cli.ExitUsage,
		"log --all-threads --status lost":     cli.ExitUsage,
		"log --all-threads --limit 0":         cli.ExitUsage,
		"log --all-threads --limit 1001":      cli.ExitUsage,
		"log --all-threads --limit 5 --all":   cli.ExitUsage,
		"log --all-threads --since yesterday": cli.ExitUsage,
		"log --all-threads --cursor 7":        cli.ExitRefused,
	} {
		commands.MustFail(code, strings.Fields(arguments)...)
	}
}
