package clients

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/timeline"
)

// The programs of test/field: agents of frameworks, as their users have them. Those in its folder more are tested where their packages
// are installed, and not in CI.
const field = "../field"

// fieldFaults are the known differences, by framework and scenario, each with the reason. A scenario that is listed here and passes
// fails the test: remove its line.
var fieldFaults = map[string]string{
	"langgraph.mjs/11 MB of history":      "its MESSAGES_SNAPSHOT, or an event with the whole state, is larger than maxEventBytes",
	"langgraph.py/11 MB of history":       "its MESSAGES_SNAPSHOT, or an event with the whole state, is larger than maxEventBytes",
	"agent_framework.py/11 MB of history": "its MESSAGES_SNAPSHOT is larger than maxEventBytes",
	"llamaindex.py/11 MB of history":      "its MESSAGES_SNAPSHOT is larger than maxEventBytes",
	"strands.py/11 MB of history":         "its MESSAGES_SNAPSHOT is larger than maxEventBytes",
	"crewai.py/11 MB of history":          "its STATE_SNAPSHOT, which has the messages, is larger than maxEventBytes",
	"strands.mjs/11 MB of history":        "its MESSAGES_SNAPSHOT is larger than maxEventBytes",
	"copilotkit.mjs/approval":             "it sends no result for the call that was answered, and refuses the next turn for want of it",
	"copilotkit.mjs/approval twice":       "as in approval: it refuses the turn after an answer",
}

// fieldStep is a step of a scenario in scenarios.json.
type fieldStep struct {
	Say         string          // the text of a message of the user
	Image       bool            // the message has an image, too
	Megabytes   int             // the user pastes messages of a megabyte before it
	Answer      string          // the answer to what the agent asks
	Keep        int             // before the run the page keeps so many messages: an edit, or the last answer again
	Cut         string          // what happens in the middle of the answer: abort, stop or reload
	Unreachable bool            // the agent answers 503
	Ends        pgagui.Status   // the status of the run, finished if empty; "any" leaves it to the framework
	Shows       string          // what the page shows then
	Page        json.RawMessage // no run: the user goes on on another page
}

type fieldScenario struct {
	Name, Only string
	Steps      []fieldStep
}

// Each scenario with each framework: what the page shows is what a page that reloads shows, what the log means, and the fold of its
// events in Go; and the log means the same at each event before and after compaction.
func TestField(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short tests: make test-field")
	}
	t.Parallel()
	var scenarios []fieldScenario
	text, err := os.ReadFile(filepath.Join(field, "scenarios.json"))
	if err == nil {
		err = json.Unmarshal(text, &scenarios)
	}
	must.Do(t, err)
	programs, err := filepath.Glob(filepath.Join(field, "*_agent.*"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no agents: %v", err)
	}
	more, err := filepath.Glob(filepath.Join(field, "more", "*_agent.*"))
	if err != nil || len(more) == 0 {
		t.Fatalf("no more agents: %v", err)
	}
	programs = append(programs, more...)
	for _, program := range programs {
		framework := strings.Replace(filepath.Base(program), "_agent.", ".", 1)
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			agent := startFieldAgent(t, program)
			f := &fieldStage{stage: &stage{nodeHost: startHost(t), pool: testdb.Pool(t)}, agent: agent}
			agents := map[string]string{"test": agent.URL}
			f.here, f.there = serve(t, f.pool, agents), serve(t, f.pool, agents)
			for i, scenario := range scenarios {
				if !strings.HasPrefix(framework, scenario.Only) {
					continue
				}
				t.Run(scenario.Name, func(t *testing.T) {
					name := framework + "/" + scenario.Name
					fault := f.play(t, scenario, versions[i%len(versions)])
					switch reason := fieldFaults[name]; {
					case fault == "" && reason != "":
						t.Errorf("%s passes: remove its line from fieldFaults (%s)", name, reason)
					case fault != "" && reason == "":
						t.Error(fault)
					case fault != "":
						t.Logf("known: %s\n%.2000s", reason, fault)
					}
				})
			}
		})
	}
}

// fieldAgent is a program of test/field behind a proxy.
type fieldAgent struct {
	*httptest.Server
	address     string
	unreachable atomic.Bool
}

