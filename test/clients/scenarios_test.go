package clients

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/wait"
)

func TestConversations(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c := s.client(s.here)
		s.play(c, "run-1", nil, user("u1", "Hello"))
		s.wantAgreement(c, "run-1", true)
		s.play(c, "run-2", nil, user("u2", "More"))
		s.wantParent(c, "run-1")
		s.wantAgreement(c, "run-2", true)

		// A client that reloaded goes on, on another server; and one that has seen nothing but its own message.
		reloaded := s.client(s.there)
		reloaded.connect().succeed()
		s.play(reloaded, "run-3", nil, user("u3", "And more"))
		s.wantParent(reloaded, "run-2")
		s.wantAgreement(reloaded, "run-3", true)
		received := s.play(s.client(s.here), "run-4", nil, user("u4", "From elsewhere"))
		if ids := received.messageIDs(); ids[0] != "u1" || ids[len(ids)-1] != "u4" {
			t.Errorf("the agent received the messages %q", ids)
		}
		s.wantReloads(s.here.restored(t, s.thread, "run-4"), "run-4", true)

		// Back in time.
		for _, run := range []string{"run-1", "run-2", "run-3"} {
			s.wantReloads(s.here.restored(t, s.thread, run), run, false)
		}
	})
}

func TestBranches(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c := s.client(s.here)
		s.play(c, "run-1", nil, user("u1", "Hello"))
		s.play(c, "run-2", nil, user("u2", "More"))

		// Back to the first run, and on from there.
		travelling := s.open(s.t, clientOptions{
			Version: s.version, Thread: s.thread, Base: s.there.URL, Connect: &request{"GET", s.there.URL + pathOf(s.thread) + "?run=run-1"},
		})
		travelling.connect().succeed()
		s.play(travelling, "run-3", forwarded(map[string]any{"parentRunId": "run-1"}), user("u3", "Else"))
		s.wantParent(travelling, "run-1")
		s.wantAgreement(travelling, "run-3", true)
		s.wantReloads(s.here.restored(t, s.thread, "run-2"), "run-2", false)
		c.want(s.here.restored(t, s.thread, "run-2"))

		// The branch that is not the head goes on, too.
		s.play(c, "run-4", forwarded(map[string]any{"parentRunId": "run-2"}), user("u4", "Still here"))
		s.wantParent(c, "run-2")
		s.wantAgreement(c, "run-4", true)
	})
}

func TestEditAndRegenerate(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c := s.client(s.here)
		s.play(c, "run-1", nil, user("u1", "Hello"))
		s.play(c, "run-2", nil, user("u2", "More"))
		until := func(id string, last ...any) []any {
			kept := []any{}
			for _, message := range c.look().Messages.([]any) {
				if message.(map[string]any)["id"] == id {
					break
				}
				kept = append(kept, message)
			}
			return append(kept, last...)
		}

		// Regenerate: the answer is gone from the client, the question is not.
		c.setMessages(until("thought of run-2"))
		received := s.play(c, "run-3", nil)
		s.wantParent(c, "run-1")
		if ids := received.messageIDs(); ids[len(ids)-1] != "u2" {
			s.t.Errorf("the agent received the messages %q", ids)
		}
		s.wantAgreement(c, "run-3", true)

		// Edit: the question has another text, what follows is gone.
		c.setMessages(until("u2", user("u2", "Less")))
		s.play(c, "run-4", nil)
		s.wantParent(c, "run-1")
		s.wantAgreement(c, "run-4", true)

		// The same with a message of a new id, as some UIs do.
		c.setMessages(until("u2", user("u5", "Least")))
		s.play(c, "run-5", nil)
		s.wantParent(c, "run-1")
		s.wantAgreement(c, "run-5", true)

		// Edit of the first message: a conversation of its own.
		c.setMessages([]any{user("u1", "Good bye")})
		received = s.play(c, "run-6", nil)
		s.wantParent(c, "")
		s.wantReceived(received, "u1")
		s.wantAgreement(c, "run-6", true)

		// The others are as they were.
		for _, run := range []string{"run-2", "run-3", "run-4", "run-5"} {
			s.wantReloads(s.here.restored(t, s.thread, run), run, false)
		}
	})
}

