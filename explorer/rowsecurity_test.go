package explorer_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server/access"
)

// secretWord is in whatever the other tenant has.
const secretWord = "xyzzy"

// appendTenant appends threads of a scope: one whose name another tenant has too, and one that waits,
// one that failed, one that runs.
func appendTenant(t *testing.T, store *pgagui.Store, scope, word string) {
	t.Helper()
	of := store.InScope(scope)
	add := func(thread, run string, end ...rawMessage) {
		t.Helper()
		events := append([]rawMessage{started(thread, run, "Question "+word)}, said("m", "Answer "+word)...)
		events = append(events, event("STATE_SNAPSHOT", "snapshot", map[string]any{"secret": word}),
			event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "tool"+word, "parentMessageId", "m"), event("TOOL_CALL_END", "toolCallId", "c"),
			event("TOOL_CALL_RESULT", "messageId", "t", "toolCallId", "c", "content", "result "+word, "role", "tool"),
			rawMessage(`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":[{"type":"text","text":"Picture `+word+`"},{"type":"image","source":{"type":"data","mimeType":"image/png","value":"iVBORw0KGgo="}}]},{"id":"m","role":"assistant","content":"Answer `+word+`"}]}`))
		appendEvents(t, of, pgagui.RunRef{ThreadID: thread, RunID: run}, append(events, end...)...)
		agent := "agent" + word
		must.Have(of.SetThread(t.Context(), thread, pgagui.ThreadChanges{Agent: &agent}))(t)
	}
	add("shared", "run"+word, finished("shared", "run"+word))
	add(scope+"-waits", "r", event("RUN_FINISHED", "threadId", scope+"-waits", "runId", "r", "outcome", map[string]any{
		"type": "interrupt", "interrupts": []any{map[string]any{"id": "i", "reason": "why" + word, "message": "May I " + word}}}))
	add(scope+"-failed", "r", event("RUN_ERROR", "message", "broken "+word, "code", "code"+word))
	add(scope+"-runs", "r")
	must.Have(of.Consumer("consumer"+word).Changes(t.Context(), 1))(t)
}

// Under row-level security, each route answers a tenant about the threads of another one as if there
// were none, and no list, search or figure has any of them. A role of one tenant is confined even if
// the scope of the reader is the other one.
func TestRowSecurity(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	owner := testdb.Connect(t, address)
	testdb.Exec(t, owner, "call agui.enable_row_security()")
	web := testdb.Connect(t, testdb.As(t, address, testdb.Role(t, owner, "web", "agui_writer", "select agui.map_pool('%s')")))
	acme := testdb.Connect(t, testdb.As(t, address, testdb.Role(t, owner, "acme", "agui_writer", "select agui.map_tenant('%s', 'acme')")))
	store := pgagui.New(web, &pgagui.Config{SetScope: true})
	appendTenant(t, store, "acme", "plain")
	appendTenant(t, store, "globex", secretWord)

	a := newEcho(t)
	of := func(scope string) access.Authenticator { return access.Anonymous(scope, access.Admin) }
	t.Run("a pool", func(t *testing.T) {
		// As pgagui serve has it: the token says the scope.
		tokens, authenticator, _ := tokenFile(t, [3]string{"acme", "acme", "admin"})
		s := newSite(t, store, explorer.Options{Access: authenticator, Agents: newAgents(t, store, a, authenticator)})
		reader := newReader(t)
		signIn(s, reader, tokens["acme"]).want(t, http.StatusOK, "Question plain")
		checkConfined(t, s, reader)
	})
	t.Run("a role of the tenant", func(t *testing.T) {
		// As pgagui explore has it: the role of the database says what there is.
		confined := pgagui.New(acme, nil)
		s := newSite(t, confined, explorer.Options{Access: of("acme"), Database: acme, Agents: newAgents(t, confined, a, of("acme"))})
		checkConfined(t, s, http.DefaultClient)
		other := newSite(t, confined, explorer.Options{Access: of("globex"), Database: acme})
		for _, page := range []string{"./", "?q=Question", "waiting", "health", "thread?id=shared", "thread?id=globex-waits", "log?id=globex-failed", "ndjson?id=shared&whole=1"} {
			if got := other.get(nil, page); strings.Contains(got.text, secretWord) {
				t.Errorf("in the scope of the other tenant %s shows\n%s", page, got.text)
			}
		}
	})
	// The other tenant still has all of it, so the checks above could fail.
	s := newSite(t, store, explorer.Options{Access: of("globex")})
	for _, page := range []string{"./", "?q=globex-failed", "waiting", "health", "thread?id=globex-waits", "ndjson?id=shared&whole=1", "log?id=globex-failed", "continue?id=globex-failed&run=r&message=m"} {
		s.get(nil, page).want(t, http.StatusOK, secretWord)
	}
	if len(a.inputs) != 0 {
		t.Error("an agent was called")
	}
}

