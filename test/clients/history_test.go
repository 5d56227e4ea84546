package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/wait"
)

// An agent lists an image as a part of protocol 0.x, and members that are null: each client shows live what it shows after a reload, and
// goes on from there.
func TestAnAgentListsMessagesInTheirOldForm(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		c := s.client(s.here)
		running := c.run("run-1", nil, map[string]any{"id": "u1", "role": "user", "content": []any{
			map[string]any{"type": "text", "text": "See"},
			map[string]any{"type": "image", "source": map[string]any{"type": "data", "value": "iVBO", "mimeType": "image/png"}},
		}})
		called := s.agent.calledBy(running, s.thread)
		called.finish(called.event("RUN_STARTED"),
			`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u1","role":"user","content":[{"type":"text","text":"See"},{"type":"binary","mimeType":"image/png","data":"iVBO"}]},`+
				`{"id":"a1","role":"assistant","content":null,"toolCalls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]},`+
				`{"id":"t1","role":"tool","toolCallId":"c1","content":"a cat"},{"id":"a2","role":"assistant","content":"A cat","toolCalls":null,"name":"n"}]}`,
			called.event("RUN_FINISHED"))
		running.succeed()
		s.wantAgreement(c, "run-1", true)
		running = c.run("run-2", nil, user("u2", "Sure?"))
		s.agent.calledBy(running, s.thread).reply("a3", "Yes")
		running.succeed()
		s.wantParent(c, "run-1")
		s.wantAgreement(c, "run-2", true)
	})
}

// An agent lists its answer with another id than it streamed. A page that stopped before asks on with the streamed one, without a reload.
func TestAStoppedPageAsksOnWithTheStreamedID(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		const (
			first = `{"id":"u1","role":"user","content":"Hello"},{"id":"listed-1","role":"assistant","content":"Good day"}`
			rest  = `,{"id":"u2","role":"user","content":"More"},{"id":"listed-2","role":"assistant","content":"Yes"}`
		)
		c := s.client(s.here)
		running := c.run("run-1", nil, user("u1", "Hello"))
		called := s.agent.calledBy(running, s.thread)
		called.send(called.event("RUN_STARTED"), `{"type":"TEXT_MESSAGE_START","messageId":"streamed-1","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"streamed-1","delta":"Good"}`)
		c.waitForEvents(3)
		c.ask("abort", nil)
		_ = running.failure()
		called.finish(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"streamed-1","delta":" day"}`, `{"type":"TEXT_MESSAGE_END","messageId":"streamed-1"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[`+first+`]}`, called.event("RUN_FINISHED"))
		s.here.waitForSeq(s.t, s.thread, 7)

		running = c.run("run-2", nil, user("u2", "More"))
		called = s.agent.calledBy(running, s.thread)
		s.wantReceived(called, "u1", "streamed-1", "u2")
		called.send(called.event("RUN_STARTED"))
		c.hold(s.awaited("run-2", 1))
		called.finish(`{"type":"TEXT_MESSAGE_START","messageId":"streamed-2","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"streamed-2","delta":"Yes"}`, `{"type":"TEXT_MESSAGE_END","messageId":"streamed-2"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[`+first+rest+`]}`, called.event("RUN_FINISHED"))
		running.succeed()
		s.here.wantStatus(s.t, s.thread, "run-2", pgagui.Finished)
		s.wantParent(c, "run-1")
		s.wantAgreement(c, "run-2", true)
	})
}

// A device that sends only its question shows what is older before it, from the first event of the run on, as it does after a reload.
func TestADeviceThatSendsOnlyItsQuestion(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		page := s.client(s.here)
		s.play(page, "run-1", nil, user("u1", "Hello"))
		for i, lists := range []bool{false, true} { // an agent that lists the messages at the end, and one that does not
			run, question := []string{"run-2", "run-3"}[i], []string{"u2", "u3"}[i]
			device := s.client(s.there)
			running := device.run(run, nil, user(question, "More"))
			called := s.agent.calledBy(running, s.thread)
			if ids := called.messageIDs(); ids[0] != "u1" || ids[len(ids)-1] != question {
				s.t.Errorf("the agent received the messages %q", ids)
			}
			events := called.everything(run)
			called.send(events[0])
			device.wait(1, s.awaited(run, 1))
			called.send(events[1 : len(events)-1]...)
			if lists {
				called.send(`{"type":"MESSAGES_SNAPSHOT","messages":` + text(withoutActivities(s.awaited(run, len(events)-1).Messages.([]any))) + `}`)
			}
			called.finish(events[len(events)-1])
			running.succeed()
			s.wantAgreement(device, run, true)
		}

		// A page that sends what it has, and one that says that it has it, get nothing but the run.
		page.connect().succeed()
		for i, parameters := range []map[string]any{nil, forwarded(map[string]any{"history": "new"}), forwarded(map[string]any{"history": "full"})} {
			c, run := page, []string{"run-4", "run-5", "run-6"}[i]
			if i > 0 {
				c = s.client(s.here)
			}
			before := len(c.frames())
			running := c.run(run, parameters, user("question of "+run, "And?"))
			s.agent.calledBy(running, s.thread).reply("answer of "+run, "So")
			running.succeed()
			if frames := c.frames()[before:]; len(frames) != 5 {
				s.t.Errorf("run %s: the page received\n%s", run, strings.Join(frames, "\n"))
			}
		}
	})
}

// awaited returns what a run means once it has so many events.
func (s *scenario) awaited(run string, events int) meaning {
	s.t.Helper()
	wait.For(s.t, fmt.Sprintf("%d events of run %s", events, run), func() bool {
		status, err := s.here.store.Status(s.t.Context(), pgagui.RunRef{ThreadID: s.thread, RunID: run})
		return err == nil && status.LastSeq-status.FirstSeq+1 >= int64(events)
	})
	return s.here.restored(s.t, s.thread, run)
}

func withoutActivities(messages []any) []any {
	return slices.DeleteFunc(messages, func(m any) bool { return m.(map[string]any)["role"] == "activity" })
}