func TestInterruptAndResume(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		ask := func(running *ending, id string) {
			called := s.agent.called(s.t, s.thread)
			called.finish(called.event("RUN_STARTED"),
				fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":"call %[1]s","toolCallName":"pay","parentMessageId":"asks %[1]s"}`, id),
				fmt.Sprintf(`{"type":"TOOL_CALL_ARGS","toolCallId":"call %s","delta":"{}"}`, id),
				fmt.Sprintf(`{"type":"TOOL_CALL_END","toolCallId":"call %s"}`, id),
				called.event("RUN_FINISHED", fmt.Sprintf(
					`"outcome":{"type":"interrupt","interrupts":[{"id":%q,"reason":"confirm","message":"Pay?","toolCallId":"call %[1]s"}]}`, id)))
			running.succeed()
		}
		answer := func(id string) map[string]any {
			return map[string]any{"resume": []any{map[string]any{"interruptId": id, "status": "resolved", "payload": map[string]any{"pay": true}}}}
		}
		c := s.client(s.here)
		ask(c.run("run-1", nil, user("u1", "Buy it")), "i1")
		s.wantAgreement(c, "run-1", true)
		if open := c.look().Interrupts.([]any); len(open) != 1 {
			s.t.Fatalf("the client knows the interrupts %v", open)
		}

		// A client that reloaded must answer first, and can.
		reloaded := s.client(s.there)
		reloaded.connect().succeed()
		if failure := reloaded.run("refused", nil).failure(); !strings.Contains(failure, "pending interrupt") {
			s.t.Errorf("without an answer: %q", failure)
		}
		received := s.play(reloaded, "run-2", answer("i1"))
		s.wantReceived(received, "u1", "asks i1")
		if !strings.Contains(string(received.input.Resume), `"interruptId":"i1"`) {
			s.t.Errorf("the agent received the answer %s", received.input.Resume)
		}
		s.wantParent(reloaded, "run-1")
		s.wantAgreement(reloaded, "run-2", true)

		// A client without messages answers, too.
		ask(reloaded.run("run-3", nil, user("u3", "One more")), "i3")
		received = s.play(s.client(s.here), "run-4", answer("i3"))
		if ids := received.messageIDs(); len(ids) < 4 || ids[0] != "u1" || ids[len(ids)-1] != "asks i3" {
			s.t.Errorf("the agent received the messages %q", ids)
		}
		meant := s.here.restored(s.t, s.thread, "run-4")
		if len(meant.Interrupts.([]any)) > 0 {
			s.t.Errorf("after the answer the interrupts are %v", meant.Interrupts)
		}
		s.wantReloads(meant, "run-4", true)
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		length := len((&call{}).everything(""))
		for k := 1; k < length; k += 4 {
			run := fmt.Sprint("run-", k)
			c := s.client(s.here)
			running := c.run(run, nil, user("u "+run, "Hello"))
			called := s.agent.called(s.t, s.thread)
			called.send(called.everything(" of " + run)[:k]...)
			watching := s.client(s.there)
			connected := watching.connect()
			c.waitForEvents(k)

			s.there.post(s.t, "/threads/"+url.PathEscape(s.thread)+"/stop", `{}`)
			<-called.context.Done()
			running.succeed()
			connected.succeed()
			s.here.wantStatus(s.t, s.thread, run, pgagui.Cancelled)
			meant := s.here.restored(s.t, s.thread, run)
			watching.want(meant)
			s.wantReloads(meant, run, true)
		}
	})
}

// A client that stays sees what others do: the runs that follow, with the messages of their users, and edits.
func TestClientsThatWatch(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		path := pathOf(s.thread) + "?stay=true"
		if s.version == "1.0.0" {
			path += "&protocol_version=1.0"
		}
		watching := s.open(s.t, clientOptions{Version: s.version, Thread: s.thread, Base: s.there.URL, Connect: &request{"GET", s.there.URL + path}})
		watched := watching.connect()
		c := s.client(s.here)
		seen := func(run string) {
			s.t.Helper()
			var last int64
			wait.For(s.t, "run "+run+" begins", func() bool {
				status, err := s.here.store.Status(s.t.Context(), pgagui.RunRef{ThreadID: s.thread, RunID: run})
				if err == nil {
					last = status.LastSeq
				}
				return last > 0
			})
			watching.wait(last, s.here.restored(s.t, s.thread, run))
		}
		s.play(c, "run-1", nil, user("u1", "Hello"))
		seen("run-1")
		s.play(c, "run-2", nil, user("u2", "More"))
		seen("run-2")
		// Of the other branch nothing is left, neither at the end nor while the agent thinks. 0.0.59 keeps its thoughts and
		// activities until the new branch has some.
		c.setMessages([]any{user("u1", "Good bye")})
		running := c.run("run-3", nil)
		called := s.agent.called(s.t, s.thread)
		called.send(called.event("RUN_STARTED"))
		if s.version == "1.0.0" {
			seen("run-3")
		}
		called.finish(called.everything(" of run-3")[1:]...)
		running.succeed()
		if s.version != "1.0.0" {
			return
		}
		seen("run-3")
		running = s.client(s.here).run("run-4", forwarded(map[string]any{"parentRunId": ""}), user("u4", "Anew"))
		s.agent.called(s.t, s.thread).reply("a4", "Hi")
		running.succeed()
		seen("run-4")
		watching.ask("abort", nil)
		watched.succeed()
	})
}

