package clients

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// stage is what a scenario plays on: two servers of a database, and an agent.
type stage struct {
	*nodeHost
	pool        *pgxpool.Pool
	agent       *scripted
	here, there *process
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{nodeHost: startHost(t), pool: testdb.Pool(t), agent: newScripted(t)}
	agents := map[string]string{"test": s.agent.URL}
	s.here, s.there = serve(t, s.pool, agents), serve(t, s.pool, agents)
	return s
}

// scenario is a conversation on a stage.
type scenario struct {
	*stage
	t               *testing.T
	version, thread string
}

// onEachVersion plays a scenario with each version of the client, in parallel.
func (s *stage) onEachVersion(t *testing.T, play func(s *scenario)) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			// A thread id that has to be escaped in paths.
			play(&scenario{s, t, version, strings.ReplaceAll(t.Name(), "/", " ä/")})
		})
	}
}

// client returns a client that has seen nothing yet.
func (s *scenario) client(base *process) *client {
	s.t.Helper()
	return s.open(s.t, clientOptions{Version: s.version, Thread: s.thread, Base: base.URL})
}

// play has a client run, and the agent answer with events of all kinds. It returns what the agent received.
func (s *scenario) play(c *client, run string, parameters map[string]any, messages ...any) *call {
	s.t.Helper()
	running := c.run(run, parameters, messages...)
	called := s.agent.called(s.t, s.thread)
	called.finish(called.everything(" of " + run)...)
	running.succeed()
	return called
}

// wantAgreement compares a client with the log at a run, and with clients that reload: at the head on both servers, if isHead, and at
// the run.
func (s *scenario) wantAgreement(c *client, run string, isHead bool) {
	s.t.Helper()
	meant := s.here.restored(s.t, s.thread, run)
	c.want(meant)
	s.wantReloads(meant, run, isHead)
}

func (s *scenario) wantReloads(meant meaning, run string, isHead bool) {
	s.t.Helper()
	travelling := s.open(s.t, clientOptions{
		Version: s.version, Thread: s.thread, Base: s.there.URL, Connect: &request{"GET", s.there.URL + pathOf(s.thread) + "?run=" + run},
	})
	reloaded := []*client{travelling}
	if isHead {
		reloaded = append(reloaded, s.client(s.here), s.client(s.there))
	}
	for _, c := range reloaded {
		c.connect().succeed()
		c.want(meant)
		if len(meant.Interrupts.([]any)) == 0 { // with them the client refuses to connect
			c.connect().succeed() // twice doubles nothing
			c.want(meant)
		}
	}
}

// wantParent compares the run that the server chose as the parent.
func (s *scenario) wantParent(c *client, want string) {
	s.t.Helper()
	if got := c.look().Headers["pgagui-parent-run"]; got != want {
		s.t.Errorf("the run continues %q, want %q", got, want)
	}
}

func (s *scenario) wantReceived(called *call, want ...string) {
	s.t.Helper()
	if got := called.messageIDs(); !slices.Equal(got, want) {
		s.t.Errorf("the agent received the messages %q, want %q", got, want)
	}
}

// post sends a request that no client of ours sends.
func (p *process) post(t *testing.T, path, body string) string {
	t.Helper()
	answer := must.Have(http.Post(p.URL+path, "application/json", strings.NewReader(body)))(t)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s %s %v", path, answer.Status, text, err)
	}
	return string(text)
}
