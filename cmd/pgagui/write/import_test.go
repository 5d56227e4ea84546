package write

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/ingest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

// An export equals the imported recording byte for byte, and a second import adds nothing.
func TestExportGivesBackWhatWasImported(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	// The second folder is optional: recordings beside the repository.
	for _, folder := range []string{"../../../testdata/recordings", "../../../../shared/recordings"} {
		entries, err := os.ReadDir(folder)
		if err != nil && folder == "../../../testdata/recordings" {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := entry.Name()
			isEvents := strings.HasSuffix(name, ".ndjson") && !strings.HasSuffix(name, ".requests.ndjson") || strings.HasSuffix(name, ".sse")
			if !isEvents {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				commands := clitest.On(t, commands.DatabaseURL)
				file := filepath.Join(folder, name)
				content := testfile.Read(t, file)
				commands.Must("import", file, "--scope", name)
				for thread, lines := range linesByThread(t, string(content)) {
					if got := commands.Must("events", thread, "--scope", name); got != clitest.JoinLines(lines) {
						t.Errorf("thread %s came back as\n%s\nwant\n%s", thread, got, clitest.JoinLines(lines))
					}
				}
				commands.Must("verify", "--scope", name)
				second := clitest.Parse[ingest.Imported](commands, "import", file, "--scope", name)
				if second.New != 0 || second.Events == 0 || second.AlreadyThere != second.Events {
					t.Errorf("the second import: %+v", second)
				}
			})
		}
	}
}

// linesByThread returns the events of a recording, one a line, with or without the prefix "data: ".
func linesByThread(t *testing.T, content string) map[string][]string {
	t.Helper()
	threads := map[string][]string{}
	thread := ""
	for line := range strings.Lines(content) {
		line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "data: ")
		if line == "" {
			continue
		}
		var event struct{ Type, ThreadID string }
		must.Do(t, json.Unmarshal([]byte(line), &event))
		if event.Type == "RUN_STARTED" {
			thread = event.ThreadID
		}
		threads[thread] = append(threads[thread], line)
	}
	return threads
}

// TanStack AI sends events of a run after its RUN_FINISHED, and answers an interrupt before the
// RUN_STARTED of the run that resumes.
func TestRunsThatBreakTheProtocolKeepTheirEvents(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	const file, thread = "../../../testdata/recordings/release-approval.ndjson", "release-checkout-2.4"
	commands.Must("import", file)
	for run, want := range map[string]string{
		"run-1": "RUN_STARTED … RUN_FINISHED TOOL_CALL_RESULT … RUN_FINISHED",
		"run-2": "RUN_STARTED … RUN_FINISHED",
		"run-3": "TOOL_CALL_RESULT RUN_STARTED … RUN_FINISHED",
		"run-4": "RUN_STARTED … RUN_FINISHED",
		"run-5": "TOOL_CALL_RESULT RUN_STARTED … RUN_FINISHED",
	} {
		var types []string
		for line := range strings.Lines(commands.Must("events", thread, "--run", run, "--lineage=false")) {
			eventType := compaction.EventType([]byte(line))
			switch {
			case strings.HasPrefix(eventType, "RUN_"), eventType == "TOOL_CALL_RESULT":
				types = append(types, eventType)
			case types[len(types)-1] != "…":
				types = append(types, "…")
			}
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%s is %s, want %s", run, got, want)
		}
	}
	for _, run := range clitest.Parse[[]runlog.Run](commands, "log", thread) {
		parent := map[string]string{"run-2": "run-1", "run-3": "run-2", "run-4": "run-1", "run-5": "run-4"}[run.ID]
		status := pgagui.Finished
		if run.ID == "run-2" || run.ID == "run-4" {
			status = pgagui.Interrupted // it asks for an approval
		}
		if run.ParentRunID != parent || run.Status != status {
			t.Errorf("%+v, want it to follow %q and to be %s", run, parent, status)
		}
	}
}

