package access

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/pgagui/pgagui/internal/must"
)

// Keys of an identity provider: making one takes long.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must.OrPanic(rsa.GenerateKey(rand.Reader, 2048)) })

func newECKey() *ecdsa.PrivateKey {
	return must.OrPanic(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

func publicPEM(key crypto.PublicKey) string {
	der := must.OrPanic(x509.MarshalPKIXPublicKey(key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// validClaims are those that the options of the tests take, for an hour.
func validClaims() jwt.MapClaims {
	return jwt.MapClaims{
		"sub": "user-1", "iss": "https://id.example.com", "aud": "pgagui", "exp": time.Now().Add(time.Hour).Unix(), "jti": "t-1",
	}
}

// with returns the valid claims with some of them changed, or left out if the value is nil.
func with(changes jwt.MapClaims) jwt.MapClaims {
	claims := validClaims()
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

func sign(method jwt.SigningMethod, key any, header, claims map[string]any) string {
	token := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	maps.Copy(token.Header, header)
	return must.OrPanic(token.SignedString(key))
}

func newTestJWT(t *testing.T, change func(*JWTOptions)) *JWT {
	t.Helper()
	options := JWTOptions{
		Algorithms: []string{"RS256", "PS256"}, Issuer: "https://id.example.com", Audiences: []string{"pgagui", "other-name"},
		DefaultRights: Read, KeyFile: writeFile(t, publicPEM(&rsaKey().PublicKey)),
	}
	if change != nil {
		change(&options)
	}
	authenticator := must.Have(NewJWT(t.Context(), options))(t)
	return authenticator
}

func TestJWT(t *testing.T) {
	authenticator := newTestJWT(t, nil)
	expires := time.Unix(validClaims()["exp"].(int64), 0)
	token := sign(jwt.SigningMethodRS256, rsaKey(), nil, with(jwt.MapClaims{"exp": expires.Unix()}))
	want := Identity{Scope: "user-1", Rights: Read, Subject: "user-1", Issuer: "https://id.example.com", TokenID: "t-1", Expires: expires}
	if identity := mustAuthenticate(t, authenticator, bearer(token)); !reflect.DeepEqual(identity, want) {
		t.Errorf("got %+v, want %+v", identity, want)
	}
	mustAuthenticate(t, authenticator, bearer(sign(jwt.SigningMethodPS256, rsaKey(), nil, with(jwt.MapClaims{"aud": []string{"x", "other-name"}}))))
	_, err := authenticator.Authenticate(requestWith())
	wantRefusal(t, err, ErrNoToken, "the request has no Authorization header")
}

func TestJWTWithEachKindOfKey(t *testing.T) {
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	ecKey := newECKey()
	secret := strings.Repeat("s", 64)
	for algorithm, keys := range map[string]struct {
		file string
		key  any
	}{
		"EdDSA": {publicPEM(edKey.Public()), edKey},
		"ES256": {publicPEM(ecKey.Public()), ecKey},
		"RS512": {string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey)})), rsaKey()},
		"HS512": {secret + "\r\n", []byte(secret)},
	} {
		authenticator := newTestJWT(t, func(options *JWTOptions) {
			options.Algorithms, options.KeyFile = []string{algorithm}, writeFile(t, keys.file)
		})
		token := sign(jwt.GetSigningMethod(algorithm), keys.key, nil, validClaims())
		if _, err := authenticator.Authenticate(bearer(token)); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

func TestJWTRefusals(t *testing.T) {
	authenticator := newTestJWT(t, nil)
	signed := func(claims jwt.MapClaims) string { return sign(jwt.SigningMethodRS256, rsaKey(), nil, claims) }
	at := func(offset time.Duration) int64 { return time.Now().Add(offset).Unix() }
	good := signed(validClaims())
	parts := strings.Split(good, ".")
	otherKey := must.OrPanic(rsa.GenerateKey(rand.Reader, 2048))
	last := strings.IndexByte(base64URL, good[len(good)-1]) // its last bits are no part of the signature
	respelled := good[:len(good)-1] + base64URL[last+1:last+2]
	forged := base64.RawURLEncoding.EncodeToString(must.OrPanic(json.Marshal(with(jwt.MapClaims{"sub": "somebody else"}))))
	for _, tc := range []struct{ name, token, reason, subject string }{
		{"expired", signed(with(jwt.MapClaims{"exp": at(-62 * time.Second)})), "the token has expired", "user-1"},
		{"expired, for another audience", signed(with(jwt.MapClaims{"exp": at(-time.Hour), "aud": "x"})), "the token has expired", "user-1"},
		{"no exp", signed(with(jwt.MapClaims{"exp": nil})), "the token lacks one of the claims exp, aud, iss", "user-1"},
		{"exp is a string", signed(with(jwt.MapClaims{"exp": "tomorrow"})), "malformed claims", "user-1"},
		{"nbf in the future", signed(with(jwt.MapClaims{"nbf": at(62 * time.Second)})), "the token is not yet valid", "user-1"},
		{"wrong audience", signed(with(jwt.MapClaims{"aud": "billing"})), "the token is for another audience", "user-1"},
		{"no audience", signed(with(jwt.MapClaims{"aud": nil})), "the token lacks one of the claims exp, aud, iss", "user-1"},
		{"wrong issuer", signed(with(jwt.MapClaims{"iss": "https://evil.example.com"})), "the token is from another issuer", "user-1"},
		{"no issuer", signed(with(jwt.MapClaims{"iss": nil})), "the token lacks one of the claims exp, aud, iss", "user-1"},
		{"alg none", sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, validClaims()), "the algorithm of the token is not allowed", ""},
		{"alg NONE", base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"NONE"}`)) + "." + parts[1] + ".", "the algorithm of the token is not allowed", ""},
		{"no alg", base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT"}`)) + "." + parts[1] + "." + parts[2], "the algorithm of the token is not allowed", ""},
		{"the public key as a secret", sign(jwt.SigningMethodHS256, []byte(publicPEM(&rsaKey().PublicKey)), nil, validClaims()), "the algorithm of the token is not allowed", ""},
		{"an algorithm that is not listed", sign(jwt.SigningMethodRS512, rsaKey(), nil, validClaims()), "the algorithm of the token is not allowed", ""},
		{"another key", sign(jwt.SigningMethodRS256, otherKey, nil, validClaims()), "wrong signature", ""},
		{"other claims", parts[0] + "." + forged + "." + parts[2], "wrong signature", ""},
		{"no signature", parts[0] + "." + parts[1] + ".", "wrong signature", ""},
		{"critical extensions", sign(jwt.SigningMethodRS256, rsaKey(), map[string]any{"crit": []string{"b64"}}, validClaims()), "the token has critical extensions", ""},
		{"one part", "abc", "malformed token", ""},
		{"four parts", good + ".x", "malformed token", ""},
		{"no base64", "=." + parts[1] + "." + parts[2], "malformed token", ""},
		{"another spelling of the same bytes", respelled, "malformed token", ""},
		{"no JSON", parts[2] + "." + parts[1] + "." + parts[2], "malformed token", ""},
		{"claims are null", sign(jwt.SigningMethodRS256, rsaKey(), nil, nil), "the token lacks one of the claims exp, aud, iss", ""},
		{"a static token", must2(NewToken()), "malformed token", ""},
		{"sub is a number", signed(with(jwt.MapClaims{"sub": 7})), "malformed claim sub", ""},
		{"jti is long", signed(with(jwt.MapClaims{"jti": strings.Repeat("x", 1025)})), "malformed claim jti", "any"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := authenticator.Authenticate(bearer(tc.token))
			refusal := wantRefusal(t, err, ErrBadToken, tc.reason)
			if tc.subject != "any" && refusal.Subject != tc.subject {
				t.Errorf("the refusal names %q, want %q", refusal.Subject, tc.subject)
			}
			if refusal.Status() != http.StatusUnauthorized || strings.ContainsFunc(refusal.Reason, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
				t.Errorf("status %d, reason %q", refusal.Status(), refusal.Reason)
			}
		})
	}
}

