package server_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A page gets no event that is gone after a reload, wherever it has begun: patches that RFC 6902 refuses and the client's library applies,
// and pieces of messages that were never started. Thinking comes with the id that it has in the log.
func TestPagesGetWhatAReloadShows(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	var log lockedBuffer
	options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	p := serve(t, testdb.Pool(t), options)
	other := serve(t, p.pool(), withAgent(a))
	p.run("thread", "before", "u1 user Hello")
	called := a.called(t)
	called.send(
		started("thread", "before"), `{"type":"ACTIVITY_SNAPSHOT","messageId":"plan","activityType":"PLAN","content":{"steps":[]}}`, finished("thread", "before"),
	)
	close(called.answers)
	p.waitForSeq("thread", 3)

	streams := map[string]*client{"the page that asks": p.run("thread", "run", "u1 user Hello", "u2 user Go on")}
	called = a.called(t)
	called.send(started("thread", "run"), `{"type":"STATE_SNAPSHOT","snapshot":{"list":[1],"text":"x"}}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/text/wrong","value":1}]}`, `{"type":"THINKING_TEXT_MESSAGE_START"}`)
	p.waitForSeq("thread", 7)
	streams["one that attaches"] = p.stream("POST", "/agent/test/connect", connectInput("thread"))
	streams["one of another process"] = other.stream("POST", "/agent/test/connect", connectInput("thread"))
	for _, attached := range streams {
		attached.want("RUN_STARTED")
	}
	called.send(
		`{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"hm"}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/list/01","value":"wrong"}]}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/right","value":1}]}`,
		`{"type":"STATE_DELTA","delta":[{"op":"_get","path":"/right","value":"wrong"}]}`,
		`{"type":"ACTIVITY_DELTA","messageId":"plan","activityType":"wrong","patch":[{"op":"move","from":"/steps","path":"/none/there"}]}`,
		`{"type":"ACTIVITY_DELTA","messageId":"plan","activityType":"PLAN","patch":[{"op":"add","path":"/steps/-","value":"right"}]}`,
		content("wrong", "x"), content("wrong", "y"), content("u1", " and more"),
		`{"type":"THINKING_TEXT_MESSAGE_END"}`, finished("thread", "run"),
	)
	close(called.answers)
	for name, attached := range streams {
		attached.rest()
		text := strings.Join(attached.events, "\n")
		if strings.Contains(text, "wrong") {
			t.Errorf("%s got an event that has no effect:\n%s", name, text)
		}
		for _, part := range []string{`"path":"/right"`, `"value":"right"`, `" and more"`, `"REASONING_MESSAGE_CONTENT"`, `"messageId":"run-thinking-7"`} {
			if !strings.Contains(text, part) {
				t.Errorf("%s did not get %s:\n%s", name, part, text)
			}
		}
		fold := compaction.New()
		for _, event := range attached.events {
			fold.Apply([]byte(event))
		}
		thought := slices.IndexFunc(fold.Messages(), func(m *compaction.Message) bool { return bytes.Contains(m.JSON(), []byte("run-thinking-7")) })
		if got := string(fold.State()); !sameJSON(t, got, `{"list":[1],"text":"x","right":1}`) || thought < 0 {
			t.Errorf("%s shows state %s, and thinking as message %d", name, got, thought)
		}
	}
	// A stream that begins when all others have ended folds the run again, and names its events again.
	named := map[string]bool{}
	for _, seq := range regexp.MustCompile(`an event has no effect.* (seq=\d+)`).FindAllStringSubmatch(log.String(), -1) {
		named[seq[1]] = true
	}
	if len(named) != 6 || !strings.Contains(log.String(), "operation 1 of the patch fails by RFC 6902") {
		t.Errorf("the log names %d events:\n%s", len(named), log.String())
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var texts [2]string
	for i, text := range []string{a, b} {
		var value any
		must.Do(t, json.Unmarshal([]byte(text), &value))
		spelled, _ := json.Marshal(value)
		texts[i] = string(spelled)
	}
	return texts[0] == texts[1]
}

// A lockedBuffer is a buffer for a log.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