func startFieldAgent(t *testing.T, program string) *fieldAgent {
	t.Helper()
	folder := filepath.Dir(program)
	interpreter, packages := "node", filepath.Join(folder, "node_modules")
	if strings.HasSuffix(program, ".py") {
		interpreter = filepath.Join(folder, "venv/bin/python")
		packages = interpreter
	}
	if _, err := os.Stat(packages); err != nil {
		need := testneeds.Field
		if folder != field {
			need = testneeds.FieldMore
		}
		testneeds.Skip(t, need, "the agents of %s are not installed: make test-field", folder)
	}
	scripts, err := filepath.Abs(field)
	must.Do(t, err)
	if strings.Contains(interpreter, "/") {
		if interpreter, err = filepath.Abs(interpreter); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(interpreter, filepath.Base(program))
	command.Dir = folder
	command.Env = append(os.Environ(), "DO_NOT_TRACK=1", "LANGSMITH_TRACING=false", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+scripts)
	in := must.Have(command.StdinPipe())(t)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() { // behind the servers' end
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v", program, err)
		}
	})
	a := &fieldAgent{}
	lines := bufio.NewReader(out)
	for !strings.HasPrefix(a.address, "http://") { // frameworks write there, too
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s ended without an address: %v", program, err)
		}
		a.address = strings.TrimSpace(line)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	target := must.Have(url.Parse(a.address))(t)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.unreachable.Load() {
			http.Error(w, "unreachable", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// release lets a model go on that waits in the middle of its answer.
func (a *fieldAgent) release(t *testing.T, gate string) {
	t.Helper()
	answer := must.Have(http.Post(a.address+"/release/"+gate, "", nil))(t)
	answer.Body.Close()
}

type fieldStage struct {
	*stage
	agent *fieldAgent
}

// fieldPlay is a scenario that plays.
type fieldPlay struct {
	*fieldStage
	t               *testing.T
	version, thread string
	page            *client
	runs            int
	faults          []string
}

// largeHistory lets one scenario with megabytes play at a time.
var largeHistory sync.Mutex

// play plays a scenario and returns how what the pages show and what the log means differ.
func (f *fieldStage) play(t *testing.T, scenario fieldScenario, version string) string {
	t.Helper()
	if slices.ContainsFunc(scenario.Steps, func(step fieldStep) bool { return step.Megabytes > 0 }) {
		largeHistory.Lock()
		defer largeHistory.Unlock()
	}
	p := &fieldPlay{fieldStage: f, t: t, version: version, thread: newUUID()}
	p.page = p.newPage()
	for i, step := range scenario.Steps {
		before := len(p.faults)
		p.take(step)
		for j := before; j < len(p.faults); j++ {
			p.faults[j] = fmt.Sprintf("step %d: %s", i+1, p.faults[j])
		}
	}
	p.record(scenario.Name)
	p.compareFolds()
	return strings.Join(p.faults, "\n")
}

// record writes the events of the head's lineage to a file in the folder that PGAGUI_FIELD_RECORD names.
func (p *fieldPlay) record(scenario string) {
	p.t.Helper()
	folder := os.Getenv("PGAGUI_FIELD_RECORD")
	if folder == "" {
		return
	}
	var lines []byte
	for event, err := range p.here.store.Events(p.t.Context(), p.thread, pgagui.EventsOptions{}) {
		must.Do(p.t, err)
		lines = append(append(lines, event.JSON...), '\n')
	}
	framework := strings.Split(p.t.Name(), "/")[1]
	name := strings.NewReplacer(" ", "-", ".", "-", "_", "-").Replace(framework+" "+scenario) + ".ndjson"
	must.Do(p.t, os.WriteFile(filepath.Join(folder, name), lines, 0o644))
}

func (p *fieldPlay) fault(format string, arguments ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, arguments...))
}

func (p *fieldPlay) newPage() *client {
	return p.open(p.t, clientOptions{Version: p.version, Thread: p.thread, Base: p.here.URL})
}

