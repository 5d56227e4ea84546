package access

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"
)

// CORS returns a middleware that lets pages of other origins call the server from a browser. An
// origin is exact, such as https://app.example.com or http://localhost:3000. On this machine the
// port may be *, for development: http://localhost:*, http://127.0.0.1:*. The list "*" alone allows
// all origins; then browsers send no credentials (cookies, client certificates), only the
// headers that a page sets itself. Without origins the middleware changes nothing, and browsers
// allow pages of the server's own origin only.
//
// The middleware answers preflight requests itself, so it belongs before the Guard. headers are
// request headers that pages may send besides the common ones, for example those that agents get.
func CORS(origins []string, headers ...string) (func(http.Handler) http.Handler, error) {
	if len(origins) == 0 { // the zero value of rs/cors allows all
		return func(next http.Handler) http.Handler { return next }, nil
	}
	allowsAll := slices.Contains(origins, "*")
	if allowsAll && len(origins) > 1 {
		return nil, fmt.Errorf("cors: * stands beside other origins (name origins, or * alone)")
	}
	for _, origin := range origins {
		if !allowsAll && !isOrigin(origin) {
			return nil, fmt.Errorf("cors: %q is not an origin (expected scheme://host or scheme://host:port, without a path, "+
				"wildcards and the default port; the port * is possible for localhost)", origin)
		}
	}
	if slices.Contains(headers, "*") {
		return nil, fmt.Errorf("cors: * is no request header (name those that pages may send)")
	}
	return cors.New(cors.Options{
		AllowedOrigins:   origins,
		AllowCredentials: !allowsAll,
		AllowedMethods: []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		},
		AllowedHeaders: append([]string{
			"Accept", "Authorization", "Cache-Control", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID",
			"X-Requested-With", "X-Run-Id", "traceparent", "tracestate", "baggage", "Pgagui-Position",
		}, headers...),
		ExposedHeaders: []string{"ETag", "Location", "Pgagui-Parent-Run", "Pgagui-Position", "Retry-After"},
		MaxAge:         600, // seconds; some browsers take no more
	}).Handler, nil
}

func isOrigin(text string) bool {
	if local, hasAnyPort := strings.CutSuffix(text, ":*"); hasAnyPort {
		origin, err := url.Parse(local)
		return err == nil && isLocalName(origin.Hostname()) && origin.Port() == "" && isOrigin(local)
	}
	origin, err := url.Parse(text)
	if err == nil && (origin.Scheme == "http" && origin.Port() == "80" || origin.Scheme == "https" && origin.Port() == "443") {
		return false // browsers leave the default port out, so it would never match
	}
	return err == nil && origin.Scheme != "" && origin.Host != "" && origin.Hostname() != "" &&
		text == origin.Scheme+"://"+origin.Host && !slices.Contains([]byte(text), '*')
}
