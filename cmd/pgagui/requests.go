package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pgagui/pgagui/internal/eventfile"
)

// A request is what began a run: the body that the client posted (RunAgentInput), which holds the user's words. Servers seldom repeat it in
// RUN_STARTED.
//
// A file of requests holds one JSON object for each run: such a body, or, where the body does not name its run or the run's parent,
// {"threadId", "runId", "parentRunId", "input": body} as pgagui export writes it.
type request struct {
	run   runName         // as far as it is named
	input json.RawMessage // nil: only the parent is told
	// parent is the run that it goes on from, empty: none, nil: the request does not say.
	parent *string
	// isBody: it is the body itself, whose parent counts where RUN_STARTED names none.
	isBody bool
	line   int
	body   bodyPlace
	isUsed bool
}

// requests are those of a file. The runs may come in another order, and each request may repeat the whole conversation. So the bodies are in a
// temporary file.
type requests struct {
	file    string
	all     []*request
	byName  map[runName]*request  // those that name their run; the thread may be missing
	inOrder map[string][]*request // the others, by their thread, in the order of the file
	bodies  *os.File
}

// bodyPlace is where the text of a request is in the temporary file.
type bodyPlace struct {
	offset int64
	length int
	digest [sha256.Size]byte // of the input
}

// readRequests reads a file of requests, which must be closed in the end. Errors concern a line (*eventfile.Error).
func readRequests(name string, content io.Reader) (r *requests, err error) {
	r = &requests{file: name, byName: map[runName]*request{}, inOrder: map[string][]*request{}}
	if r.bodies, err = os.CreateTemp("", "pgagui-requests-"); err != nil {
		return nil, err
	}
	if err := r.read(content); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *requests) close() error {
	return errors.Join(r.bodies.Close(), os.Remove(r.bodies.Name()))
}

func (r *requests) read(content io.Reader) error {
	offset := int64(0)
	for object, err := range eventfile.Read(r.file, content) {
		if err != nil {
			return err
		}
		next, err := readRequest(object.Raw)
		if err != nil {
			return &eventfile.Error{File: r.file, Line: object.Line, Err: err}
		}
		next.line = object.Line
		next.body = bodyPlace{offset, len(object.Raw), sha256.Sum256(next.input)}
		next.input = nil
		if next.run.runID == "" {
			r.inOrder[next.run.threadID] = append(r.inOrder[next.run.threadID], next)
		} else if before := r.byName[next.run]; before == nil {
			r.byName[next.run] = next
		} else if before.body.digest != next.body.digest {
			return &eventfile.Error{File: r.file, Line: object.Line, Err: fmt.Errorf("line %d has another request of %s", before.line, next.run)}
		} else {
			continue // it was sent twice
		}
		r.all = append(r.all, next)
		if _, err := r.bodies.Write(object.Raw); err != nil {
			return err
		}
		offset += int64(len(object.Raw))
	}
	return nil
}

func readRequest(raw json.RawMessage) (*request, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	_, isBody := fields["messages"]
	next := &request{input: raw, isBody: isBody}
	if !isBody && (fields["input"] != nil || fields["parentRunId"] != nil) {
		next.input = fields["input"]
	} else if !isBody {
		return nil, errors.New(`not a request (expected a RunAgentInput, a JSON object with the member "messages")`)
	}
	for _, id := range []struct {
		field string
		value *string
	}{{"threadId", &next.run.threadID}, {"runId", &next.run.runID}} {
		if raw := fields[id.field]; raw != nil && string(raw) != "null" {
			if err := readID(raw, id.value); err != nil {
				return nil, fmt.Errorf("the %s of the request %w", id.field, err)
			}
		}
	}
	if raw := fields["parentRunId"]; raw != nil && string(raw) != "null" {
		next.parent = new("")
		if err := readID(raw, next.parent); err != nil {
			return nil, fmt.Errorf("the parentRunId of the request %w", err)
		}
		if isBody && *next.parent == "" {
			next.parent = nil
		}
	}
	return next, nil
}

// take returns the request of a run that begins: the one that names it, or else the next of those that name no run. nil: there is none.
func (r *requests) take(run runName) (*request, error) {
	if r == nil {
		return nil, nil
	}
	found := r.byName[run]
	if found == nil {
		found = r.byName[runName{runID: run.runID}]
	}
	for _, threadID := range []string{run.threadID, ""} {
		if rest := r.inOrder[threadID]; found == nil && len(rest) > 0 {
			found, r.inOrder[threadID] = rest[0], rest[1:]
		}
	}
	if found == nil {
		return nil, nil
	}
	found.isUsed = true
	raw := make([]byte, found.body.length)
	if _, err := r.bodies.ReadAt(raw, found.body.offset); err != nil {
		return nil, err
	}
	return readRequest(raw)
}

// hasUnnamed reports whether requests that name no run are left.
func (r *requests) hasUnnamed() bool {
	if r == nil {
		return false
	}
	for _, rest := range r.inOrder {
		if len(rest) > 0 {
			return true
		}
	}
	return false
}

// unused returns the requests that no run has taken.
func (r *requests) unused() (rest []*request) {
	if r == nil {
		return nil
	}
	for _, request := range r.all {
		if !request.isUsed {
			rest = append(rest, request)
		}
	}
	return rest
}
