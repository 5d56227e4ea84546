package access

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

// JWTOptions are the settings of [NewJWT]. Algorithms, a source of keys, and Audiences (or
// AnyAudience) are required.
type JWTOptions struct {
	// Algorithms are those that a token may be signed with: RS256, RS384, RS512, PS256, PS384,
	// PS512, ES256, ES384, ES512, EdDSA, or HS256, HS384, HS512. The latter use a shared secret and
	// cannot be combined with the others.
	Algorithms []string

	// JWKSURL is where the identity provider publishes its public keys. It must be https, but for a
	// host that is this machine. Either this or KeyFile is required.
	JWKSURL string
	// RefreshInterval is how often the keys are fetched, and so how long the server still accepts a
	// key that the provider has withdrawn. They are also fetched when a token names an unknown key,
	// at most once in 10 seconds. 10 minutes if zero.
	RefreshInterval time.Duration
	// HTTPClient fetches the keys. If nil, a client with the proxy of the environment.
	HTTPClient *http.Client
	// Logger gets a line when the keys cannot be fetched. slog.Default() if nil.
	Logger *slog.Logger

	// KeyFile has the key: a public key or a certificate in PEM, or, for HS256, HS384 and HS512, the
	// secret, without a line end at its end. It is read once.
	KeyFile string

	// Issuer is what the claim "iss" must be. Not checked if empty.
	Issuer string
	// Audiences are the names of this server. The claim "aud" must have one of them.
	Audiences []string
	// AnyAudience takes tokens for any audience, or for none. Then every token that the identity
	// provider makes for another service opens this one too.
	AnyAudience bool

	// ScopeClaim is the claim that has the scope, a string of 1 to 1,024 bytes. A token without it
	// is refused. It is the name of a claim, such as https://example.com/tenant, or, if it begins
	// with a slash, a JSON Pointer (RFC 6901) to a member within claims, such as /org/id. "sub" if
	// empty.
	ScopeClaim string
	// RightsClaim is the claim that has the rights, a string of values separated by spaces or an
	// array of strings, in the same notation as ScopeClaim. If empty, each token has DefaultRights.
	RightsClaim string
	// Rights maps the values of RightsClaim to rights. Other values give none. If nil, the values
	// are the names of the rights.
	Rights map[string]Rights
	// DefaultRights are those of a token that lacks RightsClaim.
	DefaultRights Rights
}

// JWT is an Authenticator for JSON Web Tokens (RFC 7519). A token needs a signature with an allowed
// algorithm, the claim "exp", and the claims that the options name. Clocks may differ by a minute.
// If the provider has several keys, its tokens should name theirs ("kid"): without the name a token
// of a new key is refused until the next refresh.
type JWT struct {
	options JWTOptions
	parser  *jwt.Parser
	keys    func(context.Context) jwt.Keyfunc
	scope   claimPath
	rights  claimPath
}

const leeway = time.Minute

// NewJWT returns an Authenticator for JWTs. If it has a JWKSURL, it fetches the keys in the
// background until ctx ends; it does not wait for them.
func NewJWT(ctx context.Context, options JWTOptions) (*JWT, error) {
	if err := checkAlgorithms(options.Algorithms); err != nil {
		return nil, err
	}
	switch {
	case len(options.Audiences) == 0 && !options.AnyAudience:
		return nil, errors.New("jwt: no audience (name one, or take any audience explicitly)")
	case len(options.Audiences) > 0 && options.AnyAudience:
		return nil, errors.New("jwt: an audience is named, and any audience is taken (choose one)")
	case slices.Contains(options.Audiences, ""):
		return nil, errors.New("jwt: an audience is empty")
	case options.RefreshInterval < 0:
		return nil, errors.New("jwt: the refresh interval is negative")
	}
	setDefault(&options.ScopeClaim, "sub")
	setDefault(&options.RefreshInterval, 10*time.Minute)
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	authenticator := &JWT{options: options}
	var err error
	if authenticator.scope, err = parseClaimPath(options.ScopeClaim); err != nil {
		return nil, err
	}
	if authenticator.rights, err = parseClaimPath(options.RightsClaim); err != nil {
		return nil, err
	}
	checks := []jwt.ParserOption{
		jwt.WithValidMethods(options.Algorithms), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(),
		jwt.WithIssuer(options.Issuer), // "": not checked
	}
	if !options.AnyAudience {
		checks = append(checks, jwt.WithAudience(options.Audiences...))
	}
	authenticator.parser = jwt.NewParser(checks...)
	authenticator.keys, err = keysOf(ctx, options)
	return authenticator, err
}

func setDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

