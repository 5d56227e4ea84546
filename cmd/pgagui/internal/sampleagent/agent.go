// Package sampleagent is the scripted agent of demo and dev.
package sampleagent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
)

// Agent is an AG-UI agent that follows a script: words, a tool call, a change of the state. A
// user who asks for a long or slow answer gets one that is worth stopping.
type Agent struct {
	WordEvery time.Duration
}

const (
	Name   = "assistant"
	Answer = "Hello! I am a scripted agent. Every word you read is in the log of your database already. " +
		"I looked at the clock, and counted our turns in the state. Ask for a long answer, and stop me."
	sampleLongAnswer = "This goes on for a minute unless you stop me. Reload the page meanwhile: you will not miss a word. "
	LongTime         = time.Minute
)

// ServeHTTP answers a RunAgentInput with the events of a run.
func (a Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var input struct {
		ThreadID, RunID string
		Messages        []struct {
			Role    string
			Content json.RawMessage
		}
		State json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	emit := func(event map[string]any) bool {
		text, err := json.Marshal(event)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		}
		return err == nil && control.Flush() == nil && r.Context().Err() == nil
	}
	// say streams words until they or the time are over.
	say := func(messageID, text string, atLeast time.Duration) {
		emit(map[string]any{"type": "TEXT_MESSAGE_START", "messageId": messageID, "role": "assistant"})
		begin := time.Now()
		for isFirst := true; isFirst || time.Since(begin) < atLeast; isFirst = false {
			for word := range strings.FieldsSeq(text) {
				if !emit(map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": messageID, "delta": word + " "}) {
					return
				}
				select {
				case <-time.After(a.WordEvery):
				case <-r.Context().Done(): // the run was stopped
					return
				}
			}
		}
		emit(map[string]any{"type": "TEXT_MESSAGE_END", "messageId": messageID})
	}

	var question string
	for _, message := range input.Messages {
		if message.Role == "user" {
			question = strings.ToLower(eventjson.TextOf(message.Content))
		}
	}
	emit(map[string]any{"type": "RUN_STARTED", "threadId": input.ThreadID, "runId": input.RunID})
	var state struct{ Turns int }
	_ = json.Unmarshal(input.State, &state) // a conversation without turns has another state
	emit(map[string]any{"type": "STATE_SNAPSHOT", "snapshot": map[string]any{"turns": state.Turns}})
	call := "call-" + input.RunID
	emit(map[string]any{"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "clock"})
	emit(map[string]any{"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": `{"zone":`})
	emit(map[string]any{"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": `"UTC"}`})
	emit(map[string]any{"type": "TOOL_CALL_END", "toolCallId": call})
	emit(map[string]any{
		"type": "TOOL_CALL_RESULT", "messageId": "result-" + input.RunID, "toolCallId": call, "content": time.Now().UTC().Format(time.TimeOnly), "role": "tool",
	})
	emit(map[string]any{"type": "STATE_DELTA", "delta": []any{map[string]any{"op": "replace", "path": "/turns", "value": state.Turns + 1}}})
	if strings.Contains(question, "long") || strings.Contains(question, "slow") {
		say("answer-"+input.RunID, sampleLongAnswer, LongTime)
	} else {
		say("answer-"+input.RunID, Answer, 0)
	}
	emit(map[string]any{"type": "RUN_FINISHED", "threadId": input.ThreadID, "runId": input.RunID})
}
