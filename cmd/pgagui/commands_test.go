package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// importTree creates the thread t with the branches r1 ← r2 ← r3 and r1 ← r4; r4 fails.
func importTree(t *testing.T, commands commandLine) {
	t.Helper()
	withInput := `{"type":"RUN_STARTED","threadId":"t","runId":"r1","input":{"messages":[{"id":"u","role":"user","content":"Where\nto?"}]}}`
	commands.must("import", writeFile(t, "tree.ndjson",
		withInput, finished,
		started("t", "r2"), `{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`, `{"type":"STATE_SNAPSHOT","snapshot":{"a":2}}`, finished,
		started("t", "r3"), textBegins, token(1), textEnds, finished,
		startedFrom("t", "r4", "r1"), failed,
	))
}

func TestLogShowsTheRuns(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	table := strings.Split(commands.must("log", "t"), "\n")
	for row, want := range []string{
		"RUN FOLLOWS STATUS SEQ STARTED INPUT",
		"r1 - finished 1–2 Where to?",
		"r2 r1 finished 3–6",
		"r3 r2 finished 7–11",
		"* r4 r1 failed 12–13",
	} {
		if got := withoutTimes(table[row]); got != want {
			t.Errorf("row %d is %q, want %q", row, got, want)
		}
	}
	graph := commands.must("log", "t", "--graph")
	const want = "* r4 (head, failed)\n" +
		"| * r3\n" +
		"| * r2\n" +
		"|/\n" +
		"* r1 Where to?\n"
	if graph != want {
		t.Errorf("graph:\n%s\nwant\n%s", graph, want)
	}
	runs := parse[[]loggedRun](commands, "log", "t")
	if len(runs) != 4 || runs[0].Input != "Where\nto?" || runs[3].ParentRunID != "r1" || !runs[3].IsHead || runs[2].IsHead || runs[2].LastSeq != 11 {
		t.Errorf("JSON: %+v", runs)
	}
}

// withoutTimes removes dates and times of day from a row.
func withoutTimes(row string) string {
	var fields []string
	for _, field := range strings.Fields(row) {
		if strings.Count(field, ":") != 2 && strings.Count(field, "-") != 2 {
			fields = append(fields, field)
		}
	}
	return strings.Join(fields, " ")
}

func TestTablesDoNotActOnTheTerminal(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	commands.must("import", writeFile(t, "red.ndjson",
		`{"type":"RUN_STARTED","threadId":"t","runId":"r\u001b[2J","input":{"messages":[{"role":"user","content":"\u001b[31mred\u202e"}]}}`, finished))
	for _, arguments := range []string{"log t", "log t --graph", "branches t", "status t"} {
		out := commands.must(strings.Fields(arguments)...)
		if strings.ContainsAny(out, "\x1b\u202e") || !strings.Contains(out, `r\x1b[2J`) {
			t.Errorf("%s: %q", arguments, out)
		}
	}
}

func TestBranchesListsTheLeaves(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	want := "   BRANCH  STATUS    RUNS  LEAVES AT  LAST SEQ\n" +
		"   r3      finished  3     r1         11\n" +
		"*  r4      failed    2     r1         13\n"
	if table := commands.must("branches", "t"); table != want {
		t.Errorf("table:\n%s\nwant\n%s", table, want)
	}
	branches := parse[[]pgagui.Branch](commands, "branches", "t")
	if len(branches) != 2 || branches[0].RunID != "r3" || branches[0].Runs != 3 || !branches[1].IsHead {
		t.Errorf("JSON: %+v", branches)
	}
}

func TestRestoreAtAnyPoint(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
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
			restored := parse[pgagui.Restored](commands, append([]string{"restore", "t"}, test.arguments...)...)
			if restored.RunID != test.runID || restored.Seq != test.seq || len(restored.Messages) != test.messages || string(restored.State) != test.state {
				t.Errorf("restore %s: %+v, state %s", test.arguments, restored, restored.State)
			}
		}
		commands.must("compact") // the second round restores from snapshots
	}
	for _, at := range []string{"0", "-1", "", "yesterday", "2026-13-01T00:00", "-2h"} {
		for _, command := range []string{"restore", "show"} {
			if message := commands.mustFail(exitUsage, command, "t", "--at="+at); !strings.Contains(message, "--at "+at) {
				t.Errorf("message: %s", message)
			}
		}
	}
}

