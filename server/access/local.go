package access

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// LocalOnly passes on requests that come from this machine, for a server without tokens. It answers
// 403 if the Host header, or the Origin header of a browser, is not localhost, 127.0.0.1 or [::1].
// So a page from elsewhere cannot reach the server, not even under a name that leads to this
// machine (DNS rebinding). It belongs before all other handlers.
func LocalOnly(audit Audit, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostName(r.Host); !isLocalName(host) {
			audit.Refuse(w, r, &Refusal{
				Kind: ErrForbidden, Reason: "without tokens the Host header must be localhost, 127.0.0.1 or [::1]",
				Details: []slog.Attr{slog.String("host", r.Host)},
			})
			return
		}
		for _, origin := range r.Header["Origin"] {
			page, err := url.Parse(origin)
			if err != nil || page.Scheme != "http" && page.Scheme != "https" || !isLocalName(page.Hostname()) {
				audit.Refuse(w, r, &Refusal{
					Kind: ErrForbidden, Reason: "without tokens the Origin header must be of localhost, 127.0.0.1 or [::1]",
					Details: []slog.Attr{slog.String("origin", origin)},
				})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isLocalName takes these names alone. Others, such as 127.1, mean the same to some resolvers, but
// no client needs them.
func isLocalName(host string) bool {
	return strings.EqualFold(host, "localhost") || host == "127.0.0.1" || host == "::1"
}

// hostName returns a Host header without the port, and an IPv6 address without its brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	if name, _, err := net.SplitHostPort(host + ":"); err == nil { // it has no port
		return name
	}
	return ""
}

// CheckLoopback returns an error unless an address to listen on, HOST:PORT, can be reached from
// this machine only. Call it with the address of the listener too, since localhost is what the
// hosts file says:
//
//	access.CheckLoopback(listener.Addr().String())
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address %q: %w", address, err)
	}
	if strings.EqualFold(host, "localhost") {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen address %q can be reached from other machines (without tokens, listen on 127.0.0.1, [::1] or localhost)", address)
}
