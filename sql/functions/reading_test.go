package functions_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/pgagui/pgagui/internal/testfile"
)

// Which message or call an event of the log belongs to is read in few places, each with its reason: a new reader uses one of them.
var readsIDsOfEvents = map[string]string{
	"agui_internal.events_of_calls":  "the events of tool calls, for facts, errors and names",
	"agui_internal.event_references": "reads a whole lineage for agui.tool_calls and its like, in one pass",
	"agui_internal.message_mentions": "reads backwards, a thousand events at once, for agui.last_messages",
	"agui_internal.open_parts":       "what an event opens, of any kind",
	"agui.history":                   "joins pieces as they are in the log",
	"agui.session_runs":              "reads messages of legacy sessions, not events",
	"agui_internal.title_of_events":  "reads the first events of a thread as they are appended",
	"agui_internal.brings_message":   "tests the text of batches, and parses few",
	"agui_internal.news_of_runs":     "takes the messages from the fold; the events say only when they came",
}

var reducer = []string{"fold/runs", "fold/events", "fold/nodes", "fold/steps", "fold/messages", "fold/replay", "fold/compact", "fold/repair"}

var memberOfEvents = regexp.MustCompile(`"(?:messageId|toolCallId)" (?:json|text)\b|->>? 'messageId'`)

func TestFewFunctionsReadTheIDsOfEvents(t *testing.T) {
	t.Parallel()
	for _, object := range testfile.SQLObjects(t) {
		if slices.Contains(reducer, object.Area) {
			continue
		}
		if _, listed := readsIDsOfEvents[object.Name]; memberOfEvents.MatchString(object.Text) != listed {
			t.Errorf("%s in %s: reads the ids of events: %v, listed: %v", object.Name, object.Area, !listed, listed)
		}
	}
}