// export, history and follow read the lineage of a run, unless --lineage=false is set.
func TestReadingARunReadsItsLineage(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	for arguments, want := range map[string]string{
		"": "1 2 3 4 5 6 7 8 9 10 11 12 13", "--run r3": "1 2 3 4 5 6 7 8 9 10 11", "--run r4": "1 2 12 13", "--run r3 --lineage=true": "1 2 3 4 5 6 7 8 9 10 11",
		"--run r3 --lineage=false": "7 8 9 10 11", "--lineage=false": "12 13",
	} {
		var seqs []string
		for _, row := range historyLines(t, commands, append([]string{"t", "--raw"}, strings.Fields(arguments)...)...) {
			seqs = append(seqs, fmt.Sprint(row.Seq))
		}
		if got := strings.Join(seqs, " "); got != want {
			t.Errorf("history %s: %s, want %s", arguments, got, want)
		}
		exported := strings.Count(commands.must(append([]string{"export", "t"}, strings.Fields(arguments)...)...), "\n")
		if events := len(strings.Fields(want)); exported != events {
			t.Errorf("export %s: %d events, want %d", arguments, exported, events)
		}
		followed := strings.Count(commands.must(append([]string{"follow", "t"}, strings.Fields(arguments)...)...), "\n")
		if events := len(strings.Fields(want)); followed != events {
			t.Errorf("follow %s: %d events, want %d", arguments, followed, events)
		}
	}
	if lines := strings.Split(commands.must("export", "t", "--run", "r3", "--lineage=false", "--compact", "snapshot"), "\n"); len(lines) != 4 || !strings.Contains(lines[0], `"r3"`) {
		t.Errorf("compacted, the run alone: %s", lines)
	}
	commands.mustFail(exitUsage, "follow", "t", "--history", "stream", "--lineage=false")
}

func TestCompactFoldsEndedRuns(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	first := commands.run("compact", "--limit", "1")
	if first.code != exitWorkLeft || first.messages != "" || !strings.HasSuffix(first.out, "; 3 runs left (stopped: limit)\n") {
		t.Errorf("--limit 1: exit code %d, %s%s", first.code, first.out, first.messages)
	}
	if rest := parse[jobs.Compacted](commands, "compact", "--workers", "2"); rest.Runs != 3 || rest.Threads != 1 {
		t.Errorf("the rest: %+v", rest)
	}
	if out := commands.must("compact"); !strings.HasPrefix(out, "0 runs of 0 threads, ") {
		t.Errorf("nothing to do: %s", out)
	}
	commands.mustFail(exitUsage, "compact", "--workers", "0")
}

// A thread that is exported in either compact shape and imported elsewhere restores like the
// original, at every run.
func TestCompactedExportMeansTheSame(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	const thread = "trip-to-lisbon"
	commands.must("import", "../../testdata/recordings/"+thread+".ndjson")
	raw := commands.must("export", thread)
	for _, shape := range []string{"stream", "snapshot"} {
		compacted := commands.must("export", thread, "--compact", shape)
		// A snapshot of each run repeats the whole conversation, so only the other shape is
		// smaller.
		if shape == "stream" && len(compacted) > len(raw)*2/3 {
			t.Errorf("%s: %d of %d bytes are left", shape, len(compacted), len(raw))
		}
		file := writeFile(t, shape+".ndjson", strings.TrimSuffix(compacted, "\n"))
		commands.must("import", file, "--scope", shape)
		for run := 1; run <= 7; run++ {
			runID := fmt.Sprint("run-", run)
			original := parse[pgagui.Restored](commands, "restore", thread, "--run", runID)
			copied := parse[pgagui.Restored](commands, "restore", thread, "--run", runID, "--scope", shape)
			copied.Seq = original.Seq // the copy has fewer events
			if got, want := fmt.Sprint(canonical(t, copied)), fmt.Sprint(canonical(t, original)); got != want {
				t.Errorf("%s, %s: restores as\n%s\nwant\n%s", shape, runID, got, want)
			}
		}
	}
	commands.mustFail(exitUsage, "export", thread, "--compact", "small")
}