func TestImportCountsWhatIsNew(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	first := clitest.WriteFile(t, "first.ndjson", clitest.Answer("t", "r1", 3)...)
	both := clitest.WriteFile(t, "both.ndjson", append(clitest.Answer("t", "r1", 3), clitest.Answer("t", "r2", 1)...)...)

	got := clitest.Parse[ingest.Imported](commands, "import", first)
	if len(got.Threads) != 1 || *got.Threads[0] != (ingest.ImportedThread{ThreadID: "t", Runs: 1, Events: 7, New: 7}) ||
		got.Runs != 1 || got.Events != 7 || got.New != 7 || got.AlreadyThere != 0 || got.Bytes == 0 || got.WithoutInput != 1 {
		t.Errorf("first import: %+v", got)
	}
	got = clitest.Parse[ingest.Imported](commands, "import", both)
	if got.Runs != 2 || got.Events != 12 || got.New != 5 || got.AlreadyThere != 7 {
		t.Errorf("second import: %+v", got)
	}
	want := "THREAD  RUNS  EVENTS  NEW\nt       3     19      0\n1 thread, 3 runs, 19 events (0 new, 19 already there), "
	if out := commands.Must("import", first, both); !strings.HasPrefix(out, want) || !strings.Contains(out, "; 3 runs without input, ") {
		t.Errorf("third import: %s", out)
	}
}

// An import has several appends per run. It continues an interrupted one, after any number of
// lines.
func TestAnInterruptedImportContinues(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	lines := clitest.Answer("t", "r1", 3*ingest.EventsPerCall)
	lines[5] = fmt.Sprintf(`{"type":"CUSTOM","name":"large","value":"%s"}`, strings.Repeat("x", ingest.BytesPerCall))
	for _, length := range []int{1, ingest.EventsPerCall, ingest.EventsPerCall + 50, len(lines), len(lines)} {
		commands.Must("import", "--leave-open", clitest.WriteFile(t, "chat.ndjson", lines[:length]...))
		if got := commands.Must("events", "t"); got != clitest.JoinLines(lines[:length]) {
			t.Fatalf("after %d lines the log has %d", length, strings.Count(got, "\n"))
		}
	}
}

func TestARunThatIsCutOffIsClosedOnce(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "chat.ndjson", append([]string{clitest.Started("t", "r1"), clitest.TextBegins, clitest.Token(1)}, clitest.Answer("t", "r2", 1)...)...)
	result := commands.Run("import", file)
	if result.Code != cli.ExitOK || strings.Count(result.Messages, "\n") != 1 ||
		!strings.HasPrefix(result.Messages, file+`:1: run "r1" of thread "t" has no end: closed as cut off`) {
		t.Errorf("exit code %d, messages: %s", result.Code, result.Messages)
	}
	log := commands.Must("events", "t", "--run", "r1")
	want := clitest.JoinLines([]string{clitest.Started("t", "r1"), clitest.TextBegins, clitest.Token(1), clitest.TextEnds})
	if !strings.HasPrefix(log, want) || !strings.Contains(strings.TrimPrefix(log, want), `"RUN_ERROR"`) {
		t.Errorf("the log:\n%s", log)
	}
	if runs := clitest.Parse[[]runlog.Run](commands, "log", "t"); len(runs) != 2 || runs[0].Status != pgagui.CutOff || runs[1].ParentRunID != "r1" {
		t.Errorf("runs: %+v", runs)
	}

	second := commands.Run("import", file, "--json")
	if second.Code != cli.ExitOK || second.Messages != "" || !strings.Contains(second.Out, `"new":0`) || !strings.Contains(second.Out, `"closed":0`) {
		t.Errorf("the second import: exit code %d, %s%s", second.Code, second.Out, second.Messages)
	}
	if now := commands.Must("events", "t", "--run", "r1"); now != log {
		t.Errorf("after the second import the log is\n%s", now)
	}
	commands.Must("verify")
}

// A run that has ended in the log, in whichever way, is neither closed nor called open because of a
// file without its end.
func TestAFileWithoutTheEndOfARunThatHasEnded(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	for status, end := range map[pgagui.Status]string{
		pgagui.Finished:    clitest.Finished,
		pgagui.Interrupted: `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[]}}`,
		pgagui.Cancelled:   `{"type":"RUN_FINISHED","outcome":{"type":"cancelled"}}`,
		pgagui.Failed:      clitest.Failed,
	} {
		thread := string(status)
		whole := []string{clitest.Started(thread, "r"), `{"type":"CUSTOM","name":"n","value":1}`, end}
		commands.Must("import", clitest.WriteFile(t, "whole.ndjson", whole...))
		part := commands.Run("import", clitest.WriteFile(t, "part.ndjson", whole[:2]...), "--json")
		if part.Code != cli.ExitOK || part.Messages != "" || !strings.Contains(part.Out, `"new":0`) || !strings.Contains(part.Out, `"closed":0`) {
			t.Errorf("%s: exit code %d, %s%s", status, part.Code, part.Out, part.Messages)
		}
		if runs := clitest.Parse[[]runlog.Run](commands, "log", thread); len(runs) != 1 || runs[0].Status != status {
			t.Errorf("%s: %+v", status, runs)
		}
	}
}

