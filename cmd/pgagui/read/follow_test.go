package read

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// follower is a follow command that runs in this process.
type follower struct {
	lines *bufio.Scanner
	stop  context.CancelFunc
	ended chan clitest.Outcome
}

func follow(c clitest.CommandLine, arguments ...string) *follower {
	ctx, stop := context.WithCancel(c.T.Context())
	reader, writer := io.Pipe()
	f := &follower{bufio.NewScanner(reader), stop, make(chan clitest.Outcome, 1)}
	c.T.Cleanup(func() {
		stop()
		reader.Close()
	})
	go func() {
		var messages bytes.Buffer
		code := clitest.Run(ctx, append(append([]string{"events", "--follow"}, arguments...), "--database-url", c.DatabaseURL), strings.NewReader(""), writer, &messages)
		writer.Close()
		f.ended <- clitest.Outcome{Code: code, Messages: messages.String()}
	}()
	return f
}

// next waits for a line.
func (f *follower) next(t *testing.T) string {
	t.Helper()
	if !f.lines.Scan() {
		t.Fatalf("follow ended: %+v", <-f.ended)
	}
	return f.lines.Text()
}

// appending returns a function that appends events to a run of the thread t.
func appending(t *testing.T, commands clitest.CommandLine) func(runID string, events ...string) {
	store := pgagui.New(testdb.Connect(t, commands.DatabaseURL), nil)
	return func(runID string, events ...string) {
		t.Helper()
		var raw []json.RawMessage
		for _, event := range events {
			raw = append(raw, json.RawMessage(event))
		}
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: runID}, raw, pgagui.AppendOptions{}))(t)
	}
}

func TestFollowPrintsEventsAsTheyComeUntilTheRunEnds(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	appendTo := appending(t, commands)
	odd := `{ "type":"CUSTOM",  "value" : 1.50e0, "name":"\u00e9" }`
	appendTo("r", clitest.Started("t", "r"), odd)
	following := follow(commands, "t")
	for _, want := range []string{clitest.Started("t", "r"), odd} {
		if line := following.next(t); line != want {
			t.Errorf("%s, want %s", line, want)
		}
	}
	for n := range 3 { // follow prints each event before the next one exists
		appendTo("r", clitest.Token(n))
		if line := following.next(t); line != clitest.Token(n) {
			t.Errorf("%s, want %s", line, clitest.Token(n))
		}
	}
	appendTo("r", clitest.Finished)
	if line := following.next(t); line != clitest.Finished {
		t.Errorf("%s, want the end", line)
	}
	if result := <-following.ended; result.Code != cli.ExitOK || result.Messages != "" {
		t.Errorf("%+v", result)
	}
	if got, want := commands.Must("events", "--follow", "t"), commands.Must("events", "t"); got != want {
		t.Errorf("a thread without a run in progress:\n%s\nwant\n%s", got, want)
	}
}

func TestFollowWithJSONKeepsThePayloadsBytes(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	odd := `{ "type":"CUSTOM",  "value" : 1.50e0, "name":"<\u00e9>" }`
	appendTo := appending(t, commands)
	appendTo("r", clitest.Started("t", "r"), odd, clitest.Finished)
	lines := strings.Split(strings.TrimSuffix(commands.Must("events", "--follow", "t", "--after", "1", "--json"), "\n"), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], `,"payload":`+odd+"}") {
		t.Fatalf("%q", lines)
	}
	var event struct {
		Seq         int64
		RunID, Type string
		RecordedAt  time.Time
	}
	if err := json.Unmarshal([]byte(lines[0]), &event); err != nil || event.Seq != 2 || event.RunID != "r" || event.Type != "CUSTOM" || event.RecordedAt.IsZero() {
		t.Errorf("%+v %v of %s", event, err, lines[0])
	}
}