func canonical(t *testing.T, value any) (decoded any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestVerify(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	commands.must("import", writeFile(t, "other.ndjson", answer("other", "r", 1)...))
	commands.must("import", writeFile(t, "mine.ndjson", answer("t", "r", 1)...), "--scope", "mine")
	commands.must("compact")
	if out := commands.must("verify"); !strings.HasPrefix(out, "3 threads, ") || !strings.Contains(out, ": no problem, in ") {
		t.Errorf("verify: %s", out)
	}
	for threads, arguments := range map[int][]string{
		0: {"--since", "2999-01-01T00:00:00Z"}, 1: {"--sample", "1"}, 2: {"--since", "1h", "--sample", "100%", "--scope", ""}, 3: {"--workers", "3"},
	} {
		if got := parse[verified](commands, append([]string{"verify"}, arguments...)...); got.Threads != threads || len(got.Reports) != threads {
			t.Errorf("verify %v: %+v, want %d threads", arguments, got, threads)
		}
	}

	pool := testdb.Connect(t, commands.databaseURL)
	if _, err := pool.Exec(t.Context(), `
		update agui.snapshot set state = '{"a":3}' where thread_key = agui.thread_key('', 't') and run_no = 4;
		update agui.snapshot set state = '{"a":3}' where thread_key = agui.thread_key('mine', 't');
		update agui.run set status = 'failed' where thread_key = agui.thread_key('', 'other')`); err != nil {
		t.Fatal(err)
	}
	const wrongStatus = "thread other, run r: the run is marked as failed, by its log it is finished\n"
	for _, check := range []struct {
		arguments, out, messages string
		code                     int
	}{
		{"verify t", "thread t, run r4: the snapshot is not what the log says: the state differs\n", ": 1 problem, in ", exitProblems},
		{"verify t --in-sql", "thread t, run r4: the snapshot is not what the log says: the state differs\n", ": 1 problem, in ", exitProblems},
		{"verify --sample 100% t", "", "do not name threads as well", exitUsage},
		{"verify --repair t", "thread t, run r4: repaired: the snapshot is not what the log says: the state differs\n", "", exitOK},
		{"verify t", "", "", exitOK},
		{"verify other --repair", wrongStatus, ": 1 problem, in ", exitProblems},
		{"verify other t", wrongStatus, "2 threads, ", exitProblems},
	} {
		result := commands.run(strings.Fields(check.arguments)...)
		if result.code != check.code || !strings.HasPrefix(result.out, check.out) || !strings.Contains(result.messages, check.messages) {
			t.Errorf("%s: exit code %d, %s%s", check.arguments, result.code, result.out, result.messages)
		}
	}
	result := commands.run("verify", "--workers", "1")
	for _, line := range []string{wrongStatus, "scope mine, thread t, run r: the snapshot is not what the log says: the state differs\n"} {
		if !strings.Contains(result.out, line) {
			t.Errorf("verify: %s, want %s", result.out, line)
		}
	}
	result = commands.run("verify", "other", "--json")
	if result.code != exitProblems || result.messages != "" {
		t.Errorf("JSON: exit code %d, %s", result.code, result.messages)
	}
	var got verified
	if err := json.Unmarshal([]byte(result.out), &got); err != nil {
		t.Fatal(err)
	}
	want := jobs.ThreadProblem{Problem: pgagui.Problem{
		RunID: "r", Problem: "the run is marked as failed, by its log it is finished", Severity: pgagui.Damage,
	}}
	if len(got.Reports) != 1 || got.Reports[0].ThreadID != "other" || got.Reports[0].Runs != 1 || got.Reports[0].Events != 5 || got.Reports[0].Snapshots != 1 ||
		len(got.Reports[0].Problems) != 1 || got.Reports[0].Problems[0] != want {
		t.Errorf("JSON: %s", result.out)
	}
	for _, arguments := range []string{"--sample 0", "--sample 101%", "--sample x", "--since yesterday", "--workers 0"} {
		commands.mustFail(exitUsage, append([]string{"verify"}, strings.Fields(arguments)...)...)
	}
}

func TestScopesAreSeparate(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	commands.must("import", writeFile(t, "mine.ndjson", answer("t", "r", 1)...), "--scope", "mine")
	if message := commands.mustFail(exitRefused, "log", "t"); !strings.Contains(message, "Is it in another scope (--scope NAME)?") {
		t.Errorf("message: %s", message)
	}
}

// Commands for the database work on all scopes, commands that remove threads on one. They report
// the threads that they skip.
func TestWhichScopesACommandWorksOn(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	for _, scope := range []string{"mine", "yours"} {
		commands.must("import", writeFile(t, "chat.ndjson", answer("t", "r", 1)...), "--scope", scope)
	}
	if got := parse[verified](commands, "verify"); got.Threads != 2 {
		t.Errorf("verify: %+v", got)
	}
	if done := parse[compactResult](commands, "compact"); done.Runs != 2 {
		t.Errorf("compact: %+v", done)
	}
	for arguments, want := range map[string]outcome{
		"verify --scope mine --json":                           {exitOK, `{"threads":1,`, ""},
		"verify --scope whose --json":                          {exitOK, `{"threads":0,`, "scope \"whose\": 2 threads of other scopes were not checked (use another --scope, or none to check all)\n"},
		"verify t":                                             {exitRefused, "", "thread \"t\" is unknown. A thread exists once a run of it has begun. Is it in another scope (--scope NAME)?\n"},
		"verify t --scope mine --json":                         {exitOK, `{"threads":1,`, ""},
		"erase --older-than 1us --dry-run":                     {exitOK, "would erase 0 threads", "scope \"\": 2 threads of other scopes were skipped (--scope NAME or --all-scopes includes them)\n"},
		"erase --older-than 1us --dry-run --scope mine --json": {exitOK, `{"threads":1,`, ""},
		"erase --older-than 1us --dry-run --all-scopes --json": {exitOK, `{"threads":2,`, ""},
		"erase --older-than 1us --all-scopes --scope mine":     {exitUsage, "", "exclude each other"},
		"compact --scope mine":                                 {exitUsage, "", "compact works on the threads of all scopes, so it does not accept --scope"},
		"reap --scope mine":                                    {exitUsage, "", "reap works on"},
		"repack --scope mine":                                  {exitUsage, "", "repack works on"},
		"stats --scope mine":                                   {exitUsage, "", "stats works on"},
		"migrate down --yes --scope mine":                      {exitUsage, "", "down works on"},
		"worker --scope mine":                                  {exitUsage, "", "--erase"},
		"worker --erase @daily --erase-after 1d":               {exitUsage, "", "--scope and --all-scopes"},
	} {
		got := commands.run(strings.Fields(arguments)...)
		if got.code != want.code || !strings.HasPrefix(got.out, want.out) || !strings.Contains(got.messages, want.messages) || want.messages == "" && got.messages != "" {
			t.Errorf("pgagui %s: %+v, want %+v", arguments, got, want)
		}
	}
	if text := commands.must("help", "scopes"); !strings.Contains(text, scopesText) {
		t.Errorf("help: %s", text)
	}
}

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	installed, empty := newCommandLine(t), commandLine{t, testdb.Empty(t)}
	nowhere := commandLine{t, "postgres://nobody@127.0.0.1:1/nothing"}
	importTree(t, installed)
	tests := []struct {
		commands  commandLine
		arguments string
		code      int
		saying    string
	}{
		{installed, "log nobody", exitRefused, `thread "nobody" is unknown`},
		{installed, "log nobody --graph", exitRefused, `thread "nobody" is unknown`},
		{installed, "branches nobody", exitRefused, `thread "nobody" is unknown`},
		{installed, "export nobody", exitRefused, `thread "nobody" is unknown`},
		{installed, "show nobody", exitRefused, `thread "nobody" is unknown`},
		{installed, "show t --run r9", exitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "show t --at 0", exitUsage, "--at 0: not a seq (the first event of a thread has seq 1)"},
		{installed, "show", exitUsage, "one thread"},
		{installed, "restore nobody", exitRefused, `A thread exists once a run of it has begun`},
		{installed, "verify nobody", exitRefused, `thread "nobody" is unknown`},
		{installed, "status nobody", exitRefused, `thread "nobody" is unknown`},
		{installed, "stop nobody", exitRefused, `thread "nobody" is unknown`},
		{installed, "status t --run r9", exitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "stop t --run r9", exitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "stop", exitUsage, "one thread"},
		{installed, "restore t --run r9", exitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "export t --run r9", exitRefused, `run "r9" of thread "t" is unknown`},
		{installed, "restor t", exitUsage, "restore"},
		{installed, "restore", exitUsage, "pgagui restore --help"},
		{installed, "restore t --nope", exitUsage, "--nope"},
		{installed, "log t u", exitUsage, "one thread"},
		{installed, "import", exitUsage, "pgagui import --help"},
		{installed, "migrate", exitUsage, "up, down, status or sql"},
		{empty, "log t", exitUnavailable, "pgagui migrate up"},
		{empty, "export t", exitUnavailable, "pgagui migrate up"},
		{empty, "branches t", exitUnavailable, "pgagui migrate up"},
		{empty, "show t", exitUnavailable, "pgagui migrate up"},
		{empty, "restore t", exitUnavailable, "pgagui migrate up"},
		{empty, "compact", exitUnavailable, "pgagui migrate up"},
		{empty, "reap", exitUnavailable, "pgagui migrate up"},
		{empty, "status t", exitUnavailable, "pgagui migrate up"},
		{empty, "stop t", exitUnavailable, "pgagui migrate up"},
		{empty, "verify", exitUnavailable, "pgagui migrate up"},
		{empty, "import ../../testdata/recordings/weather-tools.ndjson", exitUnavailable, "pgagui migrate up"},
		{nowhere, "log t", exitUnavailable, "--database-url"},
		{nowhere, "migrate status", exitUnavailable, "--database-url"},
		{nowhere, "migrate up", exitUnavailable, "--database-url"},
		{commandLine{t, "nonsense"}, "log t", exitUnavailable, "--database-url"},
	}
	for _, test := range tests {
		if message := test.commands.mustFail(test.code, strings.Fields(test.arguments)...); !strings.Contains(message, test.saying) {
			t.Errorf("pgagui %s: %s, which does not say %q", test.arguments, message, test.saying)
		}
	}
}

