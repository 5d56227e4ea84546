// Package wait lets tests wait for what comes about by itself, never for a fixed time.
package wait

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must come about. It is long, because a busy machine is slow, and a test that passes does
// not wait for it.
const Patience = 2 * time.Minute

// mostPause is how long Until waits between two looks at most.
const mostPause = 20 * time.Millisecond

// For waits until a condition holds, and ends the test if it does not within Patience. what completes "waited in vain for".
func For(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !Until(condition) {
		t.Fatalf("waited in vain for %s", what)
	}
}

// Until waits until a condition holds, and reports whether it did within Patience. Other goroutines than the test's need it, as only that
// may end the test.
func Until(condition func() bool) bool {
	deadline := time.Now().Add(Patience)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, mostPause) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}
