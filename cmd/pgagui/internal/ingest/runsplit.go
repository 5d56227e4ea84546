package ingest

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

// RunName names a run of any thread.
type RunName struct{ ThreadID, RunID string }

func (n RunName) String() string { return fmt.Sprintf("run %q of thread %q", n.RunID, n.ThreadID) }

func (n RunName) ref() pgagui.RunRef { return pgagui.RunRef{ThreadID: n.ThreadID, RunID: n.RunID} }

// RunEvent is an event of a file with its run.
type RunEvent struct {
	eventfile.Event
	eventType string
	Run       RunName
}

// Splitter assigns each event of a file to a run.
//
// RUN_STARTED names a run. The events after it belong to that run until the RUN_STARTED of another
// run, including events after the end of the run, because some agents send them. After an
// interrupt, however, the next events may belong to the run that resumes: some agents send events
// before its RUN_STARTED. So the splitter holds these events back until the next RUN_STARTED,
// RUN_FINISHED or RUN_ERROR decides their run.
type Splitter struct {
	file string
	// defaults are the ids to use if the file has none.
	defaults RunName

	current       RunName // zero before the first run
	isInterrupted bool
	held          []RunEvent
	heldBytes     int
}

// maxHeldBytes limits the events that are held back, to the size of one append.
const maxHeldBytes = 64 << 20

// Add takes the next event and returns the events whose run is decided: none, or this event after
// those held back. Its errors are *eventfile.Error.
func (s *Splitter) Add(event eventfile.Event) ([]RunEvent, error) {
	next := RunEvent{Event: event, eventType: compaction.EventType(event.Raw)}
	switch next.eventType {
	case "":
		return nil, s.problem(event.Line, errors.New(`the event has no type (expected a JSON object with a string member "type")`))
	case "RUN_STARTED":
		started, err := s.readIDs(event.Raw)
		if err != nil {
			return nil, s.problem(event.Line, err)
		}
		if started != s.current {
			s.current = started // the events held back belong to it, too
		}
		s.isInterrupted = false
		return s.release(next), nil
	case "RUN_FINISHED", "RUN_ERROR":
		if err := s.begin(next); err != nil {
			return nil, err
		}
		s.isInterrupted = next.eventType == "RUN_FINISHED" && isInterrupt(event.Raw)
		return s.release(next), nil
	}
	if s.isInterrupted || s.current == (RunName{}) && (s.defaults.ThreadID == "" || s.defaults.RunID == "") {
		s.held = append(s.held, next)
		if s.heldBytes += len(event.Raw); s.heldBytes > maxHeldBytes {
			first := s.held[0]
			s.held, s.heldBytes = nil, 0
			return nil, s.problem(first.Line, fmt.Errorf("no RUN_STARTED follows %s within %d MB of events, so their run is unknown", first.eventType, maxHeldBytes>>20))
		}
		return nil, nil
	}
	if err := s.begin(next); err != nil {
		return nil, err
	}
	return s.release(next), nil
}

// End returns the events that are held back at the end of the file.
func (s *Splitter) End() ([]RunEvent, error) {
	if len(s.held) == 0 {
		return nil, nil
	}
	if err := s.begin(s.held[0]); err != nil {
		return nil, err
	}
	return s.release(), nil
}

// begin sets the current run from the defaults if no run has begun.
func (s *Splitter) begin(event RunEvent) error {
	if s.current != (RunName{}) {
		return nil
	}
	if s.defaults.ThreadID == "" || s.defaults.RunID == "" {
		if len(s.held) > 0 {
			event = s.held[0]
		}
		return s.problem(event.Line, fmt.Errorf("%s comes before any RUN_STARTED: name its run with --thread and --run", event.eventType))
	}
	s.current = s.defaults
	return nil
}

// release assigns the events held back, and some more, to the current run.
func (s *Splitter) release(more ...RunEvent) []RunEvent {
	events := append(s.held, more...)
	s.held, s.heldBytes = nil, 0
	for i := range events {
		events[i].Run = s.current
	}
	return events
}

// readIDs returns the ids of a RUN_STARTED, with the defaults for missing ones.
func (s *Splitter) readIDs(event []byte) (RunName, error) {
	// A map, because encoding/json would decode "THREADID" into a field for "threadId".
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(event, &fields); err != nil {
		return RunName{}, err
	}
	name := s.defaults
	for _, id := range []struct {
		field, flag string
		value       *string
	}{{"threadId", "--thread", &name.ThreadID}, {"runId", "--run", &name.RunID}} {
		if raw, ok := fields[id.field]; ok {
			if err := readID(raw, id.value); err != nil {
				return RunName{}, fmt.Errorf("the %s of RUN_STARTED %w", id.field, err)
			}
		}
		if *id.value == "" {
			return RunName{}, fmt.Errorf("RUN_STARTED has no %s: set it with %s", id.field, id.flag)
		}
	}
	return name, nil
}

func (s *Splitter) problem(line int, err error) error {
	return &eventfile.Error{File: s.file, Line: line, Err: err}
}

// readID decodes a JSON string that can be an id in the database.
func readID(raw json.RawMessage, id *string) error {
	if err := json.Unmarshal(raw, id); err != nil {
		return fmt.Errorf("must be a string, not %s", raw)
	}
	// Go decodes a lone surrogate to U+FFFD, so different ids would become equal.
	isEscaped := strings.Contains(strings.ToLower(string(raw)), `\ud`)
	if strings.ContainsRune(*id, 0) || isEscaped && strings.ContainsRune(*id, utf8.RuneError) {
		return fmt.Errorf(`contains \u0000 or a lone surrogate, which PostgreSQL cannot store as text: %s`, raw)
	}
	return nil
}

// isInterrupt reports whether a RUN_FINISHED ends its run with an interrupt.
func isInterrupt(event []byte) bool {
	var finished struct {
		Outcome json.RawMessage `json:"outcome"`
	}
	var outcome struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(event, &finished) == nil && json.Unmarshal(finished.Outcome, &outcome) == nil && outcome.Type == "interrupt"
}
