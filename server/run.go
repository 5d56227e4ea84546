package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/server/internal/livefilter"
)

// started is a run that a client requested.
type started struct {
	run         pgagui.RunRef
	parentRunID string
	// recorded is closed when this process has recorded the run. nil: another request began it,
	// perhaps in another process.
	recorded <-chan struct{}
	clients  livefilter.Clients
}

// maxHeldBytes bounds what an agent may send after the end of a run, without the last event.
const maxHeldBytes = 4 << 20

// recordedRun is a run that this process records.
type recordedRun struct {
	pgagui.RunRef
	tenant    tenant
	agent     *Agent
	recording *pgagui.Recording
	recorded  chan struct{}
	isNew     bool                            // the thread has no earlier run
	ended     func(outcome string, err error) // of the observer

	open *livefilter.Filter // what is open in the run so far
	took bool               // the recording took an event

	// held are the ends that the agent sent. They are stored when its answer ends, behind what came
	// after them: agents send a RUN_FINISHED for each turn of the model. After RUN_ERROR, everything
	// is held.
	held      []json.RawMessage
	heldBytes int
	hasFailed bool // RUN_ERROR is held
	goesOn    bool // events came after the last end
}

// start takes the place of a run in its thread, decides where the run continues from, and calls the
// agent. It returns when the run is accepted. The run continues when ctx ends.
func (s *Server) start(ctx context.Context, to tenant, agent *Agent, in *input, headers http.Header) (*started, error) {
	run := pgagui.RunRef{ThreadID: in.threadID, RunID: in.runID}
	claim, err := to.Claim(ctx, run, pgagui.ClaimOptions{
		Input: in.json, ParentRunID: in.parentRunID, NoParent: in.hasParent && in.parentRunID == "", Parallel: agent.Parallel,
	})
	if errors.Is(err, pgagui.ErrRunIDInUse) { // the same request came before
		s.metrics.repeated.Inc()
		return &started{run: run, clients: clientsOf(in.protocol)}, nil
	}
	if err != nil {
		return nil, err
	}
	begun, err := s.begin(ctx, to, agent, in, headers, claim)
	if err != nil {
		// The client gets the error, and the run will not begin.
		if err := to.ReleaseClaim(context.WithoutCancel(ctx), claim); err != nil {
			s.options.Logger.Warn("a claim could not be released, it expires", "thread", run.ThreadID, "run", run.RunID, "error", err)
		}
		return nil, err
	}
	return begun, nil
}

func (s *Server) begin(ctx context.Context, to tenant, agent *Agent, in *input, headers http.Header, claim *pgagui.Claim) (*started, error) {
	parent, stored, err := s.parentOf(ctx, to, in, claim)
	if err != nil {
		return nil, err
	}
	mode := agent.History
	if in.history != "" {
		mode = in.history
	}
	run := &recordedRun{
		RunRef: pgagui.RunRef{ThreadID: in.threadID, RunID: in.runID}, tenant: to, agent: agent, recorded: make(chan struct{}),
		isNew: parent == "", open: livefilter.New(livefilter.Run{ThreadID: in.threadID, RunID: in.runID}, 0),
	}
	claim.ParentRunID = parent
	var runContext context.Context
	runContext, run.ended = s.options.ObserveRun(ctx, s.background, ObservedRun{RunRef: run.RunRef, Agent: agent.Name, Scope: to.scope, ParentRunID: parent})
	run.recording, err = s.recorder.Begin(runContext, run.RunRef, pgagui.BeginOptions{Claim: claim})
	if err == nil && !s.add(run) {
		err = errors.Join(errShutdown, run.recording.Close(ctx))
	}
	if err != nil {
		run.ended("refused", err)
		return nil, err
	}
	go func() {
		defer s.remove(run)
		s.record(run, fill(in, stored, mode), agent.headers(headers))
	}()
	return &started{run.RunRef, parent, run.recorded, clientsOf(in.protocol)}, nil
}

// parentOf decides which run a new one continues, and returns the conversation at its end. An empty
// parent means none.
func (s *Server) parentOf(ctx context.Context, from tenant, in *input, claim *pgagui.Claim) (parent string, stored conversation, err error) {
	parent = claim.ParentRunID
	if parent == "" {
		return "", conversation{}, nil
	}
	if stored, err = from.conversation(ctx, in.threadID, parent); err != nil || in.hasParent {
		return parent, stored, err
	}
	switch point, messageID := branchOf(in, stored); point {
	case elsewhere:
		s.metrics.unplaced.Inc()
	case before:
		origin, found, err := from.MessageOrigin(ctx, pgagui.RunRef{ThreadID: in.threadID, RunID: parent}, messageID)
		if err != nil || !found {
			return parent, stored, err
		}
		if origin.ParentRunID == "" {
			return "", conversation{}, nil
		}
		stored, err = from.conversation(ctx, in.threadID, origin.ParentRunID)
		return origin.ParentRunID, stored, err
	}
	return parent, stored, nil
}

