package timeline

import (
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/protocol"
)

// An openedPart is what begins with an event. A name that is missing is not one that is empty.
type openedPart struct {
	part        string
	name, owner *string
	seq         int64
}

func (p *openedPart) isSame(other openedPart) bool {
	// Two subagents may have a step of one name.
	return p.part == other.part && isSame(p.name, other.name) && (p.part != "step" || isSame(p.owner, other.owner))
}

func isSame(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

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
	opened := openedPart{part: part, name: text(fields[names]), owner: text(fields["subagentRunId"]), seq: mark.Seq}
	p.open = slices.DeleteFunc(p.open, opened.isSame)
	if does == "start" {
		p.open = append(p.open, opened)
	}
}

// text returns a JSON string decoded, and any other value as it is; nil if it is missing or null.
func text(value json.RawMessage) *string {
	var decoded *string
	if value == nil || json.Unmarshal(value, &decoded) == nil {
		return decoded
	}
	return new(string(value))
}

// openParts returns what is open, chunks included.
func (p *point) openParts() []OpenPart {
	var open []OpenPart
	for _, part := range p.open {
		open = append(open, OpenPart{Part: part.part, ID: orEmpty(part.name), SubagentRunID: orEmpty(part.owner), Seq: part.seq})
	}
	var lanes []struct {
		Kind, ID string
		Lane     *string // the subagent
	}
	if p.fold.HasOpenChunks() && json.Unmarshal(p.fold.Lanes(), &lanes) == nil {
		for _, lane := range lanes {
			if lane.Kind == "thinking" || lane.Kind == "question" {
				continue // the start of thinking is among those above, and a question is an event of its own
			}
			open = append(open, OpenPart{Part: lane.Kind, ID: lane.ID, SubagentRunID: orEmpty(lane.Lane)})
		}
	}
	return open
}

func orEmpty(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
