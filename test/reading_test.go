package test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/testdb"
)

var runName = regexp.MustCompile(`"runId":"run-[0-9]+"`)

// appendGenerated appends a generated stream run by run, each below the one before it or, sometimes, below an earlier one.
func appendGenerated(t *testing.T, pool *pgxpool.Pool, threadID string, seed uint64, options compactiontest.Options) {
	t.Helper()
	store := pgagui.New(pool, nil)
	var runs [][]json.RawMessage
	for _, event := range compactiontest.Stream(seed, options) {
		if len(runs) == 0 || compaction.EventType(event) == "RUN_STARTED" {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], event)
	}
	for number, events := range runs {
		for i, event := range events {
			events[i] = json.RawMessage(runName.ReplaceAllString(string(event), fmt.Sprintf(`"runId":"r%d"`, number)))
		}
		appended := pgagui.AppendOptions{}
		if number > 1 && seed%3 == 0 && number%3 == 2 {
			appended.ParentRunID = fmt.Sprint("r", number-2)
		}
		if _, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: fmt.Sprint("r", number)}, events, appended); err != nil {
			t.Fatal(threadID, number, err)
		}
	}
}

// What is searched and what is reported of tool calls is what the fold has behind each run: the same texts, arguments and names.
func TestFactsAreThoseOfTheFold(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.enable_search()`)
	for i, kind := range kindsOfStreams {
		if kind.options.Wild || kind.options.Broken || kind.options.Unicode {
			continue
		}
		for n := range streamsOfAKind(3) {
			appendGenerated(t, pool, fmt.Sprint(kind.name, " ", n), (*firstSeed+uint64(n))<<8+uint64(i), kind.options)
		}
	}
	const texts = `
		select distinct thread_id, message.role, message.message_id, agui_internal.text_of_content(agui_internal.json_guarded(message.message -> 'content')) as text
		from agui.run
		join agui.thread using (thread_key)
		cross join lateral agui.messages(thread_id, run_id) as message
		where run.status <> 'running' and message.role in ('user', 'assistant', 'tool')
		and agui_internal.text_of_content(agui_internal.json_guarded(message.message -> 'content')) is not null`
	const calls = `
		select thread_id, run_id, agui_internal.json_string_text(call.call_id) as call_id, agui_internal.json_string_text(call.name) as tool,
			octet_length(agui_internal.json_unguard(call.arguments)) - 2 as bytes
		from agui.run
		join agui.thread using (thread_key)
		cross join lateral (
			select distinct on (call.call_id) call.*
			from agui_internal.fold_calls(agui_internal.fold_at(run, null)) as call
			order by call.call_id, call.message_position, call.position
		) as call`
	for _, work := range []string{``, `call agui.compact()`} {
		if work != "" {
			testdb.Exec(t, pool, work)
			testdb.Exec(t, pool, `select agui.rebuild_facts()`)
		}
		testdb.Exec(t, pool, `call agui.project()`)
		for what, statement := range map[string]string{
			"texts that are searched, and no conversation has them": `
				select thread_id, role, message_id, text from agui.message_text join agui.thread using (thread_key) except ` + texts,
			"texts of conversations that no search finds": texts + `
				except select thread_id, role, message_id, text from agui.message_text join agui.thread using (thread_key)`,
			"calls whose name or arguments are not those of the fold": `
				select fact.thread_id, fact.run_id, fact.call_id, fact.tool, fact.argument_bytes, folded.tool, folded.bytes
				from agui.tool_fact as fact
				join (` + calls + `) as folded using (thread_id, run_id, call_id)
				where (fact.tool, fact.argument_bytes) is distinct from (folded.tool, folded.bytes)`,
			"calls that an event began and the fold has, without a fact": `
				select thread_id, event.run_id, event.payload ->> 'toolCallId'
				from agui.event
				join (` + calls + `) as folded using (thread_id, run_id)
				where folded.call_id = event.payload ->> 'toolCallId'
				and event.payload ->> 'type' in ('TOOL_CALL_START', 'TOOL_CALL_CHUNK')
				and not exists (
					select from agui.tool_fact as fact where (fact.thread_id, fact.call_id) = (event.thread_id, folded.call_id)
				)`,
		} {
			rows := testdb.List[string](t, pool, `select concat_ws(' | ', found.*) from (`+statement+`) as found`)
			if len(rows) > 0 {
				t.Errorf("%s: %d %s:\n%s", work, len(rows), what, strings.Join(rows[:min(len(rows), 10)], "\n"))
			}
		}
		for _, thread := range testdb.List[string](t, pool, `select thread_id from agui.thread`) {
			damage := testdb.List[string](t, pool, `select concat_ws(': ', run_id, problem) from agui.verify($1) where severity = 'damage'`, thread)
			if len(damage) > 0 {
				t.Errorf("%s: verify of %s: %v", work, thread, damage)
			}
		}
	}
}
