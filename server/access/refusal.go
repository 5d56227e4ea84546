package access

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The kinds of a Refusal. Test for them with errors.Is.
var (
	// ErrNoToken means that the request has no bearer token (401).
	ErrNoToken = errors.New("no token")
	// ErrBadToken means that the token is malformed, unknown, expired, or not for this server
	// (401).
	ErrBadToken = errors.New("invalid token")
	// ErrForbidden means that the identity lacks a right, or that the request does not come from
	// this machine (403).
	ErrForbidden = errors.New("forbidden")
	// ErrLimited means that the identity sends too many requests, or has too many streams (429).
	ErrLimited = errors.New("too many requests")
	// ErrUnavailable means that the keys of the identity provider cannot be reached, and that no
	// key in memory fits the token (503).
	ErrUnavailable = errors.New("tokens cannot be checked")
)

// Refusal is the error of a request that is refused: what to answer, and what to log.
type Refusal struct {
	// Kind is one of the errors of this package.
	Kind error
	// Reason says why, to the client and in the log. It has nothing of the request. It is ASCII
	// without quotes and backslashes, as the header WWW-Authenticate requires.
	Reason string
	// Subject names the sender, if that is certain: the signature of the token was right.
	Subject string
	// Missing is the right that the identity lacks. Zero if that is not the cause.
	Missing Rights
	// RetryAfter is when to retry, with ErrLimited and ErrUnavailable.
	RetryAfter time.Duration
	// Details are for the log only: parts of the request, for example its Host header. Never a
	// secret.
	Details []slog.Attr
}

// Error returns the kind and the reason.
func (r *Refusal) Error() string { return r.Kind.Error() + ": " + r.Reason }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

// Status returns the HTTP status of the answer.
func (r *Refusal) Status() int {
	switch r.Kind {
	case ErrNoToken, ErrBadToken:
		return http.StatusUnauthorized
	case ErrForbidden:
		return http.StatusForbidden
	case ErrLimited:
		return http.StatusTooManyRequests
	case ErrUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// SetHeaders sets the headers of the answer that belong to the refusal: WWW-Authenticate (RFC 6750)
// and Retry-After.
func (r *Refusal) SetHeaders(header http.Header) {
	header.Set("Cache-Control", "no-store")
	switch {
	case r.Kind == ErrNoToken:
		// RFC 6750, section 3.1: no error code for a client that did not try.
		header.Set("WWW-Authenticate", `Bearer realm="pgagui"`)
	case r.Kind == ErrBadToken:
		header.Set("WWW-Authenticate", challenge("invalid_token", r.Reason))
	case r.Missing != 0:
		header.Set("WWW-Authenticate", challenge("insufficient_scope", r.Reason))
	}
	if r.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
}

func challenge(code, description string) string {
	return `Bearer realm="pgagui", error="` + code + `", error_description="` + description + `"`
}

// Audit answers the requests that are refused, and writes one line for each to the log: time,
// remote address, method, route pattern, subject if known, status and reason. The zero value is
// ready to use.
type Audit struct {
	// Logger gets the lines, at the level Warn. slog.Default() if nil.
	Logger *slog.Logger
	// Answer writes status, headers and body. If nil, the body is a problem document (RFC 9457).
	Answer func(http.ResponseWriter, *http.Request, *Refusal)
}

// Refuse answers a request with the refusal in err, and logs it. Any other error is answered with
// 500, and the log has its text.
func (a Audit) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		refusal = &Refusal{
			Kind: errInternal, Reason: "the token could not be checked", Details: []slog.Attr{slog.String("error", err.Error())},
		}
	}
	a.log(r, refusal)
	if a.Answer != nil {
		a.Answer(w, r, refusal)
		return
	}
	answerProblem(w, r, refusal)
}

var errInternal = errors.New("internal error")

func (a Audit) log(r *http.Request, refusal *Refusal) {
	logger := cmp.Or(a.Logger, slog.Default())
	attributes := []slog.Attr{
		slog.String("remote", r.RemoteAddr),
		slog.String("method", r.Method),
		slog.Int("status", refusal.Status()),
		slog.String("reason", refusal.Reason),
	}
	if r.Pattern != "" { // before a ServeMux has seen the request there is none
		attributes = append(attributes, slog.String("route", r.Pattern))
	}
	subject := refusal.Subject
	if identity, isThere := IdentityFrom(r.Context()); isThere && subject == "" {
		subject = identity.Subject
	}
	if subject != "" {
		attributes = append(attributes, slog.String("subject", subject))
	}
	attributes = append(attributes, refusal.Details...)
	for i, attribute := range attributes {
		if attribute.Value.Kind() == slog.KindString {
			attributes[i].Value = slog.StringValue(printable(attribute.Value.String()))
		}
	}
	logger.LogAttrs(r.Context(), slog.LevelWarn, "access refused", attributes...)
}

// printable bounds a text for the log and replaces what acts on a terminal. The handlers of slog
// quote line ends, but JSON leaves some control characters as they are, and other handlers may
// quote nothing.
func printable(text string) string {
	const limit = 256
	if len(text) > limit {
		text = text[:limit] + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func answerProblem(w http.ResponseWriter, _ *http.Request, refusal *Refusal) {
	refusal.SetHeaders(w.Header())
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(refusal.Status())
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone
		"title": http.StatusText(refusal.Status()), "status": refusal.Status(), "detail": refusal.Reason,
	})
}
