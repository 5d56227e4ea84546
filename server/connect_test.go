package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
)

func connectInput(thread string) string { return input(thread, "ignored") }

func TestAReloadInMidRunContinuesOnAnotherProcess(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	other := serve(t, p.pool(), withAgent(a))
	p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	called.send(started("thread", "run"), start("a1"), content("a1", "Hel"))
	p.waitForSeq("thread", 3)

	for _, reloaded := range []*client{
		other.stream("POST", "/agent/test/connect", connectInput("thread")), other.stream("GET", "/threads/thread/events", ""),
	} {
		reloaded.want("RUN_STARTED", "MESSAGES_SNAPSHOT")
		if snapshot := reloaded.events[1]; !strings.Contains(snapshot, `"u1"`) {
			t.Errorf("the history has no message of the user: %s", snapshot)
		}
		defer func() {
			reloaded.rest()
			text := strings.Join(reloaded.events, "")
			if !strings.Contains(text, `"lo"`) || !strings.HasSuffix(text, finished("thread", "run")) || strings.Count(text, "RUN_STARTED") != 1 {
				t.Errorf("after the reload the client received %q", reloaded.events)
			}
		}()
	}
	called.send(content("a1", "lo"), end("a1"), finished("thread", "run"))
	close(called.answers)
}

// As LangGraph's adapter for TypeScript does when a node throws.
func TestWhatAnAgentSendsBehindItsErrorIsShownToNoClient(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	live := p.run("thread", "run", "u1 user Hello")
	called := a.called(t)
	const failed = `{"type":"RUN_ERROR","message":"boom","code":"NODE"}`
	called.send(started("thread", "run"), start("a1"), content("a1", "Hel"), end("a1"), `{"type":"STEP_STARTED","stepName":"node"}`, failed,
		`{"type":"STEP_FINISHED","stepName":"node"}`, `{"type":"STATE_SNAPSHOT","snapshot":{"late":1}}`, `{"type":"MESSAGES_SNAPSHOT","messages":[]}`, finished("thread", "run"))
	close(called.answers)
	live.rest()
	if got := live.events[len(live.events)-1]; got != failed || strings.Contains(fmt.Sprint(live.events), "SNAPSHOT") {
		t.Errorf("the client received %q", live.events)
	}
	if status := p.waitForEnd("thread", "run"); status.Status != pgagui.Failed || status.ErrorCode != "NODE" || status.ErrorMessage != "boom" {
		t.Errorf("the run is %+v", status)
	}
	for _, reloaded := range []*client{
		p.stream("POST", "/agent/test/connect", connectInput("thread")), p.stream("GET", "/threads/thread/events", ""),
		p.stream("POST", "/copilotkit/agent/test/connect", connectInput("thread")),
	} {
		reloaded.rest()
		text := fmt.Sprint(reloaded.events)
		if got := reloaded.events[len(reloaded.events)-1]; got != failed || strings.Contains(text, "late") || strings.Contains(text, "RUN_FINISHED") || !strings.Contains(text, `"Hel"`) {
			t.Errorf("a reload shows %q", reloaded.events)
		}
	}
}

func TestClientsResumeBehindAnyEvent(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	other := serve(t, p.pool(), withAgent(a))
	whole := p.run("thread", "run", "u1 user Hello")
	a.called(t).finish("a1", "Hi")
	var positions []string
	for event := whole.event(); event != ""; event = whole.event() {
		positions = append(positions, whole.lastID)
	}
	for i, position := range positions {
		for _, resumed := range []*client{
			other.stream("GET", "/threads/thread/events", "", "Last-Event-ID", position),
			other.stream("GET", "/threads/thread/events?last_event_id="+position, ""),
			other.stream("POST", "/copilotkit/agent/test/connect", strings.Replace(connectInput("thread"), "{", `{"lastSeenEventId":"`+position+`",`, 1)),
		} {
			resumed.rest()
			if !slices.Equal(resumed.events, whole.events[i+1:]) {
				t.Errorf("behind %s the client received %q, want %q", position, resumed.events, whole.events[i+1:])
			}
		}
	}
	p.json(422, "GET", "/threads/thread/events?last_event_id=x", "")
	// An event that the log does not have: the history comes instead.
	for _, position := range []string{"3-17", "99-17"} {
		p.stream("GET", "/threads/thread/events", "", "Last-Event-ID", position).want("RUN_STARTED", "MESSAGES_SNAPSHOT")
	}
}

