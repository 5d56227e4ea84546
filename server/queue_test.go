package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
)

// busy is a server whose agent has requests wait for at most so long. queue is what counts them.
type busy struct {
	*process
	queue *prometheus.Registry
}

func serveBusy(t *testing.T, pool *pgxpool.Pool, a *agent, do server.ConcurrentRun, longest time.Duration) busy {
	t.Helper()
	options := withAgent(a)
	options.Agents[0].OnConcurrentRun, options.Agents[0].QueueTimeout = do, longest
	queue := prometheus.NewRegistry()
	options.Metrics = queue
	return busy{serve(t, pool, options), queue}
}

// waitForQueue waits until so many requests wait for their turn.
func (b busy) waitForQueue(n float64) {
	b.t.Helper()
	wait.For(b.t, fmt.Sprintf("%v requests wait", n), func() bool { return metricsOf(b.t, b.queue, "requests_queued")[""] == n })
}

// posted is a request that is sent while the test goes on.
func (p *process) posted(ctx context.Context, body string) <-chan int {
	p.t.Helper()
	request := must.Have(http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/agent/test/run", strings.NewReader(body)))(p.t)
	status := make(chan int, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			status <- 0
			return
		}
		defer answer.Body.Close()
		status <- answer.StatusCode
	}()
	return status
}

// A request that is queued begins when the run before has ended, continues from it, and its agent receives what that run said, although
// its client could not send it.
func TestAQueuedRunTakesItsTurn(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serveBusy(t, testdb.Pool(t), a, server.QueueRun, patience)
	first := p.run("t", "r1", "u1 user One")
	one := a.called(t)
	one.send(started("t", "r1"), start("a1"))
	p.waitForSeq("t", 2)
	second := p.posted(t.Context(), input("t", "r2", "u1 user One", "u2 user Two"))
	p.waitForQueue(1)
	third := p.posted(t.Context(), input("t", "r3", "u1 user One", "u2 user Two", "u3 user Three"))
	p.waitForQueue(2)
	one.send(content("a1", "First"), end("a1"), finished("t", "r1"))
	close(one.answers)
	first.rest()
	for i, want := range [][]string{{"u1", "a1", "u2"}, {"u1", "a1", "u2", "a2", "u3"}} {
		called := a.called(t)
		if got := called.messageIDs(); !slices.Equal(got, want) {
			t.Errorf("run %d: the agent received %v, want %v", i+2, got, want)
		}
		called.finish(fmt.Sprintf("a%d", i+2), "x")
	}
	if got := []int{<-second, <-third}; got[0] != http.StatusOK || got[1] != http.StatusOK {
		t.Errorf("the requests were answered with %v", got)
	}
	p.waitForEnd("t", "r3")
	for run, parent := range map[string]string{"r2": "r1", "r3": "r2"} {
		if got := mustRun(t, p.process, "t", run).ParentRunID; got != parent {
			t.Errorf("%s continues from %q, want %q", run, got, parent)
		}
	}
}

// An edit is an edit also if it had to wait, and a client that lacks the answer of the run before receives it.
func TestAQueuedRunMayBeAnEdit(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serveBusy(t, testdb.Pool(t), a, server.QueueRun, patience)
	first := p.run("t", "r1", "u1 user One")
	a.called(t).finish("a1", "First")
	first.rest()
	first = p.run("t", "r2", "u1 user One", "a1 assistant First", "u2 user Two")
	one := a.called(t)
	one.send(started("t", "r2"))
	edit := p.posted(t.Context(), input("t", "r3", "u1 user One", "a1 assistant First", "u3 user Other"))
	p.waitForQueue(1)
	one.send(start("a2"), content("a2", "Second"), end("a2"), finished("t", "r2"))
	close(one.answers)
	first.rest()
	called := a.called(t)
	if got, want := called.messageIDs(), []string{"u1", "a1", "u3"}; !slices.Equal(got, want) {
		t.Errorf("the agent received %v, want %v", got, want)
	}
	called.finish("a3", "x")
	if status := <-edit; status != http.StatusOK {
		t.Errorf("the edit was answered with %d", status)
	}
	p.waitForEnd("t", "r3")
	if got := mustRun(t, p.process, "t", "r3").ParentRunID; got != "r1" {
		t.Errorf("the edit continues from %q, want r1", got)
	}
}

