package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/server/accept"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// Started is a run that a client requested.
type Started struct {
	Run         pgagui.RunRef
	ParentRunID string
	// recorded is closed when this process has recorded the run. nil: another request began it,
	// perhaps in another process.
	recorded <-chan struct{}
	clients  accept.Clients
	// LacksHistory: the client sent none of the messages before, or has them under other ids.
	LacksHistory bool
}

// maxHeldBytes bounds what an agent may send after the end of a run, without the last event.
const maxHeldBytes = 4 << 20

// recordedRun is a run that this process records.
type recordedRun struct {
	pgagui.RunRef
	tenant    Tenant
	agent     *Agent
	recording *pgagui.Recording
	recorded  chan struct{}
	events    prometheus.Counter
	isNew     bool                            // the thread has no earlier run
	state     json.RawMessage                 // what the state is from the first event on. nil: as the client said
	ended     func(outcome string, err error) // of the observer

	// input is what the agent receives. nil: it has it.
	input json.RawMessage
	// memory is that of input, and of the input of the client until the log has it.
	memory     *door.Holding
	clientSize int // of the input of the client

	mu   sync.Mutex     // guards what follows: the timer of an end works beside the reader
	open *accept.Filter // what is open in the run so far
	took bool           // the recording took an event

	// held are the ends that the agent sent. They are stored when its answer ends, behind what came
	// after them: agents send a RUN_FINISHED for each turn of the model. After RUN_ERROR, everything
	// is held. If nothing follows within Agent.EndTimeout, they are stored then.
	held       []json.RawMessage
	heldBytes  int
	hasFailed  bool      // RUN_ERROR is held
	goesOn     bool      // events came after the last end
	endedAt    time.Time // when the last end came
	outcome    string    // of the ends that are stored; what comes later are late events
	isReceived bool      // the answer of the agent has ended
}

// Start takes the place of a run in its thread, decides where the run continues from, and calls the
// agent. It returns when the run is accepted. The run continues when ctx ends.
func (s *Server) Start(ctx context.Context, to Tenant, agent *Agent, in *Input, headers http.Header) (*Started, error) {
	if in.RunID == "" {
		return nil, problem.Errorf(http.StatusBadRequest, `the body has no "runId"`)
	}
	run, err := s.start(ctx, to, agent, in, headers)
	if errors.Is(err, pgagui.ErrRunInProgress) {
		known, _ := problem.Of(err)
		known.RunID, _ = runInProgress(ctx, to, in.ThreadID)
		return nil, known
	}
	return run, err
}

// runInProgress returns the id of a run that is in progress in a thread, or about to begin. before is the run at whose end the
// thread was until then.
func runInProgress(ctx context.Context, from Tenant, threadID string) (runID, before string) {
	head, err := from.Status(ctx, pgagui.RunRef{ThreadID: threadID})
	if err == nil && head.Status == pgagui.Running {
		return head.RunID, head.ParentRunID
	}
	if claims, err := from.Claims(ctx, threadID); err == nil && len(claims) > 0 {
		return claims[0].Run.RunID, claims[0].ParentRunID
	}
	if err != nil {
		return "", ""
	}
	return "", head.RunID
}

func (s *Server) start(ctx context.Context, to Tenant, agent *Agent, in *Input, headers http.Header) (*Started, error) {
	claim, isKnown, err := s.claimInTurn(ctx, to, agent, in)
	if isKnown { // the same request came before
		s.metrics.repeated.Inc()
		return repeated(ctx, to, agent, in)
	}
	if err != nil {
		return nil, err
	}
	in.Held.DropCopies()
	begun, err := s.begin(ctx, to, agent, in, headers, claim)
	if err != nil {
		// The client gets the error, and the run will not begin.
		if err := to.ReleaseClaim(context.WithoutCancel(ctx), claim); err != nil {
			s.Options.Logger.Warn("a claim could not be released, it expires", "thread", in.ThreadID, "run", in.RunID, "error", err)
		}
		return nil, err
	}
	return begun, nil
}

