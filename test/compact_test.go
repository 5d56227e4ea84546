package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A compactor is agui.compact_events or its twin in Go, in one shape.
type compactor struct {
	name    string
	shape   compaction.Shape
	compact func(t *testing.T, streams [][]json.RawMessage) [][]json.RawMessage
}

func compactors(pool *pgxpool.Pool) []compactor {
	var all []compactor
	for _, shape := range []compaction.Shape{compaction.StreamShape, compaction.SnapshotShape} {
		all = append(all,
			compactor{fmt.Sprintf("in SQL, shape %s", shape), shape, func(t *testing.T, streams [][]json.RawMessage) [][]json.RawMessage {
				return compactInSQL(t, pool, shape, streams)
			}},
			compactor{fmt.Sprintf("in Go, shape %s", shape), shape, func(t *testing.T, streams [][]json.RawMessage) [][]json.RawMessage {
				compacted := make([][]json.RawMessage, len(streams))
				for i, stream := range streams {
					var err error
					if compacted[i], err = compaction.CompactEvents(stream, shape, nil); err != nil {
						t.Fatal(err)
					}
				}
				return compacted
			}})
	}
	return all
}

func compactInSQL(t *testing.T, pool *pgxpool.Pool, shape compaction.Shape, streams [][]json.RawMessage) [][]json.RawMessage {
	t.Helper()
	compacted := make([][]json.RawMessage, len(streams))
	for i, stream := range streams {
		var texts []string
		if err := pool.QueryRow(context.Background(), `
			select array(
				select element.event::text
				from json_array_elements(agui.compact_events($1, $2)) with ordinality as element (event, position)
				order by element.position
			)`, json.RawMessage(compactiontest.Batch(stream)), string(shape)).Scan(&texts); err != nil {
			t.Fatalf("%v, for the stream\n%s", err, lines(stream))
		}
		compacted[i] = toMessages(texts)
	}
	return compacted
}

func toMessages(texts []string) []json.RawMessage {
	return rawEvents(texts...)
}

// Compacted events mean what the events mean, to both reducers and to the client; what is compacted twice is as it was; the events that are
// carried come through in order; and the client's verifier accepts what comes of a stream that it accepts. A stream where that fails
// is shrunk to a few events before it is shown.
func TestCompactedEventsMeanTheSame(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	reader := startOracle(t, "--verify")
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			var client *oracle
			if kind.clientReads {
				client = reader
			}
			const atOnce = 50
			problems := func(compactor compactor, streams ...[]json.RawMessage) []string {
				return compactor.problemsOf(t, client, streams, kind.options.Broken)
			}
			count := streamsOfAKind(20) // each is compacted in four ways, twice
			for _, compactor := range compactors(pool) {
				for first, failures := 0, 0; first < count && failures < 2; first += atOnce {
					streams := make([][]json.RawMessage, min(atOnce, count-first))
					for n := range streams {
						streams[n] = compactiontest.Stream((*firstSeed+uint64(first+n))<<8+uint64(i), kind.options)
					}
					for n, problem := range problems(compactor, streams...) {
						if problem == "" {
							continue
						}
						failures++
						shrunk := shrink(streams[n], func(stream []json.RawMessage) bool {
							return problems(compactor, stream)[0] != ""
						})
						one := [][]json.RawMessage{shrunk}
						t.Errorf("%s, seed %d: %s\nthe stream, shrunk to %d events:\n%s\ncompacted:\n%s", compactor.name, *firstSeed+uint64(first+n),
							problems(compactor, shrunk)[0], len(shrunk), lines(shrunk), lines(compactor.compact(t, one)[0]))
					}
				}
			}
		})
	}
}

