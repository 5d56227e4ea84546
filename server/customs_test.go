package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// storeRun appends a run that has ended.
func (p *process) storeRun(run pgagui.RunRef, events ...string) {
	p.t.Helper()
	list := []json.RawMessage{json.RawMessage(started(run.ThreadID, run.RunID))}
	for _, event := range events {
		list = append(list, json.RawMessage(event))
	}
	must.Have(p.store.Append(p.t.Context(), run, list, pgagui.AppendOptions{}))(p.t)
}

func custom(name string) string {
	return fmt.Sprintf(`{"type":"CUSTOM","name":%q,"value":{"of":%[1]q}}`, name)
}

// customsOf returns the names of the CUSTOM events of a stream.
func customsOf(c *client) (names []string) {
	c.rest()
	for _, event := range c.events {
		var read struct{ Type, Name string }
		_ = json.Unmarshal([]byte(event), &read)
		if read.Type == "CUSTOM" {
			names = append(names, read.Name)
		}
	}
	return names
}

// What a run has sent beside messages and state comes back with a reload: its CUSTOM events behind the snapshots, and its end as it was.
func TestAReloadRepeatsCustomEvents(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), withAgent(newAgent(t)))
	end := func(run string) string {
		return fmt.Sprintf(`{"type":"RUN_FINISHED","threadId":"t","runId":%q,"result":{"answer":42},"usage":[{"inputTokens":7}]}`, run)
	}
	ask := custom("on_interrupt")
	p.storeRun(pgagui.RunRef{ThreadID: "t", RunID: "r1"}, custom("a"), start("m1"), custom("b"), `{"type":"TEXT_MESSAGE_END","messageId":"m1"}`, ask, end("r1"))
	for _, c := range []*client{
		p.stream("POST", "/agent/test/connect", connectInput("t")), p.stream("GET", "/threads/t/events", ""),
		p.stream("POST", "/copilotkit/agent/test/connect", connectInput("t")),
	} {
		if names := customsOf(c); !slices.Equal(names, []string{"a", "b", "on_interrupt"}) {
			t.Errorf("the CUSTOM events are %q", names)
		}
		state := slices.IndexFunc(c.events, func(event string) bool { return typeOf(event) == "STATE_SNAPSHOT" })
		if first := slices.Index(c.events, custom("a")); first < state || state < 0 {
			t.Errorf("they are not behind the snapshots: %q", c.events)
		}
		if last := c.events[len(c.events)-1]; last != end("r1") {
			t.Errorf("the run ends with %s", last)
		}
	}

	// The answer is a run of its own: its events come, the question does not.
	p.storeRun(pgagui.RunRef{ThreadID: "t", RunID: "r2"}, custom("c"), end("r2"))
	for query, want := range map[string][]string{
		"":                       {"c"},
		"?custom=head":           {"c"},
		"?custom=none":           nil,
		"?custom=lineage":        {"a", "b", "c"},
		"?run=r1":                {"a", "b"},
		"?run=r1&custom=lineage": {"a", "b"},
	} {
		if names := customsOf(p.stream("GET", "/threads/t/events"+query, "")); !slices.Equal(names, want) {
			t.Errorf("%s: the CUSTOM events are %q, want %q", query, names, want)
		}
	}
	input := strings.Replace(connectInput("t"), "{", `{"forwardedProps":{"pgagui":{"custom":"none"}},`, 1)
	if names := customsOf(p.stream("POST", "/agent/test/connect", input)); names != nil {
		t.Errorf("without CUSTOM events the client receives %q", names)
	}
	p.json(400, "GET", "/threads/t/events?custom=all", "")

	// A run that failed answers nothing.
	p.storeRun(pgagui.RunRef{ThreadID: "f", RunID: "r1"}, ask, end("r1"))
	p.storeRun(pgagui.RunRef{ThreadID: "f", RunID: "r2"}, `{"type":"RUN_ERROR","message":"boom"}`)
	if names := customsOf(p.stream("GET", "/threads/f/events?run=r1", "")); !slices.Equal(names, []string{"on_interrupt"}) {
		t.Errorf("the CUSTOM events are %q", names)
	}
}

// A reload repeats a bounded part of them, the last ones, and says how many are missing.
func TestRepeatedCustomEventsAreBounded(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), withAgent(newAgent(t)))
	var many, large []string
	for i := range 103 {
		many = append(many, custom(fmt.Sprint("c", i)))
	}
	for i := range 3 {
		large = append(large, fmt.Sprintf(`{"type":"CUSTOM","name":"l%d","value":%q}`, i, strings.Repeat("x", 400_000)))
	}
	p.storeRun(pgagui.RunRef{ThreadID: "many", RunID: "r"}, append(many, finished("many", "r"))...)
	p.storeRun(pgagui.RunRef{ThreadID: "large", RunID: "r"}, append(large, finished("large", "r"))...)
	for thread, want := range map[string]struct {
		left, kept int
		first      string
	}{"many": {3, 100, "c3"}, "large": {1, 2, "l1"}} {
		c := p.stream("GET", "/threads/"+thread+"/events", "")
		names := customsOf(c)
		if len(names) != want.kept+1 || names[0] != "pgagui.left_out" || names[1] != want.first {
			t.Errorf("%s: the CUSTOM events are %q", thread, names)
		}
		if note := fmt.Sprintf(`{"customEvents":%d}`, want.left); !strings.Contains(strings.Join(c.events, ""), note) {
			t.Errorf("%s: no event has %s", thread, note)
		}
	}
}
