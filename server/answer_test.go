package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/wait"
)

const yes, no = `"resume":[{"interruptId":"i","status":"resolved","payload":"yes"}],`, `"resume":[{"interruptId":"i","status":"resolved","payload":"no"}],`

// answerTo is the input of an answer, as useInterrupt of CopilotKit sends it if run is the run that asks.
func answerTo(run, answer string) string {
	return strings.Replace(input("t", run, "u1 user One"), "{", "{"+answer, 1)
}

// asks runs r1, which asks.
func asks(t *testing.T, p *process, a *agent) {
	t.Helper()
	c := p.run("t", "r1", "u1 user One")
	called := a.called(t)
	called.send(started("t", "r1"), `{"type":"RUN_FINISHED","threadId":"t","runId":"r1","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}`)
	close(called.answers)
	c.rest()
}

// Clients give an answer the id of the run that asks. It is a run of its own, with the same id in the log, for the agent and for the client.
// The agent receives the run that asks, which the client cannot name.
func TestAnAnswerIsARunOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	asks(t, p, a)

	answered := p.stream("POST", "/agent/test/run", answerTo("r1", yes))
	called := a.called(t)
	id := called.input["runId"].(string)
	if !strings.HasPrefix(id, "r1-answer-") {
		t.Fatalf("the agent received the run id %q", id)
	}
	if parent := called.input["parentRunId"]; parent != "r1" {
		t.Errorf("the agent received the parent %v", parent)
	}
	// The same request follows it; another answer waits for nothing.
	again := p.stream("POST", "/agent/test/run", answerTo("r1", yes))
	p.json(http.StatusConflict, "POST", "/agent/test/run", answerTo("r1", no))
	called.finish("a1", "Done")
	for _, c := range []*client{answered, again} {
		if events := strings.Join(c.rest(), " "); !strings.HasPrefix(events, "RUN_STARTED ") || !strings.HasSuffix(events, " RUN_FINISHED") || !strings.Contains(c.events[0], id) {
			t.Errorf("the client received %s: %v", events, c.events)
		}
	}
	run := mustRun(t, p, "t", id)
	if run.ParentRunID != "r1" || run.Status != pgagui.Finished {
		t.Errorf("run %+v", run)
	}

	// Now it is answered: the same request has the same run, another one is refused, whatever id it has.
	p.stream("POST", "/agent/test/run", answerTo("r1", yes)).rest()
	for _, refused := range []string{answerTo("r1", no), answerTo("late", no), answerTo("late", yes)} {
		problem := p.json(http.StatusConflict, "POST", "/agent/test/run", refused)
		if detail := problem["detail"].(string); problem["runId"] != id || !strings.Contains(detail, id) || !strings.Contains(detail, `"r1"`) || !strings.Contains(detail, run.StartedAt.UTC().Format("2006-01-02T15:04:05Z")) {
			t.Errorf("refused with %v", problem)
		}
	}
	if runs, err := pgagui.New(p.pool(), nil).Runs(t.Context(), "t"); err != nil || len(runs) != 2 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	// A client that names the parent means it.
	c := p.stream("POST", "/agent/test/run", answerTo("branch", `"parentRunId":"r1",`+no))
	a.called(t).finish("a2", "Undone")
	c.rest()
	if run := mustRun(t, p, "t", "branch"); run.ParentRunID != "r1" {
		t.Errorf("run %+v", run)
	}
}

// A question that came as a CUSTOM event is answered with command.resume, which names no interrupt: with the id of the run that asks, or with
// another one. It counts once too, and connect asks as the agent did: an outcome would make clients refuse such an answer.
func TestAnAnswerToAQuestionCountsOnce(t *testing.T) {
	t.Parallel()
	for _, answered := range []string{"r1", "r2"} {
		t.Run("with the run id "+answered, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			p := serve(t, testdb.Pool(t), withAgent(a))
			c := p.run("t", "r1", "u1 user One")
			called := a.called(t)
			question := `{"type":"CUSTOM","name":"on_interrupt","value":"Erase it?","rawEvent":{"id":"i"}}`
			called.send(started("t", "r1"), question, finished("t", "r1"))
			close(called.answers)
			c.rest()
			if run := mustRun(t, p, "t", "r1"); run.Status != pgagui.Interrupted {
				t.Fatalf("run %+v", run)
			}
			connected := p.stream("POST", "/agent/test/connect", connectInput("t"))
			connected.rest()
			if events := strings.Join(connected.events, "\n"); !strings.HasSuffix(events, question+"\n"+finished("t", "r1")) || strings.Contains(events, "outcome") {
				t.Errorf("connect sends %s", events)
			}

			const yes, no = `"forwardedProps":{"command":{"resume":"yes"}},`, `"forwardedProps":{"command":{"resume":"no"}},`
			c = p.stream("POST", "/agent/test/run", answerTo(answered, yes))
			called = a.called(t)
			id := called.input["runId"].(string)
			called.finish("a1", "Done")
			c.rest()
			if run := mustRun(t, p, "t", id); run.ParentRunID != "r1" || run.Status != pgagui.Finished {
				t.Errorf("run %+v", run)
			}
			p.stream("POST", "/agent/test/run", answerTo(answered, yes)).rest() // the same request has the same run
			for _, refused := range []string{answerTo("r1", no), answerTo("late", no), answerTo("late", yes)} {
				if problem := p.json(http.StatusConflict, "POST", "/agent/test/run", refused); problem["runId"] != id {
					t.Errorf("refused with %v", problem)
				}
			}
			connected = p.stream("POST", "/agent/test/connect", connectInput("t"))
			connected.rest()
			if strings.Contains(strings.Join(connected.events, ""), "on_interrupt") {
				t.Errorf("connect asks once more: %s", connected.events)
			}
		})
	}
}