const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func must2(token, _ string) string { return token }

func TestClocksMayDifferByAMinute(t *testing.T) {
	authenticator := newTestJWT(t, nil)
	now := time.Now()
	token := sign(jwt.SigningMethodRS256, rsaKey(), nil, with(jwt.MapClaims{
		"exp": now.Add(-50 * time.Second).Unix(), "nbf": now.Add(50 * time.Second).Unix(),
	}))
	mustAuthenticate(t, authenticator, bearer(token))
}

func TestIssuerAndAudienceAreUncheckedOnlyIfSaid(t *testing.T) {
	authenticator := newTestJWT(t, func(options *JWTOptions) {
		options.Issuer, options.Audiences, options.AnyAudience = "", nil, true
	})
	for _, changes := range []jwt.MapClaims{{"iss": "x", "aud": "y"}, {"iss": nil, "aud": nil}} {
		mustAuthenticate(t, authenticator, bearer(sign(jwt.SigningMethodRS256, rsaKey(), nil, with(changes))))
	}
}

func TestScopeClaim(t *testing.T) {
	long := strings.Repeat("ä", 512)
	for _, tc := range []struct {
		claim string
		value any
		want  string
		err   string
	}{
		{claim: "tenant", value: "acme", want: "acme"},
		{claim: "tenant", value: " a\tb ", want: " a\tb "},
		{claim: "tenant", value: long, want: long},
		{claim: "tenant", value: nil, err: "the token lacks the claim for the scope"},
		{claim: "tenant", value: "", err: "the claim for the scope is empty"},
		{claim: "tenant", value: long + "x", err: "the claim for the scope is longer than 1024 bytes"},
		{claim: "tenant", value: 7, err: "the claim for the scope is not a string"},
		{claim: "tenant", value: []string{"acme"}, err: "the claim for the scope is not a string"},
		{claim: "tenant", value: map[string]any{"acme": "x"}, err: "the claim for the scope is not a string"},
		{claim: "tenant", value: true, err: "the claim for the scope is not a string"},
		{claim: "tenant", value: "a\x00b", err: "the claim for the scope is a text with a NUL character"},
		{claim: "tenant", value: json.RawMessage(`"a\ud800"`), err: "the claim for the scope is not valid UTF-8"},
		{claim: "tenant", value: json.RawMessage(`"a\ufffd"`), err: "the claim for the scope is not valid UTF-8"},
		{claim: "/org/id", value: nil, err: "the token lacks the claim for the scope"},
	} {
		authenticator := newTestJWT(t, func(options *JWTOptions) { options.ScopeClaim = tc.claim })
		token := sign(jwt.SigningMethodRS256, rsaKey(), nil, with(jwt.MapClaims{"tenant": tc.value}))
		identity, err := authenticator.Authenticate(bearer(token))
		if tc.err != "" {
			wantRefusal(t, err, ErrBadToken, tc.err)
		} else if err != nil || identity.Scope != tc.want || identity.Subject != "user-1" {
			t.Errorf("%q: got %+v, %v", tc.value, identity, err)
		}
	}
}

