package compactiontest

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

func TestStreamsDependOnTheSeedAlone(t *testing.T) {
	t.Parallel()
	options := Options{Wild: true, RefusedChunks: true, Proposals: true, Malformed: true, Unicode: true, Numbers: true}
	for seed := range uint64(50) {
		for _, options := range []Options{{}, {Wild: true}, options} {
			if a, b := Stream(seed, options), Stream(seed, options); string(Batch(a)) != string(Batch(b)) {
				t.Fatalf("seed %d gives two streams", seed)
			}
		}
	}
	if string(Batch(Stream(1, options))) == string(Batch(Stream(2, options))) {
		t.Error("two seeds give one stream")
	}
}

func TestStreamsHoldAllTypesOfEvents(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(50) {
		for _, wild := range []bool{true, false} {
			for _, event := range Stream(seed, Options{Wild: wild, Proposals: true}) {
				var e struct{ Type string }
				if err := json.Unmarshal(event, &e); err != nil {
					t.Fatalf("%s: %v", event, err)
				}
				seen[e.Type] = true
			}
		}
	}
	if types := slices.Sorted(maps.Keys(seen)); len(types) < 34 {
		t.Errorf("only %d types of events: %v", len(types), types)
	}
}
