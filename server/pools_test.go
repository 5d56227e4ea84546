package server_test

import (
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
)

// TestTwoPoolsUnderRowSecurity serves two scopes with the roles of docs/server.md: a pool that the
// database holds to the scope of each request, and one that may only append, say alive and poll.
func TestTwoPoolsUnderRowSecurity(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	owner := testdb.Connect(t, address)
	testdb.Exec(t, owner, `call agui.enable_row_security()`)
	requests := testdb.Role(t, owner, "requests", "agui_writer, agui_maintainer", `select agui.map_pool('%s')`)
	live := testdb.Role(t, owner, "live", "agui_recorder", `select agui.map_operator('%s')`)
	authenticator, made := tokens(t, "a admin", "b admin")
	a := newAgent(t)
	store := pgagui.New(testdb.Connect(t, testdb.As(t, address, requests)), &pgagui.Config{SetScope: true, Live: testdb.Connect(t, testdb.As(t, address, live))})
	p := serveStore(t, store, server.Options{Agents: withAgent(a).Agents, Access: authenticator})

	for i, scope := range []string{"a", "b"} {
		token := []string{"Authorization", "Bearer " + made[i]}
		c := p.stream("POST", "/agent/test/run", input("thread", "run", "u1 user Hello "+scope), token...)
		called := a.called(t)
		if ids := called.messageIDs(); len(ids) != 1 {
			t.Errorf("scope %s: the agent received %v", scope, ids)
		}
		called.send(started("thread", "run"), start("a1"))
		c.want("RUN_STARTED", "TEXT_MESSAGE_START")
		attached := p.stream("GET", "/threads/thread/events", "", token...)
		attached.want("RUN_STARTED", "MESSAGES_SNAPSHOT")
		if snapshot := attached.events[1]; !strings.Contains(snapshot, "Hello "+scope) {
			t.Errorf("scope %s: %s", scope, snapshot)
		}
		if scope == "a" {
			called.send(content("a1", "x"), end("a1"), finished("thread", "run"))
			close(called.answers)
		} else {
			p.json(200, "POST", "/threads/thread/stop", "", token...)
		}
		c.rest()
		attached.rest()
		p.json(201, "POST", sessions+"thread/messages", `{"payload":"More of `+scope+`"}`, token...)
		p.json(201, "POST", sessions+"thread/events", pushBody("RUN_STARTED", `{"runId":"pushed"}`), token...)
		p.json(201, "POST", sessions+"thread/events", pushBody("RUN_FINISHED", `{}`), token...)
		if messages := p.list(sessions+"thread/messages", token...); len(messages) < 2 || messages[len(messages)-1]["payload"] != "More of "+scope {
			t.Errorf("scope %s: the messages are %v", scope, messages)
		}
		p.json(200, "DELETE", "/copilotkit/threads/thread", "{}", token...)
		p.json(404, "GET", "/threads/thread/events", "", token...)
	}
}
