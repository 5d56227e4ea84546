package ingest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/eventfile"
)

func TestWhichRunAnEventBelongsTo(t *testing.T) {
	t.Parallel()
	start := func(run string) string { return "S:" + run }
	for name, test := range map[string]struct {
		defaults RunName
		events   []string // S:run RUN_STARTED, F RUN_FINISHED, I the same with an interrupt, E RUN_ERROR, T anything else
		want     string   // the run of each, or the line that cannot be used
	}{
		"one after the other":             {events: []string{start("a"), "T", "F", start("b"), "T", "E"}, want: "aaabbb"},
		"cut off":                         {events: []string{start("a"), "T", start("b"), "F"}, want: "aabb"},
		"behind the end":                  {events: []string{start("a"), "F", "T", "T", "F", start("b"), "F"}, want: "aaaaabb"},
		"behind an error":                 {events: []string{start("a"), "E", "T", start("b"), "F"}, want: "aaabb"},
		"started once more":               {events: []string{start("a"), "F", start("a"), "T", "F"}, want: "aaaaa"},
		"resumed":                         {events: []string{start("a"), "I", "T", "T", start("b"), "T", "F"}, want: "aabbbbb"},
		"resumed in the same run":         {events: []string{start("a"), "I", "T", start("a"), "F"}, want: "aaaaa"},
		"behind an interrupt, to the end": {events: []string{start("a"), "I", "T", "T"}, want: "aaaa"},
		"an end behind an interrupt":      {events: []string{start("a"), "I", "T", "F", start("b"), "F"}, want: "aaaabb"},
		"before the first start":          {events: []string{"T", "T", start("a"), "F"}, want: "aaaa"},
		"no start":                        {events: []string{"T", "T", "F"}, want: "line 1"},
		"no start and no end":             {events: []string{"T", "T"}, want: "line 1"},
		"no start, but named":             {RunName{"t", "x"}, []string{"T", "T", "F", start("b"), "F"}, "xxxbb"},
		"a start that names none":         {RunName{"t", "x"}, []string{start(""), "T", "F"}, "xxx"},
		"no type":                         {events: []string{start("a"), ""}, want: "line 2"},
	} {
		split := Splitter{file: "file", defaults: test.defaults}
		got, count := "", 0
		take := func(events []RunEvent, err error) bool {
			for _, event := range events {
				got += event.Run.RunID
				if count++; event.Line != count {
					t.Errorf("%s: line %d is event %d", name, event.Line, count)
				}
			}
			if err != nil {
				got = strings.Replace(strings.Join(strings.Split(err.Error(), ":")[:2], " "), "file", "line", 1)
			}
			return err == nil
		}
		ok := true
		for n, event := range test.events {
			raw := `{"type":"CUSTOM"}`
			switch run, isStart := strings.CutPrefix(event, "S:"); {
			case isStart && run == "":
				raw = `{"type":"RUN_STARTED"}`
			case isStart:
				raw = fmt.Sprintf(`{"type":"RUN_STARTED","threadId":"t","runId":%q}`, run)
			case event == "F":
				raw = `{"type":"RUN_FINISHED","outcome":{"type":"success"}}`
			case event == "I":
				raw = `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[]}}`
			case event == "E":
				raw = `{"type":"RUN_ERROR","message":"no"}`
			case event == "":
				raw = `{"kind":"CUSTOM"}`
			}
			if ok = take(split.Add(eventfile.Event{Raw: json.RawMessage(raw), Line: n + 1})); !ok {
				break
			}
		}
		if ok {
			take(split.End())
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
