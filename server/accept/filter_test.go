package accept_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/server/accept"
)

var run = accept.Run{ThreadID: "t", RunID: "run-1"}

// pass pushes events and returns all that is sent. An end comes last, unless the stream is cut.
func pass(f *accept.Filter, events []json.RawMessage, isCut bool) (sent [][]byte) {
	for _, event := range events {
		before, send := f.Push(event)
		sent = append(sent, before...)
		if send != nil {
			sent = append(sent, send)
		}
	}
	if !isCut {
		sent = append(sent, f.End("")...)
	}
	return sent
}

// seeds returns how many generated streams a test takes: PGAGUI_FILTER_STREAMS, or fewer.
func seeds() uint64 {
	if count, err := strconv.ParseUint(os.Getenv("PGAGUI_FILTER_STREAMS"), 10, 32); err == nil {
		return count
	}
	if testing.Short() {
		return 20
	}
	return 30
}

func asBytes(events []json.RawMessage) (texts [][]byte) {
	for _, event := range events {
		texts = append(texts, event)
	}
	return texts
}

func printed(events [][]byte) string {
	return string(bytes.Join(events, []byte("\n")))
}

func TestValidStreamsPassUnchanged(t *testing.T) {
	t.Parallel()
	var streams [][][]byte
	for seed := range seeds() {
		streams = append(streams, asBytes(compactiontest.Stream(seed, compactiontest.Options{Unicode: seed%2 == 0, Numbers: seed%3 == 0})))
	}
	accepted := 0
	for i, outcomes := range judge(t, streams) {
		// A state with a cycle breaks a client only where it copies the state.
		if outcomes[0].Error != "" || outcomes[1].Error != "" || slices.ContainsFunc(streams[i], accept.HasCycle) {
			continue
		}
		accepted++
		var events []json.RawMessage
		for _, event := range streams[i] {
			events = append(events, event)
		}
		f := accept.New(run, 0)
		if got := pass(f, events, false); !bytes.Equal(bytes.Join(got, nil), bytes.Join(streams[i], nil)) {
			t.Errorf("stream %d was changed (%+v):\n%s\n\nbecame\n%s", i, f.Stats(), printed(streams[i]), printed(got))
			return
		}
	}
	t.Logf("%d of %d streams are accepted by both clients", accepted, len(streams))
	if accepted < len(streams)/4 {
		t.Errorf("only %d of %d generated streams are accepted by the clients", accepted, len(streams))
	}
}

var disorder = []compactiontest.Options{
	{Broken: true},
	{Broken: true, Unicode: true},
	{Wild: true},
	{Wild: true, RefusedChunks: true, Events: 30},
	{Wild: true, RefusedChunks: true, Proposals: true, Malformed: true, Unicode: true, Numbers: true},
}

func TestClientsAcceptWhatPasses(t *testing.T) {
	t.Parallel()
	var streams [][][]byte
	var origins []string
	for seed := range seeds() {
		for i, options := range disorder {
			events := compactiontest.Stream(seed, options)
			f := accept.New(run, 0)
			streams = append(streams, pass(f, events, false))
			origins = append(origins, fmt.Sprintf("seed %d, options %d, %+v:\n%s", seed, i, f.Stats(), printed(asBytes(events))))
		}
	}
	mustAccept(t, streams, origins)
	for i, stream := range streams {
		if ends := unmatchedEnds(t, stream); ends != "" {
			t.Fatalf("%s\nin\n%s\n\nfrom %s", ends, printed(stream), origins[i])
		}
	}
}

// mustAccept fails the test unless both clients accept the streams.
func mustAccept(t *testing.T, streams [][][]byte, origins []string) {
	t.Helper()
	outcomes := judge(t, streams)
	failed := 0
	for i := range outcomes {
		for client, outcome := range outcomes[i] {
			if outcome.Error != "" {
				if failed++; failed == 1 {
					t.Errorf("client %d refuses: %s\n%s\n\nfrom %s", client, outcome.Error, printed(streams[i]), origins[i])
				} else {
					t.Errorf("client %d refuses: %.300s", client, outcome.Error)
				}
			}
		}
	}
	if failed > 0 {
		t.Fatalf("%d of %d are refused", failed, 2*len(streams))
	}
}

// unmatchedEnds says how a stream breaks the rule that each run has one end, except that RUN_ERROR may follow RUN_FINISHED.
func unmatchedEnds(t *testing.T, stream [][]byte) string {
	t.Helper()
	last := "RUN_FINISHED"
	for i, event := range stream {
		switch eventType := compaction.EventType(event); eventType {
		case "RUN_STARTED":
			if last == "RUN_STARTED" {
				return fmt.Sprintf("event %d: a run without an end", i)
			}
			last = eventType
		case "RUN_FINISHED":
			if last != "RUN_STARTED" {
				return fmt.Sprintf("event %d: an end too many", i)
			}
			last = eventType
		case "RUN_ERROR":
			if last == "RUN_ERROR" {
				return fmt.Sprintf("event %d: an error too many", i)
			}
			last = eventType
		}
	}
	if last == "RUN_STARTED" {
		return "the last run has no end"
	}
	return ""
}

