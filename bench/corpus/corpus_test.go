package corpus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

// shared is one corpus for all tests, because it takes time to collect the text.
var shared = sync.OnceValues(func() (*Corpus, error) { return Open(context.Background()) })

func open(t *testing.T) *Corpus {
	t.Helper()
	corpus := must.Have(shared())(t)
	return corpus
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	one := open(t)
	other := must.Have(Open(t.Context()))(t)
	folder := t.TempDir()
	file := func(corpus *Corpus, seed uint64, name string) [32]byte {
		path := filepath.Join(folder, name)
		must.Do(t, WriteFile(path, corpus.AllTypes(seed, 10)))
		written := testfile.Read(t, path)
		return sha256.Sum256(written)
	}
	if file(one, 1, "a") != file(other, 1, "b") {
		t.Error("the same seed gave different conversations")
	}
	if file(one, 1, "c") == file(one, 2, "d") {
		t.Error("different seeds gave the same conversation")
	}
}

func TestAllTypesHasEveryTypeOfEvent(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, run := range open(t).AllTypes(1, 10).Runs {
		for _, event := range run.Events {
			seen[compaction.EventType(event)] = true
		}
	}
	// The 31 of protocol 1.0.
	for kind := range strings.FieldsSeq(`
		TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TEXT_MESSAGE_CHUNK
		TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_CHUNK TOOL_CALL_RESULT
		STATE_SNAPSHOT STATE_DELTA MESSAGES_SNAPSHOT ACTIVITY_SNAPSHOT ACTIVITY_DELTA RAW CUSTOM
		RUN_STARTED RUN_FINISHED RUN_ERROR STEP_STARTED STEP_FINISHED
		REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_MESSAGE_CHUNK
		REASONING_END REASONING_ENCRYPTED_VALUE SUBAGENT_STARTED SUBAGENT_FINISHED SUBAGENT_ERROR`) {
		if !seen[kind] {
			t.Errorf("no %s", kind)
		}
		delete(seen, kind)
	}
	if len(seen) > 0 {
		t.Errorf("types that the protocol does not have: %v", seen)
	}
}

// The events fold to the state of the writer.
func TestStateIsWhatTheEventsSay(t *testing.T) {
	t.Parallel()
	corpus := open(t)
	for name, fill := range map[string]func(w *writer){
		"from a snapshot": func(w *writer) { w.begin(""); w.stateSnapshot(); w.changeState(5, 20); w.growState(9_000) },
		"from deltas":     func(w *writer) { w.begin(""); w.firstState(); w.changeState(5, 20) },
		"filled before":   func(w *writer) { w.fillState(5_000); w.begin(""); w.stateSnapshot(); w.changeState(0, 20) },
	} {
		w := corpus.writer(1, tokenSize)
		fill(w)
		fold := compaction.New()
		for _, event := range w.conversation.Runs[0].Events {
			fold.Apply(event)
		}
		var got, want any
		must.Do(t, json.Unmarshal(fold.State(), &got))
		must.Do(t, json.Unmarshal(jsonText(w.state), &want))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the events give the state\n%s\nwant\n%s", name, fold.State(), jsonText(w.state))
		}
	}
}

func TestSizesOfTheConversations(t *testing.T) {
	t.Parallel()
	corpus := open(t)
	sizes := func(c Conversation) (runs, events, state int) {
		fold := compaction.New()
		for _, run := range c.Runs {
			for _, event := range run.Events {
				fold.Apply(event)
			}
		}
		return len(c.Runs), c.Events(), fold.StateSize()
	}
	near := func(value, wanted int) bool { return value > wanted*9/10 && value < wanted*11/10 }

	if runs, events, state := sizes(corpus.Growing(1, 290, 400_000)); runs != 290 || !near(events, 92_000) || !near(state, 400_000) {
		t.Errorf("Growing: %d runs, %d events, state of %d bytes", runs, events, state)
	}
	if _, events, state := sizes(corpus.AllTypes(1, 20)); !near(events, 20*320) || !near(state, 15_000) {
		t.Errorf("AllTypes: %d events in 20 runs, state of %d bytes", events, state)
	}
	if runs, events, _ := sizes(corpus.Fifty(1, 67_000, 4)); runs != 50 || !near(events, 16_000) {
		t.Errorf("Fifty: %d runs, %d events", runs, events)
	}
	coarse, fine := corpus.Fifty(1, 160_000, 12), corpus.Fifty(1, 160_000, 1)
	if factor := float64(fine.Events()) / float64(coarse.Events()); factor < 9 || factor > 11 {
		t.Errorf("the finer thread has %d events, the coarser %d", fine.Events(), coarse.Events())
	}
	everyday := corpus.Everyday(1, 50)
	if size := everyday.Bytes() / everyday.Events(); !near(size, 150) || !near(everyday.Events(), 50*320) {
		t.Errorf("Everyday: %d events of %d bytes in 50 runs", everyday.Events(), size)
	}
}

// The size of the pieces does not change the messages.
func TestFinerPiecesMakeTheSameMessages(t *testing.T) {
	t.Parallel()
	corpus := open(t)
	messages := func(perEvent int) []byte {
		fold := compaction.New()
		for _, run := range corpus.Fifty(1, 10_000, perEvent).Runs {
			for _, event := range run.Events {
				fold.Apply(event)
			}
		}
		var texts bytes.Buffer
		for _, message := range fold.Messages() {
			var body struct{ Content string }
			must.Do(t, json.Unmarshal(message.JSON(), &body))
			texts.WriteString(message.Role() + ": " + body.Content + "\n")
		}
		return texts.Bytes()
	}
	coarse, fine := messages(12), messages(1)
	if !bytes.Equal(coarse, fine) {
		t.Errorf("in large pieces:\n%.2000s\nin small pieces:\n%.2000s", coarse, fine)
	}
	if len(coarse) < 10_000 {
		t.Errorf("only %d bytes of text", len(coarse))
	}
}