func TestAFileMayGrowBetweenImports(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	lines := clitest.Answer("t", "r1", 4)
	part, whole := clitest.WriteFile(t, "chat.ndjson", lines[:4]...), clitest.WriteFile(t, "chat.ndjson", lines...)

	result := commands.Run("import", part, "--leave-open")
	if result.Code != cli.ExitOK || !strings.Contains(result.Messages, "stays in progress") {
		t.Errorf("exit code %d, messages: %s", result.Code, result.Messages)
	}
	commands.Must("import", whole)
	if got := commands.Must("events", "t"); got != clitest.JoinLines(lines) {
		t.Errorf("the log:\n%s", got)
	}

	// A closed run accepts no more events, and the message has the line of the refused event.
	commands.Must("import", part, "--scope", "closed")
	message := commands.MustFail(cli.ExitInput, "import", whole, "--scope", "closed")
	if !strings.HasPrefix(message, whole+":5: ") || !strings.Contains(message, "--leave-open") {
		t.Errorf("message: %s", message)
	}
	// If the log has more events of a run than the file, the run is not closed.
	commands.Must("import", "--leave-open", "--scope", "behind", clitest.WriteFile(t, "longer.ndjson", lines[:6]...))
	commands.Must("import", "--scope", "behind", part)
	if runs := clitest.Parse[[]runlog.Run](commands, "log", "t", "--scope", "behind"); runs[0].Status != "running" {
		t.Errorf("runs: %+v", runs)
	}
}

func TestThreadsMayChangeWithinAFile(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "chats.ndjson", slices.Concat(clitest.Answer("a", "r", 1), clitest.Answer("b", "r", 2), clitest.Answer("a", "r2", 3))...)
	commands.Must("import", file)
	if got, want := commands.Must("events", "a"), clitest.JoinLines(append(clitest.Answer("a", "r", 1), clitest.Answer("a", "r2", 3)...)); got != want {
		t.Errorf("thread a:\n%s\nwant\n%s", got, want)
	}
	if got, want := commands.Must("events", "b"), clitest.JoinLines(clitest.Answer("b", "r", 2)); got != want {
		t.Errorf("thread b:\n%s\nwant\n%s", got, want)
	}
}

func TestAnEventStreamFromStdin(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	stream := ": ping\n\nevent: message\ndata: " + clitest.Started("t", "r") + "\n\n: ping\n\n" +
		"data: {\"type\":\"CUSTOM\",\ndata: \"name\":\"two lines\"}\n\ndata: " + clitest.Finished + "\n\ndata: [DONE]\n\n"
	if result := commands.RunWithInput(stream, "import", "-"); result.Code != cli.ExitOK || !strings.Contains(result.Out, "3 events") {
		t.Errorf("exit code %d, %s%s", result.Code, result.Out, result.Messages)
	}
	message := commands.MustFail(cli.ExitUsage, "events", "t")
	if !strings.Contains(message, "event 2") || !strings.Contains(message, "--null") {
		t.Errorf("message: %s", message)
	}
	events := commands.Must("events", "t", "--null")
	want := clitest.Started("t", "r") + "\x00{\"type\":\"CUSTOM\",\n\"name\":\"two lines\"}\x00" + clitest.Finished + "\x00"
	if events != want {
		t.Errorf("exported %q, want %q", events, want)
	}
	commands.RunWithInput(events, "import", "-", "--scope", "copy")
	if copied := commands.Must("events", "t", "--null", "--scope", "copy"); copied != want {
		t.Errorf("the copy: %q, want %q", copied, want)
	}
}

func TestBadInputIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	good := clitest.Answer("t", "r1", 2)
	tests := map[string]struct {
		bad    []string // the lines after the good ones
		line   int
		code   int
		saying string
	}{
		"no JSON":                  {[]string{clitest.Started("t", "r2"), `{"type":`, clitest.Finished}, 8, cli.ExitInput, "not valid JSON"},
		"no object":                {[]string{`17`}, 7, cli.ExitInput, "JSON object"},
		"no type":                  {[]string{clitest.Started("t", "r2"), `{"TYPE":"CUSTOM"}`}, 8, cli.ExitInput, `"type"`},
		"a type that is no string": {[]string{clitest.Started("t", "r2"), `{"type":1}`}, 8, cli.ExitInput, `"type"`},
		"a run without a thread":   {[]string{`{"type":"RUN_STARTED","runId":"r2"}`}, 7, cli.ExitInput, "--thread"},
		"a run without an id":      {[]string{`{"type":"RUN_STARTED","threadId":"t"}`}, 7, cli.ExitInput, "--run"},
		"an id that is no string":  {[]string{`{"type":"RUN_STARTED","threadId":"t","runId":7}`}, 7, cli.ExitInput, "string"},
		"an id with NUL":           {[]string{`{"type":"RUN_STARTED","threadId":"t\u0000","runId":"r2"}`}, 7, cli.ExitInput, "threadId"},
		"an id with half a pair":   {[]string{`{"type":"RUN_STARTED","threadId":"t\uD83D","runId":"r2"}`}, 7, cli.ExitInput, "threadId"},
		"an unknown parent":        {[]string{clitest.StartedFrom("t", "r2", "r0"), clitest.Finished}, 7, cli.ExitInput, `"r0"`},
		"another run of that name": {append(clitest.Answer("t", "r2", 1), clitest.Started("t", "r1"), clitest.Failed), 13, cli.ExitInput, `run "r1"`},
		"an unknown parent, later": {append(clitest.Answer("t", "r2", 2*ingest.EventsPerCall), clitest.StartedFrom("t", "r3", "r0"), clitest.Finished), 11 + 2*ingest.EventsPerCall, cli.ExitInput, `"r0"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commands := clitest.On(t, commands.DatabaseURL)
			file := clitest.WriteFile(t, "chat.ndjson", append(good[:len(good):len(good)], test.bad...)...)
			result := commands.Run("import", file, "--scope", name)
			if result.Code != test.code {
				t.Errorf("exit code %d, want %d", result.Code, test.code)
			}
			if !strings.HasPrefix(result.Messages, fmt.Sprintf("%s:%d: ", file, test.line)) || !strings.Contains(result.Messages, test.saying) ||
				strings.Count(result.Messages, "\n") != 1 {
				t.Errorf("message: %s", result.Messages)
			}
			if got := commands.Must("events", "t", "--run", "r1", "--scope", name); got != clitest.JoinLines(good) {
				t.Errorf("the run before the bad line:\n%s", got)
			}
		})
	}
}

// After a bad line the import continues with the next file. After the correction a second import
// adds the missing runs in their order.
func TestImportContinuesWithTheNextFile(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	long := clitest.Answer("t", "r2", 2*ingest.EventsPerCall) // several calls
	cutOff := slices.Clone(long)
	cutOff[len(cutOff)-2] = `{"type":`
	good := clitest.WriteFile(t, "good.ndjson", clitest.Answer("t", "r1", 1)...)
	bad := clitest.WriteFile(t, "bad.ndjson", cutOff...)
	next := clitest.WriteFile(t, "next.ndjson", clitest.Answer("t", "r3", 1)...)
	other := clitest.WriteFile(t, "other.ndjson", append(clitest.Answer("other", "r1", 1), `17`)...)

	result := commands.Run("import", good, bad, "nowhere.ndjson", next, other, "--json")
	want := []string{
		fmt.Sprintf("%s:%d: not valid JSON", bad, len(cutOff)-1),
		"pgagui: open nowhere.ndjson: no such file or directory",
		fmt.Sprintf(`%s:1: thread "t" is incomplete since the error in %s:%d, and its later runs must not come before the missing ones: `, next, bad, len(cutOff)-1),
		other + ":6: an event must be a JSON object",
	}
	lines := strings.Split(strings.TrimSuffix(result.Messages, "\n"), "\n")
	if result.Code != cli.ExitInput || len(lines) != len(want) {
		t.Fatalf("exit code %d, messages:\n%s", result.Code, result.Messages)
	}
	for n := range want {
		if !strings.HasPrefix(lines[n], want[n]) {
			t.Errorf("message %q, want %q…", lines[n], want[n])
		}
	}
	var got ingest.Imported
	if err := json.Unmarshal([]byte(result.Out), &got); err != nil || got.FailedFiles != 4 || got.Runs != 2 || got.New != 10 ||
		len(got.Threads) != 2 || got.Threads[0].ThreadID != "t" || got.Threads[1].ThreadID != "other" {
		t.Errorf("error %v, %s", err, result.Out)
	}
	// Nothing of the incomplete run is stored, so no run is left in progress.
	if log := commands.Must("events", "t"); log != clitest.JoinLines(clitest.Answer("t", "r1", 1)) {
		t.Errorf("the log:\n%s", log)
	}

	bad = clitest.WriteFile(t, "corrected.ndjson", long...)
	if got := clitest.Parse[ingest.Imported](commands, "import", good, bad, next); got.FailedFiles != 0 || got.New != int64(len(long)+5) || got.AlreadyThere != 5 {
		t.Errorf("the second import: %+v", got)
	}
	if log := commands.Must("events", "t"); log != clitest.JoinLines(slices.Concat(clitest.Answer("t", "r1", 1), long, clitest.Answer("t", "r3", 1))) {
		t.Errorf("the log has %d lines", strings.Count(log, "\n"))
	}
	if runs := clitest.Parse[[]runlog.Run](commands, "log", "t"); len(runs) != 3 || runs[2].ID != "r3" || runs[2].ParentRunID != "r2" {
		t.Errorf("runs: %+v", runs)
	}

	// A conflict with another conversation of the same ids does not stop the later files.
	conflict := clitest.WriteFile(t, "conflict.ndjson", clitest.Started("t", "r1"), clitest.Failed)
	last := clitest.WriteFile(t, "last.ndjson", clitest.Answer("t", "r4", 1)...)
	result = commands.Run("import", conflict, last)
	if result.Code != cli.ExitInput || !strings.HasPrefix(result.Messages, conflict+":2: ") || strings.Count(result.Messages, "\n") != 1 || !strings.Contains(result.Out, "5 events") {
		t.Errorf("exit code %d, %s%s", result.Code, result.Out, result.Messages)
	}
	commands.Must("verify")
}

// A thread that the database refuses is skipped, and named with the reason. The others of the file are stored.
func TestImportGoesOnBehindAThreadThatIsRefused(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	for _, thread := range []string{"erased", "other"} {
		commands.Must("import", clitest.WriteFile(t, "before.ndjson", clitest.Answer(thread, "r1", 1)...))
	}
	commands.Must("erase", "erased", "--yes")
	first, last := clitest.Answer("a", "r1", 1), clitest.Answer("z", "r1", 1)
	file := clitest.WriteFile(t, "all.ndjson", slices.Concat(
		first,
		clitest.Answer("erased", "r1", 2*ingest.EventsPerCall), clitest.Answer("erased", "r2", 1),
		[]string{clitest.Started("other", "r1"), clitest.Failed}, clitest.Answer("other", "r2", 1),
		[]string{clitest.StartedFrom("lost", "r2", "r0")},
		last,
	)...)
	for name, flags := range map[string][]string{"as a whole": nil, "left open": {"--leave-open"}} {
		result := commands.Run(append([]string{"import", file, "--json"}, flags...)...)
		lines := strings.Split(strings.TrimSuffix(result.Messages, "\n"), "\n")
		if result.Code != cli.ExitInput || len(lines) != 3 {
			t.Fatalf("%s: exit code %d, messages:\n%s", name, result.Code, result.Messages)
		}
		for n, saying := range []string{"erased", `run "r1"`, `"r0"`} {
			thread := []string{"erased", "other", "lost"}[n]
			if !strings.HasPrefix(lines[n], file+":") || !strings.Contains(lines[n], saying) || !strings.HasSuffix(lines[n], fmt.Sprintf("; skipped the rest of thread %q in this file", thread)) {
				t.Errorf("%s: %s", name, lines[n])
			}
		}
		var got ingest.Imported
		if err := json.Unmarshal([]byte(result.Out), &got); err != nil || got.FailedFiles != 1 || got.Runs != 2 || got.Events != int64(len(first)+len(last)) {
			t.Errorf("%s: error %v, %s", name, err, result.Out)
		}
	}
	for thread, want := range map[string][]string{"a": first, "z": last, "other": clitest.Answer("other", "r1", 1)} {
		if log := commands.Must("events", thread); log != clitest.JoinLines(want) {
			t.Errorf("the log of %s:\n%s", thread, log)
		}
	}
	commands.Must("verify")
}

// If a bad line follows events after the end of a run, the first import does not store these
// events, and an import of the corrected file adds them.
func TestABadLineAfterTheEndOfARun(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	lines := append(clitest.Answer("t", "r1", 1), clitest.Token(2), clitest.Finished)
	commands.MustFail(cli.ExitInput, "import", clitest.WriteFile(t, "bad.ndjson", append(slices.Clone(lines[:6]), "{")...))
	if log := commands.Must("events", "t"); log != clitest.JoinLines(lines[:5]) {
		t.Errorf("the log:\n%s", log)
	}
	if got := clitest.Parse[ingest.Imported](commands, "import", clitest.WriteFile(t, "good.ndjson", lines...)); got.New != 2 || got.AlreadyThere != 5 {
		t.Errorf("%+v", got)
	}
	if log := commands.Must("events", "t"); log != clitest.JoinLines(lines) {
		t.Errorf("the log:\n%s", log)
	}
}

// With --leave-open the events before a bad line are stored, and a later import continues the run.
func TestABadLineInARunThatIsLeftOpen(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	lines := clitest.Answer("t", "r1", 3)
	bad := clitest.WriteFile(t, "bad.ndjson", append(slices.Clone(lines[:4]), "{")...)
	if message := commands.MustFail(cli.ExitInput, "import", "--leave-open", bad); !strings.HasPrefix(message, bad+":5: ") {
		t.Errorf("message: %s", message)
	}
	if log := commands.Must("events", "t"); log != clitest.JoinLines(lines[:4]) {
		t.Errorf("the log:\n%s", log)
	}
	if got := clitest.Parse[ingest.Imported](commands, "import", clitest.WriteFile(t, "good.ndjson", lines...)); got.New != 3 || got.AlreadyThere != 4 {
		t.Errorf("%+v", got)
	}
}

// The flags supply the ids of a run without RUN_STARTED, or whose RUN_STARTED has none.
func TestIDsThatAFileDoesNotHave(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "chat.ndjson", clitest.Failed)
	if message := commands.MustFail(cli.ExitInput, "import", file); !strings.HasPrefix(message, file+":1: ") || !strings.Contains(message, "--thread") {
		t.Errorf("message: %s", message)
	}
	commands.Must("import", file, "--thread", "t", "--run", "r")
	commands.Must("import", clitest.WriteFile(t, "chat.ndjson", `{"type":"RUN_STARTED"}`, clitest.Finished), "--thread", "t", "--run", "r2")
	if runs := clitest.Parse[[]runlog.Run](commands, "log", "t"); len(runs) != 2 || runs[0].ID != "r" || runs[0].Status != "failed" || runs[1].ID != "r2" {
		t.Errorf("runs: %+v", runs)
	}
}

func TestImportOfAnOldSession(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "session.json", `[
		{"seq":1,"event_type":"user","payload":"{\"content\":\"hello\"}","created_at":"2025-05-05T10:00:00Z"},
		{"seq":2,"event_type":"assistant","payload":"hi"}]`)
	if got, want := commands.Must("import", "--session-messages", "--thread", "old", file), "2 messages, up to seq 5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	restored := clitest.Parse[struct {
		Messages []struct{ Role, Content string }
	}](commands, "show", "old", "--document")
	if got, want := fmt.Sprint(restored.Messages), "[{user hello} {assistant hi}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	commands.MustFail(cli.ExitUsage, "import", "--session-messages", file)
	bad := clitest.WriteFile(t, "bad.json", `[{"event_type":"user","payload":"x"},{"event_type":"cat"}]`)
	if got, want := commands.MustFail(cli.ExitRefused, "import", "--session-messages", "--thread", "bad", bad), `message 2 is of type "cat"`; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

func TestImportNamesItsThreads(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	var lines []string
	for n := range 22 {
		lines = append(lines, clitest.Started(fmt.Sprint("thread-", n), "r"), clitest.Finished)
	}
	file := clitest.WriteFile(t, "chats.ndjson", lines...)
	out := strings.Split(strings.TrimSpace(commands.Must("import", file)), "\n")
	if len(out) != 23 || out[1] != "thread-0   1     2       2" || out[20] != "thread-19  1     2       2" ||
		out[21] != "… and 2 more (pgagui threads lists them)" || !strings.HasPrefix(out[22], "22 threads, 22 runs, 44 events, ") {
		t.Errorf("import prints\n%s", strings.Join(out, "\n"))
	}
	result := clitest.Parse[ingest.Imported](commands, "import", file)
	if len(result.Threads) != 22 || result.Threads[21].ThreadID != "thread-21" {
		t.Errorf("import --json: %+v", result)
	}
}
