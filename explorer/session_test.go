package explorer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/server/access"
)

// tokenFile makes tokens, and the authenticator of them. Each line is a name, a scope, rights.
func tokenFile(t testing.TB, lines ...[3]string) (tokens map[string]string, of *access.Tokens, rewrite func(without string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	tokens = map[string]string{}
	write := func(without string) {
		var text strings.Builder
		for _, line := range lines {
			if line[0] == without {
				continue
			}
			if tokens[line[0]] == "" {
				tokens[line[0]], _ = access.NewToken()
			}
			hash := sha256.Sum256([]byte(tokens[line[0]]))
			fmt.Fprintf(&text, "- name: %s\n  sha256: %s\n  scope: %q\n  rights: [%s]\n", line[0], hex.EncodeToString(hash[:]), line[1], line[2])
		}
		testfile.Write(t, file, []byte(text.String()))
	}
	write("")
	of = must.Have(access.LoadTokens(file))(t)
	return tokens, of, func(without string) {
		write(without)
		must.Do(t, of.Reload())
	}
}

func signIn(s *site, reader *http.Client, token string) answer {
	s.t.Helper()
	return s.post(reader, "login", url.Values{"token": {token}, "to": {"./"}})
}

// Each reader sees the threads of the own scope only, on every page, and may do what the token may.
func TestTwoTenants(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for _, scope := range []string{"acme", "globex"} {
		of := store.InScope(scope)
		appendEvents(t, of, pgagui.RunRef{ThreadID: "shared-name", RunID: "run-" + scope}, append(append(
			[]rawMessage{started("shared-name", "run-"+scope, "Secret of "+scope)}, said("m", "Answer to "+scope)...), event("RUN_ERROR", "message", "broken for "+scope))...)
		appendEvents(t, of, pgagui.RunRef{ThreadID: "only-" + scope, RunID: "r"}, started("only-"+scope, "r", "Another secret of "+scope), finished("only-"+scope, "r"))
	}
	tokens, authenticator, _ := tokenFile(t, [3]string{"acme", "acme", "read"}, [3]string{"globex", "globex", "read, stop"}, [3]string{"blind", "acme", "write"})
	s := newSite(t, store, explorer.Options{Access: authenticator})
	acme, globex := newReader(t), newReader(t)
	signIn(s, acme, tokens["acme"]).want(t, http.StatusOK, "Secret of acme", "scope <bdi>acme</bdi>", "Sign out")
	signIn(s, globex, tokens["globex"]).want(t, http.StatusOK, "Secret of globex")
	for _, page := range []string{
		"./", "?q=only-globex", "?q=secret", "?status=failed", "waiting", "health", "thread?id=shared-name", "log?id=shared-name", "times?id=shared-name", "compare?id=shared-name",
		"ndjson?id=shared-name&whole=1", "thread?id=only-globex", "log?id=only-globex", "ndjson?id=only-globex", "times?id=only-globex", "compare?id=only-globex",
		"attachment?id=only-globex&n=1", "events?id=only-globex", "thread?id=shared-name&run=run-globex",
	} {
		got := s.get(acme, page)
		if strings.Contains(got.text, "of globex") || strings.Contains(got.text, "to globex") || strings.Contains(got.text, "for globex") {
			t.Errorf("%s shows the other tenant:\n%s", page, got.text)
		}
		if strings.Contains(page, "globex") && strings.Contains(page, "id=") && got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", page, got.Status)
		}
	}
	// The database is of all tenants.
	if got := s.get(acme, "health"); strings.Contains(got.text, "On disk") || strings.Contains(got.text, "Log on disk") {
		t.Error("a tenant sees the database")
	}
	stop := url.Values{"id": {"shared-name"}}
	s.post(acme, "stop", stop).want(t, http.StatusForbidden, "lacks the right: stop")
	s.post(globex, "stop", stop).want(t, http.StatusOK, "Secret of globex")
	signIn(s, newReader(t), tokens["blind"]).want(t, http.StatusForbidden, "lacks the right to read")
}