func TestAStreamGoesOnWithTheRunsThatFollow(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	stays := p.stream("GET", "/threads/thread/events?stay=true", "")
	p.run("thread", "run-1", "u1 user Hello")
	called := a.called(t)
	called.finish("a1", "Hi")
	first := stays.event()
	if typeOf(first) != "RUN_STARTED" {
		t.Fatalf("the stream begins with %s", first)
	}
	for typeOf(stays.event()) != "RUN_FINISHED" {
	}
	// The next run comes with its history: what its user said is in no event.
	for i, body := range []string{
		input("thread", "run-2", "u2 user More"), strings.Replace(input("thread", "run-3", "u3 user Else"), "{", `{"parentRunId":"run-1",`, 1),
	} {
		p.stream("POST", "/agent/test/run", body)
		called := a.called(t)
		called.finish(fmt.Sprint("a", i+2), "More")
		var types []string
		var text string
		for event := stays.event(); ; event = stays.event() {
			types, text = append(types, typeOf(event)), text+event
			if event == "" || event == finished("thread", fmt.Sprint("run-", i+2)) { // the history may have an end, too
				break
			}
		}
		if !slices.Contains(types, "MESSAGES_SNAPSHOT") || !strings.Contains(text, fmt.Sprintf(`"u%d"`, i+2)) {
			t.Errorf("run-%d came without its history: %s", i+2, text)
		}
	}
}

// A claim ends when its run begins: a client that connects then finds one or the other.
func TestConnectWhileARunBegins(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	for i := range 20 {
		thread := fmt.Sprint("thread-", i)
		p.run(thread, "run", "u1 user Hello")
		go a.called(t).finish("a1", "Hi")
		if types := p.stream("POST", "/agent/test/connect", connectInput(thread)).rest(); len(types) == 0 {
			t.Fatalf("round %d: the client received nothing", i)
		}
	}
}

func TestConnectWaitsForAnAcceptedRun(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	other := serve(t, p.pool(), withAgent(a))
	p.run("thread", "run", "u1 user Hello")
	called := a.called(t) // it thinks
	connected := other.stream("POST", "/agent/test/connect", connectInput("thread"))
	called.finish("a1", "Hi")
	if types := connected.rest(); len(types) < 2 || types[0] != "RUN_STARTED" || types[len(types)-1] != "RUN_FINISHED" {
		t.Errorf("the client received %v", types)
	}
}

func TestUnknownThreads(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), withAgent(newAgent(t)))
	if types := p.stream("POST", "/agent/test/connect", connectInput("none")).rest(); len(types) > 0 {
		t.Errorf("connect to an unknown thread streams %v", types)
	}
	p.json(404, "GET", "/threads/none/events", "")
	p.json(404, "POST", "/threads/none/stop", "")
	p.json(404, "POST", "/agent/none/run", input("t", "r"))
}

func TestStreamsSendHeartbeats(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Heartbeat = 10 * time.Millisecond
	p := serve(t, testdb.Pool(t), options)
	c := p.request("POST", "/agent/test/run", input("thread", "run", "u1 user Hello"))
	called := a.called(t)
	called.send(started("thread", "run"))
	text := make([]byte, 0, 1000)
	for part := make([]byte, 100); strings.Count(string(text), ": heartbeat\n\n") < 3; {
		n := must.Have(c.Body.Read(part))(t)
		text = append(text, part[:n]...)
	}
	called.finish("a1", "x")
}

