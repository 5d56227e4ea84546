package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/compaction"
)

// An export equals the imported recording byte for byte, and a second import adds nothing.
func TestExportGivesBackWhatWasImported(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	// The second folder is optional: recordings beside the repository.
	for _, folder := range []string{"../../testdata/recordings", "../../../shared/recordings"} {
		entries, err := os.ReadDir(folder)
		if err != nil && folder == "../../testdata/recordings" {
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
				commands := commandLine{t, commands.databaseURL}
				file := filepath.Join(folder, name)
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				commands.must("import", file, "--scope", name)
				for thread, lines := range linesByThread(t, string(content)) {
					if got := commands.must("export", thread, "--scope", name); got != joinLines(lines) {
						t.Errorf("thread %s came back as\n%s\nwant\n%s", thread, got, joinLines(lines))
					}
				}
				commands.must("verify", "--scope", name)
				second := parse[imported](commands, "import", file, "--scope", name)
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
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
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
	commands := newCommandLine(t)
	const file, thread = "../../testdata/recordings/release-approval.ndjson", "release-checkout-2.4"
	commands.must("import", file)
	for run, want := range map[string]string{
		"run-1": "RUN_STARTED … RUN_FINISHED TOOL_CALL_RESULT … RUN_FINISHED",
		"run-2": "RUN_STARTED … RUN_FINISHED",
		"run-3": "TOOL_CALL_RESULT RUN_STARTED … RUN_FINISHED",
		"run-4": "RUN_STARTED … RUN_FINISHED",
		"run-5": "TOOL_CALL_RESULT RUN_STARTED … RUN_FINISHED",
	} {
		var types []string
		for line := range strings.Lines(commands.must("export", thread, "--run", run, "--lineage=false")) {
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
	for _, run := range parse[[]loggedRun](commands, "log", thread) {
		if want := map[string]string{"run-2": "run-1", "run-3": "run-2", "run-4": "run-1", "run-5": "run-4"}[run.ID]; run.ParentRunID != want || run.Status != "finished" {
			t.Errorf("%+v, want it to follow %q", run, want)
		}
	}
}

func TestImportCountsWhatIsNew(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	first := writeFile(t, "first.ndjson", answer("t", "r1", 3)...)
	both := writeFile(t, "both.ndjson", append(answer("t", "r1", 3), answer("t", "r2", 1)...)...)

	got := parse[imported](commands, "import", first)
	if len(got.Threads) != 1 || *got.Threads[0] != (importedThread{"t", 1, 7, 7}) ||
		got.Runs != 1 || got.Events != 7 || got.New != 7 || got.AlreadyThere != 0 || got.Bytes == 0 || got.WithoutInput != 1 {
		t.Errorf("first import: %+v", got)
	}
	got = parse[imported](commands, "import", both)
	if got.Runs != 2 || got.Events != 12 || got.New != 5 || got.AlreadyThere != 7 {
		t.Errorf("second import: %+v", got)
	}
	want := "THREAD  RUNS  EVENTS  NEW\nt       3     19      0\n1 thread, 3 runs, 19 events (0 new, 19 already there), "
	if out := commands.must("import", first, both); !strings.HasPrefix(out, want) || !strings.Contains(out, "; 3 runs without input, ") {
		t.Errorf("third import: %s", out)
	}
}

// An import has several appends per run. It continues an interrupted one, after any number of
// lines.
func TestAnInterruptedImportContinues(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	lines := answer("t", "r1", 3*eventsPerCall)
	lines[5] = fmt.Sprintf(`{"type":"CUSTOM","name":"large","value":"%s"}`, strings.Repeat("x", bytesPerCall))
	for _, length := range []int{1, eventsPerCall, eventsPerCall + 50, len(lines), len(lines)} {
		commands.must("import", "--leave-open", writeFile(t, "chat.ndjson", lines[:length]...))
		if got := commands.must("export", "t"); got != joinLines(lines[:length]) {
			t.Fatalf("after %d lines the log has %d", length, strings.Count(got, "\n"))
		}
	}
}

func TestARunThatIsCutOffIsClosedOnce(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	file := writeFile(t, "chat.ndjson", append([]string{started("t", "r1"), textBegins, token(1)}, answer("t", "r2", 1)...)...)
	result := commands.run("import", file)
	if result.code != exitOK || strings.Count(result.messages, "\n") != 1 ||
		!strings.HasPrefix(result.messages, file+`:1: run "r1" of thread "t" has no end: closed as failed`) {
		t.Errorf("exit code %d, messages: %s", result.code, result.messages)
	}
	log := commands.must("export", "t", "--run", "r1")
	want := joinLines([]string{started("t", "r1"), textBegins, token(1), textEnds})
	if !strings.HasPrefix(log, want) || !strings.Contains(strings.TrimPrefix(log, want), `"RUN_ERROR"`) {
		t.Errorf("the log:\n%s", log)
	}
	if runs := parse[[]loggedRun](commands, "log", "t"); len(runs) != 2 || runs[0].Status != "failed" || runs[1].ParentRunID != "r1" {
		t.Errorf("runs: %+v", runs)
	}

	second := commands.run("import", file, "--json")
	if second.code != exitOK || second.messages != "" || !strings.Contains(second.out, `"new":0`) || !strings.Contains(second.out, `"closed":0`) {
		t.Errorf("the second import: exit code %d, %s%s", second.code, second.out, second.messages)
	}
	if now := commands.must("export", "t", "--run", "r1"); now != log {
		t.Errorf("after the second import the log is\n%s", now)
	}
	commands.must("verify")
}

func TestAFileMayGrowBetweenImports(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	lines := answer("t", "r1", 4)
	part, whole := writeFile(t, "chat.ndjson", lines[:4]...), writeFile(t, "chat.ndjson", lines...)

	result := commands.run("import", part, "--leave-open")
	if result.code != exitOK || !strings.Contains(result.messages, "stays in progress") {
		t.Errorf("exit code %d, messages: %s", result.code, result.messages)
	}
	commands.must("import", whole)
	if got := commands.must("export", "t"); got != joinLines(lines) {
		t.Errorf("the log:\n%s", got)
	}

	// A closed run accepts no more events, and the message has the line of the refused event.
	commands.must("import", part, "--scope", "closed")
	message := commands.mustFail(exitInput, "import", whole, "--scope", "closed")
	if !strings.HasPrefix(message, whole+":5: ") || !strings.Contains(message, "--leave-open") {
		t.Errorf("message: %s", message)
	}
	// If the log has more events of a run than the file, the run is not closed.
	commands.must("import", "--leave-open", "--scope", "behind", writeFile(t, "longer.ndjson", lines[:6]...))
	commands.must("import", "--scope", "behind", part)
	if runs := parse[[]loggedRun](commands, "log", "t", "--scope", "behind"); runs[0].Status != "running" {
		t.Errorf("runs: %+v", runs)
	}
}

func TestThreadsMayChangeWithinAFile(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	file := writeFile(t, "chats.ndjson", slices.Concat(answer("a", "r", 1), answer("b", "r", 2), answer("a", "r2", 3))...)
	commands.must("import", file)
	if got, want := commands.must("export", "a"), joinLines(append(answer("a", "r", 1), answer("a", "r2", 3)...)); got != want {
		t.Errorf("thread a:\n%s\nwant\n%s", got, want)
	}
	if got, want := commands.must("export", "b"), joinLines(answer("b", "r", 2)); got != want {
		t.Errorf("thread b:\n%s\nwant\n%s", got, want)
	}
}

func TestAnEventStreamFromStdin(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	stream := ": ping\n\nevent: message\ndata: " + started("t", "r") + "\n\n: ping\n\n" +
		"data: {\"type\":\"CUSTOM\",\ndata: \"name\":\"two lines\"}\n\ndata: " + finished + "\n\ndata: [DONE]\n\n"
	if result := commands.runWithInput(stream, "import", "-"); result.code != exitOK || !strings.Contains(result.out, "3 events") {
		t.Errorf("exit code %d, %s%s", result.code, result.out, result.messages)
	}
	message := commands.mustFail(exitUsage, "export", "t")
	if !strings.Contains(message, "event 2") || !strings.Contains(message, "--null") {
		t.Errorf("message: %s", message)
	}
	events := commands.must("export", "t", "--null")
	want := started("t", "r") + "\x00{\"type\":\"CUSTOM\",\n\"name\":\"two lines\"}\x00" + finished + "\x00"
	if events != want {
		t.Errorf("exported %q, want %q", events, want)
	}
	commands.runWithInput(events, "import", "-", "--scope", "copy")
	if copied := commands.must("export", "t", "--null", "--scope", "copy"); copied != want {
		t.Errorf("the copy: %q, want %q", copied, want)
	}
}

func TestBadInputIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	good := answer("t", "r1", 2)
	tests := map[string]struct {
		bad    []string // the lines after the good ones
		line   int
		code   int
		saying string
	}{
		"no JSON":                  {[]string{started("t", "r2"), `{"type":`, finished}, 8, exitInput, "not valid JSON"},
		"no object":                {[]string{`17`}, 7, exitInput, "JSON object"},
		"no type":                  {[]string{started("t", "r2"), `{"TYPE":"CUSTOM"}`}, 8, exitInput, `"type"`},
		"a type that is no string": {[]string{started("t", "r2"), `{"type":1}`}, 8, exitInput, `"type"`},
		"a run without a thread":   {[]string{`{"type":"RUN_STARTED","runId":"r2"}`}, 7, exitInput, "--thread"},
		"a run without an id":      {[]string{`{"type":"RUN_STARTED","threadId":"t"}`}, 7, exitInput, "--run"},
		"an id that is no string":  {[]string{`{"type":"RUN_STARTED","threadId":"t","runId":7}`}, 7, exitInput, "string"},
		"an id with NUL":           {[]string{`{"type":"RUN_STARTED","threadId":"t\u0000","runId":"r2"}`}, 7, exitInput, "threadId"},
		"an id with half a pair":   {[]string{`{"type":"RUN_STARTED","threadId":"t\uD83D","runId":"r2"}`}, 7, exitInput, "threadId"},
		"an unknown parent":        {[]string{startedFrom("t", "r2", "r0"), finished}, 7, exitInput, `"r0"`},
		"another run of that name": {append(answer("t", "r2", 1), started("t", "r1"), failed), 13, exitInput, `run "r1"`},
		"an unknown parent, later": {append(answer("t", "r2", 2*eventsPerCall), startedFrom("t", "r3", "r0"), finished), 11 + 2*eventsPerCall, exitInput, `"r0"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commands := commandLine{t, commands.databaseURL}
			file := writeFile(t, "chat.ndjson", append(good[:len(good):len(good)], test.bad...)...)
			result := commands.run("import", file, "--scope", name)
			if result.code != test.code {
				t.Errorf("exit code %d, want %d", result.code, test.code)
			}
			if !strings.HasPrefix(result.messages, fmt.Sprintf("%s:%d: ", file, test.line)) || !strings.Contains(result.messages, test.saying) ||
				strings.Count(result.messages, "\n") != 1 {
				t.Errorf("message: %s", result.messages)
			}
			if got := commands.must("export", "t", "--run", "r1", "--scope", name); got != joinLines(good) {
				t.Errorf("the run before the bad line:\n%s", got)
			}
		})
	}
}

// After a bad line the import continues with the next file. After the correction a second import
// adds the missing runs in their order.
func TestImportContinuesWithTheNextFile(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	long := answer("t", "r2", 2*eventsPerCall) // several calls
	cutOff := slices.Clone(long)
	cutOff[len(cutOff)-2] = `{"type":`
	good := writeFile(t, "good.ndjson", answer("t", "r1", 1)...)
	bad := writeFile(t, "bad.ndjson", cutOff...)
	next := writeFile(t, "next.ndjson", answer("t", "r3", 1)...)
	other := writeFile(t, "other.ndjson", append(answer("other", "r1", 1), `17`)...)

	result := commands.run("import", good, bad, "nowhere.ndjson", next, other, "--json")
	want := []string{
		fmt.Sprintf("%s:%d: not valid JSON", bad, len(cutOff)-1),
		"pgagui: open nowhere.ndjson: no such file or directory",
		fmt.Sprintf(`%s:1: thread "t" is incomplete since the error in %s:%d, and its later runs must not come before the missing ones: `, next, bad, len(cutOff)-1),
		other + ":6: an event must be a JSON object",
	}
	lines := strings.Split(strings.TrimSuffix(result.messages, "\n"), "\n")
	if result.code != exitInput || len(lines) != len(want) {
		t.Fatalf("exit code %d, messages:\n%s", result.code, result.messages)
	}
	for n := range want {
		if !strings.HasPrefix(lines[n], want[n]) {
			t.Errorf("message %q, want %q…", lines[n], want[n])
		}
	}
	var got imported
	if err := json.Unmarshal([]byte(result.out), &got); err != nil || got.FailedFiles != 4 || got.Runs != 2 || got.New != 10 ||
		len(got.Threads) != 2 || got.Threads[0].ThreadID != "t" || got.Threads[1].ThreadID != "other" {
		t.Errorf("error %v, %s", err, result.out)
	}
	// Nothing of the incomplete run is stored, so no run is left in progress.
	if log := commands.must("export", "t"); log != joinLines(answer("t", "r1", 1)) {
		t.Errorf("the log:\n%s", log)
	}

	bad = writeFile(t, "corrected.ndjson", long...)
	if got := parse[imported](commands, "import", good, bad, next); got.FailedFiles != 0 || got.New != int64(len(long)+5) || got.AlreadyThere != 5 {
		t.Errorf("the second import: %+v", got)
	}
	if log := commands.must("export", "t"); log != joinLines(slices.Concat(answer("t", "r1", 1), long, answer("t", "r3", 1))) {
		t.Errorf("the log has %d lines", strings.Count(log, "\n"))
	}
	if runs := parse[[]loggedRun](commands, "log", "t"); len(runs) != 3 || runs[2].ID != "r3" || runs[2].ParentRunID != "r2" {
		t.Errorf("runs: %+v", runs)
	}

	// A conflict with another conversation of the same ids does not stop the later files.
	conflict := writeFile(t, "conflict.ndjson", started("t", "r1"), failed)
	last := writeFile(t, "last.ndjson", answer("t", "r4", 1)...)
	result = commands.run("import", conflict, last)
	if result.code != exitInput || !strings.HasPrefix(result.messages, conflict+":2: ") || strings.Count(result.messages, "\n") != 1 || !strings.Contains(result.out, "5 events") {
		t.Errorf("exit code %d, %s%s", result.code, result.out, result.messages)
	}
	commands.must("verify")
}

// If a bad line follows events after the end of a run, the first import does not store these
// events, and an import of the corrected file adds them.
func TestABadLineAfterTheEndOfARun(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	lines := append(answer("t", "r1", 1), token(2), finished)
	commands.mustFail(exitInput, "import", writeFile(t, "bad.ndjson", append(slices.Clone(lines[:6]), "{")...))
	if log := commands.must("export", "t"); log != joinLines(lines[:5]) {
		t.Errorf("the log:\n%s", log)
	}
	if got := parse[imported](commands, "import", writeFile(t, "good.ndjson", lines...)); got.New != 2 || got.AlreadyThere != 5 {
		t.Errorf("%+v", got)
	}
	if log := commands.must("export", "t"); log != joinLines(lines) {
		t.Errorf("the log:\n%s", log)
	}
}

// With --leave-open the events before a bad line are stored, and a later import continues the run.
func TestABadLineInARunThatIsLeftOpen(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	lines := answer("t", "r1", 3)
	bad := writeFile(t, "bad.ndjson", append(slices.Clone(lines[:4]), "{")...)
	if message := commands.mustFail(exitInput, "import", "--leave-open", bad); !strings.HasPrefix(message, bad+":5: ") {
		t.Errorf("message: %s", message)
	}
	if log := commands.must("export", "t"); log != joinLines(lines[:4]) {
		t.Errorf("the log:\n%s", log)
	}
	if got := parse[imported](commands, "import", writeFile(t, "good.ndjson", lines...)); got.New != 3 || got.AlreadyThere != 4 {
		t.Errorf("%+v", got)
	}
}

// The flags supply the ids of a run without RUN_STARTED, or whose RUN_STARTED has none.
func TestIDsThatAFileDoesNotHave(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	file := writeFile(t, "chat.ndjson", failed)
	if message := commands.mustFail(exitInput, "import", file); !strings.HasPrefix(message, file+":1: ") || !strings.Contains(message, "--thread") {
		t.Errorf("message: %s", message)
	}
	commands.must("import", file, "--thread", "t", "--run", "r")
	commands.must("import", writeFile(t, "chat.ndjson", `{"type":"RUN_STARTED"}`, finished), "--thread", "t", "--run", "r2")
	if runs := parse[[]loggedRun](commands, "log", "t"); len(runs) != 2 || runs[0].ID != "r" || runs[0].Status != "failed" || runs[1].ID != "r2" {
		t.Errorf("runs: %+v", runs)
	}
}

func TestAFileThatIsNotThere(t *testing.T) {
	t.Parallel()
	message := newCommandLine(t).mustFail(exitInput, "import", "nowhere.ndjson")
	if !strings.Contains(message, "nowhere.ndjson") {
		t.Errorf("message: %s", message)
	}
}

func TestImportOfAnOldSession(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	file := writeFile(t, "session.json", `[
		{"seq":1,"event_type":"user","payload":"{\"content\":\"hello\"}","created_at":"2025-05-05T10:00:00Z"},
		{"seq":2,"event_type":"assistant","payload":"hi"}]`)
	if got, want := commands.must("import", "--session-messages", "--thread", "old", file), "2 messages, up to seq 5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	restored := parse[struct {
		Messages []struct{ Role, Content string }
	}](commands, "restore", "old")
	if got, want := fmt.Sprint(restored.Messages), "[{user hello} {assistant hi}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	commands.mustFail(exitUsage, "import", "--session-messages", file)
	bad := writeFile(t, "bad.json", `[{"event_type":"user","payload":"x"},{"event_type":"cat"}]`)
	if got, want := commands.mustFail(exitRefused, "import", "--session-messages", "--thread", "bad", bad), `message 2 is of type "cat"`; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}