func (s *Server) begin(ctx context.Context, to Tenant, agent *Agent, in *Input, headers http.Header, claim *pgagui.Claim) (*Started, error) {
	mode := historyOf(agent, in)
	point, err := s.branchPoint(ctx, to, in, mode, claim)
	if err != nil {
		return nil, err
	}
	parent := point.ParentRunID
	keepsState := agent.BranchState
	if in.branchState != nil {
		keepsState = *in.branchState
	}
	var state json.RawMessage
	isInLog := true
	if keepsState && (point.Point == "before" || point.Point == "start") {
		stored, err := to.stateAfter(ctx, in.ThreadID, parent)
		if err != nil {
			return nil, err
		}
		state, isInLog = in.stateOfBranch(stored)
	}
	input, err := s.inputOf(ctx, to, agent, in, point, state)
	if err != nil {
		return nil, err
	}
	run := &recordedRun{
		RunRef: pgagui.RunRef{ThreadID: in.ThreadID, RunID: in.RunID}, tenant: to, agent: agent, recorded: make(chan struct{}),
		events: s.metrics.events.WithLabelValues(agent.Name),
		input:  input, memory: in.Held.Move(), clientSize: len(in.json),
		isNew: parent == "", open: accept.New(accept.Run{ThreadID: in.ThreadID, RunID: in.RunID}, 0),
	}
	if !isInLog {
		run.state = state
	}
	claim.ParentRunID = parent
	var runContext context.Context
	runContext, run.ended = s.Options.ObserveRun(ctx, s.background, ObservedRun{RunRef: run.RunRef, Agent: agent.Name, Scope: to.scope, ParentRunID: parent})
	run.recording, err = s.recorder.Begin(runContext, run.RunRef, pgagui.BeginOptions{Claim: claim})
	if err == nil && !s.add(run) {
		err = errors.Join(ErrShutdown, run.recording.Close(ctx))
	}
	if err != nil {
		run.memory.Release()
		run.ended("refused", err)
		return nil, err
	}
	agentHeaders := agent.headers(headers)
	go panics.Task(s.Options.Logger, func() {
		defer s.remove(run)
		defer run.memory.Release()
		s.record(run, agentHeaders)
	}, nil)()
	return &Started{run.RunRef, parent, run.recorded, ClientsOf(in.Protocol), point.LacksHistory}, nil
}

// repeated returns the run that an earlier request started.
func repeated(ctx context.Context, from Tenant, agent *Agent, in *Input) (*Started, error) {
	run := &Started{Run: pgagui.RunRef{ThreadID: in.ThreadID, RunID: in.RunID}, clients: ClientsOf(in.Protocol)}
	known, err := from.Status(ctx, run.Run)
	if err != nil || known.ParentRunID == "" { // it has not begun, or nothing is before it
		return run, nil
	}
	point, err := from.BranchPoint(ctx, pgagui.RunRef{ThreadID: in.ThreadID, RunID: known.ParentRunID}, in.clientMessages(historyOf(agent, in), true))
	run.LacksHistory = point.LacksHistory
	return run, err
}

func historyOf(agent *Agent, in *Input) History {
	if in.history != "" {
		return in.history
	}
	return agent.History
}