// Repaired events are the same from SQL and from Go, mean what they meant, and lack nothing then.
func TestRepairedEvents(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	inSQL := func(t *testing.T, stream []json.RawMessage) []json.RawMessage {
		var texts []string
		if err := pool.QueryRow(context.Background(), `
			select array(
				select element.event::text
				from json_array_elements(agui_internal.repaired_events($1)) with ordinality as element (event, position)
				order by element.position
			)`, json.RawMessage(compactiontest.Batch(stream))).Scan(&texts); err != nil {
			t.Fatalf("%v, for the stream\n%s", err, lines(stream))
		}
		return toMessages(texts)
	}
	problem := func(t *testing.T, stream []json.RawMessage, written func([]json.RawMessage) []byte) string {
		want := compaction.RepairEvents(stream, nil)
		if got := inSQL(t, stream); !bytes.Equal(written(want), written(got)) {
			return fmt.Sprintf("in Go\n%s\nin SQL\n%s", lines(want), lines(got))
		} else if again := compaction.RepairEvents(want, nil); !bytes.Equal(lines(want), lines(again)) {
			return fmt.Sprintf("repaired\n%s\nand again\n%s", lines(want), lines(again))
		} else if difference := differences(foldInGo(t, want), foldInGo(t, stream)); difference != "" {
			return "it means something else: " + difference
		}
		return ""
	}
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			written := lines
			if kind.options.Unicode {
				// SQL writes an id in its usual spelling.
				written = func(events []json.RawMessage) []byte { return []byte(canonical(compactiontest.Batch(events))) }
			}
			for n := range uint64(streamsOfAKind(4)) {
				stream := compactiontest.Stream((*firstSeed+n)<<8+uint64(i), kind.options)
				if problem(t, stream, written) != "" {
					shrunk := shrink(stream, func(stream []json.RawMessage) bool { return problem(t, stream, written) != "" })
					t.Fatalf("seed %d, the stream, shrunk to %d events:\n%s\n%s", *firstSeed+n, len(shrunk), lines(shrunk), problem(t, shrunk, written))
				}
			}
		})
	}
	const (
		started  = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
		question = `{"type":"CUSTOM","name":"on_interrupt","value":"Erase it?"}`
		waiting  = `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}`
		text     = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
		piece    = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}`
	)
	for name, stream := range map[string][]string{
		"a question before the beginning, and text behind an error": {question, started, `{"type":"RUN_ERROR","message":"failed"}`, text},
		"thinking, and text of a message that a later stretch looks for": {
			text, started, `{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"x","content":{}}`, `{"type":"THINKING_TEXT_MESSAGE_START"}`, piece,
		},
		"a question behind an end":               {started, waiting, question},
		"a question behind an end of no run":     {waiting, question},
		"a question behind an end, and one more": {started, waiting, question, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			if problem := problem(t, toMessages(stream), lines); problem != "" {
				t.Error(problem)
			}
		})
	}
}

// The generator keeps its word, or the tests of what compaction makes of valid streams would show nothing.
func TestTheVerifierAcceptsGeneratedValidStreams(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	var streams [][]json.RawMessage
	for seed := range uint64(100) {
		streams = append(streams, compactiontest.Stream(seed, compactiontest.Options{}), compactiontest.Stream(seed, compactiontest.Options{Proposals: true}))
	}
	for i, given := range client.fold(t, streams...) {
		if !given.Verified {
			t.Errorf("stream %d: %s\n%s", i, given.VerifyError, lines(streams[i]))
		}
	}
}

func lines(events []json.RawMessage) []byte { return bytes.Join(rawBytes(events), []byte("\n")) }

// problems says for each stream what is wrong with its compact form, in a sentence; empty where nothing is.
func (c compactor) problems(t *testing.T, client *oracle, streams [][]json.RawMessage) []string {
	t.Helper()
	return c.problemsOf(t, client, streams, false)
}

// problemsOf is problems; where the streams break the protocol, the client's verifier must accept what they are compacted to.
func (c compactor) problemsOf(t *testing.T, client *oracle, streams [][]json.RawMessage, areBroken bool) []string {
	t.Helper()
	found := make([]string, len(streams))
	once := c.compact(t, streams)
	twice := c.compact(t, once)
	var given, compacted []meaning
	if client != nil {
		given, compacted = client.fold(t, streams...), client.fold(t, once...)
	}
	for i, stream := range streams {
		if difference := differences(foldInGo(t, once[i]), foldInGo(t, stream)); difference != "" {
			found[i] = "it means something else: " + difference
		} else if want, got := lines(once[i]), lines(twice[i]); !bytes.Equal(want, got) {
			found[i] = fmt.Sprintf("compacted twice it is\n%s", got)
		} else if want, got := carried(stream), carried(once[i]); !isCarried(want, got) {
			found[i] = fmt.Sprintf("the events to carry are\n%s\nnot\n%s", lines(got), lines(want))
		} else if client == nil || given[i].Error != "" {
			continue
		} else if compacted[i].Error != "" {
			found[i] = "the client refuses it: " + compacted[i].Error
		} else if difference := differences(compacted[i], given[i]); difference != "" {
			found[i] = "to the client it means something else: " + difference
		} else if want, got := lines(ends(stream)), lines(ends(once[i])); given[i].Verified && !bytes.Equal(want, got) {
			found[i] = fmt.Sprintf("the ends of its runs are\n%s\nnot\n%s", got, want)
		} else if (given[i].Verified || areBroken && isWhole(stream)) && !compacted[i].Verified {
			found[i] = "the client's verifier refuses it: " + compacted[i].VerifyError
		}
	}
	return found
}

// carried returns the events that compaction leaves as they are, but for the ends of runs.
func carried(stream []json.RawMessage) []json.RawMessage {
	return ofTypes(stream, "RAW", "CUSTOM", "STEP_STARTED", "STEP_FINISHED", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR",
		"REASONING_START", "REASONING_END", "NEW_IN_2027", "")
}

// ends returns the events that end runs. Of a run that the verifier refuses only the last stay.
func ends(stream []json.RawMessage) []json.RawMessage {
	return ofTypes(stream, "RUN_FINISHED", "RUN_ERROR")
}

// isWhole reports whether a stream holds the beginning of its first run, though other events may come before it.
func isWhole(stream []json.RawMessage) bool {
	life := ofTypes(stream, "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR")
	return len(life) > 0 && compaction.EventType(life[0]) == "RUN_STARTED"
}

func ofTypes(stream []json.RawMessage, types ...string) []json.RawMessage {
	return slices.DeleteFunc(slices.Clone(stream), func(event json.RawMessage) bool {
		var header struct{ Type string }
		return json.Unmarshal(event, &header) == nil && !slices.Contains(types, header.Type)
	})
}

// isCarried reports whether the events are all there, in order. Among them may be what closes things that their run has left open, and
// opens them again.
func isCarried(events, compacted []json.RawMessage) bool {
	for _, event := range compacted {
		switch {
		case len(events) > 0 && bytes.Equal(event, events[0]):
			events = events[1:]
		case len(ofTypes([]json.RawMessage{event}, "STEP_STARTED", "STEP_FINISHED", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "REASONING_START", "REASONING_END")) == 0:
			return false
		}
	}
	return len(events) == 0
}

// The example of the proposal, with the field names of protocol 1.0 in what comes out.
func TestCompactedEventsOfTheProposal(t *testing.T) {
	t.Parallel()
	events := toMessages([]string{
		`{"type":"TEXT_MESSAGE_START","messageId":"msg1","role":"user"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg1","delta":"Hello "}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg1","delta":"world"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"msg1"}`,
		`{"type":"STATE_DELTA","patch":{"op":"add","path":"/foo","value":1}}`,
		`{"type":"STATE_DELTA","patch":{"op":"replace","path":"/foo","value":2}}`,
	})
	want := map[compaction.Shape]string{
		compaction.StreamShape: `[{"type":"TEXT_MESSAGE_START","messageId":"msg1","role":"user"},{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg1","delta":"Hello world"},` +
			`{"type":"TEXT_MESSAGE_END","messageId":"msg1"},{"type":"STATE_SNAPSHOT","snapshot":{"foo":2}}]`,
		compaction.SnapshotShape: `[{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"msg1","role":"user","content":"Hello world"}]},{"type":"STATE_SNAPSHOT","snapshot":{"foo":2}}]`,
	}
	for _, compactor := range compactors(testdb.Pool(t)) {
		got := compactor.compact(t, [][]json.RawMessage{events})[0]
		if canonical(compactiontest.Batch(got)) != canonical(json.RawMessage(want[compactor.shape])) {
			t.Errorf("%s: %s, want %s", compactor.name, compactiontest.Batch(got), want[compactor.shape])
		}
	}
}

