package compaction

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
)

// allStreams are options that cover all that streams may hold.
var allStreams = []compactiontest.Options{
	{},
	{Unicode: true, Numbers: true},
	{Wild: true},
	{Broken: true},
	{Wild: true, RefusedChunks: true, Proposals: true, Malformed: true, Unicode: true, Numbers: true},
}

// eachStream runs a test on generated streams.
func eachStream(t *testing.T, count uint64, run func(t *testing.T, events []json.RawMessage)) {
	for i, options := range allStreams {
		for seed := range count {
			events := compactiontest.Stream(uint64(i)<<32+seed, options)
			if run(t, events); t.Failed() {
				t.Fatalf("seed %d of %+v", uint64(i)<<32+seed, options)
			}
		}
	}
}

func TestABatchMeansWhatItsEventsMean(t *testing.T) {
	t.Parallel()
	eachStream(t, 100, func(t *testing.T, events []json.RawMessage) {
		whole, single := New(), New()
		batch := compactiontest.Batch(events)
		must.Have(whole.ApplyBatch(batch))(t)
		clear(batch) // the fold keeps none of it
		for _, event := range events {
			single.Apply(event)
		}
		wantMeaning(t, single, whole)
		for _, m := range whole.Messages() {
			if m.Size() != len(m.JSON()) || !json.Valid(m.JSON()) {
				t.Errorf("size %d of %s", m.Size(), m.JSON())
			}
		}
		if size := whole.StateSize(); size < len(whole.State()) || !json.Valid(whole.State()) || !json.Valid(whole.Interrupts()) {
			t.Errorf("size %d of state %s, interrupts %s", size, whole.State(), whole.Interrupts())
		}
	})
}

func TestResumeAnywhere(t *testing.T) {
	t.Parallel()
	eachStream(t, 60, func(t *testing.T, events []json.RawMessage) {
		want := New()
		resumed := New()
		for i, event := range events {
			want.Apply(event)
			resumed.Apply(event)
			wantMeaning(t, resumed, want)
			if i%3 == 0 {
				var err error
				if resumed, err = Resume(resumed.Snapshot()); err != nil {
					t.Fatal(err)
				}
				resumed.at = want.at
				wantMeaning(t, resumed, want)
			}
		}
	})
}

