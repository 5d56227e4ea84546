package clients

import (
	"testing"
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
