package accept_test

import (
	"fmt"
	"testing"

	"github.com/pgagui/pgagui/server/accept"
)

// started returns a filter of a run with an open message.
func started(tb testing.TB) *accept.Filter {
	tb.Helper()
	f := accept.New(run, 0)
	f.Push([]byte(`{"type":"RUN_STARTED","threadId":"t","runId":"run-1"}`))
	f.Push([]byte(`{"type":"TEXT_MESSAGE_START","messageId":"7d0f3e6a-4c9e-4b58-9d0a-0d6f4a2a6a51"}`))
	return f
}

var content = []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"7d0f3e6a-4c9e-4b58-9d0a-0d6f4a2a6a51","delta":" and then"}`)

func BenchmarkContent(b *testing.B) {
	f := started(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, send := f.Push(content); send == nil {
			b.Fatal("left out")
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	f := started(b)
	f.Push([]byte(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"7d0f3e6a","delta":"First"}`))
	chunk := []byte(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"7d0f3e6a","delta":" and then"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, send := f.Push(chunk); send == nil {
			b.Fatal("left out")
		}
	}
}

// BenchmarkAttach is a filter that gets a conversation of 100 messages.
func BenchmarkAttach(b *testing.B) {
	snapshot := []byte(`{"type":"MESSAGES_SNAPSHOT","messages":[`)
	for i := range 100 {
		if i > 0 {
			snapshot = append(snapshot, ',')
		}
		snapshot = fmt.Appendf(snapshot, `{"id":"7d0f3e6a-4c9e-4b58-9d0a-%012d","role":"assistant","content":"Some words of an answer."}`, i)
	}
	snapshot = append(snapshot, "]}"...)
	b.ReportAllocs()
	for b.Loop() {
		if _, send := accept.New(run, 0).Push(snapshot); send == nil {
			b.Fatal("left out")
		}
	}
}

func TestContentTakesNoMemory(t *testing.T) {
	f := started(t)
	if count := testing.AllocsPerRun(100, func() { f.Push(content) }); count != 0 {
		t.Errorf("%v allocations for an event with content", count)
	}
}