func (p *fieldPlay) take(step fieldStep) {
	p.t.Helper()
	if step.Page != nil {
		p.page = p.newPage()
		p.connected(p.page)
		return
	}
	if step.Keep > 0 {
		p.page.setMessages(p.page.look().Messages.([]any)[:step.Keep])
	}
	p.runs++
	run, gate := newUUID(), newUUID()
	parameters := map[string]any{"tools": []any{map[string]any{
		"name": "pick", "description": "Picks", "parameters": map[string]any{"type": "object", "properties": map[string]any{"at": map[string]any{"type": "string"}}},
	}}}
	var messages []any
	switch {
	case step.Answer != "":
		messages = p.answer(step.Answer, parameters)
	case step.Say != "":
		for i := range step.Megabytes {
			messages = append(messages, user(newUUID(), fmt.Sprint(i)+strings.Repeat(" word", 200_000)))
		}
		said := step.Say
		if step.Cut != "" {
			said += " " + gate
		}
		messages = append(messages, user(newUUID(), said))
	}
	if step.Image {
		messages[0].(map[string]any)["content"] = []any{
			map[string]any{"type": "text", "text": step.Say},
			map[string]any{"type": "image", "source": map[string]any{"type": "data", "value": onePixel, "mimeType": "image/png"}},
		}
	}
	p.agent.unreachable.Store(step.Unreachable)
	running := p.page.run(run, parameters, messages...)
	var reloading *client
	var connection *ending
	if step.Cut != "" {
		p.page.waitForText("You said ", 1)
		switch step.Cut {
		case "abort":
			p.page.ask("abort", nil)
		case "stop":
			p.here.post(p.t, "/threads/"+p.thread+"/stop", `{}`)
		case "reload":
			reloading = p.newPage()
			connection = reloading.connect()
			reloading.waitForText("You said ", 1)
		}
		if step.Cut != "stop" {
			p.agent.release(p.t, gate)
		}
	}
	failure := running.failureWithin(patience * time.Duration(1+step.Megabytes)) // LangGraph sends them many times over
	p.agent.unreachable.Store(false)
	ended := p.waitForEnd(run)
	if ended == "" {
		p.fault("the run is not stored; the client says %q", failure)
		return
	}
	if step.Cut == "stop" {
		p.agent.release(p.t, gate)
	}
	isWell := ended == pgagui.Finished || ended == pgagui.Interrupted
	if step.Ends == "" && !isWell || step.Ends != "" && step.Ends != "any" && ended != step.Ends {
		p.fault("the run is %s; the client says %q", ended, failure)
	}
	if failure != "" && isWell && step.Cut != "abort" {
		p.fault("the client says %q", failure)
	}
	meant := p.here.restored(p.t, p.thread, "")
	if step.Cut == "abort" { // the page saw a part
		p.page = p.newPage()
		p.connected(p.page)
	}
	p.compare("the page", p.page, meant)
	if !strings.Contains(meant.String(), step.Shows) {
		p.fault("the log does not mean %q: %.3000s", step.Shows, meant)
	}
	if reloading != nil {
		if failure := connection.failure(); failure != "" {
			p.fault("the page that reloads in the middle says %q", failure)
		}
		p.compare("the page that reloaded in the middle", reloading, meant)
	}
	fresh := p.newPage()
	p.connected(fresh)
	p.compare("a page that reloads", fresh, meant)
}

// answer answers what the agent asks, in the way it asks.
func (p *fieldPlay) answer(answer string, parameters map[string]any) (messages []any) {
	p.t.Helper()
	view := p.page.look()
	resume := func(id any) {
		parameters["resume"] = []any{map[string]any{"interruptId": id, "status": "resolved", "payload": map[string]any{"approved": true, "accepted": true}}}
	}
	if interrupts, _ := view.Interrupts.([]any); len(interrupts) > 0 {
		resume(interrupts[0].(map[string]any)["id"])
		return nil
	}
	for _, frame := range p.page.frames() {
		if !strings.Contains(frame, `"on_interrupt"`) {
			continue
		}
		_, text, _ := strings.Cut(frame, "data: ")
		var event struct{ Value any }
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			p.t.Fatalf("%v: %s", err, frame)
		}
		if value, _ := event.Value.(map[string]any); value["id"] != nil { // CrewAI
			resume(value["id"])
		} else {
			parameters["forwardedProps"] = map[string]any{"command": map[string]any{"resume": answer}}
		}
		return nil
	}
	results := map[any]bool{}
	var open []any
	for _, message := range view.Messages.([]any) {
		message := message.(map[string]any)
		results[message["toolCallId"]] = true
		calls, _ := message["toolCalls"].([]any)
		for _, call := range calls {
			open = append(open, call.(map[string]any)["id"])
		}
	}
	for _, id := range open {
		if !results[id] {
			messages = append(messages, map[string]any{"id": newUUID(), "role": "tool", "toolCallId": id, "content": answer})
		}
	}
	if messages == nil && len(open) == 0 {
		p.fault("the page shows nothing to answer")
	}
	return messages // none if the page has a result that the agent did not get: the run sends it again
}