func TestBytesThatAreNoUTF8AreNotAScope(t *testing.T) {
	// The decoder would make the same character of all of them, and so one scope of several.
	authenticator := newTestJWT(t, func(options *JWTOptions) { options.ScopeClaim = "tenant" })
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256"}`))
	claims := must.OrPanic(json.Marshal(with(jwt.MapClaims{"tenant": "a@b"})))
	text := head + "." + base64.RawURLEncoding.EncodeToString(bytes.ReplaceAll(claims, []byte("@"), []byte{0xff}))
	signature := must.OrPanic(jwt.SigningMethodRS256.Sign(text, rsaKey()))
	_, err := authenticator.Authenticate(bearer(text + "." + base64.RawURLEncoding.EncodeToString(signature)))
	wantRefusal(t, err, ErrBadToken, "the claim for the scope is not valid UTF-8")
}

func TestClaimPaths(t *testing.T) {
	claims := map[string]any{
		"sub": "a", "https://example.com/tenant": "b", "org": map[string]any{"id": "c", "a/b~c": "d", "": "e"}, "list": []any{"f"}, "no": nil,
	}
	for path, want := range map[string]any{
		"sub": "a", "https://example.com/tenant": "b", "/org/id": "c", "/org/a~1b~0c": "d", "/org/": "e",
		"/list/0": nil, "/sub/x": nil, "org.id": nil, "no": nil, "/none/x": nil,
	} {
		parsed, err := parseClaimPath(path)
		value, isThere := parsed.in(claims)
		if err != nil || !reflect.DeepEqual(value, want) && want != nil || isThere != (want != nil) {
			t.Errorf("%q: got %v, %v, %v", path, value, isThere, err)
		}
	}
	if _, err := parseClaimPath("/a~2b"); err == nil {
		t.Error("a tilde that escapes nothing was taken")
	}
}

