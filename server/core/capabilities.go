package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// declared is what the settings of an agent may say of its capabilities: those of AG-UI 1.0, except
// for transport.
type declared struct {
	Identity *struct {
		Name, Type, Description, Version, Provider, DocumentationURL *string
		Metadata                                                     map[string]any
	} `json:"identity"`
	Tools *struct {
		Supported, ParallelCalls, ClientProvided *bool
		Items                                    []map[string]any
	} `json:"tools"`
	Output *struct {
		StructuredOutput   *bool
		SupportedMimeTypes []string
	} `json:"output"`
	State *struct {
		Snapshots, Deltas, Memory, PersistentState *bool
	} `json:"state"`
	MultiAgent *struct {
		Supported, Delegation, Handoffs *bool
		Subagents                       []struct{ Name, Description *string }
	} `json:"multiAgent"`
	Reasoning *struct {
		Supported, Streaming, Encrypted *bool
	} `json:"reasoning"`
	Multimodal *struct {
		Input  *struct{ Image, Audio, Video, PDF, File *bool }
		Output *struct{ Image, Audio *bool }
	} `json:"multimodal"`
	Execution *struct {
		CodeExecution, Sandboxed        *bool
		MaxIterations, MaxExecutionTime *uint64
	} `json:"execution"`
	HumanInTheLoop *struct {
		Supported, Approvals, Interventions, Feedback, Interrupts, ApproveWithEdits *bool
	} `json:"humanInTheLoop"`
	Custom map[string]any `json:"custom"`
}

// checkCapabilities reports what is wrong with the capabilities in the settings of an agent.
func checkCapabilities(text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields() // a misspelled one must not be ignored
	var named *declared
	if err := decoder.Decode(&named); err != nil {
		return fmt.Errorf("its capabilities: %w (expected those of AG-UI 1.0 without transport, which is that of the server; others belong in custom)", err)
	}
	if named == nil {
		return errors.New("its capabilities are null (expected an object)")
	}
	return nil
}

// AllCapabilities returns the capabilities of an agent as AG-UI 1.0 names them: those that the server
// gives to any agent, and those that its settings name.
//
//   - The server streams, and resumes at a frame's id. So transport is that of the server, not that
//     of the agent.
//   - A client that attaches receives the state as a STATE_SNAPSHOT, with what earlier runs set.
//   - A run ends at RunTimeout.
//
// A capability that is not named is unknown.
func (a *Agent) AllCapabilities() (json.RawMessage, error) {
	all := map[string]map[string]any{
		"identity": {"name": a.Name}, "state": {"snapshots": true, "persistentState": true}, "execution": {},
	}
	if a.Description != "" {
		all["identity"]["description"] = a.Description
	}
	if len(a.Capabilities) > 0 {
		var own map[string]map[string]any
		decoder := json.NewDecoder(bytes.NewReader(a.Capabilities))
		decoder.UseNumber()
		if err := decoder.Decode(&own); err != nil {
			return nil, fmt.Errorf("agent %q: its capabilities: %w", a.Name, err)
		}
		for category, members := range own {
			if all[category] == nil {
				all[category] = map[string]any{}
			}
			maps.Copy(all[category], members)
		}
	}
	all["transport"] = map[string]any{"streaming": true, "resumable": true}
	limit := a.RunTimeout.Milliseconds()
	if number, isNumber := all["execution"]["maxExecutionTime"].(json.Number); isNumber {
		if named, err := number.Int64(); err == nil {
			limit = min(limit, named)
		}
	}
	all["execution"]["maxExecutionTime"] = limit
	return json.Marshal(all)
}
