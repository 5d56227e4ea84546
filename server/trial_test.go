//go:build trial

package server_test

import (
	"encoding/json"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A message that an event of the trial's type brings is one: without it, a run branches off. See protocol/trial_test.go.
func TestTrialTypeBringsAMessageThatAnEditLeavesOut(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	for _, run := range []struct{ id, parent, user, note string }{{"run-1", "", "u1", "n1"}, {"run-2", "run-1", "u2", "n2"}} {
		events := []json.RawMessage{
			json.RawMessage(`{"type":"RUN_STARTED","threadId":"t","runId":"` + run.id + `","input":{"messages":[{"id":"` + run.user + `","role":"user","content":"x"}]}}`),
			json.RawMessage(`{"type":"TEST_NOTE_START","messageId":"` + run.note + `"}`),
			json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"` + run.note + `","delta":"A note"}`),
			json.RawMessage(`{"type":"TEXT_MESSAGE_END","messageId":"` + run.note + `"}`),
			json.RawMessage(`{"type":"RUN_FINISHED","threadId":"t","runId":"` + run.id + `"}`),
		}
		must.Have(p.store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: run.id}, events, pgagui.AppendOptions{}))(t)
	}
	c := p.stream("POST", "/agent/test/run", input("t", "new", "u1 user x", "n1 assistant A note", "u3 user Other"))
	a.called(t).finish("answer", "x")
	c.rest()
	if got := mustRun(t, p, "t", "new").ParentRunID; got != "run-1" {
		t.Errorf("the run continues from %q, want run-1: its client does not have what came after n1", got)
	}
}
