package access

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"golang.org/x/time/rate"

	"github.com/pgagui/pgagui/internal/panics"
)

const (
	// minRefreshPause is the least time between fetches because of unknown keys. Any client can send
	// tokens that name such a key.
	minRefreshPause = 10 * time.Second
	fetchTimeout    = 5 * time.Second
	maxKeySetBytes  = 1 << 20
)

// errNoKeys means that the last fetch failed, so that an unknown key may be a valid one.
var errNoKeys = errors.New("the keys cannot be fetched")

// keySet has the public keys that an identity provider publishes. jwkset has a storage for this, too,
// but that one lets requests wait for its rate limit, reads answers of any size, and does not say
// whether its last fetch failed.
type keySet struct {
	*jwkset.MemoryJWKSet
	url     *url.URL
	client  http.Client
	logger  *slog.Logger
	unknown *rate.Limiter // of fetches because of unknown keys
	turn    chan struct{} // held while fetching
	failed  atomic.Bool   // the last fetch failed, or there was none
}

func newKeySet(ctx context.Context, options JWTOptions) (*keySet, error) {
	address, err := url.Parse(options.JWKSURL)
	if err != nil {
		return nil, errors.New("jwt: the JWKS URL is not a URL") // the error of url.Parse has the password, if there is one
	}
	if !isTrusted(address) {
		return nil, fmt.Errorf("jwt: the JWKS URL %s is not https: others could put their keys in its place", address.Redacted())
	}
	set := &keySet{
		MemoryJWKSet: jwkset.NewMemoryStorage(), url: address, logger: options.Logger,
		unknown: rate.NewLimiter(rate.Every(minRefreshPause), 1), turn: make(chan struct{}, 1),
	}
	if options.HTTPClient != nil {
		set.client = *options.HTTPClient
	}
	set.client.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if !isTrusted(request.URL) || len(via) >= 5 {
			return errors.New("redirected too often, or to a URL that is not https")
		}
		return nil
	}
	set.failed.Store(true)
	go panics.Task(options.Logger, func() { set.keepFresh(ctx, options.RefreshInterval) }, nil)()
	return set, nil
}

func isTrusted(address *url.URL) bool {
	return address.Scheme == "https" && address.Host != "" || address.Scheme == "http" && isLocalName(address.Hostname())
}

// keepFresh fetches the keys until ctx ends. After a failure it retries with backoff.
func (s *keySet) keepFresh(ctx context.Context, interval time.Duration) {
	shortest := min(time.Second, interval)
	for backoff := shortest; ; {
		err := panics.Catch(s.logger, func() error {
			s.turn <- struct{}{}
			defer func() { <-s.turn }()
			return s.fetch(ctx)
		})
		pause := interval
		if err != nil {
			pause = backoff
			backoff = min(2*backoff, interval)
		} else {
			backoff = shortest
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// KeyRead returns the key with an id. If it is unknown, it fetches the keys first.
func (s *keySet) KeyRead(ctx context.Context, id string) (jwkset.JWK, error) {
	key, err := s.MemoryJWKSet.KeyRead(ctx, id)
	if err == nil {
		return key, nil
	}
	isKnown := func() bool {
		key, err = s.MemoryJWKSet.KeyRead(ctx, id)
		return err == nil
	}
	if fetchErr := s.fetchUnless(ctx, isKnown); fetchErr != nil {
		return jwkset.JWK{}, fetchErr
	}
	return key, err
}

// KeyReadAll returns all keys, for a token that names none. If there are none, it fetches them
// first.
func (s *keySet) KeyReadAll(ctx context.Context) (keys []jwkset.JWK, err error) {
	isKnown := func() bool {
		keys, err = s.MemoryJWKSet.KeyReadAll(ctx)
		return len(keys) > 0
	}
	if !isKnown() {
		if fetchErr := s.fetchUnless(ctx, isKnown); fetchErr != nil {
			return nil, fetchErr
		}
	}
	return keys, err
}

// fetchUnless fetches the keys if the one in question is still unknown when no other fetch is under
// way, and if the rate limit permits. It returns errNoKeys if the key is unknown because of an
// outage.
func (s *keySet) fetchUnless(ctx context.Context, isKnown func() bool) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNoKeys, ctx.Err())
	}
	if isKnown() {
		return nil
	}
	if s.unknown.Allow() {
		// The fetch continues if the client goes away. Otherwise such clients could keep the server
		// from getting new keys, because the rate limit counts their attempts.
		_ = s.fetch(context.WithoutCancel(ctx))
	}
	if !isKnown() && s.failed.Load() {
		return errNoKeys
	}
	return nil
}

// fetch replaces the keys by those that the provider publishes now. If it fails, it keeps those
// that it has.
func (s *keySet) fetch(ctx context.Context) error {
	fetchContext, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys, err := s.download(fetchContext)
	switch {
	case err != nil && ctx.Err() != nil: // the server stops
	case err != nil:
		s.failed.Store(true)
		s.logger.WarnContext(ctx, "jwt: the keys of the identity provider cannot be fetched", "url", s.url.Redacted(), "error", err)
	default:
		_ = s.KeyReplaceAll(ctx, keys) // never fails in memory
		if s.failed.Swap(false) {
			s.logger.InfoContext(ctx, "jwt: fetched the keys of the identity provider", "url", s.url.Redacted(), "keys", len(keys))
		}
	}
	return err
}

func (s *keySet) download(ctx context.Context) ([]jwkset.JWK, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeySetBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxKeySetBytes {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxKeySetBytes)
	}
	var published jwkset.JWKSMarshal
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, fmt.Errorf("the answer is not a JWKS: %w", err)
	}
	var keys []jwkset.JWK
	for _, each := range published.Keys {
		// RFC 7517, section 5: keys that cannot be used are left out.
		key, err := jwkset.NewJWKFromMarshal(each, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err == nil && isForSignatures(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the answer has no key for signatures")
	}
	return keys, nil
}

func isForSignatures(key jwkset.JWK) bool {
	if key.Marshal().USE == jwkset.UseEnc {
		return false
	}
	switch key := key.Key().(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSABits
	case []byte: // a secret, which a provider must not publish
		return false
	}
	return true
}
