package access

import (
	"net/http"
	"strings"
)

// maxTokenBytes bounds what is decoded of a request before its sender is known.
const maxTokenBytes = 16 << 10

// bearerToken returns the bearer token of a request. It reads the Authorization header only: a
// token in a query string ends up in logs and histories.
func bearerToken(r *http.Request) (string, error) {
	headers := r.Header["Authorization"]
	switch {
	case len(headers) == 0:
		return "", &Refusal{Kind: ErrNoToken, Reason: "the request has no Authorization header"}
	case len(headers) > 1:
		return "", badToken("more than one Authorization header")
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.Trim(token, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", &Refusal{Kind: ErrNoToken, Reason: "the Authorization header has another scheme than Bearer"}
	case token == "":
		return "", badToken("the Authorization header has no token")
	case len(token) > maxTokenBytes:
		return "", badToken("the token is longer than 16384 bytes")
	case strings.ContainsFunc(token, isNoTokenCharacter):
		return "", badToken("malformed Authorization header")
	}
	return token, nil
}

// isNoTokenCharacter is true outside the characters of token68 (RFC 9110).
func isNoTokenCharacter(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
}

func badToken(reason string) *Refusal { return &Refusal{Kind: ErrBadToken, Reason: reason} }

// Both returns an Authenticator for static tokens and JWTs. A token that begins with [TokenPrefix]
// goes to tokens, any other one to jwt.
func Both(tokens, jwt Authenticator) Authenticator { return both{tokens, jwt} }

type both struct{ tokens, jwt Authenticator }

func (b both) Authenticate(r *http.Request) (Identity, error) {
	token, err := bearerToken(r)
	if err != nil {
		return Identity{}, err
	}
	if strings.HasPrefix(token, TokenPrefix) {
		return b.tokens.Authenticate(r)
	}
	return b.jwt.Authenticate(r)
}
