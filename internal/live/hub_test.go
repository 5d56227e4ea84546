package live

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// What the hub keeps of all threads together is bounded: those without new events for the longest time go first, and their followers read from the database.
func TestTheHubKeepsABoundedPartOfAllThreads(t *testing.T) {
	t.Parallel()
	const each = 3 << 20 // more than a thread keeps of several chunks
	h := NewHub(HubConfig{})
	h.stop = func() {} // nothing asks
	news := func(seq int64) []Chunk {
		return []Chunk{{Events: []Event{{Seq: seq, RunID: "r", RecordedAt: time.Unix(seq, 0), JSON: json.RawMessage("{}")}}, bytes: each, isRunning: true}}
	}
	const threads = 2 * maxHubBytes / each
	var topics []*Topic
	for n := range threads {
		topic := h.Join(Key{ThreadID: fmt.Sprint("t", n)})
		topics = append(topics, topic)
		h.Open(topic, Position{}, []string{"r"})
		h.extend(topic, news(1), false)
	}
	for range 2 { // the first one has news all the time
		h.extend(topics[0], news(topics[0].end.Seq+1), false)
	}

	sum := 0
	for _, topic := range topics {
		sum += topic.bytes
	}
	if h.bytes != sum || sum > maxHubBytes || sum < maxHubBytes-each {
		t.Errorf("the hub keeps %d bytes and counts %d, want as much as fits into %d", sum, h.bytes, maxHubBytes)
	}
	if chunks, _, _ := h.After(topics[0], topics[0].end); chunks != nil {
		t.Error("behind its end there are events")
	}
	for _, n := range []int{0, threads - 1} {
		if chunks, _, _ := h.After(topics[n], Position{Seq: topics[n].end.Seq - 1}); len(chunks) != 1 {
			t.Errorf("thread %d had news just now: %d chunks", n, len(chunks))
		}
	}
	if chunks, changed, _ := h.After(topics[1], Position{}); chunks != nil || changed != nil {
		t.Error("the thread that had no news for the longest time is still kept")
	}
	if _, changed, _ := h.After(topics[1], topics[1].end); changed == nil {
		t.Error("a follower at the end of such a thread does not wait for news")
	}

	for _, topic := range topics {
		h.Leave(topic)
	}
	h.extend(topics[0], news(9), false) // an answer that comes late
	if h.bytes != 0 || h.kept.Len() != 0 {
		t.Errorf("without followers %d bytes of %d threads are kept", h.bytes, h.kept.Len())
	}
}
