package read

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// export, history and follow read the lineage of a run, unless --lineage=false is set.
func TestReadingARunReadsItsLineage(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
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
		exported := strings.Count(commands.Must(append([]string{"events", "t"}, strings.Fields(arguments)...)...), "\n")
		if events := len(strings.Fields(want)); exported != events {
			t.Errorf("export %s: %d events, want %d", arguments, exported, events)
		}
		followed := strings.Count(commands.Must(append([]string{"events", "--follow", "t"}, strings.Fields(arguments)...)...), "\n")
		if events := len(strings.Fields(want)); followed != events {
			t.Errorf("follow %s: %d events, want %d", arguments, followed, events)
		}
	}
	if lines := strings.Split(commands.Must("events", "t", "--run", "r3", "--lineage=false", "--compact", "snapshot"), "\n"); len(lines) != 4 || !strings.Contains(lines[0], `"r3"`) {
		t.Errorf("compacted, the run alone: %s", lines)
	}
	commands.MustFail(cli.ExitUsage, "events", "--follow", "t", "--compact", "stream", "--lineage=false")
}

// A thread that is exported in either compact shape and imported elsewhere restores like the
// original, at every run.
func TestCompactedExportMeansTheSame(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	const thread = "trip-to-lisbon"
	commands.Must("import", "../../../testdata/recordings/"+thread+".ndjson")
	raw := commands.Must("events", thread)
	for _, shape := range []string{"stream", "snapshot"} {
		compacted := commands.Must("events", thread, "--compact", shape)
		// A snapshot of each run repeats the whole conversation, so only the other shape is
		// smaller.
		if shape == "stream" && len(compacted) > len(raw)*2/3 {
			t.Errorf("%s: %d of %d bytes are left", shape, len(compacted), len(raw))
		}
		file := clitest.WriteFile(t, shape+".ndjson", strings.TrimSuffix(compacted, "\n"))
		commands.Must("import", file, "--scope", shape)
		for run := 1; run <= 7; run++ {
			runID := fmt.Sprint("run-", run)
			original := clitest.Parse[pgagui.Restored](commands, "show", thread, "--document", "--run", runID)
			copied := clitest.Parse[pgagui.Restored](commands, "show", thread, "--document", "--run", runID, "--scope", shape)
			copied.Seq = original.Seq // the copy has fewer events
			if got, want := fmt.Sprint(canonical(t, copied)), fmt.Sprint(canonical(t, original)); got != want {
				t.Errorf("%s, %s: restores as\n%s\nwant\n%s", shape, runID, got, want)
			}
		}
	}
	commands.MustFail(cli.ExitUsage, "events", thread, "--compact", "small")
}

// A run that began again behind its end stays open, although it counts as ended. In a compact export another run follows it, so it
// is closed there.
func TestCompactedExportClosesRunsThatOthersFollow(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	store := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil)
	started := func(run string) string { return fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"t","runId":%q}`, run) }
	finished := func(run string) string { return fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":"t","runId":%q}`, run) }
	for thread, again := range map[string][]string{
		"bare":    {started("r1")},
		"message": {started("r1"), `{"type":"TEXT_MESSAGE_START","messageId":"b","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"b","delta":"x"}`},
		"call":    {started("r1"), `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look"}`},
		"chunk":   {started("r1"), `{"type":"TEXT_MESSAGE_CHUNK","messageId":"b","role":"assistant","delta":"x"}`},
		"step":    {started("r1"), `{"type":"STEP_STARTED","stepName":"s"}`},
	} {
		seq := int64(0)
		for _, call := range []struct {
			run    string
			events []string
		}{{"r1", []string{started("r1"), finished("r1")}}, {"r1", again}, {"r2", []string{started("r2"), finished("r2")}}} {
			var events []json.RawMessage
			for _, event := range call.events {
				events = append(events, json.RawMessage(event))
			}
			options := pgagui.AppendOptions{AfterSeq: new(seq)}
			if call.run == "r2" {
				options.AfterSeq = nil
			}
			var err error
			if seq, err = store.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: call.run}, events, options); err != nil {
				t.Fatal(err)
			}
		}
		for _, shape := range []string{"stream", "snapshot"} {
			var events []json.RawMessage
			for line := range strings.Lines(commands.Must("events", thread, "--compact", shape)) {
				events = append(events, json.RawMessage(strings.TrimSpace(line)))
			}
			if repaired := compaction.RepairEvents(events, nil); len(repaired) != len(events) {
				t.Errorf("%s, %s: the client refuses\n%s\nwhich lacks what is in\n%s", thread, shape, events, repaired)
			}
		}
	}
}

