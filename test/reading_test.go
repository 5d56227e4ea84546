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

// different finds the rows that one of two statements has and the other one lacks.
func different(a, b string) string {
	return "with a as materialized (" + a + "), b as materialized (" + b + ") " +
		"(select * from a except all select * from b) union all (select * from b except all select * from a)"
}

// What is searched, what is reported of tool calls, what waits and the last messages are what the fold has behind each run.
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
	// What the folds say, once for all comparisons.
	const texts = `
		create table folded_text as
		select distinct thread_id, message.role, message.message_id, agui_internal.text_of_content(agui_internal.json_guarded(message.message -> 'content')) as text
		from agui.run
		join agui.thread using (thread_key)
		cross join lateral agui.messages(thread_id, run_id) as message
		where run.status <> 'running' and message.role in ('user', 'assistant', 'tool')
		and agui_internal.text_of_content(agui_internal.json_guarded(message.message -> 'content')) is not null`
	const calls = `
		create table folded_call as
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
		for _, statement := range []string{`drop table if exists folded_text, folded_call`, texts, calls} {
			testdb.Exec(t, pool, statement)
		}
		for what, statement := range map[string]string{
			"texts that are searched, and no conversation has them": `
				select thread_id, role, message_id, text from agui.message_text join agui.thread using (thread_key)
				except select thread_id, role, message_id, text from folded_text`,
			"texts of conversations that no search finds": `
				select thread_id, role, message_id, text from folded_text
				except select thread_id, role, message_id, text from agui.message_text join agui.thread using (thread_key)`,
			"calls whose name or arguments are not those of the fold": `
				select fact.thread_id, fact.run_id, fact.call_id, fact.tool, fact.argument_bytes, folded.tool, folded.bytes
				from agui.tool_fact as fact
				join folded_call as folded using (thread_id, run_id, call_id)
				where (fact.tool, fact.argument_bytes) is distinct from (folded.tool, folded.bytes)`,
			"calls that an event began and the fold has, without a fact": `
				select thread_id, event.run_id, event.payload ->> 'toolCallId'
				from agui.event
				join folded_call as folded using (thread_id, run_id)
				where folded.call_id = event.payload ->> 'toolCallId'
				and event.payload ->> 'type' in ('TOOL_CALL_START', 'TOOL_CALL_CHUNK')
				and not exists (
					select from agui.tool_fact as fact where (fact.thread_id, fact.call_id) = (event.thread_id, folded.call_id)
				)`,
			"tools whose report is not the sum of their calls": different(`
				select tool, calls, failed, cut_off, waiting from agui.tool_report()`, `
				select
					tool, count(*), count(*) filter (where status = 'failed'), count(*) filter (where status = 'cut_off'), count(*) filter (where status = 'called')
				from agui.tool_fact group by tool`),
			"calls whose status is that of no conversation": `
				select fact.thread_id, fact.run_id, fact.call_id, fact.status, told.statuses
				from agui.tool_fact as fact
				join (
					select thread.thread_id, call.run_id, call.tool_call_id, array_agg(distinct call.status) as statuses
					from agui.run
					join agui.thread using (thread_key)
					cross join lateral agui.tool_calls(thread.thread_id, run.run_id) as call
					group by 1, 2, 3
				) as told on (told.thread_id, told.run_id, told.tool_call_id) = (fact.thread_id, fact.run_id, fact.call_id)
				where case when fact.status in ('failed', 'completed') then
					'completed' <> all (told.statuses) and not exists ( -- a list may have dropped the result since
						select from agui.event
						where event.thread_id = fact.thread_id and event.type = 'TOOL_CALL_RESULT' and event.payload ->> 'toolCallId' = fact.call_id
					)
				else
					fact.status <> all (told.statuses) or 'completed' = any (told.statuses)
				end`,
			"interrupts that wait, or not, where a restore of the head says otherwise": different(`
				select thread_id, interrupt_id from agui.waiting(1000) where kind = 'interrupt'`, `
				select thread_id, interrupt.value ->> 'id'
				from agui.thread
				cross join lateral agui.restore(thread_id) as restored
				cross join lateral json_array_elements(restored -> 'interrupts') as interrupt`),
			"list of what waits, which is empty": `select 1 where not exists (select from agui.waiting() where kind = 'interrupt')`,
			"last messages that are not the last of the conversation": different(`
				select thread.thread_id, run.run_id, last.position, last.message_id, last.message::text
				from agui.run
				join agui.thread using (thread_key)
				cross join lateral agui.last_messages(thread.thread_id, run.run_id, max_rows => 3) as last`, `
				select thread.thread_id, run.run_id, message.position, message.message_id, message.message::text
				from agui.run
				join agui.thread using (thread_key)
				cross join lateral (
					select * from agui.messages(thread.thread_id, run.run_id) order by position desc limit 3
				) as message`),
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
