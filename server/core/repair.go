package core

import (
	"encoding/json"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/internal/jsontext"
)

// withResults gives each call of a tool that has no result the result "interrupted", behind those of its message: most providers of
// models refuse a conversation with a call that has none. isAnswer: the agent gives the calls of the last message their results.
func withResults(messages []message, isAnswer bool) (repaired []message) {
	type calls struct {
		ToolCalls  []struct{ ID string }
		ToolCallID string
	}
	read, hasResult, last := make([]calls, len(messages)), map[string]bool{}, -1
	for i, message := range messages {
		_ = json.Unmarshal(compaction.MessageAsRead(message.json), &read[i]) // another shape has no calls
		hasResult[read[i].ToolCallID] = true
		if len(read[i].ToolCalls) > 0 {
			last = i
		}
	}
	var lacking []message
	for i, message := range messages {
		if message.role != "tool" {
			repaired, lacking = append(repaired, lacking...), nil
		}
		repaired = append(repaired, message)
		if isAnswer && i == last {
			continue
		}
		for _, call := range read[i].ToolCalls {
			if hasResult[call.ID] {
				continue
			}
			hasResult[call.ID] = true
			lacking = append(lacking, readMessage(new(jsontext.Object).Value("id", call.ID+"-interrupted").Value("role", "tool").
				Value("toolCallId", call.ID).Value("content", "interrupted").End()))
		}
	}
	return append(repaired, lacking...)
}
