package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// The questions as LangGraph and CrewAI send them, and the interrupts that they are.
const (
	ofTypeScript = `{"type":"CUSTOM","name":"on_interrupt","value":"{\"message\":\"Erase it?\"}","rawEvent":{"id":"3a27","value":{"message":"Erase it?"}}}`
	ofPython     = `{"type":"CUSTOM","name":"on_interrupt","value":"Erase it?"}`
	ofCrewAI     = `{"type":"CUSTOM","name":"on_interrupt","value":{"id":"f1","reason":"crewai:human_feedback","message":"Erase it?","expiresAt":"2999-01-01T00:00:00Z"}}`
)

// An agent that asks by a CUSTOM event waits, whether it sends its plain end in the same call, in the next, or after other events.
func TestAQuestionIsAnInterrupt(t *testing.T) {
	t.Parallel()
	const (
		start, end = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"RUN_FINISHED"}`
		fails      = `{"type":"RUN_ERROR","message":"no"}`
		text       = `{"type":"TEXT_MESSAGE_START","messageId":"m"},{"type":"TEXT_MESSAGE_END","messageId":"m"}`
	)
	typescript := `{"id":"3a27","reason":"on_interrupt","message":"{\"message\":\"Erase it?\"}","source":` + ofTypeScript + `}`
	python := func(n int) string {
		return fmt.Sprintf(`{"id":"r-question-%d","reason":"on_interrupt","message":"Erase it?","source":%s}`, n, ofPython)
	}
	crewai := `{"id":"f1","reason":"crewai:human_feedback","message":"Erase it?","expiresAt":"2999-01-01T00:00:00Z","source":` + ofCrewAI + `}`
	for name, test := range map[string]struct {
		calls  string // separated by |
		status string
		open   string
	}{
		"one call":                  {start + "," + ofTypeScript + "," + end, "interrupted", typescript},
		"two calls":                 {start + "," + ofPython + "|" + end, "interrupted", python(1)},
		"three calls":               {start + "|" + ofCrewAI + "|" + text + "|" + end, "interrupted", crewai},
		"two questions":             {start + "|" + ofPython + "|" + text + "," + ofPython + "|" + end, "interrupted", python(1) + "," + python(2)},
		"an outcome too":            {start + "|" + ofPython + `|{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i"}]}}`, "interrupted", `{"id":"i"}`},
		"success":                   {start + "|" + ofPython + `|{"type":"RUN_FINISHED","outcome":{"type":"success"}}`, "finished", ""},
		"null is no outcome":        {start + "|" + ofPython + `|{"type":"RUN_FINISHED","outcome":null}`, "interrupted", python(1)},
		"it failed":                 {start + "|" + ofPython + "|" + fails, "failed", ""},
		"it failed in the call":     {start + "," + ofPython + "," + fails + "," + end, "failed", ""},
		"it finished, then failed":  {start + "," + ofPython + "," + end + "|" + fails, "failed", python(1)},
		"it finished twice":         {start + "," + ofPython + "," + end + "|" + end, "finished", ""},
		"behind the end":            {start + "|" + end + "|" + ofPython, "finished", ""},
		"one more, behind the end":  {start + "," + ofPython + "," + end + "|" + ofPython, "interrupted", python(1)},
		"it began again":            {start + "," + ofPython + "," + start + "," + end, "finished", ""},
		"another CUSTOM":            {start + `,{"type":"CUSTOM","name":"on_interrupted","value":1}|` + end, "finished", ""},
		"a text that says the name": {start + `,{"type":"TEXT_MESSAGE_START","messageId":"on_interrupt"}|` + end, "finished", ""},
		"in escapes":                {start + `|{"type":"CUSTOM","name":"\u006fn_interrupt","value":"x\u0000"}|` + end, "interrupted", `{"id":"r-question-1","reason":"on_interrupt","message":"x\u0000","source":{"type":"CUSTOM","name":"\u006fn_interrupt","value":"x\u0000"}}`},
		"large":                     {start + `|{"type":"CUSTOM","name":"on_interrupt","value":{"x":"` + strings.Repeat("x", 1_100_000) + `"},"rawEvent":{"id":"l"}}|` + end, "interrupted", `{"id":"l","reason":"on_interrupt","source":{"type":"CUSTOM","name":"on_interrupt","value":{"x":"` + strings.Repeat("x", 1_100_000) + `"},"rawEvent":{"id":"l"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			seq := 0
			for i, call := range strings.Split(test.calls, "|") {
				if i == 1 { // what follows is folded behind a snapshot
					testdb.Exec(t, pool, `call agui.compact_running(1)`)
				}
				seq = testdb.Ask[int](t, pool, `select agui.append('t', 'r', $1, after_seq => $2)`, "["+call+"]", seq)
			}
			wait.For(t, "the facts are there", func() bool {
				testdb.Exec(t, pool, `call agui.project()`)
				return testdb.Ask[bool](t, pool, `select exists (select from agui.run_fact)`)
			})
			if status := testdb.Ask[string](t, pool, `select status from agui.runs('t')`); status != test.status {
				t.Errorf("the run is %s", status)
			}
			m := meanings(t, pool, `select agui.restore('t')`)
			var list []string
			for _, interrupt := range m[0].Interrupts {
				list = append(list, string(interrupt))
			}
			if open := strings.Join(list, ","); open != test.open {
				t.Errorf("open: %.300s\nwant  %.300s", open, test.open)
			}
			waits := test.open != ""
			for what, sql := range map[string]string{
				"agui.waiting":    `select exists (select from agui.waiting())`,
				"agui.threads":    `select exists (select from agui.threads(status => 'interrupted'))`,
				"agui.interrupts": `select exists (select from agui.interrupts('t'))`,
			} {
				if got := testdb.Ask[bool](t, pool, sql); got != waits {
					t.Errorf("%s: it waits: %t", what, got)
				}
			}
			mustBeIntact(t, pool)
			if name == "large" {
				return
			}
			// The fold in Go, the fold as of each event, and each compacted form mean the same.
			checkForms(t, pool)
			testdb.Exec(t, pool, `call agui.compact()`)
			checkForms(t, pool)
			mustBeIntact(t, pool)
		})
	}
}

// checkForms compares the restore as of each event of run r with the fold in Go, and that of the whole run with its compacted forms.
func checkForms(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	events := rawEvents(testdb.List[string](t, pool, `select payload from agui.events('t') order by seq`)...)
	fold := compaction.New()
	fold.Locate("r", 1)
	for i, event := range events {
		fold.Apply(event)
		if d := differences(meanings(t, pool, `select agui.restore('t', at_seq => $1)`, i+1)[0], meaningOf(t, fold)); d != "" {
			t.Errorf("as of event %d: %s", i+1, d)
		}
		resumed := must.Have(compaction.Resume(fold.Snapshot()))(t)
		resumed.Locate("r", int64(i+2))
		fold = resumed
	}
	for _, shape := range []string{"stream", "snapshot"} {
		stream := must.Have(pgagui.New(pool, nil).Replay(t.Context(), "t", pgagui.ReplayOptions{Shape: compaction.Shape(shape)}))(t)
		if d := differences(foldInGo(t, stream), meaningOf(t, fold)); d != "" {
			t.Errorf("replayed as %s: %s\n%s", shape, d, stream)
		}
		compacted := must.Have(compaction.CompactEvents(events, compaction.Shape(shape), nil))(t)
		if d := differences(foldInGo(t, compacted), meaningOf(t, fold)); d != "" {
			t.Errorf("compacted as %s: %s\n%s", shape, d, compacted)
		}
	}
}

// mustBeIntact is mustVerify for a log that may break the protocol.
func mustBeIntact(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if wrong := testdb.Ask[string](t, pool, `select coalesce(string_agg(problem, '; '), '') from agui.verify('t') where severity = 'damage'`); wrong != "" {
		t.Error(wrong)
	}
}
