package functions_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/sql/functions"
)

// Which message or call an event of the log belongs to is read in few places, each with its reason: a new reader uses one of them.
// fold/events and fold/streams are the reducer itself.
var readsIDsOfEvents = map[string]string{
	"core/history/events_of_calls.sql":  "the events of tool calls, for facts, errors and names",
	"core/history/event_references.sql": "reads a whole lineage for agui.tool_calls and its like, in one pass",
	"core/history/message_mentions.sql": "reads backwards, a thousand events at once, for agui.last_messages",
	"core/live/open_parts.sql":          "what an event opens, of any kind",
	"api/history/history.sql":           "joins pieces as they are in the log",
	"api/history/session_runs.sql":      "reads messages of legacy sessions, not events",
	"core/threads/title_of_events.sql":  "reads the first events of a thread as they are appended",
	"fold/read/brings_message.sql":      "tests the text of batches, and parses few",
	"upkeep/facts/news_of_runs.sql":     "takes the messages from the fold; the events say only when they came",
}

var memberOfEvents = regexp.MustCompile(`"(?:messageId|toolCallId)" (?:json|text)\b|->>? 'messageId'`)

func TestFewFunctionsReadTheIDsOfEvents(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(functions.Files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(file, "fold/streams/") || strings.HasPrefix(file, "fold/events/") {
			return err
		}
		text, err := fs.ReadFile(functions.Files, file)
		if err != nil {
			return err
		}
		if _, listed := readsIDsOfEvents[file]; memberOfEvents.Match(text) != listed {
			t.Errorf("%s: reads the ids of events: %v, listed: %v", file, !listed, listed)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
