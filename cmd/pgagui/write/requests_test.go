package write

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/ingest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

func TestRequestsSupplyTheMessagesOfTheUser(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "chat.ndjson", append(clitest.Answer("t", "r1", 2), clitest.Answer("t", "r2", 2)...)...)
	inputs := clitest.WriteFile(t, "chat.requests.ndjson", clitest.RequestOf("t", "r2", "And where?"), clitest.RequestOf("t", "r1", "What is new?"))
	if got := clitest.Parse[ingest.Imported](commands, "import", file, "--requests", inputs); got.WithoutInput != 0 || got.New != 12 {
		t.Errorf("%+v", got)
	}
	if text := commands.Must("show", "t"); !strings.Contains(text, "What is new?") || strings.Index(text, "And where?") < strings.Index(text, "What is new?") {
		t.Errorf("show:\n%s", text)
	}
	if runs := clitest.Parse[[]runlog.Run](commands, "log", "t"); runs[0].Input != "What is new?" || runs[1].Input != "And where?" {
		t.Errorf("log: %+v", runs)
	}
	// A second import, with and without the requests, adds nothing.
	for _, arguments := range [][]string{{"--requests", inputs}, nil} {
		if got := clitest.Parse[ingest.Imported](commands, append([]string{"import", file}, arguments...)...); got.New != 0 || got.AlreadyThere != 12 || got.WithoutInput != 0 {
			t.Errorf("the second import %s: %+v", arguments, got)
		}
	}
	commands.Must("verify")

	// Requests without a runId go, in order, to the runs that no other request names.
	unnamed := func(words string) string {
		return strings.Replace(clitest.RequestOf("t", "x", words), `"threadId":"t","runId":"x",`, "", 1)
	}
	inputs = clitest.WriteFile(t, "unnamed.ndjson", unnamed("one"), clitest.RequestOf("t", "r2", "two"), unnamed("three"), unnamed("four"))
	file = clitest.WriteFile(t, "chat.ndjson", append(clitest.Answer("t", "r1", 1), append(clitest.Answer("t", "r2", 1), clitest.Answer("t", "r3", 1)...)...)...)
	result := commands.Run("import", file, "--requests", inputs, "--scope", "unnamed")
	if want := inputs + ":4: no imported run matches this request (unmatched requests: 1)\n"; result.Code != cli.ExitOK || result.Messages != want {
		t.Errorf("exit code %d, messages %q, want %q", result.Code, result.Messages, want)
	}
	for n, run := range clitest.Parse[[]runlog.Run](commands, "log", "t", "--scope", "unnamed") {
		if want := []string{"one", "two", "three"}[n]; run.Input != want {
			t.Errorf("%s has the input %q, want %q", run.ID, run.Input, want)
		}
	}

	// A run that began without an input cannot get one later.
	commands.Must("import", file, "--scope", "without")
	message := commands.MustFail(cli.ExitInput, "import", file, "--requests", inputs, "--scope", "without")
	if !strings.HasPrefix(message, file+":1: ") || !strings.Contains(message, "An input can only be stored when the run begins") {
		t.Errorf("message: %s", message)
	}
}