func checkAlgorithms(algorithms []string) error {
	known := []string{
		"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512",
	}
	if len(algorithms) == 0 {
		return fmt.Errorf("jwt: no algorithms (name some of: %s)", strings.Join(known, ", "))
	}
	for _, algorithm := range algorithms {
		if !slices.Contains(known, algorithm) {
			return fmt.Errorf("jwt: unknown algorithm %q (expected some of: %s)", algorithm, strings.Join(known, ", "))
		}
		if usesSecret(algorithm) != usesSecret(algorithms[0]) {
			// An attacker could sign with the public key, as if it were the secret.
			return fmt.Errorf("jwt: %s and %s cannot be used together: one needs a public key, the other a secret",
				algorithms[0], algorithm)
		}
	}
	return nil
}

func usesSecret(algorithm string) bool { return strings.HasPrefix(algorithm, "HS") }

func keysOf(ctx context.Context, options JWTOptions) (func(context.Context) jwt.Keyfunc, error) {
	switch {
	case (options.JWKSURL == "") == (options.KeyFile == ""):
		return nil, errors.New("jwt: expected either a JWKS URL or a key file")
	case options.KeyFile != "":
		key, err := readKey(options.KeyFile, options.Algorithms)
		if err != nil {
			return nil, fmt.Errorf("jwt: key file %s: %w", options.KeyFile, err)
		}
		return func(context.Context) jwt.Keyfunc {
			return func(*jwt.Token) (any, error) { return key, nil }
		}, nil
	case usesSecret(options.Algorithms[0]):
		return nil, fmt.Errorf("jwt: %s needs a secret from a key file: a JWKS has public keys", options.Algorithms[0])
	}
	set, err := newKeySet(ctx, options)
	if err != nil {
		return nil, err
	}
	keys, err := keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: set})
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	return keys.KeyfuncCtx, nil
}

// readKey reads a secret or a public key, and checks that it is one for the algorithms.
func readKey(file string, algorithms []string) (any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller names the file
	}
	block, _ := pem.Decode(text)
	if usesSecret(algorithms[0]) {
		if block != nil {
			return nil, fmt.Errorf("a key in PEM cannot be the secret of %s", algorithms[0])
		}
		secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
		for _, algorithm := range algorithms { // RFC 7518, section 3.2
			if size := jwt.GetSigningMethod(algorithm).(*jwt.SigningMethodHMAC).Hash.Size(); len(secret) < size {
				return nil, fmt.Errorf("the secret has %d bytes, %s needs %d", len(secret), algorithm, size)
			}
		}
		return []byte(secret), nil
	}
	if block == nil {
		return nil, errors.New("no PEM block (expected a public key or a certificate)")
	}
	key, err := publicKey(block)
	if err != nil {
		return nil, err
	}
	for _, algorithm := range algorithms {
		if err := checkKey(key, algorithm); err != nil {
			return nil, err
		}
	}
	return key, nil
}

func publicKey(block *pem.Block) (crypto.PublicKey, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	}
	return nil, fmt.Errorf("the PEM block is a %s (expected PUBLIC KEY or CERTIFICATE)", block.Type)
}

// minRSABits is the least size of RSA keys (RFC 7518, section 3.3).
const minRSABits = 2048

func checkKey(key crypto.PublicKey, algorithm string) error {
	fits := false
	switch key := key.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits {
			return fmt.Errorf("the RSA key has %d bits, the least is %d", key.N.BitLen(), minRSABits)
		}
		fits = strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		method, isEC := jwt.GetSigningMethod(algorithm).(*jwt.SigningMethodECDSA)
		fits = isEC && method.CurveBits == key.Curve.Params().BitSize
	case ed25519.PublicKey:
		fits = algorithm == "EdDSA"
	}
	if !fits {
		return fmt.Errorf("the key is not one for %s", algorithm)
	}
	return nil
}

// Authenticate returns the identity of the JWT of a request.
//
// Errors: ErrNoToken, ErrBadToken, ErrUnavailable.
func (j *JWT) Authenticate(r *http.Request) (Identity, error) {
	text, err := bearerToken(r)
	if err != nil {
		return Identity{}, err
	}
	claims := jwt.MapClaims{}
	token, err := j.parser.ParseWithClaims(text, claims, j.keys(r.Context()))
	if err != nil {
		return Identity{}, j.refusalOf(token, claims, err)
	}
	if _, isThere := token.Header["crit"]; isThere { // RFC 7515, section 4.1.11: extensions that must be understood
		return Identity{}, badToken("the token has critical extensions")
	}
	identity, err := j.identityOf(claims)
	if err != nil {
		return Identity{}, &Refusal{Kind: ErrBadToken, Reason: err.Error(), Subject: identity.Subject}
	}
	return identity, nil
}

