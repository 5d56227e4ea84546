package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ag-ui-protocol/ag-ui/sdks/community/go/pkg/client/sse"
	"github.com/ag-ui-protocol/ag-ui/sdks/community/go/pkg/core/events"
	"github.com/ag-ui-protocol/ag-ui/sdks/community/go/pkg/core/types"
	encoding "github.com/ag-ui-protocol/ag-ui/sdks/community/go/pkg/encoding/sse"
	"github.com/sirupsen/logrus"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// gates let agents go on that wait in the middle of an answer, by the text that they answer.
type gates struct{ opened sync.Map }

func (g *gates) of(text string) chan struct{} {
	gate, _ := g.opened.LoadOrStore(text, make(chan struct{}))
	return gate.(chan struct{})
}

func (g *gates) release(text string) { close(g.of(text)) }

// newGoSDKAgent returns an agent that is made with the AG-UI SDK for Go.
func newGoSDKAgent(t *testing.T) (*httptest.Server, *gates) {
	t.Helper()
	g := &gates{}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input types.RunAgentInput
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
			t.Errorf("the agent cannot read its input: %v", err)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		writer := encoding.NewSSEWriter().WithLogger(slog.New(slog.DiscardHandler))
		send := func(all ...events.Event) {
			for _, event := range all {
				if err := writer.WriteEvent(r.Context(), w, event); err != nil && r.Context().Err() == nil {
					t.Errorf("the SDK cannot write %T: %v", event, err)
				}
			}
		}
		id := func(name string) string { return name + " of " + input.RunID }
		asked := fmt.Sprint(input.Messages[len(input.Messages)-1].Content)
		send(
			events.NewRunStartedEvent(input.ThreadID, input.RunID),
			events.NewStateSnapshotEvent(map[string]any{"asked": len(input.Messages)}),
			events.NewStepStartedEvent("answer"),
			events.NewToolCallStartEvent(id("call"), "look", events.WithParentMessageID(id("text"))),
			events.NewToolCallArgsEvent(id("call"), `{"at":"it"}`),
			events.NewToolCallEndEvent(id("call")),
			events.NewToolCallResultEvent(id("result"), id("call"), `{"seen":42}`),
			events.NewReasoningStartEvent(id("reasoning")),
			events.NewReasoningMessageStartEvent(id("thought"), "reasoning"),
			events.NewReasoningMessageContentEvent(id("thought"), "I have it."),
			events.NewReasoningMessageEndEvent(id("thought")),
			events.NewReasoningEndEvent(id("reasoning")),
			events.NewTextMessageStartEvent(id("answer"), events.WithRole("assistant")),
			events.NewTextMessageContentEvent(id("answer"), "You said "),
		)
		select {
		case <-g.of(asked):
		case <-r.Context().Done():
			return
		}
		send(
			events.NewTextMessageContentEvent(id("answer"), asked+" 😀."),
			events.NewTextMessageEndEvent(id("answer")),
			events.NewStateDeltaEvent([]events.JSONPatchOperation{{Op: "replace", Path: "/asked", Value: 0}}),
			events.NewActivitySnapshotEvent(id("activity"), "PLAN", map[string]any{"steps": []string{"one"}}),
			events.NewStepFinishedEvent("answer"),
			events.NewRunFinishedEvent(input.ThreadID, input.RunID),
		)
	}))
	t.Cleanup(agent.Close)
	return agent, g
}

// The AG-UI SDK for Go as the agent, and as a client.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	agent, gates := newGoSDKAgent(t)
	s := &stage{nodeHost: startHost(t)}
	pool := testdb.Pool(t)
	agents := map[string]string{"test": agent.URL}
	s.here, s.there = serve(t, pool, agents), serve(t, pool, agents)
	s.onEachVersion(t, func(s *scenario) {
		s.playAgent(gates.release)

		body := types.RunAgentInput{
			ThreadID: s.thread, RunID: "run-sdk", State: map[string]any{}, Tools: []types.Tool{}, Context: []types.Context{}, ForwardedProps: map[string]any{},
			Messages: []types.Message{{ID: "u-sdk", Role: "user", Content: "From Go to " + s.thread}},
		}
		gates.release("From Go to " + s.thread)
		ran := s.readWithGoSDK("/agent/test/run", body)
		connected := s.readWithGoSDK("/agent/test/connect", body)
		history, own, _ := strings.Cut(ran, " RUN_FINISHED RUN_STARTED ") // it sent its question alone
		if !strings.HasPrefix(history, "RUN_STARTED MESSAGES_SNAPSHOT") || !strings.HasPrefix(own, "STATE_SNAPSHOT STEP_STARTED") || !strings.HasSuffix(own, " RUN_FINISHED") {
			s.t.Errorf("the SDK's client received %s", ran)
		}
		if want := "RUN_STARTED MESSAGES_SNAPSHOT"; !strings.HasPrefix(connected, want) || !strings.HasSuffix(connected, " RUN_FINISHED") {
			s.t.Errorf("the SDK's client received the history %s", connected)
		}
		s.wantReloads(s.here.restored(s.t, s.thread, "run-sdk"), "run-sdk", true)
	})
}

// readWithGoSDK posts an input with the SDK's client, and returns the types of the events, which the SDK must be able to decode.
func (s *scenario) readWithGoSDK(path string, input types.RunAgentInput) string {
	s.t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	client := sse.NewClient(sse.Config{Endpoint: s.there.URL + path, Logger: quiet})
	defer client.Close()
	frames, failures, err := client.Stream(sse.StreamOptions{Context: s.t.Context(), Payload: input})
	must.Do(s.t, err)
	var received []string
	for frame := range frames {
		var event struct{ Type string }
		if err := json.Unmarshal(frame.Data, &event); err != nil {
			s.t.Fatalf("%v in %s", err, frame.Data)
		}
		decoded, err := events.NewEventDecoder(nil).DecodeEvent(event.Type, frame.Data)
		if err == nil {
			err = decoded.Validate()
		}
		if err != nil {
			s.t.Errorf("the SDK refuses %s: %v", frame.Data, err)
		}
		received = append(received, event.Type)
	}
	for err := range failures {
		s.t.Error(err)
	}
	return strings.Join(received, " ")
}
