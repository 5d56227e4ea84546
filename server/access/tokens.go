package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// TokenPrefix is how each static token begins. Scanners for leaked secrets find it by that.
const TokenPrefix = "pgagui_"

const tokenEntropy = 32 // bytes

// NewToken returns a new static token, 256 random bits in base64url behind TokenPrefix, and the
// SHA-256 of the whole token in hex, which belongs into the file of the tokens.
func NewToken() (token, sha256Hex string) {
	random := make([]byte, tokenEntropy)
	_, _ = rand.Read(random) // never fails
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	hash := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(hash[:])
}

// Tokens is an Authenticator for static bearer tokens. A file has their hashes, as YAML or JSON:
//
//   - name: support
//     sha256: 6f1b…            # of the token, in hex; see NewToken
//     scope: acme              # may be "", the scope of stores without tenants
//     rights: [read, stop]     # read, write, stop, delete, admin, diagnose
//     expires: 2027-01-31T00:00:00Z # optional
//
// All members but expires are required. Two tokens have neither the same name nor the same hash.
//
// The hash is a plain SHA-256, without salt and stretching. Those protect secrets that can be
// guessed, such as passwords; a token has 256 random bits, so it cannot be found from its hash. A
// token is accepted only in the form that NewToken makes. A slow hash would make each request
// slower.
type Tokens struct {
	file    string
	current atomic.Pointer[[]staticToken]
}

// staticToken is an entry of the file.
type staticToken struct {
	hash [sha256.Size]byte
	Identity
}

// LoadTokens reads the tokens of a file.
func LoadTokens(file string) (*Tokens, error) {
	tokens := &Tokens{file: file}
	if err := tokens.Reload(); err != nil {
		return nil, err
	}
	return tokens, nil
}

// Reload reads the file. If that fails, the tokens from before remain valid. Requests in progress
// are not affected; a stream ends when Recheck finds that the file no longer has its token.
func (t *Tokens) Reload() error {
	tokens, err := readTokenFile(t.file)
	if err != nil {
		return err
	}
	t.current.Store(&tokens)
	return nil
}

// Len returns the number of tokens, those that have expired too.
func (t *Tokens) Len() int { return len(*t.current.Load()) }

// Authenticate returns the identity of the token of a request. Its Subject and its TokenID are the
// name of the token.
//
// Errors: ErrNoToken, ErrBadToken.
func (t *Tokens) Authenticate(r *http.Request) (Identity, error) {
	token, err := bearerToken(r)
	if err != nil {
		return Identity{}, err
	}
	random, hasPrefix := strings.CutPrefix(token, TokenPrefix)
	if decoded, err := base64.RawURLEncoding.DecodeString(random); !hasPrefix || err != nil || len(decoded) != tokenEntropy {
		return Identity{}, badToken("malformed token")
	}
	hash := sha256.Sum256([]byte(token))
	var found *staticToken
	current := *t.current.Load()
	for i := range current { // all of them, so that the time does not depend on which one it is
		if subtle.ConstantTimeCompare(current[i].hash[:], hash[:]) == 1 {
			found = &current[i]
		}
	}
	switch {
	case found == nil:
		return Identity{}, badToken("unknown token")
	case !found.Expires.IsZero() && !time.Now().Before(found.Expires):
		return Identity{}, &Refusal{Kind: ErrBadToken, Reason: "the token has expired", Subject: found.Subject}
	}
	return found.Identity, nil
}
