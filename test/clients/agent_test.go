package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// scripted is an agent that says what a test lets it say.
type scripted struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string]chan *call // by thread: tests share an agent
}

// call is a request to the agent.
type call struct {
	input   agentInput
	body    json.RawMessage
	context context.Context // ends when the server ends the call
	answers chan string     // events; closing it ends the answer
}

type agentInput struct {
	ThreadID, RunID string
	Messages        []struct{ ID, Role string }
	State           json.RawMessage
	Resume          json.RawMessage
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	a := &scripted{calls: map[string]chan *call{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{context: r.Context(), answers: make(chan string, 1000)}
		c.body, _ = io.ReadAll(r.Body)
		if err := json.Unmarshal(c.body, &c.input); err != nil {
			t.Errorf("the agent received %s: %v", c.body, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		control := http.NewResponseController(w)
		_ = control.Flush()
		a.callsOf(c.input.ThreadID) <- c
		for {
			select {
			case event, isOpen := <-c.answers:
				if !isOpen {
					return
				}
				_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
				_ = control.Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

func (a *scripted) callsOf(thread string) chan *call {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls[thread] == nil {
		a.calls[thread] = make(chan *call, 10)
	}
	return a.calls[thread]
}

// called returns the next call for a thread.
func (a *scripted) called(t *testing.T, thread string) *call {
	t.Helper()
	select {
	case c := <-a.callsOf(thread):
		return c
	case <-time.After(patience):
		t.Fatalf("the agent was not called for thread %s", thread)
		return nil
	}
}

func (c *call) send(events ...string) {
	for _, event := range events {
		c.answers <- event
	}
}

// finish answers with events and ends.
func (c *call) finish(events ...string) {
	c.send(events...)
	close(c.answers)
}

// reply answers with a whole run: a message.
func (c *call) reply(messageID, text string) {
	c.finish(
		c.event("RUN_STARTED"),
		fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, messageID),
		fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":%q}`, messageID, text),
		fmt.Sprintf(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, messageID),
		c.event("RUN_FINISHED"),
	)
}

// event returns an event that begins or ends the run, with further members.
func (c *call) event(kind string, members ...string) string {
	text := fmt.Sprintf(`{"type":%q,"threadId":%q,"runId":%q`, kind, c.input.ThreadID, c.input.RunID)
	for _, member := range members {
		text += "," + member
	}
	return text + "}"
}

func (c *call) messageIDs() (ids []string) {
	for _, message := range c.input.Messages {
		ids = append(ids, message.ID)
	}
	return ids
}

// everything is a run with events of all kinds, among them deltas that cut a character in two. Names end with suffix, so that a
// thread can have several such runs.
func (c *call) everything(suffix string) []string {
	text := func(text string) string { return fmt.Sprintf(text, suffix) }
	return []string{
		c.event("RUN_STARTED"),
		`{"type":"STATE_SNAPSHOT","snapshot":{"count":0,"list":[1.50,"ä"],"\u0000":null}}`,
		`{"type":"STEP_STARTED","stepName":"plan"}`,
		text(`{"type":"REASONING_START","messageId":"reasoning%s"}`),
		text(`{"type":"REASONING_MESSAGE_START","messageId":"thought%s","role":"reasoning"}`),
		text(`{"type":"REASONING_MESSAGE_CONTENT","messageId":"thought%s","delta":"Let me "}`),
		text(`{"type":"REASONING_MESSAGE_CONTENT","messageId":"thought%s","delta":"see."}`),
		text(`{"type":"REASONING_MESSAGE_END","messageId":"thought%s"}`),
		text(`{"type":"REASONING_END","messageId":"reasoning%s"}`),
		text(`{"type":"TEXT_MESSAGE_START","messageId":"text%s","role":"assistant"}`),
		text(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"text%s","delta":"Hello \ud83d"}`),
		text(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"text%s","delta":"\ude00, 世界\n\n"}`),
		`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/count","value":1},{"op":"add","path":"/list/-","value":{"a":[]}}]}`,
		text(`{"type":"TEXT_MESSAGE_END","messageId":"text%s"}`),
		text(`{"type":"TOOL_CALL_START","toolCallId":"call%[1]s","toolCallName":"look","parentMessageId":"text%[1]s"}`),
		text(`{"type":"TOOL_CALL_ARGS","toolCallId":"call%s","delta":"{\"at\":"}`),
		text(`{"type":"TOOL_CALL_ARGS","toolCallId":"call%s","delta":"\"it\"}"}`),
		text(`{"type":"TOOL_CALL_END","toolCallId":"call%s"}`),
		text(`{"type":"TOOL_CALL_START","toolCallId":"alone%s","toolCallName":"wait"}`),
		text(`{"type":"TOOL_CALL_END","toolCallId":"alone%s"}`),
		text(`{"type":"TOOL_CALL_RESULT","messageId":"result%[1]s","toolCallId":"call%[1]s","content":"42","role":"tool"}`),
		text(`{"type":"ACTIVITY_SNAPSHOT","messageId":"activity%s","activityType":"PLAN","content":{"steps":["one"]}}`),
		text(`{"type":"ACTIVITY_DELTA","messageId":"activity%s","activityType":"PLAN","patch":[{"op":"add","path":"/steps/-","value":"two"}]}`),
		`{"type":"CUSTOM","name":"progress","value":{"percent":50}}`,
		`{"type":"RAW","event":{"x":1},"source":"model"}`,
		text(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"chunk%s","role":"assistant","delta":"a chunk"}`),
		text(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"chunk%s","delta":" more"}`),
		text(`{"type":"TOOL_CALL_CHUNK","toolCallId":"pieces%s","toolCallName":"pieces","delta":"{"}`),
		text(`{"type":"TOOL_CALL_CHUNK","toolCallId":"pieces%s","delta":"}"}`),
		`{"type":"STEP_FINISHED","stepName":"plan"}`,
		c.event("RUN_FINISHED", `"result":{"ok":true}`),
	}
}