func TestRightsClaim(t *testing.T) {
	mapping := map[string]Rights{"chat": Read | Write, "chat:stop": Stop, "root": Admin}
	for _, tc := range []struct {
		value   any
		mapping map[string]Rights
		want    Rights
		isBad   bool
	}{
		{value: nil, mapping: mapping, want: Read}, // the default
		{value: "", mapping: mapping, want: 0},
		{value: "chat", mapping: mapping, want: Read | Write},
		{value: "openid  chat chat:stop", mapping: mapping, want: Read | Write | Stop},
		{value: []string{"chat:stop", "email"}, mapping: mapping, want: Stop},
		{value: []string{"chat chat:stop"}, mapping: mapping, want: 0},
		{value: []string{}, mapping: mapping, want: 0},
		{value: "admin read", mapping: mapping, want: 0},
		{value: "root", mapping: mapping, want: Admin},
		{value: "read delete openid", want: Read | Delete},
		{value: "read", mapping: map[string]Rights{}, want: 0},
		{value: 7, isBad: true},
		{value: []any{"read", 7}, isBad: true},
		{value: map[string]any{"read": true}, isBad: true},
	} {
		authenticator := newTestJWT(t, func(options *JWTOptions) { options.RightsClaim, options.Rights = "scope", tc.mapping })
		identity, err := authenticator.Authenticate(bearer(sign(jwt.SigningMethodRS256, rsaKey(), nil, with(jwt.MapClaims{"scope": tc.value}))))
		if tc.isBad {
			wantRefusal(t, err, ErrBadToken, "the claim for the rights is neither a string nor an array of strings")
		} else if err != nil || identity.Rights != tc.want {
			t.Errorf("%v: got %q, %v, want %q", tc.value, identity.Rights, err, tc.want)
		}
	}
}

func TestJWTOptionsAreChecked(t *testing.T) {
	privatePEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must.OrPanic(x509.MarshalPKCS8PrivateKey(newECKey()))}))
	small := &rsa.PublicKey{N: must.OrPanic(rsa.GenerateKey(rand.Reader, 1024)).N, E: 65537}
	for _, tc := range []struct {
		want   string
		change func(*JWTOptions)
	}{
		{"no algorithms", func(o *JWTOptions) { o.Algorithms = nil }},
		{`unknown algorithm "none"`, func(o *JWTOptions) { o.Algorithms = []string{"none"} }},
		{"RS256 and HS256 cannot be used together", func(o *JWTOptions) { o.Algorithms = []string{"RS256", "HS256"} }},
		{"no audience", func(o *JWTOptions) { o.Audiences = nil }},
		{"an audience is empty", func(o *JWTOptions) { o.Audiences = []string{""} }},
		{"choose one", func(o *JWTOptions) { o.AnyAudience = true }},
		{"either a JWKS URL or a key file", func(o *JWTOptions) { o.KeyFile = "" }},
		{"either a JWKS URL or a key file", func(o *JWTOptions) { o.JWKSURL = "https://id.example.com/keys" }},
		{"HS256 needs a secret", func(o *JWTOptions) {
			o.Algorithms, o.KeyFile, o.JWKSURL = []string{"HS256"}, "", "https://id.example.com/keys"
		}},
		{"http://id.example.com/keys is not https", func(o *JWTOptions) { o.KeyFile, o.JWKSURL = "", "http://id.example.com/keys" }},
		{"is not https", func(o *JWTOptions) { o.KeyFile, o.JWKSURL = "", "file:///etc/keys" }},
		{"http://user:xxxxx@id.example.com is not https", func(o *JWTOptions) { o.KeyFile, o.JWKSURL = "", "http://user:secret@id.example.com" }},
		{"none: no such file or directory", func(o *JWTOptions) { o.KeyFile = "none" }},
		{"no PEM block", func(o *JWTOptions) { o.KeyFile = writeFile(t, "abc") }},
		{"the PEM block is a PRIVATE KEY", func(o *JWTOptions) { o.KeyFile = writeFile(t, privatePEM) }},
		{"the key is not one for RS256", func(o *JWTOptions) { o.KeyFile = writeFile(t, publicPEM(newECKey().Public())) }},
		{"the key is not one for ES384", func(o *JWTOptions) {
			o.Algorithms, o.KeyFile = []string{"ES384"}, writeFile(t, publicPEM(newECKey().Public()))
		}},
		{"the RSA key has 1024 bits", func(o *JWTOptions) { o.KeyFile = writeFile(t, publicPEM(small)) }},
		{"a key in PEM cannot be the secret", func(o *JWTOptions) { o.Algorithms = []string{"HS256"} }},
		{"the secret has 63 bytes, HS512 needs 64", func(o *JWTOptions) {
			o.Algorithms, o.KeyFile = []string{"HS256", "HS512"}, writeFile(t, strings.Repeat("s", 63)+"\n")
		}},
		{"is not a JSON Pointer", func(o *JWTOptions) { o.ScopeClaim = "/~" }},
		{"is not a JSON Pointer", func(o *JWTOptions) { o.RightsClaim = "/~" }},
	} {
		options := JWTOptions{Algorithms: []string{"RS256"}, Audiences: []string{"a"}, KeyFile: writeFile(t, publicPEM(&rsaKey().PublicKey))}
		tc.change(&options)
		_, err := NewJWT(t.Context(), options)
		if err == nil || !strings.HasPrefix(err.Error(), "jwt: ") || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

// provider is an identity provider: a RoundTripper, so that the clock of the tests can be a made-up
// one.
type provider struct {
	delay   time.Duration
	mu      sync.Mutex
	answer  string
	err     error
	fetches int
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(p.delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetches++
	if p.err != nil {
		return nil, p.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(p.answer)), Request: r}, nil
}

func (p *provider) set(err error, keys ...jwkset.JWKMarshal) {
	p.setText(string(must.OrPanic(json.Marshal(jwkset.JWKSMarshal{Keys: keys}))))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *provider) setText(answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.err = answer, nil
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

func jwk(id string, key crypto.PublicKey, algorithm, use string) jwkset.JWKMarshal {
	made, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{KID: id, ALG: jwkset.ALG(algorithm), USE: jwkset.USE(use)},
		Marshal:  jwkset.JWKMarshalOptions{Private: true},
	})
	return must.OrPanic(made, err).Marshal()
}

