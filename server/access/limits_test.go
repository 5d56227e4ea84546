package access

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func who(subject string) Identity { return Identity{Scope: "s", Subject: subject} }

// allowed returns how many requests an identity may send now.
func allowed(limits *Limits, identity Identity) (count int) {
	for ; count < 10_000; count++ {
		if _, ok := limits.Allow(identity); !ok {
			return count
		}
	}
	return count
}

func TestRateAndBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := NewLimits(LimitOptions{RequestsPerSecond: 10, Burst: 5})
		if got := allowed(limits, who("a")); got != 5 {
			t.Errorf("%d at once, want 5", got)
		}
		if retryAfter, ok := limits.Allow(who("a")); ok || retryAfter != 100*time.Millisecond {
			t.Errorf("retry after %s, %v", retryAfter, ok)
		}
		time.Sleep(300 * time.Millisecond)
		if got := allowed(limits, who("a")); got != 3 {
			t.Errorf("%d after 300 ms, want 3", got)
		}
		for _, other := range []Identity{who("b"), {Scope: "t", Subject: "a"}, {Issuer: "i", Scope: "s", Subject: "a"}} {
			if got := allowed(limits, other); got != 5 {
				t.Errorf("%+v has %d, want 5", other, got)
			}
		}
		sameOne := who("a")
		sameOne.TokenID, sameOne.Rights = "another token", Read
		if got := allowed(limits, sameOne); got != 0 {
			t.Errorf("another token of an identity has %d more", got)
		}
	})
}

func TestZeroValuesOfLimits(t *testing.T) {
	limits := NewLimits(LimitOptions{})
	if got := allowed(limits, who("a")); got < 100 || got > 110 {
		t.Errorf("%d at once, want 100", got)
	}
	if got := limits.MaxBodyBytes(); got != 64<<20 {
		t.Errorf("a body of %d bytes", got)
	}
	for range 100 {
		if _, ok := limits.AcquireStream(who("a")); !ok {
			t.Fatal("less than 100 streams")
		}
	}
	if _, ok := limits.AcquireStream(who("a")); ok {
		t.Error("101 streams")
	}

	none := NewLimits(LimitOptions{RequestsPerSecond: -1, Streams: -1, MaxBodyBytes: -1})
	if got := allowed(none, who("a")); got != 10_000 || none.MaxBodyBytes() != math.MaxInt64 || len(none.usage) != 0 {
		t.Errorf("no limits: %d requests, %d bytes, %d identities in memory", got, none.MaxBodyBytes(), len(none.usage))
	}
	for range 1000 {
		if _, ok := none.AcquireStream(who("a")); !ok {
			t.Fatal("no limits refused a stream")
		}
	}
	if got := allowed(NewLimits(LimitOptions{RequestsPerSecond: 0.001}), who("a")); got != 1 {
		t.Errorf("a low rate has a burst of %d, want 1", got)
	}
}

func TestStreams(t *testing.T) {
	limits := NewLimits(LimitOptions{Streams: 2})
	first, _ := limits.AcquireStream(who("a"))
	second, ok := limits.AcquireStream(who("a"))
	if third, tooMany := limits.AcquireStream(who("a")); !ok || tooMany || third != nil {
		t.Fatal("the limit is not 2")
	}
	if _, ok := limits.AcquireStream(who("b")); !ok {
		t.Error("an identity has the streams of another one")
	}
	first()
	first() // counts once
	if _, ok := limits.AcquireStream(who("a")); !ok {
		t.Error("a stream that was released still counts")
	}
	if _, ok := limits.AcquireStream(who("a")); ok {
		t.Error("a stream that was released twice counts twice")
	}
	second()
}

func TestIdleIdentitiesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := NewLimits(LimitOptions{RequestsPerSecond: 10, Burst: 20}) // full after 2 s
		release, _ := limits.AcquireStream(who("streaming"))
		for i := range 1000 {
			limits.Allow(who(fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		limits.Allow(who("0")) // still active
		time.Sleep(1001 * time.Millisecond)
		limits.Allow(who("new"))
		if len(limits.usage) != 3 || limits.idle.Len() != 2 {
			t.Errorf("%d identities in memory, %d without streams, want 3 and 2", len(limits.usage), limits.idle.Len())
		}
		if got := allowed(limits, who("0")); got != 20 { // 19 s, and a second's refill is lost on a full bucket
			t.Errorf("an active identity has %d left, want 20", got)
		}
		release()
		time.Sleep(time.Minute)
		limits.Allow(who("last"))
		if len(limits.usage) != 1 || limits.idle.Len() != 1 {
			t.Errorf("%d identities in memory, want 1", len(limits.usage))
		}
	})
}

func TestMemoryOfLimitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := NewLimits(LimitOptions{RequestsPerSecond: 1, Burst: 3, MaxIdentities: 10})
		held, _ := limits.AcquireStream(who("streaming"))
		allowed(limits, who("streaming"))
		for i := range 1000 {
			allowed(limits, who(fmt.Sprint(i)))
		}
		if len(limits.usage) != 11 || limits.idle.Len() != 10 {
			t.Errorf("%d identities in memory, %d without streams", len(limits.usage), limits.idle.Len())
		}
		if got := allowed(limits, who("999")); got != 0 {
			t.Errorf("the latest identity was forgotten: it has %d", got)
		}
		if got := allowed(limits, who("streaming")); got != 0 {
			t.Errorf("an identity with a stream was forgotten: it has %d", got)
		}
		held()
		if len(limits.usage) != 10 {
			t.Errorf("%d identities in memory, want 10", len(limits.usage))
		}
	})
}

func TestLimitsInParallel(t *testing.T) {
	limits := NewLimits(LimitOptions{RequestsPerSecond: 1e6, Streams: 3, MaxIdentities: 2})
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 500 {
				identity := who(fmt.Sprint((worker + i) % 5))
				limits.Allow(identity)
				if release, ok := limits.AcquireStream(identity); ok {
					release()
				}
			}
		})
	}
	group.Wait()
	if len(limits.usage) > 2 || len(limits.usage) != limits.idle.Len() {
		t.Errorf("%d identities in memory, %d without streams", len(limits.usage), limits.idle.Len())
	}
}

func BenchmarkAllow(b *testing.B) {
	limits := NewLimits(LimitOptions{RequestsPerSecond: 1e9})
	identities := make([]Identity, 10_000)
	for i := range identities {
		identities[i] = who(fmt.Sprint(i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		limits.Allow(identities[i%len(identities)])
	}
}