// Requests without a runId are matched in order, so the import must stop at a missing run.
func TestRequestsInOrderEndWithTheFirstBadFile(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	bad := clitest.WriteFile(t, "bad.ndjson", append(clitest.Answer("t", "r1", 1), clitest.Started("t", "r2"), "{")...)
	other := clitest.WriteFile(t, "other.ndjson", clitest.Answer("other", "r1", 1)...)
	unnamed := func(words string) string { return `{"messages":[{"id":"u","role":"user","content":"` + words + `"}]}` }
	inputs := clitest.WriteFile(t, "requests.ndjson", unnamed("one"), unnamed("two"), unnamed("three"))
	result := commands.Run("import", bad, other, "--requests", inputs)
	if result.Code != cli.ExitInput || !strings.HasSuffix(result.Messages, "\nskipped the next 1 file: requests without a runId are matched in order, and runs are missing\n") {
		t.Errorf("exit code %d, %s", result.Code, result.Messages)
	}
	corrected := clitest.WriteFile(t, "corrected.ndjson", append(clitest.Answer("t", "r1", 1), clitest.Answer("t", "r2", 1)...)...)
	commands.Must("import", corrected, other, "--requests", inputs)
	if runs := clitest.Parse[[]runlog.Run](commands, "log", "t"); runs[0].Input != "one" || runs[1].Input != "two" {
		t.Errorf("%+v", runs)
	}
	if runs := clitest.Parse[[]runlog.Run](commands, "log", "other"); runs[0].Input != "three" {
		t.Errorf("%+v", runs)
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := clitest.WriteFile(t, "chat.ndjson", clitest.Answer("t", "r1", 1)...)
	for name, test := range map[string]struct {
		lines  []string
		line   int
		saying string
	}{
		"no JSON":             {[]string{clitest.RequestOf("t", "r1", "hi"), `{"threadId"`}, 2, "not valid JSON"},
		"no body":             {[]string{`{"threadId":"t","runId":"r1"}`}, 1, `"messages"`},
		"two of one run":      {[]string{clitest.RequestOf("t", "r1", "hi"), clitest.RequestOf("t", "r1", "ho")}, 2, "line 1 has a different request"},
		"an id of a number":   {[]string{`{"threadId":1,"messages":[]}`}, 1, "threadId"},
		"an id that is wrong": {[]string{`{"runId":"\u0000","messages":[]}`}, 1, "runId"},
	} {
		inputs := clitest.WriteFile(t, "requests.ndjson", test.lines...)
		message := commands.MustFail(cli.ExitInput, "import", file, "--requests", inputs)
		if !strings.HasPrefix(message, inputs+":"+string(rune('0'+test.line))+": ") || !strings.Contains(message, test.saying) {
			t.Errorf("%s: %s", name, message)
		}
	}
	commands.MustFail(cli.ExitInput, "import", file, "--requests", "nowhere.ndjson")
	commands.MustFail(cli.ExitUsage, "import", file, "--session-messages", "--thread", "t", "--requests", file)
	commands.MustFail(cli.ExitRefused, "log", "t") // nothing was stored
}

// A thread that is exported and imported elsewhere has the same bytes, and restores like the
// original, at every run.
func TestExportAndImportWithRequests(t *testing.T) {
	t.Parallel()
	there, here := clitest.NewCommandLine(t), clitest.NewCommandLine(t)
	store := pgagui.New(testdb.Connect(t, there.DatabaseURL), nil)
	run := func(runID string, lines []string, options pgagui.AppendOptions) {
		t.Helper()
		options.AfterSeq = new(int64(0))
		var events []json.RawMessage
		for _, line := range lines {
			events = append(events, json.RawMessage(line))
		}
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: runID}, events, options))(t)
	}
	input := func(text string) pgagui.AppendOptions { return pgagui.AppendOptions{Input: json.RawMessage(text)} }
	plain := func(runID string) []string { return clitest.Answer("t", runID, 1) }
	run("r1", plain("r1"), input(clitest.RequestOf("t", "r1", "one")))
	run("r2", plain("r2"), input(`{ "messages": [{"role":"user","content":"no \u0000 id"}], "messages": [{"id":"u2","role":"user","content":"two"}]}`))
	run("r3", plain("r3"), pgagui.AppendOptions{ParentRunID: "r1"})
	run("r4", plain("r4"), pgagui.AppendOptions{NoParent: true, Input: json.RawMessage(`{"state":{"a":1e400},"input":{"messages":[]}}`)})
	run("r5", []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r5","parentRunId":"r1","input":{"messages":[{"id":"u5","role":"user","content":"five"}]}}`, clitest.Finished},
		pgagui.AppendOptions{
			ParentRunID: "r2",
			Input:       json.RawMessage(strings.Replace(clitest.RequestOf("t", "r5", "not five"), `"messages"`, `"parentRunId":"r3","messages"`, 1)),
		})
	run("r6", plain("r6"), pgagui.AppendOptions{ParentRunID: "r3", Input: json.RawMessage(clitest.RequestOf("u", "r6", "of another thread"))})

	folder := t.TempDir()
	events, inputs := filepath.Join(folder, "t.ndjson"), filepath.Join(folder, "t.requests.ndjson")
	exported := there.Must("events", "t", "--requests", inputs)
	testfile.Write(t, events, []byte(exported))
	if got := clitest.Parse[ingest.Imported](here, "import", events, "--requests", inputs); got.New != 27 || got.WithoutInput != 1 {
		t.Errorf("%+v", got)
	}
	copied := inputs + ".copy"
	if got := here.Must("events", "t", "--requests", copied); got != exported {
		t.Errorf("came back as\n%s\nwant\n%s", got, exported)
	}
	before, errBefore := os.ReadFile(inputs)
	after, errAfter := os.ReadFile(copied)
	if string(after) != string(before) || errBefore != nil || errAfter != nil || strings.Count(string(before), "\n") != 6 {
		t.Errorf("requests came back as\n%s\nwant\n%s", after, before)
	}
	for _, runID := range []string{"r1", "r2", "r3", "r4", "r5", "r6"} {
		if got, want := here.Must("show", "t", "--document", "--run", runID), there.Must("show", "t", "--document", "--run", runID); got != want {
			t.Errorf("%s restores as\n%s\nwant\n%s", runID, got, want)
		}
	}
	here.Must("verify")

	// Without --requests it reports what it leaves out, of all runs or of one.
	const left = "left out: 5 inputs with the user's messages (--requests FILE writes them)\nleft out: 4 parents that no event names (--requests FILE writes them)\n"
	if result := there.Run("events", "t"); result.Out != exported || result.Messages != left {
		t.Errorf("messages %q, want %q", result.Messages, left)
	}
	if result := there.Run("events", "t", "--run", "r1", "--lineage=false"); result.Messages != "left out: 1 input with the user's messages (--requests FILE writes them)\n" {
		t.Errorf("one run: %q", result.Messages)
	}
	// A compacted export carries the inputs in RUN_STARTED.
	there.MustFail(cli.ExitUsage, "events", "t", "--compact", "stream", "--requests", inputs)
	for _, shape := range []string{"stream", "snapshot"} {
		result := there.Run("events", "t", "--compact", shape, "--run", "r2")
		here.Must("import", clitest.WriteFile(t, "r2.ndjson", strings.TrimSuffix(result.Out, "\n")), "--scope", shape)
		if text := here.Must("show", "t", "--scope", shape); !strings.Contains(text, "two") || result.Messages != "" {
			t.Errorf("%s: %s%s", shape, text, result.Messages)
		}
	}
}