// checkConfined asks for everything, as a reader of the scope acme.
func checkConfined(t *testing.T, s *site, reader *http.Client) {
	t.Helper()
	theirs := func(page string) []string { // of threads of the other tenant, and of a run of a shared name
		return []string{page + "?id=globex-waits", page + "?id=globex-failed&run=r", page + "?id=globex-runs&run=r&seq=3", page + "?id=shared&run=run" + secretWord}
	}
	const message = "&message=m&as=new&agent=echo&text=Hello"
	// What each route is asked: of the other tenant, which it must not find, and what it answers with the own threads.
	asked := map[string]struct{ theirs, own []string }{
		"GET /":           {own: []string{"./", "?q=Question", "?q=globex-waits", "?q=" + secretWord, "?status=failed", "?status=running", "?status=interrupted", "?agent=agent" + secretWord, "?since=1h"}},
		"GET /waiting":    {own: []string{"waiting"}},
		"GET /health":     {own: []string{"health"}},
		"GET /login":      {own: []string{"login"}},
		"GET /thread":     {theirs: theirs("thread"), own: []string{"thread?id=shared"}},
		"GET /log":        {theirs: theirs("log"), own: []string{"log?id=shared", "log?id=shared&runs=all"}},
		"GET /ndjson":     {theirs: theirs("ndjson"), own: []string{"ndjson?id=shared&runs=all", "ndjson?id=shared&whole=1"}},
		"GET /time":       {theirs: theirs("time"), own: []string{"time?id=shared"}},
		"GET /times":      {theirs: theirs("times"), own: []string{"times?id=shared"}},
		"GET /compare":    {theirs: append(theirs("compare"), "compare?id=shared&from=run"+secretWord), own: []string{"compare?id=shared"}},
		"GET /attachment": {theirs: []string{"attachment?id=globex-waits&n=1", "attachment?id=shared&n=1&run=run" + secretWord}, own: []string{"attachment?id=shared&n=1"}},
		"GET /events":     {theirs: []string{"events?id=globex-runs", "events?id=globex-waits&after=1"}},
		"GET /continue":   {theirs: []string{"continue?id=globex-waits&run=r" + message, "continue?id=shared&run=run" + secretWord + message}, own: []string{"continue?id=shared&run=runplain&message=m"}},
		"GET /input":      {theirs: []string{"input?id=globex-waits&run=r" + message, "input?id=shared&run=run" + secretWord + message}, own: []string{"input?id=shared&run=runplain&message=m&as=x"}},
		"POST /continue":  {theirs: []string{"continue?id=globex-waits&run=r" + message, "continue?id=shared&run=run" + secretWord + message}},
		"POST /stop":      {theirs: []string{"stop?id=globex-runs&run=r", "stop?id=globex-runs", "stop?id=shared&run=run" + secretWord}},
		"POST /login":     {}, // has no threads
		"POST /logout":    {},
	}
	if routes := s.pages.Routes(); !slices.Equal(routes, slices.Sorted(maps.Keys(asked))) {
		t.Errorf("the routes are\n%q, and asked were\n%q", routes, slices.Sorted(maps.Keys(asked)))
	}
	for route, pages := range asked {
		method, _, _ := strings.Cut(route, " ")
		ask := func(page string) answer {
			name, query, _ := strings.Cut(page, "?")
			if method == "POST" {
				return s.post(reader, name, must.OrPanic(url.ParseQuery(query)))
			}
			return s.get(reader, page)
		}
		for _, page := range pages.theirs {
			got := ask(page)
			if got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s: %s", method, page, got.Status)
			}
			checkNoSecret(t, page, got.text)
		}
		for _, page := range pages.own {
			got := ask(page)
			got.want(t, http.StatusOK)
			checkNoSecret(t, page, got.text)
		}
	}
}

// checkNoSecret checks that an answer has nothing of the other tenant but what the request named.
func checkNoSecret(t *testing.T, page, text string) {
	t.Helper()
	left := strings.ReplaceAll(text, "run"+secretWord, "")
	query := must.OrPanic(url.ParseQuery(page[strings.IndexByte(page, '?')+1:]))
	for _, named := range []string{"q", "agent", "id"} {
		if value := query.Get(named); value != "" && value != "shared" {
			left = strings.ReplaceAll(left, value, "")
		}
	}
	if at := strings.Index(left, secretWord); at >= 0 {
		t.Errorf("%s shows …%s…", page, left[max(at-200, 0):min(at+50, len(left))])
	}
	if at := strings.Index(left, "globex"); at >= 0 {
		t.Errorf("%s names a thread of the other tenant: …%s…", page, left[max(at-200, 0):min(at+50, len(left))])
	}
	if strings.Contains(text, "run"+secretWord) && !strings.Contains(page, secretWord) {
		t.Errorf("%s names a run of the other tenant", page)
	}
}
