package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/internal/wait"
)

// Agents that others wrote, with scripted models: two runs of a thread, with a reload in the middle of each.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{"tanstack", "mastra"} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			if framework == "mastra" {
				if _, err := os.Stat("frameworks/node_modules"); err != nil {
					testneeds.Skip(t, testneeds.Frameworks, "the frameworks are not installed: make test-js")
				}
			}
			s := &stage{nodeHost: startHost(t)}
			answer := must.Have(s.ask("agents.start", map[string]any{"framework": framework}))(t)
			var url string
			must.Do(t, json.Unmarshal(answer, &url))
			pool := testdb.Pool(t)
			agents := map[string]string{"test": url}
			s.here, s.there = serve(t, pool, agents), serve(t, pool, agents)
			s.onEachVersion(t, func(s *scenario) {
				s.playAgent(func(text string) {
					must.Have(s.ask("agents.release", map[string]any{"text": text}))(s.t)
				})
			})
		})
	}
}

// playAgent runs an agent twice in a thread. It says half of its answer, and the rest when released.
func (s *scenario) playAgent(release func(text string)) {
	s.t.Helper()
	staying := s.client(s.here)
	for i := range 2 {
		run, text := fmt.Sprint("run-", i), fmt.Sprintf("Tell me slowly, number %d in %s", i, s.thread)
		running := staying.run(run, nil, user(fmt.Sprint("u", i), text))
		staying.waitForText("You said ", i+1)
		reloaded := s.client(s.there)
		connected := reloaded.connect()
		reloaded.waitForText("You said ", i+1)
		release(text)
		running.succeed()
		connected.succeed()
		s.here.wantStatus(s.t, s.thread, run, pgagui.Finished)
		meant := s.here.restored(s.t, s.thread, run)
		if answer := meant.String(); !strings.Contains(answer, "You said ") || !strings.Contains(answer, "😀.") {
			s.t.Errorf("the agent said %s", answer)
		}
		reloaded.want(meant)
		s.wantAgreement(staying, run, true)
		staying = reloaded
	}
}

// waitForText waits until the client holds a text so many times.
func (c *client) waitForText(text string, times int) {
	c.t.Helper()
	if !wait.Until(func() bool { return strings.Count(c.look().meaning.String(), text) >= times }) {
		c.t.Fatalf("the client holds %s, not %d times %q; it received\n%s", c.look().meaning, times, text, strings.Join(c.frames(), "\n"))
	}
}