func TestFollowStaysForARunUntilCtrlC(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	appendTo := appending(t, commands)
	following := follow(commands, "t", "--stay") // there is no such thread yet
	for _, runID := range []string{"r1", "r2"} {
		appendTo(runID, clitest.Started("t", runID), clitest.Finished)
		if first, second := following.next(t), following.next(t); first != clitest.Started("t", runID) || second != clitest.Finished {
			t.Errorf("%s: %s, %s", runID, first, second)
		}
	}
	following.stop()
	if result := <-following.ended; result.Code != cli.ExitInterrupted || result.Messages != "pgagui: interrupted\n" {
		t.Errorf("%+v", result)
	}

	following, alone := follow(commands, "t", "--stay", "--run", "r3"), follow(commands, "t", "--stay", "--run", "r3", "--lineage=false")
	appendTo("r3", clitest.Started("t", "r3"), clitest.Finished)
	for _, want := range []string{clitest.Started("t", "r1"), clitest.Finished, clitest.Started("t", "r2"), clitest.Finished, clitest.Started("t", "r3"), clitest.Finished} {
		if line := following.next(t); line != want {
			t.Errorf("%s, want %s", line, want)
		}
	}
	for _, want := range []string{clitest.Started("t", "r3"), clitest.Finished} {
		if line := alone.next(t); line != want {
			t.Errorf("alone: %s, want %s", line, want)
		}
	}
	for _, following := range []*follower{following, alone} {
		if result := <-following.ended; result.Code != cli.ExitOK {
			t.Errorf("the run has ended: %+v", result)
		}
	}
}

func TestFollowBeginsWithAShortHistory(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	appendTo := appending(t, commands)
	appendTo("r", clitest.Answer("t", "r", 50)...)
	for shape, lines := range map[string]int{"stream": 5, "snapshot": 4} {
		got := strings.Split(strings.TrimSuffix(commands.Must("events", "--follow", "t", "--compact", shape, "--json"), "\n"), "\n")
		if len(got) != lines || strings.Contains(got[0], `"seq"`) || !strings.HasPrefix(got[lines-1], `{"seq":54,`) {
			t.Errorf("%s: %d lines:\n%s", shape, len(got), strings.Join(got, "\n"))
		}
	}
}

func TestFollowEndsWhenItsOutputIsClosed(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	appendTo := appending(t, commands)
	appendTo("r", clitest.Started("t", "r"))
	reader, writer, err := os.Pipe()
	must.Do(t, err)
	following := commands.Program(os.Args[0], "events", "--follow", "t", "--stay")
	following.Stdout = writer
	must.Do(t, following.Start())
	writer.Close()
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || line != clitest.Started("t", "r")+"\n" {
		t.Errorf("%q %v", line, err)
	}
	reader.Close()
	appendTo("r", clitest.Token(1))
	var exit *exec.ExitError
	if err := following.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("it ended with %v, want SIGPIPE, as tail does", err)
	}
}

func TestFollowFailures(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	appendTo := appending(t, commands)
	appendTo("r", clitest.Started("t", "r"), "{\"type\":\"CUSTOM\",\n\"value\":1}")
	for _, test := range []struct {
		commands  clitest.CommandLine
		arguments string
		code      int
		saying    string
	}{
		{commands, "", cli.ExitUsage, "expected one thread id"},
		{commands, "t --after -1", cli.ExitUsage, "--after must be 0 or more"},
		{commands, "t --compact short", cli.ExitUsage, "--compact must be"},
		{commands, "t --compact stream --after 1", cli.ExitUsage, "exclude each other"},
		{commands, "nobody", cli.ExitRefused, `thread "nobody" is unknown`},
		{commands, "t --run r9", cli.ExitRefused, `run "r9" of thread "t" is unknown`},
		{commands, "t --after 9", cli.ExitRefused, "its log was rewound"},
		{commands, "t", cli.ExitUsage, "event 2 of thread \"t\" (run \"r\") contains a line end, so it does not fit on one line: use --null (see: pgagui events --help)"},
		{clitest.On(t, testdb.Empty(t)), "t", cli.ExitUnavailable, "pgagui migrate up"},
		{clitest.On(t, "postgres://nobody@127.0.0.1:1/nothing"), "t", cli.ExitUnavailable, "--database-url"},
	} {
		if message := test.commands.MustFail(test.code, append([]string{"events", "--follow"}, strings.Fields(test.arguments)...)...); !strings.Contains(message, test.saying) {
			t.Errorf("pgagui events --follow %s: %s, which does not say %q", test.arguments, message, test.saying)
		}
	}
	appendTo("r", clitest.Finished)
	if out := commands.Must("events", "--follow", "t", "--null"); strings.Count(out, "\x00") != 3 {
		t.Errorf("with NUL bytes: %q", out)
	}
}