// TestStreamsCutAnywhere cuts streams at random places and resumes them on another process: together
// the parts are the stream of a client that never went away.
func TestStreamsCutAnywhere(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	pool := testdb.Pool(t)
	processes := []*process{serve(t, pool, withAgent(a)), serve(t, pool, withAgent(a))}
	for round := range 4 {
		thread := fmt.Sprint("thread-", round)
		whole := processes[0].run(thread, "run", "u1 user Hello")
		called := a.called(t)
		cut := processes[0].stream("GET", "/threads/"+thread+"/events?stay=true", "")
		go func() {
			called.send(started(thread, "run"))
			for i := range 20 {
				id := fmt.Sprint("a", i)
				called.send(start(id), content(id, "x"), end(id))
				time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
			}
			called.send(finished(thread, "run"))
			close(called.answers)
		}()
		var received []string // behind the history, one for each position
		var first int         // the seq of the last event of the history
		for isOver := false; !isOver; {
			for n := rand.IntN(6); n > 0 && !isOver; n-- {
				before := cut.lastID
				event := cut.event()
				switch {
				case first == 0 && cut.lastID != "":
					first = seqOf(cut.lastID)
				case cut.lastID != before:
					received = append(received, event)
				}
				isOver = typeOf(event) == "RUN_FINISHED"
			}
			if isOver {
				break
			}
			cut.answer.Body.Close()
			var headers []string
			lastID := cut.lastID
			if lastID != "" {
				headers = []string{"Last-Event-ID", lastID}
			}
			cut = processes[rand.IntN(2)].stream("GET", "/threads/"+thread+"/events?stay=true", "", headers...)
			cut.lastID = lastID
		}
		whole.rest()
		if !slices.Equal(received, whole.events[first:]) {
			t.Fatalf("round %d: behind event %d the parts are\n%q\nthe whole\n%q", round, first, received, whole.events)
		}
	}
}

func seqOf(position string) int {
	seq, _, _ := strings.Cut(position, "-")
	n, _ := strconv.Atoi(seq)
	return n
}

func TestShutdownAbortsStreamsAndEndsRuns(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	pool := testdb.Pool(t)
	p := serve(t, pool, withAgent(a))
	patient := serve(t, pool, func() server.Options { o := withAgent(a); o.Grace = patience; return o }())
	c := p.run("thread-1", "run", "u1 user Hello")
	cutOff := a.called(t)
	cutOff.send(started("thread-1", "run"))
	c.want("RUN_STARTED")
	d := patient.run("thread-2", "run", "u1 user Hello")
	finishes := a.called(t)
	finishes.send(started("thread-2", "run"))
	d.want("RUN_STARTED")

	p.shutDown()
	c.wantAborted()
	if status := p.waitForEnd("thread-1", "run"); status.Status != pgagui.Failed {
		t.Errorf("the run that the agent did not finish is %s", status.Status)
	}
	ended := make(chan struct{})
	go func() { patient.shutDown(); close(ended) }()
	d.wantAborted()
	finishes.send(start("a1"), end("a1"), finished("thread-2", "run"))
	close(finishes.answers)
	<-ended
	if status := p.waitForEnd("thread-2", "run"); status.Status != pgagui.Finished {
		t.Errorf("the run that the agent finished is %s", status.Status)
	}
}