// withProvider runs a test with the keys of a provider, on a made-up clock.
func withProvider(t *testing.T, at *provider, test func(t *testing.T, authenticator *JWT, log *bytes.Buffer)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log bytes.Buffer
		authenticator, err := NewJWT(ctx, JWTOptions{
			Algorithms: []string{"ES256", "RS256"}, JWKSURL: "https://id.example.com/keys", HTTPClient: &http.Client{Transport: at},
			Audiences: []string{"pgagui"}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		must.Do(t, err)
		test(t, authenticator, &log)
	})
}

func signedBy(key *ecdsa.PrivateKey, id any) *http.Request {
	return bearer(sign(jwt.SigningMethodES256, key, map[string]any{"kid": id}, validClaims()))
}

func TestJWKSRotation(t *testing.T) {
	old, next := newECKey(), newECKey()
	at := &provider{}
	at.set(nil, jwk("old", old.Public(), "ES256", "sig"))
	withProvider(t, at, func(t *testing.T, authenticator *JWT, _ *bytes.Buffer) {
		mustAuthenticate(t, authenticator, signedBy(old, "old"))
		mustAuthenticate(t, authenticator, bearer(sign(jwt.SigningMethodES256, old, nil, validClaims()))) // names no key
		time.Sleep(minRefreshPause)

		at.set(nil, jwk("old", old.Public(), "", ""), jwk("next", next.Public(), "", ""))
		before := at.count()
		mustAuthenticate(t, authenticator, signedBy(next, "next")) // makes it fetch
		mustAuthenticate(t, authenticator, signedBy(old, "old"))
		if at.count() != before+1 {
			t.Errorf("fetched %d times", at.count()-before)
		}

		at.set(nil, jwk("next", next.Public(), "", ""))
		mustAuthenticate(t, authenticator, signedBy(old, "old")) // not yet known to be withdrawn
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		_, err := authenticator.Authenticate(signedBy(old, "old"))
		wantRefusal(t, err, ErrBadToken, "the key of the token is unknown")
		mustAuthenticate(t, authenticator, signedBy(next, "next"))
	})
}