// A replay, in either shape, gives the official client what restore says, and its verifier accepts it.
func TestReplayGivesTheClientWhatRestoreSays(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	pool := testdb.Pool(t)
	for _, file := range recorded.Files(t, "..") {
		runs := readRecording(t, file)
		appendRecording(t, pgagui.New(pool, &pgagui.Config{Scope: file}), runs)
		for _, run := range runs {
			checkReplay(t, pool, client, file, run.ThreadID, run.RunID)
		}
	}

	// Runs in a state that no recording has, each as the child of the one before.
	for _, run := range []struct{ id, events string }{
		{"interrupted", `[
			{"type":"RUN_STARTED","threadId":"t","runId":"interrupted","input":{"messages":[{"id":"u","role":"user","content":"Delete it?"}]}},
			{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"PLAN","content":{"done":false}},
			{"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning"},
			{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"half \\ud83d"},
			{"type":"REASONING_MESSAGE_END","messageId":"r"},
			{"type":"STATE_DELTA","delta":[{"op":"add","path":"/n","value":1}]},
			{"type":"RUN_FINISHED","threadId":"t","runId":"interrupted","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"confirm"}]}}]`},
		{"failed", `[{"type":"RUN_STARTED","threadId":"t","runId":"failed"},{"type":"RUN_ERROR","message":"no answer","code":"timeout"}]`},
		{"in progress", `[{"type":"RUN_STARTED","threadId":"t","runId":"in progress","input":{"messages":[{"id":"u","role":"user","content":"Delete it?"}]}},
			{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"delete","delta":"{"}]`},
		{"answered", `[{"type":"RUN_STARTED","threadId":"t","runId":"answered"},
			{"type":"TOOL_CALL_RESULT","messageId":"result","toolCallId":"c","content":"gone"},
			{"type":"RUN_FINISHED","threadId":"t","runId":"answered","result":{"gone":true}}]`},
	} {
		if run.id == "answered" {
			testdb.Exec(t, pool, `select agui.append('t', 'in progress', '[{"type":"RUN_ERROR","message":"gone"}]')`)
		}
		testdb.Exec(t, pool, `select agui.append('t', $1, $2)`, run.id, json.RawMessage(run.events))
		checkReplay(t, pool, client, "", "t", run.id)
	}
}

