package explorer

import (
	"maps"
	"sync"
	"time"

	"github.com/pgagui/pgagui/server/access"
)

// seen has when readers last wrote, or received an event: what they read next has it, so no replica that lacks it answers.
type seen struct {
	mu sync.Mutex
	at map[reader]time.Time
}

type reader struct{ scope, subject string }

// forgetAfter is longer than any replica is behind that is used; readers that were seen since are kept, however many they are.
const (
	forgetAfter = time.Hour
	mostSeen    = 10_000
)

func (s *seen) now(who access.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.at) >= mostSeen {
		maps.DeleteFunc(s.at, func(_ reader, at time.Time) bool { return time.Since(at) > forgetAfter })
	}
	if s.at == nil {
		s.at = map[reader]time.Time{}
	}
	s.at[reader{who.Scope, who.Subject}] = time.Now()
}

func (s *seen) last(who access.Identity) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[reader{who.Scope, who.Subject}]
}
