package session

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Checkpoint is a document in which a workflow engine or a graph stored its position, with the
// fields that are needed to store it after its parent. Nothing else in the document is read.
type Checkpoint struct {
	ThreadID  string // the conversation or session, where the document names it
	Namespace string // the workflow's name, or checkpoint_ns, the path of a subgraph
	ID        string // empty in a bare document of .NET, whose store gives it: set it then
	ParentID  string // of the checkpoint before, in the same thread and namespace; empty for the first
	Document  json.RawMessage
}

// checkpointShapes say where documents have the fields of a Checkpoint. The first shape applies whose members a
// document has.
var checkpointShapes = []struct {
	has                             []string
	thread, namespace, id, parentID [][]string
}{
	{ // Agent Framework, Python: a workflow checkpoint
		has:       []string{"checkpoint_id", "iteration_count"},
		namespace: [][]string{{"workflow_name"}, {"workflow_id"}},
		id:        [][]string{{"checkpoint_id"}},
		parentID:  [][]string{{"previous_checkpoint_id"}},
	},
	{ // Agent Framework, .NET: as stores keep a workflow checkpoint
		has:      []string{"checkpointId", "value"},
		thread:   [][]string{{"sessionId"}, {"runId"}},
		id:       [][]string{{"checkpointId"}},
		parentID: [][]string{{"parentCheckpointId"}},
	},
	{ // Agent Framework, .NET: a workflow checkpoint itself
		has:      []string{"stepNumber", "runnerData"},
		thread:   [][]string{{"parent", "sessionId"}, {"parent", "runId"}},
		parentID: [][]string{{"parent", "checkpointId"}},
	},
	{ // LangGraph: a checkpoint tuple or a state snapshot, of Python or JavaScript
		has:       []string{"config"},
		thread:    [][]string{{"config", "configurable", "thread_id"}},
		namespace: [][]string{{"config", "configurable", "checkpoint_ns"}},
		id:        [][]string{{"config", "configurable", "checkpoint_id"}, {"checkpoint", "id"}},
		parentID:  [][]string{{"parent_config", "configurable", "checkpoint_id"}, {"parentConfig", "configurable", "checkpoint_id"}},
	},
	{ // LangGraph: a row of a checkpointer's table
		has:       []string{"thread_id", "checkpoint_id"},
		thread:    [][]string{{"thread_id"}},
		namespace: [][]string{{"checkpoint_ns"}},
		id:        [][]string{{"checkpoint_id"}},
		parentID:  [][]string{{"parent_checkpoint_id"}},
	},
	{ // LangGraph: a thread's state, as its server gives it
		has:       []string{"checkpoint", "values"},
		thread:    [][]string{{"checkpoint", "thread_id"}},
		namespace: [][]string{{"checkpoint", "checkpoint_ns"}},
		id:        [][]string{{"checkpoint", "checkpoint_id"}},
		parentID:  [][]string{{"parent_checkpoint", "checkpoint_id"}},
	},
}

// ReadCheckpoint reads the fields of a [Checkpoint] from a document. It reads the documents of
// workflows of Microsoft Agent Framework (Python and .NET) and of LangGraph: a checkpoint tuple, a
// state snapshot, a row of a table, a state from its server.
func ReadCheckpoint(document json.RawMessage) (Checkpoint, error) {
	o, ok := rawjson.Object{}, json.Valid(document)
	if ok {
		o, ok = rawjson.ParseObject(document)
	}
	if !ok {
		return Checkpoint{}, fmt.Errorf("session: %w: it is not a JSON object: give one document", ErrInvalidCheckpoint)
	}
	for _, sh := range checkpointShapes {
		if slices.ContainsFunc(sh.has, func(key string) bool { return o.Get(key) == nil }) {
			continue
		}
		c := Checkpoint{
			ThreadID:  firstString(o, sh.thread),
			Namespace: firstString(o, sh.namespace),
			ID:        firstString(o, sh.id),
			ParentID:  firstString(o, sh.parentID),
			Document:  document,
		}
		if c.ID == "" && sh.id != nil {
			return Checkpoint{}, fmt.Errorf("session: %w: its id is missing or not a string: it belongs in %q", ErrInvalidCheckpoint, sh.id[0])
		}
		return c, nil
	}
	return Checkpoint{}, fmt.Errorf("session: %w: it has the members %q, which fit no shape of Agent Framework or LangGraph", ErrInvalidCheckpoint, o.Keys())
}

// firstString returns the string at the first of the paths that leads to one.
func firstString(o rawjson.Object, paths [][]string) string {
	for _, path := range paths {
		at, value := o, json.RawMessage(nil)
		for _, key := range path {
			value = at.Get(key)
			at, _ = rawjson.ParseObject(value)
		}
		if s, ok := stringOf(value); ok {
			return s
		}
	}
	return ""
}

// ParentsFirst returns the checkpoints of a thread in an order in which they can be stored: each
// after its parent, if the list has that, and otherwise in the given order. It returns an error if
// checkpoints form a cycle.
func ParentsFirst(checkpoints []Checkpoint) ([]Checkpoint, error) {
	type name struct{ namespace, id string }
	places := map[name]int{}
	for i, c := range slices.Backward(checkpoints) {
		places[name{c.Namespace, c.ID}] = i
	}
	ordered := make([]Checkpoint, 0, len(checkpoints))
	done := make([]bool, len(checkpoints))
	for i := range checkpoints {
		var waiting []int // a checkpoint, its parent, and so on
		for at, found := i, true; found && !done[at]; {
			c := checkpoints[at]
			if len(waiting) > len(checkpoints) {
				return nil, fmt.Errorf("session: %w: %q is its own ancestor: its parents form a cycle", ErrInvalidCheckpoint, c.ID)
			}
			waiting = append(waiting, at)
			if at, found = places[name{c.Namespace, c.ParentID}]; c.ParentID == "" {
				found = false
			}
		}
		for _, at := range slices.Backward(waiting) {
			ordered, done[at] = append(ordered, checkpoints[at]), true
		}
	}
	return ordered, nil
}