// TestAClientResumesTowardARun has runs 1, 2 and 3, one behind the other, and run 4 behind run 1.
// Runs 3 and 4 are in progress.
func TestAClientResumesTowardARun(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	options := withAgent(a)
	options.Agents[0].Parallel = true
	p := serve(t, testdb.Pool(t), options)
	posters, calls, ids := map[int]*client{}, map[int]*call{}, map[int][]string{} // ids are those of the frames
	for run, parent := range []string{1: "", 2: "run-1", 3: "run-2", 4: "run-1"} {
		if run == 0 {
			continue
		}
		body := input("thread", fmt.Sprint("run-", run), fmt.Sprintf("u%d user Hello", run))
		body = strings.Replace(body, `"forwardedProps":{}`, `"forwardedProps":{"pgagui":{"history":"new"}}`, 1)
		posters[run] = p.stream("POST", "/agent/test/run", strings.Replace(body, "{", fmt.Sprintf(`{"parentRunId":%q,`, parent), 1))
		calls[run] = a.called(t)
		id, types := fmt.Sprint("a", run), []string{"RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"}
		if run <= 2 {
			calls[run].finish(id, "Hi")
			types = append(types, "TEXT_MESSAGE_END", "RUN_FINISHED")
		} else {
			calls[run].send(started("thread", fmt.Sprint("run-", run)), start(id), content(id, "Hi"))
		}
		for _, kind := range types {
			posters[run].want(kind)
			ids[run] = append(ids[run], posters[run].lastID)
		}
	}
	follow := func(to int, query, after string) *client {
		return p.stream("GET", fmt.Sprintf("/threads/thread/events?run=run-%d%s", to, query), "", "Last-Event-ID", after)
	}
	fresh := map[int]*client{} // what a client without a position receives
	for run := 1; run <= 4; run++ {
		fresh[run] = follow(run, "", "")
		fresh[run].until("MESSAGES_SNAPSHOT")
	}
	type resumption struct {
		from, frames, to int
		isBehind         bool // of another branch: the history comes
		*client
	}
	var resumed []resumption
	for _, way := range []resumption{
		{from: 1, frames: 5, to: 2}, {from: 1, frames: 5, to: 3}, {from: 1, frames: 2, to: 3}, {from: 2, frames: 4, to: 3}, {from: 1, frames: 3, to: 4},
		{from: 1, frames: 2, to: 1}, {from: 1, frames: 5, to: 1}, {from: 3, frames: 1, to: 3},
		{from: 4, frames: 2, to: 3, isBehind: true}, {from: 2, frames: 5, to: 4, isBehind: true}, {from: 3, frames: 1, to: 1, isBehind: true},
	} {
		way.client = follow(way.to, "", ids[way.from][way.frames-1])
		if way.from != way.to {
			way.until("MESSAGES_SNAPSHOT")
		}
		resumed = append(resumed, way)
	}
	stays := follow(3, "&stay=true", ids[1][4])
	stays.until("MESSAGES_SNAPSHOT")
	p.json(404, "GET", "/threads/thread/events?run=none", "", "Last-Event-ID", ids[1][4])

	for run := 3; run <= 4; run++ {
		calls[run].send(content(fmt.Sprint("a", run), "!"), end(fmt.Sprint("a", run)), finished("thread", fmt.Sprint("run-", run)))
		close(calls[run].answers)
	}
	for run := 1; run <= 4; run++ {
		posters[run].rest()
		fresh[run].rest()
	}
	for _, way := range resumed {
		var want []string
		if !way.isBehind {
			want = posters[way.from].events[way.frames:]
		}
		if way.from != way.to {
			want = slices.Concat(want, fresh[way.to].events)
		}
		if way.rest(); !slices.Equal(way.events, want) {
			t.Errorf("behind frame %d of run %d, toward run %d, the client received\n%q\nwant\n%q", way.frames, way.from, way.to, way.events, want)
		}
	}
	for len(stays.events) < len(fresh[3].events) {
		stays.event()
	}
	if !slices.Equal(stays.events, fresh[3].events) {
		t.Errorf("a client that stays received\n%q\nwant\n%q", stays.events, fresh[3].events)
	}
	if stays.until("MESSAGES_SNAPSHOT"); !strings.Contains(stays.events[len(stays.events)-1], `"u4"`) {
		t.Errorf("the head did not follow: %q", stays.events)
	}
}

// A device that sends only its question receives the history first. If its connection breaks, it resumes behind its last frame.
func TestADeviceWithoutTheHistoryResumes(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	p.run("thread", "run-1", "u1 user Hello")
	a.called(t).finish("a1", "Hi")
	p.waitForEnd("thread", "run-1")
	device := p.run("thread", "run-2", "u2 user More")
	called := a.called(t)
	called.send(started("thread", "run-2"), start("a2"), content("a2", "Yes"))
	device.until("TEXT_MESSAGE_CONTENT")
	repeated := p.run("thread", "run-2", "u2 user More") // the same request
	repeated.until("TEXT_MESSAGE_CONTENT")
	if !slices.Equal(repeated.events, device.events) {
		t.Errorf("the repeated request received\n%s\nthe first one\n%s", strings.Join(repeated.events, "\n"), strings.Join(device.events, "\n"))
	}
	resumed := p.stream("GET", "/threads/thread/events?run=run-2", "", "Last-Event-ID", device.lastID)
	called.send(end("a2"), finished("thread", "run-2"))
	close(called.answers)
	for _, c := range []*client{device, resumed} {
		c.want("TEXT_MESSAGE_END", "RUN_FINISHED")
	}
	fold := compaction.New()
	for _, event := range device.events {
		fold.Apply([]byte(event))
	}
	restored := must.Have(p.store.Restore(t.Context(), "thread", pgagui.At{}))(t)
	var shown []json.RawMessage
	for _, message := range fold.Messages() {
		shown = append(shown, message.JSON())
	}
	if got, want := fmt.Sprintf("%s", shown), fmt.Sprintf("%s", restored.Messages); got != want || len(shown) != 4 {
		t.Errorf("the device shows\n%s\nthe log means\n%s", got, want)
	}
}