func (t tenant) conversation(ctx context.Context, threadID, runID string) (conversation, error) {
	restored, err := t.Restore(ctx, threadID, pgagui.At{RunID: runID})
	if err != nil {
		return conversation{}, err
	}
	return readConversation(restored.Messages, restored.State), nil
}

// record calls the agent and records what it answers, up to the end of the run.
func (s *Server) record(run *recordedRun, input json.RawMessage, headers http.Header) {
	s.metrics.running.WithLabelValues(run.agent.Name).Inc()
	defer s.metrics.running.WithLabelValues(run.agent.Name).Dec()
	log := s.options.Logger.With("agent", run.agent.Name, "thread", run.ThreadID, "run", run.RunID)

	failed := s.receive(run, input, headers)
	outcome, err := s.finish(run, failed)
	// After a failure, Close ends the run in the log with that reason, or releases its claim.
	closed := run.recording.Close(context.WithoutCancel(s.background))
	if err == nil {
		err = closed
	}
	if outcome == "stopped" {
		failed = nil // the call ended as requested
	}
	if err != nil {
		outcome = "unrecorded"
		log.Error("a run could not be recorded to its end", "error", err)
	} else if failed != nil {
		log.Warn("the agent failed", "outcome", outcome, "error", failed)
	}
	s.metrics.runs.WithLabelValues(run.agent.Name, outcome).Inc()
	run.ended(outcome, errors.Join(failed, err))
}

// receive records the events of the agent, except for those that it holds.
func (s *Server) receive(run *recordedRun, input json.RawMessage, headers http.Header) error {
	for event, err := range run.agent.call(run.recording.Context(), s.client, input, headers) {
		if err != nil {
			return err
		}
		if problem := problemOf(event); problem != "" {
			return failure(codeProtocol, "the agent sent an event that %s", problem)
		}
		kind := compaction.EventType(event)
		if kind == "" {
			return failure(codeProtocol, `the agent sent an event that has no type (expected a string member "type")`)
		}
		event, replaced := ownIDs(event, run.RunRef)
		s.metrics.replacedIDs.Add(float64(replaced))
		if kind == "RUN_FINISHED" || kind == "RUN_ERROR" || run.hasFailed {
			if run.heldBytes > maxHeldBytes {
				return failure(codeProtocol, "the agent sent more than %d bytes after the end of the run", maxHeldBytes)
			}
			run.held, run.goesOn = append(run.held, event), false
			run.heldBytes += len(event)
			run.hasFailed = run.hasFailed || kind == "RUN_ERROR"
			continue
		}
		run.goesOn = true
		if err := s.take(run, event); err != nil {
			return err
		}
	}
	return nil
}

// take records events. It waits while the recorder's buffer is full.
func (s *Server) take(run *recordedRun, events ...json.RawMessage) error {
	if err := run.recording.Record(context.WithoutCancel(s.background), events...); err != nil {
		return err
	}
	s.metrics.events.WithLabelValues(run.agent.Name).Add(float64(len(events)))
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
	ctx := context.WithoutCancel(s.background)
	err := run.recording.Flush(ctx)
	if err == nil {
		_, err = run.tenant.SetThread(ctx, run.ThreadID, pgagui.ThreadChanges{Agent: &run.agent.Name})
	}
	if err != nil {
		s.options.Logger.Warn("the agent of a thread could not be stored", "thread", run.ThreadID, "error", err)
	}
}

// finish records the end of a run: that of the agent, or one that says why there is none.
func (s *Server) finish(run *recordedRun, failed error) (outcome string, err error) {
	var reason *agentError
	switch cause := context.Cause(run.recording.Context()); {
	case run.held != nil && (failed == nil || !run.goesOn):
		outcome = "finished"
		if run.hasFailed {
			outcome = "failed"
		}
		return outcome, s.take(run, run.held...)
	case errors.Is(cause, pgagui.ErrStopRequested):
		return "stopped", s.end(run, events.RunFinished{ThreadID: run.ThreadID, RunID: run.RunID, Result: json.RawMessage(`{"stopped":true}`)})
	case errors.Is(cause, errShutdown):
		reason = &agentError{codeShutdown, "the server shut down during the run"}
	case errors.As(failed, &reason):
	case failed != nil:
		return "unrecorded", failed // the recording takes no more events
	default:
		reason = &agentError{codeIncomplete, "the agent's answer ended without RUN_FINISHED or RUN_ERROR"}
	}
	return reason.code, s.end(run, events.RunError{Message: reason.message, Code: reason.code})
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

// problemOf says why an event of an agent cannot be stored.
func problemOf(event json.RawMessage) string {
	switch {
	case !utf8.Valid(event):
		return "is not UTF-8"
	case !json.Valid(event):
		return "is not JSON"
	case !isObject(event):
		return "is no JSON object"
	default:
		return ""
	}
}

// ownIDs replaces the thread id and the run id of an event that begins or ends a run, if they are
// others than those of the client. All other bytes stay. It returns the number of ids replaced.
func ownIDs(event json.RawMessage, run pgagui.RunRef) (json.RawMessage, int) {
	switch compaction.EventType(event) {
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