func TestALostConnectionIsNoRefusal(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	pool := testdb.Connect(t, commands.databaseURL)
	// The first append of the import triggers it.
	_, err := pool.Exec(t.Context(), `
		create function public.hang_up() returns trigger language plpgsql as 'begin perform pg_terminate_backend(pg_backend_pid()); return new; end';
		create trigger hang_up before insert on agui.run for each row execute function public.hang_up()`)
	if err != nil {
		t.Fatal(err)
	}
	commands.mustFail(exitUnavailable, "import", writeFile(t, "chat.ndjson", answer("t", "r", 1)...))
}

func TestHelpAndVersionNeedNoDatabase(t *testing.T) {
	t.Parallel()
	commands := commandLine{t, "postgres://nobody@127.0.0.1:1/nothing"}
	if got := parse[versionResult](commands, "version"); got.Version == "" || got.Go == "" {
		t.Errorf("version: %+v", got)
	}
	if out := commands.must("version"); !strings.HasPrefix(out, "pgagui ") {
		t.Errorf("version: %s", out)
	}
	if out := commands.must("help", "exit-codes"); !strings.Contains(out, exitCodesText) {
		t.Errorf("help exit-codes: %s", out)
	}
	if out := commands.must(); !strings.Contains(out, "pgagui demo") {
		t.Errorf("without arguments: %s", out)
	}
}