// The versions that a caller gives tell which messages are one.
func TestResumeWithVersions(t *testing.T) {
	t.Parallel()
	f := foldOf(t, textM, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"x"}`, snapshotOf(`{"id":"m","role":"user","content":"y"}`), reasonR)
	for i, m := range f.Messages() {
		m.Version = int32(i + 1)
	}
	resumed := must.Have(Resume(f.Snapshot()))(t)
	if got := resumed.Messages()[2].Version; got != 3 {
		t.Errorf("the version of a message is %d after resuming", got)
	}
	resumed.Apply([]byte(helloM))
	f.Apply([]byte(helloM))
	wantMeaning(t, resumed, f)
	if !strings.Contains(string(resumed.Messages()[1].JSON()), "yHello") {
		t.Errorf("the second of the two did not change: %s", resumed.Messages()[1].JSON())
	}
}

func TestClonesGoTheirOwnWay(t *testing.T) {
	t.Parallel()
	eachStream(t, 60, func(t *testing.T, events []json.RawMessage) {
		half := len(events) / 2
		trunk := New()
		for _, event := range events[:half] {
			trunk.Apply(event)
		}
		before := meaning(trunk)
		branch, mirror := trunk.Clone(), New()
		for _, event := range events[:half] {
			mirror.Apply(event)
		}
		for _, event := range events[half:] {
			branch.Apply(event)
			mirror.Apply(event)
			if leaf := branch.Clone(); half%2 == 0 { // either of the two may go on
				branch = leaf
			}
		}
		wantMeaning(t, branch, mirror)
		if got := meaning(trunk); got != before {
			t.Errorf("the clone changed the original from\n%s\nto\n%s", before, got)
		}
		after := meaning(branch)
		for _, event := range events[half:] {
			trunk.Apply(event)
		}
		wantMeaning(t, trunk, mirror)
		if got := meaning(branch); got != after {
			t.Errorf("the original changed the clone from\n%s\nto\n%s", after, got)
		}
	})
}

func TestClonesShareVersions(t *testing.T) {
	t.Parallel()
	f := foldOf(t, textM, reasonR)
	clone := f.Clone()
	f.Messages()[0].Version, f.Messages()[1].Version = 1, 2
	clone.Apply([]byte(helloM))
	if got := clone.Messages()[0].Version; got != 0 {
		t.Errorf("the changed message has version %d", got)
	}
	if got := clone.Messages()[1].Version; got != 2 {
		t.Errorf("the shared message has version %d", got)
	}
	if got := f.Messages()[0].Version; got != 1 {
		t.Errorf("the original's message has version %d", got)
	}
}

func TestDamagedSnapshots(t *testing.T) {
	t.Parallel()
	good := foldOf(t, textM, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"x","subagentRunId":"s"}`).Snapshot()
	must.Have(Resume(good))(t)
	for name, damage := range map[string]func(*Snapshot){
		"messages": func(s *Snapshot) { s.Messages = []StoredMessage{{Body: json.RawMessage(`[]`)}} }, "no body": func(s *Snapshot) { s.Messages = []StoredMessage{{}} },
		"state": func(s *Snapshot) { s.State = nil }, "interrupts": func(s *Snapshot) { s.Interrupts = json.RawMessage(`{}`) },
		"lanes": func(s *Snapshot) { s.Lanes = json.RawMessage(`{}`) }, "kind": func(s *Snapshot) { s.Lanes = json.RawMessage(`[{"lane":null,"kind":"x","id":"a"}]`) },
		"id": func(s *Snapshot) { s.Lanes = json.RawMessage(`[{"lane":null,"kind":"text","id":7}]`) }, "lane": func(s *Snapshot) { s.Lanes = json.RawMessage(`[{"lane":7,"kind":"text","id":"a"}]`) },
	} {
		s := good
		damage(&s)
		if _, err := Resume(s); err == nil || !strings.HasPrefix(err.Error(), "compaction: resume: ") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestBytesThatAreNoEventHaveNoEffect(t *testing.T) {
	t.Parallel()
	f := New()
	for _, text := range []string{``, ` `, `x`, `[]`, `{`, `{"type":"TEXT_MESSAGE_START","messageId":"m"`, textM + `x`, textM + textM, "\x00"} {
		f.Apply([]byte(text))
	}
	wantMeaning(t, f, New())
	f.Apply([]byte(" " + textM + "\n"))
	if len(f.Messages()) != 1 {
		t.Error("white space around an event matters")
	}
}

func FuzzApply(f *testing.F) {
	for seed, options := range allStreams {
		for _, event := range compactiontest.Stream(uint64(seed), options) {
			f.Add([]byte(event))
		}
	}
	ground := foldOf(f, textM, helloM, callC, reasonR, strings.ReplaceAll(activityM, `"m"`, `"a"`), `{"type":"TEXT_MESSAGE_CHUNK","messageId":"x"}`, `{"type":"STATE_SNAPSHOT","snapshot":{"a":[1,{"b":2}]}}`)
	before := meaning(ground)
	f.Fuzz(func(t *testing.T, event []byte) {
		got := ground.Clone()
		got.Apply(bytes.Clone(event))
		got.Apply(bytes.Clone(event))
		for _, m := range got.Messages() {
			if !json.Valid(m.JSON()) {
				t.Errorf("invalid message %s", m.JSON())
			}
		}
		if !json.Valid(got.State()) || !json.Valid(got.Interrupts()) || got.Lanes() != nil && !json.Valid(got.Lanes()) {
			t.Errorf("invalid meaning %s", meaning(got))
		}
		if resumed, err := Resume(got.Snapshot()); err != nil {
			t.Error(err)
		} else {
			wantMeaning(t, resumed, got)
		}
		if after := meaning(ground); after != before {
			t.Errorf("the event changed the original: %s", after)
		}
	})
}
