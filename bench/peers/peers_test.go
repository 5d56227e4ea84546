package peers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// start skips the test where Node or the packages are not installed.
func start(t *testing.T) *Process {
	t.Helper()
	p, err := Start(context.Background(), ".")
	if errors.Is(err, ErrNotInstalled) {
		testneeds.Skip(t, testneeds.Node, "%v", err)
	}
	must.Do(t, err)
	t.Cleanup(func() {
		must.Report(t, p.Close())
	})
	return p
}

// answer has the members of all answers except the times.
type answer struct {
	Runs, Events, Compacted, Messages, Checkpoints int
	Bytes                                          float64
}

func do(t *testing.T, p *Process, command map[string]any) (answer answer) {
	t.Helper()
	must.Do(t, p.Do(t.Context(), command, &answer))
	return answer
}

// conversation has two runs and seven messages. LangGraph stores six, because there reasoning is
// part of an answer. Only the first run changes the state.
const conversation = `{"threadId":"t","runId":"r1","events":[` +
	`{"type":"RUN_STARTED","threadId":"t","runId":"r1","input":{"messages":[{"id":"u1","role":"user","content":"What is the weather?"}]}},` +
	`{"type":"STATE_SNAPSHOT","snapshot":{"asked":0}},` +
	`{"type":"REASONING_MESSAGE_START","messageId":"a1","role":"reasoning"},` +
	`{"type":"REASONING_MESSAGE_CONTENT","messageId":"a1","delta":"Look it up."},` +
	`{"type":"REASONING_MESSAGE_END","messageId":"a1"},` +
	`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"weather"},` +
	`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"in\":"},` +
	`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"\"Oslo\"}"},` +
	`{"type":"TOOL_CALL_END","toolCallId":"c1"},` +
	`{"type":"TOOL_CALL_RESULT","messageId":"m1","toolCallId":"c1","content":"rain","role":"tool"},` +
	`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/asked","value":1}]},` +
	`{"type":"TEXT_MESSAGE_START","messageId":"m2","role":"assistant"},` +
	`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"It "},` +
	`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"rains."},` +
	`{"type":"TEXT_MESSAGE_END","messageId":"m2"},` +
	`{"type":"RUN_FINISHED","threadId":"t","runId":"r1"}]}` + "\n" +
	`{"threadId":"t","runId":"r2","parentRunId":"r1","events":[` +
	`{"type":"RUN_STARTED","threadId":"t","runId":"r2","parentRunId":"r1","input":{"messages":[{"id":"u2","role":"user","content":"Thanks"}]}},` +
	`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m3","role":"assistant","delta":"You are "},` +
	`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m3","delta":"welcome"},` +
	`{"type":"RUN_FINISHED","threadId":"t","runId":"r2"}]}` + "\n"

const conversationEvents = 20

func load(t *testing.T, p *Process) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "conversation.ndjson")
	testfile.Write(t, file, []byte(conversation))
	if loaded := do(t, p, map[string]any{"do": "load", "file": file}); loaded != (answer{Runs: 2, Events: conversationEvents}) {
		t.Fatalf("loaded %+v", loaded)
	}
	return file
}

func TestClientCompactsAndReplaysRepeatedly(t *testing.T) {
	t.Parallel()
	p := start(t)
	file := load(t, p)
	for range 2 {
		// Two deltas of the call, two of the text, and snapshot and delta of the state each become
		// one event. The client does not compact chunks.
		want := answer{Events: conversationEvents, Compacted: conversationEvents - 3}
		for _, thread := range []bool{false, true} {
			if got := do(t, p, map[string]any{"do": "client.compactEvents", "file": file, "thread": thread}); got != want {
				t.Errorf("compactEvents, thread %v: %+v, want %+v", thread, got, want)
			}
		}
		want = answer{Events: conversationEvents, Messages: 7}
		if got := do(t, p, map[string]any{"do": "client.replay", "file": file}); got != want {
			t.Errorf("replay: %+v, want %+v", got, want)
		}
	}
}

