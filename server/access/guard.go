package access

import (
	"net/http"
	"time"
)

// streamRetry is when a client with too many streams may retry. It is a guess: when one of its
// streams ends cannot be known.
const streamRetry = 5 * time.Second

// Guard decides which requests reach a handler.
type Guard struct {
	// Authenticator finds out who sent the request. Required.
	Authenticator Authenticator
	// Limits bound what an identity may use. No limits if nil.
	Limits *Limits
	// Audit answers and logs the requests that are refused.
	Audit Audit
}

// Require returns a handler that passes on the requests of identities that have all rights of
// needed, within their rate; of all identities if needed is zero. next gets the identity with
// [IdentityFrom]. Register it with a ServeMux, whose pattern the log names.
//
// If a handler behind a Guard passes a request on to another one with its context, the second Guard
// checks the rights only: the sender is known, and the request was counted.
func (g Guard) Require(needed Rights, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identity, isKnown := IdentityFrom(r.Context())
		if !isKnown {
			var err error
			if identity, err = g.Authenticator.Authenticate(r); err != nil {
				g.Audit.Refuse(w, r, err)
				return
			}
			r = r.WithContext(WithIdentity(r.Context(), identity))
			if err := g.count(identity); err != nil {
				g.Audit.Refuse(w, r, err)
				return
			}
		}
		if missing := needed &^ identity.Rights; !identity.Can(needed) {
			g.Audit.Refuse(w, r, &Refusal{
				Kind: ErrForbidden, Reason: "missing right: " + missing.String(), Missing: missing,
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g Guard) count(identity Identity) error {
	if g.Limits == nil {
		return nil
	}
	if retryAfter, ok := g.Limits.Allow(identity); !ok {
		return &Refusal{Kind: ErrLimited, Reason: "too many requests", RetryAfter: retryAfter}
	}
	return nil
}

// OpenStream counts a stream of the request's identity until close is called. If the identity has
// too many open, OpenStream answers with 429 and returns false.
//
//	closeStream, ok := guard.OpenStream(w, r)
//	if !ok {
//		return
//	}
//	defer closeStream()
func (g Guard) OpenStream(w http.ResponseWriter, r *http.Request) (closeStream func(), ok bool) {
	if g.Limits == nil {
		return func() {}, true
	}
	identity, _ := IdentityFrom(r.Context())
	release, ok := g.Limits.AcquireStream(identity)
	if !ok {
		g.Audit.Refuse(w, r, &Refusal{Kind: ErrLimited, Reason: "too many open streams", RetryAfter: streamRetry})
	}
	return release, ok
}
