package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/eventfile"
)

// runName names a run.
type runName struct{ threadID, runID string }

func (n runName) String() string { return fmt.Sprintf("run %q of thread %q", n.runID, n.threadID) }

func (n runName) ref() pgagui.RunRef { return pgagui.RunRef{ThreadID: n.threadID, RunID: n.runID} }

// runEvent is an event of a file with the run that it belongs to.
type runEvent struct {
	eventfile.Event
	kind string // its type
	run  runName
}

// runSplitter finds out which run each event of a file belongs to.
//
// RUN_STARTED names a run, and what follows belongs to it, up to the RUN_STARTED of another one. So do events behind the end of the
// run: some agents go on after it. But behind an interrupt an agent has nothing more to say until it is resumed, and some say something
// before the RUN_STARTED of the run that resumes it. Such events are held back until the next event of a life cycle tells whose they are.
type runSplitter struct {
	file string
	// defaults stand in for ids that the file does not give.
	defaults runName

	current       runName // zero: none has begun
	isInterrupted bool
	held          []runEvent
	heldBytes     int
}

// maxHeldBytes bounds the events that are held back: as many bytes as one append may have.
const maxHeldBytes = 64 << 20

// add returns the events whose run is known now: perhaps none, perhaps some that came before. Errors are *eventfile.Error.
func (s *runSplitter) add(event eventfile.Event) ([]runEvent, error) {
	next := runEvent{Event: event, kind: compaction.EventType(event.Raw)}
	switch next.kind {
	case "":
		return nil, s.problem(event.Line, errors.New(`the event has no type (expected a JSON object with a string member "type")`))
	case "RUN_STARTED":
		started, err := s.readIDs(event.Raw)
		if err != nil {
			return nil, s.problem(event.Line, err)
		}
		if started != s.current {
			s.current = started // and what is held back comes from it
		}
		s.isInterrupted = false
		return s.release(next), nil
	case "RUN_FINISHED", "RUN_ERROR":
		if err := s.begin(next); err != nil {
			return nil, err
		}
		s.isInterrupted = next.kind == "RUN_FINISHED" && isInterrupt(event.Raw)
		return s.release(next), nil
	}
	if s.isInterrupted || s.current == (runName{}) && (s.defaults.threadID == "" || s.defaults.runID == "") {
		s.held = append(s.held, next)
		if s.heldBytes += len(event.Raw); s.heldBytes > maxHeldBytes {
			first := s.held[0]
			s.held, s.heldBytes = nil, 0
			return nil, s.problem(first.Line, fmt.Errorf("%s, and %d MB of events behind it, come before a RUN_STARTED that names their run", first.kind, maxHeldBytes>>20))
		}
		return nil, nil
	}
	if err := s.begin(next); err != nil {
		return nil, err
	}
	return s.release(next), nil
}

// end returns the events that are held back at the end of the file.
func (s *runSplitter) end() ([]runEvent, error) {
	if len(s.held) == 0 {
		return nil, nil
	}
	if err := s.begin(s.held[0]); err != nil {
		return nil, err
	}
	return s.release(), nil
}

// begin makes sure that there is a run for an event that is no RUN_STARTED.
func (s *runSplitter) begin(event runEvent) error {
	if s.current != (runName{}) {
		return nil
	}
	if s.defaults.threadID == "" || s.defaults.runID == "" {
		if len(s.held) > 0 {
			event = s.held[0]
		}
		return s.problem(event.Line, fmt.Errorf("%s before any RUN_STARTED: name its run with --thread and --run", event.kind))
	}
	s.current = s.defaults
	return nil
}

// release gives the events that were held back, and some more, to the current run.
func (s *runSplitter) release(more ...runEvent) []runEvent {
	events := append(s.held, more...)
	s.held, s.heldBytes = nil, 0
	for i := range events {
		events[i].run = s.current
	}
	return events
}

// readIDs takes the ids that a RUN_STARTED has and requires that none is missing then.
func (s *runSplitter) readIDs(event []byte) (runName, error) {
	// Not a struct: encoding/json would take "THREADID" for "threadId".
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(event, &fields); err != nil {
		return runName{}, err
	}
	name := s.defaults
	for _, id := range []struct {
		field, flag string
		value       *string
	}{{"threadId", "--thread", &name.threadID}, {"runId", "--run", &name.runID}} {
		if raw, ok := fields[id.field]; ok {
			if err := readID(raw, id.value); err != nil {
				return runName{}, fmt.Errorf("the %s of RUN_STARTED %w", id.field, err)
			}
		}
		if *id.value == "" {
			return runName{}, fmt.Errorf("RUN_STARTED has no %s: give one with %s", id.field, id.flag)
		}
	}
	return name, nil
}

func (s *runSplitter) problem(line int, err error) error {
	return &eventfile.Error{File: s.file, Line: line, Err: err}
}

// readID decodes a JSON string that can be an id in the database.
func readID(raw json.RawMessage, id *string) error {
	if err := json.Unmarshal(raw, id); err != nil {
		return fmt.Errorf("must be a string, not %s", raw)
	}
	// Go makes U+FFFD of a surrogate that stands alone; ids that differ would become the same one.
	isEscaped := strings.Contains(strings.ToLower(string(raw)), `\ud`)
	if strings.ContainsRune(*id, 0) || isEscaped && strings.ContainsRune(*id, utf8.RuneError) {
		return fmt.Errorf(`holds what no text in PostgreSQL can, \u0000 or half a surrogate pair: %s`, raw)
	}
	return nil
}

// isInterrupt reports whether a RUN_FINISHED waits for an answer.
func isInterrupt(event []byte) bool {
	var finished struct {
		Outcome json.RawMessage `json:"outcome"`
	}
	var outcome struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(event, &finished) == nil && json.Unmarshal(finished.Outcome, &outcome) == nil && outcome.Type == "interrupt"
}