// An input without RUN_STARTED ends the chunk streams that the parent left open, in the log and in
// its export.
func TestCompactedExportOfAnInputBehindOpenChunks(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	store := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil)
	chunk := func(fields string) string { return `{"type":"TEXT_MESSAGE_CHUNK",` + fields + `}` }
	for _, run := range []struct {
		id, input string
		lines     []string
	}{
		{"r1", "", []string{clitest.Started("t", "r1"), clitest.Finished, chunk(`"messageId":"m","delta":"one"`)}},
		{"r2", clitest.RequestOf("t", "r2", "two"), []string{chunk(`"delta":"skipped"`), chunk(`"messageId":"n","delta":"three"`), clitest.Finished}},
	} {
		options := pgagui.AppendOptions{AfterSeq: new(int64(0))}
		if run.input != "" {
			options.Input = json.RawMessage(run.input)
		}
		var events []json.RawMessage
		for _, line := range run.lines {
			events = append(events, json.RawMessage(line))
		}
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: run.id}, events, options))(t)
	}
	meaning := func(arguments ...string) string {
		_, text, _ := strings.Cut(commands.Must(append([]string{"show", "t", "--document"}, arguments...)...), `"status"`) // seqs differ
		return text
	}
	want := meaning()
	if strings.Contains(want, "skipped") || !strings.Contains(want, "two") {
		t.Errorf("restored %s", want)
	}
	for _, shape := range []string{"stream", "snapshot"} {
		exported := commands.Must("events", "t", "--compact", shape)
		commands.Must("import", clitest.WriteFile(t, "t.ndjson", strings.TrimSuffix(exported, "\n")), "--scope", shape)
		if got := meaning("--scope", shape); got != want {
			t.Errorf("%s restores as\n%s\nwant\n%s\n%s", shape, got, want, exported)
		}
	}
}