func TestUnknownKeysDoNotFloodTheProvider(t *testing.T) {
	key := newECKey()
	at := &provider{}
	at.set(nil, jwk("a", key.Public(), "ES256", "sig"))
	withProvider(t, at, func(t *testing.T, authenticator *JWT, _ *bytes.Buffer) {
		synctest.Wait()
		began := time.Now()
		for range 50 {
			_, err := authenticator.Authenticate(signedBy(key, "b"))
			wantRefusal(t, err, ErrBadToken, "the key of the token is unknown")
		}
		if at.count() > 2 {
			t.Errorf("fetched %d times", at.count())
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("requests waited %s for the rate limit", waited)
		}
		time.Sleep(minRefreshPause)
		at.set(nil, jwk("b", key.Public(), "ES256", "sig"))
		mustAuthenticate(t, authenticator, signedBy(key, "b"))
	})
}

func TestKeyOfJWKSMustFit(t *testing.T) {
	key, other := newECKey(), newECKey()
	at := &provider{}
	secret := must.OrPanic(jwkset.NewJWKFromKey([]byte(strings.Repeat("s", 32)), jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{KID: "secret"}, Marshal: jwkset.JWKMarshalOptions{Private: true},
	})).Marshal()
	small := must.OrPanic(rsa.GenerateKey(rand.Reader, 1024))
	broken := jwk("broken", key.Public(), "ES256", "sig")
	broken.Y = "AAAA"
	at.set(nil, secret, broken, jwk("enc", key.Public(), "", "enc"), jwk("rs", &rsaKey().PublicKey, "PS256", "sig"),
		jwk("small", &small.PublicKey, "", ""), jwk("ec", key, "ES256", "sig"))
	withProvider(t, at, func(t *testing.T, authenticator *JWT, _ *bytes.Buffer) {
		mustAuthenticate(t, authenticator, signedBy(key, "ec")) // the private key was published too, and is not used
		_, err := authenticator.Authenticate(signedBy(other, "ec"))
		wantRefusal(t, err, ErrBadToken, "wrong signature")
		_, err = authenticator.Authenticate(signedBy(key, "rs"))
		wantRefusal(t, err, ErrBadToken, "the key of the token does not fit")
		_, err = authenticator.Authenticate(signedBy(key, 7))
		wantRefusal(t, err, ErrBadToken, "the key of the token does not fit")
		for _, unusable := range []string{"secret", "broken", "enc", "small"} {
			_, err = authenticator.Authenticate(signedBy(key, unusable))
			wantRefusal(t, err, ErrBadToken, "the key of the token is unknown")
		}
	})
}

func TestJWKSDown(t *testing.T) {
	known, next := newECKey(), newECKey()
	at := &provider{}
	at.set(errors.New("connection refused"))
	withProvider(t, at, func(t *testing.T, authenticator *JWT, log *bytes.Buffer) {
		for _, request := range []*http.Request{signedBy(known, "known"), bearer(sign(jwt.SigningMethodES256, known, nil, validClaims()))} {
			_, err := authenticator.Authenticate(request)
			refusal := wantRefusal(t, err, ErrUnavailable, "the keys of the identity provider cannot be reached")
			if refusal.Status() != http.StatusServiceUnavailable || refusal.RetryAfter <= 0 {
				t.Errorf("%+v", refusal)
			}
		}
		_, err := authenticator.Authenticate(bearer(sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, validClaims())))
		wantRefusal(t, err, ErrBadToken, "the algorithm of the token is not allowed")

		at.set(nil, jwk("known", known.Public(), "ES256", "sig"))
		time.Sleep(30 * time.Second) // it retries by itself
		synctest.Wait()
		mustAuthenticate(t, authenticator, signedBy(known, "known"))

		for name, fail := range map[string]func(){
			"no connection": func() { at.set(errors.New("connection refused")) },
			"no JSON":       func() { at.setText("<html>") },
			"no keys":       func() { at.setText("{}") },
			"too large":     func() { at.setText(strings.Repeat(" ", maxKeySetBytes+1)) },
		} {
			fail()
			time.Sleep(11 * time.Minute)
			synctest.Wait()
			mustAuthenticate(t, authenticator, signedBy(known, "known")) // the key in memory fits
			_, err = authenticator.Authenticate(signedBy(next, "next"))
			if !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		synctest.Wait()
		if !strings.Contains(log.String(), "connection refused") {
			t.Errorf("the log does not say why: %s", log)
		}
		at.set(nil, jwk("known", known.Public(), "", ""), jwk("next", next.Public(), "", ""))
		time.Sleep(minRefreshPause)
		mustAuthenticate(t, authenticator, signedBy(next, "next"))
	})
}

