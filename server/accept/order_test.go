package accept_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
)

// A second device that has the conversation puts what it does not know behind what it knows, wherever a list has it: of an input and of a
// snapshot. So does the fold; in the order of the input, a page that stays open and one that is reloaded would never agree.
func TestBothClientsPutUnknownMessagesLast(t *testing.T) {
	t.Parallel()
	const (
		listed  = `[{"id":"u0","role":"user","content":"0"},{"id":"x","role":"user","content":"x"},{"id":"a","role":"assistant","content":"x"},{"id":"u1","role":"user","content":"1"}]`
		begun   = `{"type":"RUN_STARTED","threadId":"t","runId":"r1"}` + "\n" + `{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u0","role":"user","content":"0"}]}` + "\nSTART a\nCONTENT a\nEND a\nFINISHED r1\n"
		started = `{"type":"RUN_STARTED","threadId":"t","runId":"r2","input":{"threadId":"t","runId":"r2","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":` + listed + `}}` + "\nFINISHED r2"
		listing = "RUN r2\n" + `{"type":"MESSAGES_SNAPSHOT","messages":` + listed + `}` + "\nFINISHED r2"
	)
	streams := [][][]byte{stream(begun + started), stream(begun + listing)}
	for i, outcomes := range judge(t, streams) {
		for j, outcome := range outcomes {
			if outcome.Error != "" {
				t.Fatal(outcome.Error)
			}
			var ids []string
			for _, m := range outcome.messages(t) {
				ids = append(ids, m.ID)
			}
			if got := strings.Join(ids, " "); got != "u0 a x u1" {
				t.Errorf("stream %d, client %d: %s", i, j, got)
			}
		}
		fold := compaction.New()
		for _, event := range streams[i] {
			fold.Apply(event)
		}
		var ids []string
		for _, m := range fold.Messages() {
			var message struct{ ID string }
			must.Do(t, json.Unmarshal(m.JSON(), &message))
			ids = append(ids, message.ID)
		}
		if got := strings.Join(ids, " "); got != "u0 a x u1" {
			t.Errorf("stream %d, fold: %s", i, got)
		}
	}
}
