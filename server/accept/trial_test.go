//go:build trial

package accept_test

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui/server/accept"
)

// Clients that do not know the trial's type get the type in its place. See protocol/trial_test.go.
func TestTrialTypeReachesOlderClients(t *testing.T) {
	t.Parallel()
	for _, clients := range []accept.Clients{accept.Client0, accept.Client1, accept.Client0 | accept.Client1} {
		f := accept.New(run, clients)
		var sent []string
		for _, event := range []string{
			`{"type":"RUN_STARTED","threadId":"t","runId":"run-1"}`,
			`{"type":"TEST_NOTE_START","messageId":"n","role":"system"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"n","delta":"x"}`,
		} {
			before, send := f.Push([]byte(event))
			if len(before) > 0 {
				t.Errorf("clients %d: %s: the filter put in %s", clients, event, before)
			}
			sent = append(sent, string(send))
		}
		if want := `{"type":"TEXT_MESSAGE_START","messageId":"n","role":"system"}`; sent[1] != want || !strings.Contains(sent[2], "TEXT_MESSAGE_CONTENT") {
			t.Errorf("clients %d: sent %q, want %s", clients, sent, want)
		}
	}
}
