package ingest

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/eventfile"
)

// A request began a run: it is the body that the client posted (RunAgentInput), with the messages
// of the user. Servers seldom repeat it in RUN_STARTED.
//
// A file of requests has one JSON object per run. It is such a body or, if the body does not name
// its run or parent, the envelope {"threadId", "runId", "parentRunId", "input": body, "agentError"} that
// pgagui events writes.
type Request struct {
	Run   RunName         // ids that the request does not have are ""
	input json.RawMessage // nil if the request has only a parent
	// Parent is the parent of the run: "" means a root, nil that the request names none.
	Parent *string
	// AgentError is what the agent answered in place of events; nil: nothing.
	AgentError *pgagui.AgentError
	// IsBody is true for a body without envelope. Its parent counts only if RUN_STARTED has none.
	IsBody bool
	Line   int
	body   bodyPlace
	isUsed bool
}

// Requests are the requests of a file. The runs may come in another order, and each request may
// repeat the whole conversation, so the bodies are kept in a temporary file.
type Requests struct {
	File    string
	all     []*Request
	byName  map[RunName]*Request  // Requests with a runId; the thread id may be ""
	inOrder map[string][]*Request // the others, by thread id, in the order of the file
	bodies  *os.File
}

// bodyPlace is the place of a request in the temporary file.
type bodyPlace struct {
	offset int64
	length int
	digest [sha256.Size]byte // of the input
}

// ReadRequests reads a file of requests. The caller must close the result. An error about a line is
// an *eventfile.Error.
func ReadRequests(name string, content io.Reader) (r *Requests, err error) {
	r = &Requests{File: name, byName: map[RunName]*Request{}, inOrder: map[string][]*Request{}}
	if r.bodies, err = os.CreateTemp("", "pgagui-requests-"); err != nil {
		return nil, err
	}
	if err := r.read(content); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close removes the temporary file.
func (r *Requests) Close() error {
	return errors.Join(r.bodies.Close(), os.Remove(r.bodies.Name()))
}

func (r *Requests) read(content io.Reader) error {
	offset := int64(0)
	for object, err := range eventfile.Read(r.File, content) {
		if err != nil {
			return err
		}
		next, err := ReadRequest(object.Raw)
		if err != nil {
			return &eventfile.Error{File: r.File, Line: object.Line, Err: err}
		}
		next.Line = object.Line
		next.body = bodyPlace{offset, len(object.Raw), sha256.Sum256(next.input)}
		next.input = nil
		if next.Run.RunID == "" {
			r.inOrder[next.Run.ThreadID] = append(r.inOrder[next.Run.ThreadID], next)
		} else if before := r.byName[next.Run]; before == nil {
			r.byName[next.Run] = next
		} else if before.body.digest != next.body.digest {
			return &eventfile.Error{File: r.File, Line: object.Line, Err: fmt.Errorf("line %d has a different request for %s", before.Line, next.Run)}
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

// ReadRequest reads a body or an envelope.
func ReadRequest(raw json.RawMessage) (*Request, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	_, isBody := fields["messages"]
	next := &Request{input: raw, IsBody: isBody}
	if !isBody && (fields["input"] != nil || fields["parentRunId"] != nil || fields["agentError"] != nil) {
		next.input = fields["input"]
		if raw := fields["agentError"]; raw != nil {
			if err := json.Unmarshal(raw, &next.AgentError); err != nil {
				return nil, fmt.Errorf("the agentError of the request: %w", err)
			}
		}
	} else if !isBody {
		return nil, errors.New(`not a request (expected a RunAgentInput, a JSON object with the member "messages")`)
	}
	for _, id := range []struct {
		field string
		value *string
	}{{"threadId", &next.Run.ThreadID}, {"runId", &next.Run.RunID}} {
		if raw := fields[id.field]; raw != nil && string(raw) != "null" {
			if err := readID(raw, id.value); err != nil {
				return nil, fmt.Errorf("the %s of the request %w", id.field, err)
			}
		}
	}
	if raw := fields["parentRunId"]; raw != nil && string(raw) != "null" {
		next.Parent = new("")
		if err := readID(raw, next.Parent); err != nil {
			return nil, fmt.Errorf("the parentRunId of the request %w", err)
		}
		if isBody && *next.Parent == "" {
			next.Parent = nil
		}
	}
	return next, nil
}

// take returns the request for a run that begins: the one that names the run, otherwise the next
// one without a runId, or nil if there is none.
func (r *Requests) take(run RunName) (*Request, error) {
	if r == nil {
		return nil, nil
	}
	found := cmp.Or(r.byName[run], r.byName[RunName{RunID: run.RunID}])
	for _, threadID := range []string{run.ThreadID, ""} {
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
	return ReadRequest(raw)
}

// HasUnnamed reports whether unused requests without a runId are left.
func (r *Requests) HasUnnamed() bool {
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

// Unused returns the requests that belong to no imported run.
func (r *Requests) Unused() (rest []*Request) {
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
