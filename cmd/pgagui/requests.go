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

// A request began a run: it is the body that the client posted (RunAgentInput), with the messages
// of the user. Servers seldom repeat it in RUN_STARTED.
//
// A file of requests has one JSON object per run. It is such a body or, if the body does not name
// its run or parent, the envelope {"threadId", "runId", "parentRunId", "input": body} that pgagui
// export writes.
type request struct {
	run   runName         // ids that the request does not have are ""
	input json.RawMessage // nil if the request has only a parent
	// parent is the parent of the run: "" means a root, nil that the request names none.
	parent *string
	// isBody is true for a body without envelope. Its parent counts only if RUN_STARTED has none.
	isBody bool
	line   int
	body   bodyPlace
	isUsed bool
}

// requests are the requests of a file. The runs may come in another order, and each request may
// repeat the whole conversation, so the bodies are kept in a temporary file.
type requests struct {
	file    string
	all     []*request
	byName  map[runName]*request  // requests with a runId; the thread id may be ""
	inOrder map[string][]*request // the others, by thread id, in the order of the file
	bodies  *os.File
}

// bodyPlace is the place of a request in the temporary file.
type bodyPlace struct {
	offset int64
	length int
	digest [sha256.Size]byte // of the input
}

// readRequests reads a file of requests. The caller must close the result. An error about a line is
// an *eventfile.Error.
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
			return &eventfile.Error{File: r.file, Line: object.Line, Err: fmt.Errorf("line %d has a different request for %s", before.line, next.run)}
		} else {
			continue // the same request twice
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

// take returns the request for a run that begins: the one that names the run, otherwise the next
// one without a runId, or nil if there is none.
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

// hasUnnamed reports whether unused requests without a runId are left.
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

// unused returns the requests that belong to no imported run.
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
