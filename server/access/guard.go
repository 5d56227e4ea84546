package access

import (
	"context"
	"errors"
	"fmt"
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
			r = r.WithContext(g.withToken(WithIdentity(r.Context(), identity), r))
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

type tokenKey struct{}

// withToken returns a context with which Recheck authenticates a request once more.
func (g Guard) withToken(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, tokenKey{}, func() (Identity, error) { return g.Authenticator.Authenticate(r) })
}

// Recheck authenticates a request once more, of which ctx is the context. It returns why the identity
// of the request is not valid any more: its token has expired or was withdrawn, or has other rights or
// another scope now. A stream that may last longer than a minute must call it, and end.
//
// Errors: ErrNoToken, ErrBadToken.
func Recheck(ctx context.Context) error {
	authenticate, isThere := ctx.Value(tokenKey{}).(func() (Identity, error))
	if !isThere {
		return nil
	}
	then, _ := IdentityFrom(ctx)
	now, err := authenticate()
	switch {
	case errors.Is(err, ErrUnavailable):
		return nil // the provider of identities has not said no
	case err == nil && (now.Scope != then.Scope || now.Rights != then.Rights):
		return &Refusal{Kind: ErrBadToken, Reason: "the token has other rights now", Subject: now.Subject}
	}
	return err
}

func (g Guard) count(identity Identity) error {
	if g.Limits == nil {
		return nil
	}
	if retryAfter, ok := g.Limits.Allow(identity); !ok {
		return &Refusal{Kind: ErrLimited, Reason: fmt.Sprintf("too many requests: the limit of an identity is %g a second", g.Limits.options.RequestsPerSecond), RetryAfter: retryAfter}
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
		g.Audit.Refuse(w, r, &Refusal{Kind: ErrLimited, Reason: fmt.Sprintf("too many open streams: the limit of an identity is %d", g.Limits.options.Streams), RetryAfter: streamRetry})
	}
	return release, ok
}
