// Package access says who may do what over HTTP.
//
// An [Authenticator] turns a request into an [Identity]: the scope whose threads it may use, and
// its [Rights] there. There are three:
//
//   - [Tokens]: static bearer tokens, of which a file has the hashes.
//   - [JWT]: bearer tokens that an identity provider signs.
//   - [Anonymous]: no token at all, for a server that only this machine can reach ([LocalOnly]).
//
// [Both] joins the first two. A [Guard] puts an Authenticator and [Limits] in front of a handler:
//
//	guard := access.Guard{Authenticator: tokens, Limits: access.NewLimits(access.LimitOptions{})}
//	mux.Handle("GET /threads/{id}", guard.Require(access.Read, readThread))
//
// A request that is refused gets a [Refusal] as its answer, and one line in the log ([Audit]).
// Neither has the token, the query string or the body.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Identity is who sent a request, and what they may do.
type Identity struct {
	// Scope is the tenant or user whose threads the identity may use.
	Scope string
	// Rights are what it may do in the scope.
	Rights Rights
	// Subject names who it is, in logs: the name of a static token, or the claim "sub" of a JWT.
	Subject string
	// Issuer is the claim "iss" of a JWT. Empty for others.
	Issuer string
	// TokenID names the token: the name of a static token, or the claim "jti" of a JWT. It may be
	// empty. It is not a secret.
	TokenID string
	// Expires is when the token expires. Zero if it does not. The Authenticator checks it when a
	// request comes. A handler whose stream may last longer must end the stream at this time itself,
	// and earlier if Recheck says so.
	Expires time.Time
}

// Can reports whether the identity has all the rights of wanted.
func (i Identity) Can(wanted Rights) bool {
	return i.Rights&Admin != 0 || i.Rights&wanted == wanted
}

// Authenticator finds out who sent a request. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the identity of the sender, or a *Refusal.
	//
	// Errors: ErrNoToken, ErrBadToken, ErrUnavailable.
	Authenticate(*http.Request) (Identity, error)
}

// Rights is a set of rights. The zero value allows nothing. As text it is a list of names,
// separated by spaces or commas: "read write".
type Rights uint8

const (
	// Read allows to read threads and what belongs to them, and to follow runs.
	Read Rights = 1 << iota
	// Write allows to run agents, to append events, to fork, and to change titles, metadata, session
	// state and checkpoints.
	Write
	// Stop allows to stop and to abandon runs.
	Stop
	// Delete allows to erase threads.
	Delete
	// Admin allows everything, in the scope of the identity.
	Admin
	// Diagnose allows to read what agents answered in place of events. Such answers may quote what the agent received.
	Diagnose
)

var rightNames = []string{"read", "write", "stop", "delete", "admin", "diagnose"} // in the order of the bits

// ParseRights returns the rights that a text names. It is an error if a name is unknown.
func ParseRights(text string) (Rights, error) {
	var rights Rights
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		right, known := rightNamed(name)
		if !known {
			return 0, fmt.Errorf("unknown right %.40q (expected some of: %s)", name, strings.Join(rightNames, ", "))
		}
		rights |= right
	}
	return rights, nil
}

func rightNamed(name string) (Rights, bool) {
	for bit, known := range rightNames {
		if name == known {
			return 1 << bit, true
		}
	}
	return 0, false
}

// String returns the names of the rights, separated by spaces.
func (r Rights) String() string {
	var names []string
	for bit, name := range rightNames {
		if r&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// MarshalText returns what String returns.
func (r Rights) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what ParseRights reads.
func (r *Rights) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRights(string(text))
	return err
}

// Anonymous returns an Authenticator that takes every request, with or without a token, for the
// same identity. Use it only behind [LocalOnly], on an address that passes [CheckLoopback].
func Anonymous(scope string, rights Rights) Authenticator {
	return anonymous{Scope: scope, Rights: rights, Subject: "anonymous"}
}

type anonymous Identity

func (a anonymous) Authenticate(*http.Request) (Identity, error) { return Identity(a), nil }

type identityKey struct{}

// WithIdentity returns a context that has the identity. [Guard.Require] uses it.
func WithIdentity(ctx context.Context, identity Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// IdentityFrom returns the identity of a context, and whether it has one.
func IdentityFrom(ctx context.Context) (Identity, bool) {
	identity, isThere := ctx.Value(identityKey{}).(Identity)
	return identity, isThere
}

// maxNameBytes is the limit of the database for a scope.
const maxNameBytes = 1024

// checkName reports why the database cannot store a scope or a subject, or might take it for
// another one.
func checkName(name string) error {
	switch {
	case len(name) > maxNameBytes:
		return errors.New("longer than 1024 bytes")
	// JSON decoders put U+FFFD for bytes that are not UTF-8, and for lone surrogates. So two
	// tenants would have one scope.
	case !utf8.ValidString(name), strings.ContainsRune(name, utf8.RuneError):
		return errors.New("not valid UTF-8")
	case strings.ContainsRune(name, 0):
		return errors.New("a text with a NUL character")
	}
	return nil
}
