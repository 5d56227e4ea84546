package compaction

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/pgagui/pgagui/internal/must"
)

// textBatch makes a batch of events of about 150 bytes that go on with messages in turn, as they stream from an agent.
func textBatch(messages, events int) []byte {
	var list []string
	for m := range messages {
		list = append(list, fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":"chatcmpl-%d","role":"assistant"}`, m))
	}
	for e := range events {
		id := e % messages
		list = append(list, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"chatcmpl-%d","delta":" word","rawEvent":{"role":"assistant","contents":[{"$type":"text","text":" word"}]}}`, id))
	}
	return []byte("[" + strings.Join(list, ",") + "]")
}

func benchmarkBatch(b *testing.B, events int, batch []byte) {
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		must.Have(New().ApplyBatch(batch))(b)
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkText(b *testing.B) {
	for _, messages := range []int{1, 10, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", messages), func(b *testing.B) {
			benchmarkBatch(b, messages+20_000, textBatch(messages, 20_000))
		})
	}
}

func BenchmarkLargeRawEvents(b *testing.B) {
	event := `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","rawEvent":{"body":"` + strings.Repeat("large ", 2000) + `"}}`
	benchmarkBatch(b, 1000, []byte("["+textM+strings.Repeat(","+event, 999)+"]"))
}

func BenchmarkToolCalls(b *testing.B) {
	const calls = 10_000
	var list []string
	for c := range calls {
		list = append(list, fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"f","parentMessageId":"p"}`, c))
	}
	list = append(list, textM)
	for c := range calls {
		list = append(list, fmt.Sprintf(`{"type":"TOOL_CALL_ARGS","toolCallId":"c%d","delta":"{}"}`, c), fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","messageId":"r%d","toolCallId":"c%d","content":"x"}`, c, c))
	}
	benchmarkBatch(b, len(list), []byte("["+strings.Join(list, ",")+"]"))
}

// stateOf93KB is a state of 300 records.
func stateOf93KB() string {
	var records []string
	for r := range 300 {
		records = append(records, fmt.Sprintf(`{"id":%d,"title":"record %d","done":false,"tags":["a","b"],"notes":"%s"}`, r, r, strings.Repeat("note ", 50)))
	}
	return `{"records":[` + strings.Join(records, ",") + `],"count":0}`
}

func BenchmarkStateDeltas(b *testing.B) {
	const deltas = 10_000
	random := rand.New(rand.NewPCG(1, 2))
	list := []string{`{"type":"STATE_SNAPSHOT","snapshot":` + stateOf93KB() + `}`}
	for d := range deltas {
		record := random.IntN(300)
		operation := [...]string{
			fmt.Sprintf(`{"op":"replace","path":"/records/%d/title","value":"title %d"}`, record, d),
			fmt.Sprintf(`{"op":"add","path":"/records/%d/tags/-","value":"t"}`, record),
			fmt.Sprintf(`{"op":"remove","path":"/records/%d/tags/0"}`, record),
			fmt.Sprintf(`{"op":"replace","path":"/count","value":%d}`, d),
			`{"op":"move","from":"/records/0","path":"/records/-"}`,
			fmt.Sprintf(`{"op":"copy","from":"/records/%d/id","path":"/last"}`, record),
		}[d%6]
		list = append(list, `{"type":"STATE_DELTA","delta":[`+operation+`]}`)
	}
	benchmarkBatch(b, len(list), []byte("["+strings.Join(list, ",")+"]"))
}

// The same patches with the library that judges ours in tests: it parses the document for each, and prints it.
func BenchmarkStateDeltasWithTheLibrary(b *testing.B) {
	state := []byte(stateOf93KB())
	const patches = 100
	b.ReportAllocs()
	for b.Loop() {
		document := state
		for n := range patches {
			patch, err := jsonpatch.DecodePatch([]byte(fmt.Sprintf(`[{"op":"replace","path":"/records/%d/title","value":"title %d"}]`, n%300, n)))
			must.Do(b, err)
			if document, err = patch.Apply(document); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(patches*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkClone(b *testing.B) {
	f := New()
	must.Have(f.ApplyBatch(textBatch(10_000, 10_000)))(b)
	event := []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"chatcmpl-7","delta":" word"}`)
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			f.Clone()
		}
	})
	b.Run("and an event", func(b *testing.B) {
		for b.Loop() {
			f.Clone().Apply(event)
		}
	})
}