// A request may contain line ends if --null is set.
func TestRequestsWithLineEnds(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pretty := strings.Replace(clitest.RequestOf("t", "r", "hi"), ",", ",\n\t", -1)
	commands.Must("import", clitest.WriteFile(t, "chat.ndjson", clitest.Answer("t", "r", 1)...), "--requests", clitest.WriteFile(t, "requests.json", pretty))
	inputs := filepath.Join(t.TempDir(), "requests")
	if message := commands.Run("events", "t", "--requests", inputs).Messages; !strings.Contains(message, "--null") {
		t.Errorf("message: %s", message)
	}
	events := commands.Must("events", "t", "--null", "--requests", inputs)
	if content, err := os.ReadFile(inputs); err != nil || string(content) != pretty+"\x00" {
		t.Errorf("requests %q, error %v", content, err)
	}
	if result := commands.RunWithInput(events, "import", "-", "--requests", inputs, "--scope", "copy"); result.Code != cli.ExitOK {
		t.Errorf("%+v", result)
	}
	commands.MustFail(cli.ExitInput, "events", "t", "--requests", filepath.Join(inputs, "no folder"))
}

// If the events do not name their runs, import would assign them wrongly. export warns about it.
func TestExportWarnsAboutEventsOfUnknownRuns(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	store := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil)
	for _, lines := range [][]string{
		{"r1", clitest.Started("t", "r1"), clitest.Finished},
		{"r2", clitest.Token(1), clitest.Started("t", "r2"), clitest.Finished},
	} {
		var events []json.RawMessage
		for _, line := range lines[1:] {
			events = append(events, json.RawMessage(line))
		}
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: lines[0]}, events, pgagui.AppendOptions{AfterSeq: new(int64(0))}))(t)
	}
	const want = `import would assign some events of run "r2" of thread "t" to another run: export the run alone (--run, --lineage=false) and import it with --thread and --run` + "\n"
	if result := commands.Run("events", "t"); result.Messages != want {
		t.Errorf("messages %q, want %q", result.Messages, want)
	}
	for _, run := range []string{"r1", "r2"} {
		result := commands.Run("events", "t", "--run", run, "--lineage=false")
		commands.Must("import", clitest.WriteFile(t, "run.ndjson", strings.TrimSuffix(result.Out, "\n")), "--thread", "t", "--run", run, "--scope", "copy")
		if copied := commands.Must("events", "t", "--run", run, "--lineage=false", "--scope", "copy"); copied != result.Out || result.Messages != "" {
			t.Errorf("%s came back as\n%s\nwant\n%s%s", run, copied, result.Out, result.Messages)
		}
	}
}

// The recordings of real servers, with the requests of their clients, show the messages of the
// user.
func TestRecordingsWithTheirRequests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../shared/recordings/*.requests.ndjson")
	if err != nil || len(files) == 0 {
		testneeds.Skip(t, testneeds.Recordings, "there are no recordings with requests beside the repository")
	}
	commands := clitest.NewCommandLine(t)
	for _, inputs := range files {
		file := strings.Replace(inputs, ".requests", "", 1)
		scope := filepath.Base(file)
		result := clitest.Parse[ingest.Imported](commands, "import", file, "--requests", inputs, "--scope", scope)
		if result.WithoutInput != 0 {
			t.Errorf("%s: %+v", scope, result)
		}
		content := testfile.Read(t, inputs)
		for line := range strings.Lines(string(content)) {
			var request struct {
				ThreadID, RunID string
				Messages        []struct{ Role, Content string }
			}
			must.Do(t, json.Unmarshal([]byte(line), &request))
			text := strings.Join(strings.Fields(commands.Must("show", request.ThreadID, "--run", request.RunID, "--scope", scope)), " ")
			for _, message := range request.Messages {
				if message.Role == "user" && !strings.Contains(text, message.Content) {
					t.Errorf("%s, run %s does not show %q:\n%s", scope, request.RunID, message.Content, text)
				}
			}
		}
	}
	commands.Must("verify")
}