// Every command has a one-line summary, a description and an example, and its help fits on a
// terminal of helpWidth columns.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	var check func(command *cobra.Command)
	check = func(command *cobra.Command) {
		for _, child := range command.Commands() {
			check(child)
		}
		path := command.CommandPath()
		isTopic := !command.Runnable()
		if command.Short == "" || strings.HasSuffix(command.Short, ".") || command.Long == "" || command.Example == "" && !isTopic {
			t.Errorf("%s: the help has no summary, description or example", path)
		}
		arguments := append(strings.Fields(path)[1:], "--help")
		if isTopic {
			arguments = []string{"help", command.Name()}
		}
		for line := range strings.Lines(commandLine{t: t}.must(arguments...)) {
			if columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > helpWidth {
				t.Errorf("%s: a line of the help has %d columns, want %d at most: %s", path, columns, helpWidth, line)
			}
		}
	}
	check((&program{}).rootCommand())
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.00 kB", 25_440: "25.4 kB", 999_400: "999 kB", 1_000_000: "1.00 MB", 3_200_000_000_000: "3.20 TB",
	} {
		if got := bytesText(bytes); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestRepackJoinsBatches(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	if text := commands.must("repack"); !strings.HasPrefix(text, "0 runs: 0 batches joined") {
		t.Errorf("runs that ended just now: %q", text)
	}
	if text := commands.must("repack", "--older-than", "0s"); !strings.HasPrefix(text, "4 runs: ") {
		t.Errorf("all runs: %q", text)
	}
	commands.must("verify")
}

// field returns the value of a name in a table of names and values.
func field(t *testing.T, table, name string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if value, isIt := strings.CutPrefix(line, name+"  "); isIt {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestStatusSaysHowARunIs(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	leaveRun(t, commands, "t", "open")

	text := commands.must("status", "t")
	for name, want := range map[string]string{"run": "open", "status": "in progress", "seq": "14–15", "ended": "", "stop requested": "", "cut off": ""} {
		if got := field(t, text, name); got != want {
			t.Errorf("%s is %q, want %q, in\n%s", name, got, want, text)
		}
	}
	if alive := field(t, text, "last sign of life"); !strings.HasSuffix(alive, " ago)") {
		t.Errorf("last sign of life: %q", alive)
	}
	if got := parse[pgagui.RunStatus](commands, "status", "t"); got.RunID != "open" || got.Status != pgagui.Running || got.LastSeq != 15 || got.Stale {
		t.Errorf("JSON: %+v", got)
	}
	text = commands.must("status", "t", "--run", "r2")
	if field(t, text, "status") != "finished" || field(t, text, "seq") != "3–6" || field(t, text, "ended") == "" || field(t, text, "last sign of life") != "" {
		t.Errorf("a run that has ended:\n%s", text)
	}

	setLease(t, commands, "0")
	if got := field(t, commands.must("status", "t"), "status"); !strings.HasPrefix(got, "in progress, but stale") {
		t.Errorf("beyond the lease: %q", got)
	}
	commands.must("reap")
	text = commands.must("status", "t")
	if field(t, text, "status") != "failed" || field(t, text, "cut off") != "no sign of life for 00:00:00" || field(t, text, "seq") != "14–17" {
		t.Errorf("after reap:\n%s", text)
	}
}

func TestStopRequestsThatRunsStop(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	for _, arguments := range [][]string{{"stop", "t"}, {"stop", "t", "--run", "r2"}} {
		if text := commands.must(arguments...); text != "nothing to stop: no run is in progress\n" {
			t.Errorf("pgagui %s: %q", arguments, text)
		}
	}
	store := pgagui.New(testdb.Connect(t, commands.databaseURL), nil)
	for _, run := range []string{"a", "b", "c"} {
		event := json.RawMessage(startedFrom("t", run, "r3"))
		if _, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: run}, []json.RawMessage{event}, pgagui.AppendOptions{Parallel: true}); err != nil {
			t.Fatal(err)
		}
	}
	if text := commands.must("stop", "t", "--run", "b", "--reason", "out of\nbudget"); text != "requested a stop of 1 run\n" {
		t.Errorf("one run: %q", text)
	}
	if got := parse[stopResult](commands, "stop", "t", "--reason", "maintenance"); got.Runs != 3 {
		t.Errorf("all runs: %+v", got)
	}
	for run, reason := range map[string]string{"a": "maintenance", "b": "out of budget", "c": "maintenance"} {
		text := commands.must("status", "t", "--run", run)
		if request := field(t, text, "stop requested"); !strings.HasSuffix(request, " ago): "+reason) || field(t, text, "status") != "in progress" {
			t.Errorf("run %s:\n%s", run, text)
		}
	}
}

func TestEraseNeedsConfirmation(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	for _, arguments := range [][]string{
		{"erase"}, {"erase", "t", "--older-than", "1d", "--yes"}, {"erase", "--older-than", "soon", "--yes"}, {"erase", "t", "--limit", "1", "--yes"},
	} {
		commands.mustFail(exitUsage, arguments...)
	}
	if result := commands.run("erase", "t"); result.code != exitUsage || !strings.Contains(result.messages, "use --yes") {
		t.Errorf("without --yes: %+v", result)
	}
	if text := commands.must("erase", "t", "--dry-run"); !strings.Contains(text, "would erase thread t, 13 events") {
		t.Errorf("dry run: %q", text)
	}
	if text := commands.must("erase", "--older-than", "7d", "--yes", "--all-scopes"); !strings.Contains(text, "erased 0 threads") {
		t.Errorf("nothing is that old: %q", text)
	}
	if result := commands.run("erase", "t", "unknown", "--yes", "--reason", "retention"); result.code != exitRefused ||
		result.out != "erased thread t, 13 events\n" || !strings.Contains(result.messages, `thread "unknown" is unknown. Is it in another scope (--scope NAME)?`) {
		t.Errorf("one of two: %+v", result)
	}
	file := writeFile(t, "new.ndjson", started("t", "r9"), finished)
	if text := commands.mustFail(exitInput, "import", file); !strings.Contains(text, "was erased") {
		t.Errorf("import of an erased thread: %q", text)
	}
	if text := commands.must("allow", "t"); text != "thread t accepts appends again\n" {
		t.Errorf("allow: %q", text)
	}
	commands.must("import", file)
}

func TestStatsShowsWhatWaits(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	before := parse[jobs.Stats](commands, "stats")
	if before.Threads != 1 || before.Runs != 4 || before.FinishedRuns != 3 || before.FailedRuns != 1 || before.Events != 13 ||
		before.RunsToCompact != 4 || before.CompactionLag <= 0 || before.RunsToRepack != 0 {
		t.Errorf("before compaction: %+v", before)
	}
	commands.must("compact")
	after := parse[jobs.Stats](commands, "stats")
	if after.RunsToCompact != 0 || after.CompactionLag != 0 || after.CompactedLogBytes == 0 || after.Events != 13 {
		t.Errorf("after compaction: %+v", after)
	}
	if text := commands.must("stats"); !strings.Contains(text, "4: 3 finished, 1 failed, 0 in progress") {
		t.Errorf("stats:\n%s", text)
	}
}

func TestDatabaseURLFile(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	file := writeFile(t, "address", commands.databaseURL)
	command := func(arguments ...string) (int, string) {
		var out, messages bytes.Buffer
		code := run(t.Context(), arguments, strings.NewReader(""), &out, &messages)
		return code, out.String() + messages.String()
	}
	if code, text := command("stats", "--database-url-file", file); code != exitOK {
		t.Errorf("exit code %d: %s", code, text)
	}
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no file":         {[]string{"stats", "--database-url-file", file + "x"}, "no such file"},
		"an empty one":    {[]string{"stats", "--database-url-file", os.DevNull}, "only line"},
		"two lines":       {[]string{"stats", "--database-url-file", writeFile(t, "two", "postgres://u:s3cret@h", "x")}, "only line"},
		"two addresses":   {[]string{"stats", "--database-url-file", file, "--database-url", "x"}, "none of the others can be"},
		"no address":      {[]string{"stats", "--database-url-file", writeFile(t, "bad", "postgres://u:s3cret@h:port/db")}, "cannot be read: invalid port"},
		"what is no flag": {[]string{"stats", "--database-url-file"}, "flag needs an argument"},
	} {
		if code, text := command(test.arguments...); code == exitOK || !strings.Contains(text, test.want) || strings.Contains(text, "s3cret") {
			t.Errorf("%s: exit code %d: %s", name, code, text)
		}
	}
}