func TestRetriesBackOff(t *testing.T) {
	at := &provider{err: errors.New("connection refused")}
	withProvider(t, at, func(t *testing.T, _ *JWT, _ *bytes.Buffer) {
		time.Sleep(time.Hour) // after 1, 2, 4, … 512 seconds, then every 10 minutes
		synctest.Wait()
		if got := at.count(); got != 15 {
			t.Errorf("fetched %d times, want 15", got)
		}
	})
}

func TestAClientThatLeavesDoesNotEndTheFetch(t *testing.T) {
	key, next := newECKey(), newECKey()
	at := &provider{delay: time.Second}
	at.set(nil, jwk("a", key.Public(), "ES256", "sig"))
	withProvider(t, at, func(t *testing.T, authenticator *JWT, _ *bytes.Buffer) {
		synctest.Wait()                                        // the fetch at the start is under way
		mustAuthenticate(t, authenticator, signedBy(key, "a")) // waits for it
		if at.count() != 1 {
			t.Errorf("fetched %d times at the start", at.count())
		}
		at.set(nil, jwk("a", key.Public(), "", ""), jwk("next", next.Public(), "", ""))
		gone, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		_, _ = authenticator.Authenticate(signedBy(next, "next").WithContext(gone))
		mustAuthenticate(t, authenticator, signedBy(next, "next")) // the rate limit would not let it fetch
	})
}

func TestProviderThatHangs(t *testing.T) {
	key := newECKey()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		authenticator, err := NewJWT(ctx, JWTOptions{
			Algorithms: []string{"ES256"}, JWKSURL: "https://id.example.com/keys", HTTPClient: &http.Client{Transport: &provider{delay: time.Hour}},
			Audiences: []string{"pgagui"}, Logger: slog.New(slog.DiscardHandler),
		})
		must.Do(t, err)
		began := time.Now()
		request := signedBy(key, "a")
		_, err = authenticator.Authenticate(request)
		wantRefusal(t, err, ErrUnavailable, "the keys of the identity provider cannot be reached")
		if waited := time.Since(began); waited > 2*fetchTimeout {
			t.Errorf("waited %s", waited)
		}
		time.Sleep(time.Second) // the next retry is under way
		gone, leave := context.WithTimeout(ctx, time.Millisecond)
		defer leave()
		began = time.Now()
		_, err = authenticator.Authenticate(request.WithContext(gone))
		if !errors.Is(err, ErrUnavailable) || time.Since(began) > time.Millisecond {
			t.Errorf("a client that went away waited %s: %v", time.Since(began), err)
		}
	})
}

func TestRedirectsOfTheProviderStayOnHTTPS(t *testing.T) {
	at := redirector("http://id.example.com/keys")
	set, err := newKeySet(t.Context(), JWTOptions{
		JWKSURL: "https://id.example.com/keys", HTTPClient: &http.Client{Transport: at}, RefreshInterval: time.Hour, Logger: slog.New(slog.DiscardHandler),
	})
	must.Do(t, err)
	if _, err := set.download(t.Context()); err == nil || !strings.Contains(err.Error(), "not https") {
		t.Error(err)
	}
}

type redirector string

func (to redirector) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, os.ErrPermission
	}
	return &http.Response{
		StatusCode: http.StatusFound, Header: http.Header{"Location": {string(to)}}, Body: http.NoBody, Request: r,
	}, nil
}

func TestAlgorithmsAreThoseOfTheLibrary(t *testing.T) {
	for _, algorithm := range jwt.GetAlgorithms() {
		if err := checkAlgorithms([]string{algorithm}); (err == nil) == (algorithm == "none") {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
	if !slices.Contains(jwt.GetAlgorithms(), "none") {
		t.Error("the library has no algorithm none any more")
	}
}

func BenchmarkJWT(b *testing.B) {
	key := rsaKey()
	authenticator := &JWT{
		options: JWTOptions{Algorithms: []string{"RS256"}}, parser: jwt.NewParser(jwt.WithValidMethods([]string{"RS256"})), scope: claimPath{"sub"},
		keys: func(context.Context) jwt.Keyfunc { return func(*jwt.Token) (any, error) { return &key.PublicKey, nil } },
	}
	request := bearer(sign(jwt.SigningMethodRS256, key, nil, validClaims()))
	for b.Loop() {
		must.Have(authenticator.Authenticate(request))(b)
	}
}