func TestClientsAcceptAnAttachmentAndWhatFollows(t *testing.T) {
	t.Parallel()
	var streams [][][]byte
	var origins []string
	for seed := range seeds() {
		for i, options := range append([]compactiontest.Options{{}, {Unicode: true}}, disorder...) {
			events := compactiontest.Stream(seed, options)
			cut := int(seed*7919+uint64(i)*31) % (len(events) + 1)
			f := accept.New(run, 0)
			sent := pass(f, attachment(events[:cut]), true)
			sent = append(sent, pass(f, events[cut:], seed%3 == 0)...)
			streams = append(streams, sent)
			origins = append(origins, fmt.Sprintf("seed %d, options %d, cut at %d, %+v:\n%s\n---\n%s", seed, i, cut, f.Stats(), printed(asBytes(events[:cut])), printed(asBytes(events[cut:]))))
		}
	}
	mustAccept(t, streams, origins)
}

// TestAStreamGoesOnThroughANewFilter: the client keeps its verifier over a reconnect. The new filter takes what the first one took,
// an attachment and the events behind it.
func TestAStreamGoesOnThroughANewFilter(t *testing.T) {
	t.Parallel()
	var streams [][][]byte
	var origins []string
	for seed := range seeds() {
		for i, options := range append([]compactiontest.Options{{}}, disorder...) {
			events := compactiontest.Stream(seed, options)
			cut := int(seed*7919+uint64(i)*31) % (len(events) + 1)
			base := int(seed*104729+uint64(i)*17) % (cut + 1)
			taken := events[:cut]
			if seed%2 == 0 {
				taken = append(attachment(events[:base]), events[base:cut]...)
			}
			sent := pass(accept.New(run, 0), taken, true)
			f := accept.New(run, 0)
			pass(f, taken, true)
			streams = append(streams, append(sent, pass(f, events[cut:], false)...))
			origins = append(origins, fmt.Sprintf("seed %d, options %d, attached at %d, cut at %d", seed, i, base, cut))
		}
	}
	mustAccept(t, streams, origins)
}

// attachment is what a client gets that attaches behind the events.
func attachment(events []json.RawMessage) []json.RawMessage {
	fold := compaction.New()
	started, ended := json.RawMessage(`{"type":"RUN_STARTED","threadId":"t","runId":"run-1"}`), json.RawMessage(nil)
	for _, event := range events {
		fold.Apply(event)
		switch compaction.EventType(event) {
		case "RUN_STARTED":
			started, ended = event, nil
		case "RUN_FINISHED", "RUN_ERROR":
			ended = event
		}
	}
	return fold.Replay(started, ended)
}

// TestNoContentIsLost: where runs end early, go on after their end, or have none, the client still gets all messages.
func TestNoContentIsLost(t *testing.T) {
	t.Parallel()
	var streams [][][]byte
	var events [][]json.RawMessage
	for seed := range seeds() {
		stream := compactiontest.Stream(seed, compactiontest.Options{Broken: true, Unicode: seed%2 == 0})
		began := false
		stream = slices.DeleteFunc(stream, func(event json.RawMessage) bool {
			switch compaction.EventType(event) {
			case "RUN_ERROR": // nothing comes after it
				return true
			case "RUN_STARTED": // a second one is left out with the messages of its input
				defer func() { began = true }()
				return began
			default:
				began = true
				return false
			}
		})
		if slices.ContainsFunc(stream, func(event json.RawMessage) bool { return accept.HasCycle(event) }) {
			continue
		}
		for i, event := range stream { // ids that runs share belong to one agent
			if object, ok := rawjson.ParseObject(event); ok && !strings.HasPrefix(compaction.EventType(event), "SUBAGENT") {
				object.Remove("subagentRunId")
				stream[i] = object.Text()
			}
		}
		events = append(events, stream)
		streams = append(streams, pass(accept.New(run, 0), stream, false))
	}
	for i, outcomes := range judge(t, streams) {
		fold := compaction.New()
		for _, event := range events[i] {
			fold.Apply(event)
		}
		var want []message
		for _, event := range fold.Replay(json.RawMessage(`{}`), nil) {
			if compaction.EventType(event) == "MESSAGES_SNAPSHOT" {
				var snapshot struct{ Messages []message }
				must.Do(t, json.Unmarshal(event, &snapshot))
				want = snapshot.Messages
			}
		}
		held := outcomes[1].messages(t)
		for _, m := range [][]message{want, held} {
			for j := range m {
				if m[j].Role == "activity" {
					m[j].Content = nil // patched; the reducers are compared elsewhere
				}
			}
		}
		got, wanted := asText(held), asText(want)
		if got != wanted {
			t.Fatalf("stream %d: the client has\n%s\n\nthe log means\n%s\n\nsent:\n%s\n\nfrom:\n%s", i, got, wanted, printed(streams[i]), printed(asBytes(events[i])))
		}
	}
}

func asText(messages []message) string {
	var text bytes.Buffer
	for _, m := range messages {
		var content any
		_ = json.Unmarshal(m.Content, &content)
		fmt.Fprintf(&text, "%q %s %q %q\n", m.ID, m.Role, content, m.ToolCalls)
	}
	return text.String()
}