// A run that begins with another event than RUN_STARTED has its effect behind one that has failed, too.
func TestCompactedExportOfARunBehindAFailedOne(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	store := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil)
	for i, events := range []string{
		`[{"type":"RUN_STARTED","threadId":"t","runId":"0"},{"type":"RUN_ERROR","message":"x"},{"type":"STATE_SNAPSHOT","snapshot":{"late":1}}]`,
		`[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hi"},{"type":"RUN_FINISHED","threadId":"t","runId":"1"}]`,
	} {
		var list []json.RawMessage
		must.Do(t, json.Unmarshal([]byte(events), &list))
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: fmt.Sprint(i)}, list, pgagui.AppendOptions{AfterSeq: new(int64)}))(t)
	}
	for _, shape := range []string{"stream", "snapshot"} {
		fold := compaction.New()
		for line := range strings.Lines(commands.Must("events", "t", "--compact", shape)) {
			fold.Apply([]byte(line))
		}
		if messages := fold.Messages(); len(messages) != 1 || string(fold.State()) != "{}" {
			t.Errorf("%s: %d messages, state %s", shape, len(messages), fold.State())
		}
	}
}

func canonical(t *testing.T, value any) (decoded any) {
	t.Helper()
	text := must.Have(json.Marshal(value))(t)
	must.Do(t, json.Unmarshal(text, &decoded))
	return decoded
}

// What --all prints is imported into another scope, and prints the same there.
func TestExportOfAllThreads(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	commands.Must("import", "../../../testdata/recordings/trip-to-lisbon.ndjson")
	commands.Must("threads", "set", "empty", "--create", "--title", "no runs yet")
	commands.Must("threads", "set", "t", "--archived")
	export := func(scope string, more ...string) (events, requests, messages string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "requests.ndjson")
		result := commands.Run(append([]string{"events", "--all", "--requests", file}, more...)...)
		text, err := os.ReadFile(file)
		if result.Code != cli.ExitOK || err != nil {
			t.Fatalf("scope %q: %+v, %v", scope, result, err)
		}
		return result.Out, string(text), result.Messages
	}
	events, requests, messages := export("")
	if want := commands.Must("events", "t") + commands.Must("events", "trip-to-lisbon"); events != want || messages != "" {
		t.Errorf("got %d bytes, want %d; %s", len(events), len(want), messages)
	}
	commands.Must("import", "--scope", "copy", clitest.WriteFile(t, "all.ndjson", strings.TrimSuffix(events, "\n")),
		"--requests", clitest.WriteFile(t, "requests.ndjson", strings.TrimSuffix(requests, "\n")))
	if again, requestsAgain, messages := export("copy", "--scope", "copy"); again != events || requestsAgain != requests || messages != "" {
		t.Errorf("the copy: %d bytes and %d of requests, want %d and %d; %s", len(again), len(requestsAgain), len(events), len(requests), messages)
	}
	if _, _, messages := export(""); messages != "scope \"\": 2 threads of other scopes are not exported\n" {
		t.Errorf("beside another scope: %q", messages)
	}
	compacted := commands.Must("events", "--all", "--scope", "copy", "--compact", "stream")
	if want := commands.Must("events", "t", "--compact", "stream") + commands.Must("events", "trip-to-lisbon", "--compact", "stream"); compacted != want {
		t.Errorf("compacted: %d bytes, want %d", len(compacted), len(want))
	}
	for _, arguments := range []string{"events --all t", "events --all --run r1", "events --all --lineage=false", "events"} {
		commands.MustFail(cli.ExitUsage, strings.Fields(arguments)...)
	}
}