// Replays of runs that begin with another event than RUN_STARTED, or have none, are valid, and carry the input beside the events.
func TestReplayOfRunsThatBeginOtherwise(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	pool := testdb.Pool(t)
	const (
		text   = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"},{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}`
		end    = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
		result = `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":"ok"}`
		input  = `{"messages":[{"id":"u","role":"user","content":"Hello"}],"state":{"n":1}}`
	)
	for name, run := range map[string]struct {
		events string
		input  any
	}{
		"without a beginning":                {text + "," + end, nil},
		"without a beginning, with an input": {text + "," + end, input},
		"without a beginning, ended":         {text + "," + end + `,{"type":"RUN_FINISHED","threadId":"t","runId":"r"},` + result, input},
		"only an error":                      {`{"type":"RUN_ERROR","message":"failed"}`, input},
		"a late beginning":                   {result + `,{"type":"RUN_STARTED","threadId":"t","runId":"r"},` + text + "," + end, nil},
		"a late beginning, with an input":    {result + `,{"type":"RUN_STARTED","threadId":"t","runId":"r"},` + text + "," + end, input},
		"behind another run":                 {result, nil},
	} {
		if name == "behind another run" {
			testdb.Exec(t, pool, `select agui.append('t', 'before', $1, scope => $2)`, `[{"type":"RUN_STARTED","threadId":"t","runId":"before"},
				{"type":"RUN_FINISHED","threadId":"t","runId":"before","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"ask"}]}}]`, name)
		}
		if _, err := pool.Exec(context.Background(), `select agui.append('t', 'r', $1, after_seq => 0, input => $2, scope => $3)`,
			"["+run.events+"]", run.input, name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkReplay(t, pool, client, name, "t", "r")
		var events string
		if err := pool.QueryRow(context.Background(), `select string_agg(event::text, e'\n') from agui.replay('t', 'r', shape => 'stream', scope => $1) as event`, name).
			Scan(&events); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(events, `"Hello"`) != (run.input != nil) {
			t.Errorf("%s: its replay is\n%s", name, events)
		}
	}
}

func checkReplay(t *testing.T, pool *pgxpool.Pool, client *oracle, scope, thread, run string) {
	t.Helper()
	document := testdb.Ask[json.RawMessage](t, pool, `select agui.restore($1, $2, scope => $3)`, thread, run, scope)
	var restored meaning
	must.Do(t, json.Unmarshal(document, &restored))
	for _, shape := range []string{"snapshot", "stream"} {
		events := testdb.Ask[[]string](t, pool, `select array(select event::text from agui.replay($1, $2, shape => $3, scope => $4) as event)`, thread, run, shape, scope)
		replayed := client.fold(t, toMessages(events))[0]
		if difference := differences(replayed, restored.shown()); difference != "" {
			t.Errorf("run %s of %s, replayed in shape %s: %s", run, thread, shape, difference)
		}
		if replayed.Error != "" || !replayed.Verified {
			t.Errorf("run %s of %s, replayed in shape %s, is not valid: %s%s\n%s", run, thread, shape, replayed.Error, replayed.VerifyError, lines(toMessages(events)))
		}
	}
}

// What cannot be compacted is refused with its own SQLSTATE, and with a hint that helps.
func TestCompactedEventsRefusals(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for query, want := range map[string]string{
		`select agui.compact_events('[]', 'short')`:            `unknown shape "short": use "stream" or "snapshot" (SQLSTATE UI013)`,
		`select agui.compact_events('[]', null)`:               `unknown shape null: use "stream" or "snapshot" (SQLSTATE UI013)`,
		`select agui.compact_events('{"type":"RUN_STARTED"}')`: `events is a JSON object, expected a JSON array of AG-UI events (SQLSTATE UI008)`,
		`select agui.compact_events(null)`:                     `events is null, expected a JSON array of AG-UI events (SQLSTATE UI008)`,
		`select * from agui.replay('unknown')`:                 `thread "unknown" is unknown (SQLSTATE UI001)`,
		`select agui.append('u', 'r', '[{"type":"RUN_STARTED"}]'); select * from agui.replay('u', 'r', shape => 'short')`: `unknown shape "short": use "stream" or "snapshot" (SQLSTATE UI013)`,
	} {
		_, err := pool.Exec(context.Background(), query)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

// A run's input says whose a message is. Where the events do not say, the verifier needs to be told after compaction too.
func TestAMessageOfASubagentStaysItsOwn(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	var stream []json.RawMessage
	for _, event := range []string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r1"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m","subagentRunId":"s"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m"}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r1"}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r2","input":{"messages":[{"id":"m","role":"assistant","content":"","subagentRunId":"s"}]}}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi","subagentRunId":"s"}`,
		`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"x","subagentRunId":"s"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m","subagentRunId":"s"}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r2"}`,
	} {
		stream = append(stream, json.RawMessage(event))
	}
	if given := client.fold(t, stream)[0]; !given.Verified {
		t.Fatalf("the verifier refuses the stream as it is: %s", given.VerifyError)
	}
	for _, compactor := range compactors(testdb.Pool(t)) {
		if problem := compactor.problems(t, client, [][]json.RawMessage{stream})[0]; problem != "" {
			t.Errorf("%s: %s\n%s", compactor.name, problem, lines(compactor.compact(t, [][]json.RawMessage{stream})[0]))
		}
	}
}

// What is open when a MESSAGES_SNAPSHOT comes keeps its end, also if its id is started a second time behind the snapshot.
func TestWhatIsOpenAcrossASnapshotKeepsItsEnd(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	var streams [][]json.RawMessage
	for _, kind := range []struct{ prefix, piece, fields string }{
		{"TEXT_MESSAGE", "CONTENT", `"messageId":"x"`},
		{"REASONING_MESSAGE", "CONTENT", `"messageId":"x"`},
		{"TOOL_CALL", "ARGS", `"toolCallId":"x","toolCallName":"f"`},
	} {
		start := `{"type":"` + kind.prefix + `_START",` + kind.fields + `}`
		piece := `{"type":"` + kind.prefix + `_` + kind.piece + `",` + kind.fields + `,"delta":"d"}`
		end := `{"type":"` + kind.prefix + `_END",` + kind.fields + `}`
		chunk := `{"type":"` + kind.prefix + `_CHUNK",` + kind.fields + `,"delta":"d"}`
		for _, behind := range [][]string{
			{end, start, end},
			{end, start, piece, end, start, end},
			{piece, end, chunk},
			{end, chunk, `{"type":"CUSTOM","name":"n","value":1}`, start, end},
		} {
			events := []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, start, `{"type":"MESSAGES_SNAPSHOT","messages":[]}`}
			events = append(events, behind...)
			streams = append(streams, toMessages(append(events, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`)))
		}
	}
	for i, given := range client.fold(t, streams...) {
		if !given.Verified {
			t.Fatalf("the verifier refuses the stream as it is: %s\n%s", given.VerifyError, lines(streams[i]))
		}
	}
	for _, compactor := range compactors(testdb.Pool(t)) {
		for i, problem := range compactor.problems(t, client, streams) {
			if problem != "" {
				t.Errorf("%s: %s\n%s", compactor.name, problem, lines(streams[i]))
			}
		}
	}
}

