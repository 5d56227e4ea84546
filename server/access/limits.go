package access

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// LimitOptions are the settings of [NewLimits]. They count for each identity, whatever the number
// of its tokens, and in each process: behind a load balancer with n servers an identity has up to n
// times as much.
type LimitOptions struct {
	// RequestsPerSecond is the rate of requests in the long run. 50 if zero, no limit if negative.
	RequestsPerSecond float64
	// Burst is how many requests may come at once after a pause. If zero, as many as
	// RequestsPerSecond allows in two seconds.
	Burst int
	// Streams is how many streams may be open at the same time. 100 if zero, no limit if negative.
	Streams int
	// MaxBodyBytes is the size of a request body. Handlers apply it with http.MaxBytesReader.
	// 64 MiB if zero, no limit if negative.
	MaxBodyBytes int64
	// MaxIdentities bounds the memory, about 400 bytes for each. If more identities are active, the
	// one that sent nothing for the longest time begins with a full Burst. Identities with open
	// streams are not counted. 100,000 if zero.
	MaxIdentities int
}

// Limits counts the requests and streams of identities. It is safe for concurrent use.
type Limits struct {
	options LimitOptions
	// refill is the time after which a bucket is full, so that it can be forgotten.
	refill time.Duration

	mu    sync.Mutex // guards the fields below, and all usages
	usage map[usageKey]*usage
	idle  list.List // of *usage without streams, the one with the oldest request first
}

// usageKey is an identity, whichever of its tokens it uses.
type usageKey struct{ issuer, scope, subject string }

// usage is what an identity has used of its limits.
type usage struct {
	key     usageKey
	bucket  *rate.Limiter
	last    time.Time
	streams int
	idle    *list.Element // nil while it has streams
}

// NewLimits returns limits that no identity has used yet.
func NewLimits(options LimitOptions) *Limits {
	setDefault(&options.RequestsPerSecond, 50)
	if options.Burst <= 0 {
		options.Burst = int(math.Ceil(max(2*options.RequestsPerSecond, 1)))
	}
	setDefault(&options.Streams, 100)
	setDefault(&options.MaxBodyBytes, 64<<20)
	if options.MaxIdentities <= 0 {
		options.MaxIdentities = 100_000
	}
	limits := &Limits{options: options, usage: map[usageKey]*usage{}}
	if options.RequestsPerSecond > 0 {
		limits.refill = time.Duration(float64(options.Burst) / options.RequestsPerSecond * float64(time.Second))
	}
	return limits
}

// MaxBodyBytes returns the limit for http.MaxBytesReader.
func (l *Limits) MaxBodyBytes() int64 {
	if l.options.MaxBodyBytes < 0 {
		return math.MaxInt64
	}
	return l.options.MaxBodyBytes
}

// Allow counts a request, and reports whether it is within the rate of the identity. If not,
// retryAfter is when the next one will be.
func (l *Limits) Allow(identity Identity) (retryAfter time.Duration, ok bool) {
	if l.options.RequestsPerSecond < 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	reservation := l.usageOf(identity, now).bucket.ReserveN(now, 1)
	if delay := reservation.DelayFrom(now); delay > 0 {
		reservation.CancelAt(now)
		return delay, false
	}
	return 0, true
}

// AcquireStream counts a stream of the identity until release is called, and reports whether it is
// within the limit. If not, release is nil. release may be called more than once.
func (l *Limits) AcquireStream(identity Identity) (release func(), ok bool) {
	if l.options.Streams < 0 {
		return func() {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	used := l.usageOf(identity, time.Now())
	if used.streams >= l.options.Streams {
		return nil, false
	}
	used.streams++
	if used.idle != nil {
		l.idle.Remove(used.idle)
		used.idle = nil
	}
	return sync.OnceFunc(func() { l.releaseStream(used) }), true
}

func (l *Limits) releaseStream(used *usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	used.streams--
	if used.streams == 0 {
		used.last = time.Now()
		used.idle = l.idle.PushBack(used)
		l.evict(used.last)
	}
}

// usageOf returns what the identity has used, and makes it the one with the latest request.
func (l *Limits) usageOf(identity Identity, now time.Time) *usage {
	key := usageKey{identity.Issuer, identity.Scope, identity.Subject}
	used, isKnown := l.usage[key]
	if !isKnown {
		used = &usage{key: key, bucket: rate.NewLimiter(rate.Limit(max(l.options.RequestsPerSecond, 0)), l.options.Burst)}
		used.idle = l.idle.PushBack(used)
		l.usage[key] = used
	}
	used.last = now
	if used.idle != nil {
		l.idle.MoveToBack(used.idle)
	}
	if !isKnown {
		l.evict(now)
	}
	return used
}

// evict forgets the identities that have used nothing of their limits any more, and the oldest ones
// if there are too many. Each call follows the insertion of one, so its cost is constant on
// average.
func (l *Limits) evict(now time.Time) {
	for oldest := l.idle.Front(); oldest != nil; oldest = l.idle.Front() {
		used := oldest.Value.(*usage)
		if now.Sub(used.last) <= l.refill && l.idle.Len() <= l.options.MaxIdentities {
			return
		}
		l.idle.Remove(oldest)
		delete(l.usage, used.key)
	}
}
