package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// TestTheMessagesOfAClientSayWhereARunContinues tests the choice of the parent in a thread of three
// runs: u1 a1, u2 a2, u3 a3.
func TestTheMessagesOfAClientSayWhereARunContinues(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	turns := []string{"u1 user One", "a1 assistant First", "u2 user Two", "a2 assistant Second", "u3 user Three", "a3 assistant Third"}
	for _, test := range []struct {
		name      string
		messages  []string
		member    string // of the body
		parent    string // run-1 … run-3; empty: none
		agentGets []string
	}{
		{"a new message", []string{"u4 user Four"}, "", "run-3", []string{"u1", "a1", "u2", "a2", "u3", "a3", "u4"}},
		{"all messages and a new one", append(slices.Clone(turns), "u4 user Four"), "", "run-3", []string{"u1", "a1", "u2", "a2", "u3", "a3", "u4"}},
		{"nothing new", turns, "", "run-3", []string{"u1", "a1", "u2", "a2", "u3", "a3"}},
		{"regenerate the last answer", turns[:5], "", "run-2", []string{"u1", "a1", "u2", "a2", "u3"}},
		{"regenerate the first answer", turns[:1], "", "", []string{"u1"}},
		{"edit the last message", append(slices.Clone(turns[:4]), "u3 user Other"), "", "run-2", []string{"u1", "a1", "u2", "a2", "u3"}},
		{"edit it, with a new id", append(slices.Clone(turns[:4]), "u4 user Other"), "", "run-2", []string{"u1", "a1", "u2", "a2", "u4"}},
		{"edit the first message", []string{"u1 user Other"}, "", "", []string{"u1"}},
		{"instructions do not count", append([]string{"s9 system New"}, turns[:5]...), "", "run-2", []string{"s9", "u1", "a1", "u2", "a2", "u3"}},
		{"trimmed at the beginning", append(slices.Clone(turns[2:]), "u4 user Four"), "", "run-3", []string{"u2", "a2", "u3", "a3", "u4"}},
		{"another parent, as it says", append(slices.Clone(turns), "u4 user Four"), `"parentRunId":"run-1",`, "run-1", []string{"u1", "a1", "u2", "a2", "u3", "a3", "u4"}},
		{"no parent, as it says", []string{"u4 user Four"}, `"parentRunId":"",`, "", []string{"u4"}},
	} {
		thread := "thread " + test.name
		for i := 0; i < len(turns); i += 2 {
			c := p.run(thread, "run-"+string(rune('1'+i/2)), turns[i])
			id, text, _ := strings.Cut(turns[i+1], " assistant ")
			a.called(t).finish(id, text)
			c.rest()
		}
		body := strings.Replace(input(thread, "new", test.messages...), "{", "{"+test.member, 1)
		c := p.stream("POST", "/agent/test/run", body)
		called := a.called(t)
		if got := called.messageIDs(); !slices.Equal(got, test.agentGets) {
			t.Errorf("%s: the agent received %v, want %v", test.name, got, test.agentGets)
		}
		if got := c.answer.Header.Get("Pgagui-Parent-Run"); got != test.parent {
			t.Errorf("%s: the header names run %q, want %q", test.name, got, test.parent)
		}
		called.finish("new-answer", "x")
		c.rest()
		if got := mustRun(t, p, thread, "new").ParentRunID; got != test.parent {
			t.Errorf("%s: the run continues from %q, want %q", test.name, got, test.parent)
		}
	}
}
