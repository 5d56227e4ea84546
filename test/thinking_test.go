package test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// A message of thinking has the same id wherever its events are folded: by SQL, by the jobs, as of any event, from a snapshot in its
// middle, and in the compacted stream of the thread.
func TestThinkingHasOneID(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const thinks = `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"x"}`
	testdb.Exec(t, pool, `select agui.append('t', 'first "run"', '[{"type":"RUN_STARTED"},{"type":"THINKING_START"},{"type":"THINKING_TEXT_MESSAGE_START","subagentRunId":"s"},`+thinks+`]')`)
	testdb.Exec(t, pool, `select agui.append('t', 'first "run"', '[`+thinks+`]')`)
	want := func(contents ...string) (messages []string) {
		for i, content := range contents {
			messages = append(messages, fmt.Sprintf(`{"id":"%s","role":"reasoning","content":"%s"%s}`,
				[]string{`first \"run\"-thinking-3`, `second-thinking-10`}[i], content, []string{`,"subagentRunId":"s"`, ""}[i]))
		}
		return messages
	}
	restored := func(query string, arguments ...any) (messages []string) {
		t.Helper()
		for _, m := range meanings(t, pool, query, arguments...) {
			for _, message := range m.Messages {
				messages = append(messages, string(message))
			}
		}
		return messages
	}
	check := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s\nwant %s", what, got, want)
		}
	}
	const restore = `select agui.restore('t')`
	replayed := func(shape compaction.Shape) (messages []string) {
		t.Helper()
		events := must.Have(pgagui.New(pool, nil).Replay(t.Context(), "t", pgagui.ReplayOptions{Shape: shape}))(t)
		for _, message := range foldInGo(t, events).Messages {
			messages = append(messages, string(message))
		}
		return messages
	}

	check("in its middle", restored(restore), want("xx"))
	testdb.Exec(t, pool, `call agui.compact_running(1)`)
	testdb.Exec(t, pool, `select agui.append('t', 'first "run"', '[`+thinks+`,{"type":"THINKING_TEXT_MESSAGE_END"},{"type":"RUN_FINISHED"}]')`)
	check("behind a snapshot in its middle", restored(restore), want("xxx"))
	testdb.Exec(t, pool, `select agui.append('t', 'second', '[{"type":"RUN_STARTED"},{"type":"THINKING_TEXT_MESSAGE_START"},`+thinks+`]', parent_run_id => 'first "run"')`)
	for _, shape := range []compaction.Shape{compaction.StreamShape, compaction.SnapshotShape} {
		check("replay as "+string(shape), replayed(shape), want("xxx", "x"))
	}
	testdb.Exec(t, pool, `select agui.append('t', 'second', '[`+thinks+`,{"type":"RUN_FINISHED"},`+thinks+`]')`)
	check("at the end", restored(restore), want("xxx", "xx"))
	check("before", restored(`select agui.restore('t', null, 4)`), want("x"))

	must.Have(jobs.Compact(t.Context(), pool, jobs.CompactOptions{}))(t)
	check("from the snapshot of the jobs", restored(restore), want("xxx", "xx"))
	if found := testdb.Ask[string](t, pool, `select coalesce(string_agg(problem, ', '), '') from agui.verify('t') where problem not like 'the run goes on after%'`); found != "" {
		t.Error(found)
	}
}
