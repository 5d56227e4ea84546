package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// large is a text of a size at which ten messages are more than a client takes in one frame.
func large(n int) string { return strings.Repeat(string(rune('a'+n%26)), 1_000_000) }

// appendLarge stores a conversation of 17 MB, with messages of each kind among the first ones and behind them.
func (s *scenario) appendLarge(state string) {
	s.t.Helper()
	var events, messages []any
	add := func(event map[string]any) { events = append(events, event) }
	kinds := func(n string) {
		messages = append(messages,
			map[string]any{"id": "named " + n, "role": "user", "name": "Ann", "content": "Hello", "metadata": map[string]any{"k": n}},
			map[string]any{"id": "system " + n, "role": "system", "content": "Be kind"},
			map[string]any{"id": "parts " + n, "role": "user", "content": []any{
				map[string]any{"type": "text", "text": "Look"},
				map[string]any{"type": "image", "source": map[string]any{"type": "data", "value": "aGk=", "mimeType": "image/png"}},
			}},
			map[string]any{"id": "thought " + n, "role": "reasoning", "content": "Hm", "encryptedValue": "secret"},
			map[string]any{"id": "shown " + n, "role": "activity", "activityType": "plan", "content": map[string]any{"steps": []any{1, 2}}},
			map[string]any{"id": "call " + n, "role": "assistant", "toolCalls": []any{
				map[string]any{"id": "call " + n, "type": "function", "function": map[string]any{"name": "pay", "arguments": `{"a":1}`}},
			}},
			map[string]any{"id": "call " + n, "role": "tool", "toolCallId": "call " + n, "content": "paid"},
			map[string]any{"id": "sub " + n, "role": "assistant", "content": "of a subagent", "subagentRunId": "sub"},
		)
	}
	for n := range 12 {
		if n%4 == 2 {
			kinds(fmt.Sprint(n))
		}
		messages = append(messages, map[string]any{"id": fmt.Sprint("m", n), "role": "assistant", "content": large(n)})
	}
	add(map[string]any{"type": "RUN_STARTED", "threadId": s.thread, "runId": "run"})
	add(map[string]any{"type": "MESSAGES_SNAPSHOT", "messages": messages})
	add(map[string]any{"type": "STATE_SNAPSHOT", "snapshot": json.RawMessage(state)})
	add(map[string]any{"type": "CUSTOM", "name": "note", "value": "kept"})
	add(map[string]any{"type": "RUN_FINISHED", "threadId": s.thread, "runId": "run", "result": map[string]any{"answer": 42}})
	s.appendAll("run", events)
	testdb.Exec(s.t, s.pool, "call agui.compact()")
}

func (s *scenario) appendAll(runID string, events []any) {
	s.t.Helper()
	var list []json.RawMessage
	for _, event := range events {
		text := must.Have(json.Marshal(event))(s.t)
		list = append(list, text)
	}
	must.Have(s.here.store.Append(s.t.Context(), pgagui.RunRef{ThreadID: s.thread, RunID: runID}, list, pgagui.AppendOptions{}))(s.t)
}

// getEvents is a client that connects with GET /threads/{thread}/events.
func (s *scenario) getEvents(query string) *client {
	return s.open(s.t, clientOptions{
		Version: s.version, Thread: s.thread, Base: s.here.URL,
		Connect: &request{"GET", s.here.URL + pathOf(s.thread) + "?protocol_version=" + map[string]string{"1.0.0": "1.0"}[s.version] + query},
	})
}

// A conversation that is larger than a frame that the client takes reloads as what is stored: on a new page, and on one that has old messages.
func TestAConversationLargerThanAFrameReloads(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		var state []string
		for n := range 5 {
			state = append(state, fmt.Sprintf(`"k%d/~":{"list":[1,{"text":%q}]}`, n, large(n)))
		}
		s.appendLarge(`{"nested":{` + strings.Join(state, ",") + `},"n":1}`)
		meant := s.here.restored(s.t, s.thread, "")
		posting := s.client(s.here)
		posting.connect().succeed()
		posting.wantSame(meant)
		getting := s.getEvents("")
		getting.setMessages(append([]any{user("old", "Gone"), meant.Messages.([]any)[5]}, meant.Messages.([]any)[10:20]...))
		getting.connect().succeed()
		getting.wantSame(meant)
		for _, frame := range getting.frames() {
			if len(frame) > 10<<20 {
				s.t.Errorf("a frame has %d bytes", len(frame))
			}
		}
	})
}

// wantSame is want without the frames, which are large.
func (c *client) wantSame(want meaning) {
	c.t.Helper()
	got := c.look().meaning
	gotMessages, wantMessages := got.Messages.([]any), want.Messages.([]any)
	for i := range max(len(gotMessages), len(wantMessages)) {
		if i >= len(gotMessages) || i >= len(wantMessages) || text(gotMessages[i]) != text(wantMessages[i]) {
			c.t.Fatalf("message %d of %d is not as it is stored (%d): the client has %.200s", i, len(gotMessages), len(wantMessages), text(gotMessages[min(i, len(gotMessages)):]))
		}
	}
	if text(got.State) != text(want.State) {
		c.t.Errorf("the state is %.200s, want %.200s", text(got.State), text(want.State))
	}
	if text(got.Interrupts) != text(want.Interrupts) {
		c.t.Errorf("the interrupts are %.200s, want %.200s", text(got.Interrupts), text(want.Interrupts))
	}
}

func text(value any) string {
	encoded, _ := json.Marshal(value)
	return string(encoded)
}

// A message that no client takes is named by the end of the stream, behind all others.
func TestAMessageLargerThanAFrameIsNamed(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		s.appendAll("run", []any{
			map[string]any{"type": "RUN_STARTED", "threadId": s.thread, "runId": "run"},
			map[string]any{"type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant"},
			map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "before"},
			map[string]any{"type": "TEXT_MESSAGE_START", "messageId": "too large", "role": "assistant"},
			map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": "too large", "delta": strings.Repeat("x", 11<<20)},
			map[string]any{"type": "TEXT_MESSAGE_START", "messageId": "b", "role": "assistant"},
			map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": "b", "delta": "behind"},
			map[string]any{"type": "STATE_SNAPSHOT", "snapshot": map[string]any{"n": 1}},
			map[string]any{"type": "RUN_FINISHED", "threadId": s.thread, "runId": "run"},
		})
		c := s.client(s.here)
		_ = c.connect().failure()
		frames := c.frames()
		if last := frames[len(frames)-1]; !strings.Contains(last, `"RUN_ERROR"`) || !strings.Contains(last, `"MESSAGE_TOO_LARGE"`) || !strings.Contains(last, `too large`) {
			s.t.Errorf("the last frame is %.300s", last)
		}
		meant := s.here.restored(s.t, s.thread, "")
		meant.Messages = slices.Delete(meant.Messages.([]any), 1, 2)
		c.wantSame(meant)

		// A device that asks there gets its answer.
		device := s.client(s.here)
		running := device.run("run-2", nil, user("u2", "More"))
		s.agent.calledBy(running, s.thread).reply("a2", "Yes")
		running.succeed()
		meant = s.here.restored(s.t, s.thread, "")
		meant.Messages = slices.Delete(meant.Messages.([]any), 1, 2)
		device.wantSame(meant)
	})
}