// A client that goes away leaves its run behind, which goes on.
func TestClientsThatGoAway(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c := s.client(s.here)
		running := c.run("run-1", nil, user("u1", "Hello"))
		called := s.agent.called(s.t, s.thread)
		events := called.everything(" of run-1")
		called.send(events[:12]...)
		c.waitForEvents(12)
		c.ask("abort", nil)
		running.succeed()

		reloaded := s.client(s.there)
		connected := reloaded.connect()
		reloaded.waitForEvents(3)
		called.finish(events[12:]...)
		connected.succeed()
		s.here.wantStatus(s.t, s.thread, "run-1", pgagui.Finished)
		s.wantAgreement(reloaded, "run-1", true)
	})
}

// The same request twice is one run; another one at the same time is refused.
func TestRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c, twin, other := s.client(s.here), s.client(s.there), s.client(s.there)
		running := c.run("run-1", nil, user("u1", "Hello"))
		called := s.agent.called(s.t, s.thread)
		twinRunning := twin.run("run-1", nil, user("u1", "Hello"))
		failure := other.run("run-2", nil, user("u2", "Me too")).failure()
		if !strings.Contains(failure, "409") || !strings.Contains(failure, "run-1") {
			s.t.Errorf("a run at the same time: %q", failure)
		}
		if failure := other.run("run-1", nil, user("u3", "Not the same")).failure(); !strings.Contains(failure, "409") {
			s.t.Errorf("another run with the same id: %q", failure)
		}
		called.finish(called.everything("")...)
		running.succeed()
		twinRunning.succeed()
		s.wantAgreement(c, "run-1", true)
		s.wantAgreement(twin, "run-1", true)
	})
}

// The client's own state reaches the agent, and is that of the run if the agent sends none.
func TestStateOfTheClient(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c := s.open(s.t, clientOptions{Version: s.version, Thread: s.thread, Base: s.here.URL, State: map[string]any{"by": "client"}})
		running := c.run("run-1", nil, user("u1", "Hello"))
		called := s.agent.called(s.t, s.thread)
		var got any
		if err := json.Unmarshal(called.input.State, &got); err != nil || fmt.Sprint(got) != "map[by:client]" {
			s.t.Errorf("the agent received the state %s", called.input.State)
		}
		called.reply("a1", "Hi")
		running.succeed()
		s.wantAgreement(c, "run-1", true)
		// A client without state gets the stored one to its agent.
		fresh := s.client(s.there)
		running = fresh.run("run-2", nil, user("u2", "More"))
		called = s.agent.called(s.t, s.thread)
		if err := json.Unmarshal(called.input.State, &got); err != nil || fmt.Sprint(got) != "map[by:client]" {
			s.t.Errorf("the agent received the state %s", called.input.State)
		}
		called.reply("a2", "Hi")
		running.succeed()
		s.wantReloads(s.here.restored(s.t, s.thread, "run-2"), "run-2", true)
	})
}