// refusalOf makes a refusal of an error of the parser, whose text may have parts of the token.
func (j *JWT) refusalOf(token *jwt.Token, claims jwt.MapClaims, err error) *Refusal {
	refusal := badToken("")
	if errors.Is(err, jwt.ErrTokenInvalidClaims) { // the signature was right
		refusal.Subject, _ = claims["sub"].(string)
	}
	switch {
	case errors.Is(err, errNoKeys):
		return &Refusal{Kind: ErrUnavailable, Reason: "the keys of the identity provider cannot be reached", RetryAfter: minRefreshPause}
	case errors.Is(err, jwt.ErrTokenMalformed):
		refusal.Reason = "malformed token"
	case token != nil && token.Method == nil,
		token != nil && !slices.Contains(j.options.Algorithms, token.Method.Alg()):
		refusal.Reason = "the algorithm of the token is not allowed"
	case errors.Is(err, jwkset.ErrKeyNotFound):
		refusal.Reason = "the key of the token is unknown"
	case errors.Is(err, keyfunc.ErrKeyfunc):
		refusal.Reason = "the key of the token does not fit"
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		refusal.Reason = "wrong signature"
	case errors.Is(err, jwt.ErrTokenExpired):
		refusal.Reason = "the token has expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		refusal.Reason = "the token is not yet valid"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		refusal.Reason = "the token is for another audience"
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		refusal.Reason = "the token is from another issuer"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		refusal.Reason = "the token lacks one of the claims exp, aud, iss"
	default:
		refusal.Reason = "malformed claims"
	}
	return refusal
}

// identityOf maps claims. An error is a reason for the client.
func (j *JWT) identityOf(claims jwt.MapClaims) (Identity, error) {
	identity := Identity{Rights: j.options.DefaultRights}
	for claim, member := range map[string]*string{"sub": &identity.Subject, "iss": &identity.Issuer, "jti": &identity.TokenID} {
		value, isThere := claims[claim]
		text, isText := value.(string)
		if isThere && (!isText || checkName(text) != nil) {
			return identity, errors.New("malformed claim " + claim)
		}
		*member = text
	}
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil {
		return identity, errors.New("malformed claim exp")
	}
	identity.Expires = expires.Time
	scope, isThere := j.scope.in(claims)
	text, isText := scope.(string)
	switch {
	case !isThere:
		return identity, errors.New("the token lacks the claim for the scope")
	case !isText:
		return identity, errors.New("the claim for the scope is not a string")
	case text == "":
		return identity, errors.New("the claim for the scope is empty")
	}
	if err := checkName(text); err != nil {
		return identity, fmt.Errorf("the claim for the scope is %w", err)
	}
	identity.Scope = text
	if j.options.RightsClaim == "" {
		return identity, nil
	}
	value, isThere := j.rights.in(claims)
	if !isThere {
		return identity, nil
	}
	values, isList := stringsOf(value)
	if !isList {
		return identity, errors.New("the claim for the rights is neither a string nor an array of strings")
	}
	identity.Rights = 0
	for _, value := range values {
		right := j.options.Rights[value]
		if j.options.Rights == nil {
			right, _ = rightNamed(value)
		}
		identity.Rights |= right
	}
	return identity, nil
}

func stringsOf(value any) ([]string, bool) {
	switch value := value.(type) {
	case string:
		return strings.Fields(value), true
	case []any:
		values := make([]string, len(value))
		for i := range value {
			var isText bool
			if values[i], isText = value[i].(string); !isText {
				return nil, false
			}
		}
		return values, true
	}
	return nil, false
}

// claimPath is where a value is in the claims: names of members, from the outermost on.
type claimPath []string

func parseClaimPath(text string) (claimPath, error) {
	if !strings.HasPrefix(text, "/") {
		return claimPath{text}, nil
	}
	path := claimPath(strings.Split(text[1:], "/"))
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i := range path {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(path[i]), "~") {
			return nil, fmt.Errorf("jwt: %q is not a JSON Pointer (a tilde is written ~0, a slash ~1)", text)
		}
		path[i] = unescape.Replace(path[i])
	}
	return path, nil
}

// in returns the value in the claims. A null is no value.
func (p claimPath) in(claims map[string]any) (any, bool) {
	var value any = claims
	for _, name := range p {
		members, isObject := value.(map[string]any)
		if !isObject {
			return nil, false
		}
		value = members[name]
	}
	return value, value != nil
}
