package compactiontest

import (
	"encoding/json"
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

// Each type is emitted: in wild streams all of them, in valid ones those of today's protocol. A new type whose part or action no
// generator knows fails here.
func TestStreamsHoldAllTypesOfEvents(t *testing.T) {
	t.Parallel()
	for _, wild := range []bool{true, false} {
		seen := map[string]bool{}
		for seed := range uint64(100) {
			for _, event := range Stream(seed, Options{Wild: wild, Proposals: wild}) {
				var e struct{ Type string }
				if err := json.Unmarshal(event, &e); err != nil {
					t.Fatalf("%s: %v", event, err)
				}
				seen[e.Type] = true
			}
		}
		for _, e := range eventTypes {
			if !seen[e.name] && (wild || e.isCurrent) {
				t.Errorf("wild %t: no stream has a %s", wild, e.name)
			}
		}
	}
}
