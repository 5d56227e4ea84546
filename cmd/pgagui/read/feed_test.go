package read_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// A feed of events is the log of each thread, also over the end and the death of its process.
func TestFeedOfEvents(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	events := []string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r1"}`, `{"type":"CUSTOM","name":"é","value": 1}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r1"}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r2"}`, `{"type":"RUN_ERROR","message":"no model"}`,
	}
	add := func(from, to int) {
		commands.Must("import", clitest.WriteFile(t, fmt.Sprint(from, ".ndjson"), events[from:to]...))
	}
	add(0, 3)
	type line struct {
		ThreadID string
		Seq      int
		RunID    string
		Payload  json.RawMessage
	}
	printed := map[int]string{}
	note := func(text string) {
		for scanner := bufio.NewScanner(strings.NewReader(text)); scanner.Scan(); {
			var read line
			must.Do(t, json.Unmarshal(scanner.Bytes(), &read))
			if !strings.HasSuffix(scanner.Text(), `,"payload":`+events[read.Seq-1]+"}") || read.ThreadID != "t" || printed[read.Seq] != "" {
				t.Errorf("seq %d: %s; before: %q", read.Seq, scanner.Text(), printed[read.Seq])
			}
			printed[read.Seq] = scanner.Text()
		}
	}
	feed := []string{"feed", "--consumer", "copy", "--events"}
	wait.For(t, "the first run", func() bool { note(commands.Must(feed...)); return len(printed) == 3 })
	follower := commands.Program(os.Args[0], append(feed, "--follow", "--every", "10ms")...)
	out, err := follower.StdoutPipe()
	if err == nil {
		err = follower.Start()
	}
	must.Do(t, err)
	add(3, 5)
	lines := bufio.NewScanner(out)
	for len(printed) < 5 && lines.Scan() {
		note(lines.Text())
	}
	must.Do(t, follower.Process.Kill())
	_ = follower.Wait() // killed
	if len(printed) != 5 {
		t.Errorf("%d of 5 events", len(printed))
	}

	// As runs, and without a consumer.
	var runs []string
	for _, change := range clitest.Lines[struct{ RunID, Status string }](t, commands.Must("feed")) {
		runs = append(runs, change.RunID+" "+change.Status)
	}
	if text := strings.Join(runs, ", "); !strings.HasPrefix(text, "r1 finished, r2 failed") {
		t.Errorf("runs: %s", text)
	}

	if text := commands.Must("feed", "--consumer", "runs"); strings.Count(text, "\n") < 2 {
		t.Errorf("runs of a consumer: %s", text)
	}
	listed := commands.Must("feed", "consumers")
	for _, part := range []string{"CONSUMER  SCOPE  BEHIND", "copy      \"\"", "runs      \"\""} {
		if !strings.Contains(listed, part) {
			t.Errorf("no %q in\n%s", part, listed)
		}
	}
	commands.Must("feed", "consumers", "move", "copy")
	clear(printed)
	if note(commands.Must(feed...)); len(printed) != 5 {
		t.Errorf("from the beginning: %d of 5 events", len(printed))
	}
	commands.Must("feed", "consumers", "rm", "copy")
	must.Have(testdb.Connect(t, commands.DatabaseURL).Exec(t.Context(), `select agui.append('lines', 'r', e'[{"type":\n"RUN_STARTED"}]')`))(t)
	if text := commands.MustFail(cli.ExitUsage, feed...); !strings.Contains(text, `event 1 of thread "lines" (run "r") contains a line end, so it does not fit on one line: use --null`) {
		t.Errorf("an event with a line end: %s", text)
	}
	if text := commands.Must(append(feed, "--null")...); !strings.Contains(text, "\"payload\":{\"type\":\n\"RUN_STARTED\"}}\x00") {
		t.Errorf("with --null: %q", text)
	}
	commands.Must("feed", "consumers", "rm", "copy")
	if text := commands.MustFail(cli.ExitRefused, "feed", "consumers", "rm", "copy"); !strings.Contains(text, `there is no consumer "copy" here`) {
		t.Errorf("%s", text)
	}
	for _, wrong := range [][]string{{"feed", "--events"}, {"feed", "--consumer", "c", "--after", "x"}, {"feed", "--every", "0s"}, {"feed", "consumers", "rm"}} {
		commands.MustFail(cli.ExitUsage, wrong...)
	}
}
