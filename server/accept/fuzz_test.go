package accept_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/server/accept"
)

// FuzzFilter pushes lines: nothing panics, what comes out is JSON, each run begins and ends once, and what passed once passes
// a second filter unchanged.
func FuzzFilter(f *testing.F) {
	for seed := range uint64(30) {
		for _, options := range disorder {
			options.Events = 20
			events := asBytes(compactiontest.Stream(seed, options))
			for i := range events {
				events[i] = bytes.ReplaceAll(events[i], []byte("\n"), []byte(" "))
			}
			f.Add(bytes.Join(events, []byte("\n")), uint8(seed))
		}
	}
	for _, c := range schemaCases()[:200] {
		f.Add([]byte(c.event), uint8(0))
	}
	f.Fuzz(func(t *testing.T, lines []byte, clients uint8) {
		filter := accept.New(run, accept.Clients(clients%4))
		var events []json.RawMessage
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			events = append(events, line)
		}
		sent := pass(filter, events, false)
		for _, event := range sent {
			if !json.Valid(event) || event[bytes.IndexFunc(event, func(r rune) bool { return r > ' ' })] != '{' {
				t.Fatalf("%q is no JSON object", event)
			}
		}
		if problem := unmatchedEnds(t, sent); problem != "" {
			t.Fatalf("%s:\n%s", problem, printed(sent))
		}
		second := accept.New(run, accept.Clients(clients%4))
		var again []json.RawMessage
		for _, event := range sent {
			again = append(again, event)
		}
		if got := pass(second, again, false); !bytes.Equal(printedBytes(got), printedBytes(sent)) {
			t.Fatalf("a second filter changes\n%s\n\nto\n%s (%+v)", printed(sent), printed(got), second.Stats())
		}
		if compaction.EventType(sent[len(sent)-1]) == "" {
			t.Fatal("the last event has no type")
		}
	})
}

func printedBytes(events [][]byte) []byte { return bytes.Join(events, []byte("\n")) }