// A tool that runs in the client: the next run brings its result. And a question with parts.
func TestToolsOfTheClient(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c := s.client(s.here)
		question := map[string]any{"id": "u1", "role": "user", "content": []any{
			map[string]any{"type": "text", "text": "What is this?"},
			map[string]any{"type": "image", "source": map[string]any{"type": "url", "value": "https://example.com/cat.png"}},
		}}
		tools := map[string]any{"tools": []any{map[string]any{"name": "zoom", "description": "Zooms", "parameters": map[string]any{"type": "object"}}}}
		running := c.run("run-1", tools, question)
		called := s.agent.called(s.t, s.thread)
		called.finish(called.event("RUN_STARTED"), `{"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"Let me zoom."}`, `{"type":"TEXT_MESSAGE_END","messageId":"a1"}`,
			`{"type":"TOOL_CALL_START","toolCallId":"t1","toolCallName":"zoom","parentMessageId":"a1"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"t1","delta":"{\"by\":2}"}`, `{"type":"TOOL_CALL_END","toolCallId":"t1"}`, called.event("RUN_FINISHED"))
		running.succeed()
		s.wantAgreement(c, "run-1", true)

		reloaded := s.client(s.there)
		reloaded.connect().succeed()
		received := s.play(reloaded, "run-2", tools, map[string]any{"id": "r1", "role": "tool", "toolCallId": "t1", "content": "zoomed"})
		s.wantReceived(received, "u1", "a1", "r1")
		s.wantParent(reloaded, "run-1")
		s.wantAgreement(reloaded, "run-2", true)
		// The same from a client that sends nothing but the result.
		received = s.play(s.client(s.here), "run-3", map[string]any{"forwardedProps": map[string]any{"pgagui": map[string]any{"parentRunId": "run-1"}}},
			map[string]any{"id": "r2", "role": "tool", "toolCallId": "t1", "content": "zoomed"})
		s.wantReceived(received, "u1", "a1", "r2")
		s.wantReloads(s.here.restored(s.t, s.thread, "run-3"), "run-3", true)

		// Regenerated behind the tool, by a client with all messages.
		again := s.client(s.here)
		again.connect().succeed()
		messages := again.look().Messages.([]any)
		again.setMessages(messages[:3])
		received = s.play(again, "run-4", tools)
		s.wantReceived(received, "u1", "a1", "r2")
		s.wantParent(again, "run-1")
		s.wantAgreement(again, "run-4", true)
	})
}

// What an agent does that the protocol forbids stays in the log, and no client fails. (A client that is there may see more than the log
// means: it gets the start that a text lacks.)
func TestAgentsThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		base := s.thread
		for i, events := range [][]string{
			{`{"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"no start"}`},
			{`{"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"no end"}`},
			{`{"type":"RUN_STARTED","threadId":"x","runId":"y"}`, `{"type":"RUN_STARTED","threadId":"x","runId":"y"}`, `{"type":"TEXT_MESSAGE_END","messageId":"never"}`},
			{`{"type":"RUN_STARTED","threadId":"x","runId":"y"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"t1","delta":"{}"}`, `{"type":"WHO_KNOWS","x":1}`,
				`{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/none"}]}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"a1","delta":"fine"}`},
			{`{"type":"RUN_STARTED","threadId":"x","runId":"y"}`, `{"type":"RUN_FINISHED","threadId":"x","runId":"y"}`,
				`{"type":"RUN_STARTED","threadId":"x","runId":"z"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"a1","role":"assistant","delta":"second"}`,
				`{"type":"RUN_FINISHED","threadId":"x","runId":"z"}`},
			{`{"type":"RUN_STARTED","threadId":"x","runId":"y"}`, `{"type":"TEXT_MESSAGE_START","messageId":"a1","role":"assistant"}`,
				`{"type":"RUN_ERROR","message":"sorry"}`, `{"type":"CUSTOM","name":"late","value":1}`, `{"type":"RUN_FINISHED","threadId":"x","runId":"y"}`},
			{`{"type":"RUN_STARTED","threadId":"x","runId":"y"}`,
				`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u1","role":"user","content":"Hello"},{"id":"u1","role":"user","content":"Hello again"},{"id":"a1","role":"assistant","content":"Hi"}]}`,
				`{"type":"RUN_FINISHED","threadId":"x","runId":"y"}`},
			{},
		} {
			s.thread = fmt.Sprint(base, " ", i)
			c := s.client(s.here)
			running := c.run("run-1", nil, user("u1", "Hello"))
			called := s.agent.called(s.t, s.thread)
			connected := s.client(s.there).connect()
			called.finish(events...)
			running.succeed()
			connected.succeed()
			s.wantReloads(s.here.restored(s.t, s.thread, "run-1"), "run-1", true)
			// The thread goes on, with what the client held.
			s.play(c, "run-2", nil, user("u2", "And now?"))
			s.wantAgreement(c, "run-2", true)
			if s.t.Failed() {
				s.t.Fatalf("the agent sent %q", events)
			}
		}
	})
}
