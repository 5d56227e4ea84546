package explorer

import (
	"strings"
	"sync"

	"github.com/pgagui/pgagui/protocol"
)

// eventGroup is a filter of the log.
type eventGroup struct {
	name  string
	class string // of the color of its events
	types []string
}

// eventGroups are the filters of the log: every type is in one of them.
var eventGroups = sync.OnceValue(func() []eventGroup {
	groups := []eventGroup{{name: "Messages"}, {name: "Tool calls", class: "tool"}, {name: "State", class: "state"}, {name: "Activities"}, {name: "Runs and steps", class: "run"}, {name: "Custom and raw"}}
	for _, t := range protocol.Events().Types {
		does := strings.Fields(t.Does + " " + t.Part)
		group := &groups[len(groups)-1]
		if len(does) > 0 {
			switch does[len(does)-1] {
			case "tool", "result":
				group = &groups[1]
			case "state":
				group = &groups[2]
			case "activity":
				group = &groups[3]
			case "run", "step", "subagent":
				group = &groups[4]
			default:
				group = &groups[0]
			}
		}
		group.types = append(group.types, t.Name)
	}
	return groups
})

var eventClasses = sync.OnceValue(func() map[string]string {
	classes := map[string]string{}
	for _, group := range eventGroups() {
		for _, name := range group.types {
			classes[name] = group.class
		}
	}
	return classes
})

// classOfEvent returns the class of the color of an event.
func classOfEvent(eventType string) string {
	if does, _, _ := protocol.RoleOf(eventType); does == "fail run" {
		return "bad"
	}
	return eventClasses()[eventType]
}

// markOfEvent returns the class of the mark of an event on the slider; empty: it has none.
func markOfEvent(eventType string) string {
	does, part, _ := protocol.RoleOf(eventType)
	switch class := classOfEvent(eventType); {
	case class == "tool" && (does != "start" || part != "tool") && does != "add result", class == "run":
		return ""
	default:
		return class
	}
}