func (p *fieldPlay) connected(page *client) {
	p.t.Helper()
	if failure := page.connect().failure(); failure != "" && !strings.Contains(failure, "RUN_ERROR") {
		p.fault("connect says %q", failure)
	}
}

// waitForEnd returns the status with which a run ended; empty if the run is not stored.
func (p *fieldPlay) waitForEnd(run string) (status pgagui.Status) {
	p.t.Helper()
	wait.For(p.t, "the end of run "+run, func() bool {
		got, err := p.here.store.Status(p.t.Context(), pgagui.RunRef{ThreadID: p.thread, RunID: run})
		if errors.Is(err, pgagui.ErrUnknownRun) || errors.Is(err, pgagui.ErrUnknownThread) {
			return true
		}
		must.Do(p.t, err)
		status = got.Status
		return status != pgagui.Running
	})
	return status
}

func (p *fieldPlay) compare(who string, page *client, want meaning) {
	p.t.Helper()
	if got := page.look().meaning; !reflect.DeepEqual(got, want) {
		p.fault("%s shows\n%.3000s\nthe log means\n%.3000s\nthe page received\n%.6000s", who, got, want, strings.Join(page.frames(), "\n"))
	}
}

// compareFolds compares what the log means at each event: in SQL and in Go, and at the end of each run before and after compaction.
func (p *fieldPlay) compareFolds() {
	p.t.Helper()
	head, err := p.here.store.Restore(p.t.Context(), p.thread, pgagui.At{})
	if errors.Is(err, pgagui.ErrUnknownThread) {
		return
	}
	must.Do(p.t, err)
	lineage := must.Have(p.here.store.Lineage(p.t.Context(), pgagui.RunRef{ThreadID: p.thread, RunID: head.RunID}))(p.t)
	var before []meaning
	for _, run := range lineage {
		before = append(before, p.at(run.ID, 0))
		if len(head.JSON) < 1<<20 {
			p.comparePrefixes(run.ID)
		}
	}
	must.Have(jobs.Compact(p.t.Context(), p.pool, jobs.CompactOptions{}))(p.t)
	for i, run := range lineage {
		if after := p.at(run.ID, 0); !reflect.DeepEqual(after, before[i]) {
			p.fault("compaction changed the meaning of run %s to\n%.3000s\nfrom\n%.3000s", run.ID, after, before[i])
		}
	}
	if problems, err := p.here.store.Maintenance().Verify(p.t.Context(), p.thread); err != nil {
		p.t.Fatal(err)
	} else if i := slices.IndexFunc(problems, func(problem pgagui.Problem) bool { return problem.Severity != pgagui.Note }); i >= 0 {
		p.fault("verify says %s", problems[i].Problem)
	}
}

func (p *fieldPlay) comparePrefixes(run string) {
	p.t.Helper()
	line := must.Have(timeline.NewCache(0).Open(p.t.Context(), p.here.store, pgagui.RunRef{ThreadID: p.thread, RunID: run}))(p.t)
	for _, mark := range line.Marks() {
		moment := must.Have(line.At(p.t.Context(), mark.Seq))(p.t)
		var inGo meaning
		text, err := json.Marshal(map[string]any{
			"messages": append([]json.RawMessage{}, moment.Messages...), "state": moment.State, "interrupts": append([]json.RawMessage{}, moment.Interrupts...),
		})
		if err == nil {
			err = json.Unmarshal(text, &inGo)
		}
		must.Do(p.t, err)
		if inSQL := p.at(run, mark.Seq); !reflect.DeepEqual(inGo, inSQL) {
			p.fault("event %d: the fold in Go is\n%.3000s\nin SQL\n%.3000s", mark.Seq, inGo, inSQL)
			return
		}
	}
}

func (p *fieldPlay) at(run string, seq int64) (m meaning) {
	p.t.Helper()
	restored, err := p.here.store.Restore(p.t.Context(), p.thread, pgagui.At{RunID: run, Seq: seq})
	if err == nil {
		err = json.Unmarshal(restored.JSON, &m)
	}
	must.Do(p.t, err)
	return m
}

// newUUID is the id of a thread or run: LangGraph's server takes no others.
func newUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// onePixel is an image.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