// Streams whose runs break the protocol, each in its own way, come out valid.
func TestCompactedRunsThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	const (
		started  = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
		finished = `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`
		waiting  = `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"ask"}]}}`
		failed   = `{"type":"RUN_ERROR","message":"failed"}`
		text     = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
		piece    = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi"}`
		textEnd  = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
		call     = `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`
		args     = `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`
		callEnd  = `{"type":"TOOL_CALL_END","toolCallId":"c"}`
		result   = `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":"ok"}`
		list     = `{"type":"MESSAGES_SNAPSHOT","messages":[]}`
	)
	var streams [][]json.RawMessage
	for _, events := range [][]string{
		{started, text, piece, finished, piece, textEnd, finished},
		{started, call, finished, args, callEnd, finished},
		{started, text, failed, piece, textEnd},
		{started, failed, text, piece, textEnd},
		{started, text, textEnd, finished, finished},
		{started, failed, failed},
		{started, failed, finished},
		{`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"u","role":"user","content":"a"}]}}`, text, piece,
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"messages":[{"id":"u","role":"user","content":"a"},{"id":"v","role":"user","content":"b"}]}}`,
			piece, textEnd, finished},
		{started, call, args, callEnd, waiting, result, `{"type":"RUN_STARTED","threadId":"t","runId":"r2","parentRunId":"r"}`, text, piece, textEnd,
			`{"type":"RUN_FINISHED","threadId":"t","runId":"r2"}`},
		{result, started, text, textEnd, finished},
		{started, waiting, text, piece, textEnd},
		{started, waiting, started, text, piece, started, piece, textEnd},
		{started, text, list, finished, piece, textEnd, finished},
		{started, text, piece, finished, list, piece, textEnd, finished},
		{started, call, args, finished, `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function",` +
			`"function":{"name":"g","arguments":"[]"}}]}]}`, args, callEnd},
		{started, `{"type":"STEP_STARTED","stepName":"s"}`, `{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"helper"}`,
			`{"type":"REASONING_START","messageId":"o","subagentRunId":"a"}`, `{"type":"REASONING_MESSAGE_START","messageId":"o","role":"reasoning","subagentRunId":"a"}`,
			`{"type":"STEP_STARTED","stepName":"s","subagentRunId":"a"}`, finished, `{"type":"REASONING_MESSAGE_CONTENT","messageId":"o","delta":"so","subagentRunId":"a"}`,
			`{"type":"REASONING_MESSAGE_END","messageId":"o"}`, `{"type":"REASONING_END","messageId":"o"}`, `{"type":"STEP_FINISHED","stepName":"s","subagentRunId":"a"}`,
			`{"type":"SUBAGENT_STARTED","subagentRunId":"b","name":"other","parentSubagentRunId":"a"}`, failed,
			`{"type":"SUBAGENT_FINISHED","subagentRunId":"b"}`, `{"type":"SUBAGENT_ERROR","subagentRunId":"a","message":"failed"}`, `{"type":"STEP_FINISHED","stepName":"s"}`},
		{started, `{"type":"THINKING_START"}`, `{"type":"THINKING_TEXT_MESSAGE_START"}`, `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"so"}`, finished, finished},
		{started, finished, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hi"}`},
	} {
		streams = append(streams, toMessages(events))
	}
	for i, given := range client.fold(t, streams...) {
		if given.Verified {
			t.Errorf("the verifier accepts the stream as it is:\n%s", lines(streams[i]))
		}
	}
	for _, compactor := range compactors(testdb.Pool(t)) {
		for i, problem := range compactor.problemsOf(t, client, streams, true) {
			if problem == "" && !client.fold(t, compactor.compact(t, streams[i:i+1])[0])[0].Verified {
				problem = "the verifier refuses it"
			}
			if problem != "" {
				t.Errorf("%s: %s\n%s\ncompacted\n%s", compactor.name, problem, lines(streams[i]), lines(compactor.compact(t, streams[i:i+1])[0]))
			}
		}
	}
}

