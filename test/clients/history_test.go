package clients

import (
	"testing"

	"github.com/pgagui/pgagui"
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
		called.finish(called.event("RUN_STARTED"), `{"type":"TEXT_MESSAGE_START","messageId":"streamed-2","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"streamed-2","delta":"Yes"}`, `{"type":"TEXT_MESSAGE_END","messageId":"streamed-2"}`,
			`{"type":"MESSAGES_SNAPSHOT","messages":[`+first+rest+`]}`, called.event("RUN_FINISHED"))
		running.succeed()
		s.here.wantStatus(s.t, s.thread, "run-2", pgagui.Finished)
		s.wantParent(c, "run-1")
		s.wantAgreement(c, "run-2", true)
	})
}