// After an answer that failed, the same answer is another run. So is another one.
func TestAnAnswerThatFailedIsRepeated(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	asks(t, p, a)
	ids := map[string]bool{}
	for i, answer := range []string{yes, yes, no, yes} {
		c := p.stream("POST", "/agent/test/run", answerTo("r1", answer))
		called := a.called(t)
		id := called.input["runId"].(string)
		if ids[id] || !strings.HasPrefix(id, "r1-answer-") {
			t.Errorf("attempt %d is run %s", i, id)
		}
		if parent := called.input["parentRunId"]; parent != "r1" {
			t.Errorf("attempt %d: the agent received the parent %v", i, parent)
		}
		ids[id] = true
		if i < 3 {
			called.send(started("t", id), `{"type":"RUN_ERROR","message":"no"}`)
			close(called.answers)
		} else {
			called.finish("a1", "Done")
		}
		c.rest()
	}
	if open, err := pgagui.New(p.pool(), nil).Interrupts(t.Context(), "t", pgagui.At{}); err != nil || len(open) != 0 {
		t.Errorf("open: %v, %v", open, err)
	}
}

// Of two devices that answer at once, one does.
func TestOfTwoAnswersAtOnceOneCounts(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	asks(t, p, a)
	var requests sync.WaitGroup
	statuses := make(chan int, 2)
	for _, answer := range []string{yes, no} {
		requests.Go(func() {
			response := p.request("POST", "/agent/test/run", answerTo("r1", answer))
			defer response.Body.Close()
			statuses <- response.StatusCode
		})
	}
	a.called(t).finish("a1", "Done")
	requests.Wait()
	if sum := <-statuses + <-statuses; sum != http.StatusOK+http.StatusConflict {
		t.Errorf("the statuses add up to %d", sum)
	}
	wait.For(t, "the answer is in the log", func() bool {
		runs, err := pgagui.New(p.pool(), nil).Runs(t.Context(), "t")
		return err == nil && len(runs) == 2 && runs[1].Status == pgagui.Finished
	})
}

// A page gives the answers to all questions of a conversation the id of the run that asked first, because that is the id of its own
// request. Each has its run, and a page that has not seen the next question answers nothing.
func TestAnAnswerToWhatAnAnswerAsks(t *testing.T) {
	t.Parallel()
	const ask = `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"%s"}]}}`
	const question = `{"type":"CUSTOM","name":"on_interrupt","value":"%s"}`
	for name, test := range map[string]struct {
		ask    func(id string) []string
		answer func(id, answer string) string
	}{
		"outcome": {
			func(id string) []string { return []string{fmt.Sprintf(ask, id)} },
			func(id, answer string) string {
				return fmt.Sprintf(`"resume":[{"interruptId":"%s","status":"resolved","payload":"%s"}],`, id, answer)
			},
		},
		"question": {
			func(id string) []string { return []string{fmt.Sprintf(question, id), finished("t", "r")} },
			func(id, answer string) string {
				return fmt.Sprintf(`"forwardedProps":{"command":{"resume":"%s","interruptEvent":"%s"}},`, answer, id)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			p := serve(t, testdb.Pool(t), withAgent(a))
			parent := ""
			answer := func(request, question string) {
				t.Helper()
				c := p.stream("POST", "/agent/test/run", request)
				called := a.called(t)
				id := called.input["runId"].(string)
				called.send(append([]string{started("t", id)}, test.ask(question)...)...)
				close(called.answers)
				c.rest()
				if run := mustRun(t, p, "t", id); run.ParentRunID != parent || run.Status != pgagui.Interrupted {
					t.Errorf("run %+v", run)
				}
				parent = id
			}
			answer(answerTo("r1", ""), "i1")
			answer(answerTo("r1", test.answer("i1", "yes")), "i2")
			answer(answerTo("r1", test.answer("i2", "yes")), "i3")
			p.stream("POST", "/agent/test/run", answerTo("r1", test.answer("i1", "yes"))).rest() // the same request follows its run
			p.json(http.StatusConflict, "POST", "/agent/test/run", answerTo("r1", test.answer("i1", "no")))
			p.json(http.StatusConflict, "POST", "/agent/test/run", answerTo("late", test.answer("i2", "no")))
			if runs, err := pgagui.New(p.pool(), nil).Runs(t.Context(), "t"); err != nil || len(runs) != 3 {
				t.Errorf("%d runs, %v", len(runs), err)
			}
		})
	}
}

// The npm runner gives runs of answers the same ids.
func TestIDsOfAnswers(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Members string
		RunIDs  []string
	}
	if err := json.Unmarshal(testfile.Read(t, "../testdata/answers.json"), &cases); err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	for _, test := range cases {
		a := newAgent(t)
		p := serve(t, testdb.Pool(t), withAgent(a))
		asks(t, p, a)
		for _, id := range test.RunIDs { // the first one fails
			c := p.stream("POST", "/agent/test/run", answerTo("r1", test.Members+","))
			called := a.called(t)
			if called.input["runId"] != id {
				t.Errorf("%s has the run %v, want %s", test.Members, called.input["runId"], id)
			}
			called.send(started("t", id), `{"type":"RUN_ERROR","message":"no"}`)
			close(called.answers)
			c.rest()
		}
	}
}