// A link signs in once; its code has 128 bits and lasts a minute.
func TestALinkSignsInOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgagui.New(testdb.Pool(t), nil), explorer.Options{})
	identity := access.Identity{Rights: access.Read, Subject: "link"}
	reader := newReader(t)
	link := s.pages.Link(identity, explorer.Place{})
	if code := must.OrPanic(url.ParseQuery(strings.TrimPrefix(link, "login?"))).Get("code"); len(code) != 22 { // base64 of 16 bytes
		t.Errorf("the code is %q", code)
	}
	s.do(newReader(t), "HEAD", link, nil, nil).want(t, http.StatusOK) // a preview
	got := s.get(staying(reader), link)
	got.want(t, http.StatusSeeOther)
	cookie := got.Cookies()[0]
	if got.Header.Get("Location") != "./" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure || strings.HasPrefix(cookie.Name, "__Host-") || cookie.Path != "/" {
		t.Errorf("it leads to %q with %+v", got.Header.Get("Location"), cookie)
	}
	s.get(reader, "./").want(t, http.StatusOK, "There are no threads yet")
	// A page of another port may have set a cookie of the name, which comes first.
	s.do(nil, "GET", "./", nil, []string{"Cookie", cookie.Name + "=bad; " + cookie.Name + "=" + cookie.Value}).want(t, http.StatusOK, "There are no threads yet")
	s.get(newReader(t), link).want(t, http.StatusUnauthorized, "was used, or is older than a minute")
	s.post(nil, "login", url.Values{"token": {"x"}}).want(t, http.StatusForbidden, "only links sign in here")
	// Behind a proxy that speaks https, only this host can set the cookie.
	got = s.do(staying(newReader(t)), "GET", s.pages.Link(identity, explorer.Place{ThreadID: "t/1", RunID: "r", Seq: 7}), nil, []string{"X-Forwarded-Proto", "https"})
	cookie = got.Cookies()[0]
	if !strings.HasPrefix(cookie.Name, "__Host-") || !cookie.Secure || cookie.Domain != "" || got.Header.Get("Location") != "thread?id=t%2F1&run=r&seq=7" {
		t.Errorf("over https: %q %+v", got.Header.Get("Location"), cookie)
	}
}

// Sessions and codes end with time.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens, authenticator, withdraw := tokenFile(t, [3]string{"one", "", "read"}, [3]string{"two", "", "read"})
		// What the pages show is not the matter here, so no database is asked: a page that does not exist says who may ask.
		pages := explorer.New(pgagui.New(nil, nil), explorer.Options{Access: authenticator, SessionTime: time.Hour})
		defer pages.Close()
		ask := func(cookie *http.Cookie) (isIn bool) {
			recorder, request := recorded("GET", "/thread", nil)
			if cookie != nil {
				request.AddCookie(cookie)
			}
			pages.ServeHTTP(recorder, request)
			switch recorder.Code {
			case http.StatusSeeOther:
				if to := recorder.Header().Get("Location"); to != "login?to=thread" {
					t.Errorf("it leads to %q", to)
				}
				return false
			case http.StatusBadRequest: // it lacks the id
				return true
			}
			t.Fatalf("%d %s", recorder.Code, recorder.Body)
			return false
		}
		begin := func(target string, form url.Values) *http.Cookie {
			method := "GET"
			if form != nil {
				method = "POST"
			}
			recorder, request := recorded(method, target, form)
			pages.ServeHTTP(recorder, request)
			for _, cookie := range recorder.Result().Cookies() {
				return cookie
			}
			return nil
		}
		byCode := begin("/"+pages.Link(access.Identity{Rights: access.Read}, explorer.Place{}), nil)
		one := begin("/login", url.Values{"token": {tokens["one"]}})
		two := begin("/login", url.Values{"token": {tokens["two"]}})
		if ask(nil) || !ask(byCode) || !ask(one) || !ask(two) {
			t.Fatal("the sessions do not begin")
		}
		withdraw("two") // a token that is withdrawn
		if !ask(one) || ask(two) {
			t.Error("a session survives its token")
		}
		recorder, request := recorded("POST", "/logout", url.Values{})
		request.AddCookie(one)
		pages.ServeHTTP(recorder, request)
		if ask(one) || !ask(byCode) {
			t.Error("signing out does not end the session, or ends another one")
		}
		late := "/" + pages.Link(access.Identity{Rights: access.Read}, explorer.Place{})
		time.Sleep(59 * time.Minute)
		if !ask(byCode) {
			t.Error("the session ended early")
		}
		time.Sleep(2 * time.Minute)
		if ask(byCode) {
			t.Error("the session did not end")
		}
		if begin(late, nil) != nil {
			t.Error("an old code works")
		}
	})
}