// RUN_STARTED keeps those messages of its input that the lineage had not seen.
func TestCompactedInputKeepsWhatIsNew(t *testing.T) {
	t.Parallel()
	var stream []json.RawMessage
	for _, event := range []string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r1","input":{"messages":[{"id":"q1","role":"user","content":"Hello"}]}}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"a1"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"Hi"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"a1"}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r1"}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r2","input":{"tools":[],"messages":[{"id":"q1","role":"user","content":"Hello"},{"id":"a1","role":"assistant","content":"Hi"},{"id":"q2","role":"user","content":"How are you?"}]}}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r2"}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r3","input":{"messages":[{"id":"q1","role":"user","content":"Hello"}]}}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r3"}`,
	} {
		stream = append(stream, json.RawMessage(event))
	}
	want := []string{
		canonical(stream[0]),
		canonical(json.RawMessage(`{"type":"RUN_STARTED","threadId":"t","runId":"r2","input":{"tools":[],"messages":[{"id":"q2","role":"user","content":"How are you?"}]}}`)),
		canonical(json.RawMessage(`{"type":"RUN_STARTED","threadId":"t","runId":"r3","input":{"messages":[]}}`)),
	}
	for _, compactor := range compactors(testdb.Pool(t)) {
		var got []string
		for _, event := range compactor.compact(t, [][]json.RawMessage{stream})[0] {
			if compaction.EventType(event) == "RUN_STARTED" {
				got = append(got, canonical(event))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: runs start with\n%s\nwant\n%s", compactor.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A patch can leave an activity with content that no ACTIVITY_SNAPSHOT can have: such streams come out in a form that says it.
func TestCompactedActivitiesThatAreNoObject(t *testing.T) {
	t.Parallel()
	client := startOracle(t, "--verify")
	var streams [][]json.RawMessage
	for _, events := range [][]string{
		{ // the activity is one only to who looks at the activities alone
			`{"type":"REASONING_MESSAGE_CHUNK","messageId":"m","delta":"x"}`,
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"SEARCH","replace":false,"content":{"a":1}}`,
			`{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{}}`,
			`{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"SEARCH","patch":[{"op":"remove","path":""}]}`,
		},
		{
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"SEARCH","content":{"a":1}}`,
			`{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"SEARCH","patch":[{"op":"add","path":"","value":[1]}]}`,
			`{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"SEARCH","patch":[{"op":"add","path":"/-","value":2}]}`,
		},
	} {
		stream := rawEvents(events...)
		streams = append(streams, stream)
	}
	for _, compactor := range compactors(testdb.Pool(t)) {
		for i, problem := range compactor.problems(t, client, streams) {
			if problem != "" {
				t.Errorf("%s, stream %d: %s", compactor.name, i, problem)
			}
		}
	}
}
