package timeline

import (
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/protocol"
)

// follow notes what an event begins or ends, as agui_internal.open_parts finds it.
func (p *point) follow(mark Mark, event json.RawMessage) {
	does, part, names := protocol.RoleOf(mark.Type)
	if does != "start" && does != "end" {
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(event, &fields) != nil {
		return
	}
	opened := OpenPart{Part: part, ID: text(fields[names]), SubagentRunID: text(fields["subagentRunId"]), Seq: mark.Seq}
	p.open = slices.DeleteFunc(p.open, func(other OpenPart) bool {
		// Two subagents may have a step of one name.
		return other.Part == part && other.ID == opened.ID && (part != "step" || other.SubagentRunID == opened.SubagentRunID)
	})
	if does == "start" {
		p.open = append(p.open, opened)
	}
}

// openParts returns what is open, chunks included.
func (p *point) openParts() []OpenPart {
	open := slices.Clone(p.open)
	var lanes []struct {
		Kind, ID string
		Lane     *string // the subagent
	}
	if streams := p.fold.Lanes(); streams != nil && json.Unmarshal(streams, &lanes) == nil {
		for _, lane := range lanes {
			part := OpenPart{Part: lane.Kind, ID: lane.ID}
			if lane.Lane != nil {
				part.SubagentRunID = *lane.Lane
			}
			open = append(open, part)
		}
	}
	return open
}

// text returns a JSON string decoded, and any other value as it is.
func text(value json.RawMessage) (decoded string) {
	if json.Unmarshal(value, &decoded) != nil {
		return string(value)
	}
	return decoded
}
