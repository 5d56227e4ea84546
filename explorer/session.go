package explorer

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/problem"
)

const (
	// codeTime is how long a code of a link can be used.
	codeTime = time.Minute
	// mostSessions bounds the memory of sessions, and mostOfOne those of one identity, so that no reader
	// ends the sessions of others. Beyond it, the oldest one ends.
	mostSessions, mostOfOne = 10_000, 50
)

// session is a reader who signed in.
type session struct {
	// token is what the reader pasted. Empty: the session began with a code, for identity.
	token    string
	identity access.Identity
	ends     time.Time
}

// sessions are those of a process.
type sessions struct {
	lasts time.Duration
	// cookie is the name of the cookie without the prefix. It differs between processes: a browser
	// sends a cookie of localhost to all ports.
	cookie string

	mu    sync.Mutex
	known map[[sha256.Size]byte]*session // by the hash of the cookie
	codes map[[sha256.Size]byte]*session
}

func newSessions(lasts time.Duration) *sessions {
	return &sessions{
		lasts: lasts, cookie: "pgagui-" + strings.ToLower(rand.Text()[:8]),
		known: map[[sha256.Size]byte]*session{}, codes: map[[sha256.Size]byte]*session{},
	}
}

// secret returns 128 random bits as text.
func secret() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// keep stores a session under a new secret, until it ends.
func (s *sessions) keep(in map[[sha256.Size]byte]*session, kept session, lasts time.Duration) (name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	kept.ends = now.Add(lasts)
	type key = [sha256.Size]byte
	var oldest, oldestOfOne key
	ofOne := 0
	for at, one := range in {
		if !now.Before(one.ends) {
			delete(in, at)
			continue
		}
		if first := in[oldest]; first == nil || one.ends.Before(first.ends) {
			oldest = at
		}
		if isSame(one.identity, kept.identity) {
			ofOne++
			if first := in[oldestOfOne]; first == nil || one.ends.Before(first.ends) {
				oldestOfOne = at
			}
		}
	}
	switch {
	case ofOne >= mostOfOne:
		delete(in, oldestOfOne)
	case len(in) >= mostSessions:
		delete(in, oldest)
	}
	name = secret()
	in[sha256.Sum256([]byte(name))] = &kept
	return name
}

// isSame reports whether two identities are of one person or program, with whichever of its tokens.
func isSame(a, b access.Identity) bool {
	return a.Issuer == b.Issuer && a.Scope == b.Scope && a.Subject == b.Subject
}

// find returns a session; nil: there is none. If once is true, it is found this once.
func (s *sessions) find(in map[[sha256.Size]byte]*session, name string, once bool) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(name))
	found := in[key]
	if found == nil {
		return nil
	}
	isOver := !time.Now().Before(found.ends)
	if once || isOver {
		delete(in, key)
	}
	if isOver {
		return nil
	}
	return found
}

// cookieName returns the name of the cookie: one with the prefix __Host- can only be set by this
// host, over https.
func (s *sessions) cookieName(isHTTPS bool) string {
	if isHTTPS {
		return "__Host-" + s.cookie
	}
	return s.cookie
}

// isHTTPS reports whether the browser uses https, to this process or to a proxy before it. A proxy
// says so in a header; if somebody else sends that, the cookie is only stricter.
func isHTTPS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// Code returns a code that signs in an identity: the link is login?code=CODE below the prefix, with
// the page to show as to=PAGE. It can be used once, within a minute.
func (h *Handler) Code(identity access.Identity) string {
	return h.sessions.keep(h.sessions.codes, session{identity: identity}, codeTime)
}

// Link returns a link below the prefix that signs in an identity, with Code, and leads to a place.
func (h *Handler) Link(identity access.Identity, to Place) string {
	return "login?" + url.Values{"code": {h.Code(identity)}, "to": {to.String()}}.Encode()
}

// Place is a place in the explorer. The zero value is the list of threads.
type Place struct {
	ThreadID string
	RunID    string // empty: the head
	Seq      int64  // 0: the end of the run
}

// String returns the URL of the place, below the prefix.
func (p Place) String() string {
	if p.ThreadID == "" {
		return "./"
	}
	return link("thread", "id", p.ThreadID, "run", p.RunID, "seq", p.Seq)
}