// inputOf returns what the agent receives. If state is not nil, it replaces the state of the client. An answer names the run that asks
// as its parent: TanStack AI needs it, and clients cannot send it.
func (s *Server) inputOf(ctx context.Context, from Tenant, agent *Agent, in *Input, point pgagui.BranchPoint, state json.RawMessage) (json.RawMessage, error) {
	namesParent := in.answer.asked != "" && !in.hasParent
	if !point.IsFilled && state == nil && !namesParent && !agent.RepairToolCalls {
		return in.json, nil
	}
	err := in.Held.Wait(ctx, heldSize(in.json)+int(point.HistoryBytes)+len(in.json))
	if err == nil {
		err = in.Held.Copy(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer in.Held.DropCopies()
	changes, messages := map[string]json.RawMessage{}, in.messages
	if point.IsFilled {
		if messages, err = from.agentMessages(ctx, in, point.ParentRunID); err != nil {
			return nil, err
		}
		if in.isEmpty {
			if changes["state"], err = from.stateAfter(ctx, in.ThreadID, point.ParentRunID); err != nil {
				return nil, err
			}
		}
	}
	if agent.RepairToolCalls {
		messages = withResults(messages, in.answer.text != nil)
	}
	if point.IsFilled || len(messages) > len(in.messages) {
		changes["messages"] = listOf(messages)
	}
	if state != nil {
		changes["state"] = state
	}
	if namesParent {
		changes["parentRunId"] = jsontext.Quote(in.answer.asked)
	}
	if len(changes) == 0 { // all calls of tools have results
		return in.json, nil
	}
	return withMembers(in.json, changes), nil
}

// heldSize returns the size of a text as it counts.
func heldSize(text []byte) int {
	if len(text) <= door.SmallSize {
		return 0
	}
	return len(text)
}

// branchPoint decides which run a new one continues.
func (s *Server) branchPoint(ctx context.Context, from Tenant, in *Input, mode History, claim *pgagui.Claim) (pgagui.BranchPoint, error) {
	parent := claim.ParentRunID
	if parent == "" {
		return pgagui.BranchPoint{Point: "head"}, nil
	}
	if err := refuseAnswered(ctx, from, in, parent); err != nil {
		return pgagui.BranchPoint{}, err
	}
	isGiven := in.hasParent || in.answer.text != nil // an answer continues what was asked
	point, err := from.BranchPoint(ctx, pgagui.RunRef{ThreadID: in.ThreadID, RunID: parent}, in.clientMessages(mode, isGiven))
	if point.Point == "elsewhere" {
		s.metrics.unplaced.Inc()
	}
	return point, err
}

// agentMessages returns the stored messages before those of the client.
func (t Tenant) agentMessages(ctx context.Context, in *Input, parent string) ([]message, error) {
	list, err := t.AgentMessages(ctx, pgagui.RunRef{ThreadID: in.ThreadID, RunID: parent}, listOf(in.messages))
	if err != nil {
		return nil, err
	}
	return readMessages(list)
}

// stateAfter returns the state at the end of a run; {} if there is no run.
func (t Tenant) stateAfter(ctx context.Context, threadID, runID string) (json.RawMessage, error) {
	if runID == "" {
		return json.RawMessage("{}"), nil
	}
	return t.State(ctx, threadID, pgagui.At{RunID: runID})
}

// record calls the agent and records what it answers, up to the end of the run.
func (s *Server) record(run *recordedRun, headers http.Header) {
	s.metrics.running.WithLabelValues(run.agent.Name).Inc()
	defer s.metrics.running.WithLabelValues(run.agent.Name).Dec()
	log := s.Options.Logger.With("agent", run.agent.Name, "thread", run.ThreadID, "run", run.RunID)

	failed := panics.Catch(log, func() error { return s.receive(run, headers) })
	var outcome string
	err := panics.Catch(log, func() (err error) {
		outcome, err = s.finish(run, failed)
		return err
	})
	// After a failure, Close ends the run in the log with that reason, or releases its claim.
	closed := run.recording.Close(context.Background())
	if err == nil {
		err = closed
	}
	if run.outcome != "" && errors.Is(err, pgagui.ErrRunEnded) {
		failed, err = err, nil // another run continues from its end, so its late events are refused
	}
	if outcome == string(pgagui.Cancelled) {
		failed = nil // the call ended as requested
	}
	if err != nil {
		outcome = "unrecorded"
		log.Error("a run could not be recorded to its end", "error", err)
	} else if failed != nil {
		log.Warn("the agent failed", "outcome", outcome, "error", failed)
		s.keepAnswer(run, failed, log)
	}
	s.metrics.runs.WithLabelValues(run.agent.Name, outcome).Inc()
	run.ended(outcome, errors.Join(failed, err))
}

// keepAnswer keeps with a run what its agent answered in place of a stream of events.
func (s *Server) keepAnswer(run *recordedRun, failed error, log *slog.Logger) {
	reason, isKnown := errors.AsType[*agentError](failed)
	if !isKnown || reason.answered == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := run.tenant.KeepAgentError(ctx, run.RunRef, *reason.answered); err != nil {
		log.Warn("what the agent answered could not be kept", "error", err)
	}
}

// receive records the events of the agent, except for those that it holds.
func (s *Server) receive(run *recordedRun, headers http.Header) error {
	timer := time.AfterFunc(run.agent.RunTimeout, panics.Task(s.Options.Logger, func() { s.storeEnds(run) }, nil)) // each end resets it
	defer func() {
		timer.Stop()
		run.mu.Lock()
		defer run.mu.Unlock()
		run.isReceived = true
	}()
	for event, err := range run.agent.call(run.recording.Context(), s.client, &run.input, headers) {
		if err := s.receiveEvent(run, event, err, timer); err != nil {
			return err
		}
	}
	return nil
}

// receiveEvent records or holds an event, or returns the error that came instead.
func (s *Server) receiveEvent(run *recordedRun, event json.RawMessage, err error, timer *time.Timer) error {
	run.mu.Lock()
	defer run.mu.Unlock()
	if !run.took {
		_ = run.memory.Resize(run.clientSize)
	}
	if err != nil {
		return err
	}
	kind := compaction.EventType(event)
	if kind == "" {
		return failure(codeProtocol, `the agent sent an event that has no type (expected a JSON object with a string member "type")`)
	}
	event, replaced := ownIDs(event, kind, run.RunRef)
	s.metrics.replacedIDs.Add(float64(replaced))
	if size := run.clientSize + len("[]") + len(event) + len(run.state); size > maxCall && !run.took && run.held == nil {
		return failure(codeProtocol, "the input and the first event of the agent have %d bytes (at most %d are stored at once)", size, maxCall)
	}
	if kind == "RUN_FINISHED" || kind == "RUN_ERROR" || run.hasFailed {
		if !isJSON(event) { // Record would refuse it too late
			return errNoJSON
		}
		if run.heldBytes > maxHeldBytes {
			return failure(codeProtocol, "the agent sent more than %d bytes after the end of the run", maxHeldBytes)
		}
		run.held, run.goesOn, run.endedAt = append(run.held, event), false, time.Now()
		run.heldBytes += len(event)
		run.hasFailed = run.hasFailed || kind == "RUN_ERROR"
		if run.agent.EndTimeout > 0 {
			timer.Reset(run.agent.EndTimeout)
		}
		return nil
	}
	if err := s.take(run, event); err != nil {
		if !isJSON(event) { // Record refused it
			return errNoJSON
		}
		return err
	}
	run.goesOn = true
	return nil
}

// storeEnds stores the ends that are held, if nothing has followed them for long enough: some agents
// keep their answer open for minutes, and the client waits for the end.
func (s *Server) storeEnds(run *recordedRun) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.isReceived || run.held == nil || run.goesOn || time.Since(run.endedAt) < run.agent.EndTimeout {
		return
	}
	if s.take(run, run.held...) == nil { // else the next event fails
		run.outcome = string(statusAfter(run.held))
		run.held, run.heldBytes, run.hasFailed = nil, 0, false
	}
}

func isJSON(event json.RawMessage) bool { return utf8.Valid(event) && json.Valid(event) }

var errNoJSON = failure(codeProtocol, "the agent sent an event that is no JSON object in UTF-8")

// take records events. It waits while the recorder's buffer is full.
func (s *Server) take(run *recordedRun, events ...json.RawMessage) error {
	ctx := context.Background()
	if !run.took && run.state != nil { // behind RUN_STARTED, with whose input the client's state comes
		events = slices.Insert(slices.Clone(events), 1, new(jsontext.Object).Value("type", "STATE_SNAPSHOT").Raw("snapshot", run.state).End())
	}
	isLarge := !run.took && run.clientSize > door.SmallSize
	if isLarge { // the input goes to the database with the first events
		if err := run.memory.CopyWithin(ctx, run.agent.RunTimeout); err != nil {
			return err
		}
	}
	err := run.recording.Record(ctx, events...)
	if isLarge {
		if err == nil {
			err = run.recording.Flush(ctx)
		}
		run.memory.Release()
	}
	if err != nil {
		return err
	}
	run.events.Add(float64(len(events)))
	for _, event := range events {
		run.open.Push(event)
	}
	if !run.took && run.isNew {
		s.nameAgent(run)
	}
	run.took = true
	return nil
}

// nameAgent stores which agent began a thread.
func (s *Server) nameAgent(run *recordedRun) {
	ctx := context.Background()
	err := run.recording.Flush(ctx)
	if err == nil {
		_, err = run.tenant.SetThread(ctx, run.ThreadID, pgagui.ThreadChanges{Agent: &run.agent.Name})
	}
	if err != nil {
		s.Options.Logger.Warn("the agent of a thread could not be stored", "thread", run.ThreadID, "error", err)
	}
}

// finish records the end of a run: that of the agent, or one that says why there is none.
func (s *Server) finish(run *recordedRun, failed error) (outcome string, err error) {
	var reason *agentError
	switch cause := context.Cause(run.recording.Context()); {
	case run.held != nil && (failed == nil || !run.goesOn || run.outcome != ""):
		return string(statusAfter(run.held)), s.take(run, run.held...)
	case run.outcome != "":
		return run.outcome, nil
	case errors.Is(cause, pgagui.ErrStopRequested):
		// Clients of the protocol before 1.0 do not know the outcome, and read the result.
		result, err := json.Marshal(stoppedResult{true, pgagui.StopReason(cause)})
		if err != nil {
			return "", err
		}
		return string(pgagui.Cancelled), s.end(run, events.RunFinished{
			ThreadID: run.ThreadID, RunID: run.RunID, Result: result, Outcome: json.RawMessage(`{"type":"cancelled"}`),
		})
	case errors.Is(cause, ErrShutdown):
		reason = failure(codeShutdown, "the server shut down during the run")
	case errors.As(failed, &reason):
	case errors.Is(failed, panics.Err):
		reason = failure(codeInternal, "the server failed while it recorded the run, its log says why")
	case failed != nil:
		return "unrecorded", failed // the recording takes no more events
	default:
		reason = failure(codeIncomplete, "the agent's answer ended without RUN_FINISHED or RUN_ERROR")
	}
	return reason.code, s.end(run, events.RunError{Message: reason.message, Code: reason.code})
}

// statusAfter returns the status of a run after events of which one ends it, as
// agui_internal.status_after does in the database: the last end decides, unless RUN_ERROR came before it.
func statusAfter(held []json.RawMessage) pgagui.Status {
	status, hasFailed := pgagui.Running, false
	for _, event := range held {
		switch kind := compaction.EventType(event); {
		case kind == "RUN_STARTED":
			hasFailed = false // it opens the run again
		case kind == "RUN_ERROR":
			status, hasFailed = pgagui.Failed, true
		case kind == "RUN_FINISHED" && !hasFailed:
			status = statusOf(members(members(event)["outcome"]))
		}
	}
	return status
}

// statusOf returns the status of a run that RUN_FINISHED ends with an outcome.
func statusOf(outcome map[string]json.RawMessage) pgagui.Status {
	var kind string
	var interrupts []json.RawMessage
	_ = json.Unmarshal(outcome["type"], &kind) // another type leaves it empty
	switch {
	case kind == "cancelled":
		return pgagui.Cancelled
	case kind == "interrupt" && json.Unmarshal(outcome["interrupts"], &interrupts) == nil && interrupts != nil:
		return pgagui.Interrupted
	}
	return pgagui.Finished
}

// members returns the members of an object, and none of any other value.
func members(value json.RawMessage) (found map[string]json.RawMessage) {
	_ = json.Unmarshal(value, &found)
	return found
}

// stoppedResult is the result of a run that the server ends because it was requested to stop.
type stoppedResult struct {
	Stopped bool   `json:"stopped"`
	Reason  string `json:"reason,omitempty"`
}

// end records an end that the server writes. Before RUN_FINISHED it ends what is open.
func (s *Server) end(run *recordedRun, end interface {
	Event() (json.RawMessage, error)
}) error {
	var ending []json.RawMessage
	if !run.took {
		start, err := events.RunStarted{ThreadID: run.ThreadID, RunID: run.RunID}.Event()
		if err != nil {
			return err
		}
		run.open.Push(start)
		ending = append(ending, start)
	}
	last, err := end.Event()
	if err != nil {
		return err
	}
	if _, isFinished := end.(events.RunFinished); isFinished {
		ends := run.open.End("") // the last of them is a RUN_FINISHED
		for _, event := range ends[:max(0, len(ends)-1)] {
			ending = append(ending, event)
		}
	}
	return s.take(run, append(append(ending, run.held...), last)...)
}

// ownIDs replaces the thread id and the run id of an event that begins or ends a run, if they are
// others than those of the client. All other bytes stay. It returns the number of ids replaced.
func ownIDs(event json.RawMessage, kind string, run pgagui.RunRef) (json.RawMessage, int) {
	switch kind {
	case "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR":
	default:
		return event, 0
	}
	var out []byte
	copied, replaced := 0, 0
	decoder := json.NewDecoder(bytes.NewReader(event))
	_, err := decoder.Token() // the brace
	for err == nil && decoder.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = decoder.Token(); err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil {
			return event, 0
		}
		own, isID := map[string]string{"threadId": run.ThreadID, "runId": run.RunID}[fmt.Sprint(name)]
		var id string
		if !isID || json.Unmarshal(value, &id) != nil || id == own {
			continue
		}
		end := int(decoder.InputOffset())
		text, _ := json.Marshal(own)
		out = append(append(out, event[copied:end-len(value)]...), text...)
		copied = end
		replaced++
	}
	if replaced == 0 {
		return event, 0
	}
	return append(out, event[copied:]...), replaced
}

// runs are the runs that the process records.
type runs struct {
	mu       sync.Mutex
	all      map[*recordedRun]struct{}
	isClosed bool
	ended    sync.WaitGroup
}

// add registers a run, unless the server shuts down.
func (s *Server) add(run *recordedRun) bool {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	if s.runs.isClosed {
		return false
	}
	s.runs.all[run] = struct{}{}
	s.runs.ended.Add(1)
	return true
}

func (s *Server) remove(run *recordedRun) {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	delete(s.runs.all, run)
	close(run.recorded)
	s.runs.ended.Done()
}