// An address that cannot be parsed may contain a password.
func TestMessagesHoldNoPassword(t *testing.T) {
	for _, address := range []string{
		"host=127.0.0.1 port=1 password = s3cret bogus", "postgres://u:s3cret%zz@h/db", "postgres://u:33/s3cret@h/db", "postgres://u:s3cret@127.0.0.1:1/db", "user=u password='s3cret",
	} {
		for _, line := range []string{"stats", "migrate up", "migrate status", "migrate down --yes", "doctor", "demo", "__complete show t", "worker --compact @hourly", "stats --help",
			"serve --insecure", "serve --insecure --check", "serve --help"} {
			var out, messages bytes.Buffer
			t.Setenv("DATABASE_URL", address)
			if run(t.Context(), strings.Fields(line), strings.NewReader(""), &out, &messages); strings.Contains(out.String()+messages.String(), "s3cret") {
				t.Errorf("pgagui %s, %s: %s%s", line, address, &out, &messages)
			}
		}
		var out, messages bytes.Buffer
		t.Setenv("PGAGUI_LIVE_DATABASE_URL", address)
		line := []string{"serve", "--insecure", "--check", "--database-url", "postgres://127.0.0.1:1/db"}
		if run(t.Context(), line, strings.NewReader(""), &out, &messages); strings.Contains(out.String()+messages.String(), "s3cret") {
			t.Errorf("the second address %s: %s%s", address, &out, &messages)
		}
	}
}