// Somebody who signs in very often ends only the own sessions.
func TestManySessionsOfOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pages := explorer.New(pgagui.New(nil, nil), explorer.Options{})
		defer pages.Close()
		signIn := func(subject string) *http.Cookie {
			time.Sleep(time.Millisecond) // sessions have an order
			recorder, request := recorded("GET", "/"+pages.Link(access.Identity{Rights: access.Read, Subject: subject}, explorer.Place{}), nil)
			pages.ServeHTTP(recorder, request)
			return recorder.Result().Cookies()[0]
		}
		isIn := func(cookie *http.Cookie) bool {
			recorder, request := recorded("GET", "/thread", nil)
			request.AddCookie(cookie)
			pages.ServeHTTP(recorder, request)
			return recorder.Code == http.StatusBadRequest // it lacks the id
		}
		quiet, first := signIn("quiet"), signIn("busy")
		var last *http.Cookie
		for range 200 {
			last = signIn("busy")
		}
		if !isIn(quiet) || isIn(first) || !isIn(last) {
			t.Errorf("signed in: quiet %v, first %v, last %v", isIn(quiet), isIn(first), isIn(last))
		}
	})
}

// A request that a page of another site makes does nothing, and a link from there works.
func TestRequestsOfOtherSites(t *testing.T) {
	t.Parallel()
	tokens, authenticator, _ := tokenFile(t, [3]string{"one", "", "read, stop"})
	store := pgagui.New(testdb.Pool(t), nil)
	appendEvents(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, started("t", "r", "Hello"))
	s := newSite(t, store, explorer.Options{Access: authenticator})
	reader := newReader(t)
	signIn(s, reader, tokens["one"]).want(t, http.StatusOK)
	stopped := func() bool {
		status := must.Have(store.Status(t.Context(), pgagui.RunRef{ThreadID: "t"}))(t)
		return !status.StopRequestedAt.IsZero()
	}
	form := url.Values{"id": {"t"}, "run": {"r"}}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		s.post(reader, "stop", form, headers...).want(t, http.StatusForbidden, "from a page of another site")
		s.post(newReader(t), "login", url.Values{"token": {tokens["one"]}}, headers...).want(t, http.StatusForbidden)
		s.post(reader, "logout", url.Values{}, headers...).want(t, http.StatusForbidden)
	}
	if stopped() {
		t.Fatal("another site stopped the run")
	}
	s.do(reader, "GET", "thread?id=t", nil, []string{"Sec-Fetch-Site", "cross-site"}).want(t, http.StatusOK, "Hello")
	s.post(reader, "stop", form, "Sec-Fetch-Site", "same-origin").want(t, http.StatusOK)
	if !stopped() {
		t.Error("the run was not stopped")
	}
}

// The login leads only to pages of the explorer.
func TestTheLoginLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	tokens, authenticator, _ := tokenFile(t, [3]string{"one", "", "read"})
	s := newSite(t, pgagui.New(testdb.Pool(t), nil), explorer.Options{Access: authenticator})
	for to, want := range map[string]string{
		"thread?id=a%2Fb": "thread?id=a%2Fb", "https://evil.example/": "./", "//evil.example": "./", `\\evil.example`: "./", "/elsewhere": "./", "javascript:alert(1)": "./",
		"../x": "./", "": "./", "..": "./", "%2E.?x": "./", "thread?id=x\r\nSet-Cookie: a=b": "./",
	} {
		got := s.post(staying(newReader(t)), "login", url.Values{"token": {tokens["one"]}, "to": {to}})
		if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != want {
			t.Errorf("%q leads to %q", to, got.Header.Get("Location"))
		}
	}
	got := s.get(staying(newReader(t)), "thread?id=a%2Fb&run=r")
	if want := "login?to=thread%3Fid%3Da%252Fb%26run%3Dr"; got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != want {
		t.Errorf("without a session it leads to %q", got.Header.Get("Location"))
	}
	signIn(s, newReader(t), "pgagui_wrong").want(t, http.StatusUnauthorized, "This does not work")
	// A proxy can bring the token.
	s.do(nil, "GET", "./", nil, []string{"Authorization", "Bearer " + tokens["one"]}).want(t, http.StatusOK, "Threads")
}