func TestLangGraphStoresTheConversation(t *testing.T) {
	t.Parallel()
	p := start(t)
	file, database := load(t, p), testdb.Empty(t)
	pool := testdb.Connect(t, database)
	const (
		messages = 6
		// Per run: one for the input, one when it is in the channels; and one after each answer,
		// three and one.
		checkpoints = 2 + 2 + 3 + 1
	)
	for _, test := range []struct {
		name   string
		deltas bool
		// messageLists counts the stored versions of the list of messages, inTuple the messages in
		// the latest checkpoint.
		messageLists, inTuple int
	}{
		{"lists", false, 4 + 2, messages},
		{"deltas", true, 0, 0},
	} {
		loaded := do(t, p, map[string]any{"do": "langgraph.load", "file": file, "url": database, "deltas": test.deltas})
		if loaded.Bytes < 8192 {
			t.Errorf("%s: it takes %v bytes", test.name, loaded.Bytes)
		}
		loaded.Bytes = 0
		if want := (answer{Events: conversationEvents, Messages: messages, Checkpoints: checkpoints}); loaded != want {
			t.Errorf("%s: loaded %+v, want %+v", test.name, loaded, want)
		}
		var lists, states int
		if err := pool.QueryRow(t.Context(), `
			select count(*) filter (where channel = 'messages' and blob is not null), count(*) filter (where channel = 'state')
			from bench_langgraph.checkpoint_blobs`).Scan(&lists, &states); err != nil {
			t.Fatal(err)
		}
		if lists != test.messageLists || states != 1 {
			t.Errorf("%s: %d lists of messages and %d states are stored, want %d and 1", test.name, lists, states, test.messageLists)
		}
		for command, want := range map[string]int{"langgraph.getTuple": test.inTuple, "langgraph.getState": messages} {
			var read struct {
				Seconds  []float64
				Messages int
			}
			must.Do(t, p.Do(t.Context(), map[string]any{"do": command, "file": file, "url": database, "times": 3}, &read))
			if read.Messages != want || len(read.Seconds) != 3 {
				t.Errorf("%s: %s: %+v, want %d messages and 3 times", test.name, command, read, want)
			}
		}
	}

	var text string
	if err := pool.QueryRow(t.Context(), `
		select string_agg(convert_from(blob, 'UTF8'), '' order by checkpoint_id, task_id, idx)
		from bench_langgraph.checkpoint_writes where channel = 'messages'`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"What is the weather?", "Look it up.", `"args":{"in":"Oslo"}`, "rain", "It rains.", "Thanks", "You are welcome"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not stored", part)
		}
	}
}

func TestErrorsSayWhatToDoAndThePeersContinue(t *testing.T) {
	t.Parallel()
	p := start(t)
	file := load(t, p)
	for _, test := range []struct {
		command map[string]any
		want    string
	}{
		{map[string]any{"do": "nothing"}, `unknown command "nothing" (expected load,`},
		{map[string]any{"do": "load", "file": "missing.ndjson"}, "no such file"},
		{map[string]any{"do": "client.replay", "file": "missing.ndjson"}, "missing.ndjson is not loaded"},
		{map[string]any{"do": "langgraph.getTuple", "file": file, "url": "postgres://localhost/none"}, `send {"do":"langgraph.load",…} first`},
	} {
		err := p.Do(t.Context(), test.command, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want one line with %q", test.command, err, test.want)
		}
	}
	do(t, p, map[string]any{"do": "client.replay", "file": file})
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	start(t) // skips the test without Node
	folder := t.TempDir()
	check := func(want string) {
		t.Helper()
		_, err := Start(t.Context(), folder)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
	check("it has no peers.mjs")
	modules, err := filepath.Glob("*.mjs")
	if err != nil || len(modules) == 0 {
		t.Fatal(modules, err)
	}
	for _, module := range modules {
		source, err := os.ReadFile(module)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, module), source, 0o600)
		}
		must.Do(t, err)
	}
	check("run npm ci in " + folder)
	must.Do(t, os.Mkdir(filepath.Join(folder, "node_modules"), 0o700))
	check("is not installed: run npm ci in bench/peers")
}

func TestContextEndsACommand(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("node_modules"); err != nil {
		testneeds.Skip(t, testneeds.Node, "run npm ci in bench/peers")
	}
	p := must.Have(Start(context.Background(), "."))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Do(ctx, map[string]any{"do": "versions"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context is canceled", err)
	}
	_ = p.Close() // must return; an error depends on whether the process had already ended
}