// identify finds out who sends a request: the token of the request, or else that of its session.
func (h *Handler) identify(q *request) error {
	var identity access.Identity
	var err error = &access.Refusal{Kind: access.ErrNoToken, Reason: "you are not signed in"}
	if h.options.Access != nil {
		identity, err = h.options.Access.Authenticate(q.Request)
	}
	if err == nil {
		q.identity = identity
		return nil
	}
	if !errors.Is(err, access.ErrNoToken) {
		return err
	}
	// Pages of other hosts and ports may have set more cookies of this name.
	var found *session
	for _, cookie := range q.CookiesNamed(h.sessions.cookieName(isHTTPS(q.Request))) {
		if found = h.sessions.find(h.sessions.known, cookie.Value, false); found != nil {
			break
		}
	}
	if found == nil {
		return err
	}
	if found.token == "" {
		q.identity, q.session = found.identity, found
		return nil
	}
	identity, err = h.authenticate(q.Request, found.token)
	if err != nil {
		return err
	}
	q.identity, q.session = identity, found
	return nil
}

// authenticate returns whose a token is.
func (h *Handler) authenticate(r *http.Request, token string) (access.Identity, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return h.options.Access.Authenticate(r)
}

type loginPage struct {
	To        string
	Problem   string
	LinksOnly bool
}

// showLogin shows the form for a token, or signs in with the code of a link.
func (h *Handler) showLogin(q *request) error {
	to := localPlace(q.text("to"))
	code := q.text("code")
	if code == "" || q.Method == http.MethodHead { // a preview of the link does not use it up
		return q.write("login", "Sign in", loginPage{To: to, LinksOnly: h.options.Access == nil})
	}
	found := h.sessions.find(h.sessions.codes, code, true)
	if found == nil {
		q.status = http.StatusUnauthorized
		return q.write("login", "Sign in", loginPage{To: to, LinksOnly: h.options.Access == nil, Problem: "This link was used, or is older than a minute."})
	}
	h.begin(q, session{identity: found.identity}, to)
	return nil
}

// login signs in with a token.
func (h *Handler) login(q *request) error {
	if h.options.Access == nil {
		return problem.Errorf(http.StatusForbidden, "only links sign in here")
	}
	to, token := localPlace(q.PostFormValue("to")), strings.TrimSpace(q.PostFormValue("token"))
	identity, err := h.authenticate(q.Request, token)
	if err == nil && !identity.Can(access.Read) {
		err = problem.Errorf(http.StatusForbidden, "this token lacks the right to read")
	}
	if err != nil {
		var refused *access.Refusal
		status, reason := http.StatusForbidden, err.Error()
		if errors.As(err, &refused) {
			status, reason = refused.Status(), refused.Reason
		}
		h.options.Logger.Warn("the explorer refused a token", "remote", q.RemoteAddr, "status", status, "reason", reason)
		q.status = status
		return q.write("login", "Sign in", loginPage{To: to, Problem: "This does not work: " + reason + "."})
	}
	h.begin(q, session{token: token, identity: identity}, to)
	return nil
}

// begin begins a session.
func (h *Handler) begin(q *request, of session, to string) {
	lasts := h.sessions.lasts
	if expires := of.identity.Expires; !expires.IsZero() {
		lasts = min(lasts, time.Until(expires))
	}
	name := h.sessions.keep(h.sessions.known, of, lasts)
	h.setCookie(q, name, max(int(lasts.Seconds()), 1))
	q.redirect(to)
}

func (h *Handler) setCookie(q *request, value string, maxAge int) {
	secure := isHTTPS(q.Request)
	http.SetCookie(q.w, &http.Cookie{
		Name: h.sessions.cookieName(secure), Value: value, Path: "/", MaxAge: maxAge, Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// logout ends the session.
func (h *Handler) logout(q *request) error {
	for _, cookie := range q.CookiesNamed(h.sessions.cookieName(isHTTPS(q.Request))) {
		h.sessions.find(h.sessions.known, cookie.Value, true)
	}
	h.setCookie(q, "", -1)
	q.redirect("login")
	return nil
}

// localPlace returns the place to show after the login if it is a page of the explorer.
func localPlace(to string) string {
	parsed, err := url.Parse(to)
	page, _, _ := strings.Cut(to, "?")
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.Path == ".." || strings.ContainsAny(page, "/\\:") || strings.ContainsAny(to, "\r\n\t") {
		return "./"
	}
	return cmp.Or(to, "./")
}