// A request that supersedes stops the run in progress, also one of another process, and begins when that has ended.
func TestARunSupersedesTheOneInProgress(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serveBusy(t, testdb.Pool(t), a, server.SupersedeRun, patience)
	other := serve(t, p.pool(), withAgent(a))
	first := other.run("t", "r1", "u1 user One")
	one := a.called(t)
	one.send(started("t", "r1"), start("a1"), content("a1", "Fir"))
	p.waitForSeq("t", 3)
	c := p.run("t", "r2", "u1 user One", "u2 user Two")
	<-one.context.Done()
	called := a.called(t)
	if got, want := called.messageIDs(), []string{"u1", "a1", "u2"}; !slices.Equal(got, want) {
		t.Errorf("the agent received %v, want %v", got, want)
	}
	called.finish("a2", "x")
	c.rest()
	first.rest()
	status := must.Have(p.store.Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r1"}))(t)
	if status.Status != pgagui.Cancelled || status.StopReason != "superseded by another run" {
		t.Errorf("r1 is %s, its stop has the reason %q", status.Status, status.StopReason)
	}
}

// A request that waits for too long, whose client leaves, or whose server shuts down, leaves no trace, and the next one has its turn.
func TestARequestLeavesTheQueue(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serveBusy(t, testdb.Pool(t), a, server.QueueRun, 300*time.Millisecond)
	first := p.run("t", "r1", "u1 user One")
	one := a.called(t)
	one.send(started("t", "r1"))
	p.waitForSeq("t", 1)
	if problem := p.json(http.StatusConflict, "POST", "/agent/test/run", input("t", "late", "u2 user Two")); problem["runId"] != "r1" {
		t.Errorf("the refusal names run %v, want r1", problem["runId"])
	}

	patient := serveBusy(t, p.pool(), a, server.QueueRun, patience)
	ctx, leave := context.WithCancel(t.Context())
	left := patient.posted(ctx, input("t", "left", "u3 user Three"))
	patient.waitForQueue(1)
	leave()
	<-left
	patient.waitForQueue(0)
	stays := patient.posted(t.Context(), input("t", "down", "u4 user Four"))
	patient.waitForQueue(1)
	must.Report(t, patient.server.Shutdown(t.Context()))
	if status := <-stays; status != http.StatusServiceUnavailable {
		t.Errorf("the shutdown answered with %d", status)
	}

	one.send(finished("t", "r1"))
	close(one.answers)
	first.rest()
	next := p.run("t", "r2", "u5 user Five")
	a.called(t).finish("a2", "x")
	next.rest()
	runs, err := p.store.Runs(t.Context(), "t")
	if err != nil || len(runs) != 2 {
		t.Errorf("the thread has %d runs (%v), want r1 and r2", len(runs), err)
	}
}

// The agent receives a result for each call of a tool, except for those that an answer is for.
func TestCallsOfToolsGetResults(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Agents[0].RepairToolCalls = true
	p := serve(t, testdb.Pool(t), options)
	var tests []map[string]json.RawMessage
	text, err := os.ReadFile("../protocol/testdata/tool_results.json")
	if err == nil {
		err = json.Unmarshal(text, &tests)
	}
	if err != nil || len(tests) == 0 {
		t.Fatal("no cases: ", err)
	}
	for i, test := range tests {
		var name string
		var want []string
		must.Do(t, errors.Join(json.Unmarshal(test["name"], &name), json.Unmarshal(test["want"], &want)))
		delete(test, "name")
		delete(test, "want")
		test["threadId"], test["runId"] = fmt.Appendf(nil, `"thread-%d"`, i), json.RawMessage(`"r1"`)
		body := must.Have(json.Marshal(test))(t)
		c := p.stream("POST", "/agent/test/run", string(body))
		called := a.called(t)
		if got := called.messageIDs(); !slices.Equal(got, want) {
			t.Errorf("%s: the agent received %v, want %v", name, got, want)
		}
		called.finish("a9", "x")
		c.rest()
	}
}
